// The gated activations of swiglu.hpp: every form in every type and layout, its gradient and its derivative, against the
// formulas in higher precision. (tests/kernels_test.cpp has the first four forms of float and double.)

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/activations.hpp"
#include "support/api.hpp"
#include "support/memory.hpp"
#include "support/precision.hpp"
#include "support/reference.hpp"
#include "support/ulp.hpp"

namespace {

using activations::nearly_rounded;
using activations::same;
using api::halves;
using api::interleaved;
using reference::wide;
using residua::bfloat16;
using residua::float16;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

template <class T>
class floating : public testing::Test {};
using floating_types = testing::Types<float, double>;
TYPED_TEST_SUITE(floating, floating_types, );
template <class T>
class half : public testing::Test {};
using half_types = testing::Types<bfloat16, float16>;
TYPED_TEST_SUITE(half, half_types, );
template <class T>
class every_type : public testing::Test {};
using all_types = testing::Types<float, double, bfloat16, float16>;
TYPED_TEST_SUITE(every_type, all_types, );

// --- the forms ----------------------------------------------------------------------------------------------------

/// One form: its functions, in every layout; and in higher precision y = a(gate) b(up) with the derivatives of both.
template <class T>
struct form {
    using row = std::vector<T>;
    using view = api::rows<T>;
    std::string name;
    double bound;  // of y
    void (*f)(view y, view gate, view up);
    void (*vjp)(view dgate, view dup, view gate, view up, view dy);
    void (*jvp)(view ty, view gate, view up, view tgate, view tup);
    void (*of_halves)(view y, view z);
    void (*vjp_of_halves)(view dz, view z, view dy);
    void (*jvp_of_halves)(view ty, view z, view tz);
    void (*of_interleaved)(view y, view z);
    void (*vjp_of_interleaved)(view dz, view z, view dy);
    void (*jvp_of_interleaved)(view ty, view z, view tz);
    wide (*a)(wide);
    wide (*a_slope)(wide);
    wide (*b)(wide);
    wide (*b_slope)(wide);
};

#define RESIDUA_TESTS_PACKED(name, ...)                                                        \
    [](view<T> y, view<T> z) { api::name(y, halves(z) __VA_OPT__(, ) __VA_ARGS__); },          \
        [](view<T> dz, view<T> z, view<T> dy) {                                                \
            api::name##_vjp(halves(dz), halves(z), dy __VA_OPT__(, ) __VA_ARGS__);             \
        },                                                                                     \
        [](view<T> ty, view<T> z, view<T> tz) {                                                \
            api::name##_jvp(ty, halves(z), halves(tz) __VA_OPT__(, ) __VA_ARGS__);             \
        },                                                                                     \
        [](view<T> y, view<T> z) { api::name(y, interleaved(z) __VA_OPT__(, ) __VA_ARGS__); }, \
        [](view<T> dz, view<T> z, view<T> dy) {                                                \
            api::name##_vjp(interleaved(dz), interleaved(z), dy __VA_OPT__(, ) __VA_ARGS__);   \
        },                                                                                     \
        [](view<T> ty, view<T> z, view<T> tz) {                                                \
            api::name##_jvp(ty, interleaved(z), interleaved(tz) __VA_OPT__(, ) __VA_ARGS__);   \
        }
#define RESIDUA_TESTS_FUNCTIONS(name, ...)                                                  \
    [](view<T> y, view<T> g, view<T> u) { api::name(y, g, u __VA_OPT__(, ) __VA_ARGS__); }, \
        [](view<T> dg, view<T> du, view<T> g, view<T> u, view<T> dy) {                      \
            api::name##_vjp(dg, du, g, u, dy __VA_OPT__(, ) __VA_ARGS__);                   \
        },                                                                                  \
        [](view<T> ty, view<T> g, view<T> u, view<T> tg, view<T> tu) {                      \
            api::name##_jvp(ty, g, u, tg, tu __VA_OPT__(, ) __VA_ARGS__);                   \
        },                                                                                  \
        RESIDUA_TESTS_PACKED(name __VA_OPT__(, ) __VA_ARGS__)

template <class T>
using view = api::rows<T>;

wide identity(wide x) { return x; }
wide one(wide) { return 1; }
/// clamp, which passes a NaN; and its derivative, which passes at equality.
template <int Limit>
wide clamped(wide x)
{
    return std::isnan(x) ? x : std::clamp<wide>(x, -Limit, Limit);
}
template <int Limit>
wide passes(wide x)
{
    return std::abs(x) <= Limit ? 1 : 0;
}
template <int Limit, wide (*F)(wide)>
wide of_clamped(wide x)
{
    return F(x > Limit ? Limit : x);
}
template <int Limit, wide (*F)(wide)>
wide slope_of_clamped(wide x)
{
    return x > Limit ? 0 : F(x);
}
wide silu_with_alpha(wide x) { return x * reference::sigmoid(1.75L * x); }
wide silu_with_alpha_slope(wide x) { return reference::silu_derivative(1.75L * x); }
wide tanh_times_sigmoid(wide x) { return 4 * std::tanh(x / 4) * reference::sigmoid(x); }
wide tanh_times_sigmoid_slope(wide x)
{
    return reference::tanh_derivative(x / 4) * reference::sigmoid(x)
           + 4 * std::tanh(x / 4) * reference::sigmoid_derivative(x);
}

// Limits are exact in every type. The last form has its operands in the other order.
template <class T>
std::vector<form<T>> forms()
{
    using namespace reference;
    return {
        {"swiglu", 2, RESIDUA_TESTS_FUNCTIONS(swiglu), silu, silu_derivative, identity, one},
        {"geglu", 1, RESIDUA_TESTS_FUNCTIONS(geglu), gelu, gelu_derivative, identity, one},
        {"geglu_tanh", 1, RESIDUA_TESTS_FUNCTIONS(geglu_tanh), gelu_tanh, gelu_tanh_derivative, identity, one},
        {"reglu", 0.5, RESIDUA_TESTS_FUNCTIONS(reglu), relu, relu_derivative, identity, one},
        {"clamped_swiglu", 2, RESIDUA_TESTS_FUNCTIONS(clamped_swiglu, {.limit = 10}), of_clamped<10, silu>,
         slope_of_clamped<10, silu_derivative>, clamped<10>, passes<10>},
        {"swiglu_clamped_after", 2, RESIDUA_TESTS_FUNCTIONS(swiglu_clamped_after, {.limit = 7}),
         [](wide x) { return silu(x) > 7 ? wide(7) : silu(x); },
         [](wide x) { return silu(x) > 7 ? wide(0) : silu_derivative(x); }, clamped<7>, passes<7>},
        {"gpt_oss_swiglu", 2, RESIDUA_TESTS_FUNCTIONS(gpt_oss_swiglu, {.limit = 7, .alpha = 1.75}),
         of_clamped<7, silu_with_alpha>, slope_of_clamped<7, silu_with_alpha_slope>,
         [](wide x) { return clamped<7>(x) + 1; }, passes<7>},
        {"situ_glu", 1, RESIDUA_TESTS_FUNCTIONS(situ_glu), tanh_times_sigmoid, tanh_times_sigmoid_slope,
         [](wide x) { return 25 * std::tanh(x / 25); }, [](wide x) { return tanh_derivative(x / 25); }},
        {"sigmoid_gate", 2, [](view<T> y, view<T> g, view<T> x) { api::sigmoid_gate(y, x, g); },
         [](view<T> dg, view<T> dx, view<T> g, view<T> x, view<T> dy) { api::sigmoid_gate_vjp(dx, dg, x, g, dy); },
         [](view<T> ty, view<T> g, view<T> x, view<T> tg, view<T> tx) { api::sigmoid_gate_jvp(ty, x, g, tx, tg); },
         RESIDUA_TESTS_PACKED(sigmoid_gate), sigmoid, sigmoid_derivative, identity, one},
    };
}

template <class T>
view<T> in(const std::vector<T>& x, std::size_t count = 1)
{
    return {const_cast<T*>(x.data()), count, x.size() / count};
}
template <class T>
wide as_wide(T x)
{
    if constexpr (sizeof(T) == 2) {
        return wide(static_cast<float>(x));
    } else {
        return wide(x);
    }
}
template <class T>
T number(double x)
{
    return T(static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(x));
}
template <class T>
std::vector<T> random_row(reference::random& random, std::size_t n, double reach)
{
    std::vector<T> x(n);
    for (T& e : x) e = number<T>(random.uniform(-reach, reach));
    return x;
}
template <class T>
testing::AssertionResult all_same(const std::vector<T>& a, const std::vector<T>& b)
{
    for (std::size_t j = 0; j < a.size(); ++j) {
        if (!same(a[j], b[j])) return testing::AssertionFailure() << "element " << j;
    }
    return testing::AssertionSuccess();
}

/// What a layer sees; the far tails; and any numbers, with gradients of any size.
template <class T>
struct operands {
    std::vector<T> gate, up, dy, tgate, tup;
};
template <class T>
std::vector<operands<T>> regions()
{
    reference::random random{83};
    constexpr bool is_double = std::is_same_v<T, double>;
    const double tail = is_double ? 1500 : std::is_same_v<T, float16> ? 25 : 210;
    const double power = is_double ? 1020 : std::is_same_v<T, float16> ? 14 : 125;
    const auto any = [&] { return random.uniform(-1, 1) * std::exp2(std::floor(random.uniform(-power, power))); };
    std::vector<operands<T>> all(3);
    for (std::size_t i = 0; i < 400 * reference::plenty; ++i) {
        for (auto* const x : {&all[0].gate, &all[0].up, &all[0].dy, &all[0].tgate, &all[0].tup}) {
            x->push_back(number<T>(random.uniform(-12, 12)));
        }
        all[1].gate.push_back(number<T>(random.uniform(-tail, tail)));
        for (auto* const x : {&all[1].up, &all[1].dy, &all[1].tgate, &all[1].tup}) x->push_back(number<T>(any()));
        for (auto* const x : {&all[2].gate, &all[2].up, &all[2].dy, &all[2].tgate, &all[2].tup}) {
            x->push_back(number<T>(any()));
        }
    }
    return all;
}

// --- values -------------------------------------------------------------------------------------------------------

TYPED_TEST(floating, forms_are_within_their_bounds)
{
    using T = TypeParam;
    const auto all = regions<T>();
    for (const auto& f : forms<T>()) {
        ulp::worst seen;
        for (const auto& o : all) {
            std::vector<T> y(o.gate.size());
            f.f(in(y), in(o.gate), in(o.up));
            for (std::size_t j = 0; j < y.size(); ++j) {
                seen.see(y[j], f.a(as_wide(o.gate[j])) * f.b(as_wide(o.up[j])), as_wide(o.gate[j]),
                         as_wide(o.up[j]));
            }
        }
        ulp::expect_within<T>(seen, f.bound, f.name);
    }
}
/// The forms that come in two accuracies.
template <class T>
struct tiered_form {
    std::string name;
    double bound;  // of y, as by default
    void (*f)(view<T> y, view<T> gate, view<T> up, api::accuracy tier);
    wide (*a)(wide);
    wide (*b)(wide);
};
#define RESIDUA_TESTS_TIERED(name, bound, ...)                              \
    #name, bound, [](view<T> y, view<T> g, view<T> u, api::accuracy tier) { \
        api::name(y, g, u, {__VA_ARGS__ __VA_OPT__(, ).accuracy = tier});   \
    }
