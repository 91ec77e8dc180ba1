// Every operation refuses operands that overlap in part, whatever their types, and takes those that it says it takes.

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "support/broken_contract.hpp"
#include "support/operations.hpp"

namespace {

/// Two rows of each operand, or all that a call has, far from those of the others.
struct operands_apart {
    static constexpr std::size_t columns = 20;
    static constexpr std::size_t room = 4096;

    const operations::operation& op;
    const operations::form& form;
    std::vector<std::max_align_t> memory = std::vector<std::max_align_t>(64 * room / sizeof(std::max_align_t));
    std::vector<operations::place> places;

    operands_apart(const operations::operation& operation, const operations::form& f) : op{operation}, form{f}
    {
        for (std::size_t i = 0; i < op.operands.size(); ++i) {
            places.push_back(operations::packed(op, i, 2, columns,
                                                reinterpret_cast<std::byte*>(memory.data()) + (2 * i + 1) * room));
        }
    }
    /// What is wrong with operand i moved to begin `by` bytes after operand k.
    std::string what_is_wrong_with(std::size_t i, std::size_t k, std::ptrdiff_t by)
    {
        const auto before = places[i];
        places[i].data = static_cast<std::byte*>(places[k].data) + by;
        auto wrong = what_is_wrong([&] { form.call(places.data()); });
        places[i] = before;
        return wrong;
    }
    std::ptrdiff_t size(std::size_t i) const
    {
        return static_cast<std::ptrdiff_t>(places[i].count * places[i].columns
                                           * operations::size_of(form.types[i]));
    }
    std::string names(std::size_t i, std::size_t k) const
    {
        return operations::description(op, form) + ": operand " + std::to_string(i) + " over " + std::to_string(k);
    }
};

TEST(overlap, partial_overlap_is_refused_by_every_operation_in_every_type)
{
    for (const auto& op : operations::all()) {
        for (const auto& f : op.forms) {
            operands_apart o{op, f};
            ASSERT_EQ(what_is_wrong([&] { f.call(o.places.data()); }), std::string{})
                << operations::description(op, f);
            for (std::size_t i = 0; i < op.operands.size(); ++i) {
                if (!op.operands[i].is_written()) continue;
                const auto size = static_cast<std::ptrdiff_t>(operations::size_of(f.types[i]));
                for (std::size_t k = 0; k < op.operands.size(); ++k) {
                    if (k == i) continue;
                    // one element in, the last but one, and the other's last
                    for (const std::ptrdiff_t by : {size, o.size(k) - 8, -o.size(i) + 8}) {
                        if (by == 0 || by >= o.size(k) || by <= -o.size(i)) continue;
                        EXPECT_NE(o.what_is_wrong_with(i, k, by).find("overlap"), std::string::npos)
                            << o.names(i, k) << " by " << by << " bytes: " << o.what_is_wrong_with(i, k, by);
                    }
                    // (as near as its type may lie)
                    const std::ptrdiff_t behind = (o.size(k) + size - 1) / size * size;
                    EXPECT_EQ(o.what_is_wrong_with(i, k, behind), std::string{}) << o.names(i, k) << ", after it";
                    EXPECT_EQ(o.what_is_wrong_with(i, k, -o.size(i)), std::string{})
                        << o.names(i, k) << ", before it";
                    // the same memory is allowed where an element is read before one of the same size is written
                    const bool allowed = op.may_lie_on(f, i, k);
                    EXPECT_EQ(o.what_is_wrong_with(i, k, 0).empty(), allowed) << o.names(i, k) << " exactly";
                }
            }
            if (testing::Test::HasFailure()) return;
        }
    }
}

}  // namespace
