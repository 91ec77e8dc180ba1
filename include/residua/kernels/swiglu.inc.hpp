// The gated activations y = a(gate) b(up). A form is two factors; the operation, its gradient and its derivative are
// written once over any two.

namespace RESIDUA_PASS {

// --- the factor of the gate ------------------------------------------------------------------------------------
//
// product   a(gate) times a factor, in what the form computes with: only the result may leave the range. Forms that are
//           `wide` have none; they are computed from the following
// exact     a(gate), in double
// slope     a'(gate), in double
// passes    where the gradient does
// of_floats g a and g a' of a gate that was float (of_floats.inc.hpp), and `passes`, where it does not everywhere

/// A factor and its derivative, which passes the gradient in some lanes.
template <class V, class M>
struct factor_and_slope {
    V value, slope;
    M passes;
};
template <class V, class M>
RESIDUA_LANE_INLINE factor_and_slope<V, M> where_passing(value_and_slope<V> of, M passes)
{
    return {of.value, of.slope, passes};
}

struct always_passes {
    template <class V>
    RESIDUA_LANE_INLINE auto passes(V x) const
    {
        return x == x;
    }
};

#define RESIDUA_SCALED_FACTOR(name, function)                      \
    struct name : always_passes {                                  \
        static constexpr bool wide = true;                         \
        template <class V>                                         \
        RESIDUA_LANE_INLINE scaled_extended<V> exact(V gate) const \
        {                                                          \
            return scaled_##function(gate);                        \
        }                                                          \
        template <class V>                                         \
        RESIDUA_LANE_INLINE scaled_extended<V> slope(V gate) const \
        {                                                          \
            return function##_slope(gate);                         \
        }                                                          \
        template <class V>                                         \
        RESIDUA_LANE_INLINE auto of_floats(V g, V gate) const      \
        {                                                          \
            return times_##function(g, gate);                      \
        }                                                          \
    };
RESIDUA_SCALED_FACTOR(gelu_factor, gelu)
RESIDUA_SCALED_FACTOR(gelu_tanh_factor, gelu_tanh)
#undef RESIDUA_SCALED_FACTOR

template <accuracy A = accuracy::standard>
struct silu_factor : always_passes {
    static constexpr bool wide = false;
    template <class V>
    RESIDUA_LANE_INLINE V product(V gate, V factor) const
    {
        return silu_product<A>(gate, factor);
    }
    template <class V>
    RESIDUA_LANE_INLINE scaled_number<A, V> exact(V gate) const
    {
        return scaled_silu<A>(gate);
    }
    template <class V>
    RESIDUA_LANE_INLINE scaled_number<A, V> slope(V gate) const
    {
        return silu_slope<A>(gate);
    }
    template <class V>
    RESIDUA_LANE_INLINE auto of_floats(V g, V gate) const
    {
        return times_silu(g, gate);
    }
};

/// gate sigmoid(alpha gate)
template <class T, accuracy A>
struct silu_factor_of : always_passes {
    static constexpr bool wide = false;
    T alpha;

