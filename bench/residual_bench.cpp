// The residual sum y = x + f, apart and in place (x += f), and with somebody who reads it next.
#include "contender.hpp"

#if defined(BENCH_OPERATIONS)

namespace bench {
namespace {

void apart(const reference_row& r)
{
    for (std::size_t j = 0; j < r.columns; ++j) r.out[0][j] = r.in[0][j] + r.in[1][j];
}
void in_place(const reference_row& r)
{
    for (std::size_t j = 0; j < r.columns; ++j) r.out[0][j] += r.in[0][j];
}

}  // namespace

void BENCH_ENTRY()
{
    add(operation{.name = "residual_add", .reads = 2, .limit = "triad", .tiny = 1e-42f, .reference = apart});
    add(operation{.name = "residual_add_then_rms", .reads = 2, .limit = "triad", .reference = apart});
    add(operation{.name = "residual_add_in_place", .updates = 1, .limit = "update", .reference = in_place});
}

}  // namespace bench

#elif defined(BENCH_RESIDUA)

#include "residua_contender.hpp"

namespace bench {
namespace {

struct apart {
    template <class T>
    static void run(const call& c)
    {
        api::residual_add(out<T>(c), in<T>(c, 0), in<T>(c, 1));
    }
};
/// With somebody who reads the output next.
struct then_rms {
    template <class T>
    static void run(const call& c)
    {
        api::residual_add(out<T>(c), in<T>(c, 0), in<T>(c, 1));
        volatile float result = static_cast<float>(api::rms(out<T>(c)));
        static_cast<void>(result);
    }
};
struct in_place {
    template <class T>
    static void run(const call& c)
    {
        api::residual_add(out<T>(c), out<T>(c), in<T>(c));
    }
};

}  // namespace

void BENCH_ENTRY()
{
    add_residua<apart>("residual_add", residua_types{});
    add_residua<then_rms>("residual_add_then_rms", type_list<float>{});
    add_residua<in_place>("residual_add_in_place", residua_types{});
}

}  // namespace bench

#elif defined(BENCH_PLAIN)

#include "plain.hpp"

namespace bench {
namespace {

struct apart {
    template <class T>
    static void row(const row_of<T>& r)
    {
        const T* const x = r.in[0];
        const T* const f = r.in[1];
        T* __restrict const y = r.out[0];
        for (std::size_t j = 0; j < r.columns; ++j) y[j] = T(static_cast<float>(x[j]) + static_cast<float>(f[j]));
    }
};
struct in_place {
    template <class T>
    static void row(const row_of<T>& r)
    {
        const T* const f = r.in[0];
        T* __restrict const y = r.out[0];
        for (std::size_t j = 0; j < r.columns; ++j) y[j] = T(static_cast<float>(y[j]) + static_cast<float>(f[j]));
    }
};

}  // namespace

void BENCH_ENTRY()
{
    add_row_by_row<apart>("residual_add", plain_types{});
    add_row_by_row<in_place>("residual_add_in_place", plain_types{});
}

}  // namespace bench

#elif defined(BENCH_EIGEN)

#include "eigen.hpp"

namespace bench {
namespace {

struct apart {
    template <class T>
    static void row(const row_of<T>& r)
    {
        array(r.out[0], r.columns) =
            (as_float(array(r.in[0], r.columns)) + as_float(array(r.in[1], r.columns))).template cast<T>();
    }
};
struct in_place {
    template <class T>
    static void row(const row_of<T>& r)
    {
        auto y = array(r.out[0], r.columns);
        y = (as_float(y) + as_float(array(r.in[0], r.columns))).template cast<T>();
    }
};

}  // namespace

void BENCH_ENTRY()
{
    add_row_by_row<apart>("residual_add", eigen_types{});
    add_row_by_row<in_place>("residual_add_in_place", eigen_types{});
}

}  // namespace bench

#elif defined(BENCH_ONEDNN)

#include "onednn.hpp"

namespace bench {
namespace {

struct apart {
    template <class T>
    static void run(const call& c)
    {
        onednn_sum<T>(c.rows, c.columns, c.out[0], c.in[0], c.in[1]);
    }
};
struct in_place {
    template <class T>
    static void run(const call& c)
    {
        onednn_sum<T>(c.rows, c.columns, c.out[0], c.out[0], c.in[0]);
    }
};

}  // namespace

void BENCH_ENTRY()
{
    add_onednn<apart>("residual_add");
    add_onednn<in_place>("residual_add_in_place");
}

}  // namespace bench

#elif defined(BENCH_HAND)

#include "hand.hpp"

namespace bench {
namespace {

struct apart {
    template <class T>
    static void row(const row_of<T>& r)
    {
        map(r.out[0], r.columns, [](vector x, vector f) { return x + f; }, r.in[0], r.in[1]);
    }
};
struct in_place {
    template <class T>
    static void row(const row_of<T>& r)
    {
        const T* const x = r.out[0];
        map(r.out[0], r.columns, [](vector a, vector f) { return a + f; }, x, r.in[0]);
    }
};

}  // namespace

void BENCH_ENTRY()
{
    add_row_by_row<apart>("residual_add", hand_types{});
    add_row_by_row<in_place>("residual_add_in_place", hand_types{});
}

}  // namespace bench

#endif