template <class T>
std::vector<tiered_form<T>> tiered_forms()
{
    using namespace reference;
    return {
        {RESIDUA_TESTS_TIERED(swiglu, 2), silu, identity},
        {RESIDUA_TESTS_TIERED(clamped_swiglu, 2, .limit = 10), of_clamped<10, silu>, clamped<10>},
        {RESIDUA_TESTS_TIERED(swiglu_clamped_after, 2, .limit = 7),
         [](wide x) { return silu(x) > 7 ? wide(7) : silu(x); }, clamped<7>},
        {RESIDUA_TESTS_TIERED(gpt_oss_swiglu, 2, .limit = 7, .alpha = 1.75), of_clamped<7, silu_with_alpha>,
         [](wide x) { return clamped<7>(x) + 1; }},
        {RESIDUA_TESTS_TIERED(geglu, 1), gelu, identity},
        {RESIDUA_TESTS_TIERED(geglu_tanh, 1), gelu_tanh, identity},
        {RESIDUA_TESTS_TIERED(situ_glu, 1), tanh_times_sigmoid, [](wide x) { return 25 * std::tanh(x / 25); }},
        {"sigmoid_gate", 2,
         [](view<T> y, view<T> g, view<T> x, api::accuracy tier) {
             api::sigmoid_gate(y, x, g, {.accuracy = tier});
         },
         sigmoid, identity},
    };
}

