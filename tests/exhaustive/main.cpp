// exhaustive: the error of every function of one element, and of every gated activation, over all floats; of functions
// over all numbers of 16 bits, and over doubles; of the norms over lengths, distributions and magnitudes. Prints the worst
// input of each, and a table for the documentation.
//
// The reference is the C library's double (reference.hpp). Every float is an input; where there is a second operand (up)
// each input has another one, whose bits follow from those of the first, and so have a third and a fourth.

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <residua/dispatch.hpp>

#include "norms.hpp"
#include "operations.hpp"
#include "samples.hpp"

namespace exhaustive {
namespace {

/// The i-th operand that belongs to one of these bits.
float operand_at(std::uint32_t bits, std::size_t i)
{
    if (i == 0) return std::bit_cast<float>(bits);
    return second_operand(bits ^ (static_cast<std::uint32_t>(i - 1) * 0x2545f491U));
}

struct plan {
    std::uint64_t stride = 1;
    unsigned threads = 1;

    std::uint64_t stride_of(const operation& op) const { return std::max(stride, op.least_stride); }
    std::uint64_t inputs(const operation& op) const
    {
        return ((std::uint64_t{1} << 32) + stride_of(op) - 1) / stride_of(op);
    }
};

constexpr std::size_t chunk = 1U << 14;

/// The worst error of each variant.
using worst_errors = std::vector<worst_error>;

void take(worst_errors& all, const worst_errors& some)
{
    for (std::size_t v = 0; v < all.size(); ++v) all[v].take(some[v]);
}

worst_errors part_of(const operation& op, const plan& p, std::uint64_t begin, std::uint64_t end)
{
    std::vector<float> y(chunk);
    expected right{std::vector<double>(chunk), std::vector<double>(chunk)};
    operands in;
    in.x.fill(y);
    const std::uint64_t stride = p.stride_of(op);
    worst_errors worst(op.variants.size());
    for (std::uint64_t i = begin; i < end; i += chunk) {
        in.count = static_cast<std::size_t>(std::min<std::uint64_t>(chunk, end - i));
        for (std::size_t k = 0; k < op.operands; ++k) {
            for (std::size_t j = 0; j < in.count; ++j) {
                in.x[k][j] = operand_at(static_cast<std::uint32_t>((i + j) * stride), k);
            }
        }
        op.reference(right, in);
        for (std::size_t v = 0; v < worst.size(); ++v) {
            op.variants[v].compute(y.data(), in);
            worst[v].see(y.data(), right.exact.data(), op.is_sum ? right.unit_of.data() : right.exact.data(), in);
        }
    }
    return worst;
}

worst_errors over_all_floats(const operation& op, const plan& p)
{
    const std::uint64_t step = chunk * 64;
    std::atomic<std::uint64_t> next{0};
    worst_errors worst(op.variants.size());
    std::mutex lock;
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < p.threads; ++t) {
        threads.emplace_back([&] {
            worst_errors mine(worst.size());
            const std::uint64_t all = p.inputs(op);
            for (std::uint64_t i = next.fetch_add(step); i < all; i = next.fetch_add(step)) {
                take(mine, part_of(op, p, i, std::min(i + step, all)));
            }
            const std::scoped_lock locked{lock};
            take(worst, mine);
        });
    }
    threads.clear();
    return worst;
}

struct row_of_table {
    std::string operation, inputs, at;
    double worst, bound;
};

std::string table(const std::vector<row_of_table>& rows, const plan& p)
{
    std::string text = fmt::format("Here every {} was an input.\n\n",
                                   p.stride == 1 ? "float" : fmt::format("{}th float", p.stride));
    text += "| operation | inputs | worst error, ulp | at | bound, ulp |\n|---|---|---|---|---|\n";
    for (const auto& r : rows) {
        text += fmt::format("| {} | {} | {:.4f} | {} | {:.4g} |\n", r.operation, r.inputs, r.worst, r.at, r.bound);
    }
    return text;
}

int run(const plan& p, const std::string& output, const std::vector<std::string>& chosen)
{
    std::vector<row_of_table> rows;
    bool kept = true;
    const auto add = [&](row_of_table r, double seconds) {
        const bool good = r.worst <= r.bound;
        kept = kept && good;
        fmt::print("{:36} {:>12} inputs {:8.4f} ulp of {:<6.4g} at {}{}  ({:.1f} s)\n", r.operation, r.inputs,
                   r.worst, r.bound, r.at, good ? "" : "  BEYOND THE BOUND", seconds);
        std::fflush(stdout);
        rows.push_back(std::move(r));
    };
    const auto is_chosen = [&](const std::string& name) {
        return chosen.empty() || std::find(chosen.begin(), chosen.end(), name) != chosen.end();
    };
    const auto timed = [](auto&& f) {
        const auto start = std::chrono::steady_clock::now();
        const auto result = f();
        return std::pair{result, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
    };
    auto over_floats = operations();
    std::ranges::move(gated_derivatives(), std::back_inserter(over_floats));
    for (auto& op : over_floats) {
        std::erase_if(op.variants, [&](const variant& v) { return !is_chosen(v.name); });
        if (op.variants.empty()) continue;
        const auto [worst, seconds] = timed([&] { return over_all_floats(op, p); });
        for (std::size_t v = 0; v < worst.size(); ++v) {
            std::string at;
            for (std::size_t k = 0; k < op.operands; ++k)
                at += fmt::format("{}{:a}", k == 0 ? "" : ", ", worst[v].at[k]);
            add({op.variants[v].name, std::to_string(p.inputs(op)), at, worst[v].ulp, op.variants[v].bound},
                seconds);
        }
    }
    const auto add_samples = [&](auto&& measure) {
        const auto [all, seconds] = timed(measure);
        for (const auto& f : all) {
            add({f.name, std::to_string(f.inputs), f.at, f.ulp, f.bound}, seconds);
        }
    };
    if (chosen.empty() || is_chosen("16 bits")) add_samples(over_all_halves);
    if (chosen.empty() || is_chosen("double"))
        add_samples([&] { return over_doubles(p.stride == 1 ? 40000 : 400, p.threads); });
    for (const auto& n : norms()) {
        if (!is_chosen(n.name)) continue;
        const auto [worst, seconds] = timed([&] { return n.measure(p.stride == 1, p.threads); });
        add({n.name, fmt::format("{} rows", worst.rows), worst.at, worst.ulp, n.bound}, seconds);
    }
    if (rows.empty()) {
        fmt::print(stderr, "exhaustive: there is no operation of that name\n");
        return 2;
    }
    if (!output.empty()) {
        std::ofstream file{output};
        file << table(rows, p);
        file.close();
        if (!file) {
            fmt::print(stderr, "exhaustive: cannot write {}\n", output);
            return 2;
        }
    }
    return kept ? 0 : 1;
}

}  // namespace
}  // namespace exhaustive

int main(int argc, char** argv)
{
    CLI::App app{"The error of every function over all floats"};
    exhaustive::plan plan;
    plan.threads = std::max(1U, std::thread::hardware_concurrency());
    std::string output;
    std::vector<std::string> chosen;
    app.add_option("--stride", plan.stride, "Take every n-th float")->check(CLI::Range(1U, 1U << 30U));
    app.add_option("--threads", plan.threads, "Threads")->check(CLI::Range(1U, 1024U))->capture_default_str();
    app.add_option("--output", output, "A file for the table, in Markdown");
    app.add_option("operation", chosen, "Only these; of others than float: \"16 bits\", double");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        if (e.get_exit_code() == 0) return app.exit(e);
        fmt::print(stderr, "exhaustive: {}\n", e.what());
        return 2;
    }
    return exhaustive::run(plan, output, chosen);
}
