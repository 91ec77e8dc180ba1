/// \file
/// A view of many rows in memory: what every operation reads and writes.
#ifndef RESIDUA_ROWS_HPP
#define RESIDUA_ROWS_HPP

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <ranges>
#include <type_traits>
#include <utility>

#include <residua/types.hpp>

/// The namespace of the public functions: this unit's own here; dispatch.hpp reads the same headers once more with
/// another.
#define RESIDUA_API residua::inline RESIDUA_ABI
/// How a public function names another: unqualified, `rows` would also find the other set by its namespace.
#define RESIDUA_SELF ::residua

namespace residua {
inline namespace RESIDUA_ABI_VERSION {

/// `count` rows of `columns` elements each; row i starts at `data + i * stride` (stride in elements, by default the
/// rows lie end to end). A view: it owns nothing. `data` may be null if there is no element.
///
/// Every operation takes, for each operand, either a `rows` or a contiguous range (a vector, an array, a span), which
/// is one row. Each operand has its own stride; an input's rows may overlap or repeat (stride 0), an output's may not.
template <class T>
struct rows {
    using element_type = T;
    using value_type = std::remove_const_t<T>;

    T* data = nullptr;
    std::size_t count = 0;
    std::size_t columns = 0;
    std::ptrdiff_t stride = 0;
    store stores = store::automatic;  ///< how an output is stored (`with_store` sets it)

    RESIDUA_INLINE constexpr rows() = default;
    RESIDUA_INLINE constexpr rows(T* first, std::size_t row_count, std::size_t column_count) noexcept
        : data{first}, count{row_count}, columns{column_count}, stride{static_cast<std::ptrdiff_t>(column_count)}
    {
    }
    RESIDUA_INLINE constexpr rows(T* first, std::size_t row_count, std::size_t column_count,
                                  std::ptrdiff_t row_stride) noexcept
        : data{first}, count{row_count}, columns{column_count}, stride{row_stride}
    {
    }
    /// Mutable rows serve where constant ones are asked for.
    template <class U>
        requires(std::is_same_v<const U, T> && !std::is_const_v<U>)
    RESIDUA_INLINE constexpr rows(const rows<U>& other) noexcept
        : data{other.data}, count{other.count}, columns{other.columns}, stride{other.stride}, stores{other.stores}
    {
    }

    /// The first element of row i.
    RESIDUA_INLINE constexpr T* operator[](std::size_t i) const noexcept
    {
        return data + static_cast<std::ptrdiff_t>(i) * stride;
    }
    /// Rows first to first + n.
    RESIDUA_INLINE constexpr rows part(std::size_t first, std::size_t n) const noexcept
    {
        rows some{(*this)[first], n, columns, stride};
        some.stores = stores;
        return some;
    }
    /// Row i alone.
    RESIDUA_INLINE constexpr rows row(std::size_t i) const noexcept { return part(i, 1); }
};

}  // namespace RESIDUA_ABI_VERSION

inline namespace RESIDUA_ABI {
namespace detail {

template <class R>
inline constexpr bool is_rows = false;
template <class T>
inline constexpr bool is_rows<rows<T>> = true;

template <class R>
concept contiguous = std::ranges::contiguous_range<R> && std::ranges::sized_range<R>;

/// An operand as rows.
template <class R>
    requires is_rows<std::remove_cvref_t<R>>
RESIDUA_INLINE constexpr auto view(R&& r) noexcept
{
    // member by member: g++ copies the whole in parts that the members are then not read in, and a load waits for its store
    rows<typename std::remove_cvref_t<R>::element_type> same{r.data, r.count, r.columns, r.stride};
    same.stores = r.stores;
    return same;
}
template <contiguous R>
    requires(!is_rows<std::remove_cvref_t<R>>)
RESIDUA_INLINE constexpr auto view(R&& r) noexcept
{
    using element = std::remove_pointer_t<decltype(std::ranges::data(r))>;
    return rows<element>{std::ranges::data(r), 1, static_cast<std::size_t>(std::ranges::size(r))};
}

template <class R>
using element_of = typename decltype(view(std::declval<R>()))::element_type;
template <class R>
using value_of = std::remove_const_t<element_of<R>>;

/// An input as rows of constant elements.
template <class R>
RESIDUA_INLINE constexpr auto constant_view(const R& r) noexcept
{
    return rows<const value_of<const R&>>{view(r)};
}

/// What kernels compute with: double if any element is, else float; from the types of elements, or of operands.
template <class... T>
using arithmetic_of = std::conditional_t<(std::is_same_v<T, double> || ...), double, float>;
template <class... R>
using arithmetic = arithmetic_of<value_of<R>...>;

/// An operand as a kernel takes it.
template <class T>
RESIDUA_INLINE constexpr operand::shape shape_of(const rows<T>& r) noexcept
{
    return {r.count, r.columns};
}
template <class T>
RESIDUA_INLINE constexpr operand::input memory(const rows<const T>& r) noexcept
{
    return {r.data, r.stride, operand::element_of_type<T>, 1};
}

/// The bytes of the last level of this CPU's cache, as it describes itself; of another CPU, or where it says nothing, all
/// there can be.
RESIDUA_OUT_OF_LINE std::size_t last_level_cache() noexcept
{
    std::size_t largest = 0;
#if defined(__x86_64__)
    const auto ask = [](std::uint32_t leaf, std::uint32_t part) {
        struct {
            std::uint32_t a, b, c, d;
        } says{};
        asm("cpuid" : "=a"(says.a), "=b"(says.b), "=c"(says.c), "=d"(says.d) : "a"(leaf), "c"(part));
        return says;
    };
    // Intel's description of the caches, and AMD's, in one format
    for (const std::uint32_t leaf : {0x4u, 0x8000001du}) {
        if (ask(leaf & 0x80000000u, 0).a < leaf) continue;
        for (std::uint32_t part = 0; part < 16; ++part) {
            const auto cache = ask(leaf, part);
            if ((cache.a & 0x1fu) == 0) break;
            const auto ways = std::size_t{1} + (cache.b >> 22);
            const auto of_lines = std::size_t{1} + ((cache.b >> 12) & 0x3ffu);
            const auto line = std::size_t{1} + (cache.b & 0xfffu);
            const auto bytes = ways * of_lines * line * (std::size_t{1} + cache.c);
            largest = bytes > largest ? bytes : largest;
        }
    }
#endif
    return largest > 0 ? largest : ~std::size_t{0};
}

/// Whether an output is stored past the caches. Few calls get as far as to ask for the last level: the CPU takes microseconds
/// to describe itself.
template <class T>
RESIDUA_INLINE constexpr bool is_streaming(const rows<T>& r) noexcept
{
    constexpr std::size_t moderate = std::size_t{16} << 20;
    if (r.stores == store::streaming) return true;
    const std::size_t bytes = r.count * r.columns * sizeof(T);
    return r.stores == store::automatic && bytes >= moderate && bytes >= last_level_cache();
}

/// An output for the expression that calls a kernel: at its end, streaming stores are ordered before all that follow.
struct output_of_call : operand::output {
    RESIDUA_INLINE constexpr ~output_of_call()
    {
#if defined(__x86_64__)
        if (streaming) __builtin_ia32_sfence();
#endif
    }
};
template <class T>
    requires(!std::is_const_v<T>)
RESIDUA_INLINE constexpr output_of_call memory(const rows<T>& r, std::uint8_t step = 1) noexcept
{
    return {{r.data, r.stride, operand::element_of_type<T>, step, is_streaming(r)}};
}

template <class T, class... U>
RESIDUA_INLINE bool same_shape(const rows<T>& a, const rows<U>&... b) noexcept
{
    return ((a.count == b.count && a.columns == b.columns) && ...);
}

/// Whether the rows of one view share no element with each other.
template <class T>
RESIDUA_INLINE bool distinct(const rows<T>& r) noexcept
{
    const auto step = r.stride < 0 ? -r.stride : r.stride;
    return r.count <= 1 || r.columns <= static_cast<std::size_t>(step);
}

/// Whether two views share no element.
template <class T, class U>
inline bool apart(const rows<T>& a, const rows<U>& b) noexcept
{
    if (a.count == 0 || b.count == 0 || a.columns == 0 || b.columns == 0) return true;
    // b with its rows upwards, and a repeated row once
    const bool downwards = b.stride < 0;
    const std::size_t count = b.stride == 0 ? 1 : b.count;
    const auto address = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p); };
    const auto base = address(downwards ? b[count - 1] : b[0]);
    const auto step = static_cast<std::uintptr_t>(downwards ? -b.stride : b.stride) * sizeof(U);
    const auto width = b.columns * sizeof(U);
    for (std::size_t i = 0; i < a.count; ++i) {
        const auto first = address(a[i]);
        const auto last = first + a.columns * sizeof(T);
        if (last <= base) continue;
        // only b's rows that begin near this one can touch it
        std::size_t from = 0;
        std::size_t to = count;
        if (step > 0) {
            const auto reach = width / step + 1;
            const auto closest = first > base ? (first - base) / step : 0;
            from = closest > reach ? closest - reach : 0;
            const auto end = (last - base) / step + 1;
            to = end < count ? end : count;
        }
        for (std::size_t j = from; j < to; ++j) {
            const auto begin = base + j * step;
            if (begin < last && first < begin + width) return false;
        }
    }
    return true;
}

/// Whether an output may be written while an input is read: its rows are distinct, and they are the input's or share no
/// element with it.
template <class T, class... U>
inline bool same_or_apart(const rows<T>& out, const rows<U>&... in) noexcept
{
    const auto same = [&](const auto& other) {
        return static_cast<const void*>(out.data) == static_cast<const void*>(other.data)
               && (out.stride == other.stride || out.count == 1) && sizeof(*out.data) == sizeof(*other.data);
    };
    return distinct(out) && ((same(in) || apart(out, in)) && ...);
}

}  // namespace detail

