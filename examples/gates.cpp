// The output gate of attention, forward and backward, with heads that hold their query and their gate side by side.
#include <residua/residua.hpp>

#include <iostream>
#include <vector>

int main()
{
    // two heads of width 2: q0 q1 g0 g1 each, as one projection gives them
    const std::vector<float> projected{0.3f, 0.1f, 0, 2, 0.7f, 0.2f, -1, 30};
    const residua::rows<const float> gate{projected.data() + 2, 2, 2, 4};
    const std::vector<float> attended{1, 2, 3, 4}, dy{1, 1, 1, 1};
    std::vector<float> y(4), dx(4), dgate(4);
    const auto heads = [](auto& row) { return residua::rows{row.data(), 2, 2}; };
    residua::sigmoid_gate(heads(y), heads(attended), gate);
    residua::sigmoid_gate_vjp(heads(dx), heads(dgate), heads(attended), gate, heads(dy));
    for (std::size_t j = 0; j < 4; ++j) std::cout << y[j] << ' ' << dx[j] << ' ' << dgate[j] << '\n';
}

// Prints:
// 0.5 0.5 0.25
// 1.76159 0.880797 0.209987
// 0.806824 0.268941 0.589836
// 4 1 3.74305e-13
