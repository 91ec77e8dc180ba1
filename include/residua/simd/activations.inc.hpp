// The activations of a feed-forward layer and their derivatives, in double lanes. Each is a number whose power of two is
// apart: it, and what it is multiplied by, may leave the range of double where their product does not. (Of float it cannot:
// of_floats.inc.hpp.)
// Coefficients and their errors: docs/polynomials.sollya.

namespace RESIDUA_PASS {

/// m 2^n with an integer n; m is a number of lanes V, in one or two parts, and 0, infinite, NaN, or so near to one that a
/// few of them can be multiplied. Where the first part is infinite, the second says nothing.
template <class V, class N = V>
struct scaled {
    N m;
    V n;
};
template <accuracy A, class V>
using scaled_number = scaled<V, number<A, V>>;
template <class V>
using scaled_extended = scaled<V, extended<V>>;

/// A constant in every lane.
template <class V>
RESIDUA_LANE_INLINE extended<V> broadcast(const extended<double>& c)
{
    return {V::broadcast(c.hi), V::broadcast(c.low)};
}

struct activation_constants {
    // Beyond this e^-x is 0, even times two numbers of any size.
    static constexpr double reach = 2400.0;
    // So is the normal distribution at -normal_reach, and the logistic of GELU's tanh form at -tanh_form_reach.
    static constexpr double normal_reach = 69.5;
    static constexpr double tanh_form_reach = 35.0;

    // Phi(x) = 1/2 + x a(x^2) in the middle, and Phi(x) + x phi(x) = 1/2 + x b(x^2)
    static constexpr double normal_middle_reach = 0.75;
    static constexpr series<double, 10> normal_middle{
        -0x1.cbcfd4b11b9e3p-56,
        {0x1.9884533d43651p-2, -0x1.1058377e2ceep-4, 0x1.46d04297690f4p-7, -0x1.37403f6b9565ep-10,
         0x1.e42b0d48fd1fcp-14, -0x1.3ce8f8c45494ep-17, 0x1.65899bd295d45p-21, -0x1.620cd776f8bdcp-25,
         0x1.365eaec80856dp-29, -0x1.b693956283f0bp-34}};
    static constexpr double gelu_slope_middle_reach = 0.5;
    static constexpr series<double, 9> gelu_slope_middle{
        -0x1.cbcba53530db5p-55,
        {0x1.9884533d43651p-1, -0x1.1058377e2ceep-2, 0x1.ea3863e31d91bp-5, -0x1.37403f6b8d52dp-7,
         0x1.2e9ae8458cc33p-10, -0x1.db5d6da6a0b5p-14, 0x1.38d68d320308ap-17, -0x1.618b38cd8e396p-21,
         0x1.4ab9b93b4abbdp-25}};

    // (1 + t) e^(t^2/2) Phi(-t) in z = (t - 5)/(t + 5), from t = 1/2 on
    static constexpr series<double, 24> normal_tail{
        0x1.ca52ba4e07fb7p-56,
        {0x1.d8979b0f2b39dp-2,   -0x1.76ff86859eb14p-4, 0x1.fc66cc64a13e6p-6,   0x1.47c1d03054979p-7,
         -0x1.b08e0007b4dfbp-6,  0x1.92037bab46251p-6,  -0x1.f11aab03082f5p-7,  0x1.ab6d038d91249p-8,
         -0x1.b75f4f809af77p-10, 0x1.05719e0407102p-17, 0x1.7e61e0ba18f9cp-13,  -0x1.c1b1c4201188ap-15,
         -0x1.4c0da8789ecd4p-17, 0x1.3003b857fd4b6p-17, -0x1.2f7828110ab93p-24, -0x1.5f3dd0b6a7edfp-20,
         0x1.13997e5ffbdb1p-23,  0x1.a8607836a1869p-23, -0x1.cae1a3f157a1cp-26, -0x1.133ff7b5cae07p-25,
         0x1.08bd034e5477cp-28,  0x1.5133e79facd6ep-28, -0x1.6fcd12ff8f727p-32, -0x1.09828226ca427p-31}};
    static constexpr extended<double> sqrt_half_over_pi{0x1.9884533d43651p-2, -0x1.cbc0d30ebfd15p-56};
    // 2 sqrt(2/pi), and 0.044715 of it
    static constexpr extended<double> tanh_form{0x1.9884533d43651p0, -0x1.cbc0d30ebfd15p-54};
    static constexpr extended<double> tanh_form_cubic{0x1.2444f2a4d8b4bp-4, -0x1.6c843a29d1c7p-61};

