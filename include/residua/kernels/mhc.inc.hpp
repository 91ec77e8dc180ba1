// mHC: the coefficients of a token.
//
// Every normalisation divides the rows or the columns of comb by numbers, so that comb is always diag(u) K diag(v), K
// the first softmax plus eps; what has to be kept of an iteration is u or v. A vector holds a row of K, or u, or v.

namespace RESIDUA_PASS {

inline constexpr std::size_t most_iterations = operand::most_mhc_iterations;

inline void transpose(double* to, const double* from)
{
    for (std::size_t i = 0; i < most_streams; ++i) {
        for (std::size_t j = 0; j < most_streams; ++j) to[j * most_streams + i] = from[i * most_streams + j];
    }
}

/// What the coefficients of one token are computed from. Past its n streams, p is 0 and K is 1, which nothing reads.
struct mhc_token {
    double m[(2 + most_streams) * most_streams],
        z[(2 + most_streams) * most_streams];  // z = a m + b; pre, post, comb
    double p[most_streams * most_streams];     // the softmax
    double k[most_streams * most_streams], k_transposed[most_streams * most_streams];
    double u[(most_iterations + 1) * most_streams], v[(most_iterations + 1) * most_streams];
};

/// The operands of all tokens.
struct mhc_parameters {
    std::size_t streams;
    const input &m, a, b;
    double eps;
    std::size_t iterations;
};

/// The parts of m and b: pre, post and the rows of comb; part i begins at i * streams.
inline std::size_t parts_of(std::size_t streams) { return 2 + streams; }
inline std::size_t scale_of_part(std::size_t part) { return part < 2 ? part : 2; }

/// self / (self sum_o(other_o table_o) + eps): one normalisation.
RESIDUA_LANE_INLINE stream_vector normalized(stream_vector self, const double* other, const double* table,
                                             std::size_t n, double eps)
{
    stream_vector sum = zero<stream_vector>();
    for (std::size_t o = 0; o < n; ++o) {
        sum = fma(stream_vector::broadcast(other[o]), load_streams(table + o * most_streams), sum);
    }
    return self / fma(self, sum, stream_vector::broadcast(eps));
}

inline void read_mhc_token(mhc_token& x, const mhc_parameters& q, std::size_t t)
{
    using V = stream_vector;
    const std::size_t n = q.streams;
    constexpr double least =
        -0x1.fffffffffffffp1023;  // which changes no maximum, and raises no exception as -inf would
    double a[3], b[most_streams];
    read_elements({q.a, 0}, 0, 3, a);
    for (std::size_t part = 0; part < parts_of(n); ++part) {
        double* const m = x.m + part * most_streams;
        read_streams(m, {q.m, t}, part * n, n, 0);
        read_streams(b, {q.b, 0}, part * n, n, part < 2 ? 0 : least);
        store(x.z + part * most_streams,
              fma(V::broadcast(a[scale_of_part(part)]), load_streams(m), load_streams(b)));
    }
    for (std::size_t i = 0; i < most_streams * most_streams; ++i) {
        x.p[i] = 0;
        x.k[i] = 1;
    }
    for (std::size_t i = 0; i < n; ++i) {
        double* const p = x.p + i * most_streams;
        const V z = load_streams(x.z + (2 + i) * most_streams);
        store(p, exp_of_difference(z, V::broadcast(largest(z))));
        for (std::size_t j = n; j < most_streams; ++j) p[j] = 0;
        const V terms = load_streams(p);
        store(p, terms / V::broadcast(sum(terms)));
        for (std::size_t j = 0; j < n; ++j) x.k[i * most_streams + j] = p[j] + q.eps;
    }
    transpose(x.k_transposed, x.k);
    V u = V::broadcast(1), v = u;
    store(x.u, u);
    store(x.v, v);
    for (std::size_t r = 1; r <= q.iterations; ++r) {
        double* const u_now = x.u + (r - 1) * most_streams;
        double* const v_now = x.v + (r - 1) * most_streams;
        if (r > 1) {
            u = normalized(u, v_now, x.k_transposed, n, q.eps);
            store(u_now, u);
        }
        v = normalized(v, u_now, x.k, n, q.eps);
        store(v_now + most_streams, v);
    }
}

/// u and v after the last normalisation.
inline const double* last_u(const mhc_token& x, const mhc_parameters& q)
{
    return x.u + (q.iterations - 1) * most_streams;
}
inline const double* last_v(const mhc_token& x, const mhc_parameters& q)
{
    return x.v + q.iterations * most_streams;
}

/// pre = sigmoid(z) + eps, post = 2 sigmoid(z), comb after all normalisations.
inline void mhc_coefficients(std::size_t tokens, std::size_t streams, const output& pre, const output& post,
                             const output& comb, const input& m, const input& a, const input& b, double eps,
                             std::size_t iterations)
{
    using V = stream_vector;
    const mhc_parameters q{streams, m, a, b, eps, iterations};
    const std::size_t n = streams;
    mhc_token x;
    double result[most_streams];
    for (std::size_t t = 0; t < tokens; ++t) {
        read_mhc_token(x, q, t);
        store(result, sigmoid(load_streams(x.z)) + V::broadcast(eps));
        write_elements({pre, t}, 0, n, result);
        store(result, V::broadcast(2) * sigmoid(load_streams(x.z + most_streams)));
        write_elements({post, t}, 0, n, result);
        for (std::size_t i = 0; i < n; ++i) {
            const V u = V::broadcast(last_u(x, q)[i]);
            store(result, (load_streams(x.k + i * most_streams) * u) * load_streams(last_v(x, q)));
            write_elements({comb, t}, i * n, n, result);
        }
    }
}

/// The gradient of one normalisation, self' = self / (self sum + eps) with sum = sum_o other_o table_o: takes that of
/// self' and makes it that of self; adds those of `other` and `table`. `crossed` is the table transposed.
inline void normalized_vjp(double* d_self, double* d_other, double* d_table, const double* self,
                           const double* result, const double* other, const double* crossed, std::size_t n,
                           double eps)
{
    using V = stream_vector;
    double d_sum[most_streams];
    const V after = load_streams(result), d_after = load_streams(d_self);
    const V ds = -(d_after * after) * after;
    store(d_sum, ds);
    V d = load_streams(d_other);
    for (std::size_t o = 0; o < n; ++o) {
        double* const row = d_table + o * most_streams;
        store(row, fma(V::broadcast(other[o]), ds, load_streams(row)));
        d = fma(V::broadcast(d_sum[o]), load_streams(crossed + o * most_streams), d);
    }
    store(d_other, d);
    const V ratio = after / load_streams(self);
    store(d_self, ((d_after * V::broadcast(eps)) * ratio) * ratio);
}

/// The gradient of comb's z, row after row, from that of comb.
inline void comb_vjp(double* dz, const mhc_token& x, const mhc_parameters& q, const double* d_comb)
{
    using V = stream_vector;
    const std::size_t n = q.streams;
    double dk[most_streams * most_streams] = {}, dk_transposed[most_streams * most_streams] = {};
    double back[most_streams * most_streams], du[most_streams] = {}, dv[most_streams] = {};
    const V v = load_streams(last_v(x, q));
    V d = zero<V>();
    for (std::size_t i = 0; i < n; ++i) {
        const V g = load_streams(d_comb + i * most_streams);
        const V k = load_streams(x.k + i * most_streams);
        const V u = V::broadcast(last_u(x, q)[i]);
        store(dk + i * most_streams, (g * u) * v);
        d = fma(g * u, k, d);
        du[i] = sum((g * k) * v);
    }
    store(dv, d);
    for (std::size_t r = q.iterations; r >= 1; --r) {
        const double* const u_now = x.u + (r - 1) * most_streams;
        const double* const v_now = x.v + (r - 1) * most_streams;
        normalized_vjp(dv, du, dk, v_now, v_now + most_streams, u_now, x.k_transposed, n, q.eps);
        if (r > 1) {
            normalized_vjp(du, dv, dk_transposed, u_now - most_streams, u_now, v_now, x.k, n, q.eps);
        }
    }
    transpose(back, dk_transposed);
    for (std::size_t i = 0; i < n; ++i) {
        const V p = load_streams(x.p + i * most_streams);
        const V g = load_streams(dk + i * most_streams) + load_streams(back + i * most_streams);
        store(dz + i * most_streams, p * (g - V::broadcast(sum(p * g))));
    }
}

inline void mhc_coefficients_vjp(std::size_t tokens, std::size_t streams, const output& dm, const output& da,
                                 const output& db, const input& m, const input& a, const input& b,
                                 const input& dpre, const input& dpost, const input& dcomb, double eps,
                                 std::size_t iterations, weight_gradient mode)
{
    using V = stream_vector;
    const mhc_parameters q{streams, m, a, b, eps, iterations};
    const std::size_t n = streams, parts = parts_of(n);
    double scales[3], sum_a[3] = {}, sum_b[(2 + most_streams) * most_streams] = {};
    double d_comb[most_streams * most_streams], dz[(2 + most_streams) * most_streams], result[most_streams];
    read_elements({a, 0}, 0, 3, scales);
    mhc_token x;
    for (std::size_t t = 0; t < tokens; ++t) {
        read_mhc_token(x, q, t);
        const input of_parts[] = {dpre, dpost};
        for (std::size_t part = 0; part < 2; ++part) {
            read_streams(result, {of_parts[part], t}, 0, n, 0);
            const V slope = value(sigmoid_slope(load_streams(x.z + part * most_streams)));
            store(dz + part * most_streams, load_streams(result) * (V::broadcast(part == 0 ? 1 : 2) * slope));
        }
        for (std::size_t i = 0; i < n; ++i) read_streams(d_comb + i * most_streams, {dcomb, t}, i * n, n, 0);
        comb_vjp(dz + 2 * most_streams, x, q, d_comb);
        for (std::size_t part = 0; part < parts; ++part) {
            const V g = load_streams(dz + part * most_streams);
            double* const to_b = sum_b + part * most_streams;
            store(to_b, load_streams(to_b) + g);
            sum_a[scale_of_part(part)] += sum(g * load_streams(x.m + part * most_streams));
            store(result, V::broadcast(scales[scale_of_part(part)]) * g);
            write_elements({dm, t}, part * n, n, result);
        }
    }
    const bool add = mode == weight_gradient::accumulate;
    write_gradient({da, 0}, 0, 3, sum_a, add);
    for (std::size_t part = 0; part < parts; ++part) {
        write_gradient({db, 0}, part * n, n, sum_b + part * most_streams, add);
    }
}

/// The derivative of one normalisation.
inline void normalized_jvp(double* t_self, const double* t_other, const double* t_table, const double* self,
                           const double* result, const double* other, const double* table, std::size_t n,
                           double eps)
{
    using V = stream_vector;
    V t_sum = zero<V>();
    for (std::size_t o = 0; o < n; ++o) {
        t_sum = fma(V::broadcast(t_other[o]), load_streams(table + o * most_streams), t_sum);
        t_sum = fma(V::broadcast(other[o]), load_streams(t_table + o * most_streams), t_sum);
    }
    const V after = load_streams(result);
    const V ratio = after / load_streams(self);
    const V kept = ((load_streams(t_self) * V::broadcast(eps)) * ratio) * ratio;
    store(t_self, fma(-(after * after), t_sum, kept));
}

inline void comb_jvp(double* t_comb, const mhc_token& x, const mhc_parameters& q, const double* tz)
{
    using V = stream_vector;
    const std::size_t n = q.streams;
    double tk[most_streams * most_streams] = {}, tk_transposed[most_streams * most_streams];
    double tu[most_streams] = {}, tv[most_streams] = {};
    for (std::size_t i = 0; i < n; ++i) {
        const V p = load_streams(x.p + i * most_streams);
        const V along = load_streams(tz + i * most_streams);
        store(tk + i * most_streams, p * (along - V::broadcast(sum(p * along))));
    }
    transpose(tk_transposed, tk);
    for (std::size_t r = 1; r <= q.iterations; ++r) {
        const double* const u_now = x.u + (r - 1) * most_streams;
        const double* const v_now = x.v + (r - 1) * most_streams;
        if (r > 1) {
            normalized_jvp(tu, tv, tk_transposed, u_now - most_streams, u_now, v_now, x.k_transposed, n, q.eps);
        }
        normalized_jvp(tv, tu, tk, v_now, v_now + most_streams, u_now, x.k, n, q.eps);
    }
    const V v = load_streams(last_v(x, q)), v_along = load_streams(tv);
    for (std::size_t i = 0; i < n; ++i) {
        const V k = load_streams(x.k + i * most_streams), k_along = load_streams(tk + i * most_streams);
        const V u = V::broadcast(last_u(x, q)[i]), u_along = V::broadcast(tu[i]);
        store(t_comb + i * most_streams, fma(k_along * u, v, fma(k * u_along, v, (k * u) * v_along)));
    }
}

inline void mhc_coefficients_jvp(std::size_t tokens, std::size_t streams, const output& tpre, const output& tpost,
                                 const output& tcomb, const input& m, const input& a, const input& b,
                                 const input& tm, const input& ta, const input& tb, double eps,
                                 std::size_t iterations)
{
    using V = stream_vector;
    const mhc_parameters q{streams, m, a, b, eps, iterations};
    const std::size_t n = streams;
    double scales[3], scales_along[3], tz[(2 + most_streams) * most_streams];
    double t_comb[most_streams * most_streams], m_along[most_streams], b_along[most_streams], result[most_streams];
    read_elements({a, 0}, 0, 3, scales);
    read_elements({ta, 0}, 0, 3, scales_along);
    mhc_token x;
    for (std::size_t t = 0; t < tokens; ++t) {
        read_mhc_token(x, q, t);
        for (std::size_t part = 0; part < parts_of(n); ++part) {
            read_streams(m_along, {tm, t}, part * n, n, 0);
            read_streams(b_along, {tb, 0}, part * n, n, 0);
            const std::size_t scale = scale_of_part(part);
            const V inner = fma(V::broadcast(scales[scale]), load_streams(m_along), load_streams(b_along));
            store(tz + part * most_streams,
                  fma(V::broadcast(scales_along[scale]), load_streams(x.m + part * most_streams), inner));
        }
        const output of_parts[] = {tpre, tpost};
        for (std::size_t part = 0; part < 2; ++part) {
            const V slope = value(sigmoid_slope(load_streams(x.z + part * most_streams)));
            store(result, load_streams(tz + part * most_streams) * (V::broadcast(part == 0 ? 1 : 2) * slope));
            write_elements({of_parts[part], t}, 0, n, result);
        }
        comb_jvp(t_comb, x, q, tz + 2 * most_streams);
        for (std::size_t i = 0; i < n; ++i) write_elements({tcomb, t}, i * n, n, t_comb + i * most_streams);
    }
}

}  // namespace RESIDUA_PASS
