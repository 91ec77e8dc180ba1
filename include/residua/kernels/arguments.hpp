// What a public function does with its operands before it calls a kernel: the checks of shape and overlap, and the form in
// which kernels take them.
#ifndef RESIDUA_KERNELS_ARGUMENTS_HPP
#define RESIDUA_KERNELS_ARGUMENTS_HPP

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <residua/rows.hpp>

namespace residua {
inline namespace RESIDUA_ABI {
namespace detail {

template <class T>
RESIDUA_INLINE constexpr operand::shape shape_of(const rows<T>& r) noexcept
{
    return {r.count, r.columns};
}
/// An operand as a kernel takes it.
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
}  // namespace RESIDUA_ABI
}  // namespace residua

#endif
