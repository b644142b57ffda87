// Flags for models of two layers, small enough for a step in milliseconds.
#pragma once

#include <string>

namespace rematch::testing {

inline const std::string kTinyLlama =
    "--model llama_small --layers 2 --dim 32 --heads 2 --kv-heads 1 --ffn 64 --tokens 16 --batch "
    "1 ";
inline const std::string kTinyDit =
    "--model wan_small --layers 2 --dim 32 --heads 2 --ffn 64 --frames 2 --height 2 --width 4 "
    "--batch 1 ";
inline const std::string kTinyMoe =
    "--model moe_small --layers 2 --dim 32 --heads 2 --kv-heads 1 --ffn 64 --tokens 16 --batch 1 "
    "--experts 4 --expert-ffn 16 --shared-ffn 24 ";

}  // namespace rematch::testing
