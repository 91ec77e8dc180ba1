// The kernels that can be chosen at run time, each a template over T (float, double) in every pass. One line is all
// that dispatch needs to know of a kernel: what it returns, its name, its parameters, their names.

// clang-format off
#define RESIDUA_KERNELS(X)                                                                                             \
    X(void, exp, (rows<T> y, rows<const T> x), (y, x))                                                                 \
    X(void, log, (rows<T> y, rows<const T> x), (y, x))                                                                 \
    X(void, tanh, (rows<T> y, rows<const T> x), (y, x))                                                                \
    X(void, sigmoid, (rows<T> y, rows<const T> x), (y, x))                                                             \
    X(void, silu, (rows<T> y, rows<const T> x), (y, x))                                                                \
    X(void, cos_2pi, (rows<T> y, rows<const T> x), (y, x))                                                             \
    X(void, softmax, (rows<T> y, rows<const T> x), (y, x))                                                             \
    X(void, tanh_vjp, (rows<T> dx, rows<const T> y, rows<const T> dy), (dx, y, dy))                                    \
    X(void, box_muller, (rows<T> z, rows<const T> u1, rows<const T> u2), (z, u1, u2))                                  \
    X(void, residual_add, (rows<T> y, rows<const T> x, rows<const T> f, T factor), (y, x, f, factor))                  \
    X(void, scale, (rows<T> y, rows<const T> x, T factor), (y, x, factor))                                             \
    X(void, rms_norm, (rows<T> y, rows<const T> x, const T* w, norm_weight kind, T eps), (y, x, w, kind, eps))         \
    X(void, rms_norm_vjp,                                                                                              \
      (rows<T> dx, T* dw, rows<const T> x, const T* w, norm_weight kind, rows<const T> dy, T eps),                     \
      (dx, dw, x, w, kind, dy, eps))                                                                                   \
    X(T, rms, (rows<const T> x), (x))                                                                                  \
    X(void, swiglu, (rows<T> y, rows<const T> gate, rows<const T> up), (y, gate, up))                                  \
    X(void, clamped_swiglu, (rows<T> y, rows<const T> gate, rows<const T> up, T limit), (y, gate, up, limit))          \
    X(void, gpt_oss_swiglu, (rows<T> y, rows<const T> gate, rows<const T> up, T limit, T alpha),                       \
      (y, gate, up, limit, alpha))                                                                                     \
    X(void, situ_glu, (rows<T> y, rows<const T> gate, rows<const T> up, T beta, T cap), (y, gate, up, beta, cap))      \
    X(T, dot, (rows<const T> x, rows<const T> y), (x, y))                                                              \
    X(void, matvec, (rows<T> y, rows<const T> w, rows<const T> x), (y, w, x))                                          \
    X(void, matvec_transposed, (rows<T> y, rows<const T> w, rows<const T> x), (y, w, x))
// clang-format on
