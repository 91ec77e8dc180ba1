// The contract of the lanes (at the top of simd/lanes.inc.hpp), operation by operation, in this unit's backend: against
// the definitions of this file, which are in exact integer arithmetic, and against the scalar backend.

#include <csignal>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include <residua/residua.hpp>

// The scalar backend once more, in a namespace of its own.
#define RESIDUA_PASS residua::oracle
#define RESIDUA_PASS_BACKEND RESIDUA_BACKEND_SCALAR
#include <residua/kernels/all.inc.hpp>
#undef RESIDUA_PASS_BACKEND
#undef RESIDUA_PASS

#include "support/half_format.hpp"
#include "support/special_values.hpp"

namespace {

using residua::bfloat16;
using residua::float16;
using residua::test::bits_type;
using residua::test::half_format;
using residua::test::layout;
using residua::test::random_bits;
using residua::test::sign_bit;
using residua::test::special_bits;
using residua::test::special_count;

namespace tested = residua::pass;
namespace oracle = residua::oracle;

// --- exact arithmetic ------------------------------------------------------------------------------------------

__extension__ typedef unsigned __int128 uint128;

/// (-1)^negative * m * 2^e. Where bits were lost below, the lowest bit of m is set: it then lies far below the place
/// where a result is rounded, so that a half stays a half and what is not one never becomes one.
struct exact {
    bool negative = false;
    uint128 m = 0;
    int e = 0;
};

int width(uint128 m)
{
    const auto high = static_cast<std::uint64_t>(m >> 64);
    return high != 0 ? 64 + static_cast<int>(std::bit_width(high))
                     : static_cast<int>(std::bit_width(static_cast<std::uint64_t>(m)));
}

uint128 shifted_right(uint128 m, int n)
{
    if (n == 0) return m;
    if (n > 127) return m != 0;
    const bool lost = (m & ((uint128{1} << n) - 1)) != 0;
    return (m >> n) | static_cast<uint128>(lost);
}

/// The same number with its leading bit at place 124.
exact normalised(exact x)
{
    const int up = 125 - width(x.m);
    return {x.negative, x.m << up, x.e - up};
}

template <class T>
bits_type<T> bits(T x)
{
    return std::bit_cast<bits_type<T>>(x);
}
template <class T>
T number(bits_type<T> u)
{
    return std::bit_cast<T>(u);
}
template <class T>
bool is_negative(T x)
{
    return (bits(x) & sign_bit<T>) != 0;
}

/// A finite number.
template <class T>
exact value(T x)
{
    constexpr int fraction_bits = layout<T>::precision - 1;
    const bits_type<T> u = bits(x) & ~sign_bit<T>;
    const int field = static_cast<int>(u >> fraction_bits);
    const bits_type<T> fraction = u & ((bits_type<T>{1} << fraction_bits) - 1);
    if (field == 0) return {is_negative(x), fraction, layout<T>::least_exponent};
    return {is_negative(x), fraction | (bits_type<T>{1} << fraction_bits), field - 1 + layout<T>::least_exponent};
}

/// To nearest, halves to even; subnormal below, infinity beyond the largest number.
template <class T>
T rounded(exact x)
{
    constexpr int precision = layout<T>::precision;
    const bits_type<T> sign = x.negative ? sign_bit<T> : 0;
    if (x.m == 0) return number<T>(sign);
    const int drop = std::max(width(x.m) - precision, layout<T>::least_exponent - x.e);
    uint128 kept = 0;
    if (drop > 126) {
        kept = 0;  // below half of the smallest number: m has at most 126 bits
    } else if (drop > 0) {
        kept = x.m >> drop;
        const uint128 rest = x.m - (kept << drop);
        const uint128 half = uint128{1} << (drop - 1);
        if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
    } else {
        kept = x.m << -drop;
    }
    const int field = x.e + drop - layout<T>::least_exponent;
    constexpr int infinite = (1 << layout<T>::exponent_bits) - 1;
    constexpr bits_type<T> infinity = static_cast<bits_type<T>>(infinite) << (precision - 1);
    if (field >= infinite) return number<T>(sign | infinity);
    // the leading bit of a normal number adds one to the field, a carry of the rounding another
    const auto u = (static_cast<bits_type<T>>(field) << (precision - 1)) + static_cast<bits_type<T>>(kept);
    return number<T>(sign | std::min(u, infinity));
}

/// a + b for numbers that are not zero.
exact sum_of(exact a, exact b)
{
    a = normalised(a);
    b = normalised(b);
    if (a.e < b.e) std::swap(a, b);
    b.m = shifted_right(b.m, a.e - b.e);
    if (a.negative == b.negative) return {a.negative, a.m + b.m, a.e};
    if (a.m >= b.m) return {a.negative, a.m - b.m, a.e};
    return {b.negative, b.m - a.m, a.e};
}

// --- the definitions -------------------------------------------------------------------------------------------

template <class T>
constexpr T nan_of = std::numeric_limits<T>::quiet_NaN();
template <class T>
constexpr T infinity_of = std::numeric_limits<T>::infinity();

template <class T>
T with_sign(T x, bool negative)
{
    return number<T>((bits(x) & ~sign_bit<T>) | (negative ? sign_bit<T> : 0));
}

template <class T>
T defined_fma(T a, T b, T c)
{
    if (std::isnan(a) || std::isnan(b) || std::isnan(c)) return nan_of<T>;
    const bool negative = is_negative(a) != is_negative(b);
    if (std::isinf(a) || std::isinf(b)) {
        if (a == 0 || b == 0) return nan_of<T>;
        if (std::isinf(c) && is_negative(c) != negative) return nan_of<T>;
        return with_sign(infinity_of<T>, negative);
    }
    if (std::isinf(c)) return c;
    const exact x = value(a);
    const exact y = value(b);
    const exact product{negative, x.m * y.m, x.e + y.e};
    if (product.m == 0) return c == 0 ? with_sign(T{0}, negative && is_negative(c)) : c;
    if (c == 0) return rounded<T>(product);
    const exact sum = sum_of(product, value(c));
    return sum.m == 0 ? T{0} : rounded<T>(sum);
}

template <class T>
T defined_product(T a, T b)
{
    return defined_fma(a, b, with_sign(T{0}, is_negative(a) != is_negative(b)));
}

template <class T>
T defined_sum(T a, T b)
{
    return defined_fma(a, T{1}, b);
}

template <class T>
T defined_difference(T a, T b)
{
    return std::isnan(b) ? b : defined_sum(a, with_sign(b, !is_negative(b)));
}

template <class T>
T defined_quotient(T a, T b)
{
    if (std::isnan(a) || std::isnan(b)) return nan_of<T>;
    const bool negative = is_negative(a) != is_negative(b);
    if (std::isinf(a)) return std::isinf(b) ? nan_of<T> : with_sign(a, negative);
    if (b == 0) return a == 0 ? nan_of<T> : with_sign(infinity_of<T>, negative);
    if (a == 0 || std::isinf(b)) return with_sign(T{0}, negative);
    const exact x = normalised(value(a));
    const exact y = value(b);
    const uint128 quotient = x.m / y.m;  // at least 72 bits
    const bool more = quotient * y.m != x.m;
    return rounded<T>({negative, quotient << 1 | static_cast<uint128>(more), x.e - y.e - 1});
}

template <class T>
T defined_sqrt(T a)
{
    if (std::isnan(a) || a == 0) return a;
    if (is_negative(a)) return nan_of<T>;
    if (std::isinf(a)) return a;
    exact x = normalised(value(a));
    if (x.e % 2 != 0) x = {false, x.m << 1, x.e - 1};
    uint128 root = 0;
    for (uint128 bit = uint128{1} << 62; bit != 0; bit >>= 1) {
        if ((root | bit) * (root | bit) <= x.m) root |= bit;
    }
    const bool more = root * root != x.m;
    return rounded<T>({false, root << 1 | static_cast<uint128>(more), x.e / 2 - 1});
}

template <class T>
T defined_min(T a, T b)
{
    return a < b ? a : b;
}
template <class T>
T defined_max(T a, T b)
{
    return b < a ? a : b;
}

/// Lanes folded in halves: 16 to 8 to 4 to 2 to 1, the lower half first.
template <class T, class Join>
T folded(std::vector<T> lane, Join join)
{
    while (lane.size() > 1) {
        const std::size_t half = lane.size() / 2;
        for (std::size_t i = 0; i < half; ++i) lane[i] = join(lane[i], lane[i + half]);
        lane.resize(half);
    }
    return lane[0];
}

// --- comparing -------------------------------------------------------------------------------------------------

template <class T>
struct vectors;
template <>
struct vectors<float> {
    using ours = tested::f32x16;
    using theirs = oracle::f32x16;
};
template <>
struct vectors<double> {
    using ours = tested::f64x8;
    using theirs = oracle::f64x8;
};
template <>
struct vectors<std::uint32_t> {
    using ours = tested::bits_of<tested::f32x16>;
    using theirs = oracle::bits_of<oracle::f32x16>;
};
template <>
struct vectors<std::uint64_t> {
    using ours = tested::bits_of<tested::f64x8>;
    using theirs = oracle::bits_of<oracle::f64x8>;
};

template <class T>
std::string shown(T x)
{
    char text[80];
    if constexpr (std::is_floating_point_v<T>) {
        std::snprintf(text, sizeof text, "%.17g [%0*llx]", static_cast<double>(x), static_cast<int>(2 * sizeof(T)),
                      static_cast<unsigned long long>(bits(x)));
    } else {
        std::snprintf(text, sizeof text, "[%0*llx]", static_cast<int>(2 * sizeof(T)),
                      static_cast<unsigned long long>(x));
    }
    return text;
}

/// Which NaN a result is: the contract leaves it open, but for the operations that are of the bits alone.
enum class nan_is { any, the_same };

template <class T>
bool same(T a, T b, nan_is nan)
{
    if constexpr (std::is_floating_point_v<T>) {
        if (nan == nan_is::any && std::isnan(a) && std::isnan(b)) return true;
        return bits(a) == bits(b);
    } else {
        return a == b;
    }
}

/// The operands of an operation: for each of its places a list.
template <class T, std::size_t N>
struct operands {
    std::array<std::vector<T>, N> list;

