#include "goals.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace bench {

namespace {

using words = std::vector<std::string_view>;

bool contains(const words& all, std::string_view one)
{
    return std::find(all.begin(), all.end(), one) != all.end();
}

const words norms{"rms_norm", "zero_centered_rms_norm"};
const words adds{"residual_add", "residual_add_in_place"};
const words gated{"swiglu", "clamped_swiglu", "gpt_oss_swiglu"};
const words halves{"bf16", "f16"};

/// The library's lines through dispatch, and what they can be compared with.
class standings {
public:
    explicit standings(const std::vector<line>& lines) : lines_{lines}
    {
        for (const line& l : lines) {
            by_cell_[l.what] = &l;
            if (l.what.backend == "dispatch" && l.what.target > best_) best_ = l.what.target;
        }
    }

    const std::string& best_target() const { return best_; }

    using measure = std::function<std::optional<double>(const line&)>;

    /// The lines of dispatch on one target.
    std::vector<standing> of(const words& operations, const words& types, std::string_view tier,
                             std::string_view target, const std::function<bool(const cell&)>& where,
                             const measure& value) const
    {
        std::vector<standing> found;
        for (const line& l : lines_) {
            const cell& c = l.what;
            if (c.backend != "dispatch" || !contains(operations, c.operation) || !contains(types, c.type)) continue;
            if (c.tier != tier || c.target != target || !where(c)) continue;
            if (const auto v = value(l)) found.push_back({c, *v});
        }
        return found;
    }

    const line* find(const cell& c) const
    {
        const auto found = by_cell_.find(c);
        return found == by_cell_.end() ? nullptr : found->second;
    }

    /// The time over that of another cell, which `change` makes of this one.
    measure over(std::function<void(cell&)> change) const
    {
        return [this, change = std::move(change)](const line& l) -> std::optional<double> {
            cell other = l.what;
            change(other);
            const line* const found = find(other);
            if (found == nullptr) return {};
            return l.ns_per_row / found->ns_per_row;
        };
    }

private:
    const std::vector<line>& lines_;
    std::map<cell, const line*> by_cell_;
    std::string best_;
};

std::optional<double> over_limit(const line& l)
{
    if (!(l.limit_ns > 0)) return {};
    return l.ratio_to_limit();
}
std::optional<double> over_best_other(const line& l)
{
    if (!(l.best_other_ns > 0)) return {};
    return 1 / l.speedup();
}

bool in_cache(const cell& c) { return c.regime == "cache"; }
bool from_memory(const cell& c) { return c.regime == "memory"; }
bool from_memory_and_long(const cell& c) { return from_memory(c) && c.columns >= 768; }

/// The slowest offset over the fastest, for each number of columns.
std::vector<standing> offsets(const std::vector<line>& lines)
{
    std::map<std::size_t, std::pair<const line*, const line*>> extremes;
    for (const line& l : lines) {
        if (!l.what.regime.starts_with("offset_")) continue;
        auto& [fastest, slowest] = extremes[l.what.columns];
        if (fastest == nullptr || l.ns_per_row < fastest->ns_per_row) fastest = &l;
        if (slowest == nullptr || l.ns_per_row > slowest->ns_per_row) slowest = &l;
    }
    std::vector<standing> found;
    for (const auto& [columns, pair] : extremes) {
        found.push_back({pair.second->what, pair.second->ns_per_row / pair.first->ns_per_row});
    }
    return found;
}

/// Of a short row of a norm, what does not depend on its elements: the line through two lengths, at none.
std::vector<standing> cost_of_a_row(const standings& all)
{
    std::vector<standing> found;
    for (const std::string_view operation : norms) {
        const auto at = [&](std::size_t columns) {
            return all.find(
                {std::string{operation}, "f32", "standard", all.best_target(), "dispatch", columns, "cache"});
        };
        const line* const shorter = at(64);
        const line* const longer = at(128);
        if (shorter != nullptr && longer != nullptr) {
            found.push_back({shorter->what, 2 * shorter->ns_per_row - longer->ns_per_row});
        }
    }
    return found;
}

/// What a call through dispatch takes longer than one of the same vectors without: the library on Highway, statically.
std::vector<standing> cost_of_dispatch(const standings& all)
{
    return all.of(
        {"rms_norm", "residual_add", "swiglu"}, {"f32"}, "standard", all.best_target(),
        [](const cell& c) { return c.regime == "call"; },
        [&](const line& l) -> std::optional<double> {
            cell other = l.what;
            other.backend = "highway";
            const line* const found = all.find(other);
            if (found == nullptr) return {};
            return l.ns_per_row - found->ns_per_row;
        });
}

}  // namespace

bool goal::met() const { return !measured.empty() && worst().value <= at_most; }

const standing& goal::worst() const
{
    return *std::max_element(measured.begin(), measured.end(),
                             [](const standing& a, const standing& b) { return a.value < b.value; });
}

double goal::mean() const
{
    double sum = 0;
    for (const standing& s : measured) sum += unit == "x" ? std::log(s.value) : s.value;
    const double mean = sum / static_cast<double>(measured.size());
    return unit == "x" ? std::exp(mean) : mean;
}

