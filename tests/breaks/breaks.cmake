# Ways to break the library, one at a time, each of which some test has to notice: what it is, the file, the text that is
# there exactly once, what replaces it, and the programs of tests that are run.
#
# The kernels are broken in the scalar backend, which compiles fastest; a break of Highway's adapter (`vectors`) is run
# with the best vectors of this CPU.

# --- lanes: storage types ---------------------------------------------------------------------------------------

residua_break("bfloat16: truncated" simd/lanes.inc.hpp
    [==[const U rounded = u + (lowest + U::broadcast(0x7fffu));]==]
    [==[const U rounded = u + (lowest - lowest);]==]
    "storage_test operations_test")
residua_break("bfloat16: halves away from zero" simd/lanes.inc.hpp
    [==[const U rounded = u + (lowest + U::broadcast(0x7fffu));]==]
    [==[const U rounded = u + (lowest - lowest) + U::broadcast(0x8000u);]==]
    "storage_test operations_test")
residua_break("bfloat16: a NaN becomes infinity" simd/lanes.inc.hpp
    [==[select(v == v, from_bits(rounded), from_bits(quiet))]==]
    [==[select(v == v, from_bits(rounded), from_bits(rounded | (quiet & U::broadcast(0u))))]==]
    "storage_test operations_test")
residua_break("float16: subnormal numbers flushed" simd/lanes.inc.hpp
    [==[const U subnormal = to_bits(magnitude + half) - to_bits(half);]==]
    [==[const U subnormal = to_bits(half) - to_bits(half);]==]
    "storage_test operations_test")
residua_break("float16: infinite from 65504 on" simd/lanes.inc.hpp
    [==[magnitude < V::broadcast(65520.0f)]==] [==[magnitude < V::broadcast(65504.0f)]==]
    "storage_test operations_test")
residua_break("double to float: a subnormal result is 0" simd/lanes.inc.hpp
    [==[to_bits(narrow(round(count)) + whole)]==] [==[to_bits(narrow(round(count) - round(count)) + whole)]==]
    "storage_test elementary_test operations_test")
residua_break("16 bits: double rounded twice" simd/lanes.inc.hpp
    [==[return narrow_to_odd(v);]==] [==[return narrow(v);]==]
    "storage_test operations_test")

residua_break("16 bits: of a double's last bits none counts" simd/lanes.inc.hpp
    [==[const U odd = u | ((u & lost) + lost);]==] [==[const U odd = u | (lost & U::broadcast(0u));]==]
    "storage_test operations_test")

# --- the environment --------------------------------------------------------------------------------------------

residua_break("a caller's flushing of subnormal numbers stays on" kernels/default_modes.inc.hpp
    [==[if (flushes_subnormals()) [[unlikely]] {]==] [==[if (flushes_subnormals() && sizeof(found_) == 1) [[unlikely]] {]==]
    "operations_test")
residua_break("a caller's flushing of subnormal numbers does not come back" kernels/default_modes.inc.hpp
    [==[change(read_modes() | found_);]==] [==[change(read_modes() | (found_ & 0));]==]
    "operations_test")

# --- lanes: sums and powers of two ------------------------------------------------------------------------------

residua_break("sum of the lanes: neighbours first" simd/lanes.inc.hpp
    [==[for (int i = 0; i < half; ++i) lane[i] = lane[i] + lane[i + half];]==]
    [==[for (int i = 0; i < half; ++i) lane[i] = lane[2 * i] + lane[2 * i + 1];]==]
    "lanes_test.scalar_avx2")
residua_break("largest lane: the smallest" simd/lanes.inc.hpp
    [==[lane[i + half] < lane[i] ? lane[i] : lane[i + half]]==]
    [==[lane[i + half] < lane[i] ? lane[i + half] : lane[i]]==]
    "norms_test kernels_test")
residua_break("ldexp: the power of two in one factor" simd/lanes.inc.hpp
    [==[return (v * power.first) * power.second;]==] [==[return v * (power.first * power.second);]==]
    "elementary_test")

# --- lanes: the scalar backend, the specification ---------------------------------------------------------------

residua_break("scalar: min takes its first operand where they compare equal, or not at all" simd/scalar.inc.hpp
    [==[a.v[i] < b.v[i] ? a.v[i] : b.v[i])]==] [==[b.v[i] < a.v[i] ? b.v[i] : a.v[i])]==]
    "ffn_test cases_test operations_test")
residua_break("scalar: max takes its first operand where they compare equal, or not at all" simd/scalar.inc.hpp
    [==[b.v[i] < a.v[i] ? a.v[i] : b.v[i])]==] [==[a.v[i] < b.v[i] ? b.v[i] : a.v[i])]==]
    "elementary_test cases_test operations_test")
residua_break("scalar: fma rounds twice" simd/guard.inc.hpp
    [==[RESIDUA_LANE_INLINE float fma1(float a, float b, float c) { return __builtin_fmaf(a, b, c); }]==]
    [==[RESIDUA_LANE_INLINE float fma1(float a, float b, float c)
{
    float product = a * b;
    asm("" : "+m"(product));
    return product + c;
}]==]
    "kernels_test elementary_test")
residua_break("scalar: halves are rounded away from zero" simd/scalar.inc.hpp
    [==[RESIDUA_LANE_INLINE float round1(float a) { return __builtin_rintf(a); }]==]
    [==[RESIDUA_LANE_INLINE float round1(float a) { return __builtin_roundf(a); }]==]
    "lanes_test.scalar_avx2 kernels_test")
