#include "fuzz/any_call.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <string_view>

#include "fuzz/bounds.hpp"
#include "support/special_values.hpp"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RESIDUA_TEST_POISON
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define RESIDUA_TEST_POISON
#endif
#ifdef RESIDUA_TEST_POISON
#include <sanitizer/asan_interface.h>
#endif

namespace fuzz {
namespace {

using operations::bytes;
using operations::contents;
using operations::element;
using operations::form;
using operations::operation;
using operations::place;
using operations::size_of;
using operations::use;

// --- a call from bytes -----------------------------------------------------------------------------------------

/// Zeros after the last byte.
class byte_reader {
public:
    explicit byte_reader(std::span<const std::uint8_t> all) : rest_{all} {}

    bool empty() const { return rest_.empty(); }
    std::uint8_t byte()
    {
        if (rest_.empty()) return 0;
        const std::uint8_t first = rest_.front();
        rest_ = rest_.subspan(1);
        return first;
    }
    std::uint64_t number(std::size_t size)
    {
        std::uint64_t x = 0;
        for (std::size_t i = 0; i < size; ++i) x = x << 8U | byte();
        return x;
    }
    std::size_t below(std::size_t n) { return number(n > 256 ? 2 : 1) % n; }

private:
    std::span<const std::uint8_t> rest_;
};

std::size_t columns_of(byte_reader& in)
{
    const std::size_t few = in.below(256);
    if (few < 160) return few % 40;
    if (few < 224) return few - 160;
    constexpr std::size_t beside_blocks[] = {127, 128, 129, 255, 256, 257, 511, 512, 513, 640, 1023, 1024, 1025};
    return few < 250 ? beside_blocks[few % std::size(beside_blocks)] : in.below(1400);
}

bool is_apart(const operations::operand& o, const placement& p, std::size_t columns)
{
    const auto step = static_cast<std::size_t>(p.stride < 0 ? -p.stride : p.stride);
    return step >= o.width(columns);
}

std::vector<placement> places_of(byte_reader& in, const operation& op, const form& f, std::size_t columns)
{
    std::vector<placement> places;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
        const auto& o = op.operands[i];
        const auto width = static_cast<std::ptrdiff_t>(o.width(columns));
        const std::uint8_t how = in.byte();
        placement p{i, width, std::size_t{how} >> 4U};
        switch (how & 15U) {
            case 0:
            case 1:
            case 2:
            case 3: break;
            case 4: p.stride = -width; break;
            case 5:
                if (o.used == use::read) p.stride = 0;
                break;
            case 6:
                if (o.used == use::read) p.stride = 1;
                break;
            case 7:
                if (o.used == use::read) p.stride = width / 2;
                break;
            default:
                p.stride = (how % 2 == 0 ? 1 : -1) * (width + static_cast<std::ptrdiff_t>(in.byte() % 40));
                break;
        }
        places.push_back(p);
    }
    std::vector<bool> taken(places.size());
    for (std::size_t i = 0; i < places.size(); ++i) {
        if (op.operands[i].used != use::written) continue;
        const std::size_t k = in.below(2 * places.size());
        if (k < places.size() && !taken[k] && op.may_lie_on(f, i, k)
            && is_apart(op.operands[k], places[k], columns)) {
            places[i] = places[k];
            taken[k] = true;
        }
    }
    return places;
}

/// The bits of one more number for an operand: how they are made is told by `kind`.
class generator {
public:
    generator(element type, const operation& op, byte_reader& in)
        : type_{type},
          low_{op.low},
          high_{op.high},
          kind_{in.below(16)},
          power_{static_cast<int>(in.byte())},
          random_{in.number(2)}
    {
    }

