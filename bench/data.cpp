#include "data.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <numbers>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include <residua/types.hpp>

#include "machine.hpp"
#include "registry.hpp"

namespace bench {

namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20U;
constexpr std::size_t page = 4096;

/// SplitMix64 (Steele, Lea and Flood 2014).
struct generator {
    std::uint64_t state;

    std::uint64_t operator()()
    {
        std::uint64_t z = state += 0x9e3779b97f4a7c15U;
        z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
        return z ^ (z >> 31U);
    }
    /// in (0, 1]
    double uniform() { return static_cast<double>(((*this)() >> 11U) + 1) * 0x1p-53; }
    /// Box and Muller 1958
    float normal()
    {
        const double radius = std::sqrt(-2 * std::log(uniform()));
        return static_cast<float>(radius * std::cos(2 * std::numbers::pi * uniform()));
    }
};

void store(std::byte* at, type element, float x)
{
    const auto put = [at](auto value) { std::memcpy(at, &value, sizeof value); };
    switch (element) {
        case type::f32: put(x); break;
        case type::bf16: put(residua::bfloat16(x).bits); break;
        case type::f16: put(residua::float16(x).bits); break;
    }
}

std::size_t rounded_up(std::size_t n, std::size_t unit) { return (n + unit - 1) / unit * unit; }

/// Places modulo 4 KiB: the outputs of a call lie behind its inputs by three quarters of a page, so that a load seldom
/// looks as if it read what was just stored.
constexpr std::size_t input_offset(std::size_t k) { return 256 * k; }
constexpr std::size_t weight_offset = 512 + 256;
constexpr std::size_t output_offset(std::size_t k) { return 3072 + 256 * k; }

/// A piece of memory for one purpose, filled once and kept while the program runs.
std::byte* kept(const char* purpose, type element, std::size_t bytes, bool filled)
{
    static std::map<std::pair<std::string_view, type>, std::unique_ptr<pages>> all;
    auto& known = all[{purpose, element}];
    if (!known || known->size() < bytes) {
        known.reset();
        known = std::make_unique<pages>(bytes);
        if (filled) {
            // one stretch of random numbers, again and again
            const std::size_t stretch = std::min(bytes, 4 * huge_page);
            fill(known->begin(), element, stretch / size_of(element), 1);
            for (std::size_t done = stretch; done < bytes; done += stretch) {
                std::memcpy(known->begin() + done, known->begin(), std::min(stretch, bytes - done));
            }
        } else {
            std::memset(known->begin(), 0, bytes);  // so that the first pass meets no new pages
        }
    }
    return known->begin();
}

}  // namespace

void fill(std::byte* memory, type element, std::size_t count, unsigned seed, float scale)
{
    static const std::vector<float> numbers = [] {
        std::vector<float> all(std::size_t{1} << 20U);
        generator random{1};
        for (float& x : all) x = random.normal();
        return all;
    }();
    std::size_t from = generator{seed}() % numbers.size();
    for (std::size_t i = 0; i < count; ++i) {
        store(memory + i * size_of(element), element, scale * numbers[from]);
        if (++from == numbers.size()) from = 0;
    }
}

double element_at(const void* memory, type element, std::size_t i)
{
    const auto* const at = static_cast<const std::byte*>(memory) + i * size_of(element);
    const auto get = [at](auto value) {
        std::memcpy(&value, at, sizeof value);
        return static_cast<double>(static_cast<float>(value));
    };
    switch (element) {
        case type::f32: return get(float{});
        case type::bf16: return get(residua::bfloat16{});
        case type::f16: return get(residua::float16{});
    }
    return 0;
}

pages::pages(std::size_t bytes) : size_{rounded_up(bytes, huge_page)}
{
    mapped_size_ = size_ + huge_page;
    mapped_ = mmap(nullptr, mapped_size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped_ == MAP_FAILED) throw std::runtime_error("there is not enough memory");
    const auto address = reinterpret_cast<std::uintptr_t>(mapped_);
    begin_ = static_cast<std::byte*>(mapped_) + (rounded_up(address, huge_page) - address);
    madvise(begin_, size_, MADV_HUGEPAGE);  // a wish only
}

pages::~pages() { munmap(mapped_, mapped_size_); }

std::size_t far_beyond_the_cache(std::size_t at_most)
{
    return std::min({at_most, std::max(4 * last_level_cache(), 64 * huge_page), available_memory() / 8});
}

