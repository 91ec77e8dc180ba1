// What the public headers promise of every operation, checked against the formulas in higher precision.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "support/api.hpp"
#include "support/memory.hpp"
#include "support/reference.hpp"
#include "support/ulp.hpp"

namespace {

using reference::wide;
using reference::wide_row;

template <class T>
inline constexpr T infinity = std::numeric_limits<T>::infinity();
template <class T>
inline constexpr T nan = std::numeric_limits<T>::quiet_NaN();
template <class T>
inline constexpr bool is_float = sizeof(T) == 4;

using lengths = std::vector<std::size_t>;
lengths up_to(std::size_t last)
{
    lengths all(last);
    std::iota(all.begin(), all.end(), std::size_t{1});
    return all;
}

/// The relative error of one rounding.
template <class T>
inline constexpr wide u = wide(std::numeric_limits<T>::epsilon()) / 2;

/// f or d, by type: thresholds are where they are because of the type's range.
template <class T>
constexpr double pick(double f, double d)
{
    return is_float<T> ? f : d;
}

template <class T>
using elementwise = void (*)(std::vector<T>&, const std::vector<T>&);

/// y = f(x) through the library, for one of the functions of elementary.hpp.
#define RESIDUA_TESTS_CALL(name)                                 \
    template <class T>                                           \
    void call_##name(std::vector<T>& y, const std::vector<T>& x) \
    {                                                            \
        api::name(y, x);                                         \
    }
RESIDUA_TESTS_CALL(exp)
RESIDUA_TESTS_CALL(log)
RESIDUA_TESTS_CALL(tanh)
RESIDUA_TESTS_CALL(sigmoid)
RESIDUA_TESTS_CALL(silu)
RESIDUA_TESTS_CALL(cos_2pi)
RESIDUA_TESTS_CALL(softmax)
#undef RESIDUA_TESTS_CALL

template <class T>
std::vector<T> of(elementwise<T> f, const std::vector<T>& x)
{
    std::vector<T> y(x.size());
    f(y, x);
    return y;
}
template <class T>
T at(elementwise<T> f, T x)
{
    return of(f, std::vector<T>{x})[0];
}

/// A dense range, every binade of the type, any bit pattern, and the neighbours of the points where something changes.
template <class T>
std::vector<T> samples(double low, double high, std::initializer_list<double> turning_points)
{
    reference::random random{7};
    std::vector<T> x;
    const auto dense = 4000 * reference::plenty;
    for (std::size_t i = 0; i <= dense; ++i) {
        x.push_back(static_cast<T>(low + (high - low) * static_cast<double>(i) / static_cast<double>(dense)));
    }
    const auto last = std::numeric_limits<T>::max_exponent;
    const auto first = std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits;
    for (int e = first; e <= last; ++e) {
        for (std::size_t i = 0; i < reference::plenty; ++i) {
            const T sample = std::ldexp(static_cast<T>(random.uniform(0.5, 1)), e);
            x.insert(x.end(), {sample, -sample});
        }
    }
    for (std::size_t i = 0; i < dense; ++i) {
        if (const T sample = random.pattern<T>(); std::isfinite(sample)) x.push_back(sample);
    }
    for (const double point : turning_points) {
        T up = static_cast<T>(point);
        T down = up;
        for (int i = 0; i < 100; ++i) {
            x.insert(x.end(), {up, down});
            up = std::nextafter(up, infinity<T>);
            down = std::nextafter(down, -infinity<T>);
        }
    }
    for (const T sample : {T(0), std::numeric_limits<T>::denorm_min(), std::numeric_limits<T>::min(),
                           std::numeric_limits<T>::max()}) {
        x.insert(x.end(), {sample, -sample});
    }
    return x;
}

template <class T>
void expect_elementwise(const char* name, elementwise<T> f, wide (*exact)(wide), double bound,
                        const std::vector<T>& x)
{
    const auto y = of(f, x);
    ulp::worst seen;
    for (std::size_t i = 0; i < x.size(); ++i) seen.see(y[i], exact(wide(x[i])), wide(x[i]));
    ulp::expect_within<T>(seen, bound, name);
}

template <class T>
class elementary : public testing::Test {};
template <class T>
class norms : public testing::Test {};
template <class T>
class gated : public testing::Test {};
template <class T>
class linear : public testing::Test {};
using types = testing::Types<float, double>;
TYPED_TEST_SUITE(elementary, types, );
TYPED_TEST_SUITE(norms, types, );
TYPED_TEST_SUITE(gated, types, );
TYPED_TEST_SUITE(linear, types, );

// --- exp, log, tanh, sigmoid, silu, cos_2pi -----------------------------------------------------------------------

TYPED_TEST(elementary, exp_is_within_2_ulp)
{
    using T = TypeParam;
    const auto x = is_float<T> ? samples<T>(-104, 89, {88.7228, -87.3365, -103.9721, -103.2789, 0.3465736})
                               : samples<T>(-746, 710, {709.782712, -708.396418, -745.1332, -744.44, 0.3465736});
    expect_elementwise<T>("exp", call_exp, reference::exp, 2, x);
}

TYPED_TEST(elementary, exp_is_infinite_only_beyond_the_largest_number)
{
    using T = TypeParam;
    std::vector<T> x{std::log(std::numeric_limits<T>::max())};
    for (int i = 0; i < 8; ++i) x[0] = std::nextafter(x[0], T(0));
    for (int i = 0; i < 16; ++i) x.push_back(std::nextafter(x.back(), infinity<T>));
    const auto y = of<T>(call_exp, x);
    for (std::size_t i = 0; i < x.size(); ++i) {
        const bool beyond = reference::exp(wide(x[i])) > wide(std::numeric_limits<T>::max());
        EXPECT_EQ(std::isinf(y[i]), beyond) << x[i];
    }
}

TYPED_TEST(elementary, log_is_within_2_ulp)
{
    using T = TypeParam;
    const auto limits = static_cast<double>(std::numeric_limits<T>::min());
    const auto x = samples<T>(0, 4, {1, 0.5, 2, 0.70710678, 1.41421356, limits});
    expect_elementwise<T>("log", call_log, reference::log, 2, x);
}

TYPED_TEST(elementary, tanh_is_within_2_ulp)
{
    using T = TypeParam;
    const auto x = samples<T>(-22, 22, {9.01, 19.0615, 0.3465736, 0.5493061, 0.625, 0.25, 1});
    expect_elementwise<T>("tanh", call_tanh, reference::tanh, 2, x);
}

TYPED_TEST(elementary, sigmoid_is_within_2_ulp)
{
    using T = TypeParam;
    const auto x = is_float<T> ? samples<T>(-106, 30, {-87.3365, -88.7228, -103.9721, -103.2789})
                               : samples<T>(-748, 60, {-708.396418, -709.782712, -745.1332, -744.44});
    expect_elementwise<T>("sigmoid", call_sigmoid, reference::sigmoid, 2, x);
}

TYPED_TEST(elementary, silu_is_within_2_ulp)
{
    using T = TypeParam;
    const auto x = is_float<T>
                       ? samples<T>(-112, 30, {-87.3365, -88.7228, -91.96, -103.9721, -108.6, -1.2784645})
                       : samples<T>(-755, 60, {-708.396418, -709.782712, -715, -745.1332, -751.7, -1.2784645});
    expect_elementwise<T>("silu", call_silu, reference::silu, 2, x);
}

TYPED_TEST(elementary, cos_2pi_is_within_2_ulp)
{
    using T = TypeParam;
    const auto x = samples<T>(-3, 3, {0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 1, 4096.25});
    expect_elementwise<T>("cos_2pi", call_cos_2pi, reference::cos_2pi, 2, x);
}

TYPED_TEST(elementary, cos_2pi_is_exact_at_every_quarter_turn)
{
    using T = TypeParam;
    const std::array<T, 4> quarter{1, 0, -1, 0};
    const auto digits = std::numeric_limits<T>::digits;
    for (const T turns : {T(0), T(1), T(77), std::ldexp(T(1), digits - 3) - 1}) {
        for (std::size_t q = 0; q < 4; ++q) {
            const T turn = turns + static_cast<T>(q) / 4;
            EXPECT_EQ(at<T>(call_cos_2pi, turn), quarter[q]) << turn;
            EXPECT_EQ(at<T>(call_cos_2pi, -turn), quarter[q]) << -turn;
        }
    }
    EXPECT_EQ(at<T>(call_cos_2pi, std::numeric_limits<T>::max()), T(1));
}

TYPED_TEST(elementary, tanh_is_odd_to_the_bit)
{
    using T = TypeParam;
    auto x = samples<T>(-22, 22, {});
    const auto y = of<T>(call_tanh, x);
    for (T& e : x) e = -e;
    auto mirrored = of<T>(call_tanh, x);
    for (T& e : mirrored) e = -e;
    EXPECT_TRUE(ulp::all_same_bits(y, mirrored));
}

TYPED_TEST(elementary, special_values)
{
    using T = TypeParam;
    const T inf = infinity<T>;
    struct row {
        const char* name;
        elementwise<T> f;
        T at_minus_infinity, at_minus_zero, at_zero, at_infinity;
    };
    const std::array<row, 6> table{{
        {"exp", call_exp, T(0), T(1), T(1), inf},
        {"log", call_log, nan<T>, -inf, -inf, inf},
        {"tanh", call_tanh, T(-1), T(-0.0), T(0), T(1)},
        {"sigmoid", call_sigmoid, T(0), T(0.5), T(0.5), T(1)},
        {"silu", call_silu, T(-0.0), T(-0.0), T(0), inf},
        {"cos_2pi", call_cos_2pi, nan<T>, T(1), T(1), nan<T>},
    }};
    for (const row& r : table) {
        const auto y = of(r.f, std::vector<T>{-inf, T(-0.0), T(0), inf, nan<T>, -nan<T>});
        const std::vector<T> expected{r.at_minus_infinity, r.at_minus_zero, r.at_zero,
                                      r.at_infinity,       nan<T>,          nan<T>};
        EXPECT_TRUE(ulp::all_same_bits(y, expected)) << r.name;
    }
    EXPECT_TRUE(std::isnan(at<T>(call_log, T(-1))));
    EXPECT_TRUE(std::isnan(at<T>(call_log, -std::numeric_limits<T>::denorm_min())));
}

TYPED_TEST(elementary, every_lane_and_tail_gives_the_same_bits)
{
    using T = TypeParam;
    for (const auto f : {elementwise<T>{call_exp}, elementwise<T>{call_log}, elementwise<T>{call_tanh},
                         elementwise<T>{call_sigmoid}, elementwise<T>{call_silu}, elementwise<T>{call_cos_2pi}}) {
        for (const T value : {T(0.3), T(-1.2784645), T(-90), T(7), T(-0.0), infinity<T>, nan<T>}) {
            const T alone = at(f, value);
            for (std::size_t n = 1; n <= 70; ++n) {
                const auto y = of(f, std::vector<T>(n, value));
                for (const T e : y) ASSERT_TRUE(ulp::same_bits(e, alone)) << value << ", n = " << n;
            }
        }
    }
}

TYPED_TEST(elementary, in_place_gives_the_same_bits)
{
    using T = TypeParam;
    reference::random random{3};
    for (const auto f : {elementwise<T>{call_exp}, elementwise<T>{call_log}, elementwise<T>{call_tanh},
                         elementwise<T>{call_sigmoid}, elementwise<T>{call_silu}, elementwise<T>{call_cos_2pi},
                         elementwise<T>{call_softmax}}) {
        auto x = random.row<T>(77, -9, 9);
        const auto y = of(f, x);
        f(x, x);
        EXPECT_TRUE(ulp::all_same_bits(x, y));
    }
}

TYPED_TEST(elementary, tanh_vjp_takes_two_roundings)
{
    using T = TypeParam;
    reference::random random{5};
    auto y = random.row<T>(999, -1, 1);
    y.insert(y.end(), {T(1), T(-1), T(0), std::nextafter(T(1), T(0))});
    const auto dy = random.row<T>(y.size(), -3, 3);
    std::vector<T> dx(y.size());
    api::tanh_vjp_from_output(dx, y, dy);
    ulp::worst seen;
    for (std::size_t j = 0; j < y.size(); ++j) {
        seen.see(dx[j], wide(dy[j]) * ((1 - wide(y[j])) * (1 + wide(y[j]))), wide(y[j]), wide(dy[j]));
    }
    ulp::expect_within<T>(seen, 1.5, "tanh_vjp_from_output");

    auto in_place = dy;
    api::tanh_vjp_from_output(in_place, y, in_place);
    EXPECT_TRUE(ulp::all_same_bits(in_place, dx));
    in_place = y;
    api::tanh_vjp_from_output(in_place, in_place, dy);
    EXPECT_TRUE(ulp::all_same_bits(in_place, dx));
}

// --- softmax ------------------------------------------------------------------------------------------------------

template <class T>
void see_softmax(ulp::worst& seen, const std::vector<T>& x)
{
    const auto y = of<T>(call_softmax, x);
    const auto exact = reference::softmax(reference::widen(x));
    for (std::size_t j = 0; j < x.size(); ++j) {
        if (exact[j] >= wide(std::numeric_limits<T>::min())) {
            seen.see(y[j], exact[j], wide(x[j]), static_cast<wide>(x.size()));
        } else {
            EXPECT_LE(y[j], std::numeric_limits<T>::min());
        }
    }
}

TYPED_TEST(elementary, softmax_is_within_4_ulp)
{
    using T = TypeParam;
    reference::random random{11};
    ulp::worst seen;
    for (std::size_t n = 1; n <= 130; ++n) {
        for (const double spread : {1e-3, 1.0, 20.0, pick<T>(90, 800)}) {
            see_softmax(seen, random.row<T>(n, -spread, spread));
            see_softmax(seen, random.row<T>(n, 1e4 - spread, 1e4 + spread));
        }
        see_softmax(seen, random.row<T>(n, -4e5, -4e5 + 20));
    }
    see_softmax(seen, random.row<T>(4097, -10, 10));
    ulp::expect_within<T>(seen, 4, "softmax");
}

TYPED_TEST(elementary, softmax_of_masked_and_huge_entries)
{
    using T = TypeParam;
    const T masked = -infinity<T>;
    const T huge = std::numeric_limits<T>::max();
    EXPECT_TRUE(ulp::all_same_bits(of<T>(call_softmax, {masked, 3, masked, 3}), std::vector<T>{0, 0.5, 0, 0.5}));
    EXPECT_TRUE(ulp::all_same_bits(of<T>(call_softmax, {huge, -huge, huge}), std::vector<T>{0.5, 0, 0.5}));
    EXPECT_TRUE(ulp::all_same_bits(of<T>(call_softmax, {-huge}), std::vector<T>{1}));
    EXPECT_TRUE(ulp::all_same_bits(of<T>(call_softmax, std::vector<T>(64, T(-77))), std::vector<T>(64, T(1) / 64)));

    // e^(x - m) is 0/0 for a row of -infinity, and infinity/infinity at an infinity.
    EXPECT_TRUE(ulp::all_same_bits(of<T>(call_softmax, {masked, masked}), std::vector<T>{nan<T>, nan<T>}));
    EXPECT_TRUE(std::isnan(of<T>(call_softmax, {infinity<T>, T(0)})[0]));
    for (std::size_t n = 1; n <= 40; ++n) {
        for (std::size_t where = 0; where < n; ++where) {
            std::vector<T> x(n, T(1));
            x[where] = nan<T>;
            EXPECT_TRUE(ulp::all_same_bits(of<T>(call_softmax, x), std::vector<T>(n, nan<T>)));
        }
    }
}

// --- box_muller ---------------------------------------------------------------------------------------------------

TYPED_TEST(elementary, box_muller_is_its_formula_and_gives_unit_normals)
{
    using T = TypeParam;
    reference::random random{13};
    auto first = random.row<T>(40000, 0, 1);
    auto second = random.row<T>(40000, 0, 1);
    first[0] = 0;
    first[1] = T(1e-13);
    std::vector<T> z(first.size());
    api::box_muller(z, first, second);
    wide mean = 0;
    wide square = 0;
    ulp::worst seen;
    for (std::size_t j = 0; j < z.size(); ++j) {
        if (j % (40 / reference::plenty) == 0) {
            // the guard is 1e-12 in T
            const wide exact = reference::box_muller(std::max(wide(first[j]), wide(T(1e-12))), wide(second[j]));
            const wide off = std::abs(wide(z[j]) - exact);
            seen.see_error(static_cast<double>(off / ulp::unit<T>(std::max(std::abs(exact), wide(1)))),
                           wide(first[j]), wide(second[j]));
        }
        mean += wide(z[j]) / 40000;
        square += wide(z[j]) * wide(z[j]) / 40000;
    }
    ulp::expect_within<T>(seen, 4, "box_muller", "ulp of z or of 1, the larger");
    EXPECT_NEAR(static_cast<double>(mean), 0, 4 / std::sqrt(40000.0));
    EXPECT_NEAR(static_cast<double>(square), 1, 4 * std::sqrt(2 / 40000.0));
}

// --- RMSNorm ------------------------------------------------------------------------------------------------------

template <class T>
inline constexpr double rms_norm_bound = is_float<T> ? 2.5 : 4.5;

enum class kind { none, plain, zero_centered };

template <class T>
wide_row factors(const std::vector<T>& w, kind k)
{
    wide_row f;
    for (const T e : w) f.push_back(k == kind::none ? 1 : k == kind::plain ? wide(e) : wide(1 + e));
    return f;
}

template <class Y, class X, class T>
void rms_norm(Y&& y, const X& x, const std::vector<T>& w, kind k, T eps)
{
    if (k == kind::none) api::rms_norm(y, x, api::no_weight, {.eps = eps});
    if (k == kind::plain) api::rms_norm(y, x, w, {.eps = eps});
    if (k == kind::zero_centered) api::rms_norm(y, x, api::zero_centered(w), {.eps = eps});
}

template <class T>
void see_rms_norm(ulp::worst& seen, const std::vector<T>& x, const std::vector<T>& w, kind k, T eps)
{
    std::vector<T> y(x.size());
    rms_norm(y, x, w, k, eps);
    const auto xh = reference::normalized(reference::widen(x), wide(eps));
    const auto f = factors(w, k);
    for (std::size_t j = 0; j < x.size(); ++j) {
        if (std::abs(xh[j]) < wide(std::numeric_limits<T>::min())) continue;
        seen.see(y[j], xh[j] * f[j], wide(x[j]), static_cast<wide>(x.size()));
    }
}

constexpr std::array kinds{kind::none, kind::plain, kind::zero_centered};

TYPED_TEST(norms, rms_norm_is_within_its_bound_at_every_length)
{
    using T = TypeParam;
    reference::random random{17};
    ulp::worst seen;
    auto all = up_to(130);
    all.insert(all.end(), {1000, 4097});
    for (const auto n : all) {
        for (std::size_t repeat = 0; repeat < reference::plenty; ++repeat) {
            const auto x = random.row<T>(n);
            const auto w = random.row<T>(n);
            for (const kind k : kinds) see_rms_norm(seen, x, w, k, T(1e-6));
        }
    }
    ulp::expect_within<T>(seen, rms_norm_bound<T>, "rms_norm");
}

TYPED_TEST(norms, rms_norm_is_within_its_bound_over_the_whole_range)
{
    using T = TypeParam;
    reference::random random{19};
    ulp::worst seen;
    const int first = std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits;
    const int last = std::numeric_limits<T>::max_exponent;
    for (int e = first; e <= last; e += is_float<T> ? 1 : 5) {
        for (const auto n : lengths{1, 16, 67, 515}) {
            auto x = random.row<T>(n, -1, 1);
            for (T& v : x) v = std::ldexp(v, e);
            const auto w = random.row<T>(n);
            for (const T eps : {T(0), T(1e-6), std::numeric_limits<T>::denorm_min()}) {
                if (eps == 0 && reference::mean_square(reference::widen(x)) == 0) continue;
                see_rms_norm(seen, x, w, kind::plain, eps);
            }
        }
    }
    ulp::expect_within<T>(seen, rms_norm_bound<T>, "rms_norm, over the range");
}

TYPED_TEST(norms, rms_norm_of_rows_that_mix_magnitudes)
{
    using T = TypeParam;
    reference::random random{23};
    ulp::worst seen;
    const double reach = pick<T>(120, 1000);
    for (const auto n : lengths{2, 17, 130, 1000}) {
        for (std::size_t repeat = 0; repeat < 50 * reference::plenty; ++repeat) {
            auto x = random.row<T>(n, 1, 2);
            const double width = random.uniform(0, reach);
            for (T& v : x) v = std::ldexp(v, static_cast<int>(random.uniform(-width, width)));
            see_rms_norm(seen, x, x, kind::none, T(0));
            see_rms_norm(seen, x, x, kind::none, T(1e-5));
        }
    }
    ulp::expect_within<T>(seen, rms_norm_bound<T>, "rms_norm, of mixed rows");
}

TYPED_TEST(norms, rms_norm_does_not_depend_on_scale_when_eps_is_0)
{
    using T = TypeParam;
    reference::random random{29};
    for (const auto n : lengths{1, 7, 16, 100, 1000}) {
        const auto x = random.row<T>(n, 1, 2);
        const auto w = random.row<T>(n);
        std::vector<T> y(n);
        api::rms_norm(y, x, w, {.eps = T(0)});
        for (int e = std::numeric_limits<T>::min_exponent; e < std::numeric_limits<T>::max_exponent - 1; ++e) {
            auto scaled = x;
            for (T& v : scaled) v = std::ldexp(v, e);
            api::rms_norm(scaled, scaled, w, {.eps = T(0)});
            ASSERT_TRUE(ulp::all_same_bits(scaled, y)) << "n = " << n << ", x times 2^" << e;
        }
    }
}

TYPED_TEST(norms, rms_norm_of_zeros_nans_and_infinities)
{
    using T = TypeParam;
    const T inf = infinity<T>;
    for (std::size_t n = 1; n <= 70; ++n) {
        const std::vector<T> w(n, T(2));
        std::vector<T> y(n, T(5));
        api::rms_norm(y, std::vector<T>(n, T(0)), w, {.eps = T(1e-6)});
        EXPECT_TRUE(ulp::all_same_bits(y, std::vector<T>(n, T(0))));
        api::rms_norm(y, std::vector<T>(n, T(0)), w, {.eps = T(0)});
        EXPECT_TRUE(ulp::all_same_bits(y, std::vector<T>(n, nan<T>)));
        for (std::size_t where = 0; where < n; ++where) {
            std::vector<T> x(n, T(3));
            x[where] = nan<T>;
            api::rms_norm(y, x, w, {.eps = T(1e-6)});
            EXPECT_TRUE(ulp::all_same_bits(y, std::vector<T>(n, nan<T>)));
            for (const T huge : {inf, -inf}) {
                x[where] = huge;
                api::rms_norm(y, x, w, {.eps = T(1e-6)});
                std::vector<T> expected(n, T(0));
                expected[where] = nan<T>;
                EXPECT_TRUE(ulp::all_same_bits(y, expected)) << "n = " << n << ", infinity at " << where;
            }
        }
    }
}

TYPED_TEST(norms, a_nan_or_infinity_beside_huge_numbers)
{
    using T = TypeParam;
    for (const auto n : lengths{2, 33, 700}) {
        std::vector<T> x(n, std::numeric_limits<T>::max());
        std::vector<T> y(n);
        x[n / 2] = nan<T>;
        api::rms_norm(y, x, api::no_weight, {.eps = T(1e-6)});
        EXPECT_TRUE(ulp::all_same_bits(y, std::vector<T>(n, nan<T>)));
        x[n / 2] = infinity<T>;
        api::rms_norm(y, x, api::no_weight, {.eps = T(1e-6)});
        std::vector<T> expected(n, T(0));
        expected[n / 2] = nan<T>;
        EXPECT_TRUE(ulp::all_same_bits(y, expected));
    }
}

TYPED_TEST(norms, the_rows_of_a_batch_are_the_rows_alone)
{
    using T = TypeParam;
    reference::random random{31};
    for (const auto n : lengths{1, 7, 16, 33, 130}) {
        const std::size_t count = 9;
        auto packed = random.row<T>(count * n);
        packed[3 * n] =
            std::numeric_limits<T>::max();  // a row that needs another path must not change its neighbours
        const auto w = random.row<T>(n);
        for (const kind k : kinds) {
            memory::strided<T> x(packed, count, n, n + 3);
            memory::strided<T> y(count, n, n + 5);
            rms_norm(y.view(), x.view(), w, k, T(1e-6));
            EXPECT_TRUE(y.gaps_untouched());
            EXPECT_TRUE(x.gaps_untouched());
            EXPECT_TRUE(ulp::all_same_bits(x.packed(), packed)) << "the input was written";
            std::vector<T> alone;
            for (std::size_t i = 0; i < count; ++i) {
                const std::vector<T> row(x.view()[i], x.view()[i] + n);
                std::vector<T> out(n);
                rms_norm(out, row, w, k, T(1e-6));
                alone.insert(alone.end(), out.begin(), out.end());
            }
            EXPECT_TRUE(ulp::all_same_bits(y.packed(), alone));
            rms_norm(x.view(), x.view(), w, k, T(1e-6));
            EXPECT_TRUE(x.gaps_untouched());
            EXPECT_TRUE(ulp::all_same_bits(x.packed(), alone)) << "in place";
        }
    }
}

TYPED_TEST(norms, alignment_changes_no_bit)
{
    using T = TypeParam;
    reference::random random{37};
    for (const auto n : lengths{5, 100, 301, 4099}) {
        const auto x = random.row<T>(n);
        const auto w = random.row<T>(n);
        std::vector<T> y(n);
        api::rms_norm(y, x, w, {.eps = T(1e-6)});
        for (std::size_t shift = 0; shift < 16; ++shift) {
            memory::shifted<T> in(x, shift);
            memory::shifted<T> weight(w, (5 * shift + 3) % 16);
            memory::shifted<T> out(y, (3 * shift + 1) % 16);
            std::ranges::fill(out.view(), T(0));
            api::rms_norm(out.view(), in.view(), weight.view(), {.eps = T(1e-6)});
            EXPECT_TRUE(ulp::all_same_bits(out.view(), y)) << "shift " << shift;
        }
    }
}

// Where stores and loads agree modulo 4 KiB, a walk begins at the other end.
TYPED_TEST(norms, the_distance_of_operands_changes_no_bit)
{
    using T = TypeParam;
    reference::random random{39};
    constexpr std::size_t page = 4096 / sizeof(T);
    for (const auto n : lengths{33, 700, 4100}) {
        const auto x = random.row<T>(n);
        const auto w = random.row<T>(n);
        std::vector<T> normed(n), gated(n), summed(n), of_sum(n);
        api::rms_norm(normed, x, w, {.eps = T(1e-6)});
        api::swiglu(gated, x, w);
        summed = w;
        api::add_rms_norm(of_sum, summed, x, w, {.eps = T(1e-6)});
        const std::size_t room = (n / page + 2) * page;
        std::vector<T> memory(4 * room);
        for (const std::size_t of_w : {0 * page, page / 8, page / 2, 7 * page / 8}) {
            for (const std::size_t of_y :
                 {std::size_t{0}, std::size_t{3}, page / 8, page / 2 + 1, 15 * page / 16}) {
                const std::span<T> in(memory.data(), n), weight(memory.data() + room + of_w, n),
                    out(memory.data() + 2 * room + of_y, n), sum(memory.data() + 3 * room + of_w, n);
                std::ranges::copy(x, in.begin());
                std::ranges::copy(w, weight.begin());
                std::ranges::copy(w, sum.begin());
                api::rms_norm(out, in, weight, {.eps = T(1e-6)});
                EXPECT_TRUE(ulp::all_same_bits(out, normed)) << n << ' ' << of_w << ' ' << of_y;
                api::swiglu(out, in, weight);
                EXPECT_TRUE(ulp::all_same_bits(out, gated)) << n << ' ' << of_w << ' ' << of_y;
                api::add_rms_norm(out, sum, in, weight, {.eps = T(1e-6)});
                EXPECT_TRUE(ulp::all_same_bits(out, of_sum)) << n << ' ' << of_w << ' ' << of_y;
                EXPECT_TRUE(ulp::all_same_bits(sum, summed)) << n << ' ' << of_w << ' ' << of_y;
            }
        }
    }
}

TYPED_TEST(norms, zero_centered_is_one_plus_the_weight)
{
    using T = TypeParam;
    reference::random random{41};
    const auto x = random.row<T>(100);
    auto factor = random.row<T>(100, 0.5, 2);
    std::vector<T> w;
    for (const T f : factor) w.push_back(f - 1);  // without a rounding
    std::vector<T> y(100);
    std::vector<T> same(100);
    api::zero_centered_rms_norm(y, x, w, {.eps = T(1e-6)});
    api::rms_norm(same, x, factor, {.eps = T(1e-6)});
    EXPECT_TRUE(ulp::all_same_bits(y, same));
    api::rms_norm(same, x, api::zero_centered(w), {.eps = T(1e-6)});
    EXPECT_TRUE(ulp::all_same_bits(y, same));
    api::rms_norm(y, x, api::no_weight, {.eps = T(1e-6)});
    api::rms_norm(same, x, std::vector<T>(100, T(1)), {.eps = T(1e-6)});
    EXPECT_TRUE(ulp::all_same_bits(y, same));
}

TYPED_TEST(norms, rms_is_within_its_bound_and_in_range)
{
    using T = TypeParam;
    reference::random random{43};
    ulp::worst seen;
    const int first = std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits;
    for (std::size_t n = 1; n <= 130; ++n) {
        for (int e = first; e <= std::numeric_limits<T>::max_exponent; e += is_float<T> ? 7 : 61) {
            auto x = random.row<T>(n, -1, 1);
            for (T& v : x) v = std::ldexp(v, e);
            seen.see(api::rms(x), std::sqrt(reference::mean_square(reference::widen(x))), wide(x[0]),
                     static_cast<wide>(n));
        }
    }
    ulp::expect_within<T>(seen, is_float<T> ? 1 : 2, "rms");
    const T huge = std::numeric_limits<T>::max();
    const T tiny = std::numeric_limits<T>::denorm_min();
    EXPECT_EQ(api::rms(std::vector<T>(300, huge)), huge);
    EXPECT_EQ(api::rms(std::vector<T>(300, tiny)), tiny);
    EXPECT_EQ(api::rms(std::vector<T>(300, T(0))), T(0));
    EXPECT_EQ(api::rms(std::vector<T>{}), T(0));
    EXPECT_TRUE(std::isnan(api::rms(std::vector<T>{1, nan<T>})));
    EXPECT_EQ(api::rms(std::vector<T>{1, -infinity<T>}), infinity<T>);

    memory::strided<T> x({1, 2, 3, 4, 5, 6}, 2, 3, 5);
    EXPECT_EQ(api::rms(x.view()), static_cast<T>(std::sqrt(91.0L / 6)));
    record::promise("rms", record::type_name<T>(), "strided");
}

// --- the gradient of RMSNorm --------------------------------------------------------------------------------------

TEST(rms_norm_vjp_formula, is_the_derivative)
{
    // The closed form that the library is held to, against central differences of <dy, y(x)>.
    reference::random random{47};
    const wide eps = 1e-3L;
    for (const auto n : lengths{1, 2, 9}) {
        auto x = reference::widen(random.row<double>(n));
        auto f = reference::widen(random.row<double>(n));
        const auto dy = reference::widen(random.row<double>(n));
        const auto value = [&] { return reference::dot(dy, reference::rms_norm(x, f, eps)); };
        const auto slope = [&](wide& at) {
            const wide middle = at;
            const wide h = 1e-6L;
            at = middle + h;
            const wide above = value();
            at = middle - h;
            const wide below = value();
            at = middle;
            return static_cast<double>((above - below) / (2 * h));
        };
        const auto g = reference::rms_norm_vjp(x, f, dy, eps);
        for (std::size_t j = 0; j < n; ++j) {
            EXPECT_NEAR(slope(x[j]), static_cast<double>(g.dx[j]), 1e-9);
            EXPECT_NEAR(slope(f[j]), static_cast<double>(g.dw[j]), 1e-9);
        }
    }
}

template <class DX, class DW, class X, class DY, class T>
void rms_norm_vjp(DX&& dx, DW&& dw, const X& x, const std::vector<T>& w, const DY& dy, kind k, T eps)
{
    if (k == kind::none) api::rms_norm_vjp(dx, dw, x, api::no_weight, dy, {.eps = eps});
    if (k == kind::plain) api::rms_norm_vjp(dx, dw, x, w, dy, {.eps = eps});
    if (k == kind::zero_centered) api::rms_norm_vjp(dx, dw, x, api::zero_centered(w), dy, {.eps = eps});
}

/// The error of dx in units of the last place of max_j |r a_j|.
template <class T>
void see_gradient(ulp::worst& seen, const std::vector<T>& x, const std::vector<T>& w, const std::vector<T>& dy,
                  kind k, T eps)
{
    std::vector<T> dx(x.size());
    std::vector<T> dw(x.size());
    rms_norm_vjp(dx, dw, x, w, dy, k, eps);
    const auto g = reference::rms_norm_vjp(reference::widen(x), factors(w, k), reference::widen(dy), wide(eps));
    const wide unit = ulp::unit<T>(g.largest);
    for (std::size_t j = 0; j < x.size(); ++j) {
        const auto e = static_cast<double>(std::abs(wide(dx[j]) - g.dx[j]) / unit);
        seen.see_error(e, wide(x[j]), static_cast<wide>(x.size()));
        EXPECT_LE(ulp::error(dw[j], g.dw[j]), 4) << "dw, n = " << x.size();
    }
}

TYPED_TEST(norms, rms_norm_vjp_is_within_4_ulp_of_the_largest_term)
{
    using T = TypeParam;
    reference::random random{53};
    ulp::worst seen;
    auto all = up_to(130);
    all.push_back(4097);
    for (const auto n : all) {
        const auto x = random.row<T>(n);
        const auto w = random.row<T>(n);
        const auto dy = random.row<T>(n);
        for (const kind k : kinds) {
            for (const T eps : {T(0), T(1e-6), T(0.1)}) see_gradient(seen, x, w, dy, k, eps);
        }
    }
    ulp::expect_within<T>(seen, 4, "rms_norm_vjp", "ulp of the largest term");
}

TYPED_TEST(norms, rms_norm_vjp_of_gradients_over_the_range)
{
    using T = TypeParam;
    reference::random random{61};
    ulp::worst seen;
    const int reach = is_float<T> ? 100 : 900;
    for (int of_x = -reach; of_x <= reach; of_x += reach / 4) {
        for (int of_dy = -reach; of_dy <= reach; of_dy += reach / 6) {
            // dx is about dy / x: where that is a normal number
            if (std::abs(of_dy - of_x) > reach) continue;
            for (const auto n : lengths{2, 33}) {
                auto x = random.row<T>(n);
                auto dy = random.row<T>(n);
                for (T& v : x) v = std::ldexp(v, of_x);
                for (T& v : dy) v = std::ldexp(v, of_dy);
                std::vector<T> dx(n);
                api::rms_norm_vjp(dx, x, api::no_weight, dy, {.eps = T(0)});
                const auto g =
                    reference::rms_norm_vjp(reference::widen(x), std::vector<wide>(n, 1), reference::widen(dy), 0);
                for (std::size_t j = 0; j < n; ++j) {
                    const wide unit = ulp::unit<T>(g.largest);
                    const auto e = static_cast<double>(std::abs(wide(dx[j]) - g.dx[j]) / unit);
                    seen.see_error(e, wide(x[j]), wide(dy[j]));
                }
            }
        }
    }
    ulp::expect_within<T>(seen, 4, "rms_norm_vjp, of gradients over the range", "ulp of the largest term");
}

TYPED_TEST(norms, rms_norm_vjp_over_the_range)
{
    using T = TypeParam;
    reference::random random{59};
    ulp::worst seen;
    const double reach = pick<T>(36, 300);
    for (double decade = -reach; decade <= reach; decade += pick<T>(1, 10)) {
        for (const auto n : lengths{1, 5, 64, 200}) {
            auto x = random.row<T>(n);
            for (T& v : x) v *= static_cast<T>(std::pow(10.0, decade));
            const auto w = random.row<T>(n);
            const auto dy = random.row<T>(n);
            see_gradient(seen, x, w, dy, kind::plain, T(0));
            see_gradient(seen, x, w, dy, kind::plain, T(1e-6));
        }
    }
    ulp::expect_within<T>(seen, 4, "rms_norm_vjp, over the range", "ulp of the largest term");
}

TYPED_TEST(norms, rms_norm_vjp_in_place_and_without_dw)
{
    using T = TypeParam;
    reference::random random{61};
    for (const auto n : lengths{1, 8, 30, 131}) {
        const auto x = random.row<T>(n);
        const auto w = random.row<T>(n);
        const auto dy = random.row<T>(n);
        std::vector<T> dx(n);
        std::vector<T> dw(n);
        api::rms_norm_vjp(dx, dw, x, w, dy, {.eps = T(1e-6)});

        auto over_dy = dy;
        std::vector<T> other(n);
        api::rms_norm_vjp(over_dy, other, x, w, over_dy, {.eps = T(1e-6)});
        EXPECT_TRUE(ulp::all_same_bits(over_dy, dx));
        EXPECT_TRUE(ulp::all_same_bits(other, dw));

        auto over_x = x;
        std::ranges::fill(other, T(0));
        api::rms_norm_vjp(over_x, other, over_x, w, dy, {.eps = T(1e-6)});
        EXPECT_TRUE(ulp::all_same_bits(over_x, dx));
        EXPECT_TRUE(ulp::all_same_bits(other, dw));

        std::ranges::fill(other, T(0));
        api::rms_norm_vjp(other, x, w, dy, {.eps = T(1e-6)});
        EXPECT_TRUE(ulp::all_same_bits(other, dx));
    }
}

TYPED_TEST(norms, dw_accumulates_over_rows_and_calls)
{
    using T = TypeParam;
    reference::random random{67};
    constexpr auto accumulate = api::weight_gradient::accumulate;
    const std::size_t count = 6;
    for (const auto n : lengths{1, 7, 40}) {
        const auto x = random.row<T>(count * n);
        const auto dy = random.row<T>(count * n);
        const auto w = random.row<T>(n);
        const auto start = random.row<T>(n);
        memory::strided<T> in(x, count, n, n + 2);
        memory::strided<T> grad(dy, count, n, n + 4);
        memory::strided<T> out(count, n, n + 1);
        auto dw = start;
        api::rms_norm_vjp(out.view(), dw, in.view(), w, grad.view(), {.eps = T(1e-6), .dw = accumulate});
        EXPECT_TRUE(out.gaps_untouched());

        auto zero_centered = start;
        api::rms_norm_vjp(out.view(), zero_centered, in.view(), api::zero_centered(w), grad.view(),
                          {.eps = T(1e-6), .dw = accumulate});
        EXPECT_TRUE(ulp::all_same_bits(dw, zero_centered)) << "dw does not depend on the kind of weight";
        auto without = start;
        api::rms_norm_vjp(out.view(), without, in.view(), api::no_weight, grad.view(),
                          {.eps = T(1e-6), .dw = accumulate});
        EXPECT_TRUE(ulp::all_same_bits(dw, without)) << "dw does not depend on the kind of weight";

        auto one_by_one = start;
        std::vector<T> unused(n);
        auto sum = reference::widen(start);
        auto size = sum;
        for (wide& e : size) e = std::abs(e);
        for (std::size_t i = 0; i < count; ++i) {
            api::rms_norm_vjp(unused, one_by_one, in.view().row(i), w, grad.view().row(i),
                              {.eps = T(1e-6), .dw = accumulate});
            const auto g = reference::rms_norm_vjp({in.view()[i], in.view()[i] + n}, reference::widen(w),
                                                   {grad.view()[i], grad.view()[i] + n}, wide(T(1e-6)));
            for (std::size_t j = 0; j < n; ++j) {
                sum[j] += g.dw[j];
                size[j] += std::abs(g.dw[j]);
            }
        }
        EXPECT_TRUE(ulp::all_same_bits(dw, one_by_one)) << "rows are added in order";
        for (std::size_t j = 0; j < n; ++j) {
            EXPECT_LE(std::abs(wide(dw[j]) - sum[j]), (count + 4) * u<T> * size[j]) << "n = " << n;
        }
    }
}

TYPED_TEST(norms, the_jacobian_is_symmetric_and_forgets_the_length)
{
    using T = TypeParam;
    reference::random random{71};
    const std::size_t n = 12;
    const auto x = random.row<T>(n, 0.5, 2);
    const auto r = static_cast<T>(1 / std::sqrt(reference::mean_square(reference::widen(x))));
    const T slack = 8 * std::numeric_limits<T>::epsilon() * r;
    std::vector<std::vector<T>> columns;
    for (std::size_t j = 0; j < n; ++j) {
        std::vector<T> dx(n);
        std::vector<T> unit(n);
        unit[j] = 1;
        api::rms_norm_vjp(dx, x, api::no_weight, unit, {.eps = T(0)});
        columns.push_back(dx);
    }
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < i; ++j) EXPECT_NEAR(columns[i][j], columns[j][i], slack);
    }
    std::vector<T> dx(n);
    api::rms_norm_vjp(dx, x, api::no_weight, x, {.eps = T(0)});
    for (const T e : dx) EXPECT_NEAR(e, T(0), 2 * slack) << "J x = 0: the length of x does not matter";
}

