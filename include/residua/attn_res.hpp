/// \file
/// AttnRes: in the place of a residual stream, attention over the outputs of all sublayers before.
///
/// Derivatives (`_vjp`, `_jvp`) are computed in double for every type and rounded once. Of data in double, a product or
/// a partial sum must stay in its range.
/// Errors: shapes that do not fit, outputs that overlap each other, or an input other than one that they may be
/// exactly: RESIDUA_ASSERT. Nothing allocates or throws. NaN in, NaN out.
#if !defined(RESIDUA_ATTN_RES_HPP) || defined(RESIDUA_DISPATCH_PASS)
#ifndef RESIDUA_DISPATCH_PASS
#define RESIDUA_ATTN_RES_HPP
#include <residua/streams.hpp>
#endif

namespace RESIDUA_API {

/// The options of `attn_res`: `{.eps = 1e-6}`.
struct attn_res_options {
    required<double> eps;  ///< of the norm of the keys, at least 0
};
struct attn_res_vjp_options {
    required<double> eps;
    weight_gradient dq = weight_gradient::overwrite;  ///< whether the gradient replaces what is in dq
};

/// Attention over what the sublayers before have given, for each token:
///
///     h = sum_i p_i k_i,   p = softmax(s),   s_i = sum_j q_j k_ij / sqrt(mean(k_i^2) + eps)
///
/// h has a row for each token; q, of the same columns, is one row for all. k has a row for each token and sublayer (at least
/// one, any number), those of a token one after the other: row t N + i of N sublayers. p, a row of N elements for each token,
/// receives the softmax, which the gradient reads again. h is the sum with p as it is stored; of one token h may be exactly q.
/// Error: of p half an ulp and 2^-45 (in double 2^-50) p_i (1 + max_i sum_j |terms of s_i|); of h half an ulp and 2^-45 (in
/// double 2^-51) of sum |p_i k_i|.
/// Source: Kimi K3's attention residuals.
template <writable_rows H, writable_rows P, readable_rows K, readable_rows Q>
void attn_res(H&& h, P&& p, const K& k, const Q& q, attn_res_options options);

/// The gradient from the saved p: with ds_i = p_i (<dh, k_i> - sum_l p_l <dh, k_l>) and xh_i = k_i r_i,
///
///     dk_i = p_i dh + ds_i r_i (q - xh_i s_i / n),   dq = sum_i ds_i xh_i
///
/// dk may be exactly k; dq, one row, which is overwritten or added to with `.dq = weight_gradient::accumulate`, shares
/// nothing. It is summed token after token, and rounded once for every 128 rows of a token's k; without a token it is 0 (or
/// left alone).
/// Error: half an ulp (for each rounding) and 2^-45 (in double 2^-49) of the formula with the absolute value of every term.
template <writable_rows DK, writable_rows DQ, readable_rows K, readable_rows Q, readable_rows P, readable_rows DH>
void attn_res_vjp(DK&& dk, DQ&& dq, const K& k, const Q& q, const P& p, const DH& dh, attn_res_vjp_options options);

/// The derivative along tk and tq, from the saved p. th shares nothing with the others; it is rounded once for every
/// 128 rows of a token's k. Error: as of the gradient.
template <writable_rows TH, readable_rows K, readable_rows Q, readable_rows P, readable_rows TK, readable_rows TQ>
void attn_res_jvp(TH&& th, const K& k, const Q& q, const P& p, const TK& tk, const TQ& tq,
                  attn_res_options options);

// --- implementation --------------------------------------------------------------------------------------------

namespace local {

/// Whether p has a row for each token, with an element for each of its rows of k; and whether x has `count` rows of k's
/// columns.
template <class K, class P>
bool fits_attn_res(const rows<K>& k, const rows<P>& p)
{
    return p.columns >= 1 && k.count == p.count * p.columns;
}
template <class K, class X>
bool has_columns_of(const rows<K>& k, const rows<X>& x, std::size_t count)
{
    return x.count == count && x.columns == k.columns;
}

}  // namespace local

template <writable_rows H, writable_rows P, readable_rows K, readable_rows Q>
void attn_res(H&& h, P&& p, const K& k, const Q& q, attn_res_options options)
{
    const auto out = detail::view(h);
    const auto weights = detail::view(p);
    const auto keys = detail::constant_view(k);
    const auto query = detail::constant_view(q);
    RESIDUA_ASSERT(local::fits_attn_res(keys, weights) && local::has_columns_of(keys, out, weights.count)
                       && local::has_columns_of(keys, query, 1),
                   "attn_res: the shapes do not fit");
    RESIDUA_ASSERT(local::writes_apart(out, keys, weights) && local::same_rows_or_apart(out, query),
                   "attn_res: h overlaps another operand");
    RESIDUA_ASSERT(local::writes_apart(weights, keys, query), "attn_res: p overlaps another operand");
    RESIDUA_ASSERT(options.eps.value >= 0, "attn_res: eps must be at least 0");
    kernels::attn_res(weights.count, weights.columns, keys.columns, detail::memory(out), detail::memory(weights),
                      detail::memory(keys), detail::memory(query), options.eps.value);
}

template <writable_rows DK, writable_rows DQ, readable_rows K, readable_rows Q, readable_rows P, readable_rows DH>
void attn_res_vjp(DK&& dk, DQ&& dq, const K& k, const Q& q, const P& p, const DH& dh, attn_res_vjp_options options)
{
    const auto to_k = detail::view(dk);
    const auto to_q = detail::view(dq);
    const auto keys = detail::constant_view(k);
    const auto query = detail::constant_view(q);
    const auto weights = detail::constant_view(p);
    const auto gradient = detail::constant_view(dh);
    RESIDUA_ASSERT(detail::same_shape(to_k, keys) && local::fits_attn_res(keys, weights)
                       && local::has_columns_of(keys, gradient, weights.count)
                       && local::has_columns_of(keys, query, 1) && local::has_columns_of(keys, to_q, 1),
                   "attn_res_vjp: the shapes do not fit");
    RESIDUA_ASSERT(detail::same_or_apart(to_k, keys) && local::writes_apart(to_k, query, weights, gradient, to_q),
                   "attn_res_vjp: dk overlaps another operand");
    RESIDUA_ASSERT(local::writes_apart(to_q, keys, query, weights, gradient), "attn_res_vjp: dq overlaps an input");
    RESIDUA_ASSERT(options.eps.value >= 0, "attn_res_vjp: eps must be at least 0");
    kernels::attn_res_vjp(weights.count, weights.columns, keys.columns, detail::memory(to_k), detail::memory(to_q),
                          detail::memory(keys), detail::memory(query), detail::memory(weights),
                          detail::memory(gradient), options.eps.value, options.dq);
}

template <writable_rows TH, readable_rows K, readable_rows Q, readable_rows P, readable_rows TK, readable_rows TQ>
void attn_res_jvp(TH&& th, const K& k, const Q& q, const P& p, const TK& tk, const TQ& tq, attn_res_options options)
{
    const auto out = detail::view(th);
    const auto keys = detail::constant_view(k);
    const auto query = detail::constant_view(q);
    const auto weights = detail::constant_view(p);
    const auto along_k = detail::constant_view(tk);
    const auto along_q = detail::constant_view(tq);
    RESIDUA_ASSERT(detail::same_shape(keys, along_k) && local::fits_attn_res(keys, weights)
                       && local::has_columns_of(keys, out, weights.count) && local::has_columns_of(keys, query, 1)
                       && local::has_columns_of(keys, along_q, 1),
                   "attn_res_jvp: the shapes do not fit");
    RESIDUA_ASSERT(local::writes_apart(out, keys, query, weights, along_k, along_q),
                   "attn_res_jvp: th overlaps an input");
    RESIDUA_ASSERT(options.eps.value >= 0, "attn_res_jvp: eps must be at least 0");
    kernels::attn_res_jvp(weights.count, weights.columns, keys.columns, detail::memory(out), detail::memory(keys),
                          detail::memory(query), detail::memory(weights), detail::memory(along_k),
                          detail::memory(along_q), options.eps.value);
}

}  // namespace RESIDUA_API

#endif
