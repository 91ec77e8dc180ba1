// The norms of a block: RMSNorm fused with the residual sum, its gate, LayerNorm, and a row that two owners share.
#include <residua/residua.hpp>

#include <cstdio>
#include <span>
#include <vector>

int main()
{
    std::vector<float> x{1, 2, 3, 4}, residual{1, 1, -1, -1}, weight{0, 0.5f, 0, -0.5f}, z{-1, 0, 1, 2}, y(4);
    const auto print = [&] {
        for (const float& e : y) std::printf(&e == &y.back() ? "%.6f\n" : "%.6f ", static_cast<double>(e));
    };

    residua::add_rms_norm(y, residual, x, residua::zero_centered(weight), {.eps = 1e-6f});
    print();
    residua::gated_rms_norm(y, x, z, residua::no_weight, {.eps = 1e-6f, .gate = residua::norm_gate::sigmoid});
    print();
    residua::layer_norm(y, x, residua::no_weight, residua::no_bias, {.eps = 1e-5f});
    print();

    const std::span all{y}, mine = all.first(1), theirs = all.last(3);
    const residua::square_sum parts[] = {residua::sum_of_squares(mine), residua::sum_of_squares(theirs)};
    residua::rms_norm_apply(mine, mine, residua::no_weight, residua::combine(parts), 4, {.eps = 1e-6f});
    print();
}

// Prints:
// 0.784464 1.765045 0.784464 0.588348
// 0.098204 0.365148 0.800835 1.286486
// -1.341635 -0.447212 0.447212 1.341635
// -1.341640 -0.447212 0.447212 1.341635
