// The activations of elementary.hpp in every type, their gradients and derivatives, and the conversion of types, against
// the formulas in higher precision. (tests/kernels_test.cpp has exp, log, tanh, sigmoid, silu and cos_2pi of float and
// double.)

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "support/activations.hpp"
#include "support/api.hpp"
#include "support/memory.hpp"
#include "support/reference.hpp"
#include "support/ulp.hpp"

namespace {

using activations::nearly_rounded;
using activations::same;
using reference::wide;
using residua::bfloat16;
using residua::float16;

template <class T>
inline constexpr T infinity = std::numeric_limits<T>::infinity();
template <class T>
inline constexpr T nan = std::numeric_limits<T>::quiet_NaN();

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

template <class T>
using function = void (*)(std::vector<T>&, const std::vector<T>&);
template <class T>
using product = void (*)(std::vector<T>&, const std::vector<T>&, const std::vector<T>&);

template <class T>
struct elementwise {
    const char* name;
    function<T> f;
    wide (*exact)(wide);
};
#define RESIDUA_TESTS_FUNCTION(name)                                                                \
    elementwise<T>                                                                                  \
    {                                                                                               \
        #name, [](std::vector<T>& y, const std::vector<T>& x) { api::name(y, x); }, reference::name \
    }
#define RESIDUA_TESTS_PRECISE_FUNCTION(name)                           \
    elementwise<T>                                                     \
    {                                                                  \
        #name ", precise",                                             \
            [](std::vector<T>& y, const std::vector<T>& x) {           \
                api::name(y, x, {.accuracy = api::accuracy::precise}); \
            },                                                         \
            reference::name                                            \
    }
template <class T>
std::vector<elementwise<T>> functions()
{
    return {RESIDUA_TESTS_FUNCTION(exp),
            RESIDUA_TESTS_FUNCTION(tanh),
            RESIDUA_TESTS_FUNCTION(sigmoid),
            RESIDUA_TESTS_FUNCTION(silu),
            RESIDUA_TESTS_FUNCTION(gelu),
            RESIDUA_TESTS_FUNCTION(gelu_tanh),
            RESIDUA_TESTS_FUNCTION(relu),
            RESIDUA_TESTS_FUNCTION(silu_derivative),
            RESIDUA_TESTS_PRECISE_FUNCTION(exp),
            RESIDUA_TESTS_PRECISE_FUNCTION(tanh),
            RESIDUA_TESTS_PRECISE_FUNCTION(sigmoid),
            RESIDUA_TESTS_PRECISE_FUNCTION(silu),
            RESIDUA_TESTS_PRECISE_FUNCTION(gelu),
            RESIDUA_TESTS_PRECISE_FUNCTION(gelu_tanh),
            RESIDUA_TESTS_PRECISE_FUNCTION(silu_derivative)};
}

/// A function with its derivative, as the library has it and in higher precision.
template <class T>
struct derivative {
    const char* name;
    product<T> vjp, jvp;
    wide (*f)(wide);
    wide (*slope)(wide);
};
#define RESIDUA_TESTS_DERIVATIVE(name)                                                  \
    derivative<T>                                                                       \
    {                                                                                   \
        #name,                                                                          \
            [](std::vector<T>& dx, const std::vector<T>& x, const std::vector<T>& dy) { \
                api::name##_vjp(dx, x, dy);                                             \
            },                                                                          \
            [](std::vector<T>& ty, const std::vector<T>& x, const std::vector<T>& tx) { \
                api::name##_jvp(ty, x, tx);                                             \
            },                                                                          \
            reference::name, reference::name##_derivative                               \
    }
template <class T>
std::vector<derivative<T>> derivatives()
{
    return {RESIDUA_TESTS_DERIVATIVE(exp),     RESIDUA_TESTS_DERIVATIVE(tanh),
            RESIDUA_TESTS_DERIVATIVE(sigmoid), RESIDUA_TESTS_DERIVATIVE(silu),
            RESIDUA_TESTS_DERIVATIVE(gelu),    RESIDUA_TESTS_DERIVATIVE(gelu_tanh),
            RESIDUA_TESTS_DERIVATIVE(relu),    RESIDUA_TESTS_DERIVATIVE(silu_derivative)};
}

template <class T>
T at(function<T> f, T x)
{
    std::vector<T> y(1);
    f(y, {x});
    return y[0];
}
template <class T>
T at(product<T> f, T x, T v)
{
    std::vector<T> y(1);
    f(y, {x}, {v});
    return y[0];
}

/// From the far tails through the middle, the zeros of derivatives with their neighbours, and every binade.
template <class T>
std::vector<T> samples()
{
    reference::random random{17};
    std::vector<T> x;
    const double far = sizeof(T) == 4 ? 110 : 760;
    for (std::size_t i = 0; i < 1500 * reference::plenty; ++i) {
        for (const double reach : {2.0, 12.0, 42.0, far})
            x.push_back(static_cast<T>(random.uniform(-reach, reach)));
    }
    for (const double point : {-1.2784645, -0.7517916, -0.7524614, -1.1534645, -1.4034645, -0.6267916, -0.8767916,
                               0.0, -13.5, -14.4, -38.4, -37.5}) {
        T up = static_cast<T>(point);
        T down = up;
        for (int i = 0; i < 30; ++i) {
            x.insert(x.end(), {up, down});
            up = std::nextafter(up, infinity<T>);
            down = std::nextafter(down, -infinity<T>);
        }
    }
    for (int e = std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits + 1;
         e <= std::numeric_limits<T>::max_exponent; ++e) {
        const T sample = std::ldexp(static_cast<T>(random.uniform(0.5, 1)), e);
        x.insert(x.end(), {sample, -sample});
    }
    return x;
}

// --- functions ----------------------------------------------------------------------------------------------------

/// What the header states.
double bound_of(const std::string& name)
{
    if (name == "relu") return 0;
    const bool has_one_accuracy = name == "gelu" || name == "gelu_tanh" || name == "silu_derivative";
    return name.ends_with(", precise") || has_one_accuracy ? 1 : 2;
}
TYPED_TEST(floating, functions_are_within_their_bounds)
{
    using T = TypeParam;
    const auto x = samples<T>();
    for (const auto& e : functions<T>()) {
        const std::string name = e.name;
        std::vector<T> y(x.size());
        e.f(y, x);
        ulp::worst seen;
        for (std::size_t j = 0; j < x.size(); ++j) {
            if (name.starts_with("silu_derivative") && activations::lost_in_reference<T>(wide(x[j]))) continue;
            seen.see(y[j], e.exact(wide(x[j])), wide(x[j]));
        }
        ulp::expect_within<T>(seen, bound_of(name), name);
    }
}

// sonos/tract#2506: a test that stays inside [-10, 10] sees nothing of the tails.
TYPED_TEST(half, D7_every_pattern_is_rounded_correctly)
{
    using T = TypeParam;
    std::vector<T> x(65536);
    for (std::size_t u = 0; u < x.size(); ++u) x[u] = T::from_bits(static_cast<std::uint16_t>(u));
    std::vector<T> y(x.size());
    const std::vector<T> ones(x.size(), T(1.0F));
    const auto check = [&](const std::string& name, wide (*exact)(wide)) {
        int wrong = 0;
        for (std::size_t j = 0; j < x.size() && wrong < 5; ++j) {
            if (std::isinf(static_cast<float>(x[j]))) continue;
            if (nearly_rounded(y[j], exact(static_cast<wide>(static_cast<float>(x[j]))))) continue;
            ADD_FAILURE() << name << " of " << static_cast<float>(x[j]) << " is " << static_cast<float>(y[j]);
            ++wrong;
        }
    };
    for (const auto& e : functions<T>()) {
        e.f(y, x);
        check(e.name, e.exact);
    }
    for (const auto& d : derivatives<T>()) {
        d.vjp(y, x, ones);
        check(d.name + std::string{"'"}, d.slope);
    }
}

TYPED_TEST(every_type, C1_C4_C5_special_values)
{
    using T = TypeParam;
    struct row {
        const char* name;
        float at_minus_infinity, at_minus_zero, at_zero, at_infinity, far_below;
    };
    const float inf = infinity<float>;
    const std::array<row, 8> table{{{"exp", 0, 1, 1, inf, 0},
                                    {"tanh", -1, -0.0F, 0, 1, -1},
                                    {"sigmoid", 0, 0.5F, 0.5F, 1, 0},
                                    {"silu", -0.0F, -0.0F, 0, inf, -0.0F},
                                    {"gelu", -0.0F, -0.0F, 0, inf, -0.0F},
                                    {"gelu_tanh", -0.0F, -0.0F, 0, inf, -0.0F},
                                    {"relu", 0, -0.0F, 0, inf, 0},
                                    {"silu_derivative", -0.0F, 0.5F, 0.5F, 1, -0.0F}}};
    const float huge = -6e4F;
    for (const auto& f : functions<T>()) {
        const std::string name = f.name;
        const row& r = *std::ranges::find(table, name.substr(0, name.find(',')), &row::name);
        for (std::size_t n = 1; n <= 35; ++n) {
            for (const auto& [x, y] : {std::pair{-inf, r.at_minus_infinity},
                                       {-0.0F, r.at_minus_zero},
                                       {0.0F, r.at_zero},
                                       {inf, r.at_infinity},
                                       {huge, r.far_below},
                                       {nan<float>, nan<float>},
                                       {-nan<float>, nan<float>}}) {
                std::vector<T> in(n, T(1.0F));
                std::vector<T> out(n);
                in[n - 1] = T(x);
                f.f(out, in);
                ASSERT_TRUE(same(out[n - 1], T(y))) << name << " of " << x << ", n = " << n;
            }
        }
    }
}

// ARM-software/ComputeLibrary#998: 16-bit arithmetic. skyzh/tiny-llm#164: 1 - sigmoid(-x) in 16 bits.
TEST(rounding, D4_D9_the_tail_in_16_bits)
{
    EXPECT_EQ(at<bfloat16>([](auto& y, const auto& x) { api::silu(y, x); }, bfloat16(-6.25F)),
              bfloat16(-0.01202392578125F));
    EXPECT_EQ(at<bfloat16>([](auto& y, const auto& x) { api::silu(y, x); }, bfloat16(-8.0F)),
              bfloat16(-0.002685546875F));
    const function<float16> silu = [](auto& y, const auto& x) { api::silu(y, x); };
    EXPECT_EQ(at(silu, float16(-100.0F)).bits, 0x8000);
    EXPECT_EQ(at(silu, float16(-18.0F)).bits, 0x8005);
    EXPECT_EQ(at(silu, float16(20.0F)), float16(20.0F));
}

// tenstorrent/tt-metal#55711: the tail is flushed to zero while it is still a number.
TYPED_TEST(floating, D1_gelu_reaches_the_subnormal_numbers)
{
    using T = TypeParam;
    const function<T> gelu = [](auto& y, const auto& x) { api::gelu(y, x); };
    const T last = sizeof(T) == 4 ? T(-14.2) : T(-38.56);  // the exact value is a few of the smallest number
    EXPECT_LT(at(gelu, last), T(0));
    EXPECT_GT(at(gelu, last), -std::numeric_limits<T>::min());
    EXPECT_TRUE(ulp::same_bits(at(gelu, T(-40)), T(-0.0)));
}

// --- gradients ----------------------------------------------------------------------------------------------------

TEST(reference_formulas, are_the_derivatives)
{
    for (const auto& d : derivatives<float>()) {
        for (wide x = -9.1L; x < 9; x += 0.173L) {
            const wide h = 0x1p-20L;
            if (std::abs(x) < 2 * h) continue;
            const wide difference = (d.f(x + h) - d.f(x - h)) / (2 * h);
            EXPECT_NEAR(static_cast<double>(d.slope(x)), static_cast<double>(difference),
                        1e-9 * (1 + std::abs(static_cast<double>(d.slope(x)))))
                << d.name << " at " << static_cast<double>(x);
        }
    }
    for (wide x = -30; x < 30; x += 0.37L)
        EXPECT_EQ(reference::silu_derivative(x), derivatives<float>()[3].slope(x));
}

TYPED_TEST(floating, gradients_are_within_their_bounds)
{
    using T = TypeParam;
    const auto x = samples<T>();
    reference::random random{18};
    std::vector<T> dy(x.size());
    const int reach = std::numeric_limits<T>::max_exponent - 1;
    for (std::size_t j = 0; j < x.size(); ++j) {
        dy[j] = static_cast<T>(random.uniform(-2, 2));
        if (j % 2 == 0) dy[j] = std::ldexp(dy[j], static_cast<int>(random.uniform(-reach, reach)));
    }
    for (const auto& d : derivatives<T>()) {
        std::vector<T> dx(x.size());
        d.vjp(dx, x, dy);
        std::vector<T> ty(x.size());
        d.jvp(ty, x, dy);
        EXPECT_TRUE(ulp::all_same_bits(dx, ty)) << "the Jacobian is diagonal";
        ulp::worst seen;
        for (std::size_t j = 0; j < x.size(); ++j) {
            if (activations::lost_in_reference<T>(wide(x[j]))) continue;
            seen.see(dx[j], d.slope(wide(x[j])) * wide(dy[j]), wide(x[j]), wide(dy[j]));
        }
        ulp::expect_within<T>(seen, 1, d.name + std::string{"_vjp"});
        ulp::expect_within<T>(seen, 1, d.name + std::string{"_jvp"});

        auto in_place = x;
        d.vjp(in_place, in_place, dy);
        EXPECT_TRUE(ulp::all_same_bits(in_place, dx));
        in_place = dy;
        d.vjp(in_place, x, in_place);
        EXPECT_TRUE(ulp::all_same_bits(in_place, dx));
    }
}

// tenstorrent/tt-metal#35885, huggingface/candle#1722: s (1 - s) and 1 - tanh^2 are 0 once the function is 1.
TYPED_TEST(floating, G9_slopes_of_the_tails)
{
    using T = TypeParam;
    const auto near = [](T got, double right) {
        return std::abs(static_cast<double>(got) - right) <= 1e-6 * std::abs(right);
    };
    const product<T> sigmoid = [](auto& dx, const auto& x, const auto& dy) { api::sigmoid_vjp(dx, x, dy); };
    const product<T> tanh = [](auto& dx, const auto& x, const auto& dy) { api::tanh_vjp(dx, x, dy); };
    EXPECT_TRUE(near(at(sigmoid, T(20), T(1)), 2.06115369e-09));
    EXPECT_TRUE(near(at(sigmoid, T(30), T(1)), 9.3576229e-14));
    EXPECT_TRUE(near(at(tanh, T(15), T(1)), 3.74304897e-13));
    EXPECT_TRUE(ulp::same_bits(at(sigmoid, T(sizeof(T) == 4 ? -548 : -800), T(1)), T(0)));
    for (const T x : samples<T>()) {
        EXPECT_TRUE(ulp::same_bits(at(sigmoid, x, T(1)), at(sigmoid, -x, T(1)))) << x;
        EXPECT_TRUE(ulp::same_bits(at(tanh, x, T(1)), at(tanh, -x, T(1)))) << x;
    }
}

// huggingface/candle#2082, trymirai/lalamo#328: the sigmoid as silu(x) / x is 0/0 at zero.
TYPED_TEST(every_type, G8_slope_of_silu)
{
    using T = TypeParam;
    const product<T> silu = [](auto& dx, const auto& x, const auto& dy) { api::silu_vjp(dx, x, dy); };
    const T one = static_cast<T>(1.0F);
    EXPECT_TRUE(same(at(silu, T(0.0F), one), T(0.5F)));
    EXPECT_TRUE(same(at(silu, T(-0.0F), one), T(0.5F)));
    EXPECT_TRUE(same(at(silu, T(infinity<float>), one), one));
    EXPECT_TRUE(same(at(silu, T(-infinity<float>), one), T(-0.0F)));
    if constexpr (std::is_same_v<T, float>) {
        const wide right = reference::silu_derivative(static_cast<wide>(-1.2784645F));
        EXPECT_NEAR(static_cast<double>(right), -2.827e-09, 1e-12);
        EXPECT_LE(ulp::error(at(silu, -1.2784645F, 1.0F), right), 1);
    }
}

// The doubles next to the zeros of derivatives, with values computed to 200 bits: all digits would cancel.
TEST(gradients, near_their_zeros)
{
    const auto expect = [](product<double> f, double x, double right) {
        EXPECT_LE(ulp::error(at(f, x, 1.0), wide(right)), 1) << x;
    };
    expect([](auto& dx, const auto& x, const auto& dy) { api::silu_vjp(dx, x, dy); }, -0x1.474973c84120bp+0,
           0x1.b7d7537967aa7p-56);
    expect([](auto& dx, const auto& x, const auto& dy) { api::silu_vjp(dx, x, dy); }, -0x1.474973c842680p+0,
           -0x1.1d24a429f460cp-42);
    expect([](auto& dx, const auto& x, const auto& dy) { api::silu_vjp(dx, x, dy); }, -0x1.46c973c84120bp+0,
           0x1.beaa450640daep-12);
    expect([](auto& dx, const auto& x, const auto& dy) { api::gelu_vjp(dx, x, dy); }, -0x1.80ead197f00b4p-1,
           -0x1.dc33ec6564406p-58);
    expect([](auto& dx, const auto& x, const auto& dy) { api::gelu_vjp(dx, x, dy); }, -0x1.80ead197f18c3p-1,
           -0x1.4c3425eb7b822p-42);
    expect([](auto& dx, const auto& x, const auto& dy) { api::gelu_vjp(dx, x, dy); }, -0x1.7fead197f00b4p-1,
           0x1.baa058385d64cp-11);
    expect([](auto& dx, const auto& x, const auto& dy) { api::gelu_tanh_vjp(dx, x, dy); }, -0x1.81429f9e97e4dp-1,
           -0x1.20a50541a648bp-56);
    expect([](auto& dx, const auto& x, const auto& dy) { api::gelu_tanh_vjp(dx, x, dy); }, -0x1.81429f9e99661p-1,
           -0x1.4ba41135c10efp-42);
    expect([](auto& dx, const auto& x, const auto& dy) { api::gelu_tanh_vjp(dx, x, dy); }, -0x1.80429f9e97e4dp-1,
           0x1.b98131e5010d1p-11);
}

// An infinite gradient does not pass where a function is flat, a NaN does.
TYPED_TEST(every_type, relu_stops_any_gradient_but_nan)
{
    using T = TypeParam;
    const product<T> relu = [](auto& dx, const auto& x, const auto& dy) { api::relu_vjp(dx, x, dy); };
    const T inf = static_cast<T>(infinity<float>);
    EXPECT_TRUE(same(at(relu, T(-1.0F), inf), T(0.0F)));
    EXPECT_TRUE(same(at(relu, T(0.0F), T(-3.0F)), T(0.0F)));
    EXPECT_TRUE(same(at(relu, T(2.0F), T(-infinity<float>)), T(-infinity<float>)));
    EXPECT_TRUE(same(at(relu, T(-1.0F), T(nan<float>)), T(nan<float>)));
    EXPECT_TRUE(same(at(relu, T(nan<float>), T(1.0F)), T(nan<float>)));
    for (const auto& d : derivatives<T>()) {
        EXPECT_TRUE(same(at(d.vjp, T(nan<float>), T(1.0F)), T(nan<float>))) << d.name;
        EXPECT_TRUE(same(at(d.vjp, T(1.0F), T(nan<float>)), T(nan<float>))) << d.name;
        EXPECT_TRUE(same(at(d.vjp, T(-infinity<float>), T(0.0F)), T(0.0F))
                    || same(at(d.vjp, T(-infinity<float>), T(0.0F)), T(-0.0F)))
            << d.name;
    }
}

// --- lengths, types -----------------------------------------------------------------------------------------------

// pytorch/pytorch#197018, numpy/numpy#23523: the body of the loop and its tail differ.
TYPED_TEST(every_type, H2_body_and_tail_agree)
{
    using T = TypeParam;
    std::vector<std::size_t> lengths{511, 512, 513, 1025};
    for (std::size_t n = 1; n <= 70; ++n) lengths.push_back(n);
    for (const float value : {0.3F, -1.2784645F, -90.0F, 7.0F}) {
        for (const auto& e : functions<T>()) {
            const T alone = at(e.f, T(value));
            for (const std::size_t n : lengths) {
                std::vector<T> y(n);
                e.f(y, std::vector<T>(n, T(value)));
                for (const T got : y) ASSERT_TRUE(same(got, alone)) << e.name << ", n = " << n;
            }
        }
        for (const auto& d : derivatives<T>()) {
            const T alone = at(d.vjp, T(value), T(3.0F));
            for (const std::size_t n : lengths) {
                std::vector<T> y(n);
                d.vjp(y, std::vector<T>(n, T(value)), std::vector<T>(n, T(3.0F)));
                for (const T got : y) ASSERT_TRUE(same(got, alone)) << d.name << ", n = " << n;
            }
        }
    }
}

template <class To, class From>
void expect_conversion(ulp::worst& seen)
{
    reference::random random{29};
    std::vector<From> x;
    using number = std::conditional_t<std::is_same_v<From, double>, double, float>;
    for (std::size_t i = 0; i < 1100; ++i) {
        x.push_back(
            From(static_cast<number>(random.uniform(-1, 1) * std::exp2(std::floor(random.uniform(-30, 20))))));
    }
    x.insert(x.end(), {From(0.0F), From(-0.0F), From(infinity<float>), From(-infinity<float>), From(nan<float>)});
    std::vector<To> y(x.size());
    api::convert(y, x);
    for (std::size_t j = 0; j < x.size(); ++j) {
        if constexpr (sizeof(To) > 2) seen.see(y[j], static_cast<wide>(number(x[j])), 0);
        if constexpr (sizeof(From) == 2) {
            ASSERT_TRUE(same(y[j], To(static_cast<float>(x[j]))));
        } else {
            ASSERT_TRUE(same(y[j], static_cast<To>(x[j])));
        }
    }
}
TYPED_TEST(every_type, convert_rounds_once)
{
    using T = TypeParam;
    ulp::worst seen;
    expect_conversion<T, float>(seen);
    expect_conversion<T, double>(seen);
    expect_conversion<T, bfloat16>(seen);
    expect_conversion<T, float16>(seen);
    if constexpr (sizeof(T) > 2) ulp::expect_within<T>(seen, sizeof(T) == 8 ? 0 : 0.5, "convert");
}
// By way of a float this would be a tie, and go to the even number below.
TEST(conversion, a_double_is_not_rounded_twice)
{
    std::array<bfloat16, 1> y{};
    api::convert(y, std::array{1 + 0x1p-8 + 0x1p-40});
    EXPECT_EQ(y[0].bits, 0x3f81);
    std::array<float16, 1> z{};
    api::convert(z, std::array{1 + 0x1p-11 + 0x1p-40});
    EXPECT_EQ(z[0].bits, 0x3c01);
}

}  // namespace
