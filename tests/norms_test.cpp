// The norms in every type: RMSNorm, LayerNorm, gated, fused with the residual sum, and split; forward, VJP and JVP.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/api.hpp"
#include "support/memory.hpp"
#include "support/precision.hpp"
#include "support/reference.hpp"
#include "support/ulp.hpp"

namespace {

using api::bfloat16;
using api::float16;
using api::gate_order;
using api::norm_gate;
using api::norm_of;
using api::norm_rounding;
using api::weight_gradient;
using precision::arithmetic;
using precision::value;
using precision::widen;
using reference::wide;
using reference::wide_row;

template <class S>
class norms : public testing::Test {};
using types = testing::Types<float, double, bfloat16, float16>;
TYPED_TEST_SUITE(norms, types, );

template <class S>
inline constexpr arithmetic<S> nan = std::numeric_limits<arithmetic<S>>::quiet_NaN();
template <class S>
inline constexpr arithmetic<S> infinity = std::numeric_limits<arithmetic<S>>::infinity();

/// Vectors, tails, and blocks (of 512 floats, 256 doubles) with and without a rest.
std::vector<std::size_t> some_lengths()
{
    std::vector<std::size_t> n;
    for (std::size_t i = 1; i <= 130; i += i < 35 ? 1 : 19) n.push_back(i);
    n.insert(n.end(), {130, 131, 255, 257, 511, 512, 513, 1025, 2053});
    return n;
}

template <class S>
std::vector<S> of_floats(std::vector<float> list)
{
    std::vector<S> all;
    for (const float x : list) all.push_back(static_cast<S>(x));
    return all;
}

// --- weights ------------------------------------------------------------------------------------------------------

enum class kind { none, plain, zero_centered };
constexpr std::array kinds{kind::none, kind::plain, kind::zero_centered};

/// Calls f with the weight in the form that the public functions take.
template <class W, class F>
void with_weight(kind k, const W& w, F&& f)
{
    if (k == kind::none) f(api::no_weight);
    if (k == kind::plain) f(w);
    if (k == kind::zero_centered) f(api::zero_centered(w));
}
/// The factors.
template <class S>
wide_row factors(kind k, const std::vector<S>& w)
{
    wide_row f;
    for (const S e : w) f.push_back(k == kind::none ? 1 : k == kind::plain ? value(e) : 1 + value(e));
    return f;
}

// --- the formulas -------------------------------------------------------------------------------------------------

wide mean(const wide_row& x)
{
    reference::exact_sum sum;
    for (const wide e : x) sum.add(e);
    return sum.value() / static_cast<wide>(x.size());
}
wide_row centered(wide_row x)
{
    const wide m = mean(x);
    for (wide& e : x) e -= m;
    return x;
}
wide root_of(const wide_row& x, wide eps) { return 1 / std::sqrt(reference::mean_square(x) + eps); }
wide_row times(wide_row x, const wide_row& f)
{
    for (std::size_t j = 0; j < x.size(); ++j) x[j] *= f[j];
    return x;
}
wide_row plus(wide_row x, const wide_row& b)
{
    for (std::size_t j = 0; j < x.size(); ++j) x[j] += b[j];
    return x;
}
wide_row times(wide_row x, wide factor)
{
    for (wide& e : x) e *= factor;
    return x;
}
wide largest(const wide_row& x)
{
    wide most = 0;
    for (const wide e : x) most = std::max(most, std::abs(e));
    return most;
}

/// max_j r (|a_j| + |xh_j| mean|a xh|): the size of what the Jacobian adds up.
wide largest_term_of_jacobian(const wide_row& x, const wide_row& a, wide eps)
{
    const wide r = root_of(x, eps);
    const wide_row xh = times(x, r);
    wide_row products = times(a, xh);
    for (wide& p : products) p = std::abs(p);
    const wide m = mean(products);
    wide most = 0;
    for (std::size_t j = 0; j < a.size(); ++j) most = std::max(most, r * (std::abs(a[j]) + std::abs(xh[j]) * m));
    return most;
}

/// J a = r (a - xh mean(a xh)), the Jacobian of x r.
wide_row jacobian(const wide_row& x, wide_row a, wide eps)
{
    const wide r = root_of(x, eps);
    const wide_row xh = times(x, r);
    const wide m = mean(times(a, xh));
    for (std::size_t j = 0; j < a.size(); ++j) a[j] = r * (a[j] - xh[j] * m);
    return a;
}

wide act(norm_gate g, wide z) { return g == norm_gate::silu ? reference::silu(z) : reference::sigmoid(z); }
wide slope(norm_gate g, wide z)
{
    const wide s = reference::sigmoid(z);
    const wide t = reference::sigmoid(-z);
    return g == norm_gate::silu ? s * (1 + z * t) : s * t;
}
wide_row act(norm_gate g, wide_row z)
{
    for (wide& e : z) e = act(g, e);
    return z;
}
wide_row slope(norm_gate g, wide_row z)
{
    for (wide& e : z) e = slope(g, e);
    return z;
}

/// y of each norm, as functions of their inputs.
wide_row layer_norm(const wide_row& x, const wide_row& f, const wide_row& b, wide eps)
{
    return plus(reference::rms_norm(centered(x), f, eps), b);
}
wide_row gated(const wide_row& x, const wide_row& z, const wide_row& f, wide eps, norm_gate g, gate_order order)
{
    if (order == gate_order::norm_first) return times(reference::rms_norm(x, f, eps), act(g, z));
    return reference::rms_norm(times(x, act(g, z)), f, eps);
}

struct gated_gradient {
    wide_row dx, dz, dw;
    wide_row size_dx, size_dz;  // of the terms
};
gated_gradient gated_vjp(const wide_row& x, const wide_row& z, const wide_row& f, const wide_row& dy, wide eps,
                         norm_gate g, gate_order order)
{
    const wide_row a = act(g, z);
    const wide_row s = slope(g, z);
    const wide_row ones(x.size(), 1);
    if (order == gate_order::norm_first) {
        const wide r = root_of(x, eps);
        const wide_row of_norm = times(times(dy, a), f);
        const wide_row dy_m = times(dy, reference::rms_norm(x, f, eps));
        return {jacobian(x, of_norm, eps), times(dy_m, s), times(times(dy, a), times(x, r)),
                times(ones, r * largest(of_norm)), dy_m};
    }
    const wide_row u = times(x, a);
    const wide r = root_of(u, eps);
    const wide_row du = jacobian(u, times(dy, f), eps);
    const wide size = r * largest(times(dy, f));
    return {times(du, a), times(times(du, x), s), times(dy, times(u, r)), times(a, size), times(x, size)};
}

struct sized {
    wide_row value, size;
};
sized gated_jvp(const wide_row& x, const wide_row& z, const wide_row& f, const wide_row& tx, const wide_row& tz,
                wide eps, norm_gate g, gate_order order)
{
    const wide_row a = act(g, z);
    const wide_row s = slope(g, z);
    if (order == gate_order::norm_first) {
        const wide_row m_tz = times(reference::rms_norm(x, f, eps), tz);
        sized t{plus(times(times(jacobian(x, tx, eps), f), a), times(m_tz, s)), {}};
        const wide size = root_of(x, eps) * largest(tx);
        for (std::size_t j = 0; j < x.size(); ++j) {
            t.size.push_back(std::abs(size * f[j] * a[j]) + std::abs(m_tz[j]));
        }
        return t;
    }
    const wide_row u = times(x, a);
    const wide_row tu = plus(times(tx, a), times(times(x, tz), s));
    const wide size = root_of(u, eps) * (largest(times(tx, a)) + largest(times(x, tz)));
    return {times(jacobian(u, tu, eps), f), times(f, size)};
}

/// The derivative of y along a direction, by differences.
template <class Y>
wide_row along(Y&& y, wide_row x, const wide_row& tx)
{
    const wide h = 1e-6L;
    wide_row above = y(plus(x, times(tx, h)));
    const wide_row below = y(plus(x, times(tx, -h)));
    for (std::size_t j = 0; j < above.size(); ++j) above[j] = (above[j] - below[j]) / (2 * h);
    return above;
}
void expect_near(const wide_row& a, const wide_row& b)
{
    for (std::size_t j = 0; j < a.size(); ++j) {
        EXPECT_NEAR(static_cast<double>(a[j]), static_cast<double>(b[j]),
                    1e-9 * (1 + std::abs(static_cast<double>(b[j]))));
    }
}

TEST(formulas_of_norms, are_derivatives)
{
    reference::random random{1};
    const wide eps = 1e-3L;
    for (const std::size_t n : {1U, 2U, 9U}) {
        const auto any = [&] { return reference::widen(random.row<double>(n)); };
        const wide_row x = any(), z = any(), f = any(), b = any(), dy = any(), tx = any(), tz = any();
        const wide_row zeros(n, 0);
        const auto normed = [&](const wide_row& v) { return layer_norm(v, f, b, eps); };
        expect_near(along(normed, x, tx), times(jacobian(centered(x), centered(tx), eps), f));
        expect_near(along([&](const wide_row& v) { return layer_norm(x, v, b, eps); }, f, tz),
                    layer_norm(x, tz, zeros, eps));
        expect_near(along([&](const wide_row& v) { return layer_norm(x, f, v, eps); }, b, tz), tz);
        const wide_row dx = jacobian(centered(x), centered(times(dy, f)), eps);
        EXPECT_NEAR(static_cast<double>(reference::dot(dx, tx)),
                    static_cast<double>(reference::dot(dy, along(normed, x, tx))), 1e-9);
        for (const auto g : {norm_gate::silu, norm_gate::sigmoid}) {
            for (const auto order : {gate_order::norm_first, gate_order::gate_first}) {
                const auto of_x = along([&](const wide_row& v) { return gated(v, z, f, eps, g, order); }, x, tx);
                const auto of_z = along([&](const wide_row& v) { return gated(x, v, f, eps, g, order); }, z, tz);
                const auto of_f = along([&](const wide_row& v) { return gated(x, z, v, eps, g, order); }, f, b);
                expect_near(plus(of_x, of_z), gated_jvp(x, z, f, tx, tz, eps, g, order).value);
                expect_near(of_f, gated(x, z, b, eps, g, order));
                const auto back = gated_vjp(x, z, f, dy, eps, g, order);
                expect_near({reference::dot(dy, of_x), reference::dot(dy, of_z), reference::dot(dy, of_f)},
                            {reference::dot(back.dx, tx), reference::dot(back.dz, tz), reference::dot(back.dw, b)});
            }
        }
    }
}

// --- RMSNorm ------------------------------------------------------------------------------------------------------

template <class S>
constexpr double rms_norm_bound = std::is_same_v<S, double>  ? 4.5
                                  : std::is_same_v<S, float> ? 2.5
                                                             : 1;

TYPED_TEST(norms, rms_norm_rounds_once_unless_it_is_told_to_round_before_the_weight)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    reference::random random{6};
    precision::worst<S> once;
    precision::worst<S> twice;
    for (const auto n : some_lengths()) {
        const auto x = precision::row<S>(random, n);
        const auto w = precision::row<S>(random, n);
        const T eps = T(1e-6);
        const auto xh = reference::normalized(widen(x), wide(eps));
        for (const kind k : kinds) {
            const auto f = factors(k, w);
            std::vector<S> y(n);
            with_weight(k, w, [&](const auto& weight) { api::rms_norm(y, x, weight, {.eps = eps}); });
            for (std::size_t j = 0; j < n; ++j)
                once.see(precision::error(y[j], xh[j] * f[j]), value(x[j]), wide(n));
            with_weight(k, w, [&](const auto& weight) {
                api::rms_norm(y, x, weight, {.eps = eps, .rounding = norm_rounding::before_weight});
            });
            for (std::size_t j = 0; j < n; ++j) {
                // near a tie either neighbour may have been taken
                const wide slack = std::ldexp(std::abs(xh[j]), sizeof(S) == 2 ? -18 : -60);
                double best = infinity<double>;
                for (const wide normal : {xh[j] - slack, xh[j] + slack}) {
                    const wide rounded =
                        sizeof(S) == 2 ? value(static_cast<S>(static_cast<double>(normal))) : normal;
                    best = std::min(best, precision::error(y[j], rounded * f[j]));
                }
                twice.see(best, value(x[j]), wide(n));
            }
        }
    }
    once.expect_within(rms_norm_bound<S>, "rms_norm");
    twice.expect_within(rms_norm_bound<S>, "rms_norm, rounded before the weight");
}

TEST(rms_norm_rounding, B10_before_the_weight_or_after_it)
{
    const auto x = of_floats<bfloat16>({-0.07080078125F, 3.484375F, -3.5625F, -2.046875F});
    const auto w = of_floats<bfloat16>({0.337890625F, 0.9453125F, 0.35546875F, 0.6953125F});
    std::vector<bfloat16> y(4);
    api::rms_norm(y, x, w, {.eps = 1e-6F});
    EXPECT_TRUE(precision::all_same_bits(
        y, of_floats<bfloat16>({-0.0089111328125F, 1.2265625F, -0.470703125F, -0.52734375F})));
    api::rms_norm(y, x, w, {.eps = 1e-6F, .rounding = norm_rounding::before_weight});
    EXPECT_TRUE(
        precision::all_same_bits(y, of_floats<bfloat16>({-0.00885009765625F, 1.2265625F, -0.46875F, -0.53125F})));
}

TEST(rms_norm_rounding, B11_one_plus_the_weight_is_not_formed_in_16_bits)
{
    // A single element with eps = 0 has x r = +-1; 40000 of them, all but one zero, have x r = 200.
    std::vector<bfloat16> x(40000, bfloat16(0.0F));
    std::vector<bfloat16> w(40000, bfloat16(0x1p-8F));
    std::vector<bfloat16> y(40000);
    x[77] = bfloat16(3.0F);
    api::rms_norm(y, x, api::zero_centered(w), {.eps = 0.0F});
    EXPECT_EQ(static_cast<float>(y[77]), 201.0F);
}

