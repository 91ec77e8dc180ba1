// Every operation over rows as one line of a table, for the tests of what they all promise: of types, of memory, of
// aliasing. Operands are erased to memory, so that such a test is one text.
#ifndef RESIDUA_TESTS_SUPPORT_OPERATIONS_HPP
#define RESIDUA_TESTS_SUPPORT_OPERATIONS_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/api.hpp"
#include "support/reference.hpp"

namespace operations {

using residua::bfloat16;
using residua::element;
using residua::float16;

/// What an operation does with an operand. The last three have one row, whatever the others have.
enum class use : std::uint8_t { written, read, updated, weight, sum, added_to };

/// An operand: for each row of the operation `Rows` rows, of `Columns` times its columns.
template <use Use, std::size_t Rows = 1, std::size_t Columns = 1>
struct role {
    static constexpr use used = Use;
    static constexpr std::size_t rows = Rows;
    static constexpr std::size_t columns = Columns;
};
using out = role<use::written>;
using in = role<use::read>;
using in_out = role<use::updated>;
using weight = role<use::weight>;
using sum = role<use::sum>;                   // over the rows, overwritten; of float or double
using added_to = role<use::added_to>;         // the same, accumulated
using packed_out = role<use::written, 1, 2>;  // gate and up
using packed_in = role<use::read, 1, 2>;

/// The types of an operation's operands: outputs, inputs in turn, weights.
template <class Out, class First, class Second, class Weight>
struct mixture {
    using output = Out;
    using first = First;
    using second = Second;
    using weight = Weight;
};
template <class T>
using alike = mixture<T, T, T, T>;

using mixtures = std::tuple<
    alike<float>, alike<double>, alike<bfloat16>, alike<float16>,                                 //
    mixture<bfloat16, float, float, float>, mixture<float16, float, float, float>,                // narrowing
    mixture<float, bfloat16, bfloat16, bfloat16>, mixture<float, float16, float16, float16>,      // widening
    mixture<bfloat16, bfloat16, bfloat16, float>, mixture<bfloat16, float, float, bfloat16>,      // another weight
    mixture<float16, bfloat16, float, bfloat16>, mixture<bfloat16, float16, bfloat16, float16>,   // one of each
    mixture<bfloat16, double, bfloat16, float16>, mixture<double, bfloat16, bfloat16, bfloat16>,  // with double
    mixture<float, double, float, double>, mixture<float16, double, double, double>>;

template <class Role>
inline constexpr bool is_sum = Role::used == use::sum || Role::used == use::added_to;

/// What operand I is made of; sums over rows are of what the operation computes with.
template <bool Wide, class M, std::size_t I, class... Roles>
struct type_at {
    using roles = std::tuple<Roles...>;
    template <std::size_t K>
    static consteval std::size_t reads_before()
    {
        std::size_t n = 0;
        std::size_t k = 0;
        ((n += (k++ < K && Roles::used == use::read) ? 1U : 0U), ...);
        return n;
    }
    template <std::size_t K, class Role = std::tuple_element_t<K, roles>>
    using plain = std::conditional_t<
        Role::used == use::weight, typename M::weight,
        std::conditional_t<Role::used == use::read,
                           std::conditional_t<reads_before<K>() % 2 == 0, typename M::first, typename M::second>,
                           std::conditional_t<is_sum<Role>, float, typename M::output>>>;
    template <std::size_t... K>
    static consteval bool any_double(std::index_sequence<K...>)
    {
        return (std::is_same_v<plain<K>, double> || ...);
    }
    static constexpr bool computes_in_double = Wide || any_double(std::index_sequence_for<Roles...>{});
    using type = std::conditional_t<is_sum<std::tuple_element_t<I, roles>> && computes_in_double, double, plain<I>>;
};

/// Where an operand lies.
struct place {
    void* data;
    std::size_t count, columns;
    std::ptrdiff_t stride;  // in elements
};

struct operand {
    use used;
    std::size_t rows, columns;