    // A derivative f'(x) has one zero, here in three parts; near it f'(zero + d) = d p(d).
    struct root {
        double hi, low, lowest;
    };
    static constexpr double zero_reach = 0.25;
    static constexpr root silu_zero{-0x1.474973c84120bp0, -0x1.f8d74bc9ac154p-54, -0x1.44a50180ba78p-108};
    static constexpr series<double, 13> near_silu_zero{
        -0x1.2ac82ca6287bap-58,
        {0x1.be1410460527fp-3, 0x1.2c563458cc0adp-3, 0x1.353eb573ca475p-6, -0x1.f2d0e32bc32a6p-7,
         -0x1.b0f82c4996848p-8, 0x1.098e92c8cd69p-13, 0x1.a2a7cb03521e8p-11, 0x1.8574ce1719ee3p-13,
         -0x1.5723be7236e2p-15, -0x1.f2d6257eec6a9p-16, -0x1.8ab15e28b9725p-19, 0x1.39f5209f94482p-19,
         0x1.c2440a71641f3p-21}};
    // of silu'', on both sides of 0
    static constexpr root silu_turn{0x1.331e23ad9de11p1, 0x1.a9c55ef03c74ap-53, 0x1.672af2735d856p-110};
    static constexpr series<double, 13> near_silu_turn{
        0x1.6f362d47d8188p-58,
        {-0x1.76e8b4eb0ea41p-4, 0x1.388203715b23ep-4, -0x1.706e66bf36033p-6, -0x1.e178d8d2393dap-10,
         0x1.fa4e9f742be2fp-9, -0x1.662f848d38f6p-10, 0x1.e2e4a689b1edfp-14, 0x1.94804b5dfe19ep-14,
         -0x1.8e0bbed4cab2dp-15, 0x1.1af28b6c1f667p-17, 0x1.4ea68c2217d4bp-20, -0x1.4003024273b75p-20,
         0x1.4bd77bdbdbaefp-22}};
    static constexpr root gelu_zero{-0x1.80ead197f00b4p-1, 0x1.13e74c58cada8p-56, 0x1.65d4b5b9cdd03p-111};
    static constexpr series<double, 14> near_gelu_zero{
        0x1.fc6e52deb7d4p-56,
        {0x1.b9d98fa5a3215p-2, 0x1.8d9a941de3ac5p-2, -0x1.2a2ef9bb86621p-6, -0x1.d2fa4c17c7c7fp-4,
         -0x1.e4088244ea995p-7, 0x1.3e346def0e085p-6, 0x1.297b9d6527f21p-8, -0x1.258a6d384d1e2p-9,
         -0x1.8680e7d248aacp-11, 0x1.86c7eff3305ebp-13, 0x1.6955a8adbaa4dp-14, -0x1.77f52379eba64p-17,
         -0x1.ffb0bce0fe941p-18, 0x1.9f044fbd54e89p-22}};
    static constexpr root gelu_tanh_zero{-0x1.81429f9e97e4dp-1, 0x1.4f523ed77dbdcp-55, -0x1.a649fca8ac0e5p-109};
    static constexpr series<double, 15> near_gelu_tanh_zero{
        0x1.763a355fa8a98p-56,
        {0x1.b8bacd2c96b91p-2, 0x1.8cd1a2b2fff32p-2, -0x1.029615edb077cp-6, -0x1.d2b7734646dd1p-4,
         -0x1.104a83edc0af1p-6, 0x1.427996dbd1afdp-6, 0x1.58c9ed70db9efp-8, -0x1.3d8d6386ca8dfp-9,
         -0x1.e63f289c66128p-11, 0x1.14bf02549f371p-12, 0x1.049319b313778p-13, -0x1.24f60c53b2dbp-15,
         -0x1.0b6be9cc9f8bbp-16, 0x1.7a6c9accfbe6fp-18, 0x1.380fe91f4a782p-19}};
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
RESIDUA_LANE_INLINE scaled_extended<V> split(extended<V> v)
{
    const auto hi = split(v.hi);
    return {{hi.m, ldexp(v.low, -hi.n)}, hi.n};
}
template <class V>
RESIDUA_LANE_INLINE scaled_extended<V> exactly(scaled<V> v)
{
    return {{v.m, zero<V>()}, v.n};
}

template <class V, class N, class M>
RESIDUA_LANE_INLINE scaled<V, N> operator*(scaled<V, N> a, scaled<V, M> b)
{
    return {a.m * b.m, a.n + b.n};
}
template <class V, class N>
RESIDUA_LANE_INLINE scaled<V, N> operator*(scaled<V, N> a, V b)
{
    return a * split(b);
}

template <class V>
RESIDUA_LANE_INLINE V leading(V v)
{
    return v;
}
template <class V>
RESIDUA_LANE_INLINE V leading(extended<V> v)
{
    return v.hi;
}
/// A sum in which the first parts may have cancelled.
template <class V>
RESIDUA_LANE_INLINE V settled(V sum)
{
    return sum;
}
template <class V>
RESIDUA_LANE_INLINE extended<V> settled(extended<V> sum)
{
    return ordered_sum(sum.hi, finite_tail(sum.low));
}
template <class V, class N>
RESIDUA_LANE_INLINE scaled<V, N> operator+(scaled<V, N> a, scaled<V, N> b)
{
    // of a zero the power says nothing
    const V least = V::broadcast(-0x1p20);
    const V a_n = select(leading(a.m) == zero<V>(), least, a.n);
    const V b_n = select(leading(b.m) == zero<V>(), least, b.n);
    const V n = max(a_n, b_n);
    const V negligible = V::broadcast(-1000);
    return {settled(a.m * pow2(max(negligible, a_n - n)) + b.m * pow2(max(negligible, b_n - n))), n};
}

template <class V>
RESIDUA_LANE_INLINE V rounded(V v)
{
    return v;
}
template <class V>
RESIDUA_LANE_INLINE V rounded(extended<V> v)
{
    return copysign(v.hi + finite_tail(v.low), v.hi);
}
/// The number itself, rounded once.
template <class V, class N>
RESIDUA_LANE_INLINE V value(scaled<V, N> a)
{
    const V most = V::broadcast(2000);
    return ldexp(rounded(a.m), max(-most, min(most, a.n)));
}

template <class M, class V, class N>
RESIDUA_LANE_INLINE scaled<V, N> select(M m, scaled<V, N> a, scaled<V, N> b)
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

template <accuracy A, class V>
RESIDUA_LANE_INLINE scaled_number<A, V> scaled_exp(V x, V tail = zero<V>())
{
    const auto e = reduce_exp(x, activation_constants::reach, tail_within_reach(x, tail));
    return {number_of<A>(plus(V::broadcast(1), extended<V>{e.minus_one, e.low})), e.n};
}
template <class V>
RESIDUA_LANE_INLINE scaled_extended<V> exp_slope(V x)
{
    return scaled_exp<accuracy::precise>(x);
}

/// A number of at most about one, as it is seen beside 1.
template <class V, class N>
RESIDUA_LANE_INLINE N beside_one(scaled<V, N> a)
{
    return a.m * pow2(max(V::broadcast(-100), a.n));
}

/// e^-|u| for u + tail
template <accuracy A, class V>
RESIDUA_LANE_INLINE scaled_number<A, V> decay(V u, V tail)
{
    return scaled_exp<A>(-abs(u), select(u < zero<V>(), tail, -tail));
}

/// 1 / (1 + e^-x) = 2^n / d. With e^-x = (1 + m) 2^k: d = 1 + (2^k + m 2^k) for k <= 0, and 1 + (2^-k + m) for k > 0. The
/// whole number comes last (2 for k = 0, where m is all there is to add), so what is in brackets is small and so is its
/// rounding.
template <accuracy A = accuracy::standard, class V>
RESIDUA_LANE_INLINE scaled_number<A, V> scaled_sigmoid(V x, V tail = zero<V>())
{
    const auto e = reduce_exp(-x, activation_constants::reach, -tail_within_reach(x, tail));
    const V one = V::broadcast(1);
    // below 2^-100 a power is not seen beside the 1
    const V power = pow2(max(V::broadcast(-100), -abs(e.n)));
    const V factor = select(e.n < zero<V>(), power, one);
    const auto level = e.n == zero<V>();
    const auto added = exact_sum(select(level, zero<V>(), power), e.minus_one * factor);
    const auto d = plus(select(level, one + one, one), added);
    const V low = fma(e.low, factor, d.low);
    const V z = one / d.hi;
    return {number_of<A>(extended<V>{z, fma(-low, z, fma(-d.hi, z, one)) * z}), -max(e.n, zero<V>())};
}

/// s (1 - s) = E / (1 + E)^2 with E = e^-|x|: even, and nothing cancels.
template <accuracy A = accuracy::standard, class V>
RESIDUA_LANE_INLINE scaled_number<A, V> sigmoid_slope(V x, V tail = zero<V>())
{
    const auto E = decay<A>(x, tail);
    const auto sum = plus(V::broadcast(1), beside_one(E));
    return {E.m / (sum * sum), E.n};
}

template <class V>
RESIDUA_LANE_INLINE extended<V> tanh(extended<V> x)
{
    const auto negative = x.hi < zero<V>();
    const auto y = extended_tanh(x.hi, select(negative, -x.low, x.low));
    return select(negative, -y, y);
}
/// 1 - tanh^2 x = 4 E / (1 + E)^2 with E = e^-2|x|
template <class V>
RESIDUA_LANE_INLINE scaled_extended<V> tanh_slope(V x, V tail = zero<V>())
{
    const auto quarter = sigmoid_slope<accuracy::precise>(x + x, tail + tail);
    return {quarter.m, quarter.n + V::broadcast(2)};
}

// --- x s(u): silu and what is like it --------------------------------------------------------------------------

/// The derivative of x s(u): s (1 + w (1 - s)) with w = x du/dx, for u + tail. With E = e^-|u| it is
/// (1 + E + w E) / (1 + E)^2 for u >= 0, and E (1 + E + w) / (1 + E)^2 below.
template <accuracy A, class V>
RESIDUA_LANE_INLINE scaled_number<A, V> gated_slope(V u, V tail, number<A, V> w)
{
    const auto E = decay<A>(u, tail);
    const auto e = beside_one(E);
    const auto one = exactly<A>(V::broadcast(1));
    const auto sum = plus(V::broadcast(1), e);
    const auto negative = u < zero<V>();
    const auto numerator = (sum + w * select(negative, one, e)) * select(negative, E.m, one);
    return {numerator / (sum * sum), select(negative, E.n, zero<V>())};
}

/// x + tail - root
template <class V>
RESIDUA_LANE_INLINE extended<V> from_zero(V x, V tail, const activation_constants::root& root)
{
    auto d = ordered_sum(x - V::broadcast(root.hi), tail - V::broadcast(root.low));
    d.low = d.low - V::broadcast(root.lowest);
    return d;
}
/// d p(d) where d is small, else `elsewhere`.
template <accuracy A, class V, std::size_t N>
RESIDUA_LANE_INLINE scaled_number<A, V> near_zero(extended<V> d, const series<double, N>& p,
                                                  scaled_number<A, V> elsewhere)
{
    const scaled_number<A, V> near{polynomial<A>(d.hi, p) * number_of<A>(d), zero<V>()};
    return select(abs(d.hi) < V::broadcast(activation_constants::zero_reach), near, elsewhere);
}

/// x between -most and most, a NaN included.
template <class V>
RESIDUA_LANE_INLINE V within(V x, double most)
{
    return max(V::broadcast(-most), min(V::broadcast(most), x));
}

template <accuracy A, class V>
RESIDUA_LANE_INLINE scaled_number<A, V> scaled_silu(V x)
{
    return scaled_sigmoid<A>(x) * max(V::broadcast(-activation_constants::reach), x);
}
/// For x + tail.
template <accuracy A, class V>
RESIDUA_LANE_INLINE scaled_number<A, V> silu_slope(V x, V tail = zero<V>())
{
    using c = activation_constants;
    const V bounded = within(x, c::reach);
    const auto w = number_of<A>(extended<V>{bounded, tail_within_reach(x, tail)});
    const auto elsewhere = gated_slope<A>(bounded, tail, w);
    return near_zero<A>(from_zero(x, tail, c::silu_zero), c::near_silu_zero, elsewhere);
}

/// silu'' = s (1 - s) (2 + x (1 - 2 s)): with E = e^-|x| it is E (2 - |x| + E (2 + |x|)) / (1 + E)^3, and even.
template <class V>
RESIDUA_LANE_INLINE scaled_extended<V> silu_derivative_slope(V x)
{
    using c = activation_constants;
    const V size = abs(within(x, c::reach));
    const V two = V::broadcast(2);
    const auto E = decay<accuracy::precise>(size, zero<V>());
    const auto e = beside_one(E);
    const auto sum = plus(V::broadcast(1), e);
    const auto numerator = E.m * (exact_sum(two, -size) + e * exact_sum(two, size));
    const scaled_extended<V> elsewhere{numerator / (sum * sum * sum), E.n};
    return near_zero<accuracy::precise>(from_zero(abs(x), zero<V>(), c::silu_turn), c::near_silu_turn, elsewhere);
}

/// x s(a x) and its derivative, a > 0.
template <class V>
RESIDUA_LANE_INLINE scaled_extended<V> scaled_silu(V x, V a)
{
    const V ax = a * x;
    const V reach = V::broadcast(-activation_constants::reach) / a;
    const V bounded = max(max(V::broadcast(-format<double>::largest), reach), x);
    return scaled_sigmoid<accuracy::precise>(ax, fma(a, x, -ax)) * bounded;
}
template <class V>
RESIDUA_LANE_INLINE scaled_extended<V> silu_slope_at(V x, V a)
{
    const V ax = a * x;
    return silu_slope<accuracy::precise>(ax, fma(a, x, -ax));
}

// --- GELU ------------------------------------------------------------------------------------------------------

/// Phi(-t) = e^(-t^2/2) g(t) for t >= 0: the two factors.
template <class V>
struct normal_terms {
    V t;
    scaled_extended<V> bell;
    extended<V> g;
};
/// g = h/(1 + t), with h a polynomial in z = (t - 5)/(t + 5) = (s - 10)/s. What the roundings of s and z take is a change
/// dt of t, and dh/dt = g + (1 + t)(t g - 1/sqrt(2 pi)).
template <class V>
RESIDUA_LANE_INLINE normal_terms<V> normal_tail(V x)
{
    using c = activation_constants;
    const V t = min(V::broadcast(c::normal_reach), abs(x));
    const V minus_half = V::broadcast(-0.5);
    const auto square = exact_product(t, t);
    const auto bell = scaled_exp<accuracy::precise>(minus_half * square.hi, minus_half * square.low);
    const auto s = exact_sum(t, V::broadcast(5));
    const auto next = exact_sum(t, V::broadcast(1));
    const V both = V::broadcast(1) / (s.hi * next.hi);
    const V of_next = both * s.hi;
    const V beyond = s.hi - V::broadcast(10);  // exact
    const V z = beyond * (both * next.hi);
    auto h = polynomial<accuracy::precise>(z, c::normal_tail);
    const V dt = fma(fma(-z, s.hi, beyond), V::broadcast(0.1) * s.hi, s.low);
    const V slope = fma(h.hi, of_next, fma(h.hi, t, -(next.hi * V::broadcast(c::sqrt_half_over_pi.hi))));
    h.low = fma(dt, slope, h.low);
    return {t, bell, quotient(h, next, of_next)};
}

/// 1/2 + x p(x^2) where |x| < reach, else `elsewhere`.
template <class V, std::size_t N>
RESIDUA_LANE_INLINE scaled_extended<V> in_the_middle(V x, double reach, const series<double, N>& p,
                                                     scaled_extended<V> elsewhere)
{
    const V bounded = within(x, reach);
    const auto middle = plus(V::broadcast(0.5), polynomial<accuracy::precise>(bounded * bounded, p) * bounded);
    return select(abs(x) < V::broadcast(reach), scaled_extended<V>{middle, zero<V>()}, elsewhere);
}
/// y below zero, 1 - y above.
template <class V>
RESIDUA_LANE_INLINE scaled_extended<V> on_either_side(V x, scaled_extended<V> y)
{
    const auto above = plus(V::broadcast(1), -beside_one(y));
    return select(x < zero<V>(), y, scaled_extended<V>{above, zero<V>()});
}

/// x Phi(x) with the normal distribution Phi.
template <class V>
RESIDUA_LANE_INLINE scaled_extended<V> scaled_gelu(V x)
{
    using c = activation_constants;
    const auto n = normal_tail(x);
    const auto elsewhere = on_either_side(x, scaled_extended<V>{n.bell.m * n.g, n.bell.n});
    return in_the_middle(x, c::normal_middle_reach, c::normal_middle, elsewhere)
           * max(V::broadcast(-c::normal_reach), x);
}
/// Phi(x) + x phi(x)
template <class V>
RESIDUA_LANE_INLINE scaled_extended<V> gelu_slope(V x)
{
    using c = activation_constants;
    const auto n = normal_tail(x);
    const auto rest = n.g + broadcast<V>(c::sqrt_half_over_pi) * -n.t;
    const auto elsewhere = on_either_side(x, scaled_extended<V>{n.bell.m * rest, n.bell.n});
    return near_zero<accuracy::precise>(
        from_zero(x, zero<V>(), c::gelu_zero), c::near_gelu_zero,
        in_the_middle(x, c::gelu_slope_middle_reach, c::gelu_slope_middle, elsewhere));
}

/// u = 2 sqrt(2/pi) (x + 0.044715 x^3), and w = x du/dx.
template <class V>
struct tanh_form_terms {
    extended<V> u, w;
};
template <class V>
RESIDUA_LANE_INLINE tanh_form_terms<V> tanh_form(V unbounded)
{
    using c = activation_constants;
    const V x = within(unbounded, c::tanh_form_reach);
    const auto cubic = broadcast<V>(c::tanh_form_cubic) * exact_product(x, x);
    const auto u = (broadcast<V>(c::tanh_form) + cubic) * x;
    return {u, u + cubic * (x + x)};
}

/// 0.5 x (1 + tanh(u/2)) = x s(u)
template <class V>
RESIDUA_LANE_INLINE scaled_extended<V> scaled_gelu_tanh(V x)
{
    const auto u = tanh_form(x).u;
    return scaled_sigmoid<accuracy::precise>(u.hi, u.low)
           * max(V::broadcast(-activation_constants::tanh_form_reach), x);
}
template <class V>
RESIDUA_LANE_INLINE scaled_extended<V> gelu_tanh_slope(V x)
{
    using c = activation_constants;
    const auto f = tanh_form(x);
    return near_zero<accuracy::precise>(from_zero(x, zero<V>(), c::gelu_tanh_zero), c::near_gelu_tanh_zero,
                                        gated_slope<accuracy::precise>(f.u.hi, f.u.low, f.w));
}

}  // namespace RESIDUA_PASS