TYPED_TEST(floating, forms_of_both_accuracies_are_within_their_bounds)
{
    using T = TypeParam;
    for (const auto& f : tiered_forms<T>()) {
        for (const auto tier : {api::accuracy::standard, api::accuracy::precise}) {
            const bool precise = tier == api::accuracy::precise;
            ulp::worst seen;
            for (const auto& o : regions<T>()) {
                std::vector<T> y(o.gate.size());
                f.f(in(y), in(o.gate), in(o.up), tier);
                for (std::size_t j = 0; j < y.size(); ++j) {
                    const wide g = as_wide(o.gate[j]);
                    seen.see(y[j], f.a(g) * f.b(as_wide(o.up[j])), g, as_wide(o.up[j]));
                }
            }
            ulp::expect_within<T>(seen, precise ? 1 : f.bound, f.name + (precise ? ", precise" : ""));
        }
    }
}

// A lane that is computed in another way must not change its neighbours.
TYPED_TEST(floating, an_extreme_lane_leaves_the_others_alone)
{
    using T = TypeParam;
    reference::random random{91};
    const std::size_t n = 40;
    const auto gate = random_row<T>(random, n, 12);
    const auto up = random_row<T>(random, n, 3);
    constexpr T inf = std::numeric_limits<T>::infinity();
    for (const auto& f : tiered_forms<T>()) {
        for (const auto tier : {api::accuracy::standard, api::accuracy::precise}) {
            std::vector<T> alone(n);
            f.f(in(alone), in(gate), in(up), tier);
            for (const T extreme : {-inf, T(-70), T(-1000), std::numeric_limits<T>::quiet_NaN()}) {
                for (std::size_t at = 0; at < n; ++at) {
                    auto g = gate;
                    g[at] = extreme;
                    std::vector<T> y(n);
                    f.f(in(y), in(g), in(up), tier);
                    y[at] = alone[at];
                    EXPECT_TRUE(all_same(y, alone)) << f.name << " beside " << extreme << " in " << at;
                }
            }
        }
    }
}
TYPED_TEST(half, forms_are_rounded_correctly)
{
    using T = TypeParam;
    for (const auto& o : regions<T>()) {
        for (const auto& f : forms<T>()) {
            std::vector<T> y(o.gate.size());
            f.f(in(y), in(o.gate), in(o.up));
            for (std::size_t j = 0; j < y.size(); ++j) {
                const wide exact = f.a(as_wide(o.gate[j])) * f.b(as_wide(o.up[j]));
                ASSERT_TRUE(nearly_rounded(y[j], exact))
                    << f.name << " of " << static_cast<float>(o.gate[j]) << ", " << static_cast<float>(o.up[j]);
            }
        }
    }
}

// --- gradients ----------------------------------------------------------------------------------------------------

TEST(reference_formulas, are_the_derivatives)
{
    const auto near = [](wide slope, wide (*f)(wide), wide x) {
        const wide h = 0x1p-20L;
        const wide difference = (f(x + h) - f(x - h)) / (2 * h);
        return std::abs(slope - difference) < 1e-9L * (1 + std::abs(slope));
    };
    for (const auto& f : forms<float>()) {
        for (wide x = -13.1L; x < 13; x += 0.173L) {
            EXPECT_TRUE(near(f.a_slope(x), f.a, x)) << f.name << " at " << static_cast<double>(x);
            EXPECT_TRUE(near(f.b_slope(x), f.b, x)) << f.name << " at " << static_cast<double>(x);
        }
    }
}

/// The terms of a sum that may cancel measure its error, where they are larger than it.
template <class T>
double error_of_sum(T got, wide sum, std::initializer_list<wide> terms)
{
    wide largest = std::abs(sum);
    for (const wide term : terms) largest = std::max(largest, std::abs(term));
    if (std::isinf(got) || !(largest <= wide(std::numeric_limits<T>::max()))) return ulp::error(got, sum);
    return static_cast<double>(std::abs(wide(got) - sum) / ulp::unit<T>(largest));
}

