/// \file
/// RMSNorm fused with the residual sum before it.
///
///     h = residual + scale x      one fused multiply-add; written back to `residual`, rounded to its type
///     y = h r f                   the RMSNorm of h (rms_norm.hpp), with every kind of weight
///
/// Which h: `norm_of::stored` (the default) is what a later reader of the stream sees, and gives the bits of
/// `residual_add` and then `rms_norm`; `norm_of::exact` is the sum before it is rounded to 16 bits. Of a residual of
/// float or double both are one.
///
/// Shapes: all have the same rows and columns, each its own stride; the weight has one element per column.
/// Errors: shapes that differ, partial overlap, eps negative or NaN: RESIDUA_ASSERT. Special values: those of the sum
/// and of `rms_norm`. Sources: the pre-norm block (Xiong et al. 2020, arXiv 2002.04745) with Zhang and Sennrich 2019.
#if !defined(RESIDUA_ADD_RMS_NORM_HPP) || defined(RESIDUA_DISPATCH_PASS)
#ifndef RESIDUA_DISPATCH_PASS
#define RESIDUA_ADD_RMS_NORM_HPP
#include <residua/rms_norm.hpp>
#endif

namespace RESIDUA_API {

/// The options of `add_rms_norm`: `{.eps = 1e-6f}`.
template <class T>
struct add_rms_norm_options {
    required<T> eps;                                          ///< of the norm, at least 0
    T scale = 1;                                              ///< what x is multiplied by
    ::residua::norm_of norm_of = ::residua::norm_of::stored;  ///< which sum is normalised
    norm_rounding rounding = norm_rounding::once;             ///< whether h r is rounded to its type
};

/// The options of `add_rms_norm_vjp`.
template <class T>
struct add_rms_norm_vjp_options {
    required<T> eps;
    T scale = 1;
    weight_gradient dw = weight_gradient::overwrite;  ///< whether the sum over the rows replaces what is in dw
};

/// The options of `add_rms_norm_jvp`.
template <class T>
struct add_rms_norm_jvp_options {
    required<T> eps;
    T scale = 1;
};

/// residual += scale x, y = rms_norm(residual). y is overwritten, and may be exactly x. `residual` is read and written,
/// and must share nothing with the others.
///
/// Error: of `residual` one rounding; of y that of `rms_norm`, measured from the norm of h.
template <writable_rows Y, writable_rows R, readable_rows X, channel_weight W>
void add_rms_norm(Y&& y, R&& residual, const X& x, const W& weight,
                  add_rms_norm_options<local::arithmetic<W, Y, R, const X&>> options);

/// The gradient, from those of both results, dresidual_out and dy, at the h that was stored:
///
///     dresidual = dresidual_out + J^T dy     J is the Jacobian of the norm (rms_norm.hpp); overwritten
///     dx = scale dresidual                   of the sum before it is rounded; overwritten
///     dw = sum over rows of dy h r           of float or double; overwritten, or added to with `.dw =
///                                            weight_gradient::accumulate`. It must share nothing with the others.
///
/// Computed in double, each result rounded once. dresidual and dx may each be exactly any of the inputs, but share
/// nothing with each other. `residual` is the one after the call of `add_rms_norm`; for `norm_of::exact` give h in float as it
/// was before it was stored.
/// Error of dresidual: half an ulp of it and 4 ulp of double of the largest term (see `rms_norm_vjp`); of dx one rounding
/// more; of what a row adds to dw: 4 ulp of double.
template <writable_rows DR, writable_rows DX, readable_rows R, channel_weight W, readable_rows DRO,
          readable_rows DY>
void add_rms_norm_vjp(
    DR&& dresidual, DX&& dx, const R& residual, const W& weight, const DRO& dresidual_out, const DY& dy,
    add_rms_norm_vjp_options<local::arithmetic<W, DR, DX, const R&, const DRO&, const DY&>> options);
template <writable_rows DR, writable_rows DX, writable_rows DW, readable_rows R, channel_weight W,
          readable_rows DRO, readable_rows DY>
    requires arithmetic_rows<DW>
void add_rms_norm_vjp(
    DR&& dresidual, DX&& dx, DW&& dw, const R& residual, const W& weight, const DRO& dresidual_out, const DY& dy,
    add_rms_norm_vjp_options<local::arithmetic<W, DR, DX, const R&, const DRO&, const DY&>> options);

/// The derivative along tresidual and tx, and the tangent tw of the weight as it is stored (see `rms_norm_jvp`), if there is
/// one, at the h that was stored:
///
///     tresidual += scale tx           read and written
///     ty = J tresidual + h r tw       of the sum before it is rounded
///
/// Computed in double, each result rounded once. ty may be exactly tx or `residual`; tresidual must share nothing with the
/// others, nor ty with the weight and tw, which have one element per column.
/// Error of ty: half an ulp of it and 4 ulp of double of |f_j| times the largest term and |h_j r tw_j| (see `rms_norm_jvp`).
template <writable_rows TY, writable_rows TR, readable_rows R, channel_weight W, readable_rows TX>
void add_rms_norm_jvp(TY&& ty, TR&& tresidual, const R& residual, const W& weight, const TX& tx,
                      add_rms_norm_jvp_options<local::arithmetic<W, TY, TR, const R&, const TX&>> options);
template <writable_rows TY, writable_rows TR, readable_rows R, stored_weight W, readable_rows TX, readable_rows TW>
void add_rms_norm_jvp(
    TY&& ty, TR&& tresidual, const R& residual, const W& weight, const TX& tx, const TW& tw,
    add_rms_norm_jvp_options<local::arithmetic<W, TY, TR, const R&, const TX&, const TW&>> options);

// --- implementation --------------------------------------------------------------------------------------------

template <writable_rows Y, writable_rows R, readable_rows X, channel_weight W>
void add_rms_norm(Y&& y, R&& residual, const X& x, const W& weight,
                  add_rms_norm_options<local::arithmetic<W, Y, R, const X&>> options)
{
    const auto out = detail::view(y);
    const auto stream = detail::view(residual);
    const auto added = detail::constant_view(x);
    const auto w = local::channels(weight);
    RESIDUA_ASSERT(detail::same_shape(out, stream, added), "add_rms_norm: y, residual and x differ in shape");
    RESIDUA_ASSERT(w.fits(out.columns), "add_rms_norm: the weight must have one element per column");
    RESIDUA_ASSERT(detail::same_or_apart(out, added), "add_rms_norm: y and x overlap in part");
    RESIDUA_ASSERT(detail::distinct(stream) && detail::apart(stream, added),
                   "add_rms_norm: the residual overlaps x or itself");
    RESIDUA_ASSERT(detail::apart(out, stream), "add_rms_norm: y overlaps the residual");
    RESIDUA_ASSERT(detail::apart(out, w.w) && detail::apart(stream, w.w),
                   "add_rms_norm: an output overlaps the weight");
    RESIDUA_ASSERT(options.eps.value >= 0, "add_rms_norm: eps must be at least 0");
    kernels::add_rms_norm(detail::shape_of(out), detail::memory(out), detail::memory(stream), detail::memory(added),
                          w.memory(), w.kind, options.eps.value, options.scale, options.norm_of, options.rounding);
}

namespace local {

template <class DR, class DX, class DW, class R, class W, class DRO, class DY, class T>
void check_and_run_add_rms_norm_vjp(rows<DR> dresidual, rows<DX> dx, rows<DW> dw, rows<const R> residual,
                                    const W& weight, rows<const DRO> dresidual_out, rows<const DY> dy,
                                    add_rms_norm_vjp_options<T> options)
{
    const auto w = local::channels(weight);
    RESIDUA_ASSERT(detail::same_shape(dresidual, dx, residual, dresidual_out, dy),
                   "add_rms_norm_vjp: the operands differ in shape");
    RESIDUA_ASSERT(w.fits(dx.columns), "add_rms_norm_vjp: the weight must have one element per column");
    RESIDUA_ASSERT(detail::same_or_apart(dresidual, residual, dresidual_out, dy)
                       && detail::same_or_apart(dx, residual, dresidual_out, dy),
                   "add_rms_norm_vjp: an output overlaps an input in part");
    RESIDUA_ASSERT(detail::apart(dresidual, dx) && detail::apart(dresidual, dw) && detail::apart(dx, dw),
                   "add_rms_norm_vjp: two outputs overlap");
    RESIDUA_ASSERT(detail::apart(dresidual, w.w) && detail::apart(dx, w.w) && detail::apart(dw, w.w),
                   "add_rms_norm_vjp: an output overlaps the weight");
    RESIDUA_ASSERT(detail::apart(dw, residual) && detail::apart(dw, dresidual_out) && detail::apart(dw, dy),
                   "add_rms_norm_vjp: dw overlaps an input");
    RESIDUA_ASSERT(options.eps.value >= 0, "add_rms_norm_vjp: eps must be at least 0");
    kernels::add_rms_norm_vjp(
        detail::shape_of(dx), detail::memory(dresidual), detail::memory(dx), detail::memory(dw),
        detail::memory(residual), w.memory(), w.kind, detail::memory(dresidual_out), detail::memory(dy),
        static_cast<double>(options.eps.value), static_cast<double>(options.scale), options.dw);
}

}  // namespace local

template <writable_rows DR, writable_rows DX, readable_rows R, channel_weight W, readable_rows DRO,
          readable_rows DY>
void add_rms_norm_vjp(
    DR&& dresidual, DX&& dx, const R& residual, const W& weight, const DRO& dresidual_out, const DY& dy,
    add_rms_norm_vjp_options<local::arithmetic<W, DR, DX, const R&, const DRO&, const DY&>> options)
{
    local::check_and_run_add_rms_norm_vjp(detail::view(dresidual), detail::view(dx), rows<float>{},
                                          detail::constant_view(residual), weight,
                                          detail::constant_view(dresidual_out), detail::constant_view(dy), options);
}

template <writable_rows DR, writable_rows DX, writable_rows DW, readable_rows R, channel_weight W,
          readable_rows DRO, readable_rows DY>
    requires arithmetic_rows<DW>
void add_rms_norm_vjp(
    DR&& dresidual, DX&& dx, DW&& dw, const R& residual, const W& weight, const DRO& dresidual_out, const DY& dy,
    add_rms_norm_vjp_options<local::arithmetic<W, DR, DX, const R&, const DRO&, const DY&>> options)
{
    const auto gradient = detail::view(dw);
    RESIDUA_ASSERT(local::one_per_column(gradient, detail::constant_view(residual)),
                   "add_rms_norm_vjp: dw must have one element per column");
    local::check_and_run_add_rms_norm_vjp(detail::view(dresidual), detail::view(dx), gradient,
                                          detail::constant_view(residual), weight,
                                          detail::constant_view(dresidual_out), detail::constant_view(dy), options);
}

namespace local {

template <class TY, class TR, class R, class W, class TX, class TW, class T>
void check_and_run_add_rms_norm_jvp(rows<TY> ty, rows<TR> tresidual, rows<const R> residual, const W& weight,
                                    rows<const TX> tx, rows<const TW> tw, add_rms_norm_jvp_options<T> options)
{
    const auto w = local::channels(weight);
    RESIDUA_ASSERT(detail::same_shape(ty, tresidual, residual, tx),
                   "add_rms_norm_jvp: the operands differ in shape");
    RESIDUA_ASSERT(w.fits(ty.columns), "add_rms_norm_jvp: the weight must have one element per column");
    RESIDUA_ASSERT(detail::same_or_apart(ty, residual, tx), "add_rms_norm_jvp: ty overlaps an input in part");
    RESIDUA_ASSERT(
        detail::distinct(tresidual) && detail::apart(tresidual, residual) && detail::apart(tresidual, tx),
        "add_rms_norm_jvp: tresidual overlaps an input or itself");
    RESIDUA_ASSERT(detail::apart(ty, tresidual), "add_rms_norm_jvp: ty overlaps tresidual");
    RESIDUA_ASSERT(detail::apart(ty, w.w) && detail::apart(tresidual, w.w) && detail::apart(ty, tw)
                       && detail::apart(tresidual, tw),
                   "add_rms_norm_jvp: an output overlaps the weight or tw");
    RESIDUA_ASSERT(options.eps.value >= 0, "add_rms_norm_jvp: eps must be at least 0");
    kernels::add_rms_norm_jvp(detail::shape_of(ty), detail::memory(ty), detail::memory(tresidual),
                              detail::memory(residual), w.memory(), w.kind, detail::memory(tx), detail::memory(tw),
                              static_cast<double>(options.eps.value), static_cast<double>(options.scale));
}

}  // namespace local

template <writable_rows TY, writable_rows TR, readable_rows R, channel_weight W, readable_rows TX>
void add_rms_norm_jvp(TY&& ty, TR&& tresidual, const R& residual, const W& weight, const TX& tx,
                      add_rms_norm_jvp_options<local::arithmetic<W, TY, TR, const R&, const TX&>> options)
{
    local::check_and_run_add_rms_norm_jvp(detail::view(ty), detail::view(tresidual),
                                          detail::constant_view(residual), weight, detail::constant_view(tx),
                                          rows<const float>{}, options);
}

template <writable_rows TY, writable_rows TR, readable_rows R, stored_weight W, readable_rows TX, readable_rows TW>
void add_rms_norm_jvp(
    TY&& ty, TR&& tresidual, const R& residual, const W& weight, const TX& tx, const TW& tw,
    add_rms_norm_jvp_options<local::arithmetic<W, TY, TR, const R&, const TX&, const TW&>> options)
{
    const auto tangent = detail::constant_view(tw);
    RESIDUA_ASSERT(local::one_per_column(tangent, detail::constant_view(residual)),
                   "add_rms_norm_jvp: tw must have one element per column");
    local::check_and_run_add_rms_norm_jvp(detail::view(ty), detail::view(tresidual),
                                          detail::constant_view(residual), weight, detail::constant_view(tx),
                                          tangent, options);
}

}  // namespace RESIDUA_API

#endif
