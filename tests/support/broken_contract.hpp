// RESIDUA_ASSERT as an exception, so that a test can see which precondition was broken. Include it before any header of
// residua.
#ifndef RESIDUA_TESTS_SUPPORT_BROKEN_CONTRACT_HPP
#define RESIDUA_TESTS_SUPPORT_BROKEN_CONTRACT_HPP

#include <string>

struct broken_contract {
    std::string what;
};
[[noreturn]] inline void broken(const char* what) { throw broken_contract{what}; }

#define RESIDUA_ASSERT(condition, message) ((condition) ? void() : broken(message))

/// The message of the precondition that a call breaks, or nothing.
template <class Call>
std::string what_is_wrong(Call&& call)
{
    try {
        call();
    } catch (const broken_contract& b) {
        return b.what;
    }
    return {};
}

#endif
