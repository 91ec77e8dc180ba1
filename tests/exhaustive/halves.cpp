#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include <fmt/format.h>

#include <residua/dispatch.hpp>

#include "forms.hpp"
#include "reference.hpp"
#include "samples.hpp"

namespace exhaustive {

namespace api = residua::dispatch;

namespace {

template <class H>
struct half;
template <>
struct half<residua::bfloat16> {
    static constexpr const char* name = "bfloat16";
    static constexpr int digits = 8, least_exponent = -126, beyond = 128;
    static constexpr float least = 0x1p-133F, largest = 0x1.fep127F;
};
template <>
struct half<residua::float16> {
    static constexpr const char* name = "float16";
    static constexpr int digits = 11, least_exponent = -14, beyond = 16;
    static constexpr float least = 0x1p-24F, largest = 65504.0F;
};

template <class H>
double error_of(H got, double exact)
{
    const auto y = static_cast<double>(static_cast<float>(got));
    if (std::isnan(y) || std::isnan(exact)) {
        return std::isnan(y) && std::isnan(exact) ? 0 : std::numeric_limits<double>::infinity();
    }
    const double beyond = std::ldexp(1.0, half<H>::beyond);
    const double e = std::clamp(exact, -beyond, beyond);
    const int exponent =
        e == 0 ? half<H>::least_exponent : std::clamp(std::ilogb(e), half<H>::least_exponent, half<H>::beyond - 1);
    return std::abs(std::clamp(y, -beyond, beyond) - e) / std::ldexp(1.0, exponent - half<H>::digits + 1);
}

template <class H>
double number(H x)
{
    return static_cast<double>(static_cast<float>(x));
}

template <class H>
sampled nothing_of(const std::string& function, std::size_t inputs)
{
    // correctly rounded, except within 2^-18 of a tie
    return {function + " of " + half<H>::name, inputs, 0, "", 0.5 + std::ldexp(1.0, half<H>::digits - 18)};
}

template <class H, class Call>
sampled over_all(const char* function, Call call, double (*exact)(double))
{
    std::vector<H> x(65536), y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = H::from_bits(static_cast<std::uint16_t>(i));
    call(y, x);
    auto worst = nothing_of<H>(function, x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double at = number(x[i]);
        const double error = error_of(y[i], std::isnan(at) ? at : exact(at));
        if (error > worst.ulp) {
            worst.ulp = error;
            worst.at = fmt::format("{:a}", at);
        }
    }
    return worst;
}

/// Every gate, eight times, each time with another up; neither 0 nor infinite.
template <class H, class Call>
sampled over_all_gates(const char* form, Call call, double (*exact)(double, double))
{
    std::vector<H> gate(8 * 65536), up(gate.size()), y(gate.size());
    for (std::size_t i = 0; i < gate.size(); ++i) {
        gate[i] = H::from_bits(static_cast<std::uint16_t>(i));
        const float any = second_operand(static_cast<std::uint32_t>(i));
        up[i] = H(std::copysign(std::clamp(std::abs(any), half<H>::least, half<H>::largest), any));
    }
    call(y, gate, up);
    auto worst = nothing_of<H>(form, gate.size());
    for (std::size_t i = 0; i < gate.size(); ++i) {
        const double g = number(gate[i]);
        const double error = error_of(y[i], std::isnan(g) ? g : exact(g, number(up[i])));
        if (error > worst.ulp) {
            worst.ulp = error;
            worst.at = fmt::format("{:a}, {:a}", g, number(up[i]));
        }
    }
    return worst;
}

constexpr auto precise = residua::accuracy::precise;

template <class H>
void add_all(std::vector<sampled>& all)
{
    using in = const std::vector<H>&;
    using out = std::vector<H>&;
    const std::vector<H> ones(65536, H(1.0F));
    const auto sigmoid = [](double x) { return reference::sigmoid(x); };
#define RESIDUA_HALF(name, exact) all.push_back(over_all<H>(#name, [](out y, in x) { api::name(y, x); }, exact))
    RESIDUA_HALF(exp, std::exp);
    RESIDUA_HALF(tanh, std::tanh);
    RESIDUA_HALF(sigmoid, sigmoid);
    RESIDUA_HALF(silu, reference::silu);
    RESIDUA_HALF(silu_derivative, reference::silu_derivative);
    RESIDUA_HALF(gelu, reference::gelu);
    RESIDUA_HALF(gelu_tanh, reference::gelu_tanh);
#undef RESIDUA_HALF
#define RESIDUA_HALF(name, exact) \
    all.push_back(over_all<H>(#name "_vjp", [&](out dx, in x) { api::name##_vjp(dx, x, ones); }, exact))
    RESIDUA_HALF(exp, std::exp);
    RESIDUA_HALF(tanh, reference::tanh_derivative);
    RESIDUA_HALF(sigmoid, reference::sigmoid_derivative);
    RESIDUA_HALF(silu, reference::silu_derivative);
    RESIDUA_HALF(silu_derivative, reference::silu_second_derivative);
    RESIDUA_HALF(gelu, reference::gelu_derivative);
    RESIDUA_HALF(gelu_tanh, reference::gelu_tanh_derivative);
#undef RESIDUA_HALF
#define RESIDUA_HALF(name, exact) \
    all.push_back(                \
        over_all<H>(#name ", precise,", [](out y, in x) { api::name(y, x, {.accuracy = precise}); }, exact))
    RESIDUA_HALF(exp, std::exp);
    RESIDUA_HALF(tanh, std::tanh);
    RESIDUA_HALF(sigmoid, sigmoid);
    RESIDUA_HALF(silu, reference::silu);
#undef RESIDUA_HALF
}

template <class H>
void add_all_gated(std::vector<sampled>& all)
{
    using in = const std::vector<H>&;
    using out = std::vector<H>&;
#define RESIDUA_HALF(name, suffix, ...)                                                     \
    all.push_back(over_all_gates<H>(                                                        \
        #name suffix, [](out y, in gate, in up) { api::name(y, gate, up, {__VA_ARGS__}); }, \
        forms::value<forms::name>))
#define RESIDUA_TIERED_HALF(name, ...)   \
    RESIDUA_HALF(name, "", __VA_ARGS__); \
    RESIDUA_HALF(name, ", precise,", __VA_ARGS__ __VA_OPT__(, ).accuracy = precise)
    RESIDUA_TIERED_HALF(swiglu);
    RESIDUA_TIERED_HALF(gpt_oss_swiglu);
    RESIDUA_TIERED_HALF(clamped_swiglu, .limit = 10.0F);
    RESIDUA_TIERED_HALF(swiglu_clamped_after, .limit = 7.0F);
    RESIDUA_HALF(geglu, "");
    RESIDUA_HALF(geglu_tanh, "");
    RESIDUA_HALF(reglu, "");
    RESIDUA_HALF(situ_glu, "");
#undef RESIDUA_TIERED_HALF
#undef RESIDUA_HALF
    all.push_back(over_all_gates<H>(
        "sigmoid_gate", [](out y, in gate, in x) { api::sigmoid_gate(y, x, gate); },
        forms::value<forms::sigmoid_gate>));
    all.push_back(over_all_gates<H>(
        "sigmoid_gate, precise,",
        [](out y, in gate, in x) { api::sigmoid_gate(y, x, gate, {.accuracy = precise}); },
        forms::value<forms::sigmoid_gate>));
}

}  // namespace

std::vector<sampled> over_all_halves()
{
    std::vector<sampled> all;
    add_all<residua::bfloat16>(all);
    add_all<residua::float16>(all);
    add_all_gated<residua::bfloat16>(all);
    add_all_gated<residua::float16>(all);
    return all;
}

}  // namespace exhaustive
