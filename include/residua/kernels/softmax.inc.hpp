// Softmax: y = e^(x - max x) / sum of e^(x - max x), row by row; its gradient and derivative.

namespace RESIDUA_PASS {

template <class T>
struct exp_less {
    T most;

    template <class V>
    RESIDUA_LANE_INLINE V operator()(V x) const
    {
        return exp_of_difference(x, V::broadcast(most));
    }
};

template <class T>
struct exp_less_over {
    T most, sum;

    template <class V>
    RESIDUA_LANE_INLINE V operator()(V x) const
    {
        return exp_of_difference(x, V::broadcast(most)) / V::broadcast(sum);
    }
};

template <class T>
inline void softmax(shape s, const output& y, const input& x)
{
    const std::size_t n = s.columns;
    if (n == 0) return;
    for (std::size_t i = 0; i < s.rows; ++i) {
        const auto row = from<T>(x, i);
        const T most = largest_of(itself{}, row, n);
        const auto terms = computed(exp_less<T>{most}, row);
        const double sum = sum_row(add{}, n, terms.as_source());
        map_row(exp_less_over<T>{most, static_cast<T>(sum)}, n, to<T>(y, i), row);
    }
}

// --- gradient and derivative -----------------------------------------------------------------------------------

struct softmax_jacobian_of {
    double sum;
    int exponent;

    template <class V>
    RESIDUA_LANE_INLINE V operator()(V y, V a) const
    {
        const V rest = a - V::broadcast(sum);
        // upwards y goes first: their product may be subnormal, and lose bits
        if (exponent > 0) return times_power{exponent}(y)*rest;
        return times_power{exponent}(y * rest);
    }
};

/// out = y (a - sum(y a)): the Jacobian is symmetric, so the gradient and the derivative are one. Where the products
/// could leave the range of double, a is brought to near one and the result back.
inline void softmax_jacobian(shape s, const output& out, const input& y, const input& a)
{
    const std::size_t n = s.columns;
    for (std::size_t i = 0; i < s.rows; ++i) {
        const auto y_row = from<double>(y, i);
        const auto a_row = from<double>(a, i);
        double sum = sum_row(multiply_add{}, n, y_row, a_row);
        const double size = __builtin_fabs(sum);
        int up = 0;
        if (!(size >= 0x1p-900 && size <= 0x1p960)) up = exponent_of_row(a_row, n);
        const auto scaled = computed(times_power{up}, a_row);
        const auto row = up == 0 ? a_row : scaled.as_source();
        if (up != 0) sum = sum_row(multiply_add{}, n, y_row, row);
        map_row(softmax_jacobian_of{sum, -up}, n, to<double>(out, i), y_row, row);
    }
}

}  // namespace RESIDUA_PASS
