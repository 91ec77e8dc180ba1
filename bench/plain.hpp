// What plain loops and hand-written intrinsics compute with where an element has 16 bits. This library's types would not
// do: its headers refuse -ffast-math.
#ifndef RESIDUA_BENCH_PLAIN_HPP
#define RESIDUA_BENCH_PLAIN_HPP

#include <math.h>  // expf and tanhf, which -ffast-math vectorises where it sees their declarations

#include <cstdint>

#include "contender.hpp"

namespace bench {
namespace {

struct bf16 {
    std::uint16_t bits;

    bf16() = default;
    [[gnu::always_inline]] explicit bf16(float x)
    {
        const auto u = __builtin_bit_cast(std::uint32_t, x);
        bits = static_cast<std::uint16_t>((u + 0x7fffU + ((u >> 16) & 1U)) >> 16);  // to nearest; no NaN comes here
    }
    [[gnu::always_inline]] operator float() const
    {
        return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16);
    }
};

}  // namespace

template <>
inline constexpr type type_of<bf16> = type::bf16;

#if defined(__FLT16_MANT_DIG__) && (defined(__F16C__) || defined(__aarch64__)) \
    && (!defined(__clang__) || __clang_major__ >= 15)
__extension__ typedef _Float16 f16;
template <>
inline constexpr type type_of<f16> = type::f16;
using plain_types = type_list<float, bf16, f16>;
#else
using plain_types = type_list<float, bf16>;
#endif

}  // namespace bench

#endif
