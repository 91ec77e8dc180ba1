// The residual stream: a sublayer's output added with a scale for each channel, and the gradients of both.
#include <residua/residua.hpp>

#include <iostream>
#include <vector>

int main()
{
    const std::vector<float> x{1, 2, 3}, f{0.5f, -1, 2}, scale{1, 0.5f, 0.25f}, dy{1, 2, 4};
    std::vector<float> y(3), dx(3), df(3), ds(3);
    residua::residual_add(y, x, f, residua::per_channel(scale));
    residua::residual_add_vjp(dx, df, ds, f, dy, residua::per_channel(scale));
    for (std::size_t j = 0; j < 3; ++j) std::cout << y[j] << ' ' << dx[j] << ' ' << df[j] << ' ' << ds[j] << '\n';
}

// Prints:
// 1.5 1 1 0.5
// 1.5 2 1 -2
// 3.5 4 1 8
