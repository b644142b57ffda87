#include "kernels/attention/chunks.h"

#include <algorithm>

namespace rematch::kernels {
namespace {

using Chunks = std::vector<std::int64_t>;

// Returns the calls of one query chunk. Key chunks that follow each other are in one call.
std::vector<ChunkCall> calls_of_query(const Chunks& queries, const Chunks& keys, std::int64_t at) {
  std::vector<ChunkCall> calls;
  const std::int64_t query = queries[at];
  const auto num_keys = static_cast<std::int64_t>(keys.size());
  for (std::int64_t key = 0; key < num_keys; ++key) {
    if (keys[key] > query) continue;
    const bool causal = keys[key] == query;
    const bool follows = !calls.empty() && !causal && !calls.back().causal &&
                         calls.back().first_key + calls.back().num_keys == key;
    if (follows) {
      ++calls.back().num_keys;
    } else {
      calls.push_back({at, 1, key, 1, causal});
    }
  }
  return calls;
}

// Returns whether two query chunks attend to the same keys, and to each of them completely.
bool attend_alike(const std::vector<ChunkCall>& left, const std::vector<ChunkCall>& right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const ChunkCall& one, const ChunkCall& other) {
                      return !one.causal && !other.causal && one.first_key == other.first_key &&
                             one.num_keys == other.num_keys;
                    });
}

}  // namespace

std::vector<ChunkCall> chunk_calls(const Chunks& queries, const Chunks& keys) {
  const auto num_queries = static_cast<std::int64_t>(queries.size());
  if (queries == keys && std::is_sorted(keys.begin(), keys.end())) {
    return {{0, num_queries, 0, num_queries, /*causal=*/true}};
  }
  std::vector<ChunkCall> calls;
  std::vector<ChunkCall> before;  // calls of the query chunk before
  for (std::int64_t query = 0; query < num_queries; ++query) {
    const std::vector<ChunkCall> own = calls_of_query(queries, keys, query);
    if (!own.empty() && attend_alike(before, own)) {
      for (std::size_t i = calls.size() - own.size(); i < calls.size(); ++i) {
        ++calls[i].num_queries;
      }
      continue;
    }
    calls.insert(calls.end(), own.begin(), own.end());
    before = own;
  }
  return calls;
}

}  // namespace rematch::kernels
