#include "models.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "random.hpp"

namespace lesson {

using residua::rows;

namespace {

template <class T>
probe::wiring<T> wire(switches set, std::size_t layers)
{
    const double write_scale = set.scale_writes ? 1 / std::sqrt(static_cast<double>(layers)) : 1;
    return {.residual = set.residual, .pre_norm = set.pre_norm, .write_scale = static_cast<T>(write_scale)};
}

/// Makes the root mean square of every row one.
template <class T>
void normalise(rows<T> x)
{
    dispatch::rms_norm(x, x, dispatch::no_weight, {.eps = T(0)});
}

/// The weights of a gain: normal deviates times gain / sqrt(d).
template <class T>
void weigh(std::vector<T>& weights, const std::vector<T>& normals, double gain, std::size_t width)
{
    dispatch::scale(weights, normals, static_cast<T>(gain / std::sqrt(static_cast<double>(width))));
}

}  // namespace

template <class T>
gradient_panel<T>::gradient_panel(gradient_shape shape)
    : width_{shape.width},
      layers_{shape.layers},
      normals_(2 * layers_ * width_ * width_),
      weights_(normals_.size()),
      start_(width_),
      top_(width_),
      stream_((layers_ + 1) * width_),
      hidden_(layers_ * width_),
      inner_(width_),
      gradient_(width_),
      scratch_(2 * width_)
{
    normal_source normal{shape.seed};
    normal.fill(std::span{normals_});
    normal.fill(std::span{start_});
    normal.fill(std::span{top_});
    normalise(block(start_));

    const rows<T> matrices = block(weights_);
    sublayers_.reserve(layers_);
    for (std::size_t l = 0; l < layers_; ++l) {
        sublayers_.push_back({.w1 = matrices.part(2 * l * width_, width_),
                              .w2 = matrices.part((2 * l + 1) * width_, width_),
                              .hidden = block(hidden_).row(l),
                              .scratch = block(inner_)});
    }
}

template <class T>
gradient_run gradient_panel<T>::run(double gain, switches set)
{
    weigh(weights_, normals_, gain, width_);
    std::ranges::copy(start_, stream_.begin());
    std::ranges::copy(top_, gradient_.begin());

    const auto how = wire<T>(set, layers_);
    const rows<T> stream = block(stream_);
    const std::span sublayers{sublayers_};
    std::vector<probe::magnitude> sizes(layers_ + 1);
    probe::forward(stream, sublayers, how, block(scratch_));
    probe::backward(block(gradient_), rows<const T>{stream}, sublayers, how, block(scratch_), std::span{sizes});

    gradient_run result;
    for (std::size_t l = 0; l <= layers_; ++l) {
        result.stream_rms.push_back(static_cast<double>(dispatch::rms(stream.row(l))));
        result.gradient_ratio.push_back(sizes[l] / sizes[layers_]);
    }
    return result;
}

template <class T>
token_panel<T>::token_panel(token_shape shape)
    : tokens_{shape.tokens},
      width_{shape.width},
      layers_{shape.layers},
      normals_(3 * layers_ * width_ * width_),
      weights_(normals_.size()),
      start_(tokens_ * width_),
      stream_((layers_ + 1) * start_.size()),
      q_(start_.size()),
      k_(start_.size()),
      v_(start_.size()),
      attention_(tokens_ * tokens_),
      scratch_(2 * start_.size()),
      spread_scratch_(start_.size() + width_)
{
    normal_source normal{shape.seed};
    normal.fill(std::span{start_});
    normal.fill(std::span{normals_});
    normalise(block(start_));

    const rows<T> matrices = block(weights_);
    sublayers_.reserve(layers_);
    for (std::size_t l = 0; l < layers_; ++l) {
        sublayers_.push_back({.wq = matrices.part(3 * l * width_, width_),
                              .wk = matrices.part((3 * l + 1) * width_, width_),
                              .wv = matrices.part((3 * l + 2) * width_, width_),
                              .q = block(q_),
                              .k = block(k_),
                              .v = block(v_),
                              .weights = {attention_.data(), tokens_, tokens_}});
    }
}

template <class T>
std::vector<probe::spread> token_panel<T>::run(double gain, switches set)
{
    weigh(weights_, normals_, gain, width_);
    std::ranges::copy(start_, stream_.begin());
    const rows<T> stream = block(stream_);
    probe::forward(stream, std::span{sublayers_}, wire<T>(set, layers_), block(scratch_));

    std::vector<probe::spread> result;
    for (std::size_t l = 0; l <= layers_; ++l) {
        result.push_back(
            probe::measure_spread(rows<const T>{stream.part(l * tokens_, tokens_)}, block(spread_scratch_)));
    }
    return result;
}

template class gradient_panel<float>;
template class gradient_panel<double>;
template class token_panel<float>;
template class token_panel<double>;

std::vector<double> unit_writes(std::size_t elements, std::size_t writes, std::uint32_t seed)
{
    normal_source normal{seed};
    std::vector<double> stream(elements), written(elements);
    normal.fill(std::span{stream});
    std::vector<double> result{dispatch::rms(stream)};
    for (std::size_t i = 0; i < writes; ++i) {
        normal.fill(std::span{written});
        dispatch::residual_add(stream, stream, written);
        result.push_back(dispatch::rms(stream));
    }
    return result;
}

std::vector<double> gains(double from, double to, double step)
{
    // `to` is one of them, although (to - from) / step is rarely a whole number in binary.
    const auto steps = static_cast<std::size_t>(std::floor((to - from) / step + 1e-6));
    std::vector<double> result;
    result.reserve(steps + 1);
    for (std::size_t i = 0; i <= steps; ++i) {
        // one rounding, on every compiler: left to itself it might fuse, or not
        result.push_back(std::fma(static_cast<double>(i), step, from));
    }
    return result;
}

}  // namespace lesson
