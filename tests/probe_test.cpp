// Deep stacks against closed forms, against differences, and against two small models written again in plain loops.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/api.hpp"
#include "support/memory.hpp"
#include "support/reference.hpp"
#include "support/ulp.hpp"

namespace {

namespace probe = api::probe;
using probe::magnitude;
using reference::wide;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

void expect_relative(double got, double right, double tolerance)
{
    EXPECT_NEAR(got, right, tolerance * std::abs(right));
}

// --- magnitude ----------------------------------------------------------------------------------------------------

TEST(magnitude, has_a_mantissa_from_1_to_below_2)
{
    const auto expect = [](magnitude m, double mantissa, std::int64_t exponent) {
        EXPECT_EQ(m.mantissa, mantissa);
        EXPECT_EQ(m.exponent, exponent);
    };
    expect(probe::make_magnitude(1), 1, 0);
    expect(probe::make_magnitude(2), 1, 1);
    expect(probe::make_magnitude(0.75), 1.5, -1);
    expect(probe::make_magnitude(std::nextafter(2.0, 0.0)), std::nextafter(2.0, 0.0), 0);
    expect(probe::make_magnitude(std::numeric_limits<double>::max()), std::nextafter(2.0, 0.0), 1023);
    expect(probe::make_magnitude(std::numeric_limits<double>::min()), 1, -1022);
    expect(probe::make_magnitude(std::numeric_limits<double>::denorm_min()), 1, -1074);
    expect(probe::make_magnitude(3, -4000), 1.5, -3999);
    expect(probe::make_magnitude(0, 17), 0, 0);
    EXPECT_EQ(probe::make_magnitude(infinity, 3).mantissa, infinity);
    EXPECT_TRUE(std::isnan(probe::make_magnitude(nan, 3).mantissa));
}

TEST(magnitude, as_a_double_it_is_zero_or_infinite_beyond_the_range)
{
    EXPECT_EQ((magnitude{1.5, 3}.value()), 12);
    EXPECT_EQ((magnitude{1.5, 1023}.value()), 0x1.8p1023);
    EXPECT_EQ((magnitude{1, 1024}.value()), infinity);
    EXPECT_EQ((magnitude{1.5, 3000000000}.value()), infinity);
    EXPECT_EQ((magnitude{1, -1074}.value()), std::numeric_limits<double>::denorm_min());
    EXPECT_EQ((magnitude{1, -1076}.value()), 0);
    EXPECT_EQ((magnitude{1.5, -3000000000}.value()), 0);
    EXPECT_EQ((magnitude{0, 0}.value()), 0);
    EXPECT_EQ(probe::make_magnitude(infinity).value(), infinity);
    EXPECT_TRUE(std::isnan(probe::make_magnitude(nan).value()));
}

TEST(magnitude, log10_is_right_to_the_last_digits)
{
    reference::random random{1};
    const wide log10_2 = std::log10(2.0L);
    for (int i = 0; i < 2000; ++i) {
        const double mantissa = i == 0 ? 1 : random.uniform(1, 2);
        for (const std::int64_t exponent :
             {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1}, std::int64_t{-4089}, std::int64_t{12345678}}) {
            const wide right = std::log10(wide(mantissa)) + static_cast<wide>(exponent) * log10_2;
            const double got = magnitude{mantissa, exponent}.log10();
            EXPECT_LE(std::abs(wide(got) - right), 1e-15L + 2 * ulp::unit<double>(right))
                << mantissa << " * 2^" << exponent;
        }
    }
    EXPECT_EQ(magnitude{}.log10(), -infinity);
    EXPECT_EQ(probe::make_magnitude(infinity).log10(), infinity);
    EXPECT_TRUE(std::isnan(probe::make_magnitude(nan).log10()));
}

TEST(magnitude, division)
{
    reference::random random{2};
    for (int i = 0; i < 1000; ++i) {
        const magnitude a{random.uniform(1, 2), static_cast<std::int64_t>(random.uniform(-9000, 9000))};
        const magnitude b{random.uniform(1, 2), static_cast<std::int64_t>(random.uniform(-9000, 9000))};
        const magnitude ratio = a / b;
        EXPECT_GE(ratio.mantissa, 1);
        EXPECT_LT(ratio.mantissa, 2);
        EXPECT_EQ(std::ldexp(ratio.mantissa, static_cast<int>(ratio.exponent - a.exponent + b.exponent)),
                  a.mantissa / b.mantissa);
    }
    const magnitude one = probe::make_magnitude(1);
    EXPECT_EQ((magnitude{} / one).value(), 0);
    EXPECT_EQ((one / magnitude{}).value(), infinity);
    EXPECT_TRUE(std::isnan((magnitude{} / magnitude{}).value()));
}

// --- stacks of F(x) = a x, where everything is known ----------------------------------------------------------------

template <class T>
struct times {
    T a;

    void forward(api::rows<T> y, api::rows<const T> x) const { api::scale(y, x, a); }
    void vjp(api::rows<T> dx, api::rows<const T>, api::rows<const T> dy) const { api::scale(dx, dy, a); }
};

/// The memory of a stack, and its calls.
template <class T, class Sublayer>
struct stack {
    std::vector<Sublayer> layers;
    probe::wiring<T> how;
    std::size_t tokens, width;
    std::vector<T> stream, g, scratch;
    std::vector<magnitude> sizes;

