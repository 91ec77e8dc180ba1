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
void residual_add(Y&& y, const X& x, const F& f, detail::arithmetic<Y, const X&, const F&> scale = 1);

/// y = factor x, one rounding. Shapes, aliasing and errors as above.
template <writable_rows Y, readable_rows X>
void scale(Y&& y, const X& x, detail::arithmetic<Y, const X&> factor);

// --- implementation --------------------------------------------------------------------------------------------

template <writable_rows Y, readable_rows X, readable_rows F>
void residual_add(Y&& y, const X& x, const F& f, detail::arithmetic<Y, const X&, const F&> scale)
{
    const auto out = detail::view(y);
    const auto in = detail::constant_view(x);
    const auto added = detail::constant_view(f);
    RESIDUA_ASSERT(detail::same_shape(out, in, added), "residual_add: shapes differ");
    RESIDUA_ASSERT(detail::same_or_apart(out, in, added), "residual_add: y overlaps an input in part");
    kernels::residual_add(detail::shape_of(out), detail::memory(out), detail::memory(in), detail::memory(added),
                          scale);
}

template <writable_rows Y, readable_rows X>
void scale(Y&& y, const X& x, detail::arithmetic<Y, const X&> factor)
{
    const auto out = detail::view(y);
    const auto in = detail::constant_view(x);
    RESIDUA_ASSERT(detail::same_shape(out, in), "scale: y and x differ in shape");
    RESIDUA_ASSERT(detail::same_or_apart(out, in), "scale: y and x overlap in part");
    kernels::scale(detail::shape_of(out), detail::memory(out), detail::memory(in), factor);
}

}  // namespace RESIDUA_API

#endif
