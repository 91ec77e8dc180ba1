// The first program: one RMSNorm and one SwiGLU, with the instruction set of this unit's compiler flags.
#include <residua/residua.hpp>

#include <cstdio>
#include <vector>

int main()
{
    std::vector<float> x{1, 2, 3, 4}, weight{1, 1, 1, 1}, gate{-1, 0, 1, 2}, y(4);
    residua::rms_norm(y, x, weight, {.eps = 1e-6f});
    residua::swiglu(y, gate, y);
    for (const float value : y) std::printf("%.9g\n", static_cast<double>(value));
}

// Prints:
// -0.0982035175
// 0
// 0.800834537
// 2.57297254