// --- the SwiGLU family --------------------------------------------------------------------------------------------

/// Pairs of gate and up.
template <class T>
struct pairs {
    const char* region = "";
    std::vector<T> gate, up;

    void add(std::array<double, 2> gate_and_up)
    {
        gate.push_back(static_cast<T>(gate_and_up[0]));
        up.push_back(static_cast<T>(gate_and_up[1]));
    }
};

/// What a layer sees; the far tail of the gate; gates of which the logistic alone is nothing, with an `up` that makes
/// something of it; gates near the smallest number; and any two numbers.
template <class T>
std::vector<pairs<T>> regions()
{
    reference::random random{73};
    const double tail = pick<T>(-110, -755);
    const double beyond = pick<T>(-220, -1500);
    const auto with_exponent = [&](double low, double high) {
        const double fraction = random.uniform(-1, 1);
        return fraction * std::exp2(std::floor(random.uniform(low, high)));
    };
    std::vector<pairs<T>> all{{"", {}, {}},
                              {", far tail", {}, {}},
                              {", tail times huge", {}, {}},
                              {", tiny gate", {}, {}},
                              {", any pattern", {}, {}}};
    for (std::size_t i = 0; i < 3000 * reference::plenty; ++i) {
        // braces, since they fix the order in which the numbers are drawn
        all[0].add({random.uniform(-12, 12), random.uniform(-12, 12)});
        all[1].add({random.uniform(tail, 100), random.uniform(-100, 100)});
        all[2].add({random.uniform(beyond, tail / 2), with_exponent(0, pick<T>(128, 1024))});
        all[3].add(
            {with_exponent(pick<T>(-148, -1072), pick<T>(-120, -1015)), with_exponent(-10, pick<T>(128, 1024))});
        const T g = random.pattern<T>();
        const T v = random.pattern<T>();
        if (std::isfinite(g) && std::isfinite(v)) all[4].add({static_cast<double>(g), static_cast<double>(v)});
    }
    return all;
}

