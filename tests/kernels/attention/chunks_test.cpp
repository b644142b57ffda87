#include "kernels/attention/chunks.h"

#include <map>
#include <numeric>

#include "tests/support/catch.h"

namespace rematch::kernels {
namespace {

using Chunks = std::vector<std::int64_t>;

// Returns the number of calls that contain each pair of a query and a key, by place in the
// sequence. Chunks have three tokens.
std::map<std::pair<std::int64_t, std::int64_t>, int> pairs_in(const std::vector<ChunkCall>& calls,
                                                              const Chunks& queries,
                                                              const Chunks& keys) {
  constexpr std::int64_t kTokens = 3;
  const auto place = [](const Chunks& chunks, std::int64_t token) {
    return chunks.at(token / kTokens) * kTokens + token % kTokens;
  };
  std::map<std::pair<std::int64_t, std::int64_t>, int> pairs;
  for (const ChunkCall& call : calls) {
    for (std::int64_t q = 0; q < call.num_queries * kTokens; ++q) {
      for (std::int64_t k = 0; k < call.num_keys * kTokens; ++k) {
        if (call.causal && k > q) continue;  // the kernels align the first query with the first key
        ++pairs[{place(queries, call.first_query * kTokens + q),
                 place(keys, call.first_key * kTokens + k)}];
      }
    }
  }
  return pairs;
}

void check_pairs(const Chunks& queries, const Chunks& keys) {
  CAPTURE(queries, keys);
  std::map<std::pair<std::int64_t, std::int64_t>, int> expected;
  for (const std::int64_t query : queries) {
    for (const std::int64_t key : keys) {
      for (std::int64_t q = 3 * query; q < 3 * query + 3; ++q) {
        for (std::int64_t k = 3 * key; k < 3 * key + 3; ++k) {
          if (k <= q) expected[{q, k}] = 1;
        }
      }
    }
  }
  CHECK(pairs_in(chunk_calls(queries, keys), queries, keys) == expected);
}

}  // namespace

TEST_CASE("each pair of a query and an earlier key is in exactly one call") {
  for (std::int64_t size = 1; size <= 4; ++size) {
    Chunks all(2 * size);
    std::iota(all.begin(), all.end(), 0);
    for (std::int64_t rank = 0; rank < size; ++rank) {
      const Chunks own = {rank, 2 * size - 1 - rank};
      check_pairs(own, all);
      for (std::int64_t other = 0; other < size; ++other) {
        check_pairs(own, {other, 2 * size - 1 - other});
      }
    }
  }
  check_pairs({2, 0, 3}, {3, 1, 0, 2});
}

TEST_CASE("a query chunk attends to consecutive key chunks in one call") {
  const std::vector<ChunkCall> expected = {
      {0, 1, 0, 1, false}, {0, 1, 1, 1, true}, {1, 1, 0, 2, false}, {1, 1, 2, 1, true}};
  CHECK((chunk_calls({1, 2}, {0, 1, 2, 3}) == expected));
}

TEST_CASE("query chunks that attend to the same keys are in one call") {
  CHECK((chunk_calls({1, 2}, {0, 3}) == std::vector<ChunkCall>{{0, 2, 0, 1, false}}));
  CHECK((chunk_calls({0, 3}, {1, 2}) == std::vector<ChunkCall>{{1, 1, 0, 2, false}}));
  CHECK((chunk_calls({0, 3}, {0, 3}) == std::vector<ChunkCall>{{0, 2, 0, 2, true}}));
}

}  // namespace rematch::kernels
