// What a test has shown, for the table of operations in the documentation: tests/operations_table.cpp collects it.
#ifndef RESIDUA_TESTS_SUPPORT_RECORD_HPP
#define RESIDUA_TESTS_SUPPORT_RECORD_HPP

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <type_traits>

#include <residua/types.hpp>

namespace record {

template <class T>
constexpr const char* type_name()
{
    if (std::is_same_v<T, float>) return "f32";
    if (std::is_same_v<T, double>) return "f64";
    if (std::is_same_v<T, residua::bfloat16>) return "bf16";
    return "f16";
}

/// A promise that the running test has checked of an operation, if it has not failed: "strided", "in place", ...
inline void promise(const std::string& operation, const std::string& type, const std::string& what)
{
    if (testing::Test::HasFailure()) return;
    testing::Test::RecordProperty("promise|" + operation + "|" + type + "|" + what, "yes");
}

/// The stated bound of an operation's error, and the largest error that was seen, in the unit that is named: "ulp" is that
/// of the correct result. A unit "of <bound>" is a bound that has several parts: then `stated` is 1, and `seen` a share.
/// After the operation's name, and a comma, a case may follow.
inline void bound(const std::string& operation, const std::string& type, const std::string& unit, double stated,
                  double seen)
{
    char text[64];
    std::snprintf(text, sizeof text, "%.3g|%.3g|", stated, seen);
    testing::Test::RecordProperty("bound|" + operation + "|" + type, text + unit);
}

}  // namespace record

#endif
