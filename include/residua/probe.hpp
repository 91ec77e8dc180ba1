/// \file
/// Gradient probes: what happens to signal and gradient along a deep stack of sublayers?
///
/// A stack is a sequence of N sublayers and a wiring. With c the write scale and norm the unweighted RMSNorm,
///
///     in_l    = x_l                 or norm(x_l) with `pre_norm`
///     x_{l+1} = c F_l(in_l)         or x_l + c F_l(in_l) with `residual`
///     g_l     = c J_l^T g_{l+1}     or g_{l+1} + c J_l^T g_{l+1}, J_l the Jacobian of F_l(in_l) with respect to x_l
///
/// x_l and g_l are rows of a view (one row per token). Nothing is allocated: the caller lends the memory, each function
/// says how much. Types: float or double throughout. Errors: shapes that do not fit: RESIDUA_ASSERT.
///
/// A sublayer is anything with
///     void forward(rows<T> y, rows<const T> x)                     y = F(x); may keep what vjp needs
///     void vjp(rows<T> dx, rows<const T> x, rows<const T> dy)      dx = J^T dy at the x of the last forward
/// (`vjp` only if a gradient is asked for). Two are here: `tanh_sublayer`, `attention_sublayer`.
#if !defined(RESIDUA_PROBE_HPP) || defined(RESIDUA_DISPATCH_PASS)
#ifndef RESIDUA_DISPATCH_PASS
#define RESIDUA_PROBE_HPP
#include <residua/elementary.hpp>
#include <residua/matvec.hpp>
#include <residua/residual.hpp>
#include <residua/rms_norm.hpp>
#include <residua/softmax.hpp>
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

namespace RESIDUA_API {
namespace probe {

/// How the sublayers of a stack are joined.
template <class T>
struct wiring {
    bool residual = false;  ///< add to the stream, instead of replacing it
    bool pre_norm = false;  ///< a sublayer reads the RMSNorm of the stream
    T write_scale = 1;      ///< what a sublayer writes is multiplied by this; 1/sqrt(N) keeps the stream's size
    T eps = T(1e-6);        ///< of the norm
};

/// A size that may lie far outside the range of double: mantissa * 2^exponent, with the mantissa from 1 to below 2, or
/// 0 (infinity, NaN).
struct magnitude {
    double mantissa = 0;
    std::int64_t exponent = 0;

    /// As a double: 0 or infinity where it is beyond the range.
    double value() const noexcept;
    /// The base-10 logarithm, -infinity of 0. Error: below 1e-15 plus 2 ulp.
    double log10() const noexcept;
};

/// x * 2^exponent as a magnitude, for x >= 0.
inline magnitude make_magnitude(double x, std::int64_t exponent = 0) noexcept;
/// a / b
inline magnitude operator/(magnitude a, magnitude b) noexcept;

/// F(x) = W2 tanh(W1 x): two matrices and a tanh. `hidden` keeps the activations (tokens by the rows of W1), one for
/// each sublayer; `scratch` is of the same shape and may be shared.
template <class T>
struct tanh_sublayer {
    rows<const T> w1, w2;
    rows<T> hidden, scratch;

    void forward(rows<T> y, rows<const T> x) const;
    void vjp(rows<T> dx, rows<const T> x, rows<const T> dy) const;
};

/// One head of causal attention without an output projection: y_t = sum over j <= t of a_tj W_v x_j, with a_t the
/// softmax of (W_q x_t . W_k x_j) / sqrt(d), d the rows of W_q. `q`, `k`, `v` (tokens by d) and `weights` (tokens by
/// tokens) are overwritten and may be shared; a_tj stays in `weights`, for j <= t.
template <class T>
struct attention_sublayer {
    rows<const T> wq, wk, wv;
    rows<T> q, k, v, weights;

