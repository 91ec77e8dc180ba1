// The table that bench_report writes and compare reads: one line for each contender and cell.
#ifndef RESIDUA_BENCH_TABLE_HPP
#define RESIDUA_BENCH_TABLE_HPP

#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

/// A fault that the user is told of in one line.
struct failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// What was measured.
struct cell {
    std::string operation, type, tier, target, backend;
    std::size_t columns = 0;
    std::string regime;

    bool operator==(const cell&) const = default;
    auto operator<=>(const cell&) const = default;
};

/// What came out; a number is 0 where there is none.
struct line {
    cell what;
    double ns_per_row = 0;
    double limit_ns = 0;  ///< of the physical limit of this operation, type, d and regime
    std::string best_other;
    double best_other_ns = 0;

    double ratio_to_limit() const { return limit_ns > 0 ? ns_per_row / limit_ns : 0; }
    double speedup() const { return best_other_ns > 0 ? best_other_ns / ns_per_row : 0; }
};

std::string as_csv(const std::vector<line>& lines);
/// Throws `failure` where it cannot be read or is no such table.
std::vector<line> read_csv(const std::string& path);

void write_file(const std::string& path, const std::string& text);

}  // namespace bench

#endif
