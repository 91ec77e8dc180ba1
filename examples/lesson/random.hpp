// The random numbers of the page.
#ifndef LESSON_RANDOM_HPP
#define LESSON_RANDOM_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <residua/dispatch.hpp>

namespace lesson {

/// The generator mulberry32: 32 bits of state, arithmetic modulo 2^32.
class mulberry32 {
public:
    explicit mulberry32(std::uint32_t seed) : state_{seed} {}

    /// Uniform in [0, 1), a multiple of 2^-32.
    double operator()()
    {
        state_ += 0x6D2B79F5u;
        std::uint32_t t = (state_ ^ (state_ >> 15)) * (state_ | 1u);
        t ^= t + (t ^ (t >> 7)) * (t | 61u);
        return static_cast<double>(t ^ (t >> 14)) * 0x1p-32;
    }

private:
    std::uint32_t state_;
};

/// Standard normal deviates: two uniform numbers give one, and the sine branch of Box and Muller is thrown away.
class normal_source {
public:
    explicit normal_source(std::uint32_t seed) : uniform_{seed} {}

    /// The next `out.size()` deviates. Drawn in batches, which does not change them: every lane gives the same bits.
    void fill(std::span<double> out)
    {
        for (std::size_t done = 0; done < out.size(); done += batch) {
            const auto n = std::min(batch, out.size() - done);
            u1_.resize(n);
            u2_.resize(n);
            for (std::size_t i = 0; i < n; ++i) {
                u1_[i] = uniform_();
                u2_[i] = uniform_();
            }
            residua::dispatch::box_muller(out.subspan(done, n), u1_, u2_);
        }
    }

    /// The same, rounded to float.
    void fill(std::span<float> out)
    {
        std::vector<double> exact(batch);
        for (std::size_t done = 0; done < out.size(); done += batch) {
            const auto n = std::min(batch, out.size() - done);
            fill(std::span{exact}.first(n));
            for (std::size_t i = 0; i < n; ++i) out[done + i] = static_cast<float>(exact[i]);
        }
    }

private:
    static constexpr std::size_t batch = 4096;
    mulberry32 uniform_;
    std::vector<double> u1_, u2_;
};

}  // namespace lesson

#endif
