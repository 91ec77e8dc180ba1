// The lesson: what happens to gradient and tokens when sublayers are stacked deep? Every number of its page, computed
// again by the library, and the page's sliders as options.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <sstream>
#include <string>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <residua/version.hpp>

#include "arguments.hpp"
#include "console.hpp"
#include "limits.hpp"
#include "models.hpp"
#include "numbers.hpp"
#include "plots.hpp"
#include "population.hpp"
#include "sheet.hpp"
#include "table.hpp"

namespace lesson {
namespace {

void use(std::optional<dispatch::target> target)
{
    if (target) dispatch::force(*target);
}

// --- the subcommands --------------------------------------------------------------------------------------------

struct gradient_command {
    stack_arguments stack{.seed = gradient_seed, .width = 32};
    double gain = 1;

    explicit gradient_command(CLI::App& app)
    {
        add_real(app, "--gain", gain, limits::smallest_gain, limits::largest_gain, "Scale of the initial weights");
        stack.add_to(app);
    }

    template <class T>
    sheet compute() const
    {
        gradient_panel<T> panel{{static_cast<std::uint32_t>(stack.seed), stack.width, stack.layers}};
        const auto run = panel.run(gain, stack.set);
        sheet result{{"layer", "stream_rms", "gradient_ratio", "gradient_log10"}, {}};
        for (std::size_t l = 0; l <= stack.layers; ++l) {
            const auto ratio = run.gradient_ratio[l];
            result.rows.push_back({l, run.stream_rms[l], ratio.value(), ratio.log10()});
        }
        return result;
    }

    int run() const
    {
        check_sizes(stack.layers, stack.width, 1);
        use(stack.target);
        print(write(stack.single ? compute<float>() : compute<double>(), stack.in));
        return all_match;
    }
};

struct tokens_command {
    stack_arguments stack{.seed = token_seed, .width = 16};
    std::size_t tokens = 6;
    double gain = 1;

    explicit tokens_command(CLI::App& app)
    {
        add_real(app, "--gain", gain, limits::smallest_gain, limits::largest_gain, "Scale of the initial weights");
        add_whole(app, "--tokens", tokens, 2, limits::tokens, "Number of tokens");
        stack.add_to(app);
    }

    template <class T>
    sheet compute() const
    {
        token_panel<T> panel{{static_cast<std::uint32_t>(stack.seed), tokens, stack.width, stack.layers}};
        sheet result{{"layer", "relative_distance", "mean_cosine"}, {}};
        for (std::size_t l = 0; const auto& spread : panel.run(gain, stack.set)) {
            result.rows.push_back({l++, spread.relative_distance, spread.mean_cosine});
        }
        return result;
    }

    int run() const
    {
        check_sizes(stack.layers, stack.width, tokens);
        use(stack.target);
        print(write(stack.single ? compute<float>() : compute<double>(), stack.in));
        return all_match;
    }
};

struct sweep_command {
    stack_arguments stack{.seed = gradient_seed, .width = 32};
    double from = 0.5, to = 2.0, step = 0.01;

    explicit sweep_command(CLI::App& app)
    {
        add_real(app, "--from", from, limits::smallest_gain, limits::largest_gain, "The first gain");
        add_real(app, "--to", to, limits::smallest_gain, limits::largest_gain, "The last gain");
        add_real(app, "--step", step, limits::smallest_gain, limits::largest_gain, "From one gain to the next");
        stack.add_to(app);
    }

    template <class T>
    sheet compute() const
    {
        gradient_panel<T> panel{{static_cast<std::uint32_t>(stack.seed), stack.width, stack.layers}};
        sheet result{{"gain", "gradient_ratio", "gradient_log10", "stream_rms"}, {}};
        for (const double gain : gains(from, to, step)) {
            const auto run = panel.run(gain, stack.set);
            const auto bottom = run.gradient_ratio.front();
            result.rows.push_back({gain, bottom.value(), bottom.log10(), run.stream_rms.back()});
        }
        return result;
    }

