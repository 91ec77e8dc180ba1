// Residual streams and softmax's gradient: against the formulas in long double, written plainly. Gradients are compared
// with differences of the formula of high order, which in long double are good to some 1e-15.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "support/activations.hpp"
#include "support/api.hpp"
#include "support/memory.hpp"
#include "support/precision.hpp"
#include "support/record.hpp"
#include "support/reference.hpp"
#include "support/ulp.hpp"

namespace {

using api::bfloat16;
using api::float16;
using api::rows;
using api::weight_gradient;
using reference::wide;
using reference::wide_row;

// --- numbers of every type ----------------------------------------------------------------------------------------

template <class S>
inline constexpr int digits = std::numeric_limits<S>::digits;
template <>
inline constexpr int digits<bfloat16> = 8;
template <>
inline constexpr int digits<float16> = 11;
template <class S>
inline constexpr int least_exponent = std::numeric_limits<S>::min_exponent - 1;
template <>
inline constexpr int least_exponent<bfloat16> = -126;
template <>
inline constexpr int least_exponent<float16> = -14;

template <class S>
wide value(S x)
{
    if constexpr (sizeof(S) == 2) {
        return wide(static_cast<float>(x));
    } else {
        return wide(x);
    }
}
template <class S>
S number(double x)
{
    if constexpr (sizeof(S) == 2) {
        return S(static_cast<float>(x));
    } else {
        return static_cast<S>(x);
    }
}
template <class S>
wide_row widen(const std::vector<S>& x)
{
    wide_row all;
    for (const S e : x) all.push_back(value(e));
    return all;
}
template <class S>
std::vector<S> random_row(reference::random& random, std::size_t n, double low = -2, double high = 2)
{
    std::vector<S> x(n);
    for (S& e : x) e = number<S>(random.uniform(low, high));
    return x;
}

/// The unit in the last place of a number near `exact`, in S.
template <class S>
wide unit(wide exact)
{
    const int exponent = exact == 0 ? least_exponent<S> : std::max(std::ilogb(exact), least_exponent<S>);
    return std::ldexp(wide(1), exponent - digits<S> + 1);
}

/// The largest error, as a share of what is allowed, or in a unit.
struct errors {
    ulp::worst seen;

    template <class S>
    void see(S got, wide exact, wide unit)
    {
        const wide off = std::abs(value(got) - exact);
        const double share =
            std::isnan(off) ? std::numeric_limits<double>::infinity() : static_cast<double>(off / unit);
        seen.see_error(off == 0 ? 0 : share, exact);
    }
};

/// As ulp::expect_within, which names float and double only.
template <class S>
void expect_within(const errors& e, double bound, const std::string& what, const std::string& unit = "ulp")
{
    if constexpr (sizeof(S) == 2) {
        ulp::expect_at_most(e.seen, bound, what, precision::format<S>::name, unit);
    } else {
        ulp::expect_within<S>(e.seen, bound, what, unit);
    }
}

/// The largest error of what is computed in double and rounded once: half an ulp (a little more where an exponential of
/// fewer bits is in it) and a part of a size, the sum of the sizes of all terms if no other is named.
template <class S>
struct rounded_once {
    double ulps;
    int exponent;
    errors shares{};

