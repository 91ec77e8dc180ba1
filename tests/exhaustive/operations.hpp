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

    void see(const float* got, const double* exact, const float* at, const float* with, std::size_t n);
    void take(const worst_error& other)
    {
        if (other.ulp > ulp) *this = other;
    }
};

/// One way to compute an operation: an accuracy, say.
struct variant {
    std::string name;
    double bound;
    void (*compute)(float* y, const float* x, const float* u, std::size_t n);
};

struct operation {
    std::vector<variant> variants;
    bool has_second_operand;
    void (*reference)(double* exact, const float* x, const float* u, std::size_t n);
};

std::vector<operation> operations();

}  // namespace exhaustive

#endif
