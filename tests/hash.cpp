// hash: one 64-bit number for each public operation and type, over the bits of its results for a fixed set of inputs.
// It is the same for every backend, instruction set, compiler and optimisation, or a promise is broken.
//
//     hash                   prints "operation type hash", line by line
//     hash --write FILE      writes that into FILE
//     hash --check FILE      compares with FILE; prints the lines that differ and how many are equal, and exits with 1
//                            unless all are
//     hash --check FILE --brief    the same, without the sets of a million numbers
//
// Compiled with RESIDUA_HASH_DISPATCH it goes through residua::dispatch, and does so for every target of this CPU.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#ifdef RESIDUA_HASH_DISPATCH
#include <residua/dispatch.hpp>
namespace api = residua::dispatch;
#else
#include <residua/residua.hpp>
namespace api = residua;
#endif

#include "support/special_values.hpp"

namespace {

using residua::rows;
using residua::test::bits_type;
using residua::test::layout;
using residua::test::random_bits;
using residua::test::sign_bit;
using residua::test::special_bits;
using residua::test::special_count;

/// FNV-1a (Fowler, Noll and Vo). Every NaN counts as the same one: which it is, is open.
class hasher {
public:
    template <class T>
    void add(T x)
    {
        constexpr int fraction_bits = layout<T>::precision - 1;
        constexpr bits_type<T> infinity = ((bits_type<T>{1} << layout<T>::exponent_bits) - 1) << fraction_bits;
        auto u = std::bit_cast<bits_type<T>>(x);
        if ((u & ~sign_bit<T>) > infinity) u = infinity + 1;
        for (std::size_t i = 0; i < sizeof(T); ++i) {
            value_ = (value_ ^ (u & 0xff)) * 0x100000001b3u;
            u >>= 8;
        }
    }
    void add(residua::bfloat16 x) { add(static_cast<float>(x)); }
    void add(residua::float16 x) { add(static_cast<float>(x)); }
    template <class T>
    void add(const std::vector<T>& x)
    {
        for (const T element : x) add(element);
    }
    std::uint64_t value() const { return value_; }

private:
    std::uint64_t value_ = 0xcbf29ce484222325u;
};

std::vector<std::string> report;

void add_line(const char* operation, const char* inputs, const hasher& h)
{
    char hash[17];
    std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(h.value()));
    report.push_back(std::string{operation} + ' ' + inputs + ' ' + hash);
}
template <class T>
constexpr const char* name_of = std::is_same_v<T, residua::bfloat16>  ? "bfloat16"
                                : std::is_same_v<T, residua::float16> ? "float16"
                                : sizeof(T) == 4                      ? "float"
                                                                      : "double";
/// What kernels compute with.
template <class T>
using wide_type = std::conditional_t<std::is_same_v<T, double>, double, float>;
template <class T>
void add_line(const char* operation, const hasher& h)
{
    add_line(operation, name_of<T>, h);
}

// --- inputs ----------------------------------------------------------------------------------------------------

/// What a row is made of: the last three are those whose squares leave the range of the type.
enum class kind { special, any_bits, uniform, moderate, of_any_size, large, small, one_large };
constexpr std::size_t kinds = 8;

template <class T>
T element(kind k, std::size_t i, random_bits& random)
{
    constexpr int precision = layout<T>::precision;
    constexpr int largest = (1 << (layout<T>::exponent_bits - 1)) - 1;
    const auto between = [&](int least, int most) {
        return std::bit_cast<T>(random.between_powers<T>(least, most));
    };
    switch (k) {
        case kind::special: return std::bit_cast<T>(special_bits<T>(random.below(special_count<T>)));
        case kind::any_bits: return std::bit_cast<T>(random.any<T>());
        case kind::uniform:
            return static_cast<T>(random() >> (64 - precision)) / static_cast<T>(std::uint64_t{1} << precision);
        case kind::moderate: return between(-6, 4);
        case kind::of_any_size: return between(1 - largest, largest - 1);
        case kind::large: return between(largest - 28, largest - 27);
        case kind::small: {
            // subnormal numbers
            const auto u = random.any<T>();
            return std::bit_cast<T>((u & sign_bit<T>) | ((u & ~sign_bit<T>) >> (layout<T>::exponent_bits + 1)));
        }
        case kind::one_large: return i == 3 ? between(largest - 28, largest - 27) : between(-6, 4);
    }
    return 0;
}

template <class T>
std::vector<T> elements(kind k, std::size_t n, random_bits& random)
{
    std::vector<T> list(n);
    for (std::size_t i = 0; i < n; ++i) list[i] = element<T>(k, i, random);
    return list;
}

/// One call: its memory, and how the operands lie in it.
template <class T>
struct sample {
    std::size_t columns, count, stride;
    std::vector<T> a, b, w;
    bool in_place;
    T eps;
};

/// What an operation is called with. `out` is a copy of `a` in place, else filled with a number.
template <class T>
struct operands {
    rows<T> out;
    rows<const T> a, b, w;
    rows<T> dw;
    T eps;
    T result;
    std::vector<T> more;  // what has another shape than out
};

template <class T>
std::vector<sample<T>> make_samples()
{
    std::vector<sample<T>> list;
    random_bits random{20151210};
    const auto add = [&](std::size_t columns, std::size_t count, std::size_t which) {
        const auto k = static_cast<kind>(which % kinds);
        const auto of_b = columns % 3 == 0 || k == kind::special || k == kind::any_bits ? k : kind::moderate;
        const std::size_t stride = columns + columns % 5;
        const T eps[] = {static_cast<T>(1e-6), 0, static_cast<T>(1e-30), static_cast<T>(1e-12)};
        list.push_back({columns, count, stride, elements<T>(k, count * stride, random),
                        elements<T>(of_b, count * stride, random), elements<T>(of_b, columns, random),
                        columns % 2 == 1, eps[random.below(4)]});
    };
    for (std::size_t n = 1; n <= 70; ++n) {
        for (std::size_t k = 0; k < kinds; k += 3) add(n, 2, n + k);
    }
    for (std::size_t k = 0; k < kinds; ++k) add(1000, 1, k);
    for (const auto k : {kind::moderate, kind::large}) add((1U << 12) + 1, 1, static_cast<std::size_t>(k));
    return list;
}

template <class T>
using operation = void (*)(operands<T>&);

template <class T>
void hash_each(const std::vector<sample<T>>& samples, const char* inputs, const char* name, operation<T> call)
{
    hasher h;
    for (const auto& s : samples) {
        const auto view = [&](auto* first) {
            return rows{first, s.count, s.columns, static_cast<std::ptrdiff_t>(s.stride)};
        };
        std::vector<T> out = s.in_place ? s.a : std::vector<T>(s.a.size(), static_cast<T>(-7.0F));
        std::vector<T> dw = s.w;
        operands<T> o{view(out.data()),
                      view(s.in_place ? static_cast<const T*>(out.data()) : s.a.data()),
                      view(s.b.data()),
                      {s.w.data(), 1, s.columns},
                      {dw.data(), 1, s.columns},
                      s.eps,
                      {},
                      {}};
        call(o);
        h.add(out);
        h.add(dw);
        h.add(o.result);
        h.add(o.more);
    }
    add_line(name, inputs, h);
}

