// The formulas in long double, written as in the literature: 64 bits of precision on x86, 113 on AArch64, and a range in
// which no square of a double overflows or underflows.
#ifndef RESIDUA_TESTS_SUPPORT_REFERENCE_HPP
#define RESIDUA_TESTS_SUPPORT_REFERENCE_HPP

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

namespace reference {

using wide = long double;
using wide_row = std::vector<wide>;

static_assert(std::numeric_limits<wide>::digits >= 64, "these references need a long double beyond double");

inline constexpr wide pi = 3.14159265358979323846264338327950288L;

/// Software arithmetic makes the references slow: then fewer samples are taken.
inline constexpr std::size_t plenty = std::numeric_limits<wide>::digits > 64 ? 1 : 8;

/// Random numbers that are the same everywhere (splitmix64).
class random {
public:
    explicit random(std::uint64_t seed) : state_{seed} {}

    std::uint64_t next()
    {
        state_ += 0x9e3779b97f4a7c15U;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
        return z ^ (z >> 31U);
    }
    /// Uniform in [low, high).
    double uniform(double low, double high)
    {
        return low + (high - low) * static_cast<double>(next() >> 11U) * 0x1p-53;
    }
    /// Any bit pattern of T.
    template <class T>
    T pattern()
    {
        using bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
        return std::bit_cast<T>(static_cast<bits>(next()));
    }
    template <class T>
    std::vector<T> row(std::size_t n, double low = -2, double high = 2)
    {
        std::vector<T> x(n);
        for (T& e : x) e = static_cast<T>(uniform(low, high));
        return x;
    }

private:
    std::uint64_t state_;
};

/// A sum with the rounding errors of its additions carried along (Neumaier), of which an infinite one has none.
class exact_sum {
public:
    void add(wide x)
    {
        const wide next = sum_ + x;
        rest_ += std::abs(sum_) >= std::abs(x) ? (sum_ - next) + x : (x - next) + sum_;
        sum_ = next;
    }
    wide value() const { return std::isfinite(sum_) ? sum_ + rest_ : sum_; }

private:
    wide sum_ = 0;
    wide rest_ = 0;
};

template <class Range>
wide_row widen(const Range& x)
{
    return {std::begin(x), std::end(x)};
}

inline wide exp(wide x) { return std::exp(x); }
inline wide log(wide x) { return std::log(x); }
inline wide tanh(wide x) { return std::tanh(x); }
inline wide sigmoid(wide x) { return 1 / (1 + std::exp(-x)); }
inline wide silu(wide x) { return x / (1 + std::exp(-x)); }

/// cos(2 pi u): the turns are taken off exactly, and what is left lies within an eighth of a turn of a zero or a peak.
inline wide cos_2pi(wide u)
{
    const wide turn = std::abs(std::remainder(u, wide(1)));
    const wide half = turn > 0.25L ? 0.5L - turn : turn;
    const wide value = half > 0.125L ? std::sin(2 * pi * (0.25L - half)) : std::cos(2 * pi * half);
    return turn > 0.25L ? -value : value;
}

inline wide box_muller(wide u1, wide u2) { return std::sqrt(-2 * std::log(std::max(u1, 1e-12L))) * cos_2pi(u2); }

inline wide swiglu(wide gate, wide up) { return silu(gate) * up; }
inline wide clamped_swiglu(wide gate, wide up, wide limit)
{
    return silu(std::min(gate, limit)) * std::clamp(up, -limit, limit);
}
inline wide gpt_oss_swiglu(wide gate, wide up, wide limit, wide alpha)
{
    const wide g = std::min(gate, limit);
    return (std::clamp(up, -limit, limit) + 1) * g * sigmoid(alpha * g);
}
inline wide situ_glu(wide gate, wide up, wide beta, wide linear_beta)
{
    return beta * std::tanh(gate / beta) * sigmoid(gate) * linear_beta * std::tanh(up / linear_beta);
}

inline wide dot(const wide_row& x, const wide_row& y)
{
    exact_sum sum;
    for (std::size_t j = 0; j < x.size(); ++j) sum.add(x[j] * y[j]);
    return sum.value();
}
/// The sum of |x_j y_j|: what the error of a dot product is measured against.
inline wide dot_scale(const wide_row& x, const wide_row& y)
{
    wide sum = 0;
    for (std::size_t j = 0; j < x.size(); ++j) sum += std::abs(x[j] * y[j]);
    return sum;
}

inline wide mean_square(const wide_row& x) { return dot(x, x) / static_cast<wide>(x.size()); }

/// x r, r = 1 / sqrt(mean(x^2) + eps)
inline wide_row normalized(wide_row x, wide eps)
{
    const wide root = std::sqrt(mean_square(x) + eps);
    for (wide& e : x) e /= root;
    return x;
}

/// x r f
inline wide_row rms_norm(const wide_row& x, const wide_row& factor, wide eps)
{
    wide_row y = normalized(x, eps);
    for (std::size_t j = 0; j < y.size(); ++j) y[j] *= factor[j];
    return y;
}

struct rms_norm_gradient {
    wide_row dx;
    wide_row dw;       // of this row alone
    wide largest = 0;  // max_j |r a_j|
};

/// dx = r (a - xh mean(a xh)), dw = dy xh, with a = dy f and xh = x r
inline rms_norm_gradient rms_norm_vjp(const wide_row& x, const wide_row& factor, const wide_row& dy, wide eps)
{
    const wide r = 1 / std::sqrt(mean_square(x) + eps);
    const wide_row xh = normalized(x, eps);
    const auto n = x.size();
    wide_row a(n);
    for (std::size_t j = 0; j < n; ++j) a[j] = dy[j] * factor[j];
    const wide mean = dot(a, xh) / static_cast<wide>(n);
    rms_norm_gradient g{wide_row(n), wide_row(n)};
    for (std::size_t j = 0; j < n; ++j) {
        g.dx[j] = r * (a[j] - xh[j] * mean);
        g.dw[j] = dy[j] * xh[j];
        g.largest = std::max(g.largest, std::abs(r * a[j]));
    }
    return g;
}

inline wide_row softmax(const wide_row& x)
{
    const wide largest = *std::max_element(x.begin(), x.end());
    wide_row y(x.size());
    exact_sum sum;
    for (std::size_t j = 0; j < x.size(); ++j) {
        y[j] = std::exp(x[j] - largest);
        sum.add(y[j]);
    }
    for (wide& e : y) e /= sum.value();
    return y;
}

/// mHC's coefficients of a token with s streams, of its s (2 + s) logits z: pre, post and comb, one after the other. As in
/// DeepSeek V4's reference implementation, step by step; of numbers, or of numbers with derivatives.
template <class Number>
std::vector<Number> mhc_coefficients(const std::vector<Number>& z, std::size_t s, Number eps, int iterations)
{
    std::vector<Number> out;
    for (std::size_t i = 0; i < s; ++i) out.push_back(sigmoid(z[i]) + eps);
    for (std::size_t i = s; i < 2 * s; ++i) out.push_back(Number{2} * sigmoid(z[i]));
    for (std::size_t first = 2 * s; first < z.size(); first += s) {
        Number largest = z[first];
        for (std::size_t j = first; j < first + s; ++j) largest = largest < z[j] ? z[j] : largest;
        Number sum{0};
        for (std::size_t j = first; j < first + s; ++j) {
            out.push_back(exp(z[j] - largest));
            sum = sum + out.back();
        }
        for (std::size_t j = first; j < first + s; ++j) out[j] = out[j] / sum + eps;
    }
    const auto normalize = [&](std::size_t next, std::size_t step) {
        for (std::size_t o = 0; o < s; ++o) {
            Number* const first = out.data() + 2 * s + o * step;
            Number sum = eps;
            for (std::size_t k = 0; k < s; ++k) sum = sum + first[k * next];
            for (std::size_t k = 0; k < s; ++k) first[k * next] = first[k * next] / sum;
        }
    };
    for (int r = 1; r <= iterations; ++r) {
        if (r > 1) normalize(1, s);  // rows
        normalize(s, 1);             // columns
    }
    return out;
}

}  // namespace reference

#endif
