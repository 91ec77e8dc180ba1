/// \file
/// The gated activations of a feed-forward layer, y = a(gate) b(up): SwiGLU, GEGLU, ReGLU, their clamped and capped
/// forms, and the output gate of attention.
///
/// Every form is a family of functions; for `swiglu`:
///
///     swiglu(y, gate, up, options)                        y = a(gate) b(up)
///     swiglu_vjp(dgate, dup, gate, up, dy, options)       dgate = dy a'(gate) b(up), dup = dy a(gate) b'(up)
///     swiglu_jvp(ty, gate, up, tgate, tup, options)       ty = a'(gate) b(up) tgate + a(gate) b'(up) tup
///     swiglu(y, halves(z), options)                       the same of a z that holds gate and up, which goes
///     swiglu_vjp(halves(dz), halves(z), dy, options)      for `interleaved(z)` too
///     swiglu_jvp(ty, halves(z), halves(tz), options)
///
/// Shapes: all operands have the same rows and columns, each its own stride; z has twice the columns.
/// Aliasing: outputs are overwritten. Each may be exactly one of the inputs: dz may be z, y one half of z (not of an
/// interleaved z). Any other overlap is an error.
/// Errors: shapes that differ, a z with an odd number of columns, overlap, an option that is not positive or is NaN:
/// RESIDUA_ASSERT.
/// Options: `{.rounding = activation_rounding::before_product}` makes both factors be rounded to the types of gate and
/// up before they are multiplied, as where a model stores silu(gate); by default y is rounded once (of `geglu`,
/// `geglu_tanh` and `situ_glu` in 16 bits by way of float). (Eager GPT-OSS
/// rounds alpha gate and its sigmoid too, which has no name here.) Gradients and derivatives are those of the formula.
/// The limits of a form come with it; an infinite limit clamps nothing, to the bit (but for which NaN a NaN is).
/// `{.accuracy = accuracy::precise}` lowers the bound of y.
///
/// y: NaN in gate or up gives NaN, through every clamp. gate = -infinity is the limit of finite gates: of `sigmoid_gate` +0
/// up, of the others -0 up, and infinite for an infinite up that is not clamped; of `reglu` +0 up, so NaN for an infinite up.
/// Gradients: computed in double for every type, and rounded once (of 16 bits by way of float); no product leaves the range
/// on the way. What is clamped passes no gradient, not even an infinite one; at equality it passes. At a gate of 0 `reglu`
/// passes none. NaN in any input gives NaN in every output.
/// Error of y, over the whole range and subnormal results included: at most 2 ulp, precise 1 ulp; `geglu`, `geglu_tanh` and
/// `situ_glu` 1 ulp, `reglu` half an ulp, either way.
/// Error of gradients: at most 1 ulp, next to a zero of a' too; of the sum in a JVP, and of dgate of `situ_glu`, which is one
/// too: 1 ulp of the sum or of its largest term, whichever is larger.
/// How they were measured over every float: docs, Accuracy.
/// Speed: results that are subnormal because the gate is far below zero take two to three times as long; where the product
/// of gate and up is subnormal, x86 CPUs compute it by microcode, and `swiglu` and its like take 30 times as long.
#if !defined(RESIDUA_SWIGLU_HPP) || defined(RESIDUA_DISPATCH_PASS)
#ifndef RESIDUA_DISPATCH_PASS
#define RESIDUA_SWIGLU_HPP
#include <residua/kernels/static_pass.hpp>
#endif

