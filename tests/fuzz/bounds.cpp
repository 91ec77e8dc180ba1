#include "fuzz/bounds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

namespace fuzz {
namespace {

wide largest_beyond(element type)
{
    return std::ldexp(wide(1), type == element::float64 ? 1024 : type == element::float16 ? 16 : 128);
}

/// How the numbers of one element, or of a row, are.
struct numbers_seen {
    bool nan = false, infinite = false;

    void see(wide x)
    {
        nan = nan || std::isnan(x);
        infinite = infinite || std::isinf(x);
    }
};

/// A row that the oracle takes: of an operand, or half of one.
struct part_of_operand {
    std::size_t operand, first, step, columns;

    std::size_t at(std::size_t j) const { return first + j * step; }
};

/// The rows of an operand; of one that holds gate and up, those of both.
std::vector<part_of_operand> parts_of(const any_call& call, std::size_t i)
{
    const auto& o = call.op->operands[i];
    const std::size_t width = o.width(call.columns) * (o.has_one_row() ? 1 : o.rows);
    if (o.columns == 1) return {{i, 0, 1, width}};
    const std::size_t n = width / 2;
    if (std::string_view{call.op->name}.ends_with("interleaved")) return {{i, 0, 2, n}, {i, 1, 2, n}};
    return {{i, 0, 1, n}, {i, n, 1, n}};
}

/// Row r of a part.
wide_row row_of(const any_call& call, const part_of_operand& part, const std::vector<double>& all, std::size_t r)
{
    const auto& o = call.op->operands[part.operand];
    const std::size_t width = o.width(call.columns) * (o.has_one_row() ? 1 : o.rows);
    const std::size_t first = o.has_one_row() ? 0 : r * width;
    wide_row row(part.columns);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = wide(all[first + part.at(j)]);
    return row;
}

/// In the place of infinities, whose differences are NaN too.
void make_finite(wide_row& x)
{
    for (wide& e : x) e = std::isinf(e) ? 1 : e;
}

/// A sum over the rows, element by element.
struct sum_of_rows {
    reference::exact_sum value;
    wide allowed = 0, terms = 0;
    numbers_seen seen;
    bool is_known = true;
};

class checked_call {
public:
    checked_call(const any_call& call, const oracle& known, const operations::contents& given,
                 const operations::contents& results)
        : call_{call}, known_{known}
    {
        const bool of_doubles = operations::has_double(*call.op, *call.form);
        how_ = {call.op->computes_in_double || of_doubles, of_doubles, {}};
        computed_in_ = how_.in_double ? element::float64 : element::float32;
        bound_ = of_doubles ? known.bound_of_doubles : known.bound;
        for (std::size_t i = 0; i < given.size(); ++i) {
            const auto& o = call.op->operands[i];
            given_.push_back(operations::numbers(given[i], call.form->types[i]));
            results_.push_back(operations::numbers(results[i], call.form->types[i]));
            for (const auto& part : parts_of(call, i)) {
                if (o.is_written()) outputs_.push_back(part);
                if (o.is_sum() || !o.is_read()) continue;
                inputs_.push_back(part);
                how_.types.push_back(call.form->types[i]);
            }
        }
        for (const auto& part : outputs_) sums_.push_back(first_sums(part));
    }

    std::string fault()
    {
        for (std::size_t r = 0; r < call_.count; ++r) {
            auto wrong = fault_in_row(r);
            if (!wrong.empty()) return wrong;
        }
        for (std::size_t o = 0; o < outputs_.size(); ++o) {
            for (std::size_t j = 0; j < sums_[o].size(); ++j) {
                auto wrong = fault_of_sum(outputs_[o], j, sums_[o][j]);
                if (!wrong.empty()) return wrong;
            }
        }
        return {};
    }

private:
    element type_of(const part_of_operand& part) const { return call_.form->types[part.operand]; }
    bool is_sum(const part_of_operand& part) const { return call_.op->operands[part.operand].is_sum(); }

    std::vector<sum_of_rows> first_sums(const part_of_operand& part) const
    {
        if (!is_sum(part)) return {};
        std::vector<sum_of_rows> sums(part.columns);
        if (!call_.op->operands[part.operand].is_read()) return sums;
        for (std::size_t j = 0; j < sums.size(); ++j) {
            const auto x = wide(given_[part.operand][part.at(j)]);
            sums[j].seen.see(x);
            sums[j].value.add(x);
            sums[j].terms = std::abs(x);
        }
        return sums;
    }

