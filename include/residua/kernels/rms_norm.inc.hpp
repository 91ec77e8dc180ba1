// RMSNorm: y = x r f with r = 1 / sqrt(mean(x^2) + eps) and f = w, 1 + w or 1; its gradient and its derivative.

namespace RESIDUA_PASS {

/// r = 1 / sqrt(mean(x^2) + eps) of a row times 2^exponent (eps with it): y = (x 2^exponent) r.
struct row_scale {
    double r;
    int exponent;
};

/// eps beside a row times 2^exponent. It stays positive, so that a row of nothing but zeros is not 0/0.
inline double scaled_eps(double eps, int exponent)
{
    const double scaled = times_pow2(eps, 2 * exponent);
    return eps > 0 && scaled == 0 ? 0x1p-1074 : scaled;
}

/// Of `count` elements whose squares are known. Where eps is larger than the mean square, it is eps that is kept in range.
template <class T>
inline row_scale scale_of_row(square_sum squares, std::size_t count, T eps)
{
    double e = static_cast<double>(eps);
    double mean = squares.value / static_cast<double>(count);
    int exponent = squares.exponent;
    if (exponent != 0) [[unlikely]] {
        if (exponent > 0 && e > 0) {
            const bool moderate = e >= square_range<T>::least;
            const int of_eps = moderate ? 0 : exponent_to_one(__builtin_sqrt(e)) + square_range<T>::scaled_to;
            if (of_eps < exponent) {
                mean = times_pow2(mean, 2 * (of_eps - exponent));
                exponent = of_eps;
            }
        }
        // a sum that was taken in double need not fit the float that it is used with
        constexpr int most = sizeof(T) == 4 ? 240 : 1900;
        const int possible = exponent > most ? most : exponent < -most ? -most : exponent;
        if (possible != exponent) mean = times_pow2(mean, 2 * (possible - exponent));
        exponent = possible;
        e = scaled_eps(e, exponent);
    }
    return {1 / __builtin_sqrt(mean + e), exponent};
}
template <class T>
inline row_scale rms_scale(const source<T>& x, std::size_t n, T eps)
{
    return scale_of_row(sum_of_squares(x, n), n, eps);
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
    static constexpr bool reads_again = true, is_light = true;
    T r, offset;

    template <class V>
    RESIDUA_LANE_INLINE V operator()(V x, V w) const
    {
        return (V::broadcast(r) * x) * (w + V::broadcast(offset));
    }
    /// Without a weight.
    template <class V>
    RESIDUA_LANE_INLINE V operator()(V x) const
    {
        return V::broadcast(r) * x;
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

// --- where a norm, or a derivative of one, goes ----------------------------------------------------------------

/// To a row.
template <class T>
struct to_row {
    sink<T> y;

    RESIDUA_LANE_INLINE to_row copy() const { return {copy_of(y)}; }

    template <class Op, class... In>
    void write(const Op& op, std::size_t n, const In&... in) const
    {
        map_row(op, n, y, in...);
    }
};

/// op, and then an operation on its result that has more operands of its own, which come first.
template <class Op, class Then, std::size_t More>
struct followed {
    static constexpr bool reads_again = true;
    Op op;
    Then then;

    template <class V, std::size_t N, std::size_t... M, std::size_t... I>
    RESIDUA_LANE_INLINE auto apply(const V (&v)[N], std::index_sequence<M...>, std::index_sequence<I...>) const
    {
        return then(op(v[More + I]...), v[M]...);
    }
    template <class V, class... W>
    RESIDUA_LANE_INLINE auto operator()(V first, W... rest) const
    {
        const V v[] = {first, rest...};
        return apply(v, std::make_index_sequence<More>{}, std::make_index_sequence<1 + sizeof...(W) - More>{});
    }
};

/// To one row or two, through one more operation.
template <class T, class Then, std::size_t Out, std::size_t More>
struct through {
    Then then;
    sink<T> y[Out];
    source<T> more[More];

    template <std::size_t... O, std::size_t... M>
    RESIDUA_LANE_INLINE through copy_with(std::index_sequence<O...>, std::index_sequence<M...>) const
    {
        return {then, {copy_of(y[O])...}, {copy_of(more[M])...}};
    }
    RESIDUA_LANE_INLINE through copy() const
    {
        return copy_with(std::make_index_sequence<Out>{}, std::make_index_sequence<More>{});
    }
    template <class Op, std::size_t... M, class... In>
    void write_with(const Op& op, std::size_t n, std::index_sequence<M...>, const In&... in) const
    {
        using both = followed<Op, Then, More>;
        constexpr std::size_t count = More + sizeof...(In);
        const both f{op, then};
        const source<T> all[] = {more[M]..., in...};
        walk<T, Out, count>(mapped<Out, count, T>(f), n, y, all);
    }
    template <class Op, class... In>
    void write(const Op& op, std::size_t n, const In&... in) const
    {
        write_with(op, n, std::make_index_sequence<More>{}, in...);
    }
};

/// To a target, of an operation that takes the tangent of the weight too where there is one.
template <class Target>
struct with_tangent_of_weight {
    const Target& target;
    input tw;

    template <class Op, class... In>
    void write(const Op& op, std::size_t n, const In&... in) const
    {
        if (tw.data == nullptr) return target.write(op, n, in...);
        target.write(op, n, in..., from<double>(tw, 0));
    }
};
/// Refers to the target, which has to outlive it.
template <class Target>
inline with_tangent_of_weight<Target> with_tangent(const Target& target, const input& tw)
{
    return {target, tw};
}

// --- the norm --------------------------------------------------------------------------------------------------

/// One row whose scale is known, to wherever it goes; `stored`: the type that x r is rounded to before the weight, where
/// that is asked for.
template <class Target, class T>
RESIDUA_OUT_OF_LINE void normalize_in_steps(const Target& y, const source<T>& x, const channel_factors<T>& f,
                                            std::size_t n, row_scale scale, norm_rounding rounding, element stored)
{
    const T r = static_cast<T>(scale.r);
    const auto row = in_range(x, scale.exponent);
    if (rounding == norm_rounding::once) return y.write(rms_norm_of<T>{r, f.offset}, n, row.as_source(), f.w);
    const auto normal = computed(scaled_by<T>{r}, row.as_source());
    const rounded_row<T> rounded{normal.as_source(), stored};
    y.write(times_factor<T>{f.offset}, n, rounded.as_source(), f.w);
}
template <class Target, class T>
RESIDUA_LANE_INLINE void normalize(const Target& y, const source<T>& x, const channel_factors<T>& f, std::size_t n,
                                   row_scale scale, norm_rounding rounding = norm_rounding::once,
                                   element stored = element::float32)
{
    if (scale.exponent != 0 || rounding != norm_rounding::once) [[unlikely]]
        return normalize_in_steps<Target, T>(y.copy(), copy_of(x), f, n, scale, rounding, stored);
    const rms_norm_of<T> op{static_cast<T>(scale.r), f.offset};
    if constexpr (std::is_same_v<Target, to_row<T>>) {
        if (f.w.lies == layout::ones) return y.write(op, n, x);
    }
    y.write(op, n, x, f.w);
}

/// How many rows a norm goes along together: as many as are read again from the nearest cache. So the chains of operations
/// from a short row to its scale, which are longer than all its other work, run beside each other.
inline constexpr std::size_t most_rows_at_once = 8;
template <class T>
inline std::size_t rows_at_once(std::size_t columns)
{
    constexpr std::size_t near = 8192 / sizeof(T);
    std::size_t rows = most_rows_at_once;
    while (rows > 1 && rows * columns > near) rows /= 2;
    return rows;
}

/// The norm of rows that `before` is called for, a few at a time.
template <class T, class Before>
inline void norm_of_rows(const Before& before, shape s, output y, input x, input w, norm_weight kind, T eps,
                         norm_rounding rounding)
{
    const std::size_t n = s.columns;
    if (n == 0) return;
    const auto f = channels<T>(w, kind);
    const std::size_t several = rows_at_once<T>(n);
    square_sum squares[most_rows_at_once];
    for (std::size_t i = 0; i < s.rows; i += several) {
        const std::size_t end = s.rows - i < several ? s.rows : i + several;
        before(i, end - i);
        sums_of_squares<T>(squares, x, i, end, n);
        const square_sum* sum = squares;
        for (std::size_t k = i; k < end; ++k) {
            normalize(to_row<T>{to<T>(y, k)}, from<T>(x, k), f, n, scale_of_row(*sum++, n, eps), rounding, x.type);
        }
    }
}

struct nothing_before {
    void operator()(std::size_t, std::size_t) const {}
};
template <class T>
inline void rms_norm(shape s, output y, input x, input w, norm_weight kind, T eps, norm_rounding rounding)
{
    norm_of_rows<T>(nothing_before{}, s, y, x, w, kind, eps, rounding);
}

/// The same for a part of each row, whose sums of squares are known: `count` elements' each.
template <class T>
inline void rms_norm_apply(shape s, output y, input x, input w, norm_weight kind, const square_sum* squares,
                           std::size_t count, T eps, norm_rounding rounding)
{
    if (s.columns == 0) return;
    const auto f = channels<T>(w, kind);
    for (std::size_t i = 0; i < s.rows; ++i) {
        normalize(to_row<T>{to<T>(y, i)}, from<T>(x, i), f, s.columns, scale_of_row(squares[i], count, eps),
                  rounding, x.type);
    }
}

// --- gradient and derivative -----------------------------------------------------------------------------------
//
// The Jacobian of x r is r (1 - xh xh^T / n), xh = x r: of a vector a it makes r (a - xh mean(a xh)). The gradient
// multiplies by the factors first, a = dy f; the derivative last, and along the weight too it adds xh tw.

enum class factors { first, last };

/// No row of other elements has a larger exponent.
inline constexpr product_sum product_sum_of_zeros{0, 2000};

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
    static constexpr bool reads_again = true;
    T r, mean, offset;
    int out_exponent, factor_exponent;

    template <class V, class... Tangent>
    RESIDUA_LANE_INLINE V operator()(V a, V x, V w, Tangent... tw) const
    {
        const V factor = w + V::broadcast(offset);
        if constexpr (When == factors::first) a = a * factor;
        const V xh = V::broadcast(r) * x;
        V out = V::broadcast(r) * fma(xh, V::broadcast(-mean), a);
        if constexpr (sizeof(T) == 8) out = times_power{out_exponent}(out);
        if constexpr (When == factors::last) out = out * times_power{factor_exponent}(factor);
        if constexpr (sizeof...(Tangent) > 0) out = fma(xh, tw..., out);
        return out;
    }
};

/// What a power of two can be that is applied in two factors.
inline int in_two_factors(int exponent)
{
    constexpr int most = 2000;
    return exponent > most ? most : exponent < -most ? -most : exponent;
}

/// One row in double, which holds any product of three floats. a and x are in range, and r belongs to that x; `sum` is that
/// of the products of the whole row, of `count` elements. The result is to be multiplied by 2^exponent.
template <factors When, class Target>
inline void jacobian_of_sum(const Target& out, const source<double>& a, const source<double>& x,
                            const channel_factors<double>& f, std::size_t n, double r, int exponent, double sum,
                            std::size_t count)
{
    const double mean = r * (sum / static_cast<double>(count));
    // of a factor that comes last, the product is what must stay in range, and not the vector before it
    constexpr int most = 900;
    const int of_vector = exponent - exponent_to_one(r);
    const int beyond = of_vector > most ? of_vector - most : of_vector < -most ? of_vector + most : 0;
    const int of_factor = When == factors::last ? beyond : 0;
    out.write(rms_norm_jacobian_of<When, double>{r, mean, f.offset, in_two_factors(exponent - of_factor),
                                                 in_two_factors(of_factor)},
              n, a, x, f.w);
}
template <factors When>
inline double sum_of_products(const source<double>& a, const source<double>& x, const channel_factors<double>& f,
                              std::size_t n)
{
    return sum_row(add_product_with_x<When, double>{f.offset}, n, a, x, f.w);
}
template <factors When, class Target>
inline void jacobian_in_range(const Target& out, const source<double>& a, const source<double>& x,
                              const channel_factors<double>& f, std::size_t n, double r, int exponent)
{
    jacobian_of_sum<When>(out, a, x, f, n, r, exponent, sum_of_products<When>(a, x, f, n), n);
}

// For any a, f and x, all are brought near one: the Jacobian is applied to a 2^exponent, or to a f 2^exponent.

/// a f 2^(of_a + of_f + rest): nothing on the way leaves the range where the first two bring a and f near one.
struct scaled_product {
    double offset;
    int of_a, of_f, rest;

    template <class V>
    RESIDUA_LANE_INLINE V operator()(V a, V w) const
    {
        const V product = times_power{of_a}(a)*times_power{of_f}(w + V::broadcast(offset));
        return times_power{rest}(product);
    }
};
inline scaled_product product_near_one(const source<double>& a, const channel_factors<double>& f, std::size_t n)
{
    const auto factor = computed(times_factor<double>{f.offset}, ones<double>(), f.w);
    return {f.offset, exponent_of_row(a, n), exponent_of_row(factor.as_source(), n), 0};
}

/// The exponent for a row: 0 where it is moderate as it is; that of a row of zeros leaves any other row its own.
template <factors When>
inline int exponent_of_products(const source<double>& a, const channel_factors<double>& f, std::size_t n)
{
    const auto product = computed(times_factor<double>{f.offset}, a, f.w);
    double largest = largest_of(magnitude{}, When == factors::first ? product.as_source() : a, n);
    if (largest >= 0x1p-60 && largest <= 0x1p60) return 0;
    int exponent = 0;
    if constexpr (When == factors::first) {
        const auto near_one = product_near_one(a, f, n);
        const auto scaled = computed(near_one, a, f.w);
        largest = largest_of(magnitude{}, scaled.as_source(), n);
        exponent = near_one.of_a + near_one.of_f;
    }
    if (largest == 0) return product_sum_of_zeros.exponent;
    return is_finite_and_positive(largest) ? in_two_factors(exponent + exponent_to_one(largest)) : 0;
}

/// use(a 2^exponent, f); or use(a f 2^exponent, 1), where the factors come first and the exponent is not 0.
template <factors When, class Use>
inline void with_scaled(const source<double>& a, const channel_factors<double>& f, std::size_t n, int exponent,
                        const Use& use)
{
    if (When == factors::first && exponent != 0) {
        scaled_product product = product_near_one(a, f, n);
        product.rest = in_two_factors(exponent - product.of_a - product.of_f);
        const auto row = computed(product, a, f.w);
        use(row.as_source(), {ones<double>(), -0.0});
    } else {
        const auto row = in_range(a, exponent);
        use(row.as_source(), f);
    }
}

template <factors When>
struct sum_with {
    source<double> x;
    std::size_t n;
    double* sum;

    void operator()(const source<double>& a, const channel_factors<double>& f) const
    {
        *sum = sum_of_products<When>(a, x, f, n);
    }
};
/// The sum of the products of a part of a row.
template <factors When>
inline product_sum products_of_row(const source<double>& a, const source<double>& x,
                                   const channel_factors<double>& f, std::size_t n, row_scale scale)
{
    product_sum products{0, exponent_of_products<When>(a, f, n)};
    const auto x_row = in_range(x, scale.exponent);
    with_scaled<When>(a, f, n, products.exponent, sum_with<When>{x_row.as_source(), n, &products.value});
    return products;
}

template <factors When, class Target>
struct jacobian_with {
    const Target& out;
    source<double> x;
    std::size_t n;
    row_scale scale;
    product_sum products;
    std::size_t count;
    int before;

    void operator()(const source<double>& a, const channel_factors<double>& f) const
    {
        jacobian_of_sum<When>(out, a, x, f, n, scale.r, scale.exponent + before - products.exponent, products.value,
                              count);
    }
};
/// The Jacobian, once the products of the whole row are known, of an x that is another times 2^before.
template <factors When, class Target>
inline void jacobian_of_products(const Target& out, const source<double>& a, const source<double>& x,
                                 const channel_factors<double>& f, std::size_t n, row_scale scale,
                                 product_sum products, std::size_t count, int before = 0)
{
    const auto x_row = in_range(x, scale.exponent);
    with_scaled<When>(a, f, n, products.exponent,
                      jacobian_with<When, Target>{out, x_row.as_source(), n, scale, products, count, before});
}
template <factors When, class Target>
inline void rms_norm_jacobian_row(const Target& out, const source<double>& a, const source<double>& x,
                                  const channel_factors<double>& f, std::size_t n, row_scale scale, int before = 0)
{
    jacobian_of_products<When>(out, a, x, f, n, scale, products_of_row<When>(a, x, f, n, scale), n, before);
}

/// In the order in which they come, at the power of two of the part with the largest elements.
inline product_sum combine_products(const product_sum* parts, std::size_t count)
{
    product_sum total = product_sum_of_zeros;
    for (std::size_t i = 0; i < count; ++i) {
        const product_sum& part = parts[i];
        const int least = part.exponent < total.exponent ? part.exponent : total.exponent;
        const double before = times_pow2(total.value, least - total.exponent);
        total = {before + times_pow2(part.value, least - part.exponent), least};
    }
    return total;
}

template <class T>
struct add_dy_xh {
    T r;

    template <class V>
    RESIDUA_LANE_INLINE V operator()(V dw, V dy, V x) const
    {
        return fma(dy, V::broadcast(r) * x, dw);
    }
};

/// Before the sum over the rows; there may be no dw.
inline void begin_weight_gradient(output dw, std::size_t n, weight_gradient mode)
{
    if (dw.data != nullptr && mode == weight_gradient::overwrite) set_to_zero<double>(dw, n);
}

/// dw += dy xh, rounded to the type of dw; there may be no dw.
template <class T>
inline void add_to_weight_gradient(output dw, const source<T>& dy, const source<T>& x, std::size_t n,
                                   row_scale scale)
{
    if (dw.data == nullptr) return;
    const auto row = in_range(x, scale.exponent);
    map_row(add_dy_xh<T>{static_cast<T>(scale.r)}, n, to<T>(dw, 0), from<T>(read_back(dw), 0), dy, row.as_source());
}

template <class T>
inline void rms_norm_vjp(shape s, output dx, output dw, input x, input w, norm_weight kind, input dy, T eps,
                         weight_gradient mode)
{
    const std::size_t n = s.columns;
    if (n == 0) return;
    begin_weight_gradient(dw, n, mode);
    const auto f = channels<T>(w, kind);
    for (std::size_t i = 0; i < s.rows; ++i) {
        const auto x_row = from<T>(x, i);
        const auto scale = rms_scale(x_row, n, eps);
        const auto wide_x = from<double>(x, i);
        if (sizeof(T) == 4 && dw.type == element::float64) {
            const auto wide_scale = rms_scale(wide_x, n, static_cast<double>(eps));
            add_to_weight_gradient(dw, from<double>(dy, i), wide_x, n, wide_scale);
        } else {
            add_to_weight_gradient(dw, from<T>(dy, i), x_row, n, scale);
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
                    map_row(rms_norm_jacobian_of<factors::first, T>{r, mean, f.offset, 0, 0}, n, to<T>(dx, i),
                            dy_row, x_row, f.w);
                    continue;
                }
            }
        }
        rms_norm_jacobian_row<factors::first>(
            to_row<double>{to<double>(dx, i)}, from<double>(dy, i), wide_x, channels<double>(w, kind), n,
            sizeof(T) == 8 ? scale : rms_scale(wide_x, n, static_cast<double>(eps)));
    }
}

