// What run-time dispatch calls of a pass. The operands are passed by reference: a caller writes one member by member, and
// whoever copied it in larger parts right after that would wait for the stores.

namespace RESIDUA_PASS {
namespace entries {

using input = const operand::input&;
using output = const operand::output&;

#define RESIDUA_ENTRY(result, name, parameters, arguments) \
    template <class T>                                     \
    inline result name parameters                          \
    {                                                      \
        return RESIDUA_PASS::name<T> arguments;            \
    }
#define RESIDUA_ENTRY_WIDE(result, name, parameters, arguments) \
    inline result name parameters { return RESIDUA_PASS::name arguments; }
RESIDUA_KERNELS(RESIDUA_ENTRY)
RESIDUA_WIDE_KERNELS(RESIDUA_ENTRY_WIDE)
#undef RESIDUA_ENTRY_WIDE
#undef RESIDUA_ENTRY

}  // namespace entries
}  // namespace RESIDUA_PASS
