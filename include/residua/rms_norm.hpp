/// \file
/// RMSNorm, zero-centred RMSNorm and their gradients.
///
///     y_j = x_j r f_j,   r = 1 / sqrt(mean(x^2) + eps),   f_j = w_j, or 1 + w_j (zero-centred), or 1 (no weight)
///
/// Shapes: y, x, dy, dx have the same rows and columns, each its own stride; the weight has one element per column.
/// eps is inside the root, in the data's type, and always given by the caller.
/// Errors: shapes that differ, partial overlap, eps negative or NaN: RESIDUA_ASSERT. Empty rows: nothing is done.
/// y: a row with a NaN is NaN throughout. A row of zeros gives zeros, or NaN if eps is 0 too (0/0). A row with an
/// infinity gives 0 for its finite elements and NaN for the infinite ones. dx: a row with a NaN or an infinity is NaN
/// throughout; a row of zeros gives dy f / sqrt(eps).
/// QK-norm, the norm of each head, is that of a view whose rows are the heads: `rows{q, heads, head_size}`, for each token
/// or, where tokens lie end to end, for all at once; its weight is one head long.
/// Sources: Zhang and Sennrich 2019 (arXiv 1910.07467); 1 + w: Gemma, Qwen3-Next.
#if !defined(RESIDUA_RMS_NORM_HPP) || defined(RESIDUA_DISPATCH_PASS)
#ifndef RESIDUA_DISPATCH_PASS
#define RESIDUA_RMS_NORM_HPP
#include <residua/kernels/static_pass.hpp>
#endif

namespace RESIDUA_API {

/// The options of `rms_norm`: `{.eps = 1e-6f}`.
template <class T>
struct rms_norm_options {
    required<T> eps;                               ///< added to the mean square, at least 0
    norm_rounding rounding = norm_rounding::once;  ///< whether x r is rounded to the type of x
};

/// The options of `rms_norm_vjp`.
template <class T>
struct rms_norm_vjp_options {
    required<T> eps;
    weight_gradient dw = weight_gradient::overwrite;  ///< whether the sum over the rows replaces what is in dw
};

/// A weight w that stands for the factor 1 + w.
template <class T>
struct zero_centered_weight {
    rows<const T> w;
};

/// Makes a contiguous range of weights zero-centred: `rms_norm(y, x, zero_centered(w), {.eps = 1e-6f})`.
template <readable_rows W>
constexpr auto zero_centered(const W& w) noexcept
{
    return zero_centered_weight<detail::value_of<const W&>>{detail::constant_view(w)};
}

/// In the place of a weight: none.
struct no_weight_t {};
inline constexpr no_weight_t no_weight{};

namespace local {

/// A weight of any kind as the kernel takes it.
template <class T>
struct weight_view {
    using value_type = T;
    rows<const T> w;
    norm_weight kind;

