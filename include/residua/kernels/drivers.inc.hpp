// How a kernel walks along a row. A row is read through `source`s and written through `sink`s: either the memory itself,
// where it holds what the lanes compute with, or block after block through a small buffer, where it is of another type,
// interleaved with another operand, or computed on the way. So one text, and one compiled copy of it, serves every
// mixture of types; and since a block ends where a sum is folded, the bits do not depend on which way was taken.
//
// Every map and every sum is one of the walks below with an operation of its own, so tails, strides and the order of
// sums are decided here. (Two walks have files of their own: down the columns of a matrix, and to the largest element,
// where the order does not matter.)

namespace RESIDUA_PASS {

using operand::input;
using operand::output;
using operand::shape;

/// Vectors that are added up before they are folded into double lanes, so that the error does not grow with the row.
inline constexpr std::size_t vectors_of_fold = 32;

/// The elements of a block: 2 KiB.
template <class T>
inline constexpr std::size_t block = vectors_of_fold * static_cast<std::size_t>(lanes<T>::size);

// --- where a row comes from and goes to ------------------------------------------------------------------------

/// A row that is read as T. `direct` is the row where it lies in memory as T; elsewhere it is null, and `fill` writes
/// elements j to j + m of the row to a buffer, m at most a block. What `self` is, `fill` knows.
template <class T>
struct source {
    using value_type = T;
    const T* direct;
    const void* self;
    void (*fill)(const source& s, std::size_t j, std::size_t m, T* buffer);
    std::uint8_t step;
};

/// A row that is written as T; `drain` rounds elements j to j + m from a buffer to where they belong.
template <class T>
struct sink {
    using value_type = T;
    T* direct;
    void* self;
    void (*drain)(const sink& s, std::size_t j, std::size_t m, const T* buffer);
    std::uint8_t step;
};

/// The vector that reads elements of storage type S for arithmetic in T.
template <class T, class S>
using vector_for = std::conditional_t<std::is_same_v<T, double> && !std::is_same_v<S, double>, f64x16, lanes<T>>;

template <class V, class S>
RESIDUA_LANE_INLINE V load_some(const S* p, int n, std::size_t step)
{
    if (step == 1) return n == V::size ? load<V>(p) : load<V>(p, n);
    S few[V::size];
    for (int i = 0; i < n; ++i) few[i] = p[static_cast<std::size_t>(i) * step];
    return load<V>(static_cast<const S*>(few), n);
}

template <class V, class S>
RESIDUA_LANE_INLINE void store_some(S* p, V v, int n, std::size_t step)
{
    if (step == 1) {
        if (n == V::size) return store(p, v);
        return store(p, v, n);
    }
    S few[V::size];
    store(static_cast<S*>(few), v);
    for (int i = 0; i < n; ++i) p[static_cast<std::size_t>(i) * step] = few[i];
}

template <class T, class S>
inline void fill_from(const source<T>& s, std::size_t j, std::size_t m, T* buffer)
{
    using V = vector_for<T, S>;
    const S* const p = static_cast<const S*>(s.self) + j * s.step;
    for (std::size_t k = 0; k < m; k += V::size) {
        const int n = static_cast<int>(m - k < V::size ? m - k : V::size);
        store_some(buffer + k, load_some<V>(p + k * s.step, n, s.step), n, 1);
    }
}

template <class T, class S>
inline void drain_to(const sink<T>& s, std::size_t j, std::size_t m, const T* buffer)
{
    using V = vector_for<T, S>;
    S* const p = static_cast<S*>(s.self) + j * s.step;
    for (std::size_t k = 0; k < m; k += V::size) {
        const int n = static_cast<int>(m - k < V::size ? m - k : V::size);
        store_some(p + k * s.step, load_some<V>(buffer + k, n, 1), n, s.step);
    }
}

template <class T, class S>
RESIDUA_LANE_INLINE source<T> from_memory(const void* data, std::ptrdiff_t offset, std::uint8_t step)
{
    const S* const p = static_cast<const S*>(data) + offset;
    if constexpr (std::is_same_v<T, S>) {
        if (step == 1) return {p, p, nullptr, step};
    }
    return {nullptr, p, fill_from<T, S>, step};
}
template <class T, class S>
RESIDUA_LANE_INLINE sink<T> to_memory(void* data, std::ptrdiff_t offset, std::uint8_t step)
{
    S* const p = static_cast<S*>(data) + offset;
    if constexpr (std::is_same_v<T, S>) {
        if (step == 1) return {p, p, nullptr, step};
    }
    return {nullptr, p, drain_to<T, S>, step};
}

/// Row i of an input, to compute with in T. (An element is wider than T only where T is double.)
template <class T>
inline source<T> from(const input& in, std::size_t i)
{
    const std::ptrdiff_t offset = static_cast<std::ptrdiff_t>(i) * in.stride;
    switch (in.type) {
        case element::bfloat16: return from_memory<T, bfloat16>(in.data, offset, in.step);
        case element::float16: return from_memory<T, float16>(in.data, offset, in.step);
        case element::float64:
            if constexpr (std::is_same_v<T, double>) return from_memory<T, double>(in.data, offset, in.step);
            [[fallthrough]];
        default: return from_memory<T, float>(in.data, offset, in.step);
    }
}

/// Row i of an output.
template <class T>
inline sink<T> to(const output& out, std::size_t i)
{
    const std::ptrdiff_t offset = static_cast<std::ptrdiff_t>(i) * out.stride;
    switch (out.type) {
        case element::bfloat16: return to_memory<T, bfloat16>(out.data, offset, out.step);
        case element::float16: return to_memory<T, float16>(out.data, offset, out.step);
        case element::float64:
            if constexpr (std::is_same_v<T, double>) return to_memory<T, double>(out.data, offset, out.step);
            [[fallthrough]];
        default: return to_memory<T, float>(out.data, offset, out.step);
    }
}

/// An output as an input.
RESIDUA_LANE_INLINE input read_back(const output& out) { return {out.data, out.stride, out.type, out.step}; }

template <class T>
inline void fill_with_ones(const source<T>&, std::size_t, std::size_t m, T* buffer)
{
    for (std::size_t k = 0; k < m; ++k) buffer[k] = T(1);
}
/// A row of ones: what stands in for a weight that is not there.
template <class T>
RESIDUA_LANE_INLINE source<T> ones()
{
    return {nullptr, nullptr, fill_with_ones<T>, 1};
}

/// A source with the buffer it may need.
template <class T>
struct reader {
    using value_type = T;
    source<T> row;
    alignas(64) T buffer[block<T>];

