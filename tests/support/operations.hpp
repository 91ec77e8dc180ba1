// Every operation over rows as one line of a table, for the tests of what they all promise: of types, of memory, of
// aliasing. Operands are erased to memory, so that such a test is one text.
#ifndef RESIDUA_TESTS_SUPPORT_OPERATIONS_HPP
#define RESIDUA_TESTS_SUPPORT_OPERATIONS_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "support/api.hpp"
#include "support/record.hpp"
#include "support/reference.hpp"

namespace operations {

using residua::bfloat16;
using residua::element;
using residua::float16;

/// What an operation does with an operand. The last three have one row, whatever the others have.
enum class use : std::uint8_t { written, read, updated, weight, sum, added_to };

/// Where an operand lies.
struct place {
    void* data;
    std::size_t count, columns;
    std::ptrdiff_t stride;  // in elements
    residua::store stores = residua::store::automatic;
};

struct operand {
    use used;
    std::size_t rows, columns;
    std::size_t fixed;  // its width, where that does not depend on the operation's

    std::size_t width(std::size_t of_operation) const { return fixed != 0 ? fixed : of_operation * columns; }
    bool has_one_row() const { return used == use::weight || is_sum(); }
    bool is_written() const { return used != use::read && used != use::weight; }
    bool is_read() const { return used != use::written && used != use::sum; }
    bool is_sum() const { return used == use::sum || used == use::added_to; }
    std::size_t count_for(std::size_t count) const { return has_one_row() ? 1 : count * rows; }
};

/// An operation on operands of certain types.
struct form {
    std::vector<element> types;
    void (*call)(const place*);
};

struct operation {
    const char* name;
    std::vector<operand> operands;
    bool computes_in_double;     // whatever the types of the operands
    bool rounds_inside = false;  // to the type of an operand, before the end
    std::vector<std::pair<std::size_t, std::size_t>> only_over =
        {};                      // else every output over every input of its shape
    double low = -2, high = 2;   // of its inputs
    std::string listed_as = {};  // in the documentation's table, if not by its name
    std::vector<form> forms;

    /// The form whose operands are all of one type.
    const form& alike(element type) const
    {
        for (const form& f : forms) {
            bool all = true;
            for (std::size_t i = 0; i < operands.size(); ++i) {
                all = all && (operands[i].is_sum() || f.types[i] == type);
            }
            if (all) return f;
        }
        return forms.front();
    }
    /// Whether there is an operand as wide as the caller says.
    bool has_columns() const
    {
        return std::any_of(operands.begin(), operands.end(), [](const operand& o) { return o.fixed == 0; });
    }
    /// Whether output i may be exactly input k.
    bool may_lie_on(const form& f, std::size_t i, std::size_t k) const;

