// Elements are widened where they are loaded and rounded once where they are stored: whatever types the operands of an
// operation have, its results are those of the same operation on float (or double), rounded to what they are stored as.

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "support/operations.hpp"

namespace {

using operations::contents;
using operations::element;
using operations::form;
using operations::operation;

/// The same numbers for another form of the operation.
contents converted(const operation& op, const contents& from, const form& of, const form& to)
{
    contents all;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
        all.push_back(operations::stored(operations::numbers(from[i], of.types[i]), to.types[i]));
    }
    return all;
}

bool has_double(const operation& op, const form& f)
{
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
        if (!op.operands[i].is_sum() && f.types[i] == element::float64) return true;
    }
    return false;
}

void expect_rounded_once(const operation& op, const form& f, std::size_t count, std::size_t columns,
                         std::uint64_t seed)
{
    const form& wide = op.alike(op.computes_in_double || has_double(op, f) ? element::float64 : element::float32);
    const contents given = operations::random_contents(op, f, count, columns, seed);
    const contents got = operations::results(op, f, count, columns, given);
    const contents exact = operations::results(op, wide, count, columns, converted(op, given, f, wide));
    const contents expected = converted(op, exact, wide, f);
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
        if (got[i] == expected[i]) continue;
        // what is added up in float is rounded row after row
        if (op.operands[i].is_sum() && count > 1 && f.types[i] != wide.types[i]) continue;
        const auto a = operations::numbers(got[i], f.types[i]);
        const auto b = operations::numbers(expected[i], f.types[i]);
        const auto from = operations::numbers(exact[i], wide.types[i]);
        for (std::size_t j = 0; j < a.size(); ++j) {
            if (a[j] == b[j] || (std::isnan(a[j]) && std::isnan(b[j]))) continue;
            ADD_FAILURE() << operations::description(op, f) << ", " << count << " rows of " << columns
                          << ", operand " << i << ", element " << j << ": " << a[j] << " and not " << b[j]
                          << ", the rounded " << from[j];
            return;
        }
    }
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
