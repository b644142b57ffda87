// Compares policies that run on the engine. For example, one policy must execute more ops than
// another, or have a higher peak.
#include <algorithm>
#include <functional>

#include "tests/support/catch.h"
#include "tests/support/model_step.h"
#include "tests/support/strict.h"

namespace rematch::testing {
namespace {

constexpr int kLayers = 8;

// A model with two attentions per block.
const ModelCase kWan = {"wan_small",
                        {{"layers", kLayers},
                         {"dim", 48},
                         {"heads", 4},
                         {"ffn", 64},
                         {"tokens", 32},
                         {"text_tokens", 4}}};

const ModelCase kLlama = {
    "llama_small",
    {{"layers", 4}, {"dim", 32}, {"heads", 4}, {"kv_heads", 2}, {"ffn", 64}, {"tokens", 16}}};

struct EightLayers {
  Trace trace = ModelInstance(kWan).trace();
  ModelStep run(const std::string& policy, Schedule schedule = Schedule::kOnDemand) const {
    return run_step(kWan, plan_for(policy, trace), schedule);
  }
};

TEST_CASE("attention forward runs L times if its result is kept, and 2 L times under policy full") {
  const EightLayers f;
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

TEST_CASE("policies full and attn_only differ only in attention forward") {
  const EightLayers f;
  for (const Schedule schedule : {Schedule::kWholeRegion, Schedule::kOnDemand}) {
    std::map<std::string, int> full = f.run("full", schedule).ops;
    std::map<std::string, int> attn_only = f.run("attn_only", schedule).ops;
    full.erase("rematch::attention");
    attn_only.erase("rematch::attention");
    CHECK(full == attn_only);
  }
}

// Each of K checkpointed layers runs attention twice per step, and each of the other L - K layers
// once.
TEST_CASE("n steps with K of L layers checkpointed run attention forward n (L + K) times") {
  const EightLayers f;
  constexpr int kSteps = 3;
  for (const Schedule schedule : {Schedule::kWholeRegion, Schedule::kOnDemand}) {
    for (const auto& [policy, checkpointed] :
         std::map<std::string, int>{{"nth_last(3)", 2}, {"nth_first(3)", 3}, {"first_n(5)", 5}}) {
      CAPTURE(policy, schedule);
      const Checkpoint checkpoint = strict(plan_for(policy, f.trace), schedule);
      ModelInstance instance(kWan);
      int forward = 0;
      int backward = 0;
      for (int step = 0; step < kSteps; ++step) {
        const ModelStep done = run_step(instance, &checkpoint);
        forward += done.ops.at("rematch::attention");
        backward += done.ops.at("rematch::attention_backward");
        for (const NamedTensor& parameter : instance.model->parameters()) {
          parameter.tensor.mutable_grad().reset();
        }
      }
      CHECK(forward == kSteps * 2 * (kLayers + checkpointed));
      CHECK(backward == kSteps * 2 * kLayers);
    }
  }
}

std::int64_t dead_bytes(const Plan& plan) {
  std::int64_t bytes = 0;
  for (const PlannedRegion& region : plan.regions) {
    for (const PlannedOp& op : plan.types.at(static_cast<std::size_t>(region.type)).ops) {
      if (op.dead_save) bytes += op.bytes.count;
    }
  }
  return bytes;
}

// The peak occurs while one block is recomputed. Under on_demand, attn_only has a lower peak than
// full. attn_only keeps the result of attention, so the ops before attention are recomputed only
// when backward reaches them.
TEST_CASE(
    "policy full has no higher peak than attn_only under whole_region, but a higher peak under "
    "on_demand") {
  const EightLayers f;
  const std::int64_t none = f.run("none").peak_bytes;
  const ModelStep full = f.run("full", Schedule::kWholeRegion);
  const ModelStep attn_only = f.run("attn_only", Schedule::kWholeRegion);
  CHECK(full.after_forward_bytes < attn_only.after_forward_bytes);
  CHECK(full.peak_bytes <= attn_only.peak_bytes);
  CHECK(attn_only.peak_bytes < none);
  CHECK(f.run("full").after_forward_bytes < f.run("attn_only").after_forward_bytes);
  CHECK(f.run("attn_only").peak_bytes < f.run("full").peak_bytes);
}

// A dead save is a value that a save list keeps although backward does not read it. Without dead
// saves, a save list never holds more bytes than policy none.
TEST_CASE(
    "policies that keep the results of all costly ops hold fewer bytes than policy none, not "
    "counting dead saves") {
  for (const bool is_llama : {false, true}) {
    const ModelCase& which = is_llama ? kLlama : kWan;
    const Trace trace = ModelInstance(which).trace();
    const auto after = [&](const char* policy) {
      return run_step(which, plan_for(policy, trace), Schedule::kOnDemand).after_forward_bytes;
    };
    for (const char* policy : {"save_mm", "save_compute", "sac_titan_all"}) {
      CAPTURE(which.preset, policy);
      const std::int64_t dead = dead_bytes(plan_for(policy, trace));
      CHECK(after(policy) - dead < after("none"));
      // In Llama, the result of w2 is only added, so backward does not read it. In Wan, the result
      // is multiplied by a gate, so backward reads it.
      CHECK((dead > 0) == is_llama);
    }
  }
}

TEST_CASE(
    "the fewer layers are checkpointed, the more bytes are held after forward and at the peak") {
  const EightLayers f;
  for (const Schedule schedule : {Schedule::kWholeRegion, Schedule::kOnDemand}) {
    for (const std::string rule : {"nth_first", "nth_last"}) {
      CAPTURE(rule, schedule);
      std::vector<std::int64_t> after;
      std::vector<std::int64_t> peaks;
      for (const char* policy : {"(1)", "(2)", "(4)", "(8)"}) {
        const ModelStep step = f.run(rule + policy, schedule);
        after.push_back(step.after_forward_bytes);
        peaks.push_back(step.peak_bytes);
      }
      CHECK(std::is_sorted(after.begin(), after.end(), std::less_equal<>()));
      CHECK(std::is_sorted(peaks.begin(), peaks.end()));
    }
  }
}

// For each block, counts the ops after the last tensor that backward needs. Early stop skips these
// ops.
std::map<std::string, int> tails(const Trace& trace) {
  std::map<std::string, int> ops;
  for (const TracedBlock& block : trace.blocks) {
    const TracedScope& scope = trace.scopes[block.scope];
    OpId last_pack = scope.first_op;
    for (const TracedPack& pack : trace.packs) {
      const bool inside = pack.at_op >= scope.first_op && pack.at_op < scope.end_op;
      if (inside) last_pack = std::max(last_pack, pack.at_op);
    }
    for (OpId op = last_pack; op < scope.end_op; ++op) {
      if (trace.ops[op].name != "aten::detach") ++ops[trace.ops[op].name];
    }
  }
  return ops;
}

TEST_CASE("without early stop, recompute also runs the ops at the end of each region") {
  const EightLayers f;
  std::map<std::string, int> expected = f.run("full", Schedule::kWholeRegion).ops;
  const std::map<std::string, int> tail = tails(f.trace);
  CHECK_FALSE(tail.empty());
  for (const auto& [name, count] : tail) expected[name] += count;
  CHECK(f.run("full_nostop", Schedule::kWholeRegion).ops == expected);
}

// The position of the block does not matter. The input of the first checkpointed block adds none,
// because it is the embedding, which is always alive.
TEST_CASE("each block without checkpointing adds the same number of bytes after forward") {
  const EightLayers f;
  const auto after = [&](const std::string& policy) { return f.run(policy).after_forward_bytes; };
  const std::int64_t full = after("full");
  const std::int64_t per_block = after("skip_list([7])") - full;
  CHECK(per_block > 0);
  CHECK(after("nth_last(4)") == full + 6 * per_block);
  CHECK(after("nth_last(2)") == full + 4 * per_block);
  CHECK(after("nth_first(2)") == full + 4 * per_block);
  CHECK(after("skip_nth(4)") == full + 2 * per_block);
  CHECK(after("first_n(3)") == full + 5 * per_block);
  // Checkpointed blocks keep the modulation alive, because recompute reads it. With policy none, no
  // region keeps it alive.
  const std::int64_t modulation = 2 * 6 * 48 * 4;  // batch x tables x width x bytes of a float32
  CHECK(after("none") == full + 8 * per_block - modulation);
}

// After the backward of the head, the last block is recomputed at once. So checkpointing this block
// saves memory only until then, and the peak falls only by a small part of the block's memory.
TEST_CASE("checkpointing the last block saves almost nothing at the peak") {
  const EightLayers f;
  CHECK(f.run("full").peak_bytes == f.run("first_n(7)").peak_bytes);
  const ModelStep none = f.run("none");
  const ModelStep last = f.run("last_n(1)", Schedule::kWholeRegion);
  const std::int64_t block_bytes = none.after_forward_bytes - last.after_forward_bytes;
  CHECK(block_bytes > 0);
  CHECK(none.peak_bytes - last.peak_bytes < block_bytes / 10);
}

TEST_CASE(
    "checkpointing the first blocks never peaks higher than checkpointing the same number of "
    "evenly spaced blocks") {
  const EightLayers f;
  for (const Schedule schedule : {Schedule::kWholeRegion, Schedule::kOnDemand}) {
    CHECK(f.run("first_n(4)", schedule).peak_bytes <= f.run("nth_last(2)", schedule).peak_bytes);
    CHECK(f.run("first_n(4)", schedule).peak_bytes <= f.run("nth_first(2)", schedule).peak_bytes);
    CHECK(f.run("first_n(2)", schedule).peak_bytes <= f.run("nth_last(4)", schedule).peak_bytes);
    CHECK(f.run("first_n(6)", schedule).peak_bytes <= f.run("skip_nth(4)", schedule).peak_bytes);
  }
}

}  // namespace
}  // namespace rematch::testing
