/// \file
/// LayerNorm, with or without weight and bias, and its gradients.
///
///     y_j = (x_j - mean(x)) r f_j + b_j,   r = 1 / sqrt(mean((x - mean(x))^2) + eps)
///
/// f is w, 1 + w or 1, as in rms_norm.hpp; without a bias, b is 0. The mean is subtracted before squaring, and is known
/// to twice the precision of double: what is left of a row is right however far from zero the row is.
/// Shapes: y, x, dy, dx have the same rows and columns, each its own stride; weight and bias have one element per column.
/// Errors: shapes that differ, partial overlap, eps negative or NaN: RESIDUA_ASSERT. Empty rows: nothing is done.
/// A row with a NaN or an infinity is NaN throughout. A row of equal numbers gives b, or NaN if eps is 0 (0/0).
/// Sources: Ba, Kiros and Hinton 2016 (arXiv 1607.06450); without a bias: GPT-J, OLMo; 1 + w: Nemotron.
#if !defined(RESIDUA_LAYER_NORM_HPP) || defined(RESIDUA_DISPATCH_PASS)
#ifndef RESIDUA_DISPATCH_PASS
#define RESIDUA_LAYER_NORM_HPP
#include <residua/rms_norm.hpp>
#endif

namespace RESIDUA_API {

/// The options of `layer_norm` and its derivative: `{.eps = 1e-5f}`.
template <class T>
struct layer_norm_options {
    required<T> eps;  ///< added to the variance, at least 0
};

/// The options of `layer_norm_vjp`.
template <class T>
struct layer_norm_vjp_options {
    required<T> eps;
    weight_gradient dw =
        weight_gradient::overwrite;  ///< whether the sums over the rows replace what is in dw and db
};

/// In the place of a bias: none.
struct no_bias_t {};
inline constexpr no_bias_t no_bias{};

namespace local {

template <readable_rows B>
constexpr auto bias(const B& b)
{
    return detail::constant_view(b);
}
constexpr rows<const float> bias(no_bias_t) { return {}; }
template <class B>
using bias_value = typename decltype(local::bias(std::declval<const B&>()))::value_type;

template <class T>
bool bias_fits(const rows<const T>& b, std::size_t columns)
{
    return b.data == nullptr || (b.count == 1 && b.columns == columns);
}

template <class W, class B, class... R>
using arithmetic_with_bias = detail::arithmetic_of<weight_value<W>, bias_value<B>, detail::value_of<R>...>;

/// The tangent of a weight of type W, or none.
template <class TW, class W>
concept tangent_of = std::same_as<TW, no_weight_t> || (readable_rows<TW> && stored_weight<W>);

}  // namespace local

/// What `layer_norm` takes as its bias: one element per column, or `no_bias`.
template <class B>
concept channel_bias = requires(const B& b) { local::bias(b); };

/// The norm. y may be exactly x, and is overwritten; it must share nothing with weight and bias.
///
/// Error: computed in double and rounded once. In float and below: half an ulp of y, and 5 ulp of double of the largest of
/// |(x_j - mean) r f_j|, |f_j| and |b_j|. In double: at most 5 ulp of the largest of them.
template <writable_rows Y, readable_rows X, channel_weight W, channel_bias B>
void layer_norm(Y&& y, const X& x, const W& weight, const B& bias,
                layer_norm_options<local::arithmetic_with_bias<W, B, Y, const X&>> options);

/// The gradient: with a = dy f and xh = (x - mean) r,
///
///     dx = r (a - mean(a) - xh mean(a xh))      overwritten; may be exactly dy or x
///     dw = sum over rows of dy xh               both of float or double; overwritten, or added to with `.dw =
///     db = sum over rows of dy                  weight_gradient::accumulate`. They share nothing with the others.
///
/// Without `db`, or without both, less is computed. dw and db are summed row after row, each in its own type.
/// Error of dx: computed in double and rounded once; half an ulp of dx and 8 ulp of double of the largest term, max_j r
/// (|a_j| + mean|a| + |xh_j| mean|a xh|), in double 8 ulp of the latter. Of data of double: where a and the sums over
/// it stay in range. Of what a row adds to dw: 6 ulp of double of dy.
template <writable_rows DX, readable_rows X, channel_weight W, readable_rows DY>
void layer_norm_vjp(DX&& dx, const X& x, const W& weight, const DY& dy,
                    layer_norm_vjp_options<local::arithmetic<W, DX, const X&, const DY&>> options);
template <writable_rows DX, writable_rows DW, readable_rows X, channel_weight W, readable_rows DY>
    requires arithmetic_rows<DW>
void layer_norm_vjp(DX&& dx, DW&& dw, const X& x, const W& weight, const DY& dy,
                    layer_norm_vjp_options<local::arithmetic<W, DX, const X&, const DY&>> options);
template <writable_rows DX, writable_rows DW, writable_rows DB, readable_rows X, channel_weight W, readable_rows DY>
    requires arithmetic_rows<DW> && arithmetic_rows<DB>
void layer_norm_vjp(DX&& dx, DW&& dw, DB&& db, const X& x, const W& weight, const DY& dy,
                    layer_norm_vjp_options<local::arithmetic<W, DX, const X&, const DY&>> options);

/// The derivative along tx, or along tx and the tangents of the weight and the bias:
///
///     ty = f r (tx - mean(tx) - xh mean(tx xh))
///     ty = f r (tx - mean(tx) - xh mean(tx xh)) + xh tw
///     ty = f r (tx - mean(tx) - xh mean(tx xh)) + xh tw + tb
///
/// tw and tb have one element per column. tw is the tangent of the weight as it is stored (see `rms_norm_jvp`); beside a
/// tb it may be `no_weight`: of a weight that is not there, or does not move. Computed in double and rounded once. ty may
/// be exactly tx or x; it must share nothing with the others. Error: half an ulp of ty and 8 ulp of double of
/// |f_j| max_k r (|tx_k| + mean|tx| + |xh_k| mean|tx xh|) + |xh_j tw_j| + |tw_j| + |tb_j|. Of data of double: where tx and the
/// sums over it stay in range.
template <writable_rows TY, readable_rows X, channel_weight W, readable_rows TX>
void layer_norm_jvp(TY&& ty, const X& x, const W& weight, const TX& tx,
                    layer_norm_options<local::arithmetic<W, TY, const X&, const TX&>> options);
template <writable_rows TY, readable_rows X, stored_weight W, readable_rows TX, readable_rows TW>
void layer_norm_jvp(TY&& ty, const X& x, const W& weight, const TX& tx, const TW& tw,
                    layer_norm_options<local::arithmetic<W, TY, const X&, const TX&, const TW&>> options);
template <writable_rows TY, readable_rows X, channel_weight W, readable_rows TX, local::tangent_of<W> TW,
          readable_rows TB>
void layer_norm_jvp(
    TY&& ty, const X& x, const W& weight, const TX& tx, const TW& tw, const TB& tb,
    layer_norm_options<
        detail::arithmetic_of<local::weight_value<W>, local::weight_value<TW>, detail::value_of<TY>,
                              detail::value_of<const X&>, detail::value_of<const TX&>, detail::value_of<const TB&>>>
        options);

// --- implementation --------------------------------------------------------------------------------------------

template <writable_rows Y, readable_rows X, channel_weight W, channel_bias B>
void layer_norm(Y&& y, const X& x, const W& weight, const B& bias,
                layer_norm_options<local::arithmetic_with_bias<W, B, Y, const X&>> options)
{
    const auto out = detail::view(y);
    const auto in = detail::constant_view(x);
    const auto w = local::channels(weight);
    const auto b = local::bias(bias);
    RESIDUA_ASSERT(detail::same_shape(out, in), "layer_norm: y and x differ in shape");
    RESIDUA_ASSERT(w.fits(in.columns), "layer_norm: the weight must have one element per column");
    RESIDUA_ASSERT(local::bias_fits(b, in.columns), "layer_norm: the bias must have one element per column");
    RESIDUA_ASSERT(detail::same_or_apart(out, in), "layer_norm: y and x overlap in part");
    RESIDUA_ASSERT(detail::apart(out, w.w) && detail::apart(out, b),
                   "layer_norm: y overlaps the weight or the bias");
    RESIDUA_ASSERT(options.eps.value >= 0, "layer_norm: eps must be at least 0");
    kernels::layer_norm(detail::shape_of(out), detail::memory(out), detail::memory(in), w.memory(), w.kind,
                        detail::memory(b), static_cast<double>(options.eps.value));
}

namespace local {

template <class DX, class DW, class DB, class X, class W, class DY, class T>
void check_and_run_layer_norm_vjp(rows<DX> dx, rows<DW> dw, rows<DB> db, rows<const X> x, const W& weight,
                                  rows<const DY> dy, layer_norm_vjp_options<T> options)
{
    const auto w = local::channels(weight);
    RESIDUA_ASSERT(detail::same_shape(dx, x, dy), "layer_norm_vjp: dx, x and dy differ in shape");
    RESIDUA_ASSERT(w.fits(x.columns), "layer_norm_vjp: the weight must have one element per column");
    RESIDUA_ASSERT(detail::same_or_apart(dx, x, dy), "layer_norm_vjp: dx overlaps an input in part");
    RESIDUA_ASSERT(detail::apart(dx, dw) && detail::apart(dx, db) && detail::apart(dw, db),
                   "layer_norm_vjp: two outputs overlap");
    RESIDUA_ASSERT(detail::apart(dx, w.w) && detail::apart(dw, w.w) && detail::apart(db, w.w),
                   "layer_norm_vjp: an output overlaps the weight");
    RESIDUA_ASSERT(detail::apart(dw, x) && detail::apart(dw, dy) && detail::apart(db, x) && detail::apart(db, dy),
                   "layer_norm_vjp: dw or db overlaps an input");
    RESIDUA_ASSERT(options.eps.value >= 0, "layer_norm_vjp: eps must be at least 0");
    kernels::layer_norm_vjp(detail::shape_of(dx), detail::memory(dx), detail::memory(dw), detail::memory(db),
                            detail::memory(x), w.memory(), w.kind, detail::memory(dy),
                            static_cast<double>(options.eps.value), options.dw);
}

}  // namespace local

template <writable_rows DX, readable_rows X, channel_weight W, readable_rows DY>
void layer_norm_vjp(DX&& dx, const X& x, const W& weight, const DY& dy,
                    layer_norm_vjp_options<local::arithmetic<W, DX, const X&, const DY&>> options)
{
    local::check_and_run_layer_norm_vjp(detail::view(dx), rows<float>{}, rows<float>{}, detail::constant_view(x),
                                        weight, detail::constant_view(dy), options);
}

template <writable_rows DX, writable_rows DW, readable_rows X, channel_weight W, readable_rows DY>
    requires arithmetic_rows<DW>
void layer_norm_vjp(DX&& dx, DW&& dw, const X& x, const W& weight, const DY& dy,
                    layer_norm_vjp_options<local::arithmetic<W, DX, const X&, const DY&>> options)
{
    const auto of_weight = detail::view(dw);
    RESIDUA_ASSERT(local::one_per_column(of_weight, detail::constant_view(x)),
                   "layer_norm_vjp: dw must have one element per column");
    local::check_and_run_layer_norm_vjp(detail::view(dx), of_weight, rows<float>{}, detail::constant_view(x),
                                        weight, detail::constant_view(dy), options);
}

template <writable_rows DX, writable_rows DW, writable_rows DB, readable_rows X, channel_weight W, readable_rows DY>
    requires arithmetic_rows<DW> && arithmetic_rows<DB>
void layer_norm_vjp(DX&& dx, DW&& dw, DB&& db, const X& x, const W& weight, const DY& dy,
                    layer_norm_vjp_options<local::arithmetic<W, DX, const X&, const DY&>> options)
{
    const auto of_weight = detail::view(dw);
    const auto of_bias = detail::view(db);
    RESIDUA_ASSERT(local::one_per_column(of_weight, detail::constant_view(x))
                       && local::one_per_column(of_bias, detail::constant_view(x)),
                   "layer_norm_vjp: dw and db must have one element per column");
    local::check_and_run_layer_norm_vjp(detail::view(dx), of_weight, of_bias, detail::constant_view(x), weight,
                                        detail::constant_view(dy), options);
}

namespace local {

template <class TY, class X, class W, class TX, class TW, class TB, class T>
void check_and_run_layer_norm_jvp(rows<TY> ty, rows<const X> x, const W& weight, rows<const TX> tx,
                                  rows<const TW> tw, rows<const TB> tb, layer_norm_options<T> options)
{
    const auto w = local::channels(weight);
    RESIDUA_ASSERT(detail::same_shape(ty, x, tx), "layer_norm_jvp: ty, x and tx differ in shape");
    RESIDUA_ASSERT(w.fits(x.columns), "layer_norm_jvp: the weight must have one element per column");
    RESIDUA_ASSERT(detail::same_or_apart(ty, x, tx), "layer_norm_jvp: ty overlaps an input in part");
    RESIDUA_ASSERT(detail::apart(ty, w.w) && detail::apart(ty, tw) && detail::apart(ty, tb),
                   "layer_norm_jvp: ty overlaps the weight, tw or tb");
    RESIDUA_ASSERT(options.eps.value >= 0, "layer_norm_jvp: eps must be at least 0");
    kernels::layer_norm_jvp(detail::shape_of(ty), detail::memory(ty), detail::memory(x), w.memory(), w.kind,
                            detail::memory(tx), detail::memory(tw), detail::memory(tb),
                            static_cast<double>(options.eps.value));
}

}  // namespace local

template <writable_rows TY, readable_rows X, channel_weight W, readable_rows TX>
void layer_norm_jvp(TY&& ty, const X& x, const W& weight, const TX& tx,
                    layer_norm_options<local::arithmetic<W, TY, const X&, const TX&>> options)
{
    local::check_and_run_layer_norm_jvp(detail::view(ty), detail::constant_view(x), weight,
                                        detail::constant_view(tx), rows<const float>{}, rows<const float>{},
                                        options);
}

template <writable_rows TY, readable_rows X, stored_weight W, readable_rows TX, readable_rows TW>
void layer_norm_jvp(TY&& ty, const X& x, const W& weight, const TX& tx, const TW& tw,
                    layer_norm_options<local::arithmetic<W, TY, const X&, const TX&, const TW&>> options)
{
    const auto of_weight = detail::constant_view(tw);
    RESIDUA_ASSERT(local::one_per_column(of_weight, detail::constant_view(x)),
                   "layer_norm_jvp: tw must have one element per column");
    local::check_and_run_layer_norm_jvp(detail::view(ty), detail::constant_view(x), weight,
                                        detail::constant_view(tx), of_weight, rows<const float>{}, options);
}

template <writable_rows TY, readable_rows X, channel_weight W, readable_rows TX, local::tangent_of<W> TW,
          readable_rows TB>
void layer_norm_jvp(
    TY&& ty, const X& x, const W& weight, const TX& tx, const TW& tw, const TB& tb,
    layer_norm_options<
        detail::arithmetic_of<local::weight_value<W>, local::weight_value<TW>, detail::value_of<TY>,
                              detail::value_of<const X&>, detail::value_of<const TX&>, detail::value_of<const TB&>>>
        options)
{
    const auto of_weight = local::channels(tw);
    const auto of_bias = detail::constant_view(tb);
    RESIDUA_ASSERT(of_weight.fits(detail::constant_view(x).columns)
                       && local::one_per_column(of_bias, detail::constant_view(x)),
                   "layer_norm_jvp: tw and tb must have one element per column");
    local::check_and_run_layer_norm_jvp(detail::view(ty), detail::constant_view(x), weight,
                                        detail::constant_view(tx), of_weight.w, of_bias, options);
}

}  // namespace RESIDUA_API

#endif
