/// \file
/// Residual streams that are more than one: how they lie in memory, and how they are mixed.
///
/// A stack with S streams keeps S rows for each token. They lie one after the other, the stream fastest: row t S + i
/// of a `rows` view is stream i of token t. S is at most 16. What is made of them:
///
///     mHC (mhc.hpp), for example in DeepSeek V4
///         rms_norm(f, x as rows of S times the columns, no_weight, ...); m = a matrix times f, S (2 + S) numbers;
///         mhc_coefficients(pre, post, comb, m, a, b, ...);
///         mhc_read(input, x, pre); mhc_write(x, x, F(input), post, comb)
///     Gated Residual (gated_residual.hpp), Qwen3.8
///         rms_norm(n, x, zero_centered(w), ...); gated_read(input, n, g); gated_write(x, x, F(input), m)
///     AttnRes (attn_res.hpp), Kimi K3
///         attn_res(h, p, k, q, ...) over the outputs k of all sublayers before
///
/// Source of the mixing: hyper-connections, Zhu et al. 2024 (arXiv 2409.19606).
/// A sum over streams goes from the first to the last, one fused multiply-add after the other. What a token gets does
/// not depend on how many tokens a call has.
/// Derivatives (`_vjp`, `_jvp`) are computed in double for every type and rounded once. Of data in double, a product or
/// a partial sum must stay in its range.
/// Errors: shapes that do not fit, more than 16 streams, outputs that overlap each other, or an input other than one
/// that they may be exactly: RESIDUA_ASSERT. Nothing allocates or throws. NaN in, NaN out.
#if !defined(RESIDUA_STREAMS_HPP) || defined(RESIDUA_DISPATCH_PASS)
#ifndef RESIDUA_DISPATCH_PASS
#define RESIDUA_STREAMS_HPP
#include <residua/kernels/static_pass.hpp>
#endif

