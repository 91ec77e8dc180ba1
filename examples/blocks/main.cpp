// The six columns of the lesson's table of blocks, each stacked 16 deep at random weights: how large the stream becomes,
// and what arrives of the gradient. The last column is a check: how far the gradient is from a central difference.

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "blocks.hpp"

namespace {

using blocks::matrix;
using blocks::op::dot;

struct result {
    double stream_rms, gradient_ratio, disagreement;
};

result run(blocks::design d, std::size_t count)
{
    const blocks::sizes n;
    blocks::normal_source random{7};
    std::vector<blocks::block<double>> stack;
    for (std::size_t i = 0; i < count; ++i) stack.emplace_back(d, n, count, random);

    const std::size_t rows = n.tokens * blocks::streams_of(d, n);
    matrix<double> x(rows, n.width), direction(rows, n.width), top(rows, n.width), y(rows, n.width);
    for (auto* const m : {&x, &direction, &top}) random.fill(m->view(), 1);

    // <top, stack(x + t direction)>
    const auto value = [&](double t) {
        blocks::op::residual_add(y.view(), x.view(), direction.view(), t);
        for (auto& b : stack) b.forward(y);
        return dot(top.view(), y.view());
    };
    constexpr double h = 1e-5;
    const double difference = (value(h) - value(-h)) / (2 * h);

    value(0);
    result r{};
    r.stream_rms = blocks::op::rms(y.view());
    const double size = blocks::op::rms(top.view());
    for (std::size_t i = count; i-- > 0;) stack[i].backward(top);
    r.gradient_ratio = blocks::op::rms(top.view()) / size;
    r.disagreement = std::abs(dot(top.view(), direction.view()) / difference - 1);
    return r;
}

}  // namespace

int main()
{
    std::printf("%-8s %12s %16s   %s\n", "block", "stream RMS", "gradient ratio", "what it is");
    bool right = true;
    for (const auto& d : blocks::designs) {
        const auto r = run(d.which, 16);
        std::printf("%-8s %12.4f %16.4f   %s\n", std::string{d.name}.c_str(), r.stream_rms, r.gradient_ratio,
                    std::string{d.parts}.c_str());
        if (!(r.disagreement < 1e-6)) {
            std::printf("the gradient and a central difference disagree by %.2g\n", r.disagreement);
            right = false;
        }
    }
    return right ? 0 : 1;
}

// Prints:
// block      stream RMS   gradient ratio   what it is
// 2017           0.9275           1.9120   Post-LN, ReLU
// GPT-2          1.3252           1.1864   Pre-LN, GELU, writes scaled by 1/sqrt(N)
// Llama          4.2586           6.9510   Pre-RMSNorm, SwiGLU
// Qwen3.8        2.9835           9.9555   zero-centred pre-norm, QK-norm per head, output gate, SwiGLU
// OLMo 2         5.4757          15.1900   RMSNorm of the output, QK-norm over the width, SwiGLU
// mHC            5.1900          11.5115   four streams, Pre-RMSNorm, SwiGLU