template <class T>
using gated_function = void (*)(std::vector<T>&, const std::vector<T>&, const std::vector<T>&);

template <class T>
void expect_gated(const std::string& name, double bound, gated_function<T> f, wide (*exact)(wide, wide))
{
    for (const auto& p : regions<T>()) {
        std::vector<T> y(p.gate.size());
        f(y, p.gate, p.up);
        ulp::worst seen;
        for (std::size_t j = 0; j < y.size(); ++j) {
            seen.see(y[j], exact(wide(p.gate[j]), wide(p.up[j])), wide(p.gate[j]), wide(p.up[j]));
        }
        ulp::expect_within<T>(seen, bound, name + p.region);

        auto over_gate = p.gate;
        f(over_gate, over_gate, p.up);
        EXPECT_TRUE(ulp::all_same_bits(over_gate, y));
        auto over_up = p.up;
        f(over_up, p.gate, over_up);
        EXPECT_TRUE(ulp::all_same_bits(over_up, y));
    }
}

template <class T>
void expect_the_same_in_every_lane(gated_function<T> f)
{
    for (const T value : {T(0.3), T(-1.2784645), T(-90), T(7)}) {
        std::vector<T> alone(1);
        f(alone, {value}, {T(3)});
        for (std::size_t n = 1; n <= 70; ++n) {
            std::vector<T> all(n);
            f(all, std::vector<T>(n, value), std::vector<T>(n, T(3)));
            EXPECT_TRUE(ulp::all_same_bits(all, std::vector<T>(n, alone[0])));
        }
    }
}

