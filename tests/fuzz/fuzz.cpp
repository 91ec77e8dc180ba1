// The entry of libFuzzer: any bytes are a call, and a call with a fault ends the program.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "fuzz/any_call.hpp"

namespace {

const std::vector<operations::operation>* static_table()
{
#ifdef RESIDUA_FUZZ_XSIMD
    return &operations::with_xsimd::all();
#else
    return nullptr;
#endif
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const auto call = fuzz::call_of({data, size});
    const auto fault = fuzz::fault_of(call, residua::dispatch::targets(), static_table());
    if (!fault.empty()) {
        std::fprintf(stderr, "%s\n%s\n", fault.c_str(), fuzz::description(call).c_str());
        std::abort();
    }
    return 0;
}
