// One function of each element.

namespace RESIDUA_PASS {

#define RESIDUA_ELEMENTWISE(name)                   \
    struct name##_of {                              \
        template <class V>                          \
        RESIDUA_LANE_INLINE V operator()(V x) const \
        {                                           \
            return name(x);                         \
        }                                           \
    };                                              \
    template <class T>                              \
    inline void name(shape s, output y, input x)    \
    {                                               \
        map<T>(name##_of{}, s, y, x);               \
    }

RESIDUA_ELEMENTWISE(exp)
RESIDUA_ELEMENTWISE(log)
RESIDUA_ELEMENTWISE(tanh)
RESIDUA_ELEMENTWISE(sigmoid)
RESIDUA_ELEMENTWISE(silu)
RESIDUA_ELEMENTWISE(cos_2pi)

#undef RESIDUA_ELEMENTWISE

/// dx = dy (1 - y^2), from the saved output y = tanh(x).
struct tanh_vjp_from_output_of {
    template <class V>
    RESIDUA_LANE_INLINE V operator()(V y, V dy) const
    {
        return dy * fma(-y, y, V::broadcast(1));
    }
};
template <class T>
inline void tanh_vjp_from_output(shape s, output dx, input y, input dy)
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
inline void box_muller(shape s, output z, input u1, input u2)
{
    map<T>(box_muller_of{}, s, z, u1, u2);
}

}  // namespace RESIDUA_PASS
