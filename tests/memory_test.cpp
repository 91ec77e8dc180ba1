// What every operation promises of memory: it touches its elements and nothing else, wherever they lie, and the bits of
// a result do not depend on where that is. Names are those of the known cases, in other libraries, of the same fault.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cfenv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <latch>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "support/memory.hpp"
#include "support/operations.hpp"
#include "support/ulp.hpp"

namespace {

using operations::bytes;
using operations::contents;
using operations::element;
using operations::form;
using operations::is_alike;
using operations::operation;
using operations::place;
using operations::size_of;
using operations::use;

// --- operands in places -------------------------------------------------------------------------------------------

std::byte* row_at(const place& p, std::size_t i, element type)
{
    return static_cast<std::byte*>(p.data)
           + static_cast<std::ptrdiff_t>(i) * p.stride * static_cast<std::ptrdiff_t>(size_of(type));
}
void scatter(const bytes& packed, const place& p, element type)
{
    const std::size_t width = p.columns * size_of(type);
    for (std::size_t i = 0; i < p.count; ++i) std::copy_n(packed.data() + i * width, width, row_at(p, i, type));
}
bytes gather(const place& p, element type)
{
    const std::size_t width = p.columns * size_of(type);
    bytes packed(p.count * width);
    for (std::size_t i = 0; i < p.count; ++i) std::copy_n(row_at(p, i, type), width, packed.data() + i * width);
    return packed;
}

contents gathered(const form& f, const std::vector<place>& places)
{
    contents all;
    for (std::size_t i = 0; i < places.size(); ++i) all.push_back(gather(places[i], f.types[i]));
    return all;
}

/// What lies in the places after the operation.
contents results_at(const form& f, const contents& given, const std::vector<place>& places)
{
    for (std::size_t i = 0; i < places.size(); ++i) scatter(given[i], places[i], f.types[i]);
    f.call(places.data());
    return gathered(f, places);
}

/// Every operation with operands of one type, and with every third mixture, in turn.
template <class Test>
void for_all(Test test)
{
    std::size_t turn = 0;
    for (const auto& op : operations::all()) {
        ++turn;
        for (const auto& f : op.forms) {
            if (!is_alike(op, f) && ++turn % 3 != 0) continue;
            test(op, f);
            if (testing::Test::HasFailure()) return;  // one is enough: the next thousand say the same
        }
    }
}

#define EXPECT_SAME(got, expected, op, f) \
    EXPECT_TRUE((got) == (expected)) << operations::description(op, f) << ": " << difference(got, expected, f)

std::string difference(const contents& a, const contents& b, const form& f)
{
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i] == b[i]) continue;
        const auto x = operations::numbers(a[i], f.types[i]);
        const auto y = operations::numbers(b[i], f.types[i]);
        for (std::size_t j = 0; j < x.size(); ++j) {
            if (std::memcmp(&x[j], &y[j], sizeof x[j]) == 0) continue;
            return "operand " + std::to_string(i) + ", element " + std::to_string(j) + " is " + std::to_string(x[j])
                   + " and not " + std::to_string(y[j]);
        }
    }
    return "nothing differs";
}

// --- lengths ------------------------------------------------------------------------------------------------------

#if defined(__unix__)
using guarded_operands = std::vector<std::unique_ptr<memory::guarded<std::byte>>>;

guarded_operands guards(std::size_t most_bytes)
{
    guarded_operands all;
    for (const auto& op : operations::all()) {
        while (all.size() < op.operands.size()) {
            all.push_back(std::make_unique<memory::guarded<std::byte>>(most_bytes));
        }
    }
    return all;
}

std::vector<place> between_guards(const guarded_operands& pages, const operation& op, const contents& given,
                                  std::size_t count, std::size_t columns, bool at_end)
{
    std::vector<place> places;
    for (std::size_t i = 0; i < given.size(); ++i) {
        const auto where = at_end ? pages[i]->at_end(given[i]) : pages[i]->at_start(given[i]);
        places.push_back(operations::packed(op, i, count, columns, where.data()));
    }
    return places;
}

