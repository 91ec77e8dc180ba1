#include "registry.hpp"

#include <fmt/format.h>

#include "machine.hpp"

namespace bench {

// The entries that the build has, as BENCH_UNIT(entry, target).
#define BENCH_UNIT(entry, target) void entry();
#include "units.inc"
#undef BENCH_UNIT

namespace {

std::vector<operation>& all_operations()
{
    static std::vector<operation> all;
    return all;
}
std::vector<contender>& all_contenders()
{
    static std::vector<contender> all;
    return all;
}

}  // namespace

void add(const operation& o) { all_operations().push_back(o); }
void add(const contender& c) { all_contenders().push_back(c); }

const std::vector<operation>& operations() { return all_operations(); }
const std::vector<contender>& contenders() { return all_contenders(); }

std::vector<std::string> collect()
{
    std::vector<std::string> left_out;
    const auto run = [&](void (*entry)(), std::string_view target) {
        if (has(target)) {
            entry();
            return;
        }
        auto words = fmt::format("{} (not on this CPU)", target);
        if (target == "native") words = "native (compiled for another CPU)";
        for (const auto& known : left_out) {
            if (known == words) return;
        }
        left_out.push_back(std::move(words));
    };
#define BENCH_UNIT(entry, target) run(entry, target);
#include "units.inc"
#undef BENCH_UNIT
    return left_out;
}

std::size_t size_of(type t) noexcept { return t == type::f32 ? 4 : 2; }

std::string_view name_of(type t) noexcept
{
    switch (t) {
        case type::f32: return "f32";
        case type::bf16: return "bf16";
        case type::f16: return "f16";
    }
    return "";
}

std::string name_of(const measurement& m)
{
    const bool precise = std::string_view{m.who->tier} == "precise";
    return fmt::format("{}<{},{},{}{}>/{}/{}", m.what->name, name_of(m.who->element), m.who->target, m.who->backend,
                       precise ? ",precise" : "", m.columns, m.regime);
}

}  // namespace bench
