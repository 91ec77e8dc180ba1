// Hand-written intrinsics: what somebody who knows one instruction set writes for it, without this library's promises.
// One register type and the loops over it; the unit's flags say which instruction set.
#ifndef RESIDUA_BENCH_HAND_HPP
#define RESIDUA_BENCH_HAND_HPP

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#include "plain.hpp"

namespace bench {
namespace {

#define BENCH_INLINE [[gnu::always_inline, maybe_unused]] inline

#if defined(__AVX512F__)

using native = __m512;
BENCH_INLINE native load_native(const float* p) { return _mm512_loadu_ps(p); }
BENCH_INLINE void store_native(float* p, native a) { _mm512_storeu_ps(p, a); }
BENCH_INLINE void stream_native(float* p, native a) { _mm512_stream_ps(p, a); }
BENCH_INLINE native set_native(float x) { return _mm512_set1_ps(x); }
BENCH_INLINE native fma_native(native a, native b, native c) { return _mm512_fmadd_ps(a, b, c); }
BENCH_INLINE native negated_fma_native(native a, native b, native c) { return _mm512_fnmadd_ps(a, b, c); }
BENCH_INLINE native min_native(native a, native b) { return _mm512_min_ps(a, b); }
BENCH_INLINE native max_native(native a, native b) { return _mm512_max_ps(a, b); }
BENCH_INLINE float sum_native(native a) { return _mm512_reduce_add_ps(a); }
/// a 2^n for whole n
BENCH_INLINE native scale_native(native a, native n) { return _mm512_scalef_ps(a, n); }
BENCH_INLINE native load_native(const bf16* p)
{
    const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}
BENCH_INLINE void store_native(bf16* p, native a)
{
    const __m512i u = _mm512_castps_si512(a);
    const __m512i last = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), last);
    _mm256_storeu_si256(reinterpret_cast<__m256i_u*>(p), _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16)));
}
#define BENCH_HAND_TARGET "avx512"

#elif defined(__AVX2__)

using native = __m256;
BENCH_INLINE native load_native(const float* p) { return _mm256_loadu_ps(p); }
BENCH_INLINE void store_native(float* p, native a) { _mm256_storeu_ps(p, a); }
BENCH_INLINE void stream_native(float* p, native a) { _mm256_stream_ps(p, a); }
BENCH_INLINE native set_native(float x) { return _mm256_set1_ps(x); }
BENCH_INLINE native fma_native(native a, native b, native c) { return _mm256_fmadd_ps(a, b, c); }
BENCH_INLINE native negated_fma_native(native a, native b, native c) { return _mm256_fnmadd_ps(a, b, c); }
BENCH_INLINE native min_native(native a, native b) { return _mm256_min_ps(a, b); }
BENCH_INLINE native max_native(native a, native b) { return _mm256_max_ps(a, b); }
BENCH_INLINE float sum_native(native a)
{
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
/// a 2^n for whole n that keep the result normal
BENCH_INLINE native scale_native(native a, native n)
{
    const __m256i shifted = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), shifted));
}
BENCH_INLINE native load_native(const bf16* p)
{
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i_u*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}
BENCH_INLINE void store_native(bf16* p, native a)
{
    const __m256i u = _mm256_castps_si256(a);
    const __m256i last = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), last);
    const __m256i high = _mm256_srli_epi32(rounded, 16);
    const __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i_u*>(p), packed);
}
#define BENCH_HAND_TARGET "avx2"

#elif defined(__ARM_NEON) && defined(__aarch64__)

using native = float32x4_t;
BENCH_INLINE native load_native(const float* p) { return vld1q_f32(p); }
BENCH_INLINE void store_native(float* p, native a) { vst1q_f32(p, a); }
BENCH_INLINE void stream_native(float* p, native a) { vst1q_f32(p, a); }
BENCH_INLINE native set_native(float x) { return vdupq_n_f32(x); }
BENCH_INLINE native fma_native(native a, native b, native c) { return vfmaq_f32(c, a, b); }
BENCH_INLINE native negated_fma_native(native a, native b, native c) { return vfmsq_f32(c, a, b); }
BENCH_INLINE native min_native(native a, native b) { return vminq_f32(a, b); }
BENCH_INLINE native max_native(native a, native b) { return vmaxq_f32(a, b); }
BENCH_INLINE float sum_native(native a) { return vaddvq_f32(a); }
BENCH_INLINE native scale_native(native a, native n)
{
    return vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(a), vshlq_n_s32(vcvtnq_s32_f32(n), 23)));
}
BENCH_INLINE native load_native(const bf16* p)
{
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(reinterpret_cast<const std::uint16_t*>(p)), 16));
}
BENCH_INLINE void store_native(bf16* p, native a)
{
    const uint32x4_t u = vreinterpretq_u32_f32(a);
    const uint32x4_t last = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1));
    const uint32x4_t rounded = vaddq_u32(vaddq_u32(u, vdupq_n_u32(0x7fff)), last);
    vst1_u16(reinterpret_cast<std::uint16_t*>(p), vshrn_n_u32(rounded, 16));
}
#define BENCH_HAND_TARGET "neon"