// AcademySoftwareFoundation/OpenImageIO#5404, google/sanitizers#1098: a load past the end, up to a page that is not
// there.
TEST(memory_access, F2_operands_between_pages_that_are_not_there)
{
    const auto pages = guards(16384);
    for (const auto& p : pages) ASSERT_TRUE(p->usable());
    for_all([&](const operation& op, const form& f) {
        const std::size_t most = is_alike(op, f) && size_of(f.types[0]) != 8 ? 70 : 18;
        for (std::size_t n = 1; n <= most; ++n) {
            const std::size_t count = n % 16 == 1 ? 3 : 1;
            const auto given = operations::random_contents(op, f, count, n, n);
            const auto expected = operations::results(op, f, count, n, given);
            for (const bool at_end : {true, false}) {
                const auto places = between_guards(pages, op, given, count, n, at_end);
                f.call(places.data());
                EXPECT_SAME(gathered(f, places), expected, op, f);
            }
        }
    });
}

// What goes past the caches is fetched ahead and stored line by line.
TEST(memory_access, F2_streamed_outputs_between_pages_that_are_not_there)
{
    const auto pages = guards(16384);
    for_all([&](const operation& op, const form& f) {
        // around a line, and around the pieces that are streamed
        for (const std::size_t n : {1U, 15U, 16U, 17U, 33U, 63U, 65U, 255U, 257U, 530U}) {
            if (n != 17 && n != 530 && !is_alike(op, f)) continue;
            const auto given = operations::random_contents(op, f, 1, n, n);
            const auto expected = operations::results(op, f, 1, n, given);
            for (const bool at_end : {true, false}) {
                auto places = between_guards(pages, op, given, 1, n, at_end);
                for (place& p : places) p.stores = residua::store::streaming;
                f.call(places.data());
                EXPECT_SAME(gathered(f, places), expected, op, f);
            }
        }
    });
}

contents of_huge_numbers(const operation& op, const form& f, std::size_t columns)
{
    contents all;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
        constexpr double largest[] = {0x1.fffffep127, 0x1.fffffffffffffp1023, 0x1.fep127, 65504};
        const auto& o = op.operands[i];
        all.push_back(operations::stored(
            std::vector<double>(o.count_for(1) * o.width(columns), largest[static_cast<int>(f.types[i])]),
            f.types[i]));
    }
    return all;
}

// Rows that leave the range of their type go another way.
TEST(memory_access, F2_huge_operands_between_pages_that_are_not_there)
{
    const auto pages = guards(16384);
    for_all([&](const operation& op, const form& f) {
        for (const std::size_t n : {1U, 7U, 15U, 16U, 17U, 33U, 63U, 70U}) {
            for (const bool at_end : {true, false}) {
                f.call(between_guards(pages, op, of_huge_numbers(op, f, n), 1, n, at_end).data());
            }
        }
    });
}

template <class T>
class matrix_memory : public testing::Test {};
using matrix_types = testing::Types<float, double>;
TYPED_TEST_SUITE(matrix_memory, matrix_types, );

TYPED_TEST(matrix_memory, F2_products_between_pages_that_are_not_there)
{
    using T = TypeParam;
    std::array<memory::guarded<T>, 3> pages;
    for (const auto& p : pages) ASSERT_TRUE(p.usable());
    reference::random random{3};
    for (std::size_t n = 1; n <= 70; ++n) {
        for (const bool at_end : {true, false}) {
            const auto put = [&](std::size_t i, const std::vector<T>& x) {
                return at_end ? pages[i].at_end(x) : pages[i].at_start(x);
            };
            const auto x = put(0, random.row<T>(n));
            const auto y = put(1, random.row<T>(n));
            EXPECT_TRUE(std::isfinite(api::dot(x, y)));
            EXPECT_TRUE(std::isfinite(api::rms(x)));
            const auto matrix = put(2, random.row<T>(4 * n));
            const api::rows<T> four_by_n{matrix.data(), 4, n};
            std::array<T, 4> four{};
            api::matvec(four, four_by_n, x);
            api::matvec_transposed(y, four_by_n, four);
            api::matvec(y, api::rows<T>{matrix.data(), n, 4}, four);
            api::matvec_transposed(four, api::rows<T>{matrix.data(), n, 4}, x);
        }
    }
}