/// An output, rows or a contiguous range, that is stored in another way than `automatic`:
/// `residual_add(with_store(y, store::streaming), x, f)`.
template <class R>
    requires requires(R&& r) { detail::view(r); } && (!std::is_const_v<detail::element_of<R>>)
RESIDUA_INLINE constexpr auto with_store(R&& r, store how) noexcept
{
    auto stored = detail::view(r);
    stored.stores = how;
    return stored;
}

/// What a function takes as an input: rows, or a contiguous range as one row, of float, double, bfloat16 or float16.
template <class R>
concept readable_rows =
    requires(const R& r) { detail::view(r); } && operand::is_element<detail::value_of<const R&>>;

/// What a function takes as an output: as `readable_rows`, of elements that can be written.
template <class R>
concept writable_rows = requires(R&& r) { detail::view(r); }
                        && !std::is_const_v<detail::element_of<R>> && operand::is_element<detail::value_of<R>>;

/// Operands in what kernels compute with: float or double.
template <class R>
concept arithmetic_rows =
    readable_rows<R>
    && (std::is_same_v<detail::value_of<const R&>, float> || std::is_same_v<detail::value_of<const R&>, double>);

/// Operands of one operation, all of the same type of element.
template <class R, class S>
concept same_type_as = std::is_same_v<detail::value_of<const R&>, detail::value_of<const S&>>;

