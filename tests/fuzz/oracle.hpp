// What operations should give, row by row in long double, and how far off a result may be.
#ifndef RESIDUA_TESTS_FUZZ_ORACLE_HPP
#define RESIDUA_TESTS_FUZZ_ORACLE_HPP

#include <functional>
#include <string>
#include <vector>

#include "support/operations.hpp"
#include "support/reference.hpp"

namespace fuzz {

using reference::wide;
using reference::wide_row;

/// What one output of a row should be. The error is measured in units in the last place of `size`, of the type that the
/// operation computes with; the reference's own error is a little part of `terms`. NaN in `size`: nothing is said.
struct expected_row {
    wide_row value, size, terms;
};

/// The inputs of one row of the operation, in the order of its operands, and what becomes of them; sums over the rows are
/// left out. `in_double`: that the operation computes in double. The bounds are those of data without a double, and with
/// one.
struct oracle {
    std::function<void(const std::vector<wide_row>& in, std::vector<expected_row>& out, bool in_double)> row;
    double bound, bound_of_doubles;
    bool nan_fills_row = false;  // a NaN in an input that has a row of its own makes the row NaN throughout
    bool nan_stays = false;      // it makes its element NaN, in every output
};

/// Null where an operation has none.
const oracle* oracle_of(const std::string& operation);

/// The unit in the last place of the numbers around x in a type.
wide unit(operations::element type, wide x);

}  // namespace fuzz

#endif
