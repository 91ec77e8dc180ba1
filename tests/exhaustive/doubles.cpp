#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <thread>

#include <fmt/format.h>

#include <boost/multiprecision/mpfr.hpp>

#include <residua/dispatch.hpp>

#include "samples.hpp"

namespace exhaustive {

namespace api = residua::dispatch;

namespace {

using real =
    boost::multiprecision::number<boost::multiprecision::mpfr_float_backend<60>, boost::multiprecision::et_off>;

double error_of(double got, const real& exact)
{
    using limits = std::numeric_limits<double>;
    if (std::isnan(got)) return limits::infinity();
    const real beyond = ldexp(real(1), limits::max_exponent);
    const auto finite = [&](const real& v) { return abs(v) > beyond ? copysign(beyond, v) : v; };
    const real e = finite(exact);
    const real y = std::isinf(got) ? copysign(beyond, real(got)) : real(got);
    int exponent = limits::min_exponent;
    if (e != 0) frexp(e, &exponent);
    exponent = std::clamp(exponent, limits::min_exponent, limits::max_exponent);
    return static_cast<double>(ldexp(abs(y - e), limits::digits - exponent));
}

real sigmoid(const real& x) { return 1 / (1 + exp(-x)); }
real silu(const real& x) { return x * sigmoid(x); }
real below(const real& x, double limit) { return x > limit ? real(limit) : x; }
real limited(const real& x, double limit) { return x < -limit ? real(-limit) : below(x, limit); }
real gpt_oss_gate(const real& x) { return x * sigmoid(real(1.702) * x); }
real sigmoid_slope(const real& x) { return sigmoid(x) * sigmoid(-x); }
real soft_cap(const real& x, double cap) { return cap * tanh(x / cap); }
real normal(const real& x) { return erfc(-x / sqrt(real(2))) / 2; }
real bell(const real& x)
{
    const real pi = acos(real(-1));
    return exp(-x * x / 2) / sqrt(2 * pi);
}
real tanh_form(const real& x)
{
    const real pi = acos(real(-1));
    return 2 * sqrt(2 / pi) * (x + real("0.044715") * x * x * x);
}
real x_slope_of_tanh_form(const real& x)
{
    const real pi = acos(real(-1));
    return 2 * sqrt(2 / pi) * (x + 3 * real("0.044715") * x * x * x);
}
real gated_slope(const real& u, const real& w)
{
    const real s = sigmoid(u);
    return s * (1 + w * sigmoid(-u));
}

using in = const std::vector<double>&;
using out = std::vector<double>&;

struct function {
    const char* name;
    double bound;
    double far;  // where its results leave the range, or no longer change
    void (*compute)(out y, in x, in up);
    real (*exact)(const real& x, const real& up);
    bool is_gated = false;
};

/// All of one element, the middle, the tails, the zeros of derivatives, and every power of two with both signs.
std::vector<double> samples(double far, std::size_t count)
{
    std::mt19937_64 random{20261129};
    std::vector<double> x;
    for (const double reach : {0.01, 2.0, 12.0, 42.0, far}) {
        std::uniform_real_distribution<double> uniform{-reach, reach};
        for (std::size_t i = 0; i < count; ++i) x.push_back(uniform(random));
    }
    // next to the zeros of derivatives, nearer and nearer
    std::uniform_real_distribution<double> sign{-1, 1};
    for (const double zero : {-1.2784645427610738, -0.7517915246935645, -0.7524614220710162, 2.3993572805154674}) {
        x.push_back(zero);
        for (std::size_t i = 0; i < count; ++i)
            x.push_back(zero + std::ldexp(sign(random), -static_cast<int>(i % 54)));
    }
    std::uniform_real_distribution<double> fraction{0.5, 1};
    for (int e = -1073; e <= 1024; ++e) {
        const double v = std::ldexp(fraction(random), e);
        x.insert(x.end(), {v, -v});
    }
    return x;
}

/// As many of either sign, mostly near one, one in eight of any size.
std::vector<double> ups(std::size_t count)
{
    std::mt19937_64 random{20261130};
    std::uniform_real_distribution<double> sign{-1, 1};
    std::uniform_real_distribution<double> fraction{0.5, 1};
    std::vector<double> all(count);
    for (std::size_t i = 0; i < count; ++i) {
        const auto bits = random();
        const int exponent =
            bits % 8 == 0 ? static_cast<int>((bits >> 3) % 2098) - 1073 : static_cast<int>((bits >> 3) % 7) - 2;
        all[i] = std::copysign(std::ldexp(fraction(random), exponent), sign(random));
    }
    return all;
}

/// At arguments beyond +-3000 a function is its limit, which MPFR need not work out.
sampled measure(const function& f, std::size_t count)
{
    const auto x = samples(f.far, count);
    const auto up = ups(x.size());
    std::vector<double> y(x.size());
    f.compute(y, x, up);
    sampled worst{f.name, x.size(), 0, "", f.bound};
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (std::abs(x[i]) > 3000) continue;
        const double error = error_of(y[i], f.exact(real(x[i]), real(up[i])));
        if (error > worst.ulp) {
            worst.ulp = error;
            worst.at = f.is_gated ? fmt::format("{:a}, {:a}", x[i], up[i]) : fmt::format("{:a}", x[i]);
        }
    }
    return worst;
}

void ones_vjp(void (*vjp)(out, in, in), out y, in x)
{
    const std::vector<double> ones(x.size(), 1.0);
    vjp(y, x, ones);
}

}  // namespace

