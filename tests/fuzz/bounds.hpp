// Whether a call keeps the bound of its oracle.
#ifndef RESIDUA_TESTS_FUZZ_BOUNDS_HPP
#define RESIDUA_TESTS_FUZZ_BOUNDS_HPP

#include <cstddef>
#include <cstdio>
#include <string>

#include "fuzz/any_call.hpp"
#include "fuzz/oracle.hpp"

namespace fuzz {

/// What of the results on `given` is beyond its bound, or not NaN where an input is; or nothing.
std::string beyond_bound(const any_call& call, const oracle& known, const operations::contents& given,
                         const operations::contents& results);

inline std::string hexadecimal(double x)
{
    char text[40];
    std::snprintf(text, sizeof text, "%a", x);
    return text;
}
inline std::string in_operand(std::size_t i, const std::string& what)
{
    return "operand " + std::to_string(i) + ": " + what;
}

}  // namespace fuzz

#endif
