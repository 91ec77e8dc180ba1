#include "norms.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <mutex>
#include <random>
#include <thread>

#include <fmt/format.h>

#include <residua/dispatch.hpp>

#include "operations.hpp"

namespace exhaustive {

namespace api = residua::dispatch;

namespace {

enum class distribution { normal, lognormal, cauchy, one_spike, alternating, constant };
constexpr const char* names[] = {"normal", "lognormal", "Cauchy", "one spike", "alternating", "constant"};

constexpr unsigned set_of(std::initializer_list<distribution> list)
{
    unsigned set = 0;
    for (const distribution d : list) set |= 1U << static_cast<unsigned>(d);
    return set;
}
constexpr unsigned every = set_of({distribution::normal, distribution::lognormal, distribution::cauchy,
                                   distribution::one_spike, distribution::alternating, distribution::constant});
// of numbers that are all equal the variance is nothing but what rounding leaves
constexpr unsigned varied = every & ~set_of({distribution::constant});

std::vector<float> row_of(distribution d, std::size_t n, int exponent, std::uint64_t seed)
{
    std::mt19937_64 random{seed};
    std::normal_distribution<double> normal;
    std::lognormal_distribution<double> lognormal{0, 2};
    std::cauchy_distribution<double> cauchy;
    std::vector<float> x(n);
    const double size = std::uniform_real_distribution<double>{1, 2}(random);
    const double spike = std::exp2(std::uniform_real_distribution<double>{0, 20}(random));
    for (std::size_t j = 0; j < n; ++j) {
        double v = 0;
        switch (d) {
            case distribution::normal: v = normal(random); break;
            case distribution::lognormal: v = lognormal(random); break;
            case distribution::cauchy: v = cauchy(random); break;
            case distribution::one_spike: v = j == n / 2 ? spike : normal(random); break;
            case distribution::alternating: v = j % 2 == 0 ? size : -size; break;
            case distribution::constant: v = size; break;
        }
        const double most = static_cast<double>(std::numeric_limits<float>::max());
        x[j] = static_cast<float>(std::clamp(std::ldexp(v, exponent), -most, most));
    }
    return x;
}

/// Every length of a few vectors, blocks with and without a rest, and on to 2^20.
std::vector<std::size_t> lengths(bool all)
{
    std::vector<std::size_t> list;
    for (std::size_t n = 1; n <= (all ? 2100U : 130U); ++n) list.push_back(n);
    for (std::size_t power = 512; power <= (1U << 20U); power *= all ? 2 : 8) {
        list.insert(list.end(), {power - 1, power, power + 1});
    }
    list.insert(list.end(), {5120, 17408, 65521, 99991});
    if (all) list.insert(list.end(), {262147, 524287, 786433, 1000003});
    return list;
}

struct moments {
    long double mean, mean_square;  // the latter about the mean
};
/// In 64 bits of precision at least; the squares of floats need 48.
moments moments_of(const std::vector<float>& x, bool centered)
{
    moments m{0, 0};
    const auto n = static_cast<long double>(x.size());
    if (centered) {
        for (const float e : x) m.mean += static_cast<long double>(e);
        m.mean /= n;
    }
    for (const float e : x) {
        const long double d = static_cast<long double>(e) - m.mean;
        m.mean_square += d * d;
    }
    m.mean_square /= n;
    return m;
}

/// A row, its weight, and what a norm needs to know of it.
struct measured_row {
    std::vector<float> x, w;
    moments about;

    measured_row(distribution d, std::size_t n, int exponent, std::uint64_t seed, bool centered)
        : x{row_of(d, n, exponent, seed)},
          w{row_of(distribution::normal, n, 0, seed + 1)},
          about{moments_of(x, centered)}
    {
        for (float& e : w) e = std::copysign(std::clamp(std::abs(e), 0.125F, 8.0F), e);
    }
};

/// The worst error of its norm; of a NaN it is infinite.
template <bool Centered>
double error_of(const measured_row& row, float eps)
{
    const auto& [x, w, m] = row;
    std::vector<float> y(x.size());
    if constexpr (Centered) {
        api::layer_norm(y, x, w, api::no_bias, {.eps = eps});
    } else {
        api::rms_norm(y, x, w, {.eps = eps});
    }
    const long double r = 1 / std::sqrt(m.mean_square + static_cast<long double>(eps));
    double worst = 0;
    for (std::size_t j = 0; j < x.size(); ++j) {
        const auto normal = static_cast<double>((static_cast<long double>(x[j]) - m.mean) * r);
        const double exact = normal * static_cast<double>(w[j]);
        const double distance = std::abs(static_cast<double>(y[j]) - exact);
        double error = distance / unit_of_float(exact);
        if constexpr (Centered) {
            const double f = std::abs(static_cast<double>(w[j]));
            error = distance / (unit_of_float(exact) / 2 + 0x1p-45 * (std::abs(exact) + f));
        } else if (!(std::abs(normal) >= static_cast<double>(std::numeric_limits<float>::min()))) {
            continue;  // the bound is for what is a normal number before the weight
        }
        if (std::isnan(error)) return std::numeric_limits<double>::infinity();
        worst = std::max(worst, error);
    }
    return worst;
}

template <bool Centered, unsigned Distributions>
worst_row measure(bool all, unsigned threads)
{
    const auto n = lengths(all);
    std::atomic<std::size_t> next{0};
    std::mutex lock;
    worst_row worst;
    std::vector<std::jthread> pool;
    for (unsigned t = 0; t < threads; ++t) {
        pool.emplace_back([&] {
            worst_row mine;
            // the longest first
            for (std::size_t i = next++; i < n.size(); i = next++) {
                const std::size_t length = n[n.size() - 1 - i];
                const int step = length > 4096 ? 100 : all ? 14 : 50;
                if (Centered && length == 1) continue;
                for (std::size_t d = 0; d < std::size(names); ++d) {
                    if (((Distributions >> d) & 1U) == 0) continue;
                    for (int e = -140; e <= 126; e += step) {
                        const std::uint64_t seed = (length * 512 + static_cast<std::uint64_t>(e + 140)) * 8 + d;
                        const measured_row row{static_cast<distribution>(d), length, e, seed, Centered};
                        for (const float eps : {0.0F, 1e-6F}) {
                            const double error = error_of<Centered>(row, eps);
                            ++mine.rows;
                            if (error <= mine.ulp) continue;
                            mine.ulp = error;
                            mine.at = fmt::format("{} elements, {}, near 2^{}, eps {}", length, names[d], e, eps);
                        }
                    }
                }
            }
            const std::scoped_lock locked{lock};
            worst.rows += mine.rows;
            if (mine.ulp > worst.ulp) {
                worst.ulp = mine.ulp;
                worst.at = mine.at;
            }
        });
    }
    pool.clear();
    return worst;
}

}  // namespace

std::vector<norm> norms()
{
    return {{"rms_norm", 2.5, measure<false, every>},
            {"layer_norm, in units of its bound", 1, measure<true, varied>}};
}

}  // namespace exhaustive
