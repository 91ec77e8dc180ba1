// Memory for the operands, and what is in it: normal random numbers of a fixed seed.
#ifndef RESIDUA_BENCH_DATA_HPP
#define RESIDUA_BENCH_DATA_HPP

#include <cstddef>

#include "bench.hpp"

namespace bench {

/// Fills with normal numbers times `scale`; which ones depends on `seed`.
void fill(std::byte* memory, type element, std::size_t count, unsigned seed, float scale = 1);

/// Element i of memory.
double element_at(const void* memory, type element, std::size_t i);

/// Zeroed pages, huge ones where the system gives them.
class pages {
public:
    explicit pages(std::size_t bytes);
    ~pages();
    pages(const pages&) = delete;
    pages& operator=(const pages&) = delete;

    std::byte* begin() const { return begin_; }
    std::size_t size() const { return size_; }

private:
    void* mapped_;
    std::size_t mapped_size_;
    std::byte* begin_;
    std::size_t size_;
};

/// How many bytes are passed before memory is visited again: far more than the last level holds. `at_most` bounds it.
std::size_t far_beyond_the_cache(std::size_t at_most);

/// Where the operands of a call lie.
///
/// In cache: each in pages of its own, at offsets modulo 4 KiB at which no load meets a store that looks aliased. From
/// memory: slices of one great piece each, visited row after row, and again from the start only when all were.
class operands {
public:
    struct place {
        std::size_t memory = 0;         ///< bytes of all operands together; 0: in cache
        std::size_t rows = 1;           ///< of one call
        float scale = 1;                ///< of the inputs
        std::size_t output_offset = 0;  ///< modulo 4 KiB; 0: the usual one
        storing stores = storing::cached;
    };

    operands(const operation& what, type element, std::size_t columns, const place& where);

    const call& current() const { return call_; }
    /// The next rows; in cache the same ones.
    const call& next();

private:
    struct ring {
        std::byte* base;
        std::size_t offset;  // in the memory that it shares with others
        std::size_t row_bytes;
    };
    void point_at(std::size_t row);

    call call_{};
    ring in_[most_operands]{}, out_[most_operands]{};
    std::size_t rows_in_ring_ = 0;
    std::size_t row_ = 0;
};

}  // namespace bench

#endif
