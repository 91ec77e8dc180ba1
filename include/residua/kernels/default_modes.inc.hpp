// The modes of the floating-point unit that the promised bits need: subnormal numbers are numbers.

namespace RESIDUA_PASS {

#if defined(__SSE2__)
using mode_register = unsigned;
inline constexpr mode_register flushing_modes = 0x8040;  // MXCSR's FTZ and DAZ
RESIDUA_INLINE mode_register read_modes() { return __builtin_ia32_stmxcsr(); }
RESIDUA_INLINE void write_modes(mode_register to) { __builtin_ia32_ldmxcsr(to); }
#elif defined(__aarch64__)
using mode_register = std::uint64_t;
inline constexpr mode_register flushing_modes = 0x1080001;  // FPCR's FZ, FZ16 and, on newer CPUs, FIZ
RESIDUA_INLINE mode_register read_modes()
{
    mode_register r;
    asm volatile("mrs %0, fpcr" : "=r"(r));
    return r;
}
RESIDUA_INLINE void write_modes(mode_register to) { asm volatile("msr fpcr, %0" : : "r"(to)); }
#else
using mode_register = unsigned;
inline constexpr mode_register flushing_modes = 0;
RESIDUA_INLINE mode_register read_modes() { return 0; }
RESIDUA_INLINE void write_modes(mode_register) {}
#endif

#if defined(__AVX__)
#define RESIDUA_ROUND_UP "vroundss $10, %1, %1, %0"
#elif RESIDUA_PASS_BACKEND == RESIDUA_BACKEND_HIGHWAY && defined(__x86_64__)
#if HWY_TARGET <= HWY_AVX2
#define RESIDUA_ROUND_UP "vroundss $10, %1, %1, %0"
#endif
#elif defined(__SSE4_1__)
#define RESIDUA_ROUND_UP "roundss $10, %1, %0"
#endif

/// Whether subnormal results or operands are taken for zero. MXCSR cannot be read before all that came before is done; to
/// make a subnormal number and round it up to 1, quietly, says the same, and nothing has to wait for it.
RESIDUA_INLINE bool flushes_subnormals()
{
#ifdef RESIDUA_ROUND_UP
    float x = 0x1.8p-126f;
    asm("" : "+x"(x));
    const float subnormal = x - 0x1p-126f;
    float one_or_zero;
    asm(RESIDUA_ROUND_UP : "=x"(one_or_zero) : "x"(subnormal));
    return __builtin_bit_cast(std::uint32_t, one_or_zero) == 0;
#else
    return (read_modes() & flushing_modes) != 0;
#endif
}
#undef RESIDUA_ROUND_UP

/// Nothing is flushed while a kernel runs. The modes that were found come back after it, beside the exceptions that it
/// raised.
class default_modes {
public:
    RESIDUA_INLINE default_modes()
    {
        if (flushes_subnormals()) [[unlikely]] {
            found_ = read_modes() & flushing_modes;
            change(read_modes() & ~flushing_modes);
        }
    }
    RESIDUA_INLINE ~default_modes()
    {
        if (found_ != 0) [[unlikely]]
            change(read_modes() | found_);
    }
    default_modes(const default_modes&) = delete;
    default_modes& operator=(const default_modes&) = delete;

private:
    RESIDUA_INLINE static void change(mode_register to)
    {
        asm volatile("" : : : "memory");
        write_modes(to);
        asm volatile("" : : : "memory");
    }

    mode_register found_ = 0;
};

}  // namespace RESIDUA_PASS