    stack(std::vector<Sublayer> sublayers, probe::wiring<T> wiring, std::size_t tokens_, std::size_t width_)
        : layers(std::move(sublayers)),
          how{wiring},
          tokens{tokens_},
          width{width_},
          stream((layers.size() + 1) * tokens * width),
          g(tokens * width),
          scratch(2 * tokens * width),
          sizes(layers.size() + 1)
    {
    }

    std::size_t depth() const { return layers.size(); }
    std::span<Sublayer> sublayers() { return layers; }
    api::rows<T> all() { return {stream.data(), (depth() + 1) * tokens, width}; }
    api::rows<const T> seen() { return all(); }
    api::rows<T> two_blocks() { return {scratch.data(), 2 * tokens, width}; }
    std::vector<T> block(const std::vector<T>& v, std::size_t k) const
    {
        const auto first = v.begin() + static_cast<std::ptrdiff_t>(k * tokens * width);
        return {first, first + static_cast<std::ptrdiff_t>(tokens * width)};
    }

    void start_with(const std::vector<T>& x) { std::copy(x.begin(), x.end(), stream.begin()); }
    void forward() { probe::forward(all(), sublayers(), how, two_blocks()); }
    void backward(const std::vector<T>& top)
    {
        g = top;
        probe::backward(api::rows<T>{g.data(), tokens, width}, seen(), sublayers(), how, two_blocks(),
                        std::span<magnitude>{sizes});
    }
    std::vector<T> split(const std::vector<T>& top)
    {
        std::vector<T> parts(stream.size(), T(99));
        std::copy(top.begin(), top.end(), parts.begin());
        probe::split_by_crossings(api::rows<T>{parts.data(), (depth() + 1) * tokens, width}, seen(), sublayers(),
                                  how, two_blocks());
        return parts;
    }
    std::vector<T> along(std::span<const bool> crossed, std::vector<T> top)
    {
        probe::along_path(api::rows<T>{top.data(), tokens, width}, seen(), sublayers(), crossed, how, two_blocks());
        return top;
    }
    magnitude ratio() const { return sizes.front() / sizes.back(); }
};

template <class T>
class stacks : public testing::Test {};
using types = testing::Types<float, double>;
TYPED_TEST_SUITE(stacks, types, );

TYPED_TEST(stacks, plain_multiplies_by_a_to_the_n)
{
    using T = TypeParam;
    stack<T, times<T>> s{std::vector<times<T>>(10, {T(0.5)}), {}, 2, 5};
    s.start_with(std::vector<T>(10, T(3)));
    s.forward();
    for (std::size_t l = 0; l <= 10; ++l) {
        EXPECT_EQ(s.block(s.stream, l), std::vector<T>(10, std::ldexp(T(3), -static_cast<int>(l))));
    }
    s.backward(std::vector<T>(10, T(7)));
    for (std::size_t l = 0; l <= 10; ++l) {
        EXPECT_EQ(s.sizes[l].value(), std::ldexp(7, static_cast<int>(l) - 10)) << "g_" << l;
    }
}

TYPED_TEST(stacks, residual_multiplies_by_1_plus_c_a)
{
    using T = TypeParam;
    stack<T, times<T>> s{{{T(0.5)}, {T(2)}, {T(-0.25)}, {T(1)}}, {.residual = true, .write_scale = T(0.5)}, 1, 3};
    s.start_with({1, 2, -4});
    s.forward();
    const T product = T(1.25) * 2 * T(0.875) * T(1.5);
    EXPECT_EQ(s.block(s.stream, 4), (std::vector<T>{product, 2 * product, -4 * product}));
    s.backward({1, 1, 1});
    EXPECT_EQ(s.g, (std::vector<T>{product, product, product}));
    EXPECT_EQ(s.ratio().value(), static_cast<double>(product));
    EXPECT_EQ(s.sizes[3].value(), 1.5);
}

TYPED_TEST(stacks, two_halves_split_into_1_and_twice_half_and_a_quarter)
{
    using T = TypeParam;
    stack<T, times<T>> s{std::vector<times<T>>(2, {T(0.5)}), {.residual = true}, 1, 1};
    s.start_with({1});
    s.forward();
    EXPECT_EQ(s.split({1}), (std::vector<T>{1, 1, T(0.25)}));
    const std::array<std::array<bool, 2>, 4> paths{{{false, false}, {true, false}, {false, true}, {true, true}}};
    const std::array<T, 4> right{1, T(0.5), T(0.5), T(0.25)};
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(s.along(paths[i], {1}), std::vector<T>{right[i]});
    s.backward({1});
    EXPECT_EQ(s.g, std::vector<T>{T(2.25)});

    s.how = {};
    EXPECT_EQ(s.split({1}), (std::vector<T>{0, 0, T(0.25)})) << "a plain stack has one path, through everything";
}

TYPED_TEST(stacks, crossings_split_like_a_binomial)
{
    using T = TypeParam;
    const std::size_t depth = 12;
    stack<T, times<T>> s{std::vector<times<T>>(depth, {T(0.5)}), {.residual = true, .write_scale = T(0.5)}, 3, 2};
    s.start_with(std::vector<T>(6, T(1)));
    s.forward();
    const auto parts = s.split(std::vector<T>(6, T(1)));
    double choose = 1;
    for (std::size_t k = 0; k <= depth; ++k) {
        // exact: the coefficients and the powers of two fit
        EXPECT_EQ(s.block(parts, k),
                  std::vector<T>(6, static_cast<T>(std::ldexp(choose, -2 * static_cast<int>(k)))));
        choose = choose * static_cast<double>(depth - k) / static_cast<double>(k + 1);
    }
}

