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

template <norm_weight Kind, class V, class Load, class Gradient>
struct add_dy_w_x {
    Load in;
    Gradient grad;

    RESIDUA_INLINE V operator()(V acc, V dy, V x) const { return fma(grad(dy), in(x), acc); }
    RESIDUA_INLINE V operator()(V acc, V dy, V x, V w) const
    {
        return fma(grad(dy) * channel_factor<Kind>(w), in(x), acc);
    }
};

template <norm_weight Kind, class V, class Load, class Gradient>
struct rms_norm_vjp_of {
    V r, mean, r_out;
    Load in;
    Gradient grad;

    RESIDUA_INLINE V from(V a, V x) const { return grad.out(r_out * fma(r * in(x), -mean, a)); }
    RESIDUA_INLINE V operator()(V dy, V x) const { return from(grad(dy), x); }
    RESIDUA_INLINE V operator()(V dy, V x, V w) const { return from(grad(dy) * channel_factor<Kind>(w), x); }
};

/// How a gradient is read and written: as it is,
struct plain_gradient : as_it_is {
    template <class V>
    RESIDUA_INLINE V out(V dx) const
    {
        return dx;
    }
};

/// or times 2^exponent on the way in, and times 2^out_exponent on the way out.
template <class V>
struct scaled_gradient {
    scaled_load<V> read, write;

    RESIDUA_INLINE scaled_gradient(int exponent, int out_exponent) : read{exponent}, write{out_exponent} {}
    RESIDUA_INLINE V operator()(V dy) const { return read(dy); }
    RESIDUA_INLINE V out(V dx) const { return write(dx); }
};

template <class V, class Load>
struct add_dy_xh {
    V r;
    Load in;

    RESIDUA_INLINE V operator()(V dw, V dy, V x) const { return fma(dy, r * in(x), dw); }
};

/// sum(a x) of one row.
template <norm_weight Kind, class V, class Load, class Gradient, class T>
RESIDUA_INLINE double sum_dy_w_x(const T* dy, const T* x, const T* w, std::size_t n, Load in, Gradient grad)
{
    const add_dy_w_x<Kind, V, Load, Gradient> op{in, grad};
    if constexpr (Kind == norm_weight::none) {
        return reduce_row<V>(op, n, dy, x);
    } else {
        return reduce_row<V>(op, n, dy, x, w);
    }
}

/// One row: r is that of the row as `in` gives it, and r_out what the bracket of dx is multiplied by.
template <norm_weight Kind, class V, class Load, class Gradient, class T>
RESIDUA_INLINE void rms_norm_vjp_row(T* dx, T* dw, const T* x, const T* w, const T* dy, std::size_t n, double r,
                                     double r_out, double sum, Load in, Gradient grad)
{
    using S = scalar<V>;
    const V inverse = V::broadcast(static_cast<S>(r));
    const S mean = static_cast<S>(r * (sum / static_cast<double>(n)));
    const rms_norm_vjp_of<Kind, V, Load, Gradient> op{inverse, V::broadcast(mean),
                                                      V::broadcast(static_cast<S>(r_out)), in, grad};
    if (dw != nullptr) map_row<V>(add_dy_xh<V, Load>{inverse, in}, n, dw, dw, dy, x);
    if constexpr (Kind == norm_weight::none) {
        map_row<V>(op, n, dx, dy, x);
    } else {
        map_row<V>(op, n, dx, dy, x, w);
    }
}

template <norm_weight Kind, class T>
inline void rms_norm_vjp_rows(rows<T> dx, T* dw, rows<const T> x, const T* w, rows<const T> dy, T eps)
{
    using V = lanes<T>;
    const std::size_t n = x.columns;
    if (n == 0) return;
    for (std::size_t i = 0; i < x.count; ++i) {
        const auto [r, exponent] = rms_scale(x[i], n, eps);
        if (exponent == 0) {
            const double sum = sum_dy_w_x<Kind, V>(dy[i], x[i], w, n, as_it_is{}, plain_gradient{});
            const double size = __builtin_fabs(sum);
            const double least = static_cast<double>(n) * square_range<T>::least;
            if (size <= square_range<T>::most && size >= least) {
                rms_norm_vjp_row<Kind, V>(dx[i], dw, x[i], w, dy[i], n, r, r, sum, as_it_is{}, plain_gradient{});
                continue;
            }
        }
        // the row or its products leave the range, or cancel, or dy is zero
        if constexpr (sizeof(T) == 4) {
            // double holds any product of three floats
            const double wide = times_pow2(r, exponent);
            const double sum = sum_dy_w_x<Kind, f64x16>(dy[i], x[i], w, n, as_it_is{}, plain_gradient{});
            rms_norm_vjp_row<Kind, f64x16>(dx[i], dw, x[i], w, dy[i], n, wide, wide, sum, as_it_is{},
                                           plain_gradient{});
        } else {
            // dx is linear in dy, so dy is brought to near one and dx back
            const double most = static_cast<double>(largest_magnitude(dy[i], n));
            const int up = most > 0 && most <= 0x1.fffffffffffffp1023 ? exponent_to_one(most) : 0;
            const int back = exponent - up;
            const scaled_load<V> in{exponent};
            const scaled_gradient<V> grad{up, back > 2000 ? 2000 : back < -2000 ? -2000 : back};
            const double sum = sum_dy_w_x<Kind, V>(dy[i], x[i], w, n, in, grad);
            rms_norm_vjp_row<Kind, V>(dx[i], dw, x[i], w, dy[i], n, r, r, sum, in, grad);
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