    std::size_t count() const { return list[0].size(); }
    void add(std::array<T, N> x)
    {
        for (std::size_t k = 0; k < N; ++k) list[k].push_back(x[k]);
    }
};

template <class V>
std::vector<typename V::value_type> lanes_of(V v)
{
    std::vector<typename V::value_type> lane(V::size);
    v.store(lane.data());
    return lane;
}

/// op(p, ...) for one operand in each place.
template <class T, std::size_t N, class Op>
auto apply_at(const Op& op, const std::array<std::vector<T>, N>& list, std::size_t at)
{
    return std::apply([&](const auto&... x) { return op(x.data() + at...); }, list);
}

/// op of the vectors that begin at `at`.
template <class V, class Op, class T, std::size_t N>
auto vector_at(const std::array<std::vector<T>, N>& list, std::size_t at)
{
    return apply_at([](const auto*... p) { return Op{}(V::load(p)...); }, list, at);
}

/// op of one vector after the other, from `at` on.
template <class V, class Op, class R, class T, std::size_t N>
void evaluate(const std::array<std::vector<T>, N>& list, std::size_t at, std::vector<R>& result)
{
    for (std::size_t i = 0; i + V::size <= result.size(); i += V::size) {
        vector_at<V, Op>(list, at + i).store(result.data() + i);
    }
}

template <class V, class Op, class T, std::size_t N>
using result_of =
    typename decltype(vector_at<V, Op>(std::declval<const std::array<std::vector<T>, N>&>(), 0))::value_type;

template <class R, class T, std::size_t N>
struct signature;
template <class R, class T>
struct signature<R, T, 1> {
    using type = R(T);
};
template <class R, class T>
struct signature<R, T, 2> {
    using type = R(T, T);
};
template <class R, class T>
struct signature<R, T, 3> {
    using type = R(T, T, T);
};

constexpr int most_failures = 3;

/// An operation on `size` lanes in the two backends, and its definition.
template <class R, class T, std::size_t N>
struct operation {
    using evaluation = void(const std::array<std::vector<T>, N>&, std::size_t, std::vector<R>&);

