// residua_bench: measures this library, others and the physical limits, with Google Benchmark, whose own options it takes
// too; what it measured goes to a file that bench_report reads.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "check.hpp"
#include "data.hpp"
#include "machine.hpp"
#include "registry.hpp"
#include "selection.hpp"

namespace bench {
namespace {

struct settings {
    selection chosen = selection::quick;
    double seconds = 240;
    int repetitions = 9;
    std::string output;
    std::string only;
    int calls = 1;
    std::vector<std::string> of_google_benchmark;
};

void measure(benchmark::State& state, const measurement& m, selection chosen)
{
    const auto where = place_of(m, chosen);
    operands memory{*m.what, m.who->element, m.columns, where};
    if (m.who->prepare != nullptr) m.who->prepare();
    const auto run = m.who->run;
    for (auto _ : state) {
        run(memory.next());
        benchmark::ClobberMemory();
    }
    // Bytes that have to move; a weight, which stays in the cache, is not counted.
    const std::size_t operands = m.what->reads + (m.what->packed ? 1 : 0) + m.what->writes + m.what->updates;
    const double rows = static_cast<double>(where.rows);
    const double elements = rows * static_cast<double>(m.columns);
    const double bytes = elements * static_cast<double>(operands * size_of(m.who->element));
    using benchmark::Counter;
    const auto time_of_one = Counter::kIsIterationInvariantRate | Counter::kInvert;
    state.counters["bytes_per_second"] = Counter(bytes, Counter::kIsIterationInvariantRate);
    state.counters["per_row"] = Counter(rows, time_of_one);  // in seconds, shown as ns
    state.counters["per_element"] = Counter(elements, time_of_one);
    state.SetLabel(m.what->limit);
}

std::size_t count_of_faults(const std::vector<measurement>& all)
{
    std::size_t faults = 0;
    for (const measurement& m : all) {
        if (m.regime != "cache") continue;
        const auto fault = fault_of(m);
        if (fault.empty()) continue;
        fmt::print(stderr, "residua_bench: {} is wrong, {}\n", name_of(m), fault);
        ++faults;
    }
    return faults;
}

/// Nothing but the calls, for a tool that counts instructions: the difference of two numbers of calls.
int call_only(const std::vector<measurement>& all, const settings& s)
{
    for (const measurement& m : all) {
        if (name_of(m) != s.only) continue;
        operands memory{*m.what, m.who->element, m.columns, place_of(m, s.chosen)};
        if (m.who->prepare != nullptr) m.who->prepare();
        for (int i = 0; i < s.calls; ++i) m.who->run(memory.next());
        fmt::print("{} calls of {} rows\n", s.calls, memory.current().rows);
        return 0;
    }
    fmt::print(stderr, "residua_bench: there is no measurement of the name '{}'\n", s.only);
    return 2;
}

int run(const char* program, const settings& s)
{
    auto left_out = collect();
    if (const std::string not_built = BENCH_LEFT_OUT; !not_built.empty()) left_out.push_back(not_built);
    if (!left_out.empty()) fmt::print(stderr, "left out: {}\n", fmt::join(left_out, ", "));

    const auto all = measurements(s.chosen);
    if (!s.only.empty()) return call_only(all, s);
    if (count_of_faults(all) > 0) return 1;

    for (const measurement& m : all) {
        benchmark::RegisterBenchmark(name_of(m).c_str(),
                                     [m, &s](benchmark::State& state) { measure(state, m, s.chosen); });
    }
    // Google Benchmark exceeds the time it is given, and has to find how many calls fill it.
    const double each = s.seconds / static_cast<double>(all.size()) / s.repetitions / 2.2;

    std::vector<std::string> arguments{program, fmt::format("--benchmark_min_time={:.6f}", each),
                                       fmt::format("--benchmark_repetitions={}", s.repetitions),
                                       "--benchmark_enable_random_interleaving=true"};
    if (!s.output.empty()) {
        arguments.push_back("--benchmark_out=" + s.output);
        arguments.emplace_back("--benchmark_out_format=json");
    }
    arguments.insert(arguments.end(), s.of_google_benchmark.begin(), s.of_google_benchmark.end());
    std::vector<char*> argv;
    for (auto& a : arguments) argv.push_back(a.data());
    argv.push_back(nullptr);
    int argc = static_cast<int>(arguments.size());
    benchmark::Initialize(&argc, argv.data());
    if (argc > 1) {
        fmt::print(stderr, "residua_bench: unknown argument '{}' (try --help)\n", argv[1]);
        return 2;
    }
    benchmark::AddCustomContext("cpu", cpu_name());
    benchmark::AddCustomContext("compiler", BENCH_COMPILER);
    benchmark::AddCustomContext("left_out", fmt::format("{}", fmt::join(left_out, ", ")));
    benchmark::AddCustomContext("repetitions", std::to_string(s.repetitions));
    benchmark::AddCustomContext("memory",
                                fmt::format("{} MiB", far_beyond_the_cache(std::size_t{2} << 30U) >> 20U));

    fmt::print(stderr, "{} measurements, {} times each, in about {:.0f} s\n", all.size(), s.repetitions, s.seconds);
    struct quiet final : benchmark::BenchmarkReporter {
        bool ReportContext(const Context&) override { return true; }
        void ReportRuns(const std::vector<Run>&) override {}
    } nothing;
    const bool in_full = !s.of_google_benchmark.empty() || s.output.empty();
    benchmark::RunSpecifiedBenchmarks(in_full && s.chosen != selection::smoke ? nullptr : &nothing);
    benchmark::Shutdown();
    return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv)
{
    CLI::App app{
        "Measures this library, others and the physical limits. Options of Google Benchmark are taken too."};
    bench::settings s;
    const std::vector<std::pair<std::string, bench::selection>> names{
        {"smoke", bench::selection::smoke}, {"quick", bench::selection::quick}, {"full", bench::selection::full}};
    app.add_option("--set", s.chosen, "smoke, quick or full")->transform(CLI::CheckedTransformer(names));
    app.add_option("--seconds", s.seconds, "How long all measurements take together, nearly")
        ->check(CLI::Range(0.001, 1e6))
        ->capture_default_str();
    app.add_option("--repetitions", s.repetitions, "Of each, interleaved at random")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    app.add_option("--output", s.output, "A file for the measurements, in JSON");
    app.add_option("--only", s.only, "Only call this one, and measure nothing: for callgrind or perf");
    app.add_option("--calls", s.calls, "How often --only calls it")
        ->check(CLI::Range(1, 1 << 30))
        ->capture_default_str();
    app.allow_extras();
    try {
        app.parse(argc, argv);
        s.of_google_benchmark = app.remaining();
        return bench::run(argv[0], s);
    } catch (const CLI::ParseError& e) {
        if (e.get_exit_code() == 0) return app.exit(e);
        fmt::print(stderr, "residua_bench: {}\n", e.what());
        return 2;
    } catch (const std::exception& e) {
        fmt::print(stderr, "residua_bench: {}\n", e.what());
        return 1;
    }
}