TYPED_TEST(floating, gradients_are_within_their_bounds)
{
    using T = TypeParam;
    const auto all = regions<T>();
    const auto see = [](ulp::worst& seen, double error, wide g, wide u) { seen.see_error(error, g, u); };
    for (const auto& f : forms<T>()) {
        const bool sums = f.name == "situ_glu";
        ulp::worst dgate_seen;
        ulp::worst dup_seen;
        ulp::worst jvp_seen;
        for (const auto& o : all) {
            const std::size_t n = o.gate.size();
            std::vector<T> dgate(n);
            std::vector<T> dup(n);
            std::vector<T> ty(n);
            f.vjp(in(dgate), in(dup), in(o.gate), in(o.up), in(o.dy));
            f.jvp(in(ty), in(o.gate), in(o.up), in(o.tgate), in(o.tup));
            for (std::size_t j = 0; j < n; ++j) {
                const wide g = as_wide(o.gate[j]);
                const wide u = as_wide(o.up[j]);
                const wide of_gate = f.a_slope(g) * f.b(u);
                const wide of_up = f.a(g) * f.b_slope(u);
                if (activations::lost_in_reference<T>(g) || activations::lost_in_reference<T>(1.75L * g)) continue;
                // the two terms of a'(gate) in the one form where they may cancel
                const wide first =
                    sums ? reference::tanh_derivative(g / 4) * reference::sigmoid(g) * f.b(u) : of_gate;
                const wide second = sums ? of_gate - first : 0;
                const wide dy = as_wide(o.dy[j]);
                see(dgate_seen, error_of_sum(dgate[j], of_gate * dy, {first * dy, second * dy}), g, u);
                dup_seen.see(dup[j], of_up * dy, g, u);
                const wide tg = as_wide(o.tgate[j]);
                const wide tu = as_wide(o.tup[j]);
                see(jvp_seen, error_of_sum(ty[j], of_gate * tg + of_up * tu, {first * tg, second * tg, of_up * tu}),
                    g, u);
            }
        }
        const char* const of_sum = "ulp of the sum or of its largest term";
        ulp::expect_within<T>(dgate_seen, 1, f.name + "_vjp, dgate", sums ? of_sum : "ulp");
        ulp::expect_within<T>(dup_seen, 1, f.name + "_vjp, dup");
        ulp::expect_within<T>(jvp_seen, 1, f.name + "_jvp", of_sum);
    }
}
TYPED_TEST(half, gradients_are_rounded_correctly)
{
    using T = TypeParam;
    // which zero it is does not matter
    const auto right = [](T got, wide exact) {
        return nearly_rounded(got, exact) || (exact == 0 && as_wide(got) == 0);
    };
    for (const auto& o : regions<T>()) {
        for (const auto& f : forms<T>()) {
            const std::size_t n = o.gate.size();
            std::vector<T> dgate(n);
            std::vector<T> dup(n);
            f.vjp(in(dgate), in(dup), in(o.gate), in(o.up), in(o.dy));
            for (std::size_t j = 0; j < n; ++j) {
                const wide g = as_wide(o.gate[j]);
                const wide u = as_wide(o.up[j]);
                ASSERT_TRUE(right(dgate[j], f.a_slope(g) * f.b(u) * as_wide(o.dy[j])))
                    << f.name << " at " << static_cast<float>(g) << ", " << static_cast<float>(u);
                ASSERT_TRUE(right(dup[j], f.a(g) * f.b_slope(u) * as_wide(o.dy[j])))
                    << f.name << " at " << static_cast<float>(g) << ", " << static_cast<float>(u);
            }
        }
    }
}

// <VJP(dy), t> = <dy, JVP(t)>
TYPED_TEST(floating, gradients_and_derivatives_are_adjoint)
{
    using T = TypeParam;
    const auto o = regions<T>()[0];
    const std::size_t n = o.gate.size();
    for (const auto& f : forms<T>()) {
        std::vector<T> dgate(n);
        std::vector<T> dup(n);
        std::vector<T> ty(n);
        f.vjp(in(dgate), in(dup), in(o.gate), in(o.up), in(o.dy));
        f.jvp(in(ty), in(o.gate), in(o.up), in(o.tgate), in(o.tup));
        wide left = 0;
        wide right = 0;
        wide scale = 0;
        for (std::size_t j = 0; j < n; ++j) {
            left += wide(dgate[j]) * wide(o.tgate[j]) + wide(dup[j]) * wide(o.tup[j]);
            right += wide(o.dy[j]) * wide(ty[j]);
            scale += std::abs(wide(dgate[j]) * wide(o.tgate[j])) + std::abs(wide(dup[j]) * wide(o.tup[j]));
        }
        EXPECT_LE(static_cast<double>(std::abs(left - right) / scale),
                  4 * static_cast<double>(std::numeric_limits<T>::epsilon()))
            << f.name;
    }
}

// --- layouts ------------------------------------------------------------------------------------------------------

/// gate and up as they lie in z: side by side, or in turn.
template <class T>
std::vector<T> pack(const std::vector<T>& gate, const std::vector<T>& up, std::size_t count, bool in_turn)
{
    const std::size_t n = gate.size() / count;
    std::vector<T> z(2 * gate.size());
    for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t j = 0; j < n; ++j) {
            T* const row = z.data() + i * 2 * n;
            row[in_turn ? 2 * j : j] = gate[i * n + j];
            row[in_turn ? 2 * j + 1 : n + j] = up[i * n + j];
        }
    }
    return z;
}

TYPED_TEST(every_type, every_layout_gives_the_same_bits)
{
    using T = TypeParam;
    reference::random random{89};
    const std::vector<std::size_t> lengths{0,  1,  2,  3,  5,   7,   8,   9,   15,  16,  17,  31,
                                           32, 33, 37, 64, 101, 130, 256, 257, 511, 513, 1025};
    const std::size_t count = 3;
    for (const auto& f : forms<T>()) {
        for (const std::size_t n : lengths) {
            const auto gate = random_row<T>(random, count * n, 12);
            const auto up = random_row<T>(random, count * n, 12);
            const auto dy = random_row<T>(random, count * n, 3);
            std::vector<T> y(count * n);
            std::vector<T> ty(count * n);
            std::vector<T> dgate(count * n);
            std::vector<T> dup(count * n);
            for (std::size_t i = 0; i < count; ++i) {  // row by row: the same as all at once
                const auto row = [&](const std::vector<T>& x) { return in(x, count).row(i); };
                f.f(row(y), row(gate), row(up));
                f.vjp(row(dgate), row(dup), row(gate), row(up), row(dy));
                f.jvp(row(ty), row(gate), row(up), row(up), row(dy));
            }
            for (const bool in_turn : {false, true}) {
                memory::strided<T> z(pack(gate, up, count, in_turn), count, 2 * n, 2 * n + 5);
                memory::strided<T> tz(pack(up, dy, count, in_turn), count, 2 * n, 2 * n + 2);
                memory::strided<T> out(count, n, n + 3);
                memory::strided<T> dz(count, 2 * n, 2 * n + 1);
                memory::strided<T> along(dy, count, n, n + 7);
                (in_turn ? f.of_interleaved : f.of_halves)(out.view(), z.view());
                EXPECT_TRUE(all_same(out.packed(), y)) << f.name << ", n = " << n;
                (in_turn ? f.vjp_of_interleaved : f.vjp_of_halves)(dz.view(), z.view(), along.view());
                EXPECT_TRUE(all_same(dz.packed(), pack(dgate, dup, count, in_turn))) << f.name << ", n = " << n;
                (in_turn ? f.jvp_of_interleaved : f.jvp_of_halves)(out.view(), z.view(), tz.view());
                EXPECT_TRUE(all_same(out.packed(), ty)) << f.name << ", n = " << n;
                // in place
                (in_turn ? f.vjp_of_interleaved : f.vjp_of_halves)(z.view(), z.view(), along.view());
                EXPECT_TRUE(all_same(z.packed(), pack(dgate, dup, count, in_turn))) << f.name << ", n = " << n;
                EXPECT_TRUE(z.gaps_untouched() && tz.gaps_untouched() && out.gaps_untouched() && dz.gaps_untouched()
                            && along.gaps_untouched());
            }
        }
    }
}