    RESIDUA_LANE_INLINE explicit silu_factor_of(T a) : alpha{a} {}
    template <class V>
    RESIDUA_LANE_INLINE V product(V gate, V factor, V low = zero<V>()) const
    {
        return silu_product<A>(gate, V::broadcast(scalar<V>(alpha)), factor, low);
    }
    template <class V>
    RESIDUA_LANE_INLINE scaled_extended<V> exact(V gate) const
    {
        return scaled_silu(gate, V::broadcast(scalar<V>(alpha)));
    }
    template <class V>
    RESIDUA_LANE_INLINE scaled_extended<V> slope(V gate) const
    {
        return silu_slope_at(gate, V::broadcast(scalar<V>(alpha)));
    }
    template <class V>
    RESIDUA_LANE_INLINE auto of_floats(V g, V gate) const
    {
        return times_silu(g, gate, static_cast<double>(alpha));
    }
};

template <accuracy A = accuracy::standard>
struct sigmoid_factor : always_passes {
    static constexpr bool wide = false;
    template <class V>
    RESIDUA_LANE_INLINE V product(V gate, V factor) const
    {
        return sigmoid_product<A>(gate, factor);
    }
    template <class V>
    RESIDUA_LANE_INLINE scaled_number<A, V> exact(V gate) const
    {
        return scaled_sigmoid<A>(gate);
    }
    template <class V>
    RESIDUA_LANE_INLINE scaled_number<A, V> slope(V gate) const
    {
        return sigmoid_slope<A>(gate);
    }
    template <class V>
    RESIDUA_LANE_INLINE auto of_floats(V g, V gate) const
    {
        return times_sigmoid(g, gate);
    }
};

struct relu_factor {
    static constexpr bool wide = false;
    template <class V>
    RESIDUA_LANE_INLINE V product(V gate, V factor) const
    {
        return relu(gate) * factor;
    }
    template <class V>
    RESIDUA_LANE_INLINE scaled_extended<V> exact(V gate) const
    {
        return exactly(split(relu(gate)));
    }
    template <class V>
    RESIDUA_LANE_INLINE scaled_extended<V> slope(V) const
    {
        return exactly(scaled<V>{V::broadcast(1), zero<V>()});
    }
    template <class V>
    RESIDUA_LANE_INLINE auto passes(V gate) const
    {
        return zero<V>() < gate;
    }
    template <class V>
    RESIDUA_LANE_INLINE auto of_floats(V g, V gate) const
    {
        return where_passing(value_and_slope<V>{relu(gate) * g, g}, passes(gate));
    }
};

/// x, at most limit; a NaN stays.
template <class V>
RESIDUA_LANE_INLINE V from_above(V x, V limit)
{
    return min(limit, x);
}
template <class V>
RESIDUA_LANE_INLINE V on_both_sides(V x, V limit)
{
    return max(-limit, min(limit, x));
}

/// A gate that is clamped from above before its function.
template <class Gate, class T>
struct clamped_factor {
    static constexpr bool wide = false;
    T limit;
    Gate inner;

    template <class V>
    RESIDUA_LANE_INLINE V clamped(V gate) const
    {
        return from_above(gate, V::broadcast(scalar<V>(limit)));
    }
    template <class V, class... Low>
    RESIDUA_LANE_INLINE V product(V gate, V factor, Low... low) const
    {
        return inner.product(clamped(gate), factor, low...);
    }
    template <class V>
    RESIDUA_LANE_INLINE auto exact(V gate) const
    {
        return inner.exact(clamped(gate));
    }
    template <class V>
    RESIDUA_LANE_INLINE auto slope(V gate) const
    {
        return inner.slope(clamped(gate));
    }
    template <class V>
    RESIDUA_LANE_INLINE auto passes(V gate) const
    {
        return gate <= V::broadcast(scalar<V>(limit));
    }
    template <class V>
    RESIDUA_LANE_INLINE auto of_floats(V g, V gate) const
    {
        return where_passing(inner.of_floats(g, clamped(gate)), passes(gate));
    }
};

/// silu that is clamped from above after it is computed.
template <class T, accuracy A>
struct clamped_silu : silu_factor<A> {
    using silu_only = silu_factor<A>;
    T limit;

    RESIDUA_LANE_INLINE explicit clamped_silu(T most) : limit{most} {}
    template <class V>
    RESIDUA_LANE_INLINE V product(V gate, V factor) const
    {
        const V most = V::broadcast(scalar<V>(limit));
        return select(most < silu<A>(gate), most * factor, silu_only::product(gate, factor));
    }
    template <class V>
    RESIDUA_LANE_INLINE scaled_extended<V> exact(V gate) const
    {
        return select(passes(gate), scaled_silu<accuracy::precise>(gate),
                      exactly(split(V::broadcast(scalar<V>(limit)))));
    }
    template <class V>
    RESIDUA_LANE_INLINE auto passes(V gate) const
    {
        return !(V::broadcast(scalar<V>(limit)) < value(scaled_silu<accuracy::precise>(gate)));
    }
    template <class V>
    RESIDUA_LANE_INLINE auto of_floats(V g, V gate) const
    {
        const V one = V::broadcast(1);
        const V most = V::broadcast(scalar<V>(limit));
        const auto of = silu_only::of_floats(one, gate);
        return where_passing(value_and_slope<V>{min(most, of.value) * g, of.slope * g}, !(most < of.value));
    }
};

/// x / cap in two parts, the second 0 where tanh is 1.
template <class V>
RESIDUA_LANE_INLINE extended<V> quotient_with_tail(V x, V cap)
{
    const V quotient = x / cap;
    return {quotient, tail_within_reach(quotient, fma(-quotient, cap, x) / cap)};
}
/// cap tanh(x / cap), which is x itself where x / cap could lose bits as a subnormal number.
template <class V>
RESIDUA_LANE_INLINE scaled_extended<V> soft_cap(V x, V cap)
{
    const auto q = quotient_with_tail(x, cap);
    const scaled_extended<V> capped{tanh(q), zero<V>()};
    return select(abs(q.hi) < V::broadcast(0x1p-28), exactly(split(x)), capped * split(cap));
}
template <class V>
RESIDUA_LANE_INLINE scaled_extended<V> soft_cap_slope(V x, V cap)
{
    const auto q = quotient_with_tail(x, cap);
    return tanh_slope(q.hi, q.low);
}

/// beta tanh(gate / beta) sigmoid(gate)
template <class T>
struct soft_capped_factor : always_passes {
    static constexpr bool wide = true;
    T beta;

