// What the library is measured against, and where it stands.
#ifndef RESIDUA_BENCH_GOALS_HPP
#define RESIDUA_BENCH_GOALS_HPP

#include <string>
#include <vector>

#include "table.hpp"

namespace bench {

/// One cell of a goal: how long this library takes, as a multiple of what it is compared with. In nanoseconds for a goal
/// that is a difference.
struct standing {
    cell where;
    double value;
};

struct goal {
    std::string text;
    double at_most;
    std::string unit;  ///< "x", or "ns"
    std::vector<standing> measured;

    bool met() const;
    /// The cell that is farthest from the goal, and the geometric mean of all.
    const standing& worst() const;
    double mean() const;
};

/// The goals, each with every cell of the table that belongs to it; maybe none.
std::vector<goal> goals(const std::vector<line>& lines);

}  // namespace bench

#endif
