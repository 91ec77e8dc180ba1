#include "selection.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "machine.hpp"

namespace bench {

namespace {

constexpr std::size_t smoke_columns = 112;  // with a tail
constexpr std::size_t call_columns = 64;
constexpr std::array<std::size_t, 5> cached_columns{64, 128, 768, 5120, 17408};
constexpr std::array<std::size_t, 2> memory_columns{768, 5120};
constexpr std::array<std::size_t, 2> offset_columns{2048, 5120};
constexpr std::string_view offset_prefix = "offset_";

/// Outputs of one call beside the last level of the cache, each stored in every way: where `automatic` changes from one to
/// the other, and what that is to whoever reads the output next.
constexpr std::size_t level_columns = 5120;
constexpr std::string_view half_prefix = "half_level_", twice_prefix = "twice_level_";
constexpr std::array<std::string_view, 3> ways{"cached", "streaming", "automatic"};

storing way_of(std::string_view regime)
{
    return static_cast<storing>(
        std::find_if(ways.begin(), ways.end(), [&](std::string_view way) { return regime.ends_with(way); })
        - ways.begin());
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words)
{
    return std::find(words.begin(), words.end(), text) != words.end();
}

const operation* find(std::string_view name)
{
    for (const operation& o : operations()) {
        if (o.name == name) return &o;
    }
    return nullptr;
}

bool is_limit(const operation& o) { return std::string_view{o.limit} == o.name; }

/// The last that this machine has.
bool has_best_target(const contender& c)
{
    std::string_view best;
    for (const contender& other : contenders()) {
        if (std::string_view{other.backend} == "dispatch") best = other.target;
    }
    return best == c.target;
}

/// What the five minutes are spent on: this library as its users meet it, through dispatch, everywhere; its static backends
/// and AVX2 on a best CPU where they can differ; others where somebody would choose them.
bool is_in_quick_set(const measurement& m)
{
    const contender& who = *m.who;
    const std::string_view backend = who.backend;
    if (is_limit(*m.what)) return has_best_target(who);
    const bool is_float = who.element == type::f32;
    const bool is_long = m.columns == 5120;
    if (is_one_of(backend, {"scalar", "xsimd", "highway"})) {
        return is_float && m.regime == "cache" && (m.columns == 128 || is_long);
    }
    if (backend == "plain") return is_long && m.regime == "cache";  // the other plain loop is faster everywhere
    if (who.element == type::f16 && !is_long && m.columns != 768) return false;
    if (!is_float && m.columns == 64) return false;
    if (m.regime == "memory")
        return (is_float || is_long)
               && (has_best_target(who) || who.target == std::string_view{"native"} || is_long);
    return true;
}

void add_regimes(std::vector<measurement>& all, const operation& what, const contender& who, selection chosen)
{
    const bool is_dispatch = std::string_view{who.backend} == "dispatch";
    if (is_one_of(what.name, {"residual_add", "residual_add_then_rms"}) && is_dispatch && has_best_target(who)
        && who.element == type::f32 && chosen != selection::smoke) {
        for (const std::string_view prefix : {half_prefix, twice_prefix}) {
            for (const std::string_view way : ways) {
                all.push_back({&what, &who, level_columns, fmt::format("{}{}", prefix, way)});
            }
        }
    }
    if (is_one_of(what.name, {"residual_add_then_rms"})) return;

    const auto add = [&](std::size_t columns, std::string_view regime) {
        measurement m{&what, &who, columns, std::string{regime}};
        if (chosen != selection::quick || is_in_quick_set(m)) all.push_back(std::move(m));
    };
    if (chosen == selection::smoke) {
        add(smoke_columns, "cache");
        add(smoke_columns, "memory");
        return;
    }
    for (const std::size_t n : cached_columns) add(n, "cache");
    for (const std::size_t n : memory_columns) add(n, "memory");

    // Regimes of this library alone.
    if (!has_best_target(who) || who.element != type::f32 || is_limit(what)) return;
    if (is_dispatch || is_one_of(who.backend, {"xsimd", "highway"})) {
        if (is_one_of(what.name, {"rms_norm", "residual_add", "swiglu"})) {
            all.push_back({&what, &who, call_columns, "call"});
        }
    }
    if (!is_dispatch) return;
    if (what.tiny > 0) all.push_back({&what, &who, 5120, "tiny"});
    if (what.weight && what.updates == 0) all.push_back({&what, &who, 5120, "huge"});
    if (is_one_of(what.name, {"rms_norm"})) {
        const std::size_t step = 64;
        for (const std::size_t n : offset_columns) {
            for (std::size_t offset = step; offset <= 4096; offset += step) {
                all.push_back({&what, &who, n, fmt::format("{}{:04}", offset_prefix, offset % 4096)});
            }
        }
    }
}

}  // namespace

std::vector<measurement> measurements(selection chosen)
{
    std::vector<measurement> all;
    for (const contender& who : contenders()) {
        if (const operation* const what = find(who.operation)) add_regimes(all, *what, who, chosen);
    }
    return all;
}

operands::place place_of(const measurement& m, selection chosen)
{
    const std::size_t row_bytes = m.columns * size_of(m.who->element);
    operands::place where;
    if (m.regime == "memory") {
        const bool smoke = chosen == selection::smoke;
        where.memory = smoke ? std::size_t{1} << 20U : far_beyond_the_cache(std::size_t{2} << 30U);
        // Rows of a call such that its end is aligned, and its time is far above the clock's resolution.
        const std::size_t call_bytes = smoke ? std::size_t{1} << 16U : std::size_t{1} << 20U;
        where.rows = std::max<std::size_t>(64, call_bytes / row_bytes / 64 * 64);
        // a call is too small for this to be automatic
        where.stores = storing::streaming;
        return where;
    }
    if (m.regime.starts_with(half_prefix) || m.regime.starts_with(twice_prefix)) {
        const std::size_t level = last_level_cache();
        const std::size_t bytes = m.regime.starts_with(half_prefix) ? level / 2 : 2 * level;
        where.rows = std::min(bytes, available_memory() / 8) / row_bytes;
        where.memory = 3 * where.rows * row_bytes;
        where.stores = way_of(m.regime);
        return where;
    }
    // A few rows, so that what a call costs is shared as it is in use, and all stay in the first level.
    constexpr std::size_t near = 8 * 1024;
    if (m.regime != "call") where.rows = std::max<std::size_t>(1, near / row_bytes);
    if (m.regime == "huge") where.scale = 1e30f;
    if (m.regime == "tiny") where.scale = m.what->tiny;
    if (m.regime.starts_with(offset_prefix)) {
        const char* const digits = m.regime.data() + offset_prefix.size();
        std::from_chars(digits, m.regime.data() + m.regime.size(), where.output_offset);
        if (where.output_offset == 0) where.output_offset = 4096;
    }
    return where;
}

}  // namespace bench
