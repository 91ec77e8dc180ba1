// exp, tanh, sigmoid and silu.
#include "contender.hpp"

#if defined(BENCH_OPERATIONS)

#include <cmath>

namespace bench {
namespace {

template <class F>
void reference(const reference_row& r)
{
    for (std::size_t j = 0; j < r.columns; ++j) r.out[0][j] = F::of(r.in[0][j]);
}

struct exponential {
    static double of(double x) { return std::exp(x); }
};
struct tangent {
    static double of(double x) { return std::tanh(x); }
};
struct logistic {
    static double of(double x) { return 1 / (1 + std::exp(-x)); }
};
struct gated_linear {
    static double of(double x) { return x / (1 + std::exp(-x)); }
};

}  // namespace

void BENCH_ENTRY()
{
    add(operation{.name = "exp", .limit = "copy", .reference = reference<exponential>});
    add(operation{.name = "tanh", .limit = "copy", .tiny = 1e-42f, .reference = reference<tangent>});
    add(operation{.name = "sigmoid", .limit = "copy", .reference = reference<logistic>});
    add(operation{.name = "silu", .limit = "copy", .tiny = 1e-42f, .reference = reference<gated_linear>});
}

}  // namespace bench

#elif defined(BENCH_RESIDUA)

#include "residua_contender.hpp"

namespace bench {
namespace {

#define BENCH_ELEMENTARY(name)                                  \
    template <residua::accuracy tier>                           \
    struct name##_of {                                          \
        template <class T>                                      \
        static void run(const call& c)                          \
        {                                                       \
            api::name(out<T>(c), in<T>(c), {.accuracy = tier}); \
        }                                                       \
    };
BENCH_ELEMENTARY(exp)
BENCH_ELEMENTARY(tanh)
BENCH_ELEMENTARY(sigmoid)
BENCH_ELEMENTARY(silu)
#undef BENCH_ELEMENTARY

template <template <residua::accuracy> class Op>
void add_both(const char* operation)
{
    add_residua<Op<residua::accuracy::standard>>(operation, residua_types{});
    add_residua<Op<residua::accuracy::precise>>(operation, type_list<float>{}, "precise");
}

}  // namespace

void BENCH_ENTRY()
{
    add_both<exp_of>("exp");
    add_both<tanh_of>("tanh");
    add_both<sigmoid_of>("sigmoid");
    add_both<silu_of>("silu");
}

}  // namespace bench

#elif defined(BENCH_PLAIN)

#include "plain.hpp"

namespace bench {
namespace {

struct exponential {
    static float of(float x) { return expf(x); }
};
struct tangent {
    static float of(float x) { return tanhf(x); }
};
struct logistic {
    static float of(float x) { return 1 / (1 + expf(-x)); }
};
struct gated_linear {
    static float of(float x) { return x / (1 + expf(-x)); }
};

template <class F>
struct elementwise {
    template <class T>
    static void row(const row_of<T>& r)
    {
        const T* const x = r.in[0];
        T* __restrict const y = r.out[0];
        for (std::size_t j = 0; j < r.columns; ++j) y[j] = T(F::of(static_cast<float>(x[j])));
    }
};

}  // namespace

void BENCH_ENTRY()
{
    add_row_by_row<elementwise<exponential>>("exp", plain_types{});
    add_row_by_row<elementwise<tangent>>("tanh", plain_types{});
    add_row_by_row<elementwise<logistic>>("sigmoid", plain_types{});
    add_row_by_row<elementwise<gated_linear>>("silu", plain_types{});
}

}  // namespace bench

#elif defined(BENCH_EIGEN)

#include "eigen.hpp"

namespace bench {
namespace {

#define BENCH_ELEMENTARY(name, expression)                                \
    struct name {                                                         \
        template <class T>                                                \
        static void row(const row_of<T>& r)                               \
        {                                                                 \
            const auto x = as_float(array(r.in[0], r.columns));           \
            array(r.out[0], r.columns) = (expression).template cast<T>(); \
        }                                                                 \
    };
BENCH_ELEMENTARY(exponential, x.exp())
BENCH_ELEMENTARY(tangent, x.tanh())
BENCH_ELEMENTARY(logistic, (1.0f + (-x).exp()).inverse())
BENCH_ELEMENTARY(gated_linear, x / (1.0f + (-x).exp()))
#undef BENCH_ELEMENTARY

}  // namespace

void BENCH_ENTRY()
{
    add_row_by_row<exponential>("exp", eigen_types{});
    add_row_by_row<tangent>("tanh", eigen_types{});
    add_row_by_row<logistic>("sigmoid", eigen_types{});
    add_row_by_row<gated_linear>("silu", eigen_types{});
}

}  // namespace bench

#elif defined(BENCH_ONEDNN)

#include "onednn.hpp"

namespace bench {
namespace {

template <dnnl::algorithm function>
struct elementwise {
    template <class T>
    static void run(const call& c)
    {
        onednn_elementwise<function>(c, 1);
    }
};

}  // namespace

void BENCH_ENTRY()
{
    add_onednn<elementwise<dnnl::algorithm::eltwise_exp>>("exp");
    add_onednn<elementwise<dnnl::algorithm::eltwise_tanh>>("tanh");
    add_onednn<elementwise<dnnl::algorithm::eltwise_logistic>>("sigmoid");
    add_onednn<elementwise<dnnl::algorithm::eltwise_swish>>("silu");
}

}  // namespace bench

#elif defined(BENCH_SLEEF)

#include "sleef.hpp"

namespace bench {
namespace {

template <vector (*f)(vector)>
struct elementwise {
    template <class T>
    static void row(const row_of<T>& r)
    {
        map(r.out[0], r.columns, [](vector x) { return f(x); }, r.in[0]);
    }
};

}  // namespace

void BENCH_ENTRY()
{
    add_row_by_row<elementwise<sleef_exp>>("exp", hand_types{});
    add_row_by_row<elementwise<sleef_tanh>>("tanh", hand_types{});
    add_row_by_row<elementwise<sleef_sigmoid>>("sigmoid", hand_types{});
    add_row_by_row<elementwise<sleef_silu>>("silu", hand_types{});
}

}  // namespace bench

#elif defined(BENCH_HAND)

#include "hand.hpp"

namespace bench {
namespace {

struct exponential {
    template <class T>
    static void row(const row_of<T>& r)
    {
        map(r.out[0], r.columns, [](vector x) { return exp(x); }, r.in[0]);
    }
};
struct logistic {
    template <class T>
    static void row(const row_of<T>& r)
    {
        map(r.out[0], r.columns, [](vector x) { return set(1) / (set(1) + exp(set(0) - x)); }, r.in[0]);
    }
};
struct gated_linear {
    template <class T>
    static void row(const row_of<T>& r)
    {
        map(r.out[0], r.columns, [](vector x) { return silu(x); }, r.in[0]);
    }
};

}  // namespace

void BENCH_ENTRY()
{
    add_row_by_row<exponential>("exp", hand_types{});
    add_row_by_row<logistic>("sigmoid", hand_types{});
    add_row_by_row<gated_linear>("silu", hand_types{});
}

}  // namespace bench

#endif
