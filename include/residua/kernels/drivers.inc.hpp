// How a kernel walks along a row. A row is read through `source`s and written through `sink`s: either the memory itself,
// where it holds what the lanes compute with, or block after block through a small buffer, where it is of another type,
// interleaved with another operand, or computed on the way. So one text, and one compiled copy of it, serves every
// mixture of types; and since a block ends where a sum is folded, the bits do not depend on which way was taken.
//
// Every map and every sum is one of the walks below with an operation of its own, so tails, strides and the order of
// sums are decided here. (Two walks have files of their own: down the columns of a matrix, and to the largest element,
// where the order does not matter.)

namespace RESIDUA_PASS {

using operand::gated_form;
using operand::gated_numbers;
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
    constexpr std::size_t size = V::size;
    const S* const p = static_cast<const S*>(s.self) + j * s.step;
    std::size_t k = 0;
    if (s.step == 1) {
        for (; k + size <= m; k += size) store(buffer + k, load<V>(p + k));
    }
    if constexpr (takes_alternate<f32x16>) {
        // not the last, behind which there need not be an element
        if (s.step == 2) {
            for (; k + size < m; k += size) store(buffer + k, load_alternate<V>(p + k * 2));
        }
    }
    for (; k < m; k += size) {
        const int n = static_cast<int>(m - k < size ? m - k : size);
        store_some(buffer + k, load_some<V>(p + k * s.step, n, s.step), n, 1);
    }
}

