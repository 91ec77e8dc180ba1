#define RESIDUA_DISPATCH_UNIT 1
#include <residua/dispatch_implementation.hpp>
