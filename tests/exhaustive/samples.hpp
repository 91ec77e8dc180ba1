// The types that floats do not stand for: all numbers of 16 bits, and samples of double.
#ifndef RESIDUA_TESTS_EXHAUSTIVE_SAMPLES_HPP
#define RESIDUA_TESTS_EXHAUSTIVE_SAMPLES_HPP

#include <cstddef>
#include <string>
#include <vector>

namespace exhaustive {

struct sampled {
    std::string name;
    std::size_t inputs;
    double ulp;
    double at;
    double bound;
};

/// Functions of one element over every bfloat16 and every float16.
std::vector<sampled> over_all_halves();

/// Functions of double against MPFR: `count` numbers in each of their regions, and every power of two.
std::vector<sampled> over_doubles(std::size_t count);

}  // namespace exhaustive

#endif
