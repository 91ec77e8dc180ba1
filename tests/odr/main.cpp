// Both units do the same with different instructions: they must agree to the bit. On a CPU that has the first's alone, those
// are all that it may come to.
#include <cstdio>

double avx2_unit(double);
double avx512_unit(double);

int main()
{
    const double first = avx2_unit(0.75);
    const bool has_avx512 = __builtin_cpu_supports("avx512vl");  // with which comes all of x86-64-v4
    const double second = has_avx512 ? avx512_unit(0.75) : first;
    std::printf("%.17g\n%.17g\n", first, second);
    return first == second ? 0 : 1;
}
