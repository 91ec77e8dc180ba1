#include "operations.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>

#include <residua/dispatch.hpp>

#include "forms.hpp"
#include "reference.hpp"

namespace exhaustive {

namespace api = residua::dispatch;

namespace {

/// In units of the last place of a float as large as `unit_of`; an infinity counts as the power of two after the largest
/// number, and a NaN is right only where NaN is. Where it is the exact value itself, the unit is that of the largest number at
/// most.
double error_of(float got, double exact, double unit_of)
{
    if (std::isnan(got) || std::isnan(exact)) {
        return std::isnan(got) && std::isnan(exact) ? 0 : std::numeric_limits<double>::infinity();
    }
    const double y = std::clamp(static_cast<double>(got), -0x1p128, 0x1p128);
    const double e = std::clamp(exact, -0x1p128, 0x1p128);
    const bool is_itself = std::abs(unit_of) <= std::abs(exact);
    return std::abs(y - e) / (is_itself ? unit_of_float(unit_of, 127) : unit_of_float(unit_of));
}

}  // namespace

void worst_error::see(const float* got, const double* exact, const double* unit_of, const operands& in)
{
    for (std::size_t j = 0; j < in.count; ++j) {
        // not more than what was seen: a unit is at least 2^-24 of its number
        if (std::abs(static_cast<double>(got[j]) - exact[j]) <= ulp * 0x1p-24 * std::abs(unit_of[j])) continue;
        const double error = error_of(got[j], exact[j], unit_of[j]);
        if (error > ulp) *this = {error, {in.x[0][j], in.x[1][j], in.x[2][j], in.x[3][j]}};
    }
}

namespace {

using in = std::span<const float>;
using out = std::span<float>;

template <class Call>
variant of_one(std::string name, double bound, Call)
{
    return {std::move(name), bound, [](float* y, const operands& of) { Call{}(out{y, of.count}, of[0]); }};
}
template <class Call>
variant of_two(std::string name, double bound, Call)
{
    return {std::move(name), bound, [](float* y, const operands& of) { Call{}(out{y, of.count}, of[0], of[1]); }};
}

template <class Reference>
operation with_reference(Reference, std::vector<variant> variants)
{
    constexpr bool two = std::is_invocable_v<Reference, double, double>;
    return {std::move(variants), two ? 2U : 1U, 1, false, [](expected& right, const operands& of) {
                for (std::size_t j = 0; j < of.count; ++j) {
                    const auto x = static_cast<double>(of.x[0][j]);
                    if (std::isnan(x)) {
                        right.exact[j] = x;
                    } else if constexpr (two) {
                        right.exact[j] = Reference{}(x, static_cast<double>(of.x[1][j]));
                    } else {
                        right.exact[j] = Reference{}(x);
                    }
                }
            }};
}

}  // namespace

#define RESIDUA_VARIANT(name, bound) of_one(#name, bound, [](out y, in x) { api::name(y, x); })
#define RESIDUA_FUNCTION(name, bound) \
    with_reference([](double x) { return name(x); }, {RESIDUA_VARIANT(name, bound)})
#define RESIDUA_TIERED_FUNCTION(name)                \
    with_reference([](double x) { return name(x); }, \
                   {RESIDUA_VARIANT(name, 2.0),      \
                    of_one(#name ", precise", 1.0, [](out y, in x) { api::name(y, x, {.accuracy = precise}); })})
#define RESIDUA_DERIVATIVE(name, derivative)                               \
    with_reference([](double x, double dy) { return derivative(x) * dy; }, \
                   {of_two(#name "_vjp", 1.0, [](out dx, in x, in dy) { api::name##_vjp(dx, x, dy); })})
#define RESIDUA_GATED_VARIANT(name, suffix, bound, ...) \
    of_two(#name suffix, bound, [](out y, in gate, in up) { api::name(y, gate, up, {__VA_ARGS__}); })
#define RESIDUA_FORM(name) [](double gate, double up) { return forms::value<forms::name>(gate, up); }
#define RESIDUA_GATED(name, bound) with_reference(RESIDUA_FORM(name), {RESIDUA_GATED_VARIANT(name, "", bound)})
#define RESIDUA_TIERED_GATED(name, ...)                                \
    with_reference(RESIDUA_FORM(name),                                 \
                   {RESIDUA_GATED_VARIANT(name, "", 2.0, __VA_ARGS__), \
                    RESIDUA_GATED_VARIANT(name, ", precise", 1.0, __VA_ARGS__ __VA_OPT__(, ).accuracy = precise)})

std::vector<operation> operations()
{
    using namespace reference;
    using reference::cos_2pi;
    using std::exp;
    using std::log;
    using std::tanh;
    constexpr auto precise = residua::accuracy::precise;
    return {
        RESIDUA_TIERED_FUNCTION(exp),
        RESIDUA_FUNCTION(log, 2.0),
        RESIDUA_TIERED_FUNCTION(tanh),
        RESIDUA_TIERED_FUNCTION(sigmoid),
        RESIDUA_TIERED_FUNCTION(silu),
        RESIDUA_FUNCTION(silu_derivative, 1.0),
        RESIDUA_FUNCTION(gelu, 1.0),
        RESIDUA_FUNCTION(gelu_tanh, 1.0),
        RESIDUA_FUNCTION(cos_2pi, 2.0),
        // through the gradient, whose second operand is dy
        RESIDUA_DERIVATIVE(exp, exp),
        RESIDUA_DERIVATIVE(tanh, tanh_derivative),
        RESIDUA_DERIVATIVE(sigmoid, sigmoid_derivative),
        RESIDUA_DERIVATIVE(silu, silu_derivative),
        RESIDUA_DERIVATIVE(silu_derivative, silu_second_derivative),
        RESIDUA_DERIVATIVE(gelu, gelu_derivative),
        RESIDUA_DERIVATIVE(gelu_tanh, gelu_tanh_derivative),
        RESIDUA_TIERED_GATED(swiglu),
        with_reference(
            RESIDUA_FORM(sigmoid_gate),
            {of_two("sigmoid_gate", 2.0, [](out y, in gate, in x) { api::sigmoid_gate(y, x, gate); }),
             of_two("sigmoid_gate, precise", 1.0,
                    [](out y, in gate, in x) { api::sigmoid_gate(y, x, gate, {.accuracy = precise}); })}),
        RESIDUA_GATED(geglu, 1.0),
        RESIDUA_GATED(geglu_tanh, 1.0),
        RESIDUA_GATED(reglu, 0.5),
        RESIDUA_TIERED_GATED(gpt_oss_swiglu),
        RESIDUA_TIERED_GATED(clamped_swiglu, .limit = 10.0F),
        RESIDUA_TIERED_GATED(swiglu_clamped_after, .limit = 7.0F),
        RESIDUA_GATED(situ_glu, 1.0),
    };
}

#undef RESIDUA_TIERED_GATED
#undef RESIDUA_GATED
#undef RESIDUA_FORM
#undef RESIDUA_GATED_VARIANT
#undef RESIDUA_DERIVATIVE
#undef RESIDUA_TIERED_FUNCTION
#undef RESIDUA_FUNCTION
#undef RESIDUA_VARIANT

}  // namespace exhaustive