residua_break("scalar: a float is cut off, not rounded" simd/scalar.inc.hpp
    [==[r.v[i] = static_cast<float>(a.lo.v[i]);]==]
    [==[{
            r.v[i] = static_cast<float>(a.lo.v[i]);
            if (__builtin_fabs(static_cast<double>(r.v[i])) > __builtin_fabs(a.lo.v[i])) {
                r.v[i] = __builtin_bit_cast(float, __builtin_bit_cast(std::uint32_t, r.v[i]) - 1);
            }
        }]==]
    "operations_test storage_test")

# --- lanes: Highway's adapter -----------------------------------------------------------------------------------

residua_break("vectors: min with its operands swapped" simd/highway.inc.hpp
    [==[return {hn::Min(a.v, b.v)};]==] [==[return {hn::Min(b.v, a.v)};]==]
    "operations_test" vectors)
residua_break("vectors: max with its operands swapped" simd/highway.inc.hpp
    [==[return {hn::Max(a.v, b.v)};]==] [==[return {hn::Max(b.v, a.v)};]==]
    "operations_test" vectors)
residua_break("vectors: fma rounds twice" simd/highway.inc.hpp
    [==[return {hn::MulAdd(a.v, b.v, c.v)};]==] [==[return a * b + c;]==]
    "operations_test" vectors)
residua_break("vectors: a product may be fused with a sum" simd/highway.inc.hpp
    [==[    keep_product(product.raw);
]==] [==[]==]
    "operations_test lanes_test.highway" vectors)
residua_break("vectors: a part of a vector is loaded whole" simd/highway.inc.hpp
    [==[return {hn::MaskedLoad(hn::FirstN(tag<T>{}, static_cast<std::size_t>(n)), tag<T>{}, p)};]==]
    [==[return {hn::IfThenElseZero(hn::FirstN(tag<T>{}, static_cast<std::size_t>(n)), hn::LoadU(tag<T>{}, p))};]==]
    "operations_test" vectors)
residua_break("vectors: a part of a vector is stored whole" simd/highway.inc.hpp
    [==[hn::BlendedStore(v, hn::FirstN(tag<T>{}, static_cast<std::size_t>(n)), tag<T>{}, p);]==]
    [==[if (n > 0) hn::StoreU(v, tag<T>{}, p);]==]
    "operations_test" vectors)
residua_break("vectors: the halves of a narrowed vector swapped" simd/highway.inc.hpp
    [==[hn::DemoteTo(half, a.hi.v), hn::DemoteTo(half, a.lo.v)]==]
    [==[hn::DemoteTo(half, a.lo.v), hn::DemoteTo(half, a.hi.v)]==]
    "operations_test" vectors)

