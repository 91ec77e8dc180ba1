// The kernels that can be chosen at run time. One line is all that dispatch needs to know of a kernel: what it returns,
// its name, its parameters, their names. The types of operands are told at run time (kernels/walks.inc.hpp); T is what
// a kernel computes with, or where that is double for both, what it reads its operands as.

// clang-format off
/// Templates over T (float, double) in every pass.
#define RESIDUA_KERNELS(X)                                                                                             \
    X(void, exp, (shape s, output y, input x, accuracy tier), (s, y, x, tier))                                         \
    X(void, log, (shape s, output y, input x), (s, y, x))                                                              \
    X(void, tanh, (shape s, output y, input x, accuracy tier), (s, y, x, tier))                                        \
    X(void, sigmoid, (shape s, output y, input x, accuracy tier), (s, y, x, tier))                                     \
    X(void, silu, (shape s, output y, input x, accuracy tier), (s, y, x, tier))                                        \
    X(void, cos_2pi, (shape s, output y, input x), (s, y, x))                                                          \
    X(void, relu, (shape s, output y, input x), (s, y, x))                                                             \
    X(void, convert, (shape s, output y, input x), (s, y, x))                                                          \
    X(void, softmax, (shape s, output y, input x), (s, y, x))                                                          \
    X(void, tanh_vjp_from_output, (shape s, output dx, input y, input dy), (s, dx, y, dy))                             \
    X(void, box_muller, (shape s, output z, input u1, input u2), (s, z, u1, u2))                                       \
    X(void, residual_add, (shape s, output y, input x, input f, T factor), (s, y, x, f, factor))                       \
    X(void, residual_add_per_channel, (shape s, output y, input x, input f, input scale), (s, y, x, f, scale))         \
    X(void, scale, (shape s, output y, input x, T factor), (s, y, x, factor))                                          \
    X(void, rms_norm,                                                                                                  \
      (shape s, output y, input x, input w, norm_weight kind, T eps, norm_rounding rounding),                          \
      (s, y, x, w, kind, eps, rounding))                                                                               \
    X(void, rms_norm_vjp,                                                                                              \
      (shape s, output dx, output dw, input x, input w, norm_weight kind, input dy, T eps, weight_gradient mode),      \
      (s, dx, dw, x, w, kind, dy, eps, mode))                                                                          \
    X(void, sum_of_squares, (shape s, square_sum* sums, input x), (s, sums, x))                                        \
    X(void, rms_norm_apply,                                                                                            \
      (shape s, output y, input x, input w, norm_weight kind, const square_sum* squares, std::size_t count, T eps,     \
       norm_rounding rounding),                                                                                        \
      (s, y, x, w, kind, squares, count, eps, rounding))                                                               \
    X(void, add_rms_norm,                                                                                              \
      (shape s, output y, output residual, input x, input w, norm_weight kind, T eps, T factor, norm_of which,         \
       norm_rounding rounding),                                                                                        \
      (s, y, residual, x, w, kind, eps, factor, which, rounding))                                                      \
    X(void, gated_rms_norm,                                                                                            \
      (shape s, output y, input x, input z, input w, norm_weight kind, T eps, norm_gate gate, gate_order order,        \
       norm_rounding rounding),                                                                                        \
      (s, y, x, z, w, kind, eps, gate, order, rounding))                                                               \
    X(T, rms, (shape s, input x), (s, x))                                                                              \
    X(void, gated,                                                                                                     \
      (shape s, output y, input gate, input up, gated_form form, gated_numbers<T> numbers,                             \
       activation_rounding rounding, accuracy tier),                                                                   \
      (s, y, gate, up, form, numbers, rounding, tier))                                                                 \
    X(void, mix_streams, (shape s, output y, input x, operand::mixing m), (s, y, x, m))                                \
    X(void, gated_write, (shape s, std::size_t streams, output y, input x, input f, input m),                          \
      (s, streams, y, x, f, m))                                                                                        \
    X(void, gelu, (shape s, output y, input x), (s, y, x))                                                             \
    X(void, gelu_tanh, (shape s, output y, input x), (s, y, x))                                                        \
    X(void, silu_derivative, (shape s, output y, input x), (s, y, x))                                                  \
    X(void, exp_jacobian, (shape s, output out, input x, input v), (s, out, x, v))                                     \
    X(void, tanh_jacobian, (shape s, output out, input x, input v), (s, out, x, v))                                    \
    X(void, sigmoid_jacobian, (shape s, output out, input x, input v), (s, out, x, v))                                 \
    X(void, silu_jacobian, (shape s, output out, input x, input v), (s, out, x, v))                                    \
    X(void, silu_derivative_jacobian, (shape s, output out, input x, input v), (s, out, x, v))                         \
    X(void, gelu_jacobian, (shape s, output out, input x, input v), (s, out, x, v))                                    \
    X(void, gelu_tanh_jacobian, (shape s, output out, input x, input v), (s, out, x, v))                               \
    X(void, relu_jacobian, (shape s, output out, input x, input v), (s, out, x, v))                                    \
    X(void, gated_vjp,                                                                                                 \
      (shape s, output dgate, output dup, input gate, input up, input dy, gated_form form,                             \
       gated_numbers<T> numbers),                                                                                      \
      (s, dgate, dup, gate, up, dy, form, numbers))                                                                    \
    X(void, gated_jvp,                                                                                                 \
      (shape s, output ty, input gate, input up, input tgate, input tup, gated_form form,                              \
       gated_numbers<T> numbers),                                                                                      \
      (s, ty, gate, up, tgate, tup, form, numbers))                                                                    \
    X(T, dot, (rows<const T> x, rows<const T> y), (x, y))                                                              \
    X(void, matvec, (rows<T> y, rows<const T> w, rows<const T> x), (y, w, x))                                          \
    X(void, matvec_transposed, (rows<T> y, rows<const T> w, rows<const T> x), (y, w, x))

