#include "machine.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace bench {

namespace {

#if defined(__x86_64__)
// All that units of the two sets are compiled with. Clang 14 does not know "f16c" as a feature's name.
bool has_avx2()
{
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    constexpr unsigned f16c_bit = 1U << 29U;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & f16c_bit) != 0 && __builtin_cpu_supports("avx2")
           && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2")
           && __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
}
bool has_avx512()
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
           && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")
           && __builtin_cpu_supports("avx512cd");
}
#endif

/// What follows the colon of the first line that begins with one of these names.
std::string entry_of_cpuinfo(std::initializer_list<std::string_view> names)
{
    std::ifstream file{"/proc/cpuinfo"};
    for (std::string line; std::getline(file, line);) {
        for (const auto name : names) {
            const auto colon = line.find(": ");
            if (line.starts_with(name) && colon != std::string::npos) return line.substr(colon + 2);
        }
    }
    return {};
}

}  // namespace

std::string cpu_name()
{
    const std::string name = entry_of_cpuinfo({"model name", "Model", "CPU part"});
    return name.empty() ? "unknown CPU" : name;
}

namespace {

/// By its name; and an emulator that runs here may lack what the CPU has.
bool is_the_building_machine()
{
    if (*BENCH_BUILT_ON == 0 || cpu_name() != BENCH_BUILT_ON) return false;
#if defined(__x86_64__)
    const bool has_as_told = entry_of_cpuinfo({"flags"}).find("avx512f") != std::string::npos;
    return has_as_told == (__builtin_cpu_supports("avx512f") != 0);
#else
    return true;
#endif
}

}  // namespace

bool has([[maybe_unused]] std::string_view target)
{
    if (target == "baseline") return true;
    if (target == "native") return is_the_building_machine();
#if defined(__x86_64__)
    if (target == "avx2") return has_avx2();
    if (target == "avx512") return has_avx512();
#elif defined(__aarch64__)
    if (target == "neon") return true;
#endif
    return false;
}

std::size_t last_level_cache()
{
    constexpr std::size_t guess = std::size_t{32} << 20U;
    std::size_t largest = 0;
    for (int index = 0; index < 8; ++index) {
        std::ifstream file{"/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size"};
        std::string text;
        if (!(file >> text)) continue;
        std::size_t size = std::strtoull(text.c_str(), nullptr, 10);
        if (text.ends_with('K')) size <<= 10U;
        if (text.ends_with('M')) size <<= 20U;
        largest = std::max(largest, size);
    }
    return largest == 0 ? guess : largest;
}

std::size_t available_memory()
{
    const auto pages = sysconf(_SC_AVPHYS_PAGES);
    const auto size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? static_cast<std::size_t>(pages) * static_cast<std::size_t>(size)
                                 : std::size_t{1} << 30U;
}

}  // namespace bench
