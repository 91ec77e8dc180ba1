/// \file
/// exp, log, tanh, sigmoid, silu, gelu, relu and cos(2 pi u), gradients and derivatives; conversion of types.
///
/// Shapes: y and x have the same number of rows and columns; each is a `rows` view or a contiguous range (one row).
/// Aliasing: y may be exactly x; otherwise they must share no element. y is overwritten.
/// Errors: shapes that differ, partial overlap: RESIDUA_ASSERT. Nothing allocates or throws.
/// Sources: the definitions; silu: Elfwing, Uchibe and Doya 2017 (arXiv 1702.03118); cos(2 pi u) with the root of ln: Box and
/// Muller 1958.
/// NaN gives NaN. Bits: the same in every lane, tail, backend and instruction set.
/// Speed: where all results are subnormal, exp, sigmoid and silu of float take two to three times as long.
#if !defined(RESIDUA_ELEMENTARY_HPP) || defined(RESIDUA_DISPATCH_PASS)
#ifndef RESIDUA_DISPATCH_PASS
#define RESIDUA_ELEMENTARY_HPP
#include <residua/kernels/static_pass.hpp>
#endif

namespace RESIDUA_API {

/// The options of functions that come in two accuracies: `{.accuracy = accuracy::precise}`. Some have one, within the bound
/// of the precise functions, and take the same options.
struct elementary_options {
    residua::accuracy accuracy = residua::accuracy::standard;
};

/// y = e^x. Subnormal results are kept, infinity only where e^x is beyond the largest number.
/// Error: at most 2 ulp, precise 1 ulp.
template <writable_rows Y, readable_rows X>
void exp(Y&& y, const X& x, elementary_options options = {});

/// y = ln x. -infinity at zeros, NaN below, +infinity at +infinity. Error: at most 2 ulp (measured: 0.9 in float).
template <writable_rows Y, readable_rows X>
void log(Y&& y, const X& x);

/// y = tanh x; odd to the bit, -0 at -0, +-1 at the infinities. Error: at most 2 ulp, precise 1 ulp.
template <writable_rows Y, readable_rows X>
void tanh(Y&& y, const X& x, elementary_options options = {});

/// y = 1 / (1 + e^-x), down to subnormal results; 0 and 1 at the infinities. Error: at most 2 ulp, precise 1 ulp.
template <writable_rows Y, readable_rows X>
void sigmoid(Y&& y, const X& x, elementary_options options = {});

/// y = x / (1 + e^-x), down to subnormal results; -0 at -infinity, +infinity at +infinity. Error: at most 2 ulp, precise
/// 1 ulp.
template <writable_rows Y, readable_rows X>
void silu(Y&& y, const X& x, elementary_options options = {});

/// y = x Phi(x) with the normal distribution Phi (the erf form of GELU), down to subnormal results; -0 at -infinity,
/// +infinity at +infinity. Computed in double for every type and rounded once (of 16 bits by way of float), of double with
/// the roundings made good. Error: at most 1 ulp in either accuracy.
/// Source: Hendrycks and Gimpel 2016, arXiv 1606.08415.
template <writable_rows Y, readable_rows X>
void gelu(Y&& y, const X& x, elementary_options options = {});

/// y = 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), GELU's tanh form, as x times a sigmoid, so without cancellation
/// at negative x. Else as `gelu`.
template <writable_rows Y, readable_rows X>
void gelu_tanh(Y&& y, const X& x, elementary_options options = {});

/// y = max(x, 0); -0 at -0. Exact.
template <writable_rows Y, readable_rows X>
void relu(Y&& y, const X& x);

/// y = s (1 + x (1 - s)) with s = sigmoid(x): the derivative of silu; 0 and 1 at the infinities. Computed as `gelu` is.
/// Error: at most 1 ulp in either accuracy, next to its zero at -1.278 too.
template <writable_rows Y, readable_rows X>
void silu_derivative(Y&& y, const X& x, elementary_options options = {});

/// y = x in the type of y: exact, or rounded once to nearest (halves to even), so 0.5 ulp. Infinite beyond the largest
/// number; a NaN stays one, and becomes quiet.
template <writable_rows Y, readable_rows X>
void convert(Y&& y, const X& x);

#define RESIDUA_DIAGONAL(name)                                                                                \
    template <writable_rows DX, readable_rows X, readable_rows DY>                                            \
    void name##_vjp(DX&& dx, const X& x, const DY& dy)                                                        \
    {                                                                                                         \
        const auto out = detail::view(dx);                                                                    \
        const auto in = detail::constant_view(x);                                                             \
        const auto along = detail::constant_view(dy);                                                         \
        RESIDUA_ASSERT(detail::same_shape(out, in, along), #name " derivative: shapes differ");               \
        RESIDUA_ASSERT(detail::same_or_apart(out, in, along), #name " derivative: operands overlap in part"); \
        kernels::name##_jacobian<detail::arithmetic<DX, const X&, const DY&>>(                                \
            detail::shape_of(out), detail::memory(out), detail::memory(in), detail::memory(along));           \
    }                                                                                                         \
    template <writable_rows TY, readable_rows X, readable_rows TX>                                            \
    void name##_jvp(TY&& ty, const X& x, const TX& tx)                                                        \
    {                                                                                                         \
        RESIDUA_SELF::name##_vjp(ty, x, tx);                                                                  \
    }

/// The gradient and the derivative of f = exp, tanh, sigmoid, silu, silu_derivative, gelu, gelu_tanh, relu, each as
///
///     exp_vjp(dx, x, dy)      dx = dy f'(x)
///     exp_jvp(ty, x, tx)      ty = f'(x) tx
///
/// Computed as `gelu` is; neither f'(x) nor the product leaves the range on the way, so that even a derivative which is 0 in double counts if dy is large enough. An infinite dy gives an infinite
/// dx, and an infinite x is the limit of finite ones. relu'(0) = 0, and where relu' is 0 so is dx, for every dy but NaN. NaN
/// in x or dy gives NaN. dx may be exactly x or dy. Error: at most 1 ulp (measured: 0.51 in float, 0.8 in double), next to a
/// zero of f' too.
/// @{
RESIDUA_DIAGONAL(exp)
RESIDUA_DIAGONAL(tanh)
RESIDUA_DIAGONAL(sigmoid)
RESIDUA_DIAGONAL(silu)
RESIDUA_DIAGONAL(silu_derivative)
RESIDUA_DIAGONAL(gelu)
RESIDUA_DIAGONAL(gelu_tanh)
RESIDUA_DIAGONAL(relu)
/// @}

#undef RESIDUA_DIAGONAL

/// y = cos(2 pi x): x counts turns, so the reduction is exact, and the value at every quarter turn too. NaN at the
/// infinities. Error: at most 2 ulp.
template <writable_rows Y, readable_rows X>
void cos_2pi(Y&& y, const X& x);

/// The gradient of tanh from its saved output y: dx = dy (1 - y^2). dx may be exactly y or dy. Error: two roundings, at most
/// 1.5 ulp.
template <writable_rows DX, readable_rows Y, readable_rows DY>
void tanh_vjp_from_output(DX&& dx, const Y& y, const DY& dy);

/// z = sqrt(-2 ln max(u1, 1e-12)) cos(2 pi u2): a normal deviate of two uniform ones in [0, 1) (Box and Muller 1958).
/// z may be exactly u1 or u2. Error: at most 4 ulp of z, or of 1 if |z| is less.
template <writable_rows Z, readable_rows U1, readable_rows U2>
void box_muller(Z&& z, const U1& u1, const U2& u2);

// --- implementation --------------------------------------------------------------------------------------------

#define RESIDUA_CHECKED_VIEWS(name, y, x)                                           \
    const auto out = detail::view(y);                                               \
    const auto in = detail::constant_view(x);                                       \
    RESIDUA_ASSERT(detail::same_shape(out, in), #name ": y and x differ in shape"); \
    RESIDUA_ASSERT(detail::same_or_apart(out, in), #name ": y and x overlap in part")

#define RESIDUA_ELEMENTWISE(name)                                                                  \
    template <writable_rows Y, readable_rows X>                                                    \
    void name(Y&& y, const X& x)                                                                   \
    {                                                                                              \
        RESIDUA_CHECKED_VIEWS(name, y, x);                                                         \
        kernels::name<detail::arithmetic<Y, const X&>>(detail::shape_of(out), detail::memory(out), \
                                                       detail::memory(in));                        \
    }
// Last what of the options the kernel is told.
#define RESIDUA_ELEMENTWISE_OF_OPTIONS(name, ...)                                                      \
    template <writable_rows Y, readable_rows X>                                                        \
    void name(Y&& y, const X& x, [[maybe_unused]] elementary_options options)                          \
    {                                                                                                  \
        RESIDUA_CHECKED_VIEWS(name, y, x);                                                             \
        kernels::name<detail::arithmetic<Y, const X&>>(detail::shape_of(out), detail::memory(out),     \
                                                       detail::memory(in) __VA_OPT__(, ) __VA_ARGS__); \
    }

RESIDUA_ELEMENTWISE_OF_OPTIONS(exp, options.accuracy)
RESIDUA_ELEMENTWISE(log)
RESIDUA_ELEMENTWISE_OF_OPTIONS(tanh, options.accuracy)
RESIDUA_ELEMENTWISE_OF_OPTIONS(sigmoid, options.accuracy)
RESIDUA_ELEMENTWISE_OF_OPTIONS(silu, options.accuracy)
RESIDUA_ELEMENTWISE(cos_2pi)
RESIDUA_ELEMENTWISE(relu)
RESIDUA_ELEMENTWISE(convert)
RESIDUA_ELEMENTWISE_OF_OPTIONS(gelu)
RESIDUA_ELEMENTWISE_OF_OPTIONS(gelu_tanh)
RESIDUA_ELEMENTWISE_OF_OPTIONS(silu_derivative)

#undef RESIDUA_ELEMENTWISE_OF_OPTIONS
#undef RESIDUA_ELEMENTWISE
#undef RESIDUA_CHECKED_VIEWS

template <writable_rows DX, readable_rows Y, readable_rows DY>
void tanh_vjp_from_output(DX&& dx, const Y& y, const DY& dy)
{
    const auto out = detail::view(dx);
    const auto saved = detail::constant_view(y);
    const auto grad = detail::constant_view(dy);
    RESIDUA_ASSERT(detail::same_shape(out, saved, grad), "tanh_vjp_from_output: shapes differ");
    RESIDUA_ASSERT(detail::same_or_apart(out, saved, grad), "tanh_vjp_from_output: dx overlaps an input in part");
    kernels::tanh_vjp_from_output<detail::arithmetic<DX, const Y&, const DY&>>(
        detail::shape_of(out), detail::memory(out), detail::memory(saved), detail::memory(grad));
}

template <writable_rows Z, readable_rows U1, readable_rows U2>
void box_muller(Z&& z, const U1& u1, const U2& u2)
{
    const auto out = detail::view(z);
    const auto first = detail::constant_view(u1);
    const auto second = detail::constant_view(u2);
    RESIDUA_ASSERT(detail::same_shape(out, first, second), "box_muller: shapes differ");
    RESIDUA_ASSERT(detail::same_or_apart(out, first, second), "box_muller: z overlaps an input in part");
    kernels::box_muller<detail::arithmetic<Z, const U1&, const U2&>>(detail::shape_of(out), detail::memory(out),
                                                                     detail::memory(first), detail::memory(second));
}

}  // namespace RESIDUA_API

#endif
