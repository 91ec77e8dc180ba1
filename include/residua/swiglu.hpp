/// \file
/// SwiGLU and its clamped and capped forms.
///
/// Shapes: y, gate and up have the same rows and columns, each its own stride. y may be exactly gate or up; it is
/// overwritten. Errors: shapes that differ, partial overlap, an option that is not positive or is NaN: RESIDUA_ASSERT.
/// NaN in gate or up gives NaN, through every clamp. gate = -infinity is the limit of finite gates: -0 up, and infinite
/// for an infinite up. An infinite limit clamps nothing: the same bits as the plain form.
/// Error: at most 3 ulp over the whole range for the first three forms, subnormal results and results of subnormal
/// sigmoids included; at most 8 ulp for `situ_glu`, which is a product of three functions.
#if !defined(RESIDUA_SWIGLU_HPP) || defined(RESIDUA_DISPATCH_PASS)
#ifndef RESIDUA_DISPATCH_PASS
#define RESIDUA_SWIGLU_HPP
#include <residua/kernels/static_pass.hpp>
#endif

namespace RESIDUA_API {

/// y = silu(gate) up, silu(g) = g / (1 + e^-g). Source: Shazeer 2020, arXiv 2002.05202.
template <writable_rows Y, readable_rows G, readable_rows U>
void swiglu(Y&& y, const G& gate, const U& up);

/// The options of `clamped_swiglu`; DeepSeek V4 uses 10.
template <class T>
struct clamped_swiglu_options {
    required<T> limit;
};

/// y = silu(min(gate, limit)) clamp(up, -limit, limit): the gate is clamped from above only, before the activation.
/// Source: DeepSeek V4's configuration (swiglu_limit).
template <writable_rows Y, readable_rows G, readable_rows U>
void clamped_swiglu(Y&& y, const G& gate, const U& up,
                    clamped_swiglu_options<detail::arithmetic<Y, const G&, const U&>> options);

/// The options of `gpt_oss_swiglu`, with the model's values.
template <class T>
struct gpt_oss_swiglu_options {
    T limit = T(7);
    T alpha = T(1.702);
};

/// y = (clamp(up, -limit, limit) + 1) g sigmoid(alpha g), g = min(gate, limit). Source: GPT-OSS's reference code.
template <writable_rows Y, readable_rows G, readable_rows U>
void gpt_oss_swiglu(Y&& y, const G& gate, const U& up,
                    gpt_oss_swiglu_options<detail::arithmetic<Y, const G&, const U&>> options = {});

/// The options of `situ_glu`, with the values of Kimi K3.
template <class T>
struct situ_glu_options {
    T beta = T(4);
    T linear_beta = T(25);
};

/// y = beta tanh(gate / beta) sigmoid(gate) * linear_beta tanh(up / linear_beta), so |y| < beta linear_beta.
/// Source: Kimi K3's configuration.
template <writable_rows Y, readable_rows G, readable_rows U>
void situ_glu(Y&& y, const G& gate, const U& up,
              situ_glu_options<detail::arithmetic<Y, const G&, const U&>> options = {});

// --- implementation --------------------------------------------------------------------------------------------

namespace local {

template <class Y, class G, class U>
struct gated_operands {
    using arithmetic = detail::arithmetic<Y, const G&, const U&>;
    operand::shape shape;
    operand::output y;
    operand::input gate, up;
};

template <class Y, class G, class U>
auto gated(Y& y, const G& gate, const U& up)
{
    const auto out = detail::view(y);
    const auto g = detail::constant_view(gate);
    const auto u = detail::constant_view(up);
    RESIDUA_ASSERT(detail::same_shape(out, g, u), "swiglu: y, gate and up differ in shape");
    RESIDUA_ASSERT(detail::same_or_apart(out, g, u), "swiglu: y overlaps an input in part");
    return gated_operands<Y&, G, U>{detail::shape_of(out), detail::memory(out), detail::memory(g),
                                    detail::memory(u)};
}

}  // namespace local

template <writable_rows Y, readable_rows G, readable_rows U>
void swiglu(Y&& y, const G& gate, const U& up)
{
    const auto o = local::gated(y, gate, up);
    kernels::swiglu<typename decltype(o)::arithmetic>(o.shape, o.y, o.gate, o.up);
}

template <writable_rows Y, readable_rows G, readable_rows U>
void clamped_swiglu(Y&& y, const G& gate, const U& up,
                    clamped_swiglu_options<detail::arithmetic<Y, const G&, const U&>> options)
{
    const auto o = local::gated(y, gate, up);
    RESIDUA_ASSERT(options.limit.value > 0, "clamped_swiglu: limit must be positive");
    kernels::clamped_swiglu<typename decltype(o)::arithmetic>(o.shape, o.y, o.gate, o.up, options.limit.value);
}

template <writable_rows Y, readable_rows G, readable_rows U>
void gpt_oss_swiglu(Y&& y, const G& gate, const U& up,
                    gpt_oss_swiglu_options<detail::arithmetic<Y, const G&, const U&>> options)
{
    const auto o = local::gated(y, gate, up);
    RESIDUA_ASSERT(options.limit > 0 && options.alpha > 0, "gpt_oss_swiglu: limit and alpha must be positive");
    kernels::gpt_oss_swiglu<typename decltype(o)::arithmetic>(o.shape, o.y, o.gate, o.up, options.limit,
                                                              options.alpha);
}

template <writable_rows Y, readable_rows G, readable_rows U>
void situ_glu(Y&& y, const G& gate, const U& up,
              situ_glu_options<detail::arithmetic<Y, const G&, const U&>> options)
{
    const auto o = local::gated(y, gate, up);
    RESIDUA_ASSERT(options.beta > 0 && options.linear_beta > 0, "situ_glu: beta and linear_beta must be positive");
    kernels::situ_glu<typename decltype(o)::arithmetic>(o.shape, o.y, o.gate, o.up, options.beta,
                                                        options.linear_beta);
}

}  // namespace RESIDUA_API

#endif
