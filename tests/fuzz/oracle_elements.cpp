// Outputs whose element j depends on element j of the inputs alone.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include "fuzz/oracle_tables.hpp"
#include "support/activations.hpp"

namespace fuzz {
namespace {

wide bounded(wide x) { return std::min<wide>(std::abs(x), 20000); }

/// The value of an element, and what its terms are about.
struct number {
    wide value, terms = std::abs(value);
};

/// The bound is relative to the result.
template <std::size_t In, std::size_t Out, class F>
oracle elementwise(F f, double bound_in_float, double bound_in_double)
{
    const auto row = [f](const rows_in& in, rows_out& out, const computation&) {
        for (std::size_t j = 0; j < in[0].size(); ++j) {
            std::array<wide, In> x{};
            for (std::size_t i = 0; i < In; ++i) x[i] = in[i][j];
            const std::array<number, Out> y = f(x);
            for (std::size_t o = 0; o < Out; ++o) {
                out[o].value[j] = y[o].value;
                out[o].size[j] = y[o].value;
                out[o].terms[j] = y[o].terms;
            }
        }
    };
    return {row, bound_in_float, bound_in_double, true};
}

/// The same, with a bound that is relative to the terms.
oracle of_terms(oracle o)
{
    o.row = [inner = std::move(o.row)](const rows_in& in, rows_out& out, const computation& how) {
        inner(in, out, how);
        for (auto& y : out) y.size = y.terms;
    };
    return o;
}

using function = number (*)(wide x);

oracle unary(function f, double bound_in_float, double bound_in_double)
{
    return elementwise<1, 1>([f](const auto& x) { return std::array{f(x[0])}; }, bound_in_float, bound_in_double);
}
number gelu(wide x) { return {reference::gelu(x), 16 * std::abs(reference::gelu(x))}; }
number gelu_tanh(wide x)
{
    const wide y = reference::gelu_tanh(x);
    return {y, std::abs(y) * (1 + bounded(reference::tanh_form(x)))};
}

number exp_slope(wide x) { return {reference::exp_derivative(x)}; }
number sigmoid_slope(wide x) { return {reference::sigmoid_derivative(x)}; }
number tanh_slope(wide x) { return {reference::tanh_derivative(x)}; }
number silu_slope(wide x) { return {reference::silu_derivative(x), reference::sigmoid(x) * (1 + bounded(x))}; }
number silu_derivative_slope(wide x)
{
    return {reference::silu_derivative_derivative(x), std::exp(-std::abs(x)) * (2 + bounded(x))};
}
number gelu_slope(wide x)
{
    return {reference::gelu_derivative(x),
            16 * (reference::normal_distribution(x) + bounded(x) * reference::bell(x))};
}
number gelu_tanh_slope(wide x)
{
    const wide u = reference::tanh_form(x);
    return {reference::gelu_tanh_derivative(x), reference::sigmoid(u) * (1 + 3 * bounded(u)) * (1 + bounded(u))};
}
number relu_slope(wide x) { return {reference::relu_derivative(x)}; }

void add_gradients(table& all, const std::string& name, function slope)
{
    const auto f = [slope](const auto& x) {
        const number s = slope(x[0]);
        return std::array{number{s.value * x[1], s.terms * std::abs(x[1])}};
    };
    for (const char* const of : {"_vjp", "_jvp"}) all[name + of] = elementwise<2, 1>(f, 1, 1);
}

/// A gated activation y = a(gate) b(up), or y = a(x) b(gate): the factors and their derivatives.
struct gated {
    function a, a_slope, b, b_slope;
    double in_float, in_double;
    bool gradients_of_terms = false;
};

void add_gated(table& all, const std::string& name, gated f)
{
    all[name] = elementwise<2, 1>(
        [f](const auto& x) {
            const number a = f.a(x[0]);
            const number b = f.b(x[1]);
            return std::array{number{a.value * b.value, a.terms * b.terms}};
        },
        f.in_float, f.in_double);
    auto vjp = elementwise<3, 2>(
        [f](const auto& x) {
            const auto [a, a_slope, b, b_slope] =
                std::array{f.a(x[0]), f.a_slope(x[0]), f.b(x[1]), f.b_slope(x[1])};
            const wide dy = std::abs(x[2]);
            return std::array{number{a_slope.value * b.value * x[2], a_slope.terms * b.terms * dy},
                              number{a.value * b_slope.value * x[2], a.terms * b_slope.terms * dy}};
        },
        1, 1);
    auto jvp = elementwise<4, 1>(
        [f](const auto& x) {
            const auto [a, a_slope, b, b_slope] =
                std::array{f.a(x[0]), f.a_slope(x[0]), f.b(x[1]), f.b_slope(x[1])};
            return std::array{
                number{a_slope.value * b.value * x[2] + a.value * b_slope.value * x[3],
                       a_slope.terms * b.terms * std::abs(x[2]) + a.terms * b_slope.terms * std::abs(x[3])}};
        },
        1, 1);
    all[name + "_vjp"] = f.gradients_of_terms ? of_terms(std::move(vjp)) : std::move(vjp);
    all[name + "_jvp"] = of_terms(std::move(jvp));
}

number same(wide x) { return {x}; }
number one(wide) { return {1}; }
number clamped_up(wide u) { return {std::clamp<wide>(u, -1, 1)}; }
number clamped_up_slope(wide u) { return {std::abs(u) <= 1 ? wide(1) : wide(0)}; }
/// Between this and that the rounding of silu decides what passes.
bool near_limit(wide g) { return std::abs(reference::silu(g) - 1) < 1e-6L; }

/// silu(gate), 2 units off at most, rounded to the type of gate, and times up: a rounding more of the product.
oracle swiglu_of_rounded_factors()
{
    const auto row = [](const rows_in& in, rows_out& out, const computation& how) {
        for (std::size_t j = 0; j < in[0].size(); ++j) {
            const rounded_once a{reference::silu(in[0][j]), 2, how.types[0], how};
            out[0].value[j] = out[0].terms[j] = a.value * in[1][j];
            out[0].size[j] = out[0].value[j] * a.part_of_bound();
            // of a subnormal factor, units are a larger part
            if (!a.is_exact && !is_normal(a.value, how)) out[0].size[j] = unknown;
        }
    };
    return {row, 4.5, 4.5, true};
}

}  // namespace

table oracles_of_elements()
{
    table all;
    all["exp"] = unary([](wide x) { return number{reference::exp(x)}; }, 2, 2);
    all["exp, precise"] = unary([](wide x) { return number{reference::exp(x)}; }, 1, 1);
    all["log"] = unary([](wide x) { return number{reference::log(x)}; }, 2, 2);
    all["tanh"] = unary([](wide x) { return number{reference::tanh(x)}; }, 2, 2);
    all["tanh, precise"] = unary([](wide x) { return number{reference::tanh(x)}; }, 1, 1);
    all["sigmoid"] = unary([](wide x) { return number{reference::sigmoid(x)}; }, 2, 2);
    all["sigmoid, precise"] = unary([](wide x) { return number{reference::sigmoid(x)}; }, 1, 1);
    all["silu"] = unary([](wide x) { return number{reference::silu(x)}; }, 2, 2);
    all["silu, precise"] = unary([](wide x) { return number{reference::silu(x)}; }, 1, 1);
    all["relu"] = unary([](wide x) { return number{reference::relu(x)}; }, 0, 0);
    all["convert"] = unary(same, 0, 0);
    all["cos_2pi"] = unary([](wide x) { return number{reference::cos_2pi(x)}; }, 2, 2);
    all["gelu"] = unary(gelu, 1, 1);
    all["gelu_tanh"] = unary(gelu_tanh, 1, 1);
    all["silu_derivative"] = unary(silu_slope, 1, 1);
    add_gradients(all, "exp", exp_slope);
    add_gradients(all, "tanh", tanh_slope);
    add_gradients(all, "sigmoid", sigmoid_slope);
    add_gradients(all, "silu", silu_slope);
    add_gradients(all, "silu_derivative", silu_derivative_slope);
    add_gradients(all, "gelu", gelu_slope);
    add_gradients(all, "gelu_tanh", gelu_tanh_slope);
    add_gradients(all, "relu", relu_slope);

    // of an output of tanh
    all["tanh_vjp_from_output"] = elementwise<2, 1>(
        [](const auto& x) { return std::array{number{std::abs(x[0]) > 1 ? unknown : x[1] * (1 - x[0] * x[0])}}; },
        1.51, 1.51);
    all["box_muller"] = elementwise<2, 1>(
        [](const auto& x) {
            return std::array{number{x[0] < 0 || x[0] >= 1 ? unknown : reference::box_muller(x[0], x[1])}};
        },
        4.5, 4.5);

    const auto sum = [](wide x, wide f, wide scale) {
        return number{x + scale * f, std::abs(x) + std::abs(scale * f)};
    };
    all["residual_add"] =
        elementwise<2, 1>([=](const auto& x) { return std::array{sum(x[0], x[1], 0.25L)}; }, 0.5, 0.5);
    all["residual_add_jvp"] = all["residual_add"];
    all["residual_add, a scale for each channel"] =
        elementwise<3, 1>([=](const auto& x) { return std::array{sum(x[0], x[1], x[2])}; }, 0.5, 0.5);
    all["residual_add_vjp"] =
        elementwise<1, 2>([](const auto& x) { return std::array{number{x[0]}, number{x[0] / 4}}; }, 0.5, 0.5);
    all["residual_add_vjp of x and f, a scale for each channel"] =
        elementwise<2, 2>([](const auto& x) { return std::array{number{x[0]}, number{x[0] * x[1]}}; }, 0.5, 0.5);
    for (const char* const name : {"scale", "scale_vjp", "scale_jvp"}) {
        all[name] = unary([](wide x) { return number{3 * x}; }, 0.5, 0.5);
    }
    // of x, f and the scale: the sum is of fused multiply-adds, whose product is exact
    all["residual_add_vjp, a scale for each channel"] = elementwise<3, 3>(
        [](const auto& x) { return std::array{number{x[1]}, number{x[1] * x[2]}, number{x[1] * x[0]}}; }, 0.5, 0.5);
    all["residual_add_vjp, a scale for each channel, accumulated"] =
        all["residual_add_vjp, a scale for each channel"];
    for (auto& [name, o] : all) {
        if (name.starts_with("residual_add_vjp")) o.nan_stays = false;  // f does not matter to dx
    }
    // two roundings, half a unit each
    all["residual_add_jvp, a scale for each channel"] = of_terms(elementwise<5, 1>(
        [](const auto& x) {
            const auto [f, tx, tf, scale, tscale] = x;
            return std::array{
                number{tx + scale * tf + tscale * f, std::abs(tx) + std::abs(scale * tf) + std::abs(tscale * f)}};
        },
        1, 1));

    add_gated(all, "swiglu", {[](wide g) { return number{reference::silu(g)}; }, silu_slope, same, one, 2, 2});
    all["swiglu, precise"] = all["swiglu"];
    all["swiglu, precise"].bound = all["swiglu, precise"].bound_of_doubles = 1;
    all["swiglu, rounded before the product"] = swiglu_of_rounded_factors();
    add_gated(all, "geglu", {gelu, gelu_slope, same, one, 1, 1});
    add_gated(all, "geglu_tanh", {gelu_tanh, gelu_tanh_slope, same, one, 1, 1});
    add_gated(all, "reglu", {[](wide g) { return number{reference::relu(g)}; }, relu_slope, same, one, 2, 2});
    const auto sigmoid = [](wide g) { return number{reference::sigmoid(g)}; };
    add_gated(all, "sigmoid_gate", {same, one, sigmoid, sigmoid_slope, 2, 2});
    table gate_first;
    add_gated(gate_first, "sigmoid_gate", {sigmoid, sigmoid_slope, same, one, 2, 2});
    for (const auto& [name, o] : gate_first) all[name + ", packed"] = o;
    add_gated(all, "clamped_swiglu",
              {[](wide g) { return number{reference::silu(std::min<wide>(g, 1))}; },
               [](wide g) { return g <= 1 ? silu_slope(g) : number{0}; }, clamped_up, clamped_up_slope, 2, 2});
    add_gated(all, "swiglu_clamped_after",
              {[](wide g) { return number{std::min<wide>(reference::silu(g), 1)}; },
               [](wide g) {
                   return near_limit(g) ? number{unknown} : reference::silu(g) < 1 ? silu_slope(g) : number{0};
               },
               clamped_up, clamped_up_slope, 2, 2});
    add_gated(all, "gpt_oss_swiglu",
              {[](wide g) {
                   const wide x = std::min<wide>(g, 1);
                   return number{x * reference::sigmoid(1.75L * x)};
               },
               [](wide g) {
                   const wide u = 1.75L * g;
                   return g <= 1 ? number{reference::gated_slope(u, u), reference::sigmoid(u) * (1 + bounded(u))}
                                 : number{0};
               },
               [](wide u) { return number{std::clamp<wide>(u, -1, 1) + 1}; }, clamped_up_slope, 2, 2});
    const auto by_argument = [](wide y, wide x) { return number{y, std::abs(y) * (1 + bounded(x))}; };
    static const auto capped = by_argument;
    add_gated(all, "situ_glu",
              {[](wide g) { return capped(4 * std::tanh(g / 4) * reference::sigmoid(g), g); },
               [](wide g) {
                   const wide cap = reference::tanh_derivative(g / 4) * reference::sigmoid(g);
                   const wide gate = 4 * std::tanh(g / 4) * reference::sigmoid_derivative(g);
                   return number{cap + gate, (std::abs(cap) + std::abs(gate)) * (1 + bounded(g))};
               },
               [](wide u) { return capped(25 * std::tanh(u / 25), u); },
               [](wide u) { return capped(reference::tanh_derivative(u / 25), u); }, 1, 1, true});
    return all;
}

}  // namespace fuzz
