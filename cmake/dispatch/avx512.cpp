#define RESIDUA_DISPATCH_UNIT 2
#include <residua/dispatch_implementation.hpp>
