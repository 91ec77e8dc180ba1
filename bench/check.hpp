// Whether a contender computes what its operation says: a bench of a wrong kernel is worth nothing.
#ifndef RESIDUA_BENCH_CHECK_HPP
#define RESIDUA_BENCH_CHECK_HPP

#include <string>

#include "registry.hpp"

namespace bench {

/// Empty, or in words what is wrong: a few rows are compared with the reference.
std::string fault_of(const measurement& m);

}  // namespace bench

#endif
