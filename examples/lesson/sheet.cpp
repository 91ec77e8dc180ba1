#include "sheet.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace lesson {

namespace {

template <class... F>
struct overloaded : F... {
    using F::operator()...;
};
template <class... F>
overloaded(F...) -> overloaded<F...>;

/// The cell as text; `digits` are the significant ones of a number.
std::string text(const cell& of, int digits)
{
    return std::visit(
        overloaded{[](std::monostate) { return std::string{}; }, [](std::size_t n) { return fmt::format("{}", n); },
                   [&](double x) { return fmt::format("{:.{}g}", x, digits); },
                   [](const std::string& s) { return s; }},
        of);
}

std::string quoted(std::string s)
{
    if (s.find_first_of(",\"\n") == std::string::npos) return s;
    for (std::size_t i = 0; (i = s.find('"', i)) != std::string::npos; i += 2) s.insert(i, 1, '"');
    return '"' + s + '"';
}

bool is_number(const cell& c)
{
    return std::holds_alternative<double>(c) || std::holds_alternative<std::size_t>(c);
}

}  // namespace

std::string as_table(const sheet& of)
{
    const std::size_t columns = of.columns.size();
    std::vector<std::size_t> widths(columns);
    std::vector<bool> numbers(columns, !of.rows.empty());
    for (std::size_t j = 0; j < columns; ++j) {
        widths[j] = of.columns[j].size();
        for (const auto& row : of.rows) {
            widths[j] = std::max(widths[j], text(row[j], 6).size());
            numbers[j] = numbers[j] && is_number(row[j]);
        }
    }

    std::string out;
    const auto line = [&](auto field) {
        std::string s;
        for (std::size_t j = 0; j < columns; ++j) {
            s += numbers[j] ? fmt::format("{:>{}}", field(j), widths[j])
                            : fmt::format("{:<{}}", field(j), widths[j]);
            s += "  ";
        }
        s.erase(s.find_last_not_of(' ') + 1);
        out += s + '\n';
    };
    line([&](std::size_t j) { return of.columns[j]; });
    line([&](std::size_t j) { return std::string(widths[j], '-'); });
    for (const auto& row : of.rows) {
        line([&](std::size_t j) { return text(row[j], 6); });
    }
    return out;
}

std::string as_csv(const sheet& of)
{
    std::string out = fmt::format("{}\n", fmt::join(of.columns, ","));
    for (const auto& row : of.rows) {
        for (std::size_t j = 0; j < row.size(); ++j) {
            if (j > 0) out += ',';
            out += quoted(text(row[j], 17));
        }
        out += '\n';
    }
    return out;
}

nlohmann::ordered_json as_json(const sheet& of)
{
    auto out = nlohmann::ordered_json::array();
    for (const auto& row : of.rows) {
        auto object = nlohmann::ordered_json::object();
        for (std::size_t j = 0; j < row.size(); ++j) {
            std::visit(overloaded{[&](std::monostate) { object[of.columns[j]] = nullptr; },
                                  [&](const auto& x) { object[of.columns[j]] = x; }},
                       row[j]);
        }
        out.push_back(std::move(object));
    }
    return out;
}

std::string write(const sheet& of, format in)
{
    switch (in) {
        case format::csv: return as_csv(of);
        case format::json: return as_json(of).dump(2) + '\n';
        case format::table: break;
    }
    return as_table(of);
}

}  // namespace lesson
