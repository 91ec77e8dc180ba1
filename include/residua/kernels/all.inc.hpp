// One pass of the library: its vectors and its kernels, for one instruction set. The includer has chosen the backend
// (RESIDUA_PASS_BACKEND), the namespace (RESIDUA_PASS) and, for Highway, the target; a static unit makes one pass,
// the run-time dispatch one for each target. These files have no include guard and open the namespace themselves.

// g++ 12 takes the deliberately undefined operands in its own AVX-512 intrinsics for mistakes; and where it sees how long
// an array is, it warns of the whole-vector walk that a short one never takes.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Warray-bounds"
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#pragma GCC diagnostic ignored "-Wstringop-overread"
#endif

// windows.h, and Arduino.h
#pragma push_macro("abs")
#pragma push_macro("round")
#pragma push_macro("min")
#pragma push_macro("max")
#pragma push_macro("small")
#pragma push_macro("near")
#pragma push_macro("far")
#undef abs
#undef round
#undef min
#undef max
#undef small
#undef near
#undef far

// A register must not go through memory for a call; the scalar backend has none, and leaves the choice to the compiler,
// since sixteen lanes in plain loops are a lot of code to have in every place. Unoptimised they are all in memory, and to
// copy every function into every other takes a compiler a minute.
#if RESIDUA_PASS_BACKEND == RESIDUA_BACKEND_SCALAR || !defined(__OPTIMIZE__)
#define RESIDUA_LANE_INLINE inline
#else
#define RESIDUA_LANE_INLINE RESIDUA_INLINE
#endif

// clang-format off
#include <residua/simd/guard.inc.hpp>
#include <residua/simd/twice.inc.hpp>
#if RESIDUA_PASS_BACKEND == RESIDUA_BACKEND_XSIMD
#include <residua/simd/xsimd.inc.hpp>
#elif RESIDUA_PASS_BACKEND == RESIDUA_BACKEND_HIGHWAY
#include <residua/simd/highway.inc.hpp>
#else
#include <residua/simd/scalar.inc.hpp>
#endif
#include <residua/simd/lanes.inc.hpp>
#include <residua/simd/elementary.inc.hpp>
#include <residua/simd/activations.inc.hpp>
#include <residua/simd/of_floats.inc.hpp>
#include <residua/simd/logistic.inc.hpp>

#include <residua/kernels/default_modes.inc.hpp>
#include <residua/kernels/walks.inc.hpp>
#include <residua/kernels/elementary.inc.hpp>
#include <residua/kernels/residual.inc.hpp>
#include <residua/kernels/square_sum.inc.hpp>
#include <residua/kernels/softmax.inc.hpp>
#include <residua/kernels/rms_norm.inc.hpp>
#include <residua/kernels/add_rms_norm.inc.hpp>
#include <residua/kernels/layer_norm.inc.hpp>
#include <residua/kernels/swiglu.inc.hpp>
#include <residua/kernels/gated_rms_norm.inc.hpp>
#include <residua/kernels/combine.inc.hpp>
#include <residua/kernels/streams.inc.hpp>
#include <residua/kernels/mhc.inc.hpp>
#include <residua/kernels/gated_residual.inc.hpp>
#include <residua/kernels/attn_res.inc.hpp>
#include <residua/kernels/matvec.inc.hpp>
// clang-format on

#undef RESIDUA_LANE_INLINE

#pragma pop_macro("far")
#pragma pop_macro("near")
#pragma pop_macro("small")
#pragma pop_macro("max")
#pragma pop_macro("min")
#pragma pop_macro("round")
#pragma pop_macro("abs")

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
