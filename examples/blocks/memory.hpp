// Matrices and their random numbers: what the blocks of this example are made of, besides the library.
#ifndef BLOCKS_MEMORY_HPP
#define BLOCKS_MEMORY_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <residua/dispatch.hpp>

namespace blocks {

namespace op = residua::dispatch;
using residua::rows;

/// Rows of one length, end to end.
template <class T>
class matrix {
public:
    matrix() = default;
    matrix(std::size_t count, std::size_t columns) : data_(count * columns), count_{count}, columns_{columns} {}

    rows<T> view() { return {data_.data(), count_, columns_}; }
    rows<const T> view() const { return {data_.data(), count_, columns_}; }
    operator rows<T>() { return view(); }
    operator rows<const T>() const { return view(); }

    /// Columns first to first + n.
    rows<T> columns(std::size_t first, std::size_t n)
    {
        return {data_.data() + first, count_, n, static_cast<std::ptrdiff_t>(columns_)};
    }
    std::size_t count() const { return count_; }
    std::size_t width() const { return columns_; }

private:
    std::vector<T> data_;
    std::size_t count_ = 0;
    std::size_t columns_ = 0;
};

template <class T>
void set_to_zero(rows<T> x)
{
    for (std::size_t i = 0; i < x.count; ++i) std::fill_n(x[i], x.columns, T(0));
}

/// Normal deviates, the same on every machine.
class normal_source {
public:
    explicit normal_source(std::uint64_t seed) : state_{seed} {}

    /// Fills x with normal deviates times `size`.
    template <class T>
    void fill(rows<T> x, double size)
    {
        std::vector<double> u1(x.columns), u2(x.columns), z(x.columns);
        for (std::size_t i = 0; i < x.count; ++i) {
            for (std::size_t j = 0; j < x.columns; ++j) {
                u1[j] = uniform();
                u2[j] = uniform();
            }
            op::box_muller(z, u1, u2);
            op::scale(x.row(i), z, size);
        }
    }

    /// A matrix that keeps the size of what it multiplies: entries of variance 1 / columns, times `gain`.
    template <class T>
    matrix<T> linear(std::size_t count, std::size_t columns, double gain = 1)
    {
        matrix<T> w(count, columns);
        fill(w.view(), gain / std::sqrt(static_cast<double>(columns)));
        return w;
    }
    template <class T>
    matrix<T> around(double size, std::size_t columns)
    {
        matrix<T> w(1, columns);
        fill(w.view(), size);
        return w;
    }

private:
    /// SplitMix64 (Steele, Lea and Flood 2014).
    double uniform()
    {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
    }

    std::uint64_t state_;
};

}  // namespace blocks

#endif