    RESIDUA_LANE_INLINE explicit reader(const source<T>& s) : row{s} {}
    RESIDUA_LANE_INLINE bool is_direct() const { return row.direct != nullptr; }
    /// Elements j to j + m.
    RESIDUA_LANE_INLINE const T* at(std::size_t j, std::size_t m)
    {
        if (is_direct()) return row.direct + j;
        row.fill(row, j, m, buffer);
        return buffer;
    }
};

/// A sink with the buffer it may need.
template <class T>
struct writer {
    sink<T> row;
    alignas(64) T buffer[block<T>];

    RESIDUA_LANE_INLINE explicit writer(const sink<T>& s) : row{s} {}
    RESIDUA_LANE_INLINE bool is_direct() const { return row.direct != nullptr; }
    RESIDUA_LANE_INLINE T* at(std::size_t j) { return is_direct() ? row.direct + j : buffer; }
    RESIDUA_LANE_INLINE void done(std::size_t j, std::size_t m)
    {
        if (!is_direct()) row.drain(row, j, m, buffer);
    }
};

// --- maps ------------------------------------------------------------------------------------------------------

/// What an operation with two results returns.
template <class V>
struct two {
    V first, second;
};

/// The memory that a map writes: one row,
template <class T>
struct one_row {
    T* y;

    template <class V>
    RESIDUA_LANE_INLINE void put(V v, std::size_t j) const
    {
        store(y + j, v);
    }
    template <class V>
    RESIDUA_LANE_INLINE void put(V v, std::size_t j, int n) const
    {
        store(y + j, v, n);
    }
};

/// or two.
template <class T>
struct two_rows {
    T *y, *z;

