#include "policies/predict/held.h"

#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "tests/support/catch.h"
#include "tests/support/toy_trace.h"

namespace rematch {
namespace {

HeldBytes held(std::string_view policy, int layers) {
  const Trace trace = testing::toy_llama({.layers = layers});
  const auto plan = resolve(std::get<Policy>(parse_policy(policy)), trace, NoEffect::kAllow);
  return held_after_forward(trace, std::get<Plan>(plan));
}

// 8 tokens, dim 16, float32.
constexpr std::int64_t kWidth = 8 * 16 * 4;

TEST_CASE("full holds the input of each block, and what embedding, head and loss save") {
  const HeldBytes two = held("full", 2);
  const HeldBytes five = held("full", 5);
  CHECK(two.kept == Bytes{0});
  CHECK(two.inputs == Bytes{2 * kWidth});
  CHECK(five.inputs == Bytes{5 * kWidth});
  CHECK(five.unmanaged == two.unmanaged);
}

// Attention's output and its log-sum-exp, for 2 heads of 8 tokens.
TEST_CASE("attn_only adds attention's results to full") {
  const HeldBytes full = held("full", 3);
  const HeldBytes attention = held("attn_only", 3);
  CHECK(attention.kept == Bytes{3 * (kWidth + 2 * 8 * 4)});
  CHECK(attention.inputs == full.inputs);
  CHECK(attention.unmanaged == full.unmanaged);
}

TEST_CASE("what is held is linear in the number of layers left alone") {
  std::vector<std::int64_t> totals;
  for (const char* policy : {"full", "first_n(3)", "first_n(2)", "first_n(1)", "none"}) {
    totals.push_back(held(policy, 4).total().count);
  }
  const std::int64_t per_layer = totals[1] - totals[0];
  CHECK(per_layer > 0);
  for (std::size_t i = 1; i < totals.size(); ++i) CHECK(totals[i] - totals[i - 1] == per_layer);
}

TEST_CASE("a tensor that two regions share is counted once") {
  // save_mm keeps w2's result in every block. It is a block's last op but one, so no other region
  // reads it. Segments of one model share the residual stream at their borders only.
  CHECK(held("segments(2)", 4).inputs == Bytes{2 * kWidth});
  CHECK(held("root", 4).inputs == Bytes{0});
}

}  // namespace
}  // namespace rematch