TYPED_TEST(stacks, however_deep_no_size_underflows)
{
    using T = TypeParam;
    for (const double a : {0.5, 1e-3, 3.0, 700.0}) {
        stack<T, times<T>> s{std::vector<times<T>>(2000, {static_cast<T>(a)}), {}, 1, 4};
        s.backward({1, 2, -1, T(0.5)});  // the Jacobian does not depend on the stream
        const wide right = 2000 * std::log10(wide(static_cast<T>(a)));
        // each layer rounds once in T
        const double tolerance =
            a == 0.5 ? 1e-12 : 2000 * 0.5 * static_cast<double>(std::numeric_limits<T>::epsilon());
        EXPECT_NEAR(s.ratio().log10(), static_cast<double>(right),
                    1e-12 * static_cast<double>(std::abs(right)) + (a == 0.5 ? 0 : tolerance));
        EXPECT_TRUE(std::isfinite(s.ratio().log10()));
        EXPECT_EQ(s.ratio().value(), a < 1 ? 0 : infinity);
        for (const T e : s.g) EXPECT_TRUE(std::isnormal(e));
    }
}

TYPED_TEST(stacks, bringing_the_gradient_back_to_near_one_changes_no_bit)
{
    using T = TypeParam;
    // Down to where the sizes leave the reach of `backward`, and not so far that T alone could not hold them.
    const std::size_t depth = sizeof(T) == 4 ? 14 : 90;
    reference::random random{3};
    std::vector<times<T>> layers;
    for (std::size_t l = 0; l < depth; ++l) layers.push_back({static_cast<T>(random.uniform(0.001, 0.01))});
    stack<T, times<T>> s{layers, {}, 1, 9};
    const auto top = random.row<T>(9);
    const auto crossed = std::make_unique<bool[]>(depth);
    std::fill_n(crossed.get(), depth, true);
    const auto direct = s.along({crossed.get(), depth}, top);
    s.backward(top);
    const int shift = std::ilogb(direct[0]) - std::ilogb(s.g[0]);
    EXPECT_LT(shift, sizeof(T) == 4 ? -20 : -200);
    for (std::size_t j = 0; j < 9; ++j) EXPECT_TRUE(ulp::same_bits(std::ldexp(s.g[j], shift), direct[j]));
    expect_relative(s.sizes.front().log10(), std::log10(static_cast<double>(api::rms(direct))), 1e-12);
}

TYPED_TEST(stacks, a_gradient_of_zeros_stays_zero)
{
    using T = TypeParam;
    stack<T, times<T>> s{std::vector<times<T>>(3, {T(2)}), {.residual = true}, 1, 4};
    s.backward({0, 0, 0, 0});
    for (const auto& size : s.sizes) EXPECT_EQ(size.value(), 0);
    EXPECT_EQ(s.g, std::vector<T>(4));
}

// --- stacks of two matrices and a tanh ----------------------------------------------------------------------------

/// The matrices and activations of N tanh sublayers.
template <class T>
struct tanh_memory {
    std::size_t depth, tokens, width, inner;
    std::vector<T> w1, w2, hidden, scratch;

    tanh_memory(std::size_t depth_, std::size_t tokens_, std::size_t width_, std::size_t inner_, std::uint64_t seed,
                double gain)
        : depth{depth_},
          tokens{tokens_},
          width{width_},
          inner{inner_},
          hidden(depth * tokens * inner),
          scratch(tokens * inner)
    {
        reference::random random{seed};
        const double size = gain * std::sqrt(3.0 / static_cast<double>(width));
        w1 = random.row<T>(depth * inner * width, -size, size);
        w2 = random.row<T>(depth * width * inner, -size, size);
    }

    std::vector<probe::tanh_sublayer<T>> sublayers()
    {
        std::vector<probe::tanh_sublayer<T>> all;
        for (std::size_t l = 0; l < depth; ++l) {
            all.push_back({{w1.data() + l * inner * width, inner, width},
                           {w2.data() + l * inner * width, width, inner},
                           {hidden.data() + l * tokens * inner, tokens, inner},
                           {scratch.data(), tokens, inner}});
        }
        return all;
    }
};

using tanh_stack = stack<double, probe::tanh_sublayer<double>>;

double inner_product(const std::vector<double>& a, const std::vector<double>& b)
{
    return static_cast<double>(reference::dot(reference::widen(a), reference::widen(b)));
}

/// The derivative of f at x[j], by differences of fourth order.
double slope(std::vector<double>& x, std::size_t j, const std::function<double()>& f)
{
    const double h = 1e-3;
    const double middle = x[j];
    const auto at = [&](double where) {
        x[j] = where;
        return f();
    };
    const double near = at(middle + h) - at(middle - h);
    const double far = at(middle + 2 * h) - at(middle - 2 * h);
    x[j] = middle;
    return (8 * near - far) / (12 * h);
}

