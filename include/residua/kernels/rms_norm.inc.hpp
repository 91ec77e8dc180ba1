// RMSNorm: y = x r f with r = 1 / sqrt(mean(x^2) + eps) and f = w, 1 + w or 1; its gradient and its derivative.

namespace RESIDUA_PASS {

/// r = 1 / sqrt(mean(x^2) + eps) of a row times 2^exponent (eps with it): y = (x 2^exponent) r.
struct row_scale {
    double r;
    int exponent;
};

template <class T>
inline row_scale rms_scale(const source<T>& x, std::size_t n, T eps)
{
    const double count = static_cast<double>(n);
    const double e = static_cast<double>(eps);
    const auto squares = sum_of_squares(x, n, count * e);
    const double mean = squares.value / count;
    return {1 / __builtin_sqrt(mean + times_pow2(e, 2 * squares.exponent)), squares.exponent};
}

/// What the channels are multiplied by: w + offset. Adding -0 changes nothing, not even the sign of a zero.
template <class T>
struct channel_factors {
    source<T> w;
    T offset;
};
template <class T>
inline channel_factors<T> channels(const input& w, norm_weight kind)
{
    if (kind == norm_weight::none) return {ones<T>(), T(-0.0)};
    return {from<T>(w, 0), kind == norm_weight::zero_centered ? T(1) : T(-0.0)};
}

template <class T>
struct rms_norm_of {
    T r, offset;

    template <class V>
    RESIDUA_LANE_INLINE V operator()(V x, V w) const
    {
        return (V::broadcast(r) * x) * (w + V::broadcast(offset));
    }
};

template <class T>
struct times_factor {
    T offset;

    template <class V>
    RESIDUA_LANE_INLINE V operator()(V x, V w) const
    {
        return x * (w + V::broadcast(offset));
    }
};

/// One row whose scale is known; `stored`: the type that x r is rounded to before the weight, where that is asked for.
template <class T>
inline void normalize(const sink<T>& y, const source<T>& x, const channel_factors<T>& f, std::size_t n,
                      row_scale scale, norm_rounding rounding, element stored)
{
    const T r = static_cast<T>(scale.r);
    const auto scaled = computed(times_power{scale.exponent}, x);
    const source<T> row = scale.exponent == 0 ? x : scaled.as_source();
    if (rounding == norm_rounding::once) return map_row(rms_norm_of<T>{r, f.offset}, n, y, row, f.w);
    const auto normal = computed(scaled_by<T>{r}, row);
    const rounded_row<T> rounded{normal.as_source(), stored};
    map_row(times_factor<T>{f.offset}, n, y, rounded.as_source(), f.w);
}

template <class T>
inline void rms_norm(shape s, output y, input x, input w, norm_weight kind, T eps, norm_rounding rounding)
{
    if (s.columns == 0) return;
    const auto f = channels<T>(w, kind);
    for (std::size_t i = 0; i < s.rows; ++i) {
        const auto row = from<T>(x, i);
        normalize(to<T>(y, i), row, f, s.columns, rms_scale(row, s.columns, eps), rounding, x.type);
    }
}

// --- gradient and derivative -----------------------------------------------------------------------------------
//
// The Jacobian of x r is r (1 - xh xh^T / n), xh = x r: of a vector a it makes r (a - xh mean(a xh)). The gradient
// multiplies by the factors first, a = dy f; the derivative last.

enum class factors { first, last };

template <factors When, class T>
struct add_product_with_x {
    T offset;

    template <class V>
    RESIDUA_LANE_INLINE V operator()(V acc, V a, V x, V w) const
    {
        if constexpr (When == factors::first) a = a * (w + V::broadcast(offset));
        return fma(a, x, acc);
    }
};

template <factors When, class T>
struct rms_norm_jacobian_of {
    T r, mean, offset, r_out;
    int out_exponent;

    template <class V>
    RESIDUA_LANE_INLINE V operator()(V a, V x, V w) const
    {
        const V factor = w + V::broadcast(offset);
        if constexpr (When == factors::first) a = a * factor;
        V out = V::broadcast(r_out) * fma(V::broadcast(r) * x, V::broadcast(-mean), a);
        if constexpr (sizeof(T) == 8) out = times_power{out_exponent}(out);
        if constexpr (When == factors::last) out = out * factor;
        return out;
    }
};

template <class T>
struct add_dy_xh {
    T r;