template <class T>
void expect_nan_to_stay_where_it_is(gated_function<T> f)
{
    for (std::size_t where = 0; where < 35; ++where) {
        for (const bool in_gate : {true, false}) {
            std::vector<T> gate(35, T(1));
            std::vector<T> up(35, T(2));
            std::vector<T> expected(35);
            f(expected, gate, up);
            expected[where] = nan<T>;
            (in_gate ? gate : up)[where] = nan<T>;
            std::vector<T> y(35);
            f(y, gate, up);
            EXPECT_TRUE(ulp::all_same_bits(y, expected));
        }
    }
}

template <class T>
void call_swiglu(std::vector<T>& y, const std::vector<T>& gate, const std::vector<T>& up)
{
    api::swiglu(y, gate, up);
}
template <class T>
void call_clamped_swiglu(std::vector<T>& y, const std::vector<T>& gate, const std::vector<T>& up)
{
    api::clamped_swiglu(y, gate, up, {.limit = T(10)});
}
template <class T>
void call_gpt_oss_swiglu(std::vector<T>& y, const std::vector<T>& gate, const std::vector<T>& up)
{
    api::gpt_oss_swiglu(y, gate, up);
}
template <class T>
void call_situ_glu(std::vector<T>& y, const std::vector<T>& gate, const std::vector<T>& up)
{
    api::situ_glu(y, gate, up);
}

