// dispatch.hpp alone: it compiles with any flags, and lets no SIMD header through.

#include <residua/dispatch.hpp>

#if defined(XSIMD_VERSION_MAJOR) || defined(XSIMD_HPP)
#error "dispatch.hpp includes xsimd"
#endif
#if defined(HWY_HIGHWAY_INCLUDED) || defined(HWY_TARGET) || defined(HIGHWAY_HWY_BASE_H_)
#error "dispatch.hpp includes Highway"
#endif
#if defined(_IMMINTRIN_H_INCLUDED) || defined(_EMMINTRIN_H_INCLUDED) || defined(_XMMINTRIN_H_INCLUDED) \
    || defined(__IMMINTRIN_H) || defined(__EMMINTRIN_H) || defined(__XMMINTRIN_H)
#error "dispatch.hpp includes the intrinsics of x86"
#endif
#if defined(_AARCH64_NEON_H_) || defined(__ARM_NEON_H) || defined(_GCC_ARM_NEON_H)
#error "dispatch.hpp includes the intrinsics of Arm"
#endif

bool call_from_a_unit_of_its_own(std::span<float> y, std::span<const float> x);

bool call_from_a_unit_of_its_own(std::span<float> y, std::span<const float> x)
{
    residua::dispatch::rms_norm(y, x, residua::dispatch::no_weight, {.eps = 0.0F});
    return !residua::dispatch::targets().empty();
}
