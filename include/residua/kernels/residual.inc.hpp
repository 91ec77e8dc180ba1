// The residual stream: adding to it, and scaling what is added.

namespace RESIDUA_PASS {

/// x + scale f, rounded once.
template <class T>
struct residual_add_of {
    T scale;

    template <class V>
    RESIDUA_INLINE V operator()(V x, V f) const
    {
        return fma(V::broadcast(scale), f, x);
    }
};
template <class T>
inline void residual_add(rows<T> y, rows<const T> x, rows<const T> f, T scale)
{
    map(residual_add_of<T>{scale}, y, x, f);
}

template <class T>
struct scaled_by {
    T factor;

    template <class V>
    RESIDUA_INLINE V operator()(V x) const
    {
        return V::broadcast(factor) * x;
    }
};
template <class T>
inline void scale(rows<T> y, rows<const T> x, T factor)
{
    map(scaled_by<T>{factor}, y, x);
}

}  // namespace RESIDUA_PASS
