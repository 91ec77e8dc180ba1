/// \file
/// Dot product, matrix-vector product and its transpose: what pushes a vector, or a gradient, through a sublayer.
///
/// A matrix is a `rows` view, one row of it per output element. y must share nothing with the inputs.
/// Errors: shapes that do not fit, overlap: RESIDUA_ASSERT.
/// Source of the bounds: Higham, "Accuracy and Stability of Numerical Algorithms", 2002, chapter 3.
#if !defined(RESIDUA_MATVEC_HPP) || defined(RESIDUA_DISPATCH_PASS)
#ifndef RESIDUA_DISPATCH_PASS
#define RESIDUA_MATVEC_HPP
#include <residua/kernels/static_pass.hpp>
#endif

namespace RESIDUA_API {

/// The sum of x_j y_j over all rows and columns. Each row is summed in lanes by fused multiply-adds, folded into double;
/// the rows are added in double, in order; rounded once at the end. The order is fixed by the shape alone.
/// Error, as long as no product or partial sum leaves the range of the type: in float at most 12 u sum |x_j y_j|, in double
/// (columns / 256 + 14 + rows) u sum |x_j y_j|; u = 2^-24 and 2^-53.
template <arithmetic_rows X, arithmetic_rows Y>
    requires same_type_as<X, Y>
auto dot(const X& x, const Y& y) -> detail::value_of<const X&>;

/// y_t = W x_t for every row x_t of x: y_ti = dot(W_i, x_t). Shapes: W is m by n, x has n columns, y has m, and as many
/// rows as x.
template <writable_rows Y, arithmetic_rows W, arithmetic_rows X>
    requires(same_type_as<Y, W> && same_type_as<Y, X>)
void matvec(Y&& y, const W& w, const X& x);

/// y_t = W^T x_t for every row x_t of x: the vector-Jacobian product of `matvec`, and a weighted sum of W's rows.
/// Shapes: W is m by n, x has m columns, y has n, and as many rows as x. Each element is one chain of fused
/// multiply-adds over the rows of W in order. Error, within the range as above: at most m u sum |W_ij x_i|.
template <writable_rows Y, arithmetic_rows W, arithmetic_rows X>
    requires(same_type_as<Y, W> && same_type_as<Y, X>)
void matvec_transposed(Y&& y, const W& w, const X& x);

// --- implementation --------------------------------------------------------------------------------------------

template <arithmetic_rows X, arithmetic_rows Y>
    requires same_type_as<X, Y>
auto dot(const X& x, const Y& y) -> detail::value_of<const X&>
{
    const auto a = detail::constant_view(x);
    const auto b = detail::constant_view(y);
    RESIDUA_ASSERT(detail::same_shape(a, b), "dot: x and y differ in shape");
    return kernels::dot(a, b);
}

template <writable_rows Y, arithmetic_rows W, arithmetic_rows X>
    requires(same_type_as<Y, W> && same_type_as<Y, X>)
void matvec(Y&& y, const W& w, const X& x)
{
    const auto out = detail::view(y);
    const auto matrix = detail::constant_view(w);
    const auto in = detail::constant_view(x);
    RESIDUA_ASSERT(out.columns == matrix.count && in.columns == matrix.columns && out.count == in.count,
                   "matvec: shapes do not fit");
    RESIDUA_ASSERT(detail::distinct(out) && detail::apart(out, in) && detail::apart(out, matrix),
                   "matvec: y overlaps an input");
    kernels::matvec(out, matrix, in);
}

template <writable_rows Y, arithmetic_rows W, arithmetic_rows X>
    requires(same_type_as<Y, W> && same_type_as<Y, X>)
void matvec_transposed(Y&& y, const W& w, const X& x)
{
    const auto out = detail::view(y);
    const auto matrix = detail::constant_view(w);
    const auto in = detail::constant_view(x);
    RESIDUA_ASSERT(out.columns == matrix.columns && in.columns == matrix.count && out.count == in.count,
                   "matvec_transposed: shapes do not fit");
    RESIDUA_ASSERT(detail::distinct(out) && detail::apart(out, in) && detail::apart(out, matrix),
                   "matvec_transposed: y overlaps an input");
    kernels::matvec_transposed(out, matrix, in);
}

}  // namespace RESIDUA_API

#endif
