#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <residua/dispatch.hpp>

#include "forms.hpp"
#include "operations.hpp"

namespace exhaustive {

namespace api = residua::dispatch;

namespace {

using in = std::span<const float>;
using out = std::span<float>;

constexpr std::uint64_t stride = 61;

struct sum {
    double exact, unit_of;
};

sum sum_of(std::initializer_list<double> terms)
{
    double all = 0;
    for (const double term : terms) all += term;
    double largest = std::abs(all);
    // a sum out of range is infinite however large its terms are
    if (largest > static_cast<double>(std::numeric_limits<float>::max())) return {all, all};
    for (const double term : terms) largest = std::max(largest, std::abs(term));
    return {all, largest};
}

template <class F>
void for_each_gate(expected& right, const operands& of, F f)
{
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    for (std::size_t j = 0; j < of.count; ++j) {
        const auto x = [&](std::size_t i) { return static_cast<double>(of.x[i][j]); };
        const sum y = std::isnan(x(0)) ? sum{nan, nan} : f(x(0), x(1), x(2), x(3));
        right.exact[j] = y.exact;
        right.unit_of[j] = y.unit_of;
    }
}

/// Operands: gate, up, dy.
template <class Form, class Call>
operation of_dgate(const std::string& name, Call)
{
    return {{{name + "_vjp, dgate", 1.0,
              [](float* y, const operands& of) {
                  std::vector<float> dup(of.count);
                  Call::vjp(out{y, of.count}, dup, of[0], of[1], of[2]);
              }}},
            3,
            stride,
            true,
            [](expected& right, const operands& of) {
                for_each_gate(right, of, [](double gate, double up, double dy, double) {
                    const auto slope = Form::a_slope(gate);
                    const double f = Form::b(up) * dy;
                    return sum_of({slope.first * f, slope.second * f});
                });
            }};
}
template <class Form, class Call>
operation of_dup(const std::string& name, Call)
{
    return {{{name + "_vjp, dup", 1.0,
              [](float* y, const operands& of) {
                  std::vector<float> dgate(of.count);
                  Call::vjp(dgate, out{y, of.count}, of[0], of[1], of[2]);
              }}},
            3,
            stride,
            true,
            [](expected& right, const operands& of) {
                for_each_gate(right, of, [](double gate, double up, double dy, double) {
                    return sum_of({Form::a(gate) * Form::b_slope(up) * dy});
                });
            }};
}
/// Operands: gate, up, tgate, tup.
template <class Form, class Call>
operation of_jvp(const std::string& name, Call)
{
    return {{{name + "_jvp", 1.0,
              [](float* y, const operands& of) { Call::jvp(out{y, of.count}, of[0], of[1], of[2], of[3]); }}},
            4,
            stride,
            true,
            [](expected& right, const operands& of) {
                for_each_gate(right, of, [](double gate, double up, double tgate, double tup) {
                    const auto slope = Form::a_slope(gate);
                    const double f = Form::b(up) * tgate;
                    return sum_of({slope.first * f, slope.second * f, Form::a(gate) * Form::b_slope(up) * tup});
                });
            }};
}

#define RESIDUA_CALLS(name, ...)                                      \
    struct name {                                                     \
        static void vjp(out dgate, out dup, in gate, in up, in dy)    \
        {                                                             \
            api::name##_vjp(dgate, dup, gate, up, dy, {__VA_ARGS__}); \
        }                                                             \
        static void jvp(out ty, in gate, in up, in tgate, in tup)     \
        {                                                             \
            api::name##_jvp(ty, gate, up, tgate, tup, {__VA_ARGS__}); \
        }                                                             \
    };
namespace calls {

RESIDUA_CALLS(swiglu)
RESIDUA_CALLS(geglu)
RESIDUA_CALLS(geglu_tanh)
RESIDUA_CALLS(reglu)
RESIDUA_CALLS(gpt_oss_swiglu)
RESIDUA_CALLS(clamped_swiglu, .limit = 10.0F)
RESIDUA_CALLS(swiglu_clamped_after, .limit = 7.0F)
RESIDUA_CALLS(situ_glu)
struct sigmoid_gate {
    static void vjp(out dgate, out dup, in gate, in up, in dy) { api::sigmoid_gate_vjp(dup, dgate, up, gate, dy); }
    static void jvp(out ty, in gate, in up, in tgate, in tup) { api::sigmoid_gate_jvp(ty, up, gate, tup, tgate); }
};

}  // namespace calls
#undef RESIDUA_CALLS

}  // namespace

#define RESIDUA_DERIVATIVES(name)                                                           \
    of_dgate<forms::name>(#name, calls::name{}), of_dup<forms::name>(#name, calls::name{}), \
        of_jvp<forms::name>(#name, calls::name{})

std::vector<operation> gated_derivatives()
{
    return {RESIDUA_DERIVATIVES(swiglu),         RESIDUA_DERIVATIVES(geglu),
            RESIDUA_DERIVATIVES(geglu_tanh),     RESIDUA_DERIVATIVES(reglu),
            RESIDUA_DERIVATIVES(sigmoid_gate),   RESIDUA_DERIVATIVES(gpt_oss_swiglu),
            RESIDUA_DERIVATIVES(clamped_swiglu), RESIDUA_DERIVATIVES(swiglu_clamped_after),
            RESIDUA_DERIVATIVES(situ_glu)};
}

#undef RESIDUA_DERIVATIVES

}  // namespace exhaustive