    RESIDUA_LANE_INLINE explicit soft_capped_factor(T cap) : beta{cap} {}
    template <class V>
    RESIDUA_LANE_INLINE scaled_extended<V> exact(V gate) const
    {
        return scaled_sigmoid<accuracy::precise>(gate) * soft_cap(gate, V::broadcast(scalar<V>(beta)));
    }
    template <class V>
    RESIDUA_LANE_INLINE scaled_extended<V> slope(V gate) const
    {
        const V cap = V::broadcast(scalar<V>(beta));
        return soft_cap_slope(gate, cap) * scaled_sigmoid<accuracy::precise>(gate)
               + sigmoid_slope<accuracy::precise>(gate) * soft_cap(gate, cap);
    }
    template <class V>
    RESIDUA_LANE_INLINE value_and_slope<V> of_floats(V g, V gate) const
    {
        // g comes last: an infinite one, times what is 0 where the slope is not, would be NaN
        const auto s = times_sigmoid(V::broadcast(1), gate);
        const auto capped = soft_cap_and_slope(gate, static_cast<double>(beta));
        const V slope = fma(capped.slope, s.value, s.slope * capped.value);
        return {(s.value * capped.value) * g, slope * g};
    }
};

// --- the factor of up ------------------------------------------------------------------------------------------
//
// factor    b(up), rounded once, and low what that takes, if anything
// exact     b(up), in double
// slope     b'(up), in double
// passes    where the gradient does
// of_floats b and b' of an up that was float, as above

struct plain_up : always_passes {
    template <class V>
    RESIDUA_LANE_INLINE V factor(V up) const
    {
        return up;
    }
    template <class V>
    RESIDUA_LANE_INLINE scaled<V> exact(V up) const
    {
        return split(up);
    }
    template <class V>
    RESIDUA_LANE_INLINE scaled<V> slope(V) const
    {
        return {V::broadcast(1), zero<V>()};
    }
    template <class V>
    RESIDUA_LANE_INLINE auto of_floats(V up) const
    {
        return value_and_slope<V>{up, V::broadcast(1)};
    }
};

/// clamp(up, -limit, limit)
template <class T>
struct clamped_up {
    T limit;

    template <class V>
    RESIDUA_LANE_INLINE V factor(V up) const
    {
        return on_both_sides(up, V::broadcast(scalar<V>(limit)));
    }
    template <class V>
    RESIDUA_LANE_INLINE scaled<V> exact(V up) const
    {
        return split(factor(up));
    }
    template <class V>
    RESIDUA_LANE_INLINE scaled<V> slope(V) const
    {
        return {V::broadcast(1), zero<V>()};
    }
    template <class V>
    RESIDUA_LANE_INLINE auto passes(V up) const
    {
        return abs(up) <= V::broadcast(scalar<V>(limit));
    }
    template <class V>
    RESIDUA_LANE_INLINE auto of_floats(V up) const
    {
        return where_passing(value_and_slope<V>{factor(up), V::broadcast(1)}, passes(up));
    }
};

/// clamp(up, -limit, limit) + 1
template <class T>
struct clamped_up_and_one : clamped_up<T> {
    template <class V>
    RESIDUA_LANE_INLINE V factor(V up) const
    {
        return sum(up).hi;
    }
    template <class V>
    RESIDUA_LANE_INLINE V low(V up) const
    {
        return sum(up).low;
    }
    template <class V>
    RESIDUA_LANE_INLINE auto exact(V up) const
    {
        return split(sum(up));
    }
    template <class V>
    RESIDUA_LANE_INLINE auto of_floats(V up) const
    {
        return where_passing(value_and_slope<V>{factor(up), V::broadcast(1)}, this->passes(up));
    }

private:
    template <class V>
    RESIDUA_LANE_INLINE extended<V> sum(V up) const
    {
        return exact_sum(clamped_up<T>::factor(up), V::broadcast(1));
    }
};

template <class T>
struct soft_capped_up : always_passes {
    T cap;

