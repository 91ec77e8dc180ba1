/// \file
/// The storage types, and what else crosses between units.
///
/// Types that cross between units (these and `rows`) live in a namespace that names the version alone and
/// have no function that could be emitted: two units compiled with different flags agree on them and share no code.
#ifndef RESIDUA_TYPES_HPP
#define RESIDUA_TYPES_HPP

#include <cstdint>

#include <residua/config.hpp>

namespace residua {
inline namespace RESIDUA_ABI_VERSION {

/// bfloat16 and float16 can be loaded and stored by the lanes; no operation takes them yet.

/// The upper half of a binary32: 8 bits of exponent, 7 of fraction. Storage only; arithmetic is in float.
struct bfloat16 {
    std::uint16_t bits;
};

/// IEEE binary16: 5 bits of exponent, 10 of fraction. Storage only; arithmetic is in float.
struct float16 {
    std::uint16_t bits;
};

/// What a norm multiplies a channel by: 1, w, or 1 + w.
enum class norm_weight { none, plain, zero_centered };

/// A number that has to be given: unlike a plain member it has no default.
template <class T>
struct required {
    T value;
    RESIDUA_INLINE constexpr required(T given) noexcept : value{given} {}
};

}  // namespace RESIDUA_ABI_VERSION
}  // namespace residua

#endif