// --- operations ------------------------------------------------------------------------------------------------

/// The gated activations, with the options that they need.
#define RESIDUA_HASH_FORMS(X)                   \
    X(swiglu)                                   \
    X(geglu)                                    \
    X(geglu_tanh)                               \
    X(reglu)                                    \
    X(clamped_swiglu, .limit = number(10))      \
    X(swiglu_clamped_after, .limit = number(7)) \
    X(gpt_oss_swiglu)                           \
    X(situ_glu)                                 \
    X(sigmoid_gate)

/// What works element by element, and in every type.
template <class T>
void hash_elementwise(const std::vector<sample<T>>& samples, const char* inputs)
{
    const auto each = [&](const char* name, operation<T> call) { hash_each(samples, inputs, name, call); };
    using O = operands<T>;
    using number = wide_type<T>;

    each("exp", [](O& o) { api::exp(o.out, o.a); });
    each("log", [](O& o) { api::log(o.out, o.a); });
    each("tanh", [](O& o) { api::tanh(o.out, o.a); });
    each("sigmoid", [](O& o) { api::sigmoid(o.out, o.a); });
    each("silu", [](O& o) { api::silu(o.out, o.a); });
    each("relu", [](O& o) { api::relu(o.out, o.a); });
    each("gelu", [](O& o) { api::gelu(o.out, o.a); });
    each("gelu_tanh", [](O& o) { api::gelu_tanh(o.out, o.a); });
    each("silu_derivative", [](O& o) { api::silu_derivative(o.out, o.a); });
    each("cos_2pi", [](O& o) { api::cos_2pi(o.out, o.a); });
    each("exp_jvp", [](O& o) { api::exp_jvp(o.out, o.a, o.b); });
    each("tanh_jvp", [](O& o) { api::tanh_jvp(o.out, o.a, o.b); });
    each("sigmoid_jvp", [](O& o) { api::sigmoid_jvp(o.out, o.a, o.b); });
    each("silu_jvp", [](O& o) { api::silu_jvp(o.out, o.a, o.b); });
    each("gelu_jvp", [](O& o) { api::gelu_jvp(o.out, o.a, o.b); });
    each("gelu_tanh_jvp", [](O& o) { api::gelu_tanh_jvp(o.out, o.a, o.b); });
    each("silu_derivative_jvp", [](O& o) { api::silu_derivative_jvp(o.out, o.a, o.b); });
    each("relu_jvp", [](O& o) { api::relu_jvp(o.out, o.a, o.b); });
    each("swiglu", [](O& o) { api::swiglu(o.out, o.a, o.b); });
    each("clamped_swiglu", [](O& o) { api::clamped_swiglu(o.out, o.a, o.b, {.limit = number(10)}); });
    each("swiglu_clamped_after", [](O& o) { api::swiglu_clamped_after(o.out, o.a, o.b, {.limit = number(7)}); });
    each("gpt_oss_swiglu", [](O& o) { api::gpt_oss_swiglu(o.out, o.a, o.b); });
    each("situ_glu", [](O& o) { api::situ_glu(o.out, o.a, o.b); });
    each("geglu", [](O& o) { api::geglu(o.out, o.a, o.b); });
    each("geglu_tanh", [](O& o) { api::geglu_tanh(o.out, o.a, o.b); });
    each("reglu", [](O& o) { api::reglu(o.out, o.a, o.b); });
    each("sigmoid_gate", [](O& o) { api::sigmoid_gate(o.out, o.a, o.b); });
    constexpr auto precise = residua::accuracy::precise;
    each("exp, precise", [](O& o) { api::exp(o.out, o.a, {.accuracy = precise}); });
    each("tanh, precise", [](O& o) { api::tanh(o.out, o.a, {.accuracy = precise}); });
    each("sigmoid, precise", [](O& o) { api::sigmoid(o.out, o.a, {.accuracy = precise}); });
    each("silu, precise", [](O& o) { api::silu(o.out, o.a, {.accuracy = precise}); });
    each("swiglu, precise", [](O& o) { api::swiglu(o.out, o.a, o.b, {.accuracy = precise}); });
    each("gpt_oss_swiglu, precise", [](O& o) { api::gpt_oss_swiglu(o.out, o.a, o.b, {.accuracy = precise}); });
    each("clamped_swiglu, precise",
         [](O& o) { api::clamped_swiglu(o.out, o.a, o.b, {.limit = number(10), .accuracy = precise}); });
    each("swiglu_clamped_after, precise",
         [](O& o) { api::swiglu_clamped_after(o.out, o.a, o.b, {.limit = number(7), .accuracy = precise}); });
    each("sigmoid_gate, precise", [](O& o) { api::sigmoid_gate(o.out, o.a, o.b, {.accuracy = precise}); });
    constexpr auto before_product = residua::activation_rounding::before_product;
#define RESIDUA_HASH_FORM(name, ...) \
    each(#name ", before_product",   \
         [](O& o) { api::name(o.out, o.a, o.b, {__VA_ARGS__ __VA_OPT__(, ).rounding = before_product}); });
    RESIDUA_HASH_FORMS(RESIDUA_HASH_FORM)
#undef RESIDUA_HASH_FORM
}

/// Two operands in the place of one: gate and up in each of its rows.
template <class T>
auto packed(rows<T> r, bool in_turn)
{
    r.columns -= r.columns % 2;
    return in_turn ? api::interleaved(r) : api::halves(r);
}

/// The result, the gradient along it, and the derivative along that, of both ways to pack.
template <class T>
void hash_packed(const std::vector<sample<T>>& samples, const char* inputs)
{
    using O = operands<T>;
    using number = wide_type<T>;
#define RESIDUA_HASH_FORM(name, ...)                                                          \
    hash_each<T>(samples, inputs, #name ", packed", [](O& o) {                                \
        const std::size_t n = o.a.columns / 2;                                                \
        o.more.resize(4 * o.a.count * n);                                                     \
        const rows<T> all{o.more.data(), 4 * o.a.count, n};                                   \
        for (const bool in_turn : {false, true}) {                                            \
            const rows<T> y = all.part(in_turn ? o.a.count : 0, o.a.count);                   \
            const rows<T> ty = all.part((in_turn ? 3 : 2) * o.a.count, o.a.count);            \
            api::name(y, packed(o.a, in_turn), {__VA_ARGS__});                                \
            api::name##_vjp(packed(o.out, in_turn), packed(o.a, in_turn), y, {__VA_ARGS__});  \
            api::name##_jvp(ty, packed(o.b, in_turn), packed(o.out, in_turn), {__VA_ARGS__}); \
        }                                                                                     \
    });
    RESIDUA_HASH_FORMS(RESIDUA_HASH_FORM)
#undef RESIDUA_HASH_FORM
}

/// The same for every stride-th bit pattern of T, NaN included; the second operand is random.
template <class T>
void hash_patterns(const char* inputs, std::uint64_t stride)
{
    using bits = std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                    std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;
    using random_type = wide_type<T>;
    const std::uint64_t count = static_cast<bits>(~bits{0}) / stride + 1;
    sample<T> all{count, 1, count, std::vector<T>(count), std::vector<T>(count), {}, false, {}};
    random_bits random{20151214};
    for (std::uint64_t i = 0; i < count; ++i) {
        all.a[i] = std::bit_cast<T>(static_cast<bits>(i * stride));
        all.b[i] = static_cast<T>(element<random_type>(kind::moderate, i, random));
    }
    const std::vector<sample<T>> samples{std::move(all)};
    hash_elementwise<T>(samples, inputs);
    if constexpr (std::is_same_v<T, residua::bfloat16>) hash_packed<T>(samples, inputs);
}