TEST(tanh_sublayer, computes_its_formula_and_its_gradient)
{
    const std::size_t tokens = 3;
    const std::size_t width = 7;
    tanh_memory<double> m{1, tokens, width, 5, 4, 1};
    const auto f = m.sublayers()[0];
    reference::random random{5};
    auto x = random.row<double>(tokens * width);
    const auto dy = random.row<double>(tokens * width);
    std::vector<double> y(tokens * width);
    const auto run = [&] {
        f.forward({y.data(), tokens, width}, api::rows<const double>{x.data(), tokens, width});
    };
    run();
    for (std::size_t t = 0; t < tokens; ++t) {
        for (std::size_t i = 0; i < width; ++i) {
            wide right = 0;
            for (std::size_t k = 0; k < 5; ++k) {
                wide before = 0;
                for (std::size_t j = 0; j < width; ++j)
                    before += wide(m.w1[k * width + j]) * wide(x[t * width + j]);
                right += wide(m.w2[i * 5 + k]) * std::tanh(before);
            }
            EXPECT_NEAR(y[t * width + i], static_cast<double>(right), 1e-14);
        }
    }
    std::vector<double> dx(tokens * width);
    f.vjp({dx.data(), tokens, width}, api::rows<const double>{x.data(), tokens, width},
          api::rows<const double>{dy.data(), tokens, width});
    for (std::size_t j = 0; j < x.size(); ++j) {
        const double right = slope(x, j, [&] {
            run();
            return inner_product(y, dy);
        });
        EXPECT_NEAR(dx[j], right, 1e-9);
    }
}

struct wiring_case {
    const char* name;
    probe::wiring<double> how;
};
const std::vector<wiring_case> wirings{
    {"plain", {}},
    {"scaled", {.write_scale = 0.5}},
    {"pre-norm", {.pre_norm = true, .eps = 0.01}},
    {"residual", {.residual = true}},
    {"residual, scaled", {.residual = true, .write_scale = 0.4}},
    {"residual, pre-norm, scaled", {.residual = true, .pre_norm = true, .write_scale = 0.4, .eps = 1e-6}},
};

TEST(backward, is_the_derivative_of_the_whole_stack)
{
    for (const auto& [name, how] : wirings) {
        tanh_memory<double> m{4, 2, 6, 8, 6, 1.2};
        tanh_stack s{m.sublayers(), how, 2, 6};
        reference::random random{7};
        auto x = random.row<double>(12);
        const auto top = random.row<double>(12);
        s.start_with(x);
        s.forward();
        s.backward(top);
        const auto g = s.g;
        for (std::size_t j = 0; j < x.size(); ++j) {
            const double right = slope(x, j, [&] {
                s.start_with(x);
                s.forward();
                return inner_product(s.block(s.stream, 4), top);
            });
            EXPECT_NEAR(g[j], right, 2e-9) << name << ", element " << j;
        }
        EXPECT_NEAR(s.sizes[4].value(), std::sqrt(inner_product(top, top) / 12), 1e-15) << name;
        EXPECT_NEAR(s.sizes[0].value(), std::sqrt(inner_product(g, g) / 12), 1e-15) << name;
    }
}

TEST(backward, of_many_tokens_is_that_of_each_alone)
{
    const probe::wiring<double> how{.residual = true, .pre_norm = true, .write_scale = 0.5};
    tanh_memory<double> m{3, 4, 6, 6, 8, 1};
    tanh_stack all{m.sublayers(), how, 4, 6};
    reference::random random{9};
    const auto x = random.row<double>(24);
    const auto top = random.row<double>(24);
    all.start_with(x);
    all.forward();
    all.backward(top);
    for (std::size_t t = 0; t < 4; ++t) {
        tanh_memory<double> one{3, 1, 6, 6, 8, 1};
        tanh_stack alone{one.sublayers(), how, 1, 6};
        const auto part = [&](const std::vector<double>& v) {
            return std::vector<double>(v.begin() + static_cast<std::ptrdiff_t>(6 * t),
                                       v.begin() + static_cast<std::ptrdiff_t>(6 * t + 6));
        };
        alone.start_with(part(x));
        alone.forward();
        alone.backward(part(top));
        EXPECT_TRUE(ulp::all_same_bits(alone.g, part(all.g)));
    }
}

TEST(split_by_crossings, an_infinite_gradient_stays_on_its_paths)
{
    const std::size_t depth = 3;
    tanh_memory<double> m{depth, 2, 5, 5, 10, 1};
    tanh_stack s{m.sublayers(), wirings[0].how, 2, 5};
    ASSERT_FALSE(wirings[0].how.residual);
    reference::random random{12};
    s.start_with(random.row<double>(10));
    s.forward();
    const auto parts = s.split(std::vector<double>(10, infinity));
    for (std::size_t k = 0; k < depth; ++k) {
        EXPECT_EQ(s.block(parts, k), std::vector<double>(10, 0.0)) << "no path of a plain stack passes a sublayer";
    }
}
TEST(split_by_crossings, parts_and_paths_sum_to_the_gradient)
{
    const std::size_t depth = 6;
    for (const auto& [name, how] : wirings) {
        tanh_memory<double> m{depth, 2, 5, 5, 10, 1};
        tanh_stack s{m.sublayers(), how, 2, 5};
        reference::random random{11};
        const auto top = random.row<double>(10);
        s.start_with(random.row<double>(10));
        s.forward();
        s.backward(top);

        const auto parts = s.split(top);
        std::vector<double> sum(10);
        for (std::size_t k = 0; k <= depth; ++k) {
            const auto part = s.block(parts, k);
            for (std::size_t j = 0; j < 10; ++j) sum[j] += part[j];
        }
        for (std::size_t j = 0; j < 10; ++j) EXPECT_NEAR(sum[j], s.g[j], 1e-13) << name;

        std::vector<std::vector<double>> by_crossings(depth + 1, std::vector<double>(10));
        for (unsigned path = 0; path < 1U << depth; ++path) {
            std::array<bool, depth> crossed{};
            std::size_t crossings = 0;
            for (std::size_t l = 0; l < depth; ++l) {
                crossed[l] = (path >> l & 1U) != 0;
                if (crossed[l]) ++crossings;
            }
            if (!how.residual && crossings < depth) continue;  // a plain stack has no way past a sublayer
            const auto g = s.along(crossed, top);
            for (std::size_t j = 0; j < 10; ++j) by_crossings[crossings][j] += g[j];
        }
        for (std::size_t k = 0; k <= depth; ++k) {
            const auto part = s.block(parts, k);
            for (std::size_t j = 0; j < 10; ++j)
                EXPECT_NEAR(part[j], by_crossings[k][j], 1e-13) << name << ", " << k;
        }
    }
}