    RESIDUA_LANE_INLINE explicit soft_capped_up(T most) : cap{most} {}
    template <class V>
    RESIDUA_LANE_INLINE V factor(V up) const
    {
        return value(exact(up));
    }
    template <class V>
    RESIDUA_LANE_INLINE scaled_extended<V> exact(V up) const
    {
        return soft_cap(up, V::broadcast(scalar<V>(cap)));
    }
    template <class V>
    RESIDUA_LANE_INLINE scaled_extended<V> slope(V up) const
    {
        return soft_cap_slope(up, V::broadcast(scalar<V>(cap)));
    }
    template <class V>
    RESIDUA_LANE_INLINE auto of_floats(V up) const
    {
        return soft_cap_and_slope(up, static_cast<double>(cap));
    }
};

// --- the operation, its gradient and its derivative ------------------------------------------------------------

template <class Gate, class Up>
struct gated_activation {
    using gate = Gate;
    Gate a;
    Up b;
};

/// How a form computes: one that is `wide` floats in double and doubles in two numbers each, others both as they are.
struct computes_as_it_reads {};
template <class Form>
using width_of = std::conditional_t<Form::gate::wide, computes_wide, computes_as_it_reads>;

template <class Form>
struct gated_of : width_of<Form> {
    Form f;

    RESIDUA_LANE_INLINE explicit gated_of(const Form& form) : f{form} {}
    template <class V>
    RESIDUA_LANE_INLINE V operator()(V gate, V up) const
    {
        if constexpr (Form::gate::wide && std::is_same_v<scalar<V>, float>) {
            return (*this)(in_both_types(gate), in_both_types(up));
        } else if constexpr (Form::gate::wide) {
            return value(f.a.exact(gate) * f.b.exact(up));
        } else if constexpr (requires { f.b.low(up); }) {
            return f.a.product(gate, f.b.factor(up), f.b.low(up));
        } else {
            return f.a.product(gate, f.b.factor(up));
        }
    }
    template <class V>
    RESIDUA_LANE_INLINE V operator()(in_both<V> gate, in_both<V> up) const
    {
        return narrowed(f.a.of_floats(f.b.of_floats(up.wide).value, gate.wide).value);
    }
};
template <class Form>
struct factor_of_gate {
    Form f;

    template <class V>
    RESIDUA_LANE_INLINE V operator()(V gate) const
    {
        if constexpr (Form::gate::wide && std::is_same_v<scalar<V>, float>) {
            const auto wide = widen(gate);
            return narrowed(f.a.of_floats(decltype(wide)::broadcast(1), wide).value);
        } else if constexpr (Form::gate::wide) {
            return value(f.a.exact(gate));
        } else {
            return f.a.product(gate, V::broadcast(1));
        }
    }
};
template <class Form>
struct factor_of_up {
    Form f;

