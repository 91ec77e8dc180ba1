// RMSNorm of a residual sum, and its derivatives: h = residual + scale x is written back, y is the norm of h.

namespace RESIDUA_PASS {

struct keep_beside {
    template <class V>
    RESIDUA_LANE_INLINE two<V> operator()(V y, V kept) const
    {
        return {y, kept};
    }
};

/// Adds to a few rows of a stream.
template <class T>
struct add_to_rows {
    std::size_t columns;
    output stream;
    input x;
    T scale;

    void operator()(std::size_t first, std::size_t count) const
    {
        const output rows = rows_from(stream, first);
        residual_add<T>({count, columns}, rows, read_back(rows), rows_from(x, first), scale);
    }
};

template <class T>
inline void add_rms_norm(shape s, const output& y, const output& residual, const input& x, const input& w,
                         norm_weight kind, T eps, T factor, norm_of which, norm_rounding rounding)
{
    const std::size_t n = s.columns;
    const input stream = read_back(residual);
    if (which == norm_of::stored) {
        return norm_of_rows<T>(add_to_rows<T>{n, residual, x, factor}, s, y, stream, w, kind, eps, rounding);
    }
    if (n == 0) return;
    const auto f = channels<T>(w, kind);
    for (std::size_t i = 0; i < s.rows; ++i) {
        const auto sum = computed(residual_add_of<T>{factor}, from<T>(stream, i), from<T>(x, i));
        const auto exact = sum.as_source();
        normalize(through<T, keep_beside, 2, 1>{{}, {to<T>(y, i), to<T>(residual, i)}, {exact}}, exact, f, n,
                  rms_scale(exact, n, eps), rounding, residual.type);
    }
}

/// What reaches h from both of its uses, and its share for x.
struct add_gradient_of_sum {
    double scale;

    template <class V>
    RESIDUA_LANE_INLINE two<V> operator()(V through_norm, V dresidual_out) const
    {
        const V sum = dresidual_out + through_norm;
        return {sum, V::broadcast(scale) * sum};
    }
};

inline void add_rms_norm_vjp(shape s, const output& dresidual, const output& dx, const output& dw,
                             const input& residual, const input& w, norm_weight kind, const input& dresidual_out,
                             const input& dy, double eps, double scale, weight_gradient mode)
{
    const std::size_t n = s.columns;
    if (n == 0) return;
    begin_weight_gradient(dw, n, mode);
    const auto f = channels<double>(w, kind);
    for (std::size_t i = 0; i < s.rows; ++i) {
        const auto h = from<double>(residual, i);
        const auto dy_row = from<double>(dy, i);
        const auto sums = sums_of_row<factors::first>(dy_row, h, f, n, eps);
        add_to_weight_gradient(dw, dy_row, h, n, sums.scale);
        const through<double, add_gradient_of_sum, 2, 1> target{
            {scale}, {to<double>(dresidual, i), to<double>(dx, i)}, {from<double>(dresidual_out, i)}};
        jacobian_of_sums<factors::first>(target, dy_row, h, f, n, sums);
    }
}

inline void add_rms_norm_jvp(shape s, const output& ty, const output& tresidual, const input& residual,
                             const input& w, norm_weight kind, const input& tx, const input& tw, double eps,
                             double scale)
{
    const std::size_t n = s.columns;
    if (n == 0) return;
    const auto f = channels<double>(w, kind);
    for (std::size_t i = 0; i < s.rows; ++i) {
        const auto h = from<double>(residual, i);
        const auto sum =
            computed(residual_add_of<double>{scale}, from<double>(read_back(tresidual), i), from<double>(tx, i));
        const auto th = sum.as_source();
        const through<double, keep_beside, 2, 1> target{{}, {to<double>(ty, i), to<double>(tresidual, i)}, {th}};
        jacobian_of_sums<factors::last>(with_tangent(target, tw), th, h, f, n,
                                        sums_of_row<factors::last>(th, h, f, n, eps));
    }
}

}  // namespace RESIDUA_PASS
