// The kernels that can be chosen at run time. One line is all that dispatch needs to know of a kernel: what it returns,
// its name, its parameters, their names. The types of operands are told at run time (kernels/drivers.inc.hpp); T is what
// a kernel computes with.

// clang-format off
/// Templates over T (float, double) in every pass.
#define RESIDUA_KERNELS(X)                                                                                             \
    X(void, exp, (shape s, output y, input x), (s, y, x))                                                              \
    X(void, log, (shape s, output y, input x), (s, y, x))                                                              \
    X(void, tanh, (shape s, output y, input x), (s, y, x))                                                             \
    X(void, sigmoid, (shape s, output y, input x), (s, y, x))                                                          \
    X(void, silu, (shape s, output y, input x), (s, y, x))                                                             \
    X(void, cos_2pi, (shape s, output y, input x), (s, y, x))                                                          \
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
    X(T, rms, (shape s, input x), (s, x))                                                                              \
    X(void, swiglu, (shape s, output y, input gate, input up), (s, y, gate, up))                                       \
    X(void, clamped_swiglu, (shape s, output y, input gate, input up, T limit), (s, y, gate, up, limit))               \
    X(void, gpt_oss_swiglu, (shape s, output y, input gate, input up, T limit, T alpha),                               \
      (s, y, gate, up, limit, alpha))                                                                                  \
    X(void, situ_glu, (shape s, output y, input gate, input up, T beta, T cap), (s, y, gate, up, beta, cap))           \
    X(T, dot, (rows<const T> x, rows<const T> y), (x, y))                                                              \
    X(void, matvec, (rows<T> y, rows<const T> w, rows<const T> x), (y, w, x))                                          \
    X(void, matvec_transposed, (rows<T> y, rows<const T> w, rows<const T> x), (y, w, x))

/// Computed in double whatever the types of the operands are: derivatives, whose factors can cancel and whose products
/// can leave the range of float on the way.
#define RESIDUA_WIDE_KERNELS(X)                                                                                        \
    X(void, softmax_jacobian, (shape s, output out, input y, input a), (s, out, y, a))                                 \
    X(void, residual_add_vjp, (shape s, output dx, output df, input dy, double scale), (s, dx, df, dy, scale))         \
    X(void, residual_add_per_channel_vjp,                                                                              \
      (shape s, output dx, output df, output ds, input f, input dy, input scale, weight_gradient mode),                \
      (s, dx, df, ds, f, dy, scale, mode))                                                                             \
    X(void, residual_add_per_channel_jvp,                                                                              \
      (shape s, output ty, input f, input tx, input tf, input scale, input tscale), (s, ty, f, tx, tf, scale, tscale)) \
    X(void, rms_norm_jvp, (shape s, output ty, input x, input w, norm_weight kind, input tx, double eps),              \
      (s, ty, x, w, kind, tx, eps))
// clang-format on