TYPED_TEST(every_type, in_place_gives_the_same_bits)
{
    using T = TypeParam;
    reference::random random{97};
    for (const std::size_t n : std::vector<std::size_t>{1, 77, 700}) {
        const auto gate = random_row<T>(random, n, 12);
        const auto up = random_row<T>(random, n, 12);
        const auto dy = random_row<T>(random, n, 3);
        for (const auto& f : forms<T>()) {
            std::vector<T> y(n);
            std::vector<T> dgate(n);
            std::vector<T> dup(n);
            std::vector<T> ty(n);
            f.f(in(y), in(gate), in(up));
            f.vjp(in(dgate), in(dup), in(gate), in(up), in(dy));
            f.jvp(in(ty), in(gate), in(up), in(dy), in(up));
            for (int which = 0; which < 2; ++which) {
                auto g = gate;
                auto u = up;
                auto& out = which == 0 ? g : u;
                f.f(in(out), in(g), in(u));
                EXPECT_TRUE(all_same(out, y)) << f.name;
            }
            auto g = gate;
            auto u = up;
            f.vjp(in(g), in(u), in(g), in(u), in(dy));
            EXPECT_TRUE(all_same(g, dgate) && all_same(u, dup)) << f.name;
            g = gate;
            auto v = dy;
            f.vjp(in(v), in(g), in(g), in(up), in(v));
            EXPECT_TRUE(all_same(v, dgate) && all_same(g, dup)) << f.name;
            v = dy;
            f.jvp(in(v), in(gate), in(up), in(v), in(up));
            EXPECT_TRUE(all_same(v, ty)) << f.name;
            // y over one half of z
            auto z = pack(gate, up, 1, false);
            f.of_halves({z.data() + n, 1, n}, in(z));
            EXPECT_TRUE(all_same(std::vector<T>(z.begin() + static_cast<std::ptrdiff_t>(n), z.end()), y)) << f.name;
        }
    }
}

// --- special values -----------------------------------------------------------------------------------------------

// tracel-ai/burn#5716, uxlfoundation/oneDNN#5370: min and max of vectors drop a NaN, by the order of their operands.
TYPED_TEST(every_type, C2_a_nan_goes_through_clamps_and_gradients)
{
    using T = TypeParam;
    const T bad = static_cast<T>(nan);
    for (const auto& f : forms<T>()) {
        for (std::size_t n : std::vector<std::size_t>{1, 16, 35}) {
            for (std::size_t operand = 0; operand < 5; ++operand) {
                for (const float other : {1.0F, -20.0F, 20.0F}) {
                    std::array<std::vector<T>, 5> x;
                    for (auto& e : x) e.assign(n, T(other));
                    x[operand][n - 1] = bad;
                    std::vector<T> y(n);
                    std::vector<T> dup(n);
                    if (operand < 2) {
                        f.f(in(y), in(x[0]), in(x[1]));
                        EXPECT_TRUE(same(y[n - 1], bad)) << f.name;
                    }
                    if (operand < 3) {
                        f.vjp(in(y), in(dup), in(x[0]), in(x[1]), in(x[2]));
                        EXPECT_TRUE(same(y[n - 1], bad) && same(dup[n - 1], bad)) << f.name;
                        EXPECT_TRUE(n == 1 || !same(y[0], bad)) << f.name;
                    }
                    if (operand != 2) {
                        f.jvp(in(y), in(x[0]), in(x[1]), in(x[3]), in(x[4]));
                        EXPECT_TRUE(same(y[n - 1], bad)) << f.name;
                    }
                }
            }
        }
    }
}

// pytorch/pytorch#160876: silu(-infinity) as -infinity / infinity is NaN.
TYPED_TEST(every_type, C4_C5_gates_at_and_near_infinity)
{
    using T = TypeParam;
    const auto expect = [](const form<T>& f, float gate, float up, float right) {
        std::vector<T> y(1);
        f.f(in(y), in<T>({T(gate)}), in<T>({T(up)}));
        EXPECT_TRUE(same(y[0], T(right))) << f.name << " of " << gate << ", " << up << " is " << as_wide(y[0]);
    };
    for (const auto& f : forms<T>()) {
        for (const float low : {-infinity, -6e4F}) {
            const bool zero_gate = f.name == "reglu" || f.name == "sigmoid_gate";
            expect(f, low, 3, zero_gate ? 0.0F : -0.0F);
            expect(f, low, -3, zero_gate ? -0.0F : 0.0F);
        }
        const bool is_clamped = f.name.find("clamped") != std::string::npos || f.name == "gpt_oss_swiglu";
        if (!is_clamped && f.name != "situ_glu" && f.name != "sigmoid_gate") expect(f, infinity, 3, infinity);
        std::vector<T> dgate(1);
        std::vector<T> dup(1);
        for (const float gate : {-infinity, -6e4F, 6e4F, infinity}) {
            f.vjp(in(dgate), in(dup), in<T>({T(gate)}), in<T>({T(3.0F)}), in<T>({T(1.0F)}));
            EXPECT_FALSE(same(dgate[0], T(nan)) || same(dup[0], T(nan))) << f.name << " at " << gate;
        }
    }
}

// A form is 0 at a gate of 0, and its slope is not.
TYPED_TEST(every_type, an_infinite_gradient_passes_where_the_gate_is_zero)
{
    using T = TypeParam;
    for (const auto& f : forms<T>()) {
        if (f.name == "reglu") continue;
        std::vector<T> dgate(1);
        std::vector<T> dup(1);
        f.vjp(in(dgate), in(dup), in<T>({T(0.0F)}), in<T>({T(2.0F)}), in<T>({T(infinity)}));
        EXPECT_TRUE(same(dgate[0], T(infinity))) << f.name << ": " << as_wide(dgate[0]);
    }
}

