// Eigen's array expressions. Its templates are given another namespace in each unit, since units with different
// instruction sets must not share them.
#ifndef RESIDUA_BENCH_EIGEN_HPP
#define RESIDUA_BENCH_EIGEN_HPP

#define Eigen BENCH_EIGEN_NAMESPACE
#include <Eigen/Core>

#include "contender.hpp"

namespace bench {

template <>
inline constexpr type type_of<Eigen::bfloat16> = type::bf16;
template <>
inline constexpr type type_of<Eigen::half> = type::f16;

namespace {

using eigen_types = type_list<float, Eigen::bfloat16, Eigen::half>;

template <class T>
auto array(const T* p, std::size_t n)
{
    return Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>(p, static_cast<Eigen::Index>(n));
}
template <class T>
auto array(T* p, std::size_t n)
{
    return Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>(p, static_cast<Eigen::Index>(n));
}
template <class A>
auto as_float(const A& a)
{
    return a.template cast<float>();
}

}  // namespace
}  // namespace bench

#endif