    const char* name;
    std::size_t size;
    evaluation* ours;
    evaluation* theirs;
    typename signature<R, T, N>::type* definition;
};

template <class R, class T, std::size_t N>
void expect_as_defined(const operation<R, T, N>& op, const operands<T, N>& x, nan_is nan, std::size_t turns)
{
    const std::size_t count = x.count();
    std::vector<R> defined(count);
    for (std::size_t i = 0; i < count; ++i) {
        defined[i] = apply_at([&](const auto*... p) { return op.definition(*p...); }, x.list, i);
    }
    auto line = x.list;  // a ring, unrolled far enough for the last vector
    for (auto& p : line) {
        for (std::size_t i = 0; i < 2 * op.size; ++i) p.push_back(p[i]);
    }
    std::vector<R> got(count + op.size);
    std::vector<R> scalar(count + op.size);
    int failures = 0;
    for (std::size_t turn = 0; turn < turns; ++turn) {
        op.ours(line, turn, got);
        op.theirs(line, turn, scalar);
        for (std::size_t i = 0; i < count; ++i) {
            const R expected = defined[(turn + i) % count];
            if (same(got[i], expected, nan) && same(scalar[i], expected, nan)) continue;
            std::string of;
            for (const auto& p : line) of += ' ' + shown(p[turn + i]);
            ADD_FAILURE() << op.name << " of" << of << " in lane " << i % op.size << " is " << shown(got[i])
                          << ", by the scalar backend " << shown(scalar[i]) << ", by definition "
                          << shown(expected);
            if (++failures == most_failures) return;
        }
    }
}

/// States that an operation gives in every lane what the definition says, and what the scalar backend gives, the NaN
/// aside; each operand in its turn comes to lie in every lane, or in the first `turns` of them.
template <class Vectors, class T, std::size_t N, class Op, class R = result_of<typename Vectors::ours, Op, T, N>>
void expect_defined(const char* name, const operands<T, N>& x, Op,
                    std::type_identity_t<typename signature<R, T, N>::type*> definition, nan_is nan = nan_is::any,
                    std::size_t turns = Vectors::ours::size)
{
    using V = typename Vectors::ours;
    using W = typename Vectors::theirs;
    expect_as_defined<R, T, N>({name, V::size, evaluate<V, Op, R, T, N>, evaluate<W, Op, R, T, N>, definition}, x,
                               nan, turns);
}

template <class T>
constexpr int bias = (1 << (layout<T>::exponent_bits - 1)) - 1;

template <class T>
std::vector<T> specials()
{
    std::vector<T> list;
    for (std::size_t i = 0; i < special_count<T>; ++i) list.push_back(number<T>(special_bits<T>(i)));
    return list;
}

template <class T>
T any_number(random_bits& random)
{
    return number<T>(random.any<T>());
}
template <class T>
T between_powers(random_bits& random, int least, int most)
{
    return number<T>(random.between_powers<T>(least, most));
}
/// A few last places away.
template <class T>
T nearby(random_bits& random, T x)
{
    return number<T>(static_cast<bits_type<T>>(bits(x) + random.below(7) - 3));
}

template <class T>
operands<T, 1> single_operands()
{
    operands<T, 1> x;
    for (const T a : specials<T>()) x.add({a});
    random_bits random{1};
    for (int i = 0; i < 4000; ++i) {
        x.add({any_number<T>(random)});
        x.add({between_powers<T>(random, -2, layout<T>::precision + 1)});
    }
    return x;
}

template <class T>
operands<T, 2> pairs_of_operands()
{
    operands<T, 2> x;
    const auto list = specials<T>();
    for (const T a : list) {
        for (const T b : list) x.add({a, b});
    }
    random_bits random{2};
    for (int i = 0; i < 2000; ++i) {
        x.add({any_number<T>(random), any_number<T>(random)});
        x.add({between_powers<T>(random, -9, 9), between_powers<T>(random, -9, 9)});
        const T a = between_powers<T>(random, -1, 1);
        x.add({a, -nearby(random, a)});
        // products, quotients, sums about the least and the largest numbers
        const int half = bias<T> / 2;
        const int reach = layout<T>::precision;
        x.add(
            {between_powers<T>(random, -half - reach, -half + 2), between_powers<T>(random, -half - 2, -half + 2)});
        x.add({between_powers<T>(random, -half - reach, -half + 2), between_powers<T>(random, half - 2, half + 2)});
        x.add({between_powers<T>(random, half - 1, half + 1), between_powers<T>(random, half - 1, half + 1)});
        x.add({between_powers<T>(random, bias<T> - 2, bias<T>), between_powers<T>(random, bias<T> - 9, bias<T>)});
    }
    return x;
}

template <class T>
operands<T, 3> random_triples()
{
    operands<T, 3> x;
    random_bits random{3};
    for (int i = 0; i < 2000; ++i) {
        x.add({any_number<T>(random), any_number<T>(random), any_number<T>(random)});
        const T a = between_powers<T>(random, -3, 3);
        const T b = between_powers<T>(random, -3, 3);
        x.add({a, b, between_powers<T>(random, -9, 9)});
        x.add({a, b, -nearby(random, defined_product(a, b))});
        // c far below the product: what remains of it decides a half
        const T few = number<T>(bits(a) & ~((bits_type<T>{1} << (layout<T>::precision / 2)) - 1));
        const T bits_more = number<T>(bits(b) & ~((bits_type<T>{1} << (layout<T>::precision / 2 - 1)) - 1));
        x.add({few, bits_more, between_powers<T>(random, -3 * layout<T>::precision, -layout<T>::precision)});
        // about the least numbers
        const int half = bias<T> / 2;
        const T small = between_powers<T>(random, -half - layout<T>::precision, -half + 2);
        x.add({small, between_powers<T>(random, -half - 2, -half + 2),
               number<T>(static_cast<bits_type<T>>(random.below(8)))});
    }
    return x;
}

/// Triples for which a * b + c depends on whether the product is rounded.
template <class T>
operands<T, 3> triples_that_show_fusing()
{
    operands<T, 3> x;
    random_bits random{4};
    while (x.count() < 1000) {
        const T a = between_powers<T>(random, 0, 0);
        const T b = between_powers<T>(random, 0, 0);
        const T product = defined_product(a, b);
        const T c = x.count() % 2 == 0 ? -product : -nearby(random, product);
        if (defined_fma(a, b, c) != defined_sum(product, c)) x.add({a, b, c});
    }
    return x;
}

template <class V>
V one_where(const auto& mask, V)
{
    return select(mask, V::broadcast(1), V::broadcast(0));
}

auto is_one(auto v) { return v == decltype(v)::broadcast(1); }

// --- float and double ------------------------------------------------------------------------------------------

template <class T>
class Lanes : public ::testing::Test {
protected:
    template <std::size_t N, class... Rest>
    static void expect(const char* name, const operands<T, N>& x, Rest... rest)
    {
        expect_defined<vectors<T>>(name, x, rest...);
    }
};

struct type_names {
    template <class T>
    static std::string GetName(int)
    {
        if constexpr (std::is_same_v<T, float>) return "f32x16";
        if constexpr (std::is_same_v<T, double>) return "f64x8";
        if constexpr (std::is_same_v<T, std::uint32_t>) return "u32x16";
        return "u64x8";
    }
};

using number_types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Lanes, number_types, type_names);

TYPED_TEST(Lanes, HaveFiveHundredAndTwelveBits)
{
    using V = typename vectors<TypeParam>::ours;
    EXPECT_EQ(V::size * sizeof(TypeParam), 64U);
    EXPECT_EQ(sizeof(V), 64U);
}

TYPED_TEST(Lanes, BroadcastFillsEveryLane)
{
    this->expect(
        "broadcast", single_operands<TypeParam>(), [](auto a) { return a; }, [](auto a) { return a; },
        nan_is::the_same);
    for (const TypeParam x : specials<TypeParam>()) {
        for (const TypeParam lane : lanes_of(vectors<TypeParam>::ours::broadcast(x))) {
            EXPECT_EQ(bits(lane), bits(x)) << "broadcast of " << shown(x);
        }
    }
}

TYPED_TEST(Lanes, SumsAreRoundedOnce)
{
    using T = TypeParam;
    const auto pairs = pairs_of_operands<T>();
    this->expect("a + b", pairs, [](auto a, auto b) { return a + b; }, defined_sum<T>);
    this->expect("a - b", pairs, [](auto a, auto b) { return a - b; }, defined_difference<T>);
}

TYPED_TEST(Lanes, ProductsAreRoundedOnce)
{
    this->expect(
        "a * b", pairs_of_operands<TypeParam>(), [](auto a, auto b) { return a * b; }, defined_product<TypeParam>);
}

TYPED_TEST(Lanes, QuotientsAreRoundedOnce)
{
    this->expect(
        "a / b", pairs_of_operands<TypeParam>(), [](auto a, auto b) { return a / b; }, defined_quotient<TypeParam>);
}