// If 1 + w were rounded before x r is multiplied by it, the second would be off by 2.76 ulp.
TEST(rms_norm, one_plus_the_weight_is_not_rounded)
{
    const std::vector<float> x{-0x1.73c182p-1F, 0x1.2dfe16p+0F}, w{0, 0x1.48d30ap-1F};
    std::vector<float> y(2);
    api::rms_norm(y, x, api::zero_centered(w), {.eps = 1e-6F});
    EXPECT_LE(ulp::error(y[1], value(x[1]) * root_of({value(x[0]), value(x[1])}, wide(1e-6F)) * (1 + value(w[1]))),
              2.5);

    // a weight whose 1 + w needs twice the bits that a float has
    reference::random random{29};
    double worst = 0;
    for (int i = 0; i < 2000; ++i) {
        const auto row = random.row<float>(8, -2, 2);
        std::vector<float> weight;
        for (int j = 0; j < 8; ++j) weight.push_back(static_cast<float>(std::exp2(random.uniform(-26, 0))));
        std::vector<float> out(8);
        api::rms_norm(out, row, api::zero_centered(weight), {.eps = 1e-6F});
        const wide_row exact{row.begin(), row.end()};
        const wide r = root_of(exact, wide(1e-6F));
        for (std::size_t j = 0; j < 8; ++j) {
            worst = std::max(worst, ulp::error(out[j], exact[j] * r * (1 + value(weight[j]))));
        }
    }
    EXPECT_LE(worst, 2.5);
}

// x r is no normal float; the weight, or the gradient, makes a usual number of it.
TEST(rms_norm, a_row_that_is_tiny_beside_eps)
{
    for (const float size : {1e-30F, 1e-38F, 3e-41F, 4.2e-45F}) {
        for (const float eps : {0.1F, 1e-6F, 1e30F}) {
            const std::vector<float> x{size, 0, size / 2}, w{2e27F, 1e30F, -3e33F};
            const wide r = 1 / std::sqrt(reference::mean_square({x.begin(), x.end()}) + wide(eps));
            std::vector<float> y(3), dx(3), dw(3), alone(3);
            api::rms_norm(y, x, w, {.eps = eps});
            api::rms_norm(alone, x, api::no_weight, {.eps = eps});
            api::rms_norm_vjp(dx, dw, x, std::vector<float>{1, 1, 1}, w, {.eps = eps});
            for (std::size_t j = 0; j < 3; ++j) {
                const wide xh = value(x[j]) * r;
                EXPECT_LE(ulp::error(y[j], xh * value(w[j])), 2.5) << size << ", " << eps;
                EXPECT_LE(ulp::error(alone[j], xh), 2.5) << size << ", " << eps;
                EXPECT_LE(ulp::error(dw[j], xh * value(w[j])), 4) << size << ", " << eps;
            }
        }
    }
}

template <class Y, class X, class W>
void mixed_types(reference::random& random)
{
    constexpr bool wide_arithmetic =
        std::is_same_v<Y, double> || std::is_same_v<X, double> || std::is_same_v<W, double>;
    using T = std::conditional_t<wide_arithmetic, double, float>;
    const T eps = T(1e-6);
    const double bound = std::is_same_v<Y, T> ? (wide_arithmetic ? 4.5 : 2.5) : 1;
    for (const std::size_t n : {5U, 16U, 600U}) {
        const auto x = precision::row<X>(random, n);
        const auto w = precision::row<W>(random, n);
        const auto z = precision::row<W>(random, n);
        std::vector<Y> y(n);
        const auto see = [&](const auto& weight, const wide_row& f, const wide_row& f_in_double) {
            api::rms_norm(y, x, weight, {.eps = eps});
            const auto exact = reference::rms_norm(widen(x), f, wide(eps));
            for (std::size_t j = 0; j < n; ++j) EXPECT_LE(precision::error(y[j], exact[j]), bound);

            api::layer_norm(y, x, weight, z, {.eps = eps});
            const auto layer = layer_norm(widen(x), f_in_double, widen(z), wide(eps));
            for (std::size_t j = 0; j < n; ++j) {
                EXPECT_LE(precision::error_in_double(y[j], layer[j], 3 + std::abs(layer[j])), 5);
            }
            api::gated_rms_norm(y, x, z, weight, {.eps = eps});
            const auto g = gated(widen(x), widen(z), f, wide(eps), norm_gate::silu, gate_order::norm_first);
            for (std::size_t j = 0; j < n; ++j) EXPECT_LE(precision::error(y[j], g[j]), bound == 1 ? 1 : bound + 3);
        };
        see(w, widen(w), widen(w));
        see(api::zero_centered(w), factors(kind::zero_centered, w), factors(kind::zero_centered, w));
        // without a weight, its type is not an operand's
        if constexpr (!std::is_same_v<W, double>) see(api::no_weight, wide_row(n, 1), wide_row(n, 1));
    }
}
template <class Y, class X>
void with_every_weight(reference::random& random)
{
    mixed_types<Y, X, float>(random);
    mixed_types<Y, X, double>(random);
    mixed_types<Y, X, bfloat16>(random);
    mixed_types<Y, X, float16>(random);
}

// huggingface/transformers#30236, openxla/xla#10875: the weight is narrowed to the type of x, or y gets its type.
TYPED_TEST(norms, F10_the_bounds_hold_for_any_types_of_output_input_and_weight)
{
    reference::random random{7};
    with_every_weight<TypeParam, float>(random);
    with_every_weight<TypeParam, double>(random);
    with_every_weight<TypeParam, bfloat16>(random);
    with_every_weight<TypeParam, float16>(random);
}

TYPED_TEST(norms, A1_A4_A5_A7_B8_the_ends_of_each_type)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    const auto of = [](std::size_t n, wide x, T eps) {
        const S element = static_cast<S>(static_cast<double>(x));
        std::vector<S> y(n);
        api::rms_norm(y, std::vector<S>(n, element), std::vector<S>(n, static_cast<S>(1.0F)), {.eps = eps});
        for (const S e : y) EXPECT_EQ(value(e), value(y[0]));
        return static_cast<double>(value(y[0]));
    };
    const int digits = precision::format<S>::digits;
    const wide greatest = std::ldexp(1 - std::ldexp(wide(1), -digits), precision::format<S>::beyond);
    for (const std::size_t n : {1U, 512U, 700U}) {
        EXPECT_NEAR(of(n, greatest, T(1e-6)), 1, 1e-7) << "A1";
        EXPECT_NEAR(of(n, std::ldexp(wide(1), precision::format<S>::least), T(0)), 1, 1e-7);
    }
    EXPECT_NEAR(of(4096, 300, T(1e-6)), 1, 1e-7) << "A5: squares beyond float16";
    EXPECT_EQ(of(4096, 1, T(0)), 1) << "B8: a sum that stalls at 256";
    for (std::size_t n = 1; n <= 130; ++n) {
        for (const T eps : {T(1e-6), T(1e-12)}) EXPECT_EQ(of(n, 0, eps), 0) << "A4";
    }
    if constexpr (std::is_same_v<S, bfloat16>) {
        EXPECT_EQ(of(32, 0.05810546875L, T(1e-6)), 1) << "A7: eps is the one that is given";
        EXPECT_NEAR(of(32, 0.05810546875L, T(0x1p-7)), 0.54932, 2e-3);
    }
}

// apple/coremltools#2821, tile-ai/tilelang#1243: eps is scaled with the row, outside the root, or dropped.
TYPED_TEST(norms, A3_A9_eps_is_inside_the_root_and_not_scaled)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    const auto expect = [](const std::vector<S>& x, T eps) {
        std::vector<S> y(x.size());
        api::rms_norm(y, x, std::vector<S>(x.size(), static_cast<S>(1.0F)), {.eps = eps});
        const auto xh = reference::normalized(widen(x), wide(eps));
        for (std::size_t j = 0; j < x.size(); ++j) EXPECT_LE(precision::error(y[j], xh[j]), rms_norm_bound<S>);
    };
    std::vector<S> x(4096, static_cast<S>(0x1p-10F));
    x[0] = static_cast<S>(8.0F);
    expect(x, T(1e-5));
    for (const std::size_t n : {1U, 7U, 64U}) expect(std::vector<S>(n, static_cast<S>(0x1p-10F)), T(0x1p-20));
}

TYPED_TEST(norms, rms_norm_of_any_magnitude_and_any_eps)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    reference::random random{8};
    precision::worst<S> seen;
    const int first = precision::format<S>::least;
    const int last = precision::format<S>::beyond - 1;
    const int step = std::is_same_v<S, double> ? 37 : 3;
    for (int e = first + 1; e <= last; e += step) {
        const auto x = precision::row<S>(random, 37, 0.5, 1, e);
        for (int of_eps = std::numeric_limits<T>::min_exponent - 20; of_eps < std::numeric_limits<T>::max_exponent;
             of_eps += 3 * step) {
            const T eps = std::ldexp(T(1), of_eps);
            std::vector<S> y(x.size());
            api::rms_norm(y, x, api::no_weight, {.eps = eps});
            const auto xh = reference::normalized(widen(x), wide(eps));
            for (std::size_t j = 0; j < x.size(); ++j) {
                if (std::abs(xh[j]) < wide(std::numeric_limits<T>::min())) continue;
                seen.see(precision::error(y[j], xh[j]), value(x[j]), wide(eps));
            }
        }
    }
    seen.expect_within(rms_norm_bound<S>, "rms_norm, of any magnitude");
}

TYPED_TEST(norms, qk_norm_is_the_norm_of_rows_of_heads)
{
    // 3 tokens of 4 heads of 10, in a wider row of which the rest is not the norm's: one view for each token
    using S = TypeParam;
    using T = arithmetic<S>;
    reference::random random{9};
    const std::size_t tokens = 3, heads = 4, head = 10, width = 64;
    auto qkv = precision::row<S>(random, tokens * width);
    const auto w = precision::row<S>(random, head);
    const auto before = qkv;
    for (std::size_t t = 0; t < tokens; ++t) {
        const api::rows<S> q{qkv.data() + t * width, heads, head};
        api::rms_norm(q, q, api::zero_centered(w), {.eps = T(1e-6)});
    }
    for (std::size_t t = 0; t < tokens; ++t) {
        for (std::size_t j = 0; j < width; ++j) {
            const std::size_t at = t * width + j;
            EXPECT_TRUE(j < heads * head || value(qkv[at]) == value(before[at]));
        }
        for (std::size_t h = 0; h < heads; ++h) {
            const auto at = [&](const std::vector<S>& v) {
                return std::vector<S>(&v[t * width + h * head], &v[t * width + h * head] + head);
            };
            std::vector<S> y(head);
            api::rms_norm(y, at(before), api::zero_centered(w), {.eps = T(1e-6)});
            EXPECT_TRUE(precision::all_same_bits(at(qkv), y));
        }
    }
}

// --- derivatives of RMSNorm ---------------------------------------------------------------------------------------

/// Units of what the operation computes with, and of 16 bits what is left of the error beside the last rounding.
template <class S>
double error_of_size(S got, wide exact, wide size)
{
    const wide allowed = ulp::unit<arithmetic<S>>(size);
    if constexpr (sizeof(S) == 2) {
        return precision::beyond_rounding(got, exact, allowed);
    } else {
        return static_cast<double>(precision::distance(got, exact) / allowed);
    }
}

TYPED_TEST(norms, rms_norm_jvp_and_vjp_are_their_formulas)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    reference::random random{10};
    precision::worst_in_double<S> forward{4};
    precision::worst<S> backward;
    precision::worst<S> of_weight;
    for (const auto n : some_lengths()) {
        const auto x = precision::row<S>(random, n);
        const auto w = precision::row<S>(random, n);
        const auto dy = precision::row<S>(random, n);
        for (const kind k : kinds) {
            for (const T eps : {T(0), T(1e-6), T(0.1)}) {
                // 1 + w is formed in double where the derivative is
                const auto f = factors(k, w);
                std::vector<S> t(n);
                std::vector<S> dx(n);
                std::vector<double> dw(n);
                with_weight(k, w, [&](const auto& weight) {
                    api::rms_norm_jvp(t, x, weight, dy, {.eps = eps});
                    api::rms_norm_vjp(dx, dw, x, weight, dy, {.eps = eps});
                });
                const auto tangent = jacobian(widen(x), widen(dy), wide(eps));
                const auto g = reference::rms_norm_vjp(widen(x), f, widen(dy), wide(eps));
                const wide r = root_of(widen(x), wide(eps));
                const wide of_dy = r * largest(widen(dy));
                for (std::size_t j = 0; j < n; ++j) {
                    const wide of_t = std::abs(f[j]) * of_dy;
                    forward.see(t[j], tangent[j] * f[j], of_t, value(x[j]), wide(n));
                    // in float, for float and less
                    backward.see(error_of_size(dx[j], g.dx[j], g.largest), value(x[j]), wide(n));
                    of_weight.see(ulp::error(dw[j], g.dw[j]), value(x[j]), wide(n));
                }
            }
        }
    }
    forward.expect_within_bound("rms_norm_jvp", "f times the largest term");
    backward.expect_within(4, "rms_norm_vjp", "ulp of the largest term");
    of_weight.expect_within(4, "rms_norm_vjp, dw of one row", "ulp of double");
}

/// The sum of both, with that of their sizes.
sized plus(const sized& t, const wide_row& more)
{
    wide_row size;
    for (std::size_t j = 0; j < more.size(); ++j) size.push_back(std::abs(t.size[j]) + std::abs(more[j]));
    return {plus(t.value, more), size};
}

