// The lanes: f32x16 and f64x8, 512 bits whatever the machine has, and the contract of every operation on them.
//
// Since the width is fixed, so are the number of accumulators, the order of a sum and the place where a row's tail
// begins, and each operation below has one right answer: that is why a kernel's bits cannot depend on the machine.
//
// A vector V of size lanes of T (float or double; std::uint32_t or std::uint64_t for its bits), a mask M of V:
//
//   V::broadcast(x)         x in every lane
//   V::load(p)              p[0] to p[size - 1]; no alignment asked
//   V::load(p, n)           p[0] to p[n - 1], zero in the other lanes; 0 <= n <= size; memory past p[n - 1] is not read
//   V::load_alternate(p)    p[0], p[2] to p[2 * size - 2]; p[2 * size - 1] is read too. Only where there are registers
//   U::load_bits(p), u.store_bits(p)   of lanes of std::uint32_t, in memory of any type. Only where there are registers
//   v.store(p), v.store(p, n)   likewise; memory past p[n - 1] is not written
//   a + b, a - b, a * b, a / b, sqrt(a)   the IEEE operation, rounded to nearest even; a * b is never fused with
//                           what follows, whatever -ffp-contract says
//   -a, abs(a)              the sign bit flipped, cleared; of a NaN too
//   fma(a, b, c)            a * b + c, rounded once
//   min(a, b)               a < b ? a : b, so b if either is NaN or they are equal (both zero: b)
//   max(a, b)               b < a ? a : b, so b if either is NaN or they are equal
//   round(a)                to the nearest integer, halves to even; the sign of a zero kept; infinities and NaN kept
//   a < b, a <= b, a == b   false if either is NaN
//   m & n, m | n, !m, any(m), all(m), select(m, a, b)   the last: a where m, else b, bits unchanged
//   to_bits(v), from_bits(u)   the same bits as unsigned integers, and back
//   u + v, u - v, u & v, u | v, u ^ v, shift_left<N>(u), shift_right<N>(u)   of unsigned lanes, modulo 2^32 (2^64);
//                           shifts bring in zeros
//   U::load_16_bit(p), U::load_16_bit(p, n)   of lanes of std::uint32_t: 16-bit elements of any type, the upper half of a
//                           lane zero; otherwise as load
//   u.store_16_bit(p), u.store_16_bit(p, n)   the lower half of each lane; otherwise as store
//   V::load_float16(p), v.store_float16(p)   of lanes of float, and only where the CPU converts: through float16 as below, a
//                           NaN stored with its sign as 0x7e00
//   V::load_widened(p)      of lanes of double: floats, which many CPUs convert as they load
//   widen(v)                f32x16 to two f64x8 side by side, exact
//   narrow(w)               the reverse, rounded to nearest even
//
// Composed of these, once for all backends:
//
//   load<V>(p), load<V>(p, n), store(p, v), store(p, v, n)   through a storage type: float, double, bfloat16, float16
//   sum(v)                  lanes folded in halves: 16 to 8 to 4 to 2 to 1, lower half + upper half
//   largest(v)              of all lanes, by max
//   ldexp(v, n)             v * 2^n for integers n in V with |n| <= 250 (2000): one rounding if v * 2^(n/2) is normal
//   is_nan(v), copysign(v, s), select_bits(mask, u, w)
//
// A NaN's sign and payload are outside the contract: x86 and Arm make different ones.

