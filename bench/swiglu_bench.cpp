// SwiGLU and its clamped forms, with gate and up apart, side by side, and interleaved; both accuracies.
#include "contender.hpp"

namespace bench {
namespace {

/// What the clamped form is measured with: of normal numbers it clamps one in twenty.
[[maybe_unused]] constexpr float limit = 2;

}  // namespace
}  // namespace bench

#if defined(BENCH_OPERATIONS)

#include <algorithm>
#include <cmath>

namespace bench {
namespace {

double silu(double g) { return g / (1 + std::exp(-g)); }
double clamped(double u, double most) { return std::clamp(u, -most, most); }

struct plain_form {
    static double of(double g, double u) { return silu(g) * u; }
};
struct clamped_form {
    static double of(double g, double u)
    {
        return silu(std::min(g, static_cast<double>(limit))) * clamped(u, static_cast<double>(limit));
    }
};
struct gpt_oss_form {
    static double of(double g, double u)
    {
        const double alpha = static_cast<double>(1.702f);
        const double least = std::min(g, 7.0);
        return silu(alpha * least) / alpha * (clamped(u, 7.0) + 1);
    }
};

template <class Form>
void reference(const reference_row& r)
{
    for (std::size_t j = 0; j < r.columns; ++j) r.out[0][j] = Form::of(r.in[0][j], r.in[1][j]);
}
template <bool interleaved>
void packed(const reference_row& r)
{
    for (std::size_t j = 0; j < r.columns; ++j) {
        r.out[0][j] = interleaved ? plain_form::of(r.in[0][2 * j], r.in[0][2 * j + 1])
                                  : plain_form::of(r.in[0][j], r.in[0][r.columns + j]);
    }
}

}  // namespace

void BENCH_ENTRY()
{
    const auto form = [](const char* name, void (*of)(const reference_row&)) {
        add(operation{.name = name, .reads = 2, .limit = "triad", .tiny = 1e-20f, .reference = of});
    };
    form("swiglu", reference<plain_form>);
    form("clamped_swiglu", reference<clamped_form>);
    form("gpt_oss_swiglu", reference<gpt_oss_form>);
    add(operation{.name = "swiglu_halves", .packed = true, .limit = "triad", .reference = packed<false>});
    add(operation{.name = "swiglu_interleaved", .packed = true, .limit = "triad", .reference = packed<true>});
}

}  // namespace bench

#elif defined(BENCH_RESIDUA)

#include "residua_contender.hpp"

namespace bench {
namespace {

struct plain_form {
    template <class T>
    static void run(const call& c)
    {
        api::swiglu(out<T>(c), in<T>(c, 0), in<T>(c, 1));
    }
};
struct precise_form {
    template <class T>
    static void run(const call& c)
    {
        api::swiglu(out<T>(c), in<T>(c, 0), in<T>(c, 1), {.accuracy = residua::accuracy::precise});
    }
};
struct clamped_form {
    template <class T>
    static void run(const call& c)
    {
        api::clamped_swiglu(out<T>(c), in<T>(c, 0), in<T>(c, 1), {.limit = limit});
    }
};
struct gpt_oss_form {
    template <class T>
    static void run(const call& c)
    {
        api::gpt_oss_swiglu(out<T>(c), in<T>(c, 0), in<T>(c, 1));
    }
};
struct of_halves {
    template <class T>
    static void run(const call& c)
    {
        api::swiglu(out<T>(c), api::halves(in<T>(c)));
    }
};
struct of_interleaved {
    template <class T>
    static void run(const call& c)
    {
        api::swiglu(out<T>(c), api::interleaved(in<T>(c)));
    }
};

}  // namespace

void BENCH_ENTRY()
{
    add_residua<plain_form>("swiglu", residua_types{});
    add_residua<precise_form>("swiglu", residua_types{}, "precise");
    add_residua<clamped_form>("clamped_swiglu", residua_types{});
    add_residua<gpt_oss_form>("gpt_oss_swiglu", residua_types{});
    add_residua<of_halves>("swiglu_halves", residua_types{});
    add_residua<of_interleaved>("swiglu_interleaved", residua_types{});
}

}  // namespace bench

#elif defined(BENCH_PLAIN)

#include "plain.hpp"

