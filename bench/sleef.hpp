// SLEEF's exp and tanh (1.0 ulp) in loops over hand-written loads and stores.
#ifndef RESIDUA_BENCH_SLEEF_HPP
#define RESIDUA_BENCH_SLEEF_HPP

#include "hand.hpp"

#include <sleef.h>

namespace bench {
namespace {

#if defined(__AVX512F__)
BENCH_INLINE vector sleef_exp(vector x) { return {Sleef_expf16_u10avx512f(x.r)}; }
BENCH_INLINE vector sleef_tanh(vector x) { return {Sleef_tanhf16_u10avx512f(x.r)}; }
#elif defined(__AVX2__)
BENCH_INLINE vector sleef_exp(vector x) { return {Sleef_expf8_u10avx2(x.r)}; }
BENCH_INLINE vector sleef_tanh(vector x) { return {Sleef_tanhf8_u10avx2(x.r)}; }
#else
BENCH_INLINE vector sleef_exp(vector x) { return {Sleef_expf4_u10advsimd(x.r)}; }
BENCH_INLINE vector sleef_tanh(vector x) { return {Sleef_tanhf4_u10advsimd(x.r)}; }
#endif
BENCH_INLINE vector sleef_sigmoid(vector x) { return set(1) / (set(1) + sleef_exp(set(0) - x)); }
BENCH_INLINE vector sleef_silu(vector x) { return x / (set(1) + sleef_exp(set(0) - x)); }

}  // namespace
}  // namespace bench

#endif
