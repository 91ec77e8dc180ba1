#include "console.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

namespace lesson {

void print(std::string_view text)
{
    // A full disk is often noticed at the flush only.
    const bool written =
        std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
    if (!written) throw failure(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
}

void complain(std::string_view message)
{
    std::string line{message};
    for (char& c : line) {
        if (static_cast<unsigned char>(c) < ' ') c = ' ';
    }
    fmt::print(stderr, "lesson: {}\n", line);
}

}  // namespace lesson