    std::string fault_in_row(std::size_t r)
    {
        rows_in_.clear();
        expected_.clear();
        numbers_seen seen;
        for (const auto& part : inputs_) {
            rows_in_.push_back(row_of(call_, part, given_[part.operand], r));
            for (const wide x : rows_in_.back()) seen.see(x);
        }
        for (const auto& part : outputs_) {
            const wide_row zeros(part.columns);
            expected_.push_back({row_of(call_, part, results_[part.operand], r), zeros, zeros, zeros});
        }
        if (!known_.nan_stays && seen.infinite) {
            for (auto& x : rows_in_) make_finite(x);
            for (auto& y : expected_) make_finite(y.got);
        }
        known_.row(rows_in_, expected_, how_);
        for (std::size_t o = 0; o < outputs_.size(); ++o) {
            for (std::size_t j = 0; j < outputs_[o].columns; ++j) {
                if (is_sum(outputs_[o])) {
                    add_to_sum(sums_[o][j], o, j, seen);
                    continue;
                }
                const double got = results_[outputs_[o].operand][r * outputs_of_row(o) + outputs_[o].at(j)];
                const auto wrong = fault_of_element(o, j, seen, got);
                if (wrong.empty()) continue;
                return in_operand(outputs_[o].operand, "row " + std::to_string(r) + ", element "
                                                           + std::to_string(outputs_[o].at(j)) + " is "
                                                           + hexadecimal(got) + wrong);
            }
        }
        return {};
    }
    std::size_t outputs_of_row(std::size_t o) const
    {
        const auto& operand = call_.op->operands[outputs_[o].operand];
        return operand.width(call_.columns) * operand.rows;
    }

    std::string fault_of_element(std::size_t o, std::size_t j, numbers_seen seen, double got) const
    {
        const auto& y = expected_[o];
        bool nan = seen.nan && std::isnan(y.value[j]);
        if (known_.nan_stays) {
            seen = {};
            for (const auto& x : rows_in_) seen.see(x[j]);
            nan = seen.nan;
        }
        if (nan) return std::isnan(got) ? "" : " where an input is NaN";
        if (seen.nan || seen.infinite) return {};
        // sums must stay in the range of double
        if (how_.in_double && !known_.nan_stays && y.terms[j] > 0x1p1015L) return {};
        if (!(std::abs(y.size[j]) >= 0) || std::isnan(y.value[j])) return {};
        const element stored_as = type_of(outputs_[o]);
        wide allowed = wide(bound_) * unit(computed_in_, y.size[j]);
        if (stored_as != computed_in_) allowed += unit(stored_as, y.value[j]) / 2;
        return not_within(allowed, y.terms[j], got, y.value[j], stored_as, y.size[j]);
    }

    void add_to_sum(sum_of_rows& sum, std::size_t o, std::size_t j, const numbers_seen& seen) const
    {
        const auto& y = expected_[o];
        if (seen.nan && std::isnan(y.value[j])) sum.seen.nan = true;
        if (seen.nan || seen.infinite || !(std::abs(y.size[j]) >= 0)) {
            sum.is_known = false;
            return;
        }
        sum.value.add(y.value[j]);
        sum.terms += std::abs(y.terms[j]);
        sum.allowed += wide(known_.bound_of_sums) * unit(computed_in_, y.size[j]);
        const element stored_as = known_.sums_in_double ? element::float64 : type_of(outputs_[o]);
        const wide partial = std::abs(sum.value.value()) + sum.allowed;
        sum.allowed += unit(computed_in_, partial) / 2;
        if (stored_as != computed_in_) sum.allowed += unit(stored_as, partial) / 2;
    }
    std::string fault_of_sum(const part_of_operand& part, std::size_t j, const sum_of_rows& sum) const
    {
        const double got = results_[part.operand][part.at(j)];
        const element stored_as = type_of(part);
        std::string wrong;
        if (sum.seen.nan) {
            if (!std::isnan(got)) wrong = " where an input is NaN";
        } else if (sum.is_known && !sum.seen.infinite && sum.terms < largest_beyond(stored_as) * 0x1p-9L) {
            const wide value = sum.value.value();
            const wide rounding = known_.sums_in_double ? unit(stored_as, value) / 2 : 0;
            wrong = not_within(sum.allowed + rounding, sum.terms, got, value, stored_as, sum.terms);
        }
        if (wrong.empty()) return {};
        return in_operand(part.operand, "sum " + std::to_string(part.at(j)) + " is " + hexadecimal(got) + wrong);
    }

    std::string not_within(wide allowed, wide terms, double got, wide value, element stored_as, wide size) const
    {
        const wide beyond = largest_beyond(stored_as);
        const auto finite = [=](wide x) { return std::clamp(x, -beyond, beyond); };
        const wide error = std::abs(finite(wide(got)) - finite(value));
        allowed += 0x1p-60L * std::min(std::abs(terms), std::numeric_limits<wide>::max());
        if (error <= allowed) return {};
        return " and not " + hexadecimal(static_cast<double>(value)) + ": wrong by "
               + std::to_string(static_cast<double>(error / unit(computed_in_, size))) + " units of "
               + hexadecimal(static_cast<double>(size));
    }

    const any_call& call_;
    const oracle& known_;
    computation how_;
    element computed_in_;
    double bound_;
    std::vector<std::vector<double>> given_, results_;
    std::vector<part_of_operand> inputs_, outputs_;
    std::vector<std::vector<sum_of_rows>> sums_;  // of each output
    std::vector<wide_row> rows_in_;
    std::vector<expected_row> expected_;
};

}  // namespace

std::string beyond_bound(const any_call& call, const oracle& known, const operations::contents& given,
                         const operations::contents& results)
{
    return checked_call{call, known, given, results}.fault();
}

}  // namespace fuzz