namespace bench {
namespace {

float silu(float g) { return g / (1 + expf(-g)); }
float least(float a, float b) { return a < b ? a : b; }
float clamped(float u, float most) { return u < -most ? -most : u > most ? most : u; }

struct plain_form {
    static float of(float g, float u) { return silu(g) * u; }
};
struct clamped_form {
    static float of(float g, float u) { return silu(least(g, limit)) * clamped(u, limit); }
};
struct gpt_oss_form {
    static float of(float g, float u)
    {
        const float low = least(g, 7.0f);
        return low / (1 + expf(-1.702f * low)) * (clamped(u, 7.0f) + 1);
    }
};

template <class Form>
struct apart {
    template <class T>
    static void row(const row_of<T>& r)
    {
        const T* const g = r.in[0];
        const T* const u = r.in[1];
        T* __restrict const y = r.out[0];
        for (std::size_t j = 0; j < r.columns; ++j) {
            y[j] = T(Form::of(static_cast<float>(g[j]), static_cast<float>(u[j])));
        }
    }
};
template <bool interleaved>
struct packed {
    template <class T>
    static void row(const row_of<T>& r)
    {
        constexpr std::size_t step = interleaved ? 2 : 1;
        const T* const g = r.in[0];
        const T* const u = g + (interleaved ? 1 : r.columns);
        T* __restrict const y = r.out[0];
        for (std::size_t j = 0; j < r.columns; ++j) {
            y[j] = T(plain_form::of(static_cast<float>(g[step * j]), static_cast<float>(u[step * j])));
        }
    }
};

}  // namespace

void BENCH_ENTRY()
{
    add_row_by_row<apart<plain_form>>("swiglu", plain_types{});
    add_row_by_row<apart<clamped_form>>("clamped_swiglu", plain_types{});
    add_row_by_row<apart<gpt_oss_form>>("gpt_oss_swiglu", plain_types{});
    add_row_by_row<packed<false>>("swiglu_halves", plain_types{});
    add_row_by_row<packed<true>>("swiglu_interleaved", plain_types{});
}

}  // namespace bench

#elif defined(BENCH_EIGEN)

#include "eigen.hpp"

namespace bench {
namespace {

struct plain_form {
    template <class T>
    static void row(const row_of<T>& r)
    {
        const auto g = as_float(array(r.in[0], r.columns));
        const auto u = as_float(array(r.in[1], r.columns));
        array(r.out[0], r.columns) = (g / (1.0f + (-g).exp()) * u).template cast<T>();
    }
};
struct clamped_form {
    template <class T>
    static void row(const row_of<T>& r)
    {
        const auto g = as_float(array(r.in[0], r.columns)).min(limit);
        const auto u = as_float(array(r.in[1], r.columns)).min(limit).max(-limit);
        array(r.out[0], r.columns) = (g / (1.0f + (-g).exp()) * u).template cast<T>();
    }
};

}  // namespace

void BENCH_ENTRY()
{
    add_row_by_row<plain_form>("swiglu", eigen_types{});
    add_row_by_row<clamped_form>("clamped_swiglu", eigen_types{});
}

}  // namespace bench

#elif defined(BENCH_SLEEF) || defined(BENCH_HAND)

#if defined(BENCH_SLEEF)
#include "sleef.hpp"
#else
#include "hand.hpp"
#endif

namespace bench {
namespace {

#if defined(BENCH_SLEEF)
BENCH_INLINE vector chosen_exp(vector x) { return sleef_exp(x); }
#else
BENCH_INLINE vector chosen_exp(vector x) { return exp(x); }
#endif

struct plain_form {
    BENCH_INLINE static vector of(vector g, vector u) { return g / (set(1) + chosen_exp(set(0) - g)) * u; }
};
struct clamped_form {
    BENCH_INLINE static vector of(vector g, vector u)
    {
        return plain_form::of(min(g, set(limit)), max(min(u, set(limit)), set(-limit)));
    }
};
struct gpt_oss_form {
    BENCH_INLINE static vector of(vector g, vector u)
    {
        const vector low = min(g, set(7));
        return low / (set(1) + chosen_exp(set(-1.702f) * low)) * (max(min(u, set(7)), set(-7)) + set(1));
    }
};

template <class Form>
struct apart {
    template <class T>
    static void row(const row_of<T>& r)
    {
        map(r.out[0], r.columns, [](vector g, vector u) { return Form::of(g, u); }, r.in[0], r.in[1]);
    }
};
struct halves {
    template <class T>
    static void row(const row_of<T>& r)
    {
        map(
            r.out[0], r.columns, [](vector g, vector u) { return plain_form::of(g, u); }, r.in[0],
            r.in[0] + r.columns);
    }
};

}  // namespace

void BENCH_ENTRY()
{
    add_row_by_row<apart<plain_form>>("swiglu", hand_types{});
    add_row_by_row<apart<clamped_form>>("clamped_swiglu", hand_types{});
    add_row_by_row<apart<gpt_oss_form>>("gpt_oss_swiglu", hand_types{});
    add_row_by_row<halves>("swiglu_halves", hand_types{});
}

}  // namespace bench

#endif