    void see(S got, wide exact, wide size)
    {
        shares.see(got, exact, static_cast<wide>(ulps) * unit<S>(exact) + std::ldexp(size, exponent));
    }
    void see(const std::vector<S>& got, const wide_row& exact, const wide_row& size)
    {
        ASSERT_EQ(got.size(), exact.size());
        ASSERT_EQ(got.size(), size.size());
        for (std::size_t i = 0; i < got.size(); ++i) see(got[i], exact[i], size[i]);
    }
    void expect_within_bound(const std::string& what, const std::string& of_size = "all terms") const
    {
        char text[64];
        std::snprintf(text, sizeof text, "of %g ulp + 2^%d of ", ulps, exponent);
        expect_within<S>(shares, 1, what, text + of_size);
    }
};

/// f or d, by type.
template <class S>
constexpr double pick(double f, double d)
{
    return sizeof(S) == 8 ? d : f;
}
template <class S>
constexpr int exponent(int f, int d)
{
    return sizeof(S) == 8 ? d : f;
}

template <class S>
testing::AssertionResult same(const std::vector<S>& a, const std::vector<S>& b)
{
    if constexpr (sizeof(S) == 2) {
        for (std::size_t i = 0; i < a.size(); ++i) {
            if (a[i].bits != b[i].bits) return testing::AssertionFailure() << "element " << i;
        }
        return testing::AssertionSuccess();
    } else {
        return ulp::all_same_bits(a, b);
    }
}

template <class S>
rows<S> as_rows(std::vector<S>& x, std::size_t count)
{
    return {x.data(), count, count == 0 ? 0 : x.size() / count};
}
template <class S>
rows<const S> as_rows(const std::vector<S>& x, std::size_t count)
{
    return {x.data(), count, count == 0 ? 0 : x.size() / count};
}

// --- differences --------------------------------------------------------------------------------------------------

using function = std::function<wide_row(const wide_row&)>;

/// The derivative of f at x along t, of sixth order.
wide_row derivative(const function& f, const wide_row& x, const wide_row& t, wide h = 1e-3L)
{
    const auto at = [&](int k) {
        wide_row moved = x;
        for (std::size_t i = 0; i < x.size(); ++i) moved[i] += k * h * t[i];
        return f(moved);
    };
    wide_row d = at(0);
    std::fill(d.begin(), d.end(), wide(0));
    const std::array<std::pair<int, wide>, 3> stencil{{{1, 45}, {2, -9}, {3, 1}}};
    for (const auto& [k, c] : stencil) {
        const auto up = at(k);
        const auto down = at(-k);
        for (std::size_t i = 0; i < d.size(); ++i) d[i] += c * (up[i] - down[i]) / (60 * h);
    }
    return d;
}

/// The gradient of <u, f(x)>.
wide_row gradient(const function& f, const wide_row& x, const wide_row& u, wide h = 1e-3L)
{
    wide_row g(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
        wide_row t(x.size());
        t[i] = 1;
        g[i] = reference::dot(u, derivative(f, x, t, h));
    }
    return g;
}

wide_row joined(std::initializer_list<wide_row> parts)
{
    wide_row all;
    for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
}
wide_row part(const wide_row& x, std::size_t first, std::size_t n)
{
    return {x.begin() + static_cast<std::ptrdiff_t>(first), x.begin() + static_cast<std::ptrdiff_t>(first + n)};
}
wide_row magnitudes(wide_row x)
{
    for (wide& e : x) e = std::abs(e);
    return x;
}
wide largest(const wide_row& x)
{
    wide most = 0;
    for (const wide e : x) most = std::max(most, std::abs(e));
    return most;
}

/// <VJP(u), v> = <u, JVP(v)>, for results that are rounded to T.
template <class T>
void expect_adjoint(const wide_row& vjp, const wide_row& v, const wide_row& u, const wide_row& jvp)
{
    const wide left = reference::dot(vjp, v);
    const wide right = reference::dot(u, jvp);
    const wide size = reference::dot_scale(vjp, v) + reference::dot_scale(u, jvp);
    EXPECT_LE(std::abs(left - right), size * std::ldexp(wide(1), 4 - digits<T>));
}

template <class T>
class softmax_gradient : public testing::Test {};
template <class T>
class residual : public testing::Test {};
template <class T>
class streams : public testing::Test {};
template <class T>
class storage : public testing::Test {};
using types = testing::Types<float, double>;
using all_types = testing::Types<float, double, bfloat16, float16>;
TYPED_TEST_SUITE(softmax_gradient, types, );
TYPED_TEST_SUITE(residual, types, );
TYPED_TEST_SUITE(streams, types, );
TYPED_TEST_SUITE(storage, all_types, );

std::vector<std::size_t> some_lengths()
{
    std::vector<std::size_t> all;
    for (std::size_t n = 1; n <= 130; n += n < 20 ? 1 : 7) all.push_back(n);
    all.insert(all.end(), {255, 256, 257, 511, 512, 513, 1025});
    return all;
}

// --- softmax ------------------------------------------------------------------------------------------------------

wide_row softmax_jacobian(const wide_row& y, const wide_row& a)
{
    const wide sum = reference::dot(y, a);
    wide_row out(y.size());
    for (std::size_t j = 0; j < y.size(); ++j) out[j] = y[j] * (a[j] - sum);
    return out;
}

/// The error of dx: of types other than double as a share of its bound, of double in ulp of y times the largest dy.
template <class S>
void see_softmax_gradient(errors& seen, const std::vector<S>& dx, const std::vector<S>& y, const std::vector<S>& dy)
{
    const auto exact = softmax_jacobian(widen(y), widen(dy));
    const wide most = largest(widen(dy));
    for (std::size_t j = 0; j < y.size(); ++j) {
        const wide size = value(y[j]) * most;
        seen.see(dx[j], exact[j],
                 sizeof(S) == 8 ? unit<S>(size) : 0.51L * unit<S>(exact[j]) + std::ldexp(size, -45));
    }
}
template <class S>
void expect_softmax_gradient(const errors& seen, const std::string& what)
{
    if (sizeof(S) == 8) expect_within<S>(seen, 4, what, "ulp of y times the largest dy");
    if (sizeof(S) < 8) expect_within<S>(seen, 1, what, "of 0.51 ulp + 2^-45 of y times the largest dy");
}

TYPED_TEST(softmax_gradient, is_its_formula_over_the_whole_range)
{
    using T = TypeParam;
    reference::random random{21};
    errors seen;
    const auto see = [&](std::size_t n, double size) {
        const auto x = random.row<T>(n, -6, 6);
        auto dy = random.row<T>(n, -1, 1);
        for (T& e : dy) e *= static_cast<T>(size);
        std::vector<T> y(n), dx(n), ty(n);
        api::softmax(y, x);
        api::softmax_vjp(dx, y, dy);
        see_softmax_gradient(seen, dx, y, dy);
        api::softmax_jvp(ty, y, dy);
        EXPECT_TRUE(ulp::all_same_bits(ty, dx)) << "the Jacobian is symmetric";
    };
    for (const std::size_t n : some_lengths()) {
        see(n, 1);
        for (const double size : {pick<T>(1e-44, 1e-320), pick<T>(1e-30, 1e-300), pick<T>(3.4e38, 1.7e308)})
            see(n, size);
    }
    see(4097, 1);
    expect_softmax_gradient<T>(seen, "softmax_vjp");
    expect_softmax_gradient<T>(seen, "softmax_jvp");
}

TYPED_TEST(softmax_gradient, agrees_with_differences_and_is_symmetric)
{
    using T = TypeParam;
    reference::random random{22};
    for (const std::size_t n : {1U, 2U, 7U, 33U}) {
        const auto x = random.row<T>(n);
        const auto u = random.row<T>(n);
        const auto v = random.row<T>(n);
        std::vector<T> y(n), dx(n), ty(n);
        api::softmax(y, x);
        api::softmax_vjp(dx, y, u);
        api::softmax_jvp(ty, y, v);
        const auto differences = gradient(reference::softmax, widen(x), widen(u));
        for (std::size_t j = 0; j < n; ++j) {
            EXPECT_NEAR(static_cast<double>(wide(dx[j]) - differences[j]), 0, pick<T>(1e-6, 1e-13));
        }
        expect_adjoint<T>(widen(dx), widen(v), widen(u), widen(ty));
    }
}

TYPED_TEST(softmax_gradient, in_place_in_strides_and_alone)
{
    using T = TypeParam;
    reference::random random{23};
    const std::size_t count = 3;
    for (const std::size_t n : {1U, 17U, 130U, 600U}) {
        const auto y = random.row<T>(count * n, 0, 1);
        const auto dy = random.row<T>(count * n);
        std::vector<T> right(count * n);
        for (std::size_t i = 0; i < count; ++i) {
            api::softmax_vjp(std::span{right}.subspan(i * n, n), std::span{y}.subspan(i * n, n),
                             std::span{dy}.subspan(i * n, n));
        }
        memory::strided<T> out(count, n, n + 5), saved(y, count, n, n + 2), given(dy, count, n, n + 3);
        api::softmax_vjp(out.view(), saved.view(), given.view());
        EXPECT_TRUE(ulp::all_same_bits(out.packed(), right));
        EXPECT_TRUE(out.gaps_untouched());
        auto place = dy;
        api::softmax_vjp(as_rows(place, count), as_rows(y, count), as_rows(place, count));
        EXPECT_TRUE(ulp::all_same_bits(place, right));
        place = y;
        api::softmax_vjp(as_rows(place, count), as_rows(place, count), as_rows(dy, count));
        EXPECT_TRUE(ulp::all_same_bits(place, right));
    }
}

TYPED_TEST(softmax_gradient, of_masked_elements_and_nan)
{
    using T = TypeParam;
    const T nan = std::numeric_limits<T>::quiet_NaN();
    std::vector<T> dx(3);
    api::softmax_vjp(dx, std::vector<T>{0.5, 0, 0.5}, std::vector<T>{1, 7, -1});
    EXPECT_TRUE(ulp::all_same_bits(dx, std::vector<T>{0.5, 0, -0.5}));
    for (std::size_t where = 0; where < 40; ++where) {
        std::vector<T> y(40, T(0.025)), dy(40, T(1)), out(40);
        dy[where] = nan;
        api::softmax_vjp(out, y, dy);
        EXPECT_TRUE(ulp::all_same_bits(out, std::vector<T>(40, nan)));
        dy[where] = std::numeric_limits<T>::infinity();
        api::softmax_vjp(out, y, dy);
        for (const T e : out) EXPECT_FALSE(std::isfinite(e));
    }
    api::softmax_vjp(rows<T>{}, rows<const T>{}, rows<const T>{});
}

TYPED_TEST(storage, softmax_gradient_is_rounded_once)
{
    using S = TypeParam;
    reference::random random{24};
    errors seen;
    for (const std::size_t n : {1U, 5U, 64U, 700U}) {
        auto y = random_row<S>(random, n, 0.25, 1);
        for (S& e : y) e = number<S>(static_cast<double>(value(e)) / static_cast<double>(n));
        const auto dy = random_row<S>(random, n);
        std::vector<S> dx(n);
        api::softmax_vjp(dx, y, dy);
        see_softmax_gradient(seen, dx, y, dy);
    }
    expect_softmax_gradient<S>(seen, "softmax_vjp, of one type");
}

// --- residual -----------------------------------------------------------------------------------------------------

TYPED_TEST(residual, a_scale_for_each_channel_is_one_rounding)
{
    using T = TypeParam;
    reference::random random{31};
    for (const std::size_t n : some_lengths()) {
        const std::size_t count = 3;
        const auto x = random.row<T>(count * n), f = random.row<T>(count * n), s = random.row<T>(n);
        memory::strided<T> y(count, n, n + 4), in(x, count, n, n + 1), added(f, count, n, n + 2);
        api::residual_add(y.view(), in.view(), added.view(), api::per_channel(s));
        std::vector<T> right(count * n);
        for (std::size_t i = 0; i < right.size(); ++i) right[i] = std::fma(s[i % n], f[i], x[i]);
        EXPECT_TRUE(ulp::all_same_bits(y.packed(), right));
        EXPECT_TRUE(y.gaps_untouched());
        for (const bool in_f : {false, true}) {
            auto place = in_f ? f : x;
            api::residual_add(as_rows(place, count), as_rows(in_f ? x : place, count),
                              as_rows(in_f ? place : f, count), api::per_channel(s));
            EXPECT_TRUE(ulp::all_same_bits(place, right));
        }
    }
}

TYPED_TEST(residual, gradients_are_their_formulas)
{
    using T = TypeParam;
    reference::random random{32};
    for (const std::size_t n : some_lengths()) {
        const std::size_t count = 4;
        const auto f = random.row<T>(count * n), dy = random.row<T>(count * n), s = random.row<T>(n);
        std::vector<T> dx(count * n), df(count * n), plain(count * n);
        std::vector<double> ds(n, 3), more(n, 3);
        api::residual_add_vjp(as_rows(dx, count), as_rows(df, count), ds, as_rows(f, count), as_rows(dy, count),
                              api::per_channel(s));
        api::residual_add_vjp(as_rows(dx, count), as_rows(df, count), more, as_rows(f, count), as_rows(dy, count),
                              api::per_channel(s), {.ds = weight_gradient::accumulate});
        EXPECT_TRUE(ulp::all_same_bits(dx, dy));
        for (std::size_t i = 0; i < df.size(); ++i) ASSERT_EQ(df[i], s[i % n] * dy[i]);
        for (std::size_t j = 0; j < n; ++j) {
            double sum = 0;
            for (std::size_t i = 0; i < count; ++i)
                sum = std::fma(double(dy[i * n + j]), double(f[i * n + j]), sum);
            ASSERT_EQ(ds[j], sum);
            ASSERT_NEAR(more[j], 3 + sum, 1e-14);
        }
        const T scale = T(0.7071);
        api::residual_add_vjp(as_rows(dx, count), as_rows(plain, count), as_rows(dy, count), scale);
        for (std::size_t i = 0; i < df.size(); ++i) ASSERT_EQ(plain[i], scale * dy[i]);
        // without ds; in place
        auto place = dy;
        api::residual_add_vjp(as_rows(dx, count), as_rows(place, count), as_rows(place, count),
                              api::per_channel(s));
        EXPECT_TRUE(ulp::all_same_bits(place, df));
        EXPECT_TRUE(ulp::all_same_bits(dx, dy));
        std::vector<double> again(n);
        auto over_f = f;
        api::residual_add_vjp(as_rows(dx, count), as_rows(over_f, count), again, as_rows(over_f, count),
                              as_rows(dy, count), api::per_channel(s));
        EXPECT_TRUE(ulp::all_same_bits(over_f, df));
        EXPECT_TRUE(ulp::all_same_bits(again, ds));
    }
}

TYPED_TEST(residual, derivatives_are_the_adjoint)
{
    using T = TypeParam;
    reference::random random{33};
    const std::size_t count = 3, n = 410;
    const auto f = random.row<T>(count * n), s = random.row<T>(n), u = random.row<T>(count * n);
    const auto tx = random.row<T>(count * n), tf = random.row<T>(count * n), ts = random.row<T>(n);
    std::vector<T> dx(count * n), df(count * n), ds(n), ty(count * n);
    api::residual_add_vjp(as_rows(dx, count), as_rows(df, count), ds, as_rows(f, count), as_rows(u, count),
                          api::per_channel(s));
    api::residual_add_jvp(as_rows(ty, count), as_rows(f, count), as_rows(tx, count), as_rows(tf, count),
                          api::per_channel(s), api::per_channel(ts));
    expect_adjoint<T>(joined({widen(dx), widen(df), widen(ds)}), joined({widen(tx), widen(tf), widen(ts)}),
                      widen(u), widen(ty));
    precision::worst_in_double<T> seen{3};
    for (std::size_t i = 0; i < ty.size(); ++i) {
        const wide with_tf = wide(s[i % n]) * wide(tf[i]), with_ts = wide(ts[i % n]) * wide(f[i]);
        seen.see(ty[i], wide(tx[i]) + with_tf + with_ts, largest({wide(tx[i]), with_tf, with_ts}));
    }
    seen.expect_within_bound("residual_add_jvp, a scale for each channel", "the largest term");
    api::residual_add_vjp(dx, df, u, T(0.3));
    api::residual_add_jvp(ty, tx, tf, T(0.3));
    expect_adjoint<T>(joined({widen(dx), widen(df)}), joined({widen(tx), widen(tf)}), widen(u), widen(ty));
    api::scale_vjp(dx, u, T(0.3));
    api::scale_jvp(ty, tx, T(0.3));
    expect_adjoint<T>(widen(dx), widen(tx), widen(u), widen(ty));
}

// G5: a sum over rows that is kept in 16 bits stops at 256.
TEST(residual_cases, G5_ds_is_not_summed_in_16_bits)
{
    const std::size_t count = 4096;
    const std::vector<bfloat16> ones(count, bfloat16(1.0F)), s(1, bfloat16(1.0F));
    std::vector<bfloat16> dx(count), df(count);
    std::vector<float> ds(1);
    api::residual_add_vjp(rows{dx.data(), count, 1}, rows{df.data(), count, 1}, ds, rows{ones.data(), count, 1},
                          rows{ones.data(), count, 1}, api::per_channel(s));
    EXPECT_EQ(ds[0], 4096);
}

TEST(residual_cases, F8_without_a_row_ds_is_zero_or_left_alone)
{
    std::vector<float> ds(3, 7), s(3, 1);
    const rows<float> none{nullptr, 0, 3};
    const rows<const float> nothing{nullptr, 0, 3};
    api::residual_add_vjp(none, none, ds, nothing, nothing, api::per_channel(s),
                          {.ds = weight_gradient::accumulate});
    EXPECT_EQ(ds, std::vector<float>(3, 7));
    api::residual_add_vjp(none, none, ds, nothing, nothing, api::per_channel(s));
    EXPECT_EQ(ds, std::vector<float>(3, 0));
}

// --- mixing -------------------------------------------------------------------------------------------------------

/// With the sums of |c(j, i) x_i|, and the largest of the sums of the first of them.
struct mixed {
    wide_row y, scale, partial;
};
mixed mix(const wide_row& c, const wide_row& x, std::size_t tokens, std::size_t from, std::size_t to)
{
    const std::size_t n = x.size() / (tokens * from);
    const bool shared = c.size() == from * to;
    mixed m{wide_row(tokens * to * n), wide_row(tokens * to * n), wide_row(tokens * to * n)};
    for (std::size_t t = 0; t < tokens; ++t) {
        for (std::size_t j = 0; j < to; ++j) {
            for (std::size_t i = 0; i < from; ++i) {
                const wide w = c[(shared ? 0 : t * from * to) + j * from + i];
                for (std::size_t k = 0; k < n; ++k) {
                    const std::size_t e = (t * to + j) * n + k;
                    m.y[e] += w * x[(t * from + i) * n + k];
                    m.scale[e] += std::abs(w * x[(t * from + i) * n + k]);
                    m.partial[e] = std::max(m.partial[e], std::abs(m.y[e]));
                }
            }
        }
    }
    return m;
}
std::string of_partial_sum(const std::string& roundings)
{
    return "of (" + roundings + ") / 2 ulp of the largest partial sum";
}
/// A sum of so many products in float (or double), each rounded, and the result once more.
template <class S>
void see_chain(errors& seen, S got, wide exact, wide partial, std::size_t terms)
{
    using T = precision::arithmetic<S>;
    const auto roundings = static_cast<wide>(terms);
    seen.see(got, exact,
             sizeof(S) == 2 ? (roundings * unit<T>(partial) + unit<S>(exact)) / 2
                            : (roundings + 1) * unit<T>(partial) / 2);
}

TYPED_TEST(streams, a_mix_is_a_chain_of_fused_multiply_adds)
{
    using T = TypeParam;
    reference::random random{41};
    const std::size_t tokens = 2;
    for (std::size_t from = 1; from <= 16; ++from) {
        for (const std::size_t to : {std::size_t(1), std::size_t(3), from}) {
            const std::size_t n = some_lengths()[(from * 5 + to) % some_lengths().size()];
            const auto c = random.row<T>(tokens * from * to);
            auto x = random.row<T>(tokens * from * n);
            x[0] = T(-0.0);
            std::vector<T> y(tokens * to * n), right(y.size());
            api::mix_streams(as_rows(y, tokens * to), as_rows(c, tokens), as_rows(x, tokens * from));
            for (std::size_t e = 0; e < right.size(); ++e) {
                const std::size_t k = e % n, j = e / n % to, t = e / n / to;
                const T* const row = c.data() + (t * to + j) * from;
                const T* const in = x.data() + t * from * n + k;
                T sum = row[0] * in[0];
                for (std::size_t i = 1; i < from; ++i) sum = std::fma(row[i], in[i * n], sum);
                right[e] = sum;
            }
            ASSERT_TRUE(ulp::all_same_bits(y, right)) << from << " to " << to << ", n = " << n;
            if (from == to) {
                api::mix_streams(as_rows(x, tokens * to), as_rows(c, tokens), as_rows(x, tokens * from));
                ASSERT_TRUE(ulp::all_same_bits(x, right)) << "in place";
            }
        }
    }
}

TYPED_TEST(streams, a_token_alone_and_coefficients_for_all_tokens)
{
    using T = TypeParam;
    reference::random random{42};
    const std::size_t tokens = 5, from = 4, to = 3, n = 77;
    const auto c = random.row<T>(from * to);
    const auto x = random.row<T>(tokens * from * n);
    std::vector<T> repeated;
    for (std::size_t t = 0; t < tokens; ++t) repeated.insert(repeated.end(), c.begin(), c.end());
    std::vector<T> y(tokens * to * n), again(y.size()), alone(y.size());
    api::mix_streams(as_rows(y, tokens * to), c, as_rows(x, tokens * from));
    api::mix_streams(as_rows(again, tokens * to), as_rows(repeated, tokens), as_rows(x, tokens * from));
    for (std::size_t t = 0; t < tokens; ++t) {
        api::mix_streams(as_rows(alone, tokens * to).part(t * to, to), c,
                         as_rows(x, tokens * from).part(t * from, from));
    }
    EXPECT_TRUE(ulp::all_same_bits(y, again));
    EXPECT_TRUE(ulp::all_same_bits(y, alone));
}

TYPED_TEST(streams, strides_are_each_operand_s_own)
{
    using T = TypeParam;
    reference::random random{43};
    const std::size_t tokens = 3, s = 4, n = 29;
    const auto c = random.row<T>(tokens * s * s);
    const auto x = random.row<T>(tokens * s * n);
    std::vector<T> right(x.size());
    api::mix_streams(as_rows(right, tokens * s), as_rows(c, tokens), as_rows(x, tokens * s));
    memory::strided<T> y(tokens * s, n, n + 6), matrix(c, tokens, s * s, s * s + 3), in(x, tokens * s, n, n + 1);
    api::mix_streams(y.view(), matrix.view(), in.view());
    EXPECT_TRUE(ulp::all_same_bits(y.packed(), right));
    EXPECT_TRUE(y.gaps_untouched());
}

TYPED_TEST(streams, sums_that_leave_the_range_of_float_on_the_way)
{
    using T = TypeParam;
    if (sizeof(T) == 8) GTEST_SKIP() << "stated for float";
    const T most = std::numeric_limits<T>::max();
    for (const std::size_t n : {1U, 33U, 700U}) {
        std::vector<T> x(3 * n), y(n);
        std::fill(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(2 * n), most);
        std::fill(x.begin() + static_cast<std::ptrdiff_t>(2 * n), x.end(), T(1));
        api::mix_streams(y, std::vector<T>{2, -2, 5}, as_rows(x, 3));
        EXPECT_TRUE(ulp::all_same_bits(y, std::vector<T>(n, T(5))));
        api::mix_streams(y, std::vector<T>{2, 2, 5}, as_rows(x, 3));
        EXPECT_TRUE(ulp::all_same_bits(y, std::vector<T>(n, std::numeric_limits<T>::infinity())));
    }
}

TYPED_TEST(streams, a_sum_out_of_range_leaves_its_neighbours_alone)
{
    using T = TypeParam;
    reference::random random{46};
    const std::size_t from = 4, to = 4, n = 600;
    const auto c = random.row<T>(from * to, 0.5, 1);
    const auto x = random.row<T>(from * n);
    std::vector<T> right(to * n);
    api::mix_streams(as_rows(right, to), c, as_rows(x, from));
    const T large = std::numeric_limits<T>::max();
    for (const std::size_t at : {0U, 17U, 300U, 599U}) {
        for (const T last : {-large, std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity()}) {
            auto beside = x;
            for (std::size_t i = 0; i + 1 < from; ++i) beside[i * n + at] = large;
            beside[(from - 1) * n + at] = last;
            std::vector<T> y(to * n);
            api::mix_streams(as_rows(y, to), c, as_rows(beside, from));
            for (std::size_t e = 0; e < y.size(); ++e) {
                if (e % n == at) continue;
                ASSERT_EQ(y[e], right[e]) << "element " << e << " beside " << at;
            }
        }
    }
}

TYPED_TEST(streams, nan_stays_in_its_column)
{
    using T = TypeParam;
    const T nan = std::numeric_limits<T>::quiet_NaN();
    for (std::size_t where = 0; where < 4 * 21; ++where) {
        std::vector<T> x(4 * 21, T(1)), y(4 * 21);
        x[where] = nan;
        api::mix_streams(as_rows(y, 4), std::vector<T>(16, T(0.25)), as_rows(x, 4));
        for (std::size_t e = 0; e < y.size(); ++e) {
            const T right = e % 21 == where % 21 ? nan : T(1);
            EXPECT_TRUE(ulp::same_bits(y[e], right));
        }
    }
}

TYPED_TEST(storage, mixes_of_every_type)
{
    using S = TypeParam;
    reference::random random{44};
    const std::size_t tokens = 2;
    errors seen;
    for (const std::size_t n : some_lengths()) {
        const std::size_t s = 1 + n % 8;
        const auto c = random_row<S>(random, tokens * s * s, -1, 1);
        auto x = random_row<S>(random, tokens * s * n);
        std::vector<S> y(x.size());
        api::mix_streams(as_rows(y, tokens * s), as_rows(c, tokens), as_rows(x, tokens * s));
        const auto exact = mix(widen(c), widen(x), tokens, s, s);
        for (std::size_t e = 0; e < y.size(); ++e) see_chain(seen, y[e], exact.y[e], exact.partial[e], s);
        api::mix_streams(as_rows(x, tokens * s), as_rows(c, tokens), as_rows(x, tokens * s));
        ASSERT_TRUE(same(x, y)) << "in place";
    }
    expect_within<S>(seen, 1, "mix_streams", of_partial_sum("I + 1"));
}

TYPED_TEST(streams, gradients_of_mixes)
{
    using T = TypeParam;
    reference::random random{45};
    rounded_once<T> to_x{0.5, exponent<T>(-45, -50)}, to_c = to_x, along = to_x;
    for (const bool shared : {false, true}) {
        for (const std::size_t n : some_lengths()) {
            const std::size_t tokens = 2, from = 1 + n % 5, to = 1 + n % 4, numbers = from * to;
            const auto c = random.row<T>(shared ? numbers : tokens * numbers);
            const auto x = random.row<T>(tokens * from * n), dy = random.row<T>(tokens * to * n);
            const auto tc = random.row<T>(c.size()), tx = random.row<T>(x.size());
            std::vector<T> dx(x.size()), dc(c.size()), more(c.size(), T(2)), ty(dy.size());
            const std::size_t c_rows = shared ? 1 : tokens;
            const auto run = [&](std::vector<T>& out, std::vector<T>& sums, weight_gradient mode) {
                api::mix_streams_vjp(as_rows(out, tokens * from), as_rows(sums, c_rows), as_rows(c, c_rows),
                                     as_rows(x, tokens * from), as_rows(dy, tokens * to), {.dc = mode});
            };
            run(dx, dc, weight_gradient::overwrite);
            run(dx, more, weight_gradient::accumulate);
            api::mix_streams_jvp(as_rows(ty, tokens * to), as_rows(c, c_rows), as_rows(x, tokens * from),
                                 as_rows(tc, c_rows), as_rows(tx, tokens * from));

            wide_row transposed(tokens * numbers), exact_c(c.size()), c_scale(c.size());
            for (std::size_t t = 0; t < tokens; ++t) {
                for (std::size_t j = 0; j < to; ++j) {
                    for (std::size_t i = 0; i < from; ++i) {
                        const std::size_t e = (shared ? 0 : t * numbers) + j * from + i;
                        transposed[t * numbers + i * to + j] = value(c[e]);
                        const auto g = part(widen(dy), (t * to + j) * n, n),
                                   r = part(widen(x), (t * from + i) * n, n);
                        exact_c[e] += reference::dot(g, r);
                        c_scale[e] += reference::dot_scale(g, r);
                    }
                }
            }
            const auto exact_x = mix(transposed, widen(dy), tokens, to, from);
            to_x.see(dx, exact_x.y, exact_x.scale);
            to_c.see(dc, exact_c, c_scale);
            for (std::size_t e = 0; e < dc.size(); ++e) {
                EXPECT_NEAR(static_cast<double>(value(more[e]) - 2 - exact_c[e]), 0,
                            static_cast<double>((2 + c_scale[e]) * unit<T>(1)));
            }
            auto exact = mix(widen(c), widen(tx), tokens, from, to);
            const auto rest = mix(widen(tc), widen(x), tokens, from, to);
            for (std::size_t e = 0; e < ty.size(); ++e) {
                along.see(ty[e], exact.y[e] + rest.y[e], exact.scale[e] + rest.scale[e]);
            }
            expect_adjoint<T>(joined({widen(dx), widen(dc)}), joined({widen(tx), widen(tc)}), widen(dy), widen(ty));

            if (from != to) continue;
            for (const bool over_dy : {false, true}) {
                auto place = over_dy ? dy : x;
                std::vector<T> again(c.size());
                api::mix_streams_vjp(as_rows(place, tokens * from), as_rows(again, c_rows), as_rows(c, c_rows),
                                     as_rows(over_dy ? x : place, tokens * from),
                                     as_rows(over_dy ? place : dy, tokens * to));
                EXPECT_TRUE(ulp::all_same_bits(place, dx));
                EXPECT_TRUE(ulp::all_same_bits(again, dc));
            }
        }
    }
    to_x.expect_within_bound("mix_streams_vjp, dx");
    to_c.expect_within_bound("mix_streams_vjp, dc");
    along.expect_within_bound("mix_streams_jvp");
}

// --- mHC ----------------------------------------------------------------------------------------------------------

struct mhc {
    wide_row pre, post, comb;
};

mhc mhc_of_token(const wide_row& m, const wide_row& a, const wide_row& b, std::size_t s, wide eps, int iterations)
{
    wide_row z(m.size());
    for (std::size_t k = 0; k < z.size(); ++k) z[k] = a[std::min<std::size_t>(k / s, 2)] * m[k] + b[k];
    const auto all = reference::mhc_coefficients(z, s, eps, iterations);
    return {part(all, 0, s), part(all, s, s), part(all, 2 * s, s * s)};
}

/// The same as a function of (m, a, b), for differences.
function mhc_function(std::size_t s, wide eps, int iterations)
{
    return [=](const wide_row& x) {
        const std::size_t numbers = s * (2 + s);
        const auto c = mhc_of_token(part(x, 0, numbers), part(x, numbers, 3), part(x, numbers + 3, numbers), s, eps,
                                    iterations);
        return joined({c.pre, c.post, c.comb});
    };
}

template <class T>
struct mhc_result {
    std::vector<T> pre, post, comb;

