// Dot product, matrix-vector product and its transpose: what a probe needs to push a vector through a sublayer.

namespace RESIDUA_PASS {

template <class T>
inline double dot_in_memory(const T* x, const T* y, std::size_t n)
{
    return sum_row(multiply_add{}, n, in_memory(x), in_memory(y));
}

template <class T>
inline T dot(rows<const T> x, rows<const T> y)
{
    double s = 0;
    if (x.columns == 0) return T{};
    for (std::size_t i = 0; i < x.count; ++i) s += dot_in_memory(x[i], y[i], x.columns);
    return static_cast<T>(s);
}

/// y_t = W x_t for every row x_t.
template <class T>
inline void matvec(rows<T> y, rows<const T> w, rows<const T> x)
{
    for (std::size_t t = 0; t < x.count; ++t) {
        for (std::size_t i = 0; i < w.count; ++i) {
            y[t][i] = static_cast<T>(dot_in_memory(w[i], x[t], w.columns));
        }
    }
}

/// Four vectors of columns from j of y = W^T x: row after row of W, each lane a chain of fused multiply-adds.
template <class V, class T>
RESIDUA_LANE_INLINE void four_columns(T* y, rows<const T> w, const T* x, std::size_t j)
{
    constexpr std::size_t step = V::size;
    V a = zero<V>(), b = a, c = a, d = a;
    for (std::size_t i = 0; i < w.count; ++i) {
        const V xi = V::broadcast(x[i]);
        const T* const row = w[i] + j;
        a = fma(load<V>(row), xi, a);
        b = fma(load<V>(row + step), xi, b);
        c = fma(load<V>(row + 2 * step), xi, c);
        d = fma(load<V>(row + 3 * step), xi, d);
    }
    store(y + j, a);
    store(y + j + step, b);
    store(y + j + 2 * step, c);
    store(y + j + 3 * step, d);
}

template <class V, class T>
RESIDUA_LANE_INLINE void one_column(T* y, rows<const T> w, const T* x, std::size_t j)
{
    V acc = zero<V>();
    for (std::size_t i = 0; i < w.count; ++i) acc = fma(load<V>(w[i] + j), V::broadcast(x[i]), acc);
    store(y + j, acc);
}

template <class V, class T>
RESIDUA_LANE_INLINE void column_tail(T* y, rows<const T> w, const T* x, std::size_t j)
{
    const int rest = static_cast<int>(w.columns - j);
    V acc = zero<V>();
    for (std::size_t i = 0; i < w.count; ++i) acc = fma(load<V>(w[i] + j, rest), V::broadcast(x[i]), acc);
    store(y + j, acc, rest);
}

/// y_t = W^T x_t for every row x_t.
template <class T>
inline void matvec_transposed(rows<T> y, rows<const T> w, rows<const T> x)
{
    using V = lanes<T>;
    constexpr std::size_t step = V::size;
    for (std::size_t t = 0; t < x.count; ++t) {
        std::size_t j = 0;
        for (; j + 4 * step <= w.columns; j += 4 * step) four_columns<V>(y[t], w, x[t], j);
        for (; j + step <= w.columns; j += step) one_column<V>(y[t], w, x[t], j);
        if (j < w.columns) column_tail<V>(y[t], w, x[t], j);
    }
}

}  // namespace RESIDUA_PASS
