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
    required<T> eps;  ///< added to the mean square, at least 0
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
    return zero_centered_weight<detail::value_of<const W&>>{detail::input(w)};
}

/// In the place of a weight: none.
struct no_weight_t {};
inline constexpr no_weight_t no_weight{};

namespace local {

/// A weight of any kind as the kernel takes it.
template <class T>
struct channel_weight {
    const T* w;
    std::size_t count;
    std::size_t columns;
    norm_weight kind;
};
template <class T, readable_rows W>
constexpr channel_weight<T> channels(const W& w, std::size_t)
{
    const auto r = detail::input(w);
    static_assert(std::is_same_v<decltype(r), const rows<const T>>, "the weight and the data differ in type");
    return {r.data, r.count, r.columns, norm_weight::plain};
}
template <class T>
constexpr channel_weight<T> channels(zero_centered_weight<T> w, std::size_t)
{
    return {w.w.data, w.w.count, w.w.columns, norm_weight::zero_centered};
}
template <class T>
constexpr channel_weight<T> channels(no_weight_t, std::size_t columns)
{
    return {nullptr, 1, columns, norm_weight::none};
}

/// The memory of a weight, for the test of overlap.
template <class T>
constexpr rows<const T> as_row(channel_weight<T> w)
{
    return {w.w, w.w == nullptr ? 0u : 1u, w.columns};
}

}  // namespace local

/// y = x r f. y may be exactly x, and is overwritten; it must share nothing with the weight.
///
/// Error: at most 2.5 ulp in float and 4.5 ulp in double (tested, rows to 4097) wherever x r is a normal number, for
/// every finite row: squares are summed in lanes that are folded into double, r is computed in double, and a row whose
/// squares leave the range of its type is scaled by a power of two. With eps = 0, y(c x) = y(x) to the bit for powers
/// of two c, as long as c x is exact.
template <writable_rows Y, readable_rows X, class W>
    requires same_type_as<Y, X>
void rms_norm(Y&& y, const X& x, const W& weight,
              std::type_identity_t<rms_norm_options<detail::value_of<Y>>> options);

/// `rms_norm(y, x, zero_centered(w), options)`: f = 1 + w, formed in the data's type.
template <writable_rows Y, readable_rows X, readable_rows W>
    requires(same_type_as<Y, X> && same_type_as<Y, W>)
void zero_centered_rms_norm(Y&& y, const X& x, const W& w,
                            std::type_identity_t<rms_norm_options<detail::value_of<Y>>> options);

/// The gradient: with a = dy f and xh = x r,
///
///     dx = r (a - xh mean(a xh))      overwritten; may be exactly dy or x
///     dw += sum over rows of dy xh    accumulated, rows in order; share nothing with the others
///
/// Without `dw` only dx is computed. dw does not depend on the kind of weight.
/// Error of dx: at most 4 ulp of max_j |r a_j| (dx itself can cancel).
template <writable_rows DX, readable_rows X, class W, readable_rows DY>
    requires(same_type_as<DX, X> && same_type_as<DX, DY>)
void rms_norm_vjp(DX&& dx, const X& x, const W& weight, const DY& dy,
                  std::type_identity_t<rms_norm_options<detail::value_of<DX>>> options);
template <writable_rows DX, writable_rows DW, readable_rows X, class W, readable_rows DY>
    requires(same_type_as<DX, X> && same_type_as<DX, DY> && same_type_as<DX, DW>)
void rms_norm_vjp(DX&& dx, DW&& dw, const X& x, const W& weight, const DY& dy,
                  std::type_identity_t<rms_norm_options<detail::value_of<DX>>> options);

/// The root mean square of all elements of x, without eps; 0 if there is none. No overflow or underflow on the way.
/// Error: at most 1 ulp in float, 2 ulp in double (tested, rows to 130), and half an ulp more for each row after the first.
template <readable_rows X>
auto rms(const X& x) -> detail::value_of<const X&>;

// --- implementation --------------------------------------------------------------------------------------------

template <writable_rows Y, readable_rows X, class W>
    requires same_type_as<Y, X>
