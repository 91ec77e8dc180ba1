// The functions in double, by the C library: right to 2^-50 of the result or better, which a float does not see. Where
// a derivative cancels, next to its zero, in long double.
#ifndef RESIDUA_TESTS_EXHAUSTIVE_REFERENCE_HPP
#define RESIDUA_TESTS_EXHAUSTIVE_REFERENCE_HPP

#include <cmath>
#include <numbers>

namespace exhaustive::reference {

template <class R>
R sigmoid(R x)
{
    return 1 / (1 + std::exp(-x));
}
/// Whichever of s and 1 - s is small is not taken from the other.
template <class R>
R silu_slope(R x, R w)
{
    const R s = sigmoid(x);
    return s * (1 + w * sigmoid(-x));
}
template <class R>
R normal(R x)
{
    return R(0.5) * std::erfc(-x * (std::numbers::sqrt2_v<R> / 2));
}
template <class R>
R bell(R x)
{
    return std::exp(-x * x / 2) * (std::numbers::inv_sqrtpi_v<R> / std::numbers::sqrt2_v<R>);
}
template <class R>
R tanh_form(R x)
{
    const R k = 2 * std::numbers::sqrt2_v<R> * std::numbers::inv_sqrtpi_v<R>;
    return k * (x + R(0.044715L) * x * x * x);
}
template <class R>
R tanh_form_slope(R x)
{
    const R k = 2 * std::numbers::sqrt2_v<R> * std::numbers::inv_sqrtpi_v<R>;
    return k * (x + 3 * R(0.044715L) * x * x * x);
}

/// x s(x): 0 where the exponential is infinite, whatever x is.
inline double silu(double x) { return x < -1000 ? -0.0 : x * sigmoid(x); }
/// x s(slope x)
inline double silu_of(double x, double slope) { return x < -1000 ? -0.0 : x * sigmoid(slope * x); }
inline double gelu(double x) { return x < -50 ? -0.0 : x * normal(x); }
inline double gelu_tanh(double x) { return x < -50 ? -0.0 : x * sigmoid(tanh_form(x)); }

/// f(x) in double, or in long double where that is small.
template <class F>
double with_care(double x, F f)
{
    const double y = f(x);
    return std::abs(y) < 0x1p-8 && std::abs(x) < 8 ? static_cast<double>(f(static_cast<long double>(x))) : y;
}
inline double silu_derivative(double x)
{
    if (std::abs(x) > 1000) return x < 0 ? -0.0 : 1;
    return with_care(x, [](auto z) { return silu_slope(z, z); });
}
inline double gelu_derivative(double x)
{
    if (std::abs(x) > 50) return x < 0 ? -0.0 : 1;
    return with_care(x, [](auto z) { return normal(z) + z * bell(z); });
}
inline double gelu_tanh_derivative(double x)
{
    if (std::abs(x) > 50) return x < 0 ? -0.0 : 1;
    return with_care(x, [](auto z) { return silu_slope(tanh_form(z), tanh_form_slope(z)); });
}
inline double sigmoid_derivative(double x)
{
    const double e = std::exp(-std::abs(x));
    return e / ((1 + e) * (1 + e));
}
inline double silu_second_derivative(double x)
{
    if (std::abs(x) > 1000) return -0.0;
    return with_care(x, [](auto z) {
        const auto s = sigmoid(z);
        const auto rest = sigmoid(-z);
        return s * rest * (2 + z * (rest - s));
    });
}
inline double tanh_derivative(double x) { return 4 * sigmoid_derivative(2 * x); }

inline double cos_2pi(double u)
{
    if (std::isinf(u)) return std::nan("");
    const double turn = u - std::nearbyint(u);
    const double quarter = std::nearbyint(4 * turn);
    const double r = 2 * std::numbers::pi * (turn - quarter / 4);
    if (std::abs(quarter) == 1) return quarter < 0 ? std::sin(r) : -std::sin(r);
    return quarter == 0 ? std::cos(r) : -std::cos(r);
}

inline double soft_cap(double x, double cap) { return cap * std::tanh(x / cap); }

}  // namespace exhaustive::reference

#endif