// ReGLU has no slope at 0, where that of a closed gate is taken.
TYPED_TEST(every_type, reglu_passes_a_gradient_above_zero_only)
{
    using T = TypeParam;
    const std::vector<T> up{T(2.0F)}, one{T(1.0F)};
    std::vector<T> dgate(1), dup(1), ty(1);
    for (const float gate : {0.0F, -0.0F, -0x1p-20F, 0x1p-20F}) {
        const std::vector<T> g{T(gate)};
        const float slope = gate > 0 ? 2.0F : 0.0F;
        const float open = gate > 0 ? gate : 0.0F;
        api::reglu_vjp(dgate, dup, g, up, one);
        EXPECT_EQ(as_wide(dgate[0]), slope) << gate;
        EXPECT_EQ(as_wide(dup[0]), open) << gate;
        api::reglu_jvp(ty, g, up, one, std::vector<T>{T(0.0F)});
        EXPECT_EQ(as_wide(ty[0]), slope) << gate;
        if (gate > 0) continue;
        api::reglu_vjp(dgate, dup, g, up, std::vector<T>{T(infinity)});
        EXPECT_EQ(as_wide(dgate[0]), 0) << gate;
    }
}

// NVIDIA/TransformerEngine#2161, tenstorrent/tt-metal#48201: no gradient beyond a clamp, however large; all of it on it.
TYPED_TEST(every_type, what_is_clamped_passes_no_gradient)
{
    using T = TypeParam;
    const auto gradient = [](auto vjp, float gate, float up, float dy) {
        std::vector<T> dgate(1);
        std::vector<T> dup(1);
        vjp(dgate, dup, std::vector<T>{T(gate)}, std::vector<T>{T(up)}, std::vector<T>{T(dy)});
        return std::pair{dgate[0], dup[0]};
    };
    const auto clamped = [](auto& dg, auto& du, const auto& g, const auto& u, const auto& dy) {
        api::clamped_swiglu_vjp(dg, du, g, u, dy, {.limit = 8});
    };
    const auto gpt_oss = [](auto& dg, auto& du, const auto& g, const auto& u, const auto& dy) {
        api::gpt_oss_swiglu_vjp(dg, du, g, u, dy, {.limit = 8});
    };
    const auto after = [](auto& dg, auto& du, const auto& g, const auto& u, const auto& dy) {
        api::swiglu_clamped_after_vjp(dg, du, g, u, dy, {.limit = 8});
    };
    const auto check = [&](auto vjp, float at_limit) {
        for (const float dy : {1.0F, infinity, -infinity}) {
            EXPECT_TRUE(same(gradient(vjp, 9, 3, dy).first, T(0.0F)));
            EXPECT_TRUE(same(gradient(vjp, 3, 9, dy).second, T(0.0F)));
            EXPECT_TRUE(same(gradient(vjp, 3, -9, dy).second, T(0.0F)));
            EXPECT_FALSE(same(gradient(vjp, -9, 3, dy).first, T(0.0F))) << "the gate has no lower clamp";
            EXPECT_FALSE(same(gradient(vjp, at_limit, 3, dy).first, T(0.0F))) << "equality passes";
            EXPECT_FALSE(same(gradient(vjp, 3, 8, dy).second, T(0.0F)));
            EXPECT_FALSE(same(gradient(vjp, 3, -8, dy).second, T(0.0F)));
        }
    };
    check(clamped, 8);
    check(gpt_oss, 8);
    check(after, 7.5F);
}

// --- cases --------------------------------------------------------------------------------------------------------

/// In a 16-bit type the right value is the one rounded to it; in the others it is given to about seven digits.
template <class T>
testing::AssertionResult near(T got, double right)
{
    bool good = false;
    if constexpr (sizeof(T) == 2) {
        good = nearly_rounded(got, wide(right));
    } else {
        // 1.702 is not the same number in double
        good = std::abs(static_cast<double>(got) - right) <= (sizeof(T) == 4 ? 2e-7 : 1e-6) * std::abs(right);
    }
    if (good) return testing::AssertionSuccess();
    return testing::AssertionFailure() << as_wide(got) << " is not " << right;
}
template <class T, class F>
T call(F f, double gate, double up)
{
    std::vector<T> y(1);
    f(y, std::vector<T>{number<T>(gate)}, std::vector<T>{number<T>(up)});
    return y[0];
}

// NVIDIA/TransformerEngine#2161, sgl-project/sglang#39939: GPT-OSS's form, without its + 1 or clamped on both sides.
TYPED_TEST(every_type, E1_gpt_oss)
{
    using T = TypeParam;
    const auto f = [](auto& y, const auto& g, const auto& u) { api::gpt_oss_swiglu(y, g, u); };
    EXPECT_TRUE(near(call<T>(f, 9, 9), 55.99962553));
    EXPECT_TRUE(near(call<T>(f, -20, 3), -1.317363506e-13));
    EXPECT_TRUE(same(call<T>(f, 8, -1), T(0.0F)));
    EXPECT_TRUE(near(call<T>(f, 3, -8), -17.89157286));
    EXPECT_TRUE(near(call<T>(f, 20, -20), -41.99971915));
    EXPECT_TRUE(near(call<T>(f, -9, -9), 1.201906527e-05));
}

// Far from zero what the rounding of alpha gate takes is itself large; of an infinite up, what its sum with 1 takes is NaN.
TYPED_TEST(every_type, E1_gpt_oss_without_a_limit_at_gates_of_any_size)
{
    using T = TypeParam;
    const auto f = [](auto& y, const auto& g, const auto& u) {
        using number = std::conditional_t<sizeof(T) == 8, double, float>;
        api::gpt_oss_swiglu(y, g, u, {.limit = std::numeric_limits<number>::infinity(), .alpha = 1.75});
    };
    for (int k = -20; std::isfinite(as_wide(number<T>(std::ldexp(1.37, k + 1)))); ++k) {
        for (const double gate : {std::ldexp(1.37, k), -std::ldexp(1.37, k)}) {
            const wide g = as_wide(number<T>(gate));
            const T y = call<T>(f, gate, 0.5);
            const wide exact = g / (1 + std::exp(wide(-1.75) * g)) * wide(1.5);
            EXPECT_LE(precision::error(y, exact), 2) << gate << ": " << as_wide(y);
        }
    }
    const double most = std::numeric_limits<double>::infinity();
    for (const double gate : {-3.0, -1.0, 1.0, 20.0, most}) {
        for (const double up : {-most, most}) {
            EXPECT_TRUE(same(call<T>(f, gate, up), number<T>(gate < 0 ? -up : up))) << gate << ", " << up;
        }
    }
}