residua_break("vectors: the other of every two elements" simd/highway.inc.hpp
    [==[hn::ConcatEven(]==] [==[hn::ConcatOdd(]==]
    "operations_test ffn_test lanes_test.highway" vectors)
residua_break("vectors: a converted NaN keeps its payload" simd/highway.inc.hpp
    [==[hn::Set(half_tag{}, std::uint16_t{0x7e00})]==] [==[hn::Set(half_tag{}, std::uint16_t{0x7fff})]==]
    "lanes_test.highway" vectors)
residua_break("vectors: the element behind the last of every second" kernels/walks.inc.hpp
    [==[const std::size_t whole = n - (alternate && n > 0 ? 1 : 0);]==] [==[const std::size_t whole = n;]==]
    "operations_test ffn_test" vectors)
residua_break("vectors: bfloat16 at odd places is not rounded" kernels/walks.inc.hpp
    [==[bfloat16_in_upper_half(second)]==] [==[to_bits(second)]==]
    "operations_test kernels_test" vectors)
residua_break("vectors: rows of bfloat16 are split beside one that is not" kernels/walks.inc.hpp
    [==[by_parity && (in[i].lies == layout::bfloat16 || in[i].lies == layout::ones)]==]
    [==[by_parity && in[i].lies != layout::other]==]
    "operations_test kernels_test" vectors)

# --- walks along a row ------------------------------------------------------------------------------------------

residua_break("maps skip the tail" kernels/walks.inc.hpp
    [==[if (rest > 0) part_of_vector<T, Out, In>]==] [==[if (n == 0) part_of_vector<T, Out, In>]==]
    "kernels_test operations_test")
residua_break("sums skip the tail" kernels/walks.inc.hpp
    [==[copy_rest(copies[i], in[i] + (n - rest), rest);]==] [==[copy_rest(copies[i], in[i] + (n - rest), 0);]==]
    "kernels_test operations_test")
residua_break("one block too few" kernels/walks.inc.hpp
    [==[    for (std::size_t j = from; j < n; j += block<T>) {
        const std::size_t m = n - j < block<T> ? n - j : block<T>;
        for (std::size_t i = 0; i < In; ++i) in_pointers[i] = read[i].read(in[i], j, m);]==]
    [==[    for (std::size_t j = from; j + (n > block<T> ? block<T> : 0) < n; j += block<T>) {
        const std::size_t m = n - j < block<T> ? n - j : block<T>;
        for (std::size_t i = 0; i < In; ++i) in_pointers[i] = read[i].read(in[i], j, m);]==]
    "operations_test storage_test")
residua_break("the stride of an input is taken for bytes" kernels/walks.inc.hpp
    [==[(elements << log2_of_size(operand.type));]==] [==[(elements << 0);]==]
    "operations_test kernels_test")
residua_break("an interleaved operand is read as if it were not" kernels/walks.inc.hpp
    [==[static_cast<const S*>(s.self) + j * s.step;]==] [==[static_cast<const S*>(s.self) + j;]==]
    "ffn_test operations_test")
residua_break("an output is cleared before its inputs are read" kernels/walks.inc.hpp
    [==[    std::size_t j = down ? n - step : 0;]==]
    [==[    for (std::size_t k = 0; k < n; ++k) y[0][k] = T(0);
    std::size_t j = down ? n - step : 0;]==]
    "operations_test kernels_test")
residua_break("a long row loses what comes before its first line" kernels/walks.inc.hpp
    [==[part_of_vector<T, Out, In>(f, op, 0, first, out, in);]==] [==[(void)first;]==]
    "kernels_test operations_test norms_test")
residua_break("a walk from the end skips the beginning" kernels/walks.inc.hpp
    [==[for (std::size_t left = n / step; left > 0; --left, j += next)]==]
    [==[for (std::size_t left = n / step - (down && n > step ? 1 : 0); left > 0; --left, j += next)]==]
    "kernels_test operations_test norms_test")
residua_break("the second output of a block is not written back" kernels/walks.inc.hpp
    [==[if (!y[i].is_direct()) y[i].drain(y[i], j, m, written[i].data);]==]
    [==[if (i == 0 && !y[i].is_direct()) y[i].drain(y[i], j, m, written[i].data);]==]
    "operations_test ffn_test")
residua_break("two of four vectors are lost" kernels/walks.inc.hpp
    [==[return first + second;]==] [==[return second;]==]
    "kernels_test norms_test")
residua_break("the blocks of a sum are in memory of all threads" kernels/walks.inc.hpp
    [==[    block_buffer<T> buffers[In];
    const T* pointers[In];
    for (; j < n; j += block<T>) {]==]
    [==[    static block_buffer<T> buffers[In];
    const T* pointers[In];
    for (; j < n; j += block<T>) {]==]
    "operations_test")
residua_break("a sum forgets its blocks but the last" kernels/walks.inc.hpp
    [==[total = total + terms_of_groups<T>(op, m - rest, pointers,]==]
    [==[total = terms_of_groups<T>(op, m - rest, pointers,]==]
    "kernels_test operations_test")

residua_break("a row that is streamed loses its last piece" kernels/walks.inc.hpp
    [==[for (std::size_t j = 0; j < n; j += m, m = piece) {]==]
    [==[for (std::size_t j = 0; j + m <= n; j += m, m = piece) {]==]
    "operations_test")
residua_break("each piece that is streamed is made of the row's beginning" kernels/walks.inc.hpp
    [==[            rest.self = bytes_at(row.self) + first * row.bytes();
        }]==]
    [==[            rest.self = bytes_at(row.self) + 0 * first * row.bytes();
        }]==]
    "operations_test")
residua_break("a piece that is streamed reads a computed row from its beginning" kernels/walks.inc.hpp
    [==[self.row.fill(self.row, self.first + j, m, buffer);]==] [==[self.row.fill(self.row, j, m, buffer);]==]
    "operations_test")
residua_break("what lies before the first line is not streamed" kernels/walks.inc.hpp
    [==[__builtin_memcpy(y, x, before);]==] [==[__builtin_memcpy(y, x, before - before);]==]
    "operations_test")
residua_break("what lies behind the last line is not streamed" kernels/walks.inc.hpp
    [==[__builtin_memcpy(y, x, static_cast<std::size_t>(end - x));]==]
    [==[__builtin_memcpy(y, x, static_cast<std::size_t>(end - end));]==]
    "operations_test")
residua_break("the second output of a streamed piece is lost" kernels/walks.inc.hpp
    [==[if (streams[i]) stream_bytes(bytes_at(y[i].self)]==]
    [==[if (streams[i] && i == 0) stream_bytes(bytes_at(y[i].self)]==]
    "operations_test")
residua_break("a row that is streamed is fetched ahead by loads" kernels/walks.inc.hpp
    [==[__builtin_prefetch(from + j, 0, 2);]==]
    [==[static_cast<void>(*static_cast<const volatile unsigned char*>(from + j));]==]
    "operations_test")
residua_break("an output for the caches is streamed" kernels/arguments.hpp
    [==[if (r.stores == store::streaming) return true;]==] [==[if (r.stores != store::automatic) return true;]==]
    "storage_test")
residua_break("a small output is streamed" kernels/arguments.hpp
    [==[bytes >= moderate && bytes >= last_level_cache();]==] [==[bytes >= moderate;]==]
    "storage_test")

# --- elementary functions ---------------------------------------------------------------------------------------

residua_break("exp: clamped where it still counts" simd/elementary.inc.hpp
    [==[static constexpr float exp_reach = 120.0f;]==] [==[static constexpr float exp_reach = 88.0f;]==]
    "elementary_test kernels_test")
residua_break("exp: a NaN is clamped" simd/elementary.inc.hpp
    [==[exp_terms_of(min(V::broadcast(reach), max(V::broadcast(-reach), x)), tail,]==]
    [==[exp_terms_of(min(max(x, V::broadcast(-reach)), V::broadcast(reach)), tail,]==]
    "elementary_test kernels_test")
residua_break("exp: ln 2 in one part" simd/elementary.inc.hpp
    [==[const V without_tail = fma(n, V::broadcast(-c::ln2_lo), exact);]==] [==[const V without_tail = exact;]==]
    "elementary_test kernels_test")
residua_break("exp: one coefficient is off in its last digits" simd/elementary.inc.hpp
    [==[0x1.555502p-5f, 0x1.110fc2p-7f]==] [==[0x1.555c02p-5f, 0x1.110fc2p-7f]==]
    "elementary_test kernels_test")
residua_break("polynomials round twice" simd/elementary.inc.hpp
    [==[return fma(polynomial<K + 1>(x, c), x, V::broadcast(c[K]));]==]
    [==[return polynomial<K + 1>(x, c) * x + V::broadcast(c[K]);]==]
    "lanes_test.scalar_avx2")
residua_break("exp of a difference: its rounding is dropped" simd/elementary.inc.hpp
    [==[select(abs(d) < reach, wrong, zero<V>())]==] [==[select(abs(d) < reach, wrong * zero<V>(), zero<V>())]==]
    "kernels_test streams_test")
residua_break("exp of a difference: a NaN becomes a number" simd/elementary.inc.hpp
    [==[return select(d == d, y, d);]==] [==[return y;]==]
    "kernels_test cases_test operations_test")
residua_break("exp of a difference: its rounding counts beyond the reach" simd/elementary.inc.hpp
    [==[select(abs(d) < reach, wrong, zero<V>())]==] [==[finite_tail(select(abs(d) < reach, wrong, wrong))]==]
    "kernels_test operations_test")
residua_break("sigmoid, precise: what the exponential's roundings took is lost" simd/logistic.inc.hpp
    [==[fma(e.low, p, missed)};]==] [==[fma(e.low - e.low, p, missed)};]==]
    "elementary_test ffn_test")
residua_break("sigmoid, precise: what is lost where 1 and e^-x are far apart" simd/logistic.inc.hpp
    [==[fma(e.low, p, missed)};]==] [==[fma(e.low, p, missed - missed)};]==]
    "elementary_test")
residua_break("sigmoid, precise: the rounding of the quotient is lost" simd/logistic.inc.hpp
    [==[too_much = too_much - fma(-quotient, divisor.hi, n);]==] [==[too_much = too_much - zero<V>();]==]
    "elementary_test ffn_test")
residua_break("sigmoid: what the rounding of the divisor took is lost" simd/logistic.inc.hpp
    [==[return {d, fma(m, p, unit - (d - p))};]==] [==[return {d, zero<V>()};]==]
    "elementary_test ffn_test")
residua_break("swiglu: what the rounding of the product took is lost" simd/logistic.inc.hpp
    [==[logistic_product<A, true>(product, fma(-x, b, product),]==] [==[logistic_product<A, true>(product, zero<V>(),]==]
    "ffn_test kernels_test")
residua_break("swiglu: a quotient of -0 becomes 0" simd/logistic.inc.hpp
    [==[return from_bits(to_bits(y) | (to_bits(n) & to_bits(V::broadcast(scalar<V>(-0.0)))));]==] [==[return y;]==]
    "ffn_test kernels_test operations_test")
residua_break("silu: -infinity times 0" simd/logistic.inc.hpp
    [==[factor = max(V::broadcast(-format<scalar<V>>::largest), factor);]==] [==[factor = factor + zero<V>();]==]
    "kernels_test elementary_test cases_test")
residua_break("silu: far below zero as near it" simd/logistic.inc.hpp
    [==[if (all(is_in_range<A>(of.x, product, -constants<scalar<V>>::normal_exp_reach)))]==]
    [==[if (all(is_in_range<A>(of.x, product, anywhere<V>)))]==]
    "elementary_test kernels_test ffn_test")
residua_break("silu: as far below zero as it gets" simd/logistic.inc.hpp
    [==[max(V::broadcast(-c::logistic_reach), of.x)]==] [==[of.x]==]
    "elementary_test kernels_test ffn_test")
residua_break("silu: very low as low" simd/logistic.inc.hpp
    [==[select_bits(very_low, U::broadcast(c::very_low_steps), U::broadcast(c::low_steps))]==]
    [==[select_bits(very_low, U::broadcast(c::low_steps), U::broadcast(c::low_steps))]==]
    "elementary_test kernels_test ffn_test")
residua_break("gpt_oss_swiglu: an infinite up with what its sum with 1 rounds" simd/logistic.inc.hpp
    [==[finite_tail(V::load(b_low_at))]==] [==[V::load(b_low_at)]==]
    "ffn_test")
residua_break("silu: a subnormal result is 0" simd/elementary.inc.hpp
    [==[from_bits(to_bits(size + least) - to_bits(least))]==] [==[from_bits(to_bits(least) - to_bits(least))]==]
    "elementary_test kernels_test ffn_test")
residua_break("gpt_oss_swiglu: what the rounding of a huge product takes" simd/logistic.inc.hpp
    [==[const V tail = select(counts, fma(slope, x, -u), zero<V>());]==]
    [==[const V tail = select(counts, fma(slope, x, -u), finite_tail(fma(slope, x, -u)));]==]
    "ffn_test")
residua_break("silu: products out of range are not computed again" simd/logistic.inc.hpp
    [==[< x + (product - product);]==] [==[< x;]==]
    "ffn_test kernels_test operations_test")
residua_break("silu of double: the last power of two is lost" simd/logistic.inc.hpp
    [==[const V n = (a_parts.n + b_parts.n) + select(low, e.n, zero<V>());]==] [==[const V n = a_parts.n + b_parts.n;]==]
    "elementary_test kernels_test ffn_test")
residua_break("log: a subnormal number as it is" simd/elementary.inc.hpp
    [==[const V scaled = select(subnormal, x * V::broadcast(f::whole), x);]==] [==[const V scaled = x;]==]
    "kernels_test elementary_test")
residua_break("log: a negative number has one" simd/elementary.inc.hpp
    [==[return select(x < zero<V>(), V::broadcast(T(__builtin_nan(""))), y);]==] [==[return y;]==]
    "kernels_test elementary_test")
residua_break("tanh: the sign is lost" simd/elementary.inc.hpp
    [==[return copysign(base + numerator / fma(k, E, k + k), x);]==] [==[return base + numerator / fma(k, E, k + k);]==]
    "kernels_test elementary_test")
residua_break("cos: the wrong quarter is negative" simd/elementary.inc.hpp
    [==[const auto negative = (quarter == V::broadcast(1))]==] [==[const auto negative = (quarter == V::broadcast(-1))]==]
    "kernels_test elementary_test")
residua_break("relu: a NaN becomes 0" kernels/elementary.inc.hpp
    [==[return max(zero<V>(), x);]==] [==[return max(x, zero<V>());]==]
    "elementary_test operations_test")
residua_break("relu: the gradient passes a NaN of x" kernels/elementary.inc.hpp
    [==[select(is_nan(x) | is_nan(v), x + v, masked)]==] [==[select(is_nan(v), x + v, masked)]==]
    "elementary_test operations_test")
residua_break("GELU: the derivative without its own zero" simd/activations.inc.hpp
    [==[return near_zero<accuracy::precise>(
        from_zero(x, zero<V>(), c::gelu_zero), c::near_gelu_zero,
        in_the_middle(x, c::gelu_slope_middle_reach, c::gelu_slope_middle, elsewhere));]==]
    [==[return in_the_middle(x, c::gelu_slope_middle_reach, c::gelu_slope_middle, elsewhere);]==]
    "elementary_test ffn_test")
residua_break("two numbers: the second of a product is lost" simd/elementary.inc.hpp
    [==[return {product, fma(a.hi, b.low, fma(a.low, b.hi, fma(a.hi, b.hi, -product)))};]==]
    [==[return {product, fma(a.hi, b.low, a.low * b.hi)};]==]
    "elementary_test ffn_test")
residua_break("two numbers: what a sum has rounded is lost" simd/elementary.inc.hpp
    [==[return {sum, (a - (sum - of_b)) + (b - of_b)};]==] [==[return {sum, of_b - of_b};]==]
    "elementary_test ffn_test")
residua_break("two numbers: a quotient is not corrected" simd/elementary.inc.hpp
    [==[return {z, fma(-z, b.low, fma(-z, b.hi, a.hi) + a.low) * reciprocal};]==]
    [==[return {z, fma(-z, b.low, a.low) * reciprocal};]==]
    "elementary_test ffn_test")
residua_break("GELU of floats: the derivative without its own zero" simd/of_floats.inc.hpp
    [==[near_gelu_zero_reach = 0x1p-6;]==] [==[near_gelu_zero_reach = 0x1p-60;]==]
    "elementary_test ffn_test")
residua_break("gradients of floats: a small exponential is cut" simd/of_floats.inc.hpp
    [==[double reach = 300.0;]==] [==[double reach = 100.0;]==]
    "elementary_test ffn_test")
residua_break("gradients of floats: silu' has another zero" simd/of_floats.inc.hpp
    [==[silu_zero{-0x1.474973c84120bp0,]==] [==[silu_zero{-0x1.474973c8413p0,]==]
    "elementary_test ffn_test")
residua_break("two numbers: the sign of a zero is lost" simd/activations.inc.hpp
    [==[return copysign(v.hi + finite_tail(v.low), v.hi);]==] [==[return v.hi + finite_tail(v.low);]==]
    "elementary_test ffn_test")
residua_break("two numbers: infinity has a second part" simd/activations.inc.hpp
    [==[return copysign(v.hi + finite_tail(v.low), v.hi);]==] [==[return copysign(v.hi + v.low, v.hi);]==]
    "elementary_test ffn_test operations_test")

# --- norms ------------------------------------------------------------------------------------------------------

residua_break("RMSNorm: eps beside the root" kernels/rms_norm.inc.hpp
    [==[const double r = 1 / __builtin_sqrt(mean + e);]==] [==[const double r = 1 / (__builtin_sqrt(mean) + e);]==]
    "kernels_test norms_test")
residua_break("RMSNorm: eps is not scaled with the row" kernels/rms_norm.inc.hpp
    [==[const double scaled = times_pow2(eps, 2 * exponent);]==] [==[const double scaled = times_pow2(eps, exponent);]==]
    "kernels_test norms_test")
residua_break("RMSNorm: the mean over one too few" kernels/rms_norm.inc.hpp
    [==[double mean = squares.value / static_cast<double>(count);]==]
    [==[double mean = squares.value / static_cast<double>(count > 1 ? count - 1 : count);]==]
    "kernels_test norms_test")
residua_break("RMSNorm: a large row is not scaled" kernels/square_sum.inc.hpp
    [==[|| s > square_range<T>::most)]==] [==[|| s > __builtin_inf())]==]
    "kernels_test norms_test")
residua_break("RMSNorm: a small row is not scaled" kernels/square_sum.inc.hpp
    [==[return static_cast<double>(n) * square_range<T>::least;]==] [==[return 0 * static_cast<double>(n);]==]
    "kernels_test norms_test")
residua_break("RMSNorm: few large elements are left to float" kernels/square_sum.inc.hpp
    [==[if (any(Total::broadcast(]==] [==[if (n == 0 && any(Total::broadcast(]==]
    "norms_test")
residua_break("RMSNorm's gradient: of a large weight beyond the range" kernels/rms_norm.inc.hpp
    [==[if (largest >= 0x1p-60 && largest <= 0x1p60) return 0;]==] [==[if (largest >= 0) return 0;]==]
    "norms_test")
residua_break("RMSNorm's derivative: out of range before the factor" kernels/rms_norm.inc.hpp
    [==[const int of_factor = When == factors::last ? beyond : 0;]==] [==[const int of_factor = 0 * beyond;]==]
    "norms_test")
residua_break("RMSNorm: a large eps does not keep a small row from being scaled" kernels/rms_norm.inc.hpp
    [==[        if (of_eps < exponent) {]==] [==[        if (of_eps < exponent && exponent == 0) {]==]
    "kernels_test norms_test operations_test")
residua_break("RMSNorm: 1 + w without the 1" kernels/rms_norm.inc.hpp
    [==[kind == norm_weight::zero_centered ? T(1) : T(-0.0)]==] [==[kind == norm_weight::zero_centered ? T(0) : T(-0.0)]==]
    "kernels_test norms_test")
residua_break("RMSNorm: 1 + w is rounded" kernels/rms_norm.inc.hpp
    [==[centered ? fma(x, w, x) : x * w]==] [==[centered ? x * (w + V::broadcast(1)) : x * w]==]
    "norms_test")
residua_break("RMSNorm: a row that is tiny beside eps is taken as it is" kernels/rms_norm.inc.hpp
    [==[if (sum * 0x1p160 < mean + e && sum > 0]==] [==[if (sum * 0x1p160 < mean + e && sum < 0]==]
    "norms_test")
residua_break("RMSNorm's gradient: squares of another row" kernels/rms_norm.inc.hpp
    [==[return {fma(x, x, acc.first), product]==] [==[return {fma(a, x, acc.first), product]==]
    "norms_test")
residua_break("RMSNorm: never rounded before the weight" kernels/rms_norm.inc.hpp
    [==[const bool once = rounding == norm_rounding::once;]==]
    [==[const bool once = rounding == norm_rounding::once || n > 0;]==]
    "storage_test norms_test")
residua_break("RMSNorm's gradient: the sign of the second term" kernels/rms_norm.inc.hpp
    [==[V::broadcast(-mean), a)]==] [==[V::broadcast(mean), a)]==]
    "kernels_test norms_test")
residua_break("RMSNorm's gradient: no second term" kernels/rms_norm.inc.hpp
    [==[fma(xh, V::broadcast(-mean), a)]==] [==[fma(xh, V::broadcast(-mean * T(0)), a)]==]
    "kernels_test norms_test")
residua_break("RMSNorm's gradient: 1 + w is w" kernels/rms_norm.inc.hpp
    [==[const V factor = w + V::broadcast(offset);]==] [==[const V factor = w;]==]
    "kernels_test norms_test")
residua_break("weight gradients: never overwritten" kernels/rms_norm.inc.hpp
    [==[if (dw.data != nullptr && mode == weight_gradient::overwrite)]==]
    [==[if (dw.data != nullptr && n == 0 && mode == weight_gradient::overwrite)]==]
    "kernels_test norms_test operations_test")
residua_break("weight gradients: never accumulated" kernels/rms_norm.inc.hpp
    [==[if (dw.data != nullptr && mode == weight_gradient::overwrite)]==]
    [==[if (dw.data != nullptr && (n > 0 || mode == weight_gradient::overwrite))]==]
    "kernels_test norms_test operations_test")
residua_break("weight gradients: of x and not of x r" kernels/rms_norm.inc.hpp
    [==[return fma(dy, V::broadcast(r) * x, dw);]==] [==[return fma(dy, x, dw);]==]
    "kernels_test norms_test")
residua_break("sums of products: brought to the power of two of the other part" kernels/rms_norm.inc.hpp
    [==[times_pow2(part.value, least - part.exponent)]==] [==[times_pow2(part.value, part.exponent - least)]==]
    "norms_test")
residua_break("sums of squares: combined from the last" kernels/square_sum.inc.hpp
    [==[for (std::size_t i = 0; i < count; ++i) total = plus(total, parts[i]);]==]
    [==[for (std::size_t i = count; i > 0; --i) total = plus(total, parts[i - 1]);]==]
    "norms_test")
residua_break("sums of squares: the square's power of two once" kernels/square_sum.inc.hpp
    [==[times_pow2(other.value, 2 * (sum.exponent - other.exponent))]==]
    [==[times_pow2(other.value, sum.exponent - other.exponent)]==]
    "norms_test kernels_test")
residua_break("sums of squares: at the power of two of the smaller part" kernels/square_sum.inc.hpp
    [==[(a.value == 0 || b.exponent < a.exponent)]==] [==[(a.value == 0 || b.exponent > a.exponent)]==]
    "norms_test kernels_test")
residua_break("rms: its power of two the wrong way" kernels/square_sum.inc.hpp
    [==[times_pow2(__builtin_sqrt(mean), -total.exponent)]==] [==[times_pow2(__builtin_sqrt(mean), total.exponent)]==]
    "kernels_test norms_test probe_test")
residua_break("LayerNorm: the mean in one part" kernels/layer_norm.inc.hpp
    [==[return {high, sum_row(add{}, n, rest.as_source()) / count};]==]
    [==[return {high, sum_row(add{}, n, rest.as_source()) * 0 / count};]==]
    "norms_test")
residua_break("LayerNorm: no bias" kernels/layer_norm.inc.hpp
    [==[        if (b.data == nullptr) {]==] [==[        if (n > 0) {]==]
    "norms_test")
residua_break("LayerNorm's derivative: the tangent is not centred" kernels/layer_norm.inc.hpp
    [==[const auto along = centered.as_source();]==] [==[const auto along = from<double>(tx, i);]==]
    "norms_test")
residua_break("LayerNorm's derivative: not along the bias" kernels/layer_norm.inc.hpp
    [==[if (tb.data == nullptr) {]==] [==[if (tb.data == nullptr || n > 0) {]==]
    "norms_test")
residua_break("derivatives of norms: not along the weight" kernels/rms_norm.inc.hpp
    [==[if (tw.data == nullptr) return target.write(op, n, in...);]==]
    [==[if (tw.data == nullptr || n > 0) return target.write(op, n, in...);]==]
    "norms_test")
residua_break("derivatives of norms: the weight's tangent times x and not x r" kernels/rms_norm.inc.hpp
    [==[out = fma(xh, tw..., out);]==] [==[out = fma(x, tw..., out);]==]
    "norms_test")
residua_break("the sum before the norm: its gradient forgets the stream" kernels/add_rms_norm.inc.hpp
    [==[const V sum = dresidual_out + through_norm;]==]
    [==[const V sum = dresidual_out * V::broadcast(0) + through_norm;]==]
    "norms_test")
residua_break("the sum before the norm: stored and exact swapped" kernels/add_rms_norm.inc.hpp
    [==[if (which == norm_of::stored) {]==] [==[if (which != norm_of::stored) {]==]
    "norms_test operations_test")
residua_break("gated norm: silu for the derivative of silu" kernels/gated_rms_norm.inc.hpp
    [==[return value(Gate{}.slope(z) * a * b);]==] [==[return value(Gate{}.exact(z) * a * b);]==]
    "norms_test")
residua_break("gated norm: not stored between the weight and the gate" kernels/gated_rms_norm.inc.hpp
    [==[const element stored = alike ? x.type]==] [==[const element stored = alike && n == 0 ? x.type]==]
    "norms_test")
residua_break("gated norm: gate first, never rounded before the weight" kernels/gated_rms_norm.inc.hpp
    [==[row.scale, rounding, x.type);]==] [==[row.scale, norm_rounding::once, x.type);]==]
    "norms_test")
residua_break("gated norm: a large row is not scaled" kernels/gated_rms_norm.inc.hpp
    [==[product.n = product.n + V::broadcast(exponent);]==] [==[product.n = product.n + V::broadcast(0);]==]
    "norms_test operations_test")

# --- softmax ----------------------------------------------------------------------------------------------------

residua_break("softmax: the largest element is not subtracted" kernels/softmax.inc.hpp
    [==[const T most = largest_of(itself{}, row, n);]==] [==[const T most = largest_of(itself{}, row, n) * T(0);]==]
    "kernels_test cases_test")
residua_break("softmax: the tail of the largest element is filled with zeros" kernels/walks.inc.hpp
    [==[rest[i] = p[k + i < m ? k + i : k];]==] [==[rest[i] = k + i < m ? p[k + i] : T(0);]==]
    "kernels_test cases_test operations_test")
residua_break("softmax's gradient: the sign of the sum" kernels/softmax.inc.hpp
    [==[const V rest = a - V::broadcast(sum);]==] [==[const V rest = a + V::broadcast(sum);]==]
    "streams_test operations_test")
residua_break("softmax's gradient: a large one is not scaled" kernels/softmax.inc.hpp
    [==[if (!(size >= 0x1p-900 && size <= 0x1p960)) up =]==] [==[if (n == 0 && size > 0) up =]==]
    "streams_test operations_test")

# --- gated activations ------------------------------------------------------------------------------------------

residua_break("a gate clamped from above: a NaN is clamped" kernels/swiglu.inc.hpp
    [==[    return min(limit, x);
}
template <class V>
RESIDUA_LANE_INLINE V on_both]==]
    [==[    return min(x, limit);
}
template <class V>
RESIDUA_LANE_INLINE V on_both]==]
    "ffn_test cases_test")
residua_break("a gate clamped from below" kernels/swiglu.inc.hpp
    [==[    return min(limit, x);
}
template <class V>
RESIDUA_LANE_INLINE V on_both]==]
    [==[    return max(-limit, x);
}
template <class V>
RESIDUA_LANE_INLINE V on_both]==]
    "ffn_test cases_test")
residua_break("up clamped on one side" kernels/swiglu.inc.hpp
    [==[return max(-limit, min(limit, x));]==] [==[return min(limit, x);]==]
    "ffn_test cases_test")
residua_break("GPT-OSS: no 1 is added" kernels/swiglu.inc.hpp
    [==[return exact_sum(clamped_up<T>::factor(up), V::broadcast(1));]==]
    [==[return exact_sum(clamped_up<T>::factor(up), V::broadcast(0));]==]
    "ffn_test cases_test")
residua_break("GPT-OSS: alpha is 1" kernels/swiglu.inc.hpp
    [==[clamped_factor<silu_factor_of<T, A>, T>{x, silu_factor_of<T, A>{z}}]==]
    [==[clamped_factor<silu_factor_of<T, A>, T>{x, silu_factor_of<T, A>{z * T(0) + T(1)}}]==]
    "ffn_test cases_test")
residua_break("clamped gate: no gradient at equality" kernels/swiglu.inc.hpp
    [==[return gate <= V::broadcast(scalar<V>(limit));]==]
    [==[return gate < V::broadcast(scalar<V>(limit));]==]
    "ffn_test cases_test")
residua_break("clamped up: the gradient passes everywhere" kernels/swiglu.inc.hpp
    [==[return abs(up) <= V::broadcast(scalar<V>(limit));]==]
    [==[return abs(up) <= V::broadcast(scalar<V>(limit * T(__builtin_inf())));]==]
    "ffn_test cases_test")
residua_break("ReGLU: the gradient passes at 0" kernels/swiglu.inc.hpp
    [==[        return zero<V>() < gate;]==] [==[        return zero<V>() <= gate;]==]
    "ffn_test cases_test")
residua_break("gated gradients: a NaN does not reach both" kernels/swiglu.inc.hpp
    [==[return {nan_where(bad, value(dgate)), nan_where(bad, value(dup))};]==]
    [==[return {nan_where(bad, value(dgate)), value(dup)};]==]
    "ffn_test operations_test")
residua_break("gated gradients of floats: a NaN of up does not reach both" kernels/swiglu.inc.hpp
    [==[select(up.as_float == up.as_float, y.second, bad)]==]
    [==[select(up.as_float == up.as_float, y.second, y.second)]==]
    "ffn_test operations_test")
residua_break("gated gradients of floats: a mask lets a NaN vanish" kernels/swiglu.inc.hpp
    [==[return {nan_where(bad, y.first), nan_where(bad, y.second)};]==]
    [==[return {nan_where(bad, y.first), y.second};]==]
    "ffn_test operations_test")
residua_break("gated derivatives: the tangent of up is lost" kernels/swiglu.inc.hpp
    [==[return nan_where(bad, value(of_gate + of_up));]==] [==[return nan_where(bad, value(of_gate + masked(up < up, of_up)));]==]
    "ffn_test")
residua_break("SiTU: a small argument loses bits" kernels/swiglu.inc.hpp
    [==[abs(q.hi) < V::broadcast(0x1p-28)]==] [==[abs(q.hi) < V::broadcast(0)]==]
    "ffn_test operations_test")

# --- residual streams -------------------------------------------------------------------------------------------

residua_break("residual: two roundings" kernels/residual.inc.hpp
    [==[return fma(V::broadcast(scale), f, x);]==] [==[return V::broadcast(scale) * f + x;]==]
    "kernels_test streams_test operations_test")
residua_break("residual's gradient: f without its scale" kernels/residual.inc.hpp
    [==[return {dy, V::broadcast(scale) * dy};]==] [==[return {dy, V::broadcast(scale - scale + 1) * dy};]==]
    "streams_test kernels_test operations_test")
residua_break("streams: the matrix is transposed" kernels/streams.inc.hpp
    [==[*next++ = row[m.by_source ? i * m.to + j : j * m.from + i];]==]
    [==[*next++ = row[!m.by_source ? i * m.to + j : j * m.from + i];]==]
    "streams_test operations_test")
residua_break("streams: no way back from overflow" kernels/combine.inc.hpp
    [==[if (all_finite(sums, a.outputs, m)) {]==] [==[if (m > 0 || all_finite(sums, a.outputs, m)) {]==]
    "streams_test operations_test")
residua_break("streams: a sum begins with 0" kernels/combine.inc.hpp
    [==[V::broadcast(scalar<V>(-0.0))]==] [==[V::broadcast(scalar<V>(0.0))]==]
    "streams_test operations_test")
residua_break("streams: the products of a block replace those before" kernels/combine.inc.hpp
    [==[products[o * b_count + i] += sum(]==] [==[products[o * b_count + i] = sum(]==]
    "streams_test operations_test")
residua_break("gradients of coefficients: never accumulated" kernels/combine.inc.hpp
    [==[sums[i] = add ? sums[i] + values[i] : values[i];]==] [==[sums[i] = add ? values[i] : values[i];]==]
    "streams_test operations_test")
residua_break("mHC: one normalisation too few" kernels/mhc.inc.hpp
    [==[        if (r > 1) {
            u = normalized(u, v_now, x.k_transposed, n, q.eps);]==]
    [==[        if (r > 2) {
            u = normalized(u, v_now, x.k_transposed, n, q.eps);]==]
    "streams_test")
residua_break("mHC: no eps in the softmax" kernels/mhc.inc.hpp
    [==[x.k[i * most_streams + j] = p[j] + q.eps;]==] [==[x.k[i * most_streams + j] = p[j];]==]
    "streams_test")
residua_break("mHC: the sign of a normalisation's gradient" kernels/mhc.inc.hpp
    [==[const V ds = -(d_after * after) * after;]==] [==[const V ds = (d_after * after) * after;]==]
    "streams_test")
residua_break("Gated Residual: the gate without its 2" kernels/gated_residual.inc.hpp
    [==[store(gates, two_of_it * sigmoid(load_streams(row)));]==] [==[store(gates, sigmoid(load_streams(row)));]==]
    "streams_test")
residua_break("Gated Residual: a sum and no mean" kernels/gated_residual.inc.hpp
    [==[map_block(divided_by{static_cast<double>(streams)}, m]==] [==[map_block(divided_by{1}, m]==]
    "streams_test")
residua_break("AttnRes: the keys are not normalised" kernels/attn_res.inc.hpp
    [==[    keep_product(s);
    return {times_pow2(scale.r, scale.exponent), s};]==]
    [==[    s /= scale.r;
    keep_product(s);
    return {times_pow2(scale.r, scale.exponent), s};]==]
    "streams_test")
residua_break("AttnRes: the gradient of the softmax without its mean" kernels/attn_res.inc.hpp
    [==[to_q[i] = (weights[i] * (products[i] - mean)) * score.r;]==]
    [==[to_q[i] = (weights[i] * (products[i] - 0 * mean)) * score.r;]==]
    "streams_test")

# --- matrices ---------------------------------------------------------------------------------------------------

residua_break("matrices: the columns past a vector are skipped" kernels/matvec.inc.hpp
    [==[if (j < w.columns) column_tail<V>(y[t], w, x[t], j);]==] [==[if (j > w.columns) column_tail<V>(y[t], w, x[t], j);]==]
    "kernels_test")
residua_break("matrices: a dot product of the first row alone" kernels/matvec.inc.hpp
    [==[for (std::size_t i = 0; i < x.count; ++i) s += dot_in_memory(x[i], y[i], x.columns);]==]
    [==[for (std::size_t i = 0; i < 1; ++i) s += dot_in_memory(x[i], y[i], x.columns);]==]
    "kernels_test probe_test")
