// RMSNorm and LayerNorm over lengths, distributions and magnitudes.
#ifndef RESIDUA_TESTS_EXHAUSTIVE_NORMS_HPP
#define RESIDUA_TESTS_EXHAUSTIVE_NORMS_HPP

#include <cstddef>
#include <string>
#include <vector>

namespace exhaustive {

struct worst_row {
    double ulp = 0;
    std::string at;
    std::size_t rows = 0;
};

struct norm {
    std::string name;
    double bound;
    worst_row (*measure)(bool all, unsigned threads);
};

std::vector<norm> norms();

}  // namespace exhaustive

#endif