    bytes numbers(std::size_t n)
    {
        bytes all;
        std::vector<double> x(n);
        switch (kind_) {
            case 0:
            case 1:
            case 2: return of_bits(n, [&] { return random_(); });
            case 3:
            case 4: return of_bits(n, [&] { return special(); });
            case 5:  // of one size, from the least to the largest
                for (double& e : x) e = std::ldexp(uniform(-2, 2), exponent());
                break;
            case 6:  // of all sizes
                for (double& e : x)
                    e = std::ldexp(uniform(-2, 2),
                                   static_cast<int>(random_.below(2 * reach())) - static_cast<int>(reach()));
                break;
            case 7:  // one that is large beside the others
                for (double& e : x) e = uniform(-2, 2);
                if (n > 0) x[random_.below(n)] = std::ldexp(1.0, exponent());
                break;
            case 8:
                for (double& e : x) e = std::ldexp(1.5, exponent());
                break;
            case 9:
                for (std::size_t j = 0; j < n; ++j) x[j] = std::ldexp(j % 2 == 0 ? 1 : -1, exponent());
                break;
            case 10:
                if (n > 0) x[random_.below(n)] = std::ldexp(uniform(-2, 2), exponent());
                break;
            case 11:
                for (double& e : x) e = uniform(-100, 100);
                break;
            case 12:
                for (double& e : x) e = uniform(-1000, 1000);
                break;
            default:
                for (double& e : x) e = uniform(low_, high_);
                break;
        }
        return operations::stored(x, type_);
    }

private:
    double uniform(double low, double high)
    {
        return low + (high - low) * static_cast<double>(random_() >> 11U) * 0x1p-53;
    }
    std::uint64_t reach() const { return type_ == element::float64 ? 1074 : type_ == element::float16 ? 24 : 149; }
    /// From the exponent of the smallest number to that of the largest.
    int exponent() const
    {
        const int least = -static_cast<int>(reach());
        const int most = type_ == element::float64 ? 1022 : type_ == element::float16 ? 14 : 126;
        return least + (most - least) * power_ / 255;
    }
    std::uint64_t special()
    {
        using namespace residua::test;
        const std::uint64_t i = random_();
        if (type_ == element::float64) return special_bits<double>(i % special_count<double>);
        const auto bits = special_bits<float>(i % special_count<float>);
        switch (type_) {
            case element::float32: return bits;
            case element::bfloat16: return bits >> 16U;
            default: return residua::float16(std::bit_cast<float>(bits)).bits | (i >> 40U) % 2;
        }
    }
    template <class Next>
    bytes of_bits(std::size_t n, Next next) const
    {
        bytes all(n * size_of(type_));
        for (std::size_t j = 0; j < n; ++j) {
            const std::uint64_t bits = next();
            std::memcpy(all.data() + j * size_of(type_), &bits, size_of(type_));  // the low bytes
        }
        return all;
    }

    element type_;
    double low_, high_;
    std::size_t kind_;
    int power_;
    residua::test::random_bits random_;
};
static_assert(std::endian::native == std::endian::little);

// --- operands in memory ----------------------------------------------------------------------------------------

std::byte* row_at(const place& p, std::size_t i, element type)
{
    return static_cast<std::byte*>(p.data)
           + static_cast<std::ptrdiff_t>(i) * p.stride * static_cast<std::ptrdiff_t>(size_of(type));
}

/// The rows of one operand among canaries, which nothing may write, and, with the address sanitizer, nothing may read.
class operand_memory {
public:
    operand_memory(const any_call& call, std::size_t i) : type_{call.form->types[i]}
    {
        const auto& p = call.places[i];
        place_ = operations::packed(*call.op, i, call.count, call.columns, nullptr);
        place_.stride = p.stride;
        const std::size_t step = static_cast<std::size_t>(p.stride < 0 ? -p.stride : p.stride) * size_of(type_);
        const std::size_t last = place_.count > 0 ? (place_.count - 1) * step : 0;
        const std::size_t first = margin + p.shift * size_of(type_);
        memory_.assign(first + last + place_.columns * size_of(type_) + margin, canary);
        place_.data = memory_.data() + first + (p.stride < 0 ? last : 0);
        is_element_.assign(memory_.size(), false);
        for (std::size_t r = 0; r < place_.count; ++r) {
            const auto begin = is_element_.begin() + (row_at(place_, r, type_) - memory_.data());
            std::fill(begin, begin + static_cast<std::ptrdiff_t>(width()), true);
        }
    }
    operand_memory(const operand_memory&) = delete;
    operand_memory& operator=(const operand_memory&) = delete;
    ~operand_memory() { set_poison(false); }

    const place& where() const { return place_; }
    void scatter(const bytes& packed)
    {
        for (std::size_t r = 0; r < place_.count; ++r) {
            if (width() > 0) std::memcpy(row_at(place_, r, type_), packed.data() + r * width(), width());
        }
    }
    bytes gather() const
    {
        bytes packed(place_.count * width());
        for (std::size_t r = 0; r < place_.count; ++r) {
            if (width() > 0) std::memcpy(packed.data() + r * width(), row_at(place_, r, type_), width());
        }
        return packed;
    }
    bool others_untouched() const
    {
        for (std::size_t b = 0; b < memory_.size(); ++b) {
            if (!is_element_[b] && memory_[b] != canary) return false;
        }
        return true;
    }
    void set_poison([[maybe_unused]] bool on)
    {
#ifdef RESIDUA_TEST_POISON
        __asan_unpoison_memory_region(memory_.data(), memory_.size());
        for (std::size_t b = 0; on && b < memory_.size();) {
            std::size_t end = b;
            while (end < memory_.size() && !is_element_[end]) ++end;
            if (end > b) __asan_poison_memory_region(memory_.data() + b, end - b);
            b = end + 1;
        }
#endif
    }

private:
    std::size_t width() const { return place_.columns * size_of(type_); }