namespace RESIDUA_API {

/// A matrix whose rows hold gate and up: what `halves` and `interleaved` make.
template <class T>
struct gate_and_up {
    using element_type = T;
    rows<T> z;
    bool is_interleaved;
};

/// The first half of each row of z is the gate, the second is up.
template <readable_rows Z>
constexpr auto halves(Z&& z) noexcept
{
    return gate_and_up<detail::element_of<Z&&>>{detail::view(z), false};
}
/// z[0], z[2], ... of each row are the gate, z[1], z[3], ... are up.
template <readable_rows Z>
constexpr auto interleaved(Z&& z) noexcept
{
    return gate_and_up<detail::element_of<Z&&>>{detail::view(z), true};
}

// --- the forms -------------------------------------------------------------------------------------------------

/// The options of forms without numbers of their own.
template <class T>
struct gated_options {
    activation_rounding rounding = activation_rounding::once;
    residua::accuracy accuracy = residua::accuracy::standard;
};

/// The options of forms with a limit.
template <class T>
struct clamped_swiglu_options {
    required<T> limit;
    activation_rounding rounding = activation_rounding::once;
    residua::accuracy accuracy = residua::accuracy::standard;
};

/// The options of `gpt_oss_swiglu`, with the model's values.
template <class T>
struct gpt_oss_swiglu_options {
    T limit = T(7);
    T alpha = T(1.702);
    activation_rounding rounding = activation_rounding::once;
    residua::accuracy accuracy = residua::accuracy::standard;
};

/// The options of `situ_glu`, with the values of Kimi K3.
template <class T>
struct situ_glu_options {
    T beta = T(4);
    T linear_beta = T(25);
    activation_rounding rounding = activation_rounding::once;
    residua::accuracy accuracy = residua::accuracy::standard;
};

namespace local {

using operand::gated_form;
using operand::gated_numbers;

// What belongs to a form besides its operands.
template <class T>
constexpr gated_numbers<T> numbers_of(gated_options<T>)
{
    return {1, 1};
}
template <class T>
constexpr gated_numbers<T> numbers_of(clamped_swiglu_options<T> o)
{
    return {o.limit.value, 1};
}
template <class T>
constexpr gated_numbers<T> numbers_of(gpt_oss_swiglu_options<T> o)
{
    return {o.limit, o.alpha};
}
template <class T>
constexpr gated_numbers<T> numbers_of(situ_glu_options<T> o)
{
    return {o.beta, o.linear_beta};
}

template <class P>
inline constexpr bool holds_gate_and_up = false;
template <class T>
inline constexpr bool holds_gate_and_up<gate_and_up<T>> = true;

/// Rows of elements that are `step` apart.
template <class T>
struct spaced_rows {
    using value_type = std::remove_const_t<T>;
    rows<T> r;
    std::uint8_t step;

    /// Everything from the first to the last element of each row.
    constexpr rows<T> span() const
    {
        return {r.data, r.count, r.columns == 0 ? 0 : (r.columns - 1) * step + 1, r.stride};
    }
    constexpr operand::input input() const
    {
        return {r.data, r.stride, operand::element_of_type<value_type>, step};
    }
    constexpr auto output() const { return detail::memory(r, step); }
};

/// The operands gate and up, however they lie.
template <class G, class U>
struct gated_pair {
    spaced_rows<G> gate;
    spaced_rows<U> up;
    bool even;      // the columns of z
    bool distinct;  // its rows

