// AttnRes: attention over the outputs of the sublayers before.
//
// h = sum_i p_i k_i with p = softmax(s), s_i = q . xh_i and xh_i = r_i k_i. What is kept of a row of k is kept for this
// many rows at a time; of more rows it is computed again where it is needed.

namespace RESIDUA_PASS {

inline constexpr std::size_t rows_kept = 128;

/// The operands, for every pass over the rows of k.
struct attn_operands {
    std::size_t count, columns;
    const input &k, q;
    double eps;

    source<double> key(std::size_t i) const { return from<double>(k, i); }
    std::size_t kept_from(std::size_t first) const { return count - first < rows_kept ? count - first : rows_kept; }
};

/// r_i and s_i.
struct attn_score {
    double r, s;
};
inline attn_score score_of(const attn_operands& a, std::size_t i)
{
    const auto row = a.key(i);
    const auto scale = rms_scale(row, a.columns, a.eps);
    const auto scaled = computed(times_power{scale.exponent}, row);
    double s =
        scale.r
        * sum_row(multiply_add{}, a.columns, from<double>(a.q, 0), scale.exponent == 0 ? row : scaled.as_source());
    keep_product(s);
    return {times_pow2(scale.r, scale.exponent), s};
}

inline double product_of(const attn_operands& a, const input& x, std::size_t i, const input& y, std::size_t j)
{
    return sum_row(multiply_add{}, a.columns, from<double>(x, i), from<double>(y, j));
}

/// Rows with coefficients: those that are kept, twice, and what is added to.
struct weighted_rows {
    row_in rows[2 * rows_kept + 1];
    double coefficients[2 * rows_kept + 1];
    std::size_t count = 0;

