/// \file
/// The implementation of dispatch.hpp: every kernel for every target, and the choice between them. Exactly one unit of
/// a program compiles this file, and includes nothing else. Or three do, side by side, with RESIDUA_DISPATCH_UNIT defined
/// as 0 (the scalar target and the choice), 1 (AVX2 or NEON), 2 (AVX-512), and otherwise alike: as the target
/// `residua::dispatch` of CMake. It needs Highway's headers, which say how to compile a function for an instruction set
/// that the unit's flags do not have; without them there is only the scalar target. It needs no library.
#ifndef RESIDUA_DISPATCH_IMPLEMENTATION_HPP
#define RESIDUA_DISPATCH_IMPLEMENTATION_HPP

#if defined(HWY_HIGHWAY_INCLUDED) || defined(HIGHWAY_HWY_FOREACH_TARGET_H_)
#error "residua: dispatch_implementation.hpp needs a unit of its own, without any other use of Highway"
#endif

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <residua/dispatch.hpp>
#include <residua/kernels/refuse_fast_math.hpp>

// Whether the unit compiles the kernels that are in unit u of three.
#ifdef RESIDUA_DISPATCH_UNIT
#define RESIDUA_DISPATCH_COMPILES(u) (RESIDUA_DISPATCH_UNIT == (u))
#else
#define RESIDUA_DISPATCH_COMPILES(u) 1
#endif

#if __has_include(<hwy/highway.h>) && defined(__GNUC__) && (defined(__x86_64__) || defined(__aarch64__))
// AVX2, AVX-512 and NEON are enough: what lies between runs the same code, what lies below has no fused multiply-add.
// The two fallbacks of Highway stay enabled, since it must have a target that the unit's own flags can run.
#define HWY_COMPILE_ALL_ATTAINABLE
// RESIDUA_DISPATCH_WITHOUT_AVX512 leaves out a third of the code.
#ifdef RESIDUA_DISPATCH_WITHOUT_AVX512
#define HWY_DISABLED_TARGETS (~(HWY_AVX2 | HWY_NEON | HWY_EMU128 | HWY_SCALAR))
#else
#define HWY_DISABLED_TARGETS (~(HWY_AVX2 | HWY_AVX3 | HWY_NEON | HWY_EMU128 | HWY_SCALAR))
#endif
#define HWY_TARGET_INCLUDE "residua/kernels/dispatch_pass.inc.hpp"
#include <hwy/foreach_target.h>
// and the target that foreach_target.h leaves to the end
#include <residua/kernels/dispatch_pass.inc.hpp>
#define RESIDUA_DISPATCH_HAS(target) ((HWY_TARGETS & (target)) != 0)
#else
#define RESIDUA_DISPATCH_HAS(target) 0
#endif

#if RESIDUA_DISPATCH_COMPILES(0)

#define RESIDUA_PASS residua::dispatch::RESIDUA_CAT(RESIDUA_ABI_VERSION, _scalar)
#define RESIDUA_PASS_SELF RESIDUA_PASS
#define RESIDUA_PASS_BACKEND RESIDUA_BACKEND_SCALAR
#include <residua/kernels/all.inc.hpp>
#include <residua/kernels/entries.inc.hpp>
#undef RESIDUA_PASS_BACKEND
#undef RESIDUA_PASS_SELF
#undef RESIDUA_PASS

