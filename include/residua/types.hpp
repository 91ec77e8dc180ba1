/// \file
/// The storage types, and what else crosses between units.
///
/// Types that cross between units (these and `rows`) live in a namespace that names the version alone and
/// have no function that could be emitted: two units compiled with different flags agree on them and share no code.
#ifndef RESIDUA_TYPES_HPP
#define RESIDUA_TYPES_HPP

#include <concepts>
#include <cstddef>
#include <cstdint>

#include <residua/abi.hpp>

namespace residua {
inline namespace RESIDUA_ABI_VERSION {

namespace operand {

#if RESIDUA_COMPILER_HAS_BFLOAT16
__extension__ typedef __bf16 compilers_bfloat16;
#endif
#if RESIDUA_COMPILER_HAS_FLOAT16
__extension__ typedef _Float16 compilers_float16;
#endif

/// A float that, rounded once more to a type of 16 bits, gives what rounding x once would have given: towards zero, and
/// the last bit of what is not exact is odd.
RESIDUA_INLINE constexpr float to_odd(double x) noexcept
{
    constexpr double largest = 0x1.fffffep127;  // which types of 16 bits round to infinity
    if (x > largest) return 0x1.fffffep127f;
    if (x < -largest) return -0x1.fffffep127f;
    const float nearest = static_cast<float>(x);
    const double back = static_cast<double>(nearest);
    if (!(back < x || x < back)) return nearest;  // exact, or NaN
    const bool away = x < 0 ? back < x : x < back;
    return __builtin_bit_cast(float, (__builtin_bit_cast(std::uint32_t, nearest) - (away ? 1u : 0u)) | 1u);
}

}  // namespace operand

/// The upper half of a binary32: 8 bits of exponent, 7 of fraction. Storage only; arithmetic is in float.
///
/// Needs no support of the compiler. From float and double it rounds once, to nearest, halves to even, keeps subnormal
/// numbers, and keeps a NaN one; to float it is exact. To and from the compiler's `__bf16`, where there is one, the bits
/// are taken as they are. Memory of `std::uint16_t` or `__bf16` becomes a range of these with `as_bfloat16`, without a
/// copy: an object of this type may lie in memory of any other.
struct [[gnu::may_alias]] bfloat16 {
    std::uint16_t bits;

    RESIDUA_INLINE constexpr bfloat16() = default;
    RESIDUA_INLINE explicit constexpr bfloat16(float x) noexcept
        : bits{round_bits(__builtin_bit_cast(std::uint32_t, x))}
    {
    }
    template <std::same_as<double> Double>
    RESIDUA_INLINE explicit constexpr bfloat16(Double x) noexcept : bfloat16(operand::to_odd(x))
    {
    }
#if RESIDUA_COMPILER_HAS_BFLOAT16
    template <std::same_as<operand::compilers_bfloat16> Native>
    RESIDUA_INLINE explicit constexpr bfloat16(Native x) noexcept : bits{__builtin_bit_cast(std::uint16_t, x)}
    {
    }
    RESIDUA_INLINE explicit constexpr operator operand::compilers_bfloat16() const noexcept
    {
        return __builtin_bit_cast(operand::compilers_bfloat16, bits);
    }
#endif
    RESIDUA_INLINE constexpr operator float() const noexcept
    {
        const std::uint32_t quiet = (bits & 0x7fffu) > 0x7f80u ? 0x00400000u : 0;
        return __builtin_bit_cast(float, (static_cast<std::uint32_t>(bits) << 16) | quiet);
    }
    RESIDUA_INLINE static constexpr bfloat16 from_bits(std::uint16_t u) noexcept
    {
        bfloat16 h{};
        h.bits = u;
        return h;
    }

private:
    RESIDUA_INLINE static constexpr std::uint16_t round_bits(std::uint32_t u) noexcept
    {
        if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((u >> 16) | 0x40u);
        return static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
    }
};

/// IEEE binary16: 5 bits of exponent, 10 of fraction. Storage only; arithmetic is in float.
///
/// As `bfloat16`; beyond 65504 it rounds to infinity. The compiler's type is `_Float16`, the view `as_float16`.
struct [[gnu::may_alias]] float16 {
    std::uint16_t bits;

    RESIDUA_INLINE constexpr float16() = default;
    RESIDUA_INLINE explicit constexpr float16(float x) noexcept
        : bits{round_bits(__builtin_bit_cast(std::uint32_t, x))}
    {
    }
    template <std::same_as<double> Double>
    RESIDUA_INLINE explicit constexpr float16(Double x) noexcept : float16(operand::to_odd(x))
    {
    }
#if RESIDUA_COMPILER_HAS_FLOAT16
    template <std::same_as<operand::compilers_float16> Native>
    RESIDUA_INLINE explicit constexpr float16(Native x) noexcept : bits{__builtin_bit_cast(std::uint16_t, x)}
    {
    }
    RESIDUA_INLINE explicit constexpr operator operand::compilers_float16() const noexcept
    {
        return __builtin_bit_cast(operand::compilers_float16, bits);
    }
#endif
    RESIDUA_INLINE constexpr operator float() const noexcept
    {
        const std::uint32_t sign = (bits & 0x8000u) << 16;
        const std::uint32_t magnitude = (bits & 0x7fffu) << 13;
        if (magnitude >= 0x0f800000u) {
            const std::uint32_t quiet = magnitude > 0x0f800000u ? 0x00400000u : 0;
            return __builtin_bit_cast(float, sign | magnitude | quiet | 0x7f800000u);
        }
        if (magnitude >= 0x00800000u) return __builtin_bit_cast(float, sign | (magnitude + 0x38000000u));
        const float subnormal = static_cast<float>(bits & 0x7fffu) * 0x1p-24f;
        return sign != 0 ? -subnormal : subnormal;
    }
    RESIDUA_INLINE static constexpr float16 from_bits(std::uint16_t u) noexcept
    {
        float16 h{};
        h.bits = u;
        return h;
    }

private:
    RESIDUA_INLINE static constexpr std::uint16_t round_bits(std::uint32_t u) noexcept
    {
        const std::uint32_t sign = (u >> 16) & 0x8000u;
        const std::uint32_t magnitude = u & 0x7fffffffu;
        if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
        if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // 65520
        if (magnitude >= 0x38800000u) {                                                   // 2^-14
            const std::uint32_t rounded = magnitude + 0x0fffu + ((magnitude >> 13) & 1u);
            return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
        }
        const std::uint32_t exponent = magnitude >> 23;
        if (exponent < 102) return static_cast<std::uint16_t>(sign);  // below 2^-25
        // a whole number of 2^-24, and what the shift takes off
        const std::uint32_t whole = (magnitude & 0x007fffffu) | 0x00800000u;
        const std::uint32_t shift = 126 - exponent;
        const std::uint32_t kept = whole >> shift;
        const std::uint32_t rest = whole & ((1u << shift) - 1);
        const std::uint32_t half = 1u << (shift - 1);
        return static_cast<std::uint16_t>(sign
                                          | (kept + (rest > half || (rest == half && (kept & 1u) != 0) ? 1 : 0)));
    }
};

/// What an element of an operand is.
enum class element : std::uint8_t { float32, float64, bfloat16, float16 };

/// What a norm multiplies a channel by: 1, w, or 1 + w.
enum class norm_weight : std::uint8_t { none, plain, zero_centered };

/// Where a norm rounds to a type of 16 bits: `once`, at the end (Gemma, GPT-OSS, OLMo 2, Qwen3-Next); or also
/// `before_weight`, where x r is rounded to the type of x and then multiplied (Llama, T5; the gated norms of Gated
/// DeltaNet and Mamba 2).
enum class norm_rounding : std::uint8_t { once, before_weight };

/// The function of z that a gated norm multiplies by: z sigmoid(z), or sigmoid(z) (Qwen3.8-Flash-Next).
enum class norm_gate : std::uint8_t { silu, sigmoid };

/// Whether the gate multiplies what the norm gives (Gated DeltaNet), or what it takes (Mamba 2).
enum class gate_order : std::uint8_t { norm_first, gate_first };

/// What a norm that is fused with a residual sum is of: of the sum as it was stored, rounded to its type; or of the sum
/// before that rounding.
enum class norm_of : std::uint8_t { stored, exact };

/// A sum of squares that no row of finite numbers can drive out of range: that of the elements times 2^exponent.
struct square_sum {
    double value;
    int exponent;
};

/// A sum of products along a row of a norm, with factors of any finite size: that of the products times 2^exponent.
struct product_sum {
    double value;
    int exponent;
};

/// How near the exact value a function of one element, or a gated activation, comes: each states its bounds. `precise`
/// takes up to three quarters longer, and at most 1 ulp.
enum class accuracy : std::uint8_t { standard, precise };

/// Where a gated activation a(gate) b(up) rounds to a type of 16 bits: `once`, at the end; or also `before_product`, each
/// factor to the type of its operand, as where the activation is stored before it is multiplied (eager PyTorch).
enum class activation_rounding : std::uint8_t { once, before_product };

/// What becomes of the memory that a weight's gradient is written to: the sum over the rows replaces it, or is added.
enum class weight_gradient : std::uint8_t { overwrite, accumulate };

/// How an output is stored. `cached`: as everything is, so that what reads it next finds it in a cache as far as it
/// fits; a line of memory that is not there has to be read before it is written. `streaming`: past the caches, in whole
/// lines that are not read, for an output that is not read again soon; on x86 alone, elsewhere it is `cached`.
/// `automatic`: streaming where all rows of the output in this call take at least as much memory as the last level of
/// the CPU's cache, and 16 MiB, so that nothing of it would still be there. An output that is one of the inputs is read
/// anyway, and stored as `cached`; so are those of several residual streams, of AttnRes and of matrix products. The
/// results are the same to the bit. A call ends with what orders its streaming stores before all later ones, so that
/// other threads need nothing else than after ordinary stores.
enum class store : std::uint8_t { automatic, cached, streaming };

/// A number that has to be given: unlike a plain member it has no default.
template <class T>
struct required {
    T value;
    RESIDUA_INLINE constexpr required(T given) noexcept : value{given} {}
};

namespace operand {

/// What kernels take. The type of an element is told at run time: one kernel serves every mixture of types.
struct shape {
    std::size_t rows, columns;
};

/// Rows in memory that are read. The stride is in elements; `step` is the distance between a row's elements (1, or 2 of
/// two interleaved operands).
struct input {
    const void* data;
    std::ptrdiff_t stride;
    element type;
    std::uint8_t step;
};

/// Rows in memory that are written; `streaming`: past the caches.
struct output {
    void* data;
    std::ptrdiff_t stride;
    element type;
    std::uint8_t step;
    bool streaming = false;
};

/// The gated activations, and the numbers that belong to one: its limit or the cap of its gate, and alpha or the cap of
/// its up.
enum class gated_form : std::uint8_t {
    swiglu,
    geglu,
    geglu_tanh,
    reglu,
    gpt_oss_swiglu,
    clamped_swiglu,
    swiglu_clamped_after,
    situ_glu,
    sigmoid_gate
};
template <class T>
struct gated_numbers {
    T first, second;
};

/// The limits of operations on residual streams, whose coefficients are computed on the stack.
inline constexpr std::size_t most_streams = 16;
inline constexpr std::size_t most_mhc_iterations = 64;

/// How the streams of a token are mixed: y_j = w_j f + sum_i c(j, i) x_i, `from` streams to `to`. f and w may be absent.
/// c(j, i) is element i to + j of a token's row where the matrix is stored by its source, else j from + i.
struct mixing {
    std::size_t from, to;
    bool by_source;
    input c, f, w;
};

template <class T>
inline constexpr bool is_element = false;
template <>
inline constexpr bool is_element<float> = true;
template <>
inline constexpr bool is_element<double> = true;
template <>
inline constexpr bool is_element<bfloat16> = true;
template <>
inline constexpr bool is_element<float16> = true;

template <class T>
inline constexpr element element_of_type = element::float32;
template <>
inline constexpr element element_of_type<double> = element::float64;
template <>
inline constexpr element element_of_type<bfloat16> = element::bfloat16;
template <>
inline constexpr element element_of_type<float16> = element::float16;

}  // namespace operand

}  // namespace RESIDUA_ABI_VERSION
}  // namespace residua

#endif
