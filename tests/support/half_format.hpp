// bfloat16 and binary16 by their definition.
#ifndef RESIDUA_TESTS_SUPPORT_HALF_FORMAT_HPP
#define RESIDUA_TESTS_SUPPORT_HALF_FORMAT_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include <residua/types.hpp>

namespace residua::test {

/// A 16-bit format by its definition: a list of numbers.
template <class S>
struct half_format {
    static constexpr int fraction_bits = std::is_same_v<S, bfloat16> ? 7 : 10;
    static constexpr int exponent_bits = 15 - fraction_bits;
    static constexpr int bias = (1 << (exponent_bits - 1)) - 1;
    static constexpr std::uint16_t infinity = ((1U << exponent_bits) - 1) << fraction_bits;
    static constexpr std::uint16_t quiet = infinity | 1U << (fraction_bits - 1);

    /// What a pattern without its sign stands for; that of infinity for the power of two where the next number would be.
    static double number(std::uint32_t pattern)
    {
        const int field = static_cast<int>(pattern >> fraction_bits);
        const int fraction = static_cast<int>(pattern & ((1U << fraction_bits) - 1));
        if (field == 0) return std::ldexp(fraction, 1 - bias - fraction_bits);
        return std::ldexp((1 << fraction_bits) + fraction, field - bias - fraction_bits);
    }

    static float widened(std::uint32_t pattern)
    {
        const std::uint32_t magnitude = pattern & 0x7fffU;
        if (magnitude > infinity) return std::numeric_limits<float>::quiet_NaN();
        const float x =
            magnitude == infinity ? std::numeric_limits<float>::infinity() : static_cast<float>(number(magnitude));
        return std::copysign(x, (pattern & 0x8000U) != 0 ? -1.0F : 1.0F);
    }

    /// The pattern of the nearest number, the even one of two.
    static std::uint16_t narrowed(double x)
    {
        static const auto numbers = [] {
            std::vector<double> list;
            for (std::uint32_t pattern = 0; pattern <= infinity; ++pattern) list.push_back(number(pattern));
            return list;
        }();
        if (std::isnan(x)) return quiet;
        const double magnitude = std::fabs(x);
        const auto above = std::upper_bound(numbers.begin(), numbers.end(), magnitude);
        auto pattern = static_cast<std::uint32_t>(above - numbers.begin()) - 1;
        if (above != numbers.end()) {
            const double half = (numbers[pattern] + *above) / 2;
            if (magnitude > half || (magnitude == half && pattern % 2 == 1)) ++pattern;
        }
        return static_cast<std::uint16_t>(pattern | (std::signbit(x) ? 0x8000U : 0U));
    }

    /// The same number, or both a quiet NaN.
    static bool same(std::uint16_t a, std::uint16_t b)
    {
        const auto is_quiet_nan = [](std::uint16_t h) { return (h & quiet) == quiet; };
        return a == b || (is_quiet_nan(a) && is_quiet_nan(b));
    }
};

}  // namespace residua::test

#endif
