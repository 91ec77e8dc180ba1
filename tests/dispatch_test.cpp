// Run-time choice: what can be listed, asked and forced, and that every target gives the same bits.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <residua/dispatch.hpp>
#include <residua/residua.hpp>

#include "support/reference.hpp"
#include "support/ulp.hpp"

namespace {

namespace dispatch = residua::dispatch;
using dispatch::target;

/// Leaves the choice as it was found.
struct dispatch_test : testing::Test {
    dispatch_test() { dispatch::release(); }
    dispatch_test(const dispatch_test&) = delete;
    dispatch_test& operator=(const dispatch_test&) = delete;
    ~dispatch_test() override { dispatch::release(); }
};

TEST_F(dispatch_test, targets_start_with_scalar_and_ascend)
{
    const auto targets = dispatch::targets();
    ASSERT_FALSE(targets.empty());
    EXPECT_EQ(targets.front(), target::scalar);
    EXPECT_EQ(std::ranges::adjacent_find(targets, std::ranges::greater_equal{}), targets.end());
    const bool is_arm = std::ranges::find(targets, target::neon) != targets.end();
    const bool is_x86 = std::ranges::find(targets, target::avx2) != targets.end();
    EXPECT_FALSE(is_arm && is_x86);
#if defined(__aarch64__)
    EXPECT_TRUE(is_arm);
#elif defined(__x86_64__)
    EXPECT_FALSE(is_arm);
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
        EXPECT_EQ(targets.back(), target::avx512);
    }
#endif
}

TEST_F(dispatch_test, the_best_target_is_active_until_one_is_forced)
{
    EXPECT_EQ(dispatch::active(), dispatch::targets().back());
    for (const target t : dispatch::targets()) {
        EXPECT_TRUE(dispatch::force(t));
        EXPECT_EQ(dispatch::active(), t);
    }
    ASSERT_TRUE(dispatch::force(target::scalar));
    dispatch::release();
    EXPECT_EQ(dispatch::active(), dispatch::targets().back());
}

TEST_F(dispatch_test, a_target_that_cannot_run_is_refused)
{
    ASSERT_TRUE(dispatch::force(target::scalar));
    bool refused = false;
    for (const target t : {target::scalar, target::neon, target::avx2, target::avx512}) {
        if (std::ranges::find(dispatch::targets(), t) != dispatch::targets().end()) continue;
        EXPECT_FALSE(dispatch::force(t)) << dispatch::name(t);
        EXPECT_EQ(dispatch::active(), target::scalar) << "nothing changes";
        refused = true;
    }
    EXPECT_TRUE(refused) << "no CPU has both NEON and AVX2";
    EXPECT_FALSE(dispatch::force(static_cast<target>(77)));
    EXPECT_EQ(dispatch::active(), target::scalar);
}

TEST_F(dispatch_test, targets_have_names)
{
    EXPECT_EQ(dispatch::name(target::scalar), "scalar");
    EXPECT_EQ(dispatch::name(target::neon), "neon");
    EXPECT_EQ(dispatch::name(target::avx2), "avx2");
    EXPECT_EQ(dispatch::name(target::avx512), "avx512");
}

/// The outputs of every operation on fixed inputs, one after the other. `Api` says whose operations.
template <class T>
struct inputs {
    std::vector<T> x, w, dy, unit, tails;

    inputs()
    {
        reference::random random{1};
        x = random.row<T>(1000, -5, 5);
        w = random.row<T>(1000);
        dy = random.row<T>(1000);
        unit = random.row<T>(1000, 0, 1);
        const auto low = sizeof(T) == 4 ? -110.0 : -755.0;
        tails = random.row<T>(1000, low, -low);
        for (std::size_t j = 0; j < 300; ++j) tails[j] = random.pattern<T>();
        tails[0] = std::numeric_limits<T>::quiet_NaN();
        tails[1] = std::numeric_limits<T>::infinity();
        tails[2] = -tails[1];
        tails[3] = T(-0.0);
    }
};

// One text for both interfaces: they differ in nothing but the namespace.
#define RESIDUA_TESTS_OUTPUTS(function, api)                                                                   \
    template <class T>                                                                                         \
    std::vector<T> function(const inputs<T>& in)                                                               \
    {                                                                                                          \
        std::vector<T> all;                                                                                    \
        std::vector<T> y(1000);                                                                                \
        std::vector<T> dw(1000, T(1));                                                                         \
        const auto keep = [&] { all.insert(all.end(), y.begin(), y.end()); };                                  \
        for (const auto* const x : {&in.x, &in.tails}) {                                                       \
            api::exp(y, *x), keep();                                                                           \
            api::log(y, *x), keep();                                                                           \
            api::tanh(y, *x), keep();                                                                          \
            api::sigmoid(y, *x), keep();                                                                       \
            api::silu(y, *x), keep();                                                                          \
            api::cos_2pi(y, *x), keep();                                                                       \
            api::softmax(y, *x), keep();                                                                       \
            api::softmax(y, std::span{*x}.last(y.size())), keep();                                             \
            api::tanh_vjp_from_output(y, *x, in.dy), keep();                                                   \
            api::residual_add(y, *x, in.dy, T(0.3)), keep();                                                   \
            api::scale(y, *x, T(0.3)), keep();                                                                 \
            api::swiglu(y, *x, in.dy), keep();                                                                 \
            api::clamped_swiglu(y, *x, in.dy, {.limit = T(1)}), keep();                                        \
            api::gpt_oss_swiglu(y, *x, in.dy), keep();                                                         \
            api::situ_glu(y, *x, in.dy), keep();                                                               \
            api::rms_norm(y, *x, in.w, {.eps = T(1e-6)}), keep();                                              \
            api::rms_norm(residua::rows{y.data(), 10, 100}, residua::rows{x->data(), 10, 100}, api::no_weight, \
                          {.eps = T(1e-6)}),                                                                   \
                keep();                                                                                        \
            api::zero_centered_rms_norm(y, *x, in.w, {.eps = T(1e-6)}), keep();                                \
            api::rms_norm_vjp(y, dw, *x, in.w, in.dy, {.eps = T(1e-6)}), keep();                               \
            all.insert(all.end(), dw.begin(), dw.end());                                                       \
            all.push_back(api::rms(*x));                                                                       \
            all.push_back(api::dot(*x, in.dy));                                                                \
            const residua::rows<const T> matrix{x->data(), 20, 50};                                            \
            std::vector<T> twenty(20);                                                                         \
            api::matvec(twenty, matrix, std::span{in.dy}.first(50));                                           \
            all.insert(all.end(), twenty.begin(), twenty.end());                                               \
            std::vector<T> fifty(50);                                                                          \
            api::matvec_transposed(fifty, matrix, std::span{in.dy}.first(20));                                 \
            all.insert(all.end(), fifty.begin(), fifty.end());                                                 \
        }                                                                                                      \
        api::box_muller(y, in.unit, in.unit), keep();                                                          \
        return all;                                                                                            \
    }
