// What is compared: operations, described once each, and contenders, which compute one.
//
// Included by units with flags of their own (an instruction set, -ffast-math), so it has nothing that an object file could
// contain: no function here is both inline and external.
#ifndef RESIDUA_BENCH_BENCH_HPP
#define RESIDUA_BENCH_BENCH_HPP

#include <cstddef>

namespace bench {

enum class type : unsigned char { f32, bf16, f16 };

inline constexpr std::size_t most_operands = 3;

/// Operands of one call: `rows` rows that lie end to end, of `columns` elements each. Where `packed`, in[0] has twice the
/// columns. An operand that is updated is an output.
/// How this library is asked to store.
enum class storing { cached, streaming, automatic };

struct call {
    std::size_t rows, columns;
    bool packed;
    const void* in[most_operands];
    const void* weight;  ///< one element per column
    void* out[most_operands];
    float* weight_gradient;  ///< one element per column
    storing stores;
};

/// One row in the types of the arithmetic of the reference; outputs that are updated hold what they held before.
struct reference_row {
    std::size_t columns;
    const double* in[most_operands];
    const double* weight;
    double* out[most_operands];
    double* weight_gradient;  ///< of this row, to be added
};

struct operation {
    const char* name;
    std::size_t reads = 1;    ///< how many in[] it has
    std::size_t writes = 1;   ///< how many out[] it has, `updates` included
    std::size_t updates = 0;  ///< how many of them, from the first, it also reads
    bool weight = false;
    bool weight_gradient = false;
    bool packed = false;
    const char* limit = nullptr;  ///< the name of the operation that moves as many bytes and computes nothing
    float tiny = 0;               ///< inputs of this size have subnormal results; 0 where that is not measured
    void (*reference)(const reference_row&) = nullptr;
};

struct contender {
    const char* operation;
    type element;
    const char* tier;     ///< "standard" and "precise" are this library's, "own" any other's
    const char* target;   ///< the instruction set
    const char* backend;  ///< who computes
    void (*run)(const call&);
    void (*prepare)() = nullptr;  ///< called before a series of calls
};

/// Called by the units' entries only; may be called in any order.
void add(const operation&);
void add(const contender&);

}  // namespace bench

#endif
