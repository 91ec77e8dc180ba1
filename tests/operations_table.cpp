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
#include <vector>

namespace {

constexpr std::array types = {"f32", "f64", "bf16", "f16"};

/// "rms_norm_vjp of x" is the derivative "vjp" of the operation "rms_norm".
struct name {
    std::string base, derivative;

    explicit name(const std::string& full) : base{full.substr(0, full.find_first_of(" ,"))}
    {
        for (const char* const kind : {"_vjp", "_jvp"}) {
            const auto at = base.find(kind);
            if (at == std::string::npos) continue;
            derivative = kind + 1;
            base.erase(at);
        }
    }
};

struct cell {
    std::set<std::string> promises;
};

struct operation {
    std::map<std::string, std::map<std::string, cell>> derivatives;  // by derivative ("", "vjp", "jvp") and type
    std::map<std::string, std::pair<double, double>> bounds;         // by type: stated, seen

    bool has(const std::string& derivative, const std::string& type) const
    {
        const auto found = derivatives.find(derivative);
        return found != derivatives.end() && found->second.contains(type);
    }
    /// Of all its derivatives.
    bool keeps(const std::string& promise, const std::string& type) const
    {
        return std::all_of(derivatives.begin(), derivatives.end(), [&](const auto& each) {
            const auto found = each.second.find(type);
            return found != each.second.end() && found->second.promises.contains(promise);
        });
    }
};

using operations = std::map<std::string, operation>;

std::vector<std::string> split(const std::string& text)
{
    std::vector<std::string> parts(1);
    for (const char c : text) {
        if (c == '|') {
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
                if (key.find('|') != std::string::npos) f(split(key), value.template get<std::string>());
            }
        }
    }
}

void add_promise(operations& all, const std::vector<std::string>& key)
{
    const name n{key.at(1)};
    all[n.base].derivatives[n.derivative][key.at(2)].promises.insert(key.at(3));
}

/// A measurement belongs to the operation whose name it begins with. Its name may go on: with a region, or a case.
void add_bound(operations& all, const std::vector<std::string>& key, const std::string& value)
{
    const auto figures = split(value);
    operation* best = nullptr;
    std::size_t length = 0;
    for (auto& [base, op] : all) {
        if (key.at(1).starts_with(base) && base.size() > length) {
            best = &op;
            length = base.size();
        }
    }
    if (best == nullptr) return;
    auto& [stated, seen] = best->bounds[key.at(2)];
    stated = std::max(stated, std::stod(figures.at(0)));
    seen = std::max(seen, std::stod(figures.at(1)));
}

std::string bound_of(const operation& op, const std::string& type)
{
    if (type == "bf16" || type == "f16") return "that of f32, and one rounding";
    const auto found = op.bounds.find(type);
    if (found == op.bounds.end()) return "";
    char text[64];
    std::snprintf(text, sizeof text, "%.3g ulp (seen: %.2g)", found->second.first, found->second.second);
    return text;
}

const char* mark(bool yes) { return yes ? "yes" : "-"; }

bool write(std::ostream& out, const operations& all)
{
    bool complete = true;
    out << "# The operations\n\nMade from what the tests have shown, by tests/operations_table.cpp. \"Strided\": "
           "rows with gaps, "
           "each operand with a\nstride of its own. \"In place\": an output may be exactly an input. Bounds are in "
           "units of the last "
           "place of the\ncorrect result, of all forms and derivatives of the operation.\n\n"
           "| operation | type | forward | VJP | JVP | strided | in place | bound |\n"
           "|---|---|---|---|---|---|---|---|\n";
    for (const auto& [base, op] : all) {
        for (const char* const type : types) {
            out << "| `" << base << "` | " << type << " | " << mark(op.has("", type)) << " | "
                << mark(op.has("vjp", type)) << " | " << mark(op.has("jvp", type)) << " | "
                << mark(op.keeps("strided", type)) << " | " << mark(op.keeps("in place", type)) << " | "
                << bound_of(op, type) << " |\n";
            for (const char* const promise : {"rounded once", "strided"}) {
                if (op.keeps(promise, type)) continue;
                std::cerr << base << " of " << type << ": not shown to be " << promise << '\n';
                complete = false;
            }
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
    for (const auto& report : reports) {
        for_each_record(report, [&](const auto& key, const auto& value) {
            if (key.at(0) == "bound") add_bound(all, key, value);
        });
    }
    std::ofstream out{argv[1]};
    const bool complete = !all.empty() && write(out, all);
    return out && complete ? 0 : 1;
}
