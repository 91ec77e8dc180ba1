// Gradients: of RMSNorm (x and the weight), of the fused sum and norm, of SwiGLU.
#include "contender.hpp"

#if defined(BENCH_OPERATIONS)

#include <cmath>

namespace bench {
namespace {

/// dx of a norm, added to what `dx` holds; the rms's inverse is returned.
double add_norm_gradient(double* dx, const double* x, const double* w, const double* dy, std::size_t n)
{
    double squares = 0;
    double products = 0;
    for (std::size_t j = 0; j < n; ++j) {
        squares += x[j] * x[j];
        products += x[j] * w[j] * dy[j];
    }
    const double r = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-6);
    const double mean = products * r / static_cast<double>(n);
    for (std::size_t j = 0; j < n; ++j) dx[j] += r * (dy[j] * w[j] - x[j] * r * mean);
    return r;
}

void norm(const reference_row& row)
{
    for (std::size_t j = 0; j < row.columns; ++j) row.out[0][j] = 0;
    const double r = add_norm_gradient(row.out[0], row.in[0], row.weight, row.in[1], row.columns);
    for (std::size_t j = 0; j < row.columns; ++j) row.weight_gradient[j] += row.in[1][j] * row.in[0][j] * r;
}
void fused(const reference_row& row)
{
    for (std::size_t j = 0; j < row.columns; ++j) row.out[0][j] = row.in[1][j];
    add_norm_gradient(row.out[0], row.in[0], row.weight, row.in[2], row.columns);
    for (std::size_t j = 0; j < row.columns; ++j) row.out[1][j] = row.out[0][j];
}
void gated(const reference_row& row)
{
    for (std::size_t j = 0; j < row.columns; ++j) {
        const double g = row.in[0][j];
        const double s = 1 / (1 + std::exp(-g));
        row.out[0][j] = row.in[2][j] * row.in[1][j] * s * (1 + g * (1 - s));
        row.out[1][j] = row.in[2][j] * g * s;
    }
}

}  // namespace

void BENCH_ENTRY()
{
    add(operation{.name = "rms_norm_vjp",
                  .reads = 2,
                  .weight = true,
                  .weight_gradient = true,
                  .limit = "triad",
                  .reference = norm});
    add(operation{.name = "add_rms_norm_vjp",
                  .reads = 3,
                  .writes = 2,
                  .weight = true,
                  .limit = "three_to_two",
                  .reference = fused});
    add(operation{.name = "swiglu_vjp", .reads = 3, .writes = 2, .limit = "three_to_two", .reference = gated});
}

}  // namespace bench

#elif defined(BENCH_RESIDUA)

#include "residua_contender.hpp"

namespace bench {
namespace {

struct norm {
    template <class T>
    static void run(const call& c)
    {
        api::rms_norm_vjp(out<T>(c), weight_gradient(c), in<T>(c, 0), weight<T>(c), in<T>(c, 1), {.eps = 1e-6f});
    }
};
struct fused {
    template <class T>
    static void run(const call& c)
    {
        api::add_rms_norm_vjp(out<T>(c, 0), out<T>(c, 1), in<T>(c, 0), weight<T>(c), in<T>(c, 1), in<T>(c, 2),
                              {.eps = 1e-6f});
    }
};
struct gated {
    template <class T>
    static void run(const call& c)
    {
        api::swiglu_vjp(out<T>(c, 0), out<T>(c, 1), in<T>(c, 0), in<T>(c, 1), in<T>(c, 2));
    }
};

}  // namespace

void BENCH_ENTRY()
{
    add_residua<norm>("rms_norm_vjp", residua_types{});
    add_residua<fused>("add_rms_norm_vjp", residua_types{});
    add_residua<gated>("swiglu_vjp", residua_types{});
}

}  // namespace bench

#elif defined(BENCH_PLAIN)

#include "plain.hpp"

namespace bench {
namespace {

struct norm {
    template <class T>
    static void row(const row_of<T>& r)
    {
        const T* const x = r.in[0];
        const T* const dy = r.in[1];
        const T* const w = r.weight;
        T* __restrict const dx = r.out[0];
        float* __restrict const dw = r.weight_gradient;
        float squares = 0;
        float products = 0;
        for (std::size_t j = 0; j < r.columns; ++j) {
            const float v = static_cast<float>(x[j]);
            squares += v * v;
            products += v * static_cast<float>(w[j]) * static_cast<float>(dy[j]);
        }
        const float n = static_cast<float>(r.columns);
        const float factor = 1 / __builtin_sqrtf(squares / n + 1e-6f);
        const float mean = products * factor / n;
        for (std::size_t j = 0; j < r.columns; ++j) {
            const float normed = static_cast<float>(x[j]) * factor;
            const float d = static_cast<float>(dy[j]);
            dx[j] = T(factor * (d * static_cast<float>(w[j]) - normed * mean));
            dw[j] = (r.first ? 0 : dw[j]) + d * normed;
        }
    }
};
struct gated {
    template <class T>
    static void row(const row_of<T>& r)
    {
        const T* const gate = r.in[0];
        const T* const up = r.in[1];
        const T* const dy = r.in[2];
        T* __restrict const dgate = r.out[0];
        T* __restrict const dup = r.out[1];
        for (std::size_t j = 0; j < r.columns; ++j) {
            const float g = static_cast<float>(gate[j]);
            const float d = static_cast<float>(dy[j]);
            const float s = 1 / (1 + expf(-g));
            dgate[j] = T(d * static_cast<float>(up[j]) * s * (1 + g * (1 - s)));
            dup[j] = T(d * g * s);
        }
    }
};

}  // namespace

void BENCH_ENTRY()
{
    add_row_by_row<norm>("rms_norm_vjp", plain_types{});
    add_row_by_row<gated>("swiglu_vjp", plain_types{});
}

}  // namespace bench

#elif defined(BENCH_HAND)

#include "hand.hpp"

namespace bench {
namespace {

struct gated {
    template <class T>
    static void row(const row_of<T>& r)
    {
        const auto slope = [](vector g, vector u, vector d) {
            const vector s = set(1) / (set(1) + exp(set(0) - g));
            return d * u * s * fma(g, set(1) - s, set(1));
        };
        const auto value = [](vector g, vector d) { return d * silu(g); };
        // block by block, so that what is read twice is near
        constexpr std::size_t block = 256;
        for (std::size_t j = 0; j < r.columns; j += block) {
            const std::size_t n = r.columns - j < block ? r.columns - j : block;
            map(r.out[0] + j, n, slope, r.in[0] + j, r.in[1] + j, r.in[2] + j);
            map(r.out[1] + j, n, value, r.in[0] + j, r.in[2] + j);
        }
    }
};

}  // namespace

void BENCH_ENTRY() { add_row_by_row<gated>("swiglu_vjp", hand_types{}); }

}  // namespace bench

#endif