    template <class V>
    RESIDUA_LANE_INLINE V operator()(V dw, V dy, V x) const
    {
        return fma(dy, V::broadcast(r) * x, dw);
    }
};

/// One row in double, which holds any product of three floats; a row of doubles is brought to near one and back, and so
/// is a (the result is linear in it).
template <factors When>
inline void rms_norm_jacobian_row(const sink<double>& out, const source<double>& a, const source<double>& x,
                                  const channel_factors<double>& f, std::size_t n, row_scale scale)
{
    const double most = largest_magnitude(a, n);
    const bool extreme = scale.exponent != 0 || most > 0x1p300 || (most > 0 && most < 0x1p-300);
    const int up = extreme && most > 0 && most <= 0x1.fffffffffffffp1023 ? exponent_to_one(most) : 0;
    const int back = scale.exponent - up;
    const auto x_scaled = computed(times_power{scale.exponent}, x);
    const auto a_scaled = computed(times_power{up}, a);
    const source<double> x_row = extreme ? x_scaled.as_source() : x;
    const source<double> a_row = extreme ? a_scaled.as_source() : a;
    const double sum = sum_row(add_product_with_x<When, double>{f.offset}, n, a_row, x_row, f.w);
    const double mean = scale.r * (sum / static_cast<double>(n));
    const int out_exponent = back > 2000 ? 2000 : back < -2000 ? -2000 : back;
    map_row(rms_norm_jacobian_of<When, double>{scale.r, mean, f.offset, scale.r, out_exponent}, n, out, a_row,
            x_row, f.w);
}

/// dw += dy xh, in the type of dw.
template <class T>
inline void add_to_weight_gradient(output dw, input dy, input x, std::size_t i, std::size_t n, row_scale scale)
{
    const auto row = from<T>(x, i);
    const auto scaled = computed(times_power{scale.exponent}, row);
    map_row(add_dy_xh<T>{static_cast<T>(scale.r)}, n, to<T>(dw, 0), from<T>(read_back(dw), 0), from<T>(dy, i),
            scale.exponent == 0 ? row : scaled.as_source());
}

template <class T>
inline void rms_norm_vjp(shape s, output dx, output dw, input x, input w, norm_weight kind, input dy, T eps,
                         weight_gradient mode)
{
    const std::size_t n = s.columns;
    if (n == 0) return;
    const bool wide_dw = dw.type == element::float64;
    if (dw.data != nullptr && mode == weight_gradient::overwrite) {
        wide_dw ? set_to_zero<double>(dw, n) : set_to_zero<T>(dw, n);
    }
    const auto f = channels<T>(w, kind);
    for (std::size_t i = 0; i < s.rows; ++i) {
        const auto x_row = from<T>(x, i);
        const auto scale = rms_scale(x_row, n, eps);
        if (dw.data != nullptr) {
            wide_dw ? add_to_weight_gradient<double>(dw, dy, x, i, n, scale)
                    : add_to_weight_gradient<T>(dw, dy, x, i, n, scale);
        }
        if constexpr (sizeof(T) == 4) {
            if (scale.exponent == 0) {
                const auto dy_row = from<T>(dy, i);
                const double sum = sum_row(add_product_with_x<factors::first, T>{f.offset}, n, dy_row, x_row, f.w);
                const double size = __builtin_fabs(sum);
                // else the products leave the range, or cancel, or dy is zero
                if (size <= square_range<T>::most && size >= static_cast<double>(n) * square_range<T>::least) {
                    const T r = static_cast<T>(scale.r);
                    const T mean = static_cast<T>(scale.r * (sum / static_cast<double>(n)));
                    map_row(rms_norm_jacobian_of<factors::first, T>{r, mean, f.offset, r, 0}, n, to<T>(dx, i),
                            dy_row, x_row, f.w);
                    continue;
                }
            }
        }
        const auto wide_x = from<double>(x, i);
        rms_norm_jacobian_row<factors::first>(
            to<double>(dx, i), from<double>(dy, i), wide_x, channels<double>(w, kind), n,
            sizeof(T) == 8 ? scale : rms_scale(wide_x, n, static_cast<double>(eps)));
    }
}

/// ty = f r (tx - xh mean(tx xh)), in double for every type.
inline void rms_norm_jvp(shape s, output ty, input x, input w, norm_weight kind, input tx, double eps)
{
    if (s.columns == 0) return;
    const auto f = channels<double>(w, kind);
    for (std::size_t i = 0; i < s.rows; ++i) {
        const auto row = from<double>(x, i);
        rms_norm_jacobian_row<factors::last>(to<double>(ty, i), from<double>(tx, i), row, f, s.columns,
                                             rms_scale(row, s.columns, eps));
    }
}

}  // namespace RESIDUA_PASS
