// What run-time dispatch calls of a pass: declared, and defined where the pass is compiled. The operands are passed by
// reference: a caller writes one member by member, and whoever copied it in larger parts right after that would wait for
// the stores.

namespace RESIDUA_PASS {
namespace entries {

using operand::gated_form;
using operand::gated_numbers;
using operand::shape;
using input = const operand::input&;
using output = const operand::output&;

#define RESIDUA_ENTRY(result, name, parameters, arguments) \
    template <class T>                                     \
    result name parameters;
#define RESIDUA_ENTRY_WIDE(result, name, parameters, arguments) result name parameters;
RESIDUA_KERNELS(RESIDUA_ENTRY)
RESIDUA_WIDE_KERNELS(RESIDUA_ENTRY_WIDE)
#undef RESIDUA_ENTRY_WIDE
#undef RESIDUA_ENTRY

#ifdef RESIDUA_PASS_BACKEND
#define RESIDUA_ENTRY(result, name, parameters, arguments) \
    template <class T>                                     \
    result name parameters                                 \
    {                                                      \
        return RESIDUA_PASS::name<T> arguments;            \
    }
#define RESIDUA_ENTRY_WIDE(result, name, parameters, arguments) \
    result name parameters { return RESIDUA_PASS::name arguments; }
RESIDUA_KERNELS(RESIDUA_ENTRY)
RESIDUA_WIDE_KERNELS(RESIDUA_ENTRY_WIDE)
#undef RESIDUA_ENTRY_WIDE
#undef RESIDUA_ENTRY

#define RESIDUA_ENTRY(result, name, parameters, arguments) template result name<T> parameters;
#define T float
RESIDUA_KERNELS(RESIDUA_ENTRY)
#undef T
#define T double
RESIDUA_KERNELS(RESIDUA_ENTRY)
#undef T
#undef RESIDUA_ENTRY
#endif

}  // namespace entries
}  // namespace RESIDUA_PASS
