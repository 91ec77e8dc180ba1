// Options of the command line: each is checked where it is read, and its one line of complaint names it.
#ifndef LESSON_ARGUMENTS_HPP
#define LESSON_ARGUMENTS_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "models.hpp"
#include "sheet.hpp"

namespace lesson {

/// Adds an option for a whole number in a range.
void add_whole(CLI::App& app, const std::string& name, std::size_t& value, std::size_t least, std::size_t most,
               const std::string& description);

/// Adds an option for a finite number in a range.
void add_real(CLI::App& app, const std::string& name, double& value, double least, double most,
              const std::string& description);

/// Adds --format.
void add_format(CLI::App& app, format& value);

/// Adds --target.
void add_target(CLI::App& app, std::optional<dispatch::target>& value);

/// What `gradient`, `tokens` and `sweep` have in common.
struct stack_arguments {
    std::size_t layers = 32;
    switches set = {};
    std::size_t seed = 0;
    std::size_t width = 0;
    bool single = false;  ///< float instead of double
    std::optional<dispatch::target> target = {};
    format in = format::table;

    void add_to(CLI::App& app);
};

/// Throws `failure` if the sizes together are beyond what the program takes on.
void check_sizes(std::size_t layers, std::size_t width, std::size_t tokens);

}  // namespace lesson

#endif