template <class T, class S>
inline void drain_to(const sink<T>& s, std::size_t j, std::size_t m, const T* buffer)
{
    using V = vector_for<T, S>;
    constexpr std::size_t size = V::size;
    S* const p = static_cast<S*>(s.self) + j * s.step;
    std::size_t k = 0;
    if (s.step == 1) {
        for (; k + size <= m; k += size) store(p + k, load<V>(static_cast<const T*>(buffer + k)));
    }
    for (; k < m; k += size) {
        const int n = static_cast<int>(m - k < size ? m - k : size);
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

/// How far row i is from the first; rows without an element may be nowhere.
RESIDUA_LANE_INLINE std::ptrdiff_t offset_of_row(const void* data, std::size_t i, std::ptrdiff_t stride)
{
    return data == nullptr ? 0 : static_cast<std::ptrdiff_t>(i) * stride;
}

/// Row i of an input, to compute with in T. (An element is wider than T only where T is double.)
template <class T>
inline source<T> from(const input& in, std::size_t i)
{
    const std::ptrdiff_t offset = offset_of_row(in.data, i, in.stride);
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
    const std::ptrdiff_t offset = offset_of_row(out.data, i, out.stride);
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

// --- blocks ----------------------------------------------------------------------------------------------------

/// What is done to a row, or to a block of one, where all of it lies in memory as T: n elements of the inputs, and of the
/// outputs, or (of a sum) the lanes of the total. n is a multiple of the lanes, for a sum of a group.
template <class T>
using memory_operation = void (*)(const void* op, std::size_t n, T* const* out, const T* const* in);
template <class T>
using memory_sum = void (*)(const void* op, std::size_t n, double* total, const T* const* in);

/// The memory that a row which is not direct is read through.
template <class T>
struct block_buffer {
    alignas(64) T data[block<T>];

    /// Elements j to j + m of a row.
    const T* read(const source<T>& row, std::size_t j, std::size_t m)
    {
        if (row.direct != nullptr) return row.direct + j;
        row.fill(row, j, m, data);
        return data;
    }
};

/// Calls f for the `rest` elements from j on that do not fill a vector: in a copy, with zeros behind them. So an operation
/// has whole vectors only, and is compiled once.
template <class T, std::size_t Out, std::size_t In>
RESIDUA_OUT_OF_LINE void part_of_vector(memory_operation<T> f, const void* op, std::size_t j, std::size_t rest,
                                        T* const* out, const T* const* in)
{
    constexpr std::size_t step = lanes<T>::size;
    alignas(64) T read[In][step] = {};
    alignas(64) T written[Out][step];
    T* out_pointers[Out];
    const T* in_pointers[In];
    for (std::size_t i = 0; i < In; ++i) {
        __builtin_memcpy(read[i], in[i] + j, rest * sizeof(T));
        in_pointers[i] = read[i];
    }
    for (std::size_t i = 0; i < Out; ++i) out_pointers[i] = written[i];
    f(op, step, out_pointers, in_pointers);
    for (std::size_t i = 0; i < Out; ++i) __builtin_memcpy(out[i] + j, written[i], rest * sizeof(T));
}

/// The elements before the first line of the cache, for a row so long that it does not stay in the nearest one. In a
/// shorter row it is the loads, of all inputs, that had better be aligned.
template <class T>
inline std::size_t before_first_line(const T* y, std::size_t n)
{
    constexpr std::size_t line = 64, long_row = 16384 / sizeof(T);
    if (n < long_row) return 0;
    return (line - reinterpret_cast<std::uintptr_t>(y) % line) % line / sizeof(T);
}

/// Calls f for n elements in memory.
template <class T, std::size_t Out, std::size_t In>
inline void in_vectors(memory_operation<T> f, const void* op, std::size_t n, T* const* out, const T* const* in)
{
    const std::size_t rest = n % lanes<T>::size;
    if (n > rest) f(op, n - rest, out, in);
    if (rest > 0) part_of_vector<T, Out, In>(f, op, n - rest, rest, out, in);
}
/// The same, after the `first` elements, with which the output comes to the beginning of a line: a store across two lines
/// takes as long as two.
template <class T, std::size_t Out, std::size_t In>
RESIDUA_OUT_OF_LINE void in_lines(memory_operation<T> f, const void* op, std::size_t first, std::size_t n,
                                  T* const* out, const T* const* in)
{
    T* out_pointers[Out];
    const T* in_pointers[In];
    for (std::size_t i = 0; i < Out; ++i) out_pointers[i] = out[i] + first;
    for (std::size_t i = 0; i < In; ++i) in_pointers[i] = in[i] + first;
    part_of_vector<T, Out, In>(f, op, 0, first, out, in);
    in_vectors<T, Out, In>(f, op, n - first, out_pointers, in_pointers);
}
/// Calls f for block after block.
template <class T, std::size_t Out, std::size_t In>
RESIDUA_OUT_OF_LINE void walk_blocks(memory_operation<T> f, const void* op, std::size_t n, const sink<T> (&y)[Out],
                                     const source<T> (&in)[In])
{
    block_buffer<T> written[Out], read[In];
    T* out_pointers[Out];
    const T* in_pointers[In];
    for (std::size_t j = 0; j < n; j += block<T>) {
        const std::size_t m = n - j < block<T> ? n - j : block<T>;
        for (std::size_t i = 0; i < In; ++i) in_pointers[i] = read[i].read(in[i], j, m);
        for (std::size_t i = 0; i < Out; ++i) {
            out_pointers[i] = y[i].direct != nullptr ? y[i].direct + j : written[i].data;
        }
        in_vectors<T, Out, In>(f, op, m, out_pointers, in_pointers);
        for (std::size_t i = 0; i < Out; ++i) {
            if (y[i].direct == nullptr) y[i].drain(y[i], j, m, written[i].data);
        }
    }
}

/// The elements that a sum takes at a time.
template <class T>
inline constexpr std::size_t group = 4 * static_cast<std::size_t>(lanes<T>::size);

/// Calls f for the `rest` elements from j on that do not fill a group: in a copy, with zeros behind them, whose terms must
/// be zero.
template <class T, std::size_t In>
RESIDUA_OUT_OF_LINE void part_of_group(memory_sum<T> f, const void* op, std::size_t j, std::size_t rest,
                                       double* total, const T* const* in)
{
    alignas(64) T read[In][group<T>] = {};
    const T* pointers[In];
    for (std::size_t i = 0; i < In; ++i) {
        __builtin_memcpy(read[i], in[i] + j, rest * sizeof(T));
        pointers[i] = read[i];
    }
    f(op, group<T>, total, pointers);
}

/// Calls f for n elements in memory.
template <class T, std::size_t In>
inline void in_groups(memory_sum<T> f, const void* op, std::size_t n, double* total, const T* const* in)
{
    const std::size_t rest = n % group<T>;
    if (n > rest) f(op, n - rest, total, in);
    if (rest > 0) part_of_group<T, In>(f, op, n - rest, rest, total, in);
}

template <class T, std::size_t In>
RESIDUA_OUT_OF_LINE void sum_blocks(memory_sum<T> f, const void* op, std::size_t n, double* total,
                                    const source<T> (&in)[In])
{
    block_buffer<T> buffers[In];
    const T* pointers[In];
    for (std::size_t j = 0; j < n; j += block<T>) {
        const std::size_t m = n - j < block<T> ? n - j : block<T>;
        for (std::size_t i = 0; i < In; ++i) pointers[i] = buffers[i].read(in[i], j, m);
        in_groups<T, In>(f, op, m, total, pointers);
    }
}

/// The pointers of a row that lies in memory as T throughout; false if it does not.
template <class T, std::size_t N>
inline bool all_direct(const source<T> (&in)[N], const T* (&pointers)[N])
{
    bool direct = true;
    for (std::size_t i = 0; i < N; ++i) {
        pointers[i] = in[i].direct;
        direct = direct && pointers[i] != nullptr;
    }
    return direct;
}
template <class T, std::size_t N>
inline bool all_direct(const sink<T> (&out)[N], T* (&pointers)[N])
{
    bool direct = true;
    for (std::size_t i = 0; i < N; ++i) {
        pointers[i] = out[i].direct;
        direct = direct && pointers[i] != nullptr;
    }
    return direct;
}

/// Calls f for a whole row where it lies in memory as T, and for block after block elsewhere.
template <class T, std::size_t Out, std::size_t In>
inline void walk(memory_operation<T> f, const void* op, std::size_t n, const sink<T> (&y)[Out],
                 const source<T> (&in)[In])
{
    T* out_pointers[Out];
    const T* in_pointers[In];
    if (all_direct(in, in_pointers) && all_direct(y, out_pointers)) {
        const std::size_t first = before_first_line(out_pointers[0], n);
        if (first == 0) return in_vectors<T, Out, In>(f, op, n, out_pointers, in_pointers);
        in_lines<T, Out, In>(f, op, first, n, out_pointers, in_pointers);
    } else {
        walk_blocks(f, op, n, y, in);
    }
}

// --- maps ------------------------------------------------------------------------------------------------------

/// What an operation with two results returns.
template <class V>
struct two {
    V first, second;
};

template <class V, class T>
RESIDUA_LANE_INLINE void put(V v, std::size_t j, T* const (&y)[1])
{
    store(y[0] + j, v);
}
template <class V, class T>
RESIDUA_LANE_INLINE void put(two<V> v, std::size_t j, T* const (&y)[2])
{
    store(y[0] + j, v.first);
    store(y[1] + j, v.second);
}
/// Whether an operation reads what a sum has just read: then the end of a long row is what the cache still holds.
template <class Op>
inline constexpr bool reads_again = requires { Op::reads_again; };

/// Which end of a row to begin with, which no result depends on. A load has to wait for an earlier store that is not yet
/// in the cache where their addresses agree modulo 4 KiB: upwards for stores to just behind it, downwards for those to just
/// ahead. So the walk takes the better end unless an input lies close in that direction, and only in that.
template <class T, std::size_t Out, std::size_t In>
inline bool begins_at_end(bool better, T* const (&out)[Out], const T* const (&in)[In])
{
    constexpr std::uintptr_t page = 4096, close = 1024;
    std::uintptr_t upwards = page, downwards = page;
    for (std::size_t o = 0; o < Out; ++o) {
        for (std::size_t i = 0; i < In; ++i) {
            const auto ahead =
                (reinterpret_cast<std::uintptr_t>(out[o]) - reinterpret_cast<std::uintptr_t>(in[i])) % page;
            if (ahead == 0) continue;
            upwards = ahead < upwards ? ahead : upwards;
            downwards = page - ahead < downwards ? page - ahead : downwards;
        }
    }
    return better ? downwards >= close || downwards >= upwards : upwards < close && upwards < downwards;
}

/// out[j] = op(in[j]...) for whole vectors in memory. The inputs of a vector are read before its output is written, so an output may be an
/// input. The operation and the pointers are copies, which no store can seem to change.
template <class Op, class T, std::size_t... O, std::size_t... I>
inline void map_in_memory(const Op op, std::size_t n, T* const* out, const T* const* in, std::index_sequence<O...>,
                          std::index_sequence<I...>)
{
    using V = lanes<T>;
    constexpr std::size_t step = V::size;
    T* const y[] = {out[O]...};
    const T* const x[] = {in[I]...};
    const bool down = begins_at_end(reads_again<Op>, y, x);
    const std::size_t next = down ? std::size_t{0} - step : step;
    std::size_t j = down ? n - step : 0;
    for (std::size_t left = n / step; left > 0; --left, j += next) put(op(load<V>(x[I] + j)...), j, y);
}
template <class Op, class T, std::size_t Out, std::size_t In>
inline void map_erased(const void* op, std::size_t n, T* const* out, const T* const* in)
{
    map_in_memory(*static_cast<const Op*>(op), n, out, in, std::make_index_sequence<Out>{},
                  std::make_index_sequence<In>{});
}

/// y[j] = op(in[j]...) along one row of n elements. y may be an input.
template <class Op, class T, class... In>
inline void map_row(const Op& op, std::size_t n, const sink<T>& y, const source<In>&... in)
{
    walk<T, 1, sizeof...(In)>(map_erased<Op, T, 1, sizeof...(In)>, &op, n, {y}, {in...});
}
/// The same with an operation of two results.
template <class Op, class T, class... In>
inline void map_row(const Op& op, std::size_t n, const sink<T>& y, const sink<T>& z, const source<In>&... in)
{
    walk<T, 2, sizeof...(In)>(map_erased<Op, T, 2, sizeof...(In)>, &op, n, {y, z}, {in...});
}

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

/// A row that is computed where it is read: op of others. Has to outlive the source that it gives.
template <class T, class Op, std::size_t N>
struct computed_row {
    Op op;
    source<T> in[N];

    static void fill(const source<T>& s, std::size_t j, std::size_t m, T* buffer)
    {
        const computed_row& self = *static_cast<const computed_row*>(s.self);
        block_buffer<T> buffers[N];
        const T* pointers[N];
        for (std::size_t i = 0; i < N; ++i) pointers[i] = buffers[i].read(self.in[i], j, m);
        in_vectors<T, 1, N>(map_erased<Op, T, 1, N>, &self.op, m, &buffer, pointers);
    }
    source<T> as_source() const { return {nullptr, this, fill, 1}; }
};
template <class Op, class T, class... In>
inline computed_row<T, Op, 1 + sizeof...(In)> computed(const Op& op, const source<T>& first,
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
        block_buffer<T> stored, exact_buffer;
        const sink<T> there = to<T>(output{stored.data, 0, self.type, 1}, 0);
        const T* const exact = exact_buffer.read(self.in, j, m);
        if (there.direct != nullptr) {
            __builtin_memcpy(buffer, exact, m * sizeof(T));
            return;
        }
        there.drain(there, 0, m, exact);
        const source<T> back = from<T>(input{stored.data, 0, self.type, 1}, 0);
        back.fill(back, 0, m, buffer);
    }
    source<T> as_source() const { return {nullptr, this, fill, 1}; }
};

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

/// The lanes of a total.
template <class T>
inline constexpr std::size_t lanes_of_total = static_cast<std::size_t>(wide_of<lanes<T>>::size);

/// What an operation's terms are added to: vectors of its operands' type, or of double where it asks for that.
struct adds_in_double {};
template <class Op, class V>
using accumulator = std::conditional_t<std::is_base_of_v<adds_in_double, Op>, wide_of<V>, V>;

/// The terms of four vectors from x[...] + j on, or of eight: added in pairs, which loses less than one after the other,
/// and lets none wait for all before it.
template <class Op, class T, std::size_t... I>
RESIDUA_LANE_INLINE auto terms_of_four(const Op& op, const T* const (&x)[sizeof...(I)], std::size_t j,
                                       std::index_sequence<I...>)
{
    using V = lanes<T>;
    constexpr std::size_t step = V::size;
    const auto none = zero<accumulator<Op, V>>();
    const auto first = op(op(none, load<V>(x[I] + j)...), load<V>(x[I] + j + step)...);
    const auto second = op(op(none, load<V>(x[I] + j + 2 * step)...), load<V>(x[I] + j + 3 * step)...);
    return first + second;
}
template <class Op, class T, std::size_t... I>
RESIDUA_LANE_INLINE auto terms_of_eight(const Op& op, const T* const (&x)[sizeof...(I)], std::size_t j,
                                        std::index_sequence<I...> each)
{
    return terms_of_four(op, x, j, each) + terms_of_four(op, x, j + 4 * lanes<T>::size, each);
}

/// Adds the terms of n elements in memory to `total`: op(acc, in[j]...) adds one vector of terms to acc. n is a multiple of
/// the elements of four vectors. Partial sums of float are folded into double after eight.
template <class Op, class T, std::size_t... I>
inline void sum_in_memory(const Op op, std::size_t n, double* total, const T* const* in,
                          std::index_sequence<I...> each)
{
    constexpr std::size_t four = 4 * lanes<T>::size;
    const T* const x[] = {in[I]...};
    auto sum = wide_of<lanes<T>>::load(total);
    for (std::size_t j = 0; j < n;) {
        auto part = zero<wide_of<lanes<T>>>();
        const std::size_t end = n - j < block<T> ? n : j + block<T>;
        for (; end - j >= 2 * four; j += 2 * four) part = part + widened(terms_of_eight(op, x, j, each));
        if (j < end) {
            part = part + widened(terms_of_four(op, x, j, each));
            j += four;
        }
        sum = sum + part;
    }
    sum.store(total);
}
template <class Op, class T, std::size_t In>
inline void sum_erased(const void* op, std::size_t n, double* total, const T* const* in)
{
    sum_in_memory(*static_cast<const Op*>(op), n, total, in, std::make_index_sequence<In>{});
}

template <class T>
inline double sum_of_total(const double* total)
{
    return sum(wide_of<lanes<T>>::load(total));
}

/// Adds op's terms along one row of n elements to `total`.
template <class Op, class T, class... In>
inline void add_row(const Op& op, std::size_t n, double* total, const source<T>& first, const source<In>&... rest)
{
    constexpr std::size_t count = 1 + sizeof...(In);
    const source<T> in[] = {first, rest...};
    const T* pointers[count];
    if (all_direct(in, pointers)) {
        in_groups<T, count>(sum_erased<Op, T, count>, &op, n, total, pointers);
    } else {
        sum_blocks(sum_erased<Op, T, count>, &op, n, total, in);
    }
}
/// The sum of op's terms along one row of n elements.
template <class Op, class T, class... In>
inline double sum_row(const Op& op, std::size_t n, const source<T>& first, const source<In>&... rest)
{
    alignas(64) double total[lanes_of_total<T>] = {};
    add_row(op, n, total, first, rest...);
    return sum_of_total<T>(total);
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

struct add_square_in_double : adds_in_double {
    template <class A, class V>
    RESIDUA_LANE_INLINE A operator()(A acc, V x) const
    {
        return fma(widened(x), widened(x), acc);
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
