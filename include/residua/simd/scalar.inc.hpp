// The scalar backend: an array and plain loops. This is the readable specification of every operation, the oracle of
// the tests, and the lowest target of run-time dispatch.

namespace RESIDUA_PASS {

// 1 where it holds, else 0. As wide as T: with bool, g++ 12 at -O3 on AArch64 zeroed lanes 4 to 15 of `to_float16`.
template <class T>
struct reg_mask {
    std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t> v[64 / sizeof(T)];
};

template <class T>
struct reg {
    using value_type = T;
    static constexpr int size = 64 / sizeof(T);
    T v[64 / sizeof(T)];

    RESIDUA_LANE_INLINE static reg broadcast(T x)
    {
        reg r;
        for (int i = 0; i < size; ++i) r.v[i] = x;
        return r;
    }
    RESIDUA_LANE_INLINE static reg load(const T* p)
    {
        reg r;
        for (int i = 0; i < size; ++i) r.v[i] = p[i];
        return r;
    }
    RESIDUA_LANE_INLINE static reg load(const T* p, int n)
    {
        reg r;
        for (int i = 0; i < size; ++i) r.v[i] = i < n ? p[i] : T{};
        return r;
    }
    RESIDUA_LANE_INLINE static reg load_widened(const float* p)
        requires std::is_same_v<T, double>
    {
        reg r;
        for (int i = 0; i < size; ++i) r.v[i] = static_cast<double>(p[i]);
        return r;
    }
    RESIDUA_LANE_INLINE void store(T* p) const
    {
        for (int i = 0; i < size; ++i) p[i] = v[i];
    }
    RESIDUA_LANE_INLINE void store(T* p, int n) const
    {
        for (int i = 0; i < n; ++i) p[i] = v[i];
    }
    RESIDUA_LANE_INLINE static reg load_16_bit(const void* p, int n = size)
    {
        std::uint16_t half[static_cast<std::size_t>(size)] = {};
        copy_16_bit(half, p, n);
        reg r;
        for (int i = 0; i < size; ++i) r.v[i] = half[i];
        return r;
    }
    RESIDUA_LANE_INLINE void store_16_bit(void* p, int n = size) const
    {
        std::uint16_t half[static_cast<std::size_t>(size)];
        for (int i = 0; i < size; ++i) half[i] = static_cast<std::uint16_t>(v[i]);
        copy_16_bit(p, half, n);
    }
};

// One line per operation: what it does in lane i. Out of line, unlike the other backends': the lanes lie in memory
// anyway, and sixteen copies of every operation at every use would be most of a program.
#define RESIDUA_LANEWISE(result, head, expression)                  \
    RESIDUA_OUT_OF_LINE result head                                 \
    {                                                               \
        result r;                                                   \
        for (int i = 0; i < reg<T>::size; ++i) r.v[i] = expression; \
        return r;                                                   \
    }

// A product that no later addition can absorb, whatever -ffp-contract says.
template <class T>
RESIDUA_OUT_OF_LINE reg<T> operator*(const reg<T>& a, const reg<T>& b)
{
    reg<T> r;
    for (int i = 0; i < reg<T>::size; ++i) r.v[i] = a.v[i] * b.v[i];
    keep_product(r.v);
    return r;
}

RESIDUA_LANE_INLINE float sqrt1(float a) { return __builtin_sqrtf(a); }
RESIDUA_LANE_INLINE double sqrt1(double a) { return __builtin_sqrt(a); }
RESIDUA_LANE_INLINE float abs1(float a) { return __builtin_fabsf(a); }
RESIDUA_LANE_INLINE double abs1(double a) { return __builtin_fabs(a); }
RESIDUA_LANE_INLINE float round1(float a) { return __builtin_rintf(a); }
RESIDUA_LANE_INLINE double round1(double a) { return __builtin_rint(a); }

// clang-format off
template <class T> RESIDUA_LANEWISE(reg<T>, operator+(const reg<T>& a, const reg<T>& b), static_cast<T>(a.v[i] + b.v[i]))
template <class T> RESIDUA_LANEWISE(reg<T>, operator-(const reg<T>& a, const reg<T>& b), static_cast<T>(a.v[i] - b.v[i]))
template <class T> RESIDUA_LANEWISE(reg<T>, operator/(const reg<T>& a, const reg<T>& b), a.v[i] / b.v[i])
template <class T> RESIDUA_LANEWISE(reg<T>, operator-(const reg<T>& a), -a.v[i])
template <class T> RESIDUA_LANEWISE(reg<T>, operator&(const reg<T>& a, const reg<T>& b), a.v[i] & b.v[i])
template <class T> RESIDUA_LANEWISE(reg<T>, operator|(const reg<T>& a, const reg<T>& b), a.v[i] | b.v[i])
template <class T> RESIDUA_LANEWISE(reg<T>, operator^(const reg<T>& a, const reg<T>& b), a.v[i] ^ b.v[i])
template <int N, class T> RESIDUA_LANEWISE(reg<T>, shift_left(const reg<T>& a), a.v[i] << N)
template <int N, class T> RESIDUA_LANEWISE(reg<T>, shift_right(const reg<T>& a), a.v[i] >> N)

template <class T> RESIDUA_LANEWISE(reg<T>, fma(const reg<T>& a, const reg<T>& b, const reg<T>& c), fma1(a.v[i], b.v[i], c.v[i]))
template <class T> RESIDUA_LANEWISE(reg<T>, sqrt(const reg<T>& a), sqrt1(a.v[i]))
template <class T> RESIDUA_LANEWISE(reg<T>, abs(const reg<T>& a), abs1(a.v[i]))
template <class T> RESIDUA_LANEWISE(reg<T>, min(const reg<T>& a, const reg<T>& b), a.v[i] < b.v[i] ? a.v[i] : b.v[i])
template <class T> RESIDUA_LANEWISE(reg<T>, max(const reg<T>& a, const reg<T>& b), b.v[i] < a.v[i] ? a.v[i] : b.v[i])
template <class T> RESIDUA_LANEWISE(reg<T>, round(const reg<T>& a), round1(a.v[i]))

template <class T> RESIDUA_LANEWISE(reg_mask<T>, operator<(const reg<T>& a, const reg<T>& b), a.v[i] < b.v[i])
template <class T> RESIDUA_LANEWISE(reg_mask<T>, operator<=(const reg<T>& a, const reg<T>& b), a.v[i] <= b.v[i])
template <class T> RESIDUA_LANEWISE(reg_mask<T>, operator==(const reg<T>& a, const reg<T>& b), !(a.v[i] < b.v[i] || b.v[i] < a.v[i]) && a.v[i] <= b.v[i])
template <class T> RESIDUA_LANEWISE(reg_mask<T>, operator&(const reg_mask<T>& a, const reg_mask<T>& b), a.v[i] & b.v[i])
template <class T> RESIDUA_LANEWISE(reg_mask<T>, operator|(const reg_mask<T>& a, const reg_mask<T>& b), a.v[i] | b.v[i])
template <class T> RESIDUA_LANEWISE(reg_mask<T>, operator!(const reg_mask<T>& a), a.v[i] ^ 1u)
template <class T> RESIDUA_LANEWISE(reg<T>, select(const reg_mask<T>& m, const reg<T>& a, const reg<T>& b), m.v[i] != 0 ? a.v[i] : b.v[i])
// clang-format on

#undef RESIDUA_LANEWISE

template <class T>
RESIDUA_LANE_INLINE bool any(reg_mask<T> m)
{
    bool r = false;
    for (int i = 0; i < reg<T>::size; ++i) r = r || m.v[i] != 0;
    return r;
}

template <class T>
RESIDUA_LANE_INLINE bool all(reg_mask<T> m)
{
    return !any(!m);
}

RESIDUA_LANE_INLINE reg<std::uint32_t> to_bits(reg<float> a) { return __builtin_bit_cast(reg<std::uint32_t>, a); }
RESIDUA_LANE_INLINE reg<std::uint64_t> to_bits(reg<double> a) { return __builtin_bit_cast(reg<std::uint64_t>, a); }
RESIDUA_LANE_INLINE reg<float> from_bits(reg<std::uint32_t> a) { return __builtin_bit_cast(reg<float>, a); }
RESIDUA_LANE_INLINE reg<double> from_bits(reg<std::uint64_t> a) { return __builtin_bit_cast(reg<double>, a); }

RESIDUA_LANE_INLINE twice<reg<double>> widen(reg<float> a)
{
    twice<reg<double>> r;
    for (int i = 0; i < reg<double>::size; ++i) {
        r.lo.v[i] = static_cast<double>(a.v[i]);
        r.hi.v[i] = static_cast<double>(a.v[i + reg<double>::size]);
    }
    return r;
}

RESIDUA_LANE_INLINE reg<float> narrow(twice<reg<double>> a)
{
    reg<float> r;
    for (int i = 0; i < reg<double>::size; ++i) {
        r.v[i] = static_cast<float>(a.lo.v[i]);
        r.v[i + reg<double>::size] = static_cast<float>(a.hi.v[i]);
    }
    return r;
}

}  // namespace RESIDUA_PASS