    template <class V>
    RESIDUA_LANE_INLINE V operator()(V up) const
    {
        if constexpr (Form::gate::wide && std::is_same_v<scalar<V>, float>) {
            return narrowed(f.b.of_floats(widen(up)).value);
        } else {
            return f.b.factor(up);
        }
    }
};
struct product_of_factors {
    template <class V>
    RESIDUA_LANE_INLINE V operator()(V a, V b) const
    {
        return a * b;
    }
};

/// v where m, else 0.
template <class M, class V>
RESIDUA_LANE_INLINE V where(M m, V v)
{
    return select(m, v, zero<V>());
}
template <class M, class V>
RESIDUA_LANE_INLINE extended<V> where(M m, extended<V> v)
{
    return {where(m, v.hi), where(m, v.low)};
}
/// 0 where the gradient does not pass.
template <class M, class V, class N>
RESIDUA_LANE_INLINE scaled<V, N> masked(M passes, scaled<V, N> partial)
{
    return {where(passes, partial.m), partial.n};
}
template <class M, class V>
RESIDUA_LANE_INLINE V nan_where(M bad, V v)
{
    return select(bad, V::broadcast(scalar<V>(__builtin_nan(""))), v);
}

/// Both at once.
template <class W, class V = decltype(narrow(W{}))>
RESIDUA_LANE_INLINE two<V> narrowed(two<W> v)
{
    if (all_normal_as_float(twice<W>{v.first, v.second})) [[likely]]
        return {narrow(v.first), narrow(v.second)};
    return {quickly_narrowed(v.first), quickly_narrowed(v.second)};
}

/// What a factor passes of a gradient.
template <class Factor, class V>
RESIDUA_LANE_INLINE V passed(const Factor& of, V partial)
{
    if constexpr (requires { of.passes; }) {
        return where(of.passes, partial);
    } else {
        return partial;
    }
}
/// Of partials that pass everywhere each is NaN by itself where an operand of its own is.
template <class A, class B>
inline constexpr bool blocks = requires(A a) { a.passes; } || requires(B b) { b.passes; };

template <class Form>
struct gated_vjp_of : computes_wide {
    Form f;

    RESIDUA_LANE_INLINE explicit gated_vjp_of(const Form& form) : f{form} {}
    template <class V>
    RESIDUA_LANE_INLINE two<V> operator()(V gate, V up, V dy) const
    {
        if constexpr (std::is_same_v<scalar<V>, float>) {
            return (*this)(in_both_types(gate), in_both_types(up), in_both_types(dy));
        } else {
            const auto gradient = split(dy);
            const auto dgate = masked(f.a.passes(gate), f.a.slope(gate) * f.b.exact(up) * gradient);
            const auto dup = masked(f.b.passes(up), f.a.exact(gate) * f.b.slope(up) * gradient);
            const auto bad = is_nan(gate) | is_nan(up) | is_nan(dy);
            return {nan_where(bad, value(dgate)), nan_where(bad, value(dup))};
        }
    }
    template <class V>
    RESIDUA_LANE_INLINE two<V> operator()(in_both<V> gate, in_both<V> up, in_both<V> dy) const
    {
        using W = decltype(gate.wide);
        const auto a = f.a.of_floats(dy.wide, gate.wide);
        const auto b = f.b.of_floats(up.wide);
        const two<V> y = narrowed(two<W>{passed(a, a.slope * b.value), passed(b, a.value * b.slope)});
        if constexpr (blocks<decltype(a), decltype(b)>) {
            const auto bad = is_nan(gate.as_float) | is_nan(up.as_float) | is_nan(dy.as_float);
            return {nan_where(bad, y.first), nan_where(bad, y.second)};
        } else {
            const V bad = V::broadcast(__builtin_nanf(""));
            return {y.first, select(up.as_float == up.as_float, y.second, bad)};
        }
    }
};
template <class Form>
struct gated_jvp_of : computes_wide {
    Form f;

    RESIDUA_LANE_INLINE explicit gated_jvp_of(const Form& form) : f{form} {}
    template <class V>
    RESIDUA_LANE_INLINE V operator()(V gate, V up, V tgate, V tup) const
    {
        if constexpr (std::is_same_v<scalar<V>, float>) {
            return (*this)(in_both_types(gate), in_both_types(up), in_both_types(tgate), in_both_types(tup));
        } else {
            const auto of_gate = masked(f.a.passes(gate), f.a.slope(gate) * f.b.exact(up) * tgate);
            const auto of_up = masked(f.b.passes(up), f.a.exact(gate) * f.b.slope(up) * tup);
            const auto bad = is_nan(gate) | is_nan(up) | is_nan(tgate) | is_nan(tup);
            return nan_where(bad, value(of_gate + of_up));
        }
    }
    template <class V>
    RESIDUA_LANE_INLINE V operator()(in_both<V> gate, in_both<V> up, in_both<V> tgate, in_both<V> tup) const
    {
        using W = decltype(gate.wide);
        const auto a = f.a.of_floats(W::broadcast(1), gate.wide);
        const auto b = f.b.of_floats(up.wide);
        const W of_gate = passed(a, (a.slope * b.value) * tgate.wide);
        const W of_up = passed(b, (a.value * b.slope) * tup.wide);
        const V y = narrowed(of_gate + of_up);
        if constexpr (blocks<decltype(a), decltype(b)>) {
            const auto bad = is_nan(gate.as_float) | is_nan(up.as_float) | is_nan(tgate.as_float);
            return nan_where(bad | is_nan(tup.as_float), y);
        } else {
            return y;
        }
    }
};

template <class T>
struct run_gated {
    shape s;
    output y;
    const input &gate, up;
    activation_rounding rounding;

