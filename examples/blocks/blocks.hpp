// Six transformer blocks, one for each column of the lesson's table of how a block evolved, forward and backward. All of
// their arithmetic is the library's; what is here is memory, and the order of the calls.
//
// A part of a block has
//     forward(y, x)      and keeps what its backward pass reads
//     backward(dx, dy)   dx = J^T dy at the x of the last forward pass
// for rows of tokens.
#ifndef BLOCKS_BLOCKS_HPP
#define BLOCKS_BLOCKS_HPP

#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <string_view>

#include "memory.hpp"

namespace blocks {

struct sizes {
    std::size_t tokens = 6, width = 16, heads = 2, hidden = 40, streams = 4;

    std::size_t head_width() const { return width / heads; }
};

// --- norms -----------------------------------------------------------------------------------------------------

enum class norm_kind { layer, rms, zero_centered };

/// A norm of each row, with weights near what training starts from.
template <class T>
class norm {
public:
    norm(norm_kind kind, std::size_t columns, normal_source& random)
        : kind_{kind}, w_{random.around<T>(0.1, columns)}, b_{random.around<T>(0.1, columns)}
    {
        if (kind != norm_kind::zero_centered) {
            const std::vector<T> one(columns, T(1));
            op::residual_add(w_.view(), w_.view(), one);
        }
    }

    void forward(rows<T> y, rows<const T> x) const
    {
        switch (kind_) {
            case norm_kind::layer: return op::layer_norm(y, x, w_.view(), b_.view(), {.eps = T(1e-5)});
            case norm_kind::rms: return op::rms_norm(y, x, w_.view(), {.eps = T(1e-6)});
            case norm_kind::zero_centered: return op::zero_centered_rms_norm(y, x, w_.view(), {.eps = T(1e-6)});
        }
    }
    /// From the x of the forward pass, which the caller keeps.
    void backward(rows<T> dx, rows<const T> x, rows<const T> dy) const
    {
        switch (kind_) {
            case norm_kind::layer: return op::layer_norm_vjp(dx, x, w_.view(), dy, {.eps = T(1e-5)});
            case norm_kind::rms: return op::rms_norm_vjp(dx, x, w_.view(), dy, {.eps = T(1e-6)});
            case norm_kind::zero_centered:
                return op::rms_norm_vjp(dx, x, op::zero_centered(w_.view()), dy, {.eps = T(1e-6)});
        }
    }

private:
    norm_kind kind_;
    matrix<T> w_, b_;
};

// --- sublayers -------------------------------------------------------------------------------------------------

template <class T>
class sublayer {
public:
    virtual ~sublayer() = default;
    virtual void forward(rows<T> y, rows<const T> x) = 0;
    virtual void backward(rows<T> dx, rows<const T> dy) = 0;
};

enum class activation { relu, gelu, swiglu };

/// Two matrices with an activation between them, or three with SwiGLU.
template <class T>
class feed_forward final : public sublayer<T> {
public:
    feed_forward(activation f, const sizes& n, normal_source& random)
        : f_{f},
          up_{random.linear<T>(n.hidden, n.width)},
          gate_{random.linear<T>(n.hidden, n.width)},
          down_{random.linear<T>(n.width, n.hidden)},
          u_(n.tokens, n.hidden),
          g_(n.tokens, n.hidden),
          h_(n.tokens, n.hidden),
          part_(n.tokens, n.width)
    {
    }

