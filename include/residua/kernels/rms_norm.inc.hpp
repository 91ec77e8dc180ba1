// RMSNorm: y = x r f with r = 1 / sqrt(mean(x^2) + eps) and f = w, 1 + w or 1; its gradient and its derivative.

namespace RESIDUA_PASS {

/// r = 1 / sqrt(mean(x^2) + eps) of a row times 2^exponent (eps with it): y = (x 2^exponent) r. Beside an eps so large that
/// x r would be no normal float, or hardly, only x is scaled, and y is to be multiplied by 2^after.
struct row_scale {
    double r;
    int exponent;
    int after = 0;
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
    const double r = 1 / __builtin_sqrt(mean + e);
    if constexpr (sizeof(T) == 4) {
        const double sum = mean * static_cast<double>(count);
        if (sum * 0x1p160 < mean + e && sum > 0 && exponent == 0) [[unlikely]] {
            const int small = exponent_to_one(__builtin_sqrt(sum) * r) - 50;
            return {r, small, -small};
        }
    }
    return {r, exponent};
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

    bool centered() const { return offset == T(1); }
};
template <class T>
inline channel_factors<T> channels(const input& w, norm_weight kind)
{
    if (kind == norm_weight::none) return {ones<T>(), T(-0.0)};
    return {from<T>(w, 0), kind == norm_weight::zero_centered ? T(1) : T(-0.0)};
}

/// x f, rounded once.
struct times_channel {
    bool centered;

    template <class V>
    RESIDUA_LANE_INLINE V operator()(V x, V w) const
    {
        return centered ? fma(x, w, x) : x * w;
    }
};

template <class T>
struct rms_norm_of {
    static constexpr bool reads_again = true, is_light = true;
    T r;
    times_channel channel;

