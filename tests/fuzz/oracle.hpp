// What operations should give, row by row in long double, and how far off a result may be.
#ifndef RESIDUA_TESTS_FUZZ_ORACLE_HPP
#define RESIDUA_TESTS_FUZZ_ORACLE_HPP

#include <functional>
#include <string>
#include <vector>

#include "support/operations.hpp"
#include "support/reference.hpp"

namespace fuzz {

using operations::element;
using reference::wide;
using reference::wide_row;

/// What one output of a row should be, or what the row should add to a sum over the rows. The error is measured in units in
/// the last place of `size`, of the type that the operation computes with; the reference's own error is a little part of
/// `terms`. NaN in `size`: nothing is said. NaN in `value`, where no element has nan_stays: some input is NaN.
struct expected_row {
    wide_row got;  // what the operation gave, for what others are made of it; not of a sum
    wide_row value, size, terms;
};

/// How an operation computes.
struct computation {
    bool in_double;
    bool of_doubles;             // some operand is one of doubles
    std::vector<element> types;  // of the inputs
};

/// The inputs of one row of the operation, in the order of its operands without sums, and what becomes of them, sums
/// included. Rows that hold gate and up are two. The bounds are those of data without a double, and with one; that of sums
/// is about what a row adds, without the rounding of the sum itself.
struct oracle {
    std::function<void(const std::vector<wide_row>& in, std::vector<expected_row>& out, const computation& how)>
        row;
    double bound, bound_of_doubles;
    bool nan_stays = false;  // a NaN in an input makes its element NaN, in every output, and no other
    double bound_of_sums = 0;
    bool sums_in_double = false;  // and rounded to their type after the last row; else after each
};

/// Null where an operation has none.
const oracle* oracle_of(const std::string& operation);

/// The unit in the last place of the numbers around x in a type.
wide unit(element type, wide x);

}  // namespace fuzz

#endif
