// RMSNorm: y = x r w with r = 1 / sqrt(mean(x^2) + eps), and its gradient.

namespace RESIDUA_PASS {

/// r = 1 / sqrt(mean(x^2) + eps) of a row times 2^exponent (eps with it): y = (x 2^exponent) r.
struct row_scale {
    double r;
    int exponent;
};

template <class T>
inline row_scale rms_scale(const T* x, std::size_t n, T eps)
{
    const double count = static_cast<double>(n);
    const double e = static_cast<double>(eps);
    const auto squares = sum_of_squares(x, n, count * e);
    const double mean = squares.value / count;
    return {1 / __builtin_sqrt(mean + times_pow2(e, 2 * squares.exponent)), squares.exponent};
}

/// The factor of a channel: w, 1 + w, or 1.
template <norm_weight Kind, class V>
RESIDUA_INLINE V channel_factor(V w)
{
    if constexpr (Kind == norm_weight::zero_centered) {
        return V::broadcast(1) + w;
    } else {
        return w;
    }
}

template <norm_weight Kind, class V, class Load>
struct rms_norm_of {
    V r;
    Load in;

    RESIDUA_INLINE V operator()(V x) const { return r * in(x); }
    RESIDUA_INLINE V operator()(V x, V w) const { return (r * in(x)) * channel_factor<Kind>(w); }
};

template <norm_weight Kind, class Load, class T>
RESIDUA_INLINE void rms_norm_row(T* y, const T* x, const T* w, std::size_t n, double r, Load in)
{
    using V = lanes<T>;
    const rms_norm_of<Kind, V, Load> op{V::broadcast(static_cast<T>(r)), in};
    if constexpr (Kind == norm_weight::none) {
        map_row<V>(op, n, y, x);
    } else {
        map_row<V>(op, n, y, x, w);
    }
}

template <norm_weight Kind, class T>
inline void rms_norm_rows(rows<T> y, rows<const T> x, const T* w, T eps)
{
    const std::size_t n = x.columns;
    if (n == 0) return;
    for (std::size_t i = 0; i < x.count; ++i) {
        const auto scale = rms_scale(x[i], n, eps);
        if (scale.exponent == 0) {
            rms_norm_row<Kind>(y[i], x[i], w, n, scale.r, as_it_is{});
        } else {
            rms_norm_row<Kind>(y[i], x[i], w, n, scale.r, scaled_load<lanes<T>>{scale.exponent});
        }
    }
}

template <class T>
inline void rms_norm(rows<T> y, rows<const T> x, const T* weight, norm_weight kind, T eps)
{
    switch (kind) {
        case norm_weight::none: return rms_norm_rows<norm_weight::none>(y, x, weight, eps);
        case norm_weight::plain: return rms_norm_rows<norm_weight::plain>(y, x, weight, eps);
        case norm_weight::zero_centered: return rms_norm_rows<norm_weight::zero_centered>(y, x, weight, eps);
    }
}

// --- gradient: with a = dy f(w), xh = x r: dx = r (a - xh mean(a xh)), dw = sum over rows of dy xh ---------------

template <norm_weight Kind, class V, class Load>
struct add_dy_w_x {
    Load in;

    RESIDUA_INLINE V operator()(V acc, V dy, V x) const { return fma(dy, in(x), acc); }
    RESIDUA_INLINE V operator()(V acc, V dy, V x, V w) const
    {
        return fma(dy * channel_factor<Kind>(w), in(x), acc);
    }
};

template <norm_weight Kind, class V, class Load>
struct rms_norm_vjp_of {
    V r, mean, r_out;
    Load in;

    RESIDUA_INLINE V from(V a, V x) const { return r_out * fma(r * in(x), -mean, a); }
    RESIDUA_INLINE V operator()(V dy, V x) const { return from(dy, x); }
    RESIDUA_INLINE V operator()(V dy, V x, V w) const { return from(dy * channel_factor<Kind>(w), x); }
};

template <class V, class Load>
struct add_dy_xh {
    V r;
    Load in;