TEST(memory_access, rows_of_65537_columns)
{
    const std::size_t n = (1U << 16U) + 1;
    const auto pages = guards(n * 8 * 4);
    // of one type or another, and every fifth operation: all go along a row by the same few loops
    for (std::size_t k = 0; k < operations::all().size(); k += 5) {
        const auto& op = operations::all()[k];
        const auto& f = op.alike(k % 2 == 0 ? element::bfloat16 : element::float32);
        const auto given = operations::random_contents(op, f, 1, n, 1);
        const auto places = between_guards(pages, op, given, 1, n, true);
        f.call(places.data());
        ASSERT_TRUE(gathered(f, places) == operations::results(op, f, 1, n, given))
            << operations::description(op, f);
    }
}
#endif

// --- strides ------------------------------------------------------------------------------------------------------

/// Rows of one operand with canaries before them, between them and after them.
class among_canaries {
public:
    among_canaries(const operation& op, const form& f, std::size_t i, std::size_t count, std::size_t columns,
                   std::ptrdiff_t stride)
        : type_{f.types[i]}, place_{operations::packed(op, i, count, columns, nullptr)}
    {
        place_.stride = stride;
        const std::size_t step = static_cast<std::size_t>(stride < 0 ? -stride : stride) * size_of(type_);
        const std::size_t rows_before = stride < 0 && place_.count > 0 ? place_.count - 1 : 0;
        memory_.assign(margin + place_.count * step + place_.columns * size_of(type_) + margin, canary);
        place_.data = memory_.data() + margin + rows_before * step;
    }
    among_canaries(among_canaries&&) = default;
    among_canaries& operator=(among_canaries&&) = delete;
    ~among_canaries() = default;

    const place& where() const { return place_; }
    bool gaps_untouched() const
    {
        among_canaries clean = *this;
        std::fill(clean.memory_.begin(), clean.memory_.end(), canary);
        clean.place_.data = clean.memory_.data() + (static_cast<std::byte*>(place_.data) - memory_.data());
        scatter(gather(place_, type_), clean.place_, type_);
        return clean.memory_ == memory_;
    }

private:
    among_canaries(const among_canaries&) = default;

    static constexpr std::size_t margin = 64;
    static constexpr std::byte canary{0xa5};
    element type_;
    bytes memory_;
    place place_;
};

/// How far apart the rows of an operand are, given how wide they are.
using stride_rule = std::ptrdiff_t(const operations::operand& o, std::size_t i, std::ptrdiff_t width);

void expect_the_packed_results(const operation& op, const form& f, std::size_t count, std::size_t columns,
                               stride_rule* stride, residua::store stores = residua::store::cached)
{
    std::vector<among_canaries> memory;
    std::vector<place> places;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
        const auto width = static_cast<std::ptrdiff_t>(op.operands[i].width(columns));
        memory.emplace_back(op, f, i, count, columns, stride(op.operands[i], i, width));
        places.push_back(memory.back().where());
        places.back().stores = stores;
    }
    const auto random = operations::random_contents(op, f, count, columns, 5);
    for (std::size_t i = 0; i < places.size(); ++i) scatter(random[i], places[i], f.types[i]);
    const auto given = gathered(f, places);  // rows that lie on one another are one
    f.call(places.data());
    EXPECT_SAME(gathered(f, places), operations::results(op, f, count, columns, given), op, f);
    for (std::size_t i = 0; i < memory.size(); ++i) {
        EXPECT_TRUE(memory[i].gaps_untouched()) << operations::description(op, f) << ", beside operand " << i;
    }
}

