// The table of what is measured over all floats: a call, its reference, its bound.
#ifndef RESIDUA_TESTS_EXHAUSTIVE_OPERATIONS_HPP
#define RESIDUA_TESTS_EXHAUSTIVE_OPERATIONS_HPP

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace exhaustive {

/// As many elements of each operand of an operation.
constexpr std::size_t most_operands = 4;
struct operands {
    std::array<std::vector<float>, most_operands> x;
    std::size_t count;

    std::span<const float> operator[](std::size_t i) const { return {x[i].data(), count}; }
};

/// The exact values; and of sums the numbers whose last place is the unit of the error: themselves, or the largest term.
struct expected {
    std::vector<double> exact, unit_of;
};

/// The unit in the last place of a float as large as x: from that of the smallest normal number to that of 2^most.
inline double unit_of_float(double x, int most = 1000)
{
    const auto field = static_cast<int>((std::bit_cast<std::uint64_t>(x) >> 52) & 0x7ff);
    const int exponent = std::clamp(field - 1023, -126, most);
    return std::bit_cast<double>(static_cast<std::uint64_t>(exponent - 23 + 1023) << 52);
}

/// The largest error seen, and where.
struct worst_error {
    double ulp = 0;
    std::array<float, most_operands> at{};

    void see(const float* got, const double* exact, const double* unit_of, const operands& in);
    void take(const worst_error& other)
    {
        if (other.ulp > ulp) *this = other;
    }
};

/// One way to compute an operation: an accuracy, say.
struct variant {
    std::string name;
    double bound;
    void (*compute)(float* y, const operands& in);
};

struct operation {
    std::vector<variant> variants;
    std::size_t operands;
    std::uint64_t least_stride;  // every so many floats, where all would take too long
    bool is_sum;
    void (*reference)(expected& right, const exhaustive::operands& in);
};

std::vector<operation> operations();

/// The gradients and derivatives of the gated activations.
std::vector<operation> gated_derivatives();

}  // namespace exhaustive

#endif
