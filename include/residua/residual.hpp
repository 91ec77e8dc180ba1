/// \file
/// The residual stream.
#if !defined(RESIDUA_RESIDUAL_HPP) || defined(RESIDUA_DISPATCH_PASS)
#ifndef RESIDUA_DISPATCH_PASS
#define RESIDUA_RESIDUAL_HPP
#include <residua/kernels/static_pass.hpp>
#endif

namespace RESIDUA_API {

/// y = x + scale f: what a sublayer writes back into the stream.
///
/// One fused multiply-add, so one rounding (0.5 ulp).
/// Shapes: y, x, f all have the same rows and columns. Aliasing: y may be exactly x or f. y is overwritten.
/// Errors: shapes that differ, partial overlap: RESIDUA_ASSERT.
/// Source: He et al. 2015, arXiv 1512.03385; the scale 1/sqrt(N): GPT-2's initialisation of what writes to the stream.
template <writable_rows Y, readable_rows X, readable_rows F>
    requires(same_type_as<Y, X> && same_type_as<Y, F>)
void residual_add(Y&& y, const X& x, const F& f, std::type_identity_t<detail::value_of<Y>> scale = 1);

/// y = factor x, one rounding. Shapes, aliasing and errors as above.
template <writable_rows Y, readable_rows X>
    requires same_type_as<Y, X>
void scale(Y&& y, const X& x, std::type_identity_t<detail::value_of<Y>> factor);

// --- implementation --------------------------------------------------------------------------------------------

template <writable_rows Y, readable_rows X, readable_rows F>
    requires(same_type_as<Y, X> && same_type_as<Y, F>)
void residual_add(Y&& y, const X& x, const F& f, std::type_identity_t<detail::value_of<Y>> scale)
{
    const auto out = detail::view(y);
    const auto in = detail::input(x);
    const auto added = detail::input(f);
    RESIDUA_ASSERT(detail::same_shape(out, in) && detail::same_shape(out, added), "residual_add: shapes differ");
    RESIDUA_ASSERT(detail::same_or_apart(out, in) && detail::same_or_apart(out, added),
                   "residual_add: y overlaps an input in part");
    kernels::residual_add(out, in, added, scale);
}

template <writable_rows Y, readable_rows X>
    requires same_type_as<Y, X>
void scale(Y&& y, const X& x, std::type_identity_t<detail::value_of<Y>> factor)
{
    const auto out = detail::view(y);
    const auto in = detail::input(x);
    RESIDUA_ASSERT(detail::same_shape(out, in), "scale: y and x differ in shape");
    RESIDUA_ASSERT(detail::same_or_apart(out, in), "scale: y and x overlap in part");
    kernels::scale(out, in, factor);
}

}  // namespace RESIDUA_API

#endif
