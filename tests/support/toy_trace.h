// A small Llama-like model as a trace, built without a model: the same scopes, op names, packs
// and aliases as the real one records, in sizes that can be added up by hand.
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

// Scopes "embed", "blocks.<i>" with "attention" and "ffn" inside, "head", "loss". A block has
// seven aten::mm (wq wk wv wo w1 w3 w2) and one rematch::attention; its norms contain one in-place
// op each, its last op is the residual add, in no inner scope.
Trace toy_llama(const ToySizes& sizes = {});

// Blocks of three kinds in turn: attention and ffn as in toy_llama; attention and "moe", where each
// token goes to two of four experts; attention, "cross_attention" over a text of 512 tokens, ffn.
Trace toy_three_kinds(const ToySizes& sizes = {});

// The same as toy_llama with biased linears (aten::addmm, no aten::mm in the blocks), for messages
// about selectors that match nothing.
Trace toy_biased(const ToySizes& sizes = {});

// Blocks, each of which gathers its sharded parameter, 64 bytes, before it uses it: in a matmul
// that a gate follows, both in scope "ffn".
Trace toy_sharded(int layers = 4);

}  // namespace rematch::testing
