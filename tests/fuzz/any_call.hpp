// A call of any operation, made of any bytes: its types, shape, strides, how it stores, what lies on what, and its numbers, down to the
// bits of a NaN; and what is wrong with what it does.
#ifndef RESIDUA_TESTS_FUZZ_ANY_CALL_HPP
#define RESIDUA_TESTS_FUZZ_ANY_CALL_HPP

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "support/operations.hpp"

namespace fuzz {

/// Where an operand lies: on another, or by itself.
struct placement {
    std::size_t on;         // itself, or the input that it is written over
    std::ptrdiff_t stride;  // in elements
    std::size_t shift;      // from a multiple of 16 bytes, in elements
};

struct any_call {
    const operations::operation* op;
    const operations::form* form;
    std::size_t count, columns;
    residua::store stores;  // of every output
    std::vector<placement> places;
    operations::contents numbers;  // of every operand, row after row
};

/// Every sequence of bytes is a call.
any_call call_of(std::span<const std::uint8_t> bytes);

/// With the numbers that its operands held: rows may lie on one another.
std::string description(const any_call& call);

/// What is wrong with a call, or nothing:
/// - with every target, and in another table of the same operations, the same bits as with the scalar target on operands
///   that are packed and apart (every NaN is the same),
/// - nothing written but the rows of the outputs,
/// - operands of other types as those of double or float, rounded once,
/// - no NaN of finite numbers, where no double leaves its range,
/// - within the bound of the formula in long double, and NaN where that makes an input's NaN so (oracle.hpp).
std::string fault_of(const any_call& call, std::span<const api::target> targets,
                     const std::vector<operations::operation>* other_table = nullptr);

}  // namespace fuzz

#endif
