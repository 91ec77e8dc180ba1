#include "population.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <exception>
#include <iostream>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <boost/timer/progress_display.hpp>

#include "numbers.hpp"

namespace lesson {

namespace {

/// All numbers of one seed: of the gradient panel, then of the token panel.
struct draw {
    gradient_numbers gradient;
    token_numbers token;
};

/// A number of the page, and where it is in a draw.
struct quantity {
    std::string id, what;
    double (*of)(const draw&);
    std::uint32_t page_seed;
};

const std::vector<quantity>& quantities()
{
    static const std::vector<quantity> all{
        {"L05", "gradient ratio, plain, gain 0.5", [](const draw& d) { return d.gradient.plain_half; },
         gradient_seed},
        {"L06", "gradient ratio, plain, gain 2.0", [](const draw& d) { return d.gradient.plain_two; },
         gradient_seed},
        {"L07", "orders of magnitude between", [](const draw& d) { return d.gradient.orders; }, gradient_seed},
        {"L08", "smallest gradient ratio, residual", [](const draw& d) { return d.gradient.residual_smallest; },
         gradient_seed},
        {"L09", "token distance at the start", [](const draw& d) { return d.token.start; }, token_seed},
        {"L10", "token distance, plain, 8 layers", [](const draw& d) { return d.token.plain_8; }, token_seed},
        {"L11", "token distance, plain", [](const draw& d) { return d.token.plain_32; }, token_seed},
        {"L12", "token distance, residual", [](const draw& d) { return d.token.residual; }, token_seed},
        {"L13", "token distance, all three", [](const draw& d) { return d.token.all_three; }, token_seed},
        {"L14", "stream RMS, residual", [](const draw& d) { return d.gradient.residual_rms; }, gradient_seed},
        {"L15", "gradient ratio, residual", [](const draw& d) { return d.gradient.residual_ratio; }, gradient_seed},
        {"L16", "mean cosine, residual", [](const draw& d) { return d.token.residual_cosine; }, token_seed},
        {"L17", "mean cosine, all three", [](const draw& d) { return d.token.all_three_cosine; }, token_seed},
    };
    return all;
}

/// Progress on the terminal, if there is one.
class progress {
public:
    explicit progress(std::size_t steps)
    {
        if (isatty(STDERR_FILENO)) display_.emplace(steps, std::cerr);
    }
    void step()
    {
        const std::scoped_lock lock{mutex_};
        if (display_) ++*display_;
    }

private:
    std::mutex mutex_;
    std::optional<boost::timer::progress_display> display_;
};

/// draws[i] is that of seed i + 1. Each thread takes the next seed that nobody has: the order has no part in a result.
std::vector<draw> draw_all(std::size_t seeds, std::size_t threads)
{
    std::vector<draw> draws(seeds);
    std::atomic<std::size_t> next{0};
    progress shown{seeds};
    std::exception_ptr error;
    std::mutex error_mutex;
    const auto work = [&] {
        try {
            for (std::size_t i = next++; i < seeds; i = next++) {
                const auto seed = static_cast<std::uint32_t>(i + 1);
                draws[i] = {gradient_numbers_of(seed), token_numbers_of(seed)};
                shown.step();
            }
        } catch (...) {
            const std::scoped_lock lock{error_mutex};
            error = std::current_exception();
            next = seeds;
        }
    };
    {
        std::vector<std::jthread> workers;
        for (std::size_t i = 0; i < threads; ++i) workers.emplace_back(work);
    }
    if (error) std::rethrow_exception(error);
    return draws;
}

/// The quantile of sorted values, between two of them by linear interpolation.
double quantile(const std::vector<double>& sorted, double at)
{
    const double position = at * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(position);
    const auto above = std::min(below + 1, sorted.size() - 1);
    const double part = position - static_cast<double>(below);
    // one rounding, on every compiler: left to itself it might fuse, or not
    return std::fma(part, sorted[above] - sorted[below], sorted[below]);
}

/// How many per cent of the sorted values are below x, those equal to it counted half.
double percentile(const std::vector<double>& sorted, double x)
{
    const auto below = std::ranges::lower_bound(sorted, x) - sorted.begin();
    const auto not_above = std::ranges::upper_bound(sorted, x) - sorted.begin();
    return 50.0 * static_cast<double>(below + not_above) / static_cast<double>(sorted.size());
}

}  // namespace

sheet population(std::size_t seeds, std::size_t threads)
{
    const auto draws = draw_all(seeds, std::min(threads, seeds));
    const draw page{gradient_numbers_of(gradient_seed), token_numbers_of(token_seed)};

    sheet result{{"id", "what", "seeds", "p05", "median", "p95", "page_seed", "page_value", "page_percentile"}, {}};
    for (const quantity& q : quantities()) {
        std::vector<double> values;
        for (std::size_t i = 0; i < draws.size(); ++i) {
            if (i + 1 != q.page_seed) values.push_back(q.of(draws[i]));
        }
        std::ranges::sort(values);
        const double ours = q.of(page);
        result.rows.push_back({q.id, q.what, values.size(), quantile(values, 0.05), quantile(values, 0.5),
                               quantile(values, 0.95), std::size_t{q.page_seed}, ours, percentile(values, ours)});
    }
    return result;
}

}  // namespace lesson
