// The main function of a test that goes through run-time dispatch: forces the target that RESIDUA_TEST_TARGET names, and
// ends with 77, "skipped", where this CPU cannot run it.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <residua/dispatch.hpp>

int main(int argc, char** argv)
{
    ::testing::InitGoogleTest(&argc, argv);
    if (const char* const wanted = std::getenv("RESIDUA_TEST_TARGET")) {
        bool found = false;
        for (const auto target : residua::dispatch::targets()) {
            if (residua::dispatch::name(target) == std::string_view{wanted}) {
                found = residua::dispatch::force(target);
            }
        }
        if (!found) {
            std::printf("skipped: this CPU, or this build, does not have %s\n", wanted);
            return 77;
        }
    }
    std::printf("target: %s\n", residua::dispatch::name(residua::dispatch::active()).data());
    return RUN_ALL_TESTS();
}
