// Dot product, matrix-vector product and its transpose: what a probe needs to push a vector through a sublayer.

namespace RESIDUA_PASS {

template <class T>
inline T dot(rows<const T> x, rows<const T> y)
{
    double s = 0;
    for (std::size_t i = 0; i < x.count; ++i) s += reduce_row<lanes<T>>(multiply_add{}, x.columns, x[i], y[i]);
    return static_cast<T>(s);
}

/// y_t = W x_t for every row x_t.
template <class T>
inline void matvec(rows<T> y, rows<const T> w, rows<const T> x)
{
    for (std::size_t t = 0; t < x.count; ++t) {
        for (std::size_t i = 0; i < w.count; ++i) {
            y[t][i] = static_cast<T>(reduce_row<lanes<T>>(multiply_add{}, w.columns, w[i], x[t]));
        }
    }
}

/// Columns j to j + ways * size of y = W^T x: row after row of W, each lane a chain of fused multiply-adds.
template <int Ways, class V, class T>
RESIDUA_INLINE void column_block(T* y, rows<const T> w, const T* x, std::size_t j)
{
    V acc[Ways];
    for (auto& a : acc) a = zero<V>();
    for (std::size_t i = 0; i < w.count; ++i) {
        const V xi = V::broadcast(x[i]);
        for (int k = 0; k < Ways; ++k) {
            acc[k] = fma(load<V>(w[i] + j + static_cast<std::size_t>(k) * V::size), xi, acc[k]);
        }
    }
    for (int k = 0; k < Ways; ++k) store(y + j + static_cast<std::size_t>(k) * V::size, acc[k]);
}

template <class V, class T>
RESIDUA_INLINE void column_tail(T* y, rows<const T> w, const T* x, std::size_t j)
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
        for (; j + 4 * step <= w.columns; j += 4 * step) column_block<4, V>(y[t], w, x[t], j);
        for (; j + step <= w.columns; j += step) column_block<1, V>(y[t], w, x[t], j);
        if (j < w.columns) column_tail<V>(y[t], w, x[t], j);
    }
}

}  // namespace RESIDUA_PASS
