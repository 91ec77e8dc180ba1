// Rows of results, written in one of three formats.
#ifndef LESSON_SHEET_HPP
#define LESSON_SHEET_HPP

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace lesson {

enum class format { table, csv, json };

/// Nothing, a whole number, a number, a text.
using cell = std::variant<std::monostate, std::size_t, double, std::string>;

struct sheet {
    std::vector<std::string> columns;
    std::vector<std::vector<cell>> rows;
};

/// The sheet for a reader: columns aligned, six significant digits.
std::string as_table(const sheet& of);

/// The sheet for a program: RFC 4180 with its newlines as everywhere else, 17 significant digits.
std::string as_csv(const sheet& of);

/// An array with one object for each row. What JSON has no number for (NaN, an infinity) is null.
nlohmann::ordered_json as_json(const sheet& of);

std::string write(const sheet& of, format in);

}  // namespace lesson

#endif