template <class T>
void hash_rows()
{
    const auto samples = make_samples<T>();
    const auto each = [&](const char* name, operation<T> call) { hash_each(samples, name_of<T>, name, call); };
    using O = operands<T>;

    hash_elementwise<T>(samples, name_of<T>);
    each("exp_vjp", [](O& o) { api::exp_vjp(o.out, o.a, o.b); });
    each("tanh_vjp", [](O& o) { api::tanh_vjp(o.out, o.a, o.b); });
    each("sigmoid_vjp", [](O& o) { api::sigmoid_vjp(o.out, o.a, o.b); });
    each("silu_vjp", [](O& o) { api::silu_vjp(o.out, o.a, o.b); });
    each("gelu_vjp", [](O& o) { api::gelu_vjp(o.out, o.a, o.b); });
    each("silu_derivative_vjp", [](O& o) { api::silu_derivative_vjp(o.out, o.a, o.b); });
    each("gelu_tanh_vjp", [](O& o) { api::gelu_tanh_vjp(o.out, o.a, o.b); });
    each("relu_vjp", [](O& o) { api::relu_vjp(o.out, o.a, o.b); });
    each("softmax", [](O& o) { api::softmax(o.out, o.a); });
    each("tanh_vjp_from_output", [](O& o) { api::tanh_vjp_from_output(o.out, o.a, o.b); });
    each("box_muller", [](O& o) { api::box_muller(o.out, o.a, o.b); });
    each("residual_add", [](O& o) { api::residual_add(o.out, o.a, o.b, T(0.7071067811865476)); });
    each("softmax_vjp", [](O& o) { api::softmax_vjp(o.out, o.a, o.b); });
    each("residual_add_per_channel", [](O& o) { api::residual_add(o.out, o.a, o.b, api::per_channel(o.w)); });
    each("residual_add_vjp", [](O& o) {
        std::vector<T> df(o.out.count * o.out.columns);
        api::residual_add_vjp(rows{df.data(), o.out.count, o.out.columns}, o.out, o.dw, o.a, o.b,
                              api::per_channel(o.w));
    });
    each("residual_add_jvp",
         [](O& o) { api::residual_add_jvp(o.out, o.b, o.a, o.b, api::per_channel(o.w), api::per_channel(o.w)); });
    each("scale", [](O& o) { api::scale(o.out, o.a, T(0.7071067811865476)); });
    each("rms_norm", [](O& o) { api::rms_norm(o.out, o.a, o.w, {.eps = o.eps}); });
    each("zero_centered_rms_norm", [](O& o) { api::zero_centered_rms_norm(o.out, o.a, o.w, {.eps = o.eps}); });
    each("rms_norm_without_weight", [](O& o) { api::rms_norm(o.out, o.a, api::no_weight, {.eps = o.eps}); });
    each("rms_norm_vjp", [](O& o) { api::rms_norm_vjp(o.out, o.dw, o.a, o.w, o.b, {.eps = o.eps}); });
    each("zero_centered_rms_norm_vjp",
         [](O& o) { api::rms_norm_vjp(o.out, o.dw, o.a, api::zero_centered(o.w), o.b, {.eps = o.eps}); });
    each("rms_norm_without_weight_vjp",
         [](O& o) { api::rms_norm_vjp(o.out, o.dw, o.a, api::no_weight, o.b, {.eps = o.eps}); });
    each("rms", [](O& o) { o.result = api::rms(o.a); });
    // the gradient, and the derivative along it
    using number = T;
#define RESIDUA_HASH_FORM(name, ...)                                    \
    each(#name "_vjp", [](O& o) {                                       \
        std::vector<T> dup(o.out.count* o.out.columns);                 \
        const rows<T> second{dup.data(), o.out.count, o.out.columns};   \
        api::name##_vjp(o.out, second, o.a, o.b, o.b, {__VA_ARGS__});   \
        api::name##_jvp(o.out, o.a, o.b, second, o.out, {__VA_ARGS__}); \
    });
    RESIDUA_HASH_FORMS(RESIDUA_HASH_FORM)
#undef RESIDUA_HASH_FORM
    each("dot", [](O& o) { o.result = api::dot(o.a, o.b); });
    hash_packed<T>(samples, name_of<T>);
}

/// The same numbers, rounded to a type.
template <class T, class From>
std::vector<T> in_type(const std::vector<From>& x)
{
    std::vector<T> all;
    for (const From e : x) all.push_back(static_cast<T>(e));
    return all;
}

/// Operations on several residual streams: with numbers of every kind, so many streams, and rows so long.
template <class T>
struct stream_sample {
    static constexpr std::size_t tokens = 2;
    std::size_t streams, columns;
    std::vector<T> x, f, dy, numbers, matrix, gates;

    stream_sample(kind k, std::size_t s, std::size_t n, random_bits& random)
        : streams{s},
          columns{n},
          x{stored(k, tokens * s * n, random)},
          f{stored(k, tokens * n, random)},
          dy{stored(kind::moderate, tokens * s * n, random)},
          numbers{stored(k == kind::special ? k : kind::moderate, tokens * s * (2 + s), random)},
          matrix{stored(kind::moderate, tokens * s * s, random)},
          gates{stored(kind::moderate, tokens * s, random)}
    {
    }
    static std::vector<T> stored(kind k, std::size_t n, random_bits& random)
    {
        return in_type<T>(elements<wide_type<T>>(k, n, random));
    }
    /// All of it as rows, so many for each token.
    static rows<const T> of(const std::vector<T>& v, std::size_t per_token)
    {
        return {v.data(), tokens * per_token, v.size() / (tokens * per_token)};
    }
    static rows<T> of(std::vector<T>& v, std::size_t per_token)
    {
        return {v.data(), tokens * per_token, v.size() / (tokens * per_token)};
    }
};

template <class T>
void hash_mixing(hasher& h, const stream_sample<T>& in)
{
    const std::size_t s = in.streams;
    std::vector<T> y(in.x.size()), dc(in.matrix.size()), read(in.f.size()), df(in.f.size()), dg(in.gates.size());
    std::vector<residua::bfloat16> narrow(in.x.size());
    api::mix_streams(in.of(y, s), in.of(in.matrix, 1), in.of(in.x, s));
    h.add(y);
    api::mix_streams(rows{narrow.data(), in.tokens * s, in.columns}, in.of(in.matrix, 1), in.of(in.x, s));
    for (const auto e : narrow) h.add(static_cast<float>(e));
    api::mix_streams_vjp(in.of(y, s), in.of(dc, 1), in.of(in.matrix, 1), in.of(in.x, s), in.of(in.dy, s));
    h.add(y);
    h.add(dc);
    api::mix_streams_jvp(in.of(y, s), in.of(in.matrix, 1), in.of(in.x, s), in.of(in.matrix, 1), in.of(in.dy, s));
    h.add(y);
    api::mhc_read(in.of(read, 1), in.of(in.x, s), in.of(in.gates, 1));
    h.add(read);
    api::mhc_write(in.of(y, s), in.of(in.x, s), in.of(in.f, 1), in.of(in.gates, 1), in.of(in.matrix, 1));
    h.add(y);
    api::mhc_write_vjp(in.of(y, s), in.of(df, 1), in.of(dg, 1), in.of(dc, 1), in.of(in.x, s), in.of(in.f, 1),
                       in.of(in.gates, 1), in.of(in.matrix, 1), in.of(in.dy, s));
    h.add(y);
    h.add(df);
    h.add(dg);
    h.add(dc);
}

