// How far a result in any type of storage is from the exact value, beyond the one rounding that it cannot do without.
#ifndef RESIDUA_TESTS_SUPPORT_PRECISION_HPP
#define RESIDUA_TESTS_SUPPORT_PRECISION_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include <residua/types.hpp>

#include "support/reference.hpp"
#include "support/ulp.hpp"

namespace precision {

using reference::wide;
using reference::wide_row;

/// The precision of a type, the exponent of its smallest number, and the power of two after its largest.
template <class S>
struct format {
    static constexpr int digits = std::numeric_limits<S>::digits;
    static constexpr int least = std::numeric_limits<S>::min_exponent - digits;
    static constexpr int beyond = std::numeric_limits<S>::max_exponent;
    static constexpr const char* name = sizeof(S) == 4 ? "float" : "double";
};
template <>
struct format<residua::bfloat16> {
    static constexpr int digits = 8;
    static constexpr int least = -133;
    static constexpr int beyond = 128;
    static constexpr const char* name = "bfloat16";
};
template <>
struct format<residua::float16> {
    static constexpr int digits = 11;
    static constexpr int least = -24;
    static constexpr int beyond = 16;
    static constexpr const char* name = "float16";
};

/// What an operation on elements of type S computes with.
template <class S>
using arithmetic = std::conditional_t<std::is_same_v<S, double>, double, float>;

template <class S>
wide value(S x)
{
    return wide(arithmetic<S>(x));
}
template <class S>
wide_row widen(const std::vector<S>& x)
{
    wide_row all;
    for (const S e : x) all.push_back(value(e));
    return all;
}

/// The unit in the last place of the numbers around `exact`.
template <class S>
wide unit(wide exact)
{
    const int exponent = exact == 0 ? format<S>::least : std::ilogb(exact) - format<S>::digits + 1;
    return std::ldexp(wide(1), std::max(exponent, format<S>::least));
}

/// |got - exact|, an infinity counting as the power of two after the largest number.
template <class S>
wide distance(S got, wide exact)
{
    const wide beyond = std::ldexp(wide(1), format<S>::beyond);
    return std::abs(std::clamp(value(got), -beyond, beyond) - std::clamp(exact, -beyond, beyond));
}

/// The part of the error that is not the rounding to S, in units of `allowed`.
template <class S>
double beyond_rounding(S got, wide exact, wide allowed)
{
    if (std::isnan(value(got)) || std::isnan(exact)) {
        return std::isnan(value(got)) && std::isnan(exact) ? 0 : std::numeric_limits<double>::infinity();
    }
    const wide rest = distance(got, exact) - unit<S>(exact) / 2;
    return rest <= 0 ? 0 : static_cast<double>(rest / allowed);
}

/// Of an operation that computes in float, or in double for double: units in the last place; of 16 bits, that it is
/// rounded correctly except within 2^-18 of a tie (then at most 1).
template <class S>
double error(S got, wide exact)
{
    if constexpr (sizeof(S) == 2) {
        return beyond_rounding(got, exact, std::ldexp(std::abs(exact), -18));
    } else {
        return ulp::error(got, exact);
    }
}

/// Of an operation that computes in double and rounds once: the rest of the error, in units of the last place of a double
/// of the given size (and, of a result that is a double itself, the whole error).
template <class S>
double error_in_double(S got, wide exact, wide size)
{
    const wide allowed = std::max(ulp::unit<double>(size), std::ldexp(wide(1), -1074));
    if constexpr (sizeof(S) == 8) {
        if (std::isnan(got) != std::isnan(exact)) return std::numeric_limits<double>::infinity();
        return std::isnan(got) ? 0 : static_cast<double>(distance(got, exact) / allowed);
    } else {
        return beyond_rounding(got, exact, allowed);
    }
}

/// The largest error seen.
template <class S>
struct worst {
    ulp::worst seen;

    void see(double error, wide at = 0, wide with = 0) { seen.see_error(error, at, with); }
    void expect_within(double bound, const std::string& what, const std::string& unit = "ulp") const
    {
        if constexpr (sizeof(S) == 2) {  // where it is what the last rounding has left
            ulp::expect_at_most(seen, bound, what, format<S>::name, unit);
        } else {
            ulp::expect_within<S>(seen, bound, what, unit);
        }
    }
};

/// Of an operation that computes in double and rounds once: the largest error, as a share of its bound. That is half an
/// ulp of the result and some ulp of double of a size; of a result that is a double itself, the latter alone.
template <class S>
struct worst_in_double {
    double ulps;
    worst<S> shares{};

    void see(S got, wide exact, wide size, wide at = 0, wide with = 0)
    {
        const wide rounding = sizeof(S) == 8 ? 0 : unit<S>(exact) / 2;
        const wide allowed = std::max(ulp::unit<double>(size), std::ldexp(wide(1), -1074));
        const bool same_kind = std::isnan(value(got)) == std::isnan(exact);
        const auto share =
            static_cast<double>(distance(got, exact) / (rounding + static_cast<wide>(ulps) * allowed));
        shares.see(!same_kind ? std::numeric_limits<double>::infinity() : std::isnan(exact) ? 0 : share, at, with);
    }
    void expect_within_bound(const std::string& what, const std::string& of_size) const
    {
        if constexpr (sizeof(S) == 8) {
            auto in_ulps = shares.seen;
            in_ulps.ulp *= ulps;
            ulp::expect_within<S>(in_ulps, ulps, what, "ulp of " + of_size);
        } else {
            char bound[64];
            std::snprintf(bound, sizeof bound, "of 0.5 ulp + %g ulp of double of ", ulps);
            shares.expect_within(1, what, bound + of_size);
        }
    }
};

template <class S>
testing::AssertionResult all_same_bits(const std::vector<S>& a, const std::vector<S>& b)
{
    std::vector<arithmetic<S>> x(a.begin(), a.end());
    std::vector<arithmetic<S>> y(b.begin(), b.end());
    return ulp::all_same_bits(x, y);
}

template <class S>
std::vector<S> row(reference::random& random, std::size_t n, double low = -2, double high = 2, int exponent = 0)
{
    std::vector<S> x(n);
    for (S& e : x) e = static_cast<S>(std::ldexp(random.uniform(low, high), exponent));
    return x;
}

}  // namespace precision

#endif
