// Residual streams: the rows of a token lie one after the other, and there are two of them; of AttnRes there are three keys.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "fuzz/oracle_tables.hpp"
#include "support/activations.hpp"

namespace fuzz {
namespace {

constexpr std::size_t streams = 2;

/// Row i of a token.
wide_row row_of(const wide_row& rows, std::size_t i, std::size_t count = streams)
{
    const auto n = static_cast<std::ptrdiff_t>(rows.size() / count);
    const auto first = rows.begin() + static_cast<std::ptrdiff_t>(i) * n;
    return {first, first + n};
}

/// c x as a term of a sum, in row i of y.
void add_term(expected_row& y, std::size_t i, wide c, const wide_row& x)
{
    for (std::size_t k = 0, at = i * x.size(); k < x.size(); ++k, ++at) {
        y.value[at] += c * x[k];
        y.terms[at] += std::abs(c * x[k]);
        y.size[at] = y.terms[at];
    }
}
/// Element i of y is c <a, b>.
void put_product(expected_row& y, std::size_t i, const wide_row& a, const wide_row& b, wide c = 1)
{
    put(y, i, c * reference::dot(a, b), c * reference::dot_scale(a, b));
}

/// Where the bound is that of a sum along a row, and y has a smaller one: so many units, or up to twice as many, since
/// those of a smaller size are no smaller part of it.
void narrow(expected_row& y, double units, double bound)
{
    for (wide& size : y.size) size *= wide(2 * units / bound);
}

// --- mixes: the error is one of at most so many fused multiply-adds, half a unit each --------------------------------

/// y_j = sum_i c(j, i) x_i
void add_mix(expected_row& y, const wide_row& c, const wide_row& x)
{
    for (std::size_t j = 0; j < streams; ++j) {
        for (std::size_t i = 0; i < streams; ++i) add_term(y, j, c[streams * j + i], row_of(x, i));
    }
}
/// y_j = post_j f + sum_i comb(i, j) x_i
void add_write(expected_row& y, const wide_row& x, const wide_row& f, const wide_row& post, const wide_row& comb)
{
    for (std::size_t j = 0; j < streams; ++j) {
        add_term(y, j, post[j], f);
        for (std::size_t i = 0; i < streams; ++i) add_term(y, j, comb[streams * i + j], row_of(x, i));
    }
}
void add_read(expected_row& y, const wide_row& x, const wide_row& pre)
{
    for (std::size_t i = 0; i < streams; ++i) add_term(y, 0, pre[i], row_of(x, i));
}

void add_mixes(table& all)
{
    all["mix_streams"] = {
        [](const rows_in& in, rows_out& out, const computation&) { add_mix(out[0], in[0], in[1]); }, 2, 2};
    // dx, dc of c, x, dy
    all["mix_streams_vjp"] = {[](const rows_in& in, rows_out& out, const computation&) {
                                  for (std::size_t j = 0; j < streams; ++j) {
                                      const auto dy = row_of(in[2], j);
                                      for (std::size_t i = 0; i < streams; ++i) {
                                          add_term(out[0], i, in[0][streams * j + i], dy);
                                          put_product(out[1], streams * j + i, dy, row_of(in[1], i));
                                      }
                                  }
                                  narrow(out[0], 1, sum_roundings);
                              },
                              sum_roundings, sum_roundings};
    // ty of c, x, tc, tx
    all["mix_streams_jvp"] = {[](const rows_in& in, rows_out& out, const computation&) {
                                  add_mix(out[0], in[0], in[3]);
                                  add_mix(out[0], in[2], in[1]);
                              },
                              2, 2};
    all["mhc_read"] = {[](const rows_in& in, rows_out& out, const computation&) { add_read(out[0], in[0], in[1]); },
                       2, 2};
    // dx, dpre of x, pre, dy
    all["mhc_read_vjp"] = {[](const rows_in& in, rows_out& out, const computation&) {
                               for (std::size_t i = 0; i < streams; ++i) {
                                   add_term(out[0], i, in[1][i], in[2]);
                                   put_product(out[1], i, in[2], row_of(in[0], i));
                               }
                               narrow(out[0], 0.5, sum_roundings);
                           },
                           sum_roundings, sum_roundings};
    // ty of x, pre, tx, tpre
    all["mhc_read_jvp"] = {[](const rows_in& in, rows_out& out, const computation&) {
                               add_read(out[0], in[2], in[1]);
                               add_read(out[0], in[0], in[3]);
                           },
                           2, 2};
    all["mhc_write"] = {
        [](const rows_in& in, rows_out& out, const computation&) { add_write(out[0], in[0], in[1], in[2], in[3]); },
        2, 2};
    // dx, df, dpost, dcomb of x, f, post, comb, dy
    all["mhc_write_vjp"] = {[](const rows_in& in, rows_out& out, const computation&) {
                                for (std::size_t j = 0; j < streams; ++j) {
                                    const auto dy = row_of(in[4], j);
                                    add_term(out[1], 0, in[2][j], dy);
                                    put_product(out[2], j, dy, in[1]);
                                    for (std::size_t i = 0; i < streams; ++i) {
                                        add_term(out[0], i, in[3][streams * i + j], dy);
                                        put_product(out[3], streams * i + j, dy, row_of(in[0], i));
                                    }
                                }
                                for (std::size_t o = 0; o < 2; ++o) narrow(out[o], 1, sum_roundings);
                            },
                            sum_roundings, sum_roundings};
    // ty of x, f, post, comb, tx, tf, tpost, tcomb
    all["mhc_write_jvp"] = {[](const rows_in& in, rows_out& out, const computation&) {
                                add_write(out[0], in[4], in[5], in[2], in[3]);
                                add_write(out[0], in[0], in[1], in[6], in[7]);
                            },
                            3, 3};
}

// --- mHC's coefficients ----------------------------------------------------------------------------------------------

constexpr std::size_t mhc_numbers = streams * (2 + streams);
std::size_t part_of(std::size_t k) { return std::min<std::size_t>(k / streams, 2); }

/// A number and its derivative along a direction.
struct dual {
    wide value, along = 0;

