// The sizes that the program takes on: everything it holds then fits into less than two gigabytes.
#ifndef LESSON_LIMITS_HPP
#define LESSON_LIMITS_HPP

#include <cstddef>

namespace lesson::limits {

inline constexpr std::size_t layers = 100'000;
inline constexpr std::size_t width = 4096;
inline constexpr std::size_t tokens = 1024;
/// layers x width x width, so the elements of one matrix of every layer
inline constexpr std::size_t matrix_elements = std::size_t{1} << 24;
/// layers x tokens x width, so the elements of the streams of all layers
inline constexpr std::size_t stream_elements = std::size_t{1} << 25;
/// gains of a sweep
inline constexpr std::size_t gains = 100'000;
inline constexpr std::size_t seeds = 1'000'000;
inline constexpr std::size_t threads = 1024;

/// A gain beyond these leaves the range of float within one sublayer.
inline constexpr double smallest_gain = 1e-6;
inline constexpr double largest_gain = 1e6;

}  // namespace lesson::limits

#endif