    int run() const
    {
        if (to < from) throw failure(fmt::format("--to {} is below --from {}", to, from));
        if ((to - from) / step + 1 > static_cast<double>(limits::gains)) {
            throw failure(fmt::format("too large: --from, --to and --step give more than {} gains", limits::gains));
        }
        check_sizes(stack.layers, stack.width, 1);
        use(stack.target);
        print(write(stack.single ? compute<float>() : compute<double>(), stack.in));
        return all_match;
    }
};

struct population_command {
    std::size_t seeds = 1000;
    std::size_t threads = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, limits::threads);
    std::optional<dispatch::target> target;
    format in = format::table;

    explicit population_command(CLI::App& app)
    {
        add_whole(app, "--seeds", seeds, 1, limits::seeds, "Seeds 1 to N, without the page's own");
        add_whole(app, "--threads", threads, 1, limits::threads, "Threads; the result is the same");
        add_target(app, target);
        add_format(app, in);
    }

    int run() const
    {
        use(target);
        print(write(population(seeds, threads), in));
        return all_match;
    }
};

struct plot_command {
    std::string folder;

    explicit plot_command(CLI::App& app)
    {
        app.add_option("--out", folder, "Folder for the figures, made if need be")->required()->type_name("DIR");
    }

    int run() const
    {
        print(plot(folder));
        return all_match;
    }
};

int run_table(format in)
{
    const auto report = make_table(in);
    print(report.text);
    return report.all_match ? all_match : some_differ;
}

// --- the command line -------------------------------------------------------------------------------------------

int run(int argc, char** argv)
{
    CLI::App app{
        "What happens when sublayers are stacked deep: every number of the lesson, computed with residua.\n"
        "Without a subcommand: the table. Exit status: 0 if all is as it should be, 1 if a number of the\n"
        "table differs, 2 if an option is wrong or something cannot be done.",
        "lesson"};
    app.set_version_flag("--version", fmt::format("lesson {}.{}.{}", RESIDUA_VERSION_MAJOR, RESIDUA_VERSION_MINOR,
                                                  RESIDUA_VERSION_PATCH));
    app.require_subcommand(0, 1);

    format table_format = format::table;
    add_format(app, table_format);
    auto& table = *app.add_subcommand("table", "Every number of the page, on every instruction set of this CPU");
    add_format(table, table_format);

    auto& gradient = *app.add_subcommand("gradient", "Gradient and stream along a stack of tanh sublayers");
    gradient_command gradient_options{gradient};
    auto& tokens = *app.add_subcommand("tokens", "Distance and cosine of tokens along a stack of attention layers");
    tokens_command tokens_options{tokens};
    auto& sweep = *app.add_subcommand("sweep", "Gradient at the bottom and stream at the top, over the gain");
    sweep_command sweep_options{sweep};
    auto& many = *app.add_subcommand("population", "The page's single draws among many seeds, on all cores");
    population_command population_options{many};
    auto& figures = *app.add_subcommand("plot", "The page's figures as SVG, through gnuplot");
    plot_command plot_options{figures};

    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& success) {  // --help, --version
        std::ostringstream text;
        app.exit(success, text, text);
        print(text.str());
        return all_match;
    } catch (const CLI::ParseError& error) {
        throw failure(error.what());
    }

    const bool is_table = app.get_subcommands().empty() || table.parsed();
    if (!is_table && app.count("--format") > 0) throw failure("--format belongs behind the subcommand");
    if (gradient.parsed()) return gradient_options.run();
    if (tokens.parsed()) return tokens_options.run();
    if (sweep.parsed()) return sweep_options.run();
    if (many.parsed()) return population_options.run();
    if (figures.parsed()) return plot_options.run();
    return run_table(table_format);
}

}  // namespace
}  // namespace lesson

int main(int argc, char** argv)
{
    try {
        return lesson::run(argc, argv);
    } catch (const std::bad_alloc&) {
        lesson::complain("not enough memory");
    } catch (const std::exception& error) {
        lesson::complain(error.what());
    }
    return lesson::not_possible;
}
