// One function of each element.

namespace RESIDUA_PASS {

// At x < 0 a zero; -0 and NaN stay.
template <class V>
RESIDUA_LANE_INLINE V relu(V x)
{
    return max(zero<V>(), x);
}
// A sum makes a NaN quiet.
template <class V>
RESIDUA_LANE_INLINE V convert(V x)
{
    return select(x == x, x, x + x);
}
// The kernel of name_of.
#define RESIDUA_MAPPED(name)                                   \
    template <class T>                                         \
    inline void name(shape s, const output& y, const input& x) \
    {                                                          \
        map<T>(name##_of{}, s, y, x);                          \
    }
#define RESIDUA_ELEMENTWISE(name)                   \
    struct name##_of {                              \
        template <class V>                          \
        RESIDUA_LANE_INLINE V operator()(V x) const \
        {                                           \
            return name(x);                         \
        }                                           \
    };                                              \
    RESIDUA_MAPPED(name)
#define RESIDUA_FUNCTION_OF_BOTH_ACCURACIES(name)   \
    template <accuracy A>                           \
    struct name##_of {                              \
        template <class V>                          \
        RESIDUA_LANE_INLINE V operator()(V x) const \
        {                                           \
            return name<A>(x);                      \
        }                                           \
    };
#define RESIDUA_TIERED_ELEMENTWISE(name)                                                       \
    RESIDUA_FUNCTION_OF_BOTH_ACCURACIES(name)                                                  \
    template <class T>                                                                         \
    inline void name(shape s, const output& y, const input& x, accuracy tier)                  \
    {                                                                                          \
        if (tier == accuracy::precise) return map<T>(name##_of<accuracy::precise>{}, s, y, x); \
        map<T>(name##_of<accuracy::standard>{}, s, y, x);                                      \
    }
// Of floats in double and rounded, as all derivatives are; of doubles in two numbers each.
#define RESIDUA_WIDE_ELEMENTWISE(name, of_double, of_floats, part) \
    struct name##_of : computes_wide {                             \
        template <class V>                                         \
        RESIDUA_LANE_INLINE V operator()(V x) const                \
        {                                                          \
            if constexpr (std::is_same_v<scalar<V>, float>) {      \
                return (*this)(in_both_types(x));                  \
            } else {                                               \
                return value(of_double(x));                        \
            }                                                      \
        }                                                          \
        template <class V>                                         \
        RESIDUA_LANE_INLINE V operator()(in_both<V> x) const       \
        {                                                          \
            const auto one = decltype(x.wide)::broadcast(1);       \
            return narrowed(of_floats(one, x.wide).part);          \
        }                                                          \
    };                                                             \
    RESIDUA_MAPPED(name)

RESIDUA_TIERED_ELEMENTWISE(exp)
RESIDUA_ELEMENTWISE(log)
RESIDUA_TIERED_ELEMENTWISE(tanh)
RESIDUA_TIERED_ELEMENTWISE(sigmoid)
RESIDUA_TIERED_ELEMENTWISE(silu)
RESIDUA_ELEMENTWISE(cos_2pi)
RESIDUA_ELEMENTWISE(relu)
RESIDUA_ELEMENTWISE(convert)
RESIDUA_WIDE_ELEMENTWISE(gelu, scaled_gelu, times_gelu, value)
RESIDUA_WIDE_ELEMENTWISE(gelu_tanh, scaled_gelu_tanh, times_gelu_tanh, value)
RESIDUA_WIDE_ELEMENTWISE(silu_derivative, silu_slope<accuracy::precise>, times_silu, slope)

#undef RESIDUA_WIDE_ELEMENTWISE
#undef RESIDUA_TIERED_ELEMENTWISE
#undef RESIDUA_FUNCTION_OF_BOTH_ACCURACIES
#undef RESIDUA_ELEMENTWISE
#undef RESIDUA_MAPPED

// out = f'(x) v: the Jacobian of a function of each element is diagonal, so this is its VJP and its JVP.
#define RESIDUA_DIAGONAL(name, slope_of_double)                                             \
    struct name##_jacobian_of : computes_wide {                                             \
        template <class V>                                                                  \
        RESIDUA_LANE_INLINE V operator()(V x, V v) const                                    \
        {                                                                                   \
            if constexpr (std::is_same_v<scalar<V>, float>) {                               \
                return (*this)(in_both_types(x), in_both_types(v));                         \
            } else {                                                                        \
                return value(slope_of_double(x) * v);                                       \
            }                                                                               \
        }                                                                                   \
        template <class V>                                                                  \
        RESIDUA_LANE_INLINE V operator()(in_both<V> x, in_both<V> v) const                  \
        {                                                                                   \
            return narrowed(times_##name(v.wide, x.wide).slope);                            \
        }                                                                                   \
    };                                                                                      \
    template <class T>                                                                      \
    inline void name##_jacobian(shape s, const output& out, const input& x, const input& v) \
    {                                                                                       \
        map<T>(name##_jacobian_of{}, s, out, x, v);                                         \
    }

RESIDUA_DIAGONAL(exp, exp_slope)
RESIDUA_DIAGONAL(tanh, tanh_slope)
RESIDUA_DIAGONAL(sigmoid, sigmoid_slope<accuracy::precise>)
RESIDUA_DIAGONAL(silu, silu_slope<accuracy::precise>)
RESIDUA_DIAGONAL(silu_derivative, silu_derivative_slope)
RESIDUA_DIAGONAL(gelu, gelu_slope)
RESIDUA_DIAGONAL(gelu_tanh, gelu_tanh_slope)

#undef RESIDUA_DIAGONAL

/// v where x > 0, else 0 whatever v is, unless one of them is NaN.
struct relu_jacobian_of {
    template <class V>
    RESIDUA_LANE_INLINE V operator()(V x, V v) const
    {
        const V masked = select(zero<V>() < x, v, zero<V>());
        return select(is_nan(x) | is_nan(v), x + v, masked);
    }
};
template <class T>
inline void relu_jacobian(shape s, const output& out, const input& x, const input& v)
{
    map<T>(relu_jacobian_of{}, s, out, x, v);
}

/// dx = dy (1 - y^2), from the saved output y = tanh(x).
struct tanh_vjp_from_output_of {
    template <class V>
    RESIDUA_LANE_INLINE V operator()(V y, V dy) const
    {
        return dy * fma(-y, y, V::broadcast(1));
    }
};
template <class T>
inline void tanh_vjp_from_output(shape s, const output& dx, const input& y, const input& dy)
{
    map<T>(tanh_vjp_from_output_of{}, s, dx, y, dy);
}

/// Box and Muller's normal deviate of two uniform ones; u1 is kept from 0.
struct box_muller_of {
    template <class V>
    RESIDUA_LANE_INLINE V operator()(V u1, V u2) const
    {
        const V least = V::broadcast(scalar<V>(1e-12));
        return sqrt(V::broadcast(-2) * log(max(least, u1))) * cos_2pi(u2);
    }
};
template <class T>
inline void box_muller(shape s, const output& z, const input& u1, const input& u2)
{
    map<T>(box_muller_of{}, s, z, u1, u2);
}

}  // namespace RESIDUA_PASS