// --- tokens -------------------------------------------------------------------------------------------------------

probe::spread spread_of(const std::vector<double>& x, std::size_t tokens)
{
    const std::size_t width = x.size() / tokens;
    std::vector<double> scratch(x.size() + width);
    return probe::measure_spread(api::rows<const double>{x.data(), tokens, width},
                                 api::rows<double>{scratch.data(), tokens + 1, width});
}

TEST(measure_spread, of_equal_tokens)
{
    std::vector<double> x;
    for (int t = 0; t < 5; ++t) x.insert(x.end(), {1, -2, 0.5, 4});
    const auto s = spread_of(x, 5);
    EXPECT_NEAR(s.relative_distance, 0, 1e-15);
    EXPECT_NEAR(s.mean_cosine, 1, 1e-15);
}

TEST(measure_spread, of_orthogonal_tokens)
{
    for (const std::size_t tokens : std::vector<std::size_t>{2, 5, 40}) {
        std::vector<double> x(tokens * tokens);
        for (std::size_t t = 0; t < tokens; ++t) x[t * tokens + t] = 3;
        const auto s = spread_of(x, tokens);
        expect_relative(s.relative_distance, std::sqrt(1 - 1 / static_cast<double>(tokens)), 1e-15);
        EXPECT_EQ(s.mean_cosine, 0);
    }
}

TEST(measure_spread, of_opposite_tokens_and_of_one)
{
    const auto opposite = spread_of({1, 2, 3, -1, -2, -3}, 2);
    EXPECT_NEAR(opposite.relative_distance, 1, 1e-15);
    EXPECT_NEAR(opposite.mean_cosine, -1, 1e-15);
    const auto one = spread_of({1, 2, 3}, 1);
    EXPECT_EQ(one.relative_distance, 0);
    EXPECT_TRUE(std::isnan(one.mean_cosine));
    const auto none = spread_of({0, 0, 0, 0}, 2);
    EXPECT_EQ(none.relative_distance, 0) << "all are equal";
}

/// The matrices and buffers of attention sublayers that share what may be shared.
struct attention_memory {
    std::size_t depth, tokens, width;
    std::vector<double> wq, wk, wv, q, k, v, weights;

    attention_memory(std::size_t depth_, std::size_t tokens_, std::size_t width_)
        : depth{depth_},
          tokens{tokens_},
          width{width_},
          wq(depth * width * width),
          wk(wq),
          wv(wq),
          q(tokens * width),
          k(q),
          v(q),
          weights(tokens * tokens, memory::canary<double>)
    {
    }

    std::vector<probe::attention_sublayer<double>> sublayers()
    {
        std::vector<probe::attention_sublayer<double>> all;
        const auto matrix = [&](const std::vector<double>& w, std::size_t l) {
            return api::rows<const double>{w.data() + l * width * width, width, width};
        };
        const auto block = [&](std::vector<double>& b) { return api::rows<double>{b.data(), tokens, width}; };
        for (std::size_t l = 0; l < depth; ++l) {
            all.push_back({matrix(wq, l),
                           matrix(wk, l),
                           matrix(wv, l),
                           block(q),
                           block(k),
                           block(v),
                           {weights.data(), tokens, tokens}});
        }
        return all;
    }
};

using attention_stack = stack<double, probe::attention_sublayer<double>>;

TEST(attention_sublayer, weighs_the_past_by_softmax)
{
    const std::size_t tokens = 7;
    const std::size_t width = 6;
    attention_memory m{1, tokens, width};
    reference::random random{12};
    m.wq = random.row<double>(36);
    m.wk = random.row<double>(36);
    m.wv = random.row<double>(36);
    const auto x = random.row<double>(tokens * width);
    std::vector<double> y(tokens * width);
    m.sublayers()[0].forward({y.data(), tokens, width}, api::rows<const double>{x.data(), tokens, width});

    const auto times_row = [&](const std::vector<double>& w, std::size_t t) {
        reference::wide_row out(width);
        for (std::size_t i = 0; i < width; ++i) {
            for (std::size_t j = 0; j < width; ++j) out[i] += wide(w[i * width + j]) * wide(x[t * width + j]);
        }
        return out;
    };
    for (std::size_t t = 0; t < tokens; ++t) {
        reference::wide_row scores;
        for (std::size_t j = 0; j <= t; ++j) {
            scores.push_back(reference::dot(times_row(m.wq, t), times_row(m.wk, j))
                             / std::sqrt(static_cast<wide>(width)));
        }
        const auto a = reference::softmax(scores);
        wide sum = 0;
        reference::wide_row right(width);
        for (std::size_t j = 0; j <= t; ++j) {
            EXPECT_NEAR(m.weights[t * tokens + j], static_cast<double>(a[j]), 1e-14);
            sum += wide(m.weights[t * tokens + j]);
            const auto value = times_row(m.wv, j);
            for (std::size_t i = 0; i < width; ++i) right[i] += a[j] * value[i];
        }
        EXPECT_NEAR(static_cast<double>(sum), 1, 1e-15);
        for (std::size_t j = t + 1; j < tokens; ++j) EXPECT_EQ(m.weights[t * tokens + j], memory::canary<double>);
        for (std::size_t i = 0; i < width; ++i) {
            EXPECT_NEAR(y[t * width + i], static_cast<double>(right[i]), 1e-13);
        }
    }
}

