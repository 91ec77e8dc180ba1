// The table of operations. A new operation is one line here: its roles in the order of its parameters, its name, a
// call. Compiled a second time in one program, it is in the namespace RESIDUA_TEST_TABLE.

#include <span>
#include <tuple>
#include <type_traits>

// clang-format off
#include "support/broken_contract.hpp"  // first: what the operations assert is for tests to catch
#include "support/operations.hpp"
// clang-format on

#ifndef RESIDUA_TEST_TABLE
#define RESIDUA_TEST_TABLE operations
#endif

namespace RESIDUA_TEST_TABLE {

/// An operand: for each row of the operation `Rows` rows, of `Columns` times its columns.
template <use Use, std::size_t Rows = 1, std::size_t Columns = 1, std::size_t Fixed = 0>
struct role {
    static constexpr use used = Use;
    static constexpr std::size_t rows = Rows;
    static constexpr std::size_t columns = Columns;
    static constexpr std::size_t fixed = Fixed;
};
using out = role<use::written>;
using in = role<use::read>;
using in_out = role<use::updated>;
using weight = role<use::weight>;
using sum = role<use::sum>;            // over the rows, overwritten; of float or double
using added_to = role<use::added_to>;  // the same, accumulated

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
    mixture<bfloat16, float, float, bfloat16>, mixture<float16, float, float, float>,             // narrowing
    mixture<float, bfloat16, bfloat16, bfloat16>, mixture<float, float16, float16, float16>,      // widening
    mixture<bfloat16, bfloat16, bfloat16, float>, mixture<float16, bfloat16, float, bfloat16>,    // one of each
    mixture<bfloat16, double, bfloat16, float16>, mixture<double, bfloat16, bfloat16, bfloat16>,  // with double
    mixture<float, double, float, double>>;

template <class Role>
inline constexpr bool is_sum = Role::used == use::sum || Role::used == use::added_to;

/// What operand I is made of; sums over rows are of double if anything else is.
template <class M, std::size_t I, class... Roles>
struct type_at {
    using roles = std::tuple<Roles...>;
    template <std::size_t K>
    static consteval std::size_t inputs_before()
    {
        std::size_t n = 0;
        std::size_t k = 0;
        ((n += (k++ < K && (Roles::used == use::read || Roles::used == use::updated)) ? 1U : 0U), ...);
        return n;
    }
    template <std::size_t K, class Role = std::tuple_element_t<K, roles>>
    static auto pick()
    {
        if constexpr (Role::used == use::written) {
            return std::type_identity<typename M::output>{};
        } else if constexpr (Role::used == use::weight) {
            return std::type_identity<typename M::weight>{};
        } else if constexpr (is_sum<Role>) {
            return std::type_identity<float>{};
        } else if constexpr (inputs_before<K>() % 2 == 0) {
            return std::type_identity<typename M::first>{};
        } else {
            return std::type_identity<typename M::second>{};
        }
    }
    template <std::size_t K>
    using plain = typename decltype(pick<K>())::type;
    template <std::size_t... K>
    static consteval bool any_double(std::index_sequence<K...>)
    {
        return (std::is_same_v<plain<K>, double> || ...);
    }
    static constexpr bool wide_sums = any_double(std::index_sequence_for<Roles...>{});
    using type = std::conditional_t<is_sum<std::tuple_element_t<I, roles>> && wide_sums, double, plain<I>>;
};

template <class T, class Role>
auto typed(const place& p)
{
    using E = std::conditional_t<Role::used == use::read || Role::used == use::weight, const T, T>;
    api::rows<E> rows{static_cast<E*>(p.data), p.count, p.columns, p.stride};
    rows.stores = p.stores;
    return rows;
}

template <class M, class F, class... Roles>
struct caller {
    template <std::size_t... I>
    static void call(const place* p, std::index_sequence<I...>)
    {
        F{}(typed<typename type_at<M, I, Roles...>::type, Roles>(p[I])...);
    }
    static void call(const place* p) { call(p, std::index_sequence_for<Roles...>{}); }

