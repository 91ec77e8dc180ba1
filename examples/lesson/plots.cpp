#include "plots.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "console.hpp"
#include "models.hpp"
#include "numbers.hpp"
#include "sheet.hpp"

namespace lesson {

namespace {

namespace files = std::filesystem;

/// A curve: its name in the legend, and its values.
struct curve {
    std::string title;
    std::vector<double> y;
    bool thin = false;  ///< for comparison: dashed
};

/// A figure: curves over one x.
struct figure {
    std::string name;  ///< of its files
    std::string title, x_label, y_label;
    std::string options;  ///< lines of gnuplot: scales, the place of the legend
    std::vector<double> x;
    std::vector<curve> curves;
};

std::vector<double> whole_numbers(std::size_t from, std::size_t to)
{
    std::vector<double> x;
    for (std::size_t i = from; i <= to; ++i) x.push_back(static_cast<double>(i));
    return x;
}

std::vector<double> ratios(const gradient_run& run)
{
    std::vector<double> y;
    for (const auto& ratio : run.gradient_ratio) y.push_back(ratio.value());
    return y;
}

// --- the figures ------------------------------------------------------------------------------------------------

figure gradient_per_layer()
{
    gradient_panel<double> panel{{}};
    figure f{"gradient_per_layer",
             "Gradient along 32 sublayers",
             "layer (0 is the bottom)",
             "gradient / gradient at the top",
             "set logscale y\nset format y '10^{%L}'\nset key bottom right",
             whole_numbers(0, 32),
             {}};
    for (const double gain : {0.5, 1.0, 2.0}) {
        f.curves.push_back({fmt::format("plain, gain {:.1f}", gain), ratios(panel.run(gain, plain))});
    }
    for (const double gain : {0.5, 1.0, 2.0}) {
        f.curves.push_back({fmt::format("residual, gain {:.1f}", gain), ratios(panel.run(gain, residual_only))});
    }
    return f;
}

figure ratio_over_gain()
{
    gradient_panel<double> panel{{}};
    figure f{"ratio_over_gain",
             "Gradient at the bottom of 32 sublayers",
             "gain of the initial weights",
             "gradient at the bottom / at the top",
             "set logscale y\nset format y '10^{%L}'\nset key bottom right",
             gains(0.5, 2.0, 0.01),
             {{"plain", {}}, {"residual", {}}, {"residual, RMSNorm, 1/sqrt(N)", {}}, {"1", {}, true}}};
    for (const double gain : f.x) {
        f.curves[0].y.push_back(panel.run(gain, plain).gradient_ratio.front().value());
        f.curves[1].y.push_back(panel.run(gain, residual_only).gradient_ratio.front().value());
        f.curves[2].y.push_back(panel.run(gain, all_three).gradient_ratio.front().value());
        f.curves[3].y.push_back(1);
    }
    return f;
}

figure stream_rms_per_layer()
{
    gradient_panel<double> panel{{}};
    return {"stream_rms_per_layer",
            "Size of the stream along 32 sublayers, gain 1",
            "layer (0 is the bottom)",
            "RMS of the stream",
            "set logscale y\nset key bottom left",
            whole_numbers(0, 32),
            {{"plain", panel.run(1, plain).stream_rms},
             {"residual", panel.run(1, residual_only).stream_rms},
             {"residual, RMSNorm", panel.run(1, {.residual = true, .pre_norm = true}).stream_rms},
             {"residual, RMSNorm, 1/sqrt(N)", panel.run(1, all_three).stream_rms}}};
}

template <class T>
std::vector<double> distances(switches set)
{
    std::vector<double> y;
    token_panel<T> panel{{}};
    for (const auto& spread : panel.run(1, set)) y.push_back(spread.relative_distance);
    return y;
}

figure token_distance_per_layer()
{
    return {"token_distance_per_layer",
            "Distance of 6 tokens along 32 attention layers",
            "layer (0 is the bottom)",
            "distance from all being equal",
            "set logscale y\nset format y '10^{%L}'\nset yrange [*:3]\nset key bottom left",
            whole_numbers(0, 32),
            {{"plain", distances<double>(plain)},
             {"residual", distances<double>(residual_only)},
             {"residual, RMSNorm, 1/sqrt(N)", distances<double>(all_three)},
             {"plain, in single precision", distances<float>(plain), true}}};
}

/// What the output of each block receives: a block is two sublayers.
std::vector<double> received(std::size_t blocks, switches set)
{
    gradient_panel<double> panel{{.layers = 2 * blocks}};
    const auto all = ratios(panel.run(1, set));
    std::vector<double> y;
    for (std::size_t block = 1; block <= blocks; ++block) y.push_back(all[2 * block]);
    return y;
}

figure gradient_per_block()
{
    constexpr switches with{.residual = true, .pre_norm = true};
    constexpr switches without{.pre_norm = true};
    return {"gradient_per_block",
            "Gradient that each block (two sublayers) receives at initialisation, gain 1",
            "block (1 is the bottom)",
            "gradient at the block's output / at the top",
            "set logscale y\nset key bottom right\nset xtics 1",
            whole_numbers(1, 12),
            {{"12 blocks, residual, RMSNorm", received(12, with)},
             {"12 blocks, RMSNorm", received(12, without)},
             {"12 blocks, plain", received(12, plain)},
             {"4 blocks, residual, RMSNorm", received(4, with)},
             {"4 blocks, RMSNorm", received(4, without)}}};
}

figure stream_rms_over_writes()
{
    constexpr std::size_t writes = 128;
    gradient_panel<double> panel{{.layers = writes}};
    figure f{"stream_rms_over_writes",
             "Size of the stream after so many writes, gain 1",
             "number of writes to the stream",
             "RMS of the stream",
             "set key top left",
             whole_numbers(0, writes),
             {{"independent writes of variance 1", unit_writes(4096, writes, 129)},
              {"sublayers, residual", panel.run(1, residual_only).stream_rms},
              {"sublayers, residual, RMSNorm", panel.run(1, {.residual = true, .pre_norm = true}).stream_rms},
              {"sublayers, residual, RMSNorm, 1/sqrt(N)", panel.run(1, all_three).stream_rms},
              {"sqrt(1 + writes)", {}, true}}};
    for (const double n : f.x) f.curves.back().y.push_back(std::sqrt(1 + n));
    return f;
}

std::vector<figure> all_figures()
{
    return {gradient_per_layer(),       ratio_over_gain(),    stream_rms_per_layer(),
            token_distance_per_layer(), gradient_per_block(), stream_rms_over_writes()};
}

// --- through gnuplot --------------------------------------------------------------------------------------------

/// The data as CSV; a shorter curve ends early.
std::string data_of(const figure& f)
{
    sheet data{{f.x_label}, {}};
    for (const curve& c : f.curves) data.columns.push_back(c.title);
    for (std::size_t i = 0; i < f.x.size(); ++i) {
        std::vector<cell> row{f.x[i]};
        for (const curve& c : f.curves) {
            row.emplace_back();
            if (i < c.y.size()) row.back() = c.y[i];
        }
        data.rows.push_back(std::move(row));
    }
    return as_csv(data);
}

/// The text as gnuplot quotes it.
std::string in_quotes(std::string text)
{
    for (std::size_t i = 0; (i = text.find('\'', i)) != std::string::npos; i += 2) text.insert(i, 1, '\'');
    return '\'' + text + '\'';
}

std::string script_of(const std::vector<figure>& figures)
{
    std::string script = "# Draws the figures from the data beside it: gnuplot lesson.gp\n";
    // Colours that remain apart for colour-blind readers (Okabe and Ito).
    constexpr std::string_view colours[] = {"#d55e00", "#009e73", "#0072b2", "#cc79a7", "#e69f00", "#56b4e9"};
    constexpr std::string_view style =
        "set terminal svg size 900,560 font 'sans-serif,15' background rgb 'white'\n"
        "set datafile separator comma\n"
        "set grid\n"
        "set key noenhanced box opaque Left reverse\n";
    for (const figure& f : figures) {
        script += fmt::format(
            "\nreset\n{}{}\nset title {}\nset xlabel {}\nset ylabel {}\n"
            "set xrange [{}:{}]\nset output '{}.svg'\nplot ",
            style, f.options, in_quotes(f.title), in_quotes(f.x_label), in_quotes(f.y_label), f.x.front(),
            f.x.back(), f.name);
        for (std::size_t i = 0; i < f.curves.size(); ++i) {
            const curve& c = f.curves[i];
            script += fmt::format(
                "{}'{}.csv' every ::1 using 1:{} with lines linewidth {} dashtype {} linecolor rgb "
                "'{}' title '{}'",
                i == 0 ? "" : ", \\\n     ", f.name, i + 2, c.thin ? 1.5 : 2.5, c.thin ? 2 : 1,
                c.thin ? "#555555" : colours[i], c.title);
        }
        script += "\nunset output\n";
    }
    return script;
}

void save(const files::path& path, const std::string& text)
{
    std::ofstream file{path, std::ios::binary};
    file << text;
    file.close();
    if (!file) throw failure(fmt::format("cannot write {}", path.string()));
}

bool is_installed(std::string_view program)
{
    const char* const path = std::getenv("PATH");
    std::istringstream folders{path == nullptr ? "" : path};
    for (std::string folder; std::getline(folders, folder, ':');) {
        std::error_code ignored;
        const auto candidate = files::path{folder} / program;
        if (files::is_regular_file(candidate, ignored) && access(candidate.c_str(), X_OK) == 0) return true;
    }
    return false;
}

/// Runs the script in its folder, without a shell: the folder may have any name.
void run_gnuplot(const files::path& folder, const char* script)
{
    const pid_t child = fork();
    if (child == 0) {
        // What gnuplot has to say about its fonts or its terminal is no concern of the reader.
        if (chdir(folder.c_str()) == 0 && std::freopen("/dev/null", "w", stderr) != nullptr) {
            execlp("gnuplot", "gnuplot", script, static_cast<char*>(nullptr));
        }
        _exit(127);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        throw failure(fmt::format("gnuplot could not draw {}", (folder / script).string()));
    }
}

}  // namespace

std::string plot(const std::string& folder)
{
    if (!is_installed("gnuplot")) throw failure("gnuplot is not installed (Debian and Ubuntu: gnuplot-nox)");
    std::error_code error;
    files::create_directories(folder, error);
    if (error) throw failure(fmt::format("cannot make the folder {}: {}", folder, error.message()));

    const auto figures = all_figures();
    const files::path out{folder};
    for (const figure& f : figures) save(out / (f.name + ".csv"), data_of(f));
    save(out / "lesson.gp", script_of(figures));
    run_gnuplot(out, "lesson.gp");

    std::string written;
    for (const figure& f : figures) {
        const auto path = out / (f.name + ".svg");
        if (files::file_size(path, error) == 0 || error)
            throw failure(fmt::format("cannot write {}", path.string()));
        written += path.string() + '\n';
    }
    return written;
}

}  // namespace lesson