    /// Of an output and an input, by their places: no other output may be an input.
    operation&& that_writes_only_over(std::vector<std::pair<std::size_t, std::size_t>> pairs) &&
    {
        only_over = std::move(pairs);
        return std::move(*this);
    }
    operation&& of_inputs(double from, double to) &&
    {
        low = from;
        high = to;
        return std::move(*this);
    }
    operation&& that_is_listed_as(const char* other_name) &&
    {
        listed_as = other_name;
        return std::move(*this);
    }
    operation&& that_rounds_inside() &&
    {
        rounds_inside = true;
        return std::move(*this);
    }
};

/// The table.
const std::vector<operation>& all();
/// The same of the static interface with xsimd: the fuzz target has both.
namespace with_xsimd {
const std::vector<operation>& all();
}

// --- their elements -----------------------------------------------------------------------------------------------

inline std::size_t size_of(element type) { return type == element::float64 ? 8 : type == element::float32 ? 4 : 2; }
inline const char* name_of(element type)
{
    return type == element::float64    ? "double"
           : type == element::float32  ? "float"
           : type == element::bfloat16 ? "bfloat16"
                                       : "float16";
}
inline bool operation::may_lie_on(const form& f, std::size_t i, std::size_t k) const
{
    const auto& to = operands[i];
    const auto& from = operands[k];
    if (!only_over.empty() && std::find(only_over.begin(), only_over.end(), std::pair{i, k}) == only_over.end()) {
        return false;
    }
    return to.used == use::written && from.used == use::read && to.rows == from.rows && to.columns == from.columns
           && to.fixed == from.fixed && size_of(f.types[i]) == size_of(f.types[k]);
}

/// Whether all operands are of one type.
inline bool is_alike(const operation& op, const form& f) { return &f == &op.alike(f.types[0]); }

/// For the documentation's table: that this test has shown something of an operation on data of one type.
inline void record_promise(const operation& op, const form& f, const char* what)
{
    constexpr const char* names[] = {"f32", "f64", "bf16", "f16"};
    if (!is_alike(op, f)) return;
    record::promise(op.listed_as.empty() ? op.name : op.listed_as, names[static_cast<int>(f.types[0])], what);
}

inline std::string description(const operation& op, const form& f)
{
    std::string text = op.name;
    text += " of";
    for (const element type : f.types) text += std::string(" ") + name_of(type);
    return text;
}

using bytes = std::vector<std::byte>;

template <class S>
void store_as(bytes& memory, const std::vector<double>& x)
{
    memory.resize(x.size() * sizeof(S));
    for (std::size_t j = 0; j < x.size(); ++j) {
        const auto stored = static_cast<S>(x[j]);
        std::memcpy(memory.data() + j * sizeof stored, &stored, sizeof stored);
    }
}
template <class S>
void load_as(std::vector<double>& x, const bytes& memory)
{
    x.resize(memory.size() / sizeof(S));
    for (std::size_t j = 0; j < x.size(); ++j) {
        S stored;
        std::memcpy(&stored, memory.data() + j * sizeof stored, sizeof stored);
        if constexpr (sizeof stored == 2) {
            x[j] = static_cast<double>(static_cast<float>(stored));
        } else {
            x[j] = static_cast<double>(stored);
        }
    }
}

/// Numbers in memory, rounded once to its type.
inline bytes stored(const std::vector<double>& x, element type)
{
    bytes memory;
    switch (type) {
        case element::float64: store_as<double>(memory, x); break;
        case element::float32: store_as<float>(memory, x); break;
        case element::bfloat16: store_as<bfloat16>(memory, x); break;
        case element::float16: store_as<float16>(memory, x); break;
    }
    return memory;
}
inline std::vector<double> numbers(const bytes& memory, element type)
{
    std::vector<double> x;
    switch (type) {
        case element::float64: load_as<double>(x, memory); break;
        case element::float32: load_as<float>(x, memory); break;
        case element::bfloat16: load_as<bfloat16>(x, memory); break;
        case element::float16: load_as<float16>(x, memory); break;
    }
    return x;
}

/// The elements of every operand, row after row; outputs hold numbers too, which must not matter.
using contents = std::vector<bytes>;

inline contents random_contents(const operation& op, const form& f, std::size_t count, std::size_t columns,
                                std::uint64_t seed)
{
    contents all;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
        const auto& o = op.operands[i];
        reference::random random{seed * 64 + i};
        std::vector<double> x(o.count_for(count) * o.width(columns));
        for (double& e : x) e = random.uniform(op.low, op.high);
        all.push_back(stored(x, f.types[i]));
    }
    return all;
}

/// Operand i of an operation on `count` rows, packed at `data`.
inline place packed(const operation& op, std::size_t i, std::size_t count, std::size_t columns, void* data)
{
    const auto& o = op.operands[i];
    const std::size_t width = o.width(columns);
    return {data, o.count_for(count), width, static_cast<std::ptrdiff_t>(width)};
}

/// What is in memory after the operation on packed operands.
inline contents results(const operation& op, const form& f, std::size_t count, std::size_t columns, contents memory)
{
    std::vector<place> places;
    for (std::size_t i = 0; i < memory.size(); ++i) {
        places.push_back(packed(op, i, count, columns, memory[i].data()));
    }
    f.call(places.data());
    return memory;
}

inline bool has_double(const operation& op, const form& f)
{
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
        if (!op.operands[i].is_sum() && f.types[i] == element::float64) return true;
    }
    return false;
}

/// What is wrong where `got`, the results on `given`, are not those of the same operation on float (or double), rounded
/// once to the types of its operands.
inline std::string not_rounded_once(const operation& op, const form& f, std::size_t count, std::size_t columns,
                                    const contents& given, const contents& got)
{
    const bool of_double = has_double(op, f);
    const form& wide = op.alike(op.computes_in_double || of_double ? element::float64 : element::float32);
    contents same;
    for (std::size_t i = 0; i < given.size(); ++i) {
        same.push_back(stored(numbers(given[i], f.types[i]), wide.types[i]));
    }
    const contents exact = results(op, wide, count, columns, same);
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
        if (!op.operands[i].is_written()) continue;
        // what is added up in float is rounded row after row
        if (op.operands[i].is_sum() && count > 1 && f.types[i] != wide.types[i]) continue;
        const auto from = numbers(exact[i], wide.types[i]);
        const auto rounded = numbers(stored(from, f.types[i]), f.types[i]);
        const auto y = numbers(got[i], f.types[i]);
        for (std::size_t j = 0; j < y.size(); ++j) {
            if (rounded[j] == y[j] && std::signbit(rounded[j]) == std::signbit(y[j])) continue;
            if (std::isnan(rounded[j]) && std::isnan(y[j])) continue;
            char text[200];
            std::snprintf(text, sizeof text, "operand %zu: element %zu is %a, and the rounded %a is not", i, j,
                          y[j], from[j]);
            return text;
        }
    }
    return {};
}

}  // namespace operations

#endif
