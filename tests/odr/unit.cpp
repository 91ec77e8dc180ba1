// One of two units of a program, compiled with flags of its own: uses a good part of the library, statically and through
// dispatch, in the function ENTRY.
#include <residua/dispatch.hpp>
#include <residua/residua.hpp>

#include <vector>

double ENTRY(double a)
{
    std::vector<float> x(100, static_cast<float>(a)), y(100), w(100, 0.5f);
    residua::rms_norm(y, x, w, {.eps = 1e-6f});
    residua::dispatch::zero_centered_rms_norm(y, y, w, {.eps = 1e-6f});
    residua::gpt_oss_swiglu(y, y, x);
    residua::softmax(y, y);

    std::vector<unsigned short> halves(100, residua::bfloat16(a).bits), other(100, residua::float16(x[0]).bits);
    residua::rms_norm(residua::as_bfloat16(halves), y, residua::as_float16(other), {.eps = 1e-6f});
    y[0] = residua::bfloat16::from_bits(halves[0]) + residua::as_float16(other)[0][1];

    std::vector<double> matrix(16, a), stream(8, a), scratch(8), gradient(4, 1), hidden(4), inner(4);
    using sublayer = residua::probe::tanh_sublayer<double>;
    const residua::rows<const double> square{matrix.data(), 4, 4};
    sublayer layers[] = {{square, square, {hidden.data(), 1, 4}, {inner.data(), 1, 4}}};
    const residua::rows<double> blocks{stream.data(), 2, 4};
    const residua::rows<double> work{scratch.data(), 2, 4};
    residua::probe::magnitude sizes[2];
    residua::probe::forward(blocks, std::span<sublayer>{layers}, {.residual = true}, work);
    residua::probe::backward(residua::rows<double>{gradient.data(), 1, 4}, residua::rows<const double>{blocks},
                             std::span<sublayer>{layers}, {.residual = true, .pre_norm = true}, work,
                             std::span{sizes});
    return sizes[0].log10() + static_cast<double>(y[3]);
}