/// ty = f r (tx - xh mean(tx xh)) + xh tw, in double for every type; there may be no tw.
inline void rms_norm_jvp(shape s, output ty, input x, input w, norm_weight kind, input tx, input tw, double eps)
{
    if (s.columns == 0) return;
    const auto f = channels<double>(w, kind);
    for (std::size_t i = 0; i < s.rows; ++i) {
        const auto row = from<double>(x, i);
        rms_norm_jacobian_row<factors::last>(with_tangent(to_row<double>{to<double>(ty, i)}, tw),
                                             from<double>(tx, i), row, f, s.columns,
                                             rms_scale(row, s.columns, eps));
    }
}

// --- the same for a part of each row, in double for every type -------------------------------------------------------

/// The sums of dy f x; of tx x without a weight.
inline void rms_norm_products(shape s, product_sum* sums, input x, input w, norm_weight kind, input a,
                              const square_sum* squares, std::size_t count, double eps)
{
    const auto f = channels<double>(w, kind);
    for (std::size_t i = 0; i < s.rows; ++i) {
        sums[i] = product_sum_of_zeros;
        if (s.columns == 0) continue;
        sums[i] = products_of_row<factors::first>(from<double>(a, i), from<double>(x, i), f, s.columns,
                                                  scale_of_row(squares[i], count, eps));
    }
}

