// Activations with their derivatives, in double lanes, of arguments that were float and for results that become so. No
// product of a few such numbers leaves the range of double, so nothing is scaled or checked; and a float sees little of an
// error of 2^-32 of the number, so polynomials are short and no rounding is made good. One exponential and one division
// give both a function and its derivative.
//
// Next to a zero of a derivative the error has to be small beside what is left. So the exponential is taken of the distance
// d from that zero, where e^-d is as exact as 1 + d: the nearest float is 2^-26 away, so what is left has 26 bits still.
// What the zero's last bits add to d, times the derivative's own slope, is added to the number 1 that e^-d is taken from.
// Coefficients and their errors: docs/polynomials.sollya.

namespace RESIDUA_PASS {

/// Both times the same number.
template <class V>
struct value_and_slope {
    V value, slope;
};

struct constants_of_floats {
    // Beyond this neither e^-x nor e^x, times two floats of any size, is another float than here: 0 or infinity.
    static constexpr double reach = 300.0;
    // So is the normal distribution at -normal_reach, and the logistic of GELU's tanh form at -tanh_form_reach.
    static constexpr double normal_reach = 24.0;
    static constexpr double tanh_form_reach = 16.0;

    static constexpr double ln2 = 0x1.62e42fefa39efp-1;
    // e^r = 1 + r q(r)
    static constexpr double exp[] = {0x1.ffffffffec3cap-1, 0x1.000000287babbp-1, 0x1.5555559597f2ap-3,
                                     0x1.5554acdc15687p-5, 0x1.11108602521fcp-7, 0x1.6d75363759c4cp-10,
                                     0x1.a1aa8627d6c9ap-13};

    // A zero of a derivative, e^-x there, and 1 as it is said above.
    struct root {
        double at, power, one;
    };
    static constexpr root silu_zero{-0x1.474973c84120bp0, 0x1.cba9de5920a28p1, 0x1.0000000000002p0};
    // of silu'', and 2 less it
    static constexpr root silu_turn{0x1.331e23ad9de11p1, 0x1.73d1d3a3cab96p-4, 0x1.ffffffffffffbp-1};
    static constexpr double two_less_silu_turn = -0x1.98f11d6cef08bp-2;
    // e^-u, where u = linear x + cubic x^3
    static constexpr root gelu_tanh_zero{-0x1.81429f9e97e4dp-1, 0x1.b66c64b173ce7p1, 0x1.ffffffffffffdp-1};
    static constexpr double square_of_gelu_tanh_zero = 0x1.21e4bab8db157p-1;
    static constexpr double linear = 0x1.9884533d43651p0;
    static constexpr double cubic = 0x1.2444f2a4d8b4bp-4;
    static constexpr double three_cubic = 0x1.b6676bf7450fp-3;

