// Residual sum and RMSNorm in one call, of the sum as it is stored and of the exact one; then a row that two owners share.
#include <residua/residua.hpp>

#include <iostream>
#include <vector>

int main()
{
    using residua::bfloat16;
    const std::vector<bfloat16> x{bfloat16(-4.0f), bfloat16(-0.238f), bfloat16(3.125f), bfloat16(0.957f)};
    const std::vector<bfloat16> before{bfloat16(-0.57f), bfloat16(-0.275f), bfloat16(-3.203f), bfloat16(-2.766f)};
    std::vector<float> y(4);
    for (const auto of : {residua::norm_of::stored, residua::norm_of::exact}) {
        auto residual = before;
        residua::add_rms_norm(y, residual, x, residua::no_weight, {.eps = 1e-6f, .norm_of = of});
        std::cout << y[0] << ' ' << y[1] << ' ' << y[2] << ' ' << y[3] << '\n';
    }

    std::vector<float> mine{1, 2}, theirs{3, 4};
    const residua::square_sum parts[] = {residua::sum_of_squares(mine), residua::sum_of_squares(theirs)};
    const auto whole = residua::combine(parts);
    residua::rms_norm_apply(mine, mine, residua::no_weight, whole, 4, {.eps = 1e-6f});
    residua::rms_norm_apply(theirs, theirs, residua::no_weight, whole, 4, {.eps = 1e-6f});
    std::cout << mine[0] << ' ' << mine[1] << ' ' << theirs[0] << ' ' << theirs[1] << '\n';
}

// Prints:
// -1.8483 -0.208884 -0.0316491 -0.734258
// -1.84938 -0.207857 -0.0316133 -0.731847
// 0.365148 0.730297 1.09545 1.46059
