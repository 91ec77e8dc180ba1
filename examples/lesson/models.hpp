// The page's two simulators: random networks from a seed, run through the library's probes. Neither is trained: they
// show what the way of stacking does to gradient and tokens at the moment when training begins.
#ifndef LESSON_MODELS_HPP
#define LESSON_MODELS_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

#include <residua/dispatch.hpp>

namespace lesson {

namespace dispatch = residua::dispatch;
namespace probe = residua::dispatch::probe;

/// The page's three switches. None is set: a plain stack.
struct switches {
    bool residual = false;
    bool pre_norm = false;
    bool scale_writes = false;  ///< what is written is multiplied by 1/sqrt(N)
};
inline constexpr switches plain{};
inline constexpr switches residual_only{.residual = true};
inline constexpr switches all_three{.residual = true, .pre_norm = true, .scale_writes = true};

/// The width, depth and seed of a stack of tanh sublayers; the defaults are the page's.
struct gradient_shape {
    std::uint32_t seed = 7;
    std::size_t width = 32;
    std::size_t layers = 32;
};

/// What comes out of a stack of tanh sublayers, for layers 0 (the bottom) to N (the top).
struct gradient_run {
    std::vector<double> stream_rms;                ///< of x_l
    std::vector<probe::magnitude> gradient_ratio;  ///< |g_l| / |g_N|
};

/// "Can the gradient reach the bottom?" N sublayers F(x) = W2 tanh(W1 x) on one vector. The random numbers are drawn
/// once; each run scales them by its gain.
template <class T>
class gradient_panel {
public:
    explicit gradient_panel(gradient_shape shape);
    gradient_panel(const gradient_panel&) = delete;  // the sublayers are views of the weights
    gradient_panel& operator=(const gradient_panel&) = delete;

    gradient_run run(double gain, switches set);

private:
    residua::rows<T> block(std::vector<T>& of) const { return {of.data(), of.size() / width_, width_}; }

    std::size_t width_, layers_;
    std::vector<T> normals_, weights_;  // W1 and W2 of sublayer 1, of sublayer 2, ...
    std::vector<T> start_, top_;        // x_0, and the gradient at the top
    std::vector<T> stream_, hidden_, inner_, gradient_, scratch_;
    std::vector<probe::tanh_sublayer<T>> sublayers_;
};

/// The shape and seed of a stack of attention sublayers; the defaults are the page's.
struct token_shape {
    std::uint32_t seed = 11;
    std::size_t tokens = 6;
    std::size_t width = 16;
    std::size_t layers = 32;
};

/// "Do the tokens become the same?" N layers of one head of causal attention.
template <class T>
class token_panel {
public:
    explicit token_panel(token_shape shape);
    token_panel(const token_panel&) = delete;
    token_panel& operator=(const token_panel&) = delete;

    /// How far apart the tokens are at layers 0 to N.
    std::vector<probe::spread> run(double gain, switches set);

private:
    residua::rows<T> block(std::vector<T>& of) const { return {of.data(), of.size() / width_, width_}; }

    std::size_t tokens_, width_, layers_;
    std::vector<T> normals_, weights_;  // Wq, Wk and Wv of layer 1, of layer 2, ...
    std::vector<T> start_;
    std::vector<T> stream_, q_, k_, v_, attention_, scratch_, spread_scratch_;
    std::vector<probe::attention_sublayer<T>> sublayers_;
};

extern template class gradient_panel<float>;
extern template class gradient_panel<double>;
extern template class token_panel<float>;
extern template class token_panel<double>;

/// The root mean square of a stream of `elements` normal deviates after 0, 1, ... `writes` additions of as many others:
/// what sqrt(1 + writes) predicts.
std::vector<double> unit_writes(std::size_t elements, std::size_t writes, std::uint32_t seed);

/// The page's gains from `from` to `to`: each from its index, so that no rounding error accumulates.
std::vector<double> gains(double from, double to, double step);

}  // namespace lesson

#endif
