// Gated Residual: what a sublayer reads from the streams of a token, and writes to them.

namespace RESIDUA_PASS {

/// An operand that has a row for each stream of a token, or one for all of them.
struct of_streams {
    input memory;
    bool one_for_all;

    row_in row(std::size_t t, std::size_t streams, std::size_t c) const
    {
        return {memory, one_for_all ? t : t * streams + c};
    }
};

struct divided_by {
    double divisor;

    template <class V>
    RESIDUA_LANE_INLINE V operator()(V x) const
    {
        return x / V::broadcast(divisor);
    }
};

/// y = the mean over a token's streams of op(in...)
template <class Op, std::size_t N>
inline void mean_over_streams(const Op& op, shape s, std::size_t streams, const output& y,
                              const of_streams (&in)[N])
{
    block_buffer<double> buffers[N], sums, term;
    const double* pointers[N];
    for (std::size_t t = 0; t < s.rows; ++t) {
        for (std::size_t j = 0; j < s.columns; j += block<double>) {
            const std::size_t m = s.columns - j < block<double> ? s.columns - j : block<double>;
            for (std::size_t c = 0; c < streams; ++c) {
                for (std::size_t k = 0; k < N; ++k) {
                    pointers[k] = buffers[k].read(in[k].row(t, streams, c).template as<double>(), j, m);
                }
                map_block(op, m, c == 0 ? sums.data : term.data, pointers);
                if (c > 0) map_block(add{}, m, sums.data, {sums.data, term.data});
            }
            map_block(divided_by{static_cast<double>(streams)}, m, sums.data, {sums.data});
            write_elements({y, t}, j, m, sums.data);
        }
    }
}

struct gated_read_of {
    template <class V>
    RESIDUA_LANE_INLINE V operator()(V n, V g) const
    {
        return sigmoid_factor<>{}.product(g, n);
    }
};
inline void gated_read(shape s, std::size_t streams, const output& y, const input& n, const input& g, bool one_gate)
{
    mean_over_streams<gated_read_of, 2>({}, s, streams, y, {{n, false}, {g, one_gate}});
}

struct gated_read_jvp_of {
    template <class V>
    RESIDUA_LANE_INLINE V operator()(V n, V g, V tn, V tg) const
    {
        return value(scaled_sigmoid(g) * tn + sigmoid_slope(g) * n * tg);
    }
};
inline void gated_read_jvp(shape s, std::size_t streams, const output& ty, const input& n, const input& g,
                           bool one_gate, const input& tn, const input& tg)
{
    mean_over_streams<gated_read_jvp_of, 4>({}, s, streams, ty,
                                            {{n, false}, {g, one_gate}, {tn, false}, {tg, one_gate}});
}

struct gated_read_vjp_of {
    double streams;

