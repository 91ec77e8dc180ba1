// mHC: a token with four residual streams, what a sublayer reads from them, and the streams after it has written back.
#include <residua/residua.hpp>

#include <cstdio>
#include <vector>

int main()
{
    std::vector<float> x{1, 2, -1, 0, 3, 1, 0, -2}, fn(24 * 8), a{0.1f, 0.1f, 1}, b(24, 0.5f);
    for (int i = 0; i < 24 * 8; ++i) fn[static_cast<std::size_t>(i)] = static_cast<float>(i % 7 - 3) / 4;
    std::vector<float> f(8), m(24), pre(4), post(4), comb(16), y(2);
    residua::rms_norm(f, x, residua::no_weight, {.eps = 1e-6f});  // the four streams as one row
    residua::matvec(m, residua::rows{fn.data(), 24, 8}, f);
    residua::mhc_coefficients(pre, post, comb, m, a, b, {.eps = 1e-6});
    const residua::rows streams{x.data(), 4, 2};
    residua::mhc_read(y, streams, pre);
    residua::tanh(y, y);  // the sublayer
    residua::mhc_write(streams, streams, y, post, comb);
    for (const float value : y) std::printf("%.9g\n", static_cast<double>(value));
    for (const float value : x) std::printf("%.9g\n", static_cast<double>(value));
}

// Prints:
// 0.957836807
// 0.6437639
// 2.6871233
// 1.92342889
// 1.90600824
// 1.38306284
// 1.15414059
// -0.0339815021
// 1.99227905
// 0.912951589