// vllm-project/vllm#28103, unslothai/unsloth#10617: one stride is used for every operand.
TEST(memory_access, F3_every_operand_has_its_own_stride)
{
    stride_rule* const rules[] = {
        // all different
        [](const operations::operand&, std::size_t i, std::ptrdiff_t width) {
            return width + static_cast<std::ptrdiff_t>(3 * i % 17);
        },
        // every second upside down
        [](const operations::operand&, std::size_t i, std::ptrdiff_t width) {
            return (i % 2 == 0 ? -1 : 1) * (width + static_cast<std::ptrdiff_t>(i));
        },
        // the others
        [](const operations::operand&, std::size_t i, std::ptrdiff_t width) {
            return (i % 2 == 0 ? 1 : -1) * (width + 5);
        },
        // the same row again and again
        [](const operations::operand& o, std::size_t i, std::ptrdiff_t width) {
            return o.used == use::read ? std::ptrdiff_t{0} : width + static_cast<std::ptrdiff_t>(i);
        },
        // inputs whose rows overlap
        [](const operations::operand& o, std::size_t, std::ptrdiff_t width) {
            return o.used == use::read ? std::ptrdiff_t{1} : width;
        },
    };
    for_all([&](const operation& op, const form& f) {
        for (stride_rule* const rule : rules) {
            for (const std::size_t n : {1U, 7U, 33U}) {
                if (n == 7 || is_alike(op, f)) expect_the_packed_results(op, f, 5, n, rule);
            }
        }
        expect_the_packed_results(op, f, 2, 520, rules[1]);
        operations::record_promise(op, f, "strided");
    });
}

TEST(memory_access, streaming_stores_give_the_same_bits_and_touch_nothing_else)
{
    // of lengths around a line, and around the pieces that are streamed
    for_all([&](const operation& op, const form& f) {
        for (const std::size_t n : {0U, 1U, 16U, 17U, 33U, 255U, 257U, 530U}) {
            if (n != 17 && n != 530 && !is_alike(op, f)) continue;
            // rows that begin anywhere in a line, and some of them upside down
            expect_the_packed_results(
                op, f, n == 17 ? 5 : 2, n,
                [](const operations::operand&, std::size_t i, std::ptrdiff_t width) {
                    return (i % 3 == 1 ? -1 : 1) * (width + static_cast<std::ptrdiff_t>(5 * i % 16 + i));
                },
                residua::store::streaming);
        }
    });
}

#if defined(__unix__)
TEST(memory_access, strides_beyond_2_to_the_31_elements)
{
    constexpr std::ptrdiff_t far = (std::ptrdiff_t{1} << 31) + 12;
    const std::size_t n = 19;
    std::size_t most_operands = 0;
    std::size_t most_rows = 0;
    for (const auto& op : operations::all()) {
        most_operands = std::max(most_operands, op.operands.size());
        for (const auto& o : op.operands) most_rows = std::max(most_rows, o.count_for(2));
    }
    std::vector<std::unique_ptr<memory::endless>> memory;
    for (std::size_t i = 0; i < most_operands; ++i) {
        const std::size_t size = 8 * (static_cast<std::size_t>(far) + 100) * most_rows;
        memory.push_back(std::make_unique<memory::endless>(size));
        if (!memory.back()->usable()) GTEST_SKIP() << "this system has no room for such addresses";
    }
    for (const auto& op : operations::all()) {
        for (const auto& f : op.forms) {
            const auto given = operations::random_contents(op, f, 2, n, 9);
            std::vector<place> places;
            for (std::size_t i = 0; i < given.size(); ++i) {
                auto p = operations::packed(op, i, 2, n, memory[i]->data());
                p.stride = far + static_cast<std::ptrdiff_t>(7 * i);
                if (i % 2 == 1) {
                    p.data = row_at(p, p.count - 1, f.types[i]);
                    p.stride = -p.stride;
                }
                places.push_back(p);
            }
            ASSERT_TRUE(results_at(f, given, places) == operations::results(op, f, 2, n, given))
                << operations::description(op, f);
        }
    }
}
#endif

// --- alignment ----------------------------------------------------------------------------------------------------

// flashinfer-ai/flashinfer#634, vllm-project/vllm#45466, numpy/numpy#27077: the alignment of one operand is looked at,
// or decides where a sum begins.
TEST(memory_access, F5_H3_any_alignment_of_any_operand)
{
    for_all([&](const operation& op, const form& f) {
        const std::size_t n = is_alike(op, f) ? 53 : 19;
        const auto given = operations::random_contents(op, f, 1, n, 2);
        const auto expected = operations::results(op, f, 1, n, given);
        for (std::size_t moved = 0; moved < given.size(); ++moved) {
            for (std::size_t shift = 0; shift < 16; ++shift) {
                std::vector<std::unique_ptr<memory::shifted<std::byte>>> operands;
                std::vector<place> places;
                for (std::size_t i = 0; i < given.size(); ++i) {
                    const std::size_t by = i == moved ? shift * size_of(f.types[i]) : 0;
                    operands.push_back(std::make_unique<memory::shifted<std::byte>>(given[i], by));
                    places.push_back(operations::packed(op, i, 1, n, operands.back()->view().data()));
                }
                f.call(places.data());
                EXPECT_SAME(gathered(f, places), expected, op, f);
            }
        }
    });
}

