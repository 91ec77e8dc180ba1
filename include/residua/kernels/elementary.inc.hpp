// One function of each element.

namespace RESIDUA_PASS {

#define RESIDUA_ELEMENTWISE(name)                \
    struct name##_of {                           \
        template <class V>                       \
        RESIDUA_INLINE V operator()(V x) const   \
        {                                        \
            return name(x);                      \
        }                                        \
    };                                           \
    template <class T>                           \
    inline void name(rows<T> y, rows<const T> x) \
    {                                            \
        map(name##_of{}, y, x);                  \
    }

RESIDUA_ELEMENTWISE(exp)
RESIDUA_ELEMENTWISE(log)
RESIDUA_ELEMENTWISE(tanh)
RESIDUA_ELEMENTWISE(sigmoid)
RESIDUA_ELEMENTWISE(silu)
RESIDUA_ELEMENTWISE(cos_2pi)

#undef RESIDUA_ELEMENTWISE

/// dx = dy (1 - y^2), from the saved output y = tanh(x).
struct tanh_vjp_of {
    template <class V>
    RESIDUA_INLINE V operator()(V y, V dy) const
    {
        return dy * fma(-y, y, V::broadcast(1));
    }
};
template <class T>
inline void tanh_vjp(rows<T> dx, rows<const T> y, rows<const T> dy)
{
    map(tanh_vjp_of{}, dx, y, dy);
}

/// Box and Muller's normal deviate of two uniform ones; u1 is kept from 0.
struct box_muller_of {
    template <class V>
    RESIDUA_INLINE V operator()(V u1, V u2) const
    {
        const V least = V::broadcast(scalar<V>(1e-12));
        return sqrt(V::broadcast(-2) * log(max(least, u1))) * cos_2pi(u2);
    }
};
template <class T>
inline void box_muller(rows<T> z, rows<const T> u1, rows<const T> u2)
{
    map(box_muller_of{}, z, u1, u2);
}

}  // namespace RESIDUA_PASS