TYPED_TEST(norms, derivatives_along_the_weight_are_their_formulas)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    reference::random random{38};
    precision::worst<S> of_norm, of_layer, of_sum, of_gated;
    for (const auto n : some_lengths()) {
        const auto any = [&] { return precision::row<S>(random, n); };
        const auto x = any(), z = any(), w = any(), tx = any(), tz = any(), tw = any(), tb = any(), th = any();
        const wide_row ones(n, 1);
        const wide_row zeros(n, 0);
        for (const kind k : {kind::plain, kind::zero_centered}) {
            for (const T eps : {T(0), T(0.1)}) {
                const auto f = factors(k, w);
                const auto see = [&](precision::worst<S>& seen, const std::vector<S>& got, const sized& right) {
                    for (std::size_t j = 0; j < n; ++j) {
                        seen.see(precision::error_in_double(got[j], right.value[j], right.size[j]), value(x[j]),
                                 wide(n));
                    }
                };
                const auto of_x = [&](const wide_row& row, const wide_row& t) {
                    return sized{times(jacobian(row, t, wide(eps)), f),
                                 times(f, root_of(row, wide(eps)) * largest(t))};
                };
                const auto with_stored_weight = [&](auto&& call) {
                    if (k == kind::plain) call(w);
                    if (k == kind::zero_centered) call(api::zero_centered(w));
                };
                const auto xh_tw = times(reference::normalized(widen(x), wide(eps)), widen(tw));
                std::vector<S> t(n);
                with_stored_weight([&](const auto& weight) {
                    api::rms_norm_jvp(t, x, weight, tx, tw, {.eps = eps});
                    see(of_norm, t, plus(of_x(widen(x), widen(tx)), xh_tw));

                    const auto squares = api::sum_of_squares(std::vector<double>(x.begin(), x.end()));
                    const auto products = api::rms_norm_jvp_sum(x, tx, squares, n, {.eps = eps});
                    std::vector<S> split(n);
                    api::rms_norm_apply_jvp(split, x, weight, tx, tw, squares, products, n, {.eps = eps});
                    EXPECT_TRUE(precision::all_same_bits(split, t)) << "of one part";

                    const T scale = T(0.3);
                    auto tresidual = th;
                    api::add_rms_norm_jvp(t, tresidual, x, weight, tx, tw, {.eps = eps, .scale = scale});
                    const auto sum = plus(widen(th), times(widen(tx), wide(scale)));
                    see(of_sum, t, plus(of_x(widen(x), sum), xh_tw));
                    see(of_sum, tresidual, {sum, sum});

                    for (const auto g : {norm_gate::silu, norm_gate::sigmoid}) {
                        for (const auto o : {gate_order::norm_first, gate_order::gate_first}) {
                            api::gated_rms_norm_jvp(t, x, z, weight, tx, tz, tw,
                                                    {.eps = eps, .gate = g, .order = o});
                            const auto along_w = gated(widen(x), widen(z), widen(tw), wide(eps), g, o);
                            see(of_gated, t,
                                plus(gated_jvp(widen(x), widen(z), f, widen(tx), widen(tz), wide(eps), g, o),
                                     along_w));
                        }
                    }
                });
                if (n == 1 && eps == 0) continue;  // nothing is left of such a row minus its mean
                const auto c = centered(widen(x));
                sized of_c = of_x(c, centered(widen(tx)));
                of_c.size = times(f, root_of(c, wide(eps)) * largest(widen(tx)));
                const auto xh_tw_of_c = layer_norm(widen(x), widen(tw), zeros, wide(eps));
                // x - mean is right to the last place of the row's size, and so xh to that of 1
                sized of_both = plus(of_c, xh_tw_of_c);
                of_both.size = plus(plus(of_c, xh_tw_of_c), widen(tw)).size;
                with_stored_weight([&](const auto& weight) {
                    api::layer_norm_jvp(t, x, weight, tx, tw, {.eps = eps});
                    see(of_layer, t, of_both);
                    api::layer_norm_jvp(t, x, weight, tx, tw, tb, {.eps = eps});
                    see(of_layer, t, plus(of_both, widen(tb)));
                    api::layer_norm_jvp(t, x, weight, tx, api::no_weight, tb, {.eps = eps});
                    see(of_layer, t, plus(of_c, widen(tb)));
                });
            }
        }
        const auto c = centered(widen(x));
        const wide_row exact = plus(jacobian(c, centered(widen(tx)), wide(T(0.1))), widen(tb));
        std::vector<S> t(n);
        api::layer_norm_jvp(t, x, api::no_weight, tx, api::no_weight, tb, {.eps = T(0.1)});
        for (std::size_t j = 0; j < n; ++j) {
            const wide size = root_of(c, wide(T(0.1))) * largest(widen(tx)) + std::abs(value(tb[j]));
            of_layer.see(precision::error_in_double(t[j], exact[j], size), value(x[j]), wide(n));
        }
    }
    of_norm.expect_within(4, "rms_norm_jvp, along the weight", "ulp of double of the terms");
    of_sum.expect_within(4, "add_rms_norm_jvp, along the weight", "ulp of double of the terms");
    of_gated.expect_within(8, "gated_rms_norm_jvp, along the weight", "ulp of double of the terms");
    of_layer.expect_within(8, "layer_norm_jvp, along the weight and the bias", "ulp of double of the terms");
}

TYPED_TEST(norms, derivatives_along_the_weight_over_the_whole_range)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    reference::random random{39};
    precision::worst<S> seen, of_layer;
    const int first = precision::format<S>::least + 8;
    const int last = precision::format<S>::beyond - 1;
    const int step = (last - first) / 9;
    for (int of_x = first; of_x <= last; of_x += step) {
        for (int of_tx = first; of_tx <= last; of_tx += step) {
            for (int of_tw = first; of_tw <= last; of_tw += step) {
                const auto x = precision::row<S>(random, 21, 0.5, 1, of_x);
                const auto tx = precision::row<S>(random, 21, -1, 1, of_tx);
                const auto w = precision::row<S>(random, 21);
                const auto tw = precision::row<S>(random, 21, -1, 1, of_tw);
                const T eps = of_tw % 2 == 0 ? T(0) : T(1e-6);
                const auto along_x = times(jacobian(widen(x), widen(tx), wide(eps)), widen(w));
                const auto xh = reference::normalized(widen(x), wide(eps));
                const wide most = largest_term_of_jacobian(widen(x), widen(tx), wide(eps));
                std::vector<S> t(x.size());
                api::rms_norm_jvp(t, x, w, tx, tw, {.eps = eps});
                for (std::size_t j = 0; j < x.size(); ++j) {
                    // of double: that part is a number, and no bit of xh is lost
                    if (std::abs(along_x[j]) > 0x1p1023L || std::abs(xh[j]) < 0x1p-1022L) continue;
                    const wide term = xh[j] * value(tw[j]);
                    seen.see(precision::error_in_double(t[j], along_x[j] + term,
                                                        most * std::abs(value(w[j])) + std::abs(term)),
                             value(x[j]), value(tw[j]));
                }
                if constexpr (std::is_same_v<S, double>) continue;  // there the products may leave the range
                const auto c = centered(widen(x));
                const auto of_c = times(jacobian(c, centered(widen(tx)), wide(eps)), widen(w));
                const auto ch = times(c, root_of(c, wide(eps)));
                const wide most_of_c = root_of(c, wide(eps)) * largest(widen(tx));
                api::layer_norm_jvp(t, x, w, tx, tw, tx, {.eps = eps});
                for (std::size_t j = 0; j < x.size(); ++j) {
                    const wide term = ch[j] * value(tw[j]);
                    of_layer.see(precision::error_in_double(t[j], of_c[j] + term + value(tx[j]),
                                                            most_of_c * std::abs(value(w[j])) + std::abs(term)
                                                                + std::abs(value(tw[j])) + std::abs(value(tx[j]))),
                                 value(x[j]), value(tw[j]));
                }
            }
        }
    }
    seen.expect_within(4, "rms_norm_jvp, along the weight over the range", "ulp of double of the terms");
    of_layer.expect_within(8, "layer_norm_jvp, along the weight over the range", "ulp of double of the terms");
}

TYPED_TEST(norms, a_tangent_of_the_weight_lies_anywhere_and_changes_only_its_own_share)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    reference::random random{40};
    const std::size_t count = 3;
    const T eps = T(0.1);
    for (const std::size_t n : {1U, 7U, 33U, 600U}) {
        const auto x = precision::row<S>(random, count * n), tx = precision::row<S>(random, count * n);
        const auto w = precision::row<S>(random, n), tw = precision::row<S>(random, n);
        const auto view = [&](auto& v) { return api::rows{v.data(), count, n}; };
        std::vector<S> apart(count * n), over_tx = tx, over_x = x, one_by_one(count * n);
        api::layer_norm_jvp(view(apart), view(x), w, view(tx), tw, tw, {.eps = eps});
        memory::strided<S> in(x, count, n, n + 3), out(count, n, n + 5), along(tx, count, n, n + 1);
        api::layer_norm_jvp(out.view(), in.view(), w, along.view(), tw, tw, {.eps = eps});
        EXPECT_TRUE(precision::all_same_bits(out.packed(), apart) && out.gaps_untouched());
        api::layer_norm_jvp(view(over_tx), view(x), w, view(over_tx), tw, tw, {.eps = eps});
        api::layer_norm_jvp(view(over_x), view(over_x), w, view(tx), tw, tw, {.eps = eps});
        EXPECT_TRUE(precision::all_same_bits(over_tx, apart) && precision::all_same_bits(over_x, apart));
        for (std::size_t i = 0; i < count; ++i) {
            api::layer_norm_jvp(view(one_by_one).row(i), view(x).row(i), w, view(tx).row(i), tw, tw, {.eps = eps});
        }
        EXPECT_TRUE(precision::all_same_bits(one_by_one, apart));

        // one that stands still, and one of infinite speed in one channel
        std::vector<S> still(n, static_cast<S>(0.0F)), with(n), without(n);
        const auto row = api::rows<const S>{x.data(), 1, n}, t = api::rows<const S>{tx.data(), 1, n};
        api::rms_norm_jvp(with, row, w, t, still, {.eps = eps});
        api::rms_norm_jvp(without, row, w, t, {.eps = eps});
        for (std::size_t j = 0; j < n; ++j) EXPECT_EQ(value(with[j]), value(without[j]));
        still[n / 2] = static_cast<S>(nan<S>);
        api::rms_norm_jvp(with, row, w, t, still, {.eps = eps});
        for (std::size_t j = 0; j < n; ++j) EXPECT_EQ(std::isnan(value(with[j])), j == n / 2);
    }
    // neither rows nor columns
    const std::vector<S> w(5, static_cast<S>(1.0F));
    const api::rows<S> no_columns{nullptr, 4, 0};
    const api::rows<S> no_rows{nullptr, 0, 5};
    const api::rows<S> nothing{nullptr, 1, 0};
    api::rms_norm_jvp(no_columns, no_columns, nothing, no_columns, nothing, {.eps = eps});
    api::rms_norm_jvp(no_rows, no_rows, w, no_rows, w, {.eps = eps});
    api::layer_norm_jvp(no_columns, no_columns, nothing, no_columns, nothing, nothing, {.eps = eps});
    api::layer_norm_jvp(no_rows, no_rows, w, no_rows, w, w, {.eps = eps});
    api::gated_rms_norm_jvp(no_rows, no_rows, no_rows, w, no_rows, no_rows, w, {.eps = eps});
    api::add_rms_norm_jvp(no_rows, no_rows, no_rows, w, no_rows, w, {.eps = eps});
}

/// A derivative along the weight is asked for in one way: of a weight that is there, by plain rows.
template <class W, class TW>
concept has_jvp_along_weight =
    requires(std::vector<float> v, const W& w, const TW& tw) { api::rms_norm_jvp(v, v, w, v, tw, {.eps = 1e-6F}); };
template <class W, class TW>
concept has_layer_norm_jvp_along_both = requires(std::vector<float> v, const W& w, const TW& tw) {
    api::layer_norm_jvp(v, v, w, v, tw, v, {.eps = 1e-6F});
};
using plain_weight = std::vector<float>;
using centered_weight = decltype(api::zero_centered(plain_weight{}));
using no_weight = std::remove_const_t<decltype(api::no_weight)>;
static_assert(has_jvp_along_weight<plain_weight, plain_weight>);
static_assert(has_jvp_along_weight<centered_weight, plain_weight>);
static_assert(!has_jvp_along_weight<centered_weight, centered_weight>);
static_assert(!has_jvp_along_weight<plain_weight, no_weight>);
static_assert(!has_jvp_along_weight<no_weight, plain_weight>);
static_assert(has_layer_norm_jvp_along_both<centered_weight, plain_weight>);
static_assert(has_layer_norm_jvp_along_both<centered_weight, no_weight>);
static_assert(has_layer_norm_jvp_along_both<no_weight, no_weight>);
static_assert(!has_layer_norm_jvp_along_both<no_weight, plain_weight>);
static_assert(!has_layer_norm_jvp_along_both<centered_weight, centered_weight>);

// ooples/AiDotNet#695, NVIDIA/TransformerEngine#67: the derivative of the root is left out; w stands for 1 + w.
TYPED_TEST(norms, G1_G3_the_term_of_the_root_and_the_zero_centered_weight)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    const auto x = of_floats<S>({1, 2, 3, 4});
    const auto ones = of_floats<S>({1, 1, 1, 1});
    const auto zeros = of_floats<S>({0, 0, 0, 0});
    const std::array<double, 4> right{0.243432254, 0.121716365, 4.86863e-07, -0.121715397};
    std::vector<S> dx(4), zero_centered(4), ahead(4);
    std::vector<T> dw(4), dw_zero_centered(4);
    api::rms_norm_vjp(dx, dw, x, ones, ones, {.eps = T(1e-5)});
    api::rms_norm_vjp(zero_centered, dw_zero_centered, x, api::zero_centered(zeros), ones, {.eps = T(1e-5)});
    api::rms_norm_jvp(ahead, x, api::zero_centered(zeros), ones, {.eps = T(1e-5)});
    for (std::size_t j = 0; j < 4; ++j) {
        const auto slack = static_cast<double>(precision::unit<S>(wide(right[j])) + 4 * ulp::unit<float>(0.365L));
        EXPECT_NEAR(static_cast<double>(value(dx[j])), right[j], slack);
        EXPECT_NEAR(static_cast<double>(value(ahead[j])), right[j], slack) << "the Jacobian is symmetric";
    }
    EXPECT_TRUE(precision::all_same_bits(dx, zero_centered));
    EXPECT_EQ(dw, dw_zero_centered) << "dw does not depend on the kind of weight";
}