namespace RESIDUA_API {

/// The option of the gradients that sum over tokens.
struct mix_streams_vjp_options {
    weight_gradient dc = weight_gradient::overwrite;  ///< whether the gradient replaces what is in dc
};

/// y_j = sum_i c(j, i) x_i for each token: I streams become J.
///
/// c has a row of J I coefficients for each token, or one for all of them; c(j, i) is element j I + i. x has I rows
/// for each token, y has J. y is overwritten, and may be exactly x if J = I; it must share nothing with c.
/// Error: at most I + 1 roundings of the largest partial sum (half an ulp each); in float a sum that leaves the range
/// on the way is computed in double, so the result is right whenever it is finite.
template <writable_rows Y, readable_rows C, readable_rows X>
void mix_streams(Y&& y, const C& c, const X& x);

/// The gradient: dx_i = sum_j c(j, i) dy_j, dc(j, i) = <dy_j, x_i>, of one row for all tokens the sum over them (in
/// double, rounded once). Overwritten, dc added to with `{.dc = weight_gradient::accumulate}`. dx may be exactly x or
/// dy; dc must share nothing with the others.
/// Error: half an ulp and 2^-45 (in double 2^-50; tested, rows to 1025) of sum |c(j, i) dy_j|, of sum |dy_j x_i|.
template <writable_rows DX, writable_rows DC, readable_rows C, readable_rows X, readable_rows DY>
void mix_streams_vjp(DX&& dx, DC&& dc, const C& c, const X& x, const DY& dy, mix_streams_vjp_options options = {});

/// The derivative along tc and tx: ty_j = sum_i c(j, i) tx_i + tc(j, i) x_i. ty may be exactly x or tx.
/// Error: as of the gradient.
template <writable_rows TY, readable_rows C, readable_rows X, readable_rows TC, readable_rows TX>
void mix_streams_jvp(TY&& ty, const C& c, const X& x, const TC& tc, const TX& tx);

// --- implementation --------------------------------------------------------------------------------------------

namespace local {

/// Whether an output's rows share nothing with each other, and nothing with inputs that it may not be.
template <class T, class... U>
bool writes_apart(const rows<T>& out, const rows<U>&... in)
{
    return detail::distinct(out) && (detail::apart(out, in) && ...);
}

/// Whether an output is exactly an input of its shape, or shares nothing with it.
template <class T, class U>
bool same_rows_or_apart(const rows<T>& out, const rows<U>& in)
{
    return detail::same_shape(out, in) ? detail::same_or_apart(out, in) : local::writes_apart(out, in);
}

/// An operand that has a row for each token, or one for all of them (stride 0).
template <class T>
auto for_each_token(const rows<T>& r)
{
    auto memory = detail::memory(r);
    if (r.count == 1) memory.stride = 0;
    return memory;
}
template <class T>
bool fits_tokens(const rows<T>& r, std::size_t tokens, std::size_t columns)
{
    return (r.count == tokens || r.count == 1) && r.columns == columns;
}

struct stream_counts {
    std::size_t tokens, from, to;
    bool found;
};

/// How many streams of x become how many of y: their product is what a token has of coefficients, their ratio that of
/// the rows.
inline stream_counts count_streams(std::size_t x_rows, std::size_t y_rows, std::size_t coefficients)
{
    for (std::size_t from = 1; from <= operand::most_streams; ++from) {
        const std::size_t to = coefficients / from;
        if (from * to == coefficients && to >= 1 && to <= operand::most_streams && x_rows % from == 0
            && x_rows / from * to == y_rows) {
            return {x_rows / from, from, to, true};
        }
    }
    return {0, 1, 1, false};
}

/// Streams of tokens: rows that are a multiple of the streams.
template <class T>
bool are_streams(const rows<T>& x, std::size_t tokens, std::size_t streams)
{
    return streams >= 1 && streams <= operand::most_streams && x.count == tokens * streams;
}

}  // namespace local

template <writable_rows Y, readable_rows C, readable_rows X>
void mix_streams(Y&& y, const C& c, const X& x)
{
    const auto out = detail::view(y);
    const auto matrix = detail::constant_view(c);
    const auto in = detail::constant_view(x);
    const auto n = local::count_streams(in.count, out.count, matrix.columns);
    RESIDUA_ASSERT(n.found && out.columns == in.columns, "mix_streams: the shapes do not fit");
    RESIDUA_ASSERT(local::fits_tokens(matrix, n.tokens, n.from * n.to),
                   "mix_streams: c needs a row for each token");
    RESIDUA_ASSERT(local::same_rows_or_apart(out, in), "mix_streams: y and x overlap in part");
    RESIDUA_ASSERT(detail::apart(out, matrix), "mix_streams: y overlaps c");
    using T = detail::arithmetic<Y, const C&, const X&>;
    kernels::mix_streams<T>({n.tokens, in.columns}, detail::memory(out), detail::memory(in),
                            operand::mixing{n.from, n.to, false, local::for_each_token(matrix), {}, {}});
}

template <writable_rows DX, writable_rows DC, readable_rows C, readable_rows X, readable_rows DY>
void mix_streams_vjp(DX&& dx, DC&& dc, const C& c, const X& x, const DY& dy, mix_streams_vjp_options options)
{
    const auto to_x = detail::view(dx);
    const auto to_c = detail::view(dc);
    const auto matrix = detail::constant_view(c);
    const auto in = detail::constant_view(x);
    const auto gradient = detail::constant_view(dy);
    const auto n = local::count_streams(in.count, gradient.count, matrix.columns);
    RESIDUA_ASSERT(n.found && gradient.columns == in.columns, "mix_streams_vjp: the shapes do not fit");
    RESIDUA_ASSERT(detail::same_shape(to_x, in) && detail::same_shape(to_c, matrix)
                       && local::fits_tokens(matrix, n.tokens, n.from * n.to),
                   "mix_streams_vjp: a gradient differs in shape from what it is of");
    RESIDUA_ASSERT(local::same_rows_or_apart(to_x, in) && local::same_rows_or_apart(to_x, gradient),
                   "mix_streams_vjp: dx overlaps an input in part");
    RESIDUA_ASSERT(detail::apart(to_x, matrix) && local::writes_apart(to_c, matrix, in, gradient, to_x),
                   "mix_streams_vjp: an output overlaps an operand that it must not");
    kernels::mix_streams_vjp({n.tokens, in.columns}, detail::memory(to_x), {}, local::for_each_token(to_c), {},
                             detail::memory(in),
                             operand::mixing{n.from, n.to, false, local::for_each_token(matrix), {}, {}},
                             detail::memory(gradient), options.dc);
}

template <writable_rows TY, readable_rows C, readable_rows X, readable_rows TC, readable_rows TX>
void mix_streams_jvp(TY&& ty, const C& c, const X& x, const TC& tc, const TX& tx)
{
    const auto out = detail::view(ty);
    const auto matrix = detail::constant_view(c);
    const auto in = detail::constant_view(x);
    const auto matrix_along = detail::constant_view(tc);
    const auto along = detail::constant_view(tx);
    const auto n = local::count_streams(in.count, out.count, matrix.columns);
    RESIDUA_ASSERT(n.found && out.columns == in.columns && detail::same_shape(in, along)
                       && detail::same_shape(matrix, matrix_along)
                       && local::fits_tokens(matrix, n.tokens, n.from * n.to),
                   "mix_streams_jvp: the shapes do not fit");
    RESIDUA_ASSERT(local::same_rows_or_apart(out, in) && local::same_rows_or_apart(out, along),
                   "mix_streams_jvp: ty overlaps an input in part");
    RESIDUA_ASSERT(detail::apart(out, matrix) && detail::apart(out, matrix_along),
                   "mix_streams_jvp: ty overlaps c or tc");
    kernels::mix_streams_jvp({n.tokens, in.columns}, detail::memory(out), detail::memory(in),
                             operand::mixing{n.from, n.to, false, local::for_each_token(matrix), {}, {}},
                             detail::memory(along),
                             operand::mixing{n.from, n.to, false, local::for_each_token(matrix_along), {}, {}});
}

}  // namespace RESIDUA_API

#endif