template <class T>
void hash_mhc(hasher& h, const stream_sample<T>& in)
{
    const std::size_t numbers = in.numbers.size() / in.tokens;
    const std::vector<T> a{T(0.5F), T(1.0F), T(2.0F)};
    const std::vector<T> b(in.numbers.begin(), in.numbers.begin() + static_cast<std::ptrdiff_t>(numbers));
    std::vector<T> pre(in.gates.size()), post(pre), comb(in.matrix.size()), dm(in.numbers.size()), da(3),
        db(numbers);
    const auto add = [&] {
        for (const auto* const v : {&pre, &post, &comb, &dm, &da, &db}) h.add(*v);
    };
    api::mhc_coefficients(in.of(pre, 1), in.of(post, 1), in.of(comb, 1), in.of(in.numbers, 1), a, b, {.eps = 1e-6});
    add();
    api::mhc_coefficients_vjp(in.of(dm, 1), da, db, in.of(in.numbers, 1), a, b, in.of(in.gates, 1),
                              in.of(in.gates, 1), in.of(in.matrix, 1), {.eps = 1e-6});
    add();
    api::mhc_coefficients_jvp(in.of(pre, 1), in.of(post, 1), in.of(comb, 1), in.of(in.numbers, 1), a, b,
                              in.of(dm, 1), da, db, {.eps = 1e-6});
    add();
}

template <class T>
void hash_gated_residual(hasher& h, const stream_sample<T>& in)
{
    const std::size_t s = in.streams;
    std::vector<T> y(in.f.size()), dn(in.x.size()), dg(in.x.size()), shared(in.f.size()), dm(in.gates.size());
    api::gated_read(in.of(y, 1), in.of(in.x, s), in.of(in.dy, s));
    h.add(y);
    api::gated_read_vjp(in.of(dn, s), in.of(dg, s), in.of(in.dy, s), in.of(in.x, s), in.of(y, 1));
    h.add(dn);
    h.add(dg);
    api::gated_read_vjp(in.of(dn, s), in.of(shared, 1), in.of(in.x, s), in.of(in.f, 1), in.of(y, 1));
    h.add(dn);
    h.add(shared);
    api::gated_read_jvp(in.of(y, 1), in.of(in.x, s), in.of(in.dy, s), in.of(dn, s), in.of(dg, s));
    h.add(y);
    api::gated_write(in.of(dn, s), in.of(in.x, s), in.of(in.f, 1), in.of(in.gates, 1));
    h.add(dn);
    api::gated_write_vjp(in.of(dn, s), in.of(y, 1), in.of(dm, 1), in.of(in.f, 1), in.of(in.gates, 1),
                         in.of(in.dy, s));
    h.add(y);
    h.add(dm);
    api::gated_write_jvp(in.of(dn, s), in.of(in.f, 1), in.of(in.gates, 1), in.of(in.dy, s), in.of(y, 1),
                         in.of(dm, 1));
    h.add(dn);
}

template <class T>
void hash_attn_res(hasher& h, const stream_sample<T>& in)
{
    const std::size_t s = in.streams;
    const auto q = in.of(in.f, 1).row(0);
    std::vector<T> out(in.columns), p(in.tokens * s), dk(in.x.size()), dq(in.columns);
    api::attn_res(out, p, in.of(in.x, s), q, {.eps = 1e-6});
    h.add(out);
    h.add(p);
    api::attn_res_vjp(in.of(dk, s), dq, in.of(in.x, s), q, p, in.of(in.dy, s).row(0), {.eps = 1e-6});
    h.add(dk);
    h.add(dq);
    api::attn_res_jvp(out, in.of(in.x, s), q, p, in.of(in.dy, s), dq, {.eps = 1e-6});
    h.add(out);
}

template <class T>
void hash_attn_res_of_tokens(hasher& h, const stream_sample<T>& in)
{
    const std::size_t s = in.streams;
    const auto q = in.of(in.f, 1).row(0);
    std::vector<T> out(in.f.size()), p(in.tokens * s), dk(in.x.size()), dq(q.data, q.data + q.columns);
    api::attn_res(in.of(out, 1), in.of(p, 1), in.of(in.x, s), q, {.eps = 1e-6});
    h.add(out);
    h.add(p);
    api::attn_res_vjp(in.of(dk, s), dq, in.of(in.x, s), q, in.of(p, 1), in.of(in.f, 1),
                      {.eps = 1e-6, .dq = residua::weight_gradient::accumulate});
    h.add(dk);
    h.add(dq);
    api::attn_res_jvp(in.of(out, 1), in.of(in.x, s), q, in.of(p, 1), in.of(in.dy, s), dq, {.eps = 1e-6});
    h.add(out);
}

/// What the others leave out: derivatives of mHC's streams, coefficients that all tokens share, a gradient that is added up.
template <class T>
void hash_more_streams(hasher& h, const stream_sample<T>& in)
{
    const std::size_t s = in.streams;
    const auto shared = in.of(in.matrix, 1).row(0);
    std::vector<T> y(in.x.size()), read(in.f.size()), dg(in.gates.size());
    std::vector<T> dc(in.matrix.begin(), in.matrix.begin() + static_cast<std::ptrdiff_t>(s * s));
    api::mhc_read_vjp(in.of(y, s), in.of(dg, 1), in.of(in.x, s), in.of(in.gates, 1), in.of(in.f, 1));
    h.add(y);
    h.add(dg);
    api::mhc_read_jvp(in.of(read, 1), in.of(in.x, s), in.of(in.gates, 1), in.of(in.dy, s), in.of(dg, 1));
    h.add(read);
    api::mhc_write_jvp(in.of(y, s), in.of(in.x, s), in.of(in.f, 1), in.of(in.gates, 1), in.of(in.matrix, 1),
                       in.of(in.dy, s), in.of(read, 1), in.of(dg, 1), in.of(in.matrix, 1));
    h.add(y);
    api::mhc_write(in.of(y, s), in.of(in.x, s), in.of(in.f, 1), in.of(in.gates, 1).row(0), shared);
    h.add(y);
    api::mix_streams_vjp(in.of(y, s), dc, shared, in.of(in.x, s), in.of(in.dy, s),
                         {.dc = residua::weight_gradient::accumulate});
    h.add(y);
    h.add(dc);
}
/// The other gradients that are added up.
template <class T>
void hash_more_coefficients(hasher& h, const stream_sample<T>& in)
{
    constexpr auto accumulate = residua::weight_gradient::accumulate;
    const std::size_t s = in.streams;
    std::vector<T> a{T(0.5F), T(1.0F), T(2.0F)}, b(in.of(in.numbers, 1).columns, T(0.25F)), dm(in.numbers.size());
    auto da = a, db = b;
    api::mhc_coefficients_vjp(in.of(dm, 1), da, db, in.of(in.numbers, 1), a, b, in.of(in.gates, 1),
                              in.of(in.gates, 1), in.of(in.matrix, 1), {.eps = 1e-6, .da_db = accumulate});
    const auto q = in.of(in.f, 1).row(0);
    const auto p = in.of(in.gates, 1).row(0);
    std::vector<T> dk(in.x.size()), dq(q.data, q.data + q.columns);
    api::attn_res_vjp(in.of(dk, s).part(0, s), dq, in.of(in.x, s).part(0, s), q, p, in.of(in.dy, s).row(0),
                      {.eps = 1e-6, .dq = accumulate});
    for (const auto* const v : {&dm, &da, &db, &dk, &dq}) h.add(*v);
}

