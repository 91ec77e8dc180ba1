// RMSNorm with a gate act(z), silu or sigmoid, on what it gives or on what it takes; and its derivatives.

namespace RESIDUA_PASS {

/// v act(z), where act is the factor of a gated activation (swiglu.inc.hpp).
template <class Gate>
struct times_gate {
    template <class V>
    RESIDUA_LANE_INLINE V operator()(V v, V z) const
    {
        return Gate{}.product(z, v);
    }
};

/// a b act'(z)
template <class Gate, class V>
RESIDUA_LANE_INLINE V times_slope(V a, V b, V z)
{
    return value(Gate{}.slope(z) * a * b);
}

/// v act(z) 2^exponent, where only the result may leave the range.
template <class Gate>
struct times_gate_in_range {
    int exponent;

    template <class V>
    RESIDUA_LANE_INLINE V operator()(V v, V z) const
    {
        if (exponent == 0) return times_gate<Gate>{}(v, z);
        auto product = Gate{}.exact(z) * v;
        product.n = product.n + V::broadcast(exponent);
        return value(product);
    }
};

/// The power of two of v act(z); -infinity of what is not a number to be measured.
template <class Gate>
struct power_of_gated {
    template <class V>
    RESIDUA_LANE_INLINE V operator()(V v, V z) const
    {
        const auto product = Gate{}.exact(z) * v;
        const V infinity = V::broadcast(__builtin_inf());
        const auto measured = (zero<V>() < abs(product.m)) & (abs(product.m) < infinity);
        return select(measured, product.n, -infinity);
    }
};

/// x act(z) of a row in double, and its norm's scale. Where a product of doubles, or a square, leaves the range, all of
/// them are multiplied by a power of two; the product of floats cannot.
template <class Gate>
struct gated_row {
    struct range {
        int exponent;
        square_sum squares;
    };

    range in;
    computed_row<double, times_gate_in_range<Gate>, 2> product;
    row_scale scale;

    gated_row(const input& x_rows, const input& z_rows, std::size_t i, std::size_t n, double eps)
        : in{range_of(x_rows, z_rows, i, n, eps)},
          product{row_of(x_rows, z_rows, i, in.exponent)},
          scale{scale_of_row(in.squares, n, scaled_eps(eps, in.exponent))}
    {
    }
    gated_row(const gated_row&) = delete;
    gated_row& operator=(const gated_row&) = delete;

    static computed_row<double, times_gate_in_range<Gate>, 2> row_of(const input& x_rows, const input& z_rows,
                                                                     std::size_t i, int exponent)
    {
        return computed(times_gate_in_range<Gate>{exponent}, from<double>(x_rows, i), from<double>(z_rows, i));
    }
    static range range_of(const input& x_rows, const input& z_rows, std::size_t i, std::size_t n, double eps)
    {
        const auto as_it_is = row_of(x_rows, z_rows, i, 0);
        const auto squares = sum_of_squares(as_it_is.as_source(), n);
        const bool of_doubles = x_rows.type == element::float64 || z_rows.type == element::float64;
        if (!of_doubles || squares.value != squares.value) return {0, squares};
        const double mean = squares.value / static_cast<double>(n);
        // else a product may have lost bits as a subnormal number
        const bool moderate = mean >= 0x1p-400 && squares.value <= square_range<double>::most;
        if (moderate && squares.exponent == 0 && largest_of(magnitude{}, from<double>(x_rows, i), n) > 0x1p-200) {
            return {0, squares};
        }
        const auto powers = computed(power_of_gated<Gate>{}, from<double>(x_rows, i), from<double>(z_rows, i));
        const double most = largest_of(itself{}, powers.as_source(), n);
        if (!(most > -2200)) return {0, squares};  // a row of zeros, or all but
        const int of_u = -static_cast<int>(most);
        const int of_eps = eps > 0 ? exponent_to_one(__builtin_sqrt(eps)) : of_u;
        const int exponent = (of_u < of_eps ? of_u : of_eps) + square_range<double>::scaled_to;
        const auto scaled = row_of(x_rows, z_rows, i, exponent);
        return {exponent, sum_of_squares(scaled.as_source(), n)};
    }
};

/// To a row through the gate, as if the norm had been stored before it in a type.
template <class Gate, class T>
struct to_gate_from_memory {
    sink<T> y;
    source<T> z;
    element type;

