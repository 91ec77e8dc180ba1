// This library as a contender: a static unit's pass, or each target of run-time dispatch.
#ifndef RESIDUA_BENCH_RESIDUA_CONTENDER_HPP
#define RESIDUA_BENCH_RESIDUA_CONTENDER_HPP

#include <support/api.hpp>

#include "contender.hpp"

namespace bench {

template <>
inline constexpr type type_of<residua::bfloat16> = type::bf16;
template <>
inline constexpr type type_of<residua::float16> = type::f16;

namespace {

using residua_types = type_list<float, residua::bfloat16, residua::float16>;

template <class T>
residua::rows<const T> in(const call& c, std::size_t k = 0)
{
    return {static_cast<const T*>(c.in[k]), c.rows, c.packed ? 2 * c.columns : c.columns};
}
template <class T>
residua::rows<T> out(const call& c, std::size_t k = 0)
{
    using residua::store;
    constexpr store as_asked[] = {store::cached, store::streaming, store::automatic};
    residua::rows<T> y{static_cast<T*>(c.out[k]), c.rows, c.columns};
    y.stores = as_asked[static_cast<int>(c.stores)];
    return y;
}
template <class T>
residua::rows<const T> weight(const call& c)
{
    return {static_cast<const T*>(c.weight), 1, c.columns};
}
[[maybe_unused]] residua::rows<float> weight_gradient(const call& c) { return {c.weight_gradient, 1, c.columns}; }

#ifdef BENCH_TARGET
template <class Op, class... T>
void add_residua(const char* operation, type_list<T...>, const char* tier = "standard")
{
    (add(contender{operation, type_of<T>, tier, BENCH_TARGET, BENCH_BACKEND, Op::template run<T>}), ...);
}
#else
template <residua::dispatch::target t>
void force()
{
    residua::dispatch::force(t);
}

template <class Op, class... T>
void add_target(const char* operation, const char* tier, const char* target, void (*prepare)())
{
    (add(contender{operation, type_of<T>, tier, target, "dispatch", Op::template run<T>, prepare}), ...);
}
/// The scalar target stands for a CPU without vectors, and is not compared.
template <class Op, class... T>
void add_residua(const char* operation, type_list<T...>, const char* tier = "standard")
{
    using residua::dispatch::target;
    for (const target t : residua::dispatch::targets()) {
        if (t == target::neon) add_target<Op, T...>(operation, tier, "neon", force<target::neon>);
        if (t == target::avx2) add_target<Op, T...>(operation, tier, "avx2", force<target::avx2>);
        if (t == target::avx512) add_target<Op, T...>(operation, tier, "avx512", force<target::avx512>);
    }
}
#endif

}  // namespace
}  // namespace bench

#endif
