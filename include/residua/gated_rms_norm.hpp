/// \file
/// RMSNorm with a gate, act(z) = silu(z) or sigmoid(z).
///
///     norm first:  y = (x r f) act(z),  r = 1 / sqrt(mean(x^2) + eps)      the output of Gated DeltaNet
///     gate first:  y = u r f,           u = x act(z), r = 1 / sqrt(mean(u^2) + eps)      Mamba 2
///
/// f is w, 1 + w or 1, as in rms_norm.hpp. Everything is in float (double for data of double; gate first: always in
/// double), with one rounding, at the end, unless `.rounding` asks for more.
/// Shapes: all have the same rows and columns, each its own stride; the weight has one element per column.
/// Errors: shapes that differ, partial overlap, eps negative or NaN: RESIDUA_ASSERT. Empty rows: nothing is done.
/// A NaN in x makes its row NaN; a NaN in z its element, or, gate first, its row. z = -infinity closes the gate (0).
/// Sources: Gu and Dao 2023, Dao and Gu 2024 (arXiv 2405.21060); Yang et al. 2024 (arXiv 2412.06464); Qwen3-Next.
#if !defined(RESIDUA_GATED_RMS_NORM_HPP) || defined(RESIDUA_DISPATCH_PASS)
#ifndef RESIDUA_DISPATCH_PASS
#define RESIDUA_GATED_RMS_NORM_HPP
#include <residua/rms_norm.hpp>
#endif

