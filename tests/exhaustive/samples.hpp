// The types that floats do not stand for: all numbers of 16 bits, and samples of double.
#ifndef RESIDUA_TESTS_EXHAUSTIVE_SAMPLES_HPP
#define RESIDUA_TESTS_EXHAUSTIVE_SAMPLES_HPP

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace exhaustive {

struct sampled {
    std::string name;
    std::size_t inputs;
    double ulp;
    std::string at;
    double bound;
};

/// A number below one for every 32 bits (the mixing step of MurmurHash3, Appleby).
inline std::uint32_t mixed(std::uint32_t x)
{
    x = (x ^ (x >> 16)) * 0x85ebca6bU;
    x = (x ^ (x >> 13)) * 0xc2b2ae35U;
    return x ^ (x >> 16);
}
/// A second operand: any sign and fraction; mostly near one, at times of any size.
inline float second_operand(std::uint32_t bits)
{
    const std::uint32_t m = mixed(bits);
    const std::uint32_t n = mixed(bits ^ 0x9e3779b9U);
    const std::uint32_t exponent = n % 8 == 0 ? 1 + (n >> 3) % 254 : 124 + (n >> 3) % 7;
    return std::bit_cast<float>((m & 0x807fffffU) | (exponent << 23));
}

/// Functions of one element over every bfloat16 and every float16; gated activations over every gate, with eight ups each.
std::vector<sampled> over_all_halves();

/// Functions of double against MPFR: `count` numbers in each of their regions, and every power of two; of a gated
/// activation each with another up.
std::vector<sampled> over_doubles(std::size_t count, unsigned threads);

}  // namespace exhaustive

#endif