TYPED_TEST(norms, sums_over_the_rows_are_added_row_after_row)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    reference::random random{26};
    const std::size_t count = 5;
    for (const std::size_t n : {3U, 40U, 600U}) {
        const auto any = [&] { return precision::row<S>(random, count * n); };
        auto x = any();
        const auto z = any(), dy = any(), g = any(), w = precision::row<S>(random, n);
        // a row that is computed another way must not change its neighbours
        for (std::size_t j = n; j < 2 * n; ++j)
            x[j] = static_cast<S>(std::ldexp(T(x[j]), precision::format<S>::beyond - 4));
        const auto start = random.row<T>(n);
        constexpr auto accumulate = weight_gradient::accumulate;
        using rows = api::rows<S>;
        const auto expect_in_order = [&](const char* what, auto&& call) {
            std::vector<std::vector<T>> at_once(2, start), one_by_one(2, start);
            std::vector<S> a(count * n), b(count * n), a1(count * n), b1(count * n);
            const auto part = [n](const std::vector<S>& v, std::size_t i, std::size_t some) {
                return api::rows<const S>{v.data() + i * n, some, n};
            };
            const auto run = [&](auto& sums, auto& out, auto& out2, std::size_t i, std::size_t some) {
                call(rows{out.data() + i * n, some, n}, rows{out2.data() + i * n, some, n}, sums[0], sums[1],
                     part(x, i, some), part(z, i, some), part(g, i, some), part(dy, i, some));
            };
            run(at_once, a, b, 0, count);
            for (std::size_t i = 0; i < count; ++i) run(one_by_one, a1, b1, i, 1);
            EXPECT_TRUE(ulp::all_same_bits(at_once[0], one_by_one[0])) << what;
            EXPECT_TRUE(ulp::all_same_bits(at_once[1], one_by_one[1])) << what;
            EXPECT_TRUE(precision::all_same_bits(a, a1) && precision::all_same_bits(b, b1)) << what;
        };
        const T eps = T(1e-5);
        expect_in_order("rms_norm_vjp", [&](auto dx, auto, auto& dw, auto&, auto vx, auto, auto, auto vdy) {
            api::rms_norm_vjp(dx, dw, vx, w, vdy, {.eps = eps, .dw = accumulate});
        });
        expect_in_order("layer_norm_vjp", [&](auto dx, auto, auto& dw, auto& db, auto vx, auto, auto, auto vdy) {
            api::layer_norm_vjp(dx, dw, db, vx, w, vdy, {.eps = eps, .dw = accumulate});
        });
        expect_in_order("add_rms_norm_vjp",
                        [&](auto dx, auto dh, auto& dw, auto&, auto vx, auto, auto vg, auto vdy) {
                            api::add_rms_norm_vjp(dh, dx, dw, vx, w, vg, vdy, {.eps = eps, .dw = accumulate});
                        });
        for (const auto order : {gate_order::norm_first, gate_order::gate_first}) {
            expect_in_order("gated_rms_norm_vjp", [&](auto dx, auto dz, auto& dw, auto&, auto vx, auto vz, auto,
                                                      auto vdy) {
                api::gated_rms_norm_vjp(dx, dz, dw, vx, vz, w, vdy, {.eps = eps, .order = order, .dw = accumulate});
            });
        }
    }
}

/// <VJP(u), v> = <u, JVP(v)>, to a few roundings of the terms.
template <class S>
void expect_adjoint(const wide_row& back, const wide_row& v, const wide_row& u, const wide_row& ahead,
                    const std::string& what)
{
    const wide size = reference::dot_scale(back, v) + reference::dot_scale(u, ahead);
    const wide rounding = std::ldexp(wide(1), -precision::format<S>::digits);
    EXPECT_LE(std::abs(reference::dot(back, v) - reference::dot(u, ahead)), 16 * rounding * size)
        << what << ", n = " << v.size();
}

TYPED_TEST(norms, vjp_and_jvp_are_adjoint)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    reference::random random{11};
    const T eps = T(0.5);  // so that nothing cancels where there is one element
    for (const std::size_t n : {1U, 2U, 16U, 61U, 530U}) {
        const auto any = [&] { return precision::row<S>(random, n); };
        const auto x = any(), z = any(), w = any(), u = any(), v = any(), v2 = any(), u2 = any();
        std::vector<S> back(n), back2(n), ahead(n);
        const auto joined = [](wide_row a, const wide_row& b) {
            a.insert(a.end(), b.begin(), b.end());
            return a;
        };
        for (const kind k : kinds) {
            with_weight(k, w, [&](const auto& weight) {
                api::rms_norm_vjp(back, x, weight, u, {.eps = eps});
                api::rms_norm_jvp(ahead, x, weight, v, {.eps = eps});
                expect_adjoint<S>(widen(back), widen(v), widen(u), widen(ahead), "rms_norm");
                api::layer_norm_vjp(back, x, weight, u, {.eps = eps});
                api::layer_norm_jvp(ahead, x, weight, v, {.eps = eps});
                expect_adjoint<S>(widen(back), widen(v), widen(u), widen(ahead), "layer_norm");
                for (const auto g : {norm_gate::silu, norm_gate::sigmoid}) {
                    for (const auto o : {gate_order::norm_first, gate_order::gate_first}) {
                        api::gated_rms_norm_vjp(back, back2, x, z, weight, u, {.eps = eps, .gate = g, .order = o});
                        api::gated_rms_norm_jvp(ahead, x, z, weight, v, v2, {.eps = eps, .gate = g, .order = o});
                        expect_adjoint<S>(joined(widen(back), widen(back2)), joined(widen(v), widen(v2)), widen(u),
                                          widen(ahead), "gated_rms_norm");
                    }
                }
                // both results: the new residual, and y
                const T scale = T(0.5);
                auto tresidual = v2;
                api::add_rms_norm_vjp(back2, back, x, weight, u2, u, {.eps = eps, .scale = scale});
                api::add_rms_norm_jvp(ahead, tresidual, x, weight, v, {.eps = eps, .scale = scale});
                expect_adjoint<S>(joined(widen(back), widen(back2)), joined(widen(v), widen(v2)),
                                  joined(widen(u), widen(u2)), joined(widen(ahead), widen(tresidual)),
                                  "add_rms_norm");
            });
        }
    }
}

TYPED_TEST(norms, vjp_and_jvp_are_adjoint_along_the_weight_and_the_bias_too)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    reference::random random{41};
    const T eps = T(0.5);
    const std::size_t count = 3;
    for (const std::size_t n : {1U, 2U, 16U, 61U, 530U}) {
        const auto any = [&] { return precision::row<S>(random, count * n); };
        const auto x = any(), z = any(), u = any(), v = any(), v2 = any(), u2 = any();
        const auto w = precision::row<S>(random, n), tw = precision::row<S>(random, n),
                   tb = precision::row<S>(random, n);
        std::vector<S> back(count * n), back2(count * n), ahead(count * n);
        // the sums over the rows, to more places than what is compared has
        std::vector<double> dw(n), db(n);
        const auto view = [&](auto& of) { return api::rows{of.data(), count, n}; };
        const auto joined = [](std::initializer_list<wide_row> all) {
            wide_row one;
            for (const auto& each : all) one.insert(one.end(), each.begin(), each.end());
            return one;
        };
        const auto see = [&](const auto& weight) {
            api::rms_norm_vjp(view(back), dw, view(x), weight, view(u), {.eps = eps});
            api::rms_norm_jvp(view(ahead), view(x), weight, view(v), tw, {.eps = eps});
            expect_adjoint<S>(joined({widen(back), widen(dw)}), joined({widen(v), widen(tw)}), widen(u),
                              widen(ahead), "rms_norm");
            api::layer_norm_vjp(view(back), dw, view(x), weight, view(u), {.eps = eps});
            api::layer_norm_jvp(view(ahead), view(x), weight, view(v), tw, {.eps = eps});
            expect_adjoint<S>(joined({widen(back), widen(dw)}), joined({widen(v), widen(tw)}), widen(u),
                              widen(ahead), "layer_norm without a bias");
            api::layer_norm_vjp(view(back), dw, db, view(x), weight, view(u), {.eps = eps});
            api::layer_norm_jvp(view(ahead), view(x), weight, view(v), tw, tb, {.eps = eps});
            expect_adjoint<S>(joined({widen(back), widen(dw), widen(db)}), joined({widen(v), widen(tw), widen(tb)}),
                              widen(u), widen(ahead), "layer_norm");
            for (const auto g : {norm_gate::silu, norm_gate::sigmoid}) {
                for (const auto o : {gate_order::norm_first, gate_order::gate_first}) {
                    api::gated_rms_norm_vjp(view(back), view(back2), dw, view(x), view(z), weight, view(u),
                                            {.eps = eps, .gate = g, .order = o});
                    api::gated_rms_norm_jvp(view(ahead), view(x), view(z), weight, view(v), view(v2), tw,
                                            {.eps = eps, .gate = g, .order = o});
                    expect_adjoint<S>(joined({widen(back), widen(back2), widen(dw)}),
                                      joined({widen(v), widen(v2), widen(tw)}), widen(u), widen(ahead),
                                      "gated_rms_norm");
                }
            }
            auto tresidual = v2;
            api::add_rms_norm_vjp(view(back2), view(back), dw, view(x), weight, view(u2), view(u),
                                  {.eps = eps, .scale = T(0.5)});
            api::add_rms_norm_jvp(view(ahead), view(tresidual), view(x), weight, view(v), tw,
                                  {.eps = eps, .scale = T(0.5)});
            expect_adjoint<S>(joined({widen(back), widen(back2), widen(dw)}),
                              joined({widen(v), widen(v2), widen(tw)}), joined({widen(u), widen(u2)}),
                              joined({widen(ahead), widen(tresidual)}), "add_rms_norm");
        };
        see(w);
        see(api::zero_centered(w));
        api::layer_norm_vjp(view(back), dw, db, view(x), api::no_weight, view(u), {.eps = eps});
        api::layer_norm_jvp(view(ahead), view(x), api::no_weight, view(v), api::no_weight, tb, {.eps = eps});
        expect_adjoint<S>(joined({widen(back), widen(db)}), joined({widen(v), widen(tb)}), widen(u), widen(ahead),
                          "layer_norm with a bias alone");

        // a row of two owners: each has its part of dw and of tw
        if (n < 2) continue;
        const auto part = [n](const std::vector<S>& of, std::size_t i) {
            const std::size_t half = n / 2;
            return std::span<const S>{of.data(), n}.subspan(i * half, i == 0 ? half : n - half);
        };
        std::vector<api::square_sum> squares;
        std::vector<api::product_sum> of_u, of_v;
        for (const std::size_t i : {0U, 1U}) squares.push_back(api::sum_of_squares(part(x, i)));
        const auto all = api::combine(squares);
        for (const std::size_t i : {0U, 1U}) {
            of_u.push_back(api::rms_norm_vjp_sum(part(x, i), part(w, i), part(u, i), all, n, {.eps = eps}));
            of_v.push_back(api::rms_norm_jvp_sum(part(x, i), part(v, i), all, n, {.eps = eps}));
        }
        std::vector<S> dx(n), t(n);
        for (const std::size_t i : {0U, 1U}) {
            const std::size_t at = i * (n / 2), size = part(x, i).size();
            api::rms_norm_apply_vjp(std::span{dx}.subspan(at, size), std::span{dw}.subspan(at, size), part(x, i),
                                    part(w, i), part(u, i), all, api::combine(of_u), n, {.eps = eps});
            api::rms_norm_apply_jvp(std::span{t}.subspan(at, size), part(x, i), part(w, i), part(v, i), part(tw, i),
                                    all, api::combine(of_v), n, {.eps = eps});
        }
        const auto first_row = [n](const std::vector<S>& of) {
            return widen(std::vector<S>(of.data(), of.data() + n));
        };
        expect_adjoint<S>(joined({widen(dx), widen(dw)}), joined({first_row(v), widen(tw)}), first_row(u), widen(t),
                          "split rms_norm");
    }
}

TYPED_TEST(norms, G15_the_jacobian_is_symmetric_and_eps_is_what_remains_of_the_radial_part)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    reference::random random{12};
    const std::size_t n = 12;
    const auto x = precision::row<S>(random, n, 0.5, 2);
    const wide_row exact_x = widen(x);
    std::vector<std::vector<S>> columns;
    for (std::size_t j = 0; j < n; ++j) {
        std::vector<S> unit(n, static_cast<S>(0.0F));
        unit[j] = static_cast<S>(1.0F);
        std::vector<S> t(n);
        api::rms_norm_jvp(t, x, api::no_weight, unit, {.eps = T(1e-5)});
        columns.push_back(t);
    }
    // r (a - xh mean(a xh)) for two unit vectors: the same products in another order
    const double slack = static_cast<double>(2 * std::ldexp(root_of(exact_x, 0), -precision::format<S>::digits));
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            EXPECT_NEAR(static_cast<double>(value(columns[i][j])), static_cast<double>(value(columns[j][i])),
                        slack);
        }
    }
    // computed in double, so that what remains is right to the last place of S
    std::vector<S> t(n);
    const wide eps = wide(T(1e-5));
    api::rms_norm_jvp(t, x, api::no_weight, x, {.eps = T(1e-5)});
    const wide ms = reference::mean_square(exact_x);
    precision::worst_in_double<S> seen{4};
    for (std::size_t j = 0; j < n; ++j) {
        const wide right = exact_x[j] * eps / ((ms + eps) * std::sqrt(ms + eps));
        seen.see(t[j], right, root_of(exact_x, eps) * largest(exact_x));
    }
    seen.expect_within_bound("rms_norm_jvp, along x", "f times the largest term");
}

