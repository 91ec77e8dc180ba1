// The sum of a row's squares, for every row of finite numbers: what a norm, and a gradient's size, begin with.

namespace RESIDUA_PASS {

/// x 2^exponent, in two factors (so that every double can be brought near one).
struct times_power {
    int exponent;

    template <class V>
    RESIDUA_LANE_INLINE V operator()(V x) const
    {
        return ldexp(x, V::broadcast(static_cast<scalar<V>>(exponent)));
    }
};

/// x 2^exponent, or x itself where that is all the same. Has to outlive the source that it gives.
template <class T>
struct row_in_range {
    computed_row<T, times_power, 1> scaled;

    source<T> as_source() const { return scaled.op.exponent == 0 ? scaled.in[0] : scaled.as_source(); }
};
template <class T>
inline row_in_range<T> in_range(const source<T>& x, int exponent)
{
    return {computed(times_power{exponent}, x)};
}

/// The exponent that brings a positive finite number to between 1 and 2.
inline int exponent_to_one(double x)
{
    int up = 0;
    if (x < 0x1p-1022) {
        x *= 0x1p54;
        up = 54;
    }
    return 1023 + up - static_cast<int>(__builtin_bit_cast(std::uint64_t, x) >> 52);
}

inline bool is_finite_and_positive(double x) { return x > 0 && x <= 0x1.fffffffffffffp1023; }
/// The exponent that brings a row's largest element to between 1 and 2, if it is finite and not zero; else 0.
inline int exponent_of_row(const source<double>& x, std::size_t n)
{
    const double largest = largest_of(magnitude{}, x, n);
    return is_finite_and_positive(largest) ? exponent_to_one(largest) : 0;
}

/// Where a sum of squares can be trusted, per element: above `least` what underflow takes is not seen, below `most`
/// nothing has overflowed. A row that is scaled has its largest element near 2^scaled_to: far from the end where the
/// squares overflow, and so far from the other that a small element keeps its bits wherever x r is a normal number.
template <class T>
struct square_range;
template <>
struct square_range<float> {
    static constexpr double least = 0x1p-100, most = 0x1p126;
    static constexpr int scaled_to = 40;
};
template <>
struct square_range<double> {
    static constexpr double least = 0x1p-900, most = 0x1p1000;
    static constexpr int scaled_to = 480;
};

inline constexpr double largest_share_of_lane = 0.25;

template <class T>
RESIDUA_OUT_OF_LINE double sum_of_squares_in_double(const source<T>& x, std::size_t n)
{
    return sum_row(add_square_in_double{}, n, x);
}

/// The sum of the squares as they are, from its lanes. Of float, where one lane has more than that share of it, the
/// roundings of a few elements are not lost among those of many: then it is taken again in double.
template <class T, class Total>
RESIDUA_LANE_INLINE double sum_of_lanes(Total total, const source<T>& x, std::size_t n)
{
    const double s = sum(total);
    if constexpr (sizeof(T) == 4) {
        if (any(Total::broadcast(largest_share_of_lane * s) < total)) [[unlikely]] {
            return sum_of_squares_in_double(copy_of(x), n);
        }
    }
    return s;
}
template <class T>
RESIDUA_LANE_INLINE double plain_sum_of_squares(const source<T>& x, std::size_t n)
{
    return sum_of_lanes(total_of_row(add_square{}, n, x), x, n);
}

/// Of a row whose squares leave the range of T (or which is nothing but zeros): that of the row times 2^exponent.
template <class T>
RESIDUA_OUT_OF_LINE square_sum sum_of_scaled_squares(const source<T>& x, std::size_t n, double plain)
{
    const double most = static_cast<double>(largest_of(magnitude{}, x, n));
    if (!is_finite_and_positive(most)) return {plain, 0};
    const int exponent = exponent_to_one(most) + square_range<T>::scaled_to;
    const auto scaled = in_range(x, exponent);
    return {plain_sum_of_squares(scaled.as_source(), n), exponent};
}

/// The least sum of squares of n elements that can be trusted.
template <class T>
inline double least_squares(std::size_t n)
{
    return static_cast<double>(n) * square_range<T>::least;
}
/// The sum of the squares of a row, or, where those leave the range of T, of the row times 2^exponent; compiled where it is
/// used.
template <class T>
RESIDUA_LANE_INLINE square_sum squares_of_row(const source<T>& x, std::size_t n, double least)
{
    const double s = plain_sum_of_squares(x, n);
    if (s < least || s > square_range<T>::most) [[unlikely]] {
        return sum_of_scaled_squares(copy_of(x), n, s);
    }
    return {s, 0};
}
template <class T>
inline square_sum sum_of_squares(const source<T>& x, std::size_t n)
{
    return squares_of_row(x, n, least_squares<T>(n));
}
/// The same of rows `first` to `end`.
template <class T>
inline void sums_of_squares(square_sum* sums, const input& x, std::size_t first, std::size_t end, std::size_t n)
{
    const double least = least_squares<T>(n);
    for (std::size_t i = first; i < end; ++i) *sums++ = squares_of_row(from<T>(x, i), n, least);
}

/// x * 2^n, for any n: rounded once if it does not become subnormal before the last step.
inline double times_pow2(double x, int n)
{
    while (n > 1000) {
        x *= 0x1p1000;
        n -= 1000;
    }
    while (n < -1000) {
        x *= 0x1p-1000;
        n += 1000;
    }
    x *= __builtin_bit_cast(double, static_cast<std::uint64_t>(n + 1023) << 52);
    keep_product(x);
    return x;
}

/// The sum of both, at the power of two of the larger elements.
inline square_sum plus(square_sum a, square_sum b)
{
    const bool of_b = b.value > 0 && (a.value == 0 || b.exponent < a.exponent);
    square_sum sum = of_b ? b : a;
    const square_sum other = of_b ? a : b;
    sum.value += times_pow2(other.value, 2 * (sum.exponent - other.exponent));
    if (sum.value > square_range<double>::most && sum.value <= 0x1.fffffffffffffp1023) {
        sum.value *= 0x1p-200;
        sum.exponent -= 100;
    }
    return sum;
}

/// In the order in which they come.
inline square_sum combine(const square_sum* parts, std::size_t count)
{
    square_sum total{};
    for (std::size_t i = 0; i < count; ++i) total = plus(total, parts[i]);
    return total;
}

/// One sum for each row.
template <class T>
inline void sum_of_squares(shape s, square_sum* sums, const input& x)
{
    sums_of_squares<T>(sums, x, 0, s.rows, s.columns);
}

/// The root mean square of all elements; 0 if there is none.
template <class T>
inline T rms(shape s, const input& x)
{
    if (s.rows == 0 || s.columns == 0) return T{};
    square_sum total{};
    for (std::size_t i = 0; i < s.rows; ++i) total = plus(total, sum_of_squares(from<T>(x, i), s.columns));
    const double mean = total.value / (static_cast<double>(s.rows) * static_cast<double>(s.columns));
    return static_cast<T>(times_pow2(__builtin_sqrt(mean), -total.exponent));
}

}  // namespace RESIDUA_PASS
