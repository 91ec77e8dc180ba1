// operations_table OUTPUT JSON...: the table of operations for the documentation, made of what the tests have recorded
// (support/record.hpp) in GoogleTest's reports. Exits with 1 if an operation lacks what every operation has to have.

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr std::array types = {"f32", "f64", "bf16", "f16"};
/// They give no rows of numbers, or take float and double alone: no type is rounded to.
constexpr std::array that_round_nothing = {
    "combine", "dot", "matvec", "matvec_transposed", "rms", "sum_of_squares",
};

bool rounds(const std::string& base)
{
    return std::ranges::find(that_round_nothing, base) == that_round_nothing.end();
}

/// "rms_norm_vjp of x" is the derivative "vjp" of the operation "rms_norm"; "tanh_vjp_from_output" has a line of its own.
/// After a comma, a case may follow.
struct name {
    std::string base, derivative, which;

    explicit name(const std::string& full) : base{full.substr(0, full.find_first_of(" ,"))}
    {
        const auto comma = full.find(", ");
        if (comma != std::string::npos) which = full.substr(comma + 2);
        for (const char* const kind : {"_vjp", "_jvp"}) {
            const auto at = base.find(kind);
            if (at == std::string::npos) continue;
            derivative = kind + 1;
            if (base.ends_with(kind)) base.erase(at);
            return;
        }
    }
};

/// An error that the tests have measured, in a unit.
struct bound {
    std::string which, unit;
    double stated, seen;
};

/// An operation, or a derivative of it, on one type.
struct form {
    std::set<std::string> promises;
    std::vector<bound> bounds;
};

using forms = std::map<std::string, form>;       // by type
using operation = std::map<std::string, forms>;  // by derivative: "", "jvp", "vjp"
using operations = std::map<std::string, operation>;

const form* find(const operation& op, const std::string& derivative, const std::string& type)
{
    const auto found = op.find(derivative);
    if (found == op.end()) return nullptr;
    const auto of_type = found->second.find(type);
    return of_type == found->second.end() ? nullptr : &of_type->second;
}

/// Of all its derivatives.
bool keeps(const operation& op, const std::string& promise, const std::string& type)
{
    return std::all_of(op.begin(), op.end(), [&](const auto& each) {
        const form* const f = find(op, each.first, type);
        return f != nullptr && f->promises.contains(promise);
    });
}

/// The first parts of a text, and what is left as the last.
std::vector<std::string> split(const std::string& text, std::size_t most)
{
    std::vector<std::string> parts(1);
    for (const char c : text) {
        if (c == '|' && parts.size() < most) {
            parts.emplace_back();
        } else {
            parts.back() += c;
        }
    }
    return parts;
}

template <class F>
void for_each_record(const nlohmann::json& report, F f)
{
    for (const auto& suite : report.at("testsuites")) {
        for (const auto& test : suite.at("testsuite")) {
            for (const auto& [key, value] : test.items()) {
                if (key.find('|') != std::string::npos) f(split(key, 4), value.template get<std::string>());
            }
        }
    }
}

void add_promise(operations& all, const std::vector<std::string>& key)
{
    const name n{key.at(1)};
    all[n.base][n.derivative][key.at(2)].promises.insert(key.at(3));
}

/// Cases of one bound and unit are one; and if one of them is the operation as such, they all are.
bool add_bound(operations& all, const std::vector<std::string>& key, const std::string& value)
{
    const name n{key.at(1)};
    if (!all.contains(n.base) || find(all[n.base], n.derivative, key.at(2)) == nullptr) {
        std::cerr << key.at(1) << " of " << key.at(2)
                  << ": measured, and no operation of which anything is promised\n";
        return false;
    }
    const auto figures = split(value, 3);
    const bound b{n.which, figures.at(2), std::stod(figures.at(0)), std::stod(figures.at(1))};
    auto& known = all[n.base][n.derivative][key.at(2)].bounds;
    for (bound& other : known) {
        if (other.unit != b.unit || other.stated != b.stated) continue;
        other.seen = std::max(other.seen, b.seen);
        if (other.which.empty() || b.which.empty()) {
            other.which.clear();
        } else if (other.which.find(b.which) == std::string::npos) {
            other.which += ", " + b.which;
        }
        return true;
    }
    known.push_back(b);
    return true;
}

std::string text_of(const bound& b, bool with_case)
{
    const bool has_parts = b.unit.starts_with("of ");
    char figures[64];
    std::snprintf(figures, sizeof figures, has_parts ? " (seen: %.2g of that)" : " (seen: %.2g)", b.seen);
    char stated[32];
    std::snprintf(stated, sizeof stated, "%.3g ", b.stated);
    return (with_case && !b.which.empty() ? b.which + ": " : "") + (has_parts ? b.unit.substr(3) : stated + b.unit)
           + figures;
}