namespace RESIDUA_PASS {

template <class R, int N>
struct grown {
    using type = twice<typename grown<R, N / 2>::type>;
};
template <class R, int N>
    requires(R::size == N)
struct grown<R, N> {
    using type = R;
};

using f32x16 = typename grown<reg<float>, 16>::type;
using f64x8 = typename grown<reg<double>, 8>::type;
/// What an f32x16 widens to.
using f64x16 = twice<f64x8>;

/// What the contract above asks of a vector of float or double, as far as a compiler can check it.
template <class V>
concept floating_lanes = requires(V a, typename V::value_type* p, const typename V::value_type* q, int n) {
    { V::broadcast(*q) } -> std::same_as<V>;
    { V::load(q) } -> std::same_as<V>;
    { V::load(q, n) } -> std::same_as<V>;
    a.store(p);
    a.store(p, n);
    { a + a } -> std::same_as<V>;
    { a - a } -> std::same_as<V>;
    { a* a } -> std::same_as<V>;
    { a / a } -> std::same_as<V>;
    { -a } -> std::same_as<V>;
    { abs(a) } -> std::same_as<V>;
    { sqrt(a) } -> std::same_as<V>;
    { round(a) } -> std::same_as<V>;
    { fma(a, a, a) } -> std::same_as<V>;
    { min(a, a) } -> std::same_as<V>;
    { max(a, a) } -> std::same_as<V>;
    { any(!(a < a) & ((a <= a) | (a == a))) } -> std::same_as<bool>;
    { all(a == a) } -> std::same_as<bool>;
    { select(a < a, a, a) } -> std::same_as<V>;
    { from_bits(to_bits(a)) } -> std::same_as<V>;
    shift_right<1>(
        shift_left<1>(((to_bits(a) + to_bits(a)) - to_bits(a)) & (to_bits(a) | (to_bits(a) ^ to_bits(a)))));
};

/// The same of the bits of an f32x16: how elements of 16 bits come and go.
template <class U>
concept lanes_of_halves = requires(U u, void* p, const void* q, int n) {
    { U::load_16_bit(q) } -> std::same_as<U>;
    { U::load_16_bit(q, n) } -> std::same_as<U>;
    u.store_16_bit(p);
    u.store_16_bit(p, n);
};

static_assert(lanes_of_halves<decltype(to_bits(f32x16{}))>);
static_assert(floating_lanes<f32x16> && floating_lanes<f64x8> && floating_lanes<f64x16>);
static_assert(std::is_same_v<decltype(widen(f32x16{})), f64x16>);
static_assert(sizeof(f32x16) == 64 && sizeof(f64x8) == 64);

/// The vector that a kernel on data of type T computes with.
template <class T>
struct lanes_of;
template <>
struct lanes_of<float> {
    using type = f32x16;
};
template <>
struct lanes_of<double> {
    using type = f64x8;
};
template <class T>
using lanes = typename lanes_of<T>::type;

template <class V>
using scalar = typename V::value_type;
template <class V>
using bits_of = decltype(to_bits(V{}));

template <class V>
RESIDUA_LANE_INLINE V zero()
{
    return V::broadcast(scalar<V>{});
}

template <class V>
RESIDUA_LANE_INLINE auto is_nan(V v)
{
    return !(v == v);
}

template <class M, class U>
RESIDUA_LANE_INLINE U select_bits(M m, U a, U b)
{
    return to_bits(select(m, from_bits(a), from_bits(b)));
}
template <class V>
RESIDUA_LANE_INLINE V copysign(V v, V s)
{
    const auto sign = bits_of<V>::broadcast(sizeof(scalar<V>) == 4 ? scalar<bits_of<V>>(0x80000000u)
                                                                   : scalar<bits_of<V>>(0x8000000000000000u));
    return from_bits((to_bits(v) & (sign ^ bits_of<V>::broadcast(~scalar<bits_of<V>>{}))) | (to_bits(s) & sign));
}

// --- sums over the lanes ---------------------------------------------------------------------------------------

template <class H>
RESIDUA_LANE_INLINE auto sum(twice<H> v)
{
    return sum(v.lo + v.hi);
}
/// Of a vector of the compiler's own, which stays in registers.
template <class Raw, int... Is>
RESIDUA_LANE_INLINE auto sum_of_halves(Raw v, std::integer_sequence<int, Is...>)
{
    constexpr int half = sizeof...(Is);
    if constexpr (half == 1) {
        return v[0] + v[1];
    } else {
        return sum_of_halves(__builtin_shufflevector(v, v, Is...) + __builtin_shufflevector(v, v, (half + Is)...),
                             std::make_integer_sequence<int, half / 2>{});
    }
}
template <class T>
RESIDUA_LANE_INLINE T sum(reg<T> v)
{
    if constexpr (requires { compilers_own(v)[0]; }) {
        return sum_of_halves(compilers_own(v), std::make_integer_sequence<int, reg<T>::size / 2>{});
    } else {
        lane_array<reg<T>> lane;
        v.store(lane);
        for (int half = reg<T>::size / 2; half > 0; half /= 2) {
            for (int i = 0; i < half; ++i) lane[i] = lane[i] + lane[i + half];
        }
        return lane[0];
    }
}

template <class H>
RESIDUA_LANE_INLINE auto largest(twice<H> v)
{
    return largest(max(v.lo, v.hi));
}
template <class T>
RESIDUA_LANE_INLINE T largest(reg<T> v)
{
    lane_array<reg<T>> lane;
    v.store(lane);
    for (int half = reg<T>::size / 2; half > 0; half /= 2) {
        for (int i = 0; i < half; ++i) lane[i] = lane[i + half] < lane[i] ? lane[i] : lane[i + half];
    }
    return lane[0];
}

// --- powers of two ---------------------------------------------------------------------------------------------

/// What is fixed by the format of a number.
template <class T>
struct format;
template <>
struct format<float> {
    static constexpr int fraction_bits = 23;
    static constexpr float bias = 127;
    static constexpr float magic = 0x1.8p23f;  // adding it leaves an integer in the low bits
    static constexpr float whole = 0x1p23f;    // from here on there is no fraction
    static constexpr float least_normal = 0x1p-126f;
    static constexpr float largest = 0x1.fffffep127f;
};
template <>
struct format<double> {
    static constexpr int fraction_bits = 52;
    static constexpr double bias = 1023;
    static constexpr double magic = 0x1.8p52;
    static constexpr double whole = 0x1p52;
    static constexpr double least_normal = 0x1p-1022;
    static constexpr double largest = 0x1.fffffffffffffp1023;
};

/// 2^n for an integer n that is the exponent of a normal number.
template <class V>
RESIDUA_LANE_INLINE V pow2(V n)
{
    using f = format<scalar<V>>;
    return from_bits(shift_left<f::fraction_bits>(to_bits(n + V::broadcast(f::magic + f::bias))));
}

/// 2^n in two factors, each a normal number.
template <class V>
struct pow2_halves {
    V first, second;
};
template <class V>
RESIDUA_LANE_INLINE pow2_halves<V> split_pow2(V n)
{
    const V first = round(n * V::broadcast(scalar<V>(0.5)));
    return {pow2(first), pow2(n - first)};
}

template <class V>
RESIDUA_LANE_INLINE V ldexp(V v, V n)
{
    const auto power = split_pow2(n);
    return (v * power.first) * power.second;
}

// --- storage types ---------------------------------------------------------------------------------------------

/// bfloat16 to float: exact; a NaN becomes quiet in the first operation on it.
template <class V>
RESIDUA_LANE_INLINE V from_bfloat16(bits_of<V> h)
{
    return from_bits(shift_left<16>(h));
}

/// float to bfloat16: to nearest, halves to even; subnormal numbers kept; a NaN stays one, and becomes quiet. The lower half
/// of a lane is what the rounding leaves there.
template <class V>
RESIDUA_LANE_INLINE bits_of<V> bfloat16_in_upper_half(V v)
{
    using U = bits_of<V>;
    const U u = to_bits(v);
    const U lowest = shift_right<16>(u) & U::broadcast(1u);
    const U rounded = u + (lowest + U::broadcast(0x7fffu));
    const U quiet = u | U::broadcast(0x00400000u);
    return to_bits(select(v == v, from_bits(rounded), from_bits(quiet)));
}

template <class V>
RESIDUA_LANE_INLINE bits_of<V> to_bfloat16(V v)
{
    return shift_right<16>(bfloat16_in_upper_half(v));
}

/// float16 to float: exact; a NaN becomes quiet.
template <class V>
RESIDUA_LANE_INLINE V from_float16(bits_of<V> h)
{
    using U = bits_of<V>;
    const U sign = shift_left<16>(h & U::broadcast(0x8000u));
    const U magnitude = shift_left<13>(h & U::broadcast(0x7fffu));
    const V field = from_bits(magnitude);  // its exponent field is still that of a float16: compare, never compute
    const V normal = from_bits(magnitude + U::broadcast(112u << 23));
    const V smallest = V::broadcast(0x1p-14f);
    const V subnormal = from_bits(magnitude + to_bits(smallest)) - smallest;
    const U infinity = U::broadcast(0x7f800000u);
    const U quiet = U::broadcast(0x7fc00000u);
    const V special = select(V::broadcast(0x1p-96f) < field, from_bits(magnitude | quiet), from_bits(infinity));
    const V finite = select(field < V::broadcast(0x1p-126f), subnormal, normal);
    return from_bits(to_bits(select(field < V::broadcast(0x1p-96f), finite, special)) | sign);
}

/// float to float16: to nearest, halves to even; subnormal numbers kept; beyond 65504 infinity; a NaN stays one.
template <class V>
RESIDUA_LANE_INLINE bits_of<V> to_float16(V v)
{
    using U = bits_of<V>;
    const V magnitude = abs(v);
    const U u = to_bits(magnitude);
    const U sign = shift_right<16>(to_bits(v) & U::broadcast(0x80000000u));
    const U lowest = shift_right<13>(u) & U::broadcast(1u);
    const U normal = shift_right<13>((u + lowest + U::broadcast(0x0fffu)) - U::broadcast(112u << 23));
    const V half = V::broadcast(0.5f);  // the last bit of a number near one half is worth 2^-24
    const U subnormal = to_bits(magnitude + half) - to_bits(half);
    V h = select(magnitude < V::broadcast(0x1p-14f), from_bits(subnormal), from_bits(normal));
    h = select(magnitude < V::broadcast(65520.0f), h, from_bits(U::broadcast(0x7c00u)));
    h = select(is_nan(v), from_bits(U::broadcast(0x7e00u)), h);
    return to_bits(h) | sign;
}

/// Vectors whose CPU converts to and from float16; elsewhere it is done as above.
template <class V>
concept converts_float16 = requires(V v, void* p, const void* q) {
    { V::load_float16(q) } -> std::same_as<V>;
    v.store_float16(p);
};

/// The first n lanes from memory of any storage type (all of them without n), zero in the rest.
template <class V>
RESIDUA_LANE_INLINE V load(const scalar<V>* p)
{
    return V::load(p);
}
template <class V>
RESIDUA_LANE_INLINE V load(const scalar<V>* p, int n)
{
    return V::load(p, n);
}
template <class V>
    requires std::is_same_v<scalar<V>, double>
RESIDUA_LANE_INLINE V load(const float* p)
{
    return V::load_widened(p);
}
template <class V>
    requires std::is_same_v<V, f64x16>
RESIDUA_LANE_INLINE V load(const float* p, int n)
{
    return widen(f32x16::load(p, n));
}
template <class V>
RESIDUA_LANE_INLINE V load(const bfloat16* p)
{
    if constexpr (std::is_same_v<V, f64x16>) {
        return widen(load<f32x16>(p));
    } else {
        return from_bfloat16<V>(bits_of<V>::load_16_bit(p));
    }
}
template <class V>
RESIDUA_LANE_INLINE V load(const bfloat16* p, int n)
{
    if constexpr (std::is_same_v<V, f64x16>) {
        return widen(load<f32x16>(p, n));
    } else {
        return from_bfloat16<V>(bits_of<V>::load_16_bit(p, n));
    }
}
template <class V>
RESIDUA_LANE_INLINE V load(const float16* p)
{
    if constexpr (std::is_same_v<V, f64x16>) {
        return widen(load<f32x16>(p));
    } else if constexpr (converts_float16<V>) {
        return V::load_float16(p);
    } else {
        return from_float16<V>(bits_of<V>::load_16_bit(p));
    }
}
template <class V>
RESIDUA_LANE_INLINE V load(const float16* p, int n)
{
    if constexpr (std::is_same_v<V, f64x16>) {
        return widen(load<f32x16>(p, n));
    } else if constexpr (converts_float16<V>) {
        std::uint16_t first[V::size] = {};
        copy_16_bit(first, p, n);
        return V::load_float16(first);
    } else {
        return from_float16<V>(bits_of<V>::load_16_bit(p, n));
    }
}

/// Where every second element can be taken out of registers.
template <class V>
concept takes_alternate = requires(const scalar<V>* p) {
    { V::load_alternate(p) } -> std::same_as<V>;
};

/// p[0], p[2] to p[2 * size - 2] from memory of any storage type; p[2 * size - 1] is read too.
template <class V>
    requires takes_alternate<V>
RESIDUA_LANE_INLINE V load_alternate(const scalar<V>* p)
{
    return V::load_alternate(p);
}
template <class V>
    requires takes_alternate<f32x16> && std::is_same_v<V, f64x16>
RESIDUA_LANE_INLINE V load_alternate(const float* p)
{
    return widen(decltype(narrow(V{}))::load_alternate(p));
}
/// Two elements of 16 bits are one of 32, the first its lower half.
template <class V, class S>
    requires takes_alternate<f32x16> && (sizeof(S) == 2)
RESIDUA_LANE_INLINE V load_alternate(const S* p)
{
    if constexpr (std::is_same_v<V, f64x16>) {
        return widen(load_alternate<f32x16>(p));
    } else {
        using U = bits_of<V>;
        const U both = U::load_bits(p);
        if constexpr (std::is_same_v<S, bfloat16>) {
            return from_bfloat16<V>(both);
        } else if constexpr (converts_float16<V>) {
            std::uint16_t first[V::size];
            both.store_16_bit(first);
            return V::load_float16(first);
        } else {
            return from_float16<V>(both);
        }
    }
}

template <class V>
RESIDUA_LANE_INLINE void store(scalar<V>* p, V v)
{
    v.store(p);
}
template <class V>
RESIDUA_LANE_INLINE void store(scalar<V>* p, V v, int n)
{
    v.store(p, n);
}
/// narrow(v). A conversion with a subnormal result is left to microcode by many CPUs, in hundreds of cycles: here it is
/// an integer times 2^-149, whose bits are the integer.
template <class H>
RESIDUA_LANE_INLINE auto quickly_narrowed(twice<H> v)
{
    using W = twice<H>;
    using V = decltype(narrow(v));
    const auto subnormal = (abs(v) < W::broadcast(0x1p-126)) & (!(v == zero<W>()));
    if (!any(subnormal)) return narrow(v);
    const W count = select(subnormal, abs(v) * W::broadcast(0x1p149), zero<W>());
    const V whole = V::broadcast(format<float>::whole);
    const auto fraction = to_bits(narrow(round(count)) + whole) - to_bits(whole);
    return from_bits(to_bits(narrow(select(subnormal, copysign(zero<W>(), v), v))) | fraction);
}

/// Whether every lane is a normal float or larger: no subnormal number, zero or NaN.
template <class W>
RESIDUA_LANE_INLINE bool all_normal_as_float(W v)
{
    return all(W::broadcast(0x1p-126) <= abs(v));
}
/// quickly_narrowed(v) where few numbers are subnormal or zero: of all lanes at once is asked whether there is one.
template <class W>
RESIDUA_LANE_INLINE auto narrowed(W v)
{
    if (all_normal_as_float(v)) [[likely]]
        return narrow(v);
    return quickly_narrowed(v);
}

RESIDUA_LANE_INLINE void store(float* p, f64x16 v) { narrowed(v).store(p); }
RESIDUA_LANE_INLINE void store(float* p, f64x16 v, int n) { narrowed(v).store(p, n); }
/// narrow_to_odd(v) of any numbers: from the nearest float one step back towards zero, where that is farther from it.
template <class H>
RESIDUA_LANE_INLINE auto narrow_any_to_odd(twice<H> v)
{
    using W = twice<H>;
    using V = decltype(narrow(v));
    using U = bits_of<V>;
    const V nearest = quickly_narrowed(v);
    const auto finite = abs(nearest) < V::broadcast(__builtin_inff());
    // the sign of what is missing, which raises no exceptions as a float
    const W rest = v - widen(select(finite, nearest, zero<V>()));
    const V missing = narrow(select(rest == zero<W>(), rest, copysign(W::broadcast(1), rest)));
    const auto exact = missing == zero<V>();
    const auto too_large = missing < zero<V>();
    const auto negative = copysign(V::broadcast(1), nearest) < zero<V>();
    const auto away = (too_large & (!negative)) | ((!too_large) & negative);
    const U u = to_bits(nearest);
    const V truncated = select(away, from_bits(u - U::broadcast(1u)), nearest);
    const V odd = from_bits(to_bits(truncated) | U::broadcast(1u));
    return select(exact | (!finite), nearest, odd);
}
/// Double to float such that rounding once more, to a type of 16 bits, gives what rounding once would have given: the
/// last bit of what is not exact is odd (Boldo and Melquiond 2008). Where the float is normal, that is set in the double.
template <class H>
RESIDUA_LANE_INLINE auto narrow_to_odd(twice<H> v)
{
    using W = twice<H>;
    using U = bits_of<W>;
    if (!all_normal_as_float(v)) [[unlikely]]
        return narrow_any_to_odd(v);
    const U lost = U::broadcast(0x1fffffffu), u = to_bits(v);
    const U odd = u | ((u & lost) + lost);
    return narrow(from_bits(odd & U::broadcast(~std::uint64_t{0x1fffffffu})));
}
template <class V>
RESIDUA_LANE_INLINE auto as_float(V v)
{
    if constexpr (std::is_same_v<scalar<V>, double>) {
        return narrow_to_odd(v);
    } else {
        return v;
    }
}

template <class V>
RESIDUA_LANE_INLINE void store(bfloat16* p, V v)
{
    to_bfloat16(as_float(v)).store_16_bit(p);
}
template <class V>
RESIDUA_LANE_INLINE void store(bfloat16* p, V v, int n)
{
    to_bfloat16(as_float(v)).store_16_bit(p, n);
}
template <class V>
RESIDUA_LANE_INLINE void store(float16* p, V v)
{
    if constexpr (converts_float16<f32x16>) {
        as_float(v).store_float16(p);
    } else {
        to_float16(as_float(v)).store_16_bit(p);
    }
}
template <class V>
RESIDUA_LANE_INLINE void store(float16* p, V v, int n)
{
    if constexpr (converts_float16<f32x16>) {
        std::uint16_t all[V::size];
        as_float(v).store_float16(all);
        copy_16_bit(p, all, n);
    } else {
        to_float16(as_float(v)).store_16_bit(p, n);
    }
}

}  // namespace RESIDUA_PASS
