// How a kernel walks along a row. A row is read through `source`s and written through `sink`s: the memory itself, where it
// holds what the lanes compute with; vectors that are converted as they are loaded and stored, where it holds another type;
// or block after block through a small buffer, where the row is computed on the way. So one text, and at most two compiled
// copies of it, serve every mixture of types; and since a block ends where a sum is folded, the bits do not depend on which
// way was taken.
//
// Every map and every sum is one of the walks below with an operation of its own, so tails, strides and the order of
// sums are decided here. (One walk has a file of its own: down the columns of a matrix.)

namespace RESIDUA_PASS {

using operand::gated_form;
using operand::gated_numbers;
using operand::input;
using operand::output;
using operand::shape;

/// The elements of a block: 2 KiB. The terms of a sum are added up within a block before they are added to those before it,
/// so that the error does not grow with the row.
template <class T>
inline constexpr std::size_t block = 32 * static_cast<std::size_t>(lanes<T>::size);

// --- where a row comes from and goes to ------------------------------------------------------------------------

/// How a row's elements lie in memory: as what the lanes compute with, as a type of 16 bits, or every second of such; in
/// no memory, since all are one; in any other way, which the row's own function knows; as float, for lanes of double.
enum class layout : std::uint8_t {
    direct,
    bfloat16,
    float16,
    alternate,
    alternate_bfloat16,
    alternate_float16,
    ones,
    other,
    narrower_float
};

/// One of 16 numbers below 16: a table that costs no load, and is looked up once for all rows.
RESIDUA_LANE_INLINE unsigned looked_up(std::uint64_t table, unsigned i)
{
    return static_cast<unsigned>(table >> (4 * i)) & 15u;
}
RESIDUA_LANE_INLINE unsigned log2_of_size(element type)
{
    constexpr std::uint64_t log2_of_sizes = 0x1132;
    return looked_up(log2_of_sizes, static_cast<unsigned>(type));
}

/// A row that is read as T: the memory at `self` where it lies there as T; elsewhere `fill` writes elements j to j + m of
/// it to a buffer, m at most a block. What `self` is, `fill` knows.
template <class T>
struct source {
    using value_type = T;
    const void* self;
    void (*fill)(const source& s, std::size_t j, std::size_t m, T* buffer);
    std::uint8_t step;
    layout lies = layout::other;
    element type = element::float32;

    RESIDUA_LANE_INLINE bool is_direct() const { return lies == layout::direct; }
    /// Whether its elements are floats, or narrower, in memory.
    bool is_narrow() const { return lies != layout::other && type != element::float64; }
    /// From one element in memory to the next.
    std::size_t bytes() const { return std::size_t{step} << log2_of_size(type); }
    /// Where it is direct.
    RESIDUA_LANE_INLINE const T* direct() const { return static_cast<const T*>(self); }
};

/// A row that is written as T; elsewhere `drain` rounds elements j to j + m from a buffer to where they belong. One that
/// goes past the caches is not written directly: a piece of it is made in a buffer, and then streamed.
template <class T>
struct sink {
    using value_type = T;
    void* self;
    void (*drain)(const sink& s, std::size_t j, std::size_t m, const T* buffer);
    std::uint8_t step;
    layout lies;
    element type;
    bool streaming;

