// The numbers of the page, and how each of them is computed.
#ifndef LESSON_LEDGER_HPP
#define LESSON_LEDGER_HPP

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "numbers.hpp"

namespace lesson {

/// Where a number of the page comes from.
enum class origin : char {
    simulated = 'S',   ///< one of the two simulators
    exact = 'E',       ///< an elementary computation that can be repeated
    configured = 'C',  ///< a model's public configuration, and arithmetic with it
    reported = 'R',    ///< a paper's measurement: cited, never computed here
    training = 'T',    ///< a run or figure of the page's own project, without a number on the page
};

/// What several rows share, computed with the active instruction set.
struct measurements {
    gradient_numbers gradient;
    token_numbers token;
    double plain_distance_in_float;

    // The Monte Carlo of the unit writes: root mean square, and its standard error.
    double unit_writes_rms;
    double unit_writes_error;

    // Where SwiGLU with gate = up passes the largest number of E4M3 and of half precision.
    double overflow_e4m3;
    double overflow_f16;

    /// All of them as a list, to compare their bits.
    std::array<double, 19> values() const;
};
measurements measure();

/// A number of the page, computed.
struct outcome {
    double value;       ///< in full precision
    std::string shown;  ///< written as on the page
    bool holds = true;  ///< whether what else the page says about it is true
};

/// A number of the page.
struct entry {
    std::string_view id;
    std::string_view printed;  ///< by the page
    origin from;
    std::string_view what;
    std::string_view source = {};         ///< of a number that is not computed here
    std::optional<double> expected = {};  ///< in full precision, where the page's text determines it
    double tolerance = 0;                 ///< relative
    outcome (*compute)(const measurements&) = nullptr;

    bool regenerable() const { return compute != nullptr; }

    /// Whether the outcome agrees with the page: within the tolerance, and in every digit that it prints.
    bool matches(const outcome& ours) const;
};

/// All of them, in the order of their ids.
std::span<const entry> ledger();

}  // namespace lesson

#endif
