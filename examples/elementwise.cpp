// Functions of each element and softmax, in 16 bits, with a gradient; far out in the tail where exp(x) alone would be 0.
#include <residua/residua.hpp>

#include <iostream>
#include <vector>

int main()
{
    const std::vector<float> x{-90, -1, 0, 2};
    std::vector<float> y(4), dx(4);
    residua::silu(y, x);
    residua::silu_vjp(dx, x, std::vector<float>(4, 1.0f));
    for (std::size_t j = 0; j < 4; ++j) std::cout << y[j] << ' ' << dx[j] << '\n';

    std::vector<residua::float16> p(4);
    residua::softmax(p, x);
    for (const float e : p) std::cout << e << '\n';
}

// Prints:
// -7.37461e-38 -7.29267e-38
// -0.268941 0.0723295
// 0 0.5
// 1.76159 1.09078
// 0
// 0.0420227
// 0.114197
// 0.84375
