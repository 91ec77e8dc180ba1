// The xsimd adapter: one register is an xsimd::batch of this unit's widest instruction set. Serves xsimd 8.1 and later;
// what differs between its versions, or is not the one right answer, is done here with the compiler's own means.

namespace RESIDUA_PASS {

// On Arm always NEON, whatever xsimd would prefer: SVE is not wider on the machines there are. Of AVX-512 without its part
// for bytes (-march=knl) xsimd 8.1 prefers what it has no registers for.
#if defined(__aarch64__)
using arch = xsimd::neon64;
#elif defined(__AVX512CD__) && !defined(__AVX512BW__)
using arch = xsimd::avx512f;
#else
using arch = xsimd::default_arch;
#endif

// As many 16-bit elements as a register has lanes, by the compiler's own means: xsimd has none for this. The first is
// for instruction sets not named below.
template <class Raw>
RESIDUA_LANE_INLINE void load_halves(Raw& v, const void* p)
{
    std::uint16_t half[sizeof(Raw) / 4];
    std::uint32_t lane[sizeof(Raw) / 4];
    __builtin_memcpy(half, p, sizeof half);
    for (std::size_t i = 0; i < sizeof(Raw) / 4; ++i) lane[i] = half[i];
    __builtin_memcpy(&v, lane, sizeof v);
}
template <class Raw>
RESIDUA_LANE_INLINE void store_halves(void* p, const Raw& v)
{
    std::uint16_t half[sizeof(Raw) / 4];
    std::uint32_t lane[sizeof(Raw) / 4];
    __builtin_memcpy(lane, &v, sizeof v);
    for (std::size_t i = 0; i < sizeof(Raw) / 4; ++i) half[i] = static_cast<std::uint16_t>(lane[i]);
    __builtin_memcpy(p, half, sizeof half);
}
#if defined(__AVX512F__)
RESIDUA_LANE_INLINE void load_halves(__m512i& v, const void* p)
{
    __m256i half;
    __builtin_memcpy(&half, p, sizeof half);
    v = _mm512_cvtepu16_epi32(half);
}
RESIDUA_LANE_INLINE void store_halves(void* p, __m512i v)
{
    const __m256i half = _mm512_cvtepi32_epi16(v);
    __builtin_memcpy(p, &half, sizeof half);
}
#endif
#if defined(__SSE2__)
RESIDUA_LANE_INLINE void load_halves(__m128i& v, const void* p)
{
    v = _mm_unpacklo_epi16(_mm_loadl_epi64(static_cast<const __m128i*>(p)), _mm_setzero_si128());
}
RESIDUA_LANE_INLINE __m128i packed_halves(__m128i v)
{
    constexpr int even_first = 0b11'01'10'00;
    return _mm_shuffle_epi32(_mm_shufflehi_epi16(_mm_shufflelo_epi16(v, even_first), even_first), even_first);
}
RESIDUA_LANE_INLINE void store_halves(void* p, __m128i v)
{
    _mm_storel_epi64(static_cast<__m128i*>(p), packed_halves(v));
}
#endif
#if defined(__AVX2__)
RESIDUA_LANE_INLINE void load_halves(__m256i& v, const void* p)
{
    __m128i half;
    __builtin_memcpy(&half, p, sizeof half);
    v = _mm256_cvtepu16_epi32(half);
}
RESIDUA_LANE_INLINE void store_halves(void* p, __m256i v)
{
    // within each 128 bits the low halves come first; then those of both
    const __m256i low = _mm256_set1_epi64x(0x0d0c'0908'0504'0100);
    const __m256i half = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(v, low), 0b00'00'10'00);
    const __m128i all = _mm256_castsi256_si128(half);
    __builtin_memcpy(p, &all, sizeof all);
}
#elif defined(__AVX__)
RESIDUA_LANE_INLINE void load_halves(__m256i& v, const void* p)
{
    __m128i lo, hi;
    load_halves(lo, p);
    load_halves(hi, bytes_at(p) + 8);
    v = _mm256_insertf128_si256(_mm256_castsi128_si256(lo), hi, 1);
}
RESIDUA_LANE_INLINE void store_halves(void* p, __m256i v)
{
    store_halves(p, _mm256_castsi256_si128(v));
    store_halves(bytes_at(p) + 8, _mm256_extractf128_si256(v, 1));
}
#endif
#if defined(__aarch64__)
RESIDUA_LANE_INLINE void load_halves(uint32x4_t& v, const void* p)
{
    uint16x4_t half;
    __builtin_memcpy(&half, p, sizeof half);
    v = vmovl_u16(half);
}
RESIDUA_LANE_INLINE void store_halves(void* p, uint32x4_t v)
{
    const uint16x4_t half = vmovn_u32(v);
    __builtin_memcpy(p, &half, sizeof half);
}
#endif

// The first, third, ... lane of both.
#if defined(__AVX512F__)
RESIDUA_LANE_INLINE __m512 first_of_pairs(__m512 lo, __m512 hi)
{
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return _mm512_permutex2var_ps(lo, even, hi);
}
RESIDUA_LANE_INLINE __m512d first_of_pairs(__m512d lo, __m512d hi)
{
    return _mm512_permutex2var_pd(lo, _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14), hi);
}
#endif
#if defined(__AVX__)
RESIDUA_LANE_INLINE __m256 first_of_pairs(__m256 lo, __m256 hi)
{
    const __m256 outer = _mm256_permute2f128_ps(lo, hi, 0x20);
    const __m256 inner = _mm256_permute2f128_ps(lo, hi, 0x31);
    return _mm256_shuffle_ps(outer, inner, 0b10'00'10'00);
}
RESIDUA_LANE_INLINE __m256d first_of_pairs(__m256d lo, __m256d hi)
{
    return _mm256_unpacklo_pd(_mm256_permute2f128_pd(lo, hi, 0x20), _mm256_permute2f128_pd(lo, hi, 0x31));
}
#endif
#if defined(__SSE2__)
RESIDUA_LANE_INLINE __m128 first_of_pairs(__m128 lo, __m128 hi) { return _mm_shuffle_ps(lo, hi, 0b10'00'10'00); }
RESIDUA_LANE_INLINE __m128d first_of_pairs(__m128d lo, __m128d hi) { return _mm_unpacklo_pd(lo, hi); }
#elif defined(__aarch64__)
RESIDUA_LANE_INLINE float32x4_t first_of_pairs(float32x4_t lo, float32x4_t hi) { return vuzp1q_f32(lo, hi); }
RESIDUA_LANE_INLINE float64x2_t first_of_pairs(float64x2_t lo, float64x2_t hi) { return vuzp1q_f64(lo, hi); }
#endif

// The CPU's own conversions of float16, on x86 to nearest even whatever its mode is. A NaN that they give is quiet, so as an
// integer at least the one that stands for all.
#if defined(__AVX512F__)
RESIDUA_LANE_INLINE void load_float16_halves(__m512& v, const void* p)
{
    __m256i half;
    __builtin_memcpy(&half, p, sizeof half);
    v = _mm512_cvtph_ps(half);
}
RESIDUA_LANE_INLINE void store_float16_halves(void* p, __m512 v)
{
    // without optimisation GCC's unmasked one is a macro that converts -1 to a mask, and warns of it here
    const __m256i half = _mm512_maskz_cvtps_ph(__mmask16{0xffff}, v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m256i sign = _mm256_set1_epi16(-0x8000);
    const __m256i magnitude = _mm256_min_epu16(_mm256_andnot_si256(sign, half), _mm256_set1_epi16(0x7e00));
    const __m256i all = _mm256_or_si256(magnitude, _mm256_and_si256(sign, half));
    __builtin_memcpy(p, &all, sizeof all);
}
#endif
#if defined(__F16C__)
RESIDUA_LANE_INLINE void load_float16_halves(__m256& v, const void* p)
{
    __m128i half;
    __builtin_memcpy(&half, p, sizeof half);
    v = _mm256_cvtph_ps(half);
}
RESIDUA_LANE_INLINE void store_float16_halves(void* p, __m256 v)
{
    const __m128i half = _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m128i sign = _mm_set1_epi16(-0x8000);
    const __m128i magnitude = _mm_min_epu16(_mm_andnot_si128(sign, half), _mm_set1_epi16(0x7e00));
    const __m128i all = _mm_or_si128(magnitude, _mm_and_si128(sign, half));
    __builtin_memcpy(p, &all, sizeof all);
}
#endif
#if defined(__aarch64__)
RESIDUA_LANE_INLINE void load_float16_halves(float32x4_t& v, const void* p)
{
    uint16x4_t half;
    __builtin_memcpy(&half, p, sizeof half);
    v = vcvt_f32_f16(vreinterpret_f16_u16(half));
}
RESIDUA_LANE_INLINE void store_float16_halves(void* p, float32x4_t v)
{
    const uint16x4_t half = vreinterpret_u16_f16(vcvt_f16_f32(v));
    const uint16x4_t sign = vdup_n_u16(0x8000);
    const uint16x4_t all = vorr_u16(vmin_u16(vbic_u16(half, sign), vdup_n_u16(0x7e00)), vand_u16(half, sign));
    __builtin_memcpy(p, &all, sizeof all);
}
#endif

// As many floats as a register holds doubles.
#if defined(__AVX512F__)
RESIDUA_LANE_INLINE void load_widened_floats(__m512d& v, const float* p)
{
    v = _mm512_cvtps_pd(_mm256_loadu_ps(p));
}
#endif
#if defined(__AVX__)
RESIDUA_LANE_INLINE void load_widened_floats(__m256d& v, const float* p) { v = _mm256_cvtps_pd(_mm_loadu_ps(p)); }
#endif
#if defined(__SSE2__)
RESIDUA_LANE_INLINE void load_widened_floats(__m128d& v, const float* p)
{
    v = _mm_cvtps_pd(_mm_setr_ps(p[0], p[1], 0, 0));
}
#elif defined(__aarch64__)
RESIDUA_LANE_INLINE void load_widened_floats(float64x2_t& v, const float* p) { v = vcvt_f64_f32(vld1_f32(p)); }
#endif

template <class T>
struct reg_mask {
    xsimd::batch_bool<T, arch> v;
};

template <class T>
struct reg {
    using batch = xsimd::batch<T, arch>;
    using raw = typename batch::register_type;
    using value_type = T;
    static constexpr int size = static_cast<int>(batch::size);
    batch v;

    RESIDUA_LANE_INLINE static reg broadcast(T x) { return {batch(x)}; }
    RESIDUA_LANE_INLINE static reg load(const T* p) { return {batch::load_unaligned(p)}; }
    RESIDUA_LANE_INLINE static reg load(const T* p, int n)
    {
        lane_array<reg> buffer = {};
        for (int i = 0; i < n; ++i) buffer[i] = p[i];
        return load(buffer);
    }
    RESIDUA_LANE_INLINE static reg load_alternate(const T* p)
        requires requires(raw r) { first_of_pairs(r, r); }
    {
        return {batch(first_of_pairs(static_cast<raw>(load(p).v), static_cast<raw>(load(p + size).v)))};
    }
    RESIDUA_LANE_INLINE static reg load_widened(const float* p)
        requires std::is_same_v<T, double>
    {
        raw loaded;
        load_widened_floats(loaded, p);
        return {batch(loaded)};
    }
    RESIDUA_LANE_INLINE void store(T* p) const { v.store_unaligned(p); }
    RESIDUA_LANE_INLINE void store(T* p, int n) const
    {
        lane_array<reg> buffer;
        store(buffer);
        for (int i = 0; i < n; ++i) p[i] = buffer[i];
    }

    RESIDUA_LANE_INLINE static reg load_bits(const void* p)
    {
        raw v;
        __builtin_memcpy(&v, p, sizeof v);
        return {batch(v)};
    }
    RESIDUA_LANE_INLINE void store_bits(void* p) const
    {
        const auto all = static_cast<raw>(v);
        __builtin_memcpy(p, &all, sizeof all);
    }
    RESIDUA_LANE_INLINE static reg load_16_bit(const void* p)
    {
        raw v;
        load_halves(v, p);
        return {batch(v)};
    }
    RESIDUA_LANE_INLINE static reg load_16_bit(const void* p, int n)
    {
        std::uint16_t buffer[static_cast<std::size_t>(size)] = {};
        copy_16_bit(buffer, p, n);
        return load_16_bit(buffer);
    }
    RESIDUA_LANE_INLINE void store_16_bit(void* p) const { store_halves(p, static_cast<raw>(v)); }
    RESIDUA_LANE_INLINE void store_16_bit(void* p, int n) const
    {
        std::uint16_t buffer[static_cast<std::size_t>(size)];
        store_16_bit(buffer);
        copy_16_bit(p, buffer, n);
    }

    RESIDUA_LANE_INLINE static reg load_float16(const void* p)
        requires requires(raw any) { load_float16_halves(any, p); }
    {
        raw loaded;
        load_float16_halves(loaded, p);
        return {batch(loaded)};
    }
    RESIDUA_LANE_INLINE void store_float16(void* p) const
        requires requires(raw any) { store_float16_halves(p, any); }
    {
        store_float16_halves(p, static_cast<raw>(v));
    }
};

template <class To, class From>
RESIDUA_LANE_INLINE reg<To> reinterpret(reg<From> a)
{
    using raw_from = typename reg<From>::raw;
    using raw_to = typename reg<To>::raw;
    return {typename reg<To>::batch(__builtin_bit_cast(raw_to, static_cast<raw_from>(a.v)))};
}

// fused_multiply_add: xsimd's fma is not fused on AVX-512 (8.1) and, for float, on NEON (8.1 to 13.2).
#if defined(__AVX512F__)
RESIDUA_LANE_INLINE __m512 fused(__m512 a, __m512 b, __m512 c) { return _mm512_fmadd_ps(a, b, c); }
RESIDUA_LANE_INLINE __m512d fused(__m512d a, __m512d b, __m512d c) { return _mm512_fmadd_pd(a, b, c); }
#endif
#if defined(__FMA__)
RESIDUA_LANE_INLINE __m256 fused(__m256 a, __m256 b, __m256 c) { return _mm256_fmadd_ps(a, b, c); }
RESIDUA_LANE_INLINE __m256d fused(__m256d a, __m256d b, __m256d c) { return _mm256_fmadd_pd(a, b, c); }
RESIDUA_LANE_INLINE __m128 fused(__m128 a, __m128 b, __m128 c) { return _mm_fmadd_ps(a, b, c); }
RESIDUA_LANE_INLINE __m128d fused(__m128d a, __m128d b, __m128d c) { return _mm_fmadd_pd(a, b, c); }
#elif defined(__aarch64__)
RESIDUA_LANE_INLINE float32x4_t fused(float32x4_t a, float32x4_t b, float32x4_t c) { return vfmaq_f32(c, a, b); }
RESIDUA_LANE_INLINE float64x2_t fused(float64x2_t a, float64x2_t b, float64x2_t c) { return vfmaq_f64(c, a, b); }
#endif

template <class T>
RESIDUA_LANE_INLINE reg<T> fma(reg<T> a, reg<T> b, reg<T> c)
{
#if RESIDUA_UNIT_HAS_FMA
    using raw = typename reg<T>::raw;
    return {typename reg<T>::batch(fused(static_cast<raw>(a.v), static_cast<raw>(b.v), static_cast<raw>(c.v)))};
#else
    return lane_by_lane_fma(a, b, c);
#endif
}

// On NEON xsimd's division and square root of floats are refined estimates, a last bit off.
#if defined(__aarch64__)
RESIDUA_LANE_INLINE reg<float> operator/(reg<float> a, reg<float> b) { return {vdivq_f32(a.v, b.v)}; }
RESIDUA_LANE_INLINE reg<double> operator/(reg<double> a, reg<double> b) { return {vdivq_f64(a.v, b.v)}; }
RESIDUA_LANE_INLINE reg<float> sqrt(reg<float> a) { return {vsqrtq_f32(a.v)}; }
RESIDUA_LANE_INLINE reg<double> sqrt(reg<double> a) { return {vsqrtq_f64(a.v)}; }
#else
template <class T>
RESIDUA_LANE_INLINE reg<T> operator/(reg<T> a, reg<T> b)
{
    return {a.v / b.v};
}
template <class T>
RESIDUA_LANE_INLINE reg<T> sqrt(reg<T> a)
{
    return {xsimd::sqrt(a.v)};
}
#endif

template <class T>
RESIDUA_LANE_INLINE auto compilers_own(reg<T> a)
{
    return static_cast<typename reg<T>::raw>(a.v);
}

// The compiler's own, which it can merge with an fma.
template <class T>
RESIDUA_LANE_INLINE reg<T> operator-(reg<T> a)
{
    return {typename reg<T>::batch(-compilers_own(a))};
}

template <class T>
RESIDUA_LANE_INLINE reg<T> operator*(reg<T> a, reg<T> b)
{
    auto product = static_cast<typename reg<T>::raw>(a.v * b.v);
    keep_product(product);
    return {typename reg<T>::batch(product)};
}

// clang-format off
template <class T> RESIDUA_LANE_INLINE reg<T> operator+(reg<T> a, reg<T> b) { return {a.v + b.v}; }
template <class T> RESIDUA_LANE_INLINE reg<T> operator-(reg<T> a, reg<T> b) { return {a.v - b.v}; }
template <class T> RESIDUA_LANE_INLINE reg<T> operator&(reg<T> a, reg<T> b) { return {a.v & b.v}; }
template <class T> RESIDUA_LANE_INLINE reg<T> operator|(reg<T> a, reg<T> b) { return {a.v | b.v}; }
template <class T> RESIDUA_LANE_INLINE reg<T> operator^(reg<T> a, reg<T> b) { return {a.v ^ b.v}; }
template <int N, class T> RESIDUA_LANE_INLINE reg<T> shift_left(reg<T> a) { return {a.v << N}; }
template <int N, class T> RESIDUA_LANE_INLINE reg<T> shift_right(reg<T> a) { return {a.v >> N}; }
template <class T> RESIDUA_LANE_INLINE reg<T> abs(reg<T> a) { return {xsimd::abs(a.v)}; }

template <class T> RESIDUA_LANE_INLINE reg_mask<T> operator<(reg<T> a, reg<T> b) { return {a.v < b.v}; }
template <class T> RESIDUA_LANE_INLINE reg_mask<T> operator<=(reg<T> a, reg<T> b) { return {a.v <= b.v}; }
template <class T> RESIDUA_LANE_INLINE reg_mask<T> operator==(reg<T> a, reg<T> b) { return {a.v == b.v}; }
template <class T> RESIDUA_LANE_INLINE reg_mask<T> operator&(reg_mask<T> a, reg_mask<T> b) { return {a.v & b.v}; }
template <class T> RESIDUA_LANE_INLINE reg_mask<T> operator|(reg_mask<T> a, reg_mask<T> b) { return {a.v | b.v}; }
template <class T> RESIDUA_LANE_INLINE reg_mask<T> operator!(reg_mask<T> a) { return {!a.v}; }
template <class T> RESIDUA_LANE_INLINE bool any(reg_mask<T> m) { return xsimd::any(m.v); }
template <class T> RESIDUA_LANE_INLINE bool all(reg_mask<T> m) { return xsimd::all(m.v); }
template <class T> RESIDUA_LANE_INLINE reg<T> select(reg_mask<T> m, reg<T> a, reg<T> b) { return {xsimd::select(m.v, a.v, b.v)}; }

RESIDUA_LANE_INLINE reg<std::uint32_t> to_bits(reg<float> a) { return reinterpret<std::uint32_t>(a); }
RESIDUA_LANE_INLINE reg<std::uint64_t> to_bits(reg<double> a) { return reinterpret<std::uint64_t>(a); }
RESIDUA_LANE_INLINE reg<float> from_bits(reg<std::uint32_t> a) { return reinterpret<float>(a); }
RESIDUA_LANE_INLINE reg<double> from_bits(reg<std::uint64_t> a) { return reinterpret<double>(a); }

// clang-format on

// On x86 min(a, b) is a < b ? a : b to the letter; elsewhere the comparison says so.
#if defined(__SSE2__)
template <class T>
RESIDUA_LANE_INLINE reg<T> min(reg<T> a, reg<T> b)
{
    return {xsimd::min(a.v, b.v)};
}
template <class T>
RESIDUA_LANE_INLINE reg<T> max(reg<T> a, reg<T> b)
{
    return {xsimd::max(a.v, b.v)};
}
#else
template <class T>
RESIDUA_LANE_INLINE reg<T> min(reg<T> a, reg<T> b)
{
    keep_sign_of_zero(a.v.data, b.v.data);
    return select(a < b, a, b);
}
template <class T>
RESIDUA_LANE_INLINE reg<T> max(reg<T> a, reg<T> b)
{
    keep_sign_of_zero(a.v.data, b.v.data);
    return select(b < a, a, b);
}
#endif

// Adding and taking away 1.5 * 2^23 (2^52) rounds to an integer as the hardware rounds; what is larger has no fraction.
template <class T>
RESIDUA_LANE_INLINE reg<T> round(reg<T> a)
{
#if defined(__SSE4_1__) || defined(__aarch64__)
    return {xsimd::nearbyint(a.v)};
#else
    const auto whole = reg<T>::broadcast(sizeof(T) == 4 ? T(0x1p23) : T(0x1p52));
    const auto magnitude = abs(a);
    const auto rounded = (magnitude + whole) - whole;
    const auto sign = to_bits(a) ^ to_bits(magnitude);
    return select(magnitude < whole, from_bits(to_bits(rounded) | sign), a);
#endif
}

// Between float and double: the registers' own conversions, which are exact, and rounded to nearest even.
#if defined(__AVX512F__)
RESIDUA_LANE_INLINE __m512d lower_half(__m512 a) { return _mm512_cvtps_pd(_mm512_castps512_ps256(a)); }
RESIDUA_LANE_INLINE __m512d upper_half(__m512 a)
{
    return _mm512_cvtps_pd(_mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(a), 1)));
}
RESIDUA_LANE_INLINE __m512 halves_of(__m512d lo, __m512d hi)
{
    const __m512d lower = _mm512_castpd256_pd512(_mm256_castps_pd(_mm512_cvtpd_ps(lo)));
    return _mm512_castpd_ps(_mm512_insertf64x4(lower, _mm256_castps_pd(_mm512_cvtpd_ps(hi)), 1));
}
#endif
#if defined(__AVX__)
RESIDUA_LANE_INLINE __m256d lower_half(__m256 a) { return _mm256_cvtps_pd(_mm256_castps256_ps128(a)); }
RESIDUA_LANE_INLINE __m256d upper_half(__m256 a) { return _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1)); }
RESIDUA_LANE_INLINE __m256 halves_of(__m256d lo, __m256d hi)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(lo)), _mm256_cvtpd_ps(hi), 1);
}
#endif
#if defined(__SSE2__)
RESIDUA_LANE_INLINE __m128d lower_half(__m128 a) { return _mm_cvtps_pd(a); }
RESIDUA_LANE_INLINE __m128d upper_half(__m128 a) { return _mm_cvtps_pd(_mm_movehl_ps(a, a)); }
RESIDUA_LANE_INLINE __m128 halves_of(__m128d lo, __m128d hi)
{
    return _mm_movelh_ps(_mm_cvtpd_ps(lo), _mm_cvtpd_ps(hi));
}
#elif defined(__aarch64__)
RESIDUA_LANE_INLINE float64x2_t lower_half(float32x4_t a) { return vcvt_f64_f32(vget_low_f32(a)); }
RESIDUA_LANE_INLINE float64x2_t upper_half(float32x4_t a) { return vcvt_high_f64_f32(a); }
RESIDUA_LANE_INLINE float32x4_t halves_of(float64x2_t lo, float64x2_t hi)
{
    return vcvt_high_f32_f64(vcvt_f32_f64(lo), hi);
}
#endif

RESIDUA_LANE_INLINE twice<reg<double>> widen(reg<float> a)
{
    const auto v = static_cast<reg<float>::raw>(a.v);
    return {{reg<double>::batch(lower_half(v))}, {reg<double>::batch(upper_half(v))}};
}

RESIDUA_LANE_INLINE reg<float> narrow(twice<reg<double>> a)
{
    using raw = reg<double>::raw;
    return {reg<float>::batch(halves_of(static_cast<raw>(a.lo.v), static_cast<raw>(a.hi.v)))};
}

}  // namespace RESIDUA_PASS