    template <class Op, class... In>
    void write(const Op& op, std::size_t n, const In&... in) const
    {
        const auto norm = computed(op, in...);
        const rounded_row<T> stored{norm.as_source(), type};
        map_row(times_gate<Gate>{}, n, y, stored.as_source(), z);
    }
};

template <class Gate, class T>
inline void gated_rms_norm_of(shape s, const output& y, const input& x, const input& z, const input& w,
                              norm_weight kind, T eps, gate_order order, norm_rounding rounding)
{
    const std::size_t n = s.columns;
    // the type of w times what was rounded to the type of x
    const bool alike = kind == norm_weight::none || w.type == x.type;
    const element stored = alike ? x.type : operand::element_of_type<T>;
    for (std::size_t i = 0; i < s.rows; ++i) {
        if (order == gate_order::norm_first) {
            const auto row = from<T>(x, i);
            const auto y_row = to<T>(y, i);
            const auto z_row = from<T>(z, i);
            const auto f = channels<T>(w, kind);
            const auto scale = rms_scale(row, n, eps);
            if (rounding == norm_rounding::once) {
                normalize(through<T, times_gate<Gate>, 1, 1>{{}, {y_row}, {z_row}}, row, f, n, scale);
            } else {
                normalize_in_steps(to_gate_from_memory<Gate, T>{y_row, z_row, stored}, row, f, n, scale, rounding,
                                   x.type);
            }
        } else {
            const gated_row<Gate> row{x, z, i, n, static_cast<double>(eps)};
            normalize(to_row<double>{to<double>(y, i)}, row.product.as_source(), channels<double>(w, kind), n,
                      row.scale, rounding, x.type);
        }
    }
}
template <class T>
inline void gated_rms_norm(shape s, const output& y, const input& x, const input& z, const input& w,
                           norm_weight kind, T eps, norm_gate gate, gate_order order, norm_rounding rounding)
{
    if (s.columns == 0) return;
    if (gate == norm_gate::silu) {
        return gated_rms_norm_of<silu_factor<>, T>(s, y, x, z, w, kind, eps, order, rounding);
    }
    gated_rms_norm_of<sigmoid_factor<>, T>(s, y, x, z, w, kind, eps, order, rounding);
}

// With m = x r f: norm first, y = m act(z); gate first, y is the norm of u = x act(z).

/// dx is the norm's gradient of dy act(z), dz = dy m act'(z).
template <class Gate>
struct gradients_of_gated_norm {
    template <class V>
    RESIDUA_LANE_INLINE two<V> operator()(V dx, V z, V dy, V m) const
    {
        return {dx, times_slope<Gate>(dy, m, z)};
    }
};

/// dx = du act(z), dz = du x act'(z).
template <class Gate>
struct gradients_of_norm_of_gated {
    template <class V>
    RESIDUA_LANE_INLINE two<V> operator()(V du, V z, V x) const
    {
        return {times_gate<Gate>{}(du, z), times_slope<Gate>(du, x, z)};
    }
};

/// ty = tm act(z) + m act'(z) tz, where tm is what the norm gives along x and w.
template <class Gate>
struct derivative_of_gated_norm {
    template <class V>
    RESIDUA_LANE_INLINE V operator()(V tm, V z, V tz, V m) const
    {
        return times_gate<Gate>{}(tm, z) + times_slope<Gate>(m, tz, z);
    }
};

/// tu = tx act(z) + x act'(z) tz
template <class Gate>
struct derivative_of_gated {
    template <class V>
    RESIDUA_LANE_INLINE V operator()(V tx, V z, V x, V tz) const
    {
        return times_gate<Gate>{}(tx, z) + times_slope<Gate>(x, tz, z);
    }
};

template <class Gate>
inline void gated_rms_norm_vjp_of(shape s, const output& dx, const output& dz, const output& dw, const input& x,
                                  const input& z, const input& w, norm_weight kind, const input& dy, double eps,
                                  gate_order order)
{
    const std::size_t n = s.columns;
    const auto f = channels<double>(w, kind);
    for (std::size_t i = 0; i < s.rows; ++i) {
        const auto x_row = from<double>(x, i), z_row = from<double>(z, i), dy_row = from<double>(dy, i);
        const auto dx_row = to<double>(dx, i), dz_row = to<double>(dz, i);
        if (order == gate_order::norm_first) {
            const auto scale = rms_scale(x_row, n, eps);
            const auto of_norm = computed(times_gate<Gate>{}, dy_row, z_row);
            const auto row = in_range(x_row, scale.exponent);
            const auto m = computed(rms_norm_of<double>{scale.r, {f.centered()}}, row.as_source(), f.w);
            add_to_weight_gradient(dw, of_norm.as_source(), x_row, n, scale);
            const through<double, gradients_of_gated_norm<Gate>, 2, 3> target{
                {}, {dx_row, dz_row}, {z_row, dy_row, m.as_source()}};
            jacobian_in_range<factors::first>(target, of_norm.as_source(), row.as_source(), f, n, scale.r,
                                              scale.exponent);
        } else {
            const gated_row<Gate> u{x, z, i, n, eps};
            const auto row = in_range(u.product.as_source(), u.scale.exponent);
            add_to_weight_gradient(dw, dy_row, u.product.as_source(), n, u.scale);
            const through<double, gradients_of_norm_of_gated<Gate>, 2, 2> target{
                {}, {dx_row, dz_row}, {z_row, x_row}};
            jacobian_in_range<factors::first>(target, dy_row, row.as_source(), f, n, u.scale.r,
                                              u.scale.exponent + u.in.exponent);
        }
    }
}
inline void gated_rms_norm_vjp(shape s, const output& dx, const output& dz, const output& dw, const input& x,
                               const input& z, const input& w, norm_weight kind, const input& dy, double eps,
                               norm_gate gate, gate_order order, weight_gradient mode)
{
    if (s.columns == 0) return;
    begin_weight_gradient(dw, s.columns, mode);
    if (gate == norm_gate::silu) {
        return gated_rms_norm_vjp_of<silu_factor<>>(s, dx, dz, dw, x, z, w, kind, dy, eps, order);
    }
    gated_rms_norm_vjp_of<sigmoid_factor<>>(s, dx, dz, dw, x, z, w, kind, dy, eps, order);
}

template <class Gate>
inline void gated_rms_norm_jvp_of(shape s, const output& ty, const input& x, const input& z, const input& w,
                                  norm_weight kind, const input& tx, const input& tz, const input& tw, double eps,
                                  gate_order order)
{
    const std::size_t n = s.columns;
    const auto f = channels<double>(w, kind);
    for (std::size_t i = 0; i < s.rows; ++i) {
        const auto x_row = from<double>(x, i), z_row = from<double>(z, i);
        const auto tx_row = from<double>(tx, i), tz_row = from<double>(tz, i);
        if (order == gate_order::norm_first) {
            const auto scale = rms_scale(x_row, n, eps);
            const auto row = in_range(x_row, scale.exponent);
            const auto m = computed(rms_norm_of<double>{scale.r, {f.centered()}}, row.as_source(), f.w);
            const through<double, derivative_of_gated_norm<Gate>, 1, 3> target{
                {}, {to<double>(ty, i)}, {z_row, tz_row, m.as_source()}};
            jacobian_of_products<factors::last>(with_tangent(target, tw), tx_row, x_row, f, n, scale,
                                                products_of_row<factors::last>(tx_row, x_row, f, n, scale), n);
        } else {
            const gated_row<Gate> u{x, z, i, n, eps};
            const auto tu = computed(derivative_of_gated<Gate>{}, tx_row, z_row, x_row, tz_row);
            const auto along = tu.as_source(), row = u.product.as_source();
            jacobian_of_products<factors::last>(
                with_tangent(to_row<double>{to<double>(ty, i)}, tw), along, row, f, n, u.scale,
                products_of_row<factors::last>(along, row, f, n, u.scale), n, u.in.exponent);
        }
    }
}
inline void gated_rms_norm_jvp(shape s, const output& ty, const input& x, const input& z, const input& w,
                               norm_weight kind, const input& tx, const input& tz, const input& tw, double eps,
                               norm_gate gate, gate_order order)
{
    if (s.columns == 0) return;
    if (gate == norm_gate::silu) {
        return gated_rms_norm_jvp_of<silu_factor<>>(s, ty, x, z, w, kind, tx, tz, tw, eps, order);
    }
    gated_rms_norm_jvp_of<sigmoid_factor<>>(s, ty, x, z, w, kind, tx, tz, tw, eps, order);
}

}  // namespace RESIDUA_PASS
