// A hand-built trace of a small Llama-like model. It has the scopes, op names, packs and aliases
// that the real model records, in sizes small enough to add up by hand.
#pragma once

#include <cstdint>

#include "policies/trace/trace.h"

namespace rematch::testing {

struct ToySizes {
  int layers = 4;
  std::int64_t tokens = 8;
  std::int64_t dim = 16;
  std::int64_t heads = 2;
  std::int64_t ffn = 32;
  std::int64_t vocab = 64;
};

// Scopes are "embed", "blocks.<i>", "head" and "loss"; a block contains "attention" and "ffn". A
// block has seven aten::mm (wq wk wv wo w1 w3 w2) and one rematch::attention. Each norm of a block
// contains one in-place op. The block's last op is the residual add, outside the inner scopes.
Trace toy_llama(const ToySizes& sizes = {});

// Blocks of three kinds alternate. The first has attention and ffn, as in toy_llama. The second has
// attention and "moe", which sends each token to two of four experts. The third has attention,
// "cross_attention" over a text of 512 tokens, and ffn.
Trace toy_three_kinds(const ToySizes& sizes = {});

// Like toy_llama with biased linears: blocks have aten::addmm and no aten::mm. Used by tests of
// messages about selectors without matches.
Trace toy_biased(const ToySizes& sizes = {});

// Each block gathers its sharded parameter of 64 bytes. It then runs a matmul with this parameter,
// and silu, both in scope "ffn".
Trace toy_sharded(int layers = 4);

}  // namespace rematch::testing
