#include <residua/version.hpp>

#include <cstdio>

int main() { std::printf("residua %d.%d.%d\n", RESIDUA_VERSION_MAJOR, RESIDUA_VERSION_MINOR, RESIDUA_VERSION_PATCH); }
