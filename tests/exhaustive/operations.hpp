// The table of what is measured over all floats: a call, its reference, its bound.
#ifndef RESIDUA_TESTS_EXHAUSTIVE_OPERATIONS_HPP
#define RESIDUA_TESTS_EXHAUSTIVE_OPERATIONS_HPP

#include <cstddef>
#include <string>
#include <vector>

namespace exhaustive {

/// The largest error seen, and where.
struct worst_error {
    double ulp = 0;
    float x = 0, u = 0;

    void see(float got, double exact, float at, float with);
    void take(const worst_error& other)
    {
        if (other.ulp > ulp) *this = other;
    }
};

struct operation {
    std::string name;
    bool has_second_operand;
    double bound;
    void (*compute)(float* y, const float* x, const float* u, std::size_t n);
    void (*see)(worst_error& worst, const float* y, const float* x, const float* u, std::size_t n);
};

std::vector<operation> operations();

}  // namespace exhaustive

#endif
