// How a unit adds its contenders. BENCH_ENTRY is the function that does it, BENCH_TARGET and BENCH_BACKEND are its names;
// all three come from the build, as does which of the parts of a file it compiles (BENCH_OPERATIONS, BENCH_RESIDUA,
// BENCH_PLAIN, BENCH_EIGEN, BENCH_SLEEF, BENCH_ONEDNN, BENCH_HAND).
#ifndef RESIDUA_BENCH_CONTENDER_HPP
#define RESIDUA_BENCH_CONTENDER_HPP

#include "bench.hpp"

namespace bench {

void BENCH_ENTRY();

template <class T>
inline constexpr type type_of = type::f32;

template <class... T>
struct type_list {};

// In the unnamed namespace, so that the linker cannot take one unit's for another's.
namespace {

/// One row of a call, for contenders that have no notion of many.
template <class T>
struct row_of {
    std::size_t columns;
    const T* in[most_operands];
    const T* weight;
    T* out[most_operands];
    float* weight_gradient;
    bool first;  // of its call
};

template <class T>
[[maybe_unused]] const T* at(const void* base, std::size_t i)
{
    return base == nullptr ? nullptr : static_cast<const T*>(base) + i;
}
template <class T>
[[maybe_unused]] T* at(void* base, std::size_t i)
{
    return base == nullptr ? nullptr : static_cast<T*>(base) + i;
}

/// Op::row<T> for every row.
template <class Op, class T>
[[maybe_unused]] void over_rows(const call& c)
{
    for (std::size_t i = 0; i < c.rows; ++i) {
        const std::size_t start = i * c.columns;
        const row_of<T> r{
            c.columns,
            {at<T>(c.in[0], c.packed ? 2 * start : start), at<T>(c.in[1], start), at<T>(c.in[2], start)},
            at<T>(c.weight, 0),
            {at<T>(c.out[0], start), at<T>(c.out[1], start), at<T>(c.out[2], start)},
            c.weight_gradient,
            i == 0};
        Op::row(r);
    }
}

#ifdef BENCH_TARGET
/// A contender for each type of the list, whose Op has a function `row`.
template <class Op, class... T>
[[maybe_unused]] void add_row_by_row(const char* operation, type_list<T...>)
{
    (add(contender{operation, type_of<T>, "own", BENCH_TARGET, BENCH_BACKEND, over_rows<Op, T>}), ...);
}
#endif

}  // namespace
}  // namespace bench

#endif
