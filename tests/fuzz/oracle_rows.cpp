// Norms and softmax: outputs that depend on all of a row.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "fuzz/oracle_tables.hpp"
#include "support/activations.hpp"

namespace fuzz {
namespace {

wide_row times(wide_row x, const wide_row& f)
{
    for (std::size_t j = 0; j < x.size(); ++j) x[j] *= f[j];
    return x;
}
wide_row mapped(wide_row x, wide (*f)(wide))
{
    for (wide& e : x) e = f(e);
    return x;
}

enum class weights { none, plain, zero_centered };

wide_row factors(wide_row w, weights kind)
{
    if (kind == weights::zero_centered) {
        for (wide& e : w) e += 1;
    }
    return w;
}
/// Of a row whose weight, if there is one, is input 1.
wide_row factors_of(const rows_in& in, weights kind)
{
    return kind == weights::none ? wide_row(in[0].size(), 1) : factors(in[1], kind);
}

// --- RMSNorm ---------------------------------------------------------------------------------------------------

// In float: four roundings of a sum of squares, of which a root takes half, and one each of r, x r, 1 + w and the product.
constexpr double of_any_row = 5.5;
// There one more sum is of float, whose terms have either sign.
constexpr double of_any_gradient = 9;
// What a row adds to dw has no 1 + w and no product with it.
constexpr double of_any_xh = 4.5;

/// x r f where x r is a normal number; what is lost of another is lost in units of the smallest.
void put_norm(expected_row& y, const wide_row& x, const wide_row& f, const computation& how)
{
    const auto xh = reference::normalized(x, eps);
    for (std::size_t j = 0; j < x.size(); ++j) {
        y.value[j] = xh[j] * f[j];
        y.size[j] = is_normal(xh[j], how) ? y.value[j] : unknown;
        y.terms[j] = y.value[j];
    }
}

oracle norm(weights kind)
{
    return {[kind](const rows_in& in, rows_out& out, const computation& how) {
                put_norm(out[0], in[0], factors_of(in, kind), how);
            },
            of_any_row, 4.5};
}

/// Of a sum of squares that was taken in float, unless x is of doubles.
oracle norm_of_sum_of_squares()
{
    return {[](const rows_in& in, rows_out& out, const computation& how) {
                put_norm(out[0], in[0], in[1], how);
                if (!how.in_double || how.types[0] == element::float64) return;
                for (wide& size : out[0].size) size *= 0x1p29L;
            },
            of_any_row, of_any_row};
}

oracle norm_rounded_before_the_weight()
{
    return {[](const rows_in& in, rows_out& out, const computation& how) {
                auto& y = out[0];
                put_norm(y, in[0], in[1], how);
                const auto xh = reference::normalized(in[0], eps);
                for (std::size_t j = 0; j < xh.size(); ++j) {
                    const rounded_once normal{xh[j], of_any_xh, how.types[0], how};
                    if (!normal.is_exact || std::isnan(xh[j])) continue;
                    y.size[j] = y.terms[j] = normal.value * in[1][j] * normal.part_of_bound();
                    if (!std::isnan(normal.value)) y.value[j] = normal.value * in[1][j];
                }
            },
            of_any_row, 4.5};
}

wide inverse_root(const wide_row& x) { return 1 / std::sqrt(reference::mean_square(x) + eps); }

/// J a = r (a - xh mean(a xh)), J the Jacobian of x r.
wide_row jacobian(const wide_row& x, wide_row a)
{
    const wide r = inverse_root(x);
    const auto xh = reference::normalized(x, eps);
    const wide mean = reference::dot(a, xh) / static_cast<wide>(x.size());
    for (std::size_t j = 0; j < x.size(); ++j) a[j] = r * (a[j] - xh[j] * mean);
    return a;
}
/// Its largest term, max_j r (|a_j| + |xh_j| mean|a xh|).
wide largest_term(const wide_row& x, const wide_row& a)
{
    const auto xh = reference::normalized(x, eps);
    const wide mean = reference::dot_scale(a, xh) / static_cast<wide>(x.size());
    wide most = 0;
    for (std::size_t j = 0; j < x.size(); ++j) most = std::max(most, std::abs(a[j]) + std::abs(xh[j]) * mean);
    return inverse_root(x) * most;
}

/// What a row adds to dw, dy x r, where x r is a normal number.
void put_weight_gradient(expected_row& dw, const wide_row& dy, const wide_row& xh, const computation& how)
{
    for (std::size_t j = 0; j < xh.size(); ++j) {
        put(dw, j, dy[j] * xh[j], dy[j] * xh[j]);
        if (xh[j] != 0 && !is_normal(xh[j], how)) dw.size[j] = unknown;
    }
}

/// In double the kernel brings the largest of either factor near one: where those are apart, products may be lost.
bool products_remain(const wide_row& f, const wide_row& dy, const wide_row& a, const computation& how)
{
    const auto largest = [](const wide_row& x) {
        wide most = 0;
        for (const wide e : x) most = std::max(most, std::abs(e));
        return most;
    };
    return !how.of_doubles || largest(a) >= 0x1p-950L * largest(f) * largest(dy);
}

oracle norm_vjp(weights kind)
{
    return {.row =
                [kind](const rows_in& in, rows_out& out, const computation& how) {
                    const auto& x = in[0];
                    const auto f = factors_of(in, kind);
                    const auto a = times(in[2], f);
                    const auto dx = jacobian(x, a);
                    const wide size = products_remain(f, in[2], a, how) ? largest_term(x, a) : unknown;
                    for (std::size_t j = 0; j < x.size(); ++j) put(out[0], j, dx[j], size);
                    if (out.size() > 1) put_weight_gradient(out[1], in[2], reference::normalized(x, eps), how);
                },
            .bound = of_any_gradient,
            .bound_of_doubles = 4,
            .bound_of_sums = of_any_xh};
}
oracle norm_jvp(weights kind)
{
    return {[kind](const rows_in& in, rows_out& out, const computation&) {
                const auto f = factors_of(in, kind);
                const auto ty = jacobian(in[0], in[2]);
                const wide size = largest_term(in[0], in[2]);
                for (std::size_t j = 0; j < ty.size(); ++j) put(out[0], j, ty[j] * f[j], size * f[j]);
            },
            4, 4};
}

// --- RMSNorm of a residual sum: y, the residual --------------------------------------------------------------------

bool all_finite(const wide_row& x)
{
    return std::all_of(x.begin(), x.end(), [](wide e) { return !std::isinf(e); });
}

/// Of the sum that was stored, or of the sum as it is computed; `scale` is a power of two.
oracle add_norm(wide scale, weights kind, bool of_stored)
{
    return {[=](const rows_in& in, rows_out& out, const computation& how) {
                wide_row h(in[0].size());
                for (std::size_t j = 0; j < h.size(); ++j) {
                    const wide added = scale * in[1][j];
                    put(out[1], j, in[0][j] + added, std::abs(in[0][j]) + std::abs(added));
                    out[1].size[j] = out[1].value[j] * rounding_part;
                    h[j] = how.in_double ? wide(static_cast<double>(in[0][j]) + static_cast<double>(added))
                                         : wide(static_cast<float>(in[0][j]) + static_cast<float>(added));
                    if (of_stored) h[j] = out[1].got[j];
                }
                put_norm(out[0], h, factors(in[2], kind), how);
                if (!all_finite(h)) out[0].size = wide_row(h.size(), unknown);
            },
            of_any_row, 4.5};
}

/// dresidual, dx, dw of h, w, dresidual_out, dy. Half a unit more than what comes through the norm.
oracle add_norm_vjp(wide scale)
{
    return {.row =
                [=](const rows_in& in, rows_out& out, const computation& how) {
                    const auto& h = in[0];
                    const auto a = times(in[3], in[1]);
                    const auto through_norm = jacobian(h, a);
                    const bool remain = products_remain(in[1], in[3], a, how);
                    const wide most = largest_term(h, a);
                    for (std::size_t j = 0; j < h.size(); ++j) {
                        const wide sum = in[2][j] + through_norm[j];
                        const wide size = remain ? std::max(most, std::abs(sum)) : unknown;
                        put(out[0], j, sum, size);
                        put(out[1], j, scale * sum, scale * size);
                        out[0].terms[j] = out[1].terms[j] = std::abs(in[2][j]) + most;
                    }
                    if (out.size() > 2) put_weight_gradient(out[2], in[3], reference::normalized(h, eps), how);
                },
            .bound = 4.5,
            .bound_of_doubles = 4.5,
            .bound_of_sums = of_any_xh};
}

/// ty, tresidual of tresidual, h, w, tx; half a unit more, for the sum.
oracle add_norm_jvp(wide scale)
{
    return {[=](const rows_in& in, rows_out& out, const computation&) {
                wide_row th(in[0].size());
                for (std::size_t j = 0; j < th.size(); ++j) {
                    th[j] = in[0][j] + scale * in[3][j];
                    put(out[1], j, th[j], std::abs(in[0][j]) + std::abs(scale * in[3][j]));
                    out[1].size[j] = th[j] * rounding_part;
                }
                const auto ty = jacobian(in[1], th);
                const wide size = largest_term(in[1], th);
                for (std::size_t j = 0; j < th.size(); ++j) put(out[0], j, ty[j] * in[2][j], size * in[2][j]);
            },
            4.5, 4.5};
}

// --- gated RMSNorm -------------------------------------------------------------------------------------------------

struct gate {
    wide (*act)(wide);
    wide (*slope)(wide);
};
constexpr gate silu{reference::silu, reference::silu_derivative};
constexpr gate sigmoid{reference::sigmoid, reference::sigmoid_derivative};

/// Both gates, and x r f as a normal number too.
oracle gated_norm(gate g)
{
    return {[g](const rows_in& in, rows_out& out, const computation& how) {
                const auto& z = in[1];
                put_norm(out[0], in[0], in[2], how);
                for (std::size_t j = 0; j < z.size(); ++j) {
                    const wide norm = out[0].value[j];
                    const bool normal =
                        is_normal(norm, how) && std::abs(norm) < (how.in_double ? 0x1p1023L : 0x1p127L);
                    out[0].value[j] *= g.act(z[j]);
                    out[0].terms[j] = out[0].value[j];
                    if (normal || in[2][j] == 0) {
                        if (!std::isnan(out[0].size[j])) out[0].size[j] = out[0].value[j];
                    } else {
                        out[0].size[j] = unknown;
                    }
                }
            },
            of_any_row + 3, 7.5};
}
oracle norm_of_gated(gate g)
{
    return {[g](const rows_in& in, rows_out& out, const computation& how) {
                put_norm(out[0], times(in[0], mapped(in[1], g.act)), in[2], {true, how.of_doubles, {}});
            },
            0x1p22, 8};  // 0.01 ulp of float
}

// Of derivatives the bound is 8, and half a unit for the rounding of a result in double. Of doubles, products have to stay
// in range.
constexpr double of_gated_gradient = 8.5;

/// dx, dz, dw of x, z, w, dy
oracle gated_norm_vjp(gate g)
{
    return {.row =
                [g](const rows_in& in, rows_out& out, const computation& how) {
                    const auto& [x, z, w, dy] = std::tie(in[0], in[1], in[2], in[3]);
                    const auto of_norm = times(dy, mapped(z, g.act));
                    const auto a = times(of_norm, w);
                    const auto xh = reference::normalized(x, eps);
                    const auto dx = jacobian(x, a);
                    const bool in_range = have_all_bits(of_norm, how) && is_moderate(a, how);
                    const wide size = in_range ? largest_term(x, a) : unknown;
                    if (out.size() > 2) put_weight_gradient(out[2], of_norm, xh, how);
                    for (std::size_t j = 0; j < x.size(); ++j) {
                        const wide m = xh[j] * w[j];
                        put(out[0], j, dx[j], size);
                        put(out[1], j, dy[j] * m * g.slope(z[j]), dy[j] * m);
                        const bool exact = has_all_bits(xh[j], how) && has_all_bits(m, how);
                        if (!exact || !has_all_bits(dy[j] * m, how)) out[1].size[j] = unknown;
                        if (out.size() > 2 && !has_all_bits(of_norm[j], how)) out[2].size[j] = unknown;
                    }
                },
            .bound = of_gated_gradient,
            .bound_of_doubles = of_gated_gradient,
            .bound_of_sums = of_gated_gradient};
}
oracle norm_of_gated_vjp(gate g)
{
    return {.row =
                [g](const rows_in& in, rows_out& out, const computation& how) {
                    const auto& [x, z, w, dy] = std::tie(in[0], in[1], in[2], in[3]);
                    const auto act = mapped(z, g.act);
                    const auto u = times(x, act);
                    const auto a = times(dy, w);
                    const auto du = jacobian(u, a);
                    const wide most = largest_term(u, a);
                    const bool in_range = is_moderate(a, how) && is_moderate({most}, how);
                    const wide size = in_range ? most : unknown;
                    for (std::size_t j = 0; j < x.size(); ++j) {
                        put(out[0], j, du[j] * act[j], size * act[j]);
                        put(out[1], j, du[j] * x[j] * g.slope(z[j]), size * x[j]);
                    }
                    if (out.size() > 2) put_weight_gradient(out[2], dy, reference::normalized(u, eps), how);
                },
            .bound = of_gated_gradient,
            .bound_of_doubles = of_gated_gradient,
            .bound_of_sums = of_gated_gradient};
}

/// ty of x, z, w, tx, tz
oracle gated_norm_jvp(gate g)
{
    return {[g](const rows_in& in, rows_out& out, const computation& how) {
                const auto& [x, z, w, tx, tz] = std::tie(in[0], in[1], in[2], in[3], in[4]);
                const auto xh = reference::normalized(x, eps);
                const auto along = jacobian(x, tx);
                const wide size = is_moderate(tx, how) ? largest_term(x, tx) : unknown;
                for (std::size_t j = 0; j < x.size(); ++j) {
                    const wide m = xh[j] * w[j];
                    const wide act = g.act(z[j]);
                    put(out[0], j, along[j] * w[j] * act + m * g.slope(z[j]) * tz[j],
                        std::abs(size * w[j] * act) + std::abs(m * tz[j]));
                    const bool exact = has_all_bits(xh[j], how) && has_all_bits(m, how)
                                       && has_all_bits(m * tz[j], how) && has_all_bits(size * w[j], how);
                    if (!exact) out[0].size[j] = unknown;
                }
            },
            of_gated_gradient, of_gated_gradient};
}
oracle norm_of_gated_jvp(gate g)
{
    return {[g](const rows_in& in, rows_out& out, const computation& how) {
                const auto& [x, z, w, tx, tz] = std::tie(in[0], in[1], in[2], in[3], in[4]);
                const auto u = times(x, mapped(z, g.act));
                wide_row tu(x.size()), terms(x.size());
                for (std::size_t j = 0; j < x.size(); ++j) {
                    const wide from_x = tx[j] * g.act(z[j]);
                    tu[j] = from_x + x[j] * g.slope(z[j]) * tz[j];
                    terms[j] = std::abs(from_x) + std::abs(x[j] * tz[j]);
                }
                const auto ty = jacobian(u, tu);
                const wide size = is_moderate(terms, how) ? largest_term(u, terms) : unknown;
                for (std::size_t j = 0; j < x.size(); ++j) put(out[0], j, ty[j] * w[j], size * w[j]);
            },
            of_gated_gradient, of_gated_gradient};
}

// --- LayerNorm -----------------------------------------------------------------------------------------------------

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
    return {[with_weights](const rows_in& in, rows_out& out, const computation&) {
                const std::size_t n = in[0].size();
                const auto f = factors_of(in, with_weights ? weights::plain : weights::none);
                const auto b = with_weights ? in[2] : wide_row(n, 0);
                const auto xh = reference::normalized(centered(in[0]), eps);
                for (std::size_t j = 0; j < n; ++j) {
                    const wide y = xh[j] * f[j];
                    put(out[0], j, y + b[j], std::max({std::abs(y), std::abs(f[j]), std::abs(b[j])}));
                }
            },
            5, 5};
}

/// dx, dw, db of x, w, dy
oracle layer_norm_vjp()
{
    return {.row =
                [](const rows_in& in, rows_out& out, const computation& how) {
                    const auto x = centered(in[0]);
                    const auto& dy = in[2];
                    const auto a = times(dy, in[1]);
                    const auto dx = jacobian(x, centered(a));
                    const wide size = is_moderate(a, how) ? inverse_root(x) * largest(a) : unknown;
                    const auto xh = reference::normalized(x, eps);
                    for (std::size_t j = 0; j < x.size(); ++j) {
                        put(out[0], j, dx[j], size);
                        if (out.size() > 1)
                            put(out[1], j, dy[j] * xh[j], dy[j] * std::max(wide(1), std::abs(xh[j])));
                        if (out.size() > 2) put(out[2], j, dy[j], 0);
                    }
                },
            .bound = 8.5,
            .bound_of_doubles = 8.5,
            .bound_of_sums = 5};
}
oracle layer_norm_jvp()
{
    return {[](const rows_in& in, rows_out& out, const computation& how) {
                const auto x = centered(in[0]);
                const auto& tx = in[2];
                const auto ty = jacobian(x, centered(tx));
                const wide size = is_moderate(tx, how) ? inverse_root(x) * largest(tx) : unknown;
                for (std::size_t j = 0; j < x.size(); ++j) put(out[0], j, ty[j] * in[1][j], size * in[1][j]);
            },
            8.5, 8.5};
}

// --- along the weight, and with a rounding before it ---------------------------------------------------------------

/// A derivative along something more, which adds its share of a size to the first output.
struct share {
    wide_row value, size;
};
template <class F>
oracle and_along(oracle o, F more)
{
    o.row = [inner = std::move(o.row), more](const rows_in& in, rows_out& out, const computation& how) {
        inner(in, out, how);
        const share s = more(in, how);
        auto& y = out[0];
        for (std::size_t j = 0; j < y.value.size(); ++j) {
            // of doubles the sum must not leave the range before its last term
            const bool in_range = !(std::abs(y.value[j]) >= 0x1p1022L);
            y.size[j] = in_range ? std::abs(y.size[j]) + std::abs(s.size[j]) : unknown;
            y.value[j] += s.value[j];
            y.terms[j] = std::abs(y.terms[j]) + std::abs(s.value[j]);
        }
    };
    return o;
}
/// xh tw, where xh has all its bits.
share of_weight(const wide_row& xh, const wide_row& tw, const computation& how)
{
    share s{times(xh, tw), times(xh, tw)};
    for (std::size_t j = 0; j < xh.size(); ++j) {
        if (!has_all_bits(xh[j], how) || !has_all_bits(s.value[j], how)) s.size[j] = unknown;
    }
    return s;
}
/// The same of a row minus its mean, which is right to the last place of the row's size.
share of_weight_of_layer_norm(const rows_in& in)
{
    const auto xh = reference::normalized(centered(in[0]), eps);
    share s{times(xh, in[3]), in[3]};
    for (std::size_t j = 0; j < xh.size(); ++j) s.size[j] *= 1 + std::abs(xh[j]);
    return s;
}
/// Without a weight: ty of x, tx, tb.
oracle layer_norm_jvp_along_bias()
{
    oracle o = layer_norm_jvp();
    o.row = [inner = std::move(o.row)](const rows_in& in, rows_out& out, const computation& how) {
        inner({in[0], wide_row(in[0].size(), 1), in[1]}, out, how);
    };
    return and_along(std::move(o), [](const rows_in& in, const computation&) { return share{in[2], in[2]}; });
}

/// What is rounded to the type of x on the way is so within two of its roundings, as long as that is a normal number.
oracle gated_norm_rounded_before_the_weight(gate g, bool gate_first, weights kind)
{
    return {[=](const rows_in& in, rows_out& out, const computation& how) {
                const auto act = mapped(in[1], g.act);
                const auto f = factors(in[2], kind);
                const auto xh = reference::normalized(gate_first ? times(in[0], act) : in[0], eps);
                const element type = how.types[0];
                const bool of_16_bits = operations::size_of(type) == 2;
                const bool of_half = type == element::float16;
                const wide least = of_half ? 0x1p-14L : 0x1p-126L;
                const wide most = of_half ? 0x1p15L : 0x1p127L;
                const bool in_double = gate_first || how.in_double;
                const wide coarse =
                    (of_16_bits ? 0x1p13L : 1)
                    * (in_double && type != element::float64 ? (of_16_bits ? 0x1p29L : 0x1p28L) : 1);
                for (std::size_t j = 0; j < xh.size(); ++j) {
                    const wide m = xh[j] * f[j];
                    const wide y = gate_first ? m : m * act[j];
                    put(out[0], j, y, y * coarse);
                    bool said = true;
                    for (const wide e : {xh[j], m}) {
                        said = said && (e == 0 || (std::abs(e) >= 2 * least && std::abs(e) < most / 2));
                    }
                    if (!said || !has_all_bits(y, how)) out[0].size[j] = unknown;
                }
            },
            of_any_row + 3, of_any_row + 3};
}

}  // namespace

