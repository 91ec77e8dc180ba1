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