#define RESIDUA_DOUBLE(name, bound, far, formula)                              \
    {#name " of double", bound, far, [](out y, in x, in) { api::name(y, x); }, \
     [](const real& x, const real&) -> real { return formula; }}
#define RESIDUA_PRECISE(name, far, formula)                                                                \
    {#name " of double, precise", 1, far, [](out y, in x, in) { api::name(y, x, {.accuracy = precise}); }, \
     [](const real& x, const real&) -> real { return formula; }}
#define RESIDUA_SLOPE(name, far, formula)                                                              \
    {#name "_vjp of double", 1, far,                                                                   \
     [](out y, in x, in) { ones_vjp([](out dx, in a, in dy) { api::name##_vjp(dx, a, dy); }, y, x); }, \
     [](const real& x, const real&) -> real { return formula; }}
#define RESIDUA_GATED(name, suffix, bound, formula, ...)             \
    {#name " of double" suffix,                                      \
     bound,                                                          \
     760,                                                            \
     [](out y, in x, in up) { api::name(y, x, up, {__VA_ARGS__}); }, \
     [](const real& x, const real& up) -> real { return formula; },  \
     true}
#define RESIDUA_TIERED_GATED(name, formula, ...)      \
    RESIDUA_GATED(name, "", 2, formula, __VA_ARGS__), \
        RESIDUA_GATED(name, ", precise", 1, formula, __VA_ARGS__ __VA_OPT__(, ).accuracy = precise)

std::vector<sampled> over_doubles(std::size_t count, unsigned threads)
{
    constexpr auto precise = residua::accuracy::precise;
    const std::vector<function> functions{
        RESIDUA_DOUBLE(exp, 2, 750, exp(x)),
        RESIDUA_PRECISE(exp, 750, exp(x)),
        RESIDUA_DOUBLE(tanh, 2, 25, tanh(x)),
        RESIDUA_PRECISE(tanh, 25, tanh(x)),
        RESIDUA_DOUBLE(sigmoid, 2, 750, sigmoid(x)),
        RESIDUA_PRECISE(sigmoid, 750, sigmoid(x)),
        RESIDUA_DOUBLE(silu, 2, 760, silu(x)),
        RESIDUA_PRECISE(silu, 760, silu(x)),
        RESIDUA_DOUBLE(gelu, 1, 39, x * normal(x)),
        RESIDUA_DOUBLE(gelu_tanh, 1, 25, x * sigmoid(tanh_form(x))),
        RESIDUA_TIERED_GATED(swiglu, silu(x) * up),
        RESIDUA_TIERED_GATED(gpt_oss_swiglu, gpt_oss_gate(below(x, 7)) * (limited(up, 7) + 1)),
        RESIDUA_TIERED_GATED(clamped_swiglu, silu(below(x, 10)) * limited(up, 10), .limit = 10.0),
        RESIDUA_TIERED_GATED(swiglu_clamped_after, below(silu(x), 7) * limited(up, 7), .limit = 7.0),
        {"sigmoid_gate of double", 2, 750, [](out y, in x, in up) { api::sigmoid_gate(y, up, x); },
         [](const real& x, const real& up) -> real { return sigmoid(x) * up; }, true},
        {"sigmoid_gate of double, precise", 1, 750,
         [](out y, in x, in up) { api::sigmoid_gate(y, up, x, {.accuracy = precise}); },
         [](const real& x, const real& up) -> real { return sigmoid(x) * up; }, true},
        RESIDUA_GATED(geglu, "", 1, x * normal(x) * up),
        RESIDUA_GATED(geglu_tanh, "", 1, x * sigmoid(tanh_form(x)) * up),
        RESIDUA_GATED(reglu, "", 0.5, x > 0 ? x * up : real(0)),
        RESIDUA_GATED(situ_glu, "", 1, soft_cap(x, 4) * sigmoid(x) * soft_cap(up, 25)),
        RESIDUA_SLOPE(exp, 750, exp(x)),
        RESIDUA_SLOPE(tanh, 380, 1 / (cosh(x) * cosh(x))),
        RESIDUA_SLOPE(sigmoid, 750, sigmoid_slope(x)),
        RESIDUA_SLOPE(silu, 760, gated_slope(x, x)),
        RESIDUA_SLOPE(silu_derivative, 760, sigmoid_slope(x) * (2 + x * (sigmoid(-x) - sigmoid(x)))),
        RESIDUA_SLOPE(gelu, 39, normal(x) + x * bell(x)),
        RESIDUA_SLOPE(gelu_tanh, 25, gated_slope(tanh_form(x), x_slope_of_tanh_form(x))),
    };
    std::vector<sampled> all(functions.size());
    std::atomic<std::size_t> next{0};
    std::vector<std::jthread> pool;
    for (unsigned t = 0; t < threads; ++t) {
        pool.emplace_back([&] {
            for (std::size_t i = next++; i < all.size(); i = next++) all[i] = measure(functions[i], count);
            mpfr_free_cache();  // each thread has its own
        });
    }
    pool.clear();
    return all;
}

#undef RESIDUA_TIERED_GATED
#undef RESIDUA_GATED
#undef RESIDUA_SLOPE
#undef RESIDUA_PRECISE
#undef RESIDUA_DOUBLE

}  // namespace exhaustive
