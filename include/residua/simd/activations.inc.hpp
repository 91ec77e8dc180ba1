// The activations of a feed-forward layer and their derivatives, in double lanes. Each is a number whose power of two is
// apart: it, and what it is multiplied by, may leave the range of double where their product does not.
// Coefficients and their errors: docs/polynomials.sollya.

namespace RESIDUA_PASS {

/// m 2^n with an integer n; m is 0, infinite, NaN, or so near to one that a few of them can be multiplied.
template <class V>
struct scaled {
    V m, n;
};

struct activation_constants {
    // Beyond this e^-x is 0, even times two numbers of any size.
    static constexpr double reach = 2400.0;
    // So is the normal distribution at -normal_reach, and the logistic of GELU's tanh form at -tanh_form_reach.
    static constexpr double normal_reach = 69.5;
    static constexpr double tanh_form_reach = 35.0;

    // Phi(x) = 1/2 + x a(x^2) in the middle, and Phi(x) + x phi(x) = 1/2 + x b(x^2)
    static constexpr double normal_middle_reach = 0.75;
    static constexpr double normal_middle[] = {
        0x1.9884533d43651p-2,  -0x1.1058377e2cff9p-4,  0x1.46d0429782705p-7,  -0x1.37403f7c81cd3p-10,
        0x1.e42b19d22db9p-14,  -0x1.3cebcebfeb028p-17, 0x1.665c8261e672p-21,  -0x1.8a346edcfbd66p-25,
        0x1.8c9369a5afaedp-27, -0x1.912b946b9dbe2p-27, 0x1.1aaf8dec77e6cp-27, -0x1.5d68440f9f583p-29};
    static constexpr double gelu_slope_middle_reach = 0.5;
    static constexpr double gelu_slope_middle[] = {
        0x1.9884533d43651p-1, -0x1.1058377e2cfb8p-2,  0x1.ea3863e33b54bp-5,  -0x1.37403f7a75c07p-7,
        0x1.2e9af05c094fp-10, -0x1.db629508aa7a4p-14, 0x1.39d494f80705ap-17, -0x1.9bab3bc826553p-21,
        0x1.120e99d740d1p-22, -0x1.8844a247daeb3p-23};

    // (1 + t) e^(t^2/2) Phi(-t) in z = (t - 5)/(t + 5)
    static constexpr double normal_tail[] = {
        0x1.d8979b0f2b39dp-2,   -0x1.76ff86859eb14p-4, 0x1.fc66cc64a172ep-6,   0x1.47c1d0305492ap-7,
        -0x1.b08e0007bc0a8p-6,  0x1.92037bab46723p-6,  -0x1.f11aab021e6adp-7,  0x1.ab6d038d85a3ep-8,
        -0x1.b75f4fc3b2636p-10, 0x1.05719e36c528dp-17, 0x1.7e61ecb03adf2p-13,  -0x1.c1b1c3a9a2c3cp-15,
        -0x1.4c10747794768p-17, 0x1.3003a9d566a74p-17, -0x1.2bf1ea8b729bcp-24, -0x1.5f3c63aee81bbp-20,
        0x1.10974066556cep-23,  0x1.a84d3d7d934f1p-23, -0x1.af7c93eb2c28ap-26, -0x1.12f91bd681a8ep-25,
        0x1.72cb671318b16p-29,  0x1.50341a53c1dccp-28, 0x1.3ccfc70bcbb37p-33,  -0x1.084e9bd21633ap-31,
        -0x1.7938e4744401cp-34};
    static constexpr double sqrt_half_over_pi_hi = 0x1.9884533d43651p-2;
    static constexpr double sqrt_half_over_pi_lo = -0x1.cbc0d30ebfd15p-56;
    // 2 sqrt(2/pi), and 0.044715 of it
    static constexpr double tanh_form_hi = 0x1.9884533d43651p0;
    static constexpr double tanh_form_lo = -0x1.cbc0d30ebfd15p-54;
    static constexpr double tanh_form_cubic_hi = 0x1.2444f2a4d8b4bp-4;
    static constexpr double tanh_form_cubic_lo = -0x1.6c843a29d1c7p-61;