    bool has_one_row() const { return used == use::weight || used == use::sum || used == use::added_to; }
    bool is_written() const { return used != use::read && used != use::weight; }
    bool is_read() const { return used != use::written && used != use::sum; }
    std::size_t count_for(std::size_t count) const { return has_one_row() ? 1 : count * rows; }
};

/// An operation on operands of certain types.
struct form {
    std::vector<element> types;
    void (*call)(const place*);
};

struct operation {
    const char* name;
    std::vector<operand> operands;
    bool computes_in_double;     // whatever the types of the operands
    bool rounds_inside = false;  // to a 16-bit type, before the end
    double low = -2, high = 2;   // of its inputs
    std::vector<form> forms;

    /// The form whose operands are all of one type.
    const form& alike(element type) const
    {
        for (const form& f : forms) {
            bool all = true;
            for (std::size_t i = 0; i < operands.size(); ++i) {
                const bool is_sum = operands[i].used == use::sum || operands[i].used == use::added_to;
                all = all && (is_sum || f.types[i] == type);
            }
            if (all) return f;
        }
        return forms.front();
    }
    operation&& of_inputs(double from, double to) &&
    {
        low = from;
        high = to;
        return std::move(*this);
    }
    operation&& that_rounds_inside() &&
    {
        rounds_inside = true;
        return std::move(*this);
    }
};

template <class T, class Role>
auto typed(const place& p)
{
    using E = std::conditional_t<Role::used == use::read || Role::used == use::weight, const T, T>;
    return api::rows<E>{static_cast<E*>(p.data), p.count, p.columns, p.stride};
}

template <bool Wide, class M, class F, class... Roles>
struct caller {
    template <std::size_t... I>
    static void call(const place* p, std::index_sequence<I...>)
    {
        F{}(typed<typename type_at<Wide, M, I, Roles...>::type, Roles>(p[I])...);
    }
    static void call(const place* p) { call(p, std::index_sequence_for<Roles...>{}); }

