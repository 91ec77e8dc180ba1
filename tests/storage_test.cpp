// bfloat16 and float16: their conversions against the definition, over every pattern; the same through the operations; and
// buffers of other types with the same bits.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "support/api.hpp"
#include "support/half_format.hpp"
#include "support/reference.hpp"

namespace {

using residua::bfloat16;
using residua::float16;
using residua::test::half_format;

constexpr float infinity = std::numeric_limits<float>::infinity();

constexpr float from_pattern(std::uint32_t u) { return std::bit_cast<float>(u); }
std::uint32_t pattern_of(float x) { return std::bit_cast<std::uint32_t>(x); }

// --- at compile time ----------------------------------------------------------------------------------------------

static_assert(sizeof(bfloat16) == 2 && alignof(bfloat16) == 2 && std::is_trivially_copyable_v<bfloat16>);
static_assert(sizeof(float16) == 2 && alignof(float16) == 2 && std::is_trivially_copyable_v<float16>);
static_assert(std::is_standard_layout_v<bfloat16> && std::is_trivially_default_constructible_v<bfloat16>);
static_assert(std::is_standard_layout_v<float16> && std::is_trivially_default_constructible_v<float16>);
static_assert(!std::is_convertible_v<float, bfloat16> && !std::is_convertible_v<float, float16>);
static_assert(std::is_convertible_v<bfloat16, float> && std::is_convertible_v<float16, float>);

static_assert(bfloat16(1.0F).bits == 0x3f80 && float16(1.0F).bits == 0x3c00);
static_assert(bfloat16(1).bits == 0x3f80 && float16(-2).bits == 0xc000);
static_assert(static_cast<float>(bfloat16::from_bits(0x4049)) == 3.140625F);
static_assert(static_cast<float>(float16::from_bits(0x0001)) == 0x1p-24F);
static_assert(static_cast<float>(float16::from_bits(0x7bff)) == 65504.0F);
static_assert(bfloat16(1e300).bits == 0x7f80 && float16(-1e300).bits == 0xfc00);
static_assert(bfloat16(infinity).bits == 0x7f80
              && bfloat16(-std::numeric_limits<double>::infinity()).bits == 0xff80);

// google/highway#1962, ROCm/aiter#5151: a store that truncates.
static_assert(bfloat16(from_pattern(0x3f818000)).bits == 0x3f82, "B2: a tie goes to the even one");
static_assert(bfloat16(from_pattern(0x3f808000)).bits == 0x3f80, "B2");
static_assert(bfloat16(from_pattern(0x3f80ffff)).bits == 0x3f81, "B2");

// google/highway#2067: subnormal numbers of binary16.
static_assert(float16(0x1p-24F).bits == 0x0001 && float16(0x1p-25F).bits == 0x0000, "B5");
static_assert(float16(0x1.000002p-25F).bits == 0x0001, "B5");
static_assert(float16(6.0975551605e-05F).bits == 0x03ff && float16(6.10053539276e-05F).bits == 0x0400, "B5");

// Rounding to float first would make it a tie.
static_assert(bfloat16(1 + 0x1p-8 + 0x1p-40).bits == 0x3f81 && bfloat16(1 + 0x1p-8).bits == 0x3f80);
static_assert(float16(1 + 0x1p-11 + 0x1p-40).bits == 0x3c01 && float16(1 + 0x1p-11).bits == 0x3c00);
static_assert(float16(-(0x1p-25 + 0x1p-70)).bits == 0x8001 && float16(0x1p-1074).bits == 0x0000);

// --- every pattern ------------------------------------------------------------------------------------------------

template <class S>
class storage : public testing::Test {};
struct storage_names {
    template <class S>
    static std::string GetName(int)
    {
        return std::is_same_v<S, bfloat16> ? "bfloat16" : "float16";
    }
};
using storage_types = testing::Types<bfloat16, float16>;
TYPED_TEST_SUITE(storage, storage_types, storage_names);

template <class S>
bool is_nan_pattern(std::uint32_t h)
{
    return (h & 0x7fffU) > half_format<S>::infinity;
}

/// Numbers at which a rounding can go wrong: every half between two neighbours, and the floats beside it; every number.
template <class S>
std::vector<float> numbers_to_round()
{
    using format = half_format<S>;
    std::vector<float> x;
    for (std::uint32_t pattern = 0; pattern < format::infinity; ++pattern) {
        const std::uint32_t half =
            pattern_of(static_cast<float>((format::number(pattern) + format::number(pattern + 1)) / 2));
        for (const std::uint32_t u : {half - 1, half, half + 1, pattern_of(format::widened(pattern))}) {
            if (u > 0x7f800000U) continue;
            x.push_back(from_pattern(u));
            x.push_back(from_pattern(u | 0x80000000U));
        }
    }
    for (std::uint64_t u = 0; u <= 0xffffffffU; u += 99991) {
        const float any = from_pattern(static_cast<std::uint32_t>(u));
        if (!std::isnan(any)) x.push_back(any);
    }
    return x;
}

TYPED_TEST(storage, every_pattern_widens_to_its_number_and_back)
{
    using S = TypeParam;
    for (std::uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
        const auto h = S::from_bits(static_cast<std::uint16_t>(pattern));
        const float x = h;
        if (is_nan_pattern<S>(pattern)) {
            ASSERT_TRUE(std::isnan(x)) << std::hex << pattern;
            ASSERT_EQ(S(x).bits & half_format<S>::quiet, half_format<S>::quiet) << std::hex << pattern;
        } else {
            ASSERT_EQ(pattern_of(x), pattern_of(half_format<S>::widened(pattern))) << std::hex << pattern;
            ASSERT_EQ(S(x).bits, pattern);
            ASSERT_EQ(S(static_cast<double>(x)).bits, pattern);
        }
    }
}

TYPED_TEST(storage, rounding_is_to_nearest_halves_to_even)
{
    using S = TypeParam;
    for (const float x : numbers_to_round<S>()) {
        ASSERT_EQ(S(x).bits, half_format<S>::narrowed(static_cast<double>(x))) << std::hexfloat << x;
    }
}

TYPED_TEST(storage, rounding_from_double_is_done_once)
{
    using S = TypeParam;
    for (const float x : numbers_to_round<S>()) {
        const auto wide = static_cast<double>(x);
        for (const double y : {std::nextafter(wide, -1e300), std::nextafter(wide, 1e300), wide * (1 + 0x1p-28)}) {
            ASSERT_EQ(S(y).bits, half_format<S>::narrowed(y)) << std::hexfloat << y;
        }
    }
    EXPECT_EQ(S(std::numeric_limits<double>::quiet_NaN()).bits & half_format<S>::quiet, half_format<S>::quiet);
}

// gorse-io/gorse#1240, tile-ai/tilelang#2690: the addition that rounds carries a NaN to infinity, or to -0.
TYPED_TEST(storage, B1_a_nan_stays_one)
{
    using S = TypeParam;
    for (const std::uint32_t u : {0x7f800001U, 0x7fffffffU, 0xff800001U, 0xffffffffU, 0x7fc00000U, 0x7f80ffffU}) {
        std::vector<float> x(33);
        for (float& e : x) std::memcpy(&e, &u, sizeof u);
        S alone{};
        std::memcpy(&x[0], &u, sizeof u);
        alone = S(x[0]);
        EXPECT_EQ(alone.bits & half_format<S>::quiet, half_format<S>::quiet) << std::hex << u << ' ' << alone.bits;
        EXPECT_EQ(alone.bits >> 15U, u >> 31U) << std::hex << u;
        std::vector<S> y(33);
        api::scale(y, x, 1.0F);
        for (const S e : y) EXPECT_TRUE(is_nan_pattern<S>(e.bits)) << std::hex << u << ' ' << e.bits;
    }
}

/// x as it is stored, through a whole operation that changes nothing.
template <class S>
std::vector<S> stored(const std::vector<float>& x)
{
    std::vector<S> y(x.size());
    api::scale(y, x, 1.0F);
    return y;
}

// llvm/llvm-project#221052, JuliaMath/BFloat16s.jl#125: the hardware's conversion flushes subnormal numbers, so that the
// body of a loop and its tail disagree.
TYPED_TEST(storage, B4_subnormal_numbers_are_the_same_in_every_lane)
{
    using S = TypeParam;
    const auto smallest = static_cast<float>(half_format<S>::number(1));
    const auto least_normal = static_cast<float>(half_format<S>::number(1U << half_format<S>::fraction_bits));
    for (const float value : {from_pattern(0x00400000), from_pattern(0x00018000), from_pattern(0x00000001),
                              from_pattern(0x807fffff), smallest, smallest * 3, -smallest * 1.5F, least_normal / 2,
                              least_normal - smallest / 2, least_normal * 0.99F}) {
        for (const std::size_t n : {1U, 5U, 16U, 31U, 33U}) {
            for (const S e : stored<S>(std::vector<float>(n, value)))
                EXPECT_EQ(e.bits, S(value).bits) << std::hexfloat << value << ", n = " << n;
        }
    }
    if constexpr (std::is_same_v<S, bfloat16>) {
        EXPECT_EQ(stored<S>({from_pattern(0x00400000)})[0].bits, 0x0040);
        EXPECT_EQ(stored<S>({from_pattern(0x00018000)})[0].bits, 0x0002);
    }
}

TYPED_TEST(storage, operations_round_and_widen_as_the_type_does)
{
    using S = TypeParam;
    const auto x = numbers_to_round<S>();
    const auto y = stored<S>(x);
    for (std::size_t j = 0; j < x.size(); ++j) ASSERT_EQ(y[j].bits, S(x[j]).bits) << std::hexfloat << x[j];

    std::vector<S> all;
    for (std::uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
        if (!is_nan_pattern<S>(pattern)) all.push_back(S::from_bits(static_cast<std::uint16_t>(pattern)));
    }
    std::vector<float> widened(all.size());
    std::vector<double> doubled(all.size());
    std::vector<S> copied(all.size());
    api::scale(widened, all, 1.0F);
    api::scale(doubled, all, 1.0);
    api::scale(copied, all, 1.0F);
    for (std::size_t j = 0; j < all.size(); ++j) {
        ASSERT_EQ(pattern_of(widened[j]), pattern_of(all[j]));
        ASSERT_EQ(std::bit_cast<std::uint64_t>(doubled[j]),
                  std::bit_cast<std::uint64_t>(static_cast<double>(static_cast<float>(all[j]))));
        ASSERT_EQ(copied[j].bits, all[j].bits);
    }
}

// Comfy-Org/comfy-kitchen#74: a compiler takes rounding and widening away.
TYPED_TEST(storage, B13_rounding_is_not_optimised_away)
{
    using S = TypeParam;
    const float between = 1 + static_cast<float>(std::ldexp(1, -half_format<S>::fraction_bits - 1));
    volatile float hidden = between;
    EXPECT_EQ(static_cast<float>(S(between)), 1.0F);
    EXPECT_EQ(static_cast<float>(S(hidden)), 1.0F);
    EXPECT_EQ(static_cast<float>(stored<S>({between})[0]), 1.0F);
}

// --- buffers of other types -----------------------------------------------------------------------------------------

template <class S>
auto viewed(auto&& buffer)
{
    if constexpr (std::is_same_v<S, bfloat16>) {
        return api::as_bfloat16(buffer);
    } else {
        return api::as_float16(buffer);
    }
}

TYPED_TEST(storage, raw_bits_are_read_and_written_where_they_lie)
{
    using S = TypeParam;
    reference::random random{1};
    const auto x = random.row<float>(70);
    const auto w = random.row<float>(70);
    std::vector<S> expected(70);
    const auto expected_x = stored<S>(x);
    const auto expected_w = stored<S>(w);
    api::rms_norm(expected, expected_x, expected_w, {.eps = 1e-6F});

    std::vector<std::uint16_t> in;
    for (const S e : expected_x) in.push_back(e.bits);
    std::vector<std::uint16_t> weight;
    for (const S e : expected_w) weight.push_back(e.bits);
    std::array<std::uint16_t, 70> out{};
    const auto& constant = in;
    static_assert(std::is_same_v<decltype(viewed<S>(constant)), api::rows<const S>>);
    api::rms_norm(viewed<S>(out), viewed<S>(constant), viewed<S>(weight), {.eps = 1e-6F});
    for (std::size_t j = 0; j < 70; ++j) ASSERT_EQ(out[j], expected[j].bits);

    // Rows with a stride stay so.
    std::vector<std::uint16_t> rows(3 * 40, 0x4242);
    const api::rows<std::uint16_t> some{rows.data(), 3, 23, 40};
    const auto view = viewed<S>(some);
    EXPECT_EQ(view.count, 3U);
    EXPECT_EQ(view.columns, 23U);
    EXPECT_EQ(view.stride, 40);
    api::scale(view, view, 2.0F);
    for (std::size_t j = 0; j < rows.size(); ++j) {
        const auto twice = S(2 * static_cast<float>(S::from_bits(0x4242))).bits;
        ASSERT_EQ(rows[j], j % 40 < 23 ? twice : 0x4242) << j;
    }
}

template <class S, class Native>
void expect_to_share_memory_with()
{
    reference::random random{2};
    for (std::uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
        const auto h = S::from_bits(static_cast<std::uint16_t>(pattern));
        const auto native = static_cast<Native>(h);
        ASSERT_EQ(std::bit_cast<std::uint16_t>(native), pattern);
        ASSERT_EQ(S(native).bits, pattern);
        if (!is_nan_pattern<S>(pattern)) {
            ASSERT_EQ(static_cast<float>(native), static_cast<float>(h));
        }
    }
    if constexpr (std::is_same_v<S,
                                 float16>) {  // to the other, Clang rounds by a function that older libraries lack
        for (const float x : numbers_to_round<S>()) {
            ASSERT_EQ(std::bit_cast<std::uint16_t>(static_cast<Native>(x)), S(x).bits) << std::hexfloat << x;
        }
    }
    std::vector<Native> x(50);
    for (auto& e : x) e = static_cast<Native>(S(random.uniform(-2, 2)));
    std::vector<float> expected;
    for (const Native e : x) expected.push_back(2 * static_cast<float>(e));
    std::vector<Native> y(50);
    api::scale(viewed<S>(y), viewed<S>(x), 2.0F);
    for (std::size_t j = 0; j < 50; ++j) EXPECT_EQ(static_cast<float>(y[j]), expected[j]);
    // written as one type, read as the other, at once
    y[3] = static_cast<Native>(S(5.0F));
    EXPECT_EQ(static_cast<float>(viewed<S>(y)[0][3]), 5.0F);
    viewed<S>(y)[0][3] = S(6.0F);
    EXPECT_EQ(static_cast<float>(y[3]), 6.0F);
    api::scale(viewed<S>(y), viewed<S>(y), 0.5F);
    EXPECT_EQ(static_cast<float>(y[3]), 3.0F);
}

#if RESIDUA_COMPILER_HAS_FLOAT16
// google/highway#1658, google/XNNPACK#6989: compilers that have no 16-bit type, or have one that does not compute.
TEST(storage, J8_the_types_do_not_need_the_compilers)
{
    EXPECT_TRUE((std::is_same_v<decltype(api::bfloat16::bits), std::uint16_t>));
    EXPECT_TRUE((std::is_same_v<decltype(api::float16::bits), std::uint16_t>));
    EXPECT_TRUE(std::is_trivially_copyable_v<api::bfloat16> && std::is_trivially_copyable_v<api::float16>);
    EXPECT_TRUE(sizeof(api::bfloat16) == 2 && sizeof(api::float16) == 2);
}

TEST(compilers_types, float16_and_Float16)
{
    expect_to_share_memory_with<float16, residua::operand::compilers_float16>();
}
#endif
#if RESIDUA_COMPILER_HAS_BFLOAT16
TEST(compilers_types, bfloat16_and_bf16)
{
    expect_to_share_memory_with<bfloat16, residua::operand::compilers_bfloat16>();
}
#endif

// ginkgo-project/ginkgo#1657, aous72/OpenJPH#279: a pointer of another type, which the optimiser takes for other memory.
TYPED_TEST(storage, J12_one_buffer_as_two_types)
{
    using S = TypeParam;
    std::vector<std::uint16_t> buffer(40);
    const auto view = viewed<S>(buffer);
    for (std::size_t turn = 0; turn < 3; ++turn) {
        for (std::size_t j = 0; j < 40; ++j) buffer[j] = S(static_cast<float>(j + turn)).bits;
        float sum = 0;
        for (std::size_t j = 0; j < 40; ++j) sum += static_cast<float>(view[0][j]);
        EXPECT_EQ(sum, static_cast<float>(40 * 39 / 2 + 40 * turn));
        api::scale(view, view, 2.0F);
        for (std::size_t j = 0; j < 40; ++j) EXPECT_EQ(buffer[j], S(2 * static_cast<float>(j + turn)).bits);
    }
}

TYPED_TEST(storage, K_an_ordinary_number_raises_nothing_but_inexact)
{
    using S = TypeParam;
    std::vector<double> x(40);
    for (std::size_t j = 0; j < x.size(); ++j) x[j] = 1.0 / static_cast<double>(j + 3);
    std::vector<S> y(40);
    std::vector<float> z(40);
    std::feclearexcept(FE_ALL_EXCEPT);
    api::convert(y, x);
    api::convert(z, y);
    api::convert(y, z);
    EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT & ~FE_INEXACT), 0);
}

