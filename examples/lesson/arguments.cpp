#include "arguments.hpp"

#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "console.hpp"
#include "limits.hpp"

namespace lesson {

namespace {

/// The whole text as a number: no locale, no octal, nothing before or behind it.
template <class N>
std::optional<N> parse(std::string_view text)
{
    N value{};
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || stop != end) return {};
    return value;
}

/// Reports a bad value in one line.
[[noreturn]] void refuse(const std::string& name, const std::string& wanted, const std::string& text)
{
    throw failure(fmt::format("{} must be {}, not '{}'", name, wanted, text));
}

/// Adds an option with an action of its own, and shows its default in the help.
CLI::Option* add(CLI::App& app, const std::string& name, std::function<void(const std::string&)> action,
                 const std::string& description, const std::string& kind, const std::string& default_text = {})
{
    auto* const option = app.add_option_function<std::string>(name, std::move(action), description);
    option->type_name(kind)->default_str(default_text);
    return option;
}

}  // namespace

void add_whole(CLI::App& app, const std::string& name, std::size_t& value, std::size_t least, std::size_t most,
               const std::string& description)
{
    const auto wanted = fmt::format("a whole number from {} to {}", least, most);
    const auto action = [=, &value](const std::string& text) {
        const auto n = parse<std::size_t>(text);
        if (!n || *n < least || *n > most) refuse(name, wanted, text);
        value = *n;
    };
    add(app, name, action, description, "N", fmt::format("{}", value));
}

void add_real(CLI::App& app, const std::string& name, double& value, double least, double most,
              const std::string& description)
{
    const auto wanted = fmt::format("a number from {} to {}", least, most);
    const auto action = [=, &value](const std::string& text) {
        const auto x = parse<double>(text);
        if (!x || !(*x >= least && *x <= most)) refuse(name, wanted, text);  // NaN is in no range
        value = *x;
    };
    add(app, name, action, description, "X", fmt::format("{}", value));
}

void add_format(CLI::App& app, format& value)
{
    const auto action = [&value](const std::string& text) {
        if (text == "table") {
            value = format::table;
        } else if (text == "csv") {
            value = format::csv;
        } else if (text == "json") {
            value = format::json;
        } else {
            refuse("--format", "table, csv or json", text);
        }
    };
    add(app, "--format", action, "How to write the result", "table|csv|json", "table");
}

void add_target(CLI::App& app, std::optional<dispatch::target>& value)
{
    std::vector<std::string_view> names;
    for (const auto t : dispatch::targets()) names.push_back(dispatch::name(t));
    const auto wanted = fmt::format("an instruction set of this CPU ({})", fmt::join(names, ", "));
    const auto action = [=, &value](const std::string& text) {
        value.reset();
        for (const auto t : dispatch::targets()) {
            if (text == dispatch::name(t)) value = t;
        }
        if (!value) refuse("--target", wanted, text);
    };
    add(app, "--target", action, "Instruction set; all give the same bits",
        fmt::format("{}", fmt::join(names, "|")), std::string{names.back()});
}

void stack_arguments::add_to(CLI::App& app)
{
    add_whole(app, "--layers", layers, 1, limits::layers, "Number of sublayers");
    app.add_flag("--residual", set.residual, "Add to the stream instead of replacing it");
    app.add_flag("--pre-norm", set.pre_norm, "RMSNorm before the sublayer");
    app.add_flag("--scale-writes", set.scale_writes, "Multiply what is written by 1/sqrt(N)");
    add_whole(app, "--seed", seed, 0, std::numeric_limits<std::uint32_t>::max(), "Seed of the random numbers");
    add_whole(app, "--width", width, 1, limits::width, "Width of the stream");
    const auto action = [this](const std::string& text) {
        if (text != "f32" && text != "f64") refuse("--type", "f32 or f64", text);
        single = text == "f32";
    };
    add(app, "--type", action, "Precision of the arithmetic", "f32|f64", "f64");
    add_target(app, target);
    add_format(app, in);
}

void check_sizes(std::size_t layers, std::size_t width, std::size_t tokens)
{
    // Each factor is bounded already: the products cannot wrap around.
    if (layers * width * width > limits::matrix_elements) {
        throw failure(fmt::format("too large: --layers {} x --width {} squared must be at most {}", layers, width,
                                  limits::matrix_elements));
    }
    if (layers * tokens * width > limits::stream_elements) {
        throw failure(fmt::format("too large: --layers {} x --tokens {} x --width {} must be at most {}", layers,
                                  tokens, width, limits::stream_elements));
    }
}

}  // namespace lesson
