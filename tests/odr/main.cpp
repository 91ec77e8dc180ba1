// Both units do the same with different instructions: they must agree to the bit, on a CPU that has both.
#include <cstdio>

double avx2_unit(double);
double avx512_unit(double);

int main()
{
    const double first = avx2_unit(0.75);
    const double second = avx512_unit(0.75);
    std::printf("%.17g\n%.17g\n", first, second);
    return first == second ? 0 : 1;
}
