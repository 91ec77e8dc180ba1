#include "fuzz/oracle.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <map>
#include <utility>

#include "support/activations.hpp"
#include "support/precision.hpp"

namespace fuzz {
namespace {

using rows_in = std::vector<wide_row>;
using rows_out = std::vector<expected_row>;
using table = std::map<std::string, oracle>;

constexpr wide eps = 0x1p-20L;  // as in the table of operations
constexpr wide unknown = std::numeric_limits<wide>::quiet_NaN();

wide bounded(wide x) { return std::min<wide>(std::abs(x), 20000); }

// --- one element after the other -------------------------------------------------------------------------------

/// The value of an element, and what its terms are about.
struct number {
    wide value, terms = std::abs(value);
};

/// Outputs whose element j depends on element j of the inputs alone; the bound is relative to the result.
template <std::size_t In, std::size_t Out, class F>
oracle elementwise(F f, double bound_in_float, double bound_in_double)
{
    const auto row = [f](const rows_in& in, rows_out& out, bool) {
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
    return {row, bound_in_float, bound_in_double, false, true};
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
    for (const char* const of : {"_vjp", "_jvp"}) all[name + of] = elementwise<2, 1>(f, 8, 2);
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
        8, 2);
    auto jvp = elementwise<4, 1>(
        [f](const auto& x) {
            const auto [a, a_slope, b, b_slope] =
                std::array{f.a(x[0]), f.a_slope(x[0]), f.b(x[1]), f.b_slope(x[1])};
            return std::array{
                number{a_slope.value * b.value * x[2] + a.value * b_slope.value * x[3],
                       a_slope.terms * b.terms * std::abs(x[2]) + a.terms * b_slope.terms * std::abs(x[3])}};
        },
        8, 2);
    // the bound is that of the terms
    const auto of_terms = [](oracle& o) {
        o.row = [inner = std::move(o.row)](const rows_in& in, rows_out& out, bool in_double) {
            inner(in, out, in_double);
            for (auto& y : out) y.size = y.terms;
        };
    };
    of_terms(jvp);
    if (f.gradients_of_terms) of_terms(vjp);
    all[name + "_vjp"] = std::move(vjp);
    all[name + "_jvp"] = std::move(jvp);
}

number same(wide x) { return {x}; }
number one(wide) { return {1}; }
number clamped_up(wide u) { return {std::clamp<wide>(u, -1, 1)}; }
number clamped_up_slope(wide u) { return {std::abs(u) <= 1 ? wide(1) : wide(0)}; }
/// Between this and that the rounding of silu decides what passes.
bool near_limit(wide g) { return std::abs(reference::silu(g) - 1) < 1e-6L; }

table make_elementwise()
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
    all["gelu"] = unary(gelu, 4, 2);
    all["gelu_tanh"] = unary(gelu_tanh, 4, 2);
    all["silu_derivative"] = unary(silu_slope, 8, 2);
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
    for (const auto& [name, o] : all) {
        if (name.starts_with("residual_add_vjp")) all[name].nan_stays = false;  // f does not matter to dx
    }

    add_gated(all, "swiglu", {[](wide g) { return number{reference::silu(g)}; }, silu_slope, same, one, 2, 2});
    all["swiglu, precise"] = all["swiglu"];
    all["swiglu, precise"].bound = all["swiglu, precise"].bound_of_doubles = 1;
    add_gated(all, "geglu", {gelu, gelu_slope, same, one, 4, 2});
    add_gated(all, "geglu_tanh", {gelu_tanh, gelu_tanh_slope, same, one, 4, 2});
    add_gated(all, "reglu", {[](wide g) { return number{reference::relu(g)}; }, relu_slope, same, one, 2, 2});
    add_gated(all, "sigmoid_gate",
              {same, one, [](wide g) { return number{reference::sigmoid(g)}; }, sigmoid_slope, 2, 2});
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
               [](wide u) { return capped(reference::tanh_derivative(u / 25), u); }, 8, 2, true});
    return all;
}

// --- rows ------------------------------------------------------------------------------------------------------

wide least_normal(bool in_double) { return in_double ? 0x1p-1022L : 0x1p-126L; }

enum class weights { none, plain, zero_centered };

wide_row factors_of(const rows_in& in, std::size_t which, weights kind, std::size_t n)
{
    wide_row f(n, 1);
    if (kind == weights::none) return f;
    for (std::size_t j = 0; j < n; ++j) f[j] = in[which][j] + (kind == weights::zero_centered ? 1 : 0);
    return f;
}

/// x r f where x r is a normal number; what is lost of another is lost in units of the smallest.
void put_norm(expected_row& y, const wide_row& x, const wide_row& f, bool in_double)
{
    const auto xh = reference::normalized(x, eps);
    for (std::size_t j = 0; j < x.size(); ++j) {
        y.value[j] = xh[j] * f[j];
        y.size[j] = std::abs(xh[j]) >= least_normal(in_double) ? y.value[j] : unknown;
        y.terms[j] = y.value[j];
    }
}

