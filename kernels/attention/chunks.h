// Decides which calls of attention compute causal attention between chunks of a sequence.
// Independent of LibTorch. Private to this folder.
#pragma once

#include <cstdint>
#include <vector>

namespace rematch::kernels {

// One call: consecutive query chunks attend to consecutive key chunks. The members count chunks,
// by position in the lists of chunk_calls().
struct ChunkCall {
  std::int64_t first_query = 0;
  std::int64_t num_queries = 0;
  std::int64_t first_key = 0;
  std::int64_t num_keys = 0;
  bool causal = false;  // if false, each query attends to each key of the call
  bool operator==(const ChunkCall&) const = default;
};

// `queries` and `keys` list chunks by their place in the sequence. A query chunk attends to all
// tokens of earlier chunks, and causally to its own chunk. Each pair of a query and a key that it
// attends to is in exactly one call. Calls of one query chunk are in the order of the keys.
std::vector<ChunkCall> chunk_calls(const std::vector<std::int64_t>& queries,
                                   const std::vector<std::int64_t>& keys);

}  // namespace rematch::kernels
