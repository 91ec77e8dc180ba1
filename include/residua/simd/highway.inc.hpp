// The Highway adapter: one register is a full Highway vector of the current target, at most 512 bits. Serves Highway
// 1.0.3 and later; included once for each target that is compiled.

namespace RESIDUA_PASS {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using tag = hn::FixedTag<T, (HWY_LANES(T) < 64 / sizeof(T) ? HWY_LANES(T) : 64 / sizeof(T))>;

template <class T>
struct reg_mask {
    hn::Mask<tag<T>> v;
};

template <class T>
struct reg {
    using vector = hn::Vec<tag<T>>;
    using value_type = T;
    static constexpr int size = static_cast<int>(hn::MaxLanes(tag<T>{}));
    vector v;

    RESIDUA_LANE_INLINE static reg broadcast(T x) { return {hn::Set(tag<T>{}, x)}; }
    RESIDUA_LANE_INLINE static reg load(const T* p) { return {hn::LoadU(tag<T>{}, p)}; }
    RESIDUA_LANE_INLINE static reg load(const T* p, int n)
    {
#if HWY_MEM_OPS_MIGHT_FAULT
        lane_array<reg> buffer = {};
        for (int i = 0; i < n; ++i) buffer[i] = p[i];
        return load(buffer);
#else
        return {hn::MaskedLoad(hn::FirstN(tag<T>{}, static_cast<std::size_t>(n)), tag<T>{}, p)};
#endif
    }
    RESIDUA_LANE_INLINE static reg load_alternate(const T* p)
    {
        return {hn::ConcatEven(tag<T>{}, hn::LoadU(tag<T>{}, p + size), hn::LoadU(tag<T>{}, p))};
    }
    RESIDUA_LANE_INLINE void store(T* p) const { hn::StoreU(v, tag<T>{}, p); }
    RESIDUA_LANE_INLINE void store(T* p, int n) const
    {
#if HWY_MEM_OPS_MIGHT_FAULT
        lane_array<reg> buffer;
        store(buffer);
        for (int i = 0; i < n; ++i) p[i] = buffer[i];
#else
        hn::BlendedStore(v, hn::FirstN(tag<T>{}, static_cast<std::size_t>(n)), tag<T>{}, p);
#endif
    }

    RESIDUA_LANE_INLINE static reg load_widened(const float* p)
        requires std::is_same_v<T, double>
    {
        return {hn::PromoteTo(tag<T>{}, hn::LoadU(hn::Rebind<float, tag<T>>{}, p))};
    }

    // Highway's loads and stores may touch memory of any type: they are the instruction set's own.
    RESIDUA_LANE_INLINE static reg load_bits(const void* p) { return load(static_cast<const T*>(p)); }
    RESIDUA_LANE_INLINE void store_bits(void* p) const { store(static_cast<T*>(p)); }
    using half_tag = hn::Rebind<std::uint16_t, tag<T>>;
    RESIDUA_LANE_INLINE static reg load_16_bit(const void* p)
    {
        return {hn::PromoteTo(tag<T>{}, hn::LoadU(half_tag{}, static_cast<const std::uint16_t*>(p)))};
    }
    RESIDUA_LANE_INLINE static reg load_16_bit(const void* p, int n)
    {
#if HWY_MEM_OPS_MIGHT_FAULT
        std::uint16_t buffer[static_cast<std::size_t>(size)] = {};
        copy_16_bit(buffer, p, n);
        return load_16_bit(buffer);
#else
        const auto first = hn::FirstN(half_tag{}, static_cast<std::size_t>(n));
        return {hn::PromoteTo(tag<T>{}, hn::MaskedLoad(first, half_tag{}, static_cast<const std::uint16_t*>(p)))};
#endif
    }
    RESIDUA_LANE_INLINE void store_16_bit(void* p) const
    {
        hn::StoreU(hn::TruncateTo(half_tag{}, v), half_tag{}, static_cast<std::uint16_t*>(p));
    }
    RESIDUA_LANE_INLINE void store_16_bit(void* p, int n) const
    {
#if HWY_MEM_OPS_MIGHT_FAULT
        std::uint16_t buffer[static_cast<std::size_t>(size)];
        store_16_bit(buffer);
        copy_16_bit(p, buffer, n);
#else
        hn::BlendedStore(hn::TruncateTo(half_tag{}, v), hn::FirstN(half_tag{}, static_cast<std::size_t>(n)),
                         half_tag{}, static_cast<std::uint16_t*>(p));
#endif
    }