    RESIDUA_LANE_INLINE bool is_direct() const { return lies == layout::direct && !streaming; }
    std::size_t bytes() const { return std::size_t{step} << log2_of_size(type); }
    /// Where it is direct.
    RESIDUA_LANE_INLINE T* direct() const { return static_cast<T*>(self); }
};

/// A row, member by member: so that only the copy, of those who need it, is in memory, and what was copied in registers.
template <class T>
RESIDUA_LANE_INLINE source<T> copy_of(const source<T>& s)
{
    return {s.self, s.fill, s.step, s.lies, s.type};
}
template <class T>
RESIDUA_LANE_INLINE sink<T> copy_of(const sink<T>& s)
{
    return {s.self, s.drain, s.step, s.lies, s.type, s.streaming};
}

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

template <class T>
RESIDUA_LANE_INLINE layout layout_of(element type, std::uint8_t step)
{
    constexpr std::uint64_t of_float = 0x5473'2170, of_double = 0x5437'2108;
    return static_cast<layout>(
        looked_up(std::is_same_v<T, float> ? of_float : of_double, static_cast<unsigned>(type) + 4u * (step - 1u)));
}

/// The rows of an operand from row i on. (Rows without an element may be nowhere, so this is no arithmetic of pointers.)
template <class Operand>
RESIDUA_LANE_INLINE Operand rows_from(Operand operand, std::size_t i)
{
    const std::size_t elements = i * static_cast<std::size_t>(operand.stride);
    const auto address = reinterpret_cast<std::uintptr_t>(operand.data) + (elements << log2_of_size(operand.type));
    operand.data = reinterpret_cast<decltype(operand.data)>(address);
    return operand;
}

/// Whether an operand's rows lie in memory as T.
template <class T, class Operand>
RESIDUA_LANE_INLINE bool lies_as(const Operand& operand)
{
    return operand.type == operand::element_of_type<T> && operand.step == 1;
}

// An element is wider than T only where T is double.
template <class T>
inline void fill_from_memory(const source<T>& s, std::size_t j, std::size_t m, T* buffer)
{
    switch (s.type) {
        case element::bfloat16: return fill_from<T, bfloat16>(s, j, m, buffer);
        case element::float16: return fill_from<T, float16>(s, j, m, buffer);
        case element::float64:
            if constexpr (std::is_same_v<T, double>) return fill_from<T, double>(s, j, m, buffer);
            [[fallthrough]];
        default: return fill_from<T, float>(s, j, m, buffer);
    }
}
template <class T>
inline void drain_to_memory(const sink<T>& s, std::size_t j, std::size_t m, const T* buffer)
{
    switch (s.type) {
        case element::bfloat16: return drain_to<T, bfloat16>(s, j, m, buffer);
        case element::float16: return drain_to<T, float16>(s, j, m, buffer);
        case element::float64:
            if constexpr (std::is_same_v<T, double>) return drain_to<T, double>(s, j, m, buffer);
            [[fallthrough]];
        default: return drain_to<T, float>(s, j, m, buffer);
    }
}

/// Row i of an input, to compute with in T.
template <class T>
RESIDUA_LANE_INLINE source<T> from(const input& in, std::size_t i)
{
    return {rows_from(in, i).data, fill_from_memory<T>, in.step, layout_of<T>(in.type, in.step), in.type};
}
/// Row i of an output.
template <class T>
RESIDUA_LANE_INLINE sink<T> to(const output& out, std::size_t i)
{
    return {rows_from(out, i).data,           drain_to_memory<T>, out.step,
            layout_of<T>(out.type, out.step), out.type,           out.streaming && out.step == 1};
}
/// A row of T in memory.
template <class T>
RESIDUA_LANE_INLINE source<T> in_memory(const T* p)
{
    return {p, nullptr, 1, layout::direct, operand::element_of_type<T>};
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
    return {nullptr, fill_with_ones<T>, 1, layout::ones};
}

// --- blocks ----------------------------------------------------------------------------------------------------

/// What is done to a row, or to a block of one, where all of it lies in memory as T: n elements of the outputs and of the
/// inputs, n a multiple of the lanes.
template <class T>
using memory_operation = void (*)(const void* op, std::size_t n, T* const* out, const T* const* in);

/// A row that a vector is loaded from, or stored to, in the way that `lies` says.
template <class T>
struct stored_source {
    const void* data;
    layout lies;
};
template <class T>
struct stored_sink {
    void* data;
    layout lies;
};
template <class T>
using stored_operation = void (*)(const void* op, std::size_t n, bool by_parity, const stored_sink<T>* out,
                                  const stored_source<T>* in);

/// An operation on rows in memory, and the same on rows that are converted vector by vector, where there is one.
template <class T>
struct row_operation {
    const void* op;
    memory_operation<T> in_memory;
    stored_operation<T> stored;
    bool reads_again;  // what a sum has just read
};

/// Whether vectors can be converted on their way: what lies in no register is not worth a second copy of an operation.
inline constexpr bool converts_vectors = takes_alternate<f32x16>;
/// Whether an operation is compiled for that: every one of float; of double those that say so, whose operands are likely
/// to be narrower.
template <class Op>
inline constexpr bool takes_narrow_operands = requires { requires Op::has_narrow_operands; };
template <class Op, class T>
inline constexpr bool is_converting = converts_vectors && (std::is_same_v<T, float> || takes_narrow_operands<Op>);

/// Whether vectors of T can be loaded or stored so.
template <class T>
inline bool loads_vectors(layout lies)
{
    if constexpr (std::is_same_v<T, float>) return lies != layout::other;
    return lies <= layout::float16 || lies == layout::ones || lies == layout::narrower_float;
}
template <class T>
inline bool stores_vectors(layout lies)
{
    return lies <= layout::float16 || lies == layout::narrower_float;
}

/// Two vectors: also what an operation with two results returns.
template <class V>
struct two {
    V first, second;
};

template <class V, class S>
RESIDUA_LANE_INLINE two<V> load_two(const S* p)
{
    return {load<V>(p), load<V>(p + V::size)};
}
template <class V, class S>
RESIDUA_LANE_INLINE two<V> load_two_alternate(const S* p)
{
    return {load_alternate<V>(p), load_alternate<V>(p + 2 * V::size)};
}
/// The elements of two vectors from j on: in their order, or, of bfloat16 and `by_parity`, those of even places and those of
/// odd ones, which takes no moves between lanes.
template <class V>
    requires std::is_same_v<scalar<V>, float>
RESIDUA_LANE_INLINE two<V> load_two(const stored_source<float>& row, std::size_t j, bool by_parity)
{
    const auto* const direct = static_cast<const float*>(row.data);
    const auto* const brain = static_cast<const bfloat16*>(row.data);
    const auto* const half = static_cast<const float16*>(row.data);
    if (row.lies == layout::bfloat16) {
        using U = bits_of<V>;
        if (!by_parity) return load_two<V>(brain + j);
        const U both = U::load_bits(brain + j);
        return {from_bfloat16<V>(both), from_bits(both & U::broadcast(0xffff0000u))};
    }
    if (row.lies == layout::float16) return load_two<V>(half + j);
    if (row.lies == layout::direct) return load_two<V>(direct + j);
    if (row.lies == layout::ones) return {V::broadcast(1), V::broadcast(1)};
    if (row.lies == layout::alternate) return load_two_alternate<V>(direct + 2 * j);
    if (row.lies == layout::alternate_bfloat16) return load_two_alternate<V>(brain + 2 * j);
    return load_two_alternate<V>(half + 2 * j);
}
/// Of two vectors of double, which one of float widens to.
template <class V>
    requires std::is_same_v<scalar<V>, double>
RESIDUA_LANE_INLINE two<V> load_two(const stored_source<double>& row, std::size_t j, bool)
{
    using F = decltype(narrow(twice<V>{}));
    if (row.lies == layout::narrower_float) return load_two<V>(static_cast<const float*>(row.data) + j);
    if (row.lies == layout::direct) return load_two<V>(static_cast<const double*>(row.data) + j);
    if (row.lies == layout::ones) return {V::broadcast(1), V::broadcast(1)};
    const auto both = row.lies == layout::bfloat16 ? widen(load<F>(static_cast<const bfloat16*>(row.data) + j))
                                                   : widen(load<F>(static_cast<const float16*>(row.data) + j));
    return {both.lo, both.hi};
}
template <class V, class S>
RESIDUA_LANE_INLINE void store_two(S* p, V first, V second)
{
    store(p, first);
    store(p + V::size, second);
}
template <class V>
RESIDUA_LANE_INLINE void store_two(const stored_sink<float>& row, std::size_t j, bool by_parity, V first, V second)
{
    if (row.lies == layout::bfloat16) {
        using U = bits_of<V>;
        auto* const brain = static_cast<bfloat16*>(row.data) + j;
        if (!by_parity) return store_two(brain, first, second);
        const U odd = bfloat16_in_upper_half(second) & U::broadcast(0xffff0000u);
        (to_bfloat16(first) | odd).store_bits(brain);
    } else if (row.lies == layout::float16) {
        store_two(static_cast<float16*>(row.data) + j, first, second);
    } else {
        store_two(static_cast<float*>(row.data) + j, first, second);
    }
}
template <class V>
RESIDUA_LANE_INLINE void store_two(const stored_sink<double>& row, std::size_t j, bool, V first, V second)
{
    const twice<V> both{first, second};
    if (row.lies == layout::narrower_float) {
        narrowed(both).store(static_cast<float*>(row.data) + j);
    } else if (row.lies == layout::direct) {
        store_two(static_cast<double*>(row.data) + j, first, second);
    } else if (row.lies == layout::bfloat16) {
        store(static_cast<bfloat16*>(row.data) + j, narrow_to_odd(both));
    } else {
        store(static_cast<float16*>(row.data) + j, narrow_to_odd(both));
    }
}

/// The memory that a row which is not direct is read through.
template <class T>
struct block_buffer {
    alignas(64) T data[block<T>];

