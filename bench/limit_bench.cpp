// The physical limits: as many bytes read and written as an operation has to, and nothing computed but their sum. Written
// through the cache, or past it with non-temporal stores.
#include "contender.hpp"

#if defined(BENCH_OPERATIONS)

namespace bench {
namespace {

template <std::size_t reads, std::size_t updates, std::size_t writes>
void reference(const reference_row& r)
{
    for (std::size_t j = 0; j < r.columns; ++j) {
        double sum = updates == 0 ? 0 : r.out[0][j];
        for (std::size_t k = 0; k < reads; ++k) sum += r.in[k][j];
        for (std::size_t k = 0; k < writes; ++k) r.out[k][j] = sum;
    }
}

template <std::size_t reads, std::size_t updates, std::size_t writes>
void add_limit(const char* name)
{
    add(operation{.name = name,
                  .reads = reads,
                  .writes = writes,
                  .updates = updates,
                  .limit = name,
                  .reference = reference<reads, updates, writes>});
}

}  // namespace

void BENCH_ENTRY()
{
    add_limit<1, 0, 0>("read");
    add_limit<1, 0, 1>("copy");
    add_limit<2, 0, 1>("triad");
    add_limit<1, 1, 1>("update");
    add_limit<1, 1, 2>("update_and_copy");
    add_limit<3, 0, 2>("three_to_two");
}

}  // namespace bench

#elif defined(BENCH_HAND)

#include "hand.hpp"

#if defined(__x86_64__)
#define BENCH_USE(x) asm volatile("" ::"x"(x))
#else
#define BENCH_USE(x) asm volatile("" ::"w"(x))
#endif

namespace bench {
namespace {

template <std::size_t reads, std::size_t updates, std::size_t writes, bool past_the_cache>
struct moved {
    /// One register of each operand.
    BENCH_INLINE static void step(const row_of<float>& r, std::size_t j)
    {
        vector sum = load(r.in[0] + j);
        for (std::size_t k = 1; k < reads; ++k) sum = sum + load(r.in[k] + j);
        if constexpr (updates > 0) sum = sum + load(r.out[0] + j);
        if constexpr (writes == 0) BENCH_USE(sum.r);
        for (std::size_t k = 0; k < writes; ++k) {
            if constexpr (past_the_cache) {
                stream_native(r.out[k] + j, sum.r);
            } else {
                store_native(r.out[k] + j, sum.r);
            }
        }
    }

    template <class T>
    static void row(const row_of<T>& r)
    {
        std::size_t j = 0;
        for (; j + 4 * vector::size <= r.columns; j += 4 * vector::size) {
            for (std::size_t k = 0; k < 4; ++k) step(r, j + k * vector::size);
        }
        for (; j + vector::size <= r.columns; j += vector::size) step(r, j);
        for (; j < r.columns; ++j) {
            float sum = updates > 0 ? r.out[0][j] : 0;
            for (std::size_t k = 0; k < reads; ++k) sum += r.in[k][j];
            if constexpr (writes == 0) BENCH_USE(sum);
            for (std::size_t k = 0; k < writes; ++k) r.out[k][j] = sum;
        }
    }
};

/// Rows lie end to end, and an element of 16 bits is half a float: only the bytes count.
template <class Op, std::size_t division>
void moved_bytes(const call& c)
{
    call floats = c;
    floats.rows = 1;
    floats.columns = c.rows * c.columns / division;
    over_rows<Op, float>(floats);
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

template <std::size_t reads, std::size_t updates, std::size_t writes, bool past_the_cache>
void add_limit(const char* name)
{
    using op = moved<reads, updates, writes, past_the_cache>;
    const char* const backend = past_the_cache ? "streaming" : "cached";
    add(contender{name, type::f32, "own", BENCH_TARGET, backend, moved_bytes<op, 1>});
    add(contender{name, type::bf16, "own", BENCH_TARGET, backend, moved_bytes<op, 2>});
    add(contender{name, type::f16, "own", BENCH_TARGET, backend, moved_bytes<op, 2>});
}
template <bool past_the_cache>
void add_limits()
{
    add_limit<1, 0, 1, past_the_cache>("copy");
    add_limit<2, 0, 1, past_the_cache>("triad");
    add_limit<1, 1, 1, past_the_cache>("update");
    add_limit<1, 1, 2, past_the_cache>("update_and_copy");
    add_limit<3, 0, 2, past_the_cache>("three_to_two");
}

}  // namespace

void BENCH_ENTRY()
{
    add_limit<1, 0, 0, false>("read");
    add_limits<false>();
#if defined(__x86_64__)
    add_limits<true>();
#endif
}

}  // namespace bench

#endif