#endif

#ifdef BENCH_HAND_TARGET

/// One register, in a struct: GCC drops the attributes of a bare one where it is a template's argument.
struct vector {
    native r;
    static constexpr std::size_t size = sizeof(native) / sizeof(float);
};
BENCH_INLINE vector set(float x) { return {set_native(x)}; }
BENCH_INLINE vector operator+(vector a, vector b) { return {a.r + b.r}; }
BENCH_INLINE vector operator-(vector a, vector b) { return {a.r - b.r}; }
BENCH_INLINE vector operator*(vector a, vector b) { return {a.r * b.r}; }
BENCH_INLINE vector operator/(vector a, vector b) { return {a.r / b.r}; }
BENCH_INLINE vector fma(vector a, vector b, vector c) { return {fma_native(a.r, b.r, c.r)}; }
BENCH_INLINE vector min(vector a, vector b) { return {min_native(a.r, b.r)}; }
BENCH_INLINE vector max(vector a, vector b) { return {max_native(a.r, b.r)}; }

/// e^x with the polynomial of Arm's optimized routines (1.45 ulp), as llama.cpp's ggml has it; x is brought into the range
/// of normal results instead of branching.
BENCH_INLINE vector exp(vector x)
{
    x = max(min(x, set(88.0f)), set(-87.0f));
    const vector shift = set(0x1.8p23f);
    const vector n = fma(x, set(0x1.715476p+0f), shift) - shift;
    const vector high{negated_fma_native(n.r, set_native(0x1.62e4p-1f), x.r)};
    const vector b{negated_fma_native(n.r, set_native(0x1.7f7d1cp-20f), high.r)};
    const vector u = b * b;
    const vector upper =
        fma(fma(set(0x1.0e4020p-7f), b, set(0x1.573e2ep-5f)), u, fma(set(0x1.555e66p-3f), b, set(0x1.fffdb6p-2f)));
    const vector p = fma(upper, u, fma(set(0x1.ffffecp-1f), b, set(1)));
    return {scale_native(p.r, n.r)};
}
BENCH_INLINE vector silu(vector x) { return x / (set(1) + exp(set(0) - x)); }

template <class T>
BENCH_INLINE vector load(const T* p)
{
    return {load_native(p)};
}
/// Fewer elements than a register has; the others are 0.
template <class T>
BENCH_INLINE vector load_some(const T* p, std::size_t n)
{
    T whole[vector::size] = {};
    for (std::size_t j = 0; j < n; ++j) whole[j] = p[j];
    return load(whole);
}
template <class T>
BENCH_INLINE void store_some(T* p, vector a, std::size_t n)
{
    T whole[vector::size];
    store_native(whole, a.r);
    for (std::size_t j = 0; j < n; ++j) p[j] = whole[j];
}

/// y[j] = f(in[j]...)
template <class T, class F, class... In>
BENCH_INLINE void map(T* y, std::size_t n, F f, const In*... in)
{
    std::size_t j = 0;
    for (; j + vector::size <= n; j += vector::size) store_native(y + j, f(load(in + j)...).r);
    if (j < n) store_some(y + j, f(load_some(in + j, n - j)...), n - j);
}

/// The sum of f(in[j]...), where f gives 0 for zeros.
template <class F, class... In>
BENCH_INLINE float sum(std::size_t n, F f, const In*... in)
{
    vector a = set(0), b = a, c = a, d = a;
    std::size_t j = 0;
    for (; j + 4 * vector::size <= n; j += 4 * vector::size) {
        a = f(a, load(in + j)...);
        b = f(b, load(in + j + vector::size)...);
        c = f(c, load(in + j + 2 * vector::size)...);
        d = f(d, load(in + j + 3 * vector::size)...);
    }
    for (; j + vector::size <= n; j += vector::size) a = f(a, load(in + j)...);
    if (j < n) b = f(b, load_some(in + j, n - j)...);
    return sum_native(((a + b) + (c + d)).r);
}
template <class T>
BENCH_INLINE float sum_of_squares(const T* x, std::size_t n)
{
    return sum(n, [](vector s, vector v) { return fma(v, v, s); }, x);
}

using hand_types = type_list<float, bf16>;

#endif

}  // namespace
}  // namespace bench

#endif
