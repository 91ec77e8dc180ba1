/// \file
/// RMSNorm, its gradient and its derivative, of a row whose elements are spread over several owners (threads, devices,
/// machines): each sums the squares of its part, the sums are combined, and each normalises its part. The gradient and the
/// derivative exchange one more sum.
///
///     square_sum mine = sum_of_squares(x);                       // by each owner, and exchanged
///     square_sum all = combine(parts);                           // in one order, the same for every owner
///     rms_norm_apply(y, x, w, all, n, {.eps = 1e-6f});           // by each owner: n elements in the whole row
///
///     product_sum mine = rms_norm_vjp_sum(x, w, dy, all, n, {.eps = 1e-6f});
///     product_sum sum = combine(parts);
///     rms_norm_apply_vjp(dx, dw, x, w, dy, all, sum, n, {.eps = 1e-6f});
///
/// Shapes: every operand is the part of one row or of many, w the part of the weight that belongs to it; the sums are one
/// for each row (of one row: the sum itself, of many: a contiguous range), and `count` is the length of the whole rows.
/// Right for every finite row, as `rms_norm` is, and within the same bounds. Where the parts end decides the bits; how
/// the parts of one row are spread over owners does not. Of one part it gives the bits of `rms_norm`; of more, the sum is
/// taken in another order, so r (a double) may differ in its last bits, and y in its last.
/// Source of the formulas: as for `rms_norm`; a mean of squares, or of products, is the sum of its parts' sums.
/// Errors: as for `rms_norm`; another number of sums than of rows; a row that is shorter than its part: RESIDUA_ASSERT.
#if !defined(RESIDUA_SPLIT_RMS_NORM_HPP) || defined(RESIDUA_DISPATCH_PASS)
#ifndef RESIDUA_DISPATCH_PASS
#define RESIDUA_SPLIT_RMS_NORM_HPP
#include <residua/rms_norm.hpp>
#endif

#include <concepts>
#include <span>

namespace RESIDUA_API {

/// The sum of the squares of one row, or of a part of one: for elements of double in double, else as `rms_norm` sums
/// them. 0 for an empty row; NaN if an element is; infinite if one is and none is NaN. Error: at most 4 u of the
/// sum, u = 2^-24 in float and 2^-53 in double (tested, rows to 4097).
/// Errors: more than one row: RESIDUA_ASSERT.
template <readable_rows X>
square_sum sum_of_squares(const X& x);
/// The same for each row of x: as many sums as rows.
template <readable_rows X>
void sum_of_squares(std::span<square_sum> sums, const X& x);

/// The sum of all parts, added from the first to the last. No part overflows, and none is lost beside a larger one but
/// by the rounding of a double: each part after the first is one rounding, 2^-53 of the sum.
square_sum combine(std::span<const square_sum> parts);
/// The same of products; they may cancel, and what they then leave carries the roundings of the largest.
product_sum combine(std::span<const product_sum> parts);

namespace local {

/// What is known of each row: one sum, or as many as there are rows.
template <class S>
struct sums_of_rows {
    std::span<const S> sums;

