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

/// The sum of the squares of a row, or, where those leave the range of T, of the row times 2^exponent.
struct square_sum {
    double value;
    int exponent;
};

/// max |x|; a NaN may be passed over.
template <class T>
inline T largest_magnitude(const source<T>& x, std::size_t n)
{
    using V = lanes<T>;
    block_buffer<T> buffer;
    V most = zero<V>();
    for (std::size_t j = 0; j < n; j += block<T>) {
        const std::size_t m = n - j < block<T> ? n - j : block<T>;
        const T* const p = buffer.read(x, j, m);
        std::size_t k = 0;
        for (; k + V::size <= m; k += V::size) most = max(abs(load<V>(p + k)), most);
        if (k < m) most = max(abs(load<V>(p + k, static_cast<int>(m - k))), most);
    }
    return largest(most);
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

/// floor: what will be added to the sum; below its precision nothing matters.
template <class T>
inline square_sum sum_of_squares(const source<T>& x, std::size_t n, double floor)
{
    const double s = sum_row(add_square{}, n, x);
    const double least = static_cast<double>(n) * square_range<T>::least;
    if (((s >= least || floor >= least) && s <= square_range<T>::most) || s != s) return {s, 0};
    const double most = static_cast<double>(largest_magnitude(x, n));
    const double root = __builtin_sqrt(floor);
    const double larger = most > root ? most : root;
    if (!(larger > 0) || larger > 0x1.fffffffffffffp1023) return {s, 0};
    const int exponent = exponent_to_one(larger) + square_range<T>::scaled_to;
    const auto scaled = computed(times_power{exponent}, x);
    return {sum_row(add_square{}, n, scaled.as_source()), exponent};
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

/// The root mean square of all elements; 0 if there is none.
template <class T>
inline T rms(shape s, input x)
{
    if (s.rows == 0 || s.columns == 0) return T{};
    square_sum total = sum_of_squares(from<T>(x, 0), s.columns, 0);
    for (std::size_t i = 1; i < s.rows; ++i) {
        square_sum next = sum_of_squares(from<T>(x, i), s.columns, 0);
        // the scale of the larger row holds both
        if (next.value > 0 && (total.value == 0 || next.exponent < total.exponent)) {
            const square_sum other = total;
            total = next;
            next = other;
        }
        total.value += times_pow2(next.value, 2 * (total.exponent - next.exponent));
    }
    const double mean = total.value / (static_cast<double>(s.rows) * static_cast<double>(s.columns));
    return static_cast<T>(times_pow2(__builtin_sqrt(mean), -total.exponent));
}

}  // namespace RESIDUA_PASS
