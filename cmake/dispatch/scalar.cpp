#define RESIDUA_DISPATCH_UNIT 0
#include <residua/dispatch_implementation.hpp>