template <class T>
void hash_streams()
{
    hasher mixing, mhc, gated, attention, more;
    random_bits random{20151213};
    for (const std::size_t s : {1U, 2U, 4U, 7U, 16U}) {
        for (const std::size_t n : {1U, 7U, 33U, 600U}) {
            for (const auto k : {kind::special, kind::moderate, kind::of_any_size, kind::large, kind::small}) {
                const stream_sample<T> in{k, s, n, random};
                hash_mixing(mixing, in);
                if (n == 7) hash_mhc(mhc, in);
                hash_gated_residual(gated, in);
                hash_attn_res(attention, in);
                hash_more_streams(more, in);
                if (n == 7) hash_more_coefficients(more, in);
            }
        }
    }
    hasher of_tokens;
    for (const std::size_t s : {1U, 5U, 129U, 300U}) {
        for (const auto k : {kind::special, kind::moderate, kind::of_any_size, kind::large, kind::small}) {
            hash_attn_res_of_tokens(of_tokens, stream_sample<T>{k, s, 33, random});
        }
    }
    add_line<T>("streams", mixing);
    add_line<T>("mhc_coefficients", mhc);
    add_line<T>("gated_residual", gated);
    add_line<T>("attn_res", attention);
    add_line<T>("attn_res_of_tokens", of_tokens);
    add_line<T>("mhc_streams_and_accumulated", more);
}

/// What the norms are called with: elements of S, all numbers of a sample.
template <class S>
struct norm_operands {
    using T = wide_type<S>;
    std::size_t count, columns, stride;
    std::vector<S> a, b, w, y, z;  // z begins as b
    std::vector<T> dw, db;
    std::vector<double> more;  // what has another shape or type
    T eps;
    int how;  // which of an operation's options
    rows<S> out, second;
    rows<const S> x, v;

    template <class From>
    norm_operands(const sample<From>& s, int which)
        : count{s.count},
          columns{s.columns},
          stride{s.stride},
          a(in_type<S>(s.a)),
          b(in_type<S>(s.b)),
          w(in_type<S>(s.w)),
          y(a.size(), static_cast<S>(-7.0F)),
          z{b},
          dw(s.w.begin(), s.w.end()),
          db{dw},
          more{},
          eps{s.eps},
          how{which},
          out{view(y)},
          second{view(z)},
          x{view(a)},
          v{view(b)}
    {
    }
    rows<S> view(std::vector<S>& of) const
    {
        return {of.data(), count, columns, static_cast<std::ptrdiff_t>(stride)};
    }
    residua::norm_gate gate() const { return static_cast<residua::norm_gate>(how % 2); }
    residua::gate_order order() const { return static_cast<residua::gate_order>(how / 2); }
};

template <class S>
void hash_norm(const std::vector<sample<wide_type<S>>>& samples, std::string name, void (*call)(norm_operands<S>&),
               int how = 0)
{
    hasher h;
    for (const auto& s : samples) {
        norm_operands<S> o{s, how};
        call(o);
        h.add(o.y);
        h.add(o.z);
        h.add(o.dw);
        h.add(o.db);
        h.add(o.more);
    }
    if (sizeof(S) == 2) name += std::is_same_v<S, residua::float16> ? "_of_float16" : "_of_16_bits";
    add_line<wide_type<S>>(name.c_str(), h);
}

