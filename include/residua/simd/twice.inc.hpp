// Two vectors side by side are a vector of twice the width: how f32x16 is one register on AVX-512, two on AVX2 and
// four on NEON, by one text. Every operation is that of the halves; only the order matters, and it is fixed here.

namespace RESIDUA_PASS {

template <class Half>
struct twice_mask {
    Half lo, hi;
};

template <class Half>
struct twice {
    using value_type = typename Half::value_type;
    static constexpr int size = 2 * Half::size;
    Half lo, hi;

    RESIDUA_LANE_INLINE static twice broadcast(value_type x) { return {Half::broadcast(x), Half::broadcast(x)}; }
    RESIDUA_LANE_INLINE static twice load(const value_type* p)
    {
        return {Half::load(p), Half::load(p + Half::size)};
    }
    RESIDUA_LANE_INLINE static twice load(const value_type* p, int n)
    {
        if (n <= Half::size) return {Half::load(p, n), Half::broadcast(value_type{})};
        return {Half::load(p), Half::load(p + Half::size, n - Half::size)};
    }
    RESIDUA_LANE_INLINE static twice load_widened(const float* p)
        requires std::is_same_v<value_type, double>
    {
        return {Half::load_widened(p), Half::load_widened(p + Half::size)};
    }
    RESIDUA_LANE_INLINE static twice load_alternate(const value_type* p)
        requires requires { Half::load_alternate(p); }
    {
        return {Half::load_alternate(p), Half::load_alternate(p + 2 * Half::size)};
    }
    RESIDUA_LANE_INLINE static twice load_bits(const void* p)
        requires requires { Half::load_bits(p); }
    {
        return {Half::load_bits(p), Half::load_bits(bytes_at(p) + sizeof(value_type) * Half::size)};
    }
    RESIDUA_LANE_INLINE void store_bits(void* p) const
        requires requires { lo.store_bits(p); }
    {
        lo.store_bits(p);
        hi.store_bits(bytes_at(p) + sizeof(value_type) * Half::size);
    }
    RESIDUA_LANE_INLINE void store(value_type* p) const
    {
        lo.store(p);
        hi.store(p + Half::size);
    }
    RESIDUA_LANE_INLINE void store(value_type* p, int n) const
    {
        if (n <= Half::size) {
            lo.store(p, n);
        } else {
            lo.store(p);
            hi.store(p + Half::size, n - Half::size);
        }
    }
    RESIDUA_LANE_INLINE static twice load_16_bit(const void* p)
    {
        return {Half::load_16_bit(p), Half::load_16_bit(bytes_at(p) + 2 * Half::size)};
    }
    RESIDUA_LANE_INLINE static twice load_16_bit(const void* p, int n)
    {
        if (n <= Half::size) return {Half::load_16_bit(p, n), Half::broadcast(value_type{})};
        return {Half::load_16_bit(p), Half::load_16_bit(bytes_at(p) + 2 * Half::size, n - Half::size)};
    }
    RESIDUA_LANE_INLINE void store_16_bit(void* p) const
    {
        lo.store_16_bit(p);
        hi.store_16_bit(bytes_at(p) + 2 * Half::size);
    }
    RESIDUA_LANE_INLINE void store_16_bit(void* p, int n) const
    {
        if (n <= Half::size) {
            lo.store_16_bit(p, n);
        } else {
            lo.store_16_bit(p);
            hi.store_16_bit(bytes_at(p) + 2 * Half::size, n - Half::size);
        }
    }
    RESIDUA_LANE_INLINE static twice load_float16(const void* p)
        requires requires { Half::load_float16(p); }
    {
        return {Half::load_float16(p), Half::load_float16(bytes_at(p) + 2 * Half::size)};
    }
    RESIDUA_LANE_INLINE void store_float16(void* p) const
        requires requires { lo.store_float16(p); }
    {
        lo.store_float16(p);
        hi.store_float16(bytes_at(p) + 2 * Half::size);
    }
};

// clang-format off
template <class H> RESIDUA_LANE_INLINE twice<H> operator+(twice<H> a, twice<H> b) { return {a.lo + b.lo, a.hi + b.hi}; }
template <class H> RESIDUA_LANE_INLINE twice<H> operator-(twice<H> a, twice<H> b) { return {a.lo - b.lo, a.hi - b.hi}; }
template <class H> RESIDUA_LANE_INLINE twice<H> operator*(twice<H> a, twice<H> b) { return {a.lo * b.lo, a.hi * b.hi}; }
template <class H> RESIDUA_LANE_INLINE twice<H> operator/(twice<H> a, twice<H> b) { return {a.lo / b.lo, a.hi / b.hi}; }
template <class H> RESIDUA_LANE_INLINE twice<H> operator-(twice<H> a) { return {-a.lo, -a.hi}; }
template <class H> RESIDUA_LANE_INLINE twice<H> operator&(twice<H> a, twice<H> b) { return {a.lo & b.lo, a.hi & b.hi}; }
template <class H> RESIDUA_LANE_INLINE twice<H> operator|(twice<H> a, twice<H> b) { return {a.lo | b.lo, a.hi | b.hi}; }
template <class H> RESIDUA_LANE_INLINE twice<H> operator^(twice<H> a, twice<H> b) { return {a.lo ^ b.lo, a.hi ^ b.hi}; }
template <int N, class H> RESIDUA_LANE_INLINE twice<H> shift_left(twice<H> a) { return {shift_left<N>(a.lo), shift_left<N>(a.hi)}; }
template <int N, class H> RESIDUA_LANE_INLINE twice<H> shift_right(twice<H> a) { return {shift_right<N>(a.lo), shift_right<N>(a.hi)}; }

template <class H> RESIDUA_LANE_INLINE twice<H> fma(twice<H> a, twice<H> b, twice<H> c) { return {fma(a.lo, b.lo, c.lo), fma(a.hi, b.hi, c.hi)}; }
template <class H> RESIDUA_LANE_INLINE twice<H> sqrt(twice<H> a) { return {sqrt(a.lo), sqrt(a.hi)}; }
template <class H> RESIDUA_LANE_INLINE twice<H> abs(twice<H> a) { return {abs(a.lo), abs(a.hi)}; }
template <class H> RESIDUA_LANE_INLINE twice<H> min(twice<H> a, twice<H> b) { return {min(a.lo, b.lo), min(a.hi, b.hi)}; }
template <class H> RESIDUA_LANE_INLINE twice<H> max(twice<H> a, twice<H> b) { return {max(a.lo, b.lo), max(a.hi, b.hi)}; }
template <class H> RESIDUA_LANE_INLINE twice<H> round(twice<H> a) { return {round(a.lo), round(a.hi)}; }

template <class H> RESIDUA_LANE_INLINE auto to_bits(twice<H> a) { return twice<decltype(to_bits(a.lo))>{to_bits(a.lo), to_bits(a.hi)}; }
template <class H> RESIDUA_LANE_INLINE auto from_bits(twice<H> a) { return twice<decltype(from_bits(a.lo))>{from_bits(a.lo), from_bits(a.hi)}; }
template <class H> RESIDUA_LANE_INLINE auto widen(twice<H> a) { return twice<decltype(widen(a.lo))>{widen(a.lo), widen(a.hi)}; }
template <class H> RESIDUA_LANE_INLINE auto narrow(twice<twice<H>> a) { return twice<decltype(narrow(a.lo))>{narrow(a.lo), narrow(a.hi)}; }

template <class H> RESIDUA_LANE_INLINE auto operator<(twice<H> a, twice<H> b) { return twice_mask<decltype(a.lo < b.lo)>{a.lo < b.lo, a.hi < b.hi}; }
template <class H> RESIDUA_LANE_INLINE auto operator<=(twice<H> a, twice<H> b) { return twice_mask<decltype(a.lo <= b.lo)>{a.lo <= b.lo, a.hi <= b.hi}; }
template <class H> RESIDUA_LANE_INLINE auto operator==(twice<H> a, twice<H> b) { return twice_mask<decltype(a.lo == b.lo)>{a.lo == b.lo, a.hi == b.hi}; }
template <class M> RESIDUA_LANE_INLINE twice_mask<M> operator&(twice_mask<M> a, twice_mask<M> b) { return {a.lo & b.lo, a.hi & b.hi}; }
template <class M> RESIDUA_LANE_INLINE twice_mask<M> operator|(twice_mask<M> a, twice_mask<M> b) { return {a.lo | b.lo, a.hi | b.hi}; }
template <class M> RESIDUA_LANE_INLINE twice_mask<M> operator!(twice_mask<M> a) { return {!a.lo, !a.hi}; }
template <class M> RESIDUA_LANE_INLINE bool any(twice_mask<M> a) { return any(a.lo | a.hi); }
template <class M> RESIDUA_LANE_INLINE bool all(twice_mask<M> a) { return all(a.lo & a.hi); }
template <class M, class H> RESIDUA_LANE_INLINE twice<H> select(twice_mask<M> m, twice<H> a, twice<H> b) { return {select(m.lo, a.lo, b.lo), select(m.hi, a.hi, b.hi)}; }
// clang-format on

}  // namespace RESIDUA_PASS
