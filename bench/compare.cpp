// compare A B: two report.csv side by side, of two CPUs or two commits.

#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "table.hpp"

namespace bench {
namespace {

struct options {
    std::string first, second, operation, backend;
};

int run(const options& o)
{
    const auto a = read_csv(o.first);
    std::map<cell, double> second;
    for (const line& l : read_csv(o.second)) second[l.what] = l.ns_per_row;

    fmt::print("A: {}\nB: {}\n\n{:>10} {:>10} {:>7}  {}\n", o.first, o.second, "A, ns", "B, ns", "B/A",
               "per row of");
    std::map<std::pair<std::string, std::string>, std::pair<double, int>> sums;
    for (const line& l : a) {
        const cell& c = l.what;
        const auto found = second.find(c);
        const bool chosen =
            (o.operation.empty() || o.operation == c.operation) && (o.backend.empty() || o.backend == c.backend);
        if (!chosen || found == second.end()) continue;
        const double ratio = found->second / l.ns_per_row;
        fmt::print("{:10.4g} {:10.4g} {:7.3f}  {}<{},{},{}{}>/{}/{}\n", l.ns_per_row, found->second, ratio,
                   c.operation, c.type, c.target, c.backend, c.tier == "precise" ? ",precise" : "", c.columns,
                   c.regime);
        for (const auto& group : {std::pair{c.backend, c.regime.substr(0, c.regime.find('_'))},
                                  std::pair{std::string{"all"}, std::string{}}}) {
            auto& [sum, count] = sums[group];
            sum += std::log(ratio);
            ++count;
        }
    }
    if (sums.empty()) throw failure("the two reports have no measurement in common");
    fmt::print("\n{:>7}  geometric mean of B/A\n", "");
    for (const auto& [group, sum] : sums) {
        fmt::print("{:7.3f}  {} {} ({})\n", std::exp(sum.first / sum.second), group.first, group.second,
                   sum.second);
    }
    return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv)
{
    CLI::App app{"Puts two reports side by side: the time of B over that of A, for all that both have"};
    bench::options o;
    app.add_option("A", o.first, "A report.csv")->required();
    app.add_option("B", o.second, "Another")->required();
    app.add_option("--operation", o.operation, "Only this one");
    app.add_option("--backend", o.backend, "Only this one, such as dispatch");
    try {
        app.parse(argc, argv);
        return bench::run(o);
    } catch (const CLI::ParseError& e) {
        if (e.get_exit_code() == 0) return app.exit(e);
        fmt::print(stderr, "compare: {}\n", e.what());
    } catch (const std::exception& e) {
        fmt::print(stderr, "compare: {}\n", e.what());
    }
    return 2;
}