/// Computed in double whatever the types of the operands are, and in one way: derivatives, whose factors can cancel and
/// whose products can leave the range of float on the way.
#define RESIDUA_WIDE_KERNELS(X)                                                                                        \
    X(void, mix_streams_vjp,                                                                                           \
      (shape s, output dx, output df, output dc, output dw, input x, operand::mixing m, input dy,                      \
       weight_gradient mode),                                                                                          \
      (s, dx, df, dc, dw, x, m, dy, mode))                                                                             \
    X(void, mix_streams_jvp, (shape s, output ty, input x, operand::mixing m, input tx, operand::mixing tm),           \
      (s, ty, x, m, tx, tm))                                                                                           \
    X(void, mhc_coefficients,                                                                                          \
      (std::size_t tokens, std::size_t streams, output pre, output post, output comb, input m, input a, input b,       \
       double eps, std::size_t iterations),                                                                            \
      (tokens, streams, pre, post, comb, m, a, b, eps, iterations))                                                    \
    X(void, mhc_coefficients_vjp,                                                                                      \
      (std::size_t tokens, std::size_t streams, output dm, output da, output db, input m, input a, input b,            \
       input dpre, input dpost, input dcomb, double eps, std::size_t iterations, weight_gradient mode),                \
      (tokens, streams, dm, da, db, m, a, b, dpre, dpost, dcomb, eps, iterations, mode))                               \
    X(void, mhc_coefficients_jvp,                                                                                      \
      (std::size_t tokens, std::size_t streams, output tpre, output tpost, output tcomb, input m, input a, input b,    \
       input tm, input ta, input tb, double eps, std::size_t iterations),                                              \
      (tokens, streams, tpre, tpost, tcomb, m, a, b, tm, ta, tb, eps, iterations))                                     \
    X(void, gated_read, (shape s, std::size_t streams, output y, input n, input g, bool one_gate),                     \
      (s, streams, y, n, g, one_gate))                                                                                 \
    X(void, gated_read_vjp,                                                                                            \
      (shape s, std::size_t streams, output dn, output dg, input n, input g, bool one_gate, input dy),                 \
      (s, streams, dn, dg, n, g, one_gate, dy))                                                                        \
    X(void, gated_read_jvp,                                                                                            \
      (shape s, std::size_t streams, output ty, input n, input g, bool one_gate, input tn, input tg),                  \
      (s, streams, ty, n, g, one_gate, tn, tg))                                                                        \
    X(void, gated_write_vjp,                                                                                           \
      (shape s, std::size_t streams, output dx, output df, output dm, input f, input m, input dy),                     \
      (s, streams, dx, df, dm, f, m, dy))                                                                              \
    X(void, gated_write_jvp,                                                                                           \
      (shape s, std::size_t streams, output ty, input f, input m, input tx, input tf, input tm),                       \
      (s, streams, ty, f, m, tx, tf, tm))                                                                              \
    X(void, attn_res,                                                                                                  \
      (std::size_t tokens, std::size_t count, std::size_t columns, output h, output p, input k, input q, double eps),  \
      (tokens, count, columns, h, p, k, q, eps))                                                                       \
    X(void, attn_res_vjp,                                                                                              \
      (std::size_t tokens, std::size_t count, std::size_t columns, output dk, output dq, input k, input q, input p,    \
       input dh, double eps, weight_gradient mode),                                                                    \
      (tokens, count, columns, dk, dq, k, q, p, dh, eps, mode))                                                        \
    X(void, attn_res_jvp,                                                                                              \
      (std::size_t tokens, std::size_t count, std::size_t columns, output th, input k, input q, input p, input tk,     \
       input tq, double eps),                                                                                          \
      (tokens, count, columns, th, k, q, p, tk, tq, eps))                                                              \
    X(void, softmax_jacobian, (shape s, output out, input y, input a), (s, out, y, a))                                 \
    X(void, residual_add_vjp, (shape s, output dx, output df, input dy, double scale), (s, dx, df, dy, scale))         \
    X(void, residual_add_per_channel_vjp,                                                                              \
      (shape s, output dx, output df, output ds, input f, input dy, input scale, weight_gradient mode),                \
      (s, dx, df, ds, f, dy, scale, mode))                                                                             \
    X(void, residual_add_per_channel_jvp,                                                                              \
      (shape s, output ty, input f, input tx, input tf, input scale, input tscale), (s, ty, f, tx, tf, scale, tscale)) \
    X(square_sum, combine, (const square_sum* parts, std::size_t count), (parts, count))                               \
    X(void, rms_norm_jvp, (shape s, output ty, input x, input w, norm_weight kind, input tx, input tw, double eps),    \
      (s, ty, x, w, kind, tx, tw, eps))                                                                                \
    X(product_sum, combine_products, (const product_sum* parts, std::size_t count), (parts, count))                    \
    X(void, rms_norm_products,                                                                                         \
      (shape s, product_sum* sums, input x, input w, norm_weight kind, input a, const square_sum* squares,             \
       std::size_t count, double eps),                                                                                 \
      (s, sums, x, w, kind, a, squares, count, eps))                                                                   \
    X(void, rms_norm_apply_vjp,                                                                                        \
      (shape s, output dx, output dw, input x, input w, norm_weight kind, input dy, const square_sum* squares,         \
       const product_sum* products, std::size_t count, double eps, weight_gradient mode),                              \
      (s, dx, dw, x, w, kind, dy, squares, products, count, eps, mode))                                                \
    X(void, rms_norm_apply_jvp,                                                                                        \
      (shape s, output ty, input x, input w, norm_weight kind, input tx, input tw, const square_sum* squares,          \
       const product_sum* products, std::size_t count, double eps),                                                    \
      (s, ty, x, w, kind, tx, tw, squares, products, count, eps))                                                      \
    X(void, add_rms_norm_vjp,                                                                                          \
      (shape s, output dresidual, output dx, output dw, input residual, input w, norm_weight kind,                     \
       input dresidual_out, input dy, double eps, double scale, weight_gradient mode),                                 \
      (s, dresidual, dx, dw, residual, w, kind, dresidual_out, dy, eps, scale, mode))                                  \
    X(void, add_rms_norm_jvp,                                                                                          \
      (shape s, output ty, output tresidual, input residual, input w, norm_weight kind, input tx, input tw,            \
       double eps, double scale),                                                                                      \
      (s, ty, tresidual, residual, w, kind, tx, tw, eps, scale))                                                       \
    X(void, gated_rms_norm_vjp,                                                                                        \
      (shape s, output dx, output dz, output dw, input x, input z, input w, norm_weight kind, input dy, double eps,    \
       norm_gate gate, gate_order order, weight_gradient mode),                                                        \
      (s, dx, dz, dw, x, z, w, kind, dy, eps, gate, order, mode))                                                      \
    X(void, gated_rms_norm_jvp,                                                                                        \
      (shape s, output ty, input x, input z, input w, norm_weight kind, input tx, input tz, input tw, double eps,      \
       norm_gate gate, gate_order order),                                                                              \
      (s, ty, x, z, w, kind, tx, tz, tw, eps, gate, order))                                                            \
    X(void, layer_norm, (shape s, output y, input x, input w, norm_weight kind, input b, double eps),                  \
      (s, y, x, w, kind, b, eps))                                                                                      \
    X(void, layer_norm_vjp,                                                                                            \
      (shape s, output dx, output dw, output db, input x, input w, norm_weight kind, input dy, double eps,             \
       weight_gradient mode),                                                                                          \
      (s, dx, dw, db, x, w, kind, dy, eps, mode))                                                                      \
    X(void, layer_norm_jvp,                                                                                            \
      (shape s, output ty, input x, input w, norm_weight kind, input tx, input tw, input tb, double eps),              \
      (s, ty, x, w, kind, tx, tw, tb, eps))
// clang-format on
