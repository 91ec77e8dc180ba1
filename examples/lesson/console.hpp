// What the program says, and where: results on standard output, one line on standard error when something is wrong.
#ifndef LESSON_CONSOLE_HPP
#define LESSON_CONSOLE_HPP

#include <stdexcept>
#include <string>
#include <string_view>

namespace lesson {

// The exit statuses.
inline constexpr int all_match = 0;
inline constexpr int some_differ = 1;   // only `lesson table`: a number, or its bits, is not what it should be
inline constexpr int not_possible = 2;  // a wrong option, or something that cannot be done here

/// Something that cannot be done, with the one line that says why.
struct failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Writes all of the text to standard output, and makes sure that it arrived; throws `failure` if not.
void print(std::string_view text);

/// Writes one line to standard error, whatever the message contains.
void complain(std::string_view message);

}  // namespace lesson

#endif