    mhc_result(std::size_t tokens, std::size_t s) : pre(tokens * s), post(tokens * s), comb(tokens * s * s) {}
};
template <class T>
mhc_result<T> run_mhc(const std::vector<T>& m, const std::vector<T>& a, const std::vector<T>& b, std::size_t tokens,
                      std::size_t s, api::mhc_options options)
{
    mhc_result<T> out(tokens, s);
    api::mhc_coefficients(as_rows(out.pre, tokens), as_rows(out.post, tokens), as_rows(out.comb, tokens),
                          as_rows(m, tokens), a, b, options);
    return out;
}

TYPED_TEST(storage, mhc_coefficients_equal_a_plain_replay)
{
    using S = TypeParam;
    reference::random random{51};
    errors pre, post, comb;
    for (std::size_t s = 1; s <= 16; ++s) {
        for (const double spread : {0.1, 3.0, 40.0, 400.0}) {
            for (const int iterations : {1, 2, 20}) {
                const std::size_t tokens = 3, numbers = s * (2 + s);
                const auto m = random_row<S>(random, tokens * numbers, -spread, spread);
                const auto a = random_row<S>(random, 3, 0.1, 2), b = random_row<S>(random, numbers, -1, 1);
                const auto got = run_mhc(m, a, b, tokens, s, {.eps = 1e-6, .iterations = iterations});
                for (std::size_t t = 0; t < tokens; ++t) {
                    const auto exact = mhc_of_token(part(widen(m), t * numbers, numbers), widen(a), widen(b), s,
                                                    wide(1e-6), iterations);
                    // in double z is rounded before its exponential
                    const auto z = [&](std::size_t i) {
                        const std::size_t of_a = std::min<std::size_t>(i / s, 2);
                        return std::abs(value(a[of_a]) * value(m[t * numbers + i]) + value(b[i]));
                    };
                    const auto allowed = [](wide x, wide size) {
                        return unit<S>(x) * (sizeof(S) == 8 ? 20 + size : 1);
                    };
                    wide of_comb = 0;
                    for (std::size_t i = 2 * s; i < numbers; ++i) of_comb = std::max(of_comb, z(i));
                    for (std::size_t i = 0; i < s; ++i) {
                        pre.see(got.pre[t * s + i], exact.pre[i], allowed(exact.pre[i], z(i)));
                        post.see(got.post[t * s + i], exact.post[i], allowed(exact.post[i], z(s + i)));
                    }
                    for (std::size_t i = 0; i < s * s; ++i) {
                        comb.see(got.comb[t * s * s + i], exact.comb[i], allowed(exact.comb[i], of_comb));
                    }
                }
            }
        }
    }
    const char* const text = sizeof(S) == 8 ? "of (20 + the largest z) ulp" : "ulp";
    expect_within<S>(pre, pick<S>(0.51, 1.0), "mhc_coefficients, pre", text);
    expect_within<S>(post, pick<S>(0.51, 1.0), "mhc_coefficients, post", text);
    expect_within<S>(comb, pick<S>(0.51, 1.0), "mhc_coefficients, comb", text);
}

TYPED_TEST(streams, mhc_rows_and_columns_sum_to_one)
{
    using T = TypeParam;
    reference::random random{52};
    for (std::size_t s = 2; s <= 16; s += 2) {
        const std::size_t numbers = s * (2 + s);
        const auto m = random.row<T>(numbers, -1, 1), b = random.row<T>(numbers, -1, 1);
        const auto got = run_mhc(m, {1, 1, 1}, b, 1, s, {.eps = 1e-6});
        for (std::size_t i = 0; i < s; ++i) {
            double row = 0, column = 0;
            for (std::size_t j = 0; j < s; ++j) {
                row += double(got.comb[i * s + j]);
                column += double(got.comb[j * s + i]);
            }
            EXPECT_NEAR(column, 1, 2e-6) << "the last normalisation, but for eps";
            EXPECT_NEAR(row, 1, 4e-6) << "after 20 iterations";
        }
    }
}

TYPED_TEST(streams, mhc_coefficients_of_extreme_numbers)
{
    using T = TypeParam;
    const T most = std::numeric_limits<T>::max();
    std::vector<T> m(24);
    for (std::size_t i = 0; i < 24; ++i) m[i] = i % 2 == 0 ? most : -most;
    const std::vector<T> one{1, 1, 1};
    const auto got = run_mhc(m, one, std::vector<T>(24), 1, 4, {.eps = 1e-6});
    EXPECT_EQ(got.pre, (std::vector<T>{static_cast<T>(1 + 1e-6), T(1e-6), static_cast<T>(1 + 1e-6), T(1e-6)}));
    EXPECT_EQ(got.post, (std::vector<T>{2, 0, 2, 0}));
    for (std::size_t i = 0; i < 16; ++i) EXPECT_TRUE(got.comb[i] >= 0 && got.comb[i] <= 1);
    // +-infinity, NaN
    m.assign(24, T(0));
    m[0] = std::numeric_limits<T>::infinity();
    m[8] = -std::numeric_limits<T>::infinity();
    const auto masked = run_mhc(m, one, std::vector<T>(24), 1, 4, {.eps = 1e-6});
    EXPECT_EQ(masked.pre[0], static_cast<T>(1 + 1e-6));
    EXPECT_LT(masked.comb[0], T(1e-5));
    EXPECT_GT(masked.comb[0], T(0));
    m[5] = std::numeric_limits<T>::quiet_NaN();
    m[9] = m[5];
    const auto nan = run_mhc(m, one, std::vector<T>(24), 1, 4, {.eps = 1e-6});
    EXPECT_TRUE(std::isnan(nan.post[1]));
    EXPECT_EQ(nan.post[0], 1);
    for (const T e : nan.comb) EXPECT_TRUE(std::isnan(e));
}

TYPED_TEST(streams, mhc_gradients_agree_with_differences)
{
    using T = TypeParam;
    reference::random random{53};
    rounded_once<T> to_m{0.5, exponent<T>(-40, -46)}, to_a = to_m, to_b = to_m, along = to_m;
    for (const std::size_t s : {1U, 2U, 4U, 7U}) {
        for (const int iterations : {1, 2, 20}) {
            const std::size_t tokens = 2, numbers = s * (2 + s), results = numbers;
            const double eps = iterations == 2 ? 0.05 : 1e-6;  // one that is seen
            const auto m = random.row<T>(tokens * numbers), a = random.row<T>(3, 0.5, 1.5);
            const auto b = random.row<T>(numbers);
            const auto tm = random.row<T>(m.size()), ta = random.row<T>(3), tb = random.row<T>(numbers);
            const auto upre = random.row<T>(tokens * s), upost = random.row<T>(tokens * s);
            const auto ucomb = random.row<T>(tokens * s * s);
            std::vector<T> dm(m.size()), da(3), db(numbers);
            const auto run = [&](std::vector<T>& out, weight_gradient mode) {
                api::mhc_coefficients_vjp(as_rows(out, tokens), da, db, as_rows(m, tokens), a, b,
                                          as_rows(upre, tokens), as_rows(upost, tokens), as_rows(ucomb, tokens),
                                          {.eps = eps, .iterations = iterations, .da_db = mode});
            };
            run(dm, weight_gradient::overwrite);
            mhc_result<T> t(tokens, s);
            api::mhc_coefficients_jvp(as_rows(t.pre, tokens), as_rows(t.post, tokens), as_rows(t.comb, tokens),
                                      as_rows(m, tokens), a, b, as_rows(tm, tokens), ta, tb,
                                      {.eps = eps, .iterations = iterations});

            const auto f = mhc_function(s, wide(eps), iterations);
            wide_row exact_ab(3 + numbers), u_all, t_all;
            for (std::size_t k = 0; k < tokens; ++k) {
                const auto x = joined({part(widen(m), k * numbers, numbers), widen(a), widen(b)});
                const auto u = joined({part(widen(upre), k * s, s), part(widen(upost), k * s, s),
                                       part(widen(ucomb), k * s * s, s * s)});
                const auto g = gradient(f, x, u);
                for (std::size_t i = 0; i < numbers; ++i) {
                    to_m.see(dm[k * numbers + i], g[i], largest(u) * largest(widen(a)));
                }
                for (std::size_t i = 0; i < exact_ab.size(); ++i) exact_ab[i] += g[numbers + i];
                const auto d =
                    derivative(f, x, joined({part(widen(tm), k * numbers, numbers), widen(ta), widen(tb)}));
                const auto got = joined({part(widen(t.pre), k * s, s), part(widen(t.post), k * s, s),
                                         part(widen(t.comb), k * s * s, s * s)});
                ASSERT_EQ(d.size(), results);
                wide tz = 0;
                for (std::size_t i = 0; i < numbers; ++i) {
                    const std::size_t of_a = std::min<std::size_t>(i / s, 2), e = k * numbers + i;
                    tz = std::max(tz, std::abs(wide(a[of_a]) * wide(tm[e])) + std::abs(wide(ta[of_a]) * wide(m[e]))
                                          + std::abs(wide(tb[i])));
                }
                for (std::size_t i = 0; i < results; ++i) along.see(static_cast<T>(got[i]), d[i], tz);
                u_all = joined({u_all, u});
                t_all = joined({t_all, got});
            }
            const wide count = static_cast<wide>(tokens * numbers);
            for (std::size_t i = 0; i < 3; ++i) {
                to_a.see(da[i], exact_ab[i], count * largest(u_all) * largest(widen(m)));
            }
            for (std::size_t i = 0; i < numbers; ++i) to_b.see(db[i], exact_ab[3 + i], count * largest(u_all));
            expect_adjoint<T>(joined({widen(dm), widen(da), widen(db)}), joined({widen(tm), widen(ta), widen(tb)}),
                              u_all, t_all);

            // accumulated, and in place
            const auto da_once = da;
            run(dm, weight_gradient::accumulate);
            for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(da[i], 2 * da_once[i]);
            auto place = m;
            api::mhc_coefficients_vjp(as_rows(place, tokens), da, db, as_rows(place, tokens), a, b,
                                      as_rows(upre, tokens), as_rows(upost, tokens), as_rows(ucomb, tokens),
                                      {.eps = eps, .iterations = iterations});
            EXPECT_TRUE(ulp::all_same_bits(place, dm));
            EXPECT_TRUE(ulp::all_same_bits(da, da_once));
        }
    }
    to_m.expect_within_bound("mhc_coefficients_vjp, dm", "the largest gradient times the largest a");
    to_a.expect_within_bound("mhc_coefficients_vjp, da", "the largest gradient times the largest m, for each m");
    to_b.expect_within_bound("mhc_coefficients_vjp, db", "the largest gradient, for each m");
    along.expect_within_bound("mhc_coefficients_jvp", "the terms of the largest tz");
}

// G9: s (1 - s) is 0 as soon as s is 1 to the last bit.
TYPED_TEST(streams, G9_the_slope_of_a_saturated_gate_is_not_lost)
{
    using T = TypeParam;
    const std::size_t numbers = 3;
    std::vector<T> dm(numbers), da(3), db(numbers);
    for (const double z : {20.0, -20.0, 45.0, -45.0, 80.0, -80.0}) {
        const std::vector<T> m{T(z), T(z), 0};
        api::mhc_coefficients_vjp(dm, da, db, m, std::vector<T>{1, 1, 1}, std::vector<T>(numbers),
                                  std::vector<T>{1}, std::vector<T>{1}, std::vector<T>{1}, {.eps = 1e-6});
        const wide e = std::exp(-std::abs(wide(z)));
        const wide slope = e / ((1 + e) * (1 + e));
        EXPECT_LE(ulp::error(dm[0], slope), pick<T>(0.51, 4)) << z;
        EXPECT_LE(ulp::error(dm[1], 2 * slope), pick<T>(0.51, 4)) << z;
        std::vector<T> g(1), f{1}, dx(1), df(1), u{1};
        api::gated_write_vjp(dx, df, g, f, std::vector<T>{T(z)}, u);
        EXPECT_LE(ulp::error(g[0], 2 * slope), pick<T>(0.51, 4)) << z;
    }
}

TYPED_TEST(storage, mhc_read_and_write_are_their_formulas)
{
    using S = TypeParam;
    reference::random random{54};
    errors read, written;
    for (const std::size_t n : some_lengths()) {
        const std::size_t tokens = 2, s = 1 + n % 6;
        auto x = random_row<S>(random, tokens * s * n);
        const auto f = random_row<S>(random, tokens * n), pre = random_row<S>(random, tokens * s, -1, 1);
        const auto post = random_row<S>(random, tokens * s, 0, 2),
                   comb = random_row<S>(random, tokens * s * s, 0, 1);
        std::vector<S> y(tokens * n), z(x.size());
        api::mhc_read(as_rows(y, tokens), as_rows(x, tokens * s), as_rows(pre, tokens));
        api::mhc_write(as_rows(z, tokens * s), as_rows(x, tokens * s), as_rows(f, tokens), as_rows(post, tokens),
                       as_rows(comb, tokens));
        for (std::size_t t = 0; t < tokens; ++t) {
            for (std::size_t k = 0; k < n; ++k) {
                wide sum = 0, partial = 0;
                for (std::size_t i = 0; i < s; ++i) {
                    sum += value(pre[t * s + i]) * value(x[(t * s + i) * n + k]);
                    partial = std::max(partial, std::abs(sum));
                }
                see_chain(read, y[t * n + k], sum, partial, s);
                for (std::size_t j = 0; j < s; ++j) {
                    sum = value(post[t * s + j]) * value(f[t * n + k]);
                    partial = std::abs(sum);
                    for (std::size_t i = 0; i < s; ++i) {
                        sum += value(comb[(t * s + i) * s + j]) * value(x[(t * s + i) * n + k]);
                        partial = std::max(partial, std::abs(sum));
                    }
                    see_chain(written, z[(t * s + j) * n + k], sum, partial, s + 1);
                }
            }
        }
        api::mhc_write(as_rows(x, tokens * s), as_rows(x, tokens * s), as_rows(f, tokens), as_rows(post, tokens),
                       as_rows(comb, tokens));
        ASSERT_TRUE(same(x, z)) << "in place";
    }
    expect_within<S>(read, 1, "mhc_read", of_partial_sum("S + 1"));
    expect_within<S>(written, 1, "mhc_write", of_partial_sum("S + 2"));
}

/// mhc_write of one token as a function of (x, f, post, comb).
function mhc_write_function(std::size_t s, std::size_t n)
{
    return [=](const wide_row& all) {
        wide_row y(s * n);
        for (std::size_t j = 0; j < s; ++j) {
            for (std::size_t k = 0; k < n; ++k) {
                wide sum = all[(s + 1) * n + j] * all[s * n + k];
                for (std::size_t i = 0; i < s; ++i) sum += all[(s + 1) * n + s + i * s + j] * all[i * n + k];
                y[j * n + k] = sum;
            }
        }
        return y;
    };
}

/// mhc_read of one token as a function of (x, pre).
function mhc_read_function(std::size_t s, std::size_t n)
{
    return [=](const wide_row& all) {
        wide_row y(n);
        for (std::size_t e = 0; e < s * n; ++e) y[e % n] += all[s * n + e / n] * all[e];
        return y;
    };
}

TYPED_TEST(streams, gradients_of_mhc_read_and_write)
{
    using T = TypeParam;
    reference::random random{55};
    const std::size_t s = 4, n = 11;
    const auto x = random.row<T>(s * n), f = random.row<T>(n), post = random.row<T>(s), comb = random.row<T>(s * s);
    const auto u = random.row<T>(s * n);
    const auto tx = random.row<T>(s * n), tf = random.row<T>(n), tpost = random.row<T>(s),
               tcomb = random.row<T>(s * s);
    std::vector<T> dx(s * n), df(n), dpost(s), dcomb(s * s), ty(s * n);
    api::mhc_write_vjp(as_rows(dx, s), df, dpost, dcomb, as_rows(x, s), f, post, comb, as_rows(u, s));
    api::mhc_write_jvp(as_rows(ty, s), as_rows(x, s), f, post, comb, as_rows(tx, s), tf, tpost, tcomb);
    const auto all = joined({widen(x), widen(f), widen(post), widen(comb)});
    const auto along = joined({widen(tx), widen(tf), widen(tpost), widen(tcomb)});
    const auto got = joined({widen(dx), widen(df), widen(dpost), widen(dcomb)});
    const auto exact = gradient(mhc_write_function(s, n), all, widen(u));
    // they are linear in each operand: of magnitudes they are the sums of the sizes of all terms
    const auto sizes = gradient(mhc_write_function(s, n), magnitudes(all), magnitudes(widen(u)));
    rounded_once<T> g{0.5, exponent<T>(-45, -50)}, d = g, g_of_read = g, d_of_read = g;
    for (std::size_t i = 0; i < got.size(); ++i) g.see(static_cast<T>(got[i]), exact[i], sizes[i]);
    d.see(ty, derivative(mhc_write_function(s, n), all, along),
          derivative(mhc_write_function(s, n), magnitudes(all), magnitudes(along)));
    g.expect_within_bound("mhc_write_vjp");
    d.expect_within_bound("mhc_write_jvp");
    expect_adjoint<T>(got, along, widen(u), widen(ty));

    // in place, over x and f, and over dy
    auto place = x, over_f = f;
    std::vector<T> post_again(s), comb_again(s * s);
    api::mhc_write_vjp(as_rows(place, s), over_f, post_again, comb_again, as_rows(place, s), over_f, post, comb,
                       as_rows(u, s));
    EXPECT_TRUE(ulp::all_same_bits(place, dx));
    EXPECT_TRUE(ulp::all_same_bits(over_f, df));
    EXPECT_TRUE(ulp::all_same_bits(post_again, dpost));
    EXPECT_TRUE(ulp::all_same_bits(comb_again, dcomb));
    place = u;
    api::mhc_write_vjp(as_rows(place, s), df, dpost, dcomb, as_rows(x, s), f, post, comb, as_rows(place, s));
    EXPECT_TRUE(ulp::all_same_bits(place, dx));

    const auto v = random.row<T>(n);
    std::vector<T> dpre(s), read_along(n);
    api::mhc_read_vjp(as_rows(dx, s), dpre, as_rows(x, s), post, v);
    api::mhc_read_jvp(read_along, as_rows(x, s), post, as_rows(tx, s), tpost);
    const auto read_at = joined({widen(x), widen(post)}), read_tangent = joined({widen(tx), widen(tpost)});
    expect_adjoint<T>(joined({widen(dx), widen(dpre)}), read_tangent, widen(v), widen(read_along));
    const auto f_read = mhc_read_function(s, n);
    const auto read_exact = gradient(f_read, read_at, widen(v));
    const auto read_sizes = gradient(f_read, magnitudes(read_at), magnitudes(widen(v)));
    g_of_read.see(dx, part(read_exact, 0, s * n), part(read_sizes, 0, s * n));
    g_of_read.see(dpre, part(read_exact, s * n, s), part(read_sizes, s * n, s));
    d_of_read.see(read_along, derivative(f_read, read_at, read_tangent),
                  derivative(f_read, magnitudes(read_at), magnitudes(read_tangent)));
    g_of_read.expect_within_bound("mhc_read_vjp");
    d_of_read.expect_within_bound("mhc_read_jvp");
    place = x;
    api::mhc_read_vjp(as_rows(place, s), dpre, as_rows(place, s), post, v);
    EXPECT_TRUE(ulp::all_same_bits(place, dx)) << "in place";
}

// --- Gated Residual -----------------------------------------------------------------------------------------------

/// gated_read of one token as a function of (n, g).
wide_row gated_read_of(const wide_row& n, const wide_row& g, std::size_t s)
{
    const std::size_t columns = n.size() / s;
    wide_row y(columns);
    for (std::size_t c = 0; c < s; ++c) {
        for (std::size_t k = 0; k < columns; ++k) {
            const wide gate = g[g.size() == columns ? k : c * columns + k];
            y[k] += n[c * columns + k] * reference::sigmoid(gate) / static_cast<wide>(s);
        }
    }
    return y;
}

TYPED_TEST(storage, gated_reads_and_writes_are_their_formulas)
{
    using S = TypeParam;
    reference::random random{61};
    errors read, written;
    for (const bool shared : {false, true}) {
        for (const std::size_t columns : some_lengths()) {
            const std::size_t tokens = 2, s = 1 + columns % 5, gates = shared ? tokens : tokens * s;
            const auto n = random_row<S>(random, tokens * s * columns);
            const auto g = random_row<S>(random, gates * columns, -9, 9),
                       m = random_row<S>(random, tokens * s, -9, 9);
            const auto f = random_row<S>(random, tokens * columns);
            std::vector<S> y(tokens * columns), z(n.size());
            api::gated_read(as_rows(y, tokens), as_rows(n, tokens * s), as_rows(g, gates));
            api::gated_write(as_rows(z, tokens * s), as_rows(n, tokens * s), as_rows(f, tokens),
                             as_rows(m, tokens));
            for (std::size_t t = 0; t < tokens; ++t) {
                const std::size_t of_gates = shared ? columns : s * columns;
                const auto exact = gated_read_of(part(widen(n), t * s * columns, s * columns),
                                                 part(widen(g), t * of_gates, of_gates), s);
                const auto of_n = magnitudes(part(widen(n), t * s * columns, s * columns));
                const auto size = gated_read_of(of_n, part(widen(g), t * of_gates, of_gates), s);
                for (std::size_t k = 0; k < columns; ++k) {
                    wide mean = 0;
                    for (std::size_t c = 0; c < s; ++c) mean += of_n[c * columns + k] / static_cast<wide>(s);
                    read.see(y[t * columns + k], exact[k],
                             sizeof(S) == 8 ? unit<S>(size[k]) : 0.51L * unit<S>(exact[k]) + std::ldexp(mean, -48));
                }
                for (std::size_t c = 0; c < s; ++c) {
                    for (std::size_t k = 0; k < columns; ++k) {
                        const std::size_t e = (t * s + c) * columns + k;
                        const wide term = 2 * reference::sigmoid(value(m[t * s + c])) * value(f[t * columns + k]);
                        written.see(z[e], value(n[e]) + term,
                                    unit<S>(value(n[e]) + term) / 2
                                        + (sizeof(S) == 8 ? 3 : 1) * unit<precision::arithmetic<S>>(term));
                    }
                }
            }
            auto place = n;
            api::gated_write(as_rows(place, tokens * s), as_rows(place, tokens * s), as_rows(f, tokens),
                             as_rows(m, tokens));
            ASSERT_TRUE(same(place, z)) << "in place";
            if (!shared) continue;
            place = g;
            api::gated_read(as_rows(place, tokens), as_rows(n, tokens * s), as_rows(place, tokens));
            ASSERT_TRUE(same(place, y)) << "in place";
        }
    }
    if (sizeof(S) == 8) expect_within<S>(read, 4, "gated_read", "ulp of the mean of all terms");
    if (sizeof(S) < 8) expect_within<S>(read, 1, "gated_read", "of 0.51 ulp + 2^-48 of the mean of all n");
    expect_within<S>(
        written, 1, "gated_write",
        sizeof(S) == 8 ? "of 0.5 ulp + 3 ulp of what is added" : "of 0.5 ulp + 1 ulp of what is added");
}

TYPED_TEST(storage, gated_read_over_a_gate_that_the_streams_share)
{
    using S = TypeParam;
    reference::random random{64};
    const std::size_t tokens = 2, s = 3;
    for (const std::size_t columns : {1U, 40U, 600U}) {
        const auto n = random_row<S>(random, tokens * s * columns), tn = random_row<S>(random, n.size());
        const auto g = random_row<S>(random, tokens * columns), tg = random_row<S>(random, g.size());
        const auto dy = random_row<S>(random, g.size());
        std::vector<S> y(g.size()), ty(g.size()), dn(n.size()), dg(g.size());
        const auto read = [&](std::vector<S>& to, const std::vector<S>& gates) {
            api::gated_read(as_rows(to, tokens), as_rows(n, tokens * s), as_rows(gates, tokens));
        };
        const auto vjp = [&](std::vector<S>& to_n, std::vector<S>& to_g, const std::vector<S>& of_n,
                             const std::vector<S>& gates) {
            api::gated_read_vjp(as_rows(to_n, tokens * s), as_rows(to_g, tokens), as_rows(of_n, tokens * s),
                                as_rows(gates, tokens), as_rows(dy, tokens));
        };
        const auto jvp = [&](std::vector<S>& to, const std::vector<S>& gates, const std::vector<S>& along) {
            api::gated_read_jvp(as_rows(to, tokens), as_rows(n, tokens * s), as_rows(gates, tokens),
                                as_rows(tn, tokens * s), as_rows(along, tokens));
        };
        read(y, g);
        vjp(dn, dg, n, g);
        jvp(ty, g, tg);
        auto place = g, place_of_n = n;
        read(place, place);
        EXPECT_TRUE(same(place, y));
        place = g;
        vjp(place_of_n, place, place_of_n, place);
        EXPECT_TRUE(same(place_of_n, dn) && same(place, dg));
        place = g;
        jvp(place, place, tg);
        EXPECT_TRUE(same(place, ty));
        place = tg;
        jvp(place, g, place);
        EXPECT_TRUE(same(place, ty));
    }
    for (const char* const name : {"gated_read", "gated_read_vjp", "gated_read_jvp"}) {
        record::promise(name, record::type_name<S>(), "in place");
    }
}

TYPED_TEST(streams, gates_of_extreme_numbers)
{
    using T = TypeParam;
    // a tiny gate times a huge number
    const double low = exponent<T>(-120, -800), huge = pick<T>(3e38, 1e308);
    const std::vector<T> n(20, T(huge)), g(20, T(low)), f(20, T(huge)), zero(20);
    std::vector<T> y(20);
    api::gated_read(y, n, g);
    const wide exact = wide(T(huge)) * std::exp(wide(low)) / (1 + std::exp(wide(low)));
    for (const T e : y) EXPECT_LE(ulp::error(e, exact), pick<T>(0.51, 3));
    if (sizeof(T) == 4) {
        api::gated_write(y, zero, f, std::vector<T>{T(low)});
        for (const T e : y) EXPECT_LE(ulp::error(e, 2 * exact), 0.51);
    }
    const T nan = std::numeric_limits<T>::quiet_NaN(), infinity = std::numeric_limits<T>::infinity();
    api::gated_read(y, std::vector<T>(20, T(3)), std::vector<T>(20, infinity));
    EXPECT_EQ(y[7], 3);
    api::gated_read(y, std::vector<T>(20, T(3)), std::vector<T>(20, -infinity));
    EXPECT_EQ(y[7], 0);
    api::gated_read(y, std::vector<T>(20, T(3)), std::vector<T>(20, nan));
    EXPECT_TRUE(std::isnan(y[7]));
    api::gated_write(y, zero, f, std::vector<T>{nan});
    EXPECT_TRUE(std::isnan(y[7]));
    api::gated_write(y, zero, f, std::vector<T>{-infinity});
    EXPECT_EQ(y[7], 0);
}

TYPED_TEST(streams, gradients_of_gated_reads)
{
    using T = TypeParam;
    reference::random random{62};
    rounded_once<T> g_errors{0.51, exponent<T>(-45, -49)}, t_errors = g_errors;
    for (const bool shared : {false, true}) {
        for (const std::size_t s : {1U, 3U, 4U}) {
            const std::size_t columns = 9, gates = shared ? 1 : s;
            const auto n = random.row<T>(s * columns), g = random.row<T>(gates * columns),
                       u = random.row<T>(columns);
            const auto tn = random.row<T>(n.size()), tg = random.row<T>(g.size());
            std::vector<T> dn(n.size()), dg(g.size()), ty(columns);
            api::gated_read_vjp(as_rows(dn, s), as_rows(dg, gates), as_rows(n, s), as_rows(g, gates), u);
            api::gated_read_jvp(ty, as_rows(n, s), as_rows(g, gates), as_rows(tn, s), as_rows(tg, gates));
            const function f = [&](const wide_row& all) {
                return gated_read_of(part(all, 0, n.size()), part(all, n.size(), g.size()), s);
            };
            const auto at = joined({widen(n), widen(g)}), along = joined({widen(tn), widen(tg)});
            wide_row exact_n(n.size()), exact_g(g.size()), n_size(n.size()), g_size(g.size());
            for (std::size_t e = 0; e < n.size(); ++e) {
                const std::size_t k = e % columns, of_g = shared ? k : e;
                const wide share = wide(u[k]) / static_cast<wide>(s);
                exact_n[e] = share * reference::sigmoid(wide(g[of_g]));
                n_size[e] = std::abs(exact_n[e]);
                const wide to_g = share * wide(n[e]) * reference::sigmoid_derivative(wide(g[of_g]));
                exact_g[of_g] += to_g;
                g_size[of_g] += std::abs(to_g);
            }
            g_errors.see(dn, exact_n, n_size);
            g_errors.see(dg, exact_g, g_size);
            const auto differences = gradient(f, at, widen(u));
            for (std::size_t e = 0; e < differences.size(); ++e) {
                const wide formula = e < n.size() ? exact_n[e] : exact_g[e - n.size()];
                EXPECT_NEAR(static_cast<double>(formula - differences[e]), 0, 1e-14);
            }
            // the slope of a sigmoid is positive: of magnitudes of n it is the sum of the sizes of all terms
            const auto at_sizes = joined({magnitudes(widen(n)), widen(g)});
            t_errors.see(ty, derivative(f, at, along), derivative(f, at_sizes, magnitudes(along)));
            expect_adjoint<T>(joined({widen(dn), widen(dg)}), along, widen(u), widen(ty));
            auto over_n = n, over_g = g;
            api::gated_read_vjp(as_rows(over_n, s), as_rows(over_g, gates), as_rows(over_n, s),
                                as_rows(over_g, gates), u);
            EXPECT_TRUE(ulp::all_same_bits(over_n, dn));
            EXPECT_TRUE(ulp::all_same_bits(over_g, dg));
        }
    }
    g_errors.expect_within_bound("gated_read_vjp");
    t_errors.expect_within_bound("gated_read_jvp");
}

TYPED_TEST(streams, gradients_of_gated_writes)
{
    using T = TypeParam;
    reference::random random{63};
    rounded_once<T> g_errors{0.51, exponent<T>(-45, -49)}, t_errors = g_errors;
    for (const std::size_t s : {1U, 4U, 16U}) {
        const std::size_t n = 7;
        const auto x = random.row<T>(s * n), f = random.row<T>(n), m = random.row<T>(s), u = random.row<T>(s * n);
        const auto tx = random.row<T>(s * n), tf = random.row<T>(n), tm = random.row<T>(s);
        std::vector<T> dx(s * n), df(n), dm(s), ty(s * n);
        api::gated_write_vjp(as_rows(dx, s), df, dm, f, m, as_rows(u, s));
        api::gated_write_jvp(as_rows(ty, s), f, m, as_rows(tx, s), tf, tm);
        const function function_of_all = [&](const wide_row& all) {
            wide_row y = part(all, 0, s * n);
            for (std::size_t e = 0; e < y.size(); ++e) {
                y[e] += 2 * reference::sigmoid(all[(s + 1) * n + e / n]) * all[s * n + e % n];
            }
            return y;
        };
        const auto at = joined({widen(x), widen(f), widen(m)}), along = joined({widen(tx), widen(tf), widen(tm)});
        const auto exact = gradient(function_of_all, at, widen(u));
        EXPECT_TRUE(ulp::all_same_bits(dx, u));
        const auto at_sizes = joined({magnitudes(widen(x)), magnitudes(widen(f)), widen(m)});
        const auto sizes = gradient(function_of_all, at_sizes, magnitudes(widen(u)));
        g_errors.see(df, part(exact, s * n, n), part(sizes, s * n, n));
        g_errors.see(dm, part(exact, (s + 1) * n, s), part(sizes, (s + 1) * n, s));
        t_errors.see(ty, derivative(function_of_all, at, along),
                     derivative(function_of_all, at_sizes, magnitudes(along)));
        expect_adjoint<T>(joined({widen(dx), widen(df), widen(dm)}), along, widen(u), widen(ty));
        auto over_u = u, over_f = f;
        api::gated_write_vjp(as_rows(over_u, s), over_f, dm, over_f, m, as_rows(over_u, s));
        EXPECT_TRUE(ulp::all_same_bits(over_u, u));
        EXPECT_TRUE(ulp::all_same_bits(over_f, df));
    }
    g_errors.expect_within_bound("gated_write_vjp");
    t_errors.expect_within_bound("gated_write_jvp");
}

// --- AttnRes ------------------------------------------------------------------------------------------------------

wide_row attn_scores(const wide_row& k, const wide_row& q, wide eps)
{
    const std::size_t n = q.size(), count = k.size() / n;
    wide_row s(count);
    for (std::size_t i = 0; i < count; ++i) s[i] = reference::dot(q, reference::normalized(part(k, i * n, n), eps));
    return s;
}
wide_row attn_weights(const wide_row& k, const wide_row& q, wide eps)
{
    return reference::softmax(attn_scores(k, q, eps));
}
wide_row weighted_sum(const wide_row& p, const wide_row& k)
{
    const std::size_t n = k.size() / p.size();
    wide_row h(n);
    for (std::size_t i = 0; i < p.size(); ++i) {
        for (std::size_t j = 0; j < n; ++j) h[j] += p[i] * k[i * n + j];
    }
    return h;
}

/// The derivatives of the header from the saved p, and for each element the sum of the sizes of all terms.
struct attn_derivatives {
    wide_row dk, dq, th, dk_size, dq_size, th_size;