    friend dual operator+(dual a, dual b) { return {a.value + b.value, a.along + b.along}; }
    friend dual operator-(dual a, dual b) { return {a.value - b.value, a.along - b.along}; }
    friend dual operator*(dual a, dual b) { return {a.value * b.value, a.along * b.value + a.value * b.along}; }
    friend dual operator/(dual a, dual b)
    {
        return {a.value / b.value, (a.along - a.value * (b.along / b.value)) / b.value};
    }
    friend bool operator<(dual a, dual b) { return a.value < b.value; }
    friend dual exp(dual x) { return {std::exp(x.value), std::exp(x.value) * x.along}; }
    friend dual sigmoid(dual x)
    {
        return {reference::sigmoid(x.value), reference::sigmoid_derivative(x.value) * x.along};
    }
};

/// z = a m + b, one rounding each.
wide_row mhc_logits(const wide_row& m, const wide_row& a, const wide_row& b)
{
    wide_row z(mhc_numbers);
    for (std::size_t k = 0; k < z.size(); ++k) z[k] = std::fma(a[part_of(k)], m[k], b[k]);
    return z;
}
/// The largest |z| of the softmax. Its rounding in double makes what the softmax says of two numbers wrong by 2 |z| halves of
/// a unit, and comb by as many: of a matrix whose rows and columns sum to one it is a root of two of them.
wide largest_logit(const wide_row& z)
{
    wide most = 0;
    for (std::size_t k = 2 * streams; k < z.size(); ++k) most = std::max(most, std::abs(z[k]));
    return most;
}

/// pre, post, comb of the token's z, one after the other: along a direction.
std::vector<dual> mhc_along(const wide_row& z, const wide_row& tz)
{
    std::vector<dual> x;
    for (std::size_t k = 0; k < z.size(); ++k) x.push_back({z[k], tz[k]});
    return reference::mhc_coefficients(x, streams, dual{eps}, 20);
}

/// Where logits, or sums of what comes through the normalisations, may leave the range of double, nothing is said.
bool in_range(const wide_row& z, wide most = 1) { return largest(z) < 0x1p1000L && most < 0x1p900L; }

// Half a unit and 2^-40 of the largest gradient; where |z| is more than 4096, its rounding is more than that.
constexpr double of_mhc_gradient = 0x1p13;
wide times_rounding_of(const wide_row& z) { return std::max<wide>(1, largest_logit(z) / 4096); }

void add_mhc(table& all)
{
    // pre, post, comb of m, a, b
    all["mhc_coefficients"] = {[](const rows_in& in, rows_out& out, const computation&) {
                                   const auto z = mhc_logits(in[0], in[1], in[2]);
                                   const auto exact = mhc_along(z, wide_row(z.size()));
                                   for (std::size_t k = 0, o = 0, j = 0; k < z.size(); ++k, ++j) {
                                       if (j == out[o].value.size()) ++o, j = 0;
                                       const wide most = o < 2 ? std::abs(z[k]) : 2 * largest_logit(z);
                                       const wide y = exact[k].value;
                                       put(out[o], j, y, y * (20 + most));
                                       // beyond, what is wrong is no small part
                                       if (!in_range(z) || most > 0x1p45L) out[o].size[j] = unknown;
                                   }
                               },
                               1, 1};
    // dm, da, db of m, a, b, dpre, dpost, dcomb; da and db are summed in double
    all["mhc_coefficients_vjp"] = {
        .row =
            [](const rows_in& in, rows_out& out, const computation&) {
                const auto& [m, a] = std::tie(in[0], in[1]);
                const auto z = mhc_logits(m, a, in[2]);
                wide_row dy = in[3];
                for (std::size_t part = 1; part < 3; ++part)
                    dy.insert(dy.end(), in[3 + part].begin(), in[3 + part].end());
                for (std::size_t k = 0; k < mhc_numbers; ++k) {
                    wide_row direction(mhc_numbers);
                    direction[k] = 1;
                    const auto along = mhc_along(z, direction);
                    const std::size_t part = part_of(k);
                    wide dz = 0;
                    for (std::size_t i = part < 2 ? k : 2 * streams; i < (part < 2 ? k + 1 : mhc_numbers); ++i)
                        dz += dy[i] * along[i].along;
                    const wide most = largest(in[3 + part]) * (part == 2 ? times_rounding_of(z) : 1);
                    const wide size = in_range(z, most) ? most : unknown;
                    put(out[0], k, a[part] * dz, a[part] * size);
                    put(out[2], k, dz, size);
                    out[1].value[part] += m[k] * dz;
                    out[1].size[part] += std::abs(m[k] * size);
                    out[1].terms[part] = out[1].size[part];
                }
            },
        .bound = of_mhc_gradient,
        .bound_of_doubles = of_mhc_gradient,
        .bound_of_sums = of_mhc_gradient,
        .sums_in_double = true};
    // tpre, tpost, tcomb of m, a, b, tm, ta, tb
    all["mhc_coefficients_jvp"] = {
        [](const rows_in& in, rows_out& out, const computation&) {
            const auto z = mhc_logits(in[0], in[1], in[2]);
            wide_row tz(mhc_numbers);
            wide most = 0;
            for (std::size_t k = 0; k < mhc_numbers; ++k) {
                const wide terms[] = {in[1][part_of(k)] * in[3][k], in[4][part_of(k)] * in[0][k], in[5][k]};
                for (const wide term : terms) tz[k] += term;
                const wide size = std::abs(terms[0]) + std::abs(terms[1]) + std::abs(terms[2]);
                if (k < 2 * streams) out[part_of(k)].size[k % streams] = size;
                if (k >= 2 * streams) most = std::max(most, size);
            }
            out[2].size = wide_row(streams * streams, most * times_rounding_of(z));
            const auto exact = mhc_along(z, tz);
            for (std::size_t k = 0, o = 0, j = 0; k < z.size(); ++k, ++j) {
                if (j == out[o].value.size()) ++o, j = 0;
                put(out[o], j, exact[k].along, in_range(z, out[o].size[j]) ? out[o].size[j] : unknown);
            }
        },
        of_mhc_gradient, of_mhc_gradient};
}

// --- Gated Residual --------------------------------------------------------------------------------------------------

// In halves of a unit, which are at most so many units: a gate has two units, as sigmoid; its slope e / (1 + e)^2 those of
// e^x, three of the square and one of the quotient.
constexpr double of_gate = 4;
constexpr double of_slope = 8;
constexpr double of_gates_gradient = of_slope + sum_roundings + 1;

void add_gates(table& all)
{
    all["gated_read"] = {[](const rows_in& in, rows_out& out, const computation&) {
                             for (std::size_t k = 0, n = out[0].value.size(); k < in[0].size(); ++k) {
                                 out[0].value[k % n] += in[0][k] * reference::sigmoid(in[1][k]) / streams;
                                 out[0].terms[k % n] += std::abs(in[0][k]) / streams;
                             }
                             out[0].size = out[0].terms;
                         },
                         32, 4};
    // dn, dg of n, g, dy
    all["gated_read_vjp"] = {[](const rows_in& in, rows_out& out, const computation& how) {
                                 const auto& [n, g, dy] = std::tie(in[0], in[1], in[2]);
                                 for (std::size_t k = 0; k < n.size(); ++k) {
                                     const wide share = dy[k % dy.size()] / streams;
                                     const wide to_n = share * reference::sigmoid(g[k]);
                                     const wide to_g = share * n[k] * reference::sigmoid_derivative(g[k]);
                                     const bool exact = has_all_bits(share, how);
                                     put(out[0], k, to_n, exact ? to_n : unknown);
                                     put(out[1], k, to_g, exact ? to_g : unknown);
                                 }
                                 narrow(out[0], of_gate, of_slope + 2);
                             },
                             of_slope + 2, of_slope + 2};
    // ty of n, g, tn, tg
    all["gated_read_jvp"] = {[](const rows_in& in, rows_out& out, const computation&) {
                                 for (std::size_t k = 0, n = out[0].value.size(); k < in[0].size(); ++k) {
                                     const wide of_n = in[2][k] * reference::sigmoid(in[1][k]) / streams;
                                     const wide of_g =
                                         in[3][k] * in[0][k] / streams * reference::sigmoid_derivative(in[1][k]);
                                     out[0].value[k % n] += of_n + of_g;
                                     out[0].terms[k % n] += std::abs(of_n) + std::abs(of_g);
                                 }
                                 out[0].size = out[0].terms;
                             },
                             of_slope + 4, of_slope + 4};
    // half a unit of y, and one of 2 sigmoid(m) f in float, two and a half in double
    all["gated_write"] = {[](const rows_in& in, rows_out& out, const computation& how) {
                              for (std::size_t c = 0; c < streams; ++c) {
                                  add_term(out[0], c, 1, row_of(in[0], c));
                                  add_term(out[0], c, 2 * reference::sigmoid(in[2][c]), in[1]);
                                  // the gate is a normal number
                                  if (how.of_doubles && in[2][c] < -700)
                                      out[0].size = wide_row(out[0].size.size(), unknown);
                              }
                          },
                          1.5, 3};
    // dx, df, dm of f, m, dy
    all["gated_write_vjp"] = {[](const rows_in& in, rows_out& out, const computation& how) {
                                  for (std::size_t c = 0; c < streams; ++c) {
                                      const auto dy = row_of(in[2], c);
                                      const wide gate = 2 * reference::sigmoid(in[1][c]);
                                      const wide slope = 2 * reference::sigmoid_derivative(in[1][c]);
                                      add_term(out[0], c, 1, dy);
                                      add_term(out[1], 0, gate, dy);
                                      put_product(out[2], c, dy, in[0], slope);
                                      const wide product = reference::dot_scale(dy, in[0]);
                                      if (!has_all_bits(slope, how) || !has_all_bits(product, how))
                                          out[2].size[c] = unknown;
                                  }
                                  narrow(out[0], 0, of_gates_gradient);
                                  narrow(out[1], of_gate + 2, of_gates_gradient);
                                  const bool exact = std::all_of(in[1].begin(), in[1].end(), [&](wide m) {
                                      return has_all_bits(2 * reference::sigmoid(m), how);
                                  });
                                  if (!exact) out[1].size = wide_row(in[0].size(), unknown);
                              },
                              of_gates_gradient, of_gates_gradient};
    // ty of f, m, tx, tf, tm
    all["gated_write_jvp"] = {[](const rows_in& in, rows_out& out, const computation& how) {
                                  for (std::size_t c = 0; c < streams; ++c) {
                                      const wide gate = 2 * reference::sigmoid(in[1][c]);
                                      const wide slope = 2 * reference::sigmoid_derivative(in[1][c]);
                                      add_term(out[0], c, 1, row_of(in[2], c));
                                      add_term(out[0], c, gate, in[3]);
                                      add_term(out[0], c, slope * in[4][c], in[0]);
                                      const bool exact = has_all_bits(gate, how) && has_all_bits(slope, how)
                                                         && has_all_bits(slope * in[4][c], how);
                                      for (std::size_t k = 0; !exact && k < in[0].size(); ++k)
                                          out[0].size[c * in[0].size() + k] = unknown;
                                  }
                              },
                              of_slope + 4, of_slope + 4};
}

// --- AttnRes -----------------------------------------------------------------------------------------------------------

constexpr std::size_t keys = 3;

/// A number and the sum of the sizes of what it was made of.
struct sized {
    wide value, size;
};
sized dot(const wide_row& x, const wide_row& y) { return {reference::dot(x, y), reference::dot_scale(x, y)}; }

/// What belongs to a key.
struct attn_key {
    wide_row k, normal;
    wide r;
    sized score;  // of q with the normalised key