TYPED_TEST(Lanes, SquareRootsAreRoundedOnce)
{
    this->expect("sqrt", single_operands<TypeParam>(), [](auto a) { return sqrt(a); }, defined_sqrt<TypeParam>);
    random_bits random{5};
    operands<TypeParam, 1> squares;
    for (int i = 0; i < 4000; ++i) {
        const auto root = between_powers<TypeParam>(random, -20, 20);
        squares.add({nearby(random, defined_product(root, root))});
    }
    this->expect("sqrt", squares, [](auto a) { return sqrt(a); }, defined_sqrt<TypeParam>);
}

TYPED_TEST(Lanes, FusedMultiplyAddIsRoundedOnce)
{
    using T = TypeParam;
    const auto op = [](auto a, auto b, auto c) { return fma(a, b, c); };
    this->expect("fma", random_triples<T>(), op, defined_fma<T>);
    this->expect("fma", triples_that_show_fusing<T>(), op, defined_fma<T>);
    operands<T, 3> triples;
    const auto list = specials<T>();
    for (const T a : list) {
        for (const T b : list) {
            // the sign of a factor only changes that of the product
            if (!is_negative(a) || &b == &list.front()) {
                for (const T c : list) triples.add({a, b, c});
            }
        }
    }
    this->expect("fma", triples, op, defined_fma<T>, nan_is::any, 1U);
}

TYPED_TEST(Lanes, ProductsAreNotFusedWithWhatFollows)
{
    using T = TypeParam;
    const auto x = triples_that_show_fusing<T>();
    this->expect(
        "a * b + c", x, [](auto a, auto b, auto c) { return a * b + c; },
        [](T a, T b, T c) { return defined_sum(defined_product(a, b), c); });
    this->expect(
        "c + a * b", x, [](auto a, auto b, auto c) { return c + a * b; },
        [](T a, T b, T c) { return defined_sum(c, defined_product(a, b)); });
    this->expect(
        "a * b - -c", x, [](auto a, auto b, auto c) { return a * b - (-c); },
        [](T a, T b, T c) { return defined_difference(defined_product(a, b), -c); });
    this->expect(
        "-c - a * b", x, [](auto a, auto b, auto c) { return -c - a * b; },
        [](T a, T b, T c) { return defined_difference(-c, defined_product(a, b)); });
    this->expect(
        "-(a * b) - c", x, [](auto a, auto b, auto c) { return -(a * b) - c; },
        [](T a, T b, T c) { return defined_difference(-defined_product(a, b), c); });
    this->expect(
        "a * b - b * c", x, [](auto a, auto b, auto c) { return a * b - b * c; },
        [](T a, T b, T c) { return defined_difference(defined_product(a, b), defined_product(b, c)); });
}

TYPED_TEST(Lanes, NegationAndAbsAreOfTheSignBit)
{
    using T = TypeParam;
    const auto x = single_operands<T>();
    this->expect(
        "-a", x, [](auto a) { return -a; }, [](T a) { return with_sign(a, !is_negative(a)); }, nan_is::the_same);
    this->expect(
        "abs", x, [](auto a) { return abs(a); }, [](T a) { return with_sign(a, false); }, nan_is::the_same);
    this->expect(
        "copysign", pairs_of_operands<T>(), [](auto a, auto b) { return copysign(a, b); },
        [](T a, T b) { return with_sign(a, is_negative(b)); }, nan_is::the_same);
}

TYPED_TEST(Lanes, MinAndMaxGiveTheSecondWhenNeitherIsLess)
{
    using T = TypeParam;
    const auto x = pairs_of_operands<T>();
    this->expect("min", x, [](auto a, auto b) { return min(a, b); }, defined_min<T>);
    this->expect("max", x, [](auto a, auto b) { return max(a, b); }, defined_max<T>);
}

template <class V>
V zero(V)
{
    return V::broadcast(0);
}
/// One that the compiler does not know.
template <class T>
T any_zero()
{
    volatile T number = 0;
    return number;
}

// (of which Clang makes an instruction of AArch64's to which the two zeros are not equal, in a definition too)
TYPED_TEST(Lanes, MinAndMaxOfAZeroThatTheCompilerKnowsAreTheSame)
{
    using T = TypeParam;
    const auto x = single_operands<T>();
    this->expect(
        "min(0, a)", x, [](auto a) { return min(zero(a), a); }, [](T a) { return defined_min(any_zero<T>(), a); });
    this->expect(
        "min(a, 0)", x, [](auto a) { return min(a, zero(a)); }, [](T a) { return defined_min(a, any_zero<T>()); });
    this->expect(
        "max(0, a)", x, [](auto a) { return max(zero(a), a); }, [](T a) { return defined_max(any_zero<T>(), a); });
    this->expect(
        "max(a, 0)", x, [](auto a) { return max(a, zero(a)); }, [](T a) { return defined_max(a, any_zero<T>()); });
}

TYPED_TEST(Lanes, RoundGoesToTheNearestIntegerHalvesToEven)
{
    using T = TypeParam;
    auto x = single_operands<T>();
    for (int i = -40; i <= 40; ++i) {
        const T quarters = static_cast<T>(i) / 4;
        for (const T a : {quarters, std::nextafter(quarters, T{-99}), std::nextafter(quarters, T{99})}) x.add({a});
    }
    this->expect(
        "round", x, [](auto a) { return round(a); },
        [](T a) { return std::isnan(a) ? a : with_sign(std::nearbyint(a), is_negative(a)); });
}

TYPED_TEST(Lanes, ComparisonsAreFalseForNaN)
{
    using T = TypeParam;
    const auto x = pairs_of_operands<T>();
    this->expect(
        "a < b", x, [](auto a, auto b) { return one_where(a < b, a); }, [](T a, T b) { return T(a < b ? 1 : 0); });
    this->expect(
        "a <= b", x, [](auto a, auto b) { return one_where(a <= b, a); },
        [](T a, T b) { return T(a < b || a == b ? 1 : 0); });
    this->expect(
        "a == b", x, [](auto a, auto b) { return one_where(a == b, a); },
        [](T a, T b) { return T(a == b ? 1 : 0); });
    this->expect(
        "is_nan", single_operands<T>(), [](auto a) { return one_where(is_nan(a), a); },
        [](T a) { return T(std::isnan(a) ? 1 : 0); });
}

TYPED_TEST(Lanes, MasksCombineLaneByLane)
{
    using T = TypeParam;
    operands<T, 2> x;
    for (const T a : {T{0}, T{1}}) {
        for (const T b : {T{0}, T{1}}) x.add({a, b});
    }
    x.add({T{1}, T{0}});  // an odd number of pairs, so that they meet other neighbours in every turn
    this->expect(
        "m & n", x, [](auto a, auto b) { return one_where(is_one(a) & is_one(b), a); },
        [](T a, T b) { return T(a == 1 && b == 1 ? 1 : 0); });
    this->expect(
        "m | n", x, [](auto a, auto b) { return one_where(is_one(a) | is_one(b), a); },
        [](T a, T b) { return T(a == 1 || b == 1 ? 1 : 0); });
    this->expect(
        "!m", x, [](auto a, auto) { return one_where(!is_one(a), a); }, [](T a, T) { return T(a == 1 ? 0 : 1); });
}