table oracles_of_rows()
{
    table all;
    all["rms_norm without a weight"] = norm(weights::none);
    all["rms_norm"] = norm(weights::plain);
    all["rms_norm, zero-centred"] = norm(weights::zero_centered);
    all["rms_norm, rounded before the weight"] = norm_rounded_before_the_weight();
    all["rms_norm of the sum of squares"] = norm_of_sum_of_squares();
    all["rms_norm_vjp of x"] = norm_vjp(weights::plain);
    all["rms_norm_vjp"] = norm_vjp(weights::plain);
    all["rms_norm_vjp of the sums"] = norm_vjp(weights::plain);
    all["rms_norm_vjp, accumulated"] = norm_vjp(weights::zero_centered);
    all["rms_norm_jvp"] = norm_jvp(weights::plain);
    all["rms_norm_jvp of the sums"] = norm_jvp(weights::zero_centered);

    all["add_rms_norm of the stored sum"] = add_norm(0.25L, weights::plain, true);
    all["add_rms_norm of the exact sum"] = add_norm(1, weights::zero_centered, false);
    all["add_rms_norm_vjp of the residual and x"] = add_norm_vjp(0.25L);
    all["add_rms_norm_vjp"] = add_norm_vjp(0.25L);
    all["add_rms_norm_vjp, accumulated"] = add_norm_vjp(1);
    all["add_rms_norm_jvp"] = add_norm_jvp(0.25L);

    all["gated_rms_norm"] = gated_norm(silu);
    all["gated_rms_norm, gate first"] = norm_of_gated(sigmoid);
    for (const char* const which : {" of x and z", "", ", accumulated"}) {
        all[std::string("gated_rms_norm_vjp") + which] = gated_norm_vjp(silu);
        all[std::string("gated_rms_norm_vjp") + which + ", gate first"] = norm_of_gated_vjp(sigmoid);
    }
    all["gated_rms_norm_jvp"] = gated_norm_jvp(silu);
    all["gated_rms_norm_jvp, gate first"] = norm_of_gated_jvp(sigmoid);

    all["layer_norm without a weight"] = layer_norm(false);
    all["layer_norm"] = layer_norm(true);
    for (const char* const which : {" of x", " of x and the weight", "", ", accumulated"}) {
        all[std::string("layer_norm_vjp") + which] = layer_norm_vjp();
    }
    all["layer_norm_jvp"] = layer_norm_jvp();

    const auto along_weight_of_x = [](const rows_in& in, const computation& how) {
        return of_weight(reference::normalized(in[0], eps), in[3], how);
    };
    all["rms_norm_jvp along the weight"] = and_along(norm_jvp(weights::plain), along_weight_of_x);
    all["rms_norm_jvp of the sums, along the weight"] =
        and_along(norm_jvp(weights::zero_centered), along_weight_of_x);
    all["add_rms_norm_jvp along the weight"] =
        and_along(add_norm_jvp(0.25L), [](const rows_in& in, const computation& how) {
            return of_weight(reference::normalized(in[1], eps), in[4], how);
        });
    all["gated_rms_norm_jvp along the weight"] =
        and_along(gated_norm_jvp(silu), [](const rows_in& in, const computation& how) {
            share s = of_weight(reference::normalized(in[0], eps), in[5], how);
            s.value = times(s.value, mapped(in[1], silu.act));
            s.size = times(s.size, mapped(in[1], silu.act));
            return s;
        });
    all["gated_rms_norm_jvp along the weight, gate first"] =
        and_along(norm_of_gated_jvp(sigmoid), [](const rows_in& in, const computation& how) {
            return of_weight(reference::normalized(times(in[0], mapped(in[1], sigmoid.act)), eps), in[5], how);
        });
    all["layer_norm_jvp along the weight"] = and_along(
        layer_norm_jvp(), [](const rows_in& in, const computation&) { return of_weight_of_layer_norm(in); });
    all["layer_norm_jvp along the weight and the bias"] =
        and_along(all["layer_norm_jvp along the weight"],
                  [](const rows_in& in, const computation&) { return share{in[4], in[4]}; });
    all["layer_norm_jvp along the bias"] = layer_norm_jvp_along_bias();
    all["gated_rms_norm, rounded before the weight"] =
        gated_norm_rounded_before_the_weight(silu, false, weights::plain);
    all["gated_rms_norm, gate first, rounded before the weight"] =
        gated_norm_rounded_before_the_weight(silu, true, weights::zero_centered);

    all["softmax"] = {[](const rows_in& in, rows_out& out, const computation&) {
                          if (in[0].empty()) return;
                          out[0].value = out[0].size = out[0].terms = reference::softmax(in[0]);
                      },
                      4, 4};
    all["softmax_vjp"] = {[](const rows_in& in, rows_out& out, const computation&) {
                              const auto& y = in[0];
                              const auto& a = in[1];
                              const wide sum = reference::dot(y, a);
                              const wide size = reference::dot_scale(y, a);
                              // products with what is no softmax may leave the range of double
                              const wide of_y = largest(y);
                              const bool in_range = of_y <= 1 || (of_y < 0x1p60L && size < 0x1p1000L);
                              const wide most = in_range ? std::max(size, largest(a)) : unknown;
                              for (std::size_t j = 0; j < y.size(); ++j) {
                                  put(out[0], j, y[j] * (a[j] - sum), y[j] * most);
                              }
                          },
                          256, 4};
    all["softmax_jvp"] = all["softmax_vjp"];
    return all;
}

}  // namespace fuzz