// --- in place -----------------------------------------------------------------------------------------------------

// ggml-org/ggml#1491: a result is written over an input that is still to be read.
TEST(memory_access, G2_in_place_is_out_of_place)
{
    for_all([&](const operation& op, const form& f) {
        for (const std::size_t n : {1U, 7U, 16U, 53U, 600U}) {
            if (n != 53 && !is_alike(op, f)) continue;
            const auto given = operations::random_contents(op, f, 3, n, 4);
            const auto expected = operations::results(op, f, 3, n, given);
            const auto expect_over_with = [&](const std::vector<std::size_t>& under, residua::store stores) {
                auto memory = given;
                std::vector<place> places;
                for (std::size_t i = 0; i < given.size(); ++i) {
                    places.push_back(operations::packed(op, i, 3, n, memory[under[i]].data()));
                    places.back().stores = stores;
                }
                f.call(places.data());
                auto got = gathered(f, places);
                for (std::size_t i = 0; i < given.size(); ++i) {
                    if (under[i] != i) got[under[i]] = expected[under[i]];  // the input is gone
                }
                EXPECT_SAME(got, expected, op, f);
            };
            const auto expect_over = [&](const std::vector<std::size_t>& under) {
                expect_over_with(under, residua::store::cached);
                if (n == 600) expect_over_with(under, residua::store::streaming);
            };
            std::vector<std::size_t> apart(given.size());
            for (std::size_t i = 0; i < given.size(); ++i) apart[i] = i;
            auto all_at_once = apart;
            std::vector<bool> taken(given.size());
            for (std::size_t i = 0; i < given.size(); ++i) {
                for (std::size_t k = 0; k < given.size(); ++k) {
                    if (op.operands[i].used != use::written || !op.may_lie_on(f, i, k)) continue;
                    auto one = apart;
                    one[i] = k;
                    expect_over(one);
                    if (all_at_once[i] == i && !taken[k]) {
                        all_at_once[i] = k;
                        taken[k] = true;
                    }
                }
            }
            expect_over(all_at_once);
            if (n == 600 && all_at_once != apart) operations::record_promise(op, f, "in place");
        }
    });
}

// --- places in a row ----------------------------------------------------------------------------------------------

/// Whether an element of a result depends on its own column alone.
bool is_elementwise(const operation& op)
{
    const std::string name = op.name;
    return op.has_columns() && name.find("norm") == name.npos && name.find("softmax") == name.npos
           && name.find("attn_res") == name.npos;
}

/// Column j of a row of n, and the inputs that have no columns. (What is written of those is a sum over the row.)
contents column(const operation& op, const form& f, const contents& all, std::size_t n, std::size_t j)
{
    const bool interleaved = std::string(op.name).find("interleaved") != std::string::npos;
    contents one(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        const auto& o = op.operands[i];
        if (o.fixed != 0) {
            one[i] = o.is_written() ? bytes(all[i].size()) : all[i];
            continue;
        }
        for (std::size_t k = 0; k < o.count_for(1) * o.columns; ++k) {
            const std::size_t at = interleaved ? o.columns * j + k : k * n + j;
            const auto first = all[i].begin() + static_cast<std::ptrdiff_t>(at * size_of(f.types[i]));
            one[i].insert(one[i].end(), first, first + static_cast<std::ptrdiff_t>(size_of(f.types[i])));
        }
    }
    return one;
}