    template <class V>
    RESIDUA_LANE_INLINE two<V> operator()(V n, V g, V dy) const
    {
        const V share = dy / V::broadcast(streams);
        return {sigmoid_factor<>{}.product(g, share), value(sigmoid_slope(g) * n * share)};
    }
};
inline void gated_read_vjp(shape s, std::size_t streams, const output& dn, const output& dg, const input& n,
                           const input& g, bool one_gate, const input& dy)
{
    const gated_read_vjp_of op{static_cast<double>(streams)};
    block_buffer<double> buffers[3], to_n, to_g, sums;
    for (std::size_t t = 0; t < s.rows; ++t) {
        for (std::size_t j = 0; j < s.columns; j += block<double>) {
            const std::size_t m = s.columns - j < block<double> ? s.columns - j : block<double>;
            for (std::size_t c = 0; c < streams; ++c) {
                const row_in rows[] = {{n, t * streams + c}, of_streams{g, one_gate}.row(t, streams, c), {dy, t}};
                const double* pointers[3];
                for (std::size_t k = 0; k < 3; ++k) pointers[k] = buffers[k].read(rows[k].as<double>(), j, m);
                double* const outputs[] = {to_n.data, one_gate && c == 0 ? sums.data : to_g.data};
                in_vectors<double, 2, 3>(map_erased<gated_read_vjp_of, double, 2, 3>, &op, m, outputs, pointers);
                write_elements({dn, t * streams + c}, j, m, to_n.data);
                if (!one_gate) write_elements({dg, t * streams + c}, j, m, to_g.data);
                if (one_gate && c > 0) map_block(add{}, m, sums.data, {sums.data, to_g.data});
            }
            if (one_gate) write_elements({dg, t}, j, m, sums.data);
        }
    }
}

/// What token t's f is multiplied by for each stream, 2 sigmoid(m), and its derivative.
inline void write_gates(double* gates, double* slopes, std::size_t streams, const row_in& m)
{
    const stream_vector two_of_it = stream_vector::broadcast(2);
    double row[most_streams];
    read_streams(row, m, 0, streams, 0);
    store(gates, two_of_it * sigmoid(load_streams(row)));
    store(slopes, two_of_it * value(sigmoid_slope(load_streams(row))));
}

/// y_c = x_c + 2 sigmoid(m_c) f. In float where the gate has all its bits as one.
template <class T>
inline void gated_write(shape s, std::size_t streams, const output& y, const input& x, const input& f,
                        const input& m)
{
    double gates[most_streams], slopes[most_streams];
    for (std::size_t t = 0; t < s.rows; ++t) {
        write_gates(gates, slopes, streams, {m, t});
        for (std::size_t c = 0; c < streams; ++c) {
            const std::size_t i = t * streams + c;
            if (sizeof(T) == 8 || !(gates[c] >= 0x1p-100)) {
                map_row(residual_add_of<double>{gates[c]}, s.columns, to<double>(y, i), from<double>(x, i),
                        from<double>(f, t));
            } else {
                map_row(residual_add_of<T>{static_cast<T>(gates[c])}, s.columns, to<T>(y, i), from<T>(x, i),
                        from<T>(f, t));
            }
        }
    }
}

/// dx = dy, df = sum_c gate_c dy_c, dm_c = slope_c <dy_c, f>
inline void gated_write_vjp(shape s, std::size_t streams, const output& dx, const output& df, const output& dm,
                            const input& f, const input& m, const input& dy)
{
    double gates[most_streams], slopes[most_streams], products[most_streams];
    row_in gradients[most_streams];
    for (std::size_t t = 0; t < s.rows; ++t) {
        write_gates(gates, slopes, streams, {m, t});
        for (std::size_t c = 0; c < streams; ++c) gradients[c] = {dy, t * streams + c};
        const row_in written{f, t};
        multiply_rows(products, s.columns, gradients, streams, &written, 1);
        for (std::size_t c = 0; c < streams; ++c) {
            products[c] *= slopes[c];
            keep_product(products[c]);
        }
        write_elements({dm, t}, 0, streams, products);
        const row_out to_f{df, t};
        combine<double>(s.columns, &to_f, {gates, 1, streams}, gradients, streams);
        for (std::size_t i = t * streams; i < (t + 1) * streams; ++i) {
            map_row(scaled_by<double>{1}, s.columns, to<double>(dx, i), from<double>(dy, i));
        }
    }
}

/// ty_c = tx_c + gate_c tf + slope_c tm_c f
inline void gated_write_jvp(shape s, std::size_t streams, const output& ty, const input& f, const input& m,
                            const input& tx, const input& tf, const input& tm)
{
    double gates[most_streams], slopes[most_streams], along[most_streams];
    for (std::size_t t = 0; t < s.rows; ++t) {
        write_gates(gates, slopes, streams, {m, t});
        read_streams(along, {tm, t}, 0, streams, 0);
        for (std::size_t c = 0; c < streams; ++c) {
            double slope = slopes[c] * along[c];
            keep_product(slope);
            const double coefficients[] = {1, gates[c], slope};
            const row_in rows[] = {{tx, t * streams + c}, {tf, t}, {f, t}};
            const row_out out{ty, t * streams + c};
            combine<double>(s.columns, &out, {coefficients, 1, 3}, rows, 3);
        }
    }
}

}  // namespace RESIDUA_PASS
