#include "fuzz/oracle.hpp"

#include <algorithm>
#include <cmath>

#include "fuzz/oracle_tables.hpp"
#include "support/precision.hpp"

namespace fuzz {

const oracle* oracle_of(const std::string& operation)
{
    static const auto all = [] {
        table t = oracles_of_elements();
        t.merge(oracles_of_rows());
        t.merge(oracles_of_streams());
        return t;
    }();
    const auto find = [](const std::string& name) {
        const auto found = all.find(name);
        return found == all.end() ? nullptr : &found->second;
    };
    for (const std::string packed : {", halves", ", interleaved"}) {
        if (!operation.ends_with(packed)) continue;
        const auto name = operation.substr(0, operation.size() - packed.size());
        const oracle* const own = find(name + ", packed");
        return own != nullptr ? own : find(name);
    }
    return find(operation);
}

wide unit(element type, wide any)
{
    if (std::isnan(any)) return any;
    const wide x = std::clamp<wide>(any, -0x1p1024L, 0x1p1024L);
    switch (type) {
        case element::float64: return precision::unit<double>(x);
        case element::float32: return precision::unit<float>(x);
        case element::bfloat16: return precision::unit<residua::bfloat16>(x);
        case element::float16: return precision::unit<residua::float16>(x);
    }
    return 0;
}

}  // namespace fuzz
