/// \file
/// Gated Residual: S residual streams for each token (streams.hpp), which a sublayer reads and writes through gates.
///
/// Derivatives (`_vjp`, `_jvp`) are computed in double for every type and rounded once. Of data in double, a product or
/// a partial sum must stay in its range.
/// Errors: shapes that do not fit, more than 16 streams, outputs that overlap each other, or an input other than one
/// that they may be exactly: RESIDUA_ASSERT. Nothing allocates or throws. NaN in, NaN out.
#if !defined(RESIDUA_GATED_RESIDUAL_HPP) || defined(RESIDUA_DISPATCH_PASS)
#ifndef RESIDUA_DISPATCH_PASS
#define RESIDUA_GATED_RESIDUAL_HPP
#include <residua/streams.hpp>
#endif

namespace RESIDUA_API {

/// What a sublayer reads: y = (1 / S) sum_c n_c sigmoid(g_c), n the norms of the streams. g has as many rows as n, or
/// one for each token that all its streams share. Computed in double and rounded once. y may be exactly a g of one
/// row for each token.
/// Error: 0.51 ulp and 2^-48 of the mean |n_c|, in types other than double; in double 4 ulp of the mean |n_c
/// sigmoid(g_c)|.
/// Source: Qwen3.8-Flash-Next, where g = W_up silu(W_down n / S) is shared.
template <writable_rows Y, readable_rows N, readable_rows G>
void gated_read(Y&& y, const N& n, const G& g);
/// dn_c = dy sigmoid(g_c) / S, dg_c = dy n_c sigmoid'(g_c) / S, of a shared gate the sum over the streams. dn may be
/// exactly n, dg exactly g.
/// Error: 0.51 ulp and 2^-45 (in double 2^-49) of the sum of the absolute values of all terms.
template <writable_rows DN, writable_rows DG, readable_rows N, readable_rows G, readable_rows DY>
void gated_read_vjp(DN&& dn, DG&& dg, const N& n, const G& g, const DY& dy);
/// The derivative along tn and tg. ty may be exactly a g or tg of one row for each token. Error: as of the gradient.
template <writable_rows TY, readable_rows N, readable_rows G, readable_rows TN, readable_rows TG>
void gated_read_jvp(TY&& ty, const N& n, const G& g, const TN& tn, const TG& tg);

/// What is written back: y_c = x_c + 2 sigmoid(m_c) f, m with S elements for each token. y may be exactly x.
/// Error: half an ulp of y, and of 2 sigmoid(m_c) f 1 ulp in types other than double, 3 ulp in double,
/// where m_c > -700.
template <writable_rows Y, readable_rows X, readable_rows F, readable_rows M>
void gated_write(Y&& y, const X& x, const F& f, const M& m);
/// dx = dy, df = sum_c 2 sigmoid(m_c) dy_c, dm_c = 2 sigmoid'(m_c) <dy_c, f>. dx may be exactly dy, df exactly f,
/// dm exactly m. Error: dx is dy, rounded once to another type; of df and dm 0.51 ulp and 2^-45 (in double 2^-49) of the sum
/// of the absolute values of all terms.
template <writable_rows DX, writable_rows DF, writable_rows DM, readable_rows F, readable_rows M, readable_rows DY>
void gated_write_vjp(DX&& dx, DF&& df, DM&& dm, const F& f, const M& m, const DY& dy);
/// The derivative along tx, tf and tm. ty may be exactly tx. Error: as of df.
template <writable_rows TY, readable_rows F, readable_rows M, readable_rows TX, readable_rows TF, readable_rows TM>
void gated_write_jvp(TY&& ty, const F& f, const M& m, const TX& tx, const TF& tf, const TM& tm);

// --- implementation --------------------------------------------------------------------------------------------

namespace local {

/// How many streams n has for each of so many tokens; 0 if that is no whole number, or too many.
inline std::size_t streams_of(std::size_t n_rows, std::size_t tokens)
{
    if (tokens == 0) return n_rows == 0 ? 1 : 0;
    const std::size_t streams = n_rows / tokens;
    return streams * tokens == n_rows && streams <= operand::most_streams ? streams : 0;
}

/// Whether g is a gate for each stream and channel of n, or one that the streams of a token share.
template <class N, class G>
bool are_gates(const rows<N>& n, const rows<G>& g, std::size_t tokens)
{
    return g.columns == n.columns && (g.count == n.count || g.count == tokens);
}

}  // namespace local

template <writable_rows Y, readable_rows N, readable_rows G>
void gated_read(Y&& y, const N& n, const G& g)
{
    const auto out = detail::view(y);
    const auto in = detail::constant_view(n);
    const auto gates = detail::constant_view(g);
    const std::size_t streams = local::streams_of(in.count, out.count);
    RESIDUA_ASSERT(streams > 0 && out.columns == in.columns && local::are_gates(in, gates, out.count),
                   "gated_read: the shapes do not fit");
    RESIDUA_ASSERT(local::writes_apart(out, in) && local::same_rows_or_apart(out, gates),
                   "gated_read: y overlaps an input");
    kernels::gated_read(detail::shape_of(out), streams, detail::memory(out), detail::memory(in),
                        detail::memory(gates), gates.count == out.count);
}

template <writable_rows DN, writable_rows DG, readable_rows N, readable_rows G, readable_rows DY>
void gated_read_vjp(DN&& dn, DG&& dg, const N& n, const G& g, const DY& dy)
{
    const auto to_n = detail::view(dn);
    const auto to_g = detail::view(dg);
    const auto in = detail::constant_view(n);
    const auto gates = detail::constant_view(g);
    const auto gradient = detail::constant_view(dy);
    const std::size_t streams = local::streams_of(in.count, gradient.count);
    RESIDUA_ASSERT(streams > 0 && gradient.columns == in.columns && local::are_gates(in, gates, gradient.count)
                       && detail::same_shape(to_n, in) && detail::same_shape(to_g, gates),
                   "gated_read_vjp: the shapes do not fit");
    RESIDUA_ASSERT(detail::same_or_apart(to_n, in) && local::writes_apart(to_n, gates, gradient, to_g),
                   "gated_read_vjp: dn overlaps another operand");
    RESIDUA_ASSERT(detail::same_or_apart(to_g, gates) && local::writes_apart(to_g, in, gradient),
                   "gated_read_vjp: dg overlaps another operand");
    kernels::gated_read_vjp(detail::shape_of(gradient), streams, detail::memory(to_n), detail::memory(to_g),
                            detail::memory(in), detail::memory(gates), gates.count == gradient.count,
                            detail::memory(gradient));
}

template <writable_rows TY, readable_rows N, readable_rows G, readable_rows TN, readable_rows TG>
void gated_read_jvp(TY&& ty, const N& n, const G& g, const TN& tn, const TG& tg)
{
    const auto out = detail::view(ty);
    const auto in = detail::constant_view(n);
    const auto gates = detail::constant_view(g);
    const auto along_n = detail::constant_view(tn);
    const auto along_g = detail::constant_view(tg);
    const std::size_t streams = local::streams_of(in.count, out.count);
    RESIDUA_ASSERT(streams > 0 && out.columns == in.columns && local::are_gates(in, gates, out.count)
                       && detail::same_shape(in, along_n) && detail::same_shape(gates, along_g),
                   "gated_read_jvp: the shapes do not fit");
    RESIDUA_ASSERT(local::writes_apart(out, in, along_n) && local::same_rows_or_apart(out, gates)
                       && local::same_rows_or_apart(out, along_g),
                   "gated_read_jvp: ty overlaps an input");
    kernels::gated_read_jvp(detail::shape_of(out), streams, detail::memory(out), detail::memory(in),
                            detail::memory(gates), gates.count == out.count, detail::memory(along_n),
                            detail::memory(along_g));
}

template <writable_rows Y, readable_rows X, readable_rows F, readable_rows M>
void gated_write(Y&& y, const X& x, const F& f, const M& m)
{
    const auto out = detail::view(y);
    const auto in = detail::constant_view(x);
    const auto written = detail::constant_view(f);
    const auto gates = detail::constant_view(m);
    RESIDUA_ASSERT(detail::same_shape(out, in) && local::are_streams(in, written.count, gates.columns)
                       && written.columns == in.columns && gates.count == written.count,
                   "gated_write: the shapes do not fit");
    RESIDUA_ASSERT(detail::same_or_apart(out, in), "gated_write: y and x overlap in part");
    RESIDUA_ASSERT(detail::apart(out, written) && detail::apart(out, gates), "gated_write: y overlaps f or m");
    kernels::gated_write<detail::arithmetic<Y, const X&, const F&>>(detail::shape_of(written), gates.columns,
                                                                    detail::memory(out), detail::memory(in),
                                                                    detail::memory(written), detail::memory(gates));
}

template <writable_rows DX, writable_rows DF, writable_rows DM, readable_rows F, readable_rows M, readable_rows DY>
void gated_write_vjp(DX&& dx, DF&& df, DM&& dm, const F& f, const M& m, const DY& dy)
{
    const auto to_x = detail::view(dx);
    const auto to_f = detail::view(df);
    const auto to_m = detail::view(dm);
    const auto written = detail::constant_view(f);
    const auto gates = detail::constant_view(m);
    const auto gradient = detail::constant_view(dy);
    RESIDUA_ASSERT(detail::same_shape(to_x, gradient) && detail::same_shape(to_f, written)
                       && detail::same_shape(to_m, gates)
                       && local::are_streams(gradient, written.count, gates.columns)
                       && written.columns == gradient.columns && gates.count == written.count,
                   "gated_write_vjp: the shapes do not fit");
    RESIDUA_ASSERT(detail::same_or_apart(to_x, gradient) && local::writes_apart(to_x, written, gates),
                   "gated_write_vjp: dx overlaps an input");
    RESIDUA_ASSERT(detail::same_or_apart(to_f, written) && local::writes_apart(to_f, gates, gradient, to_x),
                   "gated_write_vjp: df overlaps another operand");
    RESIDUA_ASSERT(detail::same_or_apart(to_m, gates) && local::writes_apart(to_m, written, gradient, to_x, to_f),
                   "gated_write_vjp: dm overlaps another operand");
    kernels::gated_write_vjp(detail::shape_of(written), gates.columns, detail::memory(to_x), detail::memory(to_f),
                             detail::memory(to_m), detail::memory(written), detail::memory(gates),
                             detail::memory(gradient));
}

template <writable_rows TY, readable_rows F, readable_rows M, readable_rows TX, readable_rows TF, readable_rows TM>
void gated_write_jvp(TY&& ty, const F& f, const M& m, const TX& tx, const TF& tf, const TM& tm)
{
    const auto out = detail::view(ty);
    const auto written = detail::constant_view(f);
    const auto gates = detail::constant_view(m);
    const auto along_x = detail::constant_view(tx);
    const auto along_f = detail::constant_view(tf);
    const auto along_m = detail::constant_view(tm);
    RESIDUA_ASSERT(detail::same_shape(out, along_x) && detail::same_shape(written, along_f)
                       && detail::same_shape(gates, along_m)
                       && local::are_streams(out, written.count, gates.columns) && written.columns == out.columns
                       && gates.count == written.count,
                   "gated_write_jvp: the shapes do not fit");
    RESIDUA_ASSERT(detail::same_or_apart(out, along_x), "gated_write_jvp: ty and tx overlap in part");
    RESIDUA_ASSERT(local::writes_apart(out, written, gates, along_f, along_m),
                   "gated_write_jvp: ty overlaps another operand");
    kernels::gated_write_jvp(detail::shape_of(written), gates.columns, detail::memory(out), detail::memory(written),
                             detail::memory(gates), detail::memory(along_x), detail::memory(along_f),
                             detail::memory(along_m));
}

}  // namespace RESIDUA_API

#endif