// Floats at which the roundings of the exponential count most: without them y is off by 1.06 and 1.09 ulp.
TEST(gated, precise_where_the_exponential_rounds_most)
{
    const auto f = [](auto& y, const auto& g, const auto& u) {
        api::swiglu(y, g, u, {.accuracy = residua::accuracy::precise});
    };
    for (const auto& [gate, up] : {std::pair{-0x1.4e1ap6, 1.0}, {-0x1.dd818p3, 0x1.87943cp0}}) {
        EXPECT_LE(ulp::error(call<float>(f, gate, up), reference::silu(wide(gate)) * wide(up)), 1)
            << gate << ", " << up;
    }
}

// Where e^-gate leaves the range of the type, y does not, up to the last subnormal number.
TYPED_TEST(every_type, gates_far_below_zero)
{
    using T = TypeParam;
    const double lowest = sizeof(T) == 8 ? -1500 : -200;
    const double large = sizeof(T) == 8 ? 0x1p1010 : std::is_same_v<T, residua::float16> ? 60000 : 0x1p118;
    const auto f = [](auto& y, const auto& g, const auto& u) { api::swiglu(y, g, u); };
    const auto precise = [](auto& y, const auto& g, const auto& u) {
        api::swiglu(y, g, u, {.accuracy = residua::accuracy::precise});
    };
    for (double gate = lowest; gate < -20; gate += 0.37) {
        for (const double up : {large, -large * 0.7, 1.0, 1.3e-3}) {
            const wide g = as_wide(number<T>(gate));
            const wide exact = g / (1 + std::exp(-g)) * as_wide(number<T>(up));
            EXPECT_LE(precision::error(call<T>(f, gate, up), exact), 2) << gate << ", " << up;
            EXPECT_LE(precision::error(call<T>(precise, gate, up), exact), 1) << gate << ", " << up;
        }
    }
}

// anthony-chaudhary/fak#4837, PaddlePaddle/PaddleFleet#1025: the gate is clamped from above only.
TYPED_TEST(every_type, E3_gate_is_clamped_from_above_only)
{
    using T = TypeParam;
    const auto f = [](auto& y, const auto& g, const auto& u) { api::clamped_swiglu(y, g, u, {.limit = 10}); };
    EXPECT_TRUE(near(call<T>(f, -12, 1), -7.373009409e-05));
    EXPECT_TRUE(near(call<T>(f, -30, 30), -2.807286888e-11));
}

// ROCm/rocm-libraries#6873, sgl-project/sglang#31935: clamped after the activation, or before it.
TYPED_TEST(every_type, E4_the_clamp_after_the_activation)
{
    using T = TypeParam;
    const auto after = [](auto& y, const auto& g, const auto& u) {
        api::swiglu_clamped_after(y, g, u, {.limit = 7});
    };
    const auto before = [](auto& y, const auto& g, const auto& u) { api::clamped_swiglu(y, g, u, {.limit = 7}); };
    EXPECT_TRUE(same(call<T>(after, 7.5, 2), T(14.0F)));
    EXPECT_TRUE(near(call<T>(before, 7.5, 2), 13.98724633));
    if constexpr (sizeof(T) != 2) {
        EXPECT_NEAR(static_cast<double>(call<T>(after, 7.005, 2)), 13.9973, 5e-5);
        EXPECT_TRUE(near(call<T>(before, 7.005, 2), 13.98724633));
    }
}

// ROCm/aiter#5271, microsoft/onnxruntime#27221: "no limit" is stored as 0, which clamps everything to 0.
TYPED_TEST(every_type, E5_an_infinite_limit_clamps_nothing)
{
    using T = TypeParam;
    using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const C none = std::numeric_limits<C>::infinity();
    for (auto o : regions<T>()) {
        o.gate.insert(o.gate.end(), {T(infinity), T(-infinity), T(1.0F), T(2.0F), T(nan), T(1.0F)});
        o.up.insert(o.up.end(), {T(2.0F), T(3.0F), T(infinity), T(-infinity), T(1.0F), T(nan)});
        for (auto* const x : {&o.dy, &o.tgate, &o.tup}) x->resize(o.gate.size(), T(2.0F));
        const std::size_t n = o.gate.size();
        using row = std::vector<T>;
        std::array<row, 4> plain{row(n), row(n), row(n), row(n)};
        auto clamped = plain;
        api::swiglu(plain[0], o.gate, o.up);
        api::swiglu_vjp(plain[1], plain[2], o.gate, o.up, o.dy);
        api::swiglu_jvp(plain[3], o.gate, o.up, o.tgate, o.tup);
        const auto expect = [&](const char* what) {
            for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(all_same(clamped[i], plain[i])) << what << " " << i;
        };
        api::clamped_swiglu(clamped[0], o.gate, o.up, {.limit = none});
        api::clamped_swiglu_vjp(clamped[1], clamped[2], o.gate, o.up, o.dy, {.limit = none});
        api::clamped_swiglu_jvp(clamped[3], o.gate, o.up, o.tgate, o.tup, {.limit = none});
        expect("clamped before");
        api::swiglu_clamped_after(clamped[0], o.gate, o.up, {.limit = none});
        api::swiglu_clamped_after_vjp(clamped[1], clamped[2], o.gate, o.up, o.dy, {.limit = none});
        api::swiglu_clamped_after_jvp(clamped[3], o.gate, o.up, o.tgate, o.tup, {.limit = none});
        expect("clamped after");
    }
}

// vllm-project/vllm#29273, microsoft/onnxruntime#28741: one layout taken for the other.
TYPED_TEST(every_type, E7_both_layouts)
{
    using T = TypeParam;
    const auto row = [](float a, float b, float c, float d) { return std::vector<T>{T(a), T(b), T(c), T(d)}; };
    std::vector<T> y(2);
    api::swiglu(y, halves(row(1, 3, 2, 4)));
    EXPECT_TRUE(near(y[0], 1.462117157) && near(y[1], 11.43088866));
    api::swiglu(y, interleaved(row(1, 2, 3, 4)));
    EXPECT_TRUE(near(y[0], 1.462117157) && near(y[1], 11.43088866));
    api::swiglu(y, interleaved(row(1, 3, 2, 4)));
    EXPECT_TRUE(near(y[0], 2.193175736) && near(y[1], 7.046376624));
}