    template <std::size_t... I>
    static std::vector<element> types(std::index_sequence<I...>)
    {
        return {residua::operand::element_of_type<typename type_at<Wide, M, I, Roles...>::type>...};
    }
};

template <bool Wide, class F, class... Roles, class... M>
std::vector<form> forms_of(std::tuple<M...>*)
{
    std::vector<form> all;
    const auto add = [&](form f) {
        for (const form& other : all) {
            if (other.types == f.types) return;
        }
        all.push_back(std::move(f));
    };
    (add({caller<Wide, M, F, Roles...>::types(std::index_sequence_for<Roles...>{}),
          caller<Wide, M, F, Roles...>::call}),
     ...);
    return all;
}

/// An operation that computes in the type of its operands: a function of rows, in the order of the roles.
template <class... Roles, class F>
operation make(const char* name, F)
{
    return {.name = name,
            .operands = {{Roles::used, Roles::rows, Roles::columns}...},
            .computes_in_double = false,
            .forms = forms_of<false, F, Roles...>(static_cast<mixtures*>(nullptr))};
}
/// One that computes in double.
template <class... Roles, class F>
operation make_wide(const char* name, F)
{
    return {.name = name,
            .operands = {{Roles::used, Roles::rows, Roles::columns}...},
            .computes_in_double = true,
            .forms = forms_of<true, F, Roles...>(static_cast<mixtures*>(nullptr))};
}

inline constexpr auto accumulate = api::weight_gradient::accumulate;

// Numbers of options have to be exact in float, so that they are the same for every type.
inline std::vector<operation> make_all()
{
    using api::no_weight;
    using api::zero_centered;
    return {
        make<out, in>("exp", [](auto y, auto x) { api::exp(y, x); }),
        make<out, in>("log", [](auto y, auto x) { api::log(y, x); }).of_inputs(0.01, 4),
        make<out, in>("tanh", [](auto y, auto x) { api::tanh(y, x); }),
        make<out, in>("sigmoid", [](auto y, auto x) { api::sigmoid(y, x); }),
        make<out, in>("silu", [](auto y, auto x) { api::silu(y, x); }),
        make<out, in>("cos_2pi", [](auto y, auto x) { api::cos_2pi(y, x); }),
        make<out, in>("relu", [](auto y, auto x) { api::relu(y, x); }),
        make<out, in>("convert", [](auto y, auto x) { api::convert(y, x); }),
        make_wide<out, in>("gelu", [](auto y, auto x) { api::gelu(y, x); }),
        make_wide<out, in>("gelu_tanh", [](auto y, auto x) { api::gelu_tanh(y, x); }),
        make_wide<out, in>("silu_derivative", [](auto y, auto x) { api::silu_derivative(y, x); }),
        make_wide<out, in, in>("exp_vjp", [](auto dx, auto x, auto dy) { api::exp_vjp(dx, x, dy); }),
        make_wide<out, in, in>("tanh_vjp", [](auto dx, auto x, auto dy) { api::tanh_vjp(dx, x, dy); }),
        make_wide<out, in, in>("sigmoid_vjp", [](auto dx, auto x, auto dy) { api::sigmoid_vjp(dx, x, dy); }),
        make_wide<out, in, in>("silu_vjp", [](auto dx, auto x, auto dy) { api::silu_vjp(dx, x, dy); }),
        make_wide<out, in, in>("gelu_vjp", [](auto dx, auto x, auto dy) { api::gelu_vjp(dx, x, dy); }),
        make_wide<out, in, in>("gelu_tanh_vjp", [](auto dx, auto x, auto dy) { api::gelu_tanh_vjp(dx, x, dy); }),
        make_wide<out, in, in>("relu_vjp", [](auto dx, auto x, auto dy) { api::relu_vjp(dx, x, dy); }),
        make<out, in>("softmax", [](auto y, auto x) { api::softmax(y, x); }),
        make<out, in, in>("tanh_vjp_from_output",
                          [](auto dx, auto y, auto dy) { api::tanh_vjp_from_output(dx, y, dy); }),
        make<out, in, in>("box_muller", [](auto z, auto u, auto v) { api::box_muller(z, u, v); })
            .of_inputs(0.01, 0.99),
        make<out, in, in>("residual_add", [](auto y, auto x, auto f) { api::residual_add(y, x, f, 0.25); }),
        make<out, in>("scale", [](auto y, auto x) { api::scale(y, x, 3); }),
        make<out, in, in>("swiglu", [](auto y, auto g, auto u) { api::swiglu(y, g, u); }),
        make<out, in, in>("clamped_swiglu",
                          [](auto y, auto g, auto u) { api::clamped_swiglu(y, g, u, {.limit = 1}); }),
        make<out, in, in>(
            "gpt_oss_swiglu",
            [](auto y, auto g, auto u) { api::gpt_oss_swiglu(y, g, u, {.limit = 1, .alpha = 1.75}); }),
        make<out, in, in>("situ_glu", [](auto y, auto g, auto u) { api::situ_glu(y, g, u); }),
        make_wide<out, in, in>("geglu", [](auto y, auto g, auto u) { api::geglu(y, g, u); }),
        make_wide<out, in, in>("geglu_tanh", [](auto y, auto g, auto u) { api::geglu_tanh(y, g, u); }),
        make<out, in, in>("reglu", [](auto y, auto g, auto u) { api::reglu(y, g, u); }),
        make<out, in, in>("swiglu_clamped_after",
                          [](auto y, auto g, auto u) { api::swiglu_clamped_after(y, g, u, {.limit = 1}); }),
        make<out, in, in>("sigmoid_gate", [](auto y, auto g, auto u) { api::sigmoid_gate(y, g, u); }),
        make<out, in, in>("swiglu, rounded before the product",
                          [](auto y, auto g, auto u) {
                              api::swiglu(y, g, u, {.rounding = api::activation_rounding::before_product});
                          })
            .that_rounds_inside(),
        make<out, packed_in>("swiglu of halves", [](auto y, auto z) { api::swiglu(y, api::halves(z)); }),
        make<out, packed_in>(
            "gpt_oss_swiglu, interleaved",
            [](auto y, auto z) { api::gpt_oss_swiglu(y, api::interleaved(z), {.limit = 1, .alpha = 1.75}); }),
        make_wide<packed_out, packed_in, in>(
            "swiglu_vjp of halves",
            [](auto dz, auto z, auto dy) { api::swiglu_vjp(api::halves(dz), api::halves(z), dy); }),
        make_wide<packed_out, packed_in, in>("clamped_swiglu_vjp, interleaved",
                                             [](auto dz, auto z, auto dy) {
                                                 api::clamped_swiglu_vjp(api::interleaved(dz), api::interleaved(z),
                                                                         dy, {.limit = 1});
                                             }),
        make_wide<out, packed_in, packed_in>(
            "swiglu_jvp, interleaved",
            [](auto ty, auto z, auto tz) { api::swiglu_jvp(ty, api::interleaved(z), api::interleaved(tz)); }),
        make_wide<out, out, in, in, in>(
            "swiglu_vjp", [](auto dg, auto du, auto g, auto u, auto dy) { api::swiglu_vjp(dg, du, g, u, dy); }),
        make_wide<out, in, in, in, in>(
            "swiglu_jvp", [](auto ty, auto g, auto u, auto tg, auto tu) { api::swiglu_jvp(ty, g, u, tg, tu); }),
        make_wide<out, out, in, in, in>(
            "geglu_vjp", [](auto dg, auto du, auto g, auto u, auto dy) { api::geglu_vjp(dg, du, g, u, dy); }),
        make_wide<out, in, in, in, in>(
            "geglu_jvp", [](auto ty, auto g, auto u, auto tg, auto tu) { api::geglu_jvp(ty, g, u, tg, tu); }),
        make_wide<out, out, in, in, in>("geglu_tanh_vjp", [](auto dg, auto du, auto g, auto u,
                                                             auto dy) { api::geglu_tanh_vjp(dg, du, g, u, dy); }),
        make_wide<out, in, in, in, in>("geglu_tanh_jvp", [](auto ty, auto g, auto u, auto tg,
                                                            auto tu) { api::geglu_tanh_jvp(ty, g, u, tg, tu); }),
        make_wide<out, out, in, in, in>(
            "reglu_vjp", [](auto dg, auto du, auto g, auto u, auto dy) { api::reglu_vjp(dg, du, g, u, dy); }),
        make_wide<out, in, in, in, in>(
            "reglu_jvp", [](auto ty, auto g, auto u, auto tg, auto tu) { api::reglu_jvp(ty, g, u, tg, tu); }),
        make_wide<out, out, in, in, in>("clamped_swiglu_vjp",
                                        [](auto dg, auto du, auto g, auto u, auto dy) {
                                            api::clamped_swiglu_vjp(dg, du, g, u, dy, {.limit = 1});
                                        }),
        make_wide<out, in, in, in, in>("clamped_swiglu_jvp",
                                       [](auto ty, auto g, auto u, auto tg, auto tu) {
                                           api::clamped_swiglu_jvp(ty, g, u, tg, tu, {.limit = 1});
                                       }),
        make_wide<out, out, in, in, in>("swiglu_clamped_after_vjp",
                                        [](auto dg, auto du, auto g, auto u, auto dy) {
                                            api::swiglu_clamped_after_vjp(dg, du, g, u, dy, {.limit = 1});
                                        }),
        make_wide<out, in, in, in, in>("swiglu_clamped_after_jvp",
                                       [](auto ty, auto g, auto u, auto tg, auto tu) {
                                           api::swiglu_clamped_after_jvp(ty, g, u, tg, tu, {.limit = 1});
                                       }),
        make_wide<out, out, in, in, in>("gpt_oss_swiglu_vjp",
                                        [](auto dg, auto du, auto g, auto u, auto dy) {
                                            api::gpt_oss_swiglu_vjp(dg, du, g, u, dy, {.limit = 1, .alpha = 1.75});
                                        }),
        make_wide<out, in, in, in, in>("gpt_oss_swiglu_jvp",
                                       [](auto ty, auto g, auto u, auto tg, auto tu) {
                                           api::gpt_oss_swiglu_jvp(ty, g, u, tg, tu, {.limit = 1, .alpha = 1.75});
                                       }),
        make_wide<out, out, in, in, in>(
            "situ_glu_vjp", [](auto dg, auto du, auto g, auto u, auto dy) { api::situ_glu_vjp(dg, du, g, u, dy); }),
        make_wide<out, in, in, in, in>(
            "situ_glu_jvp", [](auto ty, auto g, auto u, auto tg, auto tu) { api::situ_glu_jvp(ty, g, u, tg, tu); }),
        make_wide<out, out, in, in, in>(
            "sigmoid_gate_vjp",
            [](auto dg, auto du, auto g, auto u, auto dy) { api::sigmoid_gate_vjp(dg, du, g, u, dy); }),
        make_wide<out, in, in, in, in>(
            "sigmoid_gate_jvp",
            [](auto ty, auto g, auto u, auto tg, auto tu) { api::sigmoid_gate_jvp(ty, g, u, tg, tu); }),
        make<out, in>("rms_norm without a weight",
                      [](auto y, auto x) { api::rms_norm(y, x, no_weight, {.eps = 0x1p-20}); }),
        make<out, in, weight>("rms_norm", [](auto y, auto x, auto w) { api::rms_norm(y, x, w, {.eps = 0x1p-20}); }),
        make<out, in, weight>(
            "rms_norm, zero-centred",
            [](auto y, auto x, auto w) { api::rms_norm(y, x, zero_centered(w), {.eps = 0x1p-20}); }),
        make<out, in, weight>("rms_norm, rounded before the weight",
                              [](auto y, auto x, auto w) {
                                  api::rms_norm(y, x, w,
                                                {.eps = 0x1p-20, .rounding = api::norm_rounding::before_weight});
                              })
            .that_rounds_inside(),
        make<out, in, weight, in>(
            "rms_norm_vjp of x",
            [](auto dx, auto x, auto w, auto dy) { api::rms_norm_vjp(dx, x, w, dy, {.eps = 0x1p-20}); }),
        make<out, sum, in, weight, in>("rms_norm_vjp",
                                       [](auto dx, auto dw, auto x, auto w, auto dy) {
                                           api::rms_norm_vjp(dx, dw, x, w, dy, {.eps = 0x1p-20});
                                       }),
        make<out, added_to, in, weight, in>("rms_norm_vjp, accumulated",
                                            [](auto dx, auto dw, auto x, auto w, auto dy) {
                                                api::rms_norm_vjp(dx, dw, x, zero_centered(w), dy,
                                                                  {.eps = 0x1p-20, .dw = accumulate});
                                            }),
        make_wide<out, in, weight, in>(
            "rms_norm_jvp",
            [](auto ty, auto x, auto w, auto tx) { api::rms_norm_jvp(ty, x, w, tx, {.eps = 0x1p-20}); }),
        make<out, in_out, in, weight>(
            "add_rms_norm",
            [](auto y, auto h, auto x, auto w) { api::add_rms_norm(y, h, x, w, {.eps = 0x1p-20, .scale = 0.75}); })
            .that_rounds_inside(),
        make<out, in_out, in, weight>("add_rms_norm of the exact sum",
                                      [](auto y, auto h, auto x, auto w) {
                                          api::add_rms_norm(y, h, x, zero_centered(w),
                                                            {.eps = 0x1p-20, .norm_of = api::norm_of::exact});
                                      }),
        make_wide<out, out, sum, in, weight, in, in>(
            "add_rms_norm_vjp",
            [](auto dh, auto dx, auto dw, auto h, auto w, auto g, auto dy) {
                api::add_rms_norm_vjp(dh, dx, dw, h, w, g, dy, {.eps = 0x1p-20, .scale = 0.75});
            }),
        make_wide<out, in_out, in, weight, in>("add_rms_norm_jvp",
                                               [](auto ty, auto th, auto h, auto w, auto tx) {
                                                   api::add_rms_norm_jvp(ty, th, h, w, tx,
                                                                         {.eps = 0x1p-20, .scale = 0.75});
                                               }),
        make<out, in, in, weight>(
            "gated_rms_norm",
            [](auto y, auto x, auto z, auto w) { api::gated_rms_norm(y, x, z, w, {.eps = 0x1p-20}); }),
        make_wide<out, in, in, weight>(
            "gated_rms_norm, gate first",
            [](auto y, auto x, auto z, auto w) {
                api::gated_rms_norm(
                    y, x, z, zero_centered(w),
                    {.eps = 0x1p-20, .gate = api::norm_gate::sigmoid, .order = api::gate_order::gate_first});
            }),
        make_wide<out, out, sum, in, in, weight, in>(
            "gated_rms_norm_vjp",
            [](auto dx, auto dz, auto dw, auto x, auto z, auto w,
               auto dy) { api::gated_rms_norm_vjp(dx, dz, dw, x, z, w, dy, {.eps = 0x1p-20}); }),
        make_wide<out, out, added_to, in, in, weight, in>("gated_rms_norm_vjp, gate first",
                                                          [](auto dx, auto dz, auto dw, auto x, auto z, auto w,
                                                             auto dy) {
                                                              api::gated_rms_norm_vjp(
                                                                  dx, dz, dw, x, z, w, dy,
                                                                  {.eps = 0x1p-20,
                                                                   .order = api::gate_order::gate_first,
                                                                   .dw = accumulate});
                                                          }),
        make_wide<out, in, in, weight, in, in>("gated_rms_norm_jvp",
                                               [](auto ty, auto x, auto z, auto w, auto tx, auto tz) {
                                                   api::gated_rms_norm_jvp(ty, x, z, w, tx, tz, {.eps = 0x1p-20});
                                               }),
        make_wide<out, in, in, weight, in, in>("gated_rms_norm_jvp, gate first",
                                               [](auto ty, auto x, auto z, auto w, auto tx, auto tz) {
                                                   api::gated_rms_norm_jvp(
                                                       ty, x, z, w, tx, tz,
                                                       {.eps = 0x1p-20, .order = api::gate_order::gate_first});
                                               }),
        make_wide<out, in, weight, weight>(
            "layer_norm", [](auto y, auto x, auto w, auto b) { api::layer_norm(y, x, w, b, {.eps = 0x1p-20}); }),
        make_wide<out, in>(
            "layer_norm without weight and bias",
            [](auto y, auto x) { api::layer_norm(y, x, no_weight, api::no_bias, {.eps = 0x1p-20}); }),
        make_wide<out, sum, sum, in, weight, in>("layer_norm_vjp",
                                                 [](auto dx, auto dw, auto db, auto x, auto w, auto dy) {
                                                     api::layer_norm_vjp(dx, dw, db, x, w, dy, {.eps = 0x1p-20});
                                                 }),
        make_wide<out, added_to, added_to, in, weight, in>(
            "layer_norm_vjp, accumulated",
            [](auto dx, auto dw, auto db, auto x, auto w,
               auto dy) { api::layer_norm_vjp(dx, dw, db, x, w, dy, {.eps = 0x1p-20, .dw = accumulate}); }),
        make_wide<out, in, weight, in>(
            "layer_norm_jvp",
            [](auto ty, auto x, auto w, auto tx) { api::layer_norm_jvp(ty, x, w, tx, {.eps = 0x1p-20}); }),
    };
}

inline const std::vector<operation>& all()
{
    static const auto table = make_all();
    return table;
}

// --- their elements -------------------------------------------------------------------------------------------------

inline std::size_t size_of(element type) { return type == element::float64 ? 8 : type == element::float32 ? 4 : 2; }
inline const char* name_of(element type)
{
    return type == element::float64    ? "double"
           : type == element::float32  ? "float"
           : type == element::bfloat16 ? "bfloat16"
                                       : "float16";
}
inline std::string description(const operation& op, const form& f)
{
    std::string text = op.name;
    text += " of";
    for (const element type : f.types) text += std::string(" ") + name_of(type);
    return text;
}

using bytes = std::vector<std::byte>;

template <class T>
void append(bytes& all, T x)
{
    const std::size_t at = all.size();
    all.resize(at + sizeof x);
    std::memcpy(all.data() + at, &x, sizeof x);
}
template <class T>
T element_at(const std::byte* data, std::size_t j)
{
    T x;
    std::memcpy(&x, data + j * sizeof x, sizeof x);
    return x;
}

/// Numbers in memory, rounded once to its type.
inline bytes stored(const std::vector<double>& x, element type)
{
    bytes all;
    for (const double e : x) {
        switch (type) {
            case element::float64: append(all, e); break;
            case element::float32: append(all, static_cast<float>(e)); break;
            case element::bfloat16: append(all, bfloat16(e)); break;
            case element::float16: append(all, float16(e)); break;
        }
    }
    return all;
}
inline std::vector<double> numbers(const bytes& memory, element type)
{
    std::vector<double> x;
    for (std::size_t j = 0; j < memory.size() / size_of(type); ++j) {
        switch (type) {
            case element::float64: x.push_back(element_at<double>(memory.data(), j)); break;
            case element::float32: x.push_back(static_cast<double>(element_at<float>(memory.data(), j))); break;
            case element::bfloat16:
                x.push_back(static_cast<double>(static_cast<float>(element_at<bfloat16>(memory.data(), j))));
                break;
            case element::float16:
                x.push_back(static_cast<double>(static_cast<float>(element_at<float16>(memory.data(), j))));
                break;
        }
    }
    return x;
}

/// The elements of every operand, row after row; outputs hold numbers too, which must not matter.
using contents = std::vector<bytes>;

inline contents random_contents(const operation& op, const form& f, std::size_t count, std::size_t columns,
                                std::uint64_t seed)
{
    contents all;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
        const auto& o = op.operands[i];
        reference::random random{seed * 64 + i};
        std::vector<double> x(o.count_for(count) * columns * o.columns);
        for (double& e : x) e = random.uniform(op.low, op.high);
        all.push_back(stored(x, f.types[i]));
    }
    return all;
}

/// Operand i of an operation on `count` rows, packed at `data`.
inline place packed(const operation& op, std::size_t i, std::size_t count, std::size_t columns, void* data)
{
    const auto& o = op.operands[i];
    const std::size_t width = columns * o.columns;
    return {data, o.count_for(count), width, static_cast<std::ptrdiff_t>(width)};
}

/// What is in memory after the operation on packed operands.
inline contents results(const operation& op, const form& f, std::size_t count, std::size_t columns, contents memory)
{
    std::vector<place> places;
    for (std::size_t i = 0; i < memory.size(); ++i) {
        places.push_back(packed(op, i, count, columns, memory[i].data()));
    }
    f.call(places.data());
    return memory;
}

}  // namespace operations

#endif
