#include "ledger.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "qwen3_8_27b.hpp"

namespace lesson {

namespace {

using residua::rows;

// --- how the page writes numbers --------------------------------------------------------------------------------

/// 12288 as 12,288.
std::string grouped(std::int64_t n)
{
    return n < 1000 ? fmt::format("{}", n) : fmt::format("{},{:03}", grouped(n / 1000), n % 1000);
}

/// 1.4e-20: the exponent is not padded.
std::string scientific(double x, int digits = 1)
{
    const std::string text = fmt::format("{:.{}e}", x, digits);
    const auto e = text.find('e');
    return fmt::format("{}e{}", text.substr(0, e), std::stoi(text.substr(e + 1)));
}

std::string fixed(double x, int digits) { return fmt::format("{:.{}f}", x, digits); }

/// The outcome of a whole number.
outcome whole(std::int64_t n, std::string shown) { return {static_cast<double>(n), std::move(shown)}; }

// --- gated activations at a single point ------------------------------------------------------------------------

using activation = double (*)(double gate, double up);

double swiglu(double gate, double up)
{
    std::array<double, 1> y{};
    dispatch::swiglu(y, std::array{gate}, std::array{up});
    return y[0];
}

double gpt_oss(double gate, double up)
{
    std::array<double, 1> y{};
    dispatch::gpt_oss_swiglu(y, std::array{gate}, std::array{up});
    return y[0];
}

double deepseek(double gate, double up)
{
    std::array<double, 1> y{};
    dispatch::clamped_swiglu(y, std::array{gate}, std::array{up}, {.limit = 10.0});
    return y[0];
}

/// The smallest x from which a rising f reaches a level: bisection down to neighbouring numbers.
template <class F>
double reaches(F f, double level, double low, double high)
{
    for (;;) {
        const double middle = low + (high - low) / 2;
        if (middle <= low || middle >= high) return high;
        (f(middle) >= level ? high : low) = middle;
    }
}

/// What a clamped activation gives at most, and the limit from which neither gate nor up raises it any more.
outcome clamped(activation f)
{
    constexpr double far = 1e6;
    const double largest = f(far, far);
    const double gate_limit = reaches([&](double gate) { return f(gate, far); }, largest, 1, far);
    const double up_limit = reaches([&](double up) { return f(far, up); }, largest, 1, far);
    // A few ulp below the limit the rounded output is the largest one already.
    const auto text = [](double x) { return fmt::format("{:.6g}", x); };
    return {largest, text(gate_limit), text(gate_limit) == text(up_limit)};
}

/// SiTU-GLU over gates and ups of all sizes and signs: its largest output, which must never be beyond the bound, and
/// must stay below it until tanh itself rounds to one.
outcome soft_cap()
{
    constexpr residua::dispatch::situ_glu_options<double> kimi{};
    constexpr double bound = kimi.beta * kimi.linear_beta;
    std::vector<double> inputs;
    for (double x = 0.125; x < 1e300; x *= x < 1e3 ? 1.25 : 1e3) {
        inputs.push_back(x);
        inputs.push_back(-x);
    }
    double largest = 0;
    bool below = true;
    std::vector<double> ups(inputs.size()), y(inputs.size());
    for (const double gate : inputs) {
        std::ranges::fill(ups, gate);
        dispatch::situ_glu(y, ups, inputs, kimi);
        for (std::size_t i = 0; i < y.size(); ++i) {
            const double size = std::abs(y[i]);
            // tanh(15) is the last that is well away from one
            const bool moderate = std::abs(gate) <= 15 * kimi.beta && std::abs(inputs[i]) <= 15 * kimi.linear_beta;
            below = below && (moderate ? size < bound : size <= bound);
            largest = std::max(largest, y[i]);
        }
    }
    return {largest, below ? "soft cap" : "exceeded", below};
}

/// Zero-centred RMSNorm with its initial weight of zero is the norm without a weight, bit for bit.
bool starts_as_plain_norm()
{
    constexpr std::array x{0.5, -3.0, 1e-3, 40.0, -0.0};
    const std::array<double, x.size()> weight{};
    std::array<double, x.size()> centred{}, bare{};
    dispatch::zero_centered_rms_norm(centred, x, weight, {.eps = qwen3_8_27b::norm_eps});
    dispatch::rms_norm(bare, x, dispatch::no_weight, {.eps = qwen3_8_27b::norm_eps});
    return centred == bare;
}

// --- the four paths ---------------------------------------------------------------------------------------------

/// F(x) = 0.5 x.
struct half {
    void forward(rows<double> y, rows<const double> x) const { dispatch::scale(y, x, 0.5); }
    void vjp(rows<double> dx, rows<const double>, rows<const double> dy) const { dispatch::scale(dx, dy, 0.5); }
};

/// Two sublayers F(x) = 0.5 x on a scalar stream, and the four ways of the gradient through them.
outcome four_paths()
{
    std::array<half, 2> halves;
    const std::span<half> sublayers{halves};
    const probe::wiring<double> residual{.residual = true};
    std::array<double, 3> stream{1, 0, 0};
    std::array<double, 2> memory{};
    const rows<double> x{stream.data(), 3, 1};
    const rows<double> scratch{memory.data(), 2, 1};
    const rows<const double> passed = x;
    probe::forward(x, sublayers, residual, scratch);

    // past both, through the first alone, through the second alone, through both
    constexpr std::array<std::array<bool, 2>, 4> paths{
        {{false, false}, {true, false}, {false, true}, {true, true}}};
    std::array<double, 4> along{};
    std::array<double, 1> sum{};
    for (std::size_t i = 0; i < paths.size(); ++i) {
        std::array<double, 1> g{1};
        probe::along_path(rows<double>{g.data(), 1, 1}, passed, sublayers, std::span<const bool>{paths[i]},
                          residual, scratch);
        along[i] = g[0];
        dispatch::residual_add(sum, sum, g);
    }

    // The same by the number of sublayers crossed, and all at once; then the plain stack.
    std::array<double, 3> parts{1, 0, 0};
    probe::split_by_crossings(rows<double>{parts.data(), 3, 1}, passed, sublayers, residual, scratch);
    const auto ratio = [&](const probe::wiring<double>& how) {
        std::array<double, 1> g{1};
        std::array<probe::magnitude, 3> sizes;
        probe::forward(x, sublayers, how, scratch);
        probe::backward(rows<double>{g.data(), 1, 1}, passed, sublayers, how, scratch, std::span{sizes});
        return (sizes.front() / sizes.back()).value();
    };
    const bool split = parts == std::array{along[0], along[1] + along[2], along[3]};
    return {sum[0], fmt::format("{} + {} + {} + {}", along[0], along[1], along[2], along[3]),
            split && ratio(residual) == sum[0] && ratio({}) == along[3]};
}

// --- what else is measured ---------------------------------------------------------------------------------------

constexpr std::size_t writes = 128;

}  // namespace

measurements measure()
{
    // Enough for a standard error of about one per cent of the result.
    constexpr std::size_t elements = 4096;
    constexpr std::uint32_t seed = 129;
    const double rms = unit_writes(elements, writes, seed).back();
    const auto square = [](double x) { return swiglu(x, x); };
    return {.gradient = gradient_numbers_of(gradient_seed),
            .token = token_numbers_of(token_seed),
            .plain_distance_in_float = plain_distance_in_float(token_seed),
            .unit_writes_rms = rms,
            // of the root mean square of n normal deviates: its size / sqrt(2 n)
            .unit_writes_error = rms / std::sqrt(2.0 * elements),
            .overflow_e4m3 = reaches(square, 448, 1, 1000),
            .overflow_f16 = reaches(square, 65504, 1, 1000)};
}

std::array<double, 19> measurements::values() const
{
    return {gradient.plain_half,
            gradient.plain_two,
            gradient.orders,
            gradient.residual_smallest,
            gradient.start_rms,
            gradient.residual_rms,
            gradient.residual_ratio,
            token.start,
            token.plain_8,
            token.plain_32,
            token.residual,
            token.all_three,
            token.residual_cosine,
            token.all_three_cosine,
            plain_distance_in_float,
            unit_writes_rms,
            unit_writes_error,
            overflow_e4m3,
            overflow_f16};
}

bool entry::matches(const outcome& ours) const
{
    if (!ours.holds || ours.shown != printed) return false;
    return !expected || std::abs(ours.value - *expected) <= tolerance * std::abs(*expected);
}

namespace {

namespace qwen = qwen3_8_27b;
using m = const measurements&;

constexpr std::array entries{
    entry{.id = "L01",
          .printed = "5 x 5120",
          .from = origin::configured,
          .what = "tokens of the sentence x hidden size",
          .expected = 5120,
          .compute = [](m) { return whole(qwen::hidden, fmt::format("{} x {}", 5, qwen::hidden)); }},
    entry{.id = "L02",
          .printed = "64",
          .from = origin::configured,
          .what = "decoder layers: 16 of attention, 48 of Gated DeltaNet",
          .expected = 64,
          .compute = [](m) { return whole(qwen::layers, fmt::format("{}", qwen::layers)); }},
    entry{.id = "L03",
          .printed = "128",
          .from = origin::exact,
          .what = "sublayers, so writes to the residual stream",
          .expected = 128,
          .compute = [](m) { return whole(qwen::sublayers, fmt::format("{}", qwen::sublayers)); }},
    entry{.id = "L04",
          .printed = "27.94 / 28.54",
          .from = origin::reported,
          .what = "ImageNet top-1 error %, 18 / 34 plain layers",
          .source = "He et al. 2015, arXiv 1512.03385, Table 2"},
    entry{
        .id = "L05",
        .printed = "1.4e-20",
        .from = origin::simulated,
        .what = "gradient ratio, plain, gain 0.5",
        .expected = 1.4038152223957e-20,
        .tolerance = 1e-10,
        .compute = [](m all) -> outcome { return {all.gradient.plain_half, scientific(all.gradient.plain_half)}; }},
    entry{.id = "L06",
          .printed = "2.9e3",
          .from = origin::simulated,
          .what = "gradient ratio, plain, gain 2.0",
          .expected = 2894.3542791,
          .tolerance = 1e-8,
          .compute = [](m all) -> outcome { return {all.gradient.plain_two, scientific(all.gradient.plain_two)}; }},
    entry{.id = "L07",
          .printed = "23",
          .from = origin::simulated,
          .what = "orders of magnitude between the two",
          .expected = 23.3142,
          .tolerance = 1e-4,
          .compute = [](m all) -> outcome {
              return {all.gradient.orders, fmt::format("{}", static_cast<int>(all.gradient.orders))};
          }},
    entry{.id = "L08",
          .printed = "> 1",
          .from = origin::simulated,
          .what = "smallest gradient ratio, residual, gain 0.5 to 2",
          .compute = [](m all) -> outcome {
              const double smallest = all.gradient.residual_smallest;
              return {smallest, smallest > 1 ? "> 1" : fmt::format("{:.6g}", smallest)};
          }},
    entry{.id = "L09",
          .printed = "0.924",
          .from = origin::simulated,
          .what = "token distance at the start",
          .expected = 0.9241588158753553,
          .tolerance = 1e-12,
          .compute = [](m all) -> outcome { return {all.token.start, fixed(all.token.start, 3)}; }},
    entry{.id = "L10",
          .printed = "5.8e-3",
          .from = origin::simulated,
          .what = "token distance, plain, 8 layers",
          .expected = 0.0058371909031349,
          .tolerance = 1e-10,
          .compute = [](m all) -> outcome { return {all.token.plain_8, scientific(all.token.plain_8)}; }},
    entry{.id = "L11",
          .printed = "3.2e-10",
          .from = origin::simulated,
          .what = "token distance, plain, 32 layers",
          .expected = 3.19950e-10,
          .tolerance = 1e-5,
          .compute = [](m all) -> outcome { return {all.token.plain_32, scientific(all.token.plain_32)}; }},
    entry{.id = "L12",
          .printed = "0.026",
          .from = origin::simulated,
          .what = "token distance, residual, 32 layers",
          .expected = 0.026188722364422,
          .tolerance = 1e-10,
          .compute = [](m all) -> outcome { return {all.token.residual, fixed(all.token.residual, 3)}; }},
    entry{.id = "L13",
          .printed = "0.828",
          .from = origin::simulated,
          .what = "token distance, all three switches, 32 layers",
          .expected = 0.827840998295136,
          .tolerance = 1e-10,
          .compute = [](m all) -> outcome { return {all.token.all_three, fixed(all.token.all_three, 3)}; }},
    entry{.id = "L14",
          .printed = "1 -> 6.3",
          .from = origin::simulated,
          .what = "stream RMS over 32 sublayers, residual, gain 1",
          .expected = 6.3088043930107,
          .tolerance = 1e-10,
          .compute = [](m all) -> outcome {
              return {all.gradient.residual_rms,
                      fmt::format("{:.6g} -> {:.1f}", all.gradient.start_rms, all.gradient.residual_rms)};
          }},
    entry{.id = "L15",
          .printed = "x 20",
          .from = origin::simulated,
          .what = "gradient ratio, residual, gain 1",
          .expected = 20.373208337948,
          .tolerance = 1e-10,
          .compute = [](m all) -> outcome {
              return {all.gradient.residual_ratio, fmt::format("x {:.0f}", all.gradient.residual_ratio)};
          }},
    entry{.id = "L16",
          .printed = "0.999",
          .from = origin::simulated,
          .what = "mean cosine of tokens, residual",
          .expected = 0.99919006153606,
          .tolerance = 1e-10,
          .compute = [](m all) -> outcome {
              return {all.token.residual_cosine, fixed(all.token.residual_cosine, 3)};
          }},
    entry{.id = "L17",
          .printed = "0.162",
          .from = origin::simulated,
          .what = "mean cosine of tokens, all three switches",
          .expected = 0.161925716099235,
          .tolerance = 1e-10,
          .compute = [](m all) -> outcome {
              return {all.token.all_three_cosine, fixed(all.token.all_three_cosine, 3)};
          }},
    entry{.id = "L18",
          .printed = "1 + 0.5 + 0.5 + 0.25",
          .from = origin::exact,
          .what = "gradient paths of F(x) = 0.5 x, twice",
          .expected = 2.25,
          .compute = [](m) { return four_paths(); }},
    entry{.id = "L19",
          .printed = "11.36",
          .from = origin::exact,
          .what = "RMS after 128 unit writes: sqrt(1 + 128)",
          .expected = 11.357816691601,
          .tolerance = 1e-12,
          .compute = [](m all) -> outcome {
              const double predicted = std::sqrt(1 + static_cast<double>(writes));
              return {predicted, fixed(predicted, 2),
                      std::abs(all.unit_writes_rms - predicted) <= 4 * all.unit_writes_error};
          }},
    entry{.id = "L20",
          .printed = "1/sqrt(N)",
          .from = origin::exact,
          .what = "write scale, at N = 32",
          .expected = 0.17677669529664,
          .tolerance = 1e-12,
          .compute = [](m) -> outcome {
              // 32 unit writes with this scale add as much variance as the stream had: RMS sqrt(2).
              const double scale = 1 / std::sqrt(32.0);
              return {scale, "1/sqrt(N)", std::abs(32 * scale * scale - 1) < 1e-15};
          }},
    entry{.id = "L21",
          .printed = "512 -> 2048",
          .from = origin::configured,
          .what = "d_ff = 4 d, Transformer base (Vaswani et al. 2017)",
          .expected = 2048,
          .compute = [](m) { return whole(4 * 512, fmt::format("{} -> {}", 512, 4 * 512)); }},
    entry{.id = "L22",
          .printed = "5.12 / 4.92 / 4.75",
          .from = origin::reported,
          .what = "dev perplexity, d_ff 1024 / 2048 / 4096",
          .source = "Vaswani et al. 2017, arXiv 1706.03762, Table 3"},
    entry{.id = "L23",
          .printed = "768 -> 3,072",
          .from = origin::configured,
          .what = "d_ff = 4 d, GPT-2 small",
          .expected = 3072,
          .compute = [](m) { return whole(4 * 768, fmt::format("{} -> {}", 768, grouped(4 * 768))); }},
    entry{.id = "L24",
          .printed = "1.983 / 1.944",
          .from = origin::reported,
          .what = "log-perplexity at 65,536 steps, GELU / SwiGLU",
          .source = "Shazeer 2020, arXiv 2002.05202, Table 1"},
    entry{.id = "L25",
          .printed = "8,192 -> 22,016",
          .from = origin::configured,
          .what = "8 d / 3 up to a multiple of 256, DeepSeek-LLM-67B",
          .expected = 22016,
          .compute =
              [](m) {
                  constexpr std::int64_t d = 8192;
                  constexpr std::int64_t multiple = 3 * 256;
                  constexpr std::int64_t inner = (8 * d + multiple - 1) / multiple * 256;
                  return whole(inner, fmt::format("{} -> {}", grouped(d), grouped(inner)));
              }},
    entry{.id = "L26",
          .printed = "3.4d",
          .from = origin::configured,
          .what = "FFN width, 5,120 -> 17,408",
          .expected = 3.4,
          .tolerance = 1e-12,
          .compute = [](m) -> outcome {
              const double ratio = static_cast<double>(qwen::intermediate) / static_cast<double>(qwen::hidden);
              return {ratio, fmt::format("{:.6g}d", ratio)};
          }},
    entry{.id = "L27",
          .printed = "61.6 %",
          .from = origin::configured,
          .what = "FFN's share of all parameters of Qwen3.8-27B",
          .expected = 0.6159784,
          .tolerance = 1e-6,
          .compute = [](m) -> outcome {
              const double share =
                  static_cast<double>(qwen::parameters::ffn) / static_cast<double>(qwen::parameters::total);
              return {share, fmt::format("{:.1f} %", 100 * share)};
          }},
    entry{.id = "L28",
          .printed = "99.995",
          .from = origin::exact,
          .what = "SiLU(10) x 10",
          .expected = 99.99546021312976,
          .tolerance = 1e-7,
          .compute = [](m) -> outcome {
              const double y = swiglu(10, 10);
              return {y, fixed(y, 3)};
          }},
    entry{.id = "L29",
          .printed = "7",
          .from = origin::configured,
          .what = "gpt-oss clamp: its limit (value: largest output)",
          .expected = 55.999625026,
          .tolerance = 1e-7,
          .compute = [](m) { return clamped(gpt_oss); }},
    entry{.id = "L30",
          .printed = "10",
          .from = origin::configured,
          .what = "DeepSeek V4 clamp: its limit (value: largest output)",
          .expected = 99.99546021312976,
          .tolerance = 1e-7,
          .compute = [](m) { return clamped(deepseek); }},
    entry{.id = "L31",
          .printed = "soft cap",
          .from = origin::configured,
          .what = "Kimi K3 SiTU-GLU: never beyond 4 x 25 = 100",
          .expected = 100,
          .compute = [](m) { return soft_cap(); }},
    entry{.id = "L32",
          .printed = "0.00707",
          .from = origin::exact,
          .what = "initial size of residual projections: 0.02 / sqrt(8)",
          .expected = 0.0070710678118655,
          .tolerance = 1e-12,
          .compute = [](m) -> outcome {
              const double size = 0.02 / std::sqrt(8.0);
              return {size, fixed(size, 5)};
          }},
    entry{.id = "L33",
          .printed = "1e-6",
          .from = origin::configured,
          .what = "eps of the zero-centred RMSNorm (1 + w, w = 0)",
          .expected = 1e-6,
          .compute = [](m) -> outcome {
              return {qwen::norm_eps, scientific(qwen::norm_eps, 0), starts_as_plain_norm()};
          }},
    entry{.id = "L34",
          .printed = "46.7 % -> 4.8 %",
          .from = origin::reported,
          .what = "attention on the first token, without / with gate",
          .source = "Qiu et al. 2025, arXiv 2505.06708, Table 4"},
    entry{.id = "L35",
          .printed = "5,120 -> 12,288 = 2 x 6,144",
          .from = origin::configured,
          .what = "query projection with its output gate",
          .expected = 12288,
          .compute =
              [](m) {
                  return whole(qwen::query_and_gate_width,
                               fmt::format("{} -> {} = 2 x {}", grouped(qwen::hidden),
                                           grouped(qwen::query_and_gate_width), grouped(qwen::attention_width)));
              }},
    entry{.id = "L36",
          .printed = "4",
          .from = origin::configured,
          .what = "residual streams of mHC and of Gated Residual",
          .expected = 4,
          .compute = [](m) { return whole(4, fmt::format("{}", 4)); }},
    entry{.id = "L37",
          .printed = "6,144 / 17,408 / 5,120",
          .from = origin::configured,
          .what = "inner widths, and the one that all return to",
          .compute =
              [](m) {
                  return whole(qwen::hidden, fmt::format("{} / {} / {}", grouped(qwen::attention_width),
                                                         grouped(qwen::intermediate), grouped(qwen::hidden)));
              }},
    entry{.id = "L38",
          .printed = "4 and 12 layers",
          .from = origin::training,
          .what = "loss with and without the two x +",
          .source = "a training run; the page prints no number"},
    entry{.id = "L39",
          .printed = "figure",
          .from = origin::training,
          .what = "gradient that each block receives",
          .source = "a figure; `lesson plot` draws the random network's"},
    entry{.id = "L40",
          .printed = "figure",
          .from = origin::training,
          .what = "stream RMS against the number of writes",
          .source = "a figure; `lesson plot` draws the random network's"},
};

}  // namespace

std::span<const entry> ledger() { return entries; }

}  // namespace lesson