TEST(attention_sublayer, sees_no_later_token)
{
    const std::size_t tokens = 5;
    attention_memory m{1, tokens, 4};
    reference::random random{13};
    m.wq = random.row<double>(16);
    m.wk = random.row<double>(16);
    m.wv = random.row<double>(16);
    const auto x = random.row<double>(tokens * 4);
    const auto run = [&](const std::vector<double>& in) {
        std::vector<double> y(tokens * 4);
        m.sublayers()[0].forward({y.data(), tokens, 4}, api::rows<const double>{in.data(), tokens, 4});
        return y;
    };
    const auto y = run(x);
    for (std::size_t changed = 0; changed < tokens; ++changed) {
        auto other = x;
        for (std::size_t j = 0; j < 4; ++j) other[changed * 4 + j] = 50;
        const auto z = run(other);
        EXPECT_TRUE(ulp::all_same_bits(std::span{y}.first(4 * changed), std::span{z}.first(4 * changed)));
    }
}

TEST(attention_sublayer, uniform_averaging_halves_the_distance_in_every_layer)
{
    // Without scores row t is the average over t tokens. That matrix has the eigenvalues 1, 1/2, ..., 1/T: after l
    // layers the distance goes like 2^-l, and what is left beside it like (2/3)^l.
    const std::size_t depth = 40;
    const std::size_t tokens = 6;
    const std::size_t width = 16;
    attention_memory m{depth, tokens, width};
    for (std::size_t l = 0; l < depth; ++l) {
        for (std::size_t i = 0; i < width; ++i) m.wv[(l * width + i) * width + i] = 1;
    }
    attention_stack s{m.sublayers(), {}, tokens, width};
    reference::random random{14};
    s.start_with(random.row<double>(tokens * width));
    s.forward();
    const auto distance = [&](std::size_t l) { return spread_of(s.block(s.stream, l), tokens).relative_distance; };
    double before = distance(0);
    for (std::size_t l = 1; l <= depth; ++l) {
        const double now = distance(l);
        EXPECT_LT(now, before);
        // The mean of T equal tokens is off by a rounding or two.
        if (l > 20) {
            EXPECT_NEAR(now / before, 0.5, 5 * std::pow(2.0 / 3, static_cast<double>(l)) + 1e-15 / now);
        }
        before = now;
    }
    EXPECT_TRUE(
        ulp::all_same_bits(std::span{s.stream}.first(width), std::span{s.stream}.last(tokens * width).first(width)))
        << "the first token has only itself";
    for (std::size_t t = 0; t < tokens; ++t) {
        for (std::size_t j = 0; j <= t; ++j) {
            EXPECT_NEAR(m.weights[t * tokens + j], 1 / static_cast<double>(t + 1), 1e-16);
        }
    }
}

// --- two models with printed results, by the library and in plain loops -------------------------------------------

class mulberry32 {
public:
    explicit mulberry32(std::uint32_t seed) : a_{seed} {}
    double uniform()
    {
        a_ += 0x6D2B79F5U;
        std::uint32_t t = (a_ ^ (a_ >> 15U)) * (a_ | 1U);
        t ^= t + (t ^ (t >> 7U)) * (t | 61U);
        return static_cast<double>(t ^ (t >> 14U)) * 0x1p-32;
    }

private:
    std::uint32_t a_;
};

/// The normal deviates of both models, one after the other: the library's, or the C library's in long double.
template <class Real>
std::vector<Real> normals(mulberry32& random, std::size_t n)
{
    std::vector<Real> z;
    for (std::size_t i = 0; i < n; ++i) {
        const double u1 = random.uniform();
        const double u2 = random.uniform();
        if constexpr (sizeof(Real) == sizeof(double)) {
            std::array<double, 1> one{};
            api::box_muller(one, std::array{u1}, std::array{u2});
            z.push_back(one[0]);
        } else {
            z.push_back(reference::box_muller(wide(u1), wide(u2)));
        }
    }
    return z;
}

struct switches {
    bool residual = false;
    bool pre_norm = false;
    bool scale_writes = false;

    probe::wiring<double> wiring(std::size_t depth) const
    {
        return {.residual = residual,
                .pre_norm = pre_norm,
                .write_scale = scale_writes ? 1 / std::sqrt(static_cast<double>(depth)) : 1,
                .eps = 1e-6};
    }
};

using wide_row = reference::wide_row;

wide_row times_matrix(std::span<const wide> w, const wide_row& x)
{
    wide_row y(w.size() / x.size());
    for (std::size_t i = 0; i < y.size(); ++i) {
        for (std::size_t j = 0; j < x.size(); ++j) y[i] += w[i * x.size() + j] * x[j];
    }
    return y;
}
wide_row times_transposed(std::span<const wide> w, const wide_row& y)
{
    wide_row x(w.size() / y.size());
    for (std::size_t i = 0; i < y.size(); ++i) {
        for (std::size_t j = 0; j < x.size(); ++j) x[j] += w[i * x.size() + j] * y[i];
    }
    return x;
}
wide rms(const wide_row& x) { return std::sqrt(reference::mean_square(x)); }