template <class S>
void hash_norms()
{
    using T = wide_type<S>;
    using O = norm_operands<S>;
    const auto samples = make_samples<T>();
    const auto each = [&](const std::string& name, void (*call)(O&), int how = 0) {
        hash_norm<S>(samples, name, call, how);
    };
    using api::zero_centered;
    each("rms_norm_before_weight", [](O& o) {
        api::rms_norm(o.out, o.x, o.w, {.eps = o.eps, .rounding = residua::norm_rounding::before_weight});
    });
    each("rms_norm_jvp", [](O& o) { api::rms_norm_jvp(o.out, o.x, zero_centered(o.w), o.v, {.eps = o.eps}); });
    each("rms_norm_jvp_along_weight",
         [](O& o) { api::rms_norm_jvp(o.out, o.x, zero_centered(o.w), o.v, o.v.row(0), {.eps = o.eps}); });
    each("split_rms_norm", [](O& o) {
        const residua::square_sum parts[] = {api::sum_of_squares(o.x.row(0)), api::sum_of_squares(o.v.row(0)),
                                             api::sum_of_squares(o.w)};
        const auto all = api::combine(parts);
        api::rms_norm_apply(o.out.row(0), o.x.row(0), o.w, all, 3 * o.columns, {.eps = o.eps});
        o.db[0] = static_cast<T>(all.exponent);
    });
    each("split_rms_norm_vjp", [](O& o) {
        const auto x = o.x.row(0);
        const auto dy = o.v.row(0);
        const residua::square_sum squares[] = {api::sum_of_squares(x), api::sum_of_squares(o.w)};
        const auto all = api::combine(squares);
        const std::size_t n = 2 * o.columns;
        const residua::product_sum products[] = {
            api::rms_norm_vjp_sum(x, o.w, dy, all, n, {.eps = o.eps}),
            api::rms_norm_vjp_sum(o.w, zero_centered(o.w), x, all, n, {.eps = o.eps})};
        const auto sum = api::combine(products);
        api::rms_norm_apply_vjp(o.out.row(0), o.dw, x, o.w, dy, all, sum, n, {.eps = o.eps});
        api::rms_norm_apply_vjp(o.second.row(0), o.w, zero_centered(o.w), x, all, sum, n, {.eps = o.eps});
        o.db[0] = static_cast<T>(sum.value);
    });
    each("split_rms_norm_jvp", [](O& o) {
        const auto x = o.x.row(0);
        const auto tx = o.v.row(0);
        const auto all = api::sum_of_squares(x);
        const auto sum = api::rms_norm_jvp_sum(x, tx, all, o.columns, {.eps = o.eps});
        api::rms_norm_apply_jvp(o.out.row(0), x, o.w, tx, all, sum, o.columns, {.eps = o.eps});
    });
    each("split_rms_norm_jvp_along_weight", [](O& o) {
        const auto x = o.x.row(0);
        const auto tx = o.v.row(0);
        const auto all = api::sum_of_squares(x);
        const auto sum = api::rms_norm_jvp_sum(x, tx, all, o.columns, {.eps = o.eps});
        api::rms_norm_apply_jvp(o.out.row(0), x, o.w, tx, x, all, sum, o.columns, {.eps = o.eps});
    });
    for (const auto which : {residua::norm_of::stored, residua::norm_of::exact}) {
        each(
            which == residua::norm_of::stored ? "add_rms_norm" : "add_rms_norm_of_exact",
            [](O& o) {
                api::add_rms_norm(o.out, o.second, o.x, o.w,
                                  {.eps = o.eps, .scale = 0.75, .norm_of = static_cast<residua::norm_of>(o.how)});
            },
            static_cast<int>(which));
    }
    each("add_rms_norm_vjp", [](O& o) {
        api::add_rms_norm_vjp(o.out, o.second, o.dw, o.x, o.w, o.x, o.v, {.eps = o.eps, .scale = 0.75});
    });
    each("add_rms_norm_jvp",
         [](O& o) { api::add_rms_norm_jvp(o.out, o.second, o.x, o.w, o.v, {.eps = o.eps, .scale = 0.75}); });
    each("add_rms_norm_jvp_along_weight", [](O& o) {
        api::add_rms_norm_jvp(o.out, o.second, o.x, o.w, o.v, o.x.row(0), {.eps = o.eps, .scale = 0.75});
    });
    for (int how = 0; how < 4; ++how) {
        const std::string name = how % 2 == 0 ? "silu" : "sigmoid";
        const std::string first = how < 2 ? "_norm_first" : "_gate_first";
        each(
            "gated_rms_norm_" + name + first,
            [](O& o) {
                api::gated_rms_norm(o.out, o.x, o.v, o.w, {.eps = o.eps, .gate = o.gate(), .order = o.order()});
            },
            how);
        each(
            "gated_rms_norm_" + name + first + "_before_weight",
            [](O& o) {
                api::gated_rms_norm(o.out, o.x, o.v, o.w,
                                    {.eps = o.eps,
                                     .gate = o.gate(),
                                     .order = o.order(),
                                     .rounding = residua::norm_rounding::before_weight});
            },
            how);
        each(
            "gated_rms_norm_" + name + first + "_vjp",
            [](O& o) {
                api::gated_rms_norm_vjp(o.out, o.second, o.dw, o.x, o.v, o.w, o.v,
                                        {.eps = o.eps, .gate = o.gate(), .order = o.order()});
            },
            how);
        each(
            "gated_rms_norm_" + name + first + "_jvp",
            [](O& o) {
                api::gated_rms_norm_jvp(o.out, o.x, o.v, o.w, o.v, o.x,
                                        {.eps = o.eps, .gate = o.gate(), .order = o.order()});
            },
            how);
        each(
            "gated_rms_norm_" + name + first + "_jvp_along_weight",
            [](O& o) {
                api::gated_rms_norm_jvp(o.out, o.x, o.v, o.w, o.v, o.x, o.v.row(0),
                                        {.eps = o.eps, .gate = o.gate(), .order = o.order()});
            },
            how);
    }
    each("layer_norm", [](O& o) { api::layer_norm(o.out, o.x, o.w, o.w, {.eps = o.eps}); });
    each("layer_norm_without_weight_and_bias",
         [](O& o) { api::layer_norm(o.out, o.x, api::no_weight, api::no_bias, {.eps = o.eps}); });
    each("layer_norm_vjp",
         [](O& o) { api::layer_norm_vjp(o.out, o.dw, o.db, o.x, zero_centered(o.w), o.v, {.eps = o.eps}); });
    each("layer_norm_jvp", [](O& o) { api::layer_norm_jvp(o.out, o.x, o.w, o.v, {.eps = o.eps}); });
    each("layer_norm_jvp_along_weight",
         [](O& o) { api::layer_norm_jvp(o.out, o.x, zero_centered(o.w), o.v, o.v.row(0), {.eps = o.eps}); });
    each("layer_norm_jvp_along_weight_and_bias",
         [](O& o) { api::layer_norm_jvp(o.out, o.x, o.w, o.v, o.v.row(0), o.w, {.eps = o.eps}); });
}

/// What has its lines of float and double in hash_rows.
template <class S>
void hash_rows_of_16_bits(const std::vector<sample<float>>& samples)
{
    using O = norm_operands<S>;
    using api::no_weight;
    using api::per_channel;
    const auto each = [&](const std::string& name, void (*call)(O&), int how = 0) {
        hash_norm<S>(samples, name, call, how);
    };

    each("softmax", [](O& o) { api::softmax(o.out, o.x); });
    each("softmax_vjp", [](O& o) { api::softmax_vjp(o.out, o.x, o.v); });
    each("tanh_vjp_from_output", [](O& o) { api::tanh_vjp_from_output(o.out, o.x, o.v); });
    each("box_muller", [](O& o) { api::box_muller(o.out, o.x, o.v); });
    each("scale", [](O& o) { api::scale(o.out, o.x, 0.75F); });
    each("residual_add", [](O& o) { api::residual_add(o.out, o.x, o.v, 0.75F); });
    each("residual_add_per_channel", [](O& o) { api::residual_add(o.out, o.x, o.v, per_channel(o.w)); });
    each("residual_add_jvp",
         [](O& o) { api::residual_add_jvp(o.out, o.v, o.x, o.v, per_channel(o.w), per_channel(o.w)); });
    each("rms_norm", [](O& o) { api::rms_norm(o.out, o.x, o.w, {.eps = o.eps}); });
    each("zero_centered_rms_norm", [](O& o) { api::zero_centered_rms_norm(o.out, o.x, o.w, {.eps = o.eps}); });
    each("rms_norm_without_weight", [](O& o) { api::rms_norm(o.out, o.x, no_weight, {.eps = o.eps}); });
    each("rms_norm_vjp", [](O& o) { api::rms_norm_vjp(o.out, o.dw, o.x, o.w, o.v, {.eps = o.eps}); });
    each("rms", [](O& o) { o.dw[0] = api::rms(o.x); });
}