    void forward(rows<T> y, rows<const T> x) override
    {
        op::matvec(u_.view(), up_.view(), x);
        if (f_ == activation::swiglu) op::matvec(g_.view(), gate_.view(), x);
        switch (f_) {
            case activation::relu: op::relu(h_.view(), u_.view()); break;
            case activation::gelu: op::gelu_tanh(h_.view(), u_.view()); break;
            case activation::swiglu: op::swiglu(h_.view(), g_.view(), u_.view()); break;
        }
        op::matvec(y, down_.view(), h_.view());
    }
    void backward(rows<T> dx, rows<const T> dy) override
    {
        op::matvec_transposed(h_.view(), down_.view(), dy);
        switch (f_) {
            case activation::relu: op::relu_vjp(u_.view(), u_.view(), h_.view()); break;
            case activation::gelu: op::gelu_tanh_vjp(u_.view(), u_.view(), h_.view()); break;
            case activation::swiglu: op::swiglu_vjp(g_.view(), u_.view(), g_.view(), u_.view(), h_.view()); break;
        }
        op::matvec_transposed(dx, up_.view(), u_.view());
        if (f_ == activation::swiglu) {
            op::matvec_transposed(part_.view(), gate_.view(), g_.view());
            op::residual_add(dx, dx, part_.view());
        }
    }

private:
    activation f_;
    matrix<T> up_, gate_, down_;
    matrix<T> u_, g_, h_, part_;
};

enum class qk_norm { none, per_head, full_width };

/// Causal attention of several heads; optionally q and k normed, and the heads' outputs gated.
template <class T>
class attention final : public sublayer<T> {
public:
    attention(qk_norm norm_of_qk, norm_kind kind, bool gated, const sizes& n, normal_source& random)
        : n_{n},
          norm_of_qk_{norm_of_qk},
          gated_{gated},
          wq_{random.linear<T>(n.width, n.width)},
          wk_{random.linear<T>(n.width, n.width)},
          wv_{random.linear<T>(n.width, n.width)},
          wg_{random.linear<T>(n.width, n.width)},
          wo_{random.linear<T>(n.width, n.width)},
          norm_q_{kind, norm_of_qk == qk_norm::per_head ? n.head_width() : n.width, random},
          norm_k_{kind, norm_of_qk == qk_norm::per_head ? n.head_width() : n.width, random}
    {
        for (matrix<T>* m :
             {&q_, &k_, &v_, &g_, &q_raw_, &k_raw_, &heads_out_, &gated_out_, &dq_, &dk_, &dv_, &part_})
            *m = matrix<T>(n.tokens, n.width);
        weights_ = matrix<T>(n.heads * n.tokens, n.tokens);
    }

    void forward(rows<T> y, rows<const T> x) override
    {
        op::matvec(q_raw_.view(), wq_.view(), x);
        op::matvec(k_raw_.view(), wk_.view(), x);
        op::matvec(v_.view(), wv_.view(), x);
        normalize(q_, q_raw_, norm_q_);
        normalize(k_, k_raw_, norm_k_);
        for (std::size_t h = 0; h < n_.heads; ++h) head(h);
        if (gated_) {
            op::matvec(g_.view(), wg_.view(), x);
            op::sigmoid_gate(gated_out_.view(), heads_out_.view(), g_.view());
        }
        op::matvec(y, wo_.view(), gated_ ? gated_out_.view() : heads_out_.view());
    }

    void backward(rows<T> dx, rows<const T> dy) override
    {
        const auto d_heads = part_.view();
        op::matvec_transposed(d_heads, wo_.view(), dy);
        if (gated_) {
            op::sigmoid_gate_vjp(d_heads, g_.view(), heads_out_.view(), g_.view(), d_heads);
            op::matvec_transposed(dx, wg_.view(), g_.view());
        } else {
            set_to_zero(dx);
        }
        for (matrix<T>* m : {&dq_, &dk_, &dv_}) set_to_zero(m->view());
        for (std::size_t h = 0; h < n_.heads; ++h) head_backward(h);
        normalize_backward(dq_, q_raw_, norm_q_);
        normalize_backward(dk_, k_raw_, norm_k_);
        add_through(dx, wq_, dq_);
        add_through(dx, wk_, dk_);
        add_through(dx, wv_, dv_);
    }

private:
    /// The rows that the norm of q and k sees: heads, or tokens.
    rows<T> normed_rows(matrix<T>& m) const
    {
        if (norm_of_qk_ == qk_norm::full_width) return m.view();
        return {m.view().data, n_.tokens * n_.heads, n_.head_width()};
    }
    void normalize(matrix<T>& y, matrix<T>& x, const norm<T>& f) const
    {
        if (norm_of_qk_ == qk_norm::none) {
            op::scale(y.view(), x.view(), T(1));
        } else {
            f.forward(normed_rows(y), normed_rows(x));
        }
    }
    void normalize_backward(matrix<T>& d, matrix<T>& x, const norm<T>& f) const
    {
        if (norm_of_qk_ != qk_norm::none) f.backward(normed_rows(d), normed_rows(x), normed_rows(d));
    }