    bool fits(std::size_t columns) const
    {
        return kind == norm_weight::none || (w.count == 1 && w.columns == columns);
    }
    /// The weight is the same for every row.
    operand::input memory() const { return {w.data, 0, operand::element_of_type<T>, 1}; }
};
template <readable_rows W>
constexpr auto channels(const W& w)
{
    return weight_view<detail::value_of<const W&>>{detail::constant_view(w), norm_weight::plain};
}
template <class T>
constexpr weight_view<T> channels(zero_centered_weight<T> w)
{
    return {w.w, norm_weight::zero_centered};
}
constexpr weight_view<float> channels(no_weight_t) { return {{}, norm_weight::none}; }

template <class W>
using weight_value = typename decltype(local::channels(std::declval<const W&>()))::value_type;
template <class W, class... R>
using arithmetic = detail::arithmetic_of<weight_value<W>, detail::value_of<R>...>;

/// Whether a gradient summed over the rows of x, or the tangent of a weight, fits.
template <class T, class X>
bool one_per_column(const rows<T>& dw, const rows<const X>& x)
{
    return dw.count == 1 && dw.columns == x.columns;
}

}  // namespace local

/// What a norm takes as its weight: one element per column, zero_centered of that, or `no_weight`.
template <class W>
concept channel_weight = requires(const W& w) { local::channels(w); };
/// A weight that a derivative can be taken along.
template <class W>
concept stored_weight = channel_weight<W> && !std::same_as<W, no_weight_t>;

/// y = x r f. y may be exactly x, and is overwritten; it must share nothing with the weight.
///
/// Error: at most 2.5 ulp in float (tested for rows of six distributions and all magnitudes to 2^20 elements; 4.5 can be
/// proven) and 4.5 ulp in double (tested, rows to 4097), wherever x r is a normal number, and in float also in a row whose
/// norm is so small beside sqrt(eps) that none may be (all of x r below 2^-80), for every finite row. Squares of
/// float are added up in pairs, eight to a lane, and those sums in double; where one lane has a quarter of the sum, so that
/// its roundings are not lost among others, all is done again in double. r is computed in double, and a row whose squares
/// leave the range of its type is scaled by a power of two. With eps = 0, y(c x) = y(x) to the bit for powers of two c, as
/// long as c x is exact. x r (1 + w) is rounded once; a zero of it is +0 where w is negative.
template <writable_rows Y, readable_rows X, channel_weight W>
void rms_norm(Y&& y, const X& x, const W& weight, rms_norm_options<local::arithmetic<W, Y, const X&>> options);

/// `rms_norm(y, x, zero_centered(w), options)`: f = 1 + w.
template <writable_rows Y, readable_rows X, readable_rows W>
void zero_centered_rms_norm(Y&& y, const X& x, const W& w,
                            rms_norm_options<detail::arithmetic<Y, const X&, const W&>> options);

/// The gradient: with a = dy f and xh = x r,
///
///     dx = r (a - xh mean(a xh))      overwritten; may be exactly dy or x
///     dw = sum over rows of dy xh     of float or double; overwritten, or added to with `.dw =
///                                     weight_gradient::accumulate`. It must share nothing with the others.
///
/// dw is summed row after row in its own type; a dw of double is also computed in double. Data of float or narrower are
/// computed with in float where the sums of a row stay in range and do not cancel, else in double. Without `dw` only dx is
/// computed. dw does not depend on the kind of weight. Without a row, dw is 0 (or left alone).
/// Error of dx: at most 4 ulp of the largest term, max_j r (|a_j| + |xh_j| mean|a xh|) (dx itself can cancel), of double
/// where max_j |a_j| is no less than 2^-950 of max_j |f_j| max_j |dy_j|; of what a row adds to dw: 4 ulp, where an element
/// has its bound in `rms_norm`, and everywhere in a dw of double of narrower x.
template <writable_rows DX, readable_rows X, channel_weight W, readable_rows DY>
void rms_norm_vjp(DX&& dx, const X& x, const W& weight, const DY& dy,
                  rms_norm_vjp_options<local::arithmetic<W, DX, const X&, const DY&>> options);
template <writable_rows DX, writable_rows DW, readable_rows X, channel_weight W, readable_rows DY>
    requires arithmetic_rows<DW>
void rms_norm_vjp(DX&& dx, DW&& dw, const X& x, const W& weight, const DY& dy,
                  rms_norm_vjp_options<local::arithmetic<W, DX, const X&, const DY&>> options);

/// The derivative along tx, or along tx and the tangent of the weight:
///
///     ty = f r (tx - xh mean(tx xh))
///     ty = f r (tx - xh mean(tx xh)) + xh tw
///
/// tw has one element per column, and is the tangent of the weight as it is stored: plain rows for zero_centered(w) too,
/// since 1 + w moves as w does. Computed in double and rounded once. ty may be exactly tx or x; it must share nothing with
/// the weight and tw. Error: half an ulp and 4 ulp of double of |f_j| times the largest term, max_j r (|tx_j| + |xh_j|
/// mean|tx xh|), with tw of that + |xh_j tw_j|; in double the latter alone, with tw where f r (...) itself stays in range
/// and xh_j is a normal number.
template <writable_rows TY, readable_rows X, channel_weight W, readable_rows TX>
void rms_norm_jvp(TY&& ty, const X& x, const W& weight, const TX& tx,
                  rms_norm_options<local::arithmetic<W, TY, const X&, const TX&>> options);
template <writable_rows TY, readable_rows X, stored_weight W, readable_rows TX, readable_rows TW>
void rms_norm_jvp(TY&& ty, const X& x, const W& weight, const TX& tx, const TW& tw,
                  rms_norm_options<local::arithmetic<W, TY, const X&, const TX&, const TW&>> options);

/// The root mean square of all elements of x, without eps; 0 if there is none. No overflow or underflow on the way.
/// Error: at most 1 ulp in float, 2 ulp in double (tested, rows to 130), and half an ulp more for each row after the first.
template <readable_rows X>
auto rms(const X& x) -> detail::arithmetic<const X&>;

// --- implementation --------------------------------------------------------------------------------------------

template <writable_rows Y, readable_rows X, channel_weight W>
void rms_norm(Y&& y, const X& x, const W& weight, rms_norm_options<local::arithmetic<W, Y, const X&>> options)
{
    const auto out = detail::view(y);
    const auto in = detail::constant_view(x);
    const auto w = local::channels(weight);
    RESIDUA_ASSERT(detail::same_shape(out, in), "rms_norm: y and x differ in shape");
    RESIDUA_ASSERT(w.fits(in.columns), "rms_norm: the weight must have one element per column");
    RESIDUA_ASSERT(detail::same_or_apart(out, in), "rms_norm: y and x overlap in part");
    RESIDUA_ASSERT(detail::apart(out, w.w), "rms_norm: y overlaps the weight");
    RESIDUA_ASSERT(options.eps.value >= 0, "rms_norm: eps must be at least 0");
    kernels::rms_norm(detail::shape_of(out), detail::memory(out), detail::memory(in), w.memory(), w.kind,
                      options.eps.value, options.rounding);
}

template <writable_rows Y, readable_rows X, readable_rows W>
void zero_centered_rms_norm(Y&& y, const X& x, const W& w,
                            rms_norm_options<detail::arithmetic<Y, const X&, const W&>> options)
{
    RESIDUA_SELF::rms_norm(y, x, RESIDUA_SELF::zero_centered(w), options);
}

namespace local {

template <class DX, class DW, class X, class W, class DY, class T>
void check_and_run_rms_norm_vjp(rows<DX> dx, rows<DW> dw, rows<const X> x, const W& weight, rows<const DY> dy,
                                rms_norm_vjp_options<T> options)
{
    const auto w = local::channels(weight);
    RESIDUA_ASSERT(detail::same_shape(dx, x, dy), "rms_norm_vjp: dx, x and dy differ in shape");
    RESIDUA_ASSERT(w.fits(x.columns), "rms_norm_vjp: the weight must have one element per column");
    RESIDUA_ASSERT(detail::same_or_apart(dx, x, dy), "rms_norm_vjp: dx overlaps an input in part");
    RESIDUA_ASSERT(detail::apart(dx, w.w) && detail::apart(dx, dw), "rms_norm_vjp: dx overlaps the weight or dw");
    RESIDUA_ASSERT(detail::apart(dw, w.w) && detail::apart(dw, x) && detail::apart(dw, dy),
                   "rms_norm_vjp: dw overlaps an input");
    RESIDUA_ASSERT(options.eps.value >= 0, "rms_norm_vjp: eps must be at least 0");
    kernels::rms_norm_vjp(detail::shape_of(dx), detail::memory(dx), detail::memory(dw), detail::memory(x),
                          w.memory(), w.kind, detail::memory(dy), options.eps.value, options.dw);
}

}  // namespace local

template <writable_rows DX, readable_rows X, channel_weight W, readable_rows DY>
void rms_norm_vjp(DX&& dx, const X& x, const W& weight, const DY& dy,
                  rms_norm_vjp_options<local::arithmetic<W, DX, const X&, const DY&>> options)
{
    local::check_and_run_rms_norm_vjp(detail::view(dx), rows<float>{}, detail::constant_view(x), weight,
                                      detail::constant_view(dy), options);
}

template <writable_rows DX, writable_rows DW, readable_rows X, channel_weight W, readable_rows DY>
    requires arithmetic_rows<DW>
void rms_norm_vjp(DX&& dx, DW&& dw, const X& x, const W& weight, const DY& dy,
                  rms_norm_vjp_options<local::arithmetic<W, DX, const X&, const DY&>> options)
{
    const auto gradient = detail::view(dw);
    RESIDUA_ASSERT(local::one_per_column(gradient, detail::constant_view(x)),
                   "rms_norm_vjp: dw must have one element per column");
    local::check_and_run_rms_norm_vjp(detail::view(dx), gradient, detail::constant_view(x), weight,
                                      detail::constant_view(dy), options);
}

namespace local {

template <class TY, class X, class W, class TX, class TW, class T>
void check_and_run_rms_norm_jvp(rows<TY> ty, rows<const X> x, const W& weight, rows<const TX> tx, rows<const TW> tw,
                                rms_norm_options<T> options)
{
    const auto w = local::channels(weight);
    RESIDUA_ASSERT(detail::same_shape(ty, x, tx), "rms_norm_jvp: ty, x and tx differ in shape");
    RESIDUA_ASSERT(w.fits(x.columns), "rms_norm_jvp: the weight must have one element per column");
    RESIDUA_ASSERT(detail::same_or_apart(ty, x, tx), "rms_norm_jvp: ty overlaps an input in part");
    RESIDUA_ASSERT(detail::apart(ty, w.w) && detail::apart(ty, tw), "rms_norm_jvp: ty overlaps the weight or tw");
    RESIDUA_ASSERT(options.eps.value >= 0, "rms_norm_jvp: eps must be at least 0");
    kernels::rms_norm_jvp(detail::shape_of(ty), detail::memory(ty), detail::memory(x), w.memory(), w.kind,
                          detail::memory(tx), detail::memory(tw), static_cast<double>(options.eps.value));
}

}  // namespace local

template <writable_rows TY, readable_rows X, channel_weight W, readable_rows TX>
void rms_norm_jvp(TY&& ty, const X& x, const W& weight, const TX& tx,
                  rms_norm_options<local::arithmetic<W, TY, const X&, const TX&>> options)
{
    local::check_and_run_rms_norm_jvp(detail::view(ty), detail::constant_view(x), weight, detail::constant_view(tx),
                                      rows<const float>{}, options);
}

template <writable_rows TY, readable_rows X, stored_weight W, readable_rows TX, readable_rows TW>
void rms_norm_jvp(TY&& ty, const X& x, const W& weight, const TX& tx, const TW& tw,
                  rms_norm_options<local::arithmetic<W, TY, const X&, const TX&, const TW&>> options)
{
    const auto tangent = detail::constant_view(tw);
    RESIDUA_ASSERT(local::one_per_column(tangent, detail::constant_view(x)),
                   "rms_norm_jvp: tw must have one element per column");
    local::check_and_run_rms_norm_jvp(detail::view(ty), detail::constant_view(x), weight, detail::constant_view(tx),
                                      tangent, options);
}

template <readable_rows X>
auto rms(const X& x) -> detail::arithmetic<const X&>
{
    const auto in = detail::constant_view(x);
    return kernels::rms<detail::arithmetic<const X&>>(detail::shape_of(in), detail::memory(in));
}

}  // namespace RESIDUA_API

#endif
