// `lesson population`: the page's seeds among many others.
#ifndef LESSON_POPULATION_HPP
#define LESSON_POPULATION_HPP

#include <cstddef>

#include "sheet.hpp"

namespace lesson {

/// Runs the page's two models with the seeds 1 to `seeds`, the page's own left out, on `threads` threads, and says for
/// each number where the page's draw falls. The result does not depend on the number of threads. Shows progress on
/// standard error if that is a terminal.
sheet population(std::size_t seeds, std::size_t threads);

}  // namespace lesson

#endif
