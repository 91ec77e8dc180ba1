// The residual stream: adding to it, and scaling what is added.

namespace RESIDUA_PASS {

/// x + scale f, rounded once.
template <class T>
struct residual_add_of {
    T scale;

    template <class V>
    RESIDUA_LANE_INLINE V operator()(V x, V f) const
    {
        return fma(V::broadcast(scale), f, x);
    }
};
template <class T>
inline void residual_add(shape s, output y, input x, input f, T scale)
{
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
inline void scale(shape s, output y, input x, T factor)
{
    map<T>(scaled_by<T>{factor}, s, y, x);
}

}  // namespace RESIDUA_PASS