    template <class V>
    RESIDUA_LANE_INLINE void put(two<V> v, std::size_t j) const
    {
        store(y + j, v.first);
        store(z + j, v.second);
    }
    template <class V>
    RESIDUA_LANE_INLINE void put(two<V> v, std::size_t j, int n) const
    {
        store(y + j, v.first, n);
        store(z + j, v.second, n);
    }
};

/// y[j] = op(in[j]...) where all of it lies in memory. The inputs of a vector are read before its output is written, so
/// y may be an input.
template <class V, class Op, class To, class... In>
RESIDUA_LANE_INLINE void map_in_memory(const Op& op, std::size_t n, To y, const In*... in)
{
    constexpr std::size_t step = V::size;
    std::size_t j = 0;
    for (; j + step <= n; j += step) y.put(op(load<V>(in + j)...), j);
    if (j < n) {
        const int rest = static_cast<int>(n - j);
        y.put(op(load<V>(in + j, rest)...), j, rest);
    }
}

template <class T>
RESIDUA_LANE_INLINE std::size_t length_of_block(bool all_direct, std::size_t n)
{
    return all_direct ? n : block<T>;
}

template <class Op, class T, class... In>
RESIDUA_LANE_INLINE void map_blocks(const Op& op, std::size_t n, writer<T>&& y, reader<In>&&... in)
{
    const std::size_t most = length_of_block<T>(y.is_direct() && (in.is_direct() && ...), n);
    for (std::size_t j = 0; j < n; j += most) {
        const std::size_t m = n - j < most ? n - j : most;
        map_in_memory<lanes<T>>(op, m, one_row<T>{y.at(j)}, in.at(j, m)...);
        y.done(j, m);
    }
}

template <class Op, class T, class... In>
RESIDUA_LANE_INLINE void map_blocks(const Op& op, std::size_t n, writer<T>&& y, writer<T>&& z, reader<In>&&... in)
{
    const std::size_t most = length_of_block<T>(y.is_direct() && z.is_direct() && (in.is_direct() && ...), n);
    for (std::size_t j = 0; j < n; j += most) {
        const std::size_t m = n - j < most ? n - j : most;
        map_in_memory<lanes<T>>(op, m, two_rows<T>{y.at(j), z.at(j)}, in.at(j, m)...);
        y.done(j, m);
        z.done(j, m);
    }
}

/// y[j] = op(in[j]...) along one row of n elements. y may be an input.
template <class Op, class T, class... In>
RESIDUA_LANE_INLINE void map_row(const Op& op, std::size_t n, const sink<T>& y, const source<In>&... in)
{
    map_blocks(op, n, writer<T>{y}, reader<In>{in}...);
}
/// The same with an operation of two results.
template <class Op, class T, class... In>
RESIDUA_LANE_INLINE void map_row(const Op& op, std::size_t n, const sink<T>& y, const sink<T>& z,
                                 const source<In>&... in)
{
    map_blocks(op, n, writer<T>{y}, writer<T>{z}, reader<In>{in}...);
}

/// A row that is computed where it is read: op of one, two or three others. Has to outlive the source that it gives.
template <class T, class Op, std::size_t N>
struct computed_row {
    Op op;
    source<T> in[N];

    static void fill(const source<T>& s, std::size_t j, std::size_t m, T* buffer)
    {
        const computed_row& self = *static_cast<const computed_row*>(s.self);
        using V = lanes<T>;
        reader<T> a{self.in[0]};
        if constexpr (N == 1) {
            map_in_memory<V>(self.op, m, one_row<T>{buffer}, a.at(j, m));
        } else {
            reader<T> b{self.in[1]};
            if constexpr (N == 2) {
                map_in_memory<V>(self.op, m, one_row<T>{buffer}, a.at(j, m), b.at(j, m));
            } else {
                reader<T> c{self.in[2]};
                map_in_memory<V>(self.op, m, one_row<T>{buffer}, a.at(j, m), b.at(j, m), c.at(j, m));
            }
        }
    }
    RESIDUA_LANE_INLINE source<T> as_source() const { return {nullptr, this, fill, 1}; }
};
template <class Op, class T, class... In>
RESIDUA_LANE_INLINE computed_row<T, Op, 1 + sizeof...(In)> computed(const Op& op, const source<T>& first,
                                                                    const source<In>&... rest)
{
    return {op, {first, rest...}};
}

/// A row that is rounded to a storage type where it is read: as if it had been stored and loaded again.
template <class T>
struct rounded_row {
    source<T> in;
    element type;

