// Broken preconditions reach RESIDUA_ASSERT, and calls within the contract do not.

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

// clang-format off
#include "support/broken_contract.hpp"  // first: it defines the assertion
#include <residua/residua.hpp>
// clang-format on

namespace {

#define EXPECT_BROKEN(call, part) \
    EXPECT_NE(what_is_wrong([&] { call; }).find(part), std::string::npos) << "from " #call
#define EXPECT_KEPT(call) EXPECT_EQ(what_is_wrong([&] { call; }), std::string{}) << "from " #call

using rows = residua::rows<float>;
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

struct contract : testing::Test {
    std::vector<float> memory = std::vector<float>(1000, 1.0F);
    float* const p = memory.data();
    std::vector<float> x = std::vector<float>(8, 1.0F);
    std::vector<float> y = std::vector<float>(8, 1.0F);
    std::vector<float> w = std::vector<float>(8, 1.0F);
    std::vector<float> shorter = std::vector<float>(7, 1.0F);
};

// ModelTC/LightLLM#1467: a stride of columns that was honoured in part. Here there is none.
static_assert(!std::is_constructible_v<residua::rows<float>, float*, std::size_t, std::size_t, std::ptrdiff_t,
                                       std::ptrdiff_t>);
TEST_F(contract, F4_a_row_is_contiguous)
{
    float row[3] = {1, 2, 3};
    const residua::rows<float> view{row, 1, 3, 77};
    for (std::size_t j = 0; j < 3; ++j) EXPECT_EQ(&view[0][j], row + j);
}

TEST_F(contract, shapes_must_agree)
{
    EXPECT_BROKEN(residua::exp(y, shorter), "shape");
    EXPECT_BROKEN(residua::softmax(shorter, x), "shape");
    EXPECT_BROKEN(residua::tanh(rows(p, 2, 4), rows(p + 500, 4, 2)), "shape");
    EXPECT_BROKEN(residua::tanh_vjp_from_output(y, x, shorter), "shapes");
    EXPECT_BROKEN(residua::tanh_vjp_from_output(y, shorter, x), "shapes");
    EXPECT_BROKEN(residua::box_muller(y, x, shorter), "shapes");
    EXPECT_BROKEN(residua::residual_add(y, x, shorter), "shapes");
    EXPECT_BROKEN(residua::scale(y, shorter, 2), "shape");
    EXPECT_BROKEN(residua::swiglu(y, x, shorter), "shape");
    EXPECT_BROKEN(residua::clamped_swiglu(y, shorter, x, {.limit = 7.0F}), "shape");
    EXPECT_BROKEN(residua::gpt_oss_swiglu(shorter, x, x), "shape");
    EXPECT_BROKEN(residua::situ_glu(y, x, shorter), "shape");
    EXPECT_BROKEN(residua::swiglu_vjp(y, rows(p, 1, 8), x, x, shorter), "shape");
    EXPECT_BROKEN(residua::swiglu_jvp(y, x, x, shorter, x), "shape");
    EXPECT_BROKEN(residua::gelu(y, shorter), "shape");
    EXPECT_BROKEN(residua::gelu_vjp(y, x, shorter), "shape");
    EXPECT_BROKEN((void)residua::dot(x, shorter), "shape");
    EXPECT_BROKEN(residua::rms_norm(y, shorter, residua::no_weight, {.eps = 0.0F}), "shape");
    EXPECT_BROKEN(residua::rms_norm_vjp(y, x, w, shorter, {.eps = 0.0F}), "shape");
}

TEST_F(contract, a_weight_is_one_row)
{
    EXPECT_BROKEN(residua::rms_norm(y, x, rows(p, 2, 8), {.eps = 0.0F}), "weight");
    EXPECT_BROKEN(residua::rms_norm_vjp(y, rows(p, 2, 8), x, w, x, {.eps = 0.0F}), "dw");
}

TEST_F(contract, the_rows_of_an_output_are_distinct_and_those_of_an_input_need_not_be)
{
    EXPECT_BROKEN(residua::scale(rows(p, 3, 8, 0), rows(p, 3, 8, 0), 2), "overlap");
    EXPECT_BROKEN(residua::residual_add(rows(p, 2, 3, 1), rows(p, 2, 3, 1), rows(p + 500, 2, 3)), "overlaps");
    EXPECT_BROKEN(residua::matvec(rows(p, 2, 4, 2), rows(p + 500, 4, 8), rows(p + 600, 2, 8)), "overlaps");
    EXPECT_KEPT(residua::scale(rows(p, 3, 8, -16 + 32), rows(p + 500, 3, 8, 0), 2));
    EXPECT_KEPT(residua::scale(rows(p + 40, 3, 8, -16), rows(p + 500, 3, 8, 4), 2));
    EXPECT_BROKEN(residua::scale(rows(p + 40, 3, 8, 16), rows(p + 76, 3, 8, -16), 2), "overlap");
    EXPECT_KEPT(residua::scale(rows(p + 40, 3, 8, 16), rows(p + 80, 3, 8, -16), 2));
}

TEST_F(contract, probes_are_lent_enough_memory)
{
    using matrix = residua::rows<const float>;
    const residua::probe::attention_sublayer<float> narrow{
        matrix(p, 2, 2),     matrix(p, 2, 2),     matrix(p, 2, 2),    rows(p + 100, 3, 2),
        rows(p + 200, 3, 2), rows(p + 300, 3, 2), rows(p + 400, 3, 2)};
    EXPECT_BROKEN(narrow.forward(rows(p + 500, 3, 2), rows(p + 600, 3, 2)), "weights");
    EXPECT_EQ(residua::probe::measure_spread(rows(p, 0, 8), rows(p + 100, 1, 8)).relative_distance, 0);
}

TEST_F(contract, the_weight_has_one_element_per_column)
{
    EXPECT_BROKEN(residua::rms_norm(y, x, shorter, {.eps = 0.0F}), "weight");
    EXPECT_BROKEN(residua::rms_norm(y, x, residua::zero_centered(shorter), {.eps = 0.0F}), "weight");
    EXPECT_BROKEN(residua::zero_centered_rms_norm(y, x, shorter, {.eps = 0.0F}), "weight");
    EXPECT_BROKEN(residua::rms_norm_vjp(y, x, shorter, x, {.eps = 0.0F}), "weight");
    EXPECT_BROKEN(residua::rms_norm_vjp(y, shorter, x, w, x, {.eps = 0.0F}), "dw");
}

TEST_F(contract, eps_is_at_least_0)
{
    for (const float eps : {-1e-6F, nan, -infinity}) {
        EXPECT_BROKEN(residua::rms_norm(y, x, w, {.eps = eps}), "eps");
        EXPECT_BROKEN(residua::zero_centered_rms_norm(y, x, w, {.eps = eps}), "eps");
        EXPECT_BROKEN(residua::rms_norm_vjp(y, x, w, x, {.eps = eps}), "eps");
    }
    EXPECT_KEPT(residua::rms_norm(y, x, w, {.eps = 0.0F}));
    EXPECT_KEPT(residua::rms_norm(y, x, w, {.eps = -0.0F}));
}

TEST_F(contract, every_norm_checks_its_operands)
{
    using residua::no_bias;
    using residua::no_weight;
    std::vector<float> z = x;
    std::vector<float> h = x;
    std::vector<float> dz = x;
    std::vector<float> dw = x;
    std::vector<float> db = x;
    const residua::square_sum one{};
    const std::vector<residua::square_sum> two(2);
    const residua::product_sum product{};
    const std::vector<residua::product_sum> products(2);
    for (const float bad : {-1e-6F, nan}) {
        EXPECT_BROKEN(residua::rms_norm_jvp(y, x, w, x, {.eps = bad}), "eps");
        EXPECT_BROKEN(residua::rms_norm_apply(y, x, w, one, 8, {.eps = bad}), "eps");
        EXPECT_BROKEN((void)residua::rms_norm_vjp_sum(x, w, x, one, 8, {.eps = bad}), "eps");
        EXPECT_BROKEN((void)residua::rms_norm_jvp_sum(x, x, one, 8, {.eps = bad}), "eps");
        EXPECT_BROKEN(residua::rms_norm_apply_vjp(y, x, w, x, one, product, 8, {.eps = bad}), "eps");
        EXPECT_BROKEN(residua::rms_norm_apply_jvp(y, x, w, x, one, product, 8, {.eps = bad}), "eps");
        EXPECT_BROKEN(residua::add_rms_norm(y, h, x, w, {.eps = bad}), "eps");
        EXPECT_BROKEN(residua::add_rms_norm_vjp(y, dz, h, w, x, x, {.eps = bad}), "eps");
        EXPECT_BROKEN(residua::add_rms_norm_jvp(y, dz, h, w, x, {.eps = bad}), "eps");
        EXPECT_BROKEN(residua::gated_rms_norm(y, x, z, w, {.eps = bad}), "eps");
        EXPECT_BROKEN(residua::gated_rms_norm_vjp(y, dz, x, z, w, x, {.eps = bad}), "eps");
        EXPECT_BROKEN(residua::gated_rms_norm_jvp(y, x, z, w, x, x, {.eps = bad}), "eps");
        EXPECT_BROKEN(residua::layer_norm(y, x, w, no_bias, {.eps = bad}), "eps");
        EXPECT_BROKEN(residua::layer_norm_vjp(y, x, w, x, {.eps = bad}), "eps");
        EXPECT_BROKEN(residua::layer_norm_jvp(y, x, w, x, {.eps = bad}), "eps");
        EXPECT_BROKEN(residua::rms_norm_jvp(y, x, w, x, w, {.eps = bad}), "eps");
        EXPECT_BROKEN(residua::layer_norm_jvp(y, x, w, x, w, w, {.eps = bad}), "eps");
    }
    EXPECT_BROKEN(residua::rms_norm_jvp(y, x, w, x, shorter, {.eps = 0.0F}), "tw");
    EXPECT_BROKEN(residua::rms_norm_jvp(y, x, w, x, rows(p, 2, 8), {.eps = 0.0F}), "tw");
    EXPECT_BROKEN(residua::rms_norm_jvp(y, x, w, x, y, {.eps = 0.0F}), "overlap");
    EXPECT_BROKEN(residua::rms_norm_apply_jvp(y, x, w, x, shorter, one, product, 8, {.eps = 0.0F}), "tw");
    EXPECT_BROKEN(residua::add_rms_norm_jvp(y, dz, h, w, x, shorter, {.eps = 0.0F}), "tw");
    EXPECT_BROKEN(residua::add_rms_norm_jvp(y, dz, h, w, x, dz, {.eps = 0.0F}), "overlap");
    EXPECT_BROKEN(residua::gated_rms_norm_jvp(y, x, z, w, x, x, shorter, {.eps = 0.0F}), "tw");
    EXPECT_BROKEN(residua::layer_norm_jvp(y, x, w, x, shorter, {.eps = 0.0F}), "tw");
    EXPECT_BROKEN(residua::layer_norm_jvp(y, x, w, x, shorter, w, {.eps = 0.0F}), "tw and tb");
    EXPECT_BROKEN(residua::layer_norm_jvp(y, x, no_weight, x, no_weight, shorter, {.eps = 0.0F}), "tw and tb");
    EXPECT_BROKEN(residua::layer_norm_jvp(y, x, w, x, no_weight, y, {.eps = 0.0F}), "overlap");
    EXPECT_BROKEN(residua::rms_norm_jvp(y, x, w, shorter, {.eps = 0.0F}), "shape");
    EXPECT_BROKEN(residua::rms_norm_apply(shorter, x, w, one, 8, {.eps = 0.0F}), "shape");
    EXPECT_BROKEN(residua::rms_norm_apply(y, x, w, two, 8, {.eps = 0.0F}), "sums");
    EXPECT_BROKEN(residua::rms_norm_apply(y, x, w, one, 7, {.eps = 0.0F}), "longer");
    EXPECT_BROKEN((void)residua::sum_of_squares(rows(p, 2, 4)), "sums");
    EXPECT_BROKEN((void)residua::rms_norm_vjp_sum(x, w, shorter, one, 8, {.eps = 0.0F}), "shape");
    EXPECT_BROKEN((void)residua::rms_norm_vjp_sum(x, shorter, x, one, 8, {.eps = 0.0F}), "weight");
    EXPECT_BROKEN((void)residua::rms_norm_jvp_sum(x, x, one, 7, {.eps = 0.0F}), "longer");
    EXPECT_BROKEN((void)residua::rms_norm_jvp_sum(rows(p, 2, 4), rows(p, 2, 4), one, 4, {.eps = 0.0F}), "sums");
    EXPECT_BROKEN(residua::rms_norm_apply_vjp(y, x, w, x, two, product, 8, {.eps = 0.0F}), "sums");
    EXPECT_BROKEN(residua::rms_norm_apply_vjp(y, x, w, x, one, products, 8, {.eps = 0.0F}), "sums");
    EXPECT_BROKEN(residua::rms_norm_apply_vjp(y, x, w, x, one, product, 7, {.eps = 0.0F}), "longer");
    EXPECT_BROKEN(residua::rms_norm_apply_vjp(y, shorter, x, w, x, one, product, 8, {.eps = 0.0F}), "dw");
    EXPECT_BROKEN(residua::rms_norm_apply_vjp(y, y, x, w, x, one, product, 8, {.eps = 0.0F}), "dw");
    EXPECT_BROKEN(residua::rms_norm_apply_jvp(y, x, w, shorter, one, product, 8, {.eps = 0.0F}), "shape");
    EXPECT_BROKEN(residua::rms_norm_apply_jvp(y, x, w, x, one, products, 8, {.eps = 0.0F}), "sums");
    EXPECT_BROKEN(residua::add_rms_norm(y, h, shorter, w, {.eps = 0.0F}), "shape");
    EXPECT_BROKEN(residua::add_rms_norm(y, h, x, shorter, {.eps = 0.0F}), "weight");
    EXPECT_BROKEN(residua::add_rms_norm(h, h, x, w, {.eps = 0.0F}), "residual");
    EXPECT_BROKEN(residua::add_rms_norm_vjp(dz, dz, h, w, x, x, {.eps = 0.0F}), "two outputs");
    EXPECT_BROKEN(residua::add_rms_norm_vjp(y, dz, shorter, h, w, x, x, {.eps = 0.0F}), "dw");
    EXPECT_BROKEN(residua::add_rms_norm_jvp(dz, dz, h, w, x, {.eps = 0.0F}), "tresidual");
    EXPECT_BROKEN(residua::gated_rms_norm(y, x, shorter, w, {.eps = 0.0F}), "shape");
    EXPECT_BROKEN(residua::gated_rms_norm_vjp(dz, dz, x, z, w, x, {.eps = 0.0F}), "two outputs");
    EXPECT_BROKEN(residua::gated_rms_norm_vjp(y, dz, x, x, z, w, x, {.eps = 0.0F}), "dw");
    EXPECT_BROKEN(residua::gated_rms_norm_jvp(y, x, z, w, x, shorter, {.eps = 0.0F}), "shape");
    EXPECT_BROKEN(residua::layer_norm(y, x, w, shorter, {.eps = 0.0F}), "bias");
    EXPECT_BROKEN(residua::layer_norm(y, x, shorter, no_bias, {.eps = 0.0F}), "weight");
    EXPECT_BROKEN(residua::layer_norm(y, x, no_weight, y, {.eps = 0.0F}), "bias");
    EXPECT_BROKEN(residua::layer_norm_vjp(y, dw, dw, x, w, x, {.eps = 0.0F}), "two outputs");
    EXPECT_BROKEN(residua::layer_norm_vjp(y, dw, shorter, x, w, x, {.eps = 0.0F}), "dw and db");
    EXPECT_BROKEN(residua::layer_norm_jvp(y, shorter, w, x, {.eps = 0.0F}), "shape");
    EXPECT_KEPT(residua::add_rms_norm(x, h, x, w, {.eps = 0.0F}));
    EXPECT_KEPT(residua::gated_rms_norm_vjp(x, z, dw, x, z, w, x, {.eps = 0.0F}));
    EXPECT_KEPT(residua::layer_norm_vjp(x, dw, db, x, w, x, {.eps = 0.0F}));
}

TEST_F(contract, limits_are_positive)
{
    for (const float bad : {0.0F, -7.0F, nan}) {
        EXPECT_BROKEN(residua::clamped_swiglu(y, x, x, {.limit = bad}), "limit");
        EXPECT_BROKEN(residua::gpt_oss_swiglu(y, x, x, {.limit = bad}), "limit");
        EXPECT_BROKEN(residua::gpt_oss_swiglu(y, x, x, {.alpha = bad}), "alpha");
        EXPECT_BROKEN(residua::situ_glu(y, x, x, {.beta = bad}), "beta");
        EXPECT_BROKEN(residua::situ_glu(y, x, x, {.linear_beta = bad}), "beta");
    }
    EXPECT_KEPT(residua::clamped_swiglu(y, x, x, {.limit = infinity}));
    EXPECT_KEPT(residua::gpt_oss_swiglu(y, x, x, {.limit = infinity}));
}

TEST_F(contract, limits_of_gradients_are_positive)
{
    const rows second{p + 500, 1, 8};
    for (const float bad : {0.0F, -7.0F, nan}) {
        EXPECT_BROKEN(residua::swiglu_clamped_after(y, x, x, {.limit = bad}), "limit");
        EXPECT_BROKEN(residua::clamped_swiglu_vjp(y, second, x, x, x, {.limit = bad}), "limit");
        EXPECT_BROKEN(residua::gpt_oss_swiglu_jvp(y, x, x, x, x, {.alpha = bad}), "alpha");
    }
    EXPECT_KEPT(residua::clamped_swiglu_vjp(y, second, x, x, x, {.limit = infinity}));
}

TEST_F(contract, gate_and_up_share_a_matrix_of_even_width)
{
    using residua::halves;
    using residua::interleaved;
    const rows z{p, 3, 16};
    const rows out{p + 500, 3, 8};
    EXPECT_KEPT(residua::swiglu(out, halves(z)));
    EXPECT_KEPT(residua::swiglu(out, interleaved(z)));
    EXPECT_BROKEN(residua::swiglu(out, halves(rows(p, 3, 17))), "even");
    EXPECT_BROKEN(residua::swiglu(out, halves(rows(p, 3, 18))), "shape");
    // y in the place of a half; an interleaved z has no such place
    EXPECT_KEPT(residua::swiglu(rows(p, 3, 8, 16), halves(z)));
    EXPECT_KEPT(residua::swiglu(rows(p + 8, 3, 8, 16), halves(z)));
    EXPECT_BROKEN(residua::swiglu(rows(p + 4, 3, 8, 16), halves(z)), "overlap");
    EXPECT_BROKEN(residua::swiglu(rows(p, 3, 8, 16), interleaved(z)), "overlap");
    // gradients in the place of z, or one column beside
    EXPECT_KEPT(residua::swiglu_vjp(halves(z), halves(z), out));
    EXPECT_KEPT(residua::swiglu_vjp(interleaved(z), interleaved(z), out));
    EXPECT_BROKEN(residua::swiglu_vjp(interleaved(rows(p + 1, 3, 16)), interleaved(z), out), "overlap");
    EXPECT_BROKEN(residua::swiglu_vjp(interleaved(z), halves(z), out), "overlap");
    EXPECT_BROKEN(residua::swiglu_vjp(interleaved(rows(p, 3, 16, 15)), interleaved(rows(p + 200, 3, 16)), out),
                  "overlap");
    EXPECT_BROKEN(residua::swiglu_vjp(x, x, y, y, y), "overlap") << "both gradients in one place";
}

TEST_F(contract, matrices_fit_their_vectors)
{
    const rows w_3_by_8{p, 3, 8};
    std::vector<float> three(3);
    EXPECT_KEPT(residua::matvec(three, w_3_by_8, x));
    EXPECT_KEPT(residua::matvec_transposed(y, w_3_by_8, three));
    EXPECT_BROKEN(residua::matvec(y, w_3_by_8, x), "shapes");
    EXPECT_BROKEN(residua::matvec(three, w_3_by_8, shorter), "shapes");
    EXPECT_BROKEN(residua::matvec(rows(p + 500, 2, 3), w_3_by_8, rows(p + 600, 3, 8)), "shapes");
    EXPECT_BROKEN(residua::matvec_transposed(three, w_3_by_8, x), "shapes");
    EXPECT_BROKEN(residua::matvec_transposed(shorter, w_3_by_8, three), "shapes");
}

TEST_F(contract, an_output_may_be_an_input_and_nothing_in_between)
{
    const rows in{p + 100, 1, 40};
    EXPECT_KEPT(residua::exp(in, in));
    for (const std::ptrdiff_t by : {1, 39, -1, -39})
        EXPECT_BROKEN(residua::exp(rows(p + 100 + by, 1, 40), in), "overlap");
    for (const std::ptrdiff_t by : {40, -40}) EXPECT_KEPT(residua::exp(rows(p + 100 + by, 1, 40), in));

    const std::vector<float> w40(40, 1.0F);
    EXPECT_KEPT(residua::swiglu(in, in, in));
    EXPECT_KEPT(residua::rms_norm_vjp(in, in, w40, in, {.eps = 0.0F}));
}

TEST_F(contract, rows_with_strides_overlap_only_where_they_share_an_element)
{
    // Five rows of 8 in steps of 20.
    const rows in{p + 200, 5, 8, 20};
    EXPECT_KEPT(residua::exp(in, in));
    for (const std::ptrdiff_t by : {8, 12, -8, -12}) EXPECT_KEPT(residua::exp(rows(p + 200 + by, 5, 8, 20), in));
    for (const std::ptrdiff_t by : {1, 7, 13, 20, 27, 80, 87, -1, -7, -13, -80, -87}) {
        EXPECT_BROKEN(residua::exp(rows(p + 200 + by, 5, 8, 20), in), "overlap") << by;
    }
    for (const std::ptrdiff_t by : {88, -88, 100, -100})
        EXPECT_KEPT(residua::exp(rows(p + 200 + by, 5, 8, 20), in));

    // The two halves of interleaved rows: gate | up, gate | up.
    const rows gate{p, 6, 16, 32};
    const rows up{p + 16, 6, 16, 32};
    EXPECT_KEPT(residua::swiglu(gate, gate, up));
    EXPECT_KEPT(residua::swiglu(up, gate, up));
    EXPECT_BROKEN(residua::swiglu(rows(p + 15, 6, 16, 32), gate, rows(p + 500, 6, 16)), "overlap");

    // The same first element with another stride.
    EXPECT_BROKEN(residua::exp(rows(p + 200, 5, 8, 19), in), "overlap");
    EXPECT_KEPT(residua::exp(rows(p + 200, 1, 8, 19), rows(p + 200, 1, 8, 20)));
    EXPECT_BROKEN(residua::exp(rows(p + 200, 5, 8, 8), in), "overlap");

    // Backwards, and every row the same.
    EXPECT_KEPT(residua::exp(rows(p + 288, 5, 8, -20), rows(p + 300, 5, 8, -20)));
    EXPECT_KEPT(residua::exp(rows(p + 288, 5, 8, -20), in));
    EXPECT_BROKEN(residua::exp(rows(p + 280, 5, 8, -20), in), "overlap");
    EXPECT_BROKEN(residua::exp(rows(p + 284, 5, 8, -20), rows(p + 280, 5, 8, -20)), "overlap");
    EXPECT_KEPT(residua::exp(rows(p + 500, 5, 8), rows(p + 200, 5, 8, 0)));
    EXPECT_BROKEN(residua::exp(rows(p + 196, 5, 8, 20), rows(p + 203, 5, 8, 0)), "overlap");
}

TEST_F(contract, matvec_writes_beside_its_inputs)
{
    const rows matrix{p, 8, 8};
    EXPECT_BROKEN(residua::matvec(x, matrix, x), "overlap");
    EXPECT_BROKEN(residua::matvec_transposed(x, matrix, x), "overlap");
    EXPECT_BROKEN(residua::matvec(rows(p + 60, 1, 8), matrix, x), "overlap");
    EXPECT_BROKEN(residua::matvec_transposed(rows(p + 8, 1, 8), matrix, x), "overlap");
    // A column beside a matrix whose rows leave room for it.
    const rows wide{p, 8, 8, 17};
    EXPECT_KEPT(residua::matvec(rows(p + 8, 1, 8), wide, x));
    EXPECT_BROKEN(residua::matvec(rows(p + 10, 1, 8), wide, x), "overlap");
}

TEST_F(contract, stacks_have_the_memory_they_need)
{
    using residua::probe::magnitude;
    std::array<residua::probe::tanh_sublayer<float>, 2> layers{};
    const std::span<residua::probe::tanh_sublayer<float>> stack{layers};
    std::array<magnitude, 3> sizes{};
    EXPECT_BROKEN(residua::probe::forward(rows(p, 2, 4), stack, {}, rows(p + 500, 2, 4)), "stream");
    EXPECT_BROKEN(residua::probe::forward(rows(p, 3, 4), stack, {}, rows(p + 500, 3, 4)), "scratch");
    EXPECT_BROKEN(residua::probe::backward(rows(p + 100, 1, 4), residua::rows<const float>(p, 3, 4), stack, {},
                                           rows(p + 500, 2, 4), std::span{sizes}.first(2)),
                  "sizes");
    EXPECT_BROKEN(residua::probe::measure_spread(residua::rows<const float>(p, 3, 4), rows(p + 500, 3, 4)),
                  "scratch");
}

}  // namespace