// In float: four roundings of a sum of squares, of which a root takes half, and one each of r, x r, 1 + w and the product.
constexpr double of_any_row = 5.5;
// There one more sum is of float, whose terms have either sign.
constexpr double of_any_gradient = 9;

oracle norm(weights kind)
{
    return {[kind](const rows_in& in, rows_out& out, bool in_double) {
                put_norm(out[0], in[0], factors_of(in, 1, kind, in[0].size()), in_double);
            },
            of_any_row, 4.5, true};
}

/// r (a - xh mean(a xh)) f, whose error is in units of the largest term.
void put_jacobian(expected_row& y, const wide_row& a, const wide_row& x, const wide_row& f)
{
    const std::size_t n = x.size();
    const wide r = 1 / std::sqrt(reference::mean_square(x) + eps);
    const auto xh = reference::normalized(x, eps);
    const wide mean = reference::dot(a, xh) / static_cast<wide>(n);
    const wide mean_size = reference::dot_scale(a, xh) / static_cast<wide>(n);
    wide most = 0;
    for (std::size_t j = 0; j < n; ++j) {
        y.value[j] = r * (a[j] - xh[j] * mean) * f[j];
        most = std::max(most, r * (std::abs(a[j]) + std::abs(xh[j]) * mean_size) * std::abs(f[j]));
    }
    y.size = y.terms = wide_row(n, most);
}

oracle norm_vjp(weights kind)
{
    return {[kind](const rows_in& in, rows_out& out, bool) {
                wide_row a = factors_of(in, 1, kind, in[0].size());
                for (std::size_t j = 0; j < a.size(); ++j) a[j] *= in[2][j];
                put_jacobian(out[0], a, in[0], wide_row(a.size(), 1));
            },
            of_any_gradient, 4, true};
}
oracle norm_jvp(weights kind)
{
    return {[kind](const rows_in& in, rows_out& out, bool) {
                put_jacobian(out[0], in[2], in[0], factors_of(in, 1, kind, in[0].size()));
            },
            4, 4, true};
}

/// x minus its mean, whose rounding is taken off too.
wide_row centered(wide_row x)
{
    for (int pass = 0; pass < 2; ++pass) {
        reference::exact_sum sum;
        for (const wide e : x) sum.add(e);
        const wide mean = sum.value() / static_cast<wide>(x.size());
        for (wide& e : x) e -= mean;
    }
    return x;
}

oracle layer_norm(bool with_weights)
{
    return {[with_weights](const rows_in& in, rows_out& out, bool in_double) {
                const std::size_t n = in[0].size();
                const auto f = factors_of(in, 1, with_weights ? weights::plain : weights::none, n);
                const auto b = with_weights ? in[2] : wide_row(n, 0);
                const auto xh = reference::normalized(centered(in[0]), eps);
                for (std::size_t j = 0; j < n; ++j) {
                    out[0].value[j] = xh[j] * f[j] + b[j];
                    out[0].size[j] = out[0].terms[j] = std::abs(xh[j] * f[j]) + std::abs(f[j]) + std::abs(b[j]);
                    if (in_double) out[0].size[j] = unknown;  // long double has too few bits more
                }
            },
            256, 256, true};
}

table make_rows()
{
    table all;
    all["rms_norm without a weight"] = norm(weights::none);
    all["rms_norm"] = norm(weights::plain);
    all["rms_norm, zero-centred"] = norm(weights::zero_centered);
    all["rms_norm of the sum of squares"] = norm(weights::plain);
    all["rms_norm of the sum of squares"].bound_of_doubles = 0x1p40;  // of floats the squares are summed in float
    all["rms_norm_vjp of x"] = norm_vjp(weights::plain);
    all["rms_norm_vjp"] = norm_vjp(weights::plain);
    all["rms_norm_vjp of the sums"] = norm_vjp(weights::plain);
    all["rms_norm_vjp, accumulated"] = norm_vjp(weights::zero_centered);
    all["rms_norm_jvp"] = norm_jvp(weights::plain);
    all["rms_norm_jvp of the sums"] = norm_jvp(weights::zero_centered);
    all["layer_norm without a weight"] = layer_norm(false);
    all["layer_norm"] = layer_norm(true);

    // both gates, and x r f as a normal number too
    all["gated_rms_norm"] = {[](const rows_in& in, rows_out& out, bool in_double) {
                                 const auto& z = in[1];
                                 put_norm(out[0], in[0], in[2], in_double);
                                 for (std::size_t j = 0; j < z.size(); ++j) {
                                     const bool normal =
                                         std::abs(out[0].value[j]) >= least_normal(in_double)
                                         && std::abs(out[0].value[j]) < (in_double ? 0x1p1023L : 0x1p127L);
                                     out[0].value[j] *= reference::silu(z[j]);
                                     out[0].terms[j] = out[0].value[j];
                                     if (normal || in[2][j] == 0) {
                                         if (!std::isnan(out[0].size[j])) out[0].size[j] = out[0].value[j];
                                     } else {
                                         out[0].size[j] = unknown;
                                     }
                                 }
                             },
                             of_any_row + 3, 7.5};
    all["gated_rms_norm, gate first"] = {[](const rows_in& in, rows_out& out, bool) {
                                             wide_row u = in[0];
                                             for (std::size_t j = 0; j < u.size(); ++j)
                                                 u[j] *= reference::sigmoid(in[1][j]);
                                             put_norm(out[0], u, in[2], true);
                                         },
                                         0x1p22, 8};  // 0.01 ulp of float

    all["softmax"] = {[](const rows_in& in, rows_out& out, bool) {
                          if (in[0].empty()) return;
                          out[0].value = out[0].size = out[0].terms = reference::softmax(in[0]);
                      },
                      4, 4, true};
    all["softmax_vjp"] = {[](const rows_in& in, rows_out& out, bool) {
                              const auto& y = in[0];
                              const auto& a = in[1];
                              const wide sum = reference::dot(y, a);
                              wide most = reference::dot_scale(y, a);
                              for (const wide e : a) most = std::max(most, std::abs(e));
                              for (std::size_t j = 0; j < y.size(); ++j) {
                                  out[0].value[j] = y[j] * (a[j] - sum);
                                  out[0].size[j] = out[0].terms[j] = std::abs(y[j]) * most;
                              }
                          },
                          256, 4, true};
    all["softmax_jvp"] = all["softmax_vjp"];
    return all;
}

