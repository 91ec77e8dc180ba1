/// \file
/// RMSNorm of a row whose elements are spread over several owners (threads, devices, machines): each sums the squares of
/// its part, the sums are combined, and each normalises its part.
///
///     square_sum mine = sum_of_squares(x);                       // by each owner, and exchanged
///     square_sum all = combine(parts);                           // in one order, the same for every owner
///     rms_norm_apply(y, x, w, all, n, {.eps = 1e-6f});           // by each owner: n elements in the whole row
///
/// Right for every finite row, as `rms_norm` is, and within the same bounds. Of one part it gives the bits of
/// `rms_norm`; of more, the sum is taken in another order, so r (a double) may differ in its last bits, and y in its
/// last. Where the parts end decides the bits; how the parts of one row are spread over owners does not.
#if !defined(RESIDUA_SPLIT_RMS_NORM_HPP) || defined(RESIDUA_DISPATCH_PASS)
#ifndef RESIDUA_DISPATCH_PASS
#define RESIDUA_SPLIT_RMS_NORM_HPP
#include <residua/rms_norm.hpp>
#endif

#include <span>

namespace RESIDUA_API {

/// The sum of the squares of one row, or of a part of one: computed in double for elements of double, else in float that
/// is folded into double. 0 for an empty row; NaN if an element is; infinite if one is and none is NaN.
/// Errors: more than one row: RESIDUA_ASSERT.
template <readable_rows X>
square_sum sum_of_squares(const X& x);
/// The same for each row of x: as many sums as rows.
template <readable_rows X>
void sum_of_squares(std::span<square_sum> sums, const X& x);

/// The sum of all parts, added from the first to the last. No part overflows, and none is lost beside a larger one but
/// by the rounding of a double.
square_sum combine(std::span<const square_sum> parts);

/// y = x r f as `rms_norm`, for the part x of a row of `count` elements with these squares: w is the part of the weight
/// that belongs to x. y may be exactly x, and is overwritten; it must share nothing with the weight.
/// Errors: as for `rms_norm`; more than one row; a row that is shorter than its part.
template <writable_rows Y, readable_rows X, channel_weight W>
void rms_norm_apply(Y&& y, const X& x, const W& weight, const square_sum& squares, std::size_t count,
                    rms_norm_options<local::arithmetic<W, Y, const X&>> options);
/// The same for many rows: as many sums as rows, each of `count` elements.
template <writable_rows Y, readable_rows X, channel_weight W>
void rms_norm_apply(Y&& y, const X& x, const W& weight, std::span<const square_sum> squares, std::size_t count,
                    rms_norm_options<local::arithmetic<W, Y, const X&>> options);

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

template <writable_rows Y, readable_rows X, channel_weight W>
void rms_norm_apply(Y&& y, const X& x, const W& weight, std::span<const square_sum> squares, std::size_t count,
                    rms_norm_options<local::arithmetic<W, Y, const X&>> options)
{
    const auto out = detail::view(y);
    const auto in = detail::constant_view(x);
    const auto w = local::channels(weight);
    RESIDUA_ASSERT(detail::same_shape(out, in), "rms_norm_apply: y and x differ in shape");
    RESIDUA_ASSERT(w.fits(in.columns), "rms_norm_apply: the weight must have one element per column");
    RESIDUA_ASSERT(squares.size() == in.count, "rms_norm_apply: as many sums as rows");
    RESIDUA_ASSERT(count >= in.columns, "rms_norm_apply: a part is longer than its row");
    RESIDUA_ASSERT(detail::same_or_apart(out, in), "rms_norm_apply: y and x overlap in part");
    RESIDUA_ASSERT(detail::apart(out, w.w), "rms_norm_apply: y overlaps the weight");
    RESIDUA_ASSERT(options.eps.value >= 0, "rms_norm_apply: eps must be at least 0");
    kernels::rms_norm_apply(detail::shape_of(out), detail::memory(out), detail::memory(in), w.memory(), w.kind,
                            squares.data(), count, options.eps.value, options.rounding);
}

template <writable_rows Y, readable_rows X, channel_weight W>
void rms_norm_apply(Y&& y, const X& x, const W& weight, const square_sum& squares, std::size_t count,
                    rms_norm_options<local::arithmetic<W, Y, const X&>> options)
{
    RESIDUA_SELF::rms_norm_apply(y, x, weight, std::span{&squares, 1}, count, options);
}

}  // namespace RESIDUA_API

#endif