    static constexpr std::size_t margin = 64;
    static constexpr std::byte canary{0xa5};
    element type_;
    place place_{};
    bytes memory_;
    std::vector<bool> is_element_;
};

/// The first number that differs; any NaN is any other.
std::string difference(const bytes& got, const bytes& expected, element type)
{
    if (got == expected) return {};
    const auto a = operations::numbers(got, type);
    const auto b = operations::numbers(expected, type);
    for (std::size_t j = 0; j < a.size(); ++j) {
        if (std::memcmp(&a[j], &b[j], sizeof a[j]) == 0 || (std::isnan(a[j]) && std::isnan(b[j]))) continue;
        return "element " + std::to_string(j) + " is " + hexadecimal(a[j]) + " and not " + hexadecimal(b[j]);
    }
    return {};
}

// --- what is wrong ---------------------------------------------------------------------------------------------

/// The call where it lies; `given`: what its operands held.
std::string run_in_place(const any_call& call, const contents* expected, contents& given)
{
    const auto& op = *call.op;
    const std::size_t n = call.places.size();
    std::vector<std::unique_ptr<operand_memory>> memory;
    std::vector<place> places;
    for (std::size_t i = 0; i < n; ++i) memory.push_back(std::make_unique<operand_memory>(call, i));
    for (std::size_t i = 0; i < n; ++i) {
        places.push_back(memory[call.places[i].on]->where());
        places.back().stores = call.stores;
        memory[i]->scatter(call.numbers[i]);
    }
    given.clear();
    for (std::size_t i = 0; i < n; ++i) given.push_back(memory[i]->gather());
    if (expected == nullptr) return {};

    for (const auto& m : memory) m->set_poison(true);
    call.form->call(places.data());
    for (const auto& m : memory) m->set_poison(false);
    for (std::size_t i = 0; i < n; ++i) {
        if (!memory[i]->others_untouched()) return in_operand(i, "written beside its rows");
    }
    std::vector<bool> gone(n);
    for (std::size_t i = 0; i < n; ++i) {
        const std::size_t on = call.places[i].on;
        if (op.operands[i].is_written()) {
            const auto wrong = difference(memory[on]->gather(), (*expected)[i], call.form->types[i]);
            if (!wrong.empty()) return in_operand(i, wrong);
            gone[on] = true;
        }
    }
    for (std::size_t i = 0; i < n; ++i) {
        if (!op.operands[i].is_written() && !gone[i] && memory[i]->gather() != given[i]) {
            return in_operand(i, "an input was written");
        }
    }
    return {};
}

bool all_below(const any_call& call, const contents& given, double limit)
{
    for (std::size_t i = 0; i < given.size(); ++i) {
        if (!call.op->operands[i].is_read()) continue;
        for (const double x : operations::numbers(given[i], call.form->types[i])) {
            if (!(std::fabs(x) < limit)) return false;
        }
    }
    return true;
}

/// Whether an operation on floats may turn to double, whose result is then rounded once to 16 bits and not by way of float:
/// where a float leaves its range, or, in a gradient, products leave little of each other.
bool may_turn_to_double(const any_call& call, const contents& given)
{
    const std::string_view name = call.op->name;
    const bool of_streams = name == "mix_streams" || name == "mhc_read" || name == "mhc_write";
    return (of_streams && !all_below(call, given, 0x1p60)) || name.starts_with("rms_norm_vjp");
}

std::string not_rounded_once(const any_call& call, const contents& given, const contents& results)
{
    const auto& op = *call.op;
    const bool in_double = op.computes_in_double || operations::has_double(op, *call.form);
    if (op.rounds_inside || (!in_double && may_turn_to_double(call, given))) return {};
    return operations::not_rounded_once(op, *call.form, call.count, call.columns, given, results);
}

/// Finite inputs that are NaN's by the formula: below a logarithm, or beyond what the operation is for.
bool may_make_nan(const operation& op)
{
    const std::string_view name = op.name;
    return name == "log" || name == "box_muller" || name == "tanh_vjp_from_output"
           || name.starts_with("add_rms_norm");  // its sum may leave the range
}

std::string nan_of_finite_numbers(const any_call& call, const contents& given, const contents& results)
{
    if (operations::has_double(*call.op, *call.form) || may_make_nan(*call.op)) return {};
    if (!all_below(call, given, std::numeric_limits<double>::infinity())) return {};
    for (std::size_t i = 0; i < results.size(); ++i) {
        const auto& o = call.op->operands[i];
        if (!o.is_written() || o.is_sum()) continue;
        const auto y = operations::numbers(results[i], call.form->types[i]);
        for (std::size_t j = 0; j < y.size(); ++j) {
            if (std::isnan(y[j]))
                return in_operand(i, "element " + std::to_string(j) + " is a NaN of finite numbers");
        }
    }
    return {};
}

}  // namespace

