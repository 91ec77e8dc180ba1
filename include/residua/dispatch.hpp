/// \file
/// The same functions as residua.hpp, in `residua::dispatch`, with the instruction set chosen at run time.
///
/// Include it anywhere, with any compiler flags; it brings in no SIMD header. One unit of the program compiles
/// residua/dispatch_implementation.hpp: in CMake, link `residua::dispatch`. The first call chooses the best target of
/// this CPU; the user can list the targets, ask which is active, and force one. The bits are the same on all of them.
///
///     residua::dispatch::rms_norm(y, x, weight, {.eps = 1e-6f});
///
/// Thread safety: every function may be called from any thread; `force` takes effect for the calls that follow it.
#ifndef RESIDUA_DISPATCH_HPP
#define RESIDUA_DISPATCH_HPP

#include <cstddef>
#include <span>
#include <string_view>

#include <residua/kernels/arguments.hpp>
#include <residua/kernels/list.hpp>

namespace residua::dispatch {
inline namespace RESIDUA_ABI_VERSION {

/// The instruction sets, from the least to the best. `scalar` runs on every CPU; it is slow where the program has to
/// be able to run without fused multiply-add.
enum class target { scalar, neon, avx2, avx512 };

/// The targets that this program has compiled and this CPU can run, from the least to the best; at least `scalar`.
std::span<const target> targets() noexcept;

/// The target that calls use now.
target active() noexcept;

/// Makes the calls that follow use `t`. Returns false, and changes nothing, if this CPU cannot run it or the program
/// does not have it.
bool force(target t) noexcept;

/// Goes back to the best target of this CPU.
void release() noexcept;

/// "scalar", "neon", "avx2", "avx512".
std::string_view name(target t) noexcept;

namespace kernels {

using operand::gated_form;
using operand::gated_numbers;
using operand::shape;
// (kernels/entries.inc.hpp says why)
using input = const operand::input&;
using output = const operand::output&;

#define RESIDUA_DECLARE(result, name, parameters, arguments) \
    template <class T>                                       \
    result name parameters;
#define RESIDUA_DECLARE_WIDE(result, name, parameters, arguments) result name parameters;
RESIDUA_KERNELS(RESIDUA_DECLARE)
RESIDUA_WIDE_KERNELS(RESIDUA_DECLARE_WIDE)
#undef RESIDUA_DECLARE_WIDE
#undef RESIDUA_DECLARE

}  // namespace kernels
}  // namespace RESIDUA_ABI_VERSION
}  // namespace residua::dispatch

// The public headers once more: the same checks and documentation, over the kernels above.
#pragma push_macro("RESIDUA_API")
#pragma push_macro("RESIDUA_SELF")
#undef RESIDUA_API
#undef RESIDUA_SELF
#define RESIDUA_API residua::dispatch::inline RESIDUA_ABI
#define RESIDUA_SELF ::residua::dispatch
#define RESIDUA_DISPATCH_PASS
#include <residua/operations.hpp>
#undef RESIDUA_DISPATCH_PASS
#pragma pop_macro("RESIDUA_SELF")
#pragma pop_macro("RESIDUA_API")

#endif
