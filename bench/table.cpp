#include "table.hpp"

#include <charconv>
#include <cmath>
#include <fstream>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

namespace bench {

namespace {

constexpr std::string_view header =
    "operation,type,tier,target,backend,d,regime,ns_per_row,limit_ns,ratio_to_limit,best_other,best_other_ns,"
    "speedup";
constexpr std::size_t count_of_columns = 13;

/// Nothing for a number that there is not.
std::string shown(double x) { return x > 0 ? fmt::format("{:.6g}", x) : std::string{}; }

std::vector<std::string> split(const std::string& text)
{
    std::vector<std::string> fields(1);
    for (const char c : text) {
        if (c == ',') {
            fields.emplace_back();
        } else if (c != '\r') {
            fields.back() += c;
        }
    }
    return fields;
}

template <class N>
N number(const std::string& text, const std::string& where)
{
    N value{};
    if (text.empty()) return value;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    bool good = error == std::errc{} && end == text.data() + text.size();
    if constexpr (std::is_floating_point_v<N>) good = good && std::isfinite(value) && value >= 0;
    if (!good) throw failure(fmt::format("{}: '{}' is not a number that belongs there", where, text));
    return value;
}

}  // namespace

std::string as_csv(const std::vector<line>& lines)
{
    std::string text{header};
    text += '\n';
    for (const line& l : lines) {
        const cell& c = l.what;
        text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{}\n", c.operation, c.type, c.tier, c.target,
                            c.backend, c.columns, c.regime, shown(l.ns_per_row), shown(l.limit_ns),
                            shown(l.ratio_to_limit()), l.best_other, shown(l.best_other_ns), shown(l.speedup()));
    }
    return text;
}

std::vector<line> read_csv(const std::string& path)
{
    std::ifstream file{path};
    std::string text;
    if (!file || !std::getline(file, text)) throw failure(fmt::format("cannot read {}", path));
    if (text.ends_with('\r')) text.pop_back();
    if (text != header) throw failure(fmt::format("{} is not a report.csv", path));
    std::vector<line> lines;
    for (std::size_t i = 2; std::getline(file, text); ++i) {
        const auto where = fmt::format("{}:{}", path, i);
        const auto f = split(text);
        if (f.size() != count_of_columns) {
            throw failure(fmt::format("{}: {} fields instead of {}", where, f.size(), count_of_columns));
        }
        line l{{f[0], f[1], f[2], f[3], f[4], number<std::size_t>(f[5], where), f[6]},
               number<double>(f[7], where),
               number<double>(f[8], where),
               f[10],
               number<double>(f[11], where)};
        if (!(l.ns_per_row > 0)) throw failure(fmt::format("{}: there is no time", where));
        lines.push_back(std::move(l));
    }
    if (file.bad()) throw failure(fmt::format("cannot read {}", path));
    return lines;
}

void write_file(const std::string& path, const std::string& text)
{
    std::ofstream file{path, std::ios::binary};
    file << text;
    file.close();
    if (!file) throw failure(fmt::format("cannot write {}", path));
}

}  // namespace bench