any_call call_of(std::span<const std::uint8_t> all)
{
    byte_reader in{all};
    const auto& table = operations::all();
    any_call call{};
    call.op = &table[in.below(table.size())];
    call.form = &call.op->forms[in.below(call.op->forms.size())];
    const std::size_t count_and_stores = in.below(10);
    call.count = count_and_stores % 5;
    call.stores = count_and_stores < 5 ? residua::store::cached : residua::store::streaming;
    call.columns = columns_of(in);
    if (!call.op->has_columns()) call.columns = std::max<std::size_t>(call.columns, 1);
    call.places = places_of(in, *call.op, *call.form, call.columns);
    for (std::size_t i = 0; i < call.places.size(); ++i) {
        const auto& o = call.op->operands[i];
        generator numbers{call.form->types[i], *call.op, in};
        call.numbers.push_back(numbers.numbers(o.count_for(call.count) * o.width(call.columns)));
    }
    while (!in.empty()) {  // single numbers
        const std::size_t i = in.below(call.places.size());
        const std::size_t size = size_of(call.form->types[i]);
        const std::size_t position = in.number(2);
        const std::uint64_t bits = in.number(size);
        auto& memory = call.numbers[i];
        if (!memory.empty()) std::memcpy(memory.data() + position % (memory.size() / size) * size, &bits, size);
    }
    return call;
}

std::string description(const any_call& call)
{
    std::string text = operations::description(*call.op, *call.form) + ", " + std::to_string(call.count)
                       + " rows of " + std::to_string(call.columns)
                       + (call.stores == residua::store::streaming ? ", streaming\n" : "\n");
    contents given;
    run_in_place(call, nullptr, given);
    for (std::size_t i = 0; i < call.places.size(); ++i) {
        const auto& p = call.places[i];
        text += "  operand " + std::to_string(i);
        text += p.on != i ? ", on operand " + std::to_string(p.on)
                          : ", stride " + std::to_string(p.stride) + ", shift " + std::to_string(p.shift);
        const auto x = operations::numbers(given[i], call.form->types[i]);
        text += ":";
        for (std::size_t j = 0; j < std::min<std::size_t>(x.size(), 40); ++j) text += " " + hexadecimal(x[j]);
        text += x.size() > 40 ? " ...\n" : "\n";
    }
    return text;
}

std::string fault_of(const any_call& call, std::span<const api::target> targets,
                     const std::vector<operations::operation>* other_table)
{
    contents given;
    run_in_place(call, nullptr, given);  // rows that lie on one another are one
    api::force(api::target::scalar);
    const auto expected = operations::results(*call.op, *call.form, call.count, call.columns, given);
    std::string fault;
    for (const auto target : targets) {
        api::force(target);
        fault = run_in_place(call, &expected, given);
        if (!fault.empty()) {
            fault += ", with the target " + std::string(api::name(target));
            break;
        }
    }
    if (fault.empty() && other_table != nullptr) {
        any_call other = call;
        const auto& op = (*other_table)[static_cast<std::size_t>(call.op - operations::all().data())];
        other.form = &op.forms[static_cast<std::size_t>(call.form - call.op->forms.data())];
        fault = run_in_place(other, &expected, given);
        if (!fault.empty()) fault += ", in the other table";
    }
    // the bits are the same everywhere, so the fastest will do
    if (fault.empty()) fault = not_rounded_once(call, given, expected);
    if (fault.empty()) fault = nan_of_finite_numbers(call, given, expected);
    const oracle* const known = oracle_of(call.op->name);
    if (fault.empty() && known != nullptr) fault = beyond_bound(call, *known, given, expected);
    return fault;
}

}  // namespace fuzz
