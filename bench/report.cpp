// bench_report: makes of what residua_bench measured a table (report.csv), a page (report.md) and figures (SVG).

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "goals.hpp"
#include "table.hpp"

namespace bench {
namespace {

constexpr std::string_view library[] = {"dispatch", "scalar", "xsimd", "highway"};
constexpr std::string_view limits[] = {"cached", "streaming"};

template <class List>
bool contains(const List& list, std::string_view word)
{
    return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

/// What was measured, and the name of its limit.
struct sample {
    cell what;
    std::string limit;
    std::vector<double> ns;
};

struct measured {
    std::map<std::string, std::string> context;
    std::vector<sample> samples;
};

/// The parts of "rms_norm<f32,avx512,xsimd>/5120/cache".
cell parsed(const std::string& name)
{
    const auto open = name.find('<');
    const auto close = name.find(">/");
    const auto slash = close == std::string::npos ? close : name.find('/', close + 2);
    if (open == std::string::npos || slash == std::string::npos) {
        throw failure(fmt::format("'{}' is not a measurement's name", name));
    }
    std::vector<std::string> inner(1);
    for (const char c : name.substr(open + 1, close - open - 1)) {
        if (c == ',') {
            inner.emplace_back();
        } else {
            inner.back() += c;
        }
    }
    if (inner.size() < 3) throw failure(fmt::format("'{}' is not a measurement's name", name));
    std::string tier = contains(library, inner[2]) ? "standard" : "own";
    if (inner.size() > 3) tier = inner[3];
    return {name.substr(0, open),
            inner[0],
            tier,
            inner[1],
            inner[2],
            std::strtoull(name.c_str() + close + 2, nullptr, 10),
            name.substr(slash + 1)};
}

measured read(const std::string& path)
{
    std::ifstream file{path};
    if (!file) throw failure(fmt::format("cannot read {}", path));
    measured all;
    try {
        const auto json = nlohmann::json::parse(file);
        for (const char* const name : {"cpu", "compiler", "left_out", "memory", "repetitions", "date"}) {
            all.context[name] = json.at("context").value(name, "");
        }
        std::map<std::string, std::size_t> index;
        for (const auto& b : json.at("benchmarks")) {
            if (b.at("run_type") != "iteration") continue;
            const std::string name = b.at("run_name").get<std::string>();
            // newer versions of Google Benchmark append what was asked for
            const auto [known, is_new] = index.emplace(name, all.samples.size());
            if (is_new) all.samples.push_back({parsed(name), b.at("label").get<std::string>(), {}});
            all.samples[known->second].ns.push_back(1e9 * b.at("per_row").get<double>());
        }
    } catch (const nlohmann::json::exception& e) {
        throw failure(fmt::format("{}: {}", path, e.what()));
    }
    if (all.samples.empty()) throw failure(fmt::format("{}: nothing was measured", path));
    return all;
}

double median(std::vector<double> all)
{
    std::sort(all.begin(), all.end());
    const std::size_t half = all.size() / 2;
    return all.size() % 2 == 1 ? all[half] : (all[half - 1] + all[half]) / 2;
}

/// Which peers are fair: those that need no better an instruction set.
int rank(std::string_view target)
{
    constexpr std::string_view order[] = {"baseline", "neon", "avx2", "avx512", "native"};
    return static_cast<int>(std::find(std::begin(order), std::end(order), target) - std::begin(order));
}
bool is_fair(const cell& peer, const cell& ours, std::string_view best)
{
    // What chooses or is given the best set of the machine is compared with the best only.
    const bool takes_the_best = peer.target == "native" || peer.backend == "onednn";
    return takes_the_best ? ours.target == best : rank(peer.target) <= rank(ours.target);
}

std::string shown(const cell& c)
{
    return fmt::format("{} {}{} {} {} d={}", c.operation, c.type, c.tier == "precise" ? " precise" : "", c.target,
                       c.regime, c.columns);
}

std::vector<line> lines_of(const measured& all)
{
    using place = std::tuple<std::string, std::string, std::size_t, std::string>;
    std::map<place, double> limit_at;
    std::map<place, std::vector<const sample*>> others_at;
    std::string best;
    for (const sample& s : all.samples) {
        const cell& c = s.what;
        const place at{c.operation, c.type, c.columns, c.regime};
        if (contains(limits, c.backend)) {
            const double ns = median(s.ns);
            auto& known = limit_at[at];
            if (known == 0 || ns < known) known = ns;
        } else if (!contains(library, c.backend)) {
            others_at[at].push_back(&s);
        } else if (c.backend == "dispatch" && rank(c.target) > rank(best.empty() ? "baseline" : best)) {
            best = c.target;
        }
    }
    std::vector<line> lines;
    for (const sample& s : all.samples) {
        const cell& c = s.what;
        line l{c, median(s.ns), 0, {}, 0};
        const bool from_memory = c.regime == "memory" || c.regime.find("_level_") != std::string::npos;
        const auto limit = limit_at.find({s.limit, c.type, c.columns, from_memory ? "memory" : "cache"});
        if (limit != limit_at.end()) l.limit_ns = limit->second;
        for (const sample* const other : others_at[{c.operation, c.type, c.columns, c.regime}]) {
            const double ns = median(other->ns);
            if (other == &s || !is_fair(other->what, c, best)) continue;
            if (l.best_other_ns == 0 || ns < l.best_other_ns) {
                l.best_other_ns = ns;
                l.best_other = fmt::format("{} {}", other->what.backend, other->what.target);
            }
        }
        lines.push_back(std::move(l));
    }
    std::sort(lines.begin(), lines.end(), [](const line& a, const line& b) { return a.what < b.what; });
    return lines;
}

/// Nothing for a number that there is not.
std::string ratio(double x) { return x > 0 ? fmt::format("{:.2f}", x) : std::string{}; }

bool is_of_the_page(const line& l) { return l.what.backend == "dispatch" && !l.what.regime.starts_with("offset_"); }

std::string page_of(const measured& all, const std::vector<line>& lines, const std::vector<goal>& wanted)
{
    const auto& context = all.context;
    std::string text =
        fmt::format("CPU: {}. Compiler: {}. Each number is the median of {} interleaved repetitions; {}.\n",
                    context.at("cpu"), context.at("compiler"), context.at("repetitions"), context.at("date"));
    text += fmt::format("What is read from memory and written to it lies in {}.\n", context.at("memory"));
    if (!context.at("left_out").empty()) text += fmt::format("Left out: {}.\n", context.at("left_out"));

    text +=
        "\n## The goals\n\nA multiple of the time of what it is compared with, or nanoseconds: the worst cell "
        "counts.\n\n"
        "| goal | at most | worst | where | mean | cells that reach it | standing "
        "|\n|---|---|---|---|---|---|---|\n";
    for (const goal& g : wanted) {
        if (g.measured.empty()) {
            text += fmt::format("| {} | {:.2f} {} | | | | | not measured |\n", g.text, g.at_most, g.unit);
            continue;
        }
        const auto reached = std::count_if(g.measured.begin(), g.measured.end(),
                                           [&](const standing& s) { return s.value <= g.at_most; });
        text += fmt::format("| {} | {:.2f} {} | {:.2f} | {} | {:.2f} | {} of {} | {} |\n", g.text, g.at_most,
                            g.unit, g.worst().value, shown(g.worst().where), g.mean(), reached, g.measured.size(),
                            g.met() ? "met" : "**not met**");
    }

    text +=
        "\n## The operations\n\nThis library through dispatch. Speed-up: over the best other that needs no better "
        "an instruction set.\n\n"
        "| operation | type | tier | target | d | regime | ns per row | of the limit | best other | speed-up |\n"
        "|---|---|---|---|---|---|---|---|---|---|\n";
    for (const line& l : lines) {
        if (!is_of_the_page(l)) continue;
        const cell& c = l.what;
        text += fmt::format("| {} | {} | {} | {} | {} | {} | {:.4g} | {} | {} | {} |\n", c.operation, c.type,
                            c.tier, c.target, c.columns, c.regime, l.ns_per_row, ratio(l.ratio_to_limit()),
                            l.best_other, ratio(l.speedup()));
    }

    text +=
        "\n## All contenders\n\nIn float; nanoseconds per row.\n\n"
        "| operation | regime | d | contender, and its time |\n|---|---|---|---|\n";
    std::map<std::tuple<std::string, std::string, std::size_t>, std::vector<const line*>> places;
    for (const line& l : lines) {
        const bool shown_here = l.what.type == "f32" && (l.what.regime == "cache" || l.what.regime == "memory");
        if (shown_here) places[{l.what.operation, l.what.regime, l.what.columns}].push_back(&l);
    }
    for (auto& [place, contenders] : places) {
        std::sort(contenders.begin(), contenders.end(),
                  [](const line* a, const line* b) { return a->ns_per_row < b->ns_per_row; });
        std::string list;
        for (const line* const l : contenders) {
            list += fmt::format("{}{} {}{} {:.4g}", list.empty() ? "" : ", ", l->what.backend, l->what.target,
                                l->what.tier == "precise" ? " precise" : "", l->ns_per_row);
        }
        text += fmt::format("| {} | {} | {} | {} |\n", std::get<0>(place), std::get<1>(place), std::get<2>(place),
                            list);
    }
    return text;
}

// --- figures ---------------------------------------------------------------------------------------------------

/// Bars for one operation and regime in float: the time of each contender over the limit, at each d.
void draw(const std::string& folder, const std::vector<line>& lines)
{
    std::map<std::pair<std::string, std::string>, std::vector<const line*>> figures;
    for (const line& l : lines) {
        const bool plotted = l.what.type == "f32" && l.limit_ns > 0 && !contains(limits, l.what.backend)
                             && l.what.backend != "scalar"
                             && (l.what.regime == "cache" || l.what.regime == "memory");
        if (plotted) figures[{l.what.operation, l.what.regime}].push_back(&l);
    }
    std::string script =
        "# Draws the bars: gnuplot report.gp\n"
        "set terminal svg size 1100,560 font 'sans-serif,14' background rgb 'white'\n"
        "set style data histograms\nset style histogram clustered gap 2\nset style fill solid 0.9\n"
        "set datafile separator comma\nset datafile missing '-'\nset grid ytics\n"
        "set key outside right top noenhanced\nset title noenhanced\nset xlabel 'd'\n"
        "set ylabel 'time over the physical limit'\nset logscale y\nset yrange [0.7:*]\n";
    for (const auto& [name, bars] : figures) {
        std::vector<std::string> contenders;
        std::map<std::size_t, std::map<std::string, double>> values;
        for (const line* const l : bars) {
            const auto who = fmt::format("{} {}{}", l->what.backend, l->what.target,
                                         l->what.tier == "precise" ? " precise" : "");
            if (!contains(contenders, who)) contenders.push_back(who);
            values[l->what.columns][who] = l->ratio_to_limit();
        }
        std::string data = "d";
        for (const auto& who : contenders) data += ',' + who;
        for (const auto& [columns, of] : values) {
            data += fmt::format("\n{}", columns);
            for (const auto& who : contenders) {
                const auto found = of.find(who);
                data += found == of.end() ? std::string{",-"} : fmt::format(",{:.4g}", found->second);
            }
        }
        const auto file = fmt::format("{}_{}", name.first, name.second);
        write_file(folder + '/' + file + ".csv", data + '\n');
        script += fmt::format(
            "set output '{0}.svg'\nset title '{1}, float, {2}'\nplot for [i=2:{3}] '{0}.csv' using i:xtic(1) title "
            "columnheader(i)\n",
            file, name.first, name.second == "cache" ? "in cache" : "from memory", contenders.size() + 1);
    }
    write_file(folder + "/report.gp", script + "unset output\n");

    const pid_t child = fork();
    if (child == 0) {
        if (chdir(folder.c_str()) == 0 && std::freopen("/dev/null", "w", stderr) != nullptr) {
            execlp("gnuplot", "gnuplot", "report.gp", static_cast<char*>(nullptr));
        }
        _exit(127);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fmt::print(stderr, "bench_report: no figures, gnuplot could not be run (Debian and Ubuntu: gnuplot-nox)\n");
    }
}

/// The columns of a Markdown table one below the other; other lines as they are.
void print_aligned(const std::string& text)
{
    std::vector<std::vector<std::string>> table;
    const auto flush = [&] {
        std::vector<std::size_t> widths;
        for (const auto& row : table) {
            widths.resize(std::max(widths.size(), row.size()));
            for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
        }
        for (const auto& row : table) {
            std::string shown;
            for (std::size_t i = 0; i < row.size(); ++i) shown += fmt::format("{:{}}  ", row[i], widths[i]);
            shown.erase(shown.find_last_not_of(' ') + 1);
            fmt::print("{}\n", shown);
        }
        table.clear();
    };
    for (std::size_t i = 0; i < text.size();) {
        const auto end = std::min(text.find('\n', i), text.size());
        const auto one = text.substr(i, end - i);
        i = end + 1;
        if (!one.starts_with("| ")) {
            if (one.starts_with("|-")) continue;
            flush();
            fmt::print("{}\n", one);
            continue;
        }
        std::vector<std::string> row;
        for (std::size_t j = 2; j < one.size();) {
            const auto bar = std::min(one.find(" |", j), one.size());
            row.push_back(one.substr(j, bar - j));
            j = std::min(bar + 3, one.size());
        }
        table.push_back(std::move(row));
    }
    flush();
}

int run(const std::string& input, const std::string& folder)
{
    const auto all = read(input);
    const auto lines = lines_of(all);
    const auto page = page_of(all, lines, goals(lines));
    write_file(folder + "/report.csv", as_csv(lines));
    write_file(folder + "/report.md", page);
    draw(folder, lines);
    print_aligned(page.substr(0, page.find("\n## All contenders")));
    return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv)
{
    CLI::App app{"Makes tables and figures of what residua_bench measured"};
    std::string input;
    std::string folder = ".";
    app.add_option("measurements", input, "The file that residua_bench wrote")->required();
    app.add_option("--output", folder, "An existing folder for report.csv, report.md and the figures")
        ->capture_default_str();
    try {
        app.parse(argc, argv);
        return bench::run(input, folder);
    } catch (const CLI::ParseError& e) {
        if (e.get_exit_code() == 0) return app.exit(e);
        fmt::print(stderr, "bench_report: {}\n", e.what());
    } catch (const std::exception& e) {
        fmt::print(stderr, "bench_report: {}\n", e.what());
    }
    return 2;
}
