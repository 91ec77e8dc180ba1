/// \file
/// A view of many rows in memory: what every operation reads and writes.
#ifndef RESIDUA_ROWS_HPP
#define RESIDUA_ROWS_HPP

#include <cstddef>
#include <ranges>
#include <type_traits>
#include <utility>

#include <residua/types.hpp>

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