// --- streams: rows of a token lie one after the other, and there are two ---------------------------------------------

/// c x as a term of a sum.
void add_term(expected_row& y, std::size_t at, wide c, const wide_row& x, std::size_t from, std::size_t n)
{
    for (std::size_t j = 0; j < n; ++j) {
        y.value[at + j] += c * x[from + j];
        y.terms[at + j] += std::abs(c * x[from + j]);
        y.size[at + j] = y.terms[at + j];
    }
}

table make_streams()
{
    table all;
    all["mix_streams"] = {[](const rows_in& in, rows_out& out, bool) {
                              const std::size_t n = in[1].size() / 2;
                              for (std::size_t j = 0; j < 2; ++j) {
                                  for (std::size_t i = 0; i < 2; ++i)
                                      add_term(out[0], j * n, in[0][2 * j + i], in[1], i * n, n);
                              }
                          },
                          2, 2};
    all["mhc_read"] = {[](const rows_in& in, rows_out& out, bool) {
                           const std::size_t n = in[0].size() / 2;
                           for (std::size_t i = 0; i < 2; ++i) add_term(out[0], 0, in[1][i], in[0], i * n, n);
                       },
                       2, 2};
    all["mhc_write"] = {[](const rows_in& in, rows_out& out, bool) {
                            const std::size_t n = in[1].size();
                            for (std::size_t j = 0; j < 2; ++j) {
                                add_term(out[0], j * n, in[2][j], in[1], 0, n);
                                for (std::size_t i = 0; i < 2; ++i)
                                    add_term(out[0], j * n, in[3][2 * i + j], in[0], i * n, n);
                            }
                        },
                        2, 2};
    all["gated_read"] = {[](const rows_in& in, rows_out& out, bool) {
                             const std::size_t n = in[0].size() / 2;
                             for (std::size_t j = 0; j < n; ++j) {
                                 for (std::size_t c = 0; c < 2; ++c) {
                                     out[0].value[j] += in[0][c * n + j] * reference::sigmoid(in[1][c * n + j]) / 2;
                                     out[0].terms[j] += std::abs(in[0][c * n + j]) / 2;
                                 }
                             }
                             out[0].size = out[0].terms;
                         },
                         32, 4};
    // half a unit of y, and one of 2 sigmoid(m) f in float, two and a half in double
    all["gated_write"] = {[](const rows_in& in, rows_out& out, bool) {
                              const std::size_t n = in[1].size();
                              for (std::size_t c = 0; c < 2; ++c) {
                                  add_term(out[0], c * n, 1, in[0], c * n, n);
                                  add_term(out[0], c * n, 2 * reference::sigmoid(in[2][c]), in[1], 0, n);
                              }
                          },
                          1.5, 3};
    return all;
}

}  // namespace

const oracle* oracle_of(const std::string& operation)
{
    static const auto all = [] {
        table t = make_elementwise();
        t.merge(make_rows());
        t.merge(make_streams());
        return t;
    }();
    const auto found = all.find(operation);
    return found == all.end() ? nullptr : &found->second;
}

wide unit(operations::element type, wide any)
{
    const wide x = std::clamp<wide>(any, -0x1p1024L, 0x1p1024L);
    switch (type) {
        case operations::element::float64: return precision::unit<double>(x);
        case operations::element::float32: return precision::unit<float>(x);
        case operations::element::bfloat16: return precision::unit<residua::bfloat16>(x);
        case operations::element::float16: return precision::unit<residua::float16>(x);
    }
    return 0;
}

}  // namespace fuzz