// linkedin/Liger-Kernel#950, pytorch/helion#3595: dw stalls when it is summed in 16 bits.
TYPED_TEST(norms, G5_dw_of_any_type_is_summed_in_float_or_double)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    // Rows of one element have xh = 1, so each adds its dy.
    const std::size_t count = 4097;
    const std::vector<S> x(count, static_cast<S>(1.0F));
    std::vector<S> dy(count, static_cast<S>(0.5F));
    dy[0] = static_cast<S>(256.0F);
    std::vector<S> dx(count), dz(count);
    const auto rows = [&](auto& v) { return api::rows{v.data(), count, 1}; };
    const auto expect_sum = [&]<class D>(D) {
        std::vector<D> dw(1);
        std::vector<D> db(1);
        api::rms_norm_vjp(rows(dx), dw, rows(x), api::no_weight, rows(dy), {.eps = T(0)});
        EXPECT_EQ(dw[0], D(2304));
        api::add_rms_norm_vjp(rows(dx), rows(dz), dw, rows(x), api::no_weight, rows(dy), rows(dy), {.eps = T(0)});
        EXPECT_EQ(dw[0], D(2304));
        api::gated_rms_norm_vjp(rows(dx), rows(dz), dw, rows(x), rows(x), api::no_weight, rows(dy),
                                {.eps = T(0), .order = gate_order::gate_first});
        EXPECT_EQ(dw[0], D(2304));
        api::layer_norm_vjp(rows(dx), dw, db, rows(x), api::no_weight, rows(dy), {.eps = T(1)});
        EXPECT_EQ(dw[0], D(0));
        EXPECT_EQ(db[0], D(2304));
        api::layer_norm_vjp(rows(dx), dw, db, rows(x), api::no_weight, rows(dy),
                            {.eps = T(1), .dw = weight_gradient::accumulate});
        EXPECT_EQ(db[0], D(4608));
        api::layer_norm_vjp(rows(dx), db, rows(x), api::no_weight, rows(dy), {.eps = T(1)});
        EXPECT_EQ(db[0], D(0)) << "dw without db";
    };
    expect_sum(float{});
    expect_sum(double{});
}

// RL-Align/RL-Kernel#383: 0/0 in a row of zeros.
TYPED_TEST(norms, G7_a_row_of_zeros)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    const auto dy = of_floats<S>({1, 2, -3, 4});
    const std::vector<S> zeros(4, static_cast<S>(0.0F));
    const std::vector<S> right = of_floats<S>({1024, 2048, -3072, 4096});
    std::vector<S> dx(4), other(4);
    std::vector<T> dw(4);
    const T eps = T(0x1p-20);
    const std::vector<T> none(4, T(0));
    api::rms_norm_vjp(dx, dw, zeros, api::no_weight, dy, {.eps = eps});
    EXPECT_TRUE(precision::all_same_bits(dx, right));
    EXPECT_EQ(dw, none);
    api::rms_norm_jvp(dx, zeros, api::no_weight, dy, {.eps = eps});
    EXPECT_TRUE(precision::all_same_bits(dx, right));
    api::layer_norm_vjp(dx, dw, zeros, api::no_weight, dy, {.eps = eps});
    EXPECT_TRUE(precision::all_same_bits(dx, of_floats<S>({0, 1024, -4096, 3072})));
    EXPECT_EQ(dw, none);
    // an open gate, and a residual that nothing has been added to
    api::gated_rms_norm_vjp(dx, other, dw, zeros, of_floats<S>({100, 100, 100, 100}), api::no_weight, dy,
                            {.eps = eps, .gate = norm_gate::sigmoid});
    EXPECT_TRUE(precision::all_same_bits(dx, right));
    EXPECT_EQ(dw, none);
    api::add_rms_norm_vjp(dx, other, dw, zeros, api::no_weight, zeros, dy, {.eps = eps, .scale = T(-1)});
    EXPECT_TRUE(precision::all_same_bits(dx, right));
    EXPECT_TRUE(precision::all_same_bits(other, of_floats<S>({-1024, -2048, 3072, -4096})));
}

TYPED_TEST(norms, derivatives_over_the_whole_range)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    reference::random random{13};
    precision::worst_in_double<S> of_norm{4}, of_add{4}, of_layer{8};
    const int first = precision::format<S>::least;
    const int last = precision::format<S>::beyond - 1;
    const int step = std::is_same_v<S, double> ? 139 : 11;
    for (int of_x = first + 8; of_x <= last; of_x += step) {
        for (int of_a = first + 8; of_a <= last; of_a += step) {
            const auto x = precision::row<S>(random, 21, 0.5, 1, of_x);
            const auto a = precision::row<S>(random, 21, -1, 1, of_a);
            for (const T eps : {T(0), T(1e-6)}) {
                const wide size = root_of(widen(x), wide(eps)) * largest(widen(a));
                const auto exact = jacobian(widen(x), widen(a), wide(eps));
                std::vector<S> t(21), residual(21);
                std::vector<S> h(21, static_cast<S>(0.0F));
                api::rms_norm_jvp(t, x, api::no_weight, a, {.eps = eps});
                for (std::size_t j = 0; j < 21; ++j) {
                    of_norm.see(t[j], exact[j], size, value(x[j]), value(a[j]));
                }
                api::add_rms_norm_vjp(t, residual, x, api::no_weight, h, a, {.eps = eps});
                for (std::size_t j = 0; j < 21; ++j) {
                    of_add.see(t[j], exact[j], size, value(x[j]), value(a[j]));
                    EXPECT_EQ(value(t[j]), value(residual[j]));
                }
                if constexpr (std::is_same_v<S, double>) continue;  // there the products may leave the range
                const auto c = centered(widen(x));
                const wide size_of_layer = root_of(c, wide(eps)) * largest(widen(a));
                const auto layer = jacobian(c, centered(widen(a)), wide(eps));
                api::layer_norm_vjp(t, x, api::no_weight, a, {.eps = eps});
                for (std::size_t j = 0; j < 21; ++j) {
                    of_layer.see(t[j], layer[j], size_of_layer, value(x[j]), value(a[j]));
                }
            }
        }
    }
    of_norm.expect_within_bound("rms_norm_jvp, over the range", "f times the largest term");
    of_add.expect_within_bound("add_rms_norm_vjp, over the range", "the largest term");
    if constexpr (!std::is_same_v<S, double>) {
        of_layer.expect_within_bound("layer_norm_vjp, over the range", "the largest term");
    }
}

/// Numbers of one size or, if `spread`, of all.
template <class S>
std::vector<S> row_of_size(reference::random& random, int exponent, bool spread)
{
    auto row = precision::row<S>(random, 21, 0.5, 1, exponent);
    if (!spread) return row;
    const int least = precision::format<S>::least + 8;
    const int sizes = precision::format<S>::beyond - 1 - least;
    for (auto& x : row) {
        const double any = random.uniform(0, sizes);
        x = precision::row<S>(random, 1, -1, 1, least + static_cast<int>(any))[0];
    }
    return row;
}

TYPED_TEST(norms, the_gradient_over_the_whole_range_of_the_weight)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    reference::random random{31};
    precision::worst<S> back;
    precision::worst_in_double<S> ahead{4};
    const int first = precision::format<S>::least + 8;
    const int last = precision::format<S>::beyond - 1;
    const int step = (last - first) / 7;
    const auto of_size = [&](int exponent) { return row_of_size<S>(random, exponent, exponent + step > last); };
    for (int of_x = first; of_x <= last; of_x += step) {
        for (int of_w = first; of_w <= last; of_w += step) {
            for (int of_dy = first; of_dy <= last; of_dy += step) {
                const auto x = of_size(of_x), w = of_size(of_w), dy = of_size(of_dy);
                const T eps = of_w % 2 == 0 ? T(0) : T(1e-6);
                const wide most = largest_term_of_jacobian(widen(x), widen(dy), wide(eps));
                for (const kind k : kinds) {
                    const auto f = factors(k, w);
                    const auto dyf = times(widen(dy), f);
                    const auto dx = jacobian(widen(x), dyf, wide(eps));
                    const auto along = jacobian(widen(x), widen(dy), wide(eps));
                    const wide most_of_dx = largest_term_of_jacobian(widen(x), dyf, wide(eps));
                    std::vector<S> got(x.size()), got_along(x.size());
                    with_weight(k, w, [&](const auto& weight) {
                        api::rms_norm_vjp(got, x, weight, dy, {.eps = eps});
                        api::rms_norm_jvp(got_along, x, weight, dy, {.eps = eps});
                    });
                    for (std::size_t j = 0; j < x.size(); ++j) {
                        back.see(error_of_size(got[j], dx[j], most_of_dx), value(x[j]), value(dy[j]));
                        ahead.see(got_along[j], along[j] * f[j], most * std::abs(f[j]), value(x[j]), value(dy[j]));
                    }
                }
            }
        }
    }
    back.expect_within(4, "rms_norm_vjp, over the range of the weight", "ulp of the largest term");
    ahead.expect_within_bound("rms_norm_jvp, over the range of the weight", "f times the largest term");
}

// --- LayerNorm ----------------------------------------------------------------------------------------------------

template <class S>
void see_layer_norm(precision::worst_in_double<S>& seen, const std::vector<S>& x, const std::vector<S>& w,
                    const std::vector<S>& b, arithmetic<S> eps)
{
    for (const kind k : kinds) {
        const auto f = factors(k, w);
        for (const bool biased : {false, true}) {
            std::vector<S> y(x.size());
            with_weight(k, w, [&](const auto& weight) {
                if (biased) api::layer_norm(y, x, weight, b, {.eps = eps});
                if (!biased) api::layer_norm(y, x, weight, api::no_bias, {.eps = eps});
            });
            const auto xh = layer_norm(widen(x), wide_row(x.size(), 1), wide_row(x.size(), 0), wide(eps));
            for (std::size_t j = 0; j < x.size(); ++j) {
                const wide bias = biased ? value(b[j]) : 0;
                const wide size = std::max({std::abs(xh[j] * f[j]), std::abs(f[j]), std::abs(bias)});
                seen.see(y[j], xh[j] * f[j] + bias, size, value(x[j]), static_cast<wide>(x.size()));
            }
        }
    }
}

TYPED_TEST(norms, layer_norm_is_its_formula)
{
    using S = TypeParam;
    reference::random random{14};
    precision::worst_in_double<S> seen{5};
    for (const auto n : some_lengths()) {
        const auto w = precision::row<S>(random, n);
        const auto b = precision::row<S>(random, n);
        see_layer_norm(seen, precision::row<S>(random, n), w, b, arithmetic<S>(1e-5));
        // far from zero, where the row is in its last bits
        see_layer_norm(seen, precision::row<S>(random, n, 4096, 4104), w, b, arithmetic<S>(1e-12));
    }
    seen.expect_within_bound("layer_norm", "the largest term");
}

TYPED_TEST(norms, layer_norm_over_the_whole_range)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    reference::random random{15};
    precision::worst_in_double<S> seen{5};
    const int step = std::is_same_v<S, double> ? 17 : 1;
    for (int e = precision::format<S>::least + 5; e < precision::format<S>::beyond; e += step) {
        for (const std::size_t n : {2U, 19U, 300U}) {
            const std::vector<S> w(n, static_cast<S>(1.0F));
            const auto x = precision::row<S>(random, n, -1, 1, e);
            for (const T eps : {T(0), T(1e-12), std::numeric_limits<T>::denorm_min()}) {
                std::vector<S> y(n);
                api::layer_norm(y, x, api::no_weight, api::no_bias, {.eps = eps});
                const auto exact = layer_norm(widen(x), wide_row(n, 1), wide_row(n, 0), wide(eps));
                const wide size = std::min(wide(1), largest(exact));
                for (std::size_t j = 0; j < n; ++j) {
                    seen.see(y[j], exact[j], std::max(size, std::abs(exact[j])), value(x[j]), wide(eps));
                }
            }
        }
    }
    seen.expect_within_bound("layer_norm, over the range", "the largest term");
}

// google/flax#1491, jax-ml/jax#33496: E[x^2] - mean^2 goes negative or loses all digits.
TEST(layer_norm, I1_the_mean_is_subtracted_before_squaring)
{
    const auto expect = [](const std::vector<float>& x, float eps, float outer, float inner) {
        std::vector<float> y(4);
        api::layer_norm(y, x, api::no_weight, api::no_bias, {.eps = eps});
        EXPECT_EQ(y, (std::vector<float>{-outer, -inner, inner, outer}));
    };
    for (const float base : {4096.0F, 10000.0F}) {
        expect({base, base + 1.0F / 1024, base + 2.0F / 1024, base + 3.0F / 1024}, 1e-12F, 1.34164023F,
               0.447213411F);
    }
    expect({0x1p23F, 0x1p23F + 1, 0x1p23F + 2, 0x1p23F + 3}, 1e-5F, 1.34163547F, 0.447211802F);
    // the same of doubles, whose mean is no double
    std::vector<double> y(4);
    api::layer_norm(y, std::vector<double>{0x1p52, 0x1p52 + 1, 0x1p52 + 2, 0x1p52 + 3}, api::no_weight,
                    api::no_bias, {.eps = 0.0});
    for (std::size_t j = 0; j < 4; ++j) {
        EXPECT_LE(ulp::error(y[j], (2 * static_cast<wide>(j) - 3) / std::sqrt(wide(5))), 2);
    }
}