TYPED_TEST(Lanes, AnyIsTrueForOneLaneAndAllIsFalseWithoutOne)
{
    using V = typename vectors<TypeParam>::ours;
    const V one = V::broadcast(1);
    EXPECT_FALSE(any(tested::zero<V>() == one));
    EXPECT_TRUE(any(one == one));
    EXPECT_TRUE(all(one == one));
    EXPECT_FALSE(all(tested::zero<V>() == one));
    for (std::size_t i = 0; i < V::size; ++i) {
        std::array<TypeParam, V::size> lane{};
        lane[i] = 1;
        EXPECT_TRUE(any(V::load(lane.data()) == one)) << "lane " << i;
        EXPECT_TRUE(any(!(V::load(lane.data()) == tested::zero<V>()))) << "lane " << i;
        EXPECT_FALSE(all(V::load(lane.data()) == tested::zero<V>())) << "lane " << i;
    }
}

TYPED_TEST(Lanes, SelectLeavesTheBitsAlone)
{
    using T = TypeParam;
    operands<T, 3> x;
    random_bits random{6};
    const auto list = specials<T>();
    for (const T a : list) {
        for (const T b : list) x.add({T(random.below(2)), a, b});
    }
    this->expect(
        "select", x, [](auto m, auto a, auto b) { return select(is_one(m), a, b); },
        [](T m, T a, T b) { return m == 1 ? a : b; }, nan_is::the_same);
}

TYPED_TEST(Lanes, BitsComeAndGoUnchanged)
{
    using T = TypeParam;
    const auto x = single_operands<T>();
    this->expect("to_bits", x, [](auto a) { return to_bits(a); }, [](T a) { return bits(a); });
    operands<bits_type<T>, 1> u;
    for (const T a : x.list[0]) u.add({bits(a)});
    expect_defined<vectors<bits_type<T>>>(
        "from_bits", u, [](auto a) { return from_bits(a); }, [](auto a) { return number<T>(a); }, nan_is::the_same);
}

/// Vectors in which the order of a sum shows.
template <class T>
std::vector<std::vector<T>> rows_to_sum()
{
    constexpr std::size_t size = vectors<T>::ours::size;
    std::vector<std::vector<T>> list;
    random_bits random{7};
    for (int i = 0; i < 1000; ++i) {
        std::vector<T> lane(size);
        for (auto& x : lane) x = between_powers<T>(random, -6, 6);
        list.push_back(lane);
    }
    const auto special = specials<T>();
    for (std::size_t first = 0; first < special.size(); ++first) {
        std::vector<T> alone(size, T{1});
        std::vector<T> among(size);
        for (std::size_t i = 0; i < size; ++i) {
            alone[i] = special[first];
            list.push_back(alone);
            alone[i] = -alone[(i + 1) % size];
            among[i] = special[(first + i * i) % special.size()];
        }
        list.push_back(among);
    }
    return list;
}

template <class T, class Op, class Join>
void expect_folded(const char* name, Op op, Join join)
{
    int failures = 0;
    int order_shows = 0;
    for (const auto& lane : rows_to_sum<T>()) {
        const T got = op(vectors<T>::ours::load(lane.data()));
        const T scalar = op(vectors<T>::theirs::load(lane.data()));
        const T expected = folded(lane, join);
        T in_turn = lane[0];
        for (std::size_t i = 1; i < lane.size(); ++i) in_turn = join(in_turn, lane[i]);
        if (!same(in_turn, expected, nan_is::any)) ++order_shows;
        if (same(got, expected, nan_is::any) && same(scalar, expected, nan_is::any)) continue;
        std::string of;
        for (const T x : lane) of += ' ' + shown(x);
        ADD_FAILURE() << name << " of" << of << " is " << shown(got) << ", by the scalar backend " << shown(scalar)
                      << ", by definition " << shown(expected);
        if (++failures == most_failures) return;
    }
    EXPECT_GT(order_shows, 10) << "these vectors do not tell one order from another";
}

TYPED_TEST(Lanes, SumAndLargestFoldInHalves)
{
    using T = TypeParam;
    expect_folded<T>("sum", [](auto v) { return sum(v); }, defined_sum<T>);
    expect_folded<T>("largest", [](auto v) { return largest(v); }, defined_max<T>);
}

TYPED_TEST(Lanes, PolynomialsRoundOnceForEachCoefficient)
{
    using T = TypeParam;
    static constexpr T c[] = {T(0.7), T(-1.3), T(0.4), T(2.1)};
    this->expect(
        "polynomial", single_operands<T>(), [](auto x) { return polynomial(x, c); },
        [](T x) { return defined_fma(defined_fma(defined_fma(c[3], x, c[2]), x, c[1]), x, c[0]); });
}

TYPED_TEST(Lanes, LdexpIsRoundedOnce)
{
    using T = TypeParam;
    constexpr int most = sizeof(T) == 4 ? 250 : 2000;
    operands<T, 2> x;
    const auto add = [&](T v, int n) {
        // half of the scaling first: the contract speaks of what stays normal then, and where n > 0 all is exact
        const T halfway = std::ldexp(v, static_cast<int>(std::nearbyint(static_cast<T>(n) / 2)));
        if (n >= 0 || v == 0 || !std::isfinite(v) || std::isnormal(halfway)) x.add({v, static_cast<T>(n)});
    };
    const auto list = specials<T>();
    for (const T v : list) {
        for (const int n : {0, 1, 2, 3, 23, 24, 52, 53, 126, 127, 128, 149, 150, 250, 1022, 1023, 1074, 2000}) {
            if (n > most) continue;
            add(v, n);
            add(v, -n);
        }
    }
    random_bits random{8};
    for (int i = 0; i < 8000; ++i) {
        const int n = static_cast<int>(random.below(2 * most + 1)) - most;
        add(any_number<T>(random), n);
        // to subnormal results, where the rounding is
        const int exponent = static_cast<int>(random.below(40)) - 20;
        add(between_powers<T>(random, exponent, exponent),
            layout<T>::least_exponent + static_cast<int>(random.below(layout<T>::precision + 2)) - 2 - exponent);
    }
    this->expect(
        "ldexp", x, [](auto v, auto n) { return ldexp(v, n); },
        [](T v, T n) {
            if (!std::isfinite(v) || v == 0) return v;
            exact scaled = value(v);
            scaled.e += static_cast<int>(n);
            return rounded<T>(scaled);
        });
}

// --- their bits ------------------------------------------------------------------------------------------------

