// The machine that this runs on.
#ifndef RESIDUA_BENCH_MACHINE_HPP
#define RESIDUA_BENCH_MACHINE_HPP

#include <cstddef>
#include <string>
#include <string_view>

namespace bench {

/// "baseline", "avx2", "avx512", "neon", or "native": what the building machine has.
bool has(std::string_view target);

/// The CPU's name as the system gives it.
std::string cpu_name();

/// In bytes; a guess where the system does not say.
std::size_t last_level_cache();
std::size_t available_memory();

}  // namespace bench

#endif
