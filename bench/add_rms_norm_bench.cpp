// The residual sum, which updates out[0], and its norm, out[1], in one call.
#include "contender.hpp"

#if defined(BENCH_OPERATIONS)

#include <cmath>

namespace bench {
namespace {

void reference(const reference_row& r)
{
    double squares = 0;
    for (std::size_t j = 0; j < r.columns; ++j) {
        r.out[0][j] += r.in[0][j];
        squares += r.out[0][j] * r.out[0][j];
    }
    const double factor = 1 / std::sqrt(squares / static_cast<double>(r.columns) + 1e-6);
    for (std::size_t j = 0; j < r.columns; ++j) r.out[1][j] = r.out[0][j] * factor * r.weight[j];
}

}  // namespace

void BENCH_ENTRY()
{
    add(operation{.name = "add_rms_norm",
                  .writes = 2,
                  .updates = 1,
                  .weight = true,
                  .limit = "update_and_copy",
                  .reference = reference});
}

}  // namespace bench

#elif defined(BENCH_RESIDUA)

#include "residua_contender.hpp"

namespace bench {
namespace {

struct fused {
    template <class T>
    static void run(const call& c)
    {
        api::add_rms_norm(out<T>(c, 1), out<T>(c), in<T>(c), weight<T>(c), {.eps = 1e-6f});
    }
};

}  // namespace

void BENCH_ENTRY() { add_residua<fused>("add_rms_norm", residua_types{}); }

}  // namespace bench

#elif defined(BENCH_PLAIN)

#include "plain.hpp"

namespace bench {
namespace {

struct fused {
    template <class T>
    static void row(const row_of<T>& r)
    {
        const T* const x = r.in[0];
        const T* const w = r.weight;
        T* __restrict const h = r.out[0];
        T* __restrict const y = r.out[1];
        float squares = 0;
        for (std::size_t j = 0; j < r.columns; ++j) {
            h[j] = T(static_cast<float>(h[j]) + static_cast<float>(x[j]));
            squares += static_cast<float>(h[j]) * static_cast<float>(h[j]);
        }
        const float factor = 1 / __builtin_sqrtf(squares / static_cast<float>(r.columns) + 1e-6f);
        for (std::size_t j = 0; j < r.columns; ++j) {
            y[j] = T(static_cast<float>(h[j]) * factor * static_cast<float>(w[j]));
        }
    }
};

}  // namespace

void BENCH_ENTRY() { add_row_by_row<fused>("add_rms_norm", plain_types{}); }

}  // namespace bench

#elif defined(BENCH_EIGEN)

#include "eigen.hpp"

namespace bench {
namespace {

struct fused {
    template <class T>
    static void row(const row_of<T>& r)
    {
        auto h = array(r.out[0], r.columns);
        h = (as_float(h) + as_float(array(r.in[0], r.columns))).template cast<T>();
        const float squares = as_float(h).square().sum();
        const float factor = 1 / __builtin_sqrtf(squares / static_cast<float>(r.columns) + 1e-6f);
        array(r.out[1], r.columns) =
            (as_float(h) * factor * as_float(array(r.weight, r.columns))).template cast<T>();
    }
};

}  // namespace

void BENCH_ENTRY() { add_row_by_row<fused>("add_rms_norm", eigen_types{}); }

}  // namespace bench

#elif defined(BENCH_HAND)

#include "hand.hpp"

namespace bench {
namespace {

struct fused {
    template <class T>
    static void row(const row_of<T>& r)
    {
        T* const h = r.out[0];
        std::size_t j = 0;
        vector squares[2] = {set(0), set(0)};
        for (; j + 2 * vector::size <= r.columns; j += 2 * vector::size) {
            for (std::size_t k = 0; k < 2; ++k) {
                const std::size_t at = j + k * vector::size;
                store_native(h + at, (load(h + at) + load(r.in[0] + at)).r);
                const vector stored = load(h + at);
                squares[k] = fma(stored, stored, squares[k]);
            }
        }
        float all = sum_native((squares[0] + squares[1]).r);
        map(h + j, r.columns - j, [](vector a, vector b) { return a + b; }, h + j, r.in[0] + j);
        all += sum_of_squares(h + j, r.columns - j);
        const vector factor = set(1 / __builtin_sqrtf(all / static_cast<float>(r.columns) + 1e-6f));
        map(r.out[1], r.columns, [&](vector x, vector w) { return x * factor * w; }, h, r.weight);
    }
};

}  // namespace

void BENCH_ENTRY() { add_row_by_row<fused>("add_rms_norm", hand_types{}); }

}  // namespace bench

#endif
