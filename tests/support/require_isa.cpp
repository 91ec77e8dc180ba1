// require_isa <instruction set> -- <command> [argument...]
//
// Becomes the command if this CPU has the instruction set; otherwise says so and exits with 77, which ctest shows as
// "Skipped". Compiled without any -m flag, so it runs everywhere. x86 only.

#include <unistd.h>

#include <cpuid.h>
#include <cstdio>
#include <cstring>

namespace {

constexpr int skipped = 77;
constexpr int wrong_usage = 2;
constexpr int cannot_run = 127;

// Clang 14 does not know "f16c" as a feature name.
bool has_f16c()
{
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;
    constexpr unsigned f16c_bit = 1U << 29U;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & f16c_bit) != 0;
}

// Everything that the tests of the two sets are compiled with. A feature counts only if the system has it enabled.
bool has_avx2()
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi")
           && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul")
           && has_f16c();
}

bool has_avx512()
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
           && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")
           && __builtin_cpu_supports("avx512cd");
}

}  // namespace

int main(int argc, char** argv)
{
    if (argc < 4 || std::strcmp(argv[2], "--") != 0) {
        std::fputs("usage: require_isa <avx2|avx512> -- <command> [argument...]\n", stderr);
        return wrong_usage;
    }
    const char* const isa = argv[1];
    const bool is_avx2 = std::strcmp(isa, "avx2") == 0;
    if (!is_avx2 && std::strcmp(isa, "avx512") != 0) {
        std::fprintf(stderr, "require_isa: unknown instruction set '%s'\n", isa);
        return wrong_usage;
    }
    __builtin_cpu_init();
    if (!(is_avx2 ? has_avx2() : has_avx512())) {
        std::printf("skipped: this CPU does not have all of %s\n", isa);
        return skipped;
    }
    ::execvp(argv[3], argv + 3);
    std::perror(argv[3]);
    return cannot_run;
}
