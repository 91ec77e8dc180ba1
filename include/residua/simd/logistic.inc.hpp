// sigmoid, silu and what else is a product of numbers divided by 1 + e^-x. What the roundings of the product and of the
// divisor took is made good: those of the exponential and of the quotient remain.
//
// Far below zero, where e^-x leaves the range, the divisor is scaled and the quotient after it. The few lanes whose product
// does are computed again in double, where factors of float cannot, or with their power of two apart (activations.inc.hpp).

namespace RESIDUA_PASS {

/// (unit + e^-(x + tail)) 2^-k for an x that is not below -logistic_reach, where that is a normal number; to the bit what it
/// is at normal_exp_reach beyond that. With e^-x = p + m p, p a power of two, only m is not exact. k is in the bits of an
/// exponent; unit is 1, or 0 where k is not 0.
template <accuracy A, class V>
RESIDUA_LANE_INLINE extended<V> logistic_divisor(V x, V tail, V unit, bits_of<V> k)
{
    const V reach = V::broadcast(constants<scalar<V>>::normal_exp_reach);
    const auto e = exp_terms_of<-1>(min(reach, x), -tail, constants<scalar<V>>::exp_in_sum);
    const V m = e.minus_one;
    const V p = from_bits(to_bits(e.power) - k);
    const V sum = unit + p;
    const V d = fma(m, p, sum);
    if constexpr (A == accuracy::precise) {
        const V missed = min(unit, p) - (sum - max(unit, p));
        return {d, fma(m, p, sum - d) + fma(e.low, p, missed)};
    } else {
        // (exact unless p is below 2^-23, where m counts little, or so large that unit does)
        return {d, fma(m, p, unit - (d - p))};
    }
}
/// For an x above -normal_exp_reach.
template <accuracy A, class V>
RESIDUA_LANE_INLINE extended<V> logistic_divisor(V x, V tail)
{
    return logistic_divisor<A>(x, tail, V::broadcast(1), bits_of<V>::broadcast(0));
}

/// 1/d within an eighth, for a normal number: the bits of a number are nearly its logarithm.
template <class V>
RESIDUA_LANE_INLINE V rough_reciprocal(V d)
{
    return from_bits(bits_of<V>::broadcast(constants<scalar<V>>::rough_reciprocal) - to_bits(d));
}

/// (n - excess) / divisor: the quotient of the first parts, and roughly what it lacks, in which to be precise its own
/// rounding is counted; with the sign of n also where it is 0.
template <accuracy A, class V>
RESIDUA_LANE_INLINE V divided(V n, V excess, extended<V> divisor)
{
    const V quotient = n / divisor.hi;
    V too_much = fma(quotient, divisor.low, excess);
    if constexpr (A == accuracy::precise) too_much = too_much - fma(-quotient, divisor.hi, n);
    const V y = fma(-too_much, rough_reciprocal(divisor.hi), quotient);
    return from_bits(to_bits(y) | (to_bits(n) & to_bits(V::broadcast(scalar<V>(-0.0)))));
}

/// The operands of s(x + tail) a (b + b_low). b_low is what a rounding of b took.
template <class V>
struct logistic_operands {
    V x, tail, a, b, b_low;
};

/// s(x + tail) a (b + b_low) for any numbers of double: each factor without its power of two. Far below zero s is e^x.
template <class V>
RESIDUA_LANE_INLINE V in_parts(V x, V tail, V a, V b, V b_low)
{
    const V one = V::broadcast(1);
    const auto e = reduce_exp(x, activation_constants::reach, tail_within_reach(x, tail));
    const V reach = V::broadcast(constants<double>::normal_exp_reach);
    const auto s = extended<V>{one, zero<V>()} / logistic_divisor<accuracy::precise>(max(-reach, x), tail);
    const auto low = x < -reach;
    const V of_e = one + e.minus_one;
    const V hi = select(low, of_e, s.hi);
    const V rounding = select(low, ((one - of_e) + e.minus_one) + e.low, s.low);
    const auto a_parts = split(a);
    const auto b_parts = split(b);
    const V product = a_parts.m * b_parts.m;
    const V product_low = fma(a_parts.m, (b_low / b) * b_parts.m, fma(a_parts.m, b_parts.m, -product));
    const V rest = fma(product, rounding, finite_tail(product_low) * hi);
    const V n = (a_parts.n + b_parts.n) + select(low, e.n, zero<V>());
    return value(scaled<V>{fma(product, hi, finite_tail(rest)), n});
}

/// Whether x is above `lowest` and the product in the numerator is finite; to be precise what its rounding took has to be a
/// normal number too, unless all is zero.
template <accuracy A, class V>
RESIDUA_LANE_INLINE auto is_in_range(V x, V product, scalar<V> lowest)
{
    using c = constants<scalar<V>>;
    const auto within = V::broadcast(lowest) < x + (product - product);
    if constexpr (A == accuracy::precise) {
        return within & ((V::broadcast(c::least_precise) < abs(product)) | (product == zero<V>()));
    } else {
        return within;
    }
}
template <class V>
inline constexpr scalar<V> anywhere = -static_cast<scalar<V>>(__builtin_inf());

/// The same for any numbers: one vector in memory, where y are those in range. `Falling`: where x is -infinity, a is so only
/// because x is.
template <accuracy A, bool Falling, class V>
RESIDUA_OUT_OF_LINE void any_logistic_product(const scalar<V>* x_at, const scalar<V>* tail_at,
                                              const scalar<V>* a_at, const scalar<V>* b_at,
                                              const scalar<V>* b_low_at, scalar<V>* y)
{
    const V x = V::load(x_at), tail = V::load(tail_at), a = V::load(a_at), b = V::load(b_at);
    const V b_low = finite_tail(V::load(b_low_at));
    V factor = a;
    if constexpr (Falling) factor = max(V::broadcast(-format<scalar<V>>::largest), factor);
    V any = x;
    if constexpr (std::is_same_v<scalar<V>, float>) {
        // in double no product of floats leaves the range
        const auto e = exp_of_negative(within(widen(x) + widen(tail), constants_of_floats::reach)).power;
        any = quickly_narrowed((widen(factor) * (widen(b) + widen(b_low))) / (decltype(e)::broadcast(1) + e));
    } else {
        any = in_parts(x, tail, factor, b, b_low);
    }
    // of a zero the sign may be another
    select(is_in_range<A>(x, a * b, anywhere<V>), V::load(y), copysign(any, factor * b)).store(y);
}

/// The same, of which the product a b and what it exceeds a (b + b_low) by are known; some x may be far below zero.
template <accuracy A, bool Falling, class V>
RESIDUA_LANE_INLINE V rare_logistic_product(V product, V excess, const logistic_operands<V>& of)
{
    using U = bits_of<V>;
    using c = constants<scalar<V>>;
    // Other lanes are 0 here, which is quickly computed; they come last.
    const auto in_range = is_in_range<A>(of.x, product, anywhere<V>);
    const V x = select(in_range, max(V::broadcast(-c::logistic_reach), of.x), zero<V>());
    const auto in_reach = V::broadcast(-c::normal_exp_reach) < x;
    const auto very_low = x < V::broadcast(-c::very_low);
    const U low_steps = select_bits(very_low, U::broadcast(c::very_low_steps), U::broadcast(c::low_steps));
    const U k = select_bits(in_reach, U::broadcast(0), low_steps);
    const auto divisor = logistic_divisor<A>(x, of.tail, select(in_reach, V::broadcast(1), zero<V>()), k);
    product = select(in_range, product, zero<V>());
    excess = select(in_range, excess, zero<V>());
    V y = scaled_down(divided<A>(product, excess, divisor), k);
    if (!all(in_range)) {
        alignas(64) scalar<V> memory[6][V::size];
        of.x.store(memory[0]);
        of.tail.store(memory[1]);
        of.a.store(memory[2]);
        of.b.store(memory[3]);
        of.b_low.store(memory[4]);
        y.store(memory[5]);
        any_logistic_product<A, Falling, V>(memory[0], memory[1], memory[2], memory[3], memory[4], memory[5]);
        y = V::load(memory[5]);
    }
    return y;
}
template <accuracy A, bool Falling, class V>
RESIDUA_LANE_INLINE V logistic_product(V product, V excess, const logistic_operands<V>& of)
{
    if (all(is_in_range<A>(of.x, product, -constants<scalar<V>>::normal_exp_reach))) [[likely]] {
        return divided<A>(product, excess, logistic_divisor<A>(of.x, of.tail));
    }
    return rare_logistic_product<A, Falling>(product, excess, of);
}

/// s(x) a
template <accuracy A, bool Falling = false, class V>
RESIDUA_LANE_INLINE V sigmoid_product(V x, V a)
{
    return logistic_product<A, Falling>(a, zero<V>(),
                                        logistic_operands<V>{x, zero<V>(), a, V::broadcast(1), zero<V>()});
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
    return logistic_product<A, true>(product, fma(-x, b, product),
                                     logistic_operands<V>{x, zero<V>(), x, b, zero<V>()});
}

/// x s(slope x) (b + b_low) with slope > 0; b_low is what a rounding of b took, and that of slope x is carried along.
template <accuracy A, class V>
RESIDUA_LANE_INLINE V silu_product(V x, V slope, V b, V b_low)
{
    const V u = slope * x;
    // (which says nothing, and may be huge, where u is bounded)
    const auto counts = abs(u) < V::broadcast(constants<scalar<V>>::logistic_reach);
    const V tail = select(counts, fma(slope, x, -u), zero<V>());
    const V product = x * b;
    return logistic_product<A, true>(product, fma(-x, b_low, fma(-x, b, product)),
                                     logistic_operands<V>{u, tail, x, b, b_low});
}

}  // namespace RESIDUA_PASS
