// Inputs that other libraries got wrong, from public reports of their users, with the right values computed exactly.
// Each test says what went wrong there. Numbers in hexadecimal are the bits of a float. (Those of the gated activations:
// ffn_test.cpp.)

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cfenv>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "support/api.hpp"
#include "support/memory.hpp"
#include "support/reference.hpp"
#include "support/ulp.hpp"

namespace {

using reference::wide;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// Within `bound` units in the last place of the right float.
::testing::AssertionResult near(float got, std::uint32_t right, double bound = 2)
{
    const auto exact = std::bit_cast<float>(right);
    const double error = ulp::error(got, wide(exact));
    if (error <= bound && std::signbit(got) == std::signbit(exact)) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << got << " is " << error << " ulp from " << exact;
}

std::vector<float> rms_norm(const std::vector<float>& x, float eps)
{
    std::vector<float> y(x.size());
    api::rms_norm(y, x, std::vector<float>(x.size(), 1.0F), {.eps = eps});
    return y;
}
float silu(float x)
{
    std::array<float, 1> y{x};
    api::silu(y, y);
    return y[0];
}
float sigmoid(float x)
{
    std::array<float, 1> y{x};
    api::sigmoid(y, y);
    return y[0];
}
float swiglu(float gate, float up)
{
    std::array<float, 1> y{gate};
    api::swiglu(y, y, std::array{up});
    return y[0];
}

// --- A: range and eps ---------------------------------------------------------------------------------------------

// tenstorrent/tt-metal#55159, numpy/numpy#8775: the sum of squares overflows, and the row becomes 0.
TEST(range_and_eps, A1_rows_whose_squares_overflow)
{
    for (const float huge : {3e19F, 1e30F, 3e38F}) {
        for (const float y : rms_norm(std::vector<float>(512, huge), 1e-6F)) EXPECT_TRUE(near(y, 0x3f800000, 1));
    }
}

// apple/coremltools#2821: eps is added to a rescaled row, and so is multiplied by max^2.
TEST(range_and_eps, A3_eps_is_not_scaled_with_the_row)
{
    std::vector<float> x(4096, 0x1p-10F);
    x[0] = 8;
    const auto y = rms_norm(x, 1e-5F);
    EXPECT_TRUE(near(y[0], 0x427fe90b));
    EXPECT_TRUE(near(y[1], 0x3bffe90b));
}

// apple/coremltools#2822, huggingface/diffusers#13316: a row of zeros is 0/0.
TEST(range_and_eps, A4_rows_of_zeros)
{
    for (std::size_t n = 1; n <= 130; ++n) {
        for (const float eps : {1e-6F, 1e-12F}) {
            std::vector<float> zeros(n, 0.0F);
            std::vector<double> wide_zeros(n, 0.0);
            std::vector<double> y(n, 1.0);
            std::feclearexcept(FE_ALL_EXCEPT);
            const auto narrow = rms_norm(zeros, eps);
            api::rms_norm(y, wide_zeros, api::no_weight, {.eps = static_cast<double>(eps)});
            EXPECT_EQ(std::fetestexcept(FE_INVALID | FE_DIVBYZERO), 0);
            EXPECT_TRUE(ulp::all_same_bits(narrow, zeros));
            EXPECT_TRUE(ulp::all_same_bits(y, wide_zeros));
            const std::vector<float> minus(n, -0.0F);
            EXPECT_TRUE(ulp::all_same_bits(rms_norm(minus, eps), minus));
        }
    }
}

// amd/IRON#139, tensorflow/tensorflow#58863: eps is a constant of the kernel.
TEST(range_and_eps, A8_eps_is_the_one_that_is_given)
{
    for (const auto& [eps, right] : {std::pair{1e-6F, 0x3f7fae3cU}, {1e-5F, 0x3f7cdbd9U}, {1e-4F, 0x3f64f92eU}}) {
        for (const float y : rms_norm(std::vector<float>(64, 0.02F), eps)) EXPECT_TRUE(near(y, right));
    }
}

// tile-ai/tilelang#1243, tenstorrent/tt-metal#55347: eps outside the root, or dropped for one element.
TEST(range_and_eps, A9_eps_is_inside_the_root)
{
    for (const std::size_t n : std::vector<std::size_t>{1, 7, 64}) {
        for (const float y : rms_norm(std::vector<float>(n, 1e-3F), 1e-6F)) EXPECT_TRUE(near(y, 0x3f3504f3));
    }
}

// --- C: NaN, infinity, signed zero --------------------------------------------------------------------------------

// google/highway#1016: exp(NaN) is 0, and a gate hides the NaN.
TEST(special_values, C1_a_nan_goes_through_the_gate)
{
    for (std::size_t n = 1; n <= 40; ++n) {
        for (std::size_t where = 0; where < n; ++where) {
            std::vector<float> x(n, 1.0F);
            x[where] = nan;
            std::vector<float> y(n);
            api::sigmoid(y, x);
            EXPECT_TRUE(std::isnan(y[where]));
            api::silu(y, x);
            EXPECT_TRUE(std::isnan(y[where]));
            api::exp(y, x);
            EXPECT_TRUE(std::isnan(y[where]));
            api::swiglu(y, x, std::vector<float>(n, 1.0F));
            EXPECT_TRUE(std::isnan(y[where]));
        }
    }
}

// pytorch/pytorch#160876: silu(-infinity) as -infinity / infinity is NaN.
TEST(special_values, C4_silu_and_sigmoid_at_the_infinities)
{
    EXPECT_TRUE(ulp::same_bits(silu(-infinity), -0.0F));
    EXPECT_EQ(silu(infinity), infinity);
    EXPECT_EQ(sigmoid(infinity), 1.0F);
    EXPECT_TRUE(ulp::same_bits(sigmoid(-infinity), 0.0F));
    EXPECT_TRUE(ulp::same_bits(swiglu(-infinity, 3), -0.0F));
    EXPECT_EQ(swiglu(infinity, 3), infinity);
}

// antirez/ds4#498, tensorflow/tensorflow#119354: NaN far from zero, where the reduction of the range overflows.
TEST(special_values, C5_silu_and_sigmoid_of_huge_numbers)
{
    EXPECT_TRUE(ulp::same_bits(silu(-3e38F), -0.0F));
    EXPECT_EQ(silu(3e38F), 3e38F);
    EXPECT_EQ(sigmoid(5e29F), 1.0F);
    EXPECT_TRUE(ulp::same_bits(sigmoid(-5e29F), 0.0F));
}

// numpy/numpy#8051, uxlfoundation/oneDNN#649: a signalling NaN.
TEST(special_values, C9_a_signalling_nan_becomes_a_quiet_one)
{
    std::vector<float> x(20, 1.0F);
    // By its bits: a float register of an old ABI would make it quiet.
    const std::uint32_t signalling = 0x7f800001;
    std::memcpy(&x[17], &signalling, sizeof signalling);
    std::vector<float> y(20);
    const auto quiet = [&] {
        return std::isnan(y[17]) && (std::bit_cast<std::uint32_t>(y[17]) & 0x00400000U) != 0;
    };
    api::exp(y, x);
    EXPECT_TRUE(quiet());
    api::tanh(y, x);
    EXPECT_TRUE(quiet());
    api::sigmoid(y, x);
    EXPECT_TRUE(quiet());
    api::silu(y, x);
    EXPECT_TRUE(quiet());
    api::rms_norm(y, x, api::no_weight, {.eps = 1e-6F});
    EXPECT_TRUE(quiet());
    api::scale(y, x, 2.0F);
    EXPECT_TRUE(quiet());
    api::convert(y, x);
    EXPECT_TRUE(quiet());
    std::vector<residua::bfloat16> brain(20, residua::bfloat16(1.0F));
    brain[17] = residua::bfloat16::from_bits(0x7f81);
    api::convert(y, brain);
    EXPECT_TRUE(quiet());
    EXPECT_EQ(std::bit_cast<std::uint32_t>(y[17]), std::bit_cast<std::uint32_t>(float(brain[17])));
    std::vector<residua::float16> half(20, residua::float16(1.0F));
    for (const int signalling_half : {0x7c01, 0x7d55, 0xfdff}) {
        half[17] = residua::float16::from_bits(static_cast<std::uint16_t>(signalling_half));
        api::convert(y, half);
        EXPECT_TRUE(quiet());
        EXPECT_EQ(std::bit_cast<std::uint32_t>(y[17]), std::bit_cast<std::uint32_t>(float(half[17])));
    }
    std::vector<double> doubles(20, 1.0);
    const std::uint64_t signalling_double = 0x7ff0000000000001;
    std::memcpy(&doubles[17], &signalling_double, sizeof signalling_double);
    api::convert(y, doubles);
    EXPECT_TRUE(quiet());
    api::convert(doubles, doubles);
    EXPECT_NE(std::bit_cast<std::uint64_t>(doubles[17]) & 0x0008000000000000U, 0U);
}

// --- D: accuracy of the activations -------------------------------------------------------------------------------

// tenstorrent/tt-metal#55711, jax-ml/jax#39798: exp is flushed to 0 below -87.3, where silu is still a normal number.
TEST(activations, D1_the_far_tail_of_silu)
{
    EXPECT_TRUE(near(silu(-88.5F), 0x82dd2ec2));
    EXPECT_TRUE(near(silu(-90.0F), 0x81c8c18a));
    EXPECT_TRUE(near(silu(-91.0F), 0x81155967));
    EXPECT_TRUE(near(silu(-95.0F), 0x8005b61a));
}

// sonos/tract#2506: the argument of the sigmoid is clamped and x is not, so the tail grows.
TEST(activations, D3_the_tail_of_silu)
{
    EXPECT_TRUE(near(silu(-17.0F), 0xb53cec0a));
    EXPECT_TRUE(near(silu(-18.0F), 0xb4932d77));
    EXPECT_TRUE(near(silu(-30.0F), 0xac458b96));
    EXPECT_TRUE(near(sigmoid(-17.0F), 0x3331cf18));
}

// xtensor-stack/xsimd#757, Tencent/ncnn#6903: an estimate of 12 bits for the inverse root.
TEST(activations, D8_a_row_of_equal_numbers_is_one)
{
    for (std::size_t n = 1; n <= 70; ++n) {
        for (const float eps : {0.0F, 1e-12F}) {
            for (const float y : rms_norm(std::vector<float>(n, 2.0F), eps)) EXPECT_TRUE(near(y, 0x3f800000, 1));
        }
    }
}

// --- F: shapes, strides, pointers ---------------------------------------------------------------------------------

template <class T>
class memory_access : public testing::Test {};
using types = testing::Types<float, double>;
TYPED_TEST_SUITE(memory_access, types, );

// nntrainer/nntrainer#3494, sonos/tract#2304: the tail is left out, or written past its end.
TYPED_TEST(memory_access, F1_every_length_and_nothing_beside_it)
{
    using T = TypeParam;
    reference::random random{2};
    for (std::size_t n = 1; n <= 130; ++n) {
        const auto x = random.row<T>(n);
        const auto w = random.row<T>(n);
        memory::strided<T> y(1, n, n);
        const auto check = [&](const char* name, auto&& exact) {
            EXPECT_TRUE(y.gaps_untouched()) << name;
            for (std::size_t j = 0; j < n; ++j)
                EXPECT_LE(ulp::error(y.view()[0][j], exact(j)), 8) << name << ", n = " << n;
        };
        const auto wide_x = reference::widen(x);
        const auto wide_w = reference::widen(w);
        api::rms_norm(y.view(), x, w, {.eps = T(1e-6)});
        const auto normed = reference::rms_norm(wide_x, wide_w, wide(T(1e-6)));
        check("rms_norm", [&](std::size_t j) { return normed[j]; });
        api::swiglu(y.view(), x, w);
        check("swiglu", [&](std::size_t j) { return reference::swiglu(wide_x[j], wide_w[j]); });
        api::softmax(y.view(), x);
        const auto shares = reference::softmax(wide_x);
        check("softmax", [&](std::size_t j) { return shares[j]; });
        api::residual_add(y.view(), x, w, T(0.25));
        check("residual_add", [&](std::size_t j) { return wide_x[j] + wide_w[j] / 4; });
        api::tanh(y.view(), x);
        check("tanh", [&](std::size_t j) { return reference::tanh(wide_x[j]); });
    }
}

// --- G: backward --------------------------------------------------------------------------------------------------

// One unit in the last place of max_i |r w_i dy_i|, times 4: dx itself can cancel.
void expect_gradient(const std::vector<float>& dx, const std::vector<double>& right, double largest)
{
    for (std::size_t j = 0; j < dx.size(); ++j) {
        EXPECT_NEAR(static_cast<double>(dx[j]), right[j], 4 * static_cast<double>(ulp::unit<float>(wide(largest))));
    }
}

const std::vector<double> gradient_of_1_2_3_4{0.243432254, 0.121716365, 4.86863e-07, -0.121715397};

// ooples/AiDotNet#695: the derivative of the root is left out.
TEST(backward, G1_the_term_of_the_root)
{
    const std::vector<float> x{1, 2, 3, 4};
    const std::vector<float> ones(4, 1.0F);
    std::vector<float> dx(4);
    api::rms_norm_vjp(dx, x, ones, ones, {.eps = 1e-5F});
    expect_gradient(dx, gradient_of_1_2_3_4, 0.36514813);

    std::vector<float> dw(4);
    api::rms_norm_vjp(dx, dw, std::vector<float>{2, -1, 3, 0.5F}, std::vector<float>{1, 0.5F, -2, 0},
                      std::vector<float>{0.25F, 1, -0.5F, 4}, {.eps = 1e-5F});
    expect_gradient(dx, {-0.0906251445, 0.376445204, 0.1951949, -0.0557695478}, 0.5298122);
    const std::array<float, 4> right{0.2649061F, -0.52981220F, -0.79471830F, 1.05962440F};
    for (std::size_t j = 0; j < 4; ++j) EXPECT_TRUE(near(dw[j], std::bit_cast<std::uint32_t>(right[j]), 4));
}

// ggml-org/ggml#1491: dx overwrites dy before dy is read again.
TEST(backward, G2_dx_over_dy)
{
    const std::vector<float> x{1, 0, 0, 0};
    auto dy = x;
    api::rms_norm_vjp(dy, x, std::vector<float>(4, 1.0F), dy, {.eps = 1e-4F});
    expect_gradient(dy, {7.9952023e-04, 0, 0, 0}, 1.99960012);
    auto both = x;
    api::rms_norm_vjp(both, both, std::vector<float>(4, 1.0F), both, {.eps = 1e-4F});
    EXPECT_TRUE(ulp::all_same_bits(both, dy)) << "x, dy and dx may all be one";
}

// NVIDIA/TransformerEngine#67: the gradient of the zero-centred norm multiplies by w, not by 1 + w.
TEST(backward, G3_the_zero_centered_weight)
{
    const std::vector<float> x{1, 2, 3, 4};
    const std::vector<float> ones(4, 1.0F);
    std::vector<float> dx(4);
    std::vector<float> dw(4);
    api::rms_norm_vjp(dx, dw, x, api::zero_centered(std::vector<float>(4, 0.0F)), ones, {.eps = 1e-5F});
    expect_gradient(dx, gradient_of_1_2_3_4, 0.36514813);
    std::vector<float> plain_dw(4);
    api::rms_norm_vjp(dx, plain_dw, x, ones, ones, {.eps = 1e-5F});
    EXPECT_TRUE(ulp::all_same_bits(dw, plain_dw));
}

// linkedin/Liger-Kernel#950: dw stalls when it is summed in too few bits.
TEST(backward, G5_dw_over_many_rows)
{
    // Rows of one element have xh = 1, so each adds its dy.
    std::vector<float> x(4097, 1.0F);
    std::vector<float> dy(4097, 0.5F);
    dy[0] = 256;
    std::vector<float> dw(1);
    api::rms_norm_vjp(api::rows{dy.data(), 4097, 1}, dw, api::rows<const float>{x.data(), 4097, 1}, api::no_weight,
                      api::rows{dy.data(), 4097, 1}, {.eps = 0.0F});
    EXPECT_EQ(dw[0], 2304.0F);
}

// RL-Align/RL-Kernel#383: 0/0 in a row of zeros.
TEST(backward, G7_a_row_of_zeros)
{
    std::vector<float> dw(4);
    std::vector<float> dx(4);
    api::rms_norm_vjp(dx, dw, std::vector<float>(4, 0.0F), std::vector<float>(4, 1.0F),
                      std::vector<float>{1, 2, -3, 4}, {.eps = 1e-6F});
    expect_gradient(dx, {1000, 2000, -3000, 4000}, 4000);
    EXPECT_TRUE(ulp::all_same_bits(dw, std::vector<float>(4)));
}

// pytorch/pytorch#190828: with dy = x and no weight, dx = r x eps / (mean(x^2) + eps): all else cancels.
TEST(backward, G15_what_eps_leaves_of_the_radial_gradient)
{
    const std::vector<double> x{1, 2, 3, 4};
    const double eps = 1e-5;
    std::vector<double> dx(4);
    api::rms_norm_vjp(dx, x, api::no_weight, x, {.eps = eps});
    const double unit = static_cast<double>(ulp::unit<double>(4 / std::sqrt(7.5L)));
    for (std::size_t j = 0; j < 4; ++j) {
        const wide e = wide(eps);
        const wide right = wide(x[j]) * e / ((7.5L + e) * std::sqrt(7.5L + e));
        EXPECT_NEAR(dx[j], static_cast<double>(right), 4 * unit);
        EXPECT_NEAR(dx[j] / x[j], 4.8686e-07, 5e-12);
    }
}

// --- H: the same bits every time ----------------------------------------------------------------------------------

// pytorch/pytorch#197018, numpy/numpy#23523: the body of the loop and its tail differ.
TYPED_TEST(memory_access, H2_body_and_tail_agree)
{
    using T = TypeParam;
    for (const T value : {T(0.3), T(-1.2784645), T(-90), T(7)}) {
        std::vector<T> alone(1);
        api::silu(alone, std::vector<T>{value});
        for (std::size_t n = 1; n <= 70; ++n) {
            std::vector<T> y(n);
            api::silu(y, std::vector<T>(n, value));
            EXPECT_TRUE(ulp::all_same_bits(y, std::vector<T>(n, alone[0])));
            api::rms_norm(y, std::vector<T>(n, value), api::no_weight, {.eps = T(1e-6)});
            EXPECT_TRUE(ulp::all_same_bits(y, std::vector<T>(n, y[0])));
        }
    }
}

// pytorch/helion#2273, flagos-ai/FlagGems#5771: a scale that was saved in 16 bits spoils the gradient.
TEST(backward, G16_the_scale_of_a_16_bit_row_is_not_rounded)
{
    reference::random random{71};
    const std::size_t n = 33;
    std::vector<api::bfloat16> x, w, dy;
    for (std::size_t j = 0; j < n; ++j) {
        for (auto* const row : {&x, &w, &dy}) row->emplace_back(random.uniform(-2, 2));
    }
    std::vector<float> dx(n), dw(n);
    api::rms_norm_vjp(dx, dw, x, w, dy, {.eps = 1e-6F});
    const auto wide_row = [](const auto& from) {
        reference::wide_row to;
        for (const auto e : from) to.push_back(wide(static_cast<float>(e)));
        return to;
    };
    const auto exact = reference::rms_norm_vjp(wide_row(x), wide_row(w), wide_row(dy), wide(1e-6F));
    const wide unit = ulp::unit<float>(exact.largest);
    for (std::size_t j = 0; j < n; ++j) {
        EXPECT_LE(std::abs(wide(dx[j]) - exact.dx[j]), 4 * unit) << j;
        EXPECT_LE(ulp::error(dw[j], exact.dw[j]), 4) << j;
    }
}

// --- K: the floating-point environment ----------------------------------------------------------------------------

#if defined(__x86_64__)
// microsoft/onnxruntime#7448, Tencent/ncnn#2656: subnormal results up to a hundred times as slow as others. What
// elementary.hpp says of them: a few times, where the CPU needs help of its microcode.
TEST(speed, K4_subnormal_results_are_not_much_slower)
{
    std::vector<float> subnormal(2048), normal(2048), y(2048);
    for (std::size_t j = 0; j < subnormal.size(); ++j) {
        subnormal[j] = -87 - 17 * static_cast<float>(j) / 2048;
        normal[j] = -4 - 17 * static_cast<float>(j) / 2048;
    }
    const auto seconds = [&](const std::vector<float>& x) {
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < 4; ++i) api::silu(y, x);
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    // the least of many, taken in turns: what else the machine does only adds
    double of_subnormal = std::numeric_limits<double>::infinity();
    double of_normal = of_subnormal;
    for (int i = 0; i < 60; ++i) {
        of_subnormal = std::min(of_subnormal, seconds(subnormal));
        of_normal = std::min(of_normal, seconds(normal));
    }
    EXPECT_LE(of_subnormal, 10 * of_normal);
    std::printf("  subnormal results of silu take %.1f times as long\n", of_subnormal / of_normal);
}
#endif

}  // namespace