    constexpr operand::shape shape() const { return detail::shape_of(gate.r); }
};
template <class G, class U>
constexpr auto pair_of(rows<G> gate, rows<U> up)
{
    return gated_pair<G, U>{{gate, 1}, {up, 1}, true, true};
}
template <class T>
constexpr auto pair_of(gate_and_up<T> p)
{
    const std::size_t n = p.z.columns / 2;
    const bool empty = p.z.count == 0 || n == 0;
    const std::ptrdiff_t second = empty ? 0 : p.is_interleaved ? 1 : static_cast<std::ptrdiff_t>(n);
    const std::uint8_t step = p.is_interleaved ? 2 : 1;
    rows<T> gate{p.z.data, p.z.count, n, p.z.stride};
    rows<T> up{p.z.data + second, p.z.count, n, p.z.stride};
    gate.stores = up.stores = p.z.stores;
    return gated_pair<T, T>{{gate, step}, {up, step}, p.z.columns % 2 == 0, detail::distinct(p.z)};
}

template <class T, class... U>
bool same_shape(const spaced_rows<T>& a, const spaced_rows<U>&... b)
{
    return detail::same_shape(a.r, b.r...);
}

/// Whether two of these share no element: they are apart, or the two halves of an interleaved matrix.
template <class T, class U>
bool apart(const spaced_rows<T>& a, const spaced_rows<U>& b)
{
    const void* const first = a.r.data;
    const bool siblings = first != nullptr && b.r.data != nullptr && a.step == 2 && b.step == 2
                          && a.r.stride == b.r.stride && sizeof(T) == sizeof(U)
                          && (first == static_cast<const void*>(b.r.data + 1)
                              || static_cast<const void*>(a.r.data + 1) == static_cast<const void*>(b.r.data));
    return siblings || detail::apart(a.span(), b.span());
}
/// Whether an output may be written while the inputs are read.
template <class T, class... U>
bool same_or_apart(const spaced_rows<T>& out, const spaced_rows<U>&... in)
{
    const auto same = [&](const auto& other) {
        return out.step == other.step
               && static_cast<const void*>(out.r.data) == static_cast<const void*>(other.r.data)
               && (out.r.stride == other.r.stride || out.r.count == 1)
               && sizeof(*out.r.data) == sizeof(*other.r.data);
    };
    return detail::distinct(out.span()) && ((same(in) || local::apart(out, in)) && ...);
}

template <class T>
void check_numbers([[maybe_unused]] gated_numbers<T> numbers)
{
    RESIDUA_ASSERT(numbers.first > 0, "a gated activation: limit and beta must be positive");
    RESIDUA_ASSERT(numbers.second > 0, "a gated activation: alpha and linear_beta (a beta) must be positive");
}

template <class Y, class G, class U, class O>
void run_gated(gated_form form, rows<Y> y, const gated_pair<G, U>& in, const O& options)
{
    const spaced_rows<Y> out{y, 1};
    RESIDUA_ASSERT(in.even, "a gated activation: z must have an even number of columns");
    RESIDUA_ASSERT(local::same_shape(out, in.gate, in.up), "a gated activation: y, gate and up differ in shape");
    RESIDUA_ASSERT(local::same_or_apart(out, in.gate, in.up), "a gated activation: y and an input overlap in part");
    local::check_numbers(local::numbers_of(options));
    kernels::gated(in.shape(), out.output(), in.gate.input(), in.up.input(), form, local::numbers_of(options),
                   options.rounding, options.accuracy);
}

template <class DG, class DU, class G, class U, class DY, class O>
void run_gated_vjp(gated_form form, const gated_pair<DG, DU>& out, const gated_pair<G, U>& in, rows<const DY> dy,
                   const O& options)
{
    const spaced_rows<const DY> gradient{dy, 1};
    RESIDUA_ASSERT(in.even && out.even, "a gated activation: z must have an even number of columns");
    RESIDUA_ASSERT(local::same_shape(gradient, out.gate, out.up, in.gate, in.up),
                   "a gated activation: dgate, dup, gate, up and dy differ in shape");
    RESIDUA_ASSERT(out.distinct && local::same_or_apart(out.gate, in.gate, in.up, gradient)
                       && local::same_or_apart(out.up, in.gate, in.up, gradient) && local::apart(out.gate, out.up),
                   "a gated activation: a gradient overlaps the other, or an input in part");
    local::check_numbers(local::numbers_of(options));
    kernels::gated_vjp(in.shape(), out.gate.output(), out.up.output(), in.gate.input(), in.up.input(),
                       gradient.input(), form, local::numbers_of(options));
}

template <class TY, class G, class U, class TG, class TU, class O>
void run_gated_jvp(gated_form form, rows<TY> ty, const gated_pair<G, U>& in, const gated_pair<TG, TU>& along,
                   const O& options)
{
    const spaced_rows<TY> out{ty, 1};
    RESIDUA_ASSERT(in.even && along.even, "a gated activation: z must have an even number of columns");
    RESIDUA_ASSERT(local::same_shape(out, in.gate, in.up, along.gate, along.up),
                   "a gated activation: ty, gate, up, tgate and tup differ in shape");
    RESIDUA_ASSERT(local::same_or_apart(out, in.gate, in.up, along.gate, along.up),
                   "a gated activation: ty and an input overlap in part");
    local::check_numbers(local::numbers_of(options));
    kernels::gated_jvp(in.shape(), out.output(), in.gate.input(), in.up.input(), along.gate.input(),
                       along.up.input(), form, local::numbers_of(options));
}

template <class... R>
using arithmetic_of_elements =
    detail::arithmetic_of<std::remove_const_t<typename std::remove_cvref_t<R>::element_type>...>;

}  // namespace local

/// A z of `halves` or `interleaved`; one that can be written.
template <class P>
concept packed_rows = local::holds_gate_and_up<std::remove_cvref_t<P>>;
template <class P>
concept writable_packed_rows = packed_rows<P> && !std::is_const_v<typename std::remove_cvref_t<P>::element_type>;

// The functions of a form whose operands are called gate and up, and come in the order one, other.
#define RESIDUA_GATED_APART(name, options_of, one, other, gate, up)                                               \
    template <writable_rows Y, readable_rows A, readable_rows B>                                                  \
    void name(Y&& y, const A& one, const B& other,                                                                \
              options_of<detail::arithmetic<Y, const A&, const B&>> options = {})                                 \
    {                                                                                                             \
        local::run_gated(local::gated_form::name, detail::view(y),                                                \
                         local::pair_of(detail::constant_view(gate), detail::constant_view(up)), options);        \
    }                                                                                                             \
    template <writable_rows DA, writable_rows DB, readable_rows A, readable_rows B, readable_rows DY>             \
    void name##_vjp(DA&& d##one, DB&& d##other, const A& one, const B& other, const DY& dy,                       \
                    options_of<detail::arithmetic<DA, DB, const A&, const B&, const DY&>> options = {})           \
    {                                                                                                             \
        local::run_gated_vjp(local::gated_form::name, local::pair_of(detail::view(d##gate), detail::view(d##up)), \
                             local::pair_of(detail::constant_view(gate), detail::constant_view(up)),              \
                             detail::constant_view(dy), options);                                                 \
    }                                                                                                             \
    template <writable_rows TY, readable_rows A, readable_rows B, readable_rows TA, readable_rows TB>             \
    void name##_jvp(TY&& ty, const A& one, const B& other, const TA& t##one, const TB& t##other,                  \
                    options_of<detail::arithmetic<TY, const A&, const B&, const TA&, const TB&>> options = {})    \
    {                                                                                                             \
        local::run_gated_jvp(local::gated_form::name, detail::view(ty),                                           \
                             local::pair_of(detail::constant_view(gate), detail::constant_view(up)),              \
                             local::pair_of(detail::constant_view(t##gate), detail::constant_view(t##up)),        \
                             options);                                                                            \
    }

#define RESIDUA_GATED_PACKED(name, options_of)                                                                 \
    template <writable_rows Y, packed_rows Z>                                                                  \
    void name(Y&& y, const Z& z,                                                                               \
              options_of<local::arithmetic_of_elements<decltype(detail::view(y)), Z>> options = {})            \
    {                                                                                                          \
        local::run_gated(local::gated_form::name, detail::view(y), local::pair_of(z), options);                \
    }                                                                                                          \
    template <writable_packed_rows DZ, packed_rows Z, readable_rows DY>                                        \
    void name##_vjp(const DZ& dz, const Z& z, const DY& dy,                                                    \
                    options_of<local::arithmetic_of_elements<DZ, Z, decltype(detail::view(dy))>> options = {}) \
    {                                                                                                          \
        local::run_gated_vjp(local::gated_form::name, local::pair_of(dz), local::pair_of(z),                   \
                             detail::constant_view(dy), options);                                              \
    }                                                                                                          \
    template <writable_rows TY, packed_rows Z, packed_rows TZ>                                                 \
    void name##_jvp(TY&& ty, const Z& z, const TZ& tz,                                                         \
                    options_of<local::arithmetic_of_elements<decltype(detail::view(ty)), Z, TZ>> options = {}) \
    {                                                                                                          \
        local::run_gated_jvp(local::gated_form::name, detail::view(ty), local::pair_of(z), local::pair_of(tz), \
                             options);                                                                         \
    }

#define RESIDUA_GATED(name, options_of)                       \
    RESIDUA_GATED_APART(name, options_of, gate, up, gate, up) \
    RESIDUA_GATED_PACKED(name, options_of)

/// y = silu(gate) up, silu(g) = g / (1 + e^-g); also the silu gate of a norm's output or of attention, with up = x.
/// Source: Shazeer 2020, arXiv 2002.05202.
/// @{
RESIDUA_GATED(swiglu, gated_options)
/// @}

/// y = gelu(gate) up, gelu(g) = g Phi(g) with the normal distribution Phi (the erf form). Source: as above.
/// @{
RESIDUA_GATED(geglu, gated_options)
/// @}

/// y = gelu_tanh(gate) up, 0.5 g (1 + tanh(sqrt(2/pi) (g + 0.044715 g^3))). Source: Gemma.
/// @{
RESIDUA_GATED(geglu_tanh, gated_options)
/// @}

/// y = max(gate, 0) up; where the gate is not positive it passes no gradient. Source: Shazeer 2020.
/// @{
RESIDUA_GATED(reglu, gated_options)
/// @}

/// y = silu(min(gate, limit)) clamp(up, -limit, limit): the gate is clamped from above only, before the activation.
/// Source: DeepSeek V4's configuration (swiglu_limit 10).
/// @{
RESIDUA_GATED(clamped_swiglu, clamped_swiglu_options)
/// @}

/// y = min(silu(gate), limit) clamp(up, -limit, limit): clamped after the activation. Source: Step 3.5's configuration.
/// @{
RESIDUA_GATED(swiglu_clamped_after, clamped_swiglu_options)
/// @}

/// y = g sigmoid(alpha g) (clamp(up, -limit, limit) + 1), g = min(gate, limit). Source: GPT-OSS's reference code.
/// @{
RESIDUA_GATED(gpt_oss_swiglu, gpt_oss_swiglu_options)
/// @}

/// y = beta tanh(gate / beta) sigmoid(gate) * linear_beta tanh(up / linear_beta), so |y| < beta linear_beta.
/// Source: Kimi K3's configuration.
/// @{
RESIDUA_GATED(situ_glu, situ_glu_options)
/// @}

/// y = x sigmoid(gate), the output gate of attention: `sigmoid_gate(y, x, gate)`, `sigmoid_gate_vjp(dx, dgate, x, gate,
/// dy)`, `sigmoid_gate_jvp(ty, x, gate, tx, tgate)`. In a packed z the gate comes first, as everywhere. Sources: Qwen3-Next;
/// Qiu et al. 2025, arXiv 2505.06708.
/// @{
RESIDUA_GATED_APART(sigmoid_gate, gated_options, x, gate, gate, x)
RESIDUA_GATED_PACKED(sigmoid_gate, gated_options)
/// @}

#undef RESIDUA_GATED
#undef RESIDUA_GATED_PACKED
#undef RESIDUA_GATED_APART

}  // namespace RESIDUA_API

#endif