    T inverse_root() const { return T(1) / static_cast<T>(std::sqrt(static_cast<T>(n_.head_width()))); }
    rows<T> columns_of(matrix<T>& m, std::size_t h) const
    {
        return m.columns(h * n_.head_width(), n_.head_width());
    }
    /// The weights of token t: those of the tokens up to it.
    rows<T> weights_of(std::size_t h, std::size_t t) { return {weights_.view()[h * n_.tokens + t], 1, t + 1}; }

    void head(std::size_t h)
    {
        const auto q = columns_of(q_, h), k = columns_of(k_, h), v = columns_of(v_, h),
                   out = columns_of(heads_out_, h);
        for (std::size_t t = 0; t < n_.tokens; ++t) {
            const auto a = weights_of(h, t);
            op::matvec(a, k.part(0, t + 1), q.row(t));
            op::scale(a, a, inverse_root());
            op::softmax(a, a);
            op::matvec_transposed(out.row(t), v.part(0, t + 1), a);
        }
    }

    void head_backward(std::size_t h)
    {
        const auto q = columns_of(q_, h), k = columns_of(k_, h), v = columns_of(v_, h), dy = columns_of(part_, h);
        const auto dq = columns_of(dq_, h), dk = columns_of(dk_, h), dv = columns_of(dv_, h);
        std::vector<T> da(n_.tokens);
        for (std::size_t t = 0; t < n_.tokens; ++t) {
            const auto a = weights_of(h, t);
            const rows<T> d{da.data(), 1, t + 1};
            op::matvec(d, v.part(0, t + 1), dy.row(t));
            op::softmax_vjp(d, a, d);
            op::scale(d, d, inverse_root());
            op::matvec_transposed(dq.row(t), k.part(0, t + 1), d);
            for (std::size_t j = 0; j <= t; ++j) {
                op::residual_add(dk.row(j), dk.row(j), q.row(t), da[j]);
                op::residual_add(dv.row(j), dv.row(j), dy.row(t), a[0][j]);
            }
        }
    }

    /// dx += W^T d
    void add_through(rows<T> dx, const matrix<T>& w, matrix<T>& d)
    {
        op::matvec_transposed(part_.view(), w.view(), d.view());
        op::residual_add(dx, dx, part_.view());
    }

    sizes n_;
    qk_norm norm_of_qk_;
    bool gated_;
    matrix<T> wq_, wk_, wv_, wg_, wo_;
    norm<T> norm_q_, norm_k_;
    matrix<T> q_, k_, v_, g_, q_raw_, k_raw_, heads_out_, gated_out_, dq_, dk_, dv_, part_, weights_;
};

// --- how a sublayer is joined to the stream --------------------------------------------------------------------

/// Where the norm stands: after the addition, before the sublayer, or after it.
enum class placement { post, pre, output };

/// One sublayer on one stream.
template <class T>
class residual final : public sublayer<T> {
public:
    residual(placement where, norm<T> f, std::unique_ptr<sublayer<T>> inner, T write_scale, const sizes& n)
        : where_{where},
          norm_{std::move(f)},
          inner_{std::move(inner)},
          write_scale_{write_scale},
          x_(n.tokens, n.width),
          a_(n.tokens, n.width),
          b_(n.tokens, n.width)
    {
    }

    void forward(rows<T> y, rows<const T> x) override
    {
        op::scale(x_.view(), x, T(1));
        switch (where_) {
            case placement::pre:  // y = x + c F(norm(x))
                norm_.forward(a_, x_);
                inner_->forward(b_, a_);
                op::residual_add(y, x_.view(), b_.view(), write_scale_);
                break;
            case placement::post:  // y = norm(x + c F(x))
                inner_->forward(b_, x_);
                op::residual_add(a_.view(), x_.view(), b_.view(), write_scale_);
                norm_.forward(y, a_);
                break;
            case placement::output:  // y = x + c norm(F(x))
                inner_->forward(a_, x_);
                norm_.forward(b_, a_);
                op::residual_add(y, x_.view(), b_.view(), write_scale_);
                break;
        }
    }