    constexpr sums_of_rows(const S& one) noexcept : sums{&one, 1} {}
    template <class R>
        requires std::convertible_to<const R&, std::span<const S>>
    constexpr sums_of_rows(const R& many) noexcept : sums{many}
    {
    }
};

}  // namespace local

/// y = x r f as `rms_norm`, for the part x of a row of `count` elements with these squares. y may be exactly x, and is
/// overwritten; it must share nothing with the weight.
template <writable_rows Y, readable_rows X, channel_weight W>
void rms_norm_apply(Y&& y, const X& x, const W& weight, local::sums_of_rows<square_sum> squares, std::size_t count,
                    rms_norm_options<local::arithmetic<W, Y, const X&>> options);

/// What the gradient needs to know of a part of a row: the sum of dy f x. Computed in double; 0 for an empty part.
template <readable_rows X, channel_weight W, readable_rows DY>
product_sum rms_norm_vjp_sum(const X& x, const W& weight, const DY& dy, const square_sum& squares,
                             std::size_t count,
                             rms_norm_options<local::arithmetic<W, const X&, const DY&>> options);
/// The same for each row of x: as many sums as rows.
template <readable_rows X, channel_weight W, readable_rows DY>
void rms_norm_vjp_sum(std::span<product_sum> sums, const X& x, const W& weight, const DY& dy,
                      local::sums_of_rows<square_sum> squares, std::size_t count,
                      rms_norm_options<local::arithmetic<W, const X&, const DY&>> options);

/// The gradient of `rms_norm` (see `rms_norm_vjp`), for a part of a row whose squares and products are known: dx is
/// overwritten and may be exactly dy or x; dw, one element per column of the part and of float or double, is overwritten
/// or added to, or left out. Computed in double and rounded once (dw: after each row). Of one part of double, the bits
/// of `rms_norm_vjp`. Error: at most 4 ulp of the largest term of the whole row, as there (tested).
template <writable_rows DX, readable_rows X, channel_weight W, readable_rows DY>
void rms_norm_apply_vjp(DX&& dx, const X& x, const W& weight, const DY& dy, local::sums_of_rows<square_sum> squares,
                        local::sums_of_rows<product_sum> products, std::size_t count,
                        rms_norm_vjp_options<local::arithmetic<W, DX, const X&, const DY&>> options);
template <writable_rows DX, writable_rows DW, readable_rows X, channel_weight W, readable_rows DY>
    requires arithmetic_rows<DW>
void rms_norm_apply_vjp(DX&& dx, DW&& dw, const X& x, const W& weight, const DY& dy,
                        local::sums_of_rows<square_sum> squares, local::sums_of_rows<product_sum> products,
                        std::size_t count,
                        rms_norm_vjp_options<local::arithmetic<W, DX, const X&, const DY&>> options);

/// What the derivative along tx needs to know of a part of a row: the sum of tx x. Computed in double; 0 for an empty
/// part.
template <readable_rows X, readable_rows TX>
product_sum rms_norm_jvp_sum(const X& x, const TX& tx, const square_sum& squares, std::size_t count,
                             rms_norm_options<detail::arithmetic<const X&, const TX&>> options);
/// The same for each row of x: as many sums as rows.
template <readable_rows X, readable_rows TX>
void rms_norm_jvp_sum(std::span<product_sum> sums, const X& x, const TX& tx,
                      local::sums_of_rows<square_sum> squares, std::size_t count,
                      rms_norm_options<detail::arithmetic<const X&, const TX&>> options);

/// The derivative of `rms_norm` along tx, or along tx and the part tw of the tangent of the weight (see `rms_norm_jvp`),
/// for a part of a row whose squares and products are known: the sums do not depend on tw. ty is overwritten and may be
/// exactly tx or x. Computed in double and rounded once; of one part of double, the bits of `rms_norm_jvp`. Error: at most
/// 4 ulp of |f_j| times the largest term of the whole row, or of that and |xh_j tw_j|, as there (tested).
template <writable_rows TY, readable_rows X, channel_weight W, readable_rows TX>
void rms_norm_apply_jvp(TY&& ty, const X& x, const W& weight, const TX& tx, local::sums_of_rows<square_sum> squares,
                        local::sums_of_rows<product_sum> products, std::size_t count,
                        rms_norm_options<local::arithmetic<W, TY, const X&, const TX&>> options);
template <writable_rows TY, readable_rows X, stored_weight W, readable_rows TX, readable_rows TW>
void rms_norm_apply_jvp(TY&& ty, const X& x, const W& weight, const TX& tx, const TW& tw,
                        local::sums_of_rows<square_sum> squares, local::sums_of_rows<product_sum> products,
                        std::size_t count,
                        rms_norm_options<local::arithmetic<W, TY, const X&, const TX&, const TW&>> options);

// --- implementation --------------------------------------------------------------------------------------------

template <readable_rows X>
void sum_of_squares(std::span<square_sum> sums, const X& x)
{
    const auto in = detail::constant_view(x);
    RESIDUA_ASSERT(sums.size() == in.count, "sum_of_squares: as many sums as rows");
    kernels::sum_of_squares<detail::arithmetic<const X&>>(detail::shape_of(in), sums.data(), detail::memory(in));
}

template <readable_rows X>
square_sum sum_of_squares(const X& x)
{
    square_sum sum{};
    RESIDUA_SELF::sum_of_squares(std::span{&sum, 1}, x);
    return sum;
}

inline square_sum combine(std::span<const square_sum> parts)
{
    return kernels::combine(parts.data(), parts.size());
}
inline product_sum combine(std::span<const product_sum> parts)
{
    return kernels::combine_products(parts.data(), parts.size());
}

template <writable_rows Y, readable_rows X, channel_weight W>
void rms_norm_apply(Y&& y, const X& x, const W& weight, local::sums_of_rows<square_sum> squares, std::size_t count,
                    rms_norm_options<local::arithmetic<W, Y, const X&>> options)
{
    const auto out = detail::view(y);
    const auto in = detail::constant_view(x);
    const auto w = local::channels(weight);
    RESIDUA_ASSERT(detail::same_shape(out, in), "rms_norm_apply: y and x differ in shape");
    RESIDUA_ASSERT(w.fits(in.columns), "rms_norm_apply: the weight must have one element per column");
    RESIDUA_ASSERT(squares.sums.size() == in.count, "rms_norm_apply: as many sums as rows");
    RESIDUA_ASSERT(count >= in.columns, "rms_norm_apply: a part is longer than its row");
    RESIDUA_ASSERT(detail::same_or_apart(out, in), "rms_norm_apply: y and x overlap in part");
    RESIDUA_ASSERT(detail::apart(out, w.w), "rms_norm_apply: y overlaps the weight");
    RESIDUA_ASSERT(options.eps.value >= 0, "rms_norm_apply: eps must be at least 0");
    kernels::rms_norm_apply(detail::shape_of(out), detail::memory(out), detail::memory(in), w.memory(), w.kind,
                            squares.sums.data(), count, options.eps.value, options.rounding);
}

template <readable_rows X, channel_weight W, readable_rows DY>
void rms_norm_vjp_sum(std::span<product_sum> sums, const X& x, const W& weight, const DY& dy,
                      local::sums_of_rows<square_sum> squares, std::size_t count,
                      rms_norm_options<local::arithmetic<W, const X&, const DY&>> options)
{
    const auto in = detail::constant_view(x);
    const auto gradient = detail::constant_view(dy);
    const auto w = local::channels(weight);
    RESIDUA_ASSERT(detail::same_shape(in, gradient), "rms_norm_vjp_sum: x and dy differ in shape");
    RESIDUA_ASSERT(w.fits(in.columns), "rms_norm_vjp_sum: the weight must have one element per column");
    RESIDUA_ASSERT(sums.size() == in.count && squares.sums.size() == in.count,
                   "rms_norm_vjp_sum: as many sums as rows");
    RESIDUA_ASSERT(count >= in.columns, "rms_norm_vjp_sum: a part is longer than its row");
    RESIDUA_ASSERT(options.eps.value >= 0, "rms_norm_vjp_sum: eps must be at least 0");
    kernels::rms_norm_products(detail::shape_of(in), sums.data(), detail::memory(in), w.memory(), w.kind,
                               detail::memory(gradient), squares.sums.data(), count,
                               static_cast<double>(options.eps.value));
}

template <readable_rows X, channel_weight W, readable_rows DY>
product_sum rms_norm_vjp_sum(const X& x, const W& weight, const DY& dy, const square_sum& squares,
                             std::size_t count, rms_norm_options<local::arithmetic<W, const X&, const DY&>> options)
{
    product_sum sum{};
    RESIDUA_SELF::rms_norm_vjp_sum(std::span{&sum, 1}, x, weight, dy, squares, count, options);
    return sum;
}

template <readable_rows X, readable_rows TX>
void rms_norm_jvp_sum(std::span<product_sum> sums, const X& x, const TX& tx,
                      local::sums_of_rows<square_sum> squares, std::size_t count,
                      rms_norm_options<detail::arithmetic<const X&, const TX&>> options)
{
    RESIDUA_SELF::rms_norm_vjp_sum(sums, x, no_weight, tx, squares, count, {.eps = options.eps.value});
}
template <readable_rows X, readable_rows TX>
product_sum rms_norm_jvp_sum(const X& x, const TX& tx, const square_sum& squares, std::size_t count,
                             rms_norm_options<detail::arithmetic<const X&, const TX&>> options)
{
    return RESIDUA_SELF::rms_norm_vjp_sum(x, no_weight, tx, squares, count, {.eps = options.eps.value});
}

namespace local {

template <class DX, class DW, class X, class W, class DY, class T>
void check_and_run_rms_norm_apply_vjp(rows<DX> dx, rows<DW> dw, rows<const X> x, const W& weight, rows<const DY> dy,
                                      std::span<const square_sum> squares, std::span<const product_sum> products,
                                      std::size_t count, rms_norm_vjp_options<T> options)
{
    const auto w = local::channels(weight);
    RESIDUA_ASSERT(detail::same_shape(dx, x, dy), "rms_norm_apply_vjp: dx, x and dy differ in shape");
    RESIDUA_ASSERT(w.fits(x.columns), "rms_norm_apply_vjp: the weight must have one element per column");
    RESIDUA_ASSERT(squares.size() == x.count && products.size() == x.count,
                   "rms_norm_apply_vjp: as many sums as rows");
    RESIDUA_ASSERT(count >= x.columns, "rms_norm_apply_vjp: a part is longer than its row");
    RESIDUA_ASSERT(detail::same_or_apart(dx, x, dy), "rms_norm_apply_vjp: dx overlaps an input in part");
    RESIDUA_ASSERT(detail::apart(dx, w.w) && detail::apart(dx, dw),
                   "rms_norm_apply_vjp: dx overlaps the weight or dw");
    RESIDUA_ASSERT(detail::apart(dw, w.w) && detail::apart(dw, x) && detail::apart(dw, dy),
                   "rms_norm_apply_vjp: dw overlaps an input");
    RESIDUA_ASSERT(options.eps.value >= 0, "rms_norm_apply_vjp: eps must be at least 0");
    kernels::rms_norm_apply_vjp(detail::shape_of(dx), detail::memory(dx), detail::memory(dw), detail::memory(x),
                                w.memory(), w.kind, detail::memory(dy), squares.data(), products.data(), count,
                                static_cast<double>(options.eps.value), options.dw);
}

}  // namespace local

template <writable_rows DX, readable_rows X, channel_weight W, readable_rows DY>
void rms_norm_apply_vjp(DX&& dx, const X& x, const W& weight, const DY& dy, local::sums_of_rows<square_sum> squares,
                        local::sums_of_rows<product_sum> products, std::size_t count,
                        rms_norm_vjp_options<local::arithmetic<W, DX, const X&, const DY&>> options)
{
    local::check_and_run_rms_norm_apply_vjp(detail::view(dx), rows<float>{}, detail::constant_view(x), weight,
                                            detail::constant_view(dy), squares.sums, products.sums, count, options);
}

template <writable_rows DX, writable_rows DW, readable_rows X, channel_weight W, readable_rows DY>
    requires arithmetic_rows<DW>
void rms_norm_apply_vjp(DX&& dx, DW&& dw, const X& x, const W& weight, const DY& dy,
                        local::sums_of_rows<square_sum> squares, local::sums_of_rows<product_sum> products,
                        std::size_t count,
                        rms_norm_vjp_options<local::arithmetic<W, DX, const X&, const DY&>> options)
{
    const auto gradient = detail::view(dw);
    RESIDUA_ASSERT(local::one_per_column(gradient, detail::constant_view(x)),
                   "rms_norm_apply_vjp: dw must have one element per column");
    local::check_and_run_rms_norm_apply_vjp(detail::view(dx), gradient, detail::constant_view(x), weight,
                                            detail::constant_view(dy), squares.sums, products.sums, count, options);
}

namespace local {

template <class TY, class X, class W, class TX, class TW, class T>
void check_and_run_rms_norm_apply_jvp(rows<TY> ty, rows<const X> x, const W& weight, rows<const TX> tx,
                                      rows<const TW> tw, std::span<const square_sum> squares,
                                      std::span<const product_sum> products, std::size_t count,
                                      rms_norm_options<T> options)
{
    const auto w = local::channels(weight);
    RESIDUA_ASSERT(detail::same_shape(ty, x, tx), "rms_norm_apply_jvp: ty, x and tx differ in shape");
    RESIDUA_ASSERT(w.fits(x.columns), "rms_norm_apply_jvp: the weight must have one element per column");
    RESIDUA_ASSERT(squares.size() == x.count && products.size() == x.count,
                   "rms_norm_apply_jvp: as many sums as rows");
    RESIDUA_ASSERT(count >= x.columns, "rms_norm_apply_jvp: a part is longer than its row");
    RESIDUA_ASSERT(detail::same_or_apart(ty, x, tx), "rms_norm_apply_jvp: ty overlaps an input in part");
    RESIDUA_ASSERT(detail::apart(ty, w.w) && detail::apart(ty, tw),
                   "rms_norm_apply_jvp: ty overlaps the weight or tw");
    RESIDUA_ASSERT(options.eps.value >= 0, "rms_norm_apply_jvp: eps must be at least 0");
    kernels::rms_norm_apply_jvp(detail::shape_of(ty), detail::memory(ty), detail::memory(x), w.memory(), w.kind,
                                detail::memory(tx), detail::memory(tw), squares.data(), products.data(), count,
                                static_cast<double>(options.eps.value));
}

}  // namespace local

template <writable_rows TY, readable_rows X, channel_weight W, readable_rows TX>
void rms_norm_apply_jvp(TY&& ty, const X& x, const W& weight, const TX& tx, local::sums_of_rows<square_sum> squares,
                        local::sums_of_rows<product_sum> products, std::size_t count,
                        rms_norm_options<local::arithmetic<W, TY, const X&, const TX&>> options)
{
    local::check_and_run_rms_norm_apply_jvp(detail::view(ty), detail::constant_view(x), weight,
                                            detail::constant_view(tx), rows<const float>{}, squares.sums,
                                            products.sums, count, options);
}

template <writable_rows TY, readable_rows X, stored_weight W, readable_rows TX, readable_rows TW>
void rms_norm_apply_jvp(TY&& ty, const X& x, const W& weight, const TX& tx, const TW& tw,
                        local::sums_of_rows<square_sum> squares, local::sums_of_rows<product_sum> products,
                        std::size_t count,
                        rms_norm_options<local::arithmetic<W, TY, const X&, const TX&, const TW&>> options)
{
    const auto tangent = detail::constant_view(tw);
    RESIDUA_ASSERT(local::one_per_column(tangent, detail::constant_view(x)),
                   "rms_norm_apply_jvp: tw must have one element per column");
    local::check_and_run_rms_norm_apply_jvp(detail::view(ty), detail::constant_view(x), weight,
                                            detail::constant_view(tx), tangent, squares.sums, products.sums, count,
                                            options);
}

}  // namespace RESIDUA_API

#endif
