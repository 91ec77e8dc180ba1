// The six blocks of examples/blocks: the gradient of each is the derivative of its output, and the same in float as far
// as float goes. Each is made of nothing but the library's operations, so this tests them in company.

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "../examples/blocks/blocks.hpp"

namespace {

using blocks::design;
using blocks::matrix;

class block_gradient : public testing::TestWithParam<blocks::design_name> {
protected:
    static constexpr blocks::sizes n{.tokens = 3, .width = 6, .heads = 2, .hidden = 10, .streams = 4};

    static std::size_t rows() { return n.tokens * blocks::streams_of(GetParam().which, n); }

    template <class T>
    static blocks::block<T> make(std::uint64_t seed)
    {
        blocks::normal_source random{seed};
        return {GetParam().which, n, 4, random};
    }
    template <class T>
    static matrix<T> normal(std::uint64_t seed)
    {
        blocks::normal_source random{seed};
        matrix<T> x(rows(), n.width);
        random.fill(x.view(), 1);
        return x;
    }
};

TEST_P(block_gradient, is_the_derivative_in_every_direction)
{
    for (const std::uint64_t seed : {1U, 2U}) {
        auto block = make<double>(seed);
        const auto x = normal<double>(seed + 10);
        const auto top = normal<double>(seed + 20);
        matrix<double> y(rows(), n.width);
        const auto value_with = [&](std::size_t i, std::size_t j, double t) {
            blocks::op::convert(y.view(), x.view());
            y.view()[i][j] += t;
            block.forward(y);
            return blocks::op::dot(top.view(), y.view());
        };
        value_with(0, 0, 0);
        auto g = top;
        block.backward(g);
        for (std::size_t i = 0; i < rows(); ++i) {
            for (std::size_t j = 0; j < n.width; ++j) {
                // two central differences, extrapolated: an error of the order h^4
                const auto slope = [&](double h) { return (value_with(i, j, h) - value_with(i, j, -h)) / (2 * h); };
                const double expected = (4 * slope(5e-4) - slope(1e-3)) / 3;
                EXPECT_NEAR(g.view()[i][j], expected, 1e-8) << "element " << i << ", " << j;
            }
        }
    }
}

TEST_P(block_gradient, in_float_is_that_in_double)
{
    auto narrow = make<float>(3);
    auto wide = make<double>(3);
    auto x = normal<float>(13);
    auto g = normal<float>(23);
    matrix<double> x_wide(rows(), n.width), g_wide(rows(), n.width);
    blocks::op::convert(x_wide.view(), x.view());
    blocks::op::convert(g_wide.view(), g.view());
    narrow.forward(x);
    narrow.backward(g);
    wide.forward(x_wide);
    wide.backward(g_wide);
    for (std::size_t i = 0; i < rows(); ++i) {
        for (std::size_t j = 0; j < n.width; ++j) {
            EXPECT_NEAR(static_cast<double>(x.view()[i][j]), x_wide.view()[i][j], 2e-5);
            EXPECT_NEAR(static_cast<double>(g.view()[i][j]), g_wide.view()[i][j], 2e-5);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(columns, block_gradient, testing::ValuesIn(blocks::designs), [](const auto& of) {
    std::string name;
    for (const char c : of.param.name) name += c == ' ' || c == '-' || c == '.' ? '_' : c;
    return name;
});

}  // namespace