template <class U>
class BitLanes : public ::testing::Test {
protected:
    template <std::size_t N, class... Rest>
    static void expect(const char* name, const operands<U, N>& x, Rest... rest)
    {
        expect_defined<vectors<U>>(name, x, rest...);
    }
    template <int... N>
    static void expect_shifts(const operands<U, 2>& x)
    {
        (expect(
             "shift_left", x, [](auto u, auto) { return shift_left<N>(u); }, [](U u, U) { return U(u << N); }),
         ...);
        (expect(
             "shift_right", x, [](auto u, auto) { return shift_right<N>(u); }, [](U u, U) { return U(u >> N); }),
         ...);
    }
    static operands<U, 2> pairs()
    {
        constexpr U top = U{1} << (8 * sizeof(U) - 1);
        operands<U, 2> x;
        const U list[] = {0, 1, 2, 0x7fff, 0x8000, 0xffff, 0x10000, top - 1, top, top + 1, U(~U{0} - 1), U(~U{0})};
        for (const U a : list) {
            for (const U b : list) x.add({a, b});
        }
        random_bits random{9};
        for (int i = 0; i < 2000; ++i) x.add({static_cast<U>(random()), static_cast<U>(random())});
        return x;
    }
};

using unsigned_types = ::testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(BitLanes, unsigned_types, type_names);

TYPED_TEST(BitLanes, SumsAreModulo)
{
    using U = TypeParam;
    this->expect("u + v", this->pairs(), [](auto a, auto b) { return a + b; }, [](U a, U b) { return U(a + b); });
    this->expect("u - v", this->pairs(), [](auto a, auto b) { return a - b; }, [](U a, U b) { return U(a - b); });
}

TYPED_TEST(BitLanes, AndOrXor)
{
    using U = TypeParam;
    this->expect("u & v", this->pairs(), [](auto a, auto b) { return a & b; }, [](U a, U b) { return U(a & b); });
    this->expect("u | v", this->pairs(), [](auto a, auto b) { return a | b; }, [](U a, U b) { return U(a | b); });
    this->expect("u ^ v", this->pairs(), [](auto a, auto b) { return a ^ b; }, [](U a, U b) { return U(a ^ b); });
}

TYPED_TEST(BitLanes, ShiftsBringInZeros)
{
    if constexpr (sizeof(TypeParam) == 4) {
        this->template expect_shifts<1, 13, 16, 23, 31>(this->pairs());
    } else {
        this->template expect_shifts<1, 20, 32, 52, 63>(this->pairs());
    }
}

// --- float to double and back ----------------------------------------------------------------------------------

struct wide_vectors {
    using ours = tested::f64x16;
    using theirs = oracle::f64x16;
};

TEST(Conversion, WideningIsExact)
{
    expect_defined<vectors<float>>(
        "widen", single_operands<float>(), [](auto a) { return widen(a); },
        [](float a) {
            if (!std::isfinite(a))
                return std::isnan(a) ? nan_of<double> : with_sign(infinity_of<double>, is_negative(a));
            return rounded<double>(value(a));
        });
}

// (of which Clang compares the floats, and no longer the same way)
TEST(Conversion, MinAndMaxOfWidenedNumbersAndAZeroThatTheCompilerKnowsAreTheSame)
{
    const auto x = single_operands<float>();
    expect_defined<vectors<float>>(
        "min(0, widen(a))", x, [](auto a) { return min(zero(widen(a)), widen(a)); },
        [](float a) { return defined_min(any_zero<double>(), static_cast<double>(a)); });
    expect_defined<vectors<float>>(
        "min(widen(a), 0)", x, [](auto a) { return min(widen(a), zero(widen(a))); },
        [](float a) { return defined_min(static_cast<double>(a), any_zero<double>()); });
    expect_defined<vectors<float>>(
        "max(0, widen(a))", x, [](auto a) { return max(zero(widen(a)), widen(a)); },
        [](float a) { return defined_max(any_zero<double>(), static_cast<double>(a)); });
    expect_defined<vectors<float>>(
        "max(widen(a), 0)", x, [](auto a) { return max(widen(a), zero(widen(a))); },
        [](float a) { return defined_max(static_cast<double>(a), any_zero<double>()); });
}

TEST(Conversion, NarrowingIsToNearestHalvesToEven)
{
    operands<double, 1> x = single_operands<double>();
    const auto add_about = [&](float a) {
        const float next = number<float>(bits(a) + 1);
        const double half =
            (static_cast<double>(a)
             + (std::isinf(next) ? std::copysign(0x1p128, static_cast<double>(a)) : static_cast<double>(next)))
            / 2;
        for (const double b : {half, std::nextafter(half, 0.0), std::nextafter(half, 2 * half)}) x.add({b});
        x.add({static_cast<double>(a)});
    };
    for (const float a : specials<float>()) {
        if (std::isfinite(a)) add_about(a);
    }
    random_bits random{10};
    for (int i = 0; i < 4000; ++i) {
        add_about(
            number<float>(static_cast<std::uint32_t>(random.below(0x01000000))));  // subnormal, or about to be
        add_about(between_powers<float>(random, -126, 127));
        x.add({between_powers<double>(random, -180, 130)});
    }
    expect_defined<wide_vectors>(
        "narrow", x, [](auto a) { return narrow(a); },
        [](double a) {
            if (!std::isfinite(a))
                return std::isnan(a) ? nan_of<float> : with_sign(infinity_of<float>, is_negative(a));
            return rounded<float>(value(a));
        });
}

// --- 16-bit storage --------------------------------------------------------------------------------------------

template <class S>
class HalfStorage : public ::testing::Test {};

struct storage_names {
    template <class S>
    static std::string GetName(int)
    {
        return std::is_same_v<S, bfloat16> ? "bfloat16" : "float16";
    }
};

using half_types = ::testing::Types<bfloat16, float16>;
TYPED_TEST_SUITE(HalfStorage, half_types, storage_names);

TYPED_TEST(HalfStorage, EveryPatternWidensExactly)
{
    constexpr std::uint32_t size = tested::f32x16::size;
    int failures = 0;
    for (std::uint32_t first = 0; first < 0x10000; first += size) {
        std::array<TypeParam, size> stored;
        for (std::uint32_t i = 0; i < size; ++i) stored[i].bits = static_cast<std::uint16_t>(first + i);
        const auto got = lanes_of(tested::load<tested::f32x16>(stored.data()));
        const auto scalar = lanes_of(oracle::load<oracle::f32x16>(stored.data()));
        for (std::uint32_t i = 0; i < size; ++i) {
            const float expected = half_format<TypeParam>::widened(first + i);
            if (same(got[i], expected, nan_is::any) && same(scalar[i], expected, nan_is::any)) continue;
            ADD_FAILURE() << "pattern " << std::hex << first + i << " widens to " << shown(got[i])
                          << ", by the scalar backend to " << shown(scalar[i]) << ", by definition to "
                          << shown(expected);
            if (++failures == most_failures) return;
        }
    }
}

