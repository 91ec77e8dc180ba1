// The numbers of the page that come out of its two simulators, for any seed.
#ifndef LESSON_NUMBERS_HPP
#define LESSON_NUMBERS_HPP

#include <cstdint>

#include "models.hpp"

namespace lesson {

inline constexpr std::uint32_t gradient_seed = 7;  ///< the page's, of the gradient panel
inline constexpr std::uint32_t token_seed = 11;    ///< the page's, of the token panel

/// What the page says of 32 tanh sublayers. A ratio is the gradient's size at the bottom over that at the top.
struct gradient_numbers {
    double plain_half;         ///< ratio, plain, gain 0.5
    double plain_two;          ///< ratio, plain, gain 2.0
    double orders;             ///< the base-10 logarithm of the quotient of the two
    double residual_smallest;  ///< the smallest ratio, residual only, of all gains from 0.5 to 2.0
    double start_rms;          ///< of the stream at the bottom
    double residual_rms;       ///< of the stream at the top, residual only, gain 1
    double residual_ratio;     ///< ratio, residual only, gain 1
};
gradient_numbers gradient_numbers_of(std::uint32_t seed);

/// What the page says of 8 and 32 attention layers: distances between tokens, and mean cosines.
struct token_numbers {
    double start;      ///< distance at the bottom
    double plain_8;    ///< distance after 8 layers
    double plain_32;   ///< after 32
    double residual;   ///< after 32, residual only
    double all_three;  ///< after 32, all three switches
    double residual_cosine;
    double all_three_cosine;
};
token_numbers token_numbers_of(std::uint32_t seed);

/// The distance after 32 plain layers in single precision: what keeps it from following the one in double.
double plain_distance_in_float(std::uint32_t seed);

}  // namespace lesson

#endif