    void backward(rows<T> dx, rows<const T> dy) override
    {
        switch (where_) {
            case placement::pre:
                inner_->backward(b_, dy);
                norm_.backward(b_, x_, b_);
                op::residual_add(dx, dy, b_.view(), write_scale_);
                break;
            case placement::post:
                norm_.backward(a_, a_, dy);
                inner_->backward(b_, a_);
                op::residual_add(dx, a_.view(), b_.view(), write_scale_);
                break;
            case placement::output:
                norm_.backward(a_, a_, dy);
                inner_->backward(b_, a_);
                op::residual_add(dx, dy, b_.view(), write_scale_);
                break;
        }
    }

private:
    placement where_;
    norm<T> norm_;
    std::unique_ptr<sublayer<T>> inner_;
    T write_scale_;
    matrix<T> x_, a_, b_;
};

/// One sublayer on several streams (mHC): it reads a mixture of the streams, and what it writes is spread over them while
/// they are mixed; the coefficients are computed from the streams themselves.
template <class T>
class hyper_connection final : public sublayer<T> {
public:
    hyper_connection(norm<T> f, std::unique_ptr<sublayer<T>> inner, const sizes& n, normal_source& random)
        : n_{n},
          norm_{std::move(f)},
          inner_{std::move(inner)},
          fn_{random.linear<T>(coefficients(), n.streams * n.width)},
          a_{random.around<T>(0.5, 3)},
          b_{random.around<T>(0.5, coefficients())},
          da_(1, 3),
          db_(1, coefficients()),
          x_(n.tokens * n.streams, n.width),
          dx_(n.tokens * n.streams, n.width),
          flat_(n.tokens, n.streams * n.width),
          m_(n.tokens, coefficients()),
          pre_(n.tokens, n.streams),
          post_(n.tokens, n.streams),
          comb_(n.tokens, n.streams * n.streams),
          dpre_(n.tokens, n.streams),
          dpost_(n.tokens, n.streams),
          dcomb_(n.tokens, n.streams * n.streams),
          u_(n.tokens, n.width),
          normed_(n.tokens, n.width),
          f_(n.tokens, n.width)
    {
    }

    void forward(rows<T> y, rows<const T> x) override
    {
        op::scale(x_.view(), x, T(1));
        op::rms_norm(flat_.view(), flattened(x_), op::no_weight, {.eps = eps});
        op::matvec(m_.view(), fn_.view(), flat_.view());
        op::mhc_coefficients(pre_.view(), post_.view(), comb_.view(), m_.view(), a_.view(), b_.view(),
                             {.eps = 1e-6});
        op::mhc_read(u_.view(), x_.view(), pre_.view());
        norm_.forward(normed_, u_);
        inner_->forward(f_, normed_);
        op::mhc_write(y, x_.view(), f_.view(), post_.view(), comb_.view());
    }

    void backward(rows<T> dx, rows<const T> dy) override
    {
        op::mhc_write_vjp(dx_.view(), f_.view(), dpost_.view(), dcomb_.view(), x_.view(), f_.view(), post_.view(),
                          comb_.view(), dy);
        inner_->backward(normed_, f_);
        norm_.backward(u_, u_, normed_);
        op::mhc_read_vjp(dx, dpre_.view(), x_.view(), pre_.view(), u_.view());
        op::residual_add(dx_.view(), dx_.view(), dx);
        op::mhc_coefficients_vjp(m_.view(), da_.view(), db_.view(), m_.view(), a_.view(), b_.view(), dpre_.view(),
                                 dpost_.view(), dcomb_.view(), {.eps = 1e-6});
        op::matvec_transposed(flat_.view(), fn_.view(), m_.view());
        op::rms_norm_vjp(flat_.view(), flattened(x_), op::no_weight, flat_.view(), {.eps = eps});
        op::residual_add(dx, dx_.view(), rows<const T>{flat_.view().data, n_.tokens * n_.streams, n_.width});
    }

private:
    static constexpr T eps = T(1e-6);