    void add(double coefficient, const row_in& row)
    {
        coefficients[count] = coefficient;
        rows[count++] = row;
    }
    void write(std::size_t n, const row_out& y) const
    {
        combine<double>(n, &y, {coefficients, 1, count}, rows, count);
    }
};

/// The scores of rows `first` on, as many as are kept: zero without columns. They are not computed again where all rows are.
inline void read_scores(double* scores, const attn_operands& a, std::size_t first, bool again)
{
    if (again && a.count <= rows_kept) return;
    for (std::size_t i = 0; i < a.kept_from(first); ++i) scores[i] = a.columns == 0 ? 0 : score_of(a, first + i).s;
}

inline void attn_res_of_token(std::size_t count, std::size_t columns, const output& h, const output& p,
                              const input& k, const input& q, double eps)
{
    const attn_operands a{count, columns, k, q, eps};
    double scores[rows_kept];
    double most = -__builtin_inf();
    for (std::size_t i = 0; i < count; i += rows_kept) {
        read_scores(scores, a, i, false);
        const double here = largest_of(itself{}, in_memory(scores), a.kept_from(i));
        if (!(here <= most)) most = here;
    }
    double total = 0;
    for (std::size_t i = 0; i < count; i += rows_kept) {
        read_scores(scores, a, i, true);
        const auto row = in_memory(scores);
        const auto terms = computed(exp_less<double>{most}, row);
        total += sum_row(add{}, a.kept_from(i), terms.as_source());
    }
    for (std::size_t i = 0; i < count; i += rows_kept) {
        read_scores(scores, a, i, true);
        const std::size_t kept = a.kept_from(i);
        map_block(exp_less_over<double>{most, total}, kept, scores, {scores});
        write_elements({p, 0}, i, kept, scores);
    }
    double sums[block<double>], weights[rows_kept];
    row_in rows[rows_kept];
    for (std::size_t j = 0; j < columns; j += block<double>) {
        const std::size_t m = columns - j < block<double> ? columns - j : block<double>;
        for (std::size_t i = 0; i < count; i += rows_kept) {
            const std::size_t kept = a.kept_from(i);
            read_elements({read_back(p), 0}, i, kept, weights);
            for (std::size_t r = 0; r < kept; ++r) rows[r] = {k, i + r};
            combine_block(sums, matrix<double>{weights, 1, kept}, i == 0, rows, kept, j, m);
        }
        write_elements({h, 0}, j, m, sums);
    }
}

inline void attn_res(std::size_t tokens, std::size_t count, std::size_t columns, const output& h, const output& p,
                     const input& k, const input& q, double eps)
{
    for (std::size_t t = 0; t < tokens; ++t) {
        attn_res_of_token(count, columns, rows_from(h, t), rows_from(p, t), rows_from(k, t * count), q, eps);
    }
}

/// dk_i = p_i dh + ds_i r_i (q - xh_i s_i / n), dq = sum_i ds_i xh_i with ds_i = p_i (<dh, k_i> - sum_l p_l <dh, k_l>)
inline void attn_res_vjp_of_token(std::size_t count, std::size_t columns, const output& dk, const output& dq,
                                  const input& k, const input& q, const input& p, const input& dh, double eps,
                                  weight_gradient mode)
{
    const attn_operands a{count, columns, k, q, eps};
    double weights[rows_kept], products[rows_kept], to_q[rows_kept], to_k[rows_kept];
    weighted_rows sum;
    double mean = 0;
    for (std::size_t first = 0; first < count; first += rows_kept) {
        read_elements({p, 0}, first, a.kept_from(first), weights);
        for (std::size_t i = 0; i < a.kept_from(first); ++i) {
            products[i] = product_of(a, dh, 0, k, first + i);
            mean = __builtin_fma(weights[i], products[i], mean);
        }
    }
    for (std::size_t first = 0; first < count; first += rows_kept) {
        const std::size_t kept = a.kept_from(first);
        read_elements({p, 0}, first, kept, weights);
        sum.count = 0;
        if (first > 0 || mode == weight_gradient::accumulate) sum.add(1, {read_back(dq), 0});
        for (std::size_t i = 0; i < kept; ++i) {
            if (count > rows_kept) products[i] = product_of(a, dh, 0, k, first + i);
            const auto score = score_of(a, first + i);
            to_q[i] = (weights[i] * (products[i] - mean)) * score.r;
            to_k[i] = -to_q[i] * (score.r * (score.s / static_cast<double>(columns)));
            sum.add(to_q[i], {k, first + i});
        }
        sum.write(columns, {dq, 0});
        for (std::size_t i = 0; i < kept; ++i) {
            const double coefficients[] = {weights[i], to_q[i], to_k[i]};
            const row_in rows[] = {{dh, 0}, {q, 0}, {k, first + i}};
            const row_out out{dk, first + i};
            combine<double>(columns, &out, {coefficients, 1, 3}, rows, 3);
        }
    }
}

inline void attn_res_vjp(std::size_t tokens, std::size_t count, std::size_t columns, const output& dk,
                         const output& dq, const input& k, const input& q, const input& p, const input& dh,
                         double eps, weight_gradient mode)
{
    if (columns == 0) return;
    if (tokens == 0) begin_weight_gradient(dq, columns, mode);
    for (std::size_t t = 0; t < tokens; ++t) {
        attn_res_vjp_of_token(count, columns, rows_from(dk, t * count), dq, rows_from(k, t * count), q,
                              rows_from(p, t), rows_from(dh, t), eps, t == 0 ? mode : weight_gradient::accumulate);
    }
}

/// ts_i = r_i (<tq, k_i> + <q, tk_i>) - s_i r_i^2 <k_i, tk_i> / n
inline double score_along(const attn_operands& a, const input& tk, const input& tq, std::size_t i)
{
    const auto score = score_of(a, i);
    const double normal = score.r * (score.s / static_cast<double>(a.columns));
    const double along = __builtin_fma(-normal, product_of(a, a.k, i, tk, i), product_of(a, a.q, 0, tk, i));
    double ts = score.r * (product_of(a, tq, 0, a.k, i) + along);
    keep_product(ts);
    return ts;
}

/// th = sum_i p_i tk_i + tp_i k_i with tp_i = p_i (ts_i - sum_l p_l ts_l)
inline void attn_res_jvp_of_token(std::size_t count, std::size_t columns, const output& th, const input& k,
                                  const input& q, const input& p, const input& tk, const input& tq, double eps)
{
    const attn_operands a{count, columns, k, q, eps};
    double weights[rows_kept], along[rows_kept];
    weighted_rows sum;
    double mean = 0;
    for (std::size_t first = 0; first < count; first += rows_kept) {
        read_elements({p, 0}, first, a.kept_from(first), weights);
        for (std::size_t i = 0; i < a.kept_from(first); ++i) {
            along[i] = score_along(a, tk, tq, first + i);
            mean = __builtin_fma(weights[i], along[i], mean);
        }
    }
    for (std::size_t first = 0; first < count; first += rows_kept) {
        const std::size_t kept = a.kept_from(first);
        read_elements({p, 0}, first, kept, weights);
        sum.count = 0;
        if (first > 0) sum.add(1, {read_back(th), 0});
        for (std::size_t i = 0; i < kept; ++i) {
            if (count > rows_kept) along[i] = score_along(a, tk, tq, first + i);
            sum.add(weights[i], {tk, first + i});
            sum.add(weights[i] * (along[i] - mean), {k, first + i});
        }
        sum.write(columns, {th, 0});
    }
}

inline void attn_res_jvp(std::size_t tokens, std::size_t count, std::size_t columns, const output& th,
                         const input& k, const input& q, const input& p, const input& tk, const input& tq,
                         double eps)
{
    if (columns == 0) return;
    for (std::size_t t = 0; t < tokens; ++t) {
        attn_res_jvp_of_token(count, columns, rows_from(th, t), rows_from(k, t * count), q, rows_from(p, t),
                              rows_from(tk, t * count), tq, eps);
    }
}

}  // namespace RESIDUA_PASS
