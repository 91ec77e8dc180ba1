/// \file
/// What the library asks of its surroundings: the assertion, the backend, the compiler and its flags.
///
/// A user may define, before the first include and equally in every unit of a program:
/// - `RESIDUA_ASSERT(condition, message)`: what a broken precondition does. By default it is `assert` (so nothing
///   under NDEBUG).
/// - `RESIDUA_BACKEND`: one of `RESIDUA_BACKEND_SCALAR`, `RESIDUA_BACKEND_XSIMD`, `RESIDUA_BACKEND_HIGHWAY`. By
///   default xsimd if it can be included, else Highway, else scalar.
/// - `RESIDUA_NO_FMA_WARNING`: silences the message that a unit without fused multiply-add is slow.
/// - `RESIDUA_ALLOW_FAST_MATH`: compiles under -ffast-math all the same; then nothing is promised about bits, NaN,
///   infinities and subnormal numbers. (Where Clang tells no header of a part of it, a call of a kernel is an error.)
#ifndef RESIDUA_CONFIG_HPP
#define RESIDUA_CONFIG_HPP

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
#if defined(__FLT_EVAL_METHOD__) \
    && (__FLT_EVAL_METHOD__ < 0 || __FLT_EVAL_METHOD__ == 1 || __FLT_EVAL_METHOD__ == 2)
#error \
    "residua: this unit computes with more bits than a number has; compile with -mfpmath=sse, and without -ffp-eval-method"
#endif
static_assert(sizeof(1.0) == sizeof(double), "residua: -fsingle-precision-constant changes the promised bits");
#if defined(__MINGW32__) && !defined(__clang__) && defined(__AVX__) && RESIDUA_BACKEND != RESIDUA_BACKEND_SCALAR
#error \
    "residua: MinGW's GCC misaligns vectors of 32 bytes and more on the stack (GCC bug 54412); use Clang, or RESIDUA_BACKEND_SCALAR"
#endif
// Never called, only inlined. So it is safe too where all units share its name: a copy left in an object file could be
// called from a unit whose CPU lacks its instructions.
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

#endif