    std::size_t coefficients() const { return 2 * n_.streams + n_.streams * n_.streams; }
    /// The streams of a token as one row.
    rows<const T> flattened(matrix<T>& x) const { return {x.view().data, n_.tokens, n_.streams * n_.width}; }

    sizes n_;
    norm<T> norm_;
    std::unique_ptr<sublayer<T>> inner_;
    matrix<T> fn_, a_, b_, da_, db_;
    matrix<T> x_, dx_, flat_, m_, pre_, post_, comb_, dpre_, dpost_, dcomb_, u_, normed_, f_;
};

// --- the six columns -------------------------------------------------------------------------------------------

enum class design { transformer_2017, gpt_2, llama, qwen, olmo_2, mhc };

struct design_name {
    design which;
    std::string_view name, parts;
};
inline constexpr std::array<design_name, 6> designs = {{
    {design::transformer_2017, "2017", "Post-LN, ReLU"},
    {design::gpt_2, "GPT-2", "Pre-LN, GELU, writes scaled by 1/sqrt(N)"},
    {design::llama, "Llama", "Pre-RMSNorm, SwiGLU"},
    {design::qwen, "Qwen3.8", "zero-centred pre-norm, QK-norm per head, output gate, SwiGLU"},
    {design::olmo_2, "OLMo 2", "RMSNorm of the output, QK-norm over the width, SwiGLU"},
    {design::mhc, "mHC", "four streams, Pre-RMSNorm, SwiGLU"},
}};

/// How many rows of the stream belong to a token.
inline std::size_t streams_of(design d, const sizes& n) { return d == design::mhc ? n.streams : 1; }

/// A block: attention, then the feed-forward layer. `blocks` is how many the stack has, for GPT-2's scale.
template <class T>
class block {
public:
    block(design d, const sizes& n, std::size_t blocks, normal_source& random)
    {
        const auto norm_of = [&] {
            return norm<T>{d == design::transformer_2017 || d == design::gpt_2 ? norm_kind::layer
                           : d == design::qwen                                 ? norm_kind::zero_centered
                                                                               : norm_kind::rms,
                           n.width, random};
        };
        const auto qk = d == design::qwen     ? qk_norm::per_head
                        : d == design::olmo_2 ? qk_norm::full_width
                                              : qk_norm::none;
        const auto kind = d == design::qwen ? norm_kind::zero_centered : norm_kind::rms;
        const auto f = d == design::transformer_2017 ? activation::relu
                       : d == design::gpt_2          ? activation::gelu
                                                     : activation::swiglu;
        std::unique_ptr<sublayer<T>> parts[] = {
            std::make_unique<attention<T>>(qk, kind, d == design::qwen, n, random),
            std::make_unique<feed_forward<T>>(f, n, random),
        };
        const auto where = d == design::transformer_2017 ? placement::post
                           : d == design::olmo_2         ? placement::output
                                                         : placement::pre;
        const T write_scale = d == design::gpt_2 ? T(1) / std::sqrt(static_cast<T>(2 * blocks)) : T(1);
        for (std::size_t i = 0; i < 2; ++i) {
            if (d == design::mhc) {
                sublayers_[i] = std::make_unique<hyper_connection<T>>(norm_of(), std::move(parts[i]), n, random);
            } else {
                sublayers_[i] =
                    std::make_unique<residual<T>>(where, norm_of(), std::move(parts[i]), write_scale, n);
            }
        }
    }

    /// x is replaced by the block's output.
    void forward(rows<T> x)
    {
        for (auto& s : sublayers_) s->forward(x, x);
    }
    /// The gradient at the output is replaced by the one at the input.
    void backward(rows<T> g)
    {
        for (std::size_t i = sublayers_.size(); i-- > 0;) sublayers_[i]->backward(g, g);
    }

private:
    std::array<std::unique_ptr<sublayer<T>>, 2> sublayers_;
};

}  // namespace blocks

#endif
