// sigmoid, silu and what else is s = 1 / (1 + e^-x) times other numbers. The roundings of e^-x + 1 and of the division are
// computed and made good, and so is that of the product of the other numbers: the exponential's and the last remain.
//
// This holds where e^-x and the product are normal numbers. The few lanes elsewhere are computed again in double, where
// factors of float cannot leave the range, or with their power of two apart (activations.inc.hpp).

namespace RESIDUA_PASS {

/// s = z + z missing
template <class V>
struct logistic_terms {
    V z, missing;
};

/// For x + tail, to the bit what it is at normal_exp_reach beyond it. With e^-x = (1 + m) p the divisor is p m + (larger of
/// 1 and p) + (smaller), and `low` what its rounding takes: both differences are exact, or as good as.
template <accuracy A, class V>
RESIDUA_LANE_INLINE logistic_terms<V> logistic(V x, V tail)
{
    const V reach = V::broadcast(constants<scalar<V>>::normal_exp_reach);
    const auto e = exp_terms_of<-1>(max(-reach, min(reach, x)), -tail);
    const V one = V::broadcast(1);
    const V p = e.power;
    const V larger = max(one, p);
    const V smaller = min(one, p);
    const V d = fma(e.minus_one, p, larger + smaller);
    const V beyond = d - larger;
    const V missed = smaller - beyond;
    V low = fma(e.minus_one, p, missed);
    if constexpr (A == accuracy::precise) low = fma(e.low, p, low + (smaller - (missed + beyond)));
    const V z = one / d;
    return {z, fma(-low, z, fma(-d, z, one))};
}

/// The operands of s(x + tail) a (b + b_low). b_low is what a rounding of b took.
template <class V>
struct logistic_operands {
    V x, tail, a, b, b_low;
};

/// The same for any numbers of double: each factor without its power of two. Far below zero s is e^x.
template <class V>
RESIDUA_LANE_INLINE V in_parts(V x, V tail, V a, V b, V b_low)
{
    const V one = V::broadcast(1);
    const auto e = reduce_exp(x, activation_constants::reach, tail_within_reach(x, tail));
    const auto s = logistic<accuracy::precise>(x, tail);
    const auto far = x < V::broadcast(-constants<double>::normal_exp_reach);
    const V of_e = one + e.minus_one;
    const V hi = select(far, of_e, s.z);
    const V low = select(far, ((one - of_e) + e.minus_one) + e.low, s.z * s.missing);
    const auto a_parts = split(a);
    const auto b_parts = split(b);
    const V product = a_parts.m * b_parts.m;
    const V product_low = fma(a_parts.m, (b_low / b) * b_parts.m, fma(a_parts.m, b_parts.m, -product));
    const V rest = fma(product, low, finite_tail(product_low) * hi);
    const V n = (a_parts.n + b_parts.n) + select(far, e.n, zero<V>());
    return value(scaled<V>{fma(product, hi, finite_tail(rest)), n});
}

/// The same for any numbers: one vector in memory. `Falling`: where x is -infinity, a is so only because x is.
template <bool Falling, class V>
RESIDUA_OUT_OF_LINE void any_logistic_product(const scalar<V>* x, const scalar<V>* tail, const scalar<V>* a,
                                              const scalar<V>* b, const scalar<V>* b_low, scalar<V>* y)
{
    V factor = load<V>(a);
    if constexpr (Falling) factor = max(V::broadcast(-format<scalar<V>>::largest), factor);
    if constexpr (std::is_same_v<scalar<V>, float>) {
        // in double no product of floats leaves the range, and beyond logistic's reach it is 0 as a float
        const auto s = logistic<accuracy::standard>(widen(load<V>(x)), widen(load<V>(tail)));
        const auto sum = widen(load<V>(b)) + widen(load<V>(b_low));
        quickly_narrowed((widen(factor) * sum) * s.z).store(y);
    } else {
        in_parts(load<V>(x), load<V>(tail), factor, load<V>(b), load<V>(b_low)).store(y);
    }
}

/// Whether y can be what the terms of `logistic` give: x is within its reach, and nothing has left the range: where a
/// product has, what its rounding took is NaN or infinite the other way. To be precise the last of the terms has to be a
/// normal number too, unless all are zero.
template <accuracy A, class V>
RESIDUA_LANE_INLINE auto is_ordinary(const logistic_operands<V>& of, V y)
{
    using c = constants<scalar<V>>;
    const auto within = (V::broadcast(-c::normal_exp_reach) < of.x) & (y == y);
    if constexpr (A == accuracy::precise) {
        const auto zeros = (of.a == zero<V>()) | (of.b == zero<V>());
        return within & ((V::broadcast(c::least_precise) < abs(y)) | zeros);
    } else {
        return within;
    }
}

/// y, or where that cannot be, the same computed in another way.
template <accuracy A, bool Falling, class V>
RESIDUA_LANE_INLINE V unless_extreme(V y, const logistic_operands<V>& of)
{
    const auto ordinary = is_ordinary<A>(of, y);
    if (!all(ordinary)) {
        alignas(64) scalar<V> memory[6][V::size];
        of.x.store(memory[0]);
        of.tail.store(memory[1]);
        of.a.store(memory[2]);
        of.b.store(memory[3]);
        of.b_low.store(memory[4]);
        any_logistic_product<Falling, V>(memory[0], memory[1], memory[2], memory[3], memory[4], memory[5]);
        y = select(ordinary, y, V::load(memory[5]));
    }
    return y;
}

/// (hi + low) s
template <class V>
RESIDUA_LANE_INLINE V times(logistic_terms<V> s, V hi, V low)
{
    return copysign(fma(hi, s.z, s.z * fma(hi, s.missing, low)), hi);
}

/// s(x) a
template <accuracy A, bool Falling = false, class V>
RESIDUA_LANE_INLINE V sigmoid_product(V x, V a)
{
    const V y = times(logistic<A>(x, zero<V>()), a, zero<V>());
    return unless_extreme<A, Falling>(y, logistic_operands<V>{x, zero<V>(), a, V::broadcast(1), zero<V>()});
}

/// 1 / (1 + e^-x)
template <accuracy A = accuracy::standard, class V>
RESIDUA_LANE_INLINE V sigmoid(V x)
{
    return sigmoid_product<A>(x, V::broadcast(1));
}
template <accuracy A = accuracy::standard, class V>
RESIDUA_LANE_INLINE V silu(V x)
{
    return sigmoid_product<A, true>(x, x);
}

/// silu(x) b
template <accuracy A, class V>
RESIDUA_LANE_INLINE V silu_product(V x, V b)
{
    const V product = x * b;
    const V y = times(logistic<A>(x, zero<V>()), product, fma(x, b, -product));
    return unless_extreme<A, true>(y, logistic_operands<V>{x, zero<V>(), x, b, zero<V>()});
}

/// x s(slope x) (b + b_low) with slope > 0; b_low is what a rounding of b took, and that of slope x is carried along.
template <accuracy A, class V>
RESIDUA_LANE_INLINE V silu_product(V x, V slope, V b, V b_low)
{
    const V u = slope * x;
    const V tail = finite_tail(fma(slope, x, -u));
    const V product = x * b;
    const V y = times(logistic<A>(u, tail), product, fma(x, b_low, fma(x, b, -product)));
    return unless_extreme<A, true>(y, logistic_operands<V>{u, tail, x, b, b_low});
}

}  // namespace RESIDUA_PASS
