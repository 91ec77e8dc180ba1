// What operations on several rows of a token are made of: a few rows that are combined with coefficients, and the
// products of a few rows with each other.

namespace RESIDUA_PASS {

inline constexpr std::size_t most_streams = operand::most_streams;
/// What is combined at most: the streams and what is written to them, and the derivatives of both.
inline constexpr std::size_t most_terms = 2 * (most_streams + 1);
inline constexpr std::size_t most_outputs = most_streams + 1;

/// One row of an operand.
struct row_in {
    input memory;
    std::size_t i;

    template <class T>
    source<T> as() const
    {
        return from<T>(memory, i);
    }
};
struct row_out {
    output memory;
    std::size_t i;

    template <class T>
    sink<T> as() const
    {
        return to<T>(memory, i);
    }
};

/// Elements j to j + m, at most a block, of a row.
inline void read_elements(const row_in& x, std::size_t j, std::size_t m, double* to)
{
    const auto row = x.as<double>();
    if (!row.is_direct()) return row.fill(row, j, m, to);
    __builtin_memcpy(to, row.direct() + j, m * sizeof(double));
}
template <class T>
inline void write_elements(const row_out& y, std::size_t j, std::size_t m, const T* from)
{
    const auto row = y.as<T>();
    if (!row.is_direct()) return row.drain(row, j, m, from);
    __builtin_memcpy(row.direct() + j, from, m * sizeof(T));
}

/// Writes or adds m numbers, at most a block.
inline void write_gradient(const row_out& y, std::size_t j, std::size_t m, const double* values, bool add)
{
    double sums[block<double>];
    if (add) read_elements({read_back(y.memory), y.i}, j, m, sums);
    for (std::size_t i = 0; i < m; ++i) sums[i] = add ? sums[i] + values[i] : values[i];
    write_elements(y, j, m, sums);
}

/// The matrix c of the sums y_o = sum_i c(o, i) x_i.
template <class T>
struct matrix {
    const T* c;
    std::size_t outputs, stride;
};

/// One vector of each sum; a sum begins as -0, to which a product adds itself.
template <class V, class... X>
RESIDUA_LANE_INLINE void add_vectors(scalar<V>* sums, matrix<scalar<V>> a, bool first, X... x)
{
    for (std::size_t o = 0; o < a.outputs; ++o) {
        scalar<V>* const at = sums + o * block<scalar<V>>;
        const scalar<V>* c = a.c + o * a.stride;
        V sum = first ? V::broadcast(scalar<V>(-0.0)) : load<V>(at);
        ((sum = fma(V::broadcast(*c++), x, sum)), ...);
        store(at, sum);
    }
}
template <class T, std::size_t... Is>
inline void add_terms(T* sums, matrix<T> a, bool first, std::size_t n, const T* const* in,
                      std::index_sequence<Is...>)
{
    using V = lanes<T>;
    const T* const x[] = {in[Is]...};
    std::size_t k = 0;
    for (; k + V::size <= n; k += V::size) add_vectors<V>(sums + k, a, first, load<V>(x[Is] + k)...);
    if (k < n) add_vectors<V>(sums + k, a, first, load<V>(x[Is] + k, static_cast<int>(n - k))...);
}

/// Elements j to j + m, at most a block, of all sums: output o begins at sums + o * block<T>. Each sum is a chain of
/// fused multiply-adds in the order of the inputs; that four of them are taken at a time is not seen in it. Without
/// `first` the terms are added to what is there.
template <class T>
inline void combine_block(T* sums, matrix<T> a, bool first, const row_in* x, std::size_t inputs, std::size_t j,
                          std::size_t m)
{
    block_buffer<T> buffers[4];
    const T* pointers[4];
    for (std::size_t i = 0; i < inputs;) {
        const std::size_t count = inputs - i >= 4 ? 4 : 1;
        for (std::size_t k = 0; k < count; ++k) pointers[k] = buffers[k].read(x[i + k].as<T>(), j, m);
        const matrix<T> part{a.c + i, a.outputs, a.stride};
        if (count == 4) {
            add_terms(sums, part, first, m, pointers, std::make_index_sequence<4>{});
        } else {
            add_terms(sums, part, first, m, pointers, std::make_index_sequence<1>{});
        }
        first = false;
        i += count;
    }
}

template <class T>
inline bool all_finite(const T* sums, std::size_t outputs, std::size_t m)
{
    using V = lanes<T>;
    V seen = zero<V>();
    for (std::size_t o = 0; o < outputs; ++o) {
        for (std::size_t k = 0; k < m; k += V::size) {
            const V v = load<V>(sums + o * block<T> + k);
            seen = seen + (v - v);
        }
    }
    return !any(is_nan(seen));
}

/// The same in double, rounded to where it belongs: all of it, or what is not finite in the block `sums` of float.
template <class T>
RESIDUA_OUT_OF_LINE void combine_in_double(const row_out* y, matrix<double> a, const row_in* x, std::size_t inputs,
                                           std::size_t j, std::size_t m, const T* sums)
{
    alignas(64) double wide[most_outputs * block<double>];
    for (std::size_t k = 0; k < m; k += block<double>) {
        const std::size_t count = m - k < block<double> ? m - k : block<double>;
        combine_block(wide, a, true, x, inputs, j + k, count);
        for (std::size_t o = 0; o < a.outputs; ++o) {
            const double* const exact = wide + o * block<double>;
            if (sums == nullptr) {
                write_elements(y[o], j + k, count, exact);
                continue;
            }
            const T* const s = sums + o * block<T> + k;
            write_elements(y[o], j + k, count, s);
            for (std::size_t e = 0; e < count; ++e) {
                if (s[e] - s[e] != 0) write_elements(y[o], j + k + e, 1, exact + e);
            }
        }
    }
}

/// y_o = sum_i c(o, i) x_i along rows of n elements; an output may be an input. In float, a sum that leaves the range on
/// the way is computed in double.
template <class T>
inline void combine(std::size_t n, const row_out* y, matrix<double> a, const row_in* x, std::size_t inputs)
{
    if constexpr (sizeof(T) == 8) {
        for (std::size_t j = 0; j < n; j += block<T>) {
            combine_in_double<T>(y, a, x, inputs, j, n - j < block<T> ? n - j : block<T>, nullptr);
        }
    } else {
        T c[most_outputs * most_terms];
        for (std::size_t o = 0; o < a.outputs; ++o) {
            for (std::size_t i = 0; i < inputs; ++i) c[o * inputs + i] = static_cast<T>(a.c[o * a.stride + i]);
        }
        alignas(64) T sums[most_outputs * block<T>];
        for (std::size_t j = 0; j < n; j += block<T>) {
            const std::size_t m = n - j < block<T> ? n - j : block<T>;
            combine_block(sums, matrix<T>{c, a.outputs, inputs}, true, x, inputs, j, m);
            if (all_finite(sums, a.outputs, m)) {
                for (std::size_t o = 0; o < a.outputs; ++o) write_elements(y[o], j, m, sums + o * block<T>);
            } else {
                combine_in_double<T>(y, a, x, inputs, j, m, sums);
            }
        }
    }
}

/// products(o, i) = <a_o, b_i> along rows of n elements, in double: each block's product is added to the last.
inline void multiply_rows(double* products, std::size_t n, const row_in* a, std::size_t a_count, const row_in* b,
                          std::size_t b_count)
{
    block_buffer<double> a_buffer, b_buffers[most_outputs];
    const double* b_pointers[most_outputs];
    for (std::size_t i = 0; i < a_count * b_count; ++i) products[i] = 0;
    for (std::size_t j = 0; j < n; j += block<double>) {
        const std::size_t m = n - j < block<double> ? n - j : block<double>;
        for (std::size_t i = 0; i < b_count; ++i) b_pointers[i] = b_buffers[i].read(b[i].as<double>(), j, m);
        for (std::size_t o = 0; o < a_count; ++o) {
            const double* const row = a_buffer.read(a[o].as<double>(), j, m);
            for (std::size_t i = 0; i < b_count; ++i) {
                const double* const pair[] = {row, b_pointers[i]};
                products[o * b_count + i] += sum(terms_of_block(multiply_add{}, m, pair));
            }
        }
    }
}

/// An operation on a block that lies in memory.
template <class Op, std::size_t N>
inline void map_block(const Op& op, std::size_t m, double* y, const double* const (&in)[N])
{
    in_vectors<double, 1, N>(map_erased<Op, double, 1, N>, &op, m, &y, in);
}

}  // namespace RESIDUA_PASS