void rms_norm(Y&& y, const X& x, const W& weight,
              std::type_identity_t<rms_norm_options<detail::value_of<Y>>> options)
{
    using T = detail::value_of<Y>;
    const auto out = detail::view(y);
    const auto in = detail::input(x);
    const auto w = local::channels<T>(weight, in.columns);
    RESIDUA_ASSERT(detail::same_shape(out, in), "rms_norm: y and x differ in shape");
    RESIDUA_ASSERT(w.count == 1 && w.columns == in.columns,
                   "rms_norm: the weight must have one element per column");
    RESIDUA_ASSERT(detail::same_or_apart(out, in), "rms_norm: y and x overlap in part");
    RESIDUA_ASSERT(detail::apart(out, local::as_row(w)), "rms_norm: y overlaps the weight");
    RESIDUA_ASSERT(options.eps.value >= 0, "rms_norm: eps must be at least 0");
    kernels::rms_norm(out, in, w.w, w.kind, options.eps.value);
}

template <writable_rows Y, readable_rows X, readable_rows W>
    requires(same_type_as<Y, X> && same_type_as<Y, W>)
void zero_centered_rms_norm(Y&& y, const X& x, const W& w,
                            std::type_identity_t<rms_norm_options<detail::value_of<Y>>> options)
{
    RESIDUA_SELF::rms_norm(y, x, RESIDUA_SELF::zero_centered(w), options);
}

namespace local {

template <class T, class W>
void check_and_run_rms_norm_vjp(rows<T> dx, rows<T> dw, rows<const T> x, const W& weight, rows<const T> dy, T eps)
{
    const auto w = channels<T>(weight, x.columns);
    RESIDUA_ASSERT(detail::same_shape(dx, x) && detail::same_shape(dx, dy),
                   "rms_norm_vjp: dx, x and dy differ in shape");
    RESIDUA_ASSERT(w.count == 1 && w.columns == x.columns,
                   "rms_norm_vjp: the weight must have one element per column");
    RESIDUA_ASSERT(detail::same_or_apart(dx, x) && detail::same_or_apart(dx, dy),
                   "rms_norm_vjp: dx overlaps an input in part");
    RESIDUA_ASSERT(detail::apart(dx, as_row(w)) && detail::apart(dx, dw),
                   "rms_norm_vjp: dx overlaps the weight or dw");
    RESIDUA_ASSERT(detail::apart(dw, as_row(w)) && detail::apart(dw, x) && detail::apart(dw, dy),
                   "rms_norm_vjp: dw overlaps an input");
    RESIDUA_ASSERT(eps >= 0, "rms_norm_vjp: eps must be at least 0");
    kernels::rms_norm_vjp(dx, dw.data, x, w.w, w.kind, dy, eps);
}

}  // namespace local

template <writable_rows DX, readable_rows X, class W, readable_rows DY>
    requires(same_type_as<DX, X> && same_type_as<DX, DY>)
void rms_norm_vjp(DX&& dx, const X& x, const W& weight, const DY& dy,
                  std::type_identity_t<rms_norm_options<detail::value_of<DX>>> options)
{
    using T = detail::value_of<DX>;
    local::check_and_run_rms_norm_vjp<T>(detail::view(dx), {}, detail::input(x), weight, detail::input(dy),
                                         options.eps.value);
}

template <writable_rows DX, writable_rows DW, readable_rows X, class W, readable_rows DY>
    requires(same_type_as<DX, X> && same_type_as<DX, DY> && same_type_as<DX, DW>)
void rms_norm_vjp(DX&& dx, DW&& dw, const X& x, const W& weight, const DY& dy,
                  std::type_identity_t<rms_norm_options<detail::value_of<DX>>> options)
{
    using T = detail::value_of<DX>;
    RESIDUA_ASSERT(detail::view(dw).count == 1 && detail::view(dw).columns == detail::input(x).columns,
                   "rms_norm_vjp: dw must have one element per column");
    local::check_and_run_rms_norm_vjp<T>(detail::view(dx), detail::view(dw), detail::input(x), weight,
                                         detail::input(dy), options.eps.value);
}

template <readable_rows X>
auto rms(const X& x) -> detail::value_of<const X&>
{
    return kernels::rms(detail::input(x));
}

}  // namespace RESIDUA_API

#endif
