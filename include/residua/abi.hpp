/// \file
/// `RESIDUA_ABI`, the name of the inline namespace of everything that a unit compiles: version, backend, instruction set,
/// and what else changes code that has the same source. Two units that differ in any of them share no function, so the
/// linker cannot give one of them what only the other's CPU can run.
#ifndef RESIDUA_ABI_HPP
#define RESIDUA_ABI_HPP

#include <residua/config.hpp>
#include <residua/version.hpp>

#define RESIDUA_CAT_(a, b) a##b
#define RESIDUA_CAT(a, b) RESIDUA_CAT_(a, b)
#define RESIDUA_CAT8_(a, b, c, d, e, f, g, h) a##b##c##d##e##f##g##h
#define RESIDUA_CAT8(a, b, c, d, e, f, g, h) RESIDUA_CAT8_(a, b, c, d, e, f, g, h)

// RESIDUA_TAG(__AVX__, tag) is 0tag if the macro is defined as 1, else nothing: only then does pasting its value to
// RESIDUA_TAG_IF_ give a comma, which makes the tag the second argument. (With a digit first it cannot be a user's macro.)
#define RESIDUA_TAG_IF_1 ,
#define RESIDUA_SECOND(first, second, ...) second
#define RESIDUA_TAG_OR_NOTHING(comma, tag) RESIDUA_SECOND(comma tag, , )
#define RESIDUA_TAG_OF_VALUE(value, tag) RESIDUA_TAG_OR_NOTHING(RESIDUA_TAG_IF_##value, tag)
#define RESIDUA_TAG(feature, tag) RESIDUA_TAG_OF_VALUE(feature, 0##tag)

#define RESIDUA_ABI_VERSION                                            \
    RESIDUA_CAT(RESIDUA_CAT(RESIDUA_CAT(v, RESIDUA_VERSION_MAJOR), _), \
                RESIDUA_CAT(RESIDUA_CAT(RESIDUA_VERSION_MINOR, _), RESIDUA_VERSION_PATCH))

#if RESIDUA_BACKEND == RESIDUA_BACKEND_XSIMD
#define RESIDUA_ABI_BACKEND _xsimd
#elif RESIDUA_BACKEND == RESIDUA_BACKEND_HIGHWAY
#define RESIDUA_ABI_BACKEND _highway
#elif RESIDUA_BACKEND == RESIDUA_BACKEND_SCALAR
#define RESIDUA_ABI_BACKEND _scalar
#else
#error "residua: RESIDUA_BACKEND must be RESIDUA_BACKEND_SCALAR, RESIDUA_BACKEND_XSIMD or RESIDUA_BACKEND_HIGHWAY"
#endif

#if defined(__ARM_FEATURE_SVE_BITS)
#define RESIDUA_ABI_SVE_BITS __ARM_FEATURE_SVE_BITS
#else
#define RESIDUA_ABI_SVE_BITS 0
#endif
// Each of these contains those below it, of its architecture.
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
#define RESIDUA_ABI_LEVEL RESIDUA_CAT(_sve2_, RESIDUA_ABI_SVE_BITS)
#elif defined(__ARM_FEATURE_SVE)
#define RESIDUA_ABI_LEVEL RESIDUA_CAT(_sve_, RESIDUA_ABI_SVE_BITS)
#elif defined(__ARM_NEON)
#define RESIDUA_ABI_LEVEL _neon
#else
#define RESIDUA_ABI_LEVEL _any
#endif

// Whatever else a compiler or a backend may use unasked, by a letter of its own. (Units for different architectures are
// never linked, so these share letters.)
#define RESIDUA_ABI_X86_OLD                                                                    \
    RESIDUA_CAT8(RESIDUA_TAG(__SSE4A__, s), RESIDUA_TAG(__XOP__, x), RESIDUA_TAG(__FMA4__, k), \
                 RESIDUA_TAG(__TBM__, t), RESIDUA_TAG(__FMA__, f), RESIDUA_TAG(__F16C__, h),   \
                 RESIDUA_TAG(__AVXVNNI__, v), RESIDUA_TAG(__PRFCHW__, w))
