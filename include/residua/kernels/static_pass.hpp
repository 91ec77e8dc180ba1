/// \file
/// The kernels of this unit: one pass over the widest instruction set that its own compiler flags allow.
#ifndef RESIDUA_KERNELS_STATIC_PASS_HPP
#define RESIDUA_KERNELS_STATIC_PASS_HPP

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <residua/kernels/arguments.hpp>
#include <residua/kernels/list.hpp>
#include <residua/kernels/refuse_fast_math.hpp>

#define RESIDUA_PASS residua::inline RESIDUA_ABI::pass
#define RESIDUA_PASS_SELF ::residua::RESIDUA_ABI::pass
#define RESIDUA_PASS_IS_STATIC

#if RESIDUA_BACKEND == RESIDUA_BACKEND_XSIMD
#include <xsimd/xsimd.hpp>
#if defined(XSIMD_NO_SUPPORTED_ARCHITECTURE) || defined(__arm__)
#define RESIDUA_PASS_BACKEND RESIDUA_BACKEND_SCALAR
#elif XSIMD_VERSION_MAJOR < 8 || (XSIMD_VERSION_MAJOR == 8 && XSIMD_VERSION_MINOR < 1)
#error "residua: needs xsimd 8.1 or newer"
#endif
#elif RESIDUA_BACKEND == RESIDUA_BACKEND_HIGHWAY
#include <hwy/highway.h>
#if HWY_TARGET != HWY_STATIC_TARGET
#error \
    "residua: the static headers do not belong into a unit that foreach_target.h compiles several times; include residua/dispatch.hpp there"
#endif
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128 || defined(__arm__)
#define RESIDUA_PASS_BACKEND RESIDUA_BACKEND_SCALAR
#elif HWY_HAVE_SCALABLE || HWY_TARGET == HWY_SVE_256 || HWY_TARGET == HWY_SVE2_128
#define RESIDUA_PASS_BACKEND RESIDUA_BACKEND_SCALAR
#ifndef RESIDUA_NO_FMA_WARNING
#pragma message( \
    "residua: Highway's static target has vectors of no fixed size (SVE, RVV), which this library cannot hold; this unit uses plain loops and is slow. Use xsimd, or HWY_DISABLED_TARGETS to choose NEON, or include residua/dispatch.hpp; RESIDUA_NO_FMA_WARNING silences this.")
#endif
#endif
#if defined(__AVX2__) && defined(__FMA__) && !HWY_NATIVE_FMA && !defined(RESIDUA_NO_FMA_WARNING)
#pragma message( \
    "residua: the compiler has AVX2, but Highway's static target is below it (it also asks for -maes -mpclmul -mbmi2 -mf16c); this unit is slow. Add them (-march=x86-64-v3 -maes -mpclmul), use xsimd, or include residua/dispatch.hpp; RESIDUA_NO_FMA_WARNING silences this.")
#endif
#endif
#ifndef RESIDUA_PASS_BACKEND
#define RESIDUA_PASS_BACKEND RESIDUA_BACKEND
#endif

#if !RESIDUA_UNIT_HAS_FMA && !defined(RESIDUA_NO_FMA_WARNING)
#pragma message( \
    "residua: this unit is compiled without fused multiply-add, which is emulated exactly and slowly. Give the compiler an instruction set (-march=x86-64-v3, or -mavx2 -mfma), or include residua/dispatch.hpp, which chooses at run time; RESIDUA_NO_FMA_WARNING silences this.")
#endif

#if RESIDUA_PASS_BACKEND == RESIDUA_BACKEND_HIGHWAY
HWY_BEFORE_NAMESPACE();
#endif
#include <residua/kernels/all.inc.hpp>
#include <residua/kernels/entries.inc.hpp>
#if RESIDUA_PASS_BACKEND == RESIDUA_BACKEND_HIGHWAY
HWY_AFTER_NAMESPACE();
#endif

namespace residua::inline RESIDUA_ABI {
namespace kernels = pass::entries;
}

#undef RESIDUA_PASS_IS_STATIC
#undef RESIDUA_PASS_SELF
#undef RESIDUA_PASS
#undef RESIDUA_PASS_BACKEND

#endif
