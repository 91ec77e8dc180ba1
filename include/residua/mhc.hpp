/// \file
/// mHC, manifold-constrained hyper-connections: S residual streams for each token (streams.hpp), which a sublayer
/// reads as one, writes to, and mixes by a matrix whose rows and columns sum to one.
///
/// Derivatives (`_vjp`, `_jvp`) are computed in double for every type and rounded once. Of data in double, a product or
/// a partial sum must stay in its range.
/// Errors: shapes that do not fit, more than 16 streams, outputs that overlap each other, or an input other than one
/// that they may be exactly: RESIDUA_ASSERT. Nothing allocates or throws. NaN in, NaN out.
#if !defined(RESIDUA_MHC_HPP) || defined(RESIDUA_DISPATCH_PASS)
#ifndef RESIDUA_DISPATCH_PASS
#define RESIDUA_MHC_HPP
#include <residua/streams.hpp>
#endif

namespace RESIDUA_API {

/// The options of `mhc_coefficients`: `{.eps = 1e-6}`.
struct mhc_options {
    required<double> eps;  ///< at least 0; keeps every coefficient of comb, and every divisor, from 0
    int iterations = 20;   ///< normalisations of the columns of comb, from 1 to 64
};
struct mhc_vjp_options {
    required<double> eps;
    int iterations = 20;
    weight_gradient da_db = weight_gradient::overwrite;  ///< whether the sums over tokens replace what is in them
};

/// The coefficients of a token, from S (2 + S) numbers m for each: with z = a_0 m + b for the first S of them, a_1 m
/// + b for the next S and a_2 m + b for S rows of S,
///
///     pre  = sigmoid(z) + eps                     (tokens, S)
///     post = 2 sigmoid(z)                         (tokens, S)
///     comb = softmax of each row of z, + eps      (tokens, S S: row i is what stream i gives to the streams)
///     comb = comb / (its sums of columns + eps), then `iterations` - 1 times
///     comb = comb / (its sums of rows + eps), comb = comb / (its sums of columns + eps)
///
/// a has 3 elements, b as many as a token's m. pre, post and comb are overwritten, and share nothing with anything.
/// Error, in types other than double: 0.51 ulp for |z| < 1000; in double (20 + 2 |z|) ulp.
/// An infinite z of comb in a row gives NaN (+infinity), or a 0 of its softmax (-infinity).
/// Source: DeepSeek V4's reference implementation; Xie et al. 2025, arXiv 2512.24880; Sinkhorn and Knopp 1967.
template <writable_rows Pre, writable_rows Post, writable_rows Comb, readable_rows M, readable_rows A,
          readable_rows B>
void mhc_coefficients(Pre&& pre, Post&& post, Comb&& comb, const M& m, const A& a, const B& b, mhc_options options);

/// The gradient, through every normalisation. dm is overwritten, and may be exactly m; da and db are sums over the
/// tokens in double, rounded once, overwritten or added to with `.da_db = weight_gradient::accumulate`.
/// Error for |z| < 1000: half an ulp and 2^-40 (in double 2^-46) of the largest |dpre|, |dpost| or |dcomb|: for dm
/// times the largest |a|, for da and db for each m that is summed, and for da times the largest |m|.
template <writable_rows DM, writable_rows DA, writable_rows DB, readable_rows M, readable_rows A, readable_rows B,
          readable_rows DPre, readable_rows DPost, readable_rows DComb>
void mhc_coefficients_vjp(DM&& dm, DA&& da, DB&& db, const M& m, const A& a, const B& b, const DPre& dpre,
                          const DPost& dpost, const DComb& dcomb, mhc_vjp_options options);

/// The derivative along tm, ta and tb. Error for |z| < 1000: half an ulp and 2^-40 (in double 2^-46) of the largest
/// |a tm| + |ta m| + |tb| of the token.
template <writable_rows TPre, writable_rows TPost, writable_rows TComb, readable_rows M, readable_rows A,
          readable_rows B, readable_rows TM, readable_rows TA, readable_rows TB>
void mhc_coefficients_jvp(TPre&& tpre, TPost&& tpost, TComb&& tcomb, const M& m, const A& a, const B& b,
                          const TM& tm, const TA& ta, const TB& tb, mhc_options options);

/// What a sublayer reads: y = sum_i pre_i x_i. `mix_streams` to one stream. pre has a row for each token, or one for all,
/// whose gradient is then the sum over the tokens.
template <writable_rows Y, readable_rows X, readable_rows Pre>
void mhc_read(Y&& y, const X& x, const Pre& pre);
/// dx_i = pre_i dy, dpre_i = <dy, x_i>. dx may be exactly x. Error: as of `mix_streams_vjp`.
template <writable_rows DX, writable_rows DPre, readable_rows X, readable_rows Pre, readable_rows DY>
void mhc_read_vjp(DX&& dx, DPre&& dpre, const X& x, const Pre& pre, const DY& dy);
/// The derivative along tx and tpre. Error: as of `mix_streams_jvp`.
template <writable_rows TY, readable_rows X, readable_rows Pre, readable_rows TX, readable_rows TPre>
void mhc_read_jvp(TY&& ty, const X& x, const Pre& pre, const TX& tx, const TPre& tpre);

/// What is written back: y_j = post_j f + sum_i comb(i, j) x_i, in this order. y may be exactly x, not f. post
/// and comb have rows as pre has in `mhc_read`.
/// Error and range: as of `mix_streams`, with a stream more.
template <writable_rows Y, readable_rows X, readable_rows F, readable_rows Post, readable_rows Comb>
void mhc_write(Y&& y, const X& x, const F& f, const Post& post, const Comb& comb);
/// dx_i = sum_j comb(i, j) dy_j, df = sum_j post_j dy_j, dpost_j = <dy_j, f>, dcomb(i, j) = <dy_j, x_i>. dx may be
/// exactly x or dy, df exactly f. Error: as of `mix_streams_vjp`.
template <writable_rows DX, writable_rows DF, writable_rows DPost, writable_rows DComb, readable_rows X,
          readable_rows F, readable_rows Post, readable_rows Comb, readable_rows DY>
void mhc_write_vjp(DX&& dx, DF&& df, DPost&& dpost, DComb&& dcomb, const X& x, const F& f, const Post& post,
                   const Comb& comb, const DY& dy);
/// The derivative along the others. ty may be exactly x or tx. Error: as of `mix_streams_jvp`.
template <writable_rows TY, readable_rows X, readable_rows F, readable_rows Post, readable_rows Comb,
          readable_rows TX, readable_rows TF, readable_rows TPost, readable_rows TComb>
void mhc_write_jvp(TY&& ty, const X& x, const F& f, const Post& post, const Comb& comb, const TX& tx, const TF& tf,
                   const TPost& tpost, const TComb& tcomb);

// --- implementation --------------------------------------------------------------------------------------------

namespace local {

template <class M, class A, class B>
bool fits_mhc(std::size_t streams, const rows<M>& m, const rows<A>& a, const rows<B>& b)
{
    const std::size_t numbers = streams * (2 + streams);
    return streams >= 1 && streams <= operand::most_streams && m.columns == numbers && a.count == 1
           && a.columns == 3 && b.count == 1 && b.columns == numbers;
}
template <class Pre, class Post, class Comb>
bool are_mhc(std::size_t tokens, const rows<Pre>& pre, const rows<Post>& post, const rows<Comb>& comb)
{
    return pre.count == tokens && detail::same_shape(pre, post) && comb.count == tokens
           && comb.columns == pre.columns * pre.columns;
}
template <class Options>
bool are_mhc_options(const Options& options)
{
    return options.eps.value >= 0 && options.iterations >= 1
           && static_cast<std::size_t>(options.iterations) <= operand::most_mhc_iterations;
}

}  // namespace local

template <writable_rows Pre, writable_rows Post, writable_rows Comb, readable_rows M, readable_rows A,
          readable_rows B>
void mhc_coefficients(Pre&& pre, Post&& post, Comb&& comb, const M& m, const A& a, const B& b, mhc_options options)
{
    const auto to_pre = detail::view(pre);
    const auto to_post = detail::view(post);
    const auto to_comb = detail::view(comb);
    const auto numbers = detail::constant_view(m);
    const auto scales = detail::constant_view(a);
    const auto base = detail::constant_view(b);
    RESIDUA_ASSERT(local::fits_mhc(to_pre.columns, numbers, scales, base)
                       && local::are_mhc(numbers.count, to_pre, to_post, to_comb),
                   "mhc_coefficients: the shapes do not fit");
    RESIDUA_ASSERT(local::writes_apart(to_pre, numbers, scales, base, to_post, to_comb)
                       && local::writes_apart(to_post, numbers, scales, base, to_comb)
                       && local::writes_apart(to_comb, numbers, scales, base),
                   "mhc_coefficients: an output overlaps another operand");
    RESIDUA_ASSERT(local::are_mhc_options(options), "mhc_coefficients: eps or iterations out of range");
    kernels::mhc_coefficients(numbers.count, to_pre.columns, detail::memory(to_pre), detail::memory(to_post),
                              detail::memory(to_comb), detail::memory(numbers), detail::memory(scales),
                              detail::memory(base), options.eps.value,
                              static_cast<std::size_t>(options.iterations));
}

template <writable_rows DM, writable_rows DA, writable_rows DB, readable_rows M, readable_rows A, readable_rows B,
          readable_rows DPre, readable_rows DPost, readable_rows DComb>
void mhc_coefficients_vjp(DM&& dm, DA&& da, DB&& db, const M& m, const A& a, const B& b, const DPre& dpre,
                          const DPost& dpost, const DComb& dcomb, mhc_vjp_options options)
{
    const auto to_m = detail::view(dm);
    const auto to_a = detail::view(da);
    const auto to_b = detail::view(db);
    const auto numbers = detail::constant_view(m);
    const auto scales = detail::constant_view(a);
    const auto base = detail::constant_view(b);
    const auto of_pre = detail::constant_view(dpre);
    const auto of_post = detail::constant_view(dpost);
    const auto of_comb = detail::constant_view(dcomb);
    RESIDUA_ASSERT(local::fits_mhc(of_pre.columns, numbers, scales, base)
                       && local::are_mhc(numbers.count, of_pre, of_post, of_comb)
                       && detail::same_shape(to_m, numbers) && detail::same_shape(to_a, scales)
                       && detail::same_shape(to_b, base),
                   "mhc_coefficients_vjp: the shapes do not fit");
    RESIDUA_ASSERT(detail::same_or_apart(to_m, numbers)
                       && local::writes_apart(to_m, scales, base, of_pre, of_post, of_comb, to_a, to_b),
                   "mhc_coefficients_vjp: dm overlaps another operand");
    RESIDUA_ASSERT(local::writes_apart(to_a, numbers, scales, base, of_pre, of_post, of_comb, to_b)
                       && local::writes_apart(to_b, numbers, scales, base, of_pre, of_post, of_comb),
                   "mhc_coefficients_vjp: da or db overlaps another operand");
    RESIDUA_ASSERT(local::are_mhc_options(options), "mhc_coefficients_vjp: eps or iterations out of range");
    kernels::mhc_coefficients_vjp(numbers.count, of_pre.columns, detail::memory(to_m), detail::memory(to_a),
                                  detail::memory(to_b), detail::memory(numbers), detail::memory(scales),
                                  detail::memory(base), detail::memory(of_pre), detail::memory(of_post),
                                  detail::memory(of_comb), options.eps.value,
                                  static_cast<std::size_t>(options.iterations), options.da_db);
}

template <writable_rows TPre, writable_rows TPost, writable_rows TComb, readable_rows M, readable_rows A,
          readable_rows B, readable_rows TM, readable_rows TA, readable_rows TB>
void mhc_coefficients_jvp(TPre&& tpre, TPost&& tpost, TComb&& tcomb, const M& m, const A& a, const B& b,
                          const TM& tm, const TA& ta, const TB& tb, mhc_options options)
{
    const auto to_pre = detail::view(tpre);
    const auto to_post = detail::view(tpost);
    const auto to_comb = detail::view(tcomb);
    const auto numbers = detail::constant_view(m);
    const auto scales = detail::constant_view(a);
    const auto base = detail::constant_view(b);
    const auto along_m = detail::constant_view(tm);
    const auto along_a = detail::constant_view(ta);
    const auto along_b = detail::constant_view(tb);
    RESIDUA_ASSERT(local::fits_mhc(to_pre.columns, numbers, scales, base)
                       && local::are_mhc(numbers.count, to_pre, to_post, to_comb)
                       && detail::same_shape(along_m, numbers) && detail::same_shape(along_a, scales)
                       && detail::same_shape(along_b, base),
                   "mhc_coefficients_jvp: the shapes do not fit");
    RESIDUA_ASSERT(local::writes_apart(to_pre, numbers, scales, base, along_m, along_a, along_b, to_post, to_comb)
                       && local::writes_apart(to_post, numbers, scales, base, along_m, along_a, along_b, to_comb)
                       && local::writes_apart(to_comb, numbers, scales, base, along_m, along_a, along_b),
                   "mhc_coefficients_jvp: an output overlaps another operand");
    RESIDUA_ASSERT(local::are_mhc_options(options), "mhc_coefficients_jvp: eps or iterations out of range");
    kernels::mhc_coefficients_jvp(numbers.count, to_pre.columns, detail::memory(to_pre), detail::memory(to_post),
                                  detail::memory(to_comb), detail::memory(numbers), detail::memory(scales),
                                  detail::memory(base), detail::memory(along_m), detail::memory(along_a),
                                  detail::memory(along_b), options.eps.value,
                                  static_cast<std::size_t>(options.iterations));
}

// mhc_read is a mix to one stream, for which the order of coefficients is the same.

template <writable_rows Y, readable_rows X, readable_rows Pre>
void mhc_read(Y&& y, const X& x, const Pre& pre)
{
    RESIDUA_SELF::mix_streams(y, pre, x);
}

template <writable_rows DX, writable_rows DPre, readable_rows X, readable_rows Pre, readable_rows DY>
void mhc_read_vjp(DX&& dx, DPre&& dpre, const X& x, const Pre& pre, const DY& dy)
{
    RESIDUA_SELF::mix_streams_vjp(dx, dpre, pre, x, dy);
}

template <writable_rows TY, readable_rows X, readable_rows Pre, readable_rows TX, readable_rows TPre>
void mhc_read_jvp(TY&& ty, const X& x, const Pre& pre, const TX& tx, const TPre& tpre)
{
    RESIDUA_SELF::mix_streams_jvp(ty, pre, x, tpre, tx);
}

namespace local {

/// What the operands of mhc_write have to be.
template <class X, class F, class Post, class Comb>
bool fits_mhc_write(const rows<X>& x, const rows<F>& f, const rows<Post>& post, const rows<Comb>& comb)
{
    const std::size_t streams = post.columns;
    return local::are_streams(x, f.count, streams) && f.columns == x.columns
           && local::fits_tokens(post, f.count, streams) && local::fits_tokens(comb, f.count, streams * streams);
}

template <class F, class Post, class Comb>
operand::mixing mhc_mixing(const rows<F>& f, const rows<Post>& post, const rows<Comb>& comb)
{
    return {post.columns,
            post.columns,
            true,
            local::for_each_token(comb),
            detail::memory(f),
            local::for_each_token(post)};
}

}  // namespace local

template <writable_rows Y, readable_rows X, readable_rows F, readable_rows Post, readable_rows Comb>
void mhc_write(Y&& y, const X& x, const F& f, const Post& post, const Comb& comb)
{
    const auto out = detail::view(y);
    const auto in = detail::constant_view(x);
    const auto written = detail::constant_view(f);
    const auto gates = detail::constant_view(post);
    const auto matrix = detail::constant_view(comb);
    RESIDUA_ASSERT(detail::same_shape(out, in) && local::fits_mhc_write(in, written, gates, matrix),
                   "mhc_write: the shapes do not fit");
    RESIDUA_ASSERT(detail::same_or_apart(out, in), "mhc_write: y and x overlap in part");
    RESIDUA_ASSERT(detail::apart(out, written) && detail::apart(out, gates) && detail::apart(out, matrix),
                   "mhc_write: y overlaps f or coefficients");
    using T = detail::arithmetic<Y, const X&, const F&, const Post&, const Comb&>;
    kernels::mix_streams<T>({written.count, in.columns}, detail::memory(out), detail::memory(in),
                            local::mhc_mixing(written, gates, matrix));
}

template <writable_rows DX, writable_rows DF, writable_rows DPost, writable_rows DComb, readable_rows X,
          readable_rows F, readable_rows Post, readable_rows Comb, readable_rows DY>
void mhc_write_vjp(DX&& dx, DF&& df, DPost&& dpost, DComb&& dcomb, const X& x, const F& f, const Post& post,
                   const Comb& comb, const DY& dy)
{
    const auto to_x = detail::view(dx);
    const auto to_f = detail::view(df);
    const auto to_post = detail::view(dpost);
    const auto to_comb = detail::view(dcomb);
    const auto in = detail::constant_view(x);
    const auto written = detail::constant_view(f);
    const auto gates = detail::constant_view(post);
    const auto matrix = detail::constant_view(comb);
    const auto gradient = detail::constant_view(dy);
    RESIDUA_ASSERT(local::fits_mhc_write(in, written, gates, matrix) && detail::same_shape(in, to_x, gradient)
                       && detail::same_shape(written, to_f) && detail::same_shape(gates, to_post)
                       && detail::same_shape(matrix, to_comb),
                   "mhc_write_vjp: the shapes do not fit");
    RESIDUA_ASSERT(detail::same_or_apart(to_x, in, gradient) && local::writes_apart(to_x, written, gates, matrix),
                   "mhc_write_vjp: dx overlaps an input");
    RESIDUA_ASSERT(
        detail::same_or_apart(to_f, written) && local::writes_apart(to_f, in, gates, matrix, gradient, to_x),
        "mhc_write_vjp: df overlaps another operand");
    RESIDUA_ASSERT(local::writes_apart(to_post, in, written, gates, matrix, gradient, to_x, to_f, to_comb)
                       && local::writes_apart(to_comb, in, written, gates, matrix, gradient, to_x, to_f),
                   "mhc_write_vjp: dpost or dcomb overlaps another operand");
    kernels::mix_streams_vjp({written.count, in.columns}, detail::memory(to_x), detail::memory(to_f),
                             local::for_each_token(to_comb), local::for_each_token(to_post), detail::memory(in),
                             local::mhc_mixing(written, gates, matrix), detail::memory(gradient),
                             weight_gradient::overwrite);
}

template <writable_rows TY, readable_rows X, readable_rows F, readable_rows Post, readable_rows Comb,
          readable_rows TX, readable_rows TF, readable_rows TPost, readable_rows TComb>
void mhc_write_jvp(TY&& ty, const X& x, const F& f, const Post& post, const Comb& comb, const TX& tx, const TF& tf,
                   const TPost& tpost, const TComb& tcomb)
{
    const auto out = detail::view(ty);
    const auto in = detail::constant_view(x);
    const auto written = detail::constant_view(f);
    const auto gates = detail::constant_view(post);
    const auto matrix = detail::constant_view(comb);
    const auto along_x = detail::constant_view(tx);
    const auto along_f = detail::constant_view(tf);
    const auto along_gates = detail::constant_view(tpost);
    const auto along_matrix = detail::constant_view(tcomb);
    RESIDUA_ASSERT(local::fits_mhc_write(in, written, gates, matrix) && detail::same_shape(in, out, along_x)
                       && detail::same_shape(written, along_f) && detail::same_shape(gates, along_gates)
                       && detail::same_shape(matrix, along_matrix),
                   "mhc_write_jvp: the shapes do not fit");
    RESIDUA_ASSERT(detail::same_or_apart(out, in, along_x), "mhc_write_jvp: ty overlaps an input in part");
    RESIDUA_ASSERT(local::writes_apart(out, written, along_f, gates, matrix, along_gates, along_matrix),
                   "mhc_write_jvp: ty overlaps another operand");
    kernels::mix_streams_jvp({written.count, in.columns}, detail::memory(out), detail::memory(in),
                             local::mhc_mixing(written, gates, matrix), detail::memory(along_x),
                             local::mhc_mixing(along_f, along_gates, along_matrix));
}

}  // namespace RESIDUA_API

#endif