TYPED_TEST(gated, swiglu_is_within_2_ulp) { expect_gated<TypeParam>("swiglu", 2, call_swiglu, reference::swiglu); }

TYPED_TEST(gated, clamped_swiglu_is_within_2_ulp)
{
    expect_gated<TypeParam>("clamped_swiglu", 2, call_clamped_swiglu,
                            [](wide g, wide v) { return reference::clamped_swiglu(g, v, 10); });
}

TYPED_TEST(gated, gpt_oss_swiglu_is_within_2_ulp)
{
    expect_gated<TypeParam>("gpt_oss_swiglu", 2, call_gpt_oss_swiglu, [](wide g, wide v) {
        return reference::gpt_oss_swiglu(g, v, 7, wide(TypeParam(1.702)));
    });
}

TYPED_TEST(gated, situ_glu_is_within_1_ulp)
{
    expect_gated<TypeParam>("situ_glu", 1, call_situ_glu,
                            [](wide g, wide v) { return reference::situ_glu(g, v, 4, 25); });
}

TYPED_TEST(gated, every_lane_and_tail_gives_the_same_bits)
{
    using T = TypeParam;
    for (const auto f : {gated_function<T>{call_swiglu}, gated_function<T>{call_clamped_swiglu},
                         gated_function<T>{call_gpt_oss_swiglu}, gated_function<T>{call_situ_glu}}) {
        expect_the_same_in_every_lane(f);
        expect_nan_to_stay_where_it_is(f);
    }
}