operands::operands(const operation& what, type element, std::size_t columns, const place& where)
{
    call_.columns = columns;
    call_.rows = where.rows;
    call_.packed = what.packed;
    const std::size_t row_bytes = columns * size_of(element);
    const bool hot = where.memory == 0;
    call_.stores = where.stores;

    // How much each operand takes: one call's rows, or its share of the whole.
    const std::size_t shares = what.reads + (what.packed ? 1 : 0) + what.writes;
    rows_in_ring_ = hot ? where.rows : std::max(where.rows, where.memory / shares / row_bytes);
    rows_in_ring_ -= rows_in_ring_ % where.rows;

    // Operands that come to lie in one piece of memory: where in it, and then where.
    struct layout {
        std::size_t rows, bytes = 0;

        void add(ring& r, std::size_t row_bytes, std::size_t offset)
        {
            r.row_bytes = row_bytes;
            r.offset = bytes + offset;
            bytes += rounded_up(rows * row_bytes + page, page);
        }
    };
    // Asked for in full the first time, as others will need more of it.
    const auto piece = [&](const char* hot_name, const char* name, type t, std::size_t bytes, bool filled) {
        const std::size_t usual = hot ? 2 * huge_page : where.memory / (filled && what.updates > 0 ? 2 : 1);
        return kept(hot ? hot_name : name, t, std::max(bytes, usual + 8 * page), filled);
    };
    // What an earlier measurement left in cache may have been updated, or scaled.
    const auto begin = [&](ring& r, std::byte* memory, std::size_t seed) {
        r.base = memory + r.offset;
        if (hot && seed != 0) {
            fill(r.base, element, rows_in_ring_ * r.row_bytes / size_of(element), static_cast<unsigned>(seed),
                 where.scale);
        }
    };

    layout inputs{rows_in_ring_};
    for (std::size_t k = 0; k < what.reads; ++k) {
        inputs.add(in_[k], what.packed && k == 0 ? 2 * row_bytes : row_bytes, input_offset(k));
    }
    std::byte* memory = piece("hot inputs", "inputs", element, inputs.bytes, true);
    for (std::size_t k = 0; k < what.reads; ++k) begin(in_[k], memory, 2 + k);

    layout updated{rows_in_ring_};
    for (std::size_t k = 0; k < what.updates; ++k) updated.add(out_[k], row_bytes, output_offset(k));
    if (updated.bytes > 0) {
        memory = piece("hot updates", "updates", element, updated.bytes, true);
        for (std::size_t k = 0; k < what.updates; ++k) begin(out_[k], memory, 20 + k);
    }

    layout written{rows_in_ring_};
    for (std::size_t k = what.updates; k < what.writes; ++k) {
        written.add(out_[k], row_bytes, where.output_offset != 0 ? where.output_offset : output_offset(k));
    }
    if (written.bytes > 0) {
        memory = piece("hot outputs", "outputs", type::f32, written.bytes, false);
        for (std::size_t k = what.updates; k < what.writes; ++k) begin(out_[k], memory, 0);
    }

    if (what.weight) {
        std::byte* const w = kept("weight", element, row_bytes + page, false) + weight_offset;
        fill(w, element, columns, 10);
        call_.weight = w;
    }
    if (what.weight_gradient) {
        memory = kept("weight gradient", type::f32, columns * sizeof(float) + page, false) + 2 * weight_offset;
        call_.weight_gradient = reinterpret_cast<float*>(memory);
    }

    // Somewhere in the ring: where the last measurement ended may still be in the cache.
    static generator somewhere{7};
    if (!hot) row_ = somewhere() % (rows_in_ring_ / where.rows) * where.rows;
    point_at(row_);
}

void operands::point_at(std::size_t row)
{
    for (std::size_t k = 0; k < most_operands; ++k) {
        call_.in[k] = in_[k].base == nullptr ? nullptr : in_[k].base + row * in_[k].row_bytes;
        call_.out[k] = out_[k].base == nullptr ? nullptr : out_[k].base + row * out_[k].row_bytes;
    }
}

const call& operands::next()
{
    if (rows_in_ring_ > call_.rows) {
        row_ += call_.rows;
        if (row_ >= rows_in_ring_) row_ = 0;
        point_at(row_);
    }
    return call_;
}

}  // namespace bench