/// What works on rows, and has no line above.
template <class S>
void hash_more_rows()
{
    using T = wide_type<S>;
    using O = norm_operands<S>;
    using api::no_weight;
    using api::per_channel;
    using api::zero_centered;
    constexpr auto accumulate = residua::weight_gradient::accumulate;
    constexpr auto before_weight = residua::norm_rounding::before_weight;
    const auto samples = make_samples<T>();
    const auto each = [&](const std::string& name, void (*call)(O&), int how = 0) {
        hash_norm<S>(samples, name, call, how);
    };

    each("convert", [](O& o) {
        const auto to = [&]<class To>(To) {
            std::vector<To> y(o.count * o.columns);
            api::convert(rows{y.data(), o.count, o.columns}, o.x);
            for (const To e : y) o.more.push_back(static_cast<double>(static_cast<wide_type<To>>(e)));
        };
        to(float{});
        to(double{});
        to(residua::bfloat16{});
        to(residua::float16{});
    });
    each("softmax_jvp", [](O& o) { api::softmax_jvp(o.out, o.x, o.v); });
    each("scale_vjp", [](O& o) { api::scale_vjp(o.out, o.x, T(0.75)); });
    each("scale_jvp", [](O& o) { api::scale_jvp(o.out, o.x, T(0.75)); });
    each("residual_add_vjp_of_one_scale", [](O& o) { api::residual_add_vjp(o.out, o.second, o.v, T(0.75)); });
    each("residual_add_vjp_without_ds",
         [](O& o) { api::residual_add_vjp(o.out, o.second, o.v, per_channel(o.w)); });
    each("residual_add_vjp_accumulated", [](O& o) {
        api::residual_add_vjp(o.out, o.second, o.dw, o.x, o.v, per_channel(o.w), {.ds = accumulate});
    });
    each("residual_add_jvp_of_one_scale", [](O& o) { api::residual_add_jvp(o.out, o.x, o.v, T(0.75)); });
    each("zero_centered_rms_norm_before_weight",
         [](O& o) { api::zero_centered_rms_norm(o.out, o.x, o.w, {.eps = o.eps, .rounding = before_weight}); });
    each("rms_norm_vjp_accumulated", [](O& o) {
        api::rms_norm_vjp(o.out, o.dw, o.x, zero_centered(o.w), o.v, {.eps = o.eps, .dw = accumulate});
    });
    each("rms_norm_vjp_without_dw", [](O& o) { api::rms_norm_vjp(o.out, o.x, no_weight, o.v, {.eps = o.eps}); });
    each("rms_norm_jvp_without_weight",
         [](O& o) { api::rms_norm_jvp(o.out, o.x, no_weight, o.v, {.eps = o.eps}); });
    each("split_rms_norm_of_rows", [](O& o) {
        std::vector<residua::square_sum> squares(o.count);
        std::vector<residua::product_sum> products(o.count);
        const auto w = zero_centered(o.w);
        api::sum_of_squares(squares, o.x);
        api::rms_norm_apply(o.out, o.x, w, squares, o.columns, {.eps = o.eps, .rounding = before_weight});
        api::rms_norm_vjp_sum(products, o.x, w, o.v, squares, o.columns, {.eps = o.eps});
        api::rms_norm_apply_vjp(o.second, o.dw, o.x, w, o.v, squares, products, o.columns,
                                {.eps = o.eps, .dw = accumulate});
    });
    each("split_rms_norm_jvp_of_rows", [](O& o) {
        std::vector<residua::square_sum> squares(o.count);
        std::vector<residua::product_sum> products(o.count);
        api::sum_of_squares(squares, o.x);
        api::rms_norm_jvp_sum(products, o.x, o.v, squares, o.columns, {.eps = o.eps});
        api::rms_norm_apply_jvp(o.out, o.x, no_weight, o.v, squares, products, o.columns, {.eps = o.eps});
    });
    each("add_rms_norm_before_weight", [](O& o) {
        api::add_rms_norm(o.out, o.second, o.x, zero_centered(o.w), {.eps = o.eps, .rounding = before_weight});
    });
    each("add_rms_norm_vjp_accumulated", [](O& o) {
        api::add_rms_norm_vjp(o.out, o.second, o.dw, o.x, zero_centered(o.w), o.x, o.v,
                              {.eps = o.eps, .dw = accumulate});
    });
    each("add_rms_norm_vjp_without_dw",
         [](O& o) { api::add_rms_norm_vjp(o.out, o.second, o.x, no_weight, o.x, o.v, {.eps = o.eps}); });
    for (const int how : {0, 2}) {
        const std::string name = how == 0 ? "gated_rms_norm_norm_first" : "gated_rms_norm_gate_first";
        each(
            name + "_without_weight",
            [](O& o) { api::gated_rms_norm(o.out, o.x, o.v, no_weight, {.eps = o.eps, .order = o.order()}); }, how);
        each(
            name + "_vjp_accumulated",
            [](O& o) {
                api::gated_rms_norm_vjp(o.out, o.second, o.dw, o.x, o.v, zero_centered(o.w), o.v,
                                        {.eps = o.eps, .order = o.order(), .dw = accumulate});
            },
            how);
        each(
            name + "_vjp_without_dw",
            [](O& o) {
                api::gated_rms_norm_vjp(o.out, o.second, o.x, o.v, no_weight, o.v,
                                        {.eps = o.eps, .order = o.order()});
            },
            how);
    }
    each("zero_centered_layer_norm",
         [](O& o) { api::layer_norm(o.out, o.x, zero_centered(o.w), o.w, {.eps = o.eps}); });
    each("layer_norm_vjp_accumulated",
         [](O& o) { api::layer_norm_vjp(o.out, o.dw, o.db, o.x, o.w, o.v, {.eps = o.eps, .dw = accumulate}); });
    each("layer_norm_vjp_without_db",
         [](O& o) { api::layer_norm_vjp(o.out, o.dw, o.x, o.w, o.v, {.eps = o.eps}); });
    each("layer_norm_vjp_without_dw",
         [](O& o) { api::layer_norm_vjp(o.out, o.x, no_weight, o.v, {.eps = o.eps}); });
    if constexpr (sizeof(S) == 2) hash_rows_of_16_bits<S>(samples);
}

template <class T>
void hash_matrices()
{
    hasher product;
    hasher transposed;
    random_bits random{20151211};
    constexpr std::size_t tokens = 2;
    for (const std::size_t m : {1U, 3U, 18U}) {
        for (const std::size_t n : {1U, 5U, 8U, 16U, 33U, 64U, 70U, 131U, 1000U}) {
            for (const auto k : {kind::special, kind::moderate, kind::of_any_size, kind::small}) {
                const auto matrix = elements<T>(k, m * (n + 2), random);
                const auto x = elements<T>(k == kind::special ? kind::moderate : k, tokens * n, random);
                const auto g = elements<T>(kind::moderate, tokens * m, random);
                const rows<const T> w{matrix.data(), m, n, static_cast<std::ptrdiff_t>(n + 2)};
                std::vector<T> y(tokens * m);
                std::vector<T> dx(tokens * n);
                api::matvec(rows{y.data(), tokens, m}, w, rows{x.data(), tokens, n});
                api::matvec_transposed(rows{dx.data(), tokens, n}, w, rows{g.data(), tokens, m});
                product.add(y);
                transposed.add(dx);
            }
        }
    }
    add_line<T>("matvec", product);
    add_line<T>("matvec_transposed", transposed);
}

/// A stack of tanh sublayers, and the memory that it works in.
template <class T>
struct stack {
    static constexpr std::size_t width = 10;
    static constexpr std::size_t inner = 19;
    std::size_t tokens;
    std::vector<T> w1, w2, hidden, shared, stream, scratch, gradient;
    std::vector<api::probe::tanh_sublayer<T>> sublayers;

    stack(std::size_t layers, std::size_t tokens_, random_bits& random)
        : tokens{tokens_},
          w1{weights(layers * inner * width, random)},
          w2{weights(layers * inner * width, random)},
          hidden(layers * tokens * inner),
          shared(tokens * inner),
          stream(elements<T>(kind::moderate, (layers + 1) * tokens * width, random)),
          scratch(2 * tokens * width),
          gradient(elements<T>(kind::moderate, tokens * width, random))
    {
        for (std::size_t l = 0; l < layers; ++l) {
            sublayers.push_back({{w1.data() + l * inner * width, inner, width},
                                 {w2.data() + l * inner * width, width, inner},
                                 {hidden.data() + l * tokens * inner, tokens, inner},
                                 {shared.data(), tokens, inner}});
        }
    }
    rows<T> stream_rows() { return {stream.data(), stream.size() / width, width}; }
    rows<T> scratch_rows() { return {scratch.data(), 2 * tokens, width}; }
    std::span<api::probe::tanh_sublayer<T>> layers() { return sublayers; }

