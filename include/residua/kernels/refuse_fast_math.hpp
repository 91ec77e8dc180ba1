/// \file
/// What a unit's flags allow its compiler, as far as those do not tell.
#ifndef RESIDUA_KERNELS_REFUSE_FAST_MATH_HPP
#define RESIDUA_KERNELS_REFUSE_FAST_MATH_HPP

#include <cstdint>

#include <residua/abi.hpp>
#include <residua/config.hpp>

namespace residua::inline RESIDUA_ABI::compiler {

// Clang tells a header of few of the parts of -ffast-math. It shows them where it optimises: what is not known, unless
// numbers may be reassociated or have no NaN or zero of either sign, becomes a constant. (Elsewhere they change nothing, and
// instrumented for libFuzzer the question itself would be compiled.)
#if defined(__clang__) && (defined(__SSE2__) || defined(__aarch64__)) && defined(__OPTIMIZE__) \
    && !defined(RESIDUA_ALLOW_FAST_MATH)
[[gnu::error(
    "residua: a part of -ffast-math breaks the promised bits and NaN; compile without it, or define "
    "RESIDUA_ALLOW_FAST_MATH and lose both")]]
void fast_math_is_refused() noexcept;

RESIDUA_INLINE void refuse_fast_math()
{
    float x;
#if defined(__SSE2__)
    asm("" : "=x"(x));
#else
    asm("" : "=w"(x));
#endif
    // (asked in the condition itself: for anything else the front end would answer)
    using u32 = std::uint32_t;
    if (__builtin_constant_p((x + 1.0f) - x) || __builtin_constant_p(x != x)
        || __builtin_constant_p(__builtin_bit_cast(u32, x + 0.0f) - __builtin_bit_cast(u32, x))
        || __builtin_constant_p(__builtin_bit_cast(u32, x / 3.0f) - __builtin_bit_cast(u32, x * (1.0f / 3.0f)))) {
        fast_math_is_refused();
    }
}
#else
RESIDUA_INLINE void refuse_fast_math() {}
#endif

}  // namespace residua::inline RESIDUA_ABI::compiler

#endif
