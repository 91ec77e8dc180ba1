// y = e^(x - max x) / sum of e^(x - max x), row by row.

namespace RESIDUA_PASS {

template <class V>
struct exp_less {
    V most;

    RESIDUA_INLINE V operator()(V x) const { return exp_of_difference(x, most); }
};

template <class V>
struct divided_by {
    V divisor;

    RESIDUA_INLINE V operator()(V x) const { return x / divisor; }
};

/// max x, of a row that has an element; a NaN may be passed over.
template <class T>
inline T largest_element(const T* x, std::size_t n)
{
    using V = lanes<T>;
    V most = V::broadcast(x[0]);
    std::size_t j = 0;
    for (; j + V::size <= n; j += V::size) most = max(load<V>(x + j), most);
    if (j < n) {
        // the lanes past the end take part as x[0]
        lane_array<V> rest;
        for (int i = 0; i < V::size; ++i)
            rest[i] = j + static_cast<std::size_t>(i) < n ? x[j + static_cast<std::size_t>(i)] : x[0];
        most = max(V::load(rest), most);
    }
    return largest(most);
}

template <class T>
inline void softmax(rows<T> y, rows<const T> x)
{
    using V = lanes<T>;
    const std::size_t n = x.columns;
    if (n == 0) return;
    for (std::size_t i = 0; i < x.count; ++i) {
        map_row<V>(exp_less<V>{V::broadcast(largest_element(x[i], n))}, n, y[i], x[i]);
        const double sum = reduce_row<V>(add{}, n, static_cast<const T*>(y[i]));
        map_row<V>(divided_by<V>{V::broadcast(static_cast<T>(sum))}, n, y[i], static_cast<const T*>(y[i]));
    }
}

}  // namespace RESIDUA_PASS
