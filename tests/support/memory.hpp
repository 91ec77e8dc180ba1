// Memory that notices a write, or any access, where none may be.
#ifndef RESIDUA_TESTS_SUPPORT_MEMORY_HPP
#define RESIDUA_TESTS_SUPPORT_MEMORY_HPP

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#if defined(__unix__)
#include <sys/mman.h>
#include <unistd.h>
#endif

#include <residua/rows.hpp>

namespace memory {

/// What untouched memory holds.
template <class T>
inline constexpr T canary = T(-12345.0625);
template <>
inline constexpr std::byte canary<std::byte>{0xa5};

/// Rows with gaps between them and canaries in the gaps, before the first row and after the last.
template <class T>
class strided {
public:
    strided(std::size_t count, std::size_t columns, std::size_t stride)
        : data_(margin + count * stride + margin, canary<T>), count_{count}, columns_{columns}, stride_{stride}
    {
    }
    /// With the elements of `packed`, row after row.
    strided(const std::vector<T>& packed, std::size_t count, std::size_t columns, std::size_t stride)
        : strided(count, columns, stride)
    {
        for (std::size_t i = 0; i < count; ++i) {
            std::copy_n(packed.data() + i * columns, columns, view()[i]);
        }
    }

    residua::rows<T> view()
    {
        return {data_.data() + margin, count_, columns_, static_cast<std::ptrdiff_t>(stride_)};
    }
    std::vector<T> packed()
    {
        std::vector<T> all;
        for (std::size_t i = 0; i < count_; ++i) all.insert(all.end(), view()[i], view()[i] + columns_);
        return all;
    }
    bool gaps_untouched()
    {
        for (std::size_t i = 0; i < data_.size(); ++i) {
            const bool inside = i >= margin && (i - margin) / stride_ < count_ && (i - margin) % stride_ < columns_;
            if (!inside && data_[i] != canary<T>) return false;
        }
        return true;
    }

private:
    static constexpr std::size_t margin = 64;
    std::vector<T> data_;
    std::size_t count_, columns_, stride_;
};

/// `n` elements that start `shift` elements after a multiple of 64 bytes.
template <class T>
class shifted {
public:
    explicit shifted(const std::vector<T>& x, std::size_t shift)
        : data_(x.size() + shift + 64 / sizeof(T)), n_{x.size()}
    {
        const auto address = reinterpret_cast<std::uintptr_t>(data_.data());
        first_ = (64 - address % 64) % 64 / sizeof(T) + shift;
        std::copy(x.begin(), x.end(), data_.begin() + static_cast<std::ptrdiff_t>(first_));
    }
    shifted(const shifted&) = delete;
    shifted& operator=(const shifted&) = delete;
    ~shifted() = default;

    std::span<T> view() { return std::span{data_}.subspan(first_, n_); }

private:
    std::vector<T> data_;
    std::size_t n_;
    std::size_t first_ = 0;
};

#if defined(__unix__)
/// Some pages of elements, by default one, between two pages that cannot be read or written.
template <class T>
class guarded {
public:
    explicit guarded(std::size_t most_elements = 1)
        : page_{static_cast<std::size_t>(sysconf(_SC_PAGESIZE))},
          size_{(most_elements * sizeof(T) + page_ - 1) / page_ * page_}
    {
        void* const all =
            mmap(nullptr, page_ + size_ + page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (all == MAP_FAILED) return;
        first_ = static_cast<unsigned char*>(all);
        mprotect(first_, page_, PROT_NONE);
        mprotect(first_ + page_ + size_, page_, PROT_NONE);
    }
    guarded(const guarded&) = delete;
    guarded& operator=(const guarded&) = delete;
    ~guarded()
    {
        if (first_ != nullptr) munmap(first_, page_ + size_ + page_);
    }

    bool usable() const { return first_ != nullptr; }

    /// The n elements right after the first guard, or right before the last, with the given values.
    std::span<T> at_start(const std::vector<T>& x) { return put(x, first_ + page_); }
    std::span<T> at_end(const std::vector<T>& x) { return put(x, first_ + page_ + size_ - x.size() * sizeof(T)); }

private:
    static std::span<T> put(const std::vector<T>& x, unsigned char* where)
    {
        if (!x.empty()) std::memcpy(where, x.data(), x.size() * sizeof(T));
        return {reinterpret_cast<T*>(where), x.size()};
    }

    std::size_t page_, size_;
    unsigned char* first_ = nullptr;
};

/// Memory that is only there where it is touched: many times what the machine has.
class endless {
public:
    explicit endless(std::size_t bytes) : size_{bytes}
    {
        void* const all =
            mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (all != MAP_FAILED) first_ = static_cast<std::byte*>(all);
    }
    endless(const endless&) = delete;
    endless& operator=(const endless&) = delete;
    ~endless()
    {
        if (first_ != nullptr) munmap(first_, size_);
    }

    bool usable() const { return first_ != nullptr; }
    std::byte* data() { return first_; }
    std::size_t size() const { return size_; }

private:
    std::size_t size_;
    std::byte* first_ = nullptr;
};
#endif

}  // namespace memory

#endif
