#include <residua/dispatch_implementation.hpp>