TYPED_TEST(gated, an_infinite_limit_clamps_nothing)
{
    using T = TypeParam;
    for (const auto& p : regions<T>()) {
        std::vector<T> plain(p.gate.size());
        std::vector<T> clamped(p.gate.size());
        api::swiglu(plain, p.gate, p.up);
        api::clamped_swiglu(clamped, p.gate, p.up, {.limit = infinity<T>});
        EXPECT_TRUE(ulp::all_same_bits(plain, clamped));
    }
}

TYPED_TEST(gated, situ_glu_stays_within_its_cap)
{
    using T = TypeParam;
    for (const auto& p : regions<T>()) {
        std::vector<T> y(p.gate.size());
        api::situ_glu(y, p.gate, p.up);
        for (const T e : y) ASSERT_LE(std::abs(e), T(100));
    }
}

TYPED_TEST(gated, rows_with_strides_are_the_packed_rows)
{
    using T = TypeParam;
    reference::random random{79};
    for (const auto n : lengths{1, 7, 16, 50}) {
        const auto gate = random.row<T>(4 * n);
        const auto up = random.row<T>(4 * n);
        std::vector<T> packed(4 * n);
        api::swiglu(packed, gate, up);
        memory::strided<T> g(gate, 4, n, n + 1);
        memory::strided<T> v(up, 4, n, n + 6);
        memory::strided<T> y(4, n, n + 3);
        api::swiglu(y.view(), g.view(), v.view());
        EXPECT_TRUE(ulp::all_same_bits(y.packed(), packed));
        EXPECT_TRUE(y.gaps_untouched());
    }
}

