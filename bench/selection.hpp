// Which cells of the table are measured.
#ifndef RESIDUA_BENCH_SELECTION_HPP
#define RESIDUA_BENCH_SELECTION_HPP

#include <string_view>
#include <vector>

#include "data.hpp"
#include "registry.hpp"

namespace bench {

/// `smoke`: every contender once, briefly; `quick`: what five minutes allow; `full`: all of it.
enum class selection { smoke, quick, full };

std::vector<measurement> measurements(selection chosen);

/// Where the operands of one lie.
operands::place place_of(const measurement& m, selection chosen);

}  // namespace bench

#endif
