/// \file
/// The residual stream: adding to it, with a scale for all channels or for each, and the gradients.
///
/// Shapes: y, x, f and their gradients have the same rows and columns, each its own stride; a scale for each channel
/// has one element per column.
/// Errors: shapes that differ, partial overlap: RESIDUA_ASSERT. Nothing allocates or throws.
/// Source: He et al. 2015, arXiv 1512.03385; the scale 1/sqrt(N): GPT-2's initialisation of what writes to the stream;
/// a scale for each channel: Touvron et al. 2021, arXiv 2103.17239.
#if !defined(RESIDUA_RESIDUAL_HPP) || defined(RESIDUA_DISPATCH_PASS)
#ifndef RESIDUA_DISPATCH_PASS
#define RESIDUA_RESIDUAL_HPP
#include <residua/kernels/static_pass.hpp>
#endif

namespace RESIDUA_API {

/// A scale that has one element for each channel.
template <class T>
struct per_channel_scale {
    rows<const T> s;
};

/// Makes a contiguous range a scale for each channel: `residual_add(y, x, f, per_channel(s))`.
template <readable_rows S>
constexpr auto per_channel(const S& s) noexcept
{
    return per_channel_scale<detail::value_of<const S&>>{detail::constant_view(s)};
}

/// The option of `residual_add_vjp`.
struct residual_add_vjp_options {
    weight_gradient ds = weight_gradient::overwrite;  ///< whether the sum over the rows replaces what is in ds
};

/// y = x + scale f: what a sublayer writes back into the stream. One fused multiply-add, so one rounding (0.5 ulp).
/// y may be exactly x or f, and is overwritten; it must share nothing with a scale for each channel.
template <writable_rows Y, readable_rows X, readable_rows F>
void residual_add(Y&& y, const X& x, const F& f, detail::arithmetic<Y, const X&, const F&> scale = 1);
template <writable_rows Y, readable_rows X, readable_rows F, class S>
void residual_add(Y&& y, const X& x, const F& f, per_channel_scale<S> scale);

/// The gradient: dx = dy, df = scale dy, and with a scale for each channel
///
///     ds = sum over rows of dy f      of float or double; overwritten, or added to with `{.ds =
///                                     weight_gradient::accumulate}`. It must share nothing with the others.
///
/// dx and df are overwritten; each may be exactly dy or f, not both the same. Computed in double: one rounding for dx
/// (none where it has dy's type) and df, 0.5 ulp; ds is rounded to its type row after row. Without a row, ds is 0 (or
/// left alone). Error: 0.5 ulp of df, and of dx.
template <writable_rows DX, writable_rows DF, readable_rows DY>
void residual_add_vjp(DX&& dx, DF&& df, const DY& dy, detail::arithmetic<DX, DF, const DY&> scale = 1);
template <writable_rows DX, writable_rows DF, readable_rows DY, class S>
void residual_add_vjp(DX&& dx, DF&& df, const DY& dy, per_channel_scale<S> scale);
template <writable_rows DX, writable_rows DF, writable_rows DScale, readable_rows F, readable_rows DY, class S>
    requires arithmetic_rows<DScale>
void residual_add_vjp(DX&& dx, DF&& df, DScale&& ds, const F& f, const DY& dy, per_channel_scale<S> scale,
                      residual_add_vjp_options options = {});

/// The derivative along tx, tf and, with a scale s for each channel, ts: ty = tx + scale tf (one rounding), or
/// ty = tx + s tf + ts f (computed in double and rounded once: half an ulp and 3 ulp of double of the largest term,
/// in double the latter alone). ty may be exactly tx, tf or f.
template <writable_rows TY, readable_rows TX, readable_rows TF>
void residual_add_jvp(TY&& ty, const TX& tx, const TF& tf, detail::arithmetic<TY, const TX&, const TF&> scale = 1);
template <writable_rows TY, readable_rows F, readable_rows TX, readable_rows TF, class S, class TS>
void residual_add_jvp(TY&& ty, const F& f, const TX& tx, const TF& tf, per_channel_scale<S> scale,
                      per_channel_scale<TS> ts);

/// y = factor x, one rounding (0.5 ulp); y may be exactly x. It is its own gradient, dx = factor dy, and derivative.
template <writable_rows Y, readable_rows X>
void scale(Y&& y, const X& x, detail::arithmetic<Y, const X&> factor);
template <writable_rows DX, readable_rows DY>
void scale_vjp(DX&& dx, const DY& dy, detail::arithmetic<DX, const DY&> factor);
template <writable_rows TY, readable_rows TX>
void scale_jvp(TY&& ty, const TX& tx, detail::arithmetic<TY, const TX&> factor);

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

namespace local {

template <class T>
bool is_one_row_of(const rows<T>& r, std::size_t columns)
{
    return r.count == 1 && r.columns == columns;
}

}  // namespace local

template <writable_rows Y, readable_rows X, readable_rows F, class S>
void residual_add(Y&& y, const X& x, const F& f, per_channel_scale<S> scale)
{
    const auto out = detail::view(y);
    const auto in = detail::constant_view(x);
    const auto added = detail::constant_view(f);
    RESIDUA_ASSERT(detail::same_shape(out, in, added), "residual_add: shapes differ");
    RESIDUA_ASSERT(local::is_one_row_of(scale.s, out.columns),
                   "residual_add: the scale needs one element per column");
    RESIDUA_ASSERT(detail::same_or_apart(out, in, added), "residual_add: y overlaps an input in part");
    RESIDUA_ASSERT(detail::apart(out, scale.s), "residual_add: y overlaps the scale");
    using T = detail::arithmetic_of<S, detail::value_of<Y>, detail::value_of<const X&>, detail::value_of<const F&>>;
    kernels::residual_add_per_channel<T>(detail::shape_of(out), detail::memory(out), detail::memory(in),
                                         detail::memory(added), detail::memory(scale.s));
}

template <writable_rows DX, writable_rows DF, readable_rows DY>
void residual_add_vjp(DX&& dx, DF&& df, const DY& dy, detail::arithmetic<DX, DF, const DY&> scale)
{
    const auto to_x = detail::view(dx);
    const auto to_f = detail::view(df);
    const auto gradient = detail::constant_view(dy);
    RESIDUA_ASSERT(detail::same_shape(to_x, to_f, gradient), "residual_add_vjp: shapes differ");
    RESIDUA_ASSERT(detail::same_or_apart(to_x, gradient) && detail::same_or_apart(to_f, gradient),
                   "residual_add_vjp: an output overlaps dy in part");
    RESIDUA_ASSERT(detail::apart(to_x, to_f), "residual_add_vjp: dx and df overlap");
    kernels::residual_add_vjp(detail::shape_of(to_x), detail::memory(to_x), detail::memory(to_f),
                              detail::memory(gradient), static_cast<double>(scale));
}

namespace local {

template <class DX, class DF, class DScale, class F, class DY, class S>
void check_and_run_residual_add_vjp(rows<DX> dx, rows<DF> df, rows<DScale> ds, rows<const F> f, rows<const DY> dy,
                                    rows<const S> scale, weight_gradient mode)
{
    RESIDUA_ASSERT(detail::same_shape(dx, df, f, dy), "residual_add_vjp: shapes differ");
    RESIDUA_ASSERT(local::is_one_row_of(scale, dx.columns),
                   "residual_add_vjp: the scale needs one element per column");
    RESIDUA_ASSERT(detail::same_or_apart(dx, f, dy) && detail::same_or_apart(df, f, dy),
                   "residual_add_vjp: an output overlaps an input in part");
    RESIDUA_ASSERT(detail::apart(dx, df) && detail::apart(dx, ds) && detail::apart(df, ds),
                   "residual_add_vjp: outputs overlap");
    RESIDUA_ASSERT(detail::apart(dx, scale) && detail::apart(df, scale) && detail::apart(ds, scale),
                   "residual_add_vjp: an output overlaps the scale");
    RESIDUA_ASSERT(detail::apart(ds, f) && detail::apart(ds, dy), "residual_add_vjp: ds overlaps an input");
    kernels::residual_add_per_channel_vjp(detail::shape_of(dx), detail::memory(dx), detail::memory(df),
                                          detail::memory(ds), detail::memory(f), detail::memory(dy),
                                          detail::memory(scale), mode);
}

}  // namespace local

template <writable_rows DX, writable_rows DF, readable_rows DY, class S>
void residual_add_vjp(DX&& dx, DF&& df, const DY& dy, per_channel_scale<S> scale)
{
    const auto gradient = detail::constant_view(dy);
    local::check_and_run_residual_add_vjp(detail::view(dx), detail::view(df), rows<float>{}, gradient, gradient,
                                          scale.s, weight_gradient::overwrite);
}

template <writable_rows DX, writable_rows DF, writable_rows DScale, readable_rows F, readable_rows DY, class S>
    requires arithmetic_rows<DScale>
void residual_add_vjp(DX&& dx, DF&& df, DScale&& ds, const F& f, const DY& dy, per_channel_scale<S> scale,
                      residual_add_vjp_options options)
{
    const auto sums = detail::view(ds);
    RESIDUA_ASSERT(local::is_one_row_of(sums, scale.s.columns),
                   "residual_add_vjp: ds needs one element per column");
    local::check_and_run_residual_add_vjp(detail::view(dx), detail::view(df), sums, detail::constant_view(f),
                                          detail::constant_view(dy), scale.s, options.ds);
}

template <writable_rows TY, readable_rows TX, readable_rows TF>
void residual_add_jvp(TY&& ty, const TX& tx, const TF& tf, detail::arithmetic<TY, const TX&, const TF&> scale)
{
    RESIDUA_SELF::residual_add(ty, tx, tf, scale);
}

template <writable_rows TY, readable_rows F, readable_rows TX, readable_rows TF, class S, class TS>
void residual_add_jvp(TY&& ty, const F& f, const TX& tx, const TF& tf, per_channel_scale<S> scale,
                      per_channel_scale<TS> ts)
{
    const auto out = detail::view(ty);
    const auto added = detail::constant_view(f);
    const auto along_x = detail::constant_view(tx);
    const auto along_f = detail::constant_view(tf);
    RESIDUA_ASSERT(detail::same_shape(out, added, along_x, along_f), "residual_add_jvp: shapes differ");
    RESIDUA_ASSERT(local::is_one_row_of(scale.s, out.columns) && local::is_one_row_of(ts.s, out.columns),
                   "residual_add_jvp: the scale and ts need one element per column");
    RESIDUA_ASSERT(detail::same_or_apart(out, added, along_x, along_f),
                   "residual_add_jvp: ty overlaps an input in part");
    RESIDUA_ASSERT(detail::apart(out, scale.s) && detail::apart(out, ts.s),
                   "residual_add_jvp: ty overlaps a scale");
    kernels::residual_add_per_channel_jvp(detail::shape_of(out), detail::memory(out), detail::memory(added),
                                          detail::memory(along_x), detail::memory(along_f), detail::memory(scale.s),
                                          detail::memory(ts.s));
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

template <writable_rows DX, readable_rows DY>
void scale_vjp(DX&& dx, const DY& dy, detail::arithmetic<DX, const DY&> factor)
{
    RESIDUA_SELF::scale(dx, dy, factor);
}

template <writable_rows TY, readable_rows TX>
void scale_jvp(TY&& ty, const TX& tx, detail::arithmetic<TY, const TX&> factor)
{
    RESIDUA_SELF::scale(ty, tx, factor);
}

}  // namespace RESIDUA_API

#endif