TYPED_TEST(HalfStorage, NarrowingIsToNearestHalvesToEven)
{
    using S = TypeParam;
    using format = half_format<S>;
    constexpr std::size_t size = tested::f32x16::size;
    std::vector<float> x = specials<float>();
    for (std::uint32_t pattern = 0; pattern < format::infinity; ++pattern) {
        const auto half = static_cast<float>((format::number(pattern) + format::number(pattern + 1)) / 2);
        for (const std::uint32_t u : {bits(half) - 1, bits(half), bits(half) + 1, bits(format::widened(pattern))}) {
            x.push_back(number<float>(u));
            x.push_back(number<float>(u | sign_bit<float>));
        }
    }
    for (std::uint64_t u = 0; u <= 0xffffffffU; u += 9973)
        x.push_back(number<float>(static_cast<std::uint32_t>(u)));
    x.resize((x.size() + size - 1) / size * size);

    int failures = 0;
    for (std::size_t at = 0; at < x.size(); at += size) {
        std::array<S, size> got;
        std::array<S, size> scalar;
        tested::store(got.data(), tested::f32x16::load(x.data() + at));
        oracle::store(scalar.data(), oracle::f32x16::load(x.data() + at));
        for (std::size_t i = 0; i < size; ++i) {
            const std::uint16_t expected = format::narrowed(static_cast<double>(x[at + i]));
            if (format::same(got[i].bits, expected) && format::same(scalar[i].bits, expected)) continue;
            ADD_FAILURE() << shown(x[at + i]) << " narrows to " << std::hex << got[i].bits
                          << ", by the scalar backend to " << scalar[i].bits << ", by definition to " << expected;
            if (++failures == most_failures) return;
        }
    }
}

TYPED_TEST(HalfStorage, StandsForEveryNaNWithOneOfItsSign)
{
    using V = tested::f32x16;
    if (std::is_same_v<TypeParam, bfloat16>) GTEST_SKIP() << "keeps what fits of the payload";
    for (const std::uint32_t u : {0x7f800001U, 0x7fc00000U, 0x7fffffffU, 0x7fbfffffU}) {
        for (const std::uint32_t sign : {0U, sign_bit<float>}) {
            std::array<TypeParam, V::size> got;
            tested::store(got.data(), V::broadcast(number<float>(u | sign)));
            for (const TypeParam x : got) EXPECT_EQ(x.bits, 0x7e00U | (sign >> 16U));
        }
    }
}

/// What is next to be stored from double: around every number of the format and every half between two, the double
/// itself, the doubles and the floats next to it, and what lies just as near to a float's half as a double can.
template <class S>
std::vector<double> doubles_about_halves()
{
    using format = half_format<S>;
    std::vector<double> x{0.0,
                          0x1p-1074,
                          0x1p-1022,
                          0x1p-200,
                          0x1p128,
                          0x1p200,
                          0x1.fffffffffffffp1023,
                          infinity_of<double>,
                          nan_of<double>};
    const auto add_about = [&](double a) {
        x.push_back(a);
        for (const double b :
             {a * (1 + 0x1p-24), a * (1 - 0x1p-24), a * (1 + 0x1p-25), a * (1 + 0x1p-30), a * (1 - 0x1p-40)})
            x.push_back(b);
        x.push_back(std::nextafter(a, 0.0));
        x.push_back(std::nextafter(a, infinity_of<double>));
    };
    for (std::uint32_t pattern = 0; pattern < format::infinity; ++pattern) {
        add_about((format::number(pattern) + format::number(pattern + 1)) / 2);
        if (pattern % 16 < 2) add_about(format::number(pattern));
    }
    random_bits random{11};
    for (int i = 0; i < 20000; ++i) x.push_back(between_powers<double>(random, -160, 130));
    const std::size_t positive = x.size();
    for (std::size_t i = 0; i < positive; ++i) x.push_back(-x[i]);
    return x;
}

// Rounding to float on the way would take many of these to a half and then to the wrong side of it.
TYPED_TEST(HalfStorage, NarrowingFromDoubleIsRoundedOnce)
{
    using S = TypeParam;
    using format = half_format<S>;
    constexpr std::size_t size = tested::f64x16::size;
    auto x = doubles_about_halves<S>();
    x.resize((x.size() + size - 1) / size * size);
    int failures = 0;
    int rounded_twice = 0;
    for (std::size_t at = 0; at < x.size(); at += size) {
        std::array<S, size> got;
        std::array<S, size> scalar;
        tested::store(got.data(), tested::f64x16::load(x.data() + at));
        oracle::store(scalar.data(), oracle::f64x16::load(x.data() + at));
        for (std::size_t i = 0; i < size; ++i) {
            const std::uint16_t expected = format::narrowed(x[at + i]);
            if (!std::isnan(x[at + i]) && S(static_cast<float>(x[at + i])).bits != expected) ++rounded_twice;
            if (format::same(got[i].bits, expected) && format::same(scalar[i].bits, expected)) continue;
            ADD_FAILURE() << shown(x[at + i]) << " narrows to " << std::hex << got[i].bits
                          << ", by the scalar backend to " << scalar[i].bits << ", by definition to " << expected;
            if (++failures == most_failures) return;
        }
    }
    EXPECT_GT(rounded_twice, 1000) << "these do not tell rounding once from rounding twice";
}

TEST(SixteenBits, OnlyTheLowerHalfOfALaneIsStored)
{
    using U = vectors<std::uint32_t>::ours;
    random_bits random{12};
    for (int turn = 0; turn < 1000; ++turn) {
        std::array<std::uint32_t, U::size> lane;
        std::array<std::uint16_t, U::size> expected;
        for (std::size_t i = 0; i < U::size; ++i) {
            lane[i] = static_cast<std::uint32_t>(random());
            expected[i] = static_cast<std::uint16_t>(lane[i]);
        }
        std::array<std::uint16_t, U::size> got{};
        U::load(lane.data()).store_16_bit(got.data());
        ASSERT_EQ(got, expected);
        const auto back = lanes_of(U::load_16_bit(got.data()));
        ASSERT_TRUE(std::equal(back.begin(), back.end(), expected.begin()));
    }
}

// --- parts of a vector in memory -------------------------------------------------------------------------------

/// One page of memory between two that may not be touched.
class fenced_page {
public:
    fenced_page()
        : size_{static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))},
          fence_{
              static_cast<std::byte*>(::mmap(nullptr, 3 * size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))},
          page_{fence_ + size_}
    {
        if (::mprotect(page_, size_, PROT_READ | PROT_WRITE) != 0) std::abort();
        ::signal(SIGSEGV, [](int) {
            constexpr char text[] = "memory before or after the n elements was touched\n";
            if (::write(STDERR_FILENO, text, sizeof text - 1) >= 0) ::_exit(1);
            ::_exit(2);
        });
    }
    ~fenced_page()
    {
        ::signal(SIGSEGV, SIG_DFL);
        ::munmap(fence_, 3 * size_);
    }
    fenced_page(const fenced_page&) = delete;
    fenced_page& operator=(const fenced_page&) = delete;

    void fill(std::byte b) { std::memset(page_, static_cast<int>(b), size_); }
    std::byte* begin() { return page_; }
    std::byte* end() { return page_ + size_; }

private:
    std::size_t size_;
    std::byte* fence_;
    std::byte* page_;
};

template <class Vector, class Memory>
struct access {
    using V = Vector;
    using M = Memory;
};

template <class Access>
class PartOfAVector : public ::testing::Test {
protected:
    using Vector = typename Access::V;
    using Memory = typename Access::M;

