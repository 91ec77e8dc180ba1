// What the units have added.
#ifndef RESIDUA_BENCH_REGISTRY_HPP
#define RESIDUA_BENCH_REGISTRY_HPP

#include <string>
#include <string_view>
#include <vector>

#include "bench.hpp"

namespace bench {

/// One cell of the table.
struct measurement {
    const operation* what;
    const contender* who;
    std::size_t columns;
    std::string regime;
};

const std::vector<operation>& operations();
const std::vector<contender>& contenders();

/// Calls the entry of every unit that this CPU can run, and says which were left out.
std::vector<std::string> collect();

std::size_t size_of(type) noexcept;
std::string_view name_of(type) noexcept;

/// "rms_norm<f32,avx512,xsimd>/5120/cache"; the precise tier comes after the backend.
std::string name_of(const measurement&);

}  // namespace bench

#endif