    void forward(rows<T> y, rows<const T> x) const;
};

/// Runs the stack: `stream` holds x_0 to x_N one under the other (N + 1 blocks of `scratch.count / 2` rows); x_0 is
/// read, the others are overwritten. `scratch`: two blocks.
template <class T, class Sublayer>
void forward(rows<T> stream, std::span<Sublayer> sublayers, const wiring<T>& how, rows<T> scratch);

/// Runs the gradient from the top to the bottom, after `forward`. `g` (one block) is the gradient at the top, and is
/// overwritten with the one at the bottom, times a power of two. `sizes` (N + 1) gets the root mean square of g_0 to
/// g_N: a ratio of two is the ratio of the norms. However deep the stack, no size underflows: g is brought back to
/// near one by powers of two, which change no bit of an element that is a normal number before and after. `scratch`: two blocks.
template <class T, class Sublayer>
void backward(rows<T> g, std::type_identity_t<rows<const T>> stream, std::span<Sublayer> sublayers,
              const wiring<T>& how, rows<T> scratch, std::span<magnitude> sizes);

/// Splits the gradient at the bottom by how many sublayers its paths cross, after `forward`: block k of `parts`
/// (N + 1 blocks, overwritten) is the sum over the paths through exactly k of the sublayers, and the sum of all blocks
/// is g_0. Block 0 holds the gradient at the top when called. `scratch`: two blocks. Needs N (N + 1) / 2 VJPs.
template <class T, class Sublayer>
void split_by_crossings(rows<T> parts, std::type_identity_t<rows<const T>> stream, std::span<Sublayer> sublayers,
                        const wiring<T>& how, rows<T> scratch);

/// The gradient along one path: through sublayer l where crossed[l], else past it. `g` as in `backward`, without the
/// powers of two. The sum over all 2^N paths is g_0.
template <class T, class Sublayer>
void along_path(rows<T> g, std::type_identity_t<rows<const T>> stream, std::span<Sublayer> sublayers,
                std::span<const bool> crossed, const wiring<T>& how, rows<T> scratch);

/// How far tokens are from being one vector.
struct spread {
    double relative_distance;  ///< |X - 1 m^T| / |X| (Frobenius), m the mean of the tokens; 0 if all are 0
    double mean_cosine;        ///< over all pairs of tokens; NaN for fewer than two, or if one is 0
};

/// Measures the tokens x. `scratch`: one more row than x.
template <class T>
spread measure_spread(std::type_identity_t<rows<const T>> x, rows<T> scratch);

// --- implementation --------------------------------------------------------------------------------------------

inline magnitude make_magnitude(double x, std::int64_t exponent) noexcept
{
    if (!(x > 0) || !std::isfinite(x)) return {x, 0};
    int e = 0;
    const double m = std::frexp(x, &e);
    return {2 * m, exponent + e - 1};
}

inline magnitude operator/(magnitude a, magnitude b) noexcept
{
    return make_magnitude(a.mantissa / b.mantissa, a.exponent - b.exponent);
}

inline double magnitude::value() const noexcept
{
    const auto bounded = exponent > 2000 ? 2000 : exponent < -2000 ? -2000 : exponent;
    return std::ldexp(mantissa, static_cast<int>(bounded));
}

inline double magnitude::log10() const noexcept
{
    constexpr double ln_2 = 0.693147180559945309417;
    constexpr double log10_e = 0.434294481903251827651;
    double x[1] = {mantissa};
    const double powers[1] = {static_cast<double>(exponent)};
    RESIDUA_SELF::log(x, x);
    RESIDUA_SELF::residual_add(x, x, powers, ln_2);
    RESIDUA_SELF::scale(x, x, log10_e);
    return x[0];
}

template <class T>
void tanh_sublayer<T>::forward(rows<T> y, rows<const T> x) const
{
    RESIDUA_SELF::matvec(hidden, w1, x);
    RESIDUA_SELF::tanh(hidden, hidden);
    RESIDUA_SELF::matvec(y, w2, hidden);
}

template <class T>
void tanh_sublayer<T>::vjp(rows<T> dx, rows<const T>, rows<const T> dy) const
{
    RESIDUA_SELF::matvec_transposed(scratch, w2, dy);
    RESIDUA_SELF::tanh_vjp_from_output(scratch, hidden, scratch);
    RESIDUA_SELF::matvec_transposed(dx, w1, scratch);
}

template <class T>
void attention_sublayer<T>::forward(rows<T> y, rows<const T> x) const
{
    RESIDUA_ASSERT(weights.count >= x.count && weights.columns >= x.count,
                   "probe::attention_sublayer: weights must be tokens by tokens");
    RESIDUA_SELF::matvec(q, wq, x);
    RESIDUA_SELF::matvec(k, wk, x);
    RESIDUA_SELF::matvec(v, wv, x);
    const T inverse_root = T(1) / static_cast<T>(std::sqrt(static_cast<T>(wq.count)));
    for (std::size_t t = 0; t < x.count; ++t) {
        const rows<T> a{weights[t], 1, t + 1};
        RESIDUA_SELF::matvec(a, k.part(0, t + 1), q.row(t));
        RESIDUA_SELF::scale(a, a, inverse_root);
        RESIDUA_SELF::softmax(a, a);
        RESIDUA_SELF::matvec_transposed(y.row(t), v.part(0, t + 1), a);
    }
}

namespace local {

template <class T>
void set_to_zero(rows<T> x)
{
    for (std::size_t i = 0; i < x.count; ++i) std::fill_n(x[i], x.columns, T(0));
}

/// The blocks of a stack's memory.
template <class T, class Sublayer>
struct frame {
    rows<const T> stream;
    std::span<Sublayer> sublayers;
    const wiring<T>& how;
    rows<T> in, f;  // what a sublayer reads, and what it gives

