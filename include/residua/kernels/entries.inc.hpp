// What is called of a pass, in its namespace `entries`: each kernel in an environment in which it gives the promised bits. A
// static pass defines them where they are used; of one that is chosen at run time they are declared, and defined where it
// is compiled. Operands are passed by reference everywhere: a caller writes one member by member, and whoever copied it in
// larger parts right after that would wait for the stores.

namespace RESIDUA_PASS {
namespace entries {

using operand::gated_form;
using operand::gated_numbers;
using operand::shape;
using input = const operand::input&;
using output = const operand::output&;

#ifdef RESIDUA_PASS_IS_STATIC
#define RESIDUA_ENTRY_LINKAGE inline
#else
#define RESIDUA_ENTRY_LINKAGE
#define RESIDUA_ENTRY(result, name, parameters, arguments) \
    template <class T>                                     \
    result name parameters;
#define RESIDUA_ENTRY_WIDE(result, name, parameters, arguments) result name parameters;
RESIDUA_KERNELS(RESIDUA_ENTRY)
RESIDUA_WIDE_KERNELS(RESIDUA_ENTRY_WIDE)
#undef RESIDUA_ENTRY_WIDE
#undef RESIDUA_ENTRY
#endif

#ifdef RESIDUA_PASS_BACKEND
#define RESIDUA_ENTRY_WIDE(result, name, parameters, arguments) \
    RESIDUA_ENTRY_LINKAGE result name parameters                \
    {                                                           \
        compiler::refuse_fast_math();                           \
        const default_modes modes;                              \
        return RESIDUA_PASS_SELF::name arguments;               \
    }
#define RESIDUA_ENTRY(result, name, parameters, arguments) \
    template <class T>                                     \
    RESIDUA_ENTRY_LINKAGE result name parameters           \
    {                                                      \
        compiler::refuse_fast_math();                      \
        const default_modes modes;                         \
        return RESIDUA_PASS_SELF::name<T> arguments;       \
    }
RESIDUA_KERNELS(RESIDUA_ENTRY)
RESIDUA_WIDE_KERNELS(RESIDUA_ENTRY_WIDE)
#undef RESIDUA_ENTRY
#undef RESIDUA_ENTRY_WIDE

#ifndef RESIDUA_PASS_IS_STATIC
#define RESIDUA_ENTRY(result, name, parameters, arguments) template result name<T> parameters;
#define T float
RESIDUA_KERNELS(RESIDUA_ENTRY)
#undef T
#define T double
RESIDUA_KERNELS(RESIDUA_ENTRY)
#undef T
#undef RESIDUA_ENTRY
#endif
#endif
#undef RESIDUA_ENTRY_LINKAGE

}  // namespace entries
}  // namespace RESIDUA_PASS