std::string bounds_of(const operation& op, const std::string& type, bool rounds)
{
    if (type == "bf16" || type == "f16") return rounds ? "that of f32, and one rounding" : "that of f32";
    std::string text;
    for (const auto& [derivative, title] : {std::pair{"", ""}, {"vjp", "VJP: "}, {"jvp", "JVP: "}}) {
        const form* const f = find(op, derivative, type);
        if (f == nullptr) continue;
        std::string of_this;
        auto bounds = f->bounds;
        std::ranges::sort(bounds, {}, &bound::which);
        for (const bound& b : bounds) of_this += (of_this.empty() ? "" : "; ") + text_of(b, f->bounds.size() > 1);
        text += (text.empty() ? "" : "<br>") + (title + of_this);
    }
    return text;
}

/// Where an output may be exactly an input.
std::string in_place(const operation& op, const std::string& type)
{
    std::string where;
    for (const auto& [derivative, title] : {std::pair{"", "forward"}, {"vjp", "VJP"}, {"jvp", "JVP"}}) {
        const form* const f = find(op, derivative, type);
        if (f != nullptr && f->promises.contains("in place"))
            where += (where.empty() ? "" : ", ") + std::string{title};
    }
    return where.empty() ? "-" : where;
}

const char* mark(bool yes) { return yes ? "yes" : "-"; }

/// Whether the tests have shown all that they have to show of an operation on this type.
bool is_complete(const std::string& base, const operation& op, const std::string& type)
{
    bool complete = true;
    const auto miss = [&](const std::string& what) {
        std::cerr << base << " of " << type << ": " << what << '\n';
        complete = false;
    };
    const bool has_rows = base != "combine";
    if (has_rows && !keeps(op, "strided", type)) miss("not shown to be strided");
    if (rounds(base) && !keeps(op, "rounded once", type)) miss("not shown to be rounded once");
    if (type == "bf16" || type == "f16") return complete;
    for (const auto& [derivative, of_types] : op) {
        const form* const f = find(op, derivative, type);
        if (f != nullptr && f->bounds.empty()) miss(derivative + " has no bound");
    }
    return complete;
}

bool write(std::ostream& out, const operations& all)
{
    bool complete = true;
    out << "# The operations\n\n"
           "Made from what the tests have shown, by tests/operations_table.cpp:\n\n"
           "    cmake --workflow --preset test\n"
           "    cmake --build --preset test --target docs\n\n"
           "- *strided*: rows with gaps, each operand with a stride of its own.\n"
           "- *in place*: where an output may be exactly an input; which, the header says.\n"
           "- *bound*: of the error, and the largest that the tests have seen. \"ulp\" without more is the unit in "
           "the "
           "last place\n  of the correct result, in its type. A sum that cancels has an error of the size of what "
           "is "
           "added up, which can be\n  many ulp of the result: there the unit is that of a term, or a part of \"all "
           "terms\", the sum of their absolute\n  values; which terms, the header says. \"of that\" is a share of "
           "the "
           "whole bound. Where two precisions are offered,\n  the higher is \"precise\".\n\n"
           "| operation | type | forward | VJP | JVP | strided | in place | bound |\n"
           "|---|---|---|---|---|---|---|---|\n";
    for (const auto& [base, op] : all) {
        for (const char* const type : types) {
            const bool has_type =
                std::any_of(op.begin(), op.end(), [&](const auto& each) { return each.second.contains(type); });
            if (!has_type && !rounds(base)) continue;
            out << "| `" << base << "` | " << type;
            for (const char* const derivative : {"", "vjp", "jvp"}) {
                out << " | " << mark(find(op, derivative, type) != nullptr);
            }
            out << " | " << mark(keeps(op, "strided", type)) << " | " << in_place(op, type) << " | "
                << bounds_of(op, type, rounds(base)) << " |\n";
            complete = is_complete(base, op, type) && complete;
        }
    }
    return complete;
}

}  // namespace

int main(int argc, char** argv)
{
    if (argc < 3) {
        std::cerr << "usage: operations_table OUTPUT JSON...\n";
        return 2;
    }
    std::vector<nlohmann::json> reports;
    for (int i = 2; i < argc; ++i) {
        std::ifstream file{argv[i]};
        if (!file) {
            std::cerr << "operations_table: cannot read " << argv[i] << '\n';
            return 2;
        }
        reports.push_back(nlohmann::json::parse(file));
    }
    operations all;
    for (const auto& report : reports) {
        for_each_record(report, [&](const auto& key, const auto&) {
            if (key.at(0) == "promise") add_promise(all, key);
        });
    }
    bool known = true;
    for (const auto& report : reports) {
        for_each_record(report, [&](const auto& key, const auto& value) {
            if (key.at(0) == "bound") known = add_bound(all, key, value) && known;
        });
    }
    std::ofstream out{argv[1]};
    const bool complete = !all.empty() && write(out, all) && known;
    return out && complete ? 0 : 1;
}