#define RESIDUA_ABI_X86_BITS                                                                     \
    RESIDUA_CAT8(RESIDUA_TAG(__POPCNT__, p), RESIDUA_TAG(__LZCNT__, z), RESIDUA_TAG(__BMI__, i), \
                 RESIDUA_TAG(__BMI2__, j), RESIDUA_TAG(__MOVBE__, m), RESIDUA_TAG(__AES__, a),   \
                 RESIDUA_TAG(__PCLMUL__, q), RESIDUA_TAG(__GFNI__, g))
#define RESIDUA_ABI_AVX512                                                                                     \
    RESIDUA_CAT8(RESIDUA_TAG(__AVX512CD__, C), RESIDUA_TAG(__AVX512DQ__, D), RESIDUA_TAG(__AVX512BW__, B),     \
                 RESIDUA_TAG(__AVX512VL__, L), RESIDUA_TAG(__AVX512IFMA__, I), RESIDUA_TAG(__AVX512VBMI__, J), \
                 RESIDUA_TAG(__AVX512VBMI2__, K), RESIDUA_TAG(__AVX512VNNI__, V))
#define RESIDUA_ABI_AVX512_MORE                                                                            \
    RESIDUA_CAT8(RESIDUA_TAG(__AVX512BITALG__, N), RESIDUA_TAG(__AVX512VPOPCNTDQ__, P),                    \
                 RESIDUA_TAG(__AVX512BF16__, F), RESIDUA_TAG(__AVX512FP16__, H), RESIDUA_TAG(__VAES__, A), \
                 RESIDUA_TAG(__VPCLMULQDQ__, Q), RESIDUA_TAG(__AVX512ER__, E), RESIDUA_TAG(__AVX10_1_512__, R))
#define RESIDUA_ABI_X86_NEW                                                                                      \
    RESIDUA_CAT8(RESIDUA_TAG(__AVX10_1__, S), RESIDUA_TAG(__AVX10_2__, T), RESIDUA_TAG(__APX_F__, X),            \
                 RESIDUA_TAG(__AVXIFMA__, o), RESIDUA_TAG(__AVXNECONVERT__, n), RESIDUA_TAG(__AVXVNNIINT8__, u), \
                 RESIDUA_TAG(__AVXVNNIINT16__, y), RESIDUA_TAG(__EVEX512__, Z))
#define RESIDUA_ABI_ARM                                                                                        \
    RESIDUA_CAT8(RESIDUA_TAG(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC, h), RESIDUA_TAG(__ARM_FEATURE_FP16_FML, m), \
                 RESIDUA_TAG(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC, b), RESIDUA_TAG(__ARM_FEATURE_DOTPROD, d),  \
                 RESIDUA_TAG(__ARM_FEATURE_MATMUL_INT8, i), RESIDUA_TAG(__ARM_FEATURE_AES, a),                 \
                 RESIDUA_TAG(__ARM_FEATURE_SHA3, s), RESIDUA_TAG(__ARM_FEATURE_COMPLEX, c))
#define RESIDUA_ABI_FEATURES                                                                                \
    RESIDUA_CAT8(_, RESIDUA_ABI_X86_OLD, RESIDUA_ABI_X86_BITS, RESIDUA_ABI_AVX512, RESIDUA_ABI_AVX512_MORE, \
                 RESIDUA_ABI_X86_NEW, RESIDUA_ABI_ARM, )

#if !RESIDUA_ASSERT_IS_ASSERT
#define RESIDUA_ABI_ASSERT _own_assert
#elif !defined(NDEBUG)
#define RESIDUA_ABI_ASSERT _assert
#else
#define RESIDUA_ABI_ASSERT
#endif

#if defined(__FAST_MATH__) || defined(RESIDUA_ALLOW_FAST_MATH)
#define RESIDUA_ABI_MATH _fast
#else
#define RESIDUA_ABI_MATH
#endif

#define RESIDUA_ABI                                                                              \
    RESIDUA_CAT8(RESIDUA_ABI_VERSION, RESIDUA_ABI_BACKEND, RESIDUA_ABI_ASSERT, RESIDUA_ABI_MATH, \
                 RESIDUA_ABI_LEVEL, RESIDUA_ABI_FEATURES, , )

/// The namespace of the public functions: this unit's own here; dispatch.hpp reads the same headers once more with
/// another.
#define RESIDUA_API residua::inline RESIDUA_ABI
/// How a public function names another: unqualified, `rows` would also find the other set by its namespace.
#define RESIDUA_SELF ::residua

#endif
