/// \file
/// What the library asks of its surroundings: the assertion, the compiler's flags, the name of the namespace.
///
/// A user may define, before the first include and equally in every unit of a program:
/// - `RESIDUA_ASSERT(condition, message)`: what a broken precondition does. By default it is `assert` (so nothing
///   under NDEBUG).
/// - `RESIDUA_BACKEND`: one of `RESIDUA_BACKEND_SCALAR`, `RESIDUA_BACKEND_XSIMD`, `RESIDUA_BACKEND_HIGHWAY`. By
///   default xsimd if it can be included, else Highway, else scalar.
/// - `RESIDUA_NO_FMA_WARNING`: silences the message that a unit without fused multiply-add is slow.
/// - `RESIDUA_ALLOW_FAST_MATH`: compiles under -ffast-math all the same; then nothing is promised about bits, NaN,
///   infinities and subnormal numbers.
#ifndef RESIDUA_CONFIG_HPP
#define RESIDUA_CONFIG_HPP

#include <residua/version.hpp>

#if (defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)                 \
     || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || defined(__NO_SIGNED_ZEROS__)) \
    && !defined(RESIDUA_ALLOW_FAST_MATH)
#error \
    "residua: -ffast-math (or -Ofast, or a part of it such as -ffinite-math-only) breaks the promised bits and NaN; compile without it, or define RESIDUA_ALLOW_FAST_MATH and lose both"
#endif

#ifndef RESIDUA_ASSERT
#include <cassert>
#define RESIDUA_ASSERT(condition, message) assert((condition) && (message))
#define RESIDUA_ASSERT_IS_ASSERT 1
#else
#define RESIDUA_ASSERT_IS_ASSERT 0
#endif

#define RESIDUA_BACKEND_SCALAR 1
#define RESIDUA_BACKEND_XSIMD 2
#define RESIDUA_BACKEND_HIGHWAY 3

#ifndef RESIDUA_BACKEND
#if defined(__has_include)
#if __has_include(<xsimd/xsimd.hpp>)
#define RESIDUA_BACKEND RESIDUA_BACKEND_XSIMD
#elif __has_include(<hwy/highway.h>)
#define RESIDUA_BACKEND RESIDUA_BACKEND_HIGHWAY
#endif
#endif
#endif
#ifndef RESIDUA_BACKEND
#define RESIDUA_BACKEND RESIDUA_BACKEND_SCALAR
#endif

#if !defined(__GNUC__) && !defined(__clang__)
#error "residua: needs GCC or Clang, whose means keep a product and a sum from being fused"
#endif
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ == 2
#error "residua: the x87 unit computes with more bits than a number has; compile with -mfpmath=sse"
#endif
#if defined(__MINGW32__) && !defined(__clang__) && defined(__AVX__) && RESIDUA_BACKEND != RESIDUA_BACKEND_SCALAR
#error \
    "residua: MinGW's GCC misaligns vectors of 32 bytes and more on the stack (GCC bug 54412); use Clang, or RESIDUA_BACKEND_SCALAR"
#endif
// A function over vectors has to be inlined: out of line, its registers would go through memory, and a copy left in
// an object file could be called from a unit whose CPU lacks them.
#define RESIDUA_INLINE [[gnu::always_inline]] inline
#define RESIDUA_OUT_OF_LINE [[gnu::noinline]] inline

// Whether this unit's flags give a fused multiply-add.
#if defined(__FMA__) || defined(__AVX512F__) || defined(__aarch64__)
#define RESIDUA_UNIT_HAS_FMA 1
#else
#define RESIDUA_UNIT_HAS_FMA 0
#endif

// Whether the compiler has 16-bit types of its own: `_Float16`, `__bf16`.
#if defined(__FLT16_MANT_DIG__) \
    && (defined(__clang__) || __GNUC__ >= 13 || defined(__x86_64__) || defined(__i386__))
#define RESIDUA_COMPILER_HAS_FLOAT16 1
#else
#define RESIDUA_COMPILER_HAS_FLOAT16 0
#endif
#if defined(__BFLT16_MANT_DIG__) \
    || (defined(__clang__) && __clang_major__ >= 17 && (defined(__SSE2__) || defined(__aarch64__)))
#define RESIDUA_COMPILER_HAS_BFLOAT16 1
#else
#define RESIDUA_COMPILER_HAS_BFLOAT16 0
#endif

// The name of this unit's inline namespace: version, backend, instruction set, and what else changes code that has
// the same source. Two units that differ in any of them share no function, so the linker cannot give one the other's.
#define RESIDUA_CAT_(a, b) a##b
#define RESIDUA_CAT(a, b) RESIDUA_CAT_(a, b)

#if RESIDUA_BACKEND == RESIDUA_BACKEND_XSIMD
#define RESIDUA_ABI_BACKEND _xsimd
#elif RESIDUA_BACKEND == RESIDUA_BACKEND_HIGHWAY
#define RESIDUA_ABI_BACKEND _highway
#elif RESIDUA_BACKEND == RESIDUA_BACKEND_SCALAR
#define RESIDUA_ABI_BACKEND _scalar
#else
#error "residua: RESIDUA_BACKEND must be RESIDUA_BACKEND_SCALAR, RESIDUA_BACKEND_XSIMD or RESIDUA_BACKEND_HIGHWAY"
#endif

