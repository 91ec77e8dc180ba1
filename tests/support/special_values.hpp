// The numbers on which an implementation of floating point goes wrong, and random ones. Made of bits and integer
// arithmetic alone, so that they are the same wherever they are made.
#ifndef RESIDUA_TESTS_SPECIAL_VALUES_HPP
#define RESIDUA_TESTS_SPECIAL_VALUES_HPP

#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace residua::test {

/// The format of a type: how many bits its numbers have, and its special values, without their signs.
template <class T>
struct layout;

template <>
struct layout<float> {
    using bits = std::uint32_t;
    static constexpr int precision = 24;  // with the leading one
    static constexpr int exponent_bits = 8;
    static constexpr int least_exponent = -149;  // of the smallest subnormal number
    static constexpr bits magnitudes[] = {
        0x00000000, 0x00000001, 0x00000002, 0x00000003,  // zero, the smallest subnormal numbers
        0x00400000, 0x007fffff,                          // half the smallest normal number, the largest subnormal
        0x00800000, 0x00800001, 0x00ffffff, 0x01000000,  // the smallest normal number to twice that
        0x1f800000, 0x20000000,                          // 2^-64 and 2^-63: whose squares are subnormal, and normal
        0x33000000, 0x33000001, 0x33800000, 0x38800000,  // 2^-25 to 2^-14: where float16 ends
        0x3e800000, 0x3effffff, 0x3f000000, 0x3f000001,  // 1/4, 1/2 and its neighbours
        0x3f7fffff, 0x3f800000, 0x3f800001, 0x3f800002,  // 1 and its neighbours
        0x3f808000, 0x3f818000, 0x3f801000, 0x3f803000,  // halves of a last place of bfloat16 and float16
        0x3fc00000, 0x40000000, 0x40200000, 0x40400000,  // 3/2, 2, 5/2, 3
        0x40490fdb, 0x4a7fffff, 0x4a800001,              // pi, 2^22 and its neighbours
        0x4affffff, 0x4b000000, 0x4b000001,              // 2^23: from here on there is no fraction
        0x4b7fffff, 0x4b800000, 0x4b800001,              // 2^24: from here on not every integer
        0x477fe000, 0x477ff000, 0x5f000000, 0x5f800000,  // the end of float16; 2^63 and 2^64
        0x7e800000, 0x7f000000, 0x7f7f8000, 0x7f7fffff,  // up to the largest
        0x7f800000, 0x7fc00000, 0x7f800001, 0x7fffffff,  // infinity, NaN: quiet, signalling, all ones
    };
};

template <>
struct layout<double> {
    using bits = std::uint64_t;
    static constexpr int precision = 53;
    static constexpr int exponent_bits = 11;
    static constexpr int least_exponent = -1074;
    static constexpr bits magnitudes[] = {
        0x0000000000000000, 0x0000000000000001, 0x0000000000000002, 0x0000000000000003,
        0x0008000000000000, 0x000fffffffffffff,                      // subnormal numbers
        0x0010000000000000, 0x0010000000000001, 0x001fffffffffffff,  // the smallest normal number to twice that
        0x1ff0000000000000, 0x2000000000000000,                      // 2^-512, 2^-511
        0x3690000000000000, 0x36a0000000000000, 0x3810000000000000,  // 2^-150, 2^-149, 2^-126: where float ends
        0x380fffffe0000000, 0x380ffffff0000000, 0x36a8000000000000, 0x3ca0000000000000,
        0x3cb0000000000000,  // 2^-53, 2^-52
        0x3fd0000000000000, 0x3fdfffffffffffff, 0x3fe0000000000000, 0x3fe0000000000001,
        0x3fefffffffffffff, 0x3ff0000000000000, 0x3ff0000000000001, 0x3ff0000000000002,
        0x3ff0000010000000, 0x3ff0000030000000, 0x3ff0000010000001,  // halves of a last place of float
        0x3ff8000000000000, 0x4000000000000000, 0x4004000000000000, 0x4008000000000000,
        0x400921fb54442d18, 0x4160000000000000, 0x4170000000000000,  // pi, 2^23, 2^24
        0x432fffffffffffff, 0x4330000000000000, 0x4330000000000001,  // 2^52: from here on there is no fraction
        0x431fffffffffffff, 0x4320000000000001, 0x433fffffffffffff, 0x4340000000000000,
        0x4340000000000001, 0x47efffffe0000000, 0x47efffffefffffff, 0x47effffff0000000,
        0x47f0000000000000,                                          // the end of float
        0x5ff0000000000000, 0x7fe0000000000000, 0x7fefffffffffffff,  // 2^512, up to the largest
        0x7ff0000000000000, 0x7ff8000000000000, 0x7ff0000000000001, 0x7fffffffffffffff,
    };
};

template <class T>
using bits_type = typename layout<T>::bits;

template <class T>
constexpr bits_type<T> sign_bit = bits_type<T>{1} << (8 * sizeof(T) - 1);

/// How many special values there are, and the i-th: first all positive ones, then all negative.
template <class T>
constexpr std::size_t special_count = 2 * std::size(layout<T>::magnitudes);

template <class T>
constexpr bits_type<T> special_bits(std::size_t i)
{
    constexpr std::size_t half = special_count<T> / 2;
    return layout<T>::magnitudes[i % half] | (i < half ? bits_type<T>{0} : sign_bit<T>);
}

/// Random 64-bit integers, one after the other (Steele, Lea and Flood 2014: SplitMix64).
class random_bits {
public:
    explicit constexpr random_bits(std::uint64_t seed) : state_{seed} {}

    constexpr std::uint64_t operator()()
    {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    /// From 0 to n - 1.
    constexpr std::uint64_t below(std::uint64_t n) { return (*this)() % n; }

    /// The bits of any number, NaN and infinity included.
    template <class T>
    constexpr bits_type<T> any()
    {
        return static_cast<bits_type<T>>((*this)() >> (64 - 8 * sizeof(T)));
    }
    /// The bits of a number of either sign from 2^least to below 2^(most + 1); both are exponents of normal numbers.
    template <class T>
    constexpr bits_type<T> between_powers(int least, int most)
    {
        constexpr int fraction = layout<T>::precision - 1;
        constexpr int bias = (1 << (layout<T>::exponent_bits - 1)) - 1;
        const auto span = static_cast<std::uint64_t>(most - least + 1);
        const auto exponent = static_cast<bits_type<T>>(static_cast<std::uint64_t>(least + bias) + below(span));
        const bits_type<T> rest = any<T>();
        return (exponent << fraction) | (rest & (sign_bit<T> | ((bits_type<T>{1} << fraction) - 1)));
    }

private:
    std::uint64_t state_;
};

}  // namespace residua::test

#endif
