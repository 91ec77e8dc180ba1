// A clamped SwiGLU in bfloat16 (DeepSeek's form), forward and backward, on one row that holds gate and up side by side.
#include <residua/residua.hpp>

#include <cstdio>
#include <vector>

int main()
{
    using residua::bfloat16;
    const std::vector<bfloat16> z{bfloat16(-1.0f), bfloat16(2.0f),   bfloat16(12.0f),  // gate
                                  bfloat16(3.0f),  bfloat16(-11.0f), bfloat16(0.5f)};  // up
    std::vector<bfloat16> y(3), dy(3, bfloat16(1.0f)), dz(6);
    residua::clamped_swiglu(y, residua::halves(z), {.limit = 10});
    residua::clamped_swiglu_vjp(residua::halves(dz), residua::halves(z), dy, {.limit = 10});
    const auto shown = [](float x) { return static_cast<double>(x); };
    for (std::size_t j = 0; j < 3; ++j) std::printf("%g %g %g\n", shown(y[j]), shown(dz[j]), shown(dz[3 + j]));
}

// Prints:
// -0.808594 0.216797 -0.269531
// -17.625 -10.9375 0
// 5 0 10
