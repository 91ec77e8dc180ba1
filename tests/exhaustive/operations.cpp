#include "operations.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include <residua/dispatch.hpp>

#include "reference.hpp"

namespace exhaustive {

namespace api = residua::dispatch;

/// In units of the last place of a float as large as the exact value; an infinity counts as the power of two after the
/// largest number, and a NaN is right only where NaN is.
void worst_error::see(float got, double exact, float at, float with)
{
    double error;
    if (std::isnan(got) || std::isnan(exact)) {
        error = std::isnan(got) && std::isnan(exact) ? 0 : std::numeric_limits<double>::infinity();
    } else {
        const double y = std::clamp(static_cast<double>(got), -0x1p128, 0x1p128);
        const double e = std::clamp(exact, -0x1p128, 0x1p128);
        const auto field = static_cast<int>((std::bit_cast<std::uint64_t>(e) >> 52) & 0x7ff);
        const int exponent = std::clamp(field - 1023, -126, 127);
        const double unit = std::bit_cast<double>(static_cast<std::uint64_t>(exponent - 23 + 1023) << 52);
        error = std::abs(y - e) / unit;
    }
    if (error > ulp) *this = {error, at, with};
}

namespace {

using in = std::span<const float>;
using out = std::span<float>;

template <class Call, class Reference>
operation of_one(std::string name, double bound, Call, Reference)
{
    return {std::move(name), false, bound,
            [](float* y, const float* x, const float*, std::size_t n) { Call{}(out{y, n}, in{x, n}); },
            [](worst_error& worst, const float* y, const float* x, const float*, std::size_t n) {
                for (std::size_t j = 0; j < n; ++j) {
                    worst.see(y[j], Reference{}(static_cast<double>(x[j])), x[j], 0);
                }
            }};
}
template <class Call, class Reference>
operation of_two(std::string name, double bound, Call, Reference)
{
    return {std::move(name), true, bound,
            [](float* y, const float* x, const float* u, std::size_t n) { Call{}(out{y, n}, in{x, n}, in{u, n}); },
            [](worst_error& worst, const float* y, const float* x, const float* u, std::size_t n) {
                for (std::size_t j = 0; j < n; ++j) {
                    const double exact = std::isnan(x[j])
                                             ? std::numeric_limits<double>::quiet_NaN()
                                             : Reference{}(static_cast<double>(x[j]), static_cast<double>(u[j]));
                    worst.see(y[j], exact, x[j], u[j]);
                }
            }};
}

double limited(double x, double limit) { return std::clamp(x, -limit, limit); }

}  // namespace

#define RESIDUA_FUNCTION(name, bound) \
    of_one(#name, bound, [](out y, in x) { api::name(y, x); }, [](double x) { return name(x); })
#define RESIDUA_TIERED_FUNCTION(name)                                                            \
    RESIDUA_FUNCTION(name, 2.0),                                                                 \
        of_one(                                                                                  \
            #name ", precise", 1.0, [](out y, in x) { api::name(y, x, {.accuracy = precise}); }, \
            [](double x) { return name(x); })
#define RESIDUA_DERIVATIVE(name, derivative)                                        \
    of_two(                                                                         \
        #name "_vjp", 1.0, [](out dx, in x, in dy) { api::name##_vjp(dx, x, dy); }, \
        [](double x, double dy) { return derivative(x) * dy; })
#define RESIDUA_GATED(name, bound, formula, ...)                                            \
    of_two(                                                                                 \
        #name, bound, [](out y, in gate, in up) { api::name(y, gate, up, {__VA_ARGS__}); }, \
        [](double gate, double up) { return formula; })
#define RESIDUA_TIERED_GATED(name, formula, ...)                                         \
    RESIDUA_GATED(name, 2.0, formula, __VA_ARGS__),                                      \
        of_two(                                                                          \
            #name ", precise", 1.0,                                                      \
            [](out y, in gate, in up) {                                                  \
                api::name(y, gate, up, {__VA_ARGS__ __VA_OPT__(, ).accuracy = precise}); \
            },                                                                           \
            [](double gate, double up) { return formula; })

std::vector<operation> operations()
{
    using namespace reference;
    using reference::cos_2pi;
    using std::exp;
    using std::log;
    using std::tanh;
    constexpr auto precise = residua::accuracy::precise;
    const auto gated_by = [](double gate, double x) { return sigmoid(gate) * x; };
    return {
        RESIDUA_TIERED_FUNCTION(exp),
        RESIDUA_FUNCTION(log, 2.0),
        RESIDUA_TIERED_FUNCTION(tanh),
        RESIDUA_TIERED_FUNCTION(sigmoid),
        RESIDUA_TIERED_FUNCTION(silu),
        RESIDUA_FUNCTION(silu_derivative, 1.0),
        RESIDUA_FUNCTION(gelu, 1.0),
        RESIDUA_FUNCTION(gelu_tanh, 1.0),
        of_one(
            "cos_2pi", 2.0, [](out y, in x) { api::cos_2pi(y, x); },
            [](double x) { return std::isinf(x) ? std::numeric_limits<double>::quiet_NaN() : cos_2pi(x); }),
        // through the gradient, whose second operand is dy
        RESIDUA_DERIVATIVE(exp, exp),
        RESIDUA_DERIVATIVE(tanh, tanh_derivative),
        RESIDUA_DERIVATIVE(sigmoid, sigmoid_derivative),
        RESIDUA_DERIVATIVE(silu, silu_derivative),
        RESIDUA_DERIVATIVE(gelu, gelu_derivative),
        RESIDUA_DERIVATIVE(gelu_tanh, gelu_tanh_derivative),
        RESIDUA_TIERED_GATED(swiglu, silu(gate) * up),
        of_two(
            "sigmoid_gate", 2.0, [](out y, in gate, in x) { api::sigmoid_gate(y, x, gate); }, gated_by),
        of_two(
            "sigmoid_gate, precise", 1.0,
            [](out y, in gate, in x) { api::sigmoid_gate(y, x, gate, {.accuracy = precise}); }, gated_by),
        RESIDUA_GATED(geglu, 1.0, gelu(gate) * up),
        RESIDUA_GATED(geglu_tanh, 1.0, gelu_tanh(gate) * up),
        RESIDUA_GATED(reglu, 0.5, std::max(gate, 0.0) * up),
        RESIDUA_TIERED_GATED(gpt_oss_swiglu,
                             silu_of(std::min(gate, 7.0), static_cast<double>(1.702F)) * (limited(up, 7) + 1)),
        RESIDUA_TIERED_GATED(clamped_swiglu, silu(std::min(gate, 10.0)) * limited(up, 10), .limit = 10.0F),
        RESIDUA_TIERED_GATED(swiglu_clamped_after, std::min(silu(gate), 7.0) * limited(up, 7), .limit = 7.0F),
        RESIDUA_GATED(situ_glu, 1.0, soft_cap(gate, 4) * sigmoid(gate) * soft_cap(up, 25)),
    };
}

#undef RESIDUA_TIERED_GATED
#undef RESIDUA_GATED
#undef RESIDUA_DERIVATIVE
#undef RESIDUA_TIERED_FUNCTION
#undef RESIDUA_FUNCTION

}  // namespace exhaustive
