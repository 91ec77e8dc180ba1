// One target of run-time dispatch: included by foreach_target.h once for each, with HWY_TARGET set.

#include <hwy/highway.h>

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
#define RESIDUA_PASS residua::dispatch::RESIDUA_CAT(RESIDUA_ABI_VERSION, RESIDUA_CAT(_, HWY_NAMESPACE))
#define RESIDUA_PASS_SELF RESIDUA_PASS
#if RESIDUA_DISPATCH_COMPILES(HWY_TARGET == HWY_AVX3 ? 2 : 1)
#define RESIDUA_PASS_BACKEND RESIDUA_BACKEND_HIGHWAY
HWY_BEFORE_NAMESPACE();
#include <residua/kernels/all.inc.hpp>
#include <residua/kernels/entries.inc.hpp>
HWY_AFTER_NAMESPACE();
#undef RESIDUA_PASS_BACKEND
#else
#include <residua/kernels/entries.inc.hpp>
#endif
#undef RESIDUA_PASS_SELF
#undef RESIDUA_PASS
#endif