// pytorch/pytorch#197018, numpy/numpy#23523: the body of the loop and its tail differ.
TEST(memory_access, H2_an_element_is_the_same_wherever_it_lies)
{
    for_all([&](const operation& op, const form& f) {
        if (!is_elementwise(op)) return;
        for (const std::size_t n : {15U, 37U, 600U}) {
            if (n != 37 && !is_alike(op, f)) continue;
            const auto given = operations::random_contents(op, f, 1, n, 11);
            const auto all = operations::results(op, f, 1, n, given);
            for (std::size_t j = 0; j < n; j += n == 600 ? 7 : 1) {
                const auto alone = operations::results(op, f, 1, 1, column(op, f, given, n, j));
                EXPECT_SAME(column(op, f, all, n, j), column(op, f, alone, 1, 0), op, f);
            }
        }
    });
}

// --- batches ------------------------------------------------------------------------------------------------------

/// Rows `first` to `first + some` of every operand.
std::vector<place> part(const operation& op, const form& f, const std::vector<place>& all, std::size_t first,
                        std::size_t some)
{
    std::vector<place> places;
    for (std::size_t i = 0; i < all.size(); ++i) {
        place p = all[i];
        if (!op.operands[i].has_one_row()) {
            p.data = row_at(p, first * op.operands[i].rows, f.types[i]);
            p.count = some * op.operands[i].rows;
        }
        places.push_back(p);
    }
    return places;
}

/// Without what is summed over the rows.
contents of_rows(const operation& op, contents all)
{
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (op.operands[i].has_one_row() && op.operands[i].is_written()) all[i].clear();
    }
    return all;
}

// vllm-project/vllm#48271, sgl-project/sglang#12143: a row's bits depend on how many rows the call has.
TEST(memory_access, H1_a_row_in_a_batch_is_the_row_alone)
{
    for_all([&](const operation& op, const form& f) {
        const bool many = is_alike(op, f) && f.types[0] == element::float32;
        const std::size_t count = many ? 1024 : 40;
        const std::size_t n = many ? 5 : 19;
        const auto given = operations::random_contents(op, f, count, n, 7);
        const auto expected = of_rows(op, operations::results(op, f, count, n, given));
        for (const std::size_t some : {1U, 17U}) {
            auto memory = given;
            std::vector<place> places;
            for (std::size_t i = 0; i < given.size(); ++i) {
                places.push_back(operations::packed(op, i, count, n, memory[i].data()));
            }
            for (std::size_t first = 0; first < count; first += some) {
                f.call(part(op, f, places, first, std::min(some, count - first)).data());
            }
            EXPECT_SAME(of_rows(op, memory), expected, op, f);
        }
    });
}

// Rows of different threads share lines, and nothing else.
TEST(memory_access, H1_rows_shared_among_threads_are_the_rows_alone)
{
    constexpr std::size_t workers = 3;
    const std::size_t count = 100;
    const std::size_t n = 19;
    for_all([&](const operation& op, const form& f) {
        const auto given = operations::random_contents(op, f, count, n, 7);
        const auto expected = of_rows(op, operations::results(op, f, count, n, given));
        auto memory = given;
        std::vector<place> places;
        for (std::size_t i = 0; i < given.size(); ++i) {
            places.push_back(operations::packed(op, i, count, n, memory[i].data()));
        }
        std::latch start{workers};
        const auto work = [&](std::size_t worker) {
            auto sums = given;
            auto own = places;
            for (std::size_t i = 0; i < own.size(); ++i) {
                if (op.operands[i].is_sum()) own[i].data = sums[i].data();
            }
            start.arrive_and_wait();
            for (std::size_t k = worker; k < count; k += workers) f.call(part(op, f, own, k, 1).data());
        };
        {
            std::vector<std::jthread> pool;
            for (std::size_t worker = 0; worker < workers; ++worker) pool.emplace_back(work, worker);
        }
        EXPECT_SAME(of_rows(op, memory), expected, op, f);
    });
}

