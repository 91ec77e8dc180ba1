// The residual stream: adding to it, and scaling what is added; gradients and derivatives.

namespace RESIDUA_PASS {

/// x + scale f, rounded once.
template <class T>
struct residual_add_of {
    static constexpr bool is_light = true;
    T scale;

    template <class V>
    RESIDUA_LANE_INLINE V operator()(V x, V f) const
    {
        return fma(V::broadcast(scale), f, x);
    }
};
/// Without a scale a sum will do: the same bits, and many CPUs take two subnormal numbers to it without microcode.
template <class T>
inline void residual_add(shape s, const output& y, const input& x, const input& f, T scale)
{
    if (scale == T(1)) return map<T>(add{}, s, y, x, f);
    map<T>(residual_add_of<T>{scale}, s, y, x, f);
}

template <class T>
struct scaled_by {
    T factor;

    template <class V>
    RESIDUA_LANE_INLINE V operator()(V x) const
    {
        return V::broadcast(factor) * x;
    }
};
template <class T>
inline void scale(shape s, const output& y, const input& x, T factor)
{
    map<T>(scaled_by<T>{factor}, s, y, x);
}

/// Sets the memory that sums over rows begin with.
/// n elements that lie beside each other.
inline void set_to_zero(const output& y, std::size_t n) { __builtin_memset(y.data, 0, n << log2_of_size(y.type)); }

// --- a scale for each channel ----------------------------------------------------------------------------------

/// A row that is the same for every row of another operand.
RESIDUA_LANE_INLINE input for_every_row(const input& in) { return {in.data, 0, in.type, in.step}; }

struct residual_add_scaled_of {
    template <class V>
    RESIDUA_LANE_INLINE V operator()(V x, V f, V scale) const
    {
        return fma(scale, f, x);
    }
};
template <class T>
inline void residual_add_per_channel(shape s, const output& y, const input& x, const input& f, const input& scale)
{
    map<T>(residual_add_scaled_of{}, s, y, x, f, for_every_row(scale));
}

// --- gradient and derivative -----------------------------------------------------------------------------------

struct residual_add_vjp_of {
    double scale;

    template <class V>
    RESIDUA_LANE_INLINE two<V> operator()(V dy) const
    {
        return {dy, V::broadcast(scale) * dy};
    }
};
inline void residual_add_vjp(shape s, const output& dx, const output& df, const input& dy, double scale)
{
    map_to_two<double>(residual_add_vjp_of{scale}, s, dx, df, dy);
}

struct residual_add_scaled_vjp_of {
    template <class V>
    RESIDUA_LANE_INLINE two<V> operator()(V dy, V scale) const
    {
        return {dy, scale * dy};
    }
};
/// ds may be absent. The sum over the rows is in its own type.
inline void residual_add_per_channel_vjp(shape s, const output& dx, const output& df, const output& ds,
                                         const input& f, const input& dy, const input& scale, weight_gradient mode)
{
    const std::size_t n = s.columns;
    const bool sums = ds.data != nullptr;
    if (sums && mode == weight_gradient::overwrite) set_to_zero(ds, n);
    for (std::size_t i = 0; i < s.rows; ++i) {
        const auto gradient = from<double>(dy, i);
        if (sums) {
            map_row(residual_add_scaled_of{}, n, to<double>(ds, 0), from<double>(read_back(ds), 0), gradient,
                    from<double>(f, i));
        }
        map_row(residual_add_scaled_vjp_of{}, n, to<double>(dx, i), to<double>(df, i), gradient,
                from<double>(scale, 0));
    }
}

struct residual_add_scaled_jvp_of {
    template <class V>
    RESIDUA_LANE_INLINE V operator()(V f, V tx, V tf, V scale, V tscale) const
    {
        return fma(scale, tf, fma(tscale, f, tx));
    }
};
inline void residual_add_per_channel_jvp(shape s, const output& ty, const input& f, const input& tx,
                                         const input& tf, const input& scale, const input& tscale)
{
    map<double>(residual_add_scaled_jvp_of{}, s, ty, f, tx, tf, for_every_row(scale), for_every_row(tscale));
}

}  // namespace RESIDUA_PASS