// triton-lang/triton#9838, unslothai/unsloth#1867: padded lanes enter the variance as (0 - mean)^2.
TYPED_TEST(norms, I3_lanes_past_the_end_do_not_count)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    if constexpr (!std::is_same_v<S, bfloat16>) {  // 1001 is none
        std::vector<S> x(17, static_cast<S>(1000.0F));
        x[16] = static_cast<S>(1001.0F);
        std::vector<S> y(17);
        api::layer_norm(y, x, std::vector<S>(17, static_cast<S>(1.0F)), std::vector<S>(17, static_cast<S>(0.0F)),
                        {.eps = T(1e-5)});
        const wide allowed = precision::unit<S>(4) / 2 + 1e-8L;
        EXPECT_LE(std::abs(value(y[0]) + 0.249977425L), allowed);
        EXPECT_LE(std::abs(value(y[16]) - 3.9996388L), allowed);
    }
    for (std::size_t n = 1; n <= 70; ++n) {
        const std::vector<S> b(n, static_cast<S>(3.0F));
        std::vector<S> y(n);
        for (const double same : {1000.0, 0.1, -7.0}) {
            api::layer_norm(y, std::vector<S>(n, static_cast<S>(same)), api::no_weight, b, {.eps = T(1e-30)});
            EXPECT_TRUE(precision::all_same_bits(y, b)) << "equal numbers are all mean";
        }
    }
}

TYPED_TEST(norms, layer_norm_of_nans_infinities_and_equal_numbers)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    const std::vector<S> all_nan(5, static_cast<S>(nan<S>));
    std::vector<S> y(5);
    for (const auto special : {nan<S>, infinity<S>, -infinity<S>}) {
        auto x = of_floats<S>({1, 2, 3, 4, 5});
        x[2] = static_cast<S>(special);
        api::layer_norm(y, x, api::no_weight, api::no_bias, {.eps = T(1e-5)});
        EXPECT_TRUE(precision::all_same_bits(y, all_nan));
    }
    api::layer_norm(y, of_floats<S>({2, 2, 2, 2, 2}), api::no_weight, api::no_bias, {.eps = T(0)});
    EXPECT_TRUE(precision::all_same_bits(y, all_nan));
    const T huge = std::numeric_limits<T>::max();
    std::vector<T> of_huge(5);
    api::layer_norm(of_huge, std::vector<T>(5, huge), api::no_weight, std::vector<T>(5, T(1)),
                    {.eps = std::numeric_limits<T>::denorm_min()});
    EXPECT_EQ(of_huge, std::vector<T>(5, T(1)));
}

TYPED_TEST(norms, layer_norm_jvp_and_vjp_are_their_formulas)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    reference::random random{16};
    precision::worst_in_double<S> back{8}, ahead{8};
    precision::worst<S> of_weight;
    for (const auto n : some_lengths()) {
        for (const double base : {0.0, 100.0}) {
            const auto x = precision::row<S>(random, n, base - 2, base + 2);
            const auto w = precision::row<S>(random, n);
            const auto a = precision::row<S>(random, n);
            const T eps = T(1e-5);
            const auto c = centered(widen(x));
            const wide r = root_of(c, wide(eps));
            for (const kind k : kinds) {
                const auto f = factors(k, w);
                std::vector<S> t(n), dx(n);
                std::vector<double> dw(n), db(n, 2);
                with_weight(k, w, [&](const auto& weight) {
                    api::layer_norm_jvp(t, x, weight, a, {.eps = eps});
                    api::layer_norm_vjp(dx, dw, db, x, weight, a, {.eps = eps});
                });
                const auto tangent = times(jacobian(c, centered(widen(a)), wide(eps)), f);
                const auto gradient = jacobian(c, centered(times(widen(a), f)), wide(eps));
                const wide of_dx = r * largest(times(widen(a), f));
                const wide of_a = r * largest(widen(a));
                for (std::size_t j = 0; j < n; ++j) {
                    const wide of_t = of_a * std::abs(f[j]);
                    ahead.see(t[j], tangent[j], of_t, value(x[j]), wide(n));
                    back.see(dx[j], gradient[j], of_dx, value(x[j]), wide(n));
                    of_weight.see(precision::error_in_double(dw[j], value(a[j]) * c[j] * r, value(a[j])),
                                  value(x[j]));
                    EXPECT_EQ(db[j], static_cast<double>(value(a[j])));
                }
            }
        }
    }
    back.expect_within_bound("layer_norm_vjp", "the largest term");
    ahead.expect_within_bound("layer_norm_jvp", "the largest term");
    of_weight.expect_within(6, "layer_norm_vjp, dw of one row", "ulp of double of dy");
}

// --- gated RMSNorm ------------------------------------------------------------------------------------------------

constexpr std::array gates{norm_gate::silu, norm_gate::sigmoid};
constexpr std::array orders{gate_order::norm_first, gate_order::gate_first};
template <class S>
constexpr double norm_first_bound = std::is_same_v<S, double>  ? 7.5
                                    : std::is_same_v<S, float> ? 5.5
                                                               : 1;
template <class S>
constexpr double gate_first_bound = std::is_same_v<S, double>  ? 8
                                    : std::is_same_v<S, float> ? 0.51
                                                               : 1;

TYPED_TEST(norms, gated_rms_norm_is_its_formula)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    reference::random random{17};
    precision::worst<S> norm_first;
    precision::worst<S> gate_first;
    for (const auto n : some_lengths()) {
        const auto x = precision::row<S>(random, n);
        const auto w = precision::row<S>(random, n);
        const T eps = T(1e-6);
        for (const double reach : {3.0, 90.0}) {
            const auto z = precision::row<S>(random, n, -reach, reach);
            for (const kind k : kinds) {
                for (const auto g : gates) {
                    for (const auto o : orders) {
                        std::vector<S> y(n);
                        with_weight(k, w, [&](const auto& weight) {
                            api::gated_rms_norm(y, x, z, weight, {.eps = eps, .gate = g, .order = o});
                        });
                        const bool first = o == gate_order::norm_first;
                        const auto f = first ? factors(k, w) : factors(k, w);
                        const auto exact = gated(widen(x), widen(z), f, wide(eps), g, o);
                        for (std::size_t j = 0; j < n; ++j) {
                            if (first) norm_first.see(precision::error(y[j], exact[j]), value(x[j]), value(z[j]));
                            if (!first) {
                                gate_first.see(precision::error(y[j], exact[j]), value(x[j]), value(z[j]));
                            }
                        }
                    }
                }
            }
        }
    }
    norm_first.expect_within(norm_first_bound<S>, "gated_rms_norm");
    gate_first.expect_within(gate_first_bound<S>, "gated_rms_norm, gate first");
}

TYPED_TEST(norms, gated_rms_norm_over_the_whole_range)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    reference::random random{18};
    precision::worst<S> norm_first;
    precision::worst<S> gate_first;
    const int step = std::is_same_v<S, double> ? 61 : 5;
    const int last = precision::format<S>::beyond;
    for (int of_x = precision::format<S>::least + 2; of_x < last; of_x += step) {
        for (int of_z = -60; of_z < last; of_z += 2 * step) {
            const auto x = precision::row<S>(random, 19, -1, 1, of_x);
            auto z = precision::row<S>(random, 19, 0.5, 1, of_z);
            z[3] = static_cast<S>(-arithmetic<S>(z[3]));
            z[4] = static_cast<S>(-7.0F);
            for (const auto g : gates) {
                for (const auto o : orders) {
                    for (const T eps : {T(0), T(1e-6)}) {
                        std::vector<S> y(19);
                        api::gated_rms_norm(y, x, z, api::no_weight, {.eps = eps, .gate = g, .order = o});
                        const auto exact = gated(widen(x), widen(z), wide_row(19, 1), wide(eps), g, o);
                        for (std::size_t j = 0; j < 19; ++j) {
                            const wide xh = o == gate_order::norm_first ? exact[j] / act(g, value(z[j])) : exact[j];
                            if (!(std::abs(xh) > wide(std::numeric_limits<T>::min()))) continue;
                            if (o == gate_order::norm_first) {
                                norm_first.see(precision::error(y[j], exact[j]), value(x[j]), value(z[j]));
                            } else {
                                gate_first.see(precision::error(y[j], exact[j]), value(x[j]), value(z[j]));
                            }
                        }
                    }
                }
            }
        }
    }
    norm_first.expect_within(norm_first_bound<S>, "gated_rms_norm, over the range");
    gate_first.expect_within(gate_first_bound<S>, "gated_rms_norm, gate first");
}

/// The type of what is stored between the weight and the gate.
template <class M, class S, class W>
void expect_gated_in_two_steps(reference::random& random)
{
    using T = arithmetic<S>;
    for (const auto n : some_lengths()) {
        for (const int e : {0, precision::format<S>::beyond - 3}) {
            const auto x = precision::row<S>(random, n, -2, 2, e);
            const auto z = precision::row<S>(random, n, -8, 8);
            const auto w = precision::row<W>(random, n);
            for (const kind k : kinds) {
                if (k == kind::none && !std::is_same_v<M, S>) continue;
                for (const auto g : gates) {
                    std::vector<M> m(n);
                    std::vector<S> y(n), stepwise(n);
                    with_weight(k, w, [&](const auto& weight) {
                        api::gated_rms_norm(y, x, z, weight,
                                            {.eps = T(1e-6), .gate = g, .rounding = norm_rounding::before_weight});
                        api::rms_norm(m, x, weight, {.eps = T(1e-6), .rounding = norm_rounding::before_weight});
                    });
                    if (g == norm_gate::silu) api::swiglu(stepwise, z, m);
                    if (g == norm_gate::sigmoid) api::sigmoid_gate(stepwise, m, z);
                    EXPECT_TRUE(precision::all_same_bits(y, stepwise)) << n;
                    auto in_place = x;
                    with_weight(k, w, [&](const auto& weight) {
                        api::gated_rms_norm(in_place, in_place, z, weight,
                                            {.eps = T(1e-6), .gate = g, .rounding = norm_rounding::before_weight});
                    });
                    EXPECT_TRUE(precision::all_same_bits(y, in_place)) << n;
                }
            }
        }
    }
}

TYPED_TEST(norms, gated_rms_norm_rounded_before_the_weight_has_the_bits_of_two_steps)
{
    using S = TypeParam;
    reference::random random{42};
    expect_gated_in_two_steps<S, S, S>(random);
    if constexpr (sizeof(S) == 2) {
        expect_gated_in_two_steps<float, S, float>(random);
        using other = std::conditional_t<std::is_same_v<S, bfloat16>, float16, bfloat16>;
        expect_gated_in_two_steps<float, S, other>(random);
    }
}

TYPED_TEST(norms, gated_rms_norm_gate_first_rounded_before_the_weight)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    reference::random random{43};
    precision::worst<S> seen;
    for (const auto n : some_lengths()) {
        const auto x = precision::row<S>(random, n);
        const auto z = precision::row<S>(random, n);
        const auto w = precision::row<S>(random, n);
        const T eps = T(1e-6);
        for (const kind k : kinds) {
            for (const auto g : gates) {
                std::vector<S> y(n);
                with_weight(k, w, [&](const auto& weight) {
                    api::gated_rms_norm(y, x, z, weight,
                                        {.eps = eps,
                                         .gate = g,
                                         .order = gate_order::gate_first,
                                         .rounding = norm_rounding::before_weight});
                });
                const auto f = factors(k, w);
                const auto uh = reference::normalized(times(widen(x), act(g, widen(z))), wide(eps));
                for (std::size_t j = 0; j < n; ++j) {
                    const wide slack = std::ldexp(std::abs(uh[j]), -48);
                    double best = infinity<double>;
                    for (const wide normal : {uh[j] - slack, uh[j] + slack}) {
                        const wide stored =
                            std::is_same_v<S, double> ? uh[j] : value(static_cast<S>(static_cast<double>(normal)));
                        best = std::min(best, precision::error_in_double(y[j], stored * f[j], stored * f[j]));
                    }
                    seen.see(best, value(x[j]), value(z[j]));
                }
            }
        }
    }
    seen.expect_within(8, "gated_rms_norm, gate first and rounded before the weight", "ulp of double");
}

TYPED_TEST(norms, gated_rms_norm_at_closed_and_open_gates)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    const auto inf = static_cast<S>(infinity<S>);
    const std::vector<S> x = of_floats<S>({3, 3, -3, 3});
    const std::vector<S> z{static_cast<S>(-infinity<S>), inf, static_cast<S>(nan<S>), static_cast<S>(-0.0F)};
    std::vector<S> y(4);
    api::gated_rms_norm(y, x, z, api::no_weight, {.eps = T(0)});
    EXPECT_TRUE(value(y[0]) == 0 && std::signbit(value(y[0]))) << "silu(-infinity) is -0";
    EXPECT_EQ(value(y[1]), wide(infinity<S>));
    EXPECT_TRUE(std::isnan(value(y[2])));
    EXPECT_TRUE(value(y[3]) == 0);
    api::gated_rms_norm(y, x, z, api::no_weight, {.eps = T(0), .gate = norm_gate::sigmoid});
    EXPECT_EQ(value(y[0]), 0);
    EXPECT_EQ(value(y[1]), 1);
    EXPECT_TRUE(std::isnan(value(y[2])));
    EXPECT_EQ(value(y[3]), 0.5L);
    api::gated_rms_norm(y, x, z, api::no_weight, {.eps = T(1), .order = gate_order::gate_first});
    for (const S e : y) EXPECT_TRUE(std::isnan(value(e)));
    // all gates closed
    const std::vector<S> closed(4, static_cast<S>(-infinity<S>));
    api::gated_rms_norm(y, x, closed, api::no_weight, {.eps = T(1e-6), .order = gate_order::gate_first});
    for (const S e : y) EXPECT_EQ(value(e), 0);
    std::vector<S> dx(4), dz(4);
    for (const auto g : gates) {
        for (const auto o : orders) {
            api::gated_rms_norm_vjp(dx, dz, x, closed, api::no_weight, x, {.eps = T(1e-6), .gate = g, .order = o});
            for (const S e : dx) EXPECT_EQ(value(e), 0);
            for (const S e : dz) EXPECT_EQ(value(e), 0);
        }
    }
}

