// RMSNorm: y = x r w with r = 1 / sqrt(mean(x^2) + eps), and its gradient.

namespace RESIDUA_PASS {

/// A row's vectors, times 2^exponent in two factors (so that every double can be brought near one).
template <class V>
struct scaled_load {
    pow2_halves<V> power;

    RESIDUA_INLINE explicit scaled_load(int exponent)
        : power{split_pow2(V::broadcast(static_cast<scalar<V>>(exponent)))}
    {
    }

    RESIDUA_INLINE V operator()(V x) const { return (x * power.first) * power.second; }
};

/// The sum of the squares of a row, or, where those leave the range of T, of the row times 2^exponent.
struct square_sum {
    double value;
    int exponent;
};

/// r = 1 / sqrt(mean(x^2) + eps) of a row times 2^exponent (eps with it): y = (x 2^exponent) r.
struct row_scale {
    double r;
    int exponent;
};

template <class T>
struct add_scaled_square {
    scaled_load<lanes<T>> scaled;

    RESIDUA_INLINE lanes<T> operator()(lanes<T> acc, lanes<T> x) const
    {
        const auto s = scaled(x);
        return fma(s, s, acc);
    }
};

/// max |x|; a NaN may be passed over.
template <class T>
inline T largest_magnitude(const T* x, std::size_t n)
{
    using V = lanes<T>;
    V most = zero<V>();
    std::size_t j = 0;
    for (; j + V::size <= n; j += V::size) most = max(abs(load<V>(x + j)), most);
    if (j < n) most = max(abs(load<V>(x + j, static_cast<int>(n - j))), most);
    return largest(most);
}

/// The exponent that brings a positive finite number to between 1 and 2.
inline int exponent_to_one(double x)
{
    int up = 0;
    if (x < 0x1p-1022) {
        x *= 0x1p54;
        up = 54;
    }
    return 1023 + up - static_cast<int>(__builtin_bit_cast(std::uint64_t, x) >> 52);
}

/// Where a sum of squares can be trusted, per element: above `least` what underflow takes is not seen, below `most`
/// nothing has overflowed. A row that is scaled has its largest element near 2^scaled_to: far from the end where the
/// squares overflow, and so far from the other that a small element keeps its bits wherever x r is a normal number.
template <class T>
struct square_range;
template <>
struct square_range<float> {
    static constexpr double least = 0x1p-100, most = 0x1p126;
    static constexpr int scaled_to = 40;
};
template <>
struct square_range<double> {
    static constexpr double least = 0x1p-900, most = 0x1p1000;
    static constexpr int scaled_to = 480;
};

/// floor: what will be added to the sum; below its precision nothing matters.
template <class T>
inline square_sum sum_of_squares(const T* x, std::size_t n, double floor)
{
    using V = lanes<T>;
    const double s = reduce_row<V>(add_square{}, n, x);
    const double least = static_cast<double>(n) * square_range<T>::least;
    if (((s >= least || floor >= least) && s <= square_range<T>::most) || s != s) return {s, 0};
    const double most = static_cast<double>(largest_magnitude(x, n));
    const double root = __builtin_sqrt(floor);
    const double larger = most > root ? most : root;
    if (!(larger > 0) || larger > 0x1.fffffffffffffp1023) return {s, 0};
    const int exponent = exponent_to_one(larger) + square_range<T>::scaled_to;
    return {reduce_row<V>(add_scaled_square<T>{scaled_load<V>{exponent}}, n, x), exponent};
}

/// x * 2^n for any n that a double can take in.
inline double times_pow2(double x, int n)
{
    while (n > 1000) {
        x *= 0x1p1000;
        n -= 1000;
    }
    while (n < -1000) {
        x *= 0x1p-1000;
        n += 1000;
    }
    x *= __builtin_bit_cast(double, static_cast<std::uint64_t>(n + 1023) << 52);
    keep_product(x);
    return x;
}

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

    RESIDUA_INLINE V operator()(V x) const { return in(x)*r; }
    RESIDUA_INLINE V operator()(V x, V w) const { return (in(x)*r) * channel_factor<Kind>(w); }
};

struct as_it_is {
    template <class V>
    RESIDUA_INLINE V operator()(V x) const
    {
        return x;
    }
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

/// The root mean square of all elements; 0 if there is none.
template <class T>
inline T rms(rows<const T> x)
{
    if (x.count == 0 || x.columns == 0) return T{};
    square_sum total = sum_of_squares(x[0], x.columns, 0);
    for (std::size_t i = 1; i < x.count; ++i) {
        square_sum next = sum_of_squares(x[i], x.columns, 0);
        // the scale of the larger row holds both
        if (next.value > 0 && (total.value == 0 || next.exponent < total.exponent)) {
            const square_sum other = total;
            total = next;
            next = other;
        }
        total.value += times_pow2(next.value, 2 * (total.exponent - next.exponent));
    }
    const double mean = total.value / (static_cast<double>(x.count) * static_cast<double>(x.columns));
    return static_cast<T>(times_pow2(__builtin_sqrt(mean), -total.exponent));
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

    RESIDUA_INLINE V from(V a, V x) const { return r_out * fma(in(x)*r, -mean, a); }
    RESIDUA_INLINE V operator()(V dy, V x) const { return from(dy, x); }
    RESIDUA_INLINE V operator()(V dy, V x, V w) const { return from(dy * channel_factor<Kind>(w), x); }
};

template <class V, class Load>
struct add_dy_xh {
    V r;
    Load in;

    RESIDUA_INLINE V operator()(V dw, V dy, V x) const { return fma(dy, in(x)*r, dw); }
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
