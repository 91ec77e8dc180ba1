/// \file
/// Softmax, row by row.
///
/// Shapes: all operands have the same rows and columns, each its own stride. Outputs are overwritten, and may be exactly
/// one of the inputs.
/// Errors: shapes that differ, partial overlap: RESIDUA_ASSERT. Nothing allocates or throws.
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

}  // namespace RESIDUA_API

#endif