    template <class V>
    RESIDUA_LANE_INLINE V operator()(V x, V w) const
    {
        return channel(V::broadcast(r) * x, w);
    }
    /// Without a weight.
    template <class V>
    RESIDUA_LANE_INLINE V operator()(V x) const
    {
        return V::broadcast(r) * x;
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
    static constexpr bool has_narrow_operands = takes_narrow_operands<Op>;
    Op op;
    Then then;

    template <class V, std::size_t N, std::size_t... M, std::size_t... Is>
    RESIDUA_LANE_INLINE auto apply(const V (&v)[N], std::index_sequence<M...>, std::index_sequence<Is...>) const
    {
        return then(op(v[More + Is]...), v[M]...);
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

/// The norm of a row that is scaled before, and back after it.
template <class T>
struct tiny_rms_norm_of {
    static constexpr bool reads_again = true;
    rms_norm_of<T> norm;
    times_power before, after;

    template <class V>
    RESIDUA_LANE_INLINE V operator()(V x, V w) const
    {
        return after(norm(before(x), w));
    }
};

/// One row whose scale is known, to wherever it goes; `stored`: the type that x r is rounded to before the weight, where
/// that is asked for.
template <class Target, class T>
RESIDUA_OUT_OF_LINE void normalize_in_steps(const Target& y, const source<T>& x, const channel_factors<T>& f,
                                            std::size_t n, row_scale scale, norm_rounding rounding, element stored)
{
    const rms_norm_of<T> norm{static_cast<T>(scale.r), {f.centered()}};
    const times_power before{scale.exponent}, after{scale.after};
    const bool once = rounding == norm_rounding::once;
    if (scale.after != 0 && once) return y.write(tiny_rms_norm_of<T>{norm, before, after}, n, x, f.w);
    const auto row = in_range(x, scale.after != 0 ? 0 : scale.exponent);
    if (once) return y.write(norm, n, row.as_source(), f.w);
    const auto normal = computed(scaled_by<T>{norm.r}, row.as_source());
    const rounded_row<T> rounded{normal.as_source(), stored};
    y.write(times_channel{f.centered()}, n, rounded.as_source(), f.w);
}
template <class Target, class T>
RESIDUA_LANE_INLINE void normalize(const Target& y, const source<T>& x, const channel_factors<T>& f, std::size_t n,
                                   row_scale scale, norm_rounding rounding = norm_rounding::once,
                                   element stored = element::float32)
{
    if (scale.exponent != 0 || rounding != norm_rounding::once) [[unlikely]]
        return normalize_in_steps<Target, T>(y.copy(), copy_of(x), f, n, scale, rounding, stored);
    const rms_norm_of<T> op{static_cast<T>(scale.r), {f.centered()}};
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
inline void norm_of_rows(const Before& before, shape s, const output& y, const input& x, const input& w,
                         norm_weight kind, T eps, norm_rounding rounding)
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
inline void rms_norm(shape s, const output& y, const input& x, const input& w, norm_weight kind, T eps,
                     norm_rounding rounding)
{
    norm_of_rows<T>(nothing_before{}, s, y, x, w, kind, eps, rounding);
}

/// The same for a part of each row, whose sums of squares are known: `count` elements' each.
template <class T>
inline void rms_norm_apply(shape s, const output& y, const input& x, const input& w, norm_weight kind,
                           const square_sum* squares, std::size_t count, T eps, norm_rounding rounding)
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

/// The squares of x too.
template <factors When, class T>
struct add_square_and_product : has_two_sums {
    add_product_with_x<When, T> product;

    explicit add_square_and_product(T offset) : product{offset} {}
    template <class V>
    RESIDUA_LANE_INLINE two<V> operator()(two<V> acc, V a, V x, V w) const
    {
        return {fma(x, x, acc.first), product(acc.second, a, x, w)};
    }
};

/// The powers of two that a result is multiplied by, and a factor that comes last.
struct powers {
    times_power out, factor;
};
struct no_powers {
    static constexpr struct {
        template <class V>
        RESIDUA_LANE_INLINE V operator()(V x) const
        {
            return x;
        }
    } out{}, factor{};
};

template <factors When, class T, class Powers = no_powers>
struct rms_norm_jacobian_of {
    static constexpr bool reads_again = true, has_narrow_operands = std::is_same_v<Powers, no_powers>;
    T r, mean, offset;
    Powers times;

    template <class V, class... Tangent>
    RESIDUA_LANE_INLINE V operator()(V a, V x, V w, Tangent... tw) const
    {
        const V factor = w + V::broadcast(offset);
        if constexpr (When == factors::first) a = a * factor;
        const V xh = V::broadcast(r) * x;
        V out = times.out(V::broadcast(r) * fma(xh, V::broadcast(-mean), a));
        if constexpr (When == factors::last) out = out * times.factor(factor);
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
    const powers times{{in_two_factors(exponent - of_factor)}, {in_two_factors(of_factor)}};
    if (times.out.exponent == 0 && of_factor == 0) [[likely]] {
        out.write(rms_norm_jacobian_of<When, double>{r, mean, f.offset, {}}, n, a, x, f.w);
    } else {
        out.write(rms_norm_jacobian_of<When, double, powers>{r, mean, f.offset, times}, n, a, x, f.w);
    }
}
/// The sum of the squares of x, and that of the products.
template <factors When, class T>
inline two<double> squares_and_products(const source<T>& a, const source<T>& x, const channel_factors<T>& f,
                                        std::size_t n)
{
    const auto total = total_of_row(add_square_and_product<When, T>{f.offset}, n, a, x, f.w);
    return {sum_of_lanes(total.first, x, n), sum(total.second)};
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
    const auto factor = computed(times_channel{f.centered()}, ones<double>(), f.w);
    return {f.offset, exponent_of_row(a, n), exponent_of_row(factor.as_source(), n), 0};
}

/// The exponent for a row: 0 where it is moderate as it is; that of a row of zeros leaves any other row its own.
template <factors When>
inline int exponent_of_products(const source<double>& a, const channel_factors<double>& f, std::size_t n)
{
    const auto product = computed(times_channel{f.centered()}, a, f.w);
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
/// Whether all is narrower than double in memory: then no product of three, nor their sum, leaves the range of double.
inline bool are_narrow(const source<double>& a, const source<double>& x, const channel_factors<double>& f)
{
    return a.is_narrow() && x.is_narrow() && f.w.is_narrow();
}

/// The sum of the products of a part of a row.
template <factors When>
inline product_sum products_of_row(const source<double>& a, const source<double>& x,
                                   const channel_factors<double>& f, std::size_t n, row_scale scale)
{
    product_sum products{0, are_narrow(a, x, f) ? 0 : exponent_of_products<When>(a, f, n)};
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
/// The scale of a row, and the sum of its products with another.
struct row_sums {
    row_scale scale;
    product_sum products;
};
template <factors When>
inline row_sums sums_of_row(const source<double>& a, const source<double>& x, const channel_factors<double>& f,
                            std::size_t n, double eps)
{
    if (are_narrow(a, x, f)) {
        const auto sums = squares_and_products<When>(a, x, f, n);
        return {scale_of_row(square_sum{sums.first, 0}, n, eps), {sums.second, 0}};
    }
    const auto scale = rms_scale(x, n, eps);
    return {scale, products_of_row<When>(a, x, f, n, scale)};
}
template <factors When, class Target>
inline void jacobian_of_sums(const Target& out, const source<double>& a, const source<double>& x,
                             const channel_factors<double>& f, std::size_t n, const row_sums& sums)
{
    jacobian_of_products<When>(out, a, x, f, n, sums.scale, sums.products, n);
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
inline void begin_weight_gradient(const output& dw, std::size_t n, weight_gradient mode)
{
    if (dw.data != nullptr && mode == weight_gradient::overwrite) set_to_zero(dw, n);
}

/// dw += dy xh, rounded to the type of dw; there may be no dw.
template <class T>
inline void add_to_weight_gradient(const output& dw, const source<T>& dy, const source<T>& x, std::size_t n,
                                   row_scale scale)
{
    if (dw.data == nullptr) return;
    const auto row = in_range(x, scale.exponent);
    map_row(add_dy_xh<T>{static_cast<T>(scale.r)}, n, to<T>(dw, 0), from<T>(read_back(dw), 0), dy, row.as_source());
}

/// A row of float or narrower, where nothing leaves the range of float; false where it does, or where the products cancel or
/// are zero, and nothing was done. There may be no dw.
inline bool rms_norm_vjp_in_float(const sink<float>& dx, const output& dw, const source<float>& x,
                                  const channel_factors<float>& f, const source<float>& dy, std::size_t n,
                                  float eps)
{
    using range = square_range<float>;
    const auto sums = squares_and_products<factors::first>(dy, x, f, n);
    const double least = least_squares<float>(n), size = __builtin_fabs(sums.second);
    if (!(sums.first >= least && sums.first <= range::most && size >= least && size <= range::most)) return false;
    const auto scale = scale_of_row(square_sum{sums.first, 0}, n, eps);
    if (scale.exponent != 0) return false;
    const auto mean = static_cast<float>(scale.r * (sums.second / static_cast<double>(n)));
    add_to_weight_gradient(dw, dy, x, n, scale);
    const rms_norm_jacobian_of<factors::first, float> gradient{static_cast<float>(scale.r), mean, f.offset, {}};
    map_row(gradient, n, dx, dy, x, f.w);
    return true;
}

template <class T>
inline void rms_norm_vjp(shape s, const output& dx, const output& dw, const input& x, const input& w,
                         norm_weight kind, const input& dy, T eps, weight_gradient mode)
{
    const std::size_t n = s.columns;
    if (n == 0) return;
    begin_weight_gradient(dw, n, mode);
    const auto f = channels<T>(w, kind);
    const auto wide_f = channels<double>(w, kind);
    const auto wide_eps = static_cast<double>(eps);
    const bool sums_in_double = sizeof(T) == 4 && dw.type == element::float64;
    const output none{};
    const output& together = sums_in_double ? none : dw;
    for (std::size_t i = 0; i < s.rows; ++i) {
        const auto wide_x = from<double>(x, i), wide_dy = from<double>(dy, i);
        if constexpr (sizeof(T) == 4) {
            if (sums_in_double) add_to_weight_gradient(dw, wide_dy, wide_x, n, rms_scale(wide_x, n, wide_eps));
            if (rms_norm_vjp_in_float(to<T>(dx, i), together, from<T>(x, i), f, from<T>(dy, i), n, eps)) continue;
        }
        const auto sums = sums_of_row<factors::first>(wide_dy, wide_x, wide_f, n, wide_eps);
        add_to_weight_gradient(together, wide_dy, wide_x, n, sums.scale);
        jacobian_of_sums<factors::first>(to_row<double>{to<double>(dx, i)}, wide_dy, wide_x, wide_f, n, sums);
    }
}

/// ty = f r (tx - xh mean(tx xh)) + xh tw, in double for every type; there may be no tw.
inline void rms_norm_jvp(shape s, const output& ty, const input& x, const input& w, norm_weight kind,
                         const input& tx, const input& tw, double eps)
{
    if (s.columns == 0) return;
    const auto f = channels<double>(w, kind);
    for (std::size_t i = 0; i < s.rows; ++i) {
        const auto row = from<double>(x, i), along = from<double>(tx, i);
        jacobian_of_sums<factors::last>(with_tangent(to_row<double>{to<double>(ty, i)}, tw), along, row, f,
                                        s.columns, sums_of_row<factors::last>(along, row, f, s.columns, eps));
    }
}

// --- the same for a part of each row, in double for every type -------------------------------------------------------

/// The sums of dy f x; of tx x without a weight.
inline void rms_norm_products(shape s, product_sum* sums, const input& x, const input& w, norm_weight kind,
                              const input& a, const square_sum* squares, std::size_t count, double eps)
{
    const auto f = channels<double>(w, kind);
    for (std::size_t i = 0; i < s.rows; ++i) {
        sums[i] = product_sum_of_zeros;
        if (s.columns == 0) continue;
        sums[i] = products_of_row<factors::first>(from<double>(a, i), from<double>(x, i), f, s.columns,
                                                  scale_of_row(squares[i], count, eps));
    }
}

inline void rms_norm_apply_vjp(shape s, const output& dx, const output& dw, const input& x, const input& w,
                               norm_weight kind, const input& dy, const square_sum* squares,
                               const product_sum* products, std::size_t count, double eps, weight_gradient mode)
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

inline void rms_norm_apply_jvp(shape s, const output& ty, const input& x, const input& w, norm_weight kind,
                               const input& tx, const input& tw, const square_sum* squares,
                               const product_sum* products, std::size_t count, double eps)
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