    // Elsewhere Highway converts by itself, and rounds otherwise.
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)) || HWY_ARCH_ARM_A64
    using float16_tag = hn::Rebind<hwy::float16_t, tag<T>>;
    RESIDUA_LANE_INLINE static reg load_float16(const void* p)
        requires std::is_same_v<T, float>
    {
        const auto half = hn::LoadU(half_tag{}, static_cast<const std::uint16_t*>(p));
        return {hn::PromoteTo(tag<T>{}, hn::BitCast(float16_tag{}, half))};
    }
    RESIDUA_LANE_INLINE void store_float16(void* p) const
        requires std::is_same_v<T, float>
    {
        const auto half = hn::BitCast(half_tag{}, hn::DemoteTo(float16_tag{}, v));
        const auto sign = hn::Set(half_tag{}, std::uint16_t{0x8000});
        const auto magnitude = hn::Min(hn::AndNot(sign, half), hn::Set(half_tag{}, std::uint16_t{0x7e00}));
        hn::StoreU(hn::Or(magnitude, hn::And(sign, half)), half_tag{}, static_cast<std::uint16_t*>(p));
    }
#endif
};

template <class T>
RESIDUA_LANE_INLINE reg<T> fma(reg<T> a, reg<T> b, reg<T> c)
{
#if HWY_NATIVE_FMA
    return {hn::MulAdd(a.v, b.v, c.v)};
#else
    return lane_by_lane_fma(a, b, c);
#endif
}

template <class T>
RESIDUA_LANE_INLINE reg<T> operator*(reg<T> a, reg<T> b)
{
    auto product = hn::Mul(a.v, b.v);
    keep_product(product.raw);
    return {product};
}

template <class T>
RESIDUA_LANE_INLINE auto compilers_own(reg<T> a)
{
    return a.v.raw;
}

// The compiler's own, which it can merge with an fma.
template <class T>
RESIDUA_LANE_INLINE reg<T> operator-(reg<T> a)
{
    return {typename reg<T>::vector{-compilers_own(a)}};
}

// clang-format off
template <class T> RESIDUA_LANE_INLINE reg<T> operator+(reg<T> a, reg<T> b) { return {hn::Add(a.v, b.v)}; }
template <class T> RESIDUA_LANE_INLINE reg<T> operator-(reg<T> a, reg<T> b) { return {hn::Sub(a.v, b.v)}; }
template <class T> RESIDUA_LANE_INLINE reg<T> operator/(reg<T> a, reg<T> b) { return {hn::Div(a.v, b.v)}; }
template <class T> RESIDUA_LANE_INLINE reg<T> operator&(reg<T> a, reg<T> b) { return {hn::And(a.v, b.v)}; }
template <class T> RESIDUA_LANE_INLINE reg<T> operator|(reg<T> a, reg<T> b) { return {hn::Or(a.v, b.v)}; }
template <class T> RESIDUA_LANE_INLINE reg<T> operator^(reg<T> a, reg<T> b) { return {hn::Xor(a.v, b.v)}; }
template <int N, class T> RESIDUA_LANE_INLINE reg<T> shift_left(reg<T> a) { return {hn::ShiftLeft<N>(a.v)}; }
template <int N, class T> RESIDUA_LANE_INLINE reg<T> shift_right(reg<T> a) { return {hn::ShiftRight<N>(a.v)}; }
template <class T> RESIDUA_LANE_INLINE reg<T> sqrt(reg<T> a) { return {hn::Sqrt(a.v)}; }
template <class T> RESIDUA_LANE_INLINE reg<T> abs(reg<T> a) { return {hn::Abs(a.v)}; }
template <class T> RESIDUA_LANE_INLINE reg<T> copysign(reg<T> a, reg<T> s) { return {hn::CopySign(a.v, s.v)}; }