// --- residual_add, scale ------------------------------------------------------------------------------------------

/// The error of x + c f in ulp, less what the reference cannot know.
template <class T>
double error_of_sum(T got, T x, T c, T f)
{
    const wide product = wide(c) * wide(f);
    const wide sum = wide(x) + product;
    const wide unknown = std::ldexp(std::abs(wide(x)) + std::abs(product), 2 - std::numeric_limits<wide>::digits);
    return static_cast<double>(std::max(std::abs(wide(got) - sum) - unknown, wide(0)) / ulp::unit<T>(sum));
}

TYPED_TEST(linear, residual_add_is_one_fused_multiply_add)
{
    using T = TypeParam;
    reference::random random{83};
    ulp::worst of_sum;
    ulp::worst of_product;
    for (std::size_t n = 1; n <= 130; ++n) {
        std::vector<T> x(n);
        std::vector<T> f(n);
        for (T& e : x) e = n % 2 == 0 ? random.pattern<T>() : static_cast<T>(random.uniform(-2, 2));
        for (T& e : f) e = n % 2 == 0 ? random.pattern<T>() : static_cast<T>(random.uniform(-2, 2));
        for (const T c : {T(1), T(0.17677669529664), T(-3), T(0)}) {
            std::vector<T> expected(n);
            for (std::size_t j = 0; j < n; ++j) expected[j] = std::fma(c, f[j], x[j]);
            std::vector<T> y(n);
            api::residual_add(y, x, f, c);
            ASSERT_TRUE(ulp::all_same_bits(y, expected)) << "n = " << n;
            for (std::size_t j = 0; j < n && n % 2 != 0; ++j) {
                of_sum.see_error(error_of_sum(y[j], x[j], c, f[j]), wide(x[j]), wide(f[j]));
            }
            auto over_x = x;
            api::residual_add(over_x, over_x, f, c);
            EXPECT_TRUE(ulp::all_same_bits(over_x, expected));
            auto over_f = f;
            api::residual_add(over_f, x, over_f, c);
            EXPECT_TRUE(ulp::all_same_bits(over_f, expected));

            api::residual_add_jvp(y, x, f, c);
            EXPECT_TRUE(ulp::all_same_bits(y, expected));

            for (std::size_t j = 0; j < n; ++j) expected[j] = c * x[j];
            std::vector<T> of_vjp(n), of_jvp(n), dx(n), df(n);
            api::scale(y, x, c);
            api::scale_vjp(of_vjp, x, c);
            api::scale_jvp(of_jvp, x, c);
            api::residual_add_vjp(dx, df, x, c);
            for (const auto& product : {y, of_vjp, of_jvp, df}) EXPECT_TRUE(ulp::all_same_bits(product, expected));
            EXPECT_TRUE(ulp::all_same_bits(dx, x));
            for (std::size_t j = 0; j < n && n % 2 != 0; ++j) {
                of_product.see_error(error_of_sum(y[j], T(0), c, x[j]), wide(x[j]));
            }
        }
    }
    for (const char* const name : {"residual_add", "residual_add_jvp"}) ulp::expect_within<T>(of_sum, 0.5, name);
    for (const char* const name : {"scale", "scale_vjp", "scale_jvp", "residual_add_vjp"}) {
        ulp::expect_within<T>(of_product, 0.5, name);
    }
}

TYPED_TEST(linear, residual_add_of_rows_with_strides)
{
    using T = TypeParam;
    reference::random random{89};
    const auto x = random.row<T>(5 * 7);
    const auto f = random.row<T>(5 * 7);
    memory::strided<T> in(x, 5, 7, 10);
    memory::strided<T> added(f, 5, 7, 13);
    memory::strided<T> out(5, 7, 9);
    api::residual_add(out.view(), in.view(), added.view());
    std::vector<T> expected(5 * 7);
    for (std::size_t j = 0; j < expected.size(); ++j) expected[j] = x[j] + f[j];
    EXPECT_TRUE(ulp::all_same_bits(out.packed(), expected)) << "the scale is 1 unless given";
    EXPECT_TRUE(out.gaps_untouched());
}

// --- dot, matvec, matvec_transposed -------------------------------------------------------------------------------

/// The documented bound of a dot product of one row of n, as a multiple of u sum |x_j y_j|.
template <class T>
wide dot_bound(std::size_t n)
{
    return is_float<T> ? 12 : static_cast<wide>(n) / 256 + 15;
}

