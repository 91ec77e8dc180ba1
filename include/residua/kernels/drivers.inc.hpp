// How a kernel walks along a row: whole vectors, then one partial vector. Every map and every sum is one of these two
// walks with an operation of its own, so tails, strides and the order of sums are decided here. (Two walks have files of
// their own: down the columns of a matrix, and to the largest element, where the order does not matter.)

namespace RESIDUA_PASS {

/// y[j] = op(in[j]...) along one row. The inputs of a vector are read before its output is written, so y may be an
/// input.
template <class V, class Op, class Y, class... In>
RESIDUA_INLINE void map_row(const Op& op, std::size_t n, Y* y, const In*... in)
{
    constexpr std::size_t step = V::size;
    std::size_t j = 0;
    for (; j + step <= n; j += step) store(y + j, op(load<V>(in + j)...));
    if (j < n) {
        const int rest = static_cast<int>(n - j);
        store(y + j, op(load<V>(in + j, rest)...), rest);
    }
}

/// The same for every row.
template <class Op, class T, class... In>
inline void map(const Op& op, rows<T> y, rows<In>... in)
{
    if (y.columns == 0) return;
    for (std::size_t i = 0; i < y.count; ++i) map_row<lanes<T>>(op, y.columns, y[i], in[i]...);
}

/// Four vectors of partial sums, so that additions need not wait for each other; folded into double lanes every
/// `stride_of_fold` vectors, so that the error does not grow with the row.
template <class V>
struct accumulator {
    static constexpr std::size_t ways = 4;
    static constexpr std::size_t stride_of_fold = 32;
    using wide = std::conditional_t<std::is_same_v<scalar<V>, float>, f64x16, V>;

    V part[ways];
    wide total;

    // Written out: a constructor that the compiler makes would not have the target's attributes.
    RESIDUA_INLINE accumulator() : part{zero<V>(), zero<V>(), zero<V>(), zero<V>()}, total{zero<wide>()} {}

    RESIDUA_INLINE void fold()
    {
        const V folded = (part[0] + part[1]) + (part[2] + part[3]);
        if constexpr (std::is_same_v<scalar<V>, float>) {
            total = total + widen(folded);
        } else {
            total = total + folded;
        }
        for (auto& p : part) p = zero<V>();
    }
    RESIDUA_INLINE double result()
    {
        fold();
        return sum(total);
    }
};

/// The sum over j < n of op's terms: op(acc, in[j]...) adds one vector of terms to acc; lanes past n read zeros, and
/// must add zero.
template <class V, class Op, class... In>
RESIDUA_INLINE double reduce_row(const Op& op, std::size_t n, const In*... in)
{
    constexpr std::size_t step = V::size;
    constexpr std::size_t block = accumulator<V>::ways * step;
    accumulator<V> acc;
    std::size_t j = 0;
    while (j + block <= n) {
        const std::size_t left = (n - j) / block * block;
        const std::size_t limit = accumulator<V>::stride_of_fold * step;
        const std::size_t end = j + (left < limit ? left : limit);
        V a = zero<V>(), b = a, c = a, d = a;
        for (; j < end; j += block) {
            a = op(a, load<V>(in + j)...);
            b = op(b, load<V>(in + j + step)...);
            c = op(c, load<V>(in + j + 2 * step)...);
            d = op(d, load<V>(in + j + 3 * step)...);
        }
        acc.part[0] = a;
        acc.part[1] = b;
        acc.part[2] = c;
        acc.part[3] = d;
        acc.fold();
    }
    std::size_t k = 0;
    for (; j + step <= n; j += step, ++k) acc.part[k] = op(acc.part[k], load<V>(in + j)...);
    if (j < n) acc.part[3] = op(acc.part[3], load<V>(in + j, static_cast<int>(n - j))...);
    return acc.result();
}

struct multiply_add {
    template <class V>
    RESIDUA_INLINE V operator()(V acc, V x, V y) const
    {
        return fma(x, y, acc);
    }
};

struct add_square {
    template <class V>
    RESIDUA_INLINE V operator()(V acc, V x) const
    {
        return fma(x, x, acc);
    }
};

struct add {
    template <class V>
    RESIDUA_INLINE V operator()(V acc, V x) const
    {
        return acc + x;
    }
};

}  // namespace RESIDUA_PASS