    template <std::size_t... I>
    static std::vector<element> types(std::index_sequence<I...>)
    {
        return {residua::operand::element_of_type<typename type_at<M, I, Roles...>::type>...};
    }
};

template <class F, class... Roles, class... M>
std::vector<form> forms_of(std::tuple<M...>*)
{
    std::vector<form> all;
    const auto add = [&](form f) {
        for (const form& other : all) {
            if (other.types == f.types) return;
        }
        all.push_back(std::move(f));
    };
    (add({caller<M, F, Roles...>::types(std::index_sequence_for<Roles...>{}), caller<M, F, Roles...>::call}), ...);
    return all;
}

/// An operation that computes in the type of its operands: a function of rows, in the order of the roles.
template <class... Roles, class F>
operation make(const char* name, F)
{
    return {.name = name,
            .operands = {{Roles::used, Roles::rows, Roles::columns, Roles::fixed}...},
            .computes_in_double = false,
            .forms = forms_of<F, Roles...>(static_cast<mixtures*>(nullptr))};
}
/// One that computes in double.
template <class... Roles, class F>
operation make_wide(const char* name, F)
{
    return {.name = name,
            .operands = {{Roles::used, Roles::rows, Roles::columns, Roles::fixed}...},
            .computes_in_double = true,
            .forms = forms_of<F, Roles...>(static_cast<mixtures*>(nullptr))};
}

using packed_out = role<use::written, 1, 2>;  // gate and up in one row
using packed_in = role<use::read, 1, 2>;
using streams_out = role<use::written, 2>;  // two streams for each token, and
using streams = role<use::read, 2>;
template <std::size_t N>
using numbers_out = role<use::written, 1, 1, N>;  // N coefficients
template <std::size_t N>
using coefficients = role<use::read, 1, 1, N>;
template <std::size_t N>
using shared = role<use::weight, 1, 1, N>;  // the same for every row
template <std::size_t N>
using sum_of = role<use::sum, 1, 1, N>;

using keys_out = role<use::written, 3>;  // of AttnRes
using keys = role<use::read, 3>;

#define RESIDUA_TEST_GRADIENTS(name)                                                               \
    make<out, in, in>(#name "_vjp", [](auto dx, auto x, auto dy) { api::name##_vjp(dx, x, dy); }), \
        make<out, in, in>(#name "_jvp", [](auto ty, auto x, auto tx) { api::name##_jvp(ty, x, tx); })

#define RESIDUA_TEST_GATED(name, ...)                                                                             \
    make<out, in, in>(#name, [](auto y, auto g, auto u) { api::name(y, g, u, {__VA_ARGS__}); }),                  \
        make<out, out, in, in, in>(                                                                               \
            #name "_vjp",                                                                                         \
            [](auto dg, auto du, auto g, auto u, auto dy) { api::name##_vjp(dg, du, g, u, dy, {__VA_ARGS__}); }), \
        make<out, in, in, in, in>(                                                                                \
            #name "_jvp",                                                                                         \
            [](auto ty, auto g, auto u, auto tg, auto tu) { api::name##_jvp(ty, g, u, tg, tu, {__VA_ARGS__}); }), \
        RESIDUA_TEST_PACKED(name, halves, __VA_ARGS__), RESIDUA_TEST_PACKED(name, interleaved, __VA_ARGS__)

#define RESIDUA_TEST_PACKED(name, packed, ...)                                                                     \
    make<out, packed_in>(#name ", " #packed, [](auto y, auto z) { api::name(y, api::packed(z), {__VA_ARGS__}); }), \
        make<packed_out, packed_in, in>(#name "_vjp, " #packed,                                                    \
                                        [](auto dz, auto z, auto dy) {                                             \
                                            api::name##_vjp(api::packed(dz), api::packed(z), dy, {__VA_ARGS__});   \
                                        }),                                                                        \
        make<out, packed_in, packed_in>(#name "_jvp, " #packed, [](auto ty, auto z, auto tz) {                     \
            api::name##_jvp(ty, api::packed(z), api::packed(tz), {__VA_ARGS__});                                   \
        })

/// The sum of squares depends on the type of x: of float it is computed in float.
template <class T>
std::vector<api::square_sum> squares_in_double(api::rows<T> x)
{
    std::vector<double> copy(x.count * x.columns);
    const api::rows<double> same{copy.data(), x.count, x.columns};
    api::convert(same, x);
    std::vector<api::square_sum> sums(x.count);
    api::sum_of_squares(sums, same);
    return sums;
}

inline constexpr auto precise = api::accuracy::precise;
inline constexpr auto accumulate = api::weight_gradient::accumulate;

// Numbers of options have to be exact in float, so that they are the same for every type.
std::vector<operation> make_all()
{
    using api::no_weight;
    using api::per_channel;
    using api::zero_centered;
    return {
        make<out, in>("exp", [](auto y, auto x) { api::exp(y, x); }),
        make<out, in>("log", [](auto y, auto x) { api::log(y, x); }).of_inputs(0.01, 4),
        make<out, in>("tanh", [](auto y, auto x) { api::tanh(y, x); }),
        make<out, in>("sigmoid", [](auto y, auto x) { api::sigmoid(y, x); }),
        make<out, in>("silu", [](auto y, auto x) { api::silu(y, x); }),
        make<out, in>("exp, precise", [](auto y, auto x) { api::exp(y, x, {.accuracy = precise}); }),
        make<out, in>("tanh, precise", [](auto y, auto x) { api::tanh(y, x, {.accuracy = precise}); }),
        make<out, in>("sigmoid, precise", [](auto y, auto x) { api::sigmoid(y, x, {.accuracy = precise}); }),
        make<out, in>("silu, precise", [](auto y, auto x) { api::silu(y, x, {.accuracy = precise}); }),
        make<out, in, in>("swiglu, precise",
                          [](auto y, auto g, auto u) { api::swiglu(y, g, u, {.accuracy = precise}); }),
        make<out, in>("gelu", [](auto y, auto x) { api::gelu(y, x); }),
        make<out, in>("gelu_tanh", [](auto y, auto x) { api::gelu_tanh(y, x); }),
        make<out, in>("relu", [](auto y, auto x) { api::relu(y, x); }),
        make<out, in>("silu_derivative", [](auto y, auto x) { api::silu_derivative(y, x); }),
        make_wide<out, in>("convert", [](auto y, auto x) { api::convert(y, x); }),
        RESIDUA_TEST_GRADIENTS(exp),
        RESIDUA_TEST_GRADIENTS(tanh),
        RESIDUA_TEST_GRADIENTS(sigmoid),
        RESIDUA_TEST_GRADIENTS(silu),
        RESIDUA_TEST_GRADIENTS(silu_derivative),
        RESIDUA_TEST_GRADIENTS(gelu),
        RESIDUA_TEST_GRADIENTS(gelu_tanh),
        RESIDUA_TEST_GRADIENTS(relu),
        make<out, in>("cos_2pi", [](auto y, auto x) { api::cos_2pi(y, x); }),
        make<out, in>("softmax", [](auto y, auto x) { api::softmax(y, x); }),
        make_wide<out, in, in>("softmax_vjp", [](auto dx, auto y, auto dy) { api::softmax_vjp(dx, y, dy); }),
        make_wide<out, in, in>("softmax_jvp", [](auto ty, auto y, auto tx) { api::softmax_jvp(ty, y, tx); }),
        make<out, in, in>("tanh_vjp_from_output",
                          [](auto dx, auto y, auto dy) { api::tanh_vjp_from_output(dx, y, dy); }),
        make<out, in, in>("box_muller", [](auto z, auto u, auto v) { api::box_muller(z, u, v); })
            .of_inputs(0.01, 0.99),
        make<out, in, in>("residual_add", [](auto y, auto x, auto f) { api::residual_add(y, x, f, 0.25); }),
        make<out, in, in, weight>(
            "residual_add, a scale for each channel",
            [](auto y, auto x, auto f, auto s) { api::residual_add(y, x, f, per_channel(s)); }),
        make_wide<out, out, in>("residual_add_vjp",
                                [](auto dx, auto df, auto dy) { api::residual_add_vjp(dx, df, dy, 0.25); }),
        make_wide<out, out, in, weight>(
            "residual_add_vjp of x and f, a scale for each channel",
            [](auto dx, auto df, auto dy, auto s) { api::residual_add_vjp(dx, df, dy, per_channel(s)); }),
        make_wide<out, out, sum, in, in, weight>("residual_add_vjp, a scale for each channel",
                                                 [](auto dx, auto df, auto ds, auto f, auto dy, auto s) {
                                                     api::residual_add_vjp(dx, df, ds, f, dy, per_channel(s));
                                                 }),
        make_wide<out, out, added_to, in, in, weight>("residual_add_vjp, a scale for each channel, accumulated",
                                                      [](auto dx, auto df, auto ds, auto f, auto dy, auto s) {
                                                          api::residual_add_vjp(dx, df, ds, f, dy, per_channel(s),
                                                                                {.ds = accumulate});
                                                      }),
        make<out, in, in>("residual_add_jvp",
                          [](auto ty, auto tx, auto tf) { api::residual_add_jvp(ty, tx, tf, 0.25); }),
        make_wide<out, in, in, in, weight, weight>("residual_add_jvp, a scale for each channel",
                                                   [](auto ty, auto f, auto tx, auto tf, auto s, auto ts) {
                                                       api::residual_add_jvp(ty, f, tx, tf, per_channel(s),
                                                                             per_channel(ts));
                                                   }),
        make<out, in>("scale", [](auto y, auto x) { api::scale(y, x, 3); }),
        make<out, in>("scale_vjp", [](auto dx, auto dy) { api::scale_vjp(dx, dy, 3); }),
        make<out, in>("scale_jvp", [](auto ty, auto tx) { api::scale_jvp(ty, tx, 3); }),
        RESIDUA_TEST_GATED(swiglu, ),
        RESIDUA_TEST_GATED(geglu, ),
        RESIDUA_TEST_GATED(geglu_tanh, ),
        RESIDUA_TEST_GATED(reglu, ),
        RESIDUA_TEST_GATED(clamped_swiglu, .limit = 1),
        RESIDUA_TEST_GATED(swiglu_clamped_after, .limit = 1),
        RESIDUA_TEST_GATED(gpt_oss_swiglu, .limit = 1, .alpha = 1.75),
        RESIDUA_TEST_GATED(situ_glu, .beta = 4, .linear_beta = 25),
        RESIDUA_TEST_GATED(sigmoid_gate, ),
        make<out, in, in>("swiglu, rounded before the product",
                          [](auto y, auto g, auto u) {
                              api::swiglu(y, g, u, {.rounding = api::activation_rounding::before_product});
                          })
            .that_rounds_inside(),
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
        make_wide<out, in, weight, in, weight>("rms_norm_jvp along the weight",
                                               [](auto ty, auto x, auto w, auto tx, auto tw) {
                                                   api::rms_norm_jvp(ty, x, w, tx, tw, {.eps = 0x1p-20});
                                               }),
        make<out, in, weight>("rms_norm of the sum of squares",
                              [](auto y, auto x, auto w) {
                                  std::vector<api::square_sum> sums(x.count);
                                  api::sum_of_squares(std::span{sums}, x);
                                  const std::span<const api::square_sum> known{sums};
                                  api::rms_norm_apply(y, x, w, known, x.columns, {.eps = 0x1p-20});
                              })
            .that_rounds_inside()
            .that_is_listed_as("rms_norm_apply"),
        make_wide<out, sum, in, weight, in>("rms_norm_vjp of the sums",
                                            [](auto dx, auto dw, auto x, auto w, auto dy) {
                                                const auto squares = squares_in_double(x);
                                                std::vector<api::product_sum> products(x.count);
                                                api::rms_norm_vjp_sum(products, x, w, dy, squares, x.columns,
                                                                      {.eps = 0x1p-20});
                                                api::rms_norm_apply_vjp(dx, dw, x, w, dy, squares, products,
                                                                        x.columns, {.eps = 0x1p-20});
                                            })
            .that_is_listed_as("rms_norm_apply_vjp"),
        make_wide<out, in, weight, in>("rms_norm_jvp of the sums",
                                       [](auto ty, auto x, auto w, auto tx) {
                                           const auto squares = squares_in_double(x);
                                           std::vector<api::product_sum> products(x.count);
                                           api::rms_norm_jvp_sum(products, x, tx, squares, x.columns,
                                                                 {.eps = 0x1p-20});
                                           api::rms_norm_apply_jvp(ty, x, zero_centered(w), tx, squares, products,
                                                                   x.columns, {.eps = 0x1p-20});
                                       })
            .that_is_listed_as("rms_norm_apply_jvp"),
        make_wide<out, in, weight, in, weight>("rms_norm_jvp of the sums, along the weight",
                                               [](auto ty, auto x, auto w, auto tx, auto tw) {
                                                   const auto squares = squares_in_double(x);
                                                   std::vector<api::product_sum> products(x.count);
                                                   api::rms_norm_jvp_sum(products, x, tx, squares, x.columns,
                                                                         {.eps = 0x1p-20});
                                                   api::rms_norm_apply_jvp(ty, x, zero_centered(w), tx, tw, squares,
                                                                           products, x.columns, {.eps = 0x1p-20});
                                               })
            .that_is_listed_as("rms_norm_apply_jvp"),
        make<out, in_out, in, weight>(
            "add_rms_norm of the stored sum",
            [](auto y, auto r, auto x, auto w) { api::add_rms_norm(y, r, x, w, {.eps = 0x1p-20, .scale = 0.25}); })
            .that_rounds_inside(),
        make<out, in_out, in, weight>("add_rms_norm of the exact sum",
                                      [](auto y, auto r, auto x, auto w) {
                                          api::add_rms_norm(y, r, x, zero_centered(w),
                                                            {.eps = 0x1p-20, .norm_of = api::norm_of::exact});
                                      }),
        make_wide<out, out, in, weight, in, in>("add_rms_norm_vjp of the residual and x",
                                                [](auto dr, auto dx, auto r, auto w, auto dro, auto dy) {
                                                    api::add_rms_norm_vjp(dr, dx, r, w, dro, dy,
                                                                          {.eps = 0x1p-20, .scale = 0.25});
                                                }),
        make_wide<out, out, sum, in, weight, in, in>(
            "add_rms_norm_vjp",
            [](auto dr, auto dx, auto dw, auto r, auto w, auto dro,
               auto dy) { api::add_rms_norm_vjp(dr, dx, dw, r, w, dro, dy, {.eps = 0x1p-20, .scale = 0.25}); }),
        make_wide<out, out, added_to, in, weight, in, in>(
            "add_rms_norm_vjp, accumulated",
            [](auto dr, auto dx, auto dw, auto r, auto w, auto dro,
               auto dy) { api::add_rms_norm_vjp(dr, dx, dw, r, w, dro, dy, {.eps = 0x1p-20, .dw = accumulate}); }),
        make_wide<out, in_out, in, weight, in>("add_rms_norm_jvp",
                                               [](auto ty, auto tr, auto r, auto w, auto tx) {
                                                   api::add_rms_norm_jvp(ty, tr, r, w, tx,
                                                                         {.eps = 0x1p-20, .scale = 0.25});
                                               }),
        make_wide<out, in_out, in, weight, in, weight>("add_rms_norm_jvp along the weight",
                                                       [](auto ty, auto tr, auto r, auto w, auto tx, auto tw) {
                                                           api::add_rms_norm_jvp(ty, tr, r, w, tx, tw,
                                                                                 {.eps = 0x1p-20, .scale = 0.25});
                                                       }),
        make<out, in, in, weight>(
            "gated_rms_norm",
            [](auto y, auto x, auto z, auto w) { api::gated_rms_norm(y, x, z, w, {.eps = 0x1p-20}); }),
        make<out, in, in, weight>("gated_rms_norm, rounded before the weight",
                                  [](auto y, auto x, auto z, auto w) {
                                      api::gated_rms_norm(
                                          y, x, z, w,
                                          {.eps = 0x1p-20, .rounding = api::norm_rounding::before_weight});
                                  })
            .that_rounds_inside(),
        make_wide<out, out, in, in, weight, in>("gated_rms_norm_vjp of x and z",
                                                [](auto dx, auto dz, auto x, auto z, auto w, auto dy) {
                                                    api::gated_rms_norm_vjp(dx, dz, x, z, w, dy, {.eps = 0x1p-20});
                                                }),
        make_wide<out, out, sum, in, in, weight, in>(
            "gated_rms_norm_vjp",
            [](auto dx, auto dz, auto dw, auto x, auto z, auto w,
               auto dy) { api::gated_rms_norm_vjp(dx, dz, dw, x, z, w, dy, {.eps = 0x1p-20}); }),
        make_wide<out, in, in, weight, in, in>("gated_rms_norm_jvp",
                                               [](auto ty, auto x, auto z, auto w, auto tx, auto tz) {
                                                   api::gated_rms_norm_jvp(ty, x, z, w, tx, tz, {.eps = 0x1p-20});
                                               }),
        make_wide<out, in, in, weight, in, in, weight>(
            "gated_rms_norm_jvp along the weight",
            [](auto ty, auto x, auto z, auto w, auto tx, auto tz,
               auto tw) { api::gated_rms_norm_jvp(ty, x, z, w, tx, tz, tw, {.eps = 0x1p-20}); }),
        make_wide<out, in, in, weight>("gated_rms_norm, gate first",
                                       [](auto y, auto x, auto z, auto w) {
                                           api::gated_rms_norm(y, x, z, w,
                                                               {.eps = 0x1p-20,
                                                                .gate = api::norm_gate::sigmoid,
                                                                .order = api::gate_order::gate_first});
                                       }),
        make_wide<out, in, in, weight>("gated_rms_norm, gate first, rounded before the weight",
                                       [](auto y, auto x, auto z, auto w) {
                                           api::gated_rms_norm(y, x, z, zero_centered(w),
                                                               {.eps = 0x1p-20,
                                                                .order = api::gate_order::gate_first,
                                                                .rounding = api::norm_rounding::before_weight});
                                       })
            .that_rounds_inside(),
        make_wide<out, out, in, in, weight, in>("gated_rms_norm_vjp of x and z, gate first",
                                                [](auto dx, auto dz, auto x, auto z, auto w, auto dy) {
                                                    api::gated_rms_norm_vjp(dx, dz, x, z, w, dy,
                                                                            {.eps = 0x1p-20,
                                                                             .gate = api::norm_gate::sigmoid,
                                                                             .order = api::gate_order::gate_first});
                                                }),
        make_wide<out, out, sum, in, in, weight, in>("gated_rms_norm_vjp, gate first",
                                                     [](auto dx, auto dz, auto dw, auto x, auto z, auto w,
                                                        auto dy) {
                                                         api::gated_rms_norm_vjp(
                                                             dx, dz, dw, x, z, w, dy,
                                                             {.eps = 0x1p-20,
                                                              .gate = api::norm_gate::sigmoid,
                                                              .order = api::gate_order::gate_first});
                                                     }),
        make_wide<out, in, in, weight, in, in>("gated_rms_norm_jvp, gate first",
                                               [](auto ty, auto x, auto z, auto w, auto tx, auto tz) {
                                                   api::gated_rms_norm_jvp(ty, x, z, w, tx, tz,
                                                                           {.eps = 0x1p-20,
                                                                            .gate = api::norm_gate::sigmoid,
                                                                            .order = api::gate_order::gate_first});
                                               }),
        make_wide<out, in, in, weight, in, in, weight>(
            "gated_rms_norm_jvp along the weight, gate first",
            [](auto ty, auto x, auto z, auto w, auto tx, auto tz, auto tw) {
                api::gated_rms_norm_jvp(
                    ty, x, z, w, tx, tz, tw,
                    {.eps = 0x1p-20, .gate = api::norm_gate::sigmoid, .order = api::gate_order::gate_first});
            }),
        make_wide<out, out, added_to, in, in, weight, in>(
            "gated_rms_norm_vjp, accumulated",
            [](auto dx, auto dz, auto dw, auto x, auto z, auto w,
               auto dy) { api::gated_rms_norm_vjp(dx, dz, dw, x, z, w, dy, {.eps = 0x1p-20, .dw = accumulate}); }),
        make_wide<out, in>(
            "layer_norm without a weight",
            [](auto y, auto x) { api::layer_norm(y, x, no_weight, api::no_bias, {.eps = 0x1p-20}); }),
        make_wide<out, in, weight, weight>(
            "layer_norm", [](auto y, auto x, auto w, auto b) { api::layer_norm(y, x, w, b, {.eps = 0x1p-20}); }),
        make_wide<out, in, weight, in>(
            "layer_norm_vjp of x",
            [](auto dx, auto x, auto w, auto dy) { api::layer_norm_vjp(dx, x, w, dy, {.eps = 0x1p-20}); }),
        make_wide<out, sum, in, weight, in>("layer_norm_vjp of x and the weight",
                                            [](auto dx, auto dw, auto x, auto w, auto dy) {
                                                api::layer_norm_vjp(dx, dw, x, w, dy, {.eps = 0x1p-20});
                                            }),
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
        make_wide<out, in, weight, in, weight>("layer_norm_jvp along the weight",
                                               [](auto ty, auto x, auto w, auto tx, auto tw) {
                                                   api::layer_norm_jvp(ty, x, w, tx, tw, {.eps = 0x1p-20});
                                               }),
        make_wide<out, in, weight, in, weight, weight>("layer_norm_jvp along the weight and the bias",
                                                       [](auto ty, auto x, auto w, auto tx, auto tw, auto tb) {
                                                           api::layer_norm_jvp(ty, x, w, tx, tw, tb,
                                                                               {.eps = 0x1p-20});
                                                       }),
        make_wide<out, in, in, weight>("layer_norm_jvp along the bias",
                                       [](auto ty, auto x, auto tx, auto tb) {
                                           api::layer_norm_jvp(ty, x, no_weight, tx, no_weight, tb,
                                                               {.eps = 0x1p-20});
                                       }),
        make<streams_out, coefficients<4>, streams>("mix_streams",
                                                    [](auto y, auto c, auto x) { api::mix_streams(y, c, x); })
            .that_writes_only_over({{0, 2}}),
        make_wide<streams_out, numbers_out<4>, coefficients<4>, streams, streams>(
            "mix_streams_vjp",
            [](auto dx, auto dc, auto c, auto x, auto dy) { api::mix_streams_vjp(dx, dc, c, x, dy); })
            .that_writes_only_over({{0, 3}, {0, 4}}),
        make_wide<streams_out, coefficients<4>, streams, coefficients<4>, streams>(
            "mix_streams_jvp",
            [](auto ty, auto c, auto x, auto tc, auto tx) { api::mix_streams_jvp(ty, c, x, tc, tx); })
            .that_writes_only_over({{0, 2}, {0, 4}}),
        make_wide<numbers_out<2>, numbers_out<2>, numbers_out<4>, coefficients<8>, shared<3>, shared<8>>(
            "mhc_coefficients", [](auto pre, auto post, auto comb, auto m, auto a,
                                   auto b) { api::mhc_coefficients(pre, post, comb, m, a, b, {.eps = 0x1p-20}); }),
        make_wide<numbers_out<8>, sum_of<3>, sum_of<8>, coefficients<8>, shared<3>, shared<8>, coefficients<2>,
                  coefficients<2>, coefficients<4>>(
            "mhc_coefficients_vjp",
            [](auto dm, auto da, auto db, auto m, auto a, auto b, auto dpre, auto dpost, auto dcomb) {
                api::mhc_coefficients_vjp(dm, da, db, m, a, b, dpre, dpost, dcomb, {.eps = 0x1p-20});
            }),
        make_wide<numbers_out<2>, numbers_out<2>, numbers_out<4>, coefficients<8>, shared<3>, shared<8>,
                  coefficients<8>, shared<3>, shared<8>>(
            "mhc_coefficients_jvp",
            [](auto tpre, auto tpost, auto tcomb, auto m, auto a, auto b, auto tm, auto ta, auto tb) {
                api::mhc_coefficients_jvp(tpre, tpost, tcomb, m, a, b, tm, ta, tb, {.eps = 0x1p-20});
            }),
        make<out, streams, coefficients<2>>("mhc_read", [](auto y, auto x, auto pre) { api::mhc_read(y, x, pre); }),
        make_wide<streams_out, numbers_out<2>, streams, coefficients<2>, in>(
            "mhc_read_vjp",
            [](auto dx, auto dpre, auto x, auto pre, auto dy) { api::mhc_read_vjp(dx, dpre, x, pre, dy); })
            .that_writes_only_over({{0, 2}}),
        make_wide<out, streams, coefficients<2>, streams, coefficients<2>>(
            "mhc_read_jvp",
            [](auto ty, auto x, auto pre, auto tx, auto tpre) { api::mhc_read_jvp(ty, x, pre, tx, tpre); }),
        make<streams_out, streams, in, coefficients<2>, coefficients<4>>(
            "mhc_write", [](auto y, auto x, auto f, auto post, auto comb) { api::mhc_write(y, x, f, post, comb); }),
        make_wide<streams_out, out, numbers_out<2>, numbers_out<4>, streams, in, coefficients<2>, coefficients<4>,
                  streams>("mhc_write_vjp",
                           [](auto dx, auto df, auto dpost, auto dcomb, auto x, auto f, auto post, auto comb,
                              auto dy) { api::mhc_write_vjp(dx, df, dpost, dcomb, x, f, post, comb, dy); })
            .that_writes_only_over({{0, 4}, {0, 8}, {1, 5}}),
        make_wide<streams_out, streams, in, coefficients<2>, coefficients<4>, streams, in, coefficients<2>,
                  coefficients<4>>(
            "mhc_write_jvp", [](auto ty, auto x, auto f, auto post, auto comb, auto tx, auto tf, auto tpost,
                                auto tcomb) { api::mhc_write_jvp(ty, x, f, post, comb, tx, tf, tpost, tcomb); })
            .that_writes_only_over({{0, 1}, {0, 5}}),
        make_wide<out, streams, streams>("gated_read", [](auto y, auto n, auto g) { api::gated_read(y, n, g); }),
        make_wide<streams_out, streams_out, streams, streams, in>(
            "gated_read_vjp",
            [](auto dn, auto dg, auto n, auto g, auto dy) { api::gated_read_vjp(dn, dg, n, g, dy); })
            .that_writes_only_over({{0, 2}, {1, 3}}),
        make_wide<out, streams, streams, streams, streams>(
            "gated_read_jvp",
            [](auto ty, auto n, auto g, auto tn, auto tg) { api::gated_read_jvp(ty, n, g, tn, tg); }),
        make<streams_out, streams, in, coefficients<2>>(
            "gated_write", [](auto y, auto x, auto f, auto m) { api::gated_write(y, x, f, m); }),
        make_wide<streams_out, out, numbers_out<2>, in, coefficients<2>, streams>(
            "gated_write_vjp",
            [](auto dx, auto df, auto dm, auto f, auto m, auto dy) { api::gated_write_vjp(dx, df, dm, f, m, dy); })
            .that_writes_only_over({{0, 5}, {1, 3}, {2, 4}}),
        make_wide<streams_out, in, coefficients<2>, streams, in, coefficients<2>>(
            "gated_write_jvp",
            [](auto ty, auto f, auto m, auto tx, auto tf, auto tm) { api::gated_write_jvp(ty, f, m, tx, tf, tm); })
            .that_writes_only_over({{0, 3}}),
        make_wide<out, numbers_out<3>, keys, weight>(
            "attn_res", [](auto h, auto p, auto k, auto q) { api::attn_res(h, p, k, q, {.eps = 0x1p-20}); })
            .that_rounds_inside()              // p
            .that_writes_only_over({{0, 0}}),  // nothing
        make_wide<keys_out, sum, keys, weight, coefficients<3>, in>(
            "attn_res_vjp", [](auto dk, auto dq, auto k, auto q, auto p,
                               auto dh) { api::attn_res_vjp(dk, dq, k, q, p, dh, {.eps = 0x1p-20}); })
            .that_writes_only_over({{0, 2}}),
        make_wide<out, keys, weight, coefficients<3>, keys, weight>(
            "attn_res_jvp", [](auto th, auto k, auto q, auto p, auto tk,
                               auto tq) { api::attn_res_jvp(th, k, q, p, tk, tq, {.eps = 0x1p-20}); })
            .that_writes_only_over({{0, 0}}),  // nothing
    };
}

#undef RESIDUA_TEST_PACKED
#undef RESIDUA_TEST_GATED
#undef RESIDUA_TEST_GRADIENTS

const std::vector<operation>& all()
{
    static const auto table = make_all();
    return table;
}

}  // namespace RESIDUA_TEST_TABLE
