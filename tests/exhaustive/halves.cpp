#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include <residua/dispatch.hpp>

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
};
template <>
struct half<residua::float16> {
    static constexpr const char* name = "float16";
    static constexpr int digits = 11, least_exponent = -14, beyond = 16;
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

template <class H, class Call>
sampled over_all(const char* function, Call call, double (*exact)(double))
{
    std::vector<H> x(65536), y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = H::from_bits(static_cast<std::uint16_t>(i));
    call(y, x);
    // correctly rounded, except within 2^-18 of a tie
    sampled worst{std::string(function) + " of " + half<H>::name, x.size(), 0, 0,
                  0.5 + std::ldexp(1.0, half<H>::digits - 18)};
    for (std::size_t i = 0; i < x.size(); ++i) {
        const auto at = static_cast<double>(static_cast<float>(x[i]));
        const double error = error_of(y[i], std::isnan(at) ? at : exact(at));
        if (error > worst.ulp) {
            worst.ulp = error;
            worst.at = at;
        }
    }
    return worst;
}

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
    RESIDUA_HALF(tanh, reference::tanh_derivative);
    RESIDUA_HALF(sigmoid, reference::sigmoid_derivative);
    RESIDUA_HALF(gelu, reference::gelu_derivative);
    RESIDUA_HALF(gelu_tanh, reference::gelu_tanh_derivative);
#undef RESIDUA_HALF
}

}  // namespace

std::vector<sampled> over_all_halves()
{
    std::vector<sampled> all;
    add_all<residua::bfloat16>(all);
    add_all<residua::float16>(all);
    return all;
}

}  // namespace exhaustive
