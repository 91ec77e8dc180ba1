// RMSNorm, with a plain and with a zero-centred weight.
#include "contender.hpp"

#if defined(BENCH_OPERATIONS)

#include <cmath>

namespace bench {
namespace {

template <int centre>
void reference(const reference_row& r)
{
    double squares = 0;
    for (std::size_t j = 0; j < r.columns; ++j) squares += r.in[0][j] * r.in[0][j];
    const double factor = 1 / std::sqrt(squares / static_cast<double>(r.columns) + 1e-6);
    for (std::size_t j = 0; j < r.columns; ++j) r.out[0][j] = r.in[0][j] * factor * (centre + r.weight[j]);
}

}  // namespace

void BENCH_ENTRY()
{
    add(operation{.name = "rms_norm", .weight = true, .limit = "copy", .tiny = 1e-42f, .reference = reference<0>});
    add(operation{.name = "zero_centered_rms_norm",
                  .weight = true,
                  .limit = "copy",
                  .tiny = 1e-42f,
                  .reference = reference<1>});
}

}  // namespace bench

#elif defined(BENCH_RESIDUA)

#include "residua_contender.hpp"

namespace bench {
namespace {

struct plain_weight {
    template <class T>
    static void run(const call& c)
    {
        api::rms_norm(out<T>(c), in<T>(c), weight<T>(c), {.eps = 1e-6f});
    }
};
struct zero_centred {
    template <class T>
    static void run(const call& c)
    {
        api::zero_centered_rms_norm(out<T>(c), in<T>(c), weight<T>(c), {.eps = 1e-6f});
    }
};

}  // namespace

void BENCH_ENTRY()
{
    add_residua<plain_weight>("rms_norm", residua_types{});
    add_residua<zero_centred>("zero_centered_rms_norm", residua_types{});
}

}  // namespace bench

#elif defined(BENCH_PLAIN)

#include "plain.hpp"

namespace bench {
namespace {

template <int centre>
struct norm {
    template <class T>
    static void row(const row_of<T>& r)
    {
        float squares = 0;
        for (std::size_t j = 0; j < r.columns; ++j) {
            const float x = static_cast<float>(r.in[0][j]);
            squares += x * x;
        }
        const float factor = 1 / __builtin_sqrtf(squares / static_cast<float>(r.columns) + 1e-6f);
        const T* const x = r.in[0];
        const T* const w = r.weight;
        T* __restrict const y = r.out[0];
        for (std::size_t j = 0; j < r.columns; ++j) {
            y[j] = T(static_cast<float>(x[j]) * factor * (static_cast<float>(centre) + static_cast<float>(w[j])));
        }
    }
};

}  // namespace

void BENCH_ENTRY()
{
    add_row_by_row<norm<0>>("rms_norm", plain_types{});
    add_row_by_row<norm<1>>("zero_centered_rms_norm", plain_types{});
}

}  // namespace bench

#elif defined(BENCH_EIGEN)

#include "eigen.hpp"

namespace bench {
namespace {

template <int centre>
struct norm {
    template <class T>
    static void row(const row_of<T>& r)
    {
        const auto x = array(r.in[0], r.columns);
        const float squares = as_float(x).square().sum();
        const float factor = 1 / __builtin_sqrtf(squares / static_cast<float>(r.columns) + 1e-6f);
        const auto w = array(r.weight, r.columns);
        if constexpr (centre == 1) {
            array(r.out[0], r.columns) = (as_float(x) * factor * (as_float(w) + 1.0f)).template cast<T>();
        } else {
            array(r.out[0], r.columns) = (as_float(x) * factor * as_float(w)).template cast<T>();
        }
    }
};

}  // namespace

void BENCH_ENTRY()
{
    add_row_by_row<norm<0>>("rms_norm", eigen_types{});
    add_row_by_row<norm<1>>("zero_centered_rms_norm", eigen_types{});
}

}  // namespace bench

#elif defined(BENCH_HAND)

#include "hand.hpp"

namespace bench {
namespace {

template <int centre>
struct norm {
    template <class T>
    static void row(const row_of<T>& r)
    {
        const vector factor =
            set(1 / __builtin_sqrtf(sum_of_squares(r.in[0], r.columns) / static_cast<float>(r.columns) + 1e-6f));
        const vector one = set(1);
        map(
            r.out[0], r.columns, [&](vector x, vector w) { return x * factor * (centre == 1 ? one + w : w); },
            r.in[0], r.weight);
    }
};

}  // namespace

void BENCH_ENTRY()
{
    add_row_by_row<norm<0>>("rms_norm", hand_types{});
    add_row_by_row<norm<1>>("zero_centered_rms_norm", hand_types{});
}

}  // namespace bench

#endif