    static Vector load(const Memory* p, int n)
    {
        if constexpr (sizeof(Memory) == 2 && std::is_unsigned_v<Memory>) {
            return Vector::load_16_bit(p, n);
        } else if constexpr (std::is_unsigned_v<Memory>) {
            return Vector::load(p, n);
        } else {
            return tested::load<Vector>(p, n);
        }
    }
    static Vector load(const Memory* p)
    {
        if constexpr (sizeof(Memory) == 2 && std::is_unsigned_v<Memory>) {
            return Vector::load_16_bit(p);
        } else if constexpr (std::is_unsigned_v<Memory>) {
            return Vector::load(p);
        } else {
            return tested::load<Vector>(p);
        }
    }
    static void store(Memory* p, Vector v, int n)
    {
        if constexpr (sizeof(Memory) == 2 && std::is_unsigned_v<Memory>) {
            v.store_16_bit(p, n);
        } else if constexpr (std::is_unsigned_v<Memory>) {
            v.store(p, n);
        } else {
            tested::store(p, v, n);
        }
    }
    static void store(Memory* p, Vector v)
    {
        if constexpr (sizeof(Memory) == 2 && std::is_unsigned_v<Memory>) {
            v.store_16_bit(p);
        } else if constexpr (std::is_unsigned_v<Memory>) {
            v.store(p);
        } else {
            tested::store(p, v);
        }
    }

    /// Numbers that every one of the types can hold, none of them zero.
    static std::vector<Memory> numbers()
    {
        std::vector<Memory> list;
        for (std::size_t i = 0; i < Vector::size; ++i) {
            const int x = static_cast<int>(i) + 1;
            if constexpr (std::is_arithmetic_v<Memory>) {
                list.push_back(static_cast<Memory>(x));
            } else {
                list.push_back(Memory::from_bits(half_format<Memory>::narrowed(x)));
            }
        }
        return list;
    }
    static std::size_t bytes(int n) { return static_cast<std::size_t>(n) * sizeof(Memory); }
};

struct access_names {
    template <class Access>
    static std::string GetName(int)
    {
        using V = typename Access::V;
        using M = typename Access::M;
        using T = typename V::value_type;
        std::string name = std::is_same_v<M, bfloat16>   ? "bfloat16"
                           : std::is_same_v<M, float16>  ? "float16"
                           : std::is_floating_point_v<M> ? "float"
                                                         : "unsigned";
        if (std::is_arithmetic_v<M>) name += std::to_string(8 * sizeof(M));
        name += std::is_floating_point_v<T> ? "_as_f" : "_as_u";
        name += std::to_string(8 * sizeof(T)) + 'x' + std::to_string(V::size);
        return name;
    }
};

using accesses =
    ::testing::Types<access<tested::f32x16, float>, access<tested::f64x8, double>, access<tested::f64x16, float>,
                     access<tested::f64x16, double>, access<tested::f32x16, bfloat16>,
                     access<tested::f32x16, float16>, access<tested::f64x16, bfloat16>,
                     access<tested::f64x16, float16>, access<vectors<std::uint32_t>::ours, std::uint16_t>,
                     access<vectors<std::uint32_t>::ours, std::uint32_t>,
                     access<vectors<std::uint64_t>::ours, std::uint64_t>>;
TYPED_TEST_SUITE(PartOfAVector, accesses, access_names);

TYPED_TEST(PartOfAVector, LoadReadsNElementsAndZerosTheRest)
{
    using V = typename TypeParam::V;
    using M = typename TypeParam::M;
    const auto numbers = this->numbers();
    fenced_page page;
    for (int n = 0; n <= V::size; ++n) {
        for (std::byte* const place : {page.begin(), page.end() - this->bytes(n)}) {
            page.fill(std::byte{0xff});
            std::memcpy(place, numbers.data(), this->bytes(n));
            const auto lane = lanes_of(this->load(reinterpret_cast<const M*>(place), n));
            for (int i = 0; i < V::size; ++i) {
                const auto got = lane[static_cast<std::size_t>(i)];
                const auto expected = static_cast<typename V::value_type>(i < n ? i + 1 : 0);
                EXPECT_TRUE(same(got, expected, nan_is::the_same))
                    << n << " elements at the page's " << (place == page.begin() ? "beginning" : "end") << ": lane "
                    << i << " is " << shown(got) << " and not " << shown(expected);
            }
        }
    }
    std::byte* const last = page.end() - this->bytes(V::size);
    EXPECT_EQ(lanes_of(this->load(reinterpret_cast<const M*>(last))),
              lanes_of(this->load(reinterpret_cast<const M*>(last), V::size)));
}

TYPED_TEST(PartOfAVector, EverySecondElementIsTakenInItsOrder)
{
    using V = typename TypeParam::V;
    using M = typename TypeParam::M;
    if constexpr (!std::is_floating_point_v<typename V::value_type> || !tested::takes_alternate<tested::f32x16>) {
        GTEST_SKIP() << "only for numbers, in registers";
    } else {
        const auto numbers = this->numbers();
        std::vector<M> spread(2 * numbers.size(), numbers.back());
        for (std::size_t i = 0; i < numbers.size(); ++i) spread[2 * i] = numbers[i];
        fenced_page page;
        std::byte* const last = page.end() - spread.size() * sizeof(M);
        std::memcpy(last, spread.data(), spread.size() * sizeof(M));
        EXPECT_EQ(lanes_of(tested::load_alternate<V>(reinterpret_cast<const M*>(last))),
                  lanes_of(this->load(numbers.data())));
    }
}

TYPED_TEST(PartOfAVector, StoreWritesNElementsAndNothingElse)
{
    using V = typename TypeParam::V;
    using M = typename TypeParam::M;
    const auto numbers = this->numbers();
    const V v = this->load(numbers.data());
    constexpr std::byte canary{0xa5};
    fenced_page page;
    for (int n = 0; n <= V::size; ++n) {
        for (std::byte* const place : {page.begin(), page.begin() + 256, page.end() - this->bytes(n)}) {
            page.fill(canary);
            this->store(reinterpret_cast<M*>(place), v, n);
            EXPECT_EQ(std::memcmp(place, numbers.data(), this->bytes(n)), 0) << n << " elements: not those of v";
            const auto untouched = [](std::byte b) { return b == canary; };
            EXPECT_TRUE(std::all_of(page.begin(), place, untouched)) << n << " elements: written before them";
            EXPECT_TRUE(std::all_of(place + this->bytes(n), page.end(), untouched))
                << n << " elements: written after them";
        }
    }
    page.fill(canary);
    std::byte* const last = page.end() - this->bytes(V::size);
    this->store(reinterpret_cast<M*>(last), v);
    EXPECT_EQ(std::memcmp(last, numbers.data(), this->bytes(V::size)), 0);
}

TYPED_TEST(PartOfAVector, AsksNoAlignment)
{
    using V = typename TypeParam::V;
    using M = typename TypeParam::M;
    const auto numbers = this->numbers();
    const V v = this->load(numbers.data());
    std::vector<M> memory(3 * V::size);
    for (std::size_t shift = 0; shift < V::size; ++shift) {
        this->store(memory.data() + shift, v);
        EXPECT_EQ(std::memcmp(memory.data() + shift, numbers.data(), this->bytes(V::size)), 0) << shift;
        EXPECT_EQ(lanes_of(this->load(memory.data() + shift)), lanes_of(v)) << shift;
    }
}

}  // namespace
