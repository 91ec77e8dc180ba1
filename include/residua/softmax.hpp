/// \file
/// Softmax, row by row.
///
/// Shapes: all operands have the same rows and columns, each its own stride. Outputs are overwritten, and may be
/// exactly one of the inputs.
/// Errors: shapes that differ, partial overlap: RESIDUA_ASSERT. Nothing allocates or throws.
/// Source: Blanchard, Higham and Higham, "Accurately computing the log-sum-exp and softmax functions", 2021.
#if !defined(RESIDUA_SOFTMAX_HPP) || defined(RESIDUA_DISPATCH_PASS)
#ifndef RESIDUA_DISPATCH_PASS
#define RESIDUA_SOFTMAX_HPP
#include <residua/kernels/static_pass.hpp>
#endif

namespace RESIDUA_API {

/// y_j = e^(x_j - m) / sum_k e^(x_k - m) with m the row's maximum, row by row. A row with a NaN or
/// with +infinity is NaN throughout, and so is a row of -infinity alone; a single -infinity gives 0. An empty row is
/// left alone.
/// Error: at most 4 ulp where the result is normal (the rounding of x_j - m is carried along).
template <writable_rows Y, readable_rows X>
void softmax(Y&& y, const X& x);

/// The gradient from the saved output y: dx = y (dy - sum(y dy)), computed in double and rounded once. dx may be
/// exactly y or dy. A row with a NaN is NaN throughout; one with an infinity has no finite element.
/// Error: at most 0.51 ulp, and 2^-45 y_j max |dy| more, for types other than double; 4 ulp of y_j max |dy| for double
/// (tested, rows to 4097).
template <writable_rows DX, readable_rows Y, readable_rows DY>
void softmax_vjp(DX&& dx, const Y& y, const DY& dy);

/// The derivative along tx, from the saved output y: ty = y (tx - sum(y tx)). The Jacobian is symmetric: this is
/// `softmax_vjp` with other names, and its error is that.
template <writable_rows TY, readable_rows Y, readable_rows TX>
void softmax_jvp(TY&& ty, const Y& y, const TX& tx);

// --- implementation --------------------------------------------------------------------------------------------

template <writable_rows Y, readable_rows X>
void softmax(Y&& y, const X& x)
{
    const auto out = detail::view(y);
    const auto in = detail::constant_view(x);
    RESIDUA_ASSERT(detail::same_shape(out, in), "softmax: y and x differ in shape");
    RESIDUA_ASSERT(detail::same_or_apart(out, in), "softmax: y and x overlap in part");
    kernels::softmax<detail::arithmetic<Y, const X&>>(detail::shape_of(out), detail::memory(out),
                                                      detail::memory(in));
}

template <writable_rows DX, readable_rows Y, readable_rows DY>
void softmax_vjp(DX&& dx, const Y& y, const DY& dy)
{
    const auto out = detail::view(dx);
    const auto saved = detail::constant_view(y);
    const auto gradient = detail::constant_view(dy);
    RESIDUA_ASSERT(detail::same_shape(out, saved, gradient), "softmax_vjp: shapes differ");
    RESIDUA_ASSERT(detail::same_or_apart(out, saved, gradient), "softmax_vjp: dx overlaps an input in part");
    kernels::softmax_jacobian(detail::shape_of(out), detail::memory(out), detail::memory(saved),
                              detail::memory(gradient));
}

template <writable_rows TY, readable_rows Y, readable_rows TX>
void softmax_jvp(TY&& ty, const Y& y, const TX& tx)
{
    RESIDUA_SELF::softmax_vjp(ty, y, tx);
}

}  // namespace RESIDUA_API

#endif