// ROCm/aiter#5044: an odd width was written into the next row.
TEST(memory_access, C7_a_nan_stays_in_its_row)
{
    const std::size_t count = 9;
    const std::size_t n = 77;
    for_all([&](const operation& op, const form& f) {
        const auto given = operations::random_contents(op, f, count, n, 8);
        const auto clean = of_rows(op, operations::results(op, f, count, n, given));
        const std::size_t k = 4;
        auto hit = given;
        for (std::size_t i = 0; i < hit.size(); ++i) {
            const auto& o = op.operands[i];
            if (o.has_one_row() || !o.is_read()) continue;
            const std::size_t size = size_of(f.types[i]);
            const auto nan = operations::stored({std::numeric_limits<double>::quiet_NaN()}, f.types[i]);
            // one of a row's elements, and all of a few numbers, of which each result takes some
            const std::size_t first = o.fixed != 0 ? 0 : 70;
            const std::size_t last = o.fixed != 0 ? o.fixed : 71;
            for (std::size_t j = first; j < last; ++j) {
                std::copy(nan.begin(), nan.end(),
                          hit[i].begin() + static_cast<std::ptrdiff_t>((k * o.rows * o.width(n) + j) * size));
            }
        }
        auto got = of_rows(op, operations::results(op, f, count, n, hit));
        for (std::size_t i = 0; i < got.size(); ++i) {
            const auto& o = op.operands[i];
            if (o.has_one_row()) continue;
            const std::size_t row = o.rows * o.width(n) * size_of(f.types[i]);
            if (o.is_written()) {
                bool any = false;
                for (const double x :
                     operations::numbers(bytes(got[i].begin() + static_cast<std::ptrdiff_t>(k * row),
                                               got[i].begin() + static_cast<std::ptrdiff_t>((k + 1) * row)),
                                         f.types[i])) {
                    any = any || std::isnan(x);
                }
                EXPECT_TRUE(any) << operations::description(op, f) << ": no NaN comes out in operand " << i;
            }
            std::copy_n(clean[i].begin() + static_cast<std::ptrdiff_t>(k * row), row,
                        got[i].begin() + static_cast<std::ptrdiff_t>(k * row));
        }
        EXPECT_SAME(got, clean, op, f);
    });
}

// --- nothing to do, and nothing else done -------------------------------------------------------------------------

// pytorch/pytorch#40806, flagos-ai/FlagGems#5501: no elements, no rows.
TEST(memory_access, F8_nothing_to_do_raises_nothing)
{
    for_all([&](const operation& op, const form& f) {
        // no columns
        std::vector<place> places;
        bytes coefficients(4096);
        for (std::size_t i = 0; i < op.operands.size(); ++i) {
            const bool none = op.operands[i].width(0) == 0;
            places.push_back(operations::packed(op, i, 3, 0, none ? nullptr : coefficients.data() + 256 * i));
        }
        std::feclearexcept(FE_ALL_EXCEPT);
        if (op.has_columns()) f.call(places.data());
        EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT & ~FE_INEXACT), 0) << operations::description(op, f);
        // no rows: what is summed over them is 0, or what it was
        const auto given = operations::random_contents(op, f, 0, 5, 3);
        auto memory = given;
        places.clear();
        for (std::size_t i = 0; i < given.size(); ++i) {
            places.push_back(operations::packed(op, i, 0, 5, memory[i].empty() ? nullptr : memory[i].data()));
        }
        std::feclearexcept(FE_ALL_EXCEPT);
        f.call(places.data());
        EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT), 0) << operations::description(op, f);
        for (std::size_t i = 0; i < given.size(); ++i) {
            const bool zero = op.operands[i].used == use::sum;
            EXPECT_TRUE(memory[i] == (zero ? bytes(given[i].size()) : given[i]))
                << operations::description(op, f) << ", operand " << i;
        }
    });
    const api::rows<float> no_rows{nullptr, 0, 3};
    std::feclearexcept(FE_ALL_EXCEPT);
    EXPECT_EQ(api::rms(no_rows), 0.0F);
    EXPECT_EQ(api::dot(no_rows, no_rows), 0.0F);
    EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT), 0);
}

TEST(memory_access, T3_inputs_are_not_written)
{
    for_all([&](const operation& op, const form& f) {
        const auto given = operations::random_contents(op, f, 3, 67, 6);
        const auto after = operations::results(op, f, 3, 67, given);
        for (std::size_t i = 0; i < given.size(); ++i) {
            const bool same = given[i] == after[i];
            EXPECT_EQ(same, !op.operands[i].is_written()) << operations::description(op, f) << ", operand " << i;
        }
    });
}

