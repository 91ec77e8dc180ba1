// `lesson table`: every number of the page, on every instruction set of this CPU.
#ifndef LESSON_TABLE_HPP
#define LESSON_TABLE_HPP

#include <string>

#include "sheet.hpp"

namespace lesson {

struct report {
    std::string text;
    bool all_match;  ///< every number that can be computed, on every instruction set, with the same bits
};

report make_table(format in);

}  // namespace lesson

#endif