TYPED_TEST(norms, gated_rms_norm_jvp_and_vjp_are_their_formulas)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    reference::random random{19};
    precision::worst_in_double<S> of_x{8}, of_z{8}, ahead{8};
    precision::worst<S> of_w;
    for (const auto n : some_lengths()) {
        const auto x = precision::row<S>(random, n), w = precision::row<S>(random, n),
                   a = precision::row<S>(random, n), b = precision::row<S>(random, n);
        const T eps = T(1e-5);
        for (const double reach : {2.0, 60.0}) {
            const auto z = precision::row<S>(random, n, -reach, reach);
            for (const auto g : gates) {
                for (const auto o : orders) {
                    const kind k = kinds[(n + static_cast<std::size_t>(o)) % 3];
                    const auto f = factors(k, w);
                    std::vector<S> dx(n), dz(n), t(n), dx2(n), dz2(n);
                    std::vector<double> dw(n);
                    with_weight(k, w, [&](const auto& weight) {
                        api::gated_rms_norm_vjp(dx, dz, dw, x, z, weight, a, {.eps = eps, .gate = g, .order = o});
                        api::gated_rms_norm_vjp(dx2, dz2, x, z, weight, a, {.eps = eps, .gate = g, .order = o});
                        api::gated_rms_norm_jvp(t, x, z, weight, a, b, {.eps = eps, .gate = g, .order = o});
                    });
                    EXPECT_TRUE(precision::all_same_bits(dx, dx2) && precision::all_same_bits(dz, dz2))
                        << "without dw";
                    const auto right = gated_vjp(widen(x), widen(z), f, widen(a), wide(eps), g, o);
                    const auto tangent = gated_jvp(widen(x), widen(z), f, widen(a), widen(b), wide(eps), g, o);
                    for (std::size_t j = 0; j < n; ++j) {
                        of_x.see(dx[j], right.dx[j], right.size_dx[j], value(x[j]), value(z[j]));
                        of_z.see(dz[j], right.dz[j], right.size_dz[j], value(x[j]), value(z[j]));
                        of_w.see(ulp::error(dw[j], right.dw[j]), value(x[j]), value(z[j]));
                        ahead.see(t[j], tangent.value[j], tangent.size[j], value(x[j]), value(z[j]));
                    }
                }
            }
        }
    }
    of_x.expect_within_bound("gated_rms_norm_vjp, dx", "the largest term");
    of_z.expect_within_bound("gated_rms_norm_vjp, dz", "the largest term");
    of_w.expect_within(8, "gated_rms_norm_vjp, dw of one row", "ulp of double");
    ahead.expect_within_bound("gated_rms_norm_jvp", "the largest term");
}

// --- the residual sum and the norm --------------------------------------------------------------------------------

TYPED_TEST(norms, H7_the_stored_sum_gives_the_bits_of_the_two_steps)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    reference::random random{20};
    for (const auto n : some_lengths()) {
        for (const int e : {0, 12}) {
            const auto h = precision::row<S>(random, n, -2, 2, e), x = precision::row<S>(random, n),
                       w = precision::row<S>(random, n);
            for (const kind k : kinds) {
                for (const T scale : {T(1), T(0.3)}) {
                    for (const auto rounding : {norm_rounding::once, norm_rounding::before_weight}) {
                        auto fused = h;
                        auto stepwise = h;
                        std::vector<S> y(n), y_stepwise(n);
                        with_weight(k, w, [&](const auto& weight) {
                            api::add_rms_norm(y, fused, x, weight,
                                              {.eps = T(1e-6), .scale = scale, .rounding = rounding});
                            api::residual_add(stepwise, stepwise, x, scale);
                            api::rms_norm(y_stepwise, stepwise, weight, {.eps = T(1e-6), .rounding = rounding});
                        });
                        EXPECT_TRUE(precision::all_same_bits(fused, stepwise));
                        EXPECT_TRUE(precision::all_same_bits(y, y_stepwise));
                        with_weight(k, w, [&](const auto& weight) {
                            auto exact = h;
                            std::vector<S> y_exact(n);
                            std::vector<T> sum(h.begin(), h.end());
                            api::add_rms_norm(y_exact, exact, x, weight,
                                              {.eps = T(1e-6), .scale = scale, .norm_of = norm_of::exact});
                            EXPECT_TRUE(precision::all_same_bits(exact, stepwise));
                            // and the exact sum those of two steps whose sum is kept in float
                            api::residual_add(sum, sum, x, scale);
                            api::rms_norm(y_stepwise, sum, weight, {.eps = T(1e-6)});
                            EXPECT_TRUE(precision::all_same_bits(y_exact, y_stepwise));
                        });
                    }
                }
            }
        }
    }
}

TEST(add_rms_norm, H7_of_the_stored_or_of_the_exact_sum)
{
    const auto x = of_floats<bfloat16>({-4, -0.23828125F, 3.125F, 0.95703125F});
    const auto h = of_floats<bfloat16>({-0.5703125F, -0.275390625F, -3.203125F, -2.765625F});
    const auto new_h = of_floats<bfloat16>({-4.5625F, -0.515625F, -0.078125F, -1.8125F});
    const std::pair<norm_of, std::vector<bfloat16>> cases[] = {
        {norm_of::stored, of_floats<bfloat16>({-1.8515625F, -0.208984375F, -0.03173828125F, -0.734375F})},
        {norm_of::exact, of_floats<bfloat16>({-1.8515625F, -0.2080078125F, -0.031494140625F, -0.73046875F})}};
    for (const auto& [which, right] : cases) {
        auto residual = h;
        std::vector<bfloat16> y(4);
        api::add_rms_norm(y, residual, x, api::no_weight, {.eps = 1e-6F, .norm_of = which});
        EXPECT_TRUE(precision::all_same_bits(residual, new_h));
        EXPECT_TRUE(precision::all_same_bits(y, right));
    }
}

TYPED_TEST(norms, add_rms_norm_of_huge_and_tiny_sums)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    reference::random random{21};
    precision::worst<S> seen;
    const int step = std::is_same_v<S, double> ? 97 : 7;
    for (int e = precision::format<S>::least + 4; e < precision::format<S>::beyond - 1; e += step) {
        for (const auto which : {norm_of::stored, norm_of::exact}) {
            auto h = precision::row<S>(random, 35, -0.5, 0.5, e);
            const auto x = precision::row<S>(random, 35, -0.5, 0.5, e);
            std::vector<T> sum(h.begin(), h.end());
            api::residual_add(sum, sum, x);
            std::vector<S> y(35);
            api::add_rms_norm(y, h, x, api::no_weight, {.eps = T(0), .norm_of = which});
            const auto xh = reference::normalized(which == norm_of::exact ? widen(sum) : widen(h), 0);
            for (std::size_t j = 0; j < 35; ++j) seen.see(precision::error(y[j], xh[j]), value(x[j]));
        }
    }
    seen.expect_within(rms_norm_bound<S>, "add_rms_norm, over the range");
}

TYPED_TEST(norms, add_rms_norm_jvp_and_vjp_are_their_formulas)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    reference::random random{22};
    precision::worst_in_double<S> back{4}, ahead{4};
    precision::worst<S> of_w;
    for (const auto n : some_lengths()) {
        const auto any = [&] { return precision::row<S>(random, n); };
        const auto h = any(), w = any(), dh = any(), dy = any(), th = any(), tx = any();
        const T eps = T(1e-5);
        const T scale = T(0.3);
        const wide r = root_of(widen(h), wide(eps));
        for (const kind k : kinds) {
            const auto f = factors(k, w);
            std::vector<S> dresidual(n), dx(n), ty(n), dresidual2(n), dx2(n);
            std::vector<double> dw(n);
            auto tresidual = th;
            with_weight(k, w, [&](const auto& weight) {
                api::add_rms_norm_vjp(dresidual, dx, dw, h, weight, dh, dy, {.eps = eps, .scale = scale});
                api::add_rms_norm_vjp(dresidual2, dx2, h, weight, dh, dy, {.eps = eps, .scale = scale});
                api::add_rms_norm_jvp(ty, tresidual, h, weight, tx, {.eps = eps, .scale = scale});
            });
            EXPECT_TRUE(precision::all_same_bits(dresidual, dresidual2) && precision::all_same_bits(dx, dx2))
                << "without dw";
            const wide_row sum = plus(widen(dh), jacobian(widen(h), times(widen(dy), f), wide(eps)));
            const wide_row t = plus(widen(th), times(widen(tx), wide(scale)));
            const wide_row tangent = times(jacobian(widen(h), t, wide(eps)), f);
            const wide size = r * largest(times(widen(dy), f));
            const wide of_t = r * largest(t);
            for (std::size_t j = 0; j < n; ++j) {
                const wide of_sum = std::max(size, std::abs(sum[j]));
                back.see(dresidual[j], sum[j], of_sum, value(h[j]), wide(n));
                back.see(dx[j], wide(scale) * sum[j], wide(scale) * of_sum, value(h[j]), wide(n));
                ahead.see(tresidual[j], t[j], t[j], value(h[j]), wide(n));
                ahead.see(ty[j], tangent[j], of_t * std::abs(f[j]), value(h[j]), wide(n));
                of_w.see(ulp::error(dw[j], value(dy[j]) * value(h[j]) * r), value(h[j]), wide(n));
            }
        }
    }
    back.expect_within_bound("add_rms_norm_vjp", "the largest term");
    ahead.expect_within_bound("add_rms_norm_jvp", "f times the largest term");
    of_w.expect_within(4, "add_rms_norm_vjp, dw of one row", "ulp of double");
}

// --- a row of several owners --------------------------------------------------------------------------------------

TYPED_TEST(norms, a_split_of_one_part_is_rms_norm)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    reference::random random{23};
    const int step = std::is_same_v<S, double> ? 61 : 5;
    for (const std::size_t n : {1U, 16U, 37U, 600U}) {
        const auto w = precision::row<S>(random, n);
        for (int e = precision::format<S>::least + 1; e < precision::format<S>::beyond; e += step) {
            const auto x = precision::row<S>(random, n, -1, 1, e);
            for (const T eps : {T(0), std::numeric_limits<T>::denorm_min(), T(1e-30), T(1e-6)}) {
                for (const auto rounding : {norm_rounding::once, norm_rounding::before_weight}) {
                    std::vector<S> whole(n), split(n);
                    api::rms_norm(whole, x, w, {.eps = eps, .rounding = rounding});
                    const api::square_sum parts[] = {api::sum_of_squares(x)};
                    api::rms_norm_apply(split, x, w, api::combine(parts), n, {.eps = eps, .rounding = rounding});
                    EXPECT_TRUE(precision::all_same_bits(split, whole)) << "n = " << n << ", x near 2^" << e;
                }
            }
        }
    }
}

TYPED_TEST(norms, a_split_row_is_within_the_bound_of_rms_norm)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    reference::random random{24};
    precision::worst<S> seen;
    const int least = precision::format<S>::least;
    const int width = precision::format<S>::beyond - least;
    for (std::size_t repeat = 0; repeat < 60 * reference::plenty; ++repeat) {
        // parts of very different magnitudes, empty ones and zeros among them
        std::vector<std::vector<S>> x;
        std::vector<S> whole;
        std::vector<api::square_sum> sums;
        for (std::size_t part = 0; part < 1 + random.next() % 5; ++part) {
            const auto n = random.next() % 70;
            const int e = least + 1 + static_cast<int>(random.next() % static_cast<std::uint64_t>(width - 1));
            x.push_back(random.next() % 6 == 0 ? std::vector<S>(n, static_cast<S>(0.0F))
                                               : precision::row<S>(random, n, -1, 1, e));
            whole.insert(whole.end(), x.back().begin(), x.back().end());
            sums.push_back(api::sum_of_squares(x.back()));
        }
        if (whole.empty()) continue;
        const T eps = repeat % 2 == 0 ? T(1e-6) : T(1e-20);
        const auto all = api::combine(sums);
        const auto xh = reference::normalized(widen(whole), wide(eps));
        std::size_t j = 0;
        for (const auto& part : x) {
            std::vector<S> y(part.size());
            api::rms_norm_apply(y, part, api::no_weight, all, whole.size(), {.eps = eps});
            for (std::size_t i = 0; i < y.size(); ++i, ++j) {
                if (std::abs(xh[j]) < wide(std::numeric_limits<T>::min())) continue;
                seen.see(precision::error(y[i], xh[j]), value(part[i]), wide(whole.size()));
            }
        }
    }
    seen.expect_within(rms_norm_bound<S>, "rms_norm_apply");
    record::promise("rms_norm_apply", record::type_name<S>(), "rounded once");
}

