// The rooms of the oracle: tables by the names of operations, and what they share.
#ifndef RESIDUA_TESTS_FUZZ_ORACLE_TABLES_HPP
#define RESIDUA_TESTS_FUZZ_ORACLE_TABLES_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "fuzz/oracle.hpp"

namespace fuzz {

using rows_in = std::vector<wide_row>;
using rows_out = std::vector<expected_row>;
using table = std::map<std::string, oracle>;

table oracles_of_elements();
table oracles_of_rows();
table oracles_of_streams();

using operations::size_of;

inline constexpr wide eps = 0x1p-20L;  // as in the table of operations
inline constexpr wide unknown = std::numeric_limits<wide>::quiet_NaN();

/// What has one rounding, in units for which the bound is several: the size of a half of such a unit, or more.
inline constexpr wide rounding_part = 0.125L;

/// Longest chain of roundings of a sum along a row, of at most 1400 elements: as for matvec, columns / 256 + 14.
inline constexpr double sum_roundings = 20;

/// A number that is known to so many units of what is computed with, rounded to a type. Where both of the type's numbers
/// are possible, it is NaN.
struct rounded_once {
    wide value;
    bool is_exact;

    rounded_once(wide x, double bound, element type, const computation& how) : value{x}, is_exact{false}
    {
        const element computed = how.in_double ? element::float64 : element::float32;
        if (size_of(type) >= size_of(computed)) return;
        const wide reach = wide(bound) * unit(computed, x);
        value = rounded(x - reach, type);
        is_exact = true;
        if (value != rounded(x + reach, type)) value = unknown;
    }
    /// Of a product with it: the rounding of the product alone, or all of the bound.
    wide part_of_bound() const { return is_exact ? rounding_part : 1; }

    static wide rounded(wide x, element type)
    {
        return wide(operations::numbers(operations::stored({static_cast<double>(x)}, type), type).front());
    }
};

/// Whether it has all its bits in what is computed with.
inline bool is_normal(wide x, const computation& how)
{
    return std::abs(x) >= (how.in_double ? 0x1p-1022L : 0x1p-126L);
}

/// Sizes that are those of the terms.
inline void put(expected_row& y, std::size_t j, wide value, wide size)
{
    y.value[j] = value;
    y.size[j] = y.terms[j] = std::abs(size);
}

inline wide largest(const wide_row& x)
{
    wide most = 0;
    for (const wide e : x) most = std::max(most, std::abs(e));
    return most;
}

/// Whether no product of a few such numbers leaves the range, where they are doubles: the largest is moderate, or 0.
inline bool is_moderate(const wide_row& x, const computation& how)
{
    const wide most = largest(x);
    return !how.of_doubles || most == 0 || (most > 0x1p-300L && most < 0x1p300L);
}
/// Whether a number that is computed on the way, in double for sure, has all its bits.
inline bool has_all_bits(wide x, const computation& how)
{
    return !how.of_doubles || x == 0 || (std::abs(x) >= 0x1p-1022L && std::abs(x) < 0x1p1015L);
}

inline bool have_all_bits(const wide_row& x, const computation& how)
{
    return std::all_of(x.begin(), x.end(), [&](wide e) { return has_all_bits(e, how); });
}

}  // namespace fuzz

#endif
