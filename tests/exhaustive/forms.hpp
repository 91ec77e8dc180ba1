// The gated activations y = a(gate) b(up) and their slopes, with the numbers that the tests give them.
#ifndef RESIDUA_TESTS_EXHAUSTIVE_FORMS_HPP
#define RESIDUA_TESTS_EXHAUSTIVE_FORMS_HPP

#include <algorithm>
#include <cmath>

#include "reference.hpp"

namespace exhaustive::forms {

/// a'(gate), and the second of its terms where it is a sum that may cancel.
struct slope {
    double first, second = 0;
};

struct of_plain_up {
    static double b(double up) { return up; }
    static double b_slope(double) { return 1; }
};
template <int Limit>
struct of_clamped_up {
    static double b(double up) { return std::clamp<double>(up, -Limit, Limit); }
    static double b_slope(double up) { return std::abs(up) <= Limit ? 1 : 0; }
};

struct swiglu : of_plain_up {
    static double a(double gate) { return reference::silu(gate); }
    static slope a_slope(double gate) { return {reference::silu_derivative(gate)}; }
};
struct geglu : of_plain_up {
    static double a(double gate) { return reference::gelu(gate); }
    static slope a_slope(double gate) { return {reference::gelu_derivative(gate)}; }
};
struct geglu_tanh : of_plain_up {
    static double a(double gate) { return reference::gelu_tanh(gate); }
    static slope a_slope(double gate) { return {reference::gelu_tanh_derivative(gate)}; }
};
struct reglu : of_plain_up {
    static double a(double gate) { return std::max(gate, 0.0); }
    static slope a_slope(double gate) { return {gate > 0 ? 1.0 : 0.0}; }
};
struct sigmoid_gate : of_plain_up {
    static double a(double gate) { return reference::sigmoid(gate); }
    static slope a_slope(double gate) { return {reference::sigmoid_derivative(gate)}; }
};
struct gpt_oss_swiglu : of_clamped_up<7> {
    static constexpr double alpha = static_cast<double>(1.702F);
    static double a(double gate) { return reference::silu_of(std::min(gate, 7.0), alpha); }
    // the product of two floats is exact
    static slope a_slope(double gate) { return {gate <= 7 ? reference::silu_derivative(alpha * gate) : 0}; }
    static double b(double up) { return of_clamped_up<7>::b(up) + 1; }
};
struct clamped_swiglu : of_clamped_up<10> {
    static double a(double gate) { return reference::silu(std::min(gate, 10.0)); }
    static slope a_slope(double gate) { return {gate <= 10 ? reference::silu_derivative(gate) : 0}; }
};
struct swiglu_clamped_after : of_clamped_up<7> {
    static double a(double gate) { return std::min(reference::silu(gate), 7.0); }
    static slope a_slope(double gate)
    {
        return {reference::silu(gate) <= 7 ? reference::silu_derivative(gate) : 0};
    }
};
struct situ_glu {
    static double a(double gate) { return reference::soft_cap(gate, 4) * reference::sigmoid(gate); }
    static slope a_slope(double gate)
    {
        return {reference::tanh_derivative(gate / 4) * reference::sigmoid(gate),
                reference::soft_cap(gate, 4) * reference::sigmoid_derivative(gate)};
    }
    static double b(double up) { return reference::soft_cap(up, 25); }
    static double b_slope(double up) { return reference::tanh_derivative(up / 25); }
};

template <class Form>
double value(double gate, double up)
{
    return Form::a(gate) * Form::b(up);
}

}  // namespace exhaustive::forms

#endif