    static std::vector<T> weights(std::size_t n, random_bits& random)
    {
        std::vector<T> list(n);
        for (T& x : list) x = std::bit_cast<T>(random.between_powers<T>(-5, -2));
        return list;
    }
};

template <class T>
void hash_probe()
{
    namespace probe = api::probe;
    hasher forward;
    hasher backward;
    hasher split;
    hasher path;
    hasher spread;
    random_bits random{20151212};
    const auto run = [&](std::size_t layers, std::size_t tokens, const probe::wiring<T>& how) {
        stack<T> s{layers, tokens, random};
        probe::forward(s.stream_rows(), s.layers(), how, s.scratch_rows());
        forward.add(s.stream);

        std::vector<T> scratch((tokens + 1) * s.width);
        const rows<const T> top = s.stream_rows().part(layers * tokens, tokens);
        const auto measured = probe::measure_spread(top, rows{scratch.data(), tokens + 1, s.width});
        spread.add(measured.relative_distance);
        spread.add(measured.mean_cosine);

        const auto gradient = s.gradient;
        const rows<T> g{s.gradient.data(), tokens, s.width};
        std::vector<probe::magnitude> sizes(layers + 1);
        probe::backward(g, rows<const T>{s.stream_rows()}, s.layers(), how, s.scratch_rows(), std::span{sizes});
        backward.add(s.gradient);
        for (const auto& size : sizes) {
            backward.add(size.mantissa);
            backward.add(static_cast<double>(size.exponent));
            backward.add((size / sizes.back()).log10());
        }
        if (layers > 10) return;

        std::vector<T> parts(s.stream.size());
        std::copy(gradient.begin(), gradient.end(), parts.begin());
        probe::split_by_crossings(rows{parts.data(), (layers + 1) * tokens, s.width},
                                  rows<const T>{s.stream_rows()}, s.layers(), how, s.scratch_rows());
        split.add(parts);

        bool crossed[10];
        for (std::size_t l = 0; l < layers; ++l) crossed[l] = l % 3 != 1;
        s.gradient = gradient;
        probe::along_path(rows{s.gradient.data(), tokens, s.width}, rows<const T>{s.stream_rows()}, s.layers(),
                          std::span<const bool>{crossed, layers}, how, s.scratch_rows());
        path.add(s.gradient);
    };
    for (int wiring = 0; wiring < 8; ++wiring) {
        probe::wiring<T> how;
        how.residual = (wiring & 1) != 0;
        how.pre_norm = (wiring & 2) != 0;
        if ((wiring & 4) != 0) how.write_scale = T(0.4472135954999579);
        run(5, 3, how);
    }
    run(300, 1, {});  // its gradient leaves the range of T
    add_line<T>("probe::forward", forward);
    add_line<T>("probe::measure_spread", spread);
    add_line<T>("probe::backward", backward);
    add_line<T>("probe::split_by_crossings", split);
    add_line<T>("probe::along_path", path);

    hasher attention;
    constexpr std::size_t tokens = 9;
    constexpr std::size_t width = 12;
    constexpr std::size_t head = 5;
    const auto weights = stack<T>::weights(3 * width * width, random);
    const auto x = elements<T>(kind::moderate, tokens * width, random);
    std::vector<T> memory(2 * tokens * head + tokens * width + tokens * tokens);
    std::vector<T> y(tokens * width);
    T* const q = memory.data();
    const probe::attention_sublayer<T> sublayer{{weights.data(), head, width},
                                                {weights.data() + width * width, head, width},
                                                {weights.data() + 2 * width * width, width, width},
                                                {q, tokens, head},
                                                {q + tokens * head, tokens, head},
                                                {q + 2 * tokens * head, tokens, width},
                                                {q + 2 * tokens * head + tokens * width, tokens, tokens}};
    sublayer.forward(rows{y.data(), tokens, width}, rows{x.data(), tokens, width});
    attention.add(y);
    add_line<T>("probe::attention_sublayer", attention);
}

template <class T>
void hash_all()
{
    hash_rows<T>();
    hash_streams<T>();
    hash_norms<T>();
    if constexpr (std::is_same_v<T, float>) hash_norms<residua::bfloat16>();
    hash_matrices<T>();
    hash_probe<T>();
    hash_more_rows<T>();
    if constexpr (std::is_same_v<T, float>) {
        hash_more_rows<residua::float16>();
        hash_norms<residua::float16>();
        hash_streams<residua::bfloat16>();
    }
}

/// The patterns of 16 bits are few; others come last, so that a brief report is the beginning of a whole one.
void make_report(bool brief)
{
    report.clear();
    hash_all<float>();
    hash_all<double>();
    hash_patterns<residua::bfloat16>("every_bfloat16", 1);
    hash_patterns<residua::float16>("every_float16", 1);
    if (brief) return;
    hash_patterns<float>("every_4099th_float", 4099);
    hash_patterns<double>("every_70368744177677th_double", 70368744177677);
}

// --- the file --------------------------------------------------------------------------------------------------

bool write_report(const char* path)
{
    std::ofstream file{path};
    for (const auto& line : report) file << line << '\n';
    return static_cast<bool>(file.flush());
}

/// Prints where the report and the file differ.
bool check_report(const char* path, bool brief)
{
    std::ifstream file{path};
    if (!file) {
        std::cout << "hash: cannot read " << path << '\n';
        return false;
    }
    std::size_t differing = 0;
    std::size_t i = 0;
    std::string line;
    while (!(brief && i == report.size()) && std::getline(file, line)) {
        const std::string got = i < report.size() ? report[i] : "nothing";
        ++i;
        if (got == line) continue;
        ++differing;
        std::cout << "expected " << line << "\n     got " << got << '\n';
    }
    for (; i < report.size(); ++i, ++differing) std::cout << "not in the file: " << report[i] << '\n';
    const std::size_t all = std::max(i, report.size());
    std::cout << all - differing << " of " << all << " hashes are equal\n";
    return differing == 0;
}

/// Does what the command line says with the report of the code that is active now.
bool use_report(const char* action, const char* path, bool brief)
{
    make_report(brief);
    if (std::strcmp(action, "--write") == 0) return write_report(path);
    if (std::strcmp(action, "--check") == 0) return check_report(path, brief);
    for (const auto& line : report) std::cout << line << '\n';
    return true;
}

}  // namespace

int main(int argc, char** argv)
{
    const char* const action = argc > 1 ? argv[1] : "--print";
    const char* const path = argc > 2 ? argv[2] : "";
    const bool brief = argc > 3 && std::strcmp(argv[3], "--brief") == 0;
    bool good = true;
#ifdef RESIDUA_HASH_DISPATCH
    for (const auto target : api::targets()) {
        std::cout << "target " << api::name(target) << '\n';
        good = api::force(target) && use_report(action, path, brief) && good;
    }
#else
    good = use_report(action, path, brief);
#endif
    return good ? 0 : 1;
}