namespace residua::dispatch {
inline namespace RESIDUA_ABI_VERSION {
namespace detail {

// What this program has, from the least to the best: each implies those before it.
inline constexpr target compiled[] = {
    target::scalar,
#if RESIDUA_DISPATCH_HAS(HWY_NEON)
    target::neon,
#endif
#if RESIDUA_DISPATCH_HAS(HWY_AVX2)
    target::avx2,
#endif
#if RESIDUA_DISPATCH_HAS(HWY_AVX3)
    target::avx512,
#endif
};

inline bool runs_here(target t) noexcept
{
    switch (t) {
        case target::scalar: return true;
        case target::neon:
#if defined(__aarch64__)
            return true;
#else
            return false;
#endif
        case target::avx2:
#if defined(__x86_64__)
            // all that Highway's AVX2 target lets the compiler use; every CPU with AVX2 and FMA has F16C
            return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi")
                   && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("aes")
                   && __builtin_cpu_supports("pclmul");
#else
            return false;
#endif
        case target::avx512:
#if defined(__x86_64__)
            return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")
                   && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")
                   && __builtin_cpu_supports("avx512cd");
#else
            return false;
#endif
    }
    return false;
}

inline std::size_t count_usable() noexcept
{
    std::size_t n = 0;
    for (const target t : compiled) {
        if (!runs_here(t)) break;
        ++n;
    }
    return n;
}

// A target, or that none has been chosen yet.
inline constexpr unsigned not_chosen = 4;
inline constinit std::atomic<unsigned> chosen{not_chosen};

}  // namespace detail

std::span<const target> targets() noexcept { return {detail::compiled, detail::count_usable()}; }

target active() noexcept
{
    unsigned now = detail::chosen.load(std::memory_order_relaxed);
    if (now != detail::not_chosen) return static_cast<target>(now);
    const auto best = targets().back();
    // unless another thread has forced one in the meantime
    if (detail::chosen.compare_exchange_strong(now, static_cast<unsigned>(best), std::memory_order_relaxed))
        return best;
    return static_cast<target>(now);
}

bool force(target t) noexcept
{
    for (const target usable : targets()) {
        if (usable == t) {
            detail::chosen.store(static_cast<unsigned>(t), std::memory_order_relaxed);
            return true;
        }
    }
    return false;
}

void release() noexcept { detail::chosen.store(detail::not_chosen, std::memory_order_relaxed); }

std::string_view name(target t) noexcept
{
    switch (t) {
        case target::scalar: return "scalar";
        case target::neon: return "neon";
        case target::avx2: return "avx2";
        case target::avx512: return "avx512";
    }
    return "?";
}

namespace kernels {

// The kernel of a target, which is named by its namespace.
#if RESIDUA_DISPATCH_HAS(HWY_NEON)
#define RESIDUA_OF_NEON(name) &RESIDUA_CAT(RESIDUA_ABI_VERSION, _N_NEON)::entries::name
#else
#define RESIDUA_OF_NEON(name) nullptr
#endif
#if RESIDUA_DISPATCH_HAS(HWY_AVX2)
#define RESIDUA_OF_AVX2(name) &RESIDUA_CAT(RESIDUA_ABI_VERSION, _N_AVX2)::entries::name
#else
#define RESIDUA_OF_AVX2(name) nullptr
#endif
#if RESIDUA_DISPATCH_HAS(HWY_AVX3)
#define RESIDUA_OF_AVX512(name) &RESIDUA_CAT(RESIDUA_ABI_VERSION, _N_AVX3)::entries::name
#else
#define RESIDUA_OF_AVX512(name) nullptr
#endif

// By a table, in the order of `target`: a call costs one jump more, and its arguments stay where they are. Behind the targets
// stands what chooses one, and is called once.
#define RESIDUA_CHOOSE(result, kernel, parameters, arguments)                                               \
    static constexpr result(*const of_target[])                                                             \
        parameters = {&RESIDUA_CAT(RESIDUA_ABI_VERSION, _scalar)::entries::kernel, RESIDUA_OF_NEON(kernel), \
                      RESIDUA_OF_AVX2(kernel), RESIDUA_OF_AVX512(kernel), &first_call::kernel};             \
    return of_target[detail::chosen.load(std::memory_order_relaxed)] arguments;

#define RESIDUA_DEFINE(result, name, parameters, arguments)    \
    namespace first_call {                                     \
    template <class T>                                         \
    result name parameters                                     \
    {                                                          \
        active();                                              \
        return kernels::name<T> arguments;                     \
    }                                                          \
    }                                                          \
    template <class T>                                         \
    result name parameters                                     \
    {                                                          \
        RESIDUA_CHOOSE(result, name<T>, parameters, arguments) \
    }
RESIDUA_KERNELS(RESIDUA_DEFINE)

#define RESIDUA_DEFINE_WIDE(result, name, parameters, arguments) \
    namespace first_call {                                       \
    inline result name parameters                                \
    {                                                            \
        active();                                                \
        return kernels::name arguments;                          \
    }                                                            \
    }                                                            \
    result name parameters { RESIDUA_CHOOSE(result, name, parameters, arguments) }
RESIDUA_WIDE_KERNELS(RESIDUA_DEFINE_WIDE)

#define RESIDUA_INSTANTIATE(result, name, parameters, arguments) template result name<T> parameters;
#define T float
RESIDUA_KERNELS(RESIDUA_INSTANTIATE)
#undef T
#define T double
RESIDUA_KERNELS(RESIDUA_INSTANTIATE)
#undef T

#undef RESIDUA_INSTANTIATE
#undef RESIDUA_DEFINE_WIDE
#undef RESIDUA_DEFINE
#undef RESIDUA_CHOOSE
#undef RESIDUA_OF_AVX512
#undef RESIDUA_OF_AVX2
#undef RESIDUA_OF_NEON

}  // namespace kernels
}  // namespace RESIDUA_ABI_VERSION
}  // namespace residua::dispatch

#endif

#endif