// Can the gradient reach the bottom? Seed 7, width 32, W2 tanh(W1 x), every entry a normal times gain / sqrt(32).
struct gradient_result {
    double ratio, stream_rms;
};
constexpr std::size_t gradient_width = 32;
constexpr std::size_t gradient_depth = 32;

template <class Real>
struct gradient_draws {
    std::vector<Real> w1, w2, x0, top;

    explicit gradient_draws(double gain)
    {
        mulberry32 random{7};
        const std::size_t d = gradient_width;
        const Real size = static_cast<Real>(gain) / std::sqrt(static_cast<Real>(d));
        const auto matrix = [&](std::vector<Real>& w) {
            for (const Real z : normals<Real>(random, d * d)) w.push_back(z * size);
        };
        for (std::size_t l = 0; l < gradient_depth; ++l) {
            matrix(w1);
            matrix(w2);
        }
        x0 = normals<Real>(random, d);
        top = normals<Real>(random, d);
        Real square = 0;
        for (const Real e : x0) square += e * e / static_cast<Real>(d);
        for (Real& e : x0) e /= std::sqrt(square);
    }
};

gradient_result gradient_by_library(double gain, switches how)
{
    const std::size_t d = gradient_width;
    const gradient_draws<double> draws{gain};
    tanh_memory<double> m{gradient_depth, 1, d, d, 0, 0};
    m.w1 = draws.w1;
    m.w2 = draws.w2;
    tanh_stack s{m.sublayers(), how.wiring(gradient_depth), 1, d};
    s.start_with(draws.x0);
    s.forward();
    s.backward(draws.top);
    return {s.ratio().value(), api::rms(s.block(s.stream, gradient_depth))};
}

gradient_result gradient_by_hand(double gain, switches how)
{
    const std::size_t d = gradient_width;
    const gradient_draws<wide> draws{gain};
    const wide c = how.scale_writes ? 1 / std::sqrt(wide(gradient_depth)) : 1;
    const wide eps = 1e-6L;
    const auto w1 = [&](std::size_t l) { return std::span{draws.w1}.subspan(l * d * d, d * d); };
    const auto w2 = [&](std::size_t l) { return std::span{draws.w2}.subspan(l * d * d, d * d); };
    std::vector<wide_row> x{draws.x0};
    std::vector<wide_row> hidden;
    for (std::size_t l = 0; l < gradient_depth; ++l) {
        auto h = times_matrix(w1(l), how.pre_norm ? reference::normalized(x[l], eps) : x[l]);
        for (wide& e : h) e = std::tanh(e);
        const auto f = times_matrix(w2(l), h);
        auto next = how.residual ? x[l] : wide_row(d);
        for (std::size_t j = 0; j < d; ++j) next[j] += c * f[j];
        hidden.push_back(h);
        x.push_back(next);
    }
    auto g = draws.top;
    for (std::size_t l = gradient_depth; l-- > 0;) {
        auto back = times_transposed(w2(l), g);
        for (std::size_t j = 0; j < d; ++j) back[j] *= 1 - hidden[l][j] * hidden[l][j];
        back = times_transposed(w1(l), back);
        if (how.pre_norm) back = reference::rms_norm_vjp(x[l], wide_row(d, 1), back, eps).dx;
        for (std::size_t j = 0; j < d; ++j) g[j] = (how.residual ? g[j] : 0) + c * back[j];
    }
    return {static_cast<double>(rms(g) / rms(draws.top)), static_cast<double>(rms(x.back()))};
}

void expect_gradient(double gain, switches how)
{
    const auto by_library = gradient_by_library(gain, how);
    const auto by_hand = gradient_by_hand(gain, how);
    expect_relative(by_library.ratio, by_hand.ratio, 1e-9);
    expect_relative(by_library.stream_rms, by_hand.stream_rms, 1e-9);
}

TEST(gradient_model, agrees_with_plain_loops)
{
    for (const double gain : {1.0, 0.5, 2.0}) {
        if (reference::plenty == 1 && gain != 1) continue;  // software arithmetic
        for (const switches how : {switches{},
                                   {.residual = true},
                                   {.pre_norm = true},
                                   {.residual = true, .pre_norm = true},
                                   {.residual = true, .pre_norm = true, .scale_writes = true}}) {
            expect_gradient(gain, how);
        }
    }
}

TEST(gradient_model, gives_the_printed_numbers)
{
    const double vanishing = gradient_by_library(0.5, {}).ratio;
    const double exploding = gradient_by_library(2, {}).ratio;
    expect_relative(vanishing, 1.4038152223957e-20, 1e-10);
    expect_relative(exploding, 2894.3542791, 1e-8);
    expect_relative(std::log10(exploding / vanishing), 23.3142, 1e-4);
    const auto residual = gradient_by_library(1, {.residual = true});
    expect_relative(residual.stream_rms, 6.3088043930107, 1e-10);
    expect_relative(residual.ratio, 20.373208337948, 1e-10);
}

TEST(gradient_model, residual_alone_keeps_the_ratio_above_1)
{
    for (int step = 0; step <= 30; step += 3) {
        const double gain = 0.5 + 0.05 * step;
        EXPECT_GT(gradient_by_library(gain, {.residual = true}).ratio, 1) << "gain " << gain;
    }
}

// Do the tokens become the same? Seed 11, 6 tokens of width 16, one head of causal attention in every layer.
constexpr std::size_t token_count = 6;
constexpr std::size_t token_width = 16;

template <class Real>
struct token_draws {
    std::vector<Real> x, wq, wk, wv;