    template <class Form>
    void operator()(const Form& f) const
    {
        if (rounding == activation_rounding::once) return map<T>(gated_of<Form>{f}, s, y, gate, up);
        for (std::size_t i = 0; i < s.rows; ++i) {
            const auto a = computed(factor_of_gate<Form>{f}, from<T>(gate, i));
            const auto b = computed(factor_of_up<Form>{f}, from<T>(up, i));
            const rounded_row<T> rounded_a{a.as_source(), gate.type};
            const rounded_row<T> rounded_b{b.as_source(), up.type};
            map_row(product_of_factors{}, s.columns, to<T>(y, i), rounded_a.as_source(), rounded_b.as_source());
        }
    }
};
template <class T>
struct run_gated_vjp {
    shape s;
    const output &dgate, dup;
    const input &gate, up, dy;

    template <class Form>
    void operator()(const Form& f) const
    {
        map_to_two<T>(gated_vjp_of<Form>{f}, s, dgate, dup, gate, up, dy);
    }
};
template <class T>
struct run_gated_jvp {
    shape s;
    output ty;
    const input &gate, up, tgate, tup;

    template <class Form>
    void operator()(const Form& f) const
    {
        map<T>(gated_jvp_of<Form>{f}, s, ty, gate, up, tgate, tup);
    }
};

template <class Run, class Gate, class Up>
inline void run_with(const Run& run, const Gate& a, const Up& b)
{
    run(gated_activation<Gate, Up>{a, b});
}

/// The forms.
template <accuracy A, class T, class Run>
inline void with_form(gated_form form, gated_numbers<T> numbers, const Run& run)
{
    const T x = numbers.first;
    const T z = numbers.second;
    switch (form) {
        case gated_form::swiglu: return run_with(run, silu_factor<A>{}, plain_up{});
        case gated_form::geglu: return run_with(run, gelu_factor{}, plain_up{});
        case gated_form::geglu_tanh: return run_with(run, gelu_tanh_factor{}, plain_up{});
        case gated_form::reglu: return run_with(run, relu_factor{}, plain_up{});
        case gated_form::gpt_oss_swiglu:
            return run_with(run, clamped_factor<silu_factor_of<T, A>, T>{x, silu_factor_of<T, A>{z}},
                            clamped_up_and_one<T>{{x}});
        case gated_form::clamped_swiglu:
            return run_with(run, clamped_factor<silu_factor<A>, T>{x, silu_factor<A>{}}, clamped_up<T>{x});
        case gated_form::swiglu_clamped_after: return run_with(run, clamped_silu<T, A>{x}, clamped_up<T>{x});
        case gated_form::situ_glu: return run_with(run, soft_capped_factor<T>{x}, soft_capped_up<T>{z});
        case gated_form::sigmoid_gate: return run_with(run, sigmoid_factor<A>{}, plain_up{});
    }
}

template <class T>
inline void gated(shape s, const output& y, const input& gate, const input& up, gated_form form,
                  gated_numbers<T> numbers, activation_rounding rounding, accuracy tier)
{
    const run_gated<T> run{s, y, gate, up, rounding};
    if (tier == accuracy::precise) return with_form<accuracy::precise>(form, numbers, run);
    with_form<accuracy::standard>(form, numbers, run);
}
template <class T>
inline void gated_vjp(shape s, const output& dgate, const output& dup, const input& gate, const input& up,
                      const input& dy, gated_form form, gated_numbers<T> numbers)
{
    with_form<accuracy::precise>(form, numbers, run_gated_vjp<T>{s, dgate, dup, gate, up, dy});
}
template <class T>
inline void gated_jvp(shape s, const output& ty, const input& gate, const input& up, const input& tgate,
                      const input& tup, gated_form form, gated_numbers<T> numbers)
{
    with_form<accuracy::precise>(form, numbers, run_gated_jvp<T>{s, ty, gate, up, tgate, tup});
}

}  // namespace RESIDUA_PASS
