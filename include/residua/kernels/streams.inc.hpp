// Several residual streams for each token: how they are mixed, y_j = w_j f + sum_i c(j, i) x_i.

namespace RESIDUA_PASS {

using operand::mixing;

inline bool writes(const mixing& m) { return m.w.data != nullptr; }  // f may have no columns
inline std::size_t terms_of(const mixing& m) { return m.from + (writes(m) ? 1 : 0); }

/// The coefficients of token t, output by output: w_j, if there is one, then c(j, 0), c(j, 1), ...
inline void read_coefficients(double* c, std::size_t stride, const mixing& m, std::size_t t)
{
    double row[most_streams * most_streams], w[most_streams];
    read_elements({m.c, t}, 0, m.from * m.to, row);
    if (writes(m)) read_elements({m.w, t}, 0, m.to, w);
    for (std::size_t j = 0; j < m.to; ++j) {
        double* next = c + j * stride;
        if (writes(m)) *next++ = w[j];
        for (std::size_t i = 0; i < m.from; ++i) *next++ = row[m.by_source ? i * m.to + j : j * m.from + i];
    }
}

/// The rows that are mixed for token t: f, if there is one, then the streams.
inline void read_rows(row_in* rows, const mixing& m, const input& x, std::size_t t)
{
    if (writes(m)) *rows++ = {m.f, t};
    for (std::size_t i = 0; i < m.from; ++i) rows[i] = {x, t * m.from + i};
}

template <class T>
inline void mix_streams(shape s, const output& y, const input& x, mixing m)
{
    const std::size_t terms = terms_of(m);
    double c[most_streams * most_terms];
    row_in in[most_terms];
    row_out out[most_outputs];
    for (std::size_t t = 0; t < s.rows; ++t) {
        read_coefficients(c, terms, m, t);
        read_rows(in, m, x, t);
        for (std::size_t j = 0; j < m.to; ++j) out[j] = {y, t * m.to + j};
        combine<T>(s.columns, out, {c, m.to, terms}, in, terms);
    }
}

/// The gradient of numbers, at most a block: a row for each token, or (of stride 0) the sum over the tokens.
struct gradient_of_numbers {
    output memory;
    std::size_t count;
    bool add;
    double sums[most_streams * most_streams] = {};

    bool of_all_tokens() const { return memory.stride == 0; }
    void token(std::size_t t, const double* values)
    {
        if (!of_all_tokens()) return write_gradient({memory, t}, 0, count, values, add);
        for (std::size_t i = 0; i < count; ++i) sums[i] += values[i];
    }
    void last() const
    {
        if (of_all_tokens()) write_gradient({memory, 0}, 0, count, sums, add);
    }
};

/// dx_i = sum_j c(j, i) dy_j, df = sum_j w_j dy_j, dc(j, i) = <dy_j, x_i>, dw_j = <dy_j, f>
inline void mix_streams_vjp(shape s, const output& dx, const output& df, const output& dc, const output& dw,
                            const input& x, mixing m, const input& dy, weight_gradient mode)
{
    const std::size_t terms = terms_of(m);
    double c[most_streams * most_outputs], transposed[most_streams * most_outputs];
    double products[most_streams * most_outputs], of_c[most_streams * most_streams], of_w[most_streams];
    row_in in[most_outputs], gradients[most_streams];
    row_out out[most_outputs];
    gradient_of_numbers to_c{dc, m.from * m.to, mode == weight_gradient::accumulate};
    gradient_of_numbers to_w{dw, writes(m) ? m.to : 0, false};
    for (std::size_t t = 0; t < s.rows; ++t) {
        read_coefficients(c, terms, m, t);
        read_rows(in, m, x, t);
        for (std::size_t j = 0; j < m.to; ++j) gradients[j] = {dy, t * m.to + j};
        multiply_rows(products, s.columns, gradients, m.to, in, terms);
        for (std::size_t j = 0; j < m.to; ++j) {
            const double* const row = products + j * terms;
            of_w[j] = row[0];
            for (std::size_t i = 0; i < terms; ++i) transposed[i * m.to + j] = c[j * terms + i];
            for (std::size_t i = 0; i < m.from; ++i) {
                of_c[m.by_source ? i * m.to + j : j * m.from + i] = row[terms - m.from + i];
            }
        }
        to_c.token(t, of_c);
        if (writes(m)) to_w.token(t, of_w);
        row_out* next = out;
        if (writes(m)) *next++ = {df, t};
        for (std::size_t i = 0; i < m.from; ++i) *next++ = {dx, t * m.from + i};
        combine<double>(s.columns, out, {transposed, terms, m.to}, gradients, m.to);
    }
    to_c.last();
    if (writes(m)) to_w.last();
}

/// ty_j = w_j tf + sum_i c(j, i) tx_i + tw_j f + sum_i tc(j, i) x_i
inline void mix_streams_jvp(shape s, const output& ty, const input& x, mixing m, const input& tx, mixing tm)
{
    const std::size_t terms = terms_of(m);
    double c[most_streams * most_terms];
    row_in in[most_terms];
    row_out out[most_outputs];
    const mixing along{m.from, m.to, m.by_source, tm.c, m.f, tm.w},
        rows_along{m.from, m.to, m.by_source, m.c, tm.f, m.w};
    for (std::size_t t = 0; t < s.rows; ++t) {
        read_coefficients(c, 2 * terms, rows_along, t);
        read_coefficients(c + terms, 2 * terms, along, t);
        read_rows(in, rows_along, tx, t);
        read_rows(in + terms, along, x, t);
        for (std::size_t j = 0; j < m.to; ++j) out[j] = {ty, t * m.to + j};
        combine<double>(s.columns, out, {c, m.to, 2 * terms}, in, 2 * terms);
    }
}

// --- a few numbers of a token -----------------------------------------------------------------------------------

/// Holds one number for each stream.
using stream_vector = f64x16;
static_assert(stream_vector::size == most_streams);

RESIDUA_LANE_INLINE stream_vector load_streams(const double* p) { return load<stream_vector>(p); }

/// n numbers of a row from element j on, with `padding` behind them.
inline void read_streams(double* to, const row_in& x, std::size_t j, std::size_t n, double padding)
{
    read_elements(x, j, n, to);
    for (std::size_t i = n; i < most_streams; ++i) to[i] = padding;
}

}  // namespace RESIDUA_PASS