    explicit token_draws(std::size_t depth)
    {
        mulberry32 random{11};
        const std::size_t d = token_width;
        x = normals<Real>(random, token_count * d);
        for (std::size_t t = 0; t < token_count; ++t) {
            const auto row = std::span{x}.subspan(t * d, d);
            Real square = 0;
            for (const Real e : row) square += e * e / static_cast<Real>(d);
            for (Real& e : row) e /= std::sqrt(square);
        }
        const Real size = 1 / std::sqrt(static_cast<Real>(d));
        for (std::size_t l = 0; l < depth; ++l) {
            for (auto* const w : {&wq, &wk, &wv}) {
                for (const Real z : normals<Real>(random, d * d)) w->push_back(z * size);
            }
        }
    }
};

probe::spread tokens_by_library(std::size_t depth, switches how)
{
    const token_draws<double> draws{depth};
    attention_memory m{depth, token_count, token_width};
    m.wq = draws.wq;
    m.wk = draws.wk;
    m.wv = draws.wv;
    attention_stack s{m.sublayers(), how.wiring(depth), token_count, token_width};
    s.start_with(draws.x);
    s.forward();
    return spread_of(s.block(s.stream, depth), token_count);
}

std::vector<wide_row> attend(const token_draws<wide>& draws, std::size_t l, const std::vector<wide_row>& in)
{
    const std::size_t d = token_width;
    const auto all = [&](const wide_row& w) {
        std::vector<wide_row> out;
        for (const auto& row : in) out.push_back(times_matrix(std::span{w}.subspan(l * d * d, d * d), row));
        return out;
    };
    const auto q = all(draws.wq);
    const auto k = all(draws.wk);
    const auto v = all(draws.wv);
    std::vector<wide_row> out(in.size(), wide_row(d));
    for (std::size_t t = 0; t < in.size(); ++t) {
        wide_row scores;
        for (std::size_t j = 0; j <= t; ++j) scores.push_back(reference::dot(q[t], k[j]) / std::sqrt(wide(d)));
        const auto a = reference::softmax(scores);
        for (std::size_t j = 0; j <= t; ++j) {
            for (std::size_t i = 0; i < d; ++i) out[t][i] += a[j] * v[j][i];
        }
    }
    return out;
}

probe::spread spread_by_hand(const std::vector<wide_row>& x)
{
    wide_row mean(token_width);
    for (const auto& row : x) {
        for (std::size_t i = 0; i < token_width; ++i) mean[i] += row[i] / wide(token_count);
    }
    wide apart = 0;
    wide all = 0;
    wide cosine = 0;
    for (std::size_t t = 0; t < token_count; ++t) {
        for (std::size_t i = 0; i < token_width; ++i) {
            apart += (x[t][i] - mean[i]) * (x[t][i] - mean[i]);
            all += x[t][i] * x[t][i];
        }
        for (std::size_t s = 0; s < t; ++s) {
            cosine +=
                reference::dot(x[s], x[t]) / std::sqrt(reference::dot(x[s], x[s]) * reference::dot(x[t], x[t]));
        }
    }
    return {static_cast<double>(std::sqrt(apart / all)), static_cast<double>(cosine / 15)};
}

probe::spread tokens_by_hand(std::size_t depth, switches how)
{
    const token_draws<wide> draws{depth};
    const wide c = how.scale_writes ? 1 / std::sqrt(static_cast<wide>(depth)) : 1;
    std::vector<wide_row> x;
    for (std::size_t t = 0; t < token_count; ++t) {
        const auto row = std::span{draws.x}.subspan(t * token_width, token_width);
        x.emplace_back(row.begin(), row.end());
    }
    for (std::size_t l = 0; l < depth; ++l) {
        auto in = x;
        if (how.pre_norm) {
            for (auto& row : in) row = reference::normalized(row, 1e-6L);
        }
        const auto f = attend(draws, l, in);
        for (std::size_t t = 0; t < token_count; ++t) {
            for (std::size_t i = 0; i < token_width; ++i) x[t][i] = (how.residual ? x[t][i] : 0) + c * f[t][i];
        }
    }
    return spread_by_hand(x);
}

constexpr switches all_three{.residual = true, .pre_norm = true, .scale_writes = true};

TEST(token_model, agrees_with_plain_loops)
{
    for (const auto& [depth, how] :
         {std::pair{std::size_t{0}, switches{}}, {8, {}}, {32, {.residual = true}}, {32, all_three}}) {
        const auto by_library = tokens_by_library(depth, how);
        const auto by_hand = tokens_by_hand(depth, how);
        expect_relative(by_library.relative_distance, by_hand.relative_distance, 1e-9);
        expect_relative(by_library.mean_cosine, by_hand.mean_cosine, 1e-9);
    }
}

TEST(token_model, gives_the_printed_numbers)
{
    expect_relative(tokens_by_library(0, {}).relative_distance, 0.9241588158753553, 1e-12);
    expect_relative(tokens_by_library(8, {}).relative_distance, 0.0058371909031349, 1e-10);
    expect_relative(tokens_by_library(32, {}).relative_distance, 3.19950e-10, 1e-5);
    expect_relative(tokens_by_library(32, {.residual = true}).relative_distance, 0.026188722364422, 1e-10);
    expect_relative(tokens_by_library(32, {.residual = true}).mean_cosine, 0.99919006153606, 1e-10);
    expect_relative(tokens_by_library(32, all_three).relative_distance, 0.827840998295136, 1e-10);
    expect_relative(tokens_by_library(32, all_three).mean_cosine, 0.161925716099235, 1e-10);
}

}  // namespace