std::vector<goal> goals(const std::vector<line>& lines)
{
    const standings all{lines};
    const std::string& best = all.best_target();
    std::vector<goal> found;
    const auto add = [&](std::string text, double at_most, std::vector<standing> measured, std::string unit = "x") {
        found.push_back({std::move(text), at_most, std::move(unit), std::move(measured)});
    };
    const auto of = [&](const words& operations, const words& types, const auto& where,
                        const standings::measure& value, std::string_view tier = "standard") {
        return all.of(operations, types, tier, best, where, value);
    };

    add("norms, f32, in cache: at most 1/1.1 of the time of the best other", 1 / 1.1,
        of(norms, {"f32"}, in_cache, over_best_other));
    add("norms, f32, from memory, d >= 768: of the limit", 1.15,
        of(norms, {"f32"}, from_memory_and_long, over_limit));
    add("add_rms_norm, f32, in cache: at most 1/1.1 of the time of the best other", 1 / 1.1,
        of({"add_rms_norm"}, {"f32"}, in_cache, over_best_other));
    add("add_rms_norm, f32, from memory: of the limit", 1.15,
        of({"add_rms_norm"}, {"f32"}, from_memory, over_limit));

    add("SwiGLU family, f32, in cache: of ggml's way with intrinsics", 1,
        of(gated, {"f32"}, in_cache, all.over([](cell& c) {
            c.tier = "own";
            c.backend = "hand";
        })));
    add("SwiGLU family, f32, from memory: of the limit", 1.05, of(gated, {"f32"}, from_memory, over_limit));
    add("SwiGLU, clamped forms, f32, in cache: of the plain form", 1.1,
        of({"clamped_swiglu", "gpt_oss_swiglu"}, {"f32"}, in_cache,
           all.over([](cell& c) { c.operation = "swiglu"; })));
    add("SwiGLU, precise, f32, in cache: of the standard tier", 1.5,
        of(gated, {"f32"}, in_cache, all.over([](cell& c) { c.tier = "standard"; }), "precise"));
    add("SwiGLU, precise, f32, from memory: of the limit", 1.15,
        of(gated, {"f32"}, from_memory, over_limit, "precise"));
    add("SwiGLU, packed halves and interleaved, f32, in cache: of separate inputs", 1.1,
        of({"swiglu_halves", "swiglu_interleaved"}, {"f32"}, in_cache,
           all.over([](cell& c) { c.operation = "swiglu"; })));
    add("SwiGLU, packed halves and interleaved, f32, from memory, d >= 768: of separate inputs", 1.1,
        of({"swiglu_halves", "swiglu_interleaved"}, {"f32"}, from_memory_and_long,
           all.over([](cell& c) { c.operation = "swiglu"; })));

    add("residual_add, f32, in place and not, in cache: of the limit", 1, of(adds, {"f32"}, in_cache, over_limit));
    add("residual_add, f32, in place and not, from memory: of the limit", 1.05,
        of(adds, {"f32"}, from_memory, over_limit));

    const auto of_f32 = all.over([](cell& c) { c.type = "f32"; });
    const words all_forward{"rms_norm",       "zero_centered_rms_norm", "add_rms_norm",
                            "residual_add",   "residual_add_in_place",  "swiglu",
                            "clamped_swiglu", "gpt_oss_swiglu"};
    add("bf16 and f16, in cache: of f32 at the same d", 1, of(all_forward, halves, in_cache, of_f32));
    add("bf16 and f16, norms and adds, from memory: of the limit", 1.25,
        of({"rms_norm", "zero_centered_rms_norm", "add_rms_norm", "residual_add", "residual_add_in_place"}, halves,
           from_memory, over_limit));
    add("bf16 and f16, SwiGLU family, from memory: of the limit", 1.5, of(gated, halves, from_memory, over_limit));

    const words gradients{"rms_norm_vjp", "add_rms_norm_vjp", "swiglu_vjp"};
    add("gradients, f32, in cache: of the forward operation", 2,
        of(gradients, {"f32"}, in_cache,
           all.over([](cell& c) { c.operation.resize(c.operation.size() - std::string_view{"_vjp"}.size()); })));
    add("gradients, f32, from memory: of the limit", 1.25, of(gradients, {"f32"}, from_memory, over_limit));

    add("short rows (d = 64, 128), norms: what a row takes beyond its elements", 5, cost_of_a_row(all), "ns");
    add("dispatch: what a call takes beyond a static one", 3, cost_of_dispatch(all), "ns");

    if (best == "avx512") {
        const auto on_avx2 = [&](const auto& where, const standings::measure& value) {
            return all.of(all_forward, {"f32"}, "standard", "avx2", where, value);
        };
        add("AVX2, f32, in cache: of AVX-512", 2, on_avx2(in_cache, all.over([&](cell& c) { c.target = best; })));
        add("AVX2, f32, in cache: of the best other built for AVX2", 1, on_avx2(in_cache, over_best_other));
        add("AVX2, f32, from memory: of the limit", 1.15, on_avx2(from_memory, over_limit));
    }

    add("rms_norm, any offset of y modulo 4 KiB: of the best offset", 1.25, offsets(lines));
    const auto of_usual = all.over([](cell& c) { c.regime = "cache"; });
    const words every{"rms_norm",       "zero_centered_rms_norm", "rms_norm_vjp", "residual_add", "swiglu",
                      "clamped_swiglu", "gpt_oss_swiglu",         "tanh",         "silu"};
    add("rows of 1e30: of the usual row", 3,
        of(every, {"f32"}, [](const cell& c) { return c.regime == "huge"; }, of_usual));
    add("subnormal results: of the usual ones", 3,
        of(every, {"f32"}, [](const cell& c) { return c.regime == "tiny"; }, of_usual));
    return found;
}

}  // namespace bench