namespace detail {

template <class To, class T>
RESIDUA_INLINE auto viewed_as(const rows<T>& from) noexcept
{
    using to = std::conditional_t<std::is_const_v<T>, const To, To>;
    rows<to> same{reinterpret_cast<to*>(from.data), from.count, from.columns, from.stride};
    same.stores = from.stores;
    return same;
}

}  // namespace detail

/// Rows, or a contiguous range, of 16-bit elements of another name (`std::uint16_t`, `__bf16`, `_Float16`) as rows of
/// bfloat16 or float16: the same memory, with the bits taken as they are.
template <class R>
    requires requires(R&& r) { detail::view(r); } && (sizeof(detail::element_of<R>) == 2)
             && std::is_trivially_copyable_v<detail::value_of<R>>
RESIDUA_INLINE auto as_bfloat16(R&& r) noexcept
{
    return detail::viewed_as<bfloat16>(detail::view(r));
}
template <class R>
    requires requires(R&& r) { detail::view(r); } && (sizeof(detail::element_of<R>) == 2)
             && std::is_trivially_copyable_v<detail::value_of<R>>
RESIDUA_INLINE auto as_float16(R&& r) noexcept
{
    return detail::viewed_as<float16>(detail::view(r));
}

}  // namespace RESIDUA_ABI
}  // namespace residua

#endif