// What is in an output before it is overwritten does not matter, a NaN least of all.
TEST(memory_access, outputs_are_overwritten)
{
    for_all([&](const operation& op, const form& f) {
        auto given = operations::random_contents(op, f, 3, 35, 6);
        const auto expected = operations::results(op, f, 3, 35, given);
        for (std::size_t i = 0; i < given.size(); ++i) {
            const auto& o = op.operands[i];
            if (o.is_written() && !o.is_read()) std::fill(given[i].begin(), given[i].end(), std::byte{0xff});
        }
        EXPECT_SAME(operations::results(op, f, 3, 35, given), expected, op, f);
    });
}

// --- the floating-point environment -------------------------------------------------------------------------------

/// Numbers of any size, 0 among them.
contents contents_of_any_size(const operation& op, const form& f, std::size_t count, std::size_t columns)
{
    contents all = operations::random_contents(op, f, count, columns, 7);
    reference::random random{11};
    for (std::size_t i = 0; i < all.size(); ++i) {
        auto x = operations::numbers(all[i], f.types[i]);
        const double most = f.types[i] == element::float64 ? 900 : 110;
        for (double& e : x) e *= std::exp2(std::floor(random.uniform(-most, most)));
        all[i] = operations::stored(x, f.types[i]);
    }
    return all;
}

#if defined(__SSE2__) || defined(__aarch64__)
#if defined(__SSE2__)
constexpr std::uint64_t flags = 0x3f;
constexpr std::uint64_t flush_results = 0x8000, flush_operands = 0x0040;
std::uint64_t modes() { return _mm_getcsr() & ~flags; }
void set_modes(std::uint64_t to) { _mm_setcsr(static_cast<unsigned>(to)); }
#else
constexpr std::uint64_t flush_results = 0x1000000, flush_operands = flush_results;
std::uint64_t modes()
{
    std::uint64_t fpcr = 0;
    asm volatile("mrs %0, fpcr" : "=r"(fpcr));
    return fpcr;
}
void set_modes(std::uint64_t to) { asm volatile("msr fpcr, %0" : : "r"(to)); }
#endif

// llvm/llvm-project#57589, RobotLocomotion/drake#10253, xiph/flac#476: somebody else has switched subnormal numbers off, as a
// program does that was linked with -ffast-math; or a call leaves the modes other than it found them.
TEST(memory_access, K1_no_result_depends_on_flushing_and_the_modes_are_left_alone)
{
    const auto before = modes();
    for_all([&](const operation& op, const form& f) {
        const auto given = contents_of_any_size(op, f, 2, 37);
        const auto expected = operations::results(op, f, 2, 37, given);
        EXPECT_EQ(modes(), before) << operations::description(op, f);
        for (const auto flushing : {flush_results, flush_operands, flush_results | flush_operands}) {
            set_modes(before | flushing);
            const auto got = operations::results(op, f, 2, 37, given);
            const auto after = modes();
            set_modes(before);
            EXPECT_EQ(after, before | flushing) << operations::description(op, f);
            EXPECT_SAME(got, expected, op, f);
        }
    });
}
#endif

/// Whether what an operation has written holds a number so small that an exception says so.
bool holds_subnormal(const operation& op, const form& f, const contents& all)
{
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (!op.operands[i].is_written()) continue;
        const double least = f.types[i] == element::float64   ? 0x1p-1022
                             : f.types[i] == element::float16 ? 0x1p-14
                                                              : 0x1p-126;
        for (const double x : operations::numbers(all[i], f.types[i])) {
            if (std::abs(x) < least) return true;
        }
    }
    return false;
}

TEST(memory_access, K1_ordinary_numbers_raise_nothing_but_inexact)
{
    for_all([&](const operation& op, const form& f) {
        const auto given = operations::random_contents(op, f, 3, 67, 6);
        std::feclearexcept(FE_ALL_EXCEPT);
        const auto got = operations::results(op, f, 3, 67, given);
        const int quiet = holds_subnormal(op, f, got) ? FE_INEXACT | FE_UNDERFLOW : FE_INEXACT;
        EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT & ~quiet), 0) << operations::description(op, f);
    });
}

}  // namespace