// --- past the caches -------------------------------------------------------------------------------------------

TEST(streaming, is_automatic_where_an_output_takes_as_much_as_the_last_level)
{
    const auto streams = [](std::size_t bytes) {
        return residua::detail::is_streaming(residua::rows<float>{nullptr, bytes / 1024, 256});
    };
    const std::size_t cache = residua::detail::last_level_cache();
    EXPECT_FALSE(streams(0));
    EXPECT_FALSE(streams(std::size_t{1} << 20U));
#if defined(__x86_64__)
    EXPECT_GE(cache, std::size_t{1} << 18U);
    EXPECT_LE(cache, std::size_t{1} << 34U);
    constexpr std::size_t always_cached = std::size_t{16} << 20U;
    EXPECT_FALSE(streams(cache - 1024));
    EXPECT_TRUE(streams(std::max(cache + 1023, always_cached)));
#else
    EXPECT_FALSE(streams(std::size_t{1} << 60U)) << cache;
#endif
}

TEST(streaming, is_what_the_caller_says)
{
    std::vector<float> y(8);
    using residua::store;
    const auto view = residua::with_store(y, store::streaming);
    EXPECT_EQ(view.data, y.data());
    EXPECT_EQ(view.columns, 8U);
    EXPECT_TRUE(residua::detail::is_streaming(view));
    EXPECT_TRUE(residua::detail::is_streaming(view.part(0, 1)));
    EXPECT_TRUE(residua::detail::is_streaming(residua::with_store(residua::rows<float>{}, store::streaming)));
    EXPECT_FALSE(residua::detail::is_streaming(residua::with_store(view, store::cached)));
    const residua::rows<float> huge{nullptr, std::size_t{1} << 30U, std::size_t{1} << 20U};
    EXPECT_FALSE(residua::detail::is_streaming(residua::with_store(huge, store::cached)));
}

}  // namespace