RESIDUA_TESTS_OUTPUTS(outputs_of_static, residua)
RESIDUA_TESTS_OUTPUTS(outputs_of_dispatch, residua::dispatch)

template <class T>
void expect_the_same_bits_from_every_target()
{
    const inputs<T> in;
    const auto right = outputs_of_static(in);
    for (const target t : dispatch::targets()) {
        ASSERT_TRUE(dispatch::force(t));
        EXPECT_TRUE(ulp::all_same_bits(outputs_of_dispatch(in), right)) << dispatch::name(t);
    }
}

TEST_F(dispatch_test, every_target_gives_the_bits_of_the_static_functions)
{
    expect_the_same_bits_from_every_target<float>();
    expect_the_same_bits_from_every_target<double>();
}

TEST_F(dispatch_test, probes_run_on_every_target)
{
    namespace probe = dispatch::probe;
    reference::random random{2};
    const auto w = random.row<double>(2 * 64, -0.5, 0.5);
    const auto x = random.row<double>(8);
    const auto run = [&] {
        std::vector<double> hidden(8);
        std::vector<double> inner(8);
        std::vector<probe::tanh_sublayer<double>> layers(
            3, {{w.data(), 8, 8}, {w.data() + 64, 8, 8}, {hidden.data(), 1, 8}, {inner.data(), 1, 8}});
        std::vector<double> stream(4 * 8);
        std::ranges::copy(x, stream.begin());
        std::vector<double> scratch(2 * 8);
        const probe::wiring<double> how{.residual = true, .pre_norm = true};
        probe::forward(residua::rows<double>{stream.data(), 4, 8}, std::span<probe::tanh_sublayer<double>>{layers},
                       how, residua::rows<double>{scratch.data(), 2, 8});
        return stream;
    };
    ASSERT_TRUE(dispatch::force(target::scalar));
    const auto right = run();
    for (const target t : dispatch::targets()) {
        ASSERT_TRUE(dispatch::force(t));
        EXPECT_TRUE(ulp::all_same_bits(run(), right)) << dispatch::name(t);
    }
}

TEST_F(dispatch_test, any_thread_may_call_while_another_forces)
{
    reference::random random{3};
    const auto x = random.row<float>(500);
    std::vector<float> right(500);
    residua::rms_norm(right, x, residua::no_weight, {.eps = 1e-6F});
    std::atomic<int> wrong{0};
    std::atomic<bool> done{false};
    std::vector<std::thread> callers;
    for (int i = 0; i < 3; ++i) {
        callers.emplace_back([&] {
            std::vector<float> y(500);
            while (!done) {
                dispatch::rms_norm(y, x, dispatch::no_weight, {.eps = 1e-6F});
                if (y != right) ++wrong;
            }
        });
    }
    for (int round = 0; round < 300; ++round) {
        for (const target t : dispatch::targets()) EXPECT_TRUE(dispatch::force(t));
        dispatch::release();
    }
    done = true;
    for (auto& caller : callers) caller.join();
    EXPECT_EQ(wrong, 0);
}

TEST_F(dispatch_test, a_forced_target_is_not_undone_by_a_first_call_elsewhere)
{
    std::atomic<bool> done{false};
    std::vector<std::thread> callers;
    for (int i = 0; i < 3; ++i) {
        callers.emplace_back([&] {
            while (!done) static_cast<void>(dispatch::active());
        });
    }
    int undone = 0;
    for (int round = 0; round < 500000; ++round) {
        dispatch::release();
        static_cast<void>(dispatch::force(target::scalar));
        for (int i = 0; i < 20; ++i) {
            if (dispatch::active() != target::scalar) {
                ++undone;
                break;
            }
        }
    }
    done = true;
    for (auto& caller : callers) caller.join();
    EXPECT_EQ(undone, 0);
}

}  // namespace

/// In dispatch_header_test.cpp, which includes dispatch.hpp and nothing else.
bool call_from_a_unit_of_its_own(std::span<float> y, std::span<const float> x);

TEST_F(dispatch_test, the_header_alone_is_enough)
{
    const std::array<float, 4> x{1, -1, 1, -1};
    std::array<float, 4> y{};
    EXPECT_TRUE(call_from_a_unit_of_its_own(y, x));
    EXPECT_EQ(y, x);
}