    // A derivative f'(x) has one zero; near it f'(zero + d) = d p(d).
    static constexpr double zero_reach = 0.25;
    static constexpr double silu_zero_hi = -0x1.474973c84120bp0;
    static constexpr double silu_zero_lo = -0x1.f8d74bc9ac154p-54;
    static constexpr double silu_zero[] = {0x1.be1410460527fp-3,   0x1.2c563458cc0adp-3,  0x1.353eb573ca264p-6,
                                           -0x1.f2d0e32bc3193p-7,  -0x1.b0f82c4953c91p-8, 0x1.098e92c5a9c4dp-13,
                                           0x1.a2a7ca90163f2p-11,  0x1.8574cee390526p-13, -0x1.5722fd400ee9dp-15,
                                           -0x1.f2d6e1fe1bd7bp-16, -0x1.8b4caecf5ed3p-19, 0x1.3a45cb601678dp-19,
                                           0x1.ce4328b103021p-21,  -0x1.a0f89ed0dde08p-27};
    // of silu'', on both sides of 0
    static constexpr double silu_turn_hi = 0x1.331e23ad9de11p1;
    static constexpr double silu_turn_lo = 0x1.a9c55ef03c74ap-53;
    static constexpr double silu_turn[] = {-0x1.76e8b4eb0ea41p-4,  0x1.388203715b23ep-4,  -0x1.706e66bf35db3p-6,
                                           -0x1.e178d8d238c74p-10, 0x1.fa4e9f738c638p-9,  -0x1.662f848d8ebdcp-10,
                                           0x1.e2e4aacc9f808p-14,  0x1.94804cb91db25p-14, -0x1.8e0ca1a1a30e8p-15,
                                           0x1.1af14cd5e4d54p-17,  0x1.5010c97fa4533p-20, -0x1.3f7b25480addep-20,
                                           0x1.3004e5e7ffc33p-22,  -0x1.5e294fdabfb55p-27};
    static constexpr double gelu_zero_hi = -0x1.80ead197f00b4p-1;
    static constexpr double gelu_zero_lo = 0x1.13e74c58cada8p-56;
    static constexpr double gelu_zero[] = {
        0x1.b9d98fa5a3215p-2,   0x1.8d9a941de3ac5p-2,   -0x1.2a2ef9bb8535p-6,  -0x1.d2fa4c17c7bdfp-4,
        -0x1.e408824685bddp-7,  0x1.3e346deee76ecp-6,   0x1.297b9e5c2095ap-8,  -0x1.258a6ccd05c46p-9,
        -0x1.868217eb6e136p-11, 0x1.86c6d1c1e7bfcp-13,  0x1.6a1dedfd8e3b4p-14, -0x1.7668be95d0ee2p-17,
        -0x1.42f295cd52029p-17, -0x1.0d969ad2bda66p-23, 0x1.1f913dab937c6p-17, 0x1.2dec58146ce9ap-19};
    static constexpr double gelu_tanh_zero_hi = -0x1.81429f9e97e4dp-1;
    static constexpr double gelu_tanh_zero_lo = 0x1.4f523ed77dbdcp-55;
    static constexpr double gelu_tanh_zero[] = {
        0x1.b8bacd2c96b91p-2,   0x1.8cd1a2b2fff33p-2,  -0x1.029615edaf9d6p-6, -0x1.d2b773464738dp-4,
        -0x1.104a83ee541f4p-6,  0x1.427996dc86c2fp-6,  0x1.58c9ee2069517p-8,  -0x1.3d8d64ddbf04cp-9,
        -0x1.e63fff35124bbp-11, 0x1.14c060e9185ecp-12, 0x1.04d9571aa10b7p-13, -0x1.25bc6fd20776bp-15,
        -0x1.22d64f34506ccp-16, 0x1.b4f4a90e9afa8p-18, 0x1.15d879de5aafdp-17, -0x1.c1e2d69469fa2p-19};
};

// --- numbers with their power of two apart ---------------------------------------------------------------------

template <class V>
RESIDUA_LANE_INLINE scaled<V> split(V v)
{
    using U = bits_of<V>;
    using c = constants<scalar<V>>;
    using f = format<scalar<V>>;
    const V whole = V::broadcast(f::whole);
    const auto subnormal = abs(v) < V::broadcast(f::least_normal);
    const V normal = select(subnormal, v * whole, v);
    const V exponent = from_bits(shift_right<f::fraction_bits>(to_bits(abs(normal))) | to_bits(whole)) - whole;
    const V bias = select(subnormal, V::broadcast(f::bias + f::fraction_bits), V::broadcast(f::bias));
    const V m = copysign(from_bits((to_bits(normal) & U::broadcast(c::fraction)) | U::broadcast(c::one)), v);
    const auto special = (v == zero<V>()) | !(abs(v) < V::broadcast(__builtin_inf()));
    return {select(special, v, m), select(special, zero<V>(), exponent - bias)};
}

template <class V>
RESIDUA_LANE_INLINE scaled<V> operator*(scaled<V> a, scaled<V> b)
{
    return {a.m * b.m, a.n + b.n};
}
template <class V>
RESIDUA_LANE_INLINE scaled<V> operator*(scaled<V> a, V b)
{
    return a * split(b);
}

template <class V>
RESIDUA_LANE_INLINE scaled<V> operator+(scaled<V> a, scaled<V> b)
{
    // of a zero the power says nothing
    const V least = V::broadcast(-0x1p20);
    const V a_n = select(a.m == zero<V>(), least, a.n);
    const V b_n = select(b.m == zero<V>(), least, b.n);
    const V n = max(a_n, b_n);
    const V negligible = V::broadcast(-1000);
    return {a.m * pow2(max(negligible, a_n - n)) + b.m * pow2(max(negligible, b_n - n)), n};
}

/// The number itself, rounded once.
template <class V>
RESIDUA_LANE_INLINE V value(scaled<V> a)
{
    const V most = V::broadcast(2000);
    return ldexp(a.m, max(-most, min(most, a.n)));
}

template <class M, class V>
RESIDUA_LANE_INLINE scaled<V> select(M m, scaled<V> a, scaled<V> b)
{
    return {select(m, a.m, b.m), select(m, a.n, b.n)};
}

// --- exp, sigmoid, tanh ----------------------------------------------------------------------------------------

/// The tail of an argument, which says nothing where the argument is bounded, and may be huge there, or NaN.
template <class V>
RESIDUA_LANE_INLINE V tail_within_reach(V x, V tail)
{
    return select(abs(x) < V::broadcast(activation_constants::reach), tail, zero<V>());
}

template <class V>
RESIDUA_LANE_INLINE scaled<V> scaled_exp(V x, V tail = zero<V>())
{
    const auto e = reduce_exp(x, activation_constants::reach, tail_within_reach(x, tail));
    return {V::broadcast(1) + e.minus_one, e.n};
}
template <class V>
RESIDUA_LANE_INLINE scaled<V> exp_slope(V x)
{
    return scaled_exp(x);
}

/// A number of at most about one, as it is seen beside 1.
template <class V>
RESIDUA_LANE_INLINE V beside_one(scaled<V> a)
{
    return a.m * pow2(max(V::broadcast(-100), a.n));
}

/// e^-|u| for u + tail
template <class V>
RESIDUA_LANE_INLINE scaled<V> decay(V u, V tail)
{
    return scaled_exp(-abs(u), select(u < zero<V>(), tail, -tail));
}

/// 1 / (1 + e^-x) = 2^n / d. With e^-x = (1 + m) 2^k: d = 1 + (2^k + m 2^k) for k <= 0, and 1 + (2^-k + m) for k > 0. The
/// whole number comes last (2 for k = 0, where m is all there is to add), so what is in brackets is small and so is its
/// rounding.
template <class V>
RESIDUA_LANE_INLINE scaled<V> scaled_sigmoid(V x, V tail = zero<V>())
{
    const auto e = reduce_exp(-x, activation_constants::reach, -tail_within_reach(x, tail));
    const V one = V::broadcast(1);
    // below 2^-100 a power is not seen beside the 1
    const V power = pow2(max(V::broadcast(-100), -abs(e.n)));
    const V factor = select(e.n < zero<V>(), power, one);
    const auto level = e.n == zero<V>();
    const V added = fma(e.minus_one, factor, select(level, zero<V>(), power));
    return {one / (select(level, one + one, one) + added), -max(e.n, zero<V>())};
}

/// s (1 - s) = E / (1 + E)^2 with E = e^-|x|: even, and nothing cancels.
template <class V>
RESIDUA_LANE_INLINE scaled<V> sigmoid_slope(V x, V tail = zero<V>())
{
    const auto E = decay(x, tail);
    const V sum = V::broadcast(1) + beside_one(E);
    return {E.m / (sum * sum), E.n};
}

/// 1 - tanh^2 x = 4 E / (1 + E)^2 with E = e^-2|x|
template <class V>
RESIDUA_LANE_INLINE scaled<V> tanh_slope(V x, V tail = zero<V>())
{
    const auto quarter = sigmoid_slope(x + x, tail + tail);
    return {V::broadcast(4) * quarter.m, quarter.n};
}

// --- x s(u): silu and what is like it --------------------------------------------------------------------------

/// The derivative of x s(u): s (1 + w (1 - s)) with w = x du/dx, for u + tail. With E = e^-|u| it is
/// (1 + E + w E) / (1 + E)^2 for u >= 0, and E (E + (1 + w)) / (1 + E)^2 below.
template <class V>
RESIDUA_LANE_INLINE scaled<V> gated_slope(V u, V w, V tail)
{
    const V one = V::broadcast(1);
    const auto E = decay(u, tail);
    const V e = beside_one(E);
    const V sum = one + e;
    const auto negative = u < zero<V>();
    const V numerator = select(negative, E.m * (e + (one + w)), fma(w, e, sum));
    return {numerator / (sum * sum), select(negative, E.n, zero<V>())};
}

/// d p(d) where d = x - zero is small, else `elsewhere`.
template <class V, std::size_t N>
RESIDUA_LANE_INLINE scaled<V> near_zero(V d, const double (&p)[N], scaled<V> elsewhere)
{
    const scaled<V> near{d * polynomial(d, p), zero<V>()};
    return select(abs(d) < V::broadcast(activation_constants::zero_reach), near, elsewhere);
}

/// x between -most and most, a NaN included.
template <class V>
RESIDUA_LANE_INLINE V within(V x, double most)
{
    return max(V::broadcast(-most), min(V::broadcast(most), x));
}

template <class V>
RESIDUA_LANE_INLINE scaled<V> scaled_silu(V x)
{
    return scaled_sigmoid(x) * max(V::broadcast(-activation_constants::reach), x);
}
/// For x + tail.
template <class V>
RESIDUA_LANE_INLINE scaled<V> silu_slope(V x, V tail = zero<V>())
{
    using c = activation_constants;
    const V bounded = within(x, c::reach);
    const V d = (x - V::broadcast(c::silu_zero_hi)) + (tail - V::broadcast(c::silu_zero_lo));
    return near_zero(d, c::silu_zero, gated_slope(bounded, bounded, tail));
}

/// silu'' = s (1 - s) (2 + x (1 - 2 s)): with E = e^-|x| it is E (2 - |x| + E (2 + |x|)) / (1 + E)^3, and even.
template <class V>
RESIDUA_LANE_INLINE scaled<V> silu_derivative_slope(V x)
{
    using c = activation_constants;
    const V size = abs(within(x, c::reach));
    const V two = V::broadcast(2);
    const auto E = decay(size, zero<V>());
    const V e = beside_one(E);
    const V sum = V::broadcast(1) + e;
    const scaled<V> elsewhere{E.m * fma(e, two + size, two - size) / (sum * sum * sum), E.n};
    const V d = (abs(x) - V::broadcast(c::silu_turn_hi)) - V::broadcast(c::silu_turn_lo);
    return near_zero(d, c::silu_turn, elsewhere);
}

/// x s(a x) and its derivative, a > 0.
template <class V>
RESIDUA_LANE_INLINE scaled<V> scaled_silu(V x, V a)
{
    const V ax = a * x;
    return scaled_sigmoid(ax, fma(a, x, -ax)) * max(V::broadcast(-activation_constants::reach) / a, x);
}
template <class V>
RESIDUA_LANE_INLINE scaled<V> silu_slope_at(V x, V a)
{
    const V ax = a * x;
    return silu_slope(ax, fma(a, x, -ax));
}

// --- GELU ------------------------------------------------------------------------------------------------------

/// Phi(-t) = e^(-t^2/2) g(t) for t >= 0: the two factors.
template <class V>
struct normal_terms {
    V t;
    scaled<V> bell;
    V g;
};
template <class V>
RESIDUA_LANE_INLINE normal_terms<V> normal_tail(V x)
{
    using c = activation_constants;
    const V t = min(V::broadcast(c::normal_reach), abs(x));
    const V square = t * t;
    const V minus_half = V::broadcast(-0.5);
    const auto bell = scaled_exp(minus_half * square, minus_half * fma(t, t, -square));
    const V five = V::broadcast(5);
    const V z = (t - five) / (t + five);
    return {t, bell, polynomial(z, c::normal_tail) / (V::broadcast(1) + t)};
}

/// 1/2 + x p(x^2) where |x| < reach, else `elsewhere`.
template <class V, std::size_t N>
RESIDUA_LANE_INLINE scaled<V> in_the_middle(V x, double reach, const double (&p)[N], scaled<V> elsewhere)
{
    const V bounded = within(x, reach);
    const scaled<V> middle{fma(bounded, polynomial(bounded * bounded, p), V::broadcast(0.5)), zero<V>()};
    return select(abs(x) < V::broadcast(reach), middle, elsewhere);
}

/// x Phi(x) with the normal distribution Phi.
template <class V>
RESIDUA_LANE_INLINE scaled<V> scaled_gelu(V x)
{
    const auto n = normal_tail(x);
    const scaled<V> below{n.bell.m * n.g, n.bell.n};
    const scaled<V> above{V::broadcast(1) - beside_one(below), zero<V>()};
    using c = activation_constants;
    const auto normal =
        in_the_middle(x, c::normal_middle_reach, c::normal_middle, select(x < zero<V>(), below, above));
    return normal * max(V::broadcast(-c::normal_reach), x);
}
/// Phi(x) + x phi(x)
template <class V>
RESIDUA_LANE_INLINE scaled<V> gelu_slope(V x)
{
    using c = activation_constants;
    const auto n = normal_tail(x);
    V rest = fma(-n.t, V::broadcast(c::sqrt_half_over_pi_hi), n.g);
    rest = fma(-n.t, V::broadcast(c::sqrt_half_over_pi_lo), rest);
    const scaled<V> below{n.bell.m * rest, n.bell.n};
    const scaled<V> above{V::broadcast(1) - beside_one(below), zero<V>()};
    const V d = (x - V::broadcast(c::gelu_zero_hi)) - V::broadcast(c::gelu_zero_lo);
    const auto elsewhere =
        in_the_middle(x, c::gelu_slope_middle_reach, c::gelu_slope_middle, select(x < zero<V>(), below, above));
    return near_zero(d, c::gelu_zero, elsewhere);
}

/// u + tail = 2 sqrt(2/pi) (x + 0.044715 x^3), and w = x du/dx.
template <class V>
struct tanh_form_terms {
    V u, tail, w;
};
template <class V>
RESIDUA_LANE_INLINE tanh_form_terms<V> tanh_form(V unbounded)
{
    using c = activation_constants;
    const V x = within(unbounded, c::tanh_form_reach);
    const V linear = V::broadcast(c::tanh_form_hi);
    const V k = V::broadcast(c::tanh_form_cubic_hi);
    const V square = x * x;
    const V cubic = k * square;
    const V cubic_low =
        fma(k, square, -cubic) + fma(k, fma(x, x, -square), V::broadcast(c::tanh_form_cubic_lo) * square);
    // linear + cubic, and what its rounding takes
    const V p = linear + cubic;
    const V part = p - linear;
    const V wrong = (linear - (p - part)) + (cubic - part);
    const V low = wrong + (cubic_low + V::broadcast(c::tanh_form_lo));
    const V u = x * p;
    return {u, fma(x, p, -u) + x * low, fma(x + x, cubic, u)};
}

/// 0.5 x (1 + tanh(u/2)) = x s(u)
template <class V>
RESIDUA_LANE_INLINE scaled<V> scaled_gelu_tanh(V x)
{
    const auto f = tanh_form(x);
    return scaled_sigmoid(f.u, f.tail) * max(V::broadcast(-activation_constants::tanh_form_reach), x);
}
template <class V>
RESIDUA_LANE_INLINE scaled<V> gelu_tanh_slope(V x)
{
    using c = activation_constants;
    const auto f = tanh_form(x);
    const V d = (x - V::broadcast(c::gelu_tanh_zero_hi)) - V::broadcast(c::gelu_tanh_zero_lo);
    return near_zero(d, c::gelu_tanh_zero, gated_slope(f.u, f.w, f.tail));
}

}  // namespace RESIDUA_PASS