// NVIDIA/TransformerEngine#717, huggingface/kernels-community#942: silu(gate) rounded before the product, or not.
TEST(rounding, E9_once_or_before_the_product)
{
    const std::array<bfloat16, 1> gate{bfloat16(-4.375F)};
    const std::array<bfloat16, 1> up{bfloat16(4.15625F)};
    std::array<bfloat16, 1> y{};
    api::swiglu(y, gate, up);
    EXPECT_EQ(y[0], bfloat16(-0.2255859375F));
    api::swiglu(y, gate, up, {.rounding = api::activation_rounding::before_product});
    EXPECT_EQ(y[0], bfloat16(-0.2265625F));
}

constexpr auto before = api::activation_rounding::before_product;

/// What eager code does: every step is stored.
template <class T, class F>
void expect_rounded_before_product(F fused, void (*activation)(std::vector<T>&, const std::vector<T>&))
{
    reference::random random{101};
    for (const std::size_t n : std::vector<std::size_t>{1, 7, 513, 1100}) {
        const auto gate = random_row<T>(random, n, 8);
        const auto up = random_row<T>(random, n, 8);
        std::vector<T> stored(n);
        activation(stored, gate);
        std::vector<T> y(n);
        fused(y, gate, up);
        for (std::size_t j = 0; j < n; ++j) {
            const auto product = as_wide(stored[j]) * as_wide(up[j]);  // exact
            ASSERT_TRUE(same(y[j], sizeof(T) == 2 ? number<T>(static_cast<double>(product))
                                                  : static_cast<T>(stored[j] * up[j])));
        }
    }
}
TYPED_TEST(every_type, factors_are_rounded_before_the_product)
{
    using T = TypeParam;
    expect_rounded_before_product<T>(
        [](auto& y, const auto& g, const auto& u) { api::swiglu(y, g, u, {.rounding = before}); },
        [](auto& y, const auto& x) { api::silu(y, x); });
    expect_rounded_before_product<T>(
        [](auto& y, const auto& g, const auto& u) { api::geglu(y, g, u, {.rounding = before}); },
        [](auto& y, const auto& x) { api::gelu(y, x); });
    expect_rounded_before_product<T>(
        [](auto& y, const auto& g, const auto& u) { api::geglu_tanh(y, g, u, {.rounding = before}); },
        [](auto& y, const auto& x) { api::gelu_tanh(y, x); });
    expect_rounded_before_product<T>(
        [](auto& y, const auto& g, const auto& u) { api::sigmoid_gate(y, u, g, {.rounding = before}); },
        [](auto& y, const auto& x) { api::sigmoid(y, x); });
    expect_rounded_before_product<T>(
        [](auto& y, const auto& g, const auto& u) {
            api::clamped_swiglu(y, g, u, {.limit = 100, .rounding = before});
        },
        [](auto& y, const auto& x) { api::silu(y, x); });
}

// NVIDIA/TransformerEngine#2161, PaddlePaddle/PaddleFleet#1078: gradients of what is clamped.
TYPED_TEST(every_type, G11_gradients_of_gpt_oss)
{
    using T = TypeParam;
    const auto expect = [](double gate, double up, double right_dgate, double right_dup) {
        std::vector<T> dgate(1);
        std::vector<T> dup(1);
        api::gpt_oss_swiglu_vjp(dgate, dup, std::vector<T>{number<T>(gate)}, std::vector<T>{number<T>(up)},
                                std::vector<T>{T(1.0F)});
        const auto right = [](T got, double exact) {
            return exact == 0       ? same(got, T(0.0F))
                   : sizeof(T) == 2 ? nearly_rounded(got, wide(exact))
                                    : std::abs(static_cast<double>(as_wide(got)) - exact) <= 2e-6 * std::abs(exact);
        };
        EXPECT_TRUE(right(dgate[0], right_dgate)) << as_wide(dgate[0]) << " at " << gate << ", " << up;
        EXPECT_TRUE(right(dup[0], right_dup)) << as_wide(dup[0]) << " at " << gate << ", " << up;
    };
    expect(8, 3, 0, 6.9999533);
    expect(-8, 3, -6.16065e-05, -9.76643e-06);
    expect(3, -9, -6.14728975, 0);
    expect(6, 3, 4.00135326, 5.9997797);
}

// pytorch/pytorch#197018, numpy/numpy#23523: the body of the loop and its tail differ.
TYPED_TEST(every_type, H2_body_and_tail_agree)
{
    using T = TypeParam;
    for (const auto& f : forms<T>()) {
        for (const float value : {0.3F, -1.2784645F, -90.0F, 7.0F}) {
            std::vector<T> one_y(1);
            std::vector<T> one_dup(1);
            const std::vector<T> three(70, T(3.0F));
            const std::vector<T> gate(70, T(value));
            const auto first = [](const std::vector<T>& x, std::size_t n) {
                return view<T>{const_cast<T*>(x.data()), 1, n};
            };
            f.f(in(one_y), first(gate, 1), first(three, 1));
            for (std::size_t n = 1; n <= 70; ++n) {
                std::vector<T> y(n);
                f.f(in(y), first(gate, n), first(three, n));
                EXPECT_TRUE(all_same(y, std::vector<T>(n, one_y[0]))) << f.name;
            }
            f.vjp(in(one_y), in(one_dup), first(gate, 1), first(three, 1), first(three, 1));
            for (std::size_t n = 1; n <= 70; ++n) {
                std::vector<T> y(n);
                std::vector<T> dup(n);
                f.vjp(in(y), in(dup), first(gate, n), first(three, n), first(three, n));
                EXPECT_TRUE(all_same(y, std::vector<T>(n, one_y[0]))) << f.name;
                EXPECT_TRUE(all_same(dup, std::vector<T>(n, one_dup[0]))) << f.name;
            }
        }
    }
}

}  // namespace
