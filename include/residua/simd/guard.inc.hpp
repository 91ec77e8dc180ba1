// What the backends need where a compiler or a CPU would not give the one right answer by itself.

namespace RESIDUA_PASS {

// Makes a product opaque, so that -ffp-contract=fast (g++'s default) cannot merge it with a later addition: that is
// left to `fma`. In a register it costs no instruction.
template <class Raw>
RESIDUA_LANE_INLINE void keep_product([[maybe_unused]] Raw& product)
{
#if defined(__x86_64__) || defined(__i386__)
    if constexpr (!std::is_array_v<Raw>) {
        asm("" : "+v"(product));
    } else {
        asm("" : "+m"(product));
    }
#elif defined(__aarch64__)
    if constexpr (!std::is_array_v<Raw>) {
        asm("" : "+w"(product));
    } else {
        asm("" : "+m"(product));
    }
#else
    asm("" : "+m"(product));
#endif
}

// Clang (14) makes AArch64's fmin or fmax of a comparison with a constant zero and a selection of either; to those -0 is less
// than 0. What it does not see as a constant it leaves alone.
template <class Raw>
RESIDUA_LANE_INLINE void keep_sign_of_zero([[maybe_unused]] Raw& a, [[maybe_unused]] Raw& b)
{
#if defined(__clang__) && defined(__aarch64__)
    keep_product(a);
    keep_product(b);
#endif
}

/// An array as long as a vector.
template <class V>
using lane_array = typename V::value_type[static_cast<std::size_t>(V::size)];

// 16-bit elements in memory whose type may be another (bfloat16, float16, what they are a view of): touched as bytes, so
// that no rule of aliasing is broken. `copy_16_bit` is for less than a vector of them.
RESIDUA_LANE_INLINE const unsigned char* bytes_at(const void* p) { return static_cast<const unsigned char*>(p); }
RESIDUA_LANE_INLINE unsigned char* bytes_at(void* p) { return static_cast<unsigned char*>(p); }
RESIDUA_LANE_INLINE void copy_16_bit(void* to, const void* from, int n)
{
    for (int i = 0; i < n; ++i) __builtin_memcpy(bytes_at(to) + 2 * i, bytes_at(from) + 2 * i, 2);
}

inline constexpr std::size_t cache_line = 64;

/// How far it is to the beginning of the next line, from one 0.
RESIDUA_LANE_INLINE std::size_t bytes_to_line(const void* p)
{
    return (cache_line - reinterpret_cast<std::uintptr_t>(p) % cache_line) % cache_line;
}

#if defined(__x86_64__)
typedef long long bytes_16 __attribute__((vector_size(16), may_alias));
typedef long long bytes_32 __attribute__((vector_size(32), may_alias));
typedef long long bytes_64 __attribute__((vector_size(64), may_alias));

#if defined(__clang__)
template <class V>
RESIDUA_LANE_INLINE void stream(V* to, V from)
{
    __builtin_nontemporal_store(from, to);
}
#else
// (its builtins for these exist only where the whole unit has the instruction set)
RESIDUA_LANE_INLINE void stream(bytes_16* to, bytes_16 from) { asm("movntdq %1, %0" : "=m"(*to) : "x"(from)); }
RESIDUA_LANE_INLINE void stream(bytes_32* to, bytes_32 from) { asm("vmovntdq %1, %0" : "=m"(*to) : "x"(from)); }
RESIDUA_LANE_INLINE void stream(bytes_64* to, bytes_64 from) { asm("vmovntdq %1, %0" : "=m"(*to) : "v"(from)); }
#endif

template <class V>
RESIDUA_LANE_INLINE void stream_line_in(void* to, const void* from)
{
    for (std::size_t i = 0; i < cache_line / sizeof(V); ++i) {
        V part;
        __builtin_memcpy(&part, bytes_at(from) + i * sizeof(V), sizeof(V));
        stream(static_cast<V*>(to) + i, part);
    }
}
#endif

/// Copies a line to the beginning of one, past the caches where the CPU has such stores; `Bytes` at a time.
template <std::size_t Bytes>
RESIDUA_LANE_INLINE void stream_line(void* to, const void* from)
{
#if defined(__x86_64__)
    if constexpr (Bytes == 64) {
        stream_line_in<bytes_64>(to, from);
    } else if constexpr (Bytes == 32) {
        stream_line_in<bytes_32>(to, from);
    } else {
        stream_line_in<bytes_16>(to, from);
    }
#else
    __builtin_memcpy(to, from, cache_line);
#endif
}

RESIDUA_LANE_INLINE float fma1(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
RESIDUA_LANE_INLINE double fma1(double a, double b, double c) { return __builtin_fma(a, b, c); }

// Where the instruction set has no fused multiply-add: the C library's, which is exact, and slow. Out of line, since the
// calls cost far more than that, and inlined they would be most of the program.
template <class V>
RESIDUA_OUT_OF_LINE V lane_by_lane_fma(const V& a, const V& b, const V& c)
{
    lane_array<V> x, y, z;
    a.store(x);
    b.store(y);
    c.store(z);
    for (int i = 0; i < V::size; ++i) x[i] = fma1(x[i], y[i], z[i]);
    return V::load(x);
}

}  // namespace RESIDUA_PASS
