// oneDNN's primitives, in float; made once for each shape.
#ifndef RESIDUA_BENCH_ONEDNN_HPP
#define RESIDUA_BENCH_ONEDNN_HPP

#include <dlfcn.h>

#include <map>
#include <utility>

#include <oneapi/dnnl/dnnl.hpp>

#include "contender.hpp"

namespace bench {
namespace {

struct onednn_state {
    dnnl::engine engine{dnnl::engine::kind::cpu, 0};
    dnnl::stream stream{engine};
};
[[maybe_unused]] onednn_state& onednn()
{
    static onednn_state s = [] {
        // One thread, as everybody here; where it is built with OpenMP this is how it is told.
        if (void* const set_threads = dlsym(RTLD_DEFAULT, "omp_set_num_threads")) {
            reinterpret_cast<void (*)(int)>(set_threads)(1);
        }
        return onednn_state{};
    }();
    return s;
}

[[maybe_unused]] dnnl::memory::desc rows_of(std::size_t rows, std::size_t columns)
{
    return {{static_cast<dnnl::memory::dim>(rows), static_cast<dnnl::memory::dim>(columns)},
            dnnl::memory::data_type::f32,
            dnnl::memory::format_tag::ab};
}

/// A primitive and the operands it is given.
struct ready {
    dnnl::primitive primitive;
    dnnl::memory in[2], out;

    void run(void* y, const void* x, const void* z = nullptr)
    {
        in[0].set_data_handle(const_cast<void*>(x));
        out.set_data_handle(y);
        if (z == nullptr) {
            primitive.execute(onednn().stream, {{DNNL_ARG_SRC, in[0]}, {DNNL_ARG_DST, out}});
        } else {
            in[1].set_data_handle(const_cast<void*>(z));
            primitive.execute(onednn().stream,
                              {{DNNL_ARG_SRC_0, in[0]}, {DNNL_ARG_SRC_1, in[1]}, {DNNL_ARG_DST, out}});
        }
        onednn().stream.wait();
    }
};

/// The primitive that `make` makes for this shape, kept from the first call on.
template <class Make>
ready& primitive_for(std::size_t rows, std::size_t columns, Make make)
{
    static std::map<std::pair<std::size_t, std::size_t>, ready> all;
    const auto known = all.find({rows, columns});
    if (known != all.end()) return known->second;
    const auto desc = rows_of(rows, columns);
    const auto empty = [&] { return dnnl::memory{desc, onednn().engine, nullptr}; };
    return all.emplace(std::pair{rows, columns}, ready{make(desc), {empty(), empty()}, empty()}).first->second;
}

template <class T>
[[maybe_unused]] void onednn_sum(std::size_t rows, std::size_t columns, void* y, const void* x, const void* f)
{
    const auto make = [](const dnnl::memory::desc& d) -> dnnl::primitive {
#if DNNL_VERSION_MAJOR >= 3
        return dnnl::binary({onednn().engine, dnnl::algorithm::binary_add, d, d, d});
#else
        return dnnl::binary({{dnnl::algorithm::binary_add, d, d, d}, onednn().engine});
#endif
    };
    primitive_for(rows, columns, make).run(y, x, f);
}

template <dnnl::algorithm function>
[[maybe_unused]] void onednn_elementwise(const call& c, float alpha = 0)
{
    const auto make = [alpha](const dnnl::memory::desc& d) -> dnnl::primitive {
        constexpr auto kind = dnnl::prop_kind::forward_inference;
#if DNNL_VERSION_MAJOR >= 3
        return dnnl::eltwise_forward({onednn().engine, kind, function, d, d, alpha, 0.0f});
#else
        return dnnl::eltwise_forward({{kind, function, d, alpha, 0.0f}, onednn().engine});
#endif
    };
    primitive_for(c.rows, c.columns, make).run(c.out[0], c.in[0]);
}

/// It chooses its instruction set itself.
template <class Op>
[[maybe_unused]] void add_onednn(const char* operation)
{
    add(contender{operation, type::f32, "own", BENCH_TARGET, BENCH_BACKEND, Op::template run<float>});
}

}  // namespace
}  // namespace bench

#endif
