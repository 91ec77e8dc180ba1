float first_unit(float);
float second_unit(float);

int main()
{
    const float difference = first_unit(1) - second_unit(1);
    return difference < 0 || 0 < difference ? 1 : 0;
}