    // Phi(-t) e^(t^2/2) = w p(w) with w = 1/(t + 5)
    static constexpr double normal_tail[] = {0x1.98848d428d0b3p-2,  0x1.fe9b69e148749p0,   0x1.32c67d10673aap3,
                                             0x1.5a79006822dep5,    0x1.a1b8435a34ac8p7,   0x1.752d39f10ad6ep8,
                                             0x1.285c094a34d0fp13,  -0x1.094a7f69adfafp16, 0x1.5bce80d6494ecp19,
                                             -0x1.051099a2c905dp22, 0x1.295f3b0e2ce33p24,  -0x1.b3dc6bac0786p25,
                                             0x1.58b4583769f0bp26,  -0x1.c1f46cd3c7667p25};
    static constexpr double sqrt_half_over_pi = 0x1.9884533d43651p-2;
    // gelu'(zero + d) = d p(d) within the reach
    static constexpr double near_gelu_zero_reach = 0x1p-6;
    static constexpr extended<double> gelu_zero{-0x1.80ead197f00b4p-1, 0x1.13e74c58cada8p-56};
    static constexpr double near_gelu_zero[] = {0x1.b9d98fa5a326p-2, 0x1.8d9a9417acb8cp-2, -0x1.2a2ef9f7fb8b7p-6,
                                                -0x1.d2f4151e8261p-4, -0x1.e3f83ccfc74abp-7};
};

/// e^-x and 1 - e^-x, each with all its bits, for an |x| that is not much above reach.
template <class V>
struct power_and_missing {
    V power, missing;
};
template <class V>
RESIDUA_LANE_INLINE power_and_missing<V> exp_of_negative(V x)
{
    using c = constants_of_floats;
    using f = format<double>;
    const V magic = V::broadcast(f::magic + f::bias);
    const V biased = fma(x, V::broadcast(-constants<double>::log2_e), magic);
    const V r = fma(biased - magic, V::broadcast(-c::ln2), -x);
    const V minus_one = r * polynomial(r, c::exp);
    const V p = from_bits(shift_left<f::fraction_bits>(to_bits(biased)));
    return {fma(minus_one, p, p), fma(-minus_one, p, V::broadcast(1) - p)};
}

// g f(x) and g f'(x):

template <class V>
RESIDUA_LANE_INLINE value_and_slope<V> times_exp(V g, V x)
{
    const V y = g * exp_of_negative(-within(x, constants_of_floats::reach)).power;
    return {y, y};
}

/// s' = E / (1 + E)^2 with E = e^-|x|: even.
template <class V>
RESIDUA_LANE_INLINE value_and_slope<V> times_sigmoid(V g, V x)
{
    const V one = V::broadcast(1);
    const V e = exp_of_negative(min(V::broadcast(constants_of_floats::reach), abs(x))).power;
    const V z = one / (one + e);
    const V y = g * z;
    return {select(x < zero<V>(), e, one) * y, (e * z) * y};
}

/// (1 - E) / (1 + E), with the sign of x, and 4 E / (1 + E)^2 with E = e^-2|x|
template <class V>
RESIDUA_LANE_INLINE value_and_slope<V> times_tanh(V g, V x)
{
    const V one = V::broadcast(1);
    const auto e = exp_of_negative(min(V::broadcast(constants_of_floats::reach), abs(x + x)));
    const V z = one / (one + e.power);
    const V y = g * z;
    return {copysign(e.missing, x) * y, ((V::broadcast(4) * e.power) * z) * y};
}

/// x s and (1 + E + w E) s^2 with s = 1 / (1 + E), E = e^-u, for a u and a w that are d and v away from where the derivative
/// is zero: with 1 + E + w E = 0 there, the numerator is 1 - e^-d + v E. `power` is e^-d.
template <class V>
RESIDUA_LANE_INLINE value_and_slope<V> times_logistic(V g, V x, V power, V v, const constants_of_floats::root& zero)
{
    const V one = V::broadcast(1);
    const V e = V::broadcast(zero.power);
    const V s = one / fma(power, e, one);
    const V numerator = fma(power, fma(v, e, -one), V::broadcast(zero.one));
    const V y = g * s;
    return {x * y, (numerator * s) * y};
}

/// Of x s(u), and of u s(u) the derivative, with w = u. u is not far below -reach.
template <class V>
RESIDUA_LANE_INLINE value_and_slope<V> times_sigmoid_product(V g, V x, V u)
{
    using c = constants_of_floats;
    const V d = min(V::broadcast(c::reach), u) - V::broadcast(c::silu_zero.at);
    return times_logistic(g, x, exp_of_negative(d).power, d, c::silu_zero);
}
template <class V>
RESIDUA_LANE_INLINE value_and_slope<V> times_silu(V g, V x)
{
    const V bounded = max(V::broadcast(-constants_of_floats::reach), x);
    return times_sigmoid_product(g, bounded, bounded);
}
/// Of x s(a x) with a > 0, of a product that is exact.
template <class V>
RESIDUA_LANE_INLINE value_and_slope<V> times_silu(V g, V x, double a)
{
    const V bounded = max(V::broadcast(-constants_of_floats::reach / a), x);
    return times_sigmoid_product(g, bounded, V::broadcast(a) * bounded);
}

/// silu'' = E (2 - x + E (2 + x)) / (1 + E)^3 with E = e^-x and x >= 0: even. In the same way, with d from its zero, it is
/// E (d (E - 1) + (2 - zero) (1 - e^-d)) / (1 + E)^3.
template <class V>
RESIDUA_LANE_INLINE value_and_slope<V> times_silu_derivative(V g, V x)
{
    using c = constants_of_floats;
    const V one = V::broadcast(1);
    const V d = abs(within(x, c::reach)) - V::broadcast(c::silu_turn.at);
    const V power = exp_of_negative(d).power;
    const V e = power * V::broadcast(c::silu_turn.power);
    const V z = one / (one + e);
    const V missing = V::broadcast(c::silu_turn.one) - power;
    const V numerator = fma(d, e - one, V::broadcast(c::two_less_silu_turn) * missing);
    return {times_silu(g, x).slope, (numerator * (e * z)) * ((z * z) * g)};
}

/// x s(u) with u = linear x + cubic x^3, and its derivative, with w = x du/dx: the distances of u and w from where that is
/// zero are both multiples of that of x.
template <class V>
RESIDUA_LANE_INLINE value_and_slope<V> times_gelu_tanh(V g, V x)
{
    using c = constants_of_floats;
    const V linear = V::broadcast(c::linear);
    const V from_below = max(V::broadcast(-c::tanh_form_reach), x);
    const V bounded = min(V::broadcast(c::tanh_form_reach), from_below);
    const V at = V::broadcast(c::gelu_tanh_zero.at);
    const V d = bounded - at;
    const V squares = fma(bounded, bounded + at, V::broadcast(c::square_of_gelu_tanh_zero));
    const V of_w = d * fma(squares, V::broadcast(c::three_cubic), linear);
    const V power = exp_of_negative(d * fma(squares, V::broadcast(c::cubic), linear)).power;
    return times_logistic(g, from_below, power, of_w, c::gelu_tanh_zero);
}

/// x Phi(x) and Phi(x) + x phi(x). Below zero these are e^(-t^2/2) times q(t) and q(t) - t/sqrt(2 pi), t = -x; above it, 1
/// less those of -x.
template <class V>
RESIDUA_LANE_INLINE value_and_slope<V> times_gelu(V g, V x)
{
    using c = constants_of_floats;
    const V one = V::broadcast(1);
    const V t = min(V::broadcast(c::normal_reach), abs(x));
    const V bell = exp_of_negative((t * V::broadcast(0.5)) * t).power;
    const V w = one / (t + V::broadcast(5));
    const V q = w * polynomial(w, c::normal_tail);
    const V below = bell * q;
    const V slope_below = bell * fma(V::broadcast(-c::sqrt_half_over_pi), t, q);
    const auto negative = x < zero<V>();
    const V d = (x - V::broadcast(c::gelu_zero.hi)) - V::broadcast(c::gelu_zero.low);
    const V slope = select(abs(d) < V::broadcast(c::near_gelu_zero_reach), d * polynomial(d, c::near_gelu_zero),
                           select(negative, slope_below, one - slope_below));
    const V from_below = max(V::broadcast(-c::normal_reach), x);
    return {(from_below * select(negative, below, one - below)) * g, slope * g};
}

/// Of cap tanh(x / cap). Where cap is infinite that is x, as it is for a cap beyond any float.
template <class V>
RESIDUA_LANE_INLINE value_and_slope<V> soft_cap_and_slope(V x, double cap)
{
    const double finite = cap < 0x1p200 ? cap : 0x1p200;
    const auto of = times_tanh(V::broadcast(1), x * V::broadcast(1 / finite));
    return {V::broadcast(finite) * of.value, of.slope};
}

// --- float to double and back ----------------------------------------------------------------------------------

/// A vector of float, and the same in double.
template <class V>
struct in_both {
    V as_float;
    decltype(widen(V{})) wide;
};
template <class V>
RESIDUA_LANE_INLINE in_both<V> in_both_types(V v)
{
    return {v, widen(v)};
}
template <class V>
RESIDUA_LANE_INLINE in_both<V> load_in_both_types(const float* p)
{
    return {load<V>(p), load<decltype(widen(V{}))>(p)};
}

}  // namespace RESIDUA_PASS