    frame(rows<const T> stream_, std::span<Sublayer> sublayers_, const wiring<T>& how_, rows<T> scratch)
        : stream{stream_},
          sublayers{sublayers_},
          how{how_},
          in{scratch.part(0, scratch.count / 2)},
          f{scratch.part(scratch.count / 2, scratch.count / 2)}
    {
        RESIDUA_ASSERT(scratch.count % 2 == 0 && stream.count == (sublayers.size() + 1) * in.count,
                       "probe: the stream must have N + 1 blocks and the scratch two");
    }
    rows<const T> x(std::size_t l) const { return stream.part(l * in.count, in.count); }

    /// What sublayer l reads.
    rows<const T> read(std::size_t l) const
    {
        if (!how.pre_norm) return x(l);
        RESIDUA_SELF::rms_norm(in, x(l), RESIDUA_SELF::no_weight, {.eps = how.eps});
        return in;
    }
    /// f = J_l^T g
    void pull_back(std::size_t l, rows<const T> g) const
    {
        sublayers[l].vjp(f, read(l), g);
        if (how.pre_norm) RESIDUA_SELF::rms_norm_vjp(f, x(l), RESIDUA_SELF::no_weight, f, {.eps = how.eps});
    }
    /// y = [base +] c f
    void write(rows<T> y, rows<const T> base) const
    {
        if (how.residual) {
            RESIDUA_SELF::residual_add(y, base, f, how.write_scale);
        } else {
            RESIDUA_SELF::scale(y, f, how.write_scale);
        }
    }
};

}  // namespace local

template <class T, class Sublayer>
void forward(rows<T> stream, std::span<Sublayer> sublayers, const wiring<T>& how, rows<T> scratch)
{
    const local::frame<T, Sublayer> at{stream, sublayers, how, scratch};
    const std::size_t tokens = at.in.count;
    for (std::size_t l = 0; l < sublayers.size(); ++l) {
        sublayers[l].forward(at.f, at.read(l));
        at.write(stream.part((l + 1) * tokens, tokens), at.x(l));
    }
}

template <class T, class Sublayer>
void backward(rows<T> g, std::type_identity_t<rows<const T>> stream, std::span<Sublayer> sublayers,
              const wiring<T>& how, rows<T> scratch, std::span<magnitude> sizes)
{
    // far enough from the ends of T's range that one sublayer does not reach them
    constexpr int reach = sizeof(T) == 4 ? 20 : 200;
    const local::frame<T, Sublayer> at{stream, sublayers, how, scratch};
    RESIDUA_ASSERT(sizes.size() == sublayers.size() + 1, "probe::backward: sizes must have N + 1 elements");
    std::int64_t exponent = 0;
    const auto measure = [&] {
        auto size = make_magnitude(static_cast<double>(RESIDUA_SELF::rms(g)));
        const auto shift = size.exponent;
        size.exponent += exponent;
        if (shift > reach || shift < -reach) {
            // in two steps: the power of two alone may be beyond T's range
            const auto half = static_cast<int>(shift / 2);
            RESIDUA_SELF::scale(g, g, std::ldexp(T(1), -half));
            RESIDUA_SELF::scale(g, g, std::ldexp(T(1), -(static_cast<int>(shift) - half)));
            exponent += shift;
        }
        return size;
    };
    sizes[sublayers.size()] = measure();
    for (std::size_t l = sublayers.size(); l-- > 0;) {
        at.pull_back(l, g);
        at.write(g, g);
        sizes[l] = measure();
    }
}

template <class T, class Sublayer>
void split_by_crossings(rows<T> parts, std::type_identity_t<rows<const T>> stream, std::span<Sublayer> sublayers,
                        const wiring<T>& how, rows<T> scratch)
{
    const local::frame<T, Sublayer> at{stream, sublayers, how, scratch};
    const std::size_t tokens = at.in.count;
    const std::size_t layers = sublayers.size();
    RESIDUA_ASSERT(parts.count == stream.count, "probe::split_by_crossings: parts must have N + 1 blocks");
    const auto part = [&](std::size_t k) { return parts.part(k * tokens, tokens); };
    for (std::size_t k = 1; k <= layers; ++k) local::set_to_zero(part(k));
    for (std::size_t l = layers; l-- > 0;) {
        for (std::size_t k = layers - l; k > 0; --k) {
            at.pull_back(l, part(k - 1));
            at.write(part(k), part(k));
        }
        if (!how.residual) local::set_to_zero(part(0));
    }
}

template <class T, class Sublayer>
void along_path(rows<T> g, std::type_identity_t<rows<const T>> stream, std::span<Sublayer> sublayers,
                std::span<const bool> crossed, const wiring<T>& how, rows<T> scratch)
{
    const local::frame<T, Sublayer> at{stream, sublayers, how, scratch};
    RESIDUA_ASSERT(crossed.size() == sublayers.size(), "probe::along_path: crossed must have N elements");
    for (std::size_t l = sublayers.size(); l-- > 0;) {
        if (!crossed[l]) continue;
        at.pull_back(l, g);
        RESIDUA_SELF::scale(g, at.f, how.write_scale);
    }
}

template <class T>
spread measure_spread(std::type_identity_t<rows<const T>> x, rows<T> scratch)
{
    RESIDUA_ASSERT(scratch.count == x.count + 1, "probe::measure_spread: scratch must have one more row than x");
    const std::size_t tokens = x.count;
    if (tokens == 0) return {0, std::numeric_limits<double>::quiet_NaN()};
    const rows<T> mean = scratch.row(tokens);
    const rows<T> each = scratch.part(0, tokens);
    RESIDUA_SELF::scale(mean, x.row(0), T(1));
    for (std::size_t t = 1; t < tokens; ++t) RESIDUA_SELF::residual_add(mean, mean, x.row(t));
    RESIDUA_SELF::scale(mean, mean, T(1) / static_cast<T>(tokens));
    for (std::size_t t = 0; t < tokens; ++t) RESIDUA_SELF::residual_add(each.row(t), x.row(t), mean, T(-1));
    const double size = static_cast<double>(RESIDUA_SELF::rms(x));
    const double distance = size == 0 ? 0 : static_cast<double>(RESIDUA_SELF::rms(each)) / size;

    // rows of root mean square one: their products are d times the cosines
    RESIDUA_SELF::rms_norm(each, x, RESIDUA_SELF::no_weight, {.eps = T(0)});
    double sum = 0;
    for (std::size_t t = 1; t < tokens; ++t) {
        for (std::size_t s = 0; s < t; ++s) sum += static_cast<double>(RESIDUA_SELF::dot(each.row(s), each.row(t)));
    }
    const double pairs = static_cast<double>(tokens * (tokens - 1) / 2);
    return {distance, sum / pairs / static_cast<double>(x.columns)};
}

}  // namespace probe
}  // namespace RESIDUA_API

#endif
