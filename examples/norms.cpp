// The norms of a block: zero-centred RMSNorm, RMSNorm with a gate, LayerNorm.
#include <residua/residua.hpp>

#include <iostream>
#include <vector>

int main()
{
    const std::vector<float> x{1, 2, 3, 4}, weight{0, 0.5f, 0, -0.5f}, z{-1, 0, 1, 2};
    std::vector<float> y(4);
    const auto print = [&] { std::cout << y[0] << ' ' << y[1] << ' ' << y[2] << ' ' << y[3] << '\n'; };

    residua::rms_norm(y, x, residua::zero_centered(weight), {.eps = 1e-6f});
    print();
    residua::gated_rms_norm(y, x, z, residua::no_weight, {.eps = 1e-6f, .gate = residua::norm_gate::sigmoid});
    print();
    residua::layer_norm(y, x, residua::no_weight, residua::no_bias, {.eps = 1e-5f});
    print();
}

// Prints:
// 0.365148 1.09545 1.09545 0.730297
// 0.0982035 0.365148 0.800835 1.28649
// -1.34164 -0.447212 0.447212 1.34164