namespace RESIDUA_API {

/// The options of `gated_rms_norm` and its derivative: `{.eps = 1e-6f}`.
template <class T>
struct gated_rms_norm_options {
    required<T> eps;
    norm_gate gate = norm_gate::silu;
    gate_order order = gate_order::norm_first;
    norm_rounding rounding = norm_rounding::once;  ///< whether x r is rounded to the type of x
};

/// The options of `gated_rms_norm_vjp`.
template <class T>
struct gated_rms_norm_vjp_options {
    required<T> eps;
    norm_gate gate = norm_gate::silu;
    gate_order order = gate_order::norm_first;
    weight_gradient dw = weight_gradient::overwrite;  ///< whether the sum over the rows replaces what is in dw
};

/// The norm. y may be exactly x or z, and is overwritten; it must share nothing with the weight.
///
/// With `.rounding = norm_rounding::before_weight`, x r (or u r) is rounded to the type of x and then multiplied by f; and
/// norm first, that product m is rounded to the type of x too before the gate, if the weight is of that type or there is
/// none. So Gated DeltaNet (Qwen3-Next) and Mamba 2 compute in eager PyTorch. Norm first, the bits are those of two steps,
/// m kept in that type, else in float (or double):
///
///     rms_norm(m, x, w, {.eps = 1e-6f, .rounding = norm_rounding::before_weight});
///     swiglu(y, z, m);        // or sigmoid_gate(y, m, z)
///
/// Error, norm first: at most 5.5 ulp in float and 7.5 in double, wherever x r and x r f are normal numbers. Gate first:
/// in float at most 0.51 ulp, for any finite x and z (with eps = 0 only where some act(z) is a normal double: z above
/// -708); in double 8.
template <writable_rows Y, readable_rows X, readable_rows Z, channel_weight W>
void gated_rms_norm(Y&& y, const X& x, const Z& z, const W& weight,
                    gated_rms_norm_options<local::arithmetic<W, Y, const X&, const Z&>> options);

/// The gradient, with m = x r f and J the Jacobian of the norm (rms_norm.hpp):
///
///     norm first:  dx = J^T (dy act(z)),    dz = dy m act'(z),       dw = sum over rows of dy act(z) x r
///     gate first:  dx = (J^T dy) act(z),    dz = (J^T dy) x act'(z), dw = sum over rows of dy u r
///
/// dx and dz are overwritten; each may be exactly any of the inputs, but they share nothing with each other. dw is of
/// float or double; overwritten, or added to with `.dw = weight_gradient::accumulate`. It must share nothing with the
/// others. Computed in double, each result rounded once.
/// Error of dx: half an ulp of it and 8 ulp of double of the largest term of the row's formula; of dz: half an ulp and
/// 8 ulp of double of |dy m|, or |x| times the largest term of J^T dy; in double 8 ulp of those. Of what a row adds to dw:
/// 8 ulp of double. Of data of double: where the products above stay in range.
template <writable_rows DX, writable_rows DZ, readable_rows X, readable_rows Z, channel_weight W, readable_rows DY>
void gated_rms_norm_vjp(
    DX&& dx, DZ&& dz, const X& x, const Z& z, const W& weight, const DY& dy,
    gated_rms_norm_vjp_options<local::arithmetic<W, DX, DZ, const X&, const Z&, const DY&>> options);
template <writable_rows DX, writable_rows DZ, writable_rows DW, readable_rows X, readable_rows Z, channel_weight W,
          readable_rows DY>
    requires arithmetic_rows<DW>
void gated_rms_norm_vjp(
    DX&& dx, DZ&& dz, DW&& dw, const X& x, const Z& z, const W& weight, const DY& dy,
    gated_rms_norm_vjp_options<local::arithmetic<W, DX, DZ, const X&, const Z&, const DY&>> options);

/// The derivative along tx and tz, and the tangent tw of the weight as it is stored (see `rms_norm_jvp`), if there is one:
///
///     norm first:  ty = (J tx + x r tw) act(z) + m act'(z) tz
///     gate first:  ty = J (tx act(z) + x act'(z) tz) + u r tw
///
/// Computed in double and rounded once. ty may be exactly any of the inputs; it must share nothing with the weight and tw,
/// which have one element per column. Error: half an ulp of ty and 8 ulp of double of the largest term of the row's
/// formula, of x r tw that of its element.
template <writable_rows TY, readable_rows X, readable_rows Z, channel_weight W, readable_rows TX, readable_rows TZ>
void gated_rms_norm_jvp(
    TY&& ty, const X& x, const Z& z, const W& weight, const TX& tx, const TZ& tz,
    gated_rms_norm_options<local::arithmetic<W, TY, const X&, const Z&, const TX&, const TZ&>> options);
template <writable_rows TY, readable_rows X, readable_rows Z, stored_weight W, readable_rows TX, readable_rows TZ,
          readable_rows TW>
void gated_rms_norm_jvp(
    TY&& ty, const X& x, const Z& z, const W& weight, const TX& tx, const TZ& tz, const TW& tw,
    gated_rms_norm_options<local::arithmetic<W, TY, const X&, const Z&, const TX&, const TZ&, const TW&>> options);

// --- implementation --------------------------------------------------------------------------------------------

template <writable_rows Y, readable_rows X, readable_rows Z, channel_weight W>
void gated_rms_norm(Y&& y, const X& x, const Z& z, const W& weight,
                    gated_rms_norm_options<local::arithmetic<W, Y, const X&, const Z&>> options)
{
    const auto out = detail::view(y);
    const auto in = detail::constant_view(x);
    const auto gate = detail::constant_view(z);
    const auto w = local::channels(weight);
    RESIDUA_ASSERT(detail::same_shape(out, in, gate), "gated_rms_norm: y, x and z differ in shape");
    RESIDUA_ASSERT(w.fits(in.columns), "gated_rms_norm: the weight must have one element per column");
    RESIDUA_ASSERT(detail::same_or_apart(out, in, gate), "gated_rms_norm: y overlaps an input in part");
    RESIDUA_ASSERT(detail::apart(out, w.w), "gated_rms_norm: y overlaps the weight");
    RESIDUA_ASSERT(options.eps.value >= 0, "gated_rms_norm: eps must be at least 0");
    kernels::gated_rms_norm(detail::shape_of(out), detail::memory(out), detail::memory(in), detail::memory(gate),
                            w.memory(), w.kind, options.eps.value, options.gate, options.order, options.rounding);
}

namespace local {

template <class DX, class DZ, class DW, class X, class Z, class W, class DY, class T>
void check_and_run_gated_rms_norm_vjp(rows<DX> dx, rows<DZ> dz, rows<DW> dw, rows<const X> x, rows<const Z> z,
                                      const W& weight, rows<const DY> dy, gated_rms_norm_vjp_options<T> options)
{
    const auto w = local::channels(weight);
    RESIDUA_ASSERT(detail::same_shape(dx, dz, x, z, dy), "gated_rms_norm_vjp: the operands differ in shape");
    RESIDUA_ASSERT(w.fits(x.columns), "gated_rms_norm_vjp: the weight must have one element per column");
    RESIDUA_ASSERT(detail::same_or_apart(dx, x, z, dy) && detail::same_or_apart(dz, x, z, dy),
                   "gated_rms_norm_vjp: an output overlaps an input in part");
    RESIDUA_ASSERT(detail::apart(dx, dz) && detail::apart(dx, dw) && detail::apart(dz, dw),
                   "gated_rms_norm_vjp: two outputs overlap");
    RESIDUA_ASSERT(detail::apart(dx, w.w) && detail::apart(dz, w.w) && detail::apart(dw, w.w),
                   "gated_rms_norm_vjp: an output overlaps the weight");
    RESIDUA_ASSERT(detail::apart(dw, x) && detail::apart(dw, z) && detail::apart(dw, dy),
                   "gated_rms_norm_vjp: dw overlaps an input");
    RESIDUA_ASSERT(options.eps.value >= 0, "gated_rms_norm_vjp: eps must be at least 0");
    kernels::gated_rms_norm_vjp(detail::shape_of(dx), detail::memory(dx), detail::memory(dz), detail::memory(dw),
                                detail::memory(x), detail::memory(z), w.memory(), w.kind, detail::memory(dy),
                                static_cast<double>(options.eps.value), options.gate, options.order, options.dw);
}

}  // namespace local

template <writable_rows DX, writable_rows DZ, readable_rows X, readable_rows Z, channel_weight W, readable_rows DY>
void gated_rms_norm_vjp(
    DX&& dx, DZ&& dz, const X& x, const Z& z, const W& weight, const DY& dy,
    gated_rms_norm_vjp_options<local::arithmetic<W, DX, DZ, const X&, const Z&, const DY&>> options)
{
    local::check_and_run_gated_rms_norm_vjp(detail::view(dx), detail::view(dz), rows<float>{},
                                            detail::constant_view(x), detail::constant_view(z), weight,
                                            detail::constant_view(dy), options);
}

template <writable_rows DX, writable_rows DZ, writable_rows DW, readable_rows X, readable_rows Z, channel_weight W,
          readable_rows DY>
    requires arithmetic_rows<DW>
void gated_rms_norm_vjp(
    DX&& dx, DZ&& dz, DW&& dw, const X& x, const Z& z, const W& weight, const DY& dy,
    gated_rms_norm_vjp_options<local::arithmetic<W, DX, DZ, const X&, const Z&, const DY&>> options)
{
    const auto gradient = detail::view(dw);
    RESIDUA_ASSERT(local::one_per_column(gradient, detail::constant_view(x)),
                   "gated_rms_norm_vjp: dw must have one element per column");
    local::check_and_run_gated_rms_norm_vjp(detail::view(dx), detail::view(dz), gradient, detail::constant_view(x),
                                            detail::constant_view(z), weight, detail::constant_view(dy), options);
}

namespace local {

template <class TY, class X, class Z, class W, class TX, class TZ, class TW, class T>
void check_and_run_gated_rms_norm_jvp(rows<TY> ty, rows<const X> x, rows<const Z> z, const W& weight,
                                      rows<const TX> tx, rows<const TZ> tz, rows<const TW> tw,
                                      gated_rms_norm_options<T> options)
{
    const auto w = local::channels(weight);
    RESIDUA_ASSERT(detail::same_shape(ty, x, z, tx, tz), "gated_rms_norm_jvp: the operands differ in shape");
    RESIDUA_ASSERT(w.fits(x.columns), "gated_rms_norm_jvp: the weight must have one element per column");
    RESIDUA_ASSERT(detail::same_or_apart(ty, x, z, tx, tz), "gated_rms_norm_jvp: ty overlaps an input in part");
    RESIDUA_ASSERT(detail::apart(ty, w.w) && detail::apart(ty, tw),
                   "gated_rms_norm_jvp: ty overlaps the weight or tw");
    RESIDUA_ASSERT(options.eps.value >= 0, "gated_rms_norm_jvp: eps must be at least 0");
    kernels::gated_rms_norm_jvp(detail::shape_of(ty), detail::memory(ty), detail::memory(x), detail::memory(z),
                                w.memory(), w.kind, detail::memory(tx), detail::memory(tz), detail::memory(tw),
                                static_cast<double>(options.eps.value), options.gate, options.order);
}

}  // namespace local

template <writable_rows TY, readable_rows X, readable_rows Z, channel_weight W, readable_rows TX, readable_rows TZ>
void gated_rms_norm_jvp(
    TY&& ty, const X& x, const Z& z, const W& weight, const TX& tx, const TZ& tz,
    gated_rms_norm_options<local::arithmetic<W, TY, const X&, const Z&, const TX&, const TZ&>> options)
{
    local::check_and_run_gated_rms_norm_jvp(detail::view(ty), detail::constant_view(x), detail::constant_view(z),
                                            weight, detail::constant_view(tx), detail::constant_view(tz),
                                            rows<const float>{}, options);
}

template <writable_rows TY, readable_rows X, readable_rows Z, stored_weight W, readable_rows TX, readable_rows TZ,
          readable_rows TW>
void gated_rms_norm_jvp(
    TY&& ty, const X& x, const Z& z, const W& weight, const TX& tx, const TZ& tz, const TW& tw,
    gated_rms_norm_options<local::arithmetic<W, TY, const X&, const Z&, const TX&, const TZ&, const TW&>> options)
{
    const auto tangent = detail::constant_view(tw);
    RESIDUA_ASSERT(local::one_per_column(tangent, detail::constant_view(x)),
                   "gated_rms_norm_jvp: tw must have one element per column");
    local::check_and_run_gated_rms_norm_jvp(detail::view(ty), detail::constant_view(x), detail::constant_view(z),
                                            weight, detail::constant_view(tx), detail::constant_view(tz), tangent,
                                            options);
}

}  // namespace RESIDUA_API

#endif
