// The arithmetic of choosing layers, on the running engine: what each choice executes and holds.
#include "tests/support/catch.h"
#include "tests/support/model_step.h"

namespace rematch::testing {
namespace {

constexpr int kLayers = 8;

// Two attentions a block.
const ModelCase kWan = {"wan_small",
                        {{"layers", kLayers},
                         {"dim", 48},
                         {"heads", 4},
                         {"ffn", 64},
                         {"tokens", 32},
                         {"text_tokens", 4}}};

struct Fixture {
  Trace trace = ModelInstance(kWan).trace();
  ModelStep run(const std::string& policy, Schedule schedule = Schedule::kOnDemand) const {
    return run_step(kWan, plan_for(policy, trace), schedule);
  }
};

TEST_CASE("attention forward runs L a times when kept, 2 L a times under full") {
  const Fixture f;
  for (const Schedule schedule : {Schedule::kWholeRegion, Schedule::kOnDemand}) {
    const auto count = [&](const std::string& policy, const char* op) {
      return f.run(policy, schedule).ops.at(op);
    };
    CHECK(count("none", "rematch::attention") == 2 * kLayers);
    CHECK(count("attn_only", "rematch::attention") == 2 * kLayers);
    CHECK(count("full", "rematch::attention") == 2 * 2 * kLayers);
    CHECK(count("first_n(3)", "rematch::attention") == 2 * (kLayers + 3));
    for (const char* policy : {"none", "attn_only", "full"}) {
      CHECK(count(policy, "rematch::attention_backward") == 2 * kLayers);
    }
  }
}

TEST_CASE("full and attn_only differ in attention forward alone") {
  const Fixture f;
  for (const Schedule schedule : {Schedule::kWholeRegion, Schedule::kOnDemand}) {
    std::map<std::string, int> full = f.run("full", schedule).ops;
    std::map<std::string, int> attn_only = f.run("attn_only", schedule).ops;
    full.erase("rematch::attention");
    attn_only.erase("rematch::attention");
    CHECK(full == attn_only);
  }
}

// Each block that is not checkpointed adds the same bytes; which blocks does not matter, but that
// the first checkpointed one's input is the embedding, which is alive anyway.
TEST_CASE("bytes after forward are linear in the number of blocks left alone") {
  const Fixture f;
  const auto after = [&](const std::string& policy) { return f.run(policy).after_forward_bytes; };
  const std::int64_t full = after("full");
  const std::int64_t per_block = after("skip_list([7])") - full;
  CHECK(per_block > 0);
  CHECK(after("nth_last(4)") == full + 6 * per_block);
  CHECK(after("nth_last(2)") == full + 4 * per_block);
  CHECK(after("nth_first(2)") == full + 4 * per_block);
  CHECK(after("skip_nth(4)") == full + 2 * per_block);
  CHECK(after("first_n(3)") == full + 5 * per_block);
  // Recompute needs the time's modulation, which without any region nothing holds on to.
  const std::int64_t modulation = 2 * 6 * 48 * 4;  // batch, tables, dim, float32
  CHECK(after("none") == full + 8 * per_block - modulation);
}

// Backward starts with the last block and rebuilds it at once. What is left to gain is what the
// head's backward holds before that: a small part of the block.
TEST_CASE("checkpointing the last block saves nothing at the peak") {
  const Fixture f;
  CHECK(f.run("full").peak_bytes == f.run("first_n(7)").peak_bytes);
  const ModelStep none = f.run("none");
  const ModelStep last = f.run("last_n(1)", Schedule::kWholeRegion);
  const std::int64_t block_bytes = none.after_forward_bytes - last.after_forward_bytes;
  CHECK(block_bytes > 0);
  CHECK(none.peak_bytes - last.peak_bytes < block_bytes / 10);
}

TEST_CASE("a prefix never peaks higher than every N-th with as many blocks") {
  const Fixture f;
  for (const Schedule schedule : {Schedule::kWholeRegion, Schedule::kOnDemand}) {
    CHECK(f.run("first_n(4)", schedule).peak_bytes <= f.run("nth_last(2)", schedule).peak_bytes);
    CHECK(f.run("first_n(4)", schedule).peak_bytes <= f.run("nth_first(2)", schedule).peak_bytes);
    CHECK(f.run("first_n(2)", schedule).peak_bytes <= f.run("nth_last(4)", schedule).peak_bytes);
    CHECK(f.run("first_n(6)", schedule).peak_bytes <= f.run("skip_nth(4)", schedule).peak_bytes);
  }
}

}  // namespace
}  // namespace rematch::testing
