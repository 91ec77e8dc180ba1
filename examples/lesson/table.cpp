#include "table.hpp"

#include <bit>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ledger.hpp"
#include "qwen3_8_27b.hpp"

namespace lesson {

namespace {

bool same_bits(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

/// What was computed with one instruction set.
struct run {
    std::string name;
    measurements measured;
    std::vector<outcome> outcomes;  // one for each entry; empty where it is not regenerable
};

run run_on(dispatch::target t)
{
    dispatch::force(t);
    run result{std::string{dispatch::name(t)}, measure(), {}};
    for (const entry& e : ledger()) {
        result.outcomes.push_back(e.regenerable() ? e.compute(result.measured) : outcome{});
    }
    return result;
}

std::vector<run> run_on_all()
{
    std::vector<run> runs;
    for (const auto t : dispatch::targets()) runs.push_back(run_on(t));
    dispatch::release();
    return runs;
}

/// Why an entry is not computed here.
std::string_view not_computed(const entry& e) { return e.from == origin::reported ? "cited" : "not run"; }

/// The comparison of everything with the page and with each other.
struct comparison {
    std::size_t regenerable = 0, matching = 0, cited = 0, not_run = 0;
    std::vector<std::string> with_other_bits;  // ids
    bool shared_bits_equal = true;

    bool bits_equal() const { return with_other_bits.empty() && shared_bits_equal; }
    bool all_match() const { return matching == regenerable && bits_equal(); }
};

bool matches_everywhere(const std::vector<run>& runs, std::size_t i)
{
    for (const run& r : runs) {
        if (!ledger()[i].matches(r.outcomes[i])) return false;
    }
    return true;
}

bool equal_everywhere(const std::vector<run>& runs, std::size_t i)
{
    for (const run& r : runs) {
        const outcome& first = runs.front().outcomes[i];
        if (!same_bits(r.outcomes[i].value, first.value) || r.outcomes[i].shown != first.shown) return false;
    }
    return true;
}

comparison compare(const std::vector<run>& runs)
{
    comparison result;
    for (std::size_t i = 0; i < ledger().size(); ++i) {
        const entry& e = ledger()[i];
        if (!e.regenerable()) {
            ++(e.from == origin::reported ? result.cited : result.not_run);
            continue;
        }
        ++result.regenerable;
        if (matches_everywhere(runs, i)) ++result.matching;
        if (!equal_everywhere(runs, i)) result.with_other_bits.emplace_back(e.id);
    }
    const auto first = runs.front().measured.values();
    for (const run& r : runs) {
        const auto values = r.measured.values();
        for (std::size_t i = 0; i < values.size(); ++i) {
            result.shared_bits_equal = result.shared_bits_equal && same_bits(values[i], first[i]);
        }
    }
    return result;
}

std::string names_of(const std::vector<run>& runs)
{
    std::string names;
    for (const run& r : runs) names += (names.empty() ? "" : ", ") + r.name;
    return names;
}

std::string about_bits(const std::vector<run>& runs, const comparison& compared)
{
    if (runs.size() == 1) {
        return fmt::format("Bits: this CPU runs one instruction set only ({}): nothing to compare.",
                           names_of(runs));
    }
    if (compared.bits_equal()) return fmt::format("Bits: identical on {}.", names_of(runs));
    if (compared.with_other_bits.empty()) return "Bits: DIFFERENT, in the numbers of the notes.";
    return fmt::format("Bits: DIFFERENT, in {}.", fmt::join(compared.with_other_bits, ", "));
}

std::string summary(const std::vector<run>& runs, const comparison& compared)
{
    const auto rest = fmt::format("{} cited from papers, {} not run", compared.cited, compared.not_run);
    if (compared.matching == compared.regenerable) {
        return fmt::format("All {} regenerable numbers match the page on {}; {}.", compared.regenerable,
                           names_of(runs), rest);
    }
    return fmt::format("{} of {} regenerable numbers DIFFER from the page; {}.",
                       compared.regenerable - compared.matching, compared.regenerable, rest);
}

/// One line for every number that is not what the page says.
std::vector<std::string> disagreements(const std::vector<run>& runs)
{
    std::vector<std::string> lines;
    for (const run& r : runs) {
        for (std::size_t i = 0; i < ledger().size(); ++i) {
            const entry& e = ledger()[i];
            if (!e.regenerable() || e.matches(r.outcomes[i])) continue;
            lines.push_back(fmt::format("{} on {}: {} ({:.17g}), the page has {}{}{}", e.id, r.name,
                                        r.outcomes[i].shown, r.outcomes[i].value, e.printed,
                                        e.expected ? fmt::format(" ({:.17g})", *e.expected) : "",
                                        r.outcomes[i].holds ? "" : "; what it says about it does not hold"));
        }
    }
    return lines;
}

/// What a careful reader should know of the numbers.
std::vector<std::string> notes(const measurements& measured)
{
    namespace parameters = qwen3_8_27b::parameters;
    const auto share = static_cast<double>(parameters::ffn) / static_cast<double>(parameters::text);
    return {
        fmt::format("L11 needs double: in single precision the distance stops at {:.1e}.",
                    measured.plain_distance_in_float),
        fmt::format("L05 to L17 are single draws, of seeds {} and {}: `lesson population` shows many.",
                    gradient_seed, token_seed),
        fmt::format("L19 by Monte Carlo, 128 writes of normal deviates: {:.2f}, standard error {:.2f}.",
                    measured.unit_writes_rms, measured.unit_writes_error),
        fmt::format("L27 counts the vision tower and the layer for a second token; of the text model alone it is "
                    "{:.1f} %.",
                    100 * share),
        fmt::format("L28 overflows nothing by itself: SiLU(x) x passes E4M3's 448 at x = {:.1f}, half precision's "
                    "65504 at {:.1f}.",
                    measured.overflow_e4m3, measured.overflow_f16),
    };
}

sheet for_readers(const std::vector<run>& runs)
{
    sheet result{{"id", "what it is", "page", "ours", "value"}, {}};
    for (const run& r : runs) result.columns.push_back(r.name);
    result.columns.push_back("verdict");
    for (std::size_t i = 0; i < ledger().size(); ++i) {
        const entry& e = ledger()[i];
        const outcome& ours = runs.front().outcomes[i];
        std::vector<cell> row{std::string{e.id}, std::string{e.what}, std::string{e.printed}, ours.shown,
                              e.regenerable() ? fmt::format("{:.10g}", ours.value) : ""};
        for (const run& r : runs) {
            row.emplace_back(std::string{!e.regenerable() ? "" : e.matches(r.outcomes[i]) ? "ok" : "NO"});
        }
        if (!e.regenerable()) {
            row.emplace_back(fmt::format("{}: {}", not_computed(e), e.source));
        } else if (!matches_everywhere(runs, i)) {
            row.emplace_back("DIFFERS");
        } else {
            row.emplace_back(equal_everywhere(runs, i) ? "matches" : "matches, but the bits DIFFER");
        }
        result.rows.push_back(std::move(row));
    }
    return result;
}

sheet for_programs(const std::vector<run>& runs)
{
    sheet result{{"id", "printed", "class", "target", "value", "shown", "match"}, {}};
    for (std::size_t i = 0; i < ledger().size(); ++i) {
        const entry& e = ledger()[i];
        const std::string id{e.id}, printed{e.printed}, from(1, static_cast<char>(e.from));
        if (!e.regenerable()) {
            result.rows.push_back({id, printed, from, {}, {}, {}, std::string{not_computed(e)}});
            continue;
        }
        for (const run& r : runs) {
            const outcome& ours = r.outcomes[i];
            result.rows.push_back(
                {id, printed, from, r.name, ours.value, ours.shown, std::string{e.matches(ours) ? "yes" : "no"}});
        }
    }
    return result;
}

std::string as_text(const std::vector<run>& runs, const comparison& compared)
{
    std::string text = as_table(for_readers(runs)) + '\n';
    for (const auto& line : notes(runs.front().measured)) text += line + '\n';
    text += '\n';
    for (const auto& line : disagreements(runs)) text += line + '\n';
    return text + about_bits(runs, compared) + '\n' + summary(runs, compared) + '\n';
}

std::string as_json(const std::vector<run>& runs, const comparison& compared)
{
    nlohmann::ordered_json out;
    for (const run& r : runs) out["targets"].push_back(r.name);
    out["all_match"] = compared.matching == compared.regenerable;
    out["bits_identical"] = compared.bits_equal();
    out["rows"] = lesson::as_json(for_programs(runs));
    for (std::size_t i = 0; auto& row : out["rows"]) {
        while (ledger()[i].id != row["id"].get<std::string>()) ++i;
        row["what"] = ledger()[i].what;
        row["source"] = ledger()[i].source;
    }
    out["notes"] = notes(runs.front().measured);
    return out.dump(2) + '\n';
}

}  // namespace

report make_table(format in)
{
    const auto runs = run_on_all();
    const auto compared = compare(runs);
    std::string text;
    switch (in) {
        case format::table: text = as_text(runs, compared); break;
        case format::csv: text = as_csv(for_programs(runs)); break;
        case format::json: text = as_json(runs, compared); break;
    }
    return {std::move(text), compared.all_match()};
}

}  // namespace lesson
