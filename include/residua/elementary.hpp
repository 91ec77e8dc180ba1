/// \file
/// exp, log, tanh, sigmoid, silu and cos(2 pi u).
///
/// Shapes: y and x have the same number of rows and columns; each is a `rows` view or a contiguous range (one row).
/// Aliasing: y may be exactly x; otherwise they must share no element. y is overwritten.
/// Errors: shapes that differ, partial overlap: RESIDUA_ASSERT. Nothing allocates or throws.
/// NaN gives NaN. Bits: the same in every lane, tail, backend and instruction set.
#if !defined(RESIDUA_ELEMENTARY_HPP) || defined(RESIDUA_DISPATCH_PASS)
#ifndef RESIDUA_DISPATCH_PASS
#define RESIDUA_ELEMENTARY_HPP
#include <residua/kernels/static_pass.hpp>
#endif

namespace RESIDUA_API {

/// y = e^x. Subnormal results are kept, infinity only where e^x is beyond the largest number.
/// Error: at most 2 ulp (measured: 1.0 in float).
template <writable_rows Y, readable_rows X>
void exp(Y&& y, const X& x);

/// y = ln x. -infinity at zeros, NaN below, +infinity at +infinity. Error: at most 2 ulp (measured: 0.9 in float).
template <writable_rows Y, readable_rows X>
void log(Y&& y, const X& x);

/// y = tanh x; odd to the bit, -0 at -0, +-1 at the infinities. Error: at most 2 ulp (measured: 1.9 in
/// float).
template <writable_rows Y, readable_rows X>
void tanh(Y&& y, const X& x);

/// y = 1 / (1 + e^-x), down to subnormal results; 0 and 1 at the infinities. Error: at most 2 ulp
/// (measured: 1.7 in float).
template <writable_rows Y, readable_rows X>
void sigmoid(Y&& y, const X& x);

/// y = x / (1 + e^-x), down to subnormal results; -0 at -infinity, +infinity at +infinity. Error: at
/// most 2 ulp (measured: 1.7 in float).
template <writable_rows Y, readable_rows X>
void silu(Y&& y, const X& x);

/// y = cos(2 pi x): x counts turns, so the reduction is exact, and the value at every quarter turn too. NaN at the
/// infinities. Error: at most 2 ulp.
template <writable_rows Y, readable_rows X>
void cos_2pi(Y&& y, const X& x);

/// The gradient of tanh from its saved output y: dx = dy (1 - y^2). Error: two roundings.
template <writable_rows DX, readable_rows Y, readable_rows DY>
void tanh_vjp_from_output(DX&& dx, const Y& y, const DY& dy);

/// z = sqrt(-2 ln max(u1, 1e-12)) cos(2 pi u2): a normal deviate of two uniform ones in [0, 1) (Box and Muller 1958).
template <writable_rows Z, readable_rows U1, readable_rows U2>
void box_muller(Z&& z, const U1& u1, const U2& u2);

// --- implementation --------------------------------------------------------------------------------------------

#define RESIDUA_ELEMENTWISE(name)                                                                  \
    template <writable_rows Y, readable_rows X>                                                    \
    void name(Y&& y, const X& x)                                                                   \
    {                                                                                              \
        const auto out = detail::view(y);                                                          \
        const auto in = detail::constant_view(x);                                                  \
        RESIDUA_ASSERT(detail::same_shape(out, in), #name ": y and x differ in shape");            \
        RESIDUA_ASSERT(detail::same_or_apart(out, in), #name ": y and x overlap in part");         \
        kernels::name<detail::arithmetic<Y, const X&>>(detail::shape_of(out), detail::memory(out), \
                                                       detail::memory(in));                        \
    }

RESIDUA_ELEMENTWISE(exp)
RESIDUA_ELEMENTWISE(log)
RESIDUA_ELEMENTWISE(tanh)
RESIDUA_ELEMENTWISE(sigmoid)
RESIDUA_ELEMENTWISE(silu)
RESIDUA_ELEMENTWISE(cos_2pi)

#undef RESIDUA_ELEMENTWISE

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