inline void rms_norm_apply_vjp(shape s, output dx, output dw, input x, input w, norm_weight kind, input dy,
                               const square_sum* squares, const product_sum* products, std::size_t count,
                               double eps, weight_gradient mode)
{
    if (s.columns == 0) return;
    begin_weight_gradient(dw, s.columns, mode);
    const auto f = channels<double>(w, kind);
    for (std::size_t i = 0; i < s.rows; ++i) {
        const auto scale = scale_of_row(squares[i], count, eps);
        const auto row = from<double>(x, i);
        const auto dy_row = from<double>(dy, i);
        add_to_weight_gradient(dw, dy_row, row, s.columns, scale);
        jacobian_of_products<factors::first>(to_row<double>{to<double>(dx, i)}, dy_row, row, f, s.columns, scale,
                                             products[i], count);
    }
}

inline void rms_norm_apply_jvp(shape s, output ty, input x, input w, norm_weight kind, input tx, input tw,
                               const square_sum* squares, const product_sum* products, std::size_t count,
                               double eps)
{
    if (s.columns == 0) return;
    const auto f = channels<double>(w, kind);
    for (std::size_t i = 0; i < s.rows; ++i) {
        jacobian_of_products<factors::last>(with_tangent(to_row<double>{to<double>(ty, i)}, tw),
                                            from<double>(tx, i), from<double>(x, i), f, s.columns,
                                            scale_of_row(squares[i], count, eps), products[i], count);
    }
}

}  // namespace RESIDUA_PASS
