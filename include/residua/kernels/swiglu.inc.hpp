// The gated feed-forward activations: SwiGLU and its clamped and capped forms.

namespace RESIDUA_PASS {

/// silu(gate) up
struct swiglu_of {
    template <class V>
    RESIDUA_LANE_INLINE V operator()(V gate, V up) const
    {
        return logistic_product(gate, up);
    }
};
template <class T>
inline void swiglu(shape s, output y, input gate, input up)
{
    map<T>(swiglu_of{}, s, y, gate, up);
}

/// x, at most limit; a NaN stays.
template <class V>
RESIDUA_LANE_INLINE V from_above(V x, V limit)
{
    return min(limit, x);
}
template <class V>
RESIDUA_LANE_INLINE V on_both_sides(V x, V limit)
{
    return max(-limit, min(limit, x));
}

/// DeepSeek: the gate clamped from above, up on both sides, both before the activation.
template <class T>
struct clamped_swiglu_of {
    T limit;

    template <class V>
    RESIDUA_LANE_INLINE V operator()(V gate, V up) const
    {
        const V most = V::broadcast(limit);
        return logistic_product(from_above(gate, most), on_both_sides(up, most));
    }
};
template <class T>
inline void clamped_swiglu(shape s, output y, input gate, input up, T limit)
{
    map<T>(clamped_swiglu_of<T>{limit}, s, y, gate, up);
}

/// GPT-OSS: clamped likewise; (up + 1) gate sigmoid(alpha gate).
template <class T>
struct gpt_oss_swiglu_of {
    T limit, alpha;

    template <class V>
    RESIDUA_LANE_INLINE V operator()(V gate, V up) const
    {
        const V most = V::broadcast(limit);
        return logistic_product(from_above(gate, most), V::broadcast(alpha),
                                on_both_sides(up, most) + V::broadcast(1));
    }
};
template <class T>
inline void gpt_oss_swiglu(shape s, output y, input gate, input up, T limit, T alpha)
{
    map<T>(gpt_oss_swiglu_of<T>{limit, alpha}, s, y, gate, up);
}

/// cap tanh(x / cap), which is x itself to the last bit where x / cap could lose bits as a subnormal number.
template <class V>
RESIDUA_LANE_INLINE V soft_cap(V x, V cap)
{
    const V negligible = cap * V::broadcast(sizeof(scalar<V>) == 4 ? scalar<V>(0x1p-13) : scalar<V>(0x1p-28));
    return select(abs(x) < negligible, x, cap * tanh(x / cap));
}

/// SiTU-GLU: beta tanh(gate / beta) sigmoid(gate) * cap tanh(up / cap).
template <class T>
struct situ_glu_of {
    T beta, cap;

    template <class V>
    RESIDUA_LANE_INLINE V operator()(V gate, V up) const
    {
        const V g = soft_cap(gate, V::broadcast(beta));
        const V u = soft_cap(up, V::broadcast(cap));
        return scaled_quotient(g, reduce_logistic(gate, constants<scalar<V>>::product_reach), u);
    }
};
template <class T>
inline void situ_glu(shape s, output y, input gate, input up, T beta, T cap)
{
    map<T>(situ_glu_of<T>{beta, cap}, s, y, gate, up);
}

}  // namespace RESIDUA_PASS
