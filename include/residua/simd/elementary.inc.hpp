// exp, log, tanh and cos(2 pi u) over the lanes: the library's own, since every C library's differ in
// the last bit. Coefficients and their errors: docs/polynomials.sollya.

namespace RESIDUA_PASS {

/// c[0] + c[1] x + c[2] x^2 + ...
template <std::size_t K = 0, class V, std::size_t N>
RESIDUA_LANE_INLINE V polynomial(V x, const scalar<V> (&c)[N])
{
    if constexpr (K + 1 == N) {
        return V::broadcast(c[K]);
    } else {
        return fma(polynomial<K + 1>(x, c), x, V::broadcast(c[K]));
    }
}

/// The same, given x^2: in a chain of half the length.
template <std::size_t K = 0, class V, std::size_t N>
RESIDUA_LANE_INLINE V polynomial(V x, V square, const scalar<V> (&c)[N])
{
    if constexpr (K + 1 == N) {
        return V::broadcast(c[K]);
    } else {
        const V pair = fma(V::broadcast(c[K + 1]), x, V::broadcast(c[K]));
        if constexpr (K + 2 == N) {
            return pair;
        } else {
            return fma(square, polynomial<K + 2>(x, square, c), pair);
        }
    }
}

// --- numbers in two parts --------------------------------------------------------------------------------------

/// hi + low, where low is so small that hi is nearly the sum rounded.
template <class V>
struct extended {
    V hi, low;
};

/// a + b for |a| >= |b|, exactly.
template <class V>
RESIDUA_LANE_INLINE extended<V> ordered_sum(V a, V b)
{
    const V sum = a + b;
    return {sum, (a - sum) + b};
}
/// a + b, exactly.
template <class V>
RESIDUA_LANE_INLINE extended<V> exact_sum(V a, V b)
{
    const V sum = a + b;
    const V of_b = sum - a;
    return {sum, (a - (sum - of_b)) + (b - of_b)};
}
/// a b, exactly unless what is lost is subnormal.
template <class V>
RESIDUA_LANE_INLINE extended<V> exact_product(V a, V b)
{
    const V product = a * b;
    return {product, fma(a, b, -product)};
}

template <class V>
RESIDUA_LANE_INLINE extended<V> operator-(extended<V> a)
{
    return {-a.hi, -a.low};
}
template <class V>
RESIDUA_LANE_INLINE extended<V> operator+(extended<V> a, extended<V> b)
{
    const auto sum = exact_sum(a.hi, b.hi);
    return {sum.hi, sum.low + (a.low + b.low)};
}
template <class V>
RESIDUA_LANE_INLINE extended<V> operator*(extended<V> a, V b)
{
    const V product = a.hi * b;
    return {product, fma(a.low, b, fma(a.hi, b, -product))};
}
template <class V>
RESIDUA_LANE_INLINE extended<V> operator*(extended<V> a, extended<V> b)
{
    const V product = a.hi * b.hi;
    return {product, fma(a.hi, b.low, fma(a.low, b.hi, fma(a.hi, b.hi, -product)))};
}
template <class M, class V>
RESIDUA_LANE_INLINE extended<V> select(M m, extended<V> a, extended<V> b)
{
    return {select(m, a.hi, b.hi), select(m, a.low, b.low)};
}

/// What a function is computed in: V, or to be precise two of them. The functions below make one text of both.
template <accuracy A, class V>
using number = std::conditional_t<A == accuracy::precise, extended<V>, V>;

template <accuracy A, class V>
RESIDUA_LANE_INLINE number<A, V> number_of(extended<V> v)
{
    if constexpr (A == accuracy::precise) {
        return v;
    } else {
        return v.hi;
    }
}
/// v itself.
template <accuracy A, class V>
RESIDUA_LANE_INLINE number<A, V> exactly(V v)
{
    return number_of<A>(extended<V>{v, zero<V>()});
}
/// a + b for |a| >= |b|
template <class V>
RESIDUA_LANE_INLINE V plus(V a, V b)
{
    return a + b;
}
template <class V>
RESIDUA_LANE_INLINE extended<V> plus(V a, extended<V> b)
{
    const auto sum = ordered_sum(a, b.hi);
    return {sum.hi, sum.low + b.low};
}
/// a / b, given 1 / b to almost all of its bits.
template <class V>
RESIDUA_LANE_INLINE V quotient(V a, V, V reciprocal)
{
    return a * reciprocal;
}
template <class V>
RESIDUA_LANE_INLINE extended<V> quotient(extended<V> a, extended<V> b, V reciprocal)
{
    const V z = a.hi * reciprocal;
    return {z, fma(-z, b.low, fma(-z, b.hi, a.hi) + a.low) * reciprocal};
}
template <class V>
RESIDUA_LANE_INLINE extended<V> operator/(extended<V> a, extended<V> b)
{
    return quotient(a, b, V::broadcast(1) / b.hi);
}

/// The coefficients of a polynomial, of which c[0] lacks `low`.
template <class T, std::size_t N>
struct series {
    T low;
    T c[N];
};

/// c[0] + low + c[1] x + ..., where c[0] is the largest term by far.
template <accuracy A, class V, std::size_t N>
RESIDUA_LANE_INLINE number<A, V> polynomial(V x, const series<scalar<V>, N>& p)
{
    const V first = V::broadcast(p.c[0]);
    const V others = polynomial<1>(x, p.c);
    if constexpr (A == accuracy::precise) {
        const auto sum = plus(first, exact_product(x, others));
        return {sum.hi, sum.low + V::broadcast(p.low)};
    } else {
        return fma(x, others, first);
    }
}

// --- exp and log -----------------------------------------------------------------------------------------------

template <class T>
struct constants;

template <>
struct constants<float> {
    static constexpr float log2_e = 0x1.715476p0f;
    static constexpr float ln2_hi = 0x1.62e8p-1f;
    static constexpr float ln2_lo = -0x1.e8082ep-16f;
    static constexpr float two_pi_hi = 0x1.921fb6p2f;
    static constexpr float two_pi_lo = -0x1.777a5cp-23f;
    // Beyond this e^x is infinity and 0.
    static constexpr float exp_reach = 120.0f;
    // Up to here e^x and 1 + e^x, and one over either, are normal numbers; of double their last bits are too.
    static constexpr float normal_exp_reach = 86.0f;
    // At -logistic_reach the logistic times any number is 0. From there to -very_low e^-x 2^-160, and from there to
    // -normal_exp_reach e^-x 2^-64, is a normal number, and one over it no large one. (In the bits of an exponent.)
    static constexpr float logistic_reach = 194.0f;
    static constexpr float very_low = 130.0f;
    static constexpr std::uint32_t very_low_steps = 160u << 23;
    static constexpr std::uint32_t low_steps = 64u << 23;
    // From here on what is 2^-25 of a number is a normal number.
    static constexpr float least_precise = 0x1p-100f;
    // From here on tanh is 1 to the last bit.
    static constexpr float tanh_most = 10.0f;
    static constexpr float exp[] = {0x1.555556p-3f, 0x1.555502p-5f, 0x1.110fc2p-7f, 0x1.6d2e04p-10f,
                                    0x1.a2d9ap-13f};
    // for 1 + e^x, with an error of 2^-27 of e^x: at most an eighth of a unit of what it is needed for
    static constexpr float exp_in_sum[] = {0x1.555492p-3f, 0x1.5554cp-5f, 0x1.12398ep-7f, 0x1.6d7a4ap-10f};
    static constexpr float log[] = {0x1.55555cp-1f, 0x1.997b3ep-2f, 0x1.2f09d2p-2f};
    static constexpr float cos_2pi[] = {-0x1.3bd3ccp4f, 0x1.03c19ep6f, -0x1.55a5bp6f, 0x1.d0934cp5f};
    static constexpr float sin_2pi[] = {-0x1.4abbcep5f, 0x1.466b62p6f, -0x1.329de8p6f, 0x1.3ef74ap5f};
    static constexpr std::uint32_t fraction = 0x007fffffu;
    static constexpr std::uint32_t sqrt_half = 0x3f3504f3u;
    static constexpr std::uint32_t one = 0x3f800000u;
    static constexpr std::uint32_t rough_reciprocal = 0x7ef311c3u;
};

template <>
struct constants<double> {
    static constexpr double log2_e = 0x1.71547652b82fep0;
    static constexpr double ln2_hi = 0x1.62e42fefa4p-1;
    static constexpr double ln2_lo = -0x1.8432a1b0e2634p-43;
    static constexpr double two_pi_hi = 0x1.921fb54442d18p2;
    static constexpr double two_pi_lo = 0x1.1a62633145c07p-52;
    static constexpr double exp_reach = 760.0;
    static constexpr double normal_exp_reach = 600.0;
    static constexpr double logistic_reach = 1456.0;
    static constexpr double very_low = 880.0;
    static constexpr std::uint64_t very_low_steps = std::uint64_t{1200} << 52;
    static constexpr std::uint64_t low_steps = std::uint64_t{400} << 52;
    static constexpr double least_precise = 0x1p-960;
    static constexpr double tanh_most = 20.0;
    static constexpr double exp[] = {0x1.5555555555557p-3,  0x1.5555555555557p-5,  0x1.1111111110052p-7,
                                     0x1.6c16c16c156a5p-10, 0x1.a01a01ac1d225p-13, 0x1.a01a01ab9877ep-16,
                                     0x1.71de01afce41fp-19, 0x1.27e4cfaf49e82p-22, 0x1.af4ec44e5452fp-26,
                                     0x1.1f86f011314dbp-29};
    static constexpr auto& exp_in_sum = exp;
    static constexpr double log[] = {0x1.5555555555558p-1, 0x1.999999999506p-2,  0x1.2492492e4adfbp-2,
                                     0x1.c71c626ab492bp-3, 0x1.7462d8b43f9d1p-3, 0x1.39f9a142e9337p-3,
                                     0x1.2b93596043589p-3};
    static constexpr double cos_2pi[] = {-0x1.3bd3cc9be45dep4, 0x1.03c1f081b5a23p6,  -0x1.55d3c7e3b7785p6,
                                         0x1.e1f50664cd63bp5,  -0x1.a6d1d2d6f6e36p4, 0x1.f9b7a5ba37c9fp2,
                                         -0x1.ac07ea5a7c68ap0};
    static constexpr double sin_2pi[] = {-0x1.4abbce625be53p5, 0x1.466bc6775abc6p6,  -0x1.32d2cce6483b3p6,
                                         0x1.507834b83492ep5,  -0x1.e3079f3611c9dp3, 0x1.e931df9ab8378p1,
                                         -0x1.80f9e75038fa9p-1};
    static constexpr std::uint64_t fraction = 0x000fffffffffffffu;
    static constexpr std::uint64_t sqrt_half = 0x3fe6a09e667f3bcdu;
    static constexpr std::uint64_t one = 0x3ff0000000000000u;
    static constexpr std::uint64_t rough_reciprocal = 0x7fde623822fc16e6u;
};

/// e^x = (1 + minus_one + low) 2^n with an integer n and |minus_one| below sqrt(2) - 1, where minus_one = r + r^2/2
/// + r^3 s and low is what the roundings of r and of that sum take. x is clamped to +-reach; a NaN goes through. `tail` is
/// added to the reduced argument: x + tail may be more precise than V.
template <class V>
struct exp_terms {
    V minus_one, low, n, r, s;
    V power;  // 2^n where that is a normal number; with the bits of an exponent k added, 2^(n + k) where that is one
};

/// For an x within reach, or for -x: then the sign costs nothing.
template <int Sign = 1, class V, std::size_t N>
RESIDUA_LANE_INLINE exp_terms<V> exp_terms_of(V x, V tail, const scalar<V> (&coefficients)[N])
{
    using T = scalar<V>;
    using c = constants<T>;
    // x log2(e) is never half way between two integers unless it is 0, so adding the bias before rounding changes nothing
    const V magic = V::broadcast(format<T>::magic + format<T>::bias);
    const V biased = fma(x, V::broadcast(Sign * c::log2_e), magic);
    const V n = biased - magic;
    const V exact = Sign < 0 ? -fma(n, V::broadcast(c::ln2_hi), x) : fma(n, V::broadcast(-c::ln2_hi), x);
    const V without_tail = fma(n, V::broadcast(-c::ln2_lo), exact);
    const V r = without_tail + tail;
    const V square = r * r;
    const V s = polynomial(r, square, coefficients);
    const V half_and_more = fma(r, s, V::broadcast(T(0.5)));
    const V minus_one = fma(square, half_and_more, r);
    V r_low = fma(n, V::broadcast(-c::ln2_lo), exact - without_tail) + ((without_tail - r) + tail);
    // e^(r + r_low) is e^r + r_low e^r
    if constexpr (sizeof(T) == 8) r_low = fma(r_low, minus_one, r_low);
    const V low = (r - minus_one) + fma(square, half_and_more, r_low);
    return {minus_one, low, n, r, s, from_bits(shift_left<format<T>::fraction_bits>(to_bits(biased)))};
}
template <class V>
RESIDUA_LANE_INLINE exp_terms<V> reduce_exp(V x, scalar<V> reach = constants<scalar<V>>::exp_reach,
                                            V tail = zero<V>())
{
    return exp_terms_of(min(V::broadcast(reach), max(V::broadcast(-reach), x)), tail, constants<scalar<V>>::exp);
}

/// v 2^-k, with k in the bits of an exponent, where v is finite and not subnormal (a subnormal one gives 0); any v if k is 0.
/// A subnormal result is rounded as a number beside the least that is normal: it takes no microcode.
template <class V>
RESIDUA_LANE_INLINE V scaled_down(V v, bits_of<V> k)
{
    const V least = from_bits(to_bits(V::broadcast(format<scalar<V>>::least_normal)) + k);
    const V size = abs(v);
    const V subnormal = from_bits(to_bits(size + least) - to_bits(least));
    return copysign(select(size < least, subnormal, from_bits(to_bits(size) - k)), v);
}

/// 1 + minus_one, to be precise with what that rounds.
template <accuracy A, class V>
RESIDUA_LANE_INLINE V leading_part(const exp_terms<V>& e)
{
    const V one = V::broadcast(1);
    const V y = one + e.minus_one;
    if constexpr (A == accuracy::precise) return y + (((one - y) + e.minus_one) + e.low);
    return y;
}
template <accuracy A = accuracy::standard, class V>
RESIDUA_LANE_INLINE V exp(V x)
{
    using U = bits_of<V>;
    using c = constants<scalar<V>>;
    if (all(abs(x) < V::broadcast(c::normal_exp_reach))) [[likely]] {
        const auto e = exp_terms_of(x, zero<V>(), c::exp);
        return leading_part<A>(e) * e.power;
    }
    const auto e = reduce_exp(x);
    const V y = leading_part<A>(e);
    const auto negative = x < zero<V>();
    const U k = select_bits(negative, U::broadcast(c::low_steps), U::broadcast(0));
    const V power = select(negative, from_bits(to_bits(e.power) + k), V::broadcast(1));
    return select(negative, scaled_down(y * power, k), ldexp(y, max(zero<V>(), e.n)));
}

/// The correction of a rounding; where the rounded result is infinite the correction is not finite, and 0 is right.
template <class V>
RESIDUA_LANE_INLINE V finite_tail(V tail)
{
    return select(abs(tail) < V::broadcast(scalar<V>(__builtin_inf())), tail, zero<V>());
}

/// exp(a - b) for a <= b, where the rounding of the difference is not lost: for softmax, |a - b| may be large.
template <class V>
RESIDUA_LANE_INLINE V exp_of_difference(V a, V b)
{
    using U = bits_of<V>;
    using c = constants<scalar<V>>;
    const V d = a - b;
    const V b_part = a - d;
    const V wrong = (a - (d + b_part)) - (b - b_part);
    // beyond the reach the rounding may be larger than what is left of d, or NaN
    const V reach = V::broadcast(c::exp_reach);
    const auto e = reduce_exp(d, c::exp_reach, select(abs(d) < reach, wrong, zero<V>()));
    const U k = U::broadcast(c::low_steps);
    const V y = scaled_down(leading_part<accuracy::standard>(e) * from_bits(to_bits(e.power) + k), k);
    return select(d == d, y, d);
}

/// With E = e^(2|x|) - 1 tanh |x| is E / (E + 2), taken as a base that is exact and a quotient that is small beside it,
/// so that the quotient's roundings hardly count: 1/k + ((k - 1) E - 2) / (k E + 2 k) with k = 4 below E = 1, else 2.
/// Where n = 0, E is r + r^2/2 + r^3 s with r = 2|x|: the base is r/2, and r^3 (2s - 1/2 - r s) / (2 E + 4) remains.
template <class V>
RESIDUA_LANE_INLINE V standard_tanh(V x)
{
    using T = scalar<V>;
    const V one = V::broadcast(1);
    const V two = V::broadcast(2);
    const V half = V::broadcast(T(0.5));
    const V magnitude = min(V::broadcast(constants<T>::tanh_most), abs(x));
    const auto e = reduce_exp(magnitude + magnitude);
    const V power = e.power;
    const V E = fma(e.minus_one, power, power - one);
    const auto small = e.n == zero<V>();
    const auto middle = (!small) & (E < one);
    const V k = select(middle, V::broadcast(4), two);
    const V base = select(small, magnitude, select(middle, V::broadcast(T(0.25)), half));
    const V rest = (e.r * (e.r * e.r)) * fma(-e.r, e.s, fma(two, e.s, -half));
    const V numerator = select(small, rest, fma(k - one, E, -two));
    return copysign(base + numerator / fma(k, E, k + k), x);
}

/// The same quotient with all but its last rounding made good, for |x| + tail.
template <class V>
RESIDUA_LANE_INLINE extended<V> extended_tanh(V x, V tail = zero<V>())
{
    const V one = V::broadcast(1);
    const V two = V::broadcast(2);
    const V magnitude = min(V::broadcast(constants<scalar<V>>::tanh_most), abs(x));
    const auto e = reduce_exp(magnitude + magnitude, constants<scalar<V>>::exp_reach, tail + tail);
    const V power = e.power;
    const V E = fma(e.minus_one, power, power - one);
    const V E_low = fma(power, e.low, fma(e.minus_one, power, (power - one) - E));
    const V D = E + two;
    const V D_low = (min(E, two) - (D - max(E, two))) + E_low;
    return extended<V>{E, E_low} / extended<V>{D, D_low};
}
template <class V>
RESIDUA_LANE_INLINE V precise_tanh(V x)
{
    using T = scalar<V>;
    // where x^3 is not seen, and could be subnormal
    const V negligible = V::broadcast(sizeof(T) == 4 ? T(0x1p-14) : T(0x1p-29));
    const auto y = extended_tanh(x);
    return select(abs(x) < negligible, x, copysign(y.hi + y.low, x));
}

template <accuracy A = accuracy::standard, class V>
RESIDUA_LANE_INLINE V tanh(V x)
{
    if constexpr (A == accuracy::precise) {
        return precise_tanh(x);
    } else {
        return standard_tanh(x);
    }
}

/// The natural logarithm; -infinity at 0, NaN below.
template <class V>
RESIDUA_LANE_INLINE V log(V x)
{
    using T = scalar<V>;
    using U = bits_of<V>;
    using c = constants<T>;
    using f = format<T>;
    // x = 2^k (1 + t) with 1 + t from sqrt(1/2) to sqrt(2)
    const auto subnormal = x < V::broadcast(f::least_normal);
    const V scaled = select(subnormal, x * V::broadcast(f::whole), x);
    const U moved = to_bits(scaled) + U::broadcast(c::one - c::sqrt_half);
    const V exponent =
        from_bits(shift_right<f::fraction_bits>(moved) | to_bits(V::broadcast(f::whole))) - V::broadcast(f::whole);
    const V k = exponent - select(subnormal, V::broadcast(f::bias + T(f::fraction_bits)), V::broadcast(f::bias));
    const V t = from_bits((moved & U::broadcast(c::fraction)) + U::broadcast(c::sqrt_half)) - V::broadcast(1);
    // log(1 + t) = t - t^2/2 + s (t^2/2 + R(s^2)), s = t / (2 + t)
    const V s = t / (V::broadcast(2) + t);
    const V z = s * s;
    const V half_square = (t * t) * V::broadcast(T(0.5));
    const V R = z * polynomial(z, c::log);
    const V low = fma(s, half_square + R, k * V::broadcast(c::ln2_lo));
    V y = fma(k, V::broadcast(c::ln2_hi), t - (half_square - low));
    const V infinity = V::broadcast(T(__builtin_inf()));
    y = select(x < infinity, y, x);  // infinity, and NaN
    y = select(x == zero<V>(), -infinity, y);
    return select(x < zero<V>(), V::broadcast(T(__builtin_nan(""))), y);
}

/// cos(2 pi u): the argument counts turns, so its reduction is exact for every finite u.
template <class V>
RESIDUA_LANE_INLINE V cos_2pi(V u)
{
    using T = scalar<V>;
    using c = constants<T>;
    const V turn = u - round(u);
    const V quarter = round(turn * V::broadcast(4));
    const V r = fma(quarter, V::broadcast(T(-0.25)), turn);
    const V z = r * r;
    const V cosine = fma(z, polynomial(z, c::cos_2pi), V::broadcast(1));
    const V sine =
        fma(r, V::broadcast(c::two_pi_hi), r * fma(z, polynomial(z, c::sin_2pi), V::broadcast(c::two_pi_lo)));
    // turn = quarter/4 + r: at +-1 quarter the cosine is -+ sin, at +-2 it is -cos
    const auto odd = abs(quarter) == V::broadcast(1);
    const auto negative = (quarter == V::broadcast(1)) | (abs(quarter) == V::broadcast(2));
    const V value = select(odd, sine, cosine);
    return select(negative, -value, value);
}

}  // namespace RESIDUA_PASS
