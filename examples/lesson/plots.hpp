// `lesson plot`: the page's figures, through gnuplot.
#ifndef LESSON_PLOTS_HPP
#define LESSON_PLOTS_HPP

#include <string>

namespace lesson {

/// Writes the figures as SVG into the folder, made if need be, with the data and the script that drew them. Returns
/// the names of the figures, a line each. Throws `failure` without gnuplot or if something cannot be written.
std::string plot(const std::string& folder);

}  // namespace lesson

#endif