#if defined(__AVX512F__)
#define RESIDUA_ABI_LEVEL _avx512
#elif defined(__AVX2__)
#define RESIDUA_ABI_LEVEL _avx2
#elif defined(__AVX__)
#define RESIDUA_ABI_LEVEL _avx
#elif defined(__SSE4_2__)
#define RESIDUA_ABI_LEVEL _sse42
#elif defined(__SSE4_1__)
#define RESIDUA_ABI_LEVEL _sse41
#elif defined(__SSSE3__)
#define RESIDUA_ABI_LEVEL _ssse3
#elif defined(__SSE3__)
#define RESIDUA_ABI_LEVEL _sse3
#elif defined(__SSE2__)
#define RESIDUA_ABI_LEVEL _sse2
#elif defined(__ARM_FEATURE_SVE2)
#define RESIDUA_ABI_LEVEL _sve2
#elif defined(__ARM_FEATURE_SVE)
#define RESIDUA_ABI_LEVEL _sve
#elif defined(__ARM_NEON)
#define RESIDUA_ABI_LEVEL _neon
#else
#define RESIDUA_ABI_LEVEL _any
#endif

#if defined(__FMA__) && defined(__FMA4__)
#define RESIDUA_ABI_FMA _fma_fma4
#elif defined(__FMA__)
#define RESIDUA_ABI_FMA _fma
#elif defined(__FMA4__)
#define RESIDUA_ABI_FMA _fma4
#else
#define RESIDUA_ABI_FMA
#endif
#if defined(__F16C__)
#define RESIDUA_ABI_F16C _f16c
#else
#define RESIDUA_ABI_F16C
#endif
#if defined(__BMI2__) && defined(__AVXVNNI__)
#define RESIDUA_ABI_BMI2 _bmi2_vnni
#elif defined(__BMI2__)
#define RESIDUA_ABI_BMI2 _bmi2
#else
#define RESIDUA_ABI_BMI2
#endif
#if defined(__AES__) && defined(__PCLMUL__)
#define RESIDUA_ABI_AES _aes
#else
#define RESIDUA_ABI_AES
#endif
#if defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define RESIDUA_ABI_AVX512 _bw
#else
#define RESIDUA_ABI_AVX512
#endif
#if defined(__AVX512CD__)
#define RESIDUA_ABI_AVX512CD _cd
#else
#define RESIDUA_ABI_AVX512CD
#endif
#if defined(__AVX512VBMI__) || defined(__AVX512VBMI2__) || defined(__VAES__) || defined(__AVX512VNNI__) \
    || defined(__AVX512IFMA__)
#define RESIDUA_ABI_AVX512_ICL _icl
#else
#define RESIDUA_ABI_AVX512_ICL
#endif
#if defined(__AVX512BF16__)
#define RESIDUA_ABI_AVX512_BF16 _bf16
#else
#define RESIDUA_ABI_AVX512_BF16
#endif
#if defined(__AVX512FP16__)
#define RESIDUA_ABI_AVX512_FP16 _fp16
#else
#define RESIDUA_ABI_AVX512_FP16
#endif
#if defined(__ARM_FEATURE_BF16) || defined(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC) || defined(__ARM_FEATURE_DOTPROD)
#define RESIDUA_ABI_ARM _v82
#else
#define RESIDUA_ABI_ARM
#endif
#if !RESIDUA_ASSERT_IS_ASSERT
#define RESIDUA_ABI_ASSERT _own_assert
#elif !defined(NDEBUG)
#define RESIDUA_ABI_ASSERT _assert
#else
#define RESIDUA_ABI_ASSERT
#endif

#define RESIDUA_ABI_VERSION                                            \
    RESIDUA_CAT(RESIDUA_CAT(RESIDUA_CAT(v, RESIDUA_VERSION_MAJOR), _), \
                RESIDUA_CAT(RESIDUA_CAT(RESIDUA_VERSION_MINOR, _), RESIDUA_VERSION_PATCH))
#define RESIDUA_ABI_X86                                                            \
    RESIDUA_CAT(RESIDUA_CAT(RESIDUA_CAT(RESIDUA_ABI_FMA, RESIDUA_ABI_F16C),        \
                            RESIDUA_CAT(RESIDUA_ABI_BMI2, RESIDUA_ABI_AES)),       \
                RESIDUA_CAT(RESIDUA_CAT(RESIDUA_ABI_AVX512, RESIDUA_ABI_AVX512CD), \
                            RESIDUA_CAT(RESIDUA_ABI_AVX512_ICL,                    \
                                        RESIDUA_CAT(RESIDUA_ABI_AVX512_BF16, RESIDUA_ABI_AVX512_FP16))))
#define RESIDUA_ABI_SET \
    RESIDUA_CAT(RESIDUA_CAT(RESIDUA_ABI_LEVEL, RESIDUA_ABI_X86), RESIDUA_CAT(RESIDUA_ABI_ARM, RESIDUA_ABI_ASSERT))

#if defined(__FAST_MATH__) || defined(RESIDUA_ALLOW_FAST_MATH)
#define RESIDUA_ABI_MATH _fast
#else
#define RESIDUA_ABI_MATH
#endif

/// The inline namespace of everything that this unit compiles.
#define RESIDUA_ABI                                                    \
    RESIDUA_CAT(RESIDUA_CAT(RESIDUA_ABI_VERSION, RESIDUA_ABI_BACKEND), \
                RESIDUA_CAT(RESIDUA_ABI_SET, RESIDUA_ABI_MATH))

#endif