    attn_key(const wide_row& all, std::size_t i, const wide_row& q)
        : k{row_of(all, i, keys)},
          normal{reference::normalized(k, eps)},
          r{1 / std::sqrt(reference::mean_square(k) + eps)},
          score{dot(q, normal)}
    {
    }
};
std::vector<attn_key> attn_keys(const wide_row& k, const wide_row& q)
{
    std::vector<attn_key> all;
    for (std::size_t i = 0; i < keys; ++i) all.emplace_back(k, i, q);
    return all;
}

/// The Jacobian of a softmax whose p is known: p_i (a_i - sum_l p_l a_l).
std::vector<sized> through_softmax(const wide_row& p, std::vector<sized> a)
{
    sized mean{};
    for (std::size_t i = 0; i < keys; ++i) {
        mean.value += p[i] * a[i].value;
        mean.size += std::abs(p[i]) * a[i].size;
    }
    for (std::size_t i = 0; i < keys; ++i) {
        a[i] = {p[i] * (a[i].value - mean.value), std::abs(p[i]) * (a[i].size + mean.size)};
    }
    return a;
}

void add_sized(expected_row& y, std::size_t i, sized c, const wide_row& x)
{
    for (std::size_t k = 0, at = i * x.size(); k < x.size(); ++k, ++at) {
        y.value[at] += c.value * x[k];
        y.terms[at] += c.size * std::abs(x[k]);
        y.size[at] = y.terms[at];
    }
}

bool all_moderate(const rows_in& in, const computation& how)
{
    return std::all_of(in.begin(), in.end(), [&](const wide_row& x) { return is_moderate(x, how); });
}
void say_nothing(rows_out& out)
{
    for (auto& y : out) y.size = wide_row(y.size.size(), unknown);
}

// Two sums along a row in each factor (<dh, k> or <q, tk>, and a score), a root of a third, and a dozen roundings more.
constexpr double of_attn_gradient = 3.5 * sum_roundings + 12;

void add_attention(table& all)
{
    // h, p of k, q: a score is wrong by as many roundings of sum |q xh| as a sum and a root have, p by twice that
    all["attn_res"] = {[](const rows_in& in, rows_out& out, const computation& how) {
                           if (in[1].empty()) return say_nothing(out);
                           wide_row scores;
                           wide most = 0;
                           for (const auto& key : attn_keys(in[0], in[1])) {
                               scores.push_back(key.score.value);
                               most = std::max(most, key.score.size);
                           }
                           const auto p = reference::softmax(scores);
                           const wide off = 3 * wide(sum_roundings) * most;
                           for (std::size_t i = 0; i < keys; ++i) {
                               put(out[1], i, p[i], p[i] * (8 + off));
                               add_term(out[0], 0, out[1].got[i], row_of(in[0], i, keys));
                           }
                           if (!all_moderate(in, how)) return say_nothing(out);
                           // beyond, what is wrong is no small part
                           if (!(off < 0x1p45L)) out[1].size = wide_row(keys, unknown);
                       },
                       2, 2};
    // dk, dq of k, q, p, dh
    all["attn_res_vjp"] = {
        .row =
            [](const rows_in& in, rows_out& out, const computation& how) {
                const auto& [k, q, p, dh] = std::tie(in[0], in[1], in[2], in[3]);
                if (q.empty()) return;
                const auto n = static_cast<wide>(q.size());
                const auto all_keys = attn_keys(k, q);
                std::vector<sized> products;
                for (const auto& key : all_keys) products.push_back(dot(dh, key.k));
                const auto ds = through_softmax(p, products);
                for (std::size_t i = 0; i < keys; ++i) {
                    const auto& key = all_keys[i];
                    const sized of_q{ds[i].value * key.r, ds[i].size * key.r};
                    add_term(out[0], i, p[i], dh);
                    add_sized(out[0], i, of_q, q);
                    add_sized(out[0], i, {-of_q.value * key.score.value / n, of_q.size * key.score.size / n},
                              key.normal);
                    add_sized(out[1], 0, ds[i], key.normal);
                }
                if (!all_moderate(in, how)) say_nothing(out);
            },
        .bound = of_attn_gradient,
        .bound_of_doubles = of_attn_gradient,
        .bound_of_sums = of_attn_gradient};
    // th of k, q, p, tk, tq
    all["attn_res_jvp"] = {[](const rows_in& in, rows_out& out, const computation& how) {
                               const auto& [k, q, p, tk, tq] = std::tie(in[0], in[1], in[2], in[3], in[4]);
                               if (q.empty()) return;
                               const auto n = static_cast<wide>(q.size());
                               std::vector<sized> ts;
                               for (std::size_t i = 0; i < keys; ++i) {
                                   const attn_key key{k, i, q};
                                   const auto along = row_of(tk, i, keys);
                                   const sized of_q = dot(tq, key.normal), of_k = dot(q, along),
                                               of_r = dot(key.normal, along);
                                   const wide c = key.score.value / n;
                                   ts.push_back({of_q.value + key.r * (of_k.value - c * of_r.value),
                                                 of_q.size + key.r * (of_k.size + key.score.size / n * of_r.size)});
                                   add_term(out[0], 0, p[i], along);
                               }
                               const auto tp = through_softmax(p, ts);
                               for (std::size_t i = 0; i < keys; ++i)
                                   add_sized(out[0], 0, tp[i], row_of(k, i, keys));
                               if (!all_moderate(in, how)) say_nothing(out);
                           },
                           of_attn_gradient, of_attn_gradient};
}

}  // namespace

table oracles_of_streams()
{
    table all;
    add_mixes(all);
    add_mhc(all);
    add_gates(all);
    add_attention(all);
    return all;
}

}  // namespace fuzz