TYPED_TEST(norms, sums_of_squares_of_many_rows_and_of_special_ones)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    reference::random random{25};
    memory::strided<S> x(precision::row<S>(random, 5 * 33), 5, 33, 40);
    memory::strided<S> y(5, 33, 35);
    const auto w = precision::row<S>(random, 33);
    std::vector<api::square_sum> sums(5);
    api::sum_of_squares(sums, x.view());
    api::rms_norm_apply(y.view(), x.view(), w, sums, 33, {.eps = T(1e-6)});
    EXPECT_TRUE(y.gaps_untouched());
    std::vector<S> whole(5 * 33);
    api::rms_norm(api::rows{whole.data(), 5, 33}, x.view(), w, {.eps = T(1e-6)});
    EXPECT_TRUE(precision::all_same_bits(y.packed(), whole));

    const auto sum_of = [](std::vector<S> row) { return api::sum_of_squares(row); };
    EXPECT_EQ(api::combine(std::span<const api::square_sum>{}).value, 0);
    EXPECT_EQ(sum_of({}).value, 0);
    const api::square_sum with_nan[] = {sum_of(of_floats<S>({1, 2})), sum_of({static_cast<S>(nan<S>)}), sum_of({})};
    EXPECT_TRUE(std::isnan(api::combine(with_nan).value));
    const api::square_sum with_infinity[] = {sum_of({static_cast<S>(infinity<S>)}), sum_of(of_floats<S>({1, 2}))};
    EXPECT_EQ(api::combine(with_infinity).value, infinity<double>);

    // the whole exponent range of a double, added up a million times
    const api::square_sum huge = api::sum_of_squares(std::vector<double>(7, std::numeric_limits<double>::max()));
    const api::square_sum tiny =
        api::sum_of_squares(std::vector<double>(7, std::numeric_limits<double>::denorm_min()));
    for (const auto& part : {huge, tiny}) {
        const auto all = api::combine(std::vector<api::square_sum>(1U << 20U, part));
        EXPECT_NEAR(std::ldexp(all.value / part.value, 2 * (part.exponent - all.exponent)), 0x1p20, 1e-3);
    }
    const api::square_sum both[] = {tiny, huge, tiny};
    EXPECT_EQ(api::combine(both).value, huge.value);

    // from the first to the last: each small part is lost in the large one, but not all of them together
    const auto small = api::sum_of_squares(std::vector<double>{0x1p-27});
    const auto large = api::sum_of_squares(std::vector<double>{1});
    EXPECT_EQ(api::combine(std::array{large, small, small, small, small}).value, 1);
    EXPECT_EQ(api::combine(std::array{small, small, small, small, large}).value, 1 + 0x1p-52);
}

TYPED_TEST(norms, sum_of_squares_is_within_its_bound)
{
    using S = TypeParam;
    reference::random random{41};
    precision::worst<S> seen;
    auto lengths = some_lengths();
    lengths.push_back(4097);
    const int u = std::is_same_v<S, double> ? -53 : -24;
    for (const auto n : lengths) {
        for (const double low : {-2.0, 0.5}) {
            const auto x = precision::row<S>(random, n, low, 2);
            memory::strided<S> rows(x, 1, n, n + 3);
            const api::square_sum sum = api::sum_of_squares(rows.view());
            const wide exact = reference::dot(widen(x), widen(x));
            const wide got = std::ldexp(wide(sum.value), -2 * sum.exponent);
            seen.see(static_cast<double>(std::ldexp(std::abs(got - exact) / exact, -u)), static_cast<wide>(n));
        }
    }
    seen.expect_within(4, "sum_of_squares",
                       std::is_same_v<S, double> ? "* 2^-53 of the sum" : "* 2^-24 of the sum");
    record::promise("sum_of_squares", record::type_name<S>(), "strided");
}

TEST(sums_of_parts, combine_is_within_its_bound)
{
    reference::random random{42};
    ulp::worst seen;
    for (std::size_t repeat = 0; repeat < 200 * reference::plenty; ++repeat) {
        const std::size_t count = 2 + repeat % 9;
        const bool near = repeat % 2 == 0;
        std::vector<api::square_sum> squares;
        std::vector<api::product_sum> products;
        wide of_squares = 0, of_products = 0, size = 0;
        for (std::size_t i = 0; i < count; ++i) {
            const auto x =
                precision::row<double>(random, 5, -1, 1, static_cast<int>(near ? 0 : random.uniform(-900, 900)));
            const auto a =
                precision::row<double>(random, 5, -1, 1, static_cast<int>(near ? 3 : random.uniform(-900, 900)));
            squares.push_back(api::sum_of_squares(x));
            products.push_back(api::rms_norm_jvp_sum(x, a, squares.back(), 5, {.eps = 0.0}));
            of_squares += std::ldexp(wide(squares.back().value), -2 * squares.back().exponent);
            const wide product = std::ldexp(wide(products.back().value), -products.back().exponent);
            of_products += product;
            size += std::abs(product);
        }
        const auto all_squares = api::combine(squares);
        const auto all_products = api::combine(products);
        const auto see = [&](wide got, wide exact, wide terms) {
            const wide allowed = std::ldexp(terms, -53) * static_cast<wide>(count - 1);
            seen.see_error(static_cast<double>(std::abs(got - exact) / allowed), exact);
        };
        see(std::ldexp(wide(all_squares.value), -2 * all_squares.exponent), of_squares, of_squares);
        see(std::ldexp(wide(all_products.value), -all_products.exponent), of_products, size);
    }
    ulp::expect_within<double>(seen, 1, "combine", "of (parts - 1) * 2^-53 of all terms");
    record::promise("combine", "f64", "within its bound");
}

/// A row in parts, with what belongs to each.
template <class S>
struct split_row {
    std::vector<std::vector<S>> x, w, dy;
    std::vector<api::square_sum> squares;

    /// Parts of any magnitude and of one near the others, empty ones and zeros among them.
    static split_row any(reference::random& random)
    {
        split_row row;
        // the gradient, about dy / x, is a number
        constexpr int reach = std::is_same_v<S, double> ? 450 : std::is_same_v<S, float16> ? 7 : 60;
        const auto exponent = [&] { return static_cast<int>(random.next() % (2 * reach + 1)) - reach; };
        const int of_x = exponent();
        const int of_dy = exponent();
        for (std::size_t part = 0; part < 1 + random.next() % 5; ++part) {
            const auto n = random.next() % 70;
            const auto below = [&](int top) {
                const int some = static_cast<int>(random.next() % 30);
                return std::max(top - some, precision::format<S>::least + 1);
            };
            const bool no_x = random.next() % 6 == 0;
            const bool no_dy = random.next() % 6 == 0;
            row.x.push_back(precision::row<S>(random, n, no_x ? 0 : -1, no_x ? 0 : 1, below(of_x)));
            row.dy.push_back(precision::row<S>(random, n, no_dy ? 0 : -1, no_dy ? 0 : 1, below(of_dy)));
            row.w.push_back(precision::row<S>(random, n));
            row.squares.push_back(api::sum_of_squares(row.x.back()));
        }
        return row;
    }
    static std::vector<S> joined(const std::vector<std::vector<S>>& parts)
    {
        std::vector<S> whole;
        for (const auto& part : parts) whole.insert(whole.end(), part.begin(), part.end());
        return whole;
    }
};

TYPED_TEST(norms, a_gradient_of_a_split_row_is_its_formula)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    reference::random random{27};
    precision::worst<S> back, ahead, of_w;
    for (std::size_t repeat = 0; repeat < 60 * reference::plenty; ++repeat) {
        const auto row = split_row<S>::any(random);
        const auto x = widen(split_row<S>::joined(row.x));
        const auto dy = widen(split_row<S>::joined(row.dy));
        const auto w = split_row<S>::joined(row.w);
        const std::size_t n = x.size();
        if (n == 0) continue;
        const T eps = repeat % 2 == 0 ? T(1e-6) : T(1e-20);
        const auto squares = api::combine(row.squares);
        for (const kind k : kinds) {
            const auto f = factors(k, w);
            std::vector<api::product_sum> of_vjp, of_jvp;
            for (std::size_t i = 0; i < row.x.size(); ++i) {
                with_weight(k, row.w[i], [&](const auto& weight) {
                    of_vjp.push_back(api::rms_norm_vjp_sum(row.x[i], weight, row.dy[i], squares, n, {.eps = eps}));
                });
                of_jvp.push_back(api::rms_norm_jvp_sum(row.x[i], row.dy[i], squares, n, {.eps = eps}));
            }
            const auto sum_of_vjp = api::combine(of_vjp);
            const auto sum_of_jvp = api::combine(of_jvp);
            const auto dx_right = jacobian(x, times(dy, f), wide(eps));
            const auto ty_right = times(jacobian(x, dy, wide(eps)), f);
            const wide r = root_of(x, wide(eps));
            const wide of_dx = r * largest(times(dy, f));
            const wide of_ty = r * largest(dy);
            std::size_t j = 0;
            for (std::size_t i = 0; i < row.x.size(); ++i) {
                std::vector<S> dx(row.x[i].size()), dx2 = dx, ty = dx;
                std::vector<double> dw(dx.size());
                with_weight(k, row.w[i], [&](const auto& weight) {
                    api::rms_norm_apply_vjp(dx, dw, row.x[i], weight, row.dy[i], squares, sum_of_vjp, n,
                                            {.eps = eps});
                    api::rms_norm_apply_vjp(dx2, row.x[i], weight, row.dy[i], squares, sum_of_vjp, n, {.eps = eps});
                    api::rms_norm_apply_jvp(ty, row.x[i], weight, row.dy[i], squares, sum_of_jvp, n, {.eps = eps});
                });
                EXPECT_TRUE(precision::all_same_bits(dx, dx2)) << "without dw";
                for (std::size_t c = 0; c < dx.size(); ++c, ++j) {
                    back.see(error_of_size(dx[c], dx_right[j], of_dx), x[j], wide(n));
                    ahead.see(error_of_size(ty[c], ty_right[j], of_ty * std::abs(f[j])), x[j], wide(n));
                    const wide right = dy[j] * x[j] * r;
                    of_w.see(static_cast<double>(std::abs(wide(dw[c]) - right) / ulp::unit<T>(right)), x[j],
                             wide(n));
                }
            }
        }
    }
    back.expect_within(4, "rms_norm_apply_vjp", "ulp of the largest term");
    ahead.expect_within(4, "rms_norm_apply_jvp", "ulp of f times the largest term");
    of_w.expect_within(4, "rms_norm_apply_vjp, dw of one row");
}

TYPED_TEST(norms, a_gradient_of_one_part_is_that_of_rms_norm)
{
    using S = TypeParam;
    using T = arithmetic<S>;
    if constexpr (std::is_same_v<S, double>) {
        reference::random random{28};
        for (const std::size_t n : {1U, 16U, 37U, 600U}) {
            const auto w = precision::row<S>(random, n);
            for (int of_x = -1073; of_x < 1024; of_x += 131) {
                for (int of_dy = -1073; of_dy < 1024; of_dy += 131) {
                    const auto x = precision::row<S>(random, n, -1, 1, of_x);
                    const auto dy = precision::row<S>(random, n, -1, 1, of_dy);
                    for (const T eps : {T(0), T(1e-6)}) {
                        const api::square_sum squares = api::sum_of_squares(x);
                        const api::product_sum vjp[] = {api::rms_norm_vjp_sum(x, w, dy, squares, n, {.eps = eps})};
                        const api::product_sum jvp[] = {api::rms_norm_jvp_sum(x, dy, squares, n, {.eps = eps})};
                        std::vector<S> right(n), got(n), dw_right(n), dw(n);
                        api::rms_norm_vjp(right, dw_right, x, w, dy, {.eps = eps});
                        api::rms_norm_apply_vjp(got, dw, x, w, dy, squares, api::combine(vjp), n, {.eps = eps});
                        EXPECT_TRUE(precision::all_same_bits(got, right)) << n << ' ' << of_x << ' ' << of_dy;
                        EXPECT_TRUE(precision::all_same_bits(dw, dw_right)) << n << ' ' << of_x << ' ' << of_dy;
                        api::rms_norm_jvp(right, x, w, dy, {.eps = eps});
                        api::rms_norm_apply_jvp(got, x, w, dy, squares, api::combine(jvp), n, {.eps = eps});
                        EXPECT_TRUE(precision::all_same_bits(got, right)) << n << ' ' << of_x << ' ' << of_dy;
                    }
                }
            }
        }
    }
}

TYPED_TEST(norms, a_sum_that_one_lane_has_a_quarter_of_is_that_of_double)
{
    using S = TypeParam;
    reference::random random{37};
    for (const std::size_t n : {2U, 16U, 65U, 1000U, 5000U}) {
        for (int repeat = 0; repeat < 20; ++repeat) {
            auto x = precision::row<S>(random, n);
            // the first squares are lost beside it in float, or not quite
            const double beside = std::is_same_v<S, float16> ? 0x1p6 : std::exp2(random.uniform(4, 14));
            x[n / 2] = static_cast<S>(static_cast<float>(beside * std::sqrt(static_cast<double>(n))));
            const wide exact = mean(times(widen(x), widen(x))) * static_cast<wide>(n);
            EXPECT_NEAR(static_cast<double>(wide(api::sum_of_squares(x).value) / exact - 1), 0, 0x1p-50) << n;
        }
    }
}

TEST(product_sums, are_combined_over_the_whole_range)
{
    // of rows of one element, whose product is known
    const auto sum_of = [](double x, double a) {
        const std::vector<double> row{x}, along{a};
        return api::rms_norm_jvp_sum(row, along, api::sum_of_squares(row), 1, {.eps = 0.0});
    };
    EXPECT_EQ(api::combine(std::span<const api::product_sum>{}).value, 0);
    const auto zero = sum_of(1, 0);
    for (const double a : {1e-320, 1e-200, 1.0, 1e200, 1.7e308}) {
        const auto alone = sum_of(1, a);
        const api::product_sum parts[] = {zero, alone, zero, alone};
        const auto all = api::combine(parts);
        EXPECT_EQ(all.value, 2 * alone.value) << a;
        EXPECT_EQ(all.exponent, alone.exponent) << a;
        const api::product_sum beside_more[] = {alone, sum_of(1, -a), sum_of(1, a / 2)};
        EXPECT_EQ(api::combine(beside_more).value, alone.value / 2) << a;
    }
    const api::product_sum far_apart[] = {sum_of(1, 1e-300), sum_of(1, 1e300), sum_of(1, 1e-300)};
    EXPECT_EQ(api::combine(far_apart).value, sum_of(1, 1e300).value);
    const api::product_sum with_nan[] = {sum_of(1, 1), sum_of(1, nan<double>)};
    EXPECT_TRUE(std::isnan(api::combine(with_nan).value));
}

}  // namespace
