// Calls made of random bytes, as the fuzz target makes them; and what was found by them.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "fuzz/any_call.hpp"
#include "fuzz/bounds.hpp"
#include "fuzz/oracle.hpp"
#include "support/reference.hpp"
#include "support/ulp.hpp"

namespace {

using reference::wide;

TEST(any_call, random_calls_have_no_fault)
{
    const api::target target[] = {api::active()};
    reference::random random{1};
    for (int i = 0; i < 2000; ++i) {
        std::vector<std::uint8_t> bytes(40 + random.next() % 60);
        for (auto& b : bytes) b = static_cast<std::uint8_t>(random.next());
        const auto call = fuzz::call_of(bytes);
        const auto fault = fuzz::fault_of(call, target);
        ASSERT_TRUE(fault.empty()) << fault << "\n" << fuzz::description(call);
    }
    api::force(target[0]);
}

// --- the oracles ------------------------------------------------------------------------------------------------

/// A call with numbers that no operation finds hard, and what it gives.
struct plain_call {
    fuzz::any_call call{};
    operations::contents given, results;

    plain_call(const operations::operation& op, operations::element type)
        : call{&op, &op.alike(type), 2, 5, residua::store::cached, {}, {}},
          given{operations::random_contents(op, *call.form, call.count, call.columns, 7)},
          results{operations::results(op, *call.form, call.count, call.columns, given)}
    {
    }
    std::vector<double> numbers(const operations::contents& all, std::size_t i) const
    {
        return operations::numbers(all[i], call.form->types[i]);
    }
    void set(operations::contents& all, std::size_t i, const std::vector<double>& x) const
    {
        all[i] = operations::stored(x, call.form->types[i]);
    }
    std::string fault() const { return fuzz::beyond_bound(call, *fuzz::oracle_of(call.op->name), given, results); }
};

constexpr operations::element types[] = {operations::element::float32, operations::element::float64,
                                         operations::element::bfloat16, operations::element::float16};

TEST(oracles, every_operation_has_one_that_sees_each_of_its_outputs)
{
    for (const auto& op : operations::all()) {
        ASSERT_NE(fuzz::oracle_of(op.name), nullptr) << op.name;
        for (const auto type : types) {
            plain_call c{op, type};
            ASSERT_EQ(c.fault(), "") << operations::description(op, *c.call.form);
            for (std::size_t i = 0; i < op.operands.size(); ++i) {
                if (!op.operands[i].is_written()) continue;
                const auto right = c.numbers(c.results, i);
                double most = 0;
                for (const double y : right) most = std::max(most, std::abs(y));
                const bool of_16_bits = operations::size_of(c.call.form->types[i]) == 2;
                const double off = most
                                   * (of_16_bits                             ? 0x1p-5
                                      : type == operations::element::float64 ? 0x1p-25
                                                                             : 0x1p-15);
                std::size_t seen = 0;
                for (std::size_t j = 0; j < right.size(); ++j) {
                    auto wrong = right;
                    wrong[j] += off;
                    c.set(c.results, i, wrong);
                    seen += c.fault().empty() ? 0U : 1U;
                }
                c.set(c.results, i, right);
                // of some elements little is said: beyond what an operation is for, next to a tie
                EXPECT_GE(3 * seen, right.size()) << operations::description(op, *c.call.form) << ", operand " << i;
            }
        }
    }
}

TEST(oracles, every_input_that_is_nan_is_expected_in_some_output)
{
    for (const auto& op : operations::all()) {
        plain_call c{op, operations::element::float32};
        for (std::size_t i = 0; i < op.operands.size(); ++i) {
            if (!op.operands[i].is_read()) continue;
            const auto right = c.numbers(c.given, i);
            auto with_nan = right;
            with_nan.front() = std::numeric_limits<double>::quiet_NaN();
            c.set(c.given, i, with_nan);
            EXPECT_NE(c.fault().find("where an input is NaN"), std::string::npos) << op.name << ", operand " << i;
            c.set(c.given, i, right);
        }
    }
}

// An infinite sum of squares was NaN to the reference, so that all of its row was expected to be.
TEST(oracles, a_nan_makes_no_others_where_numbers_leave_the_range)
{
    for (const auto& op : operations::all()) {
        for (const auto type : {operations::element::float32, operations::element::bfloat16}) {
            plain_call c{op, type};
            const auto given = c.given;
            for (std::size_t i = 0; i < op.operands.size(); ++i) {
                if (!op.operands[i].is_read()) continue;
                for (std::size_t k = 0; k < op.operands.size(); ++k) {
                    if (k == i || !op.operands[k].is_read()) continue;
                    auto with_large = c.numbers(given, k);
                    with_large.front() = 0x1.fep127;
                    c.set(c.given, k, with_large);
                }
                auto with_nan = c.numbers(given, i);
                with_nan.back() = std::numeric_limits<double>::quiet_NaN();
                c.set(c.given, i, with_nan);
                c.results = operations::results(op, *c.call.form, c.call.count, c.call.columns, c.given);
                EXPECT_EQ(c.fault(), "") << operations::description(op, *c.call.form) << ", operand " << i;
                c.given = given;
            }
        }
    }
}

// --- what was found ---------------------------------------------------------------------------------------------

template <class T>
class found : public testing::Test {};
using found_types = testing::Types<float, double>;
TYPED_TEST_SUITE(found, found_types, );

// The rounding of x_j - max was larger than what e^x is computed from, where x_j is far below.
TYPED_TEST(found, softmax_of_numbers_far_apart)
{
    using T = TypeParam;
    for (const T far : {T(1e5), T(1e20), T(1e33), std::numeric_limits<T>::max()}) {
        const std::vector<T> x{T(3.3), -far, T(1.7), -far / T(3), far * T(1.7e-12), T(-1e10)};
        std::vector<T> y(x.size());
        api::softmax(y, x);
        const auto exact = reference::softmax(reference::widen(x));
        for (std::size_t j = 0; j < x.size(); ++j) EXPECT_LE(ulp::error(y[j], exact[j]), 4) << far << ", " << j;
    }
}

// x / d with d below 1 was infinite for the largest x, whose product is small.
TYPED_TEST(found, sigmoid_gate_of_the_largest_number)
{
    using T = TypeParam;
    const T most = std::numeric_limits<T>::max();
    for (T gate = T(-200); gate < 100; gate += T(0.37)) {
        for (const T x : {most, -most, most * T(0.75)}) {
            const std::vector<T> one{x};
            std::vector<T> y(1);
            api::sigmoid_gate(y, one, std::vector<T>{gate});
            EXPECT_LE(ulp::error(y[0], wide(x) * reference::sigmoid(wide(gate))), 3) << x << ", " << gate;
        }
    }
}

// A NaN came of a softmax of numbers far apart here too.
TYPED_TEST(found, mhc_coefficients_of_large_numbers)
{
    using T = TypeParam;
    reference::random random{4};
    const std::vector<T> scale{T(1e10), T(-1e20), T(1e38)};
    for (int i = 0; i < 20; ++i) {
        const auto m = random.row<T>(8, -1e38, 1e38);
        const auto b = random.row<T>(8);
        std::vector<T> pre(2), post(2), comb(4);
        api::mhc_coefficients(pre, post, comb, m, scale, b, {.eps = 1e-6});
        for (const T x : comb) EXPECT_TRUE(x >= 0 && x <= 1) << x;
    }
}

// Where f has no memory, since it has no columns, it was taken for no f at all.
TYPED_TEST(found, mhc_write_vjp_without_columns)
{
    using T = TypeParam;
    const api::rows<T> no_f{nullptr, 1, 0};
    const api::rows<T> no_x{nullptr, 2, 0};
    const std::vector<T> post{1, 2};
    const std::vector<T> comb{1, 2, 3, 4};
    std::vector<T> dpost(2, T(7)), dcomb(4, T(7));
    api::mhc_write_vjp(no_x, no_f, dpost, dcomb, no_x, no_f, post, comb, no_x);
    EXPECT_EQ(dpost, std::vector<T>(2));
    EXPECT_EQ(dcomb, std::vector<T>(4));
}

// Brought down to stay in range, a subnormal y lost bits that count once it is brought up again.
TEST(found_in_double, softmax_gradient_of_a_large_dy)
{
    const std::vector<double> y{0x1.9p-1068, 1};
    const std::vector<double> dy{0x1.23456789abcdep1000, 0x1p1010};
    std::vector<double> dx(2);
    api::softmax_vjp(dx, y, dy);
    EXPECT_LE(ulp::error(dx[0], wide(y[0]) * (wide(dy[0]) - 0x1p1010L)), 4);
}

// The vector that the Jacobian is of was left to underflow with the scale of a row near zero.
TEST(found_in_double, gated_norm_derivative_of_small_numbers)
{
    const std::vector<double> x{-0x1.fffffep-126}, z{-0x1.2cca3ep9}, w{1}, tx{0x1.2a93d2p122}, none{0},
        tw{0x1.5ap46};
    const wide act = reference::silu(wide(z[0]));
    std::vector<double> ty(1);
    api::gated_rms_norm_jvp(ty, x, z, w, tx, none, tw, {.eps = 0x1p-20, .order = api::gate_order::gate_first});
    EXPECT_LE(ulp::error(ty[0], 0x1p10L * act * wide(tx[0])), 8);
    // 1 / sqrt(mean(x^2)) is out of the way of x, and the other way round
    for (const double far : {0x1p-900, 0x1p900}) {
        const std::vector<double> row{far, far}, along{far, -far}, open{100, 100}, still{0, 0};
        std::vector<double> t(2);
        for (const auto order : {api::gate_order::norm_first, api::gate_order::gate_first}) {
            api::gated_rms_norm_jvp(t, row, open, api::no_weight, along, still,
                                    {.eps = 0.0, .gate = api::norm_gate::sigmoid, .order = order});
            EXPECT_LE(ulp::error(t[0], 1), 8);
            EXPECT_LE(ulp::error(t[1], -1), 8);
        }
    }
}

// A gate far below zero is computed in parts, whose sum was +0 of a product of -0.
TEST(found_in_double, the_sign_of_zero_times_a_nearly_closed_gate)
{
    for (const double z : {-1.0, -700.0, -1e4, -1e300, -std::numeric_limits<double>::infinity()}) {
        for (const double zero : {0.0, -0.0}) {
            const std::vector<double> x{zero}, gate{z};
            std::vector<double> y(1);
            api::sigmoid_gate(y, x, gate);
            EXPECT_TRUE(ulp::all_same_bits(y, x)) << z;
            api::swiglu(y, gate, x);
            EXPECT_TRUE(ulp::all_same_bits(y, std::vector<double>{-zero})) << z;
        }
    }
}

// The power of two that keeps x act(z) in range was that of the largest x times the largest z, wherever they are.
TEST(found_in_double, gated_norm_of_large_numbers)
{
    using api::gate_order;
    using api::norm_gate;
    for (const auto gate : {norm_gate::silu, norm_gate::sigmoid}) {
        const auto norm = [&](const std::vector<double>& x, const std::vector<double>& z) {
            std::vector<double> y(x.size());
            api::gated_rms_norm(y, x, z, api::no_weight,
                                {.eps = 0x1p-20, .gate = gate, .order = gate_order::gate_first});
            return y;
        };
        // a closed gate is one that is nearly closed
        EXPECT_TRUE(ulp::all_same_bits(norm({1, -2, 0.5}, {-1e4, 1, 2}),
                                       norm({1, -2, 0.5}, {-std::numeric_limits<double>::infinity(), 1, 2})));
        const auto far = norm({0x1p1000, 1}, {-1e5, 0x1p1000});
        const wide open = gate == norm_gate::silu ? 0x1p1000L : 1;
        EXPECT_LE(ulp::error(far[1], open / std::sqrt(open * open / 2 + 0x1p-20L)), 8);
        const auto small = norm({0x1p-600, 0x1.8p-599}, {1, 1});
        const wide act = reference::sigmoid(1);
        EXPECT_LE(ulp::error(small[1], 0x1.8p-599L * act / 0x1p-10L), 8);
        const auto near = norm({0x1p-500, 1}, {1, 0x1p1000});
        EXPECT_LE(ulp::error(near[0], gate == norm_gate::silu ? 0 : 0x1p-500L * act / std::sqrt(0.5L + 0x1p-20L)),
                  8);
    }
}

}  // namespace