TYPED_TEST(linear, dot_is_within_its_bound)
{
    using T = TypeParam;
    reference::random random{97};
    wide worst = 0;
    auto all = up_to(130);
    all.insert(all.end(), {1000, 4096, 20000});
    for (const auto n : all) {
        for (const double low : {-1.0, 0.5}) {
            const auto x = random.row<T>(n, low, 1);
            const auto y = random.row<T>(n, low, 1);
            const auto wide_x = reference::widen(x);
            const auto wide_y = reference::widen(y);
            const wide error = std::abs(wide(api::dot(x, y)) - reference::dot(wide_x, wide_y));
            const wide relative = error / (u<T> * reference::dot_scale(wide_x, wide_y));
            EXPECT_LE(relative, dot_bound<T>(n)) << "n = " << n;
            worst = std::max(worst, is_float<T> ? relative : relative / dot_bound<T>(n));
        }
    }
    ulp::worst seen;
    seen.see_error(static_cast<double>(worst), 0);
    if (is_float<T>) ulp::expect_within<T>(seen, 12, "dot", "* 2^-24 of all terms");
    if (!is_float<T>) ulp::expect_within<T>(seen, 1, "dot", "of (columns / 256 + 14 + rows) * 2^-53 of all terms");
    EXPECT_EQ(api::dot(std::vector<T>{}, std::vector<T>{}), T(0));
    EXPECT_EQ(api::dot(std::vector<T>{1, 2, 3}, std::vector<T>{4, -5, 6}), T(12));
    EXPECT_TRUE(std::isnan(api::dot(std::vector<T>(20, nan<T>), std::vector<T>(20, T(0)))));

    const auto x = random.row<T>(300);
    const auto once = api::dot(x, x);
    for (std::size_t shift = 0; shift < 16; ++shift) {
        memory::shifted<T> moved(x, shift);
        EXPECT_TRUE(ulp::same_bits(api::dot(moved.view(), x), once));
    }
    memory::strided<T> rows({1, 2, 3, 4, 5, 6}, 2, 3, 5);
    EXPECT_EQ(api::dot(rows.view(), rows.view()), T(91));
    record::promise("dot", record::type_name<T>(), "strided");
}

TYPED_TEST(linear, matvec_and_its_transpose_are_within_their_bounds)
{
    using T = TypeParam;
    reference::random random{101};
    const std::size_t tokens = 3;
    ulp::worst product;
    ulp::worst transposed;
    for (const auto& [m, n] : {std::array<std::size_t, 2>{1, 1},
                               {3, 5},
                               {16, 16},
                               {17, 31},
                               {33, 64},
                               {5, 130},
                               {130, 7},
                               {64, 129},
                               {2, 1},
                               {1, 2}}) {
        const auto packed = random.row<T>(m * n);
        memory::strided<T> w(packed, m, n, n + 3);
        const auto xs = random.row<T>(tokens * n);
        const auto ys = random.row<T>(tokens * m);
        memory::strided<T> x(xs, tokens, n, n + 1);
        memory::strided<T> wx(tokens, m, m + 2);
        api::matvec(wx.view(), w.view(), x.view());
        EXPECT_TRUE(wx.gaps_untouched());
        for (std::size_t t = 0; t < tokens; ++t) {
            const wide_row in{x.view()[t], x.view()[t] + n};
            for (std::size_t i = 0; i < m; ++i) {
                const wide_row row{w.view()[i], w.view()[i] + n};
                const wide unit = u<T> * reference::dot_scale(row, in) * (is_float<T> ? 1 : dot_bound<T>(n));
                const wide off = std::abs(wide(wx.view()[t][i]) - reference::dot(row, in));
                product.see_error(static_cast<double>(off / unit), static_cast<wide>(m), static_cast<wide>(n));
                const std::span<const T> w_i{w.view()[i], n};
                const std::span<const T> x_t{x.view()[t], n};
                EXPECT_TRUE(ulp::same_bits(wx.view()[t][i], api::dot(w_i, x_t))) << "y_ti = dot(W_i, x_t)";
            }
        }
        memory::strided<T> y(ys, tokens, m, m + 5);
        memory::strided<T> wty(tokens, n, n + 4);
        api::matvec_transposed(wty.view(), w.view(), y.view());
        EXPECT_TRUE(wty.gaps_untouched());
        for (std::size_t t = 0; t < tokens; ++t) {
            const wide_row in{y.view()[t], y.view()[t] + m};
            for (std::size_t j = 0; j < n; ++j) {
                wide_row column;
                for (std::size_t i = 0; i < m; ++i) column.push_back(wide(w.view()[i][j]));
                const wide allowed = static_cast<wide>(m) * u<T> * reference::dot_scale(column, in);
                const wide off = std::abs(wide(wty.view()[t][j]) - reference::dot(column, in));
                transposed.see_error(static_cast<double>(off / allowed), static_cast<wide>(m),
                                     static_cast<wide>(n));
            }
        }
    }
    if (is_float<T>) ulp::expect_within<T>(product, 12, "matvec", "* 2^-24 of all terms");
    if (!is_float<T>) {
        ulp::expect_within<T>(product, 1, "matvec", "of (columns / 256 + 15) * 2^-53 of all terms");
    }
    ulp::expect_within<T>(
        transposed, 1, "matvec_transposed",
        is_float<T> ? "of (rows of W) * 2^-24 of all terms" : "of (rows of W) * 2^-53 of all terms");
    for (const char* const name : {"matvec", "matvec_transposed"}) {
        record::promise(name, record::type_name<T>(), "strided");
    }
}

// --- nothing to do ------------------------------------------------------------------------------------------------

TYPED_TEST(linear, without_elements_nothing_happens_and_null_is_allowed)
{
    using T = TypeParam;
    const api::rows<T> no_rows{nullptr, 0, 5};
    const api::rows<T> no_columns{nullptr, 3, 0};
    for (const auto& none : {no_rows, no_columns, api::rows<T>{}}) {
        api::exp(none, none);
        api::log(none, none);
        api::tanh(none, none);
        api::sigmoid(none, none);
        api::silu(none, none);
        api::cos_2pi(none, none);
        api::softmax(none, none);
        api::tanh_vjp_from_output(none, none, none);
        api::box_muller(none, none, none);
        api::residual_add(none, none, none);
        api::scale(none, none, T(2));
        api::swiglu(none, none, none);
        api::clamped_swiglu(none, none, none, {.limit = T(7)});
        api::gpt_oss_swiglu(none, none, none);
        api::situ_glu(none, none, none);
        EXPECT_EQ(api::dot(none, none), T(0));
        EXPECT_EQ(api::rms(none), T(0));

        std::vector<T> w(none.columns, T(1));
        std::vector<T> dw(none.columns, T(42));
        api::rms_norm(none, none, w, {.eps = T(0)});
        api::rms_norm(none, none, api::no_weight, {.eps = T(0)});
        api::rms_norm_vjp(none, dw, none, w, none, {.eps = T(0), .dw = api::weight_gradient::accumulate});
        EXPECT_TRUE(ulp::all_same_bits(dw, std::vector<T>(none.columns, T(42)))) << "no row, nothing to add";
        api::rms_norm_vjp(none, dw, none, w, none, {.eps = T(0)});
        EXPECT_TRUE(ulp::all_same_bits(dw, std::vector<T>(none.columns, T(0)))) << "no row, a sum of 0";
    }
    const api::rows<T> empty_matrix{nullptr, 0, 5};
    std::vector<T> five(5, T(42));
    api::matvec(api::rows<T>{nullptr, 1, 0}, empty_matrix, five);
    api::matvec_transposed(five, empty_matrix, api::rows<T>{nullptr, 1, 0});
    EXPECT_TRUE(ulp::all_same_bits(five, std::vector<T>(5))) << "a sum of no rows";
    api::matvec(five, api::rows<T>{nullptr, 5, 0}, api::rows<T>{nullptr, 1, 0});
    EXPECT_TRUE(ulp::all_same_bits(five, std::vector<T>(5))) << "sums of no products";
}

}  // namespace
