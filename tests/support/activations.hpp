// The activations and their derivatives in long double, and how results of 16 bits are judged.
#ifndef RESIDUA_TESTS_SUPPORT_ACTIVATIONS_HPP
#define RESIDUA_TESTS_SUPPORT_ACTIVATIONS_HPP

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include <residua/types.hpp>

#include "support/reference.hpp"
#include "support/ulp.hpp"

namespace reference {

inline constexpr wide root_half = 0.70710678118654752440084436210484903928L;

/// phi(x) sqrt(2 pi) = e^(-x^2/2) with the rounding of x^2.
inline wide bell(wide any)
{
    const wide x = std::clamp<wide>(any, -140, 140);  // beyond, it is 0 in long double too
    const wide square = x * x;
    return std::exp(-square / 2) * std::exp(-std::fma(x, x, -square) / 2);
}
/// The normal distribution at -t, t >= 0: the C library's erfc, corrected for the rounding of its argument t / sqrt(2).
inline wide normal_tail(wide any)
{
    const wide t = std::min<wide>(any, 140);
    const wide z = t * root_half;
    const wide exact = t * t;
    const wide used = z * z;
    const wide rest = (exact / 2 - used) + (std::fma(t, t, -exact) / 2 - std::fma(z, z, -used));
    return std::erfc(z) / 2 * std::exp(-rest);
}
inline wide normal_distribution(wide x) { return x < 0 ? normal_tail(-x) : 1 - normal_tail(x); }

inline wide exp_derivative(wide x) { return std::exp(x); }
inline wide sigmoid_derivative(wide x)
{
    const wide e = std::exp(-std::abs(x));
    return e / ((1 + e) * (1 + e));
}
inline wide tanh_derivative(wide x) { return 4 * sigmoid_derivative(2 * x); }
/// The derivative of x s(u), w = x du/dx.
inline wide gated_slope(wide u, wide w) { return sigmoid(u) * (1 + (w == 0 ? 0 : w * sigmoid(-u))); }
inline wide silu_derivative(wide x) { return gated_slope(x, x); }
inline wide silu_derivative_derivative(wide x)
{
    const wide e = std::exp(-std::abs(x));
    const wide size = std::min<wide>(std::abs(x), 20000);
    return std::isnan(x) ? x : e * ((2 - size) + e * (2 + size)) / ((1 + e) * (1 + e) * (1 + e));
}
inline wide gelu(wide x) { return x * normal_distribution(x); }
inline wide gelu_derivative(wide x)
{
    return std::isnan(x) ? x
                         : normal_distribution(x) + std::clamp<wide>(x, -140, 140) * bell(x) / std::sqrt(2 * pi);
}
/// u = 2 sqrt(2/pi) (x + 0.044715 x^3) and what its roundings take, of which the exponential makes much; x is a double.
struct tanh_form_terms {
    wide u, low;
};
inline tanh_form_terms terms_of_tanh_form(wide any)
{
    const wide x = std::clamp<wide>(any, -140, 140);
    const wide c = 0.044715L;
    const wide c_low = std::fma(-c, 1000000.0L, 44715.0L) / 1000000;
    const wide square = x * x;
    const wide cubic = c * square;
    const wide cubic_low = std::fma(c, square, -cubic) + c * std::fma(x, x, -square) + c_low * square;
    const wide sum = 1 + cubic;
    const wide sum_low = (cubic < 1 ? (1 - sum) + cubic : (cubic - sum) + 1) + cubic_low;
    const wide product = x * sum;
    const wide product_low = std::fma(x, sum, -product) + x * sum_low;
    // 2 sqrt(2/pi) in two parts
    const wide k = 0x1.9884533d43651p0L;
    const wide k_low = -9.9693088091109203145765526046629323869e-17L;
    const wide u = k * product;
    return {u, std::fma(k, product, -u) + k * product_low + k_low * product};
}
inline wide tanh_form(wide x) { return terms_of_tanh_form(x).u; }
inline wide gelu_tanh(wide x)
{
    const auto f = terms_of_tanh_form(x);
    return x * (sigmoid(f.u) + f.low * sigmoid_derivative(f.u));
}
inline wide gelu_tanh_derivative(wide any)
{
    const wide x = std::clamp<wide>(any, -140, 140);
    const auto f = terms_of_tanh_form(x);
    const wide w = 2 * std::sqrt(2 / pi) * (x + 3 * 0.044715L * x * x * x);
    const wide change = sigmoid_derivative(f.u) * (1 + w * (sigmoid(-f.u) - sigmoid(f.u)));
    return std::isnan(any) ? any : gated_slope(f.u, w) + f.low * change;
}
inline wide relu(wide x) { return x < 0 ? 0 : x; }
inline wide relu_derivative(wide x) { return std::isnan(x) ? x : x > 0 ? 1 : 0; }

}  // namespace reference

namespace activations {

using reference::wide;
using residua::bfloat16;
using residua::float16;

template <class T>
bool same(T a, T b)
{
    if constexpr (sizeof(T) == 2) {
        const bool both_nan = std::isnan(static_cast<float>(a)) && std::isnan(static_cast<float>(b));
        return a.bits == b.bits || both_nan;
    } else {
        return ulp::same_bits(a, b);
    }
}

/// Whether a result of 16 bits is the exact value rounded, or that of a neighbour so near that a float cannot tell.
template <class T>
bool nearly_rounded(T got, wide exact)
{
    const auto rounded = [](wide x) { return T(static_cast<double>(x)); };
    return same(got, rounded(exact)) || same(got, rounded(exact * (1 + 0x1p-18L)))
           || same(got, rounded(exact * (1 - 0x1p-18L)));
}

/// So near the zero of a derivative that what the reference leaves of it has too few bits to judge a T.
template <class T>
bool lost_in_reference(wide x)
{
    const wide reach = sizeof(T) == 4 || std::numeric_limits<wide>::digits > 64 ? 0 : 0x1p-8L;
    for (const wide zero :
         {-1.27846454276107L, -0.75179152469356L, -0.75246142207101L, -2.39935728052001L, 2.39935728052001L}) {
        if (std::abs(x - zero) < reach) return true;
    }
    return false;
}

}  // namespace activations

#endif