template <class T> RESIDUA_LANE_INLINE reg_mask<T> operator<(reg<T> a, reg<T> b) { return {hn::Lt(a.v, b.v)}; }
template <class T> RESIDUA_LANE_INLINE reg_mask<T> operator<=(reg<T> a, reg<T> b) { return {hn::Le(a.v, b.v)}; }
template <class T> RESIDUA_LANE_INLINE reg_mask<T> operator==(reg<T> a, reg<T> b) { return {hn::Eq(a.v, b.v)}; }
template <class T> RESIDUA_LANE_INLINE reg_mask<T> operator&(reg_mask<T> a, reg_mask<T> b) { return {hn::And(a.v, b.v)}; }
template <class T> RESIDUA_LANE_INLINE reg_mask<T> operator|(reg_mask<T> a, reg_mask<T> b) { return {hn::Or(a.v, b.v)}; }
template <class T> RESIDUA_LANE_INLINE reg_mask<T> operator!(reg_mask<T> a) { return {hn::Not(a.v)}; }
template <class T> RESIDUA_LANE_INLINE bool any(reg_mask<T> m) { return !hn::AllFalse(tag<T>{}, m.v); }
template <class T> RESIDUA_LANE_INLINE bool all(reg_mask<T> m) { return hn::AllTrue(tag<T>{}, m.v); }
template <class T> RESIDUA_LANE_INLINE reg<T> select(reg_mask<T> m, reg<T> a, reg<T> b) { return {hn::IfThenElse(m.v, a.v, b.v)}; }

RESIDUA_LANE_INLINE reg<std::uint32_t> to_bits(reg<float> a) { return {hn::BitCast(tag<std::uint32_t>{}, a.v)}; }
RESIDUA_LANE_INLINE reg<std::uint64_t> to_bits(reg<double> a) { return {hn::BitCast(tag<std::uint64_t>{}, a.v)}; }
RESIDUA_LANE_INLINE reg<float> from_bits(reg<std::uint32_t> a) { return {hn::BitCast(tag<float>{}, a.v)}; }
RESIDUA_LANE_INLINE reg<double> from_bits(reg<std::uint64_t> a) { return {hn::BitCast(tag<double>{}, a.v)}; }
// clang-format on

// x86's own min(a, b) is a < b ? a : b to the letter; elsewhere the comparison says so. (Clang 19 can make of that, with a zero
// and numbers that were widened, a <= b ? a : b.)
template <class T>
RESIDUA_LANE_INLINE reg<T> min(reg<T> a, reg<T> b)
{
#if HWY_ARCH_X86 && HWY_TARGET < HWY_EMU128
    return {hn::Min(a.v, b.v)};
#else
    keep_sign_of_zero(a.v.raw, b.v.raw);
    return select(a < b, a, b);
#endif
}

template <class T>
RESIDUA_LANE_INLINE reg<T> max(reg<T> a, reg<T> b)
{
#if HWY_ARCH_X86 && HWY_TARGET < HWY_EMU128
    return {hn::Max(a.v, b.v)};
#else
    keep_sign_of_zero(a.v.raw, b.v.raw);
    return select(b < a, a, b);
#endif
}

template <class T>
RESIDUA_LANE_INLINE reg<T> round(reg<T> a)
{
    return {hn::Round(a.v)};
}

RESIDUA_LANE_INLINE twice<reg<double>> widen(reg<float> a)
{
    const hn::Half<tag<float>> half;
    return {{hn::PromoteTo(tag<double>{}, hn::LowerHalf(half, a.v))},
            {hn::PromoteTo(tag<double>{}, hn::UpperHalf(half, a.v))}};
}

RESIDUA_LANE_INLINE reg<float> narrow(twice<reg<double>> a)
{
    const hn::Half<tag<float>> half;
    return {hn::Combine(tag<float>{}, hn::DemoteTo(half, a.hi.v), hn::DemoteTo(half, a.lo.v))};
}

}  // namespace RESIDUA_PASS