    /// Elements j to j + m of a row.
    const T* read(const source<T>& row, std::size_t j, std::size_t m)
    {
        if (row.is_direct()) return row.direct() + j;
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
    using V = lanes<T>;
    alignas(64) T read[In][V::size];
    alignas(64) T written[Out][V::size];
    T* out_pointers[Out];
    const T* in_pointers[In];
    const int n = static_cast<int>(rest);
    for (std::size_t i = 0; i < In; ++i) {
        V::load(in[i] + j, n).store(read[i]);
        in_pointers[i] = read[i];
    }
    for (std::size_t i = 0; i < Out; ++i) out_pointers[i] = written[i];
    f(op, V::size, out_pointers, in_pointers);
    for (std::size_t i = 0; i < Out; ++i) V::load(written[i]).store(out[i] + j, n);
}

/// The elements before the first line of the cache, for a row so long that it does not stay in the nearest one. In a
/// shorter row it is the loads, of all inputs, that had better be aligned.
template <class T>
inline std::size_t before_first_line(const T* y, std::size_t n)
{
    constexpr std::size_t long_row = 16384 / sizeof(T);
    if (n < long_row) return 0;
    return bytes_to_line(y) / sizeof(T);
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

/// Calls f for block after block of elements `from` to n.
template <class T, std::size_t Out, std::size_t In>
RESIDUA_OUT_OF_LINE void walk_blocks(memory_operation<T> f, const void* op, std::size_t from, std::size_t n,
                                     const sink<T> (&y)[Out], const source<T> (&in)[In])
{
    block_buffer<T> written[Out], read[In];
    T* out_pointers[Out];
    const T* in_pointers[In];
    for (std::size_t j = from; j < n; j += block<T>) {
        const std::size_t m = n - j < block<T> ? n - j : block<T>;
        for (std::size_t i = 0; i < In; ++i) in_pointers[i] = read[i].read(in[i], j, m);
        for (std::size_t i = 0; i < Out; ++i) {
            out_pointers[i] = y[i].is_direct() ? y[i].direct() + j : written[i].data;
        }
        in_vectors<T, Out, In>(f, op, m, out_pointers, in_pointers);
        for (std::size_t i = 0; i < Out; ++i) {
            if (!y[i].is_direct()) y[i].drain(y[i], j, m, written[i].data);
        }
    }
}

/// Calls an operation for as many elements as are whole pairs of vectors, of rows that can be converted on their way; says
/// how many those were.
template <class T, std::size_t Out, std::size_t In>
inline std::size_t convert_vectors(const row_operation<T>& f, std::size_t n, const sink<T> (&y)[Out],
                                   const source<T> (&in)[In])
{
    stored_sink<T> out_rows[Out];
    stored_source<T> in_rows[In];
    bool possible = true, alternate = false, by_parity = true;
    for (std::size_t i = 0; i < Out; ++i) {
        out_rows[i] = {y[i].self, y[i].lies};
        possible = possible && stores_vectors<T>(y[i].lies);
        by_parity = by_parity && y[i].lies == layout::bfloat16;
    }
    for (std::size_t i = 0; i < In; ++i) {
        in_rows[i] = {in[i].self, in[i].lies};
        possible = possible && loads_vectors<T>(in[i].lies);
        by_parity = by_parity && (in[i].lies == layout::bfloat16 || in[i].lies == layout::ones);
        alternate = alternate || (in[i].lies >= layout::alternate && in[i].lies <= layout::alternate_float16);
    }
    // behind the last of every second element there need not be another
    const std::size_t whole = n - (alternate && n > 0 ? 1 : 0);
    const std::size_t count = possible ? whole - whole % (2 * lanes<T>::size) : 0;
    if (count > 0) f.stored(f.op, count, by_parity, out_rows, in_rows);
    return count;
}

/// The pointers of a row that lies in memory as T throughout; false if it does not.
template <class T, std::size_t N>
inline bool all_direct(const source<T> (&in)[N], const T* (&pointers)[N])
{
    bool direct = true;
    for (std::size_t i = 0; i < N; ++i) {
        pointers[i] = in[i].direct();
        direct = direct && in[i].is_direct();
    }
    return direct;
}
template <class T, std::size_t N>
inline bool all_direct(const sink<T> (&out)[N], T* (&pointers)[N])
{
    bool direct = true;
    for (std::size_t i = 0; i < N; ++i) {
        pointers[i] = out[i].direct();
        direct = direct && out[i].is_direct();
    }
    return direct;
}

template <class T, std::size_t Out, std::size_t In>
inline void walk(const row_operation<T>& f, std::size_t n, const sink<T> (&y)[Out], const source<T> (&in)[In]);

/// The width of streaming stores: of a register, where the backend has any.
inline constexpr std::size_t streamed_bytes =
    RESIDUA_PASS_BACKEND == RESIDUA_BACKEND_SCALAR ? 16 : sizeof(reg<float>);

/// Copies past the caches: whole lines, and what lies before and behind them as usual.
RESIDUA_OUT_OF_LINE void stream_bytes(void* to, const void* from, std::size_t bytes)
{
    unsigned char* y = bytes_at(to);
    const unsigned char* x = bytes_at(from);
    const unsigned char* const end = x + bytes;
    const std::size_t to_line = bytes_to_line(to);
    const std::size_t before = to_line < bytes ? to_line : bytes;
    __builtin_memcpy(y, x, before);
    y += before;
    x += before;
    for (; static_cast<std::size_t>(end - x) >= cache_line; x += cache_line, y += cache_line) {
        stream_line<streamed_bytes>(y, x);
    }
    __builtin_memcpy(y, x, static_cast<std::size_t>(end - x));
}

/// What is left of a row after its first elements.
template <class T>
struct rest_of_row {
    source<T> row;
    std::size_t first;

    static void fill(const source<T>& s, std::size_t j, std::size_t m, T* buffer)
    {
        const rest_of_row& self = *static_cast<const rest_of_row*>(s.self);
        self.row.fill(self.row, self.first + j, m, buffer);
    }
    source<T> as_source() const
    {
        source<T> rest = row;
        if (row.lies == layout::other) {
            rest = {this, fill, 1};
        } else if (row.lies != layout::ones) {
            rest.self = bytes_at(row.self) + first * row.bytes();
        }
        return rest;
    }
};
template <class T>
inline sink<T> rest_of(const sink<T>& row, std::size_t first)
{
    sink<T> rest = row;
    rest.streaming = false;
    rest.self = bytes_at(row.self) + first * row.bytes();
    return rest;
}

/// Begins to fetch m elements, `ahead` of the beginning of a row. Behind its end, the row that follows is likely to be.
template <class T>
inline void fetch_ahead(const source<T>& row, std::size_t ahead, std::size_t m)
{
    if (row.lies == layout::other || row.lies == layout::ones) return;
    const unsigned char* const from = bytes_at(row.self) + ahead * row.bytes();
    for (std::size_t j = 0; j < m * row.bytes(); j += cache_line) __builtin_prefetch(from + j, 0, 2);
}

/// Applies an operation to a row some of whose outputs go past the caches: to a piece of it at a time, which is stored in
/// a buffer of its own type and then streamed. The CPU's buffers hold what is streamed of one piece while the next is
/// computed; they do not hold a block.
template <class T, std::size_t Out, std::size_t In>
RESIDUA_OUT_OF_LINE void walk_streaming(const row_operation<T>& f, std::size_t n, const sink<T> (&y)[Out],
                                        const source<T> (&in)[In])
{
    constexpr std::size_t piece = 16 * static_cast<std::size_t>(lanes<T>::size);
    alignas(64) T buffers[Out][piece];
    bool streams[Out];
    std::size_t to_line = 0;
    for (std::size_t i = 0; i < Out; ++i) {
        streams[i] = y[i].streaming;
        for (const source<T>& row : in) streams[i] = streams[i] && row.self != y[i].self;
        if (streams[i]) to_line = bytes_to_line(y[i].self) >> log2_of_size(y[i].type);
    }
    // pieces that begin with lines
    std::size_t m = to_line > 0 ? to_line : piece;
    for (std::size_t j = 0; j < n; j += m, m = piece) {
        if (m > n - j) m = n - j;
        rest_of_row<T> rest[In];
        source<T> from[In];
        sink<T> to[Out];
        for (std::size_t i = 0; i < In; ++i) {
            rest[i] = {in[i], j};
            from[i] = rest[i].as_source();
        }
        for (std::size_t i = 0; i < Out; ++i) {
            to[i] = rest_of(y[i], j);
            if (!streams[i]) continue;
            to[i].self = buffers[i];
        }
        const std::size_t ahead = f.reads_again ? n : 4 * piece;
        for (const source<T>& row : from) fetch_ahead(row, ahead, m);
        walk(f, m, to, from);
        for (std::size_t i = 0; i < Out; ++i) {
            const unsigned size = log2_of_size(y[i].type);
            if (streams[i]) stream_bytes(bytes_at(y[i].self) + (j << size), buffers[i], m << size);
        }
    }
}

/// Applies an operation to a row that does not lie in memory as T throughout: to vectors that are converted on their way,
/// and to block after block of what is left.
template <class T, std::size_t Out, std::size_t In>
RESIDUA_OUT_OF_LINE void walk_converting(const row_operation<T>& f, std::size_t n, const sink<T> (&y)[Out],
                                         const source<T> (&in)[In])
{
    for (const sink<T>& row : y) {
        if (row.streaming) return walk_streaming(f, n, y, in);
    }
    std::size_t done = 0;
    if (f.stored != nullptr) done = convert_vectors(f, n, y, in);
    if (done < n) walk_blocks(f.in_memory, f.op, done, n, y, in);
}

/// Applies an operation to a row that lies in memory as T throughout.
template <class T, std::size_t Out, std::size_t In>
inline void walk_memory(memory_operation<T> f, const void* op, std::size_t n, T* const (&out)[Out],
                        const T* const (&in)[In])
{
    const std::size_t first = before_first_line(out[0], n);
    if (first == 0) return in_vectors<T, Out, In>(f, op, n, out, in);
    in_lines<T, Out, In>(f, op, first, n, out, in);
}

/// Applies an operation to a row, where it lies in memory if it does so as T.
template <class T, std::size_t Out, std::size_t In>
inline void walk(const row_operation<T>& f, std::size_t n, const sink<T> (&y)[Out], const source<T> (&in)[In])
{
    T* out_pointers[Out];
    const T* in_pointers[In];
    if (all_direct(in, in_pointers) && all_direct(y, out_pointers)) {
        walk_memory(f.in_memory, f.op, n, out_pointers, in_pointers);
    } else {
        sink<T> out_rows[Out];
        source<T> in_rows[In];
        for (std::size_t i = 0; i < Out; ++i) out_rows[i] = copy_of(y[i]);
        for (std::size_t i = 0; i < In; ++i) in_rows[i] = copy_of(in[i]);
        walk_converting(f, n, out_rows, in_rows);
    }
}

// --- maps ------------------------------------------------------------------------------------------------------

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

/// How far the nearest input is behind an output, in the direction in which addresses rise or fall, modulo 4 KiB; one at the
/// same place does not count.
template <class T, std::size_t Out, std::size_t In>
RESIDUA_LANE_INLINE std::uintptr_t nearest_behind(bool rising, T* const (&out)[Out], const T* const (&in)[In])
{
    constexpr std::uintptr_t page = 4096;
    std::uintptr_t nearest = page;
    for (std::size_t o = 0; o < Out; ++o) {
        for (std::size_t i = 0; i < In; ++i) {
            const auto y = reinterpret_cast<std::uintptr_t>(out[o]), x = reinterpret_cast<std::uintptr_t>(in[i]);
            const std::uintptr_t behind = ((rising ? y - x : x - y) - 1) % page;
            nearest = behind < nearest ? behind : nearest;
        }
    }
    return nearest;
}

/// An operation that computes in double what is float, from vectors that it is given in both types.
struct computes_wide {};
template <class Op, class V>
RESIDUA_LANE_INLINE auto load_operand(const scalar<V>* p)
{
    if constexpr (std::is_base_of_v<computes_wide, Op> && std::is_same_v<scalar<V>, float>) {
        return load_in_both_types<V>(p);
    } else {
        return load<V>(p);
    }
}

/// Which end of a row to begin with, which no result depends on. A load has to wait for an earlier store that is not yet
/// in the cache where their addresses agree modulo 4 KiB: upwards for stores to just behind it, downwards for those to just
/// ahead. So the walk takes the better end unless an input lies close in that direction, and only in that.
template <class T, std::size_t Out, std::size_t In>
RESIDUA_LANE_INLINE bool begins_at_end(bool better, T* const (&out)[Out], const T* const (&in)[In])
{
    constexpr std::uintptr_t close = 1024;
    const auto there = nearest_behind(!better, out, in);
    if (there >= close - 1) return better;
    const auto back = nearest_behind(better, out, in);
    return better ? there >= back : there < back;
}

/// out[j] = op(in[j]...) for whole vectors in memory: register by register, since lanes of a map know nothing of each other,
/// and more of them would not fit in 16 registers. The inputs of a vector are read before its output is written, so an
/// output may be an input. The operation and the pointers are copies, which no store can seem to change.
template <class Op, class T, std::size_t... O, std::size_t... Is>
inline void map_in_memory(const Op op, std::size_t n, T* const* out, const T* const* in, std::index_sequence<O...>,
                          std::index_sequence<Is...>)
{
    using V = reg<T>;
    constexpr std::size_t step = V::size;
    T* const y[] = {out[O]...};
    const T* const x[] = {in[Is]...};
    const bool down = begins_at_end(reads_again<Op>, y, x);
    const std::size_t next = down ? std::size_t{0} - step : step;
    std::size_t j = down ? n - step : 0;
    for (std::size_t left = n / step; left > 0; --left, j += next) put(op(load_operand<Op, V>(x[Is] + j)...), j, y);
}
template <class Op, class T, std::size_t Out, std::size_t In>
inline void map_erased(const void* op, std::size_t n, T* const* out, const T* const* in)
{
    map_in_memory(*static_cast<const Op*>(op), n, out, in, std::make_index_sequence<Out>{},
                  std::make_index_sequence<In>{});
}

template <class V, class T>
RESIDUA_LANE_INLINE void put_two(V a, V b, std::size_t j, bool by_parity, const stored_sink<T> (&y)[1])
{
    store_two(y[0], j, by_parity, a, b);
}
template <class V, class T>
RESIDUA_LANE_INLINE void put_two(two<V> a, two<V> b, std::size_t j, bool by_parity, const stored_sink<T> (&y)[2])
{
    store_two(y[0], j, by_parity, a.first, b.first);
    store_two(y[1], j, by_parity, a.second, b.second);
}
/// The same for rows that are converted on their way, two registers at a time.
template <class Op, class T, std::size_t... O, std::size_t... Is>
inline void map_converting(const Op op, std::size_t n, bool by_parity, const stored_sink<T>* out,
                           const stored_source<T>* in, std::index_sequence<O...>, std::index_sequence<Is...>)
{
    using V = reg<T>;
    constexpr std::size_t step = 2 * V::size;
    const stored_sink<T> y[] = {out[O]...};
    const stored_source<T> x[] = {in[Is]...};
    for (std::size_t j = 0; j < n; j += step) {
        const two<V> v[] = {load_two<V>(x[Is], j, by_parity)...};
        put_two(op(v[Is].first...), op(v[Is].second...), j, by_parity, y);
    }
}
template <class Op, class T, std::size_t Out, std::size_t In>
inline void map_stored(const void* op, std::size_t n, bool by_parity, const stored_sink<T>* out,
                       const stored_source<T>* in)
{
    map_converting(*static_cast<const Op*>(op), n, by_parity, out, in, std::make_index_sequence<Out>{},
                   std::make_index_sequence<In>{});
}
/// Refers to op, which has to outlive it.
template <std::size_t Out, std::size_t In, class T, class Op>
RESIDUA_LANE_INLINE row_operation<T> mapped(const Op& op)
{
    if constexpr (is_converting<Op, T>) {
        return {&op, map_erased<Op, T, Out, In>, map_stored<Op, T, Out, In>, reads_again<Op>};
    } else {
        return {&op, map_erased<Op, T, Out, In>, nullptr, reads_again<Op>};
    }
}

/// Whether an operation is so small that a call would be much of it for a short row: it is compiled a second time, where it
/// is used.
template <class Op>
inline constexpr bool is_light = requires { Op::is_light; };

/// y[j] = op(in[j]...) along a row that lies in memory as T throughout.
template <class Op, class T, std::size_t Out, std::size_t In>
inline void map_memory(const Op& op, std::size_t n, T* const (&out)[Out], const T* const (&in)[In])
{
    if constexpr (is_light<Op>) {
        if (n % lanes<T>::size == 0 && before_first_line(out[0], n) == 0) [[likely]] {
            return map_in_memory(op, n, out, in, std::make_index_sequence<Out>{}, std::make_index_sequence<In>{});
        }
    }
    const Op copy = op;
    walk_memory(map_erased<Op, T, Out, In>, &copy, n, out, in);
}

/// y[j] = op(in[j]...) along one row of n elements. y may be an input.
template <class Op, class T, class... In>
inline void map_row(const Op& op, std::size_t n, const sink<T>& y, const source<In>&... in)
{
    if constexpr (is_light<Op>) {
        if (y.is_direct() && (in.is_direct() && ...)) [[likely]] {
            T* const out_pointers[] = {y.direct()};
            const T* const in_pointers[] = {in.direct()...};
            return map_memory(op, n, out_pointers, in_pointers);
        }
    }
    const Op copy = op;
    walk<T, 1, sizeof...(In)>(mapped<1, sizeof...(In), T>(copy), n, {y}, {in...});
}
/// The same with an operation of two results.
template <class Op, class T, class... In>
inline void map_row(const Op& op, std::size_t n, const sink<T>& y, const sink<T>& z, const source<In>&... in)
{
    walk<T, 2, sizeof...(In)>(mapped<2, sizeof...(In), T>(op), n, {y, z}, {in...});
}

/// The rows that a map has to go along: one, where in every operand each row begins where the one before it ends, since no
/// element knows which row it is in. So short rows cost no more than long ones.
template <class... Operand>
RESIDUA_LANE_INLINE shape without_ends(shape s, const Operand&... operands)
{
    const bool one =
        s.rows > 1 && ((operands.stride == static_cast<std::ptrdiff_t>(s.columns * operands.step)) && ...);
    return {one ? 1 : s.rows, one ? s.rows * s.columns : s.columns};
}

/// The same for every row, of any kind.
template <class T, class Op, class... In>
RESIDUA_OUT_OF_LINE void map_rows(const Op& op, std::size_t rows, std::size_t n, const output& y, const In&... in)
{
    for (std::size_t i = 0; i < rows; ++i) {
        walk<T, 1, sizeof...(In)>(mapped<1, sizeof...(In), T>(op), n, {to<T>(y, i)}, {from<T>(in, i)...});
    }
}
/// The same for every row, in T. What memory of T needs is so little that a call with one short row takes no longer for it.
template <class T, class Op, class... In>
inline void map(const Op& op, shape s, const output& y, const In&... in)
{
    const shape walked = without_ends(s, y, in...);
    if (!y.streaming && lies_as<T>(y) && (lies_as<T>(in) && ...)) {
        for (std::size_t i = 0; i < walked.rows; ++i) {
            T* const out_pointers[] = {static_cast<T*>(rows_from(y, i).data)};
            const T* const in_pointers[] = {static_cast<const T*>(rows_from(in, i).data)...};
            map_memory(op, walked.columns, out_pointers, in_pointers);
        }
    } else {
        const Op copy = op;
        map_rows<T>(copy, walked.rows, walked.columns, output{y.data, y.stride, y.type, y.step, y.streaming},
                    In{in.data, in.stride, in.type, in.step}...);
    }
}
template <class T, class Op, class... In>
inline void map_to_two(const Op& op, shape s, const output& y, const output& z, const In&... in)
{
    const shape walked = without_ends(s, y, z, in...);
    for (std::size_t i = 0; i < walked.rows; ++i) {
        map_row(op, walked.columns, to<T>(y, i), to<T>(z, i), from<T>(in, i)...);
    }
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
    source<T> as_source() const { return {this, fill, 1}; }
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
        if (there.is_direct()) {
            __builtin_memcpy(buffer, exact, m * sizeof(T));
            return;
        }
        there.drain(there, 0, m, exact);
        const source<T> back = from<T>(input{stored.data, 0, self.type, 1}, 0);
        back.fill(back, 0, m, buffer);
    }
    source<T> as_source() const { return {this, fill, 1}; }
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

/// What an operation's terms are added to: vectors of its operands' type, or of double where it asks for that; two of them
/// where it has two sums.
struct adds_in_double {};
struct has_two_sums {};
template <class Op, class V>
using accumulator = std::conditional_t<std::is_base_of_v<adds_in_double, Op>, wide_of<V>,
                                       std::conditional_t<std::is_base_of_v<has_two_sums, Op>, two<V>, V>>;

template <class A>
RESIDUA_LANE_INLINE A no_terms()
{
    if constexpr (requires { A::size; }) {
        return zero<A>();
    } else {
        return {zero<decltype(A::first)>(), zero<decltype(A::first)>()};
    }
}
template <class V>
RESIDUA_LANE_INLINE two<V> operator+(two<V> a, two<V> b)
{
    return {a.first + b.first, a.second + b.second};
}
template <class V>
RESIDUA_LANE_INLINE auto widened(two<V> v)
{
    return two<wide_of<V>>{widened(v.first), widened(v.second)};
}

/// The terms of four vectors from x[...] on, or of eight: added in pairs, which loses less than one after the other, and
/// lets none wait for all before it.
template <class V, class Op, class S, std::size_t... Is>
RESIDUA_LANE_INLINE auto terms_of_four(const Op& op, const S* const (&x)[sizeof...(Is)], std::index_sequence<Is...>)
{
    constexpr std::size_t step = V::size;
    const auto none = no_terms<accumulator<Op, V>>();
    const auto first = op(op(none, load<V>(x[Is])...), load<V>(x[Is] + step)...);
    const auto second = op(op(none, load<V>(x[Is] + 2 * step)...), load<V>(x[Is] + 3 * step)...);
    return first + second;
}
template <class V, class Op, class S, std::size_t... Is>
RESIDUA_LANE_INLINE auto terms_of_eight(const Op& op, const S* const (&x)[sizeof...(Is)],
                                        std::index_sequence<Is...> each)
{
    const S* const behind[] = {x[Is] + 4 * V::size...};
    return terms_of_four<V>(op, x, each) + terms_of_four<V>(op, behind, each);
}

/// The elements that a sum takes at a time.
template <class T>
inline constexpr std::size_t group = 4 * static_cast<std::size_t>(lanes<T>::size);

/// The lanes of a sum, or of two, before they are added up.
template <class Op, class T>
using total_of = decltype(widened(no_terms<accumulator<Op, lanes<T>>>()));

/// The terms of n elements in memory: op(acc, in[j]...) adds one vector of terms to acc. n is a multiple of a group, and at
/// most a block. Partial sums of float are folded into double after eight.
template <class T, class Op, class S, std::size_t... Is>
RESIDUA_LANE_INLINE total_of<Op, T> terms_of_groups(const Op& op, std::size_t n,
                                                    const S* const (&in)[sizeof...(Is)],
                                                    std::index_sequence<Is...> each)
{
    using V = lanes<T>;
    const S* x[] = {in[Is]...};
    auto part = no_terms<total_of<Op, T>>();
    for (; n >= 2 * group<T>; n -= 2 * group<T>) {
        part = part + widened(terms_of_eight<V>(op, x, each));
        ((x[Is] += 2 * group<T>), ...);
    }
    if (n > 0) part = part + widened(terms_of_four<V>(op, x, each));
    return part;
}

/// The `rest` elements from p on, and zeros behind them to the end of a group.
template <class T>
RESIDUA_OUT_OF_LINE void copy_rest(T* copy, const T* p, std::size_t rest)
{
    using V = lanes<T>;
    for (std::size_t k = 0; k < group<T>; k += V::size) {
        const std::size_t n = k < rest ? rest - k : 0;
        const V v = n < V::size ? V::load(p + (rest - n), static_cast<int>(n)) : V::load(p + k);
        v.store(copy + k);
    }
}

/// The same of the last `rest` of n elements, which do not fill a group: of a copy with zeros behind them, whose terms must
/// be zero.
template <class T, class Op, std::size_t In>
RESIDUA_LANE_INLINE total_of<Op, T> terms_of_rest(const Op& op, std::size_t n, std::size_t rest,
                                                  const T* const (&in)[In])
{
    T copies[In][group<T>];
    const T* x[In];
    for (std::size_t i = 0; i < In; ++i) {
        copy_rest(copies[i], in[i] + (n - rest), rest);
        x[i] = copies[i];
    }
    return terms_of_groups<T>(op, group<T>, x, std::make_index_sequence<In>{});
}

/// The same of any number of elements up to a block.
template <class T, class Op, std::size_t In>
RESIDUA_LANE_INLINE total_of<Op, T> terms_of_block(const Op& op, std::size_t n, const T* const (&in)[In])
{
    const std::size_t rest = n % group<T>;
    auto total = terms_of_groups<T>(op, n - rest, in, std::make_index_sequence<In>{});
    if (rest > 0) [[unlikely]]
        total = total + terms_of_rest(op, n, rest, in);
    return total;
}

/// The same of the whole groups of rows of a type of 16 bits.
template <class S, class T, class Op, std::size_t In>
RESIDUA_LANE_INLINE total_of<Op, T> terms_of_stored(const Op& op, std::size_t n, std::size_t j,
                                                    const source<T> (&in)[In])
{
    const S* x[In];
    for (std::size_t i = 0; i < In; ++i) x[i] = static_cast<const S*>(in[i].self) + j;
    return terms_of_groups<T>(op, n, x, std::make_index_sequence<In>{});
}

/// The lanes of the sum of op's terms along any rows, block by block.
template <class Op, class T, std::size_t In>
RESIDUA_OUT_OF_LINE void sum_blocks(const Op& op, std::size_t n, total_of<Op, T>& sums, const source<T> (&in)[In])
{
    auto total = no_terms<total_of<Op, T>>();
    std::size_t j = 0;
    if constexpr (converts_vectors) {
        // of rows that all are of one narrower type, vectors are converted on their way
        using narrower = std::conditional_t<std::is_same_v<T, double>, float, bfloat16>;
        constexpr layout lies = std::is_same_v<T, double> ? layout::narrower_float : layout::bfloat16;
        bool alike = true;
        for (const source<T>& row : in) alike = alike && row.lies == in[0].lies;
        const bool narrow = alike && in[0].lies == lies;
        const bool half = std::is_same_v<T, float> && alike && in[0].lies == layout::float16;
        if (narrow || half) {
            for (const std::size_t whole = n - n % group<T>; j < whole;) {
                const std::size_t m = whole - j < block<T> ? whole - j : block<T>;
                if (narrow) {
                    total = total + terms_of_stored<narrower, T>(op, m, j, in);
                } else if constexpr (std::is_same_v<T, float>) {
                    total = total + terms_of_stored<float16, T>(op, m, j, in);
                }
                j += m;
            }
        }
    }
    block_buffer<T> buffers[In];
    const T* pointers[In];
    for (; j < n; j += block<T>) {
        const std::size_t m = n - j < block<T> ? n - j : block<T>;
        for (std::size_t i = 0; i < In; ++i) pointers[i] = buffers[i].read(in[i], j, m);
        const std::size_t rest = m % group<T>;
        total = total + terms_of_groups<T>(op, m - rest, pointers, std::make_index_sequence<In>{});
        if (rest > 0) total = total + terms_of_rest(op, m, rest, pointers);
    }
    sums = total;
}

/// Whether rows are short and lie in memory: then their sum is compiled where it is used, so that neither they nor its lanes
/// have to be in memory.
template <class T, class... In>
RESIDUA_LANE_INLINE bool is_one_block(std::size_t n, const source<T>& first, const source<In>&... rest)
{
    return n <= block<T> && first.is_direct() && (rest.is_direct() && ...);
}

/// The lanes of the sum of op's terms along one row of n elements.
template <class Op, class T, class... In>
RESIDUA_LANE_INLINE total_of<Op, T> total_of_row(const Op& op, std::size_t n, const source<T>& first,
                                                 const source<In>&... rest)
{
    if (!is_one_block(n, first, rest...)) [[unlikely]] {
        auto total = no_terms<total_of<Op, T>>();
        const source<T> in[] = {copy_of(first), copy_of(rest)...};
        sum_blocks(op, n, total, in);
        return total;
    }
    const T* const pointers[] = {first.direct(), rest.direct()...};
    return terms_of_block(op, n, pointers);
}
/// The sum of op's terms along one row of n elements.
template <class Op, class T, class... In>
inline double sum_row(const Op& op, std::size_t n, const source<T>& first, const source<In>&... rest)
{
    return sum(total_of_row(op, n, first, rest...));
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
    static constexpr bool is_light = true;

    template <class V>
    RESIDUA_LANE_INLINE V operator()(V acc, V x) const
    {
        return acc + x;
    }
};

// --- the largest -----------------------------------------------------------------------------------------------

struct itself {
    static constexpr double least = -__builtin_inf();

    template <class V>
    RESIDUA_LANE_INLINE V operator()(V x) const
    {
        return x;
    }
};
struct magnitude {
    static constexpr double least = 0;

    template <class V>
    RESIDUA_LANE_INLINE V operator()(V x) const
    {
        return abs(x);
    }
};
/// The largest op(x), or the least there is without an element; a NaN may be passed over.
template <class Op, class T>
inline T largest_of(const Op& op, const source<T>& x, std::size_t n)
{
    using V = lanes<T>;
    block_buffer<T> buffer;
    V most = V::broadcast(static_cast<T>(Op::least));
    for (std::size_t j = 0; j < n; j += block<T>) {
        const std::size_t m = n - j < block<T> ? n - j : block<T>;
        const T* const p = buffer.read(x, j, m);
        std::size_t k = 0;
        for (; k + V::size <= m; k += V::size) most = max(op(load<V>(p + k)), most);
        if (k < m) {
            // the lanes past the end take part as an element
            lane_array<V> rest;
            for (std::size_t i = 0; i < V::size; ++i) rest[i] = p[k + i < m ? k + i : k];
            most = max(op(V::load(rest)), most);
        }
    }
    return largest(most);
}

}  // namespace RESIDUA_PASS