    attn_derivatives(const wide_row& k, const wide_row& q, const wide_row& p, wide eps, const wide_row& dh,
                     const wide_row& tk, const wide_row& tq)
        : dk(k.size()), dq(q.size()), th(q.size()), dk_size(k.size()), dq_size(q.size()), th_size(q.size())
    {
        const std::size_t n = q.size(), count = p.size();
        const auto columns = static_cast<wide>(n);
        wide mean_dp = 0, mean_dp_size = 0, mean_ts = 0, mean_ts_size = 0;
        wide_row r(count), s(count), s_size(count), dp(count), dp_size(count), ts(count), ts_size(count);
        std::vector<wide_row> xh;
        for (std::size_t i = 0; i < count; ++i) {
            const auto row = part(k, i * n, n), trow = part(tk, i * n, n);
            xh.push_back(reference::normalized(row, eps));
            r[i] = 1 / std::sqrt(reference::mean_square(row) + eps);
            s[i] = reference::dot(q, xh[i]);
            s_size[i] = reference::dot_scale(q, xh[i]);
            dp[i] = reference::dot(dh, row);
            dp_size[i] = reference::dot_scale(dh, row);
            mean_dp += p[i] * dp[i];
            mean_dp_size += p[i] * dp_size[i];
            const wide along = reference::dot(xh[i], trow), along_size = reference::dot_scale(xh[i], trow);
            ts[i] = reference::dot(tq, xh[i]) + r[i] * (reference::dot(q, trow) - s[i] * along / columns);
            ts_size[i] = reference::dot_scale(tq, xh[i])
                         + r[i] * (reference::dot_scale(q, trow) + s_size[i] * along_size / columns);
            mean_ts += p[i] * ts[i];
            mean_ts_size += p[i] * ts_size[i];
        }
        for (std::size_t i = 0; i < count; ++i) {
            const wide ds = p[i] * (dp[i] - mean_dp), ds_size = p[i] * (dp_size[i] + mean_dp_size);
            const wide tp = p[i] * (ts[i] - mean_ts), tp_size = p[i] * (ts_size[i] + mean_ts_size);
            for (std::size_t j = 0; j < n; ++j) {
                const std::size_t e = i * n + j;
                dk[e] = p[i] * dh[j] + ds * r[i] * (q[j] - xh[i][j] * s[i] / columns);
                dk_size[e] = std::abs(p[i] * dh[j])
                             + ds_size * r[i] * (std::abs(q[j]) + std::abs(xh[i][j]) * s_size[i] / columns);
                dq[j] += ds * xh[i][j];
                dq_size[j] += ds_size * std::abs(xh[i][j]);
                th[j] += tp * k[e] + p[i] * tk[e];
                th_size[j] += tp_size * std::abs(k[e]) + std::abs(p[i] * tk[e]);
            }
        }
    }
};

TYPED_TEST(storage, attn_res_is_its_formula)
{
    using S = TypeParam;
    using W = std::conditional_t<sizeof(S) == 8, double, float>;
    reference::random random{71};
    rounded_once<W> weights{0.5, exponent<S>(-45, -50)};
    rounded_once<S> sums{0.5, exponent<S>(-45, -51)};
    const auto see = [&](std::size_t count, std::size_t n, double size) {
        auto k = random_row<S>(random, count * n);
        const auto q = random_row<S>(random, n, -0.5, 0.5);
        for (S& e : k) e = number<S>(static_cast<double>(value(e)) * size);
        std::vector<W> p(count);
        std::vector<S> h(n);
        api::attn_res(h, p, as_rows(k, count), q, {.eps = 1e-6});
        const auto exact = attn_weights(widen(k), widen(q), wide(1e-6));
        // of a score, rounded in double, the exponential is wrong by a share of it
        wide_row sizes;
        for (std::size_t i = 0; i < count; ++i) {
            sizes.push_back(reference::dot_scale(widen(q), reference::normalized(part(widen(k), i * n, n), 1e-6L)));
        }
        for (std::size_t i = 0; i < count; ++i) weights.see(p[i], exact[i], exact[i] * (1 + largest(sizes)));
        sums.see(h, weighted_sum(widen(p), widen(k)), weighted_sum(widen(p), magnitudes(widen(k))));
        // q may be overwritten
        auto place = q;
        api::attn_res(place, p, as_rows(k, count), place, {.eps = 1e-6});
        ASSERT_TRUE(same(place, h));
    };
    for (const std::size_t n : {1U, 2U, 16U, 33U, 256U, 515U}) {
        for (const std::size_t count : {1U, 2U, 3U, 4U, 9U, 13U, 65U}) see(count, n, 1);
    }
    for (const std::size_t count : {127U, 128U, 129U, 300U}) see(count, 19, 1);
    see(5, 40, pick<S>(sizeof(S) == 4 ? 1e38 : 1e4, 1e300));
    see(5, 40, pick<S>(sizeof(S) == 4 ? 1e-40 : 1e-4, 1e-300));
    if (sizeof(S) > 2) weights.expect_within_bound("attn_res, p", "p times (1 + all terms of the largest score)");
    sums.expect_within_bound("attn_res, h");
    record::promise("attn_res", record::type_name<S>(), "in place");
}

TYPED_TEST(storage, attn_res_of_strided_rows_is_that_in_double_rounded_once)
{
    using S = TypeParam;
    reference::random random{75};
    const std::size_t count = 5, n = 33;
    const auto k = random_row<S>(random, count * n), tk = random_row<S>(random, count * n);
    const auto q = random_row<S>(random, n), tq = random_row<S>(random, n), dh = random_row<S>(random, n);
    const auto in_double = [](const std::vector<S>& x) {
        std::vector<double> y;
        for (const S e : x) y.push_back(static_cast<double>(value(e)));
        return y;
    };
    const auto k2 = in_double(k), q2 = in_double(q), tk2 = in_double(tk), tq2 = in_double(tq), dh2 = in_double(dh);
    std::vector<double> p2(count), h2(n), dk2(count * n), dq2(n), th2(n);
    api::attn_res(h2, p2, as_rows(k2, count), q2, {.eps = 1e-6});
    api::attn_res_vjp(as_rows(dk2, count), dq2, as_rows(k2, count), q2, p2, dh2, {.eps = 1e-6});
    api::attn_res_jvp(th2, as_rows(k2, count), q2, p2, as_rows(tk2, count), tq2, {.eps = 1e-6});

    memory::strided<S> keys(k, count, n, n + 3), along(tk, count, n, n + 7), dkeys(count, n, n + 2);
    std::vector<double> p(count);
    std::vector<S> h(n), dq(n), th(n);
    api::attn_res(h, p, keys.view(), q, {.eps = 1e-6});
    api::attn_res_vjp(dkeys.view(), dq, keys.view(), q, p, dh, {.eps = 1e-6});
    api::attn_res_jvp(th, keys.view(), q, p, along.view(), tq, {.eps = 1e-6});
    EXPECT_EQ(p, p2);
    EXPECT_TRUE(dkeys.gaps_untouched());
    const auto expect_rounded = [](const std::vector<S>& got, const std::vector<double>& exact) {
        std::vector<S> right;
        for (const double e : exact) right.push_back(number<S>(e));
        EXPECT_TRUE(same(got, right));
    };
    const auto packed_dk = dkeys.packed();
    auto place = k;
    api::attn_res_vjp(as_rows(place, count), dq, as_rows(place, count), q, p, dh, {.eps = 1e-6});
    EXPECT_TRUE(same(place, packed_dk)) << "in place";
    record::promise("attn_res_vjp", record::type_name<S>(), "in place");
    expect_rounded(h, h2);
    expect_rounded(packed_dk, dk2);
    expect_rounded(dq, dq2);
    expect_rounded(th, th2);
    for (const char* const name : {"attn_res", "attn_res_vjp", "attn_res_jvp"}) {
        record::promise(name, record::type_name<S>(), "rounded once");
        record::promise(name, record::type_name<S>(), "strided");
    }
}

TYPED_TEST(streams, attn_res_gradients_agree_with_differences)
{
    using T = TypeParam;
    reference::random random{72};
    rounded_once<T> to_k{0.5, exponent<T>(-45, -49)}, to_q = to_k, along = to_k;
    const auto see = [&](std::size_t count, std::size_t n, bool with_differences) {
        const auto k = random.row<T>(count * n), q = random.row<T>(n), u = random.row<T>(n);
        const auto tk = random.row<T>(count * n), tq = random.row<T>(n);
        const double eps = 0.01;
        std::vector<double> p(count);  // in double, so that the formula is not off by its rounding
        std::vector<T> h(n), dk(count * n), dq(n), th(n);
        api::attn_res(h, p, as_rows(k, count), q, {.eps = eps});
        api::attn_res_vjp(as_rows(dk, count), dq, as_rows(k, count), q, p, u, {.eps = eps});
        api::attn_res_jvp(th, as_rows(k, count), q, p, as_rows(tk, count), tq, {.eps = eps});
        expect_adjoint<T>(joined({widen(dk), widen(dq)}), joined({widen(tk), widen(tq)}), widen(u), widen(th));

        auto place = k;
        std::vector<T> again(n, T(1));
        api::attn_res_vjp(as_rows(place, count), again, as_rows(place, count), q, p, u, {.eps = eps});
        EXPECT_TRUE(ulp::all_same_bits(place, dk));
        EXPECT_TRUE(ulp::all_same_bits(again, dq));
        again.assign(n, T(1));
        api::attn_res_vjp(as_rows(place, count), again, as_rows(k, count), q, p, u,
                          {.eps = eps, .dq = weight_gradient::accumulate});
        for (std::size_t j = 0; j < n; ++j) EXPECT_NEAR(double(again[j]), 1 + double(dq[j]), pick<T>(1e-5, 1e-13));
        const attn_derivatives exact(widen(k), widen(q), widen(p), wide(eps), widen(u), widen(tk), widen(tq));
        to_k.see(dk, exact.dk, exact.dk_size);
        if (count <= 128) {  // above, they are rounded more than once
            to_q.see(dq, exact.dq, exact.dq_size);
            along.see(th, exact.th, exact.th_size);
        }
        if (!with_differences) return;

        const function f = [&](const wide_row& all) {
            const auto keys = part(all, 0, count * n);
            return weighted_sum(attn_weights(keys, part(all, count * n, n), wide(eps)), keys);
        };
        const auto at = joined({widen(k), widen(q)});
        const auto expect_near = [](const wide_row& formula, const wide_row& differences) {
            for (std::size_t i = 0; i < formula.size(); ++i) {
                EXPECT_NEAR(static_cast<double>(formula[i] - differences[i]), 0, 1e-12);
            }
        };
        const auto differences = gradient(f, at, widen(u), 1e-4L);
        expect_near(exact.dk, part(differences, 0, count * n));
        expect_near(exact.dq, part(differences, count * n, n));
        expect_near(exact.th, derivative(f, at, joined({widen(tk), widen(tq)}), 1e-4L));
    };
    for (const std::size_t n : {2U, 5U, 17U}) {
        for (const std::size_t count : {1U, 2U, 5U}) see(count, n, true);
    }
    for (const std::size_t count : {127U, 128U, 129U, 300U}) see(count, 21, false);
    see(5, 600, false);
    to_k.expect_within_bound("attn_res_vjp, dk");
    to_q.expect_within_bound("attn_res_vjp, dq");
    along.expect_within_bound("attn_res_jvp");
}

// Of many tokens each has what it has alone, and dq is summed token after token.
TYPED_TEST(streams, attn_res_of_many_tokens)
{
    using T = TypeParam;
    reference::random random{73};
    for (const std::size_t count : {1U, 3U, 130U}) {
        constexpr std::size_t tokens = 4, n = 19;
        const auto k = random.row<T>(tokens * count * n), tk = random.row<T>(tokens * count * n);
        const auto q = random.row<T>(n), tq = random.row<T>(n), dh = random.row<T>(tokens * n);
        std::vector<T> h(tokens * n), p(tokens * count), dk(k.size()), dq(n, T(7)), th(tokens * n);
        const auto keys = as_rows(k, tokens * count), along = as_rows(tk, tokens * count);
        api::attn_res(as_rows(h, tokens), as_rows(p, tokens), keys, q, {.eps = 1e-6});
        api::attn_res_vjp(as_rows(dk, tokens * count), dq, keys, q, as_rows(p, tokens), as_rows(dh, tokens),
                          {.eps = 1e-6});
        api::attn_res_jvp(as_rows(th, tokens), keys, q, as_rows(p, tokens), along, tq, {.eps = 1e-6});

        std::vector<T> h1(h.size()), p1(p.size()), dk1(dk.size()), dq1(n), th1(th.size());
        const auto h_rows = as_rows(h1, tokens), p_rows = as_rows(p1, tokens), th_rows = as_rows(th1, tokens);
        const auto dh_rows = as_rows(dh, tokens);
        for (std::size_t t = 0; t < tokens; ++t) {
            const auto own = keys.part(t * count, count);
            api::attn_res(h_rows.row(t), p_rows.row(t), own, q, {.eps = 1e-6});
            api::attn_res_vjp(
                as_rows(dk1, tokens * count).part(t * count, count), dq1, own, q, p_rows.row(t), dh_rows.row(t),
                {.eps = 1e-6, .dq = t == 0 ? weight_gradient::overwrite : weight_gradient::accumulate});
            api::attn_res_jvp(th_rows.row(t), own, q, p_rows.row(t), along.part(t * count, count), tq,
                              {.eps = 1e-6});
        }
        EXPECT_TRUE(ulp::all_same_bits(h, h1) && ulp::all_same_bits(p, p1) && ulp::all_same_bits(th, th1));
        EXPECT_TRUE(ulp::all_same_bits(dk, dk1) && ulp::all_same_bits(dq, dq1));

        const rows<const T> none{nullptr, 0, n}, no_weights{nullptr, 0, count};
        api::attn_res_vjp(rows<T>{nullptr, 0, n}, dq1, none, q, no_weights, none,
                          {.eps = 1e-6, .dq = weight_gradient::accumulate});
        EXPECT_TRUE(ulp::all_same_bits(dq, dq1));
        api::attn_res_vjp(rows<T>{nullptr, 0, n}, dq1, none, q, no_weights, none, {.eps = 1e-6});
        EXPECT_EQ(dq1, std::vector<T>(n));
    }
}

TYPED_TEST(streams, attn_res_in_strides_and_of_special_values)
{
    using T = TypeParam;
    reference::random random{73};
    const std::size_t count = 5, n = 23;
    const auto k = random.row<T>(count * n), q = random.row<T>(n);
    std::vector<T> h(n), right(n), p(count), p_right(count);
    api::attn_res(right, p_right, as_rows(k, count), q, {.eps = 1e-6});
    memory::strided<T> keys(k, count, n, n + 3), out(1, n, n + 1), weights(1, count, count + 1);
    api::attn_res(out.view(), weights.view(), keys.view(), q, {.eps = 1e-6});
    EXPECT_TRUE(ulp::all_same_bits(out.packed(), right));
    EXPECT_TRUE(ulp::all_same_bits(weights.packed(), p_right));
    EXPECT_TRUE(out.gaps_untouched() && weights.gaps_untouched());

    // a row of zeros has the score 0
    std::vector<T> two(2 * n);
    std::fill(two.begin(), two.begin() + static_cast<std::ptrdiff_t>(n), T(1));
    p.resize(2);
    api::attn_res(h, p, as_rows(two, 2), std::vector<T>(n), {.eps = 1e-6});
    EXPECT_EQ(p, (std::vector<T>{0.5, 0.5}));
    EXPECT_EQ(h, std::vector<T>(n, T(0.5)));
    two[n + 4] = std::numeric_limits<T>::quiet_NaN();
    api::attn_res(h, p, as_rows(two, 2), std::vector<T>(n, T(1)), {.eps = 1e-6});
    EXPECT_TRUE(std::isnan(p[0]) && std::isnan(p[1]));
    for (const T e : h) EXPECT_TRUE(std::isnan(e));
}

// --- shapes -------------------------------------------------------------------------------------------------------

TEST(streams_shapes, F8_without_a_token_or_a_column_nothing_happens)
{
    const rows<float> none{nullptr, 0, 5};
    const rows<const float> nothing{nullptr, 0, 5};
    std::vector<float> c(16), dc(16, 7), m;
    api::mix_streams(none, c, nothing);
    api::mix_streams_vjp(none, dc, c, nothing, nothing, {.dc = weight_gradient::accumulate});
    EXPECT_EQ(dc, std::vector<float>(16, 7));
    api::mix_streams_vjp(none, dc, c, nothing, nothing);
    EXPECT_EQ(dc, std::vector<float>(16, 0));
    api::mhc_read(none, nothing, rows<const float>{nullptr, 0, 4});
    api::mhc_write(none, nothing, nothing, rows<const float>{nullptr, 0, 4}, rows<const float>{nullptr, 0, 16});
    api::gated_read(none, nothing, nothing);
    api::gated_write(none, nothing, nothing, rows<const float>{nullptr, 0, 4});
    api::mix_streams(rows<float>{nullptr, 4, 0}, c, rows<const float>{nullptr, 4, 0});
}

#if defined(__unix__)
TYPED_TEST(streams, F2_nothing_is_read_or_written_outside_the_rows)
{
    using T = TypeParam;
    reference::random random{81};
    memory::guarded<T> guard_x, guard_y, guard_c;
    ASSERT_TRUE(guard_x.usable() && guard_y.usable() && guard_c.usable());
    for (std::size_t n = 1; n <= 70; ++n) {
        const auto x = random.row<T>(4 * n), c = random.row<T>(16), f = random.row<T>(n);
        std::vector<T> right(4 * n), y(4 * n);
        api::mix_streams(as_rows(right, 4), c, as_rows(x, 4));
        for (const bool at_end : {false, true}) {
            const auto place = [&](memory::guarded<T>& g, const std::vector<T>& v) {
                return at_end ? g.at_end(v) : g.at_start(v);
            };
            const auto in = place(guard_x, x), out = place(guard_y, y), matrix = place(guard_c, c);
            api::mix_streams(rows<T>{out.data(), 4, n}, matrix, rows<T>{in.data(), 4, n});
            EXPECT_TRUE(ulp::all_same_bits(std::vector<T>(out.begin(), out.end()), right));
            std::vector<T> h(n), p(4), dq(n);
            api::attn_res(h, p, rows<T>{in.data(), 4, n}, f, {.eps = 1e-6});
            api::attn_res_vjp(rows<T>{out.data(), 4, n}, dq, rows<T>{in.data(), 4, n}, f, p, h, {.eps = 1e-6});
            api::gated_read(std::span{out}.first(n), rows<T>{in.data(), 4, n}, rows<T>{in.data(), 4, n});
        }
    }
}
#endif

}  // namespace
