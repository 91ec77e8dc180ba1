// Facts of the model that the page is about, Qwen3.8-27B, from its public configuration, and what follows from them.
#ifndef LESSON_QWEN3_8_27B_HPP
#define LESSON_QWEN3_8_27B_HPP

#include <cstdint>

namespace lesson::qwen3_8_27b {

using count = std::int64_t;

inline constexpr count hidden = 5120;
inline constexpr count intermediate = 17408;
inline constexpr count full_attention_layers = 16;
inline constexpr count delta_net_layers = 48;
inline constexpr count layers = full_attention_layers + delta_net_layers;
inline constexpr count sublayers = 2 * layers;  // attention and FFN
inline constexpr count heads = 24;
inline constexpr count key_value_heads = 4;
inline constexpr count head_width = 256;
inline constexpr count vocabulary = 248320;
inline constexpr double norm_eps = 1e-6;

// Full attention. The query projection gives each head its query and its output gate.
inline constexpr count attention_width = heads * head_width;
inline constexpr count query_and_gate_width = 2 * attention_width;

// Gated DeltaNet.
inline constexpr count delta_key_width = 16 * 128;
inline constexpr count delta_value_heads = 48;
inline constexpr count delta_value_width = delta_value_heads * 128;
inline constexpr count delta_convolution = 4;

/// The parameters, part by part.
namespace parameters {

inline constexpr count swiglu = 3 * hidden * intermediate;  // gate, up, down
inline constexpr count norms = 2 * hidden;                  // before each of the two sublayers

inline constexpr count full_attention = hidden * query_and_gate_width                  // query and gate
                                        + 2 * hidden * (key_value_heads * head_width)  // key, value
                                        + attention_width * hidden                     // output
                                        + 2 * head_width;                              // norms of query and key

inline constexpr count delta_mixed_width = 2 * delta_key_width + delta_value_width;  // query, key, value
inline constexpr count delta_net = hidden * delta_mixed_width                        // query, key, value
                                   + hidden * delta_value_width                      // output gate
                                   + 2 * hidden * delta_value_heads                  // write strength, decay
                                   + delta_mixed_width * delta_convolution           // short convolution
                                   + 2 * delta_value_heads        // two numbers of each head's decay
                                   + 128                          // norm over a head
                                   + delta_value_width * hidden;  // output

inline constexpr count text = full_attention_layers * full_attention + delta_net_layers * delta_net
                              + layers * (swiglu + norms)  //
                              + 2 * vocabulary * hidden    // embedding and output, not tied
                              + hidden;                    // final norm

// The layer that predicts one token more: a decoder layer, the merging matrix, three norms.
inline constexpr count multi_token = full_attention + swiglu + norms + 2 * hidden * hidden + 3 * hidden;

// The vision tower: patches of 2 frames of 16 x 16 pixels in 3 colours, positions, 27 layers, and the merger, which
// joins 2 x 2 patches.
inline constexpr count vision_width = 1152;
inline constexpr count vision_inner = 4304;
inline constexpr count merged = 4 * vision_width;
inline constexpr count vision_layer = 4 * vision_width                                      // two LayerNorms
                                      + vision_width * 3 * vision_width + 3 * vision_width  // query, key, value
                                      + vision_width * vision_width + vision_width          // output
                                      + vision_width * vision_inner + vision_inner          // FFN
                                      + vision_inner * vision_width + vision_width;
inline constexpr count vision = 3 * 2 * 16 * 16 * vision_width + vision_width  // patches
                                + 2304 * vision_width                          // positions
                                + 27 * vision_layer                            //
                                + 2 * vision_width                             // LayerNorm
                                + merged * merged + merged                     // merger
                                + merged * hidden + hidden;

inline constexpr count total = text + multi_token + vision;
inline constexpr count ffn = layers * swiglu;

}  // namespace parameters

}  // namespace lesson::qwen3_8_27b

#endif
