#include "numbers.hpp"

#include <algorithm>
#include <limits>

namespace lesson {

gradient_numbers gradient_numbers_of(std::uint32_t seed)
{
    gradient_panel<double> panel{{.seed = seed}};
    const auto bottom = [&](double gain, switches set) { return panel.run(gain, set).gradient_ratio.front(); };

    const auto half = bottom(0.5, plain);
    const auto two = bottom(2.0, plain);
    const auto residual = panel.run(1.0, residual_only);
    gradient_numbers result{.plain_half = half.value(),
                            .plain_two = two.value(),
                            .orders = (two / half).log10(),
                            .residual_smallest = std::numeric_limits<double>::infinity(),
                            .start_rms = residual.stream_rms.front(),
                            .residual_rms = residual.stream_rms.back(),
                            .residual_ratio = residual.gradient_ratio.front().value()};
    for (const double gain : gains(0.5, 2.0, 0.01)) {
        result.residual_smallest = std::min(result.residual_smallest, bottom(gain, residual_only).value());
    }
    return result;
}

token_numbers token_numbers_of(std::uint32_t seed)
{
    token_panel<double> panel{{.seed = seed}};
    const auto bare = panel.run(1.0, plain);
    const auto residual = panel.run(1.0, residual_only);
    const auto switched = panel.run(1.0, all_three);
    return {.start = bare.front().relative_distance,
            .plain_8 = bare[8].relative_distance,
            .plain_32 = bare.back().relative_distance,
            .residual = residual.back().relative_distance,
            .all_three = switched.back().relative_distance,
            .residual_cosine = residual.back().mean_cosine,
            .all_three_cosine = switched.back().mean_cosine};
}

double plain_distance_in_float(std::uint32_t seed)
{
    token_panel<float> panel{{.seed = seed}};
    return panel.run(1.0, plain).back().relative_distance;
}

}  // namespace lesson