    RESIDUA_INLINE V operator()(V dw, V dy, V x) const { return fma(dy, r * in(x), dw); }
};

/// sum(a x) of one row.
template <norm_weight Kind, class V, class Load, class T>
RESIDUA_INLINE double sum_dy_w_x(const T* dy, const T* x, const T* w, std::size_t n, Load in)
{
    const add_dy_w_x<Kind, V, Load> op{in};
    if constexpr (Kind == norm_weight::none) {
        return reduce_row<V>(op, n, dy, x);
    } else {
        return reduce_row<V>(op, n, dy, x, w);
    }
}

template <norm_weight Kind, class V, class Load, class T>
RESIDUA_INLINE void rms_norm_vjp_row(T* dx, T* dw, const T* x, const T* w, const T* dy, std::size_t n,
                                     row_scale scale, double sum, Load in)
{
    using S = scalar<V>;
    const V r = V::broadcast(static_cast<S>(scale.r));
    const S mean = static_cast<S>(scale.r * (sum / static_cast<double>(n)));
    const rms_norm_vjp_of<Kind, V, Load> op{r, V::broadcast(mean),
                                            V::broadcast(static_cast<S>(times_pow2(scale.r, scale.exponent))), in};
    if (dw != nullptr) map_row<V>(add_dy_xh<V, Load>{r, in}, n, dw, dw, dy, x);
    if constexpr (Kind == norm_weight::none) {
        map_row<V>(op, n, dx, dy, x);
    } else {
        map_row<V>(op, n, dx, dy, x, w);
    }
}

template <norm_weight Kind, class T>
inline void rms_norm_vjp_rows(rows<T> dx, T* dw, rows<const T> x, const T* w, rows<const T> dy, T eps)
{
    const std::size_t n = x.columns;
    if (n == 0) return;
    for (std::size_t i = 0; i < x.count; ++i) {
        const auto scale = rms_scale(x[i], n, eps);
        if (scale.exponent == 0) {
            const double sum = sum_dy_w_x<Kind, lanes<T>>(dy[i], x[i], w, n, as_it_is{});
            const double size = __builtin_fabs(sum);
            if (sizeof(T) == 8 || (size <= 0x1p120 && size >= static_cast<double>(n) * 0x1p-100)) {
                rms_norm_vjp_row<Kind, lanes<T>>(dx[i], dw, x[i], w, dy[i], n, scale, sum, as_it_is{});
                continue;
            }
        }
        if constexpr (sizeof(T) == 4) {
            // double holds any product of three floats: neither the row nor the gradient needs scaling
            const row_scale wide{times_pow2(scale.r, scale.exponent), 0};
            const double sum = sum_dy_w_x<Kind, f64x16>(dy[i], x[i], w, n, as_it_is{});
            rms_norm_vjp_row<Kind, f64x16>(dx[i], dw, x[i], w, dy[i], n, wide, sum, as_it_is{});
        } else {
            const scaled_load<lanes<T>> in{scale.exponent};
            const double sum = sum_dy_w_x<Kind, lanes<T>>(dy[i], x[i], w, n, in);
            rms_norm_vjp_row<Kind, lanes<T>>(dx[i], dw, x[i], w, dy[i], n, scale, sum, in);
        }
    }
}

template <class T>
inline void rms_norm_vjp(rows<T> dx, T* dw, rows<const T> x, const T* weight, norm_weight kind, rows<const T> dy,
                         T eps)
{
    switch (kind) {
        case norm_weight::none: return rms_norm_vjp_rows<norm_weight::none>(dx, dw, x, weight, dy, eps);
        case norm_weight::plain: return rms_norm_vjp_rows<norm_weight::plain>(dx, dw, x, weight, dy, eps);
        case norm_weight::zero_centered:
            return rms_norm_vjp_rows<norm_weight::zero_centered>(dx, dw, x, weight, dy, eps);
    }
}

}  // namespace RESIDUA_PASS
