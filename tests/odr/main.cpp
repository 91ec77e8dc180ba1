// Both units do the same with different instructions: they must agree to the bit, on a CPU that has both.
#include <cstdio>

double first_unit(double);
double second_unit(double);

int main()
{
    const double first = first_unit(0.75);
    const double second = second_unit(0.75);
    std::printf("%.17g\n%.17g\n", first, second);
    return first == second ? 0 : 1;
}
