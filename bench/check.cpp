#include "check.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "data.hpp"

namespace bench {

namespace {

/// Relative to the element, or to the mean magnitude of its row. Far above what any contender errs by, and far below what
/// a mistake makes.
double tolerance(type t)
{
    switch (t) {
        case type::f32: return 1e-5;
        case type::bf16: return 0x1p-6;
        case type::f16: return 0x1p-9;
    }
    return 0;
}

/// A limit works on bytes; of 16-bit elements it has no meaningful numbers.
bool has_numbers(const measurement& m)
{
    return m.what->reference != nullptr && (m.who->element == type::f32 || m.what->limit != m.what->name);
}

std::vector<double> numbers(const void* memory, type element, std::size_t first, std::size_t count)
{
    std::vector<double> all;
    if (memory == nullptr) return all;
    for (std::size_t i = 0; i < count; ++i) all.push_back(element_at(memory, element, first + i));
    return all;
}

std::string difference(const std::vector<double>& got, const std::vector<double>& wanted, double tolerated)
{
    double sum = 0;
    for (const double x : wanted) sum += std::fabs(x);
    const double mean = sum / static_cast<double>(wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
        const bool near = std::fabs(got[i] - wanted[i]) <= tolerated * std::max(std::fabs(wanted[i]), mean);
        if (!near) return fmt::format("column {} is {} instead of {}", i, got[i], wanted[i]);
    }
    return {};
}

}  // namespace

std::string fault_of(const measurement& m)
{
    if (!has_numbers(m)) return {};
    const operation& what = *m.what;
    const type element = m.who->element;
    const std::size_t n = m.columns;
    constexpr std::size_t rows = 3;
    const operands memory{what, element, n, {.rows = rows}};
    const call& c = memory.current();

    // what it has to be
    std::vector<double> outputs[most_operands];
    std::vector<double> gradient(n);
    const auto weight = numbers(c.weight, element, 0, n);
    for (std::size_t k = 0; k < what.writes; ++k) outputs[k].reserve(rows * n);
    for (std::size_t i = 0; i < rows; ++i) {
        std::vector<double> in[most_operands], out[most_operands];
        reference_row r{n, {}, weight.data(), {}, gradient.data()};
        for (std::size_t k = 0; k < what.reads; ++k) {
            const std::size_t width = what.packed && k == 0 ? 2 * n : n;
            in[k] = numbers(c.in[k], element, i * width, width);
            r.in[k] = in[k].data();
        }
        for (std::size_t k = 0; k < what.writes; ++k) {
            out[k] = k < what.updates ? numbers(c.out[k], element, i * n, n) : std::vector<double>(n);
            r.out[k] = out[k].data();
        }
        what.reference(r);
        for (std::size_t k = 0; k < what.writes; ++k)
            outputs[k].insert(outputs[k].end(), out[k].begin(), out[k].end());
    }

    // what it is
    if (m.who->prepare != nullptr) m.who->prepare();
    m.who->run(c);
    for (std::size_t k = 0; k < what.writes; ++k) {
        for (std::size_t i = 0; i < rows; ++i) {
            const auto got = numbers(c.out[k], element, i * n, n);
            const auto first = outputs[k].begin() + static_cast<std::ptrdiff_t>(i * n);
            const std::vector<double> wanted(first, first + static_cast<std::ptrdiff_t>(n));
            const auto words = difference(got, wanted, tolerance(element));
            if (!words.empty()) return fmt::format("output {}, row {}: {}", k, i, words);
        }
    }
    if (what.weight_gradient) {
        const auto words = difference(numbers(c.weight_gradient, type::f32, 0, n), gradient, tolerance(element));
        if (!words.empty()) return "the weight's gradient: " + words;
    }
    return {};
}

}  // namespace bench