    static void fill(const source<T>& s, std::size_t j, std::size_t m, T* buffer)
    {
        const rounded_row& self = *static_cast<const rounded_row*>(s.self);
        alignas(64) T memory[block<T>];
        const sink<T> there = to<T>(output{memory, 0, self.type, 1}, 0);
        reader<T> row{self.in};
        const T* const exact = row.at(j, m);
        if (there.direct != nullptr) {
            __builtin_memcpy(buffer, exact, m * sizeof(T));
            return;
        }
        there.drain(there, 0, m, exact);
        const source<T> back = from<T>(input{memory, 0, self.type, 1}, 0);
        back.fill(back, 0, m, buffer);
    }
    RESIDUA_LANE_INLINE source<T> as_source() const { return {nullptr, this, fill, 1}; }
};

/// The same for every row, in T.
template <class T, class Op, class... In>
inline void map(const Op& op, shape s, output y, const In&... in)
{
    for (std::size_t i = 0; i < s.rows; ++i) map_row(op, s.columns, to<T>(y, i), from<T>(in, i)...);
}
template <class T, class Op, class... In>
inline void map_to_two(const Op& op, shape s, output y, output z, const In&... in)
{
    for (std::size_t i = 0; i < s.rows; ++i) map_row(op, s.columns, to<T>(y, i), to<T>(z, i), from<T>(in, i)...);
}

// --- sums ------------------------------------------------------------------------------------------------------

/// What partial sums in V are folded into.
template <class V>
using wide_of = std::conditional_t<std::is_same_v<scalar<V>, float>, f64x16, V>;

template <class V>
RESIDUA_LANE_INLINE wide_of<V> widened(V v)
{
    if constexpr (std::is_same_v<scalar<V>, float>) {
        return widen(v);
    } else {
        return v;
    }
}

/// Adds the terms of j < n to `total`: op(acc, in[j]...) adds one vector of terms to acc; lanes past n read zeros, and
/// must add zero. Four accumulators, so that additions need not wait for each other.
template <class V, class Op, class... In>
RESIDUA_LANE_INLINE wide_of<V> sum_in_memory(wide_of<V> total, const Op& op, std::size_t n, const In*... in)
{
    constexpr std::size_t step = V::size;
    constexpr std::size_t whole_fold = vectors_of_fold * step;
    std::size_t j = 0;
    while (j < n) {
        V a = zero<V>(), b = a, c = a, d = a;
        const std::size_t end = n - j < whole_fold ? n : j + whole_fold;
        for (; j + 4 * step <= end; j += 4 * step) {
            a = op(a, load<V>(in + j)...);
            b = op(b, load<V>(in + j + step)...);
            c = op(c, load<V>(in + j + 2 * step)...);
            d = op(d, load<V>(in + j + 3 * step)...);
        }
        if (j + step <= end) {
            a = op(a, load<V>(in + j)...);
            j += step;
        }
        if (j + step <= end) {
            b = op(b, load<V>(in + j)...);
            j += step;
        }
        if (j + step <= end) {
            c = op(c, load<V>(in + j)...);
            j += step;
        }
        if (j < end) {
            d = op(d, load<V>(in + j, static_cast<int>(end - j))...);
            j = end;
        }
        total = total + widened((a + b) + (c + d));
    }
    return total;
}

template <class V, class Op, class... In>
RESIDUA_LANE_INLINE double sum_blocks(const Op& op, std::size_t n, reader<In>&&... in)
{
    const std::size_t most = length_of_block<scalar<V>>((in.is_direct() && ...), n);
    auto total = zero<wide_of<V>>();
    for (std::size_t j = 0; j < n; j += most) {
        const std::size_t m = n - j < most ? n - j : most;
        total = sum_in_memory<V>(total, op, m, in.at(j, m)...);
    }
    return sum(total);
}

/// The sum of op's terms along one row of n elements.
template <class Op, class T, class... In>
RESIDUA_LANE_INLINE double sum_row(const Op& op, std::size_t n, const source<T>& first, const source<In>&... in)
{
    return sum_blocks<lanes<T>>(op, n, reader<T>{first}, reader<In>{in}...);
}

struct multiply_add {
    template <class V>
    RESIDUA_LANE_INLINE V operator()(V acc, V x, V y) const
    {
        return fma(x, y, acc);
    }
};

struct add_square {
    template <class V>
    RESIDUA_LANE_INLINE V operator()(V acc, V x) const
    {
        return fma(x, x, acc);
    }
};

struct add {
    template <class V>
    RESIDUA_LANE_INLINE V operator()(V acc, V x) const
    {
        return acc + x;
    }
};

}  // namespace RESIDUA_PASS
