// Elements are widened where they are loaded and rounded once where they are stored: whatever types the operands of an
// operation have, its results are those of the same operation on float (or double), rounded to what they are stored as.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "support/operations.hpp"

namespace {

using operations::form;
using operations::operation;

void expect_rounded_once(const operation& op, const form& f, std::size_t count, std::size_t columns,
                         std::uint64_t seed)
{
    const auto given = operations::random_contents(op, f, count, columns, seed);
    const auto got = operations::results(op, f, count, columns, given);
    EXPECT_EQ(operations::not_rounded_once(op, f, count, columns, given, got), "")
        << operations::description(op, f) << ", " << count << " rows of " << columns;
}

TEST(types, F10_results_are_rounded_once_whatever_the_operands_are)
{
    for (const auto& op : operations::all()) {
        if (op.rounds_inside) continue;
        for (const auto& f : op.forms) {
            std::uint64_t seed = 1;
            for (const auto& [count, columns] : std::vector<std::pair<std::size_t, std::size_t>>{
                     {1, 1}, {3, 7}, {2, 16}, {3, 100}, {1, 513}, {1, 1100}}) {
                if (columns <= 513 || operations::is_alike(op, f))
                    expect_rounded_once(op, f, count, columns, ++seed);
            }
            operations::record_promise(op, f, "rounded once");
        }
    }
}

}  // namespace
