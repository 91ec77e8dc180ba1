// LayerNorm: the RMSNorm of a row minus its mean, plus a bias; its gradient and its derivative. In double for every
// type: a mean taken in float would lose the row beside it.

namespace RESIDUA_PASS {

/// A mean, in two parts: the second is what rounding took from the first.
struct two_part_mean {
    double high, low;
};

struct minus_mean {
    two_part_mean mean;

    template <class V>
    RESIDUA_LANE_INLINE V operator()(V x) const
    {
        return (x - V::broadcast(mean.high)) - V::broadcast(mean.low);
    }
};

inline two_part_mean mean_of(const source<double>& x, std::size_t n)
{
    const auto count = static_cast<double>(n);
    const double high = sum_row(add{}, n, x) / count;
    const auto rest = computed(minus_mean{{high, 0}}, x);
    return {high, sum_row(add{}, n, rest.as_source()) / count};
}

/// A row minus its mean. Has to outlive the source that it gives.
struct centered_row {
    computed_row<double, minus_mean, 1> row;

    centered_row(const source<double>& x, std::size_t n) : row{computed(minus_mean{mean_of(x, n)}, x)} {}
    source<double> as_source() const { return row.as_source(); }
};

/// The same times 2^exponent, such that no square leaves the range, and its 1 / sqrt(mean of squares + eps).
struct standard_row {
    int exponent;
    row_in_range<double> x;
    centered_row centered;
    double r;

    standard_row(const input& rows, std::size_t i, std::size_t n, double eps)
        : exponent{power_for(rows, i, n, eps)},
          x{in_range(from<double>(rows, i), exponent)},
          centered{x.as_source(), n},
          r{scale_of_row(square_sum{sum_row(add_square{}, n, centered.as_source()), 0}, n,
                         scaled_eps(eps, exponent))
                .r}
    {
    }
    standard_row(const standard_row&) = delete;
    standard_row& operator=(const standard_row&) = delete;

    source<double> as_source() const { return centered.as_source(); }
    row_scale scale() const { return {r, 0}; }

    /// What is left of a row minus its mean may be 2^-53 of it.
    static int power_for(const input& rows, std::size_t i, std::size_t n, double eps)
    {
        if (rows.type != element::float64) return 0;
        const double most = largest_of(magnitude{}, from<double>(rows, i), n);
        if (!is_finite_and_positive(most) || (most > 0x1p-400 && most < 0x1p400)) return 0;
        const double root = __builtin_sqrt(eps);
        return exponent_to_one(most > root ? most : root) + square_range<double>::scaled_to;
    }
};

inline void layer_norm(shape s, const output& y, const input& x, const input& w, norm_weight kind, const input& b,
                       double eps)
{
    const std::size_t n = s.columns;
    if (n == 0) return;
    const auto f = channels<double>(w, kind);
    for (std::size_t i = 0; i < s.rows; ++i) {
        const standard_row row{x, i, n, eps};
        const auto y_row = to<double>(y, i);
        if (b.data == nullptr) {
            normalize(to_row<double>{y_row}, row.as_source(), f, n, row.scale());
        } else {
            normalize(through<double, add, 1, 1>{{}, {y_row}, {from<double>(b, 0)}}, row.as_source(), f, n,
                      row.scale());
        }
    }
}

// The Jacobian is that of RMSNorm at the centred row, of a vector that is centred likewise.

inline void layer_norm_vjp(shape s, const output& dx, const output& dw, const output& db, const input& x,
                           const input& w, norm_weight kind, const input& dy, double eps, weight_gradient mode)
{
    const std::size_t n = s.columns;
    if (n == 0) return;
    begin_weight_gradient(dw, n, mode);
    begin_weight_gradient(db, n, mode);
    const auto f = channels<double>(w, kind);
    for (std::size_t i = 0; i < s.rows; ++i) {
        const standard_row row{x, i, n, eps};
        const auto dy_row = from<double>(dy, i);
        add_to_weight_gradient(dw, dy_row, row.as_source(), n, row.scale());
        if (db.data != nullptr) map_row(add{}, n, to<double>(db, 0), from<double>(read_back(db), 0), dy_row);
        const auto a = computed(times_channel{f.centered()}, dy_row, f.w);
        const centered_row centered{a.as_source(), n};
        jacobian_in_range<factors::first>(to_row<double>{to<double>(dx, i)}, centered.as_source(), row.as_source(),
                                          channels<double>(w, norm_weight::none), n, row.r, row.exponent);
    }
}

/// There may be no tw, and no tb.
inline void layer_norm_jvp(shape s, const output& ty, const input& x, const input& w, norm_weight kind,
                           const input& tx, const input& tw, const input& tb, double eps)
{
    const std::size_t n = s.columns;
    if (n == 0) return;
    const auto f = channels<double>(w, kind);
    for (std::size_t i = 0; i < s.rows; ++i) {
        const standard_row row{x, i, n, eps};
        const centered_row centered{from<double>(tx, i), n};
        const auto along = centered.as_source();
        const auto x_row = row.as_source();
        const auto ty_row = to<double>(ty, i);
        if (tb.data == nullptr) {
            jacobian_in_range<factors::last>(with_tangent(to_row<double>{ty_row}, tw), along, x_row, f, n, row.r,
                                             row.exponent);
        } else {
            const through<double, add, 1, 1> target{{}, {ty_row}, {from<double>(tb, 0)}};
            jacobian_in_range<factors::last>(with_tangent(target, tw), along, x_row, f, n, row.r, row.exponent);
        }
    }
}

}  // namespace RESIDUA_PASS
