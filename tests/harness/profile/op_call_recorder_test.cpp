// Records the ops of real steps on the CPU. A made-up device runs one kernel for each op.
#include "harness/profile/op_call_recorder.h"

#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include "harness/profile/attribution.h"
#include "harness/profile/nvtx_marker.h"
#include "harness/profile/recorded_step.h"
#include "harness/profile/step_ops.h"
#include "harness/trace/tracer.h"
#include "models/preset/preset.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

// Stores the ids and names of op calls that begin, and the threads that they begin on.
struct Notes final : LaunchMarker {
  std::vector<std::uint64_t> ids;
  std::vector<std::string> names;
  std::set<std::thread::id> threads;
  int open = 0;
  int most_open = 0;
  void begin(std::uint64_t op_call, const std::string& name) override {
    ids.push_back(op_call);
    names.push_back(name);
    threads.insert(std::this_thread::get_id());
    most_open = std::max(most_open, ++open);
  }
  void end() override { --open; }
};

// Trains a small Llama with two layers, both fully checkpointed.
std::unique_ptr<Training> checkpointed_training() {
  TrainingSettings settings;
  settings.model = std::get<ModelSpec>(make_spec(
      "llama_small",
      {{"layers", 2}, {"dim", 32}, {"heads", 2}, {"kv_heads", 1}, {"ffn", 64}, {"tokens", 16}}));
  auto training = std::make_unique<Training>(settings);
  const Batch batch = training->batch(0);
  const Trace trace = record_trace([&] { return training->loss(batch); });
  training->clear_gradients();
  const Policy full = std::get<Policy>(parse_policy("full"));
  training->use_plan(std::get<Plan>(resolve(full, trace)), Schedule::kOnDemand);
  return training;
}

void run_steps(Training& training, OpCallRecorder& recorder, int num_steps) {
  const OpObserverGuard observe(&recorder);
  RecordedStep listener(recorder);
  for (int step = 0; step < num_steps; ++step) training.step(step, listener);
}

const char* kernel_of(OpClass op_class) {
  switch (op_class) {
    case OpClass::kMatmul:
      return "nvjet_tst_64x64";
    case OpClass::kAttentionForward:
      return "flash_fwd_kernel";
    case OpClass::kAttentionBackward:
      return "flash_bwd_dq_dk_dv_loop";
    default:
      return "vectorized_elementwise_kernel";
  }
}

Activity one_kernel_each(const std::vector<OpCall>& calls) {
  Activity activity;
  for (std::size_t index = 0; index < calls.size(); ++index) {
    const auto correlation = static_cast<std::uint32_t>(1000 + index);
    const std::chrono::nanoseconds start(1 + 20 * static_cast<std::int64_t>(index));
    activity.kernels.push_back({kernel_of(calls[index].op_class), start,
                                start + std::chrono::nanoseconds(10), correlation});
    activity.links.push_back({correlation, index + 1});
    activity.launches.push_back(
        {start, start + std::chrono::nanoseconds(5), /*thread=*/1, correlation});
  }
  return activity;
}

TEST_CASE("every op is marked while it runs, by phase, block and name") {
  const auto training = checkpointed_training();
  Notes notes;
  OpCallRecorder recorder({&notes});
  run_steps(*training, recorder, 1);
  CHECK(notes.open == 0);
  CHECK(notes.most_open == 1);  // no more than one, because an op inside another op is not recorded
  REQUIRE(notes.ids.size() == recorder.calls().size() + 1);
  CHECK(notes.ids[0] == kBatchOfStep);  // the batch is made before the first op
  for (std::size_t index = 1; index < notes.ids.size(); ++index) CHECK(notes.ids[index] == index);
  const auto has = [&](const std::string& name) {
    return std::find(notes.names.begin(), notes.names.end(), name) != notes.names.end();
  };
  CHECK(has("forward blocks.0 aten::mm"));
  CHECK(has("recompute blocks.1 aten::mm"));
  CHECK(has("backward blocks.0 aten::mm"));
  CHECK(has("optimizer aten::_fused_adamw_"));
}

// These lists are globals, because NVTX's functions take no user pointer. They need no lock,
// because steps on the CPU run on one thread.
struct NvtxRange {
  std::string name;
  std::string inside;  // name of the enclosing range on the same thread
  std::string phase;   // name of the open phase range of the process
};
std::vector<NvtxRange> nvtx_ranges;
std::vector<std::string> nvtx_open;
std::vector<std::string> nvtx_phases;  // names of phase ranges that have ended
std::string nvtx_phase;

constexpr NvtxFunctions kNotingNvtx = {
    [](const char* name) {
      nvtx_ranges.push_back({name, nvtx_open.empty() ? "" : nvtx_open.back(), nvtx_phase});
      nvtx_open.emplace_back(name);
    },
    [] { nvtx_open.pop_back(); },
    [](const char* name) -> std::uint64_t {
      CHECK(nvtx_phase == "");
      nvtx_phase = name;
      return nvtx_phases.size();
    },
    [](std::uint64_t range) {
      CHECK(range == nvtx_phases.size());
      nvtx_phases.push_back(std::exchange(nvtx_phase, ""));
    }};

bool is_region(const NvtxRange& range) { return range.name.find(" region ") != std::string::npos; }

TEST_CASE(
    "every op has an NVTX range inside the ranges of its region and phase, and all ranges are "
    "closed") {
  nvtx_ranges.clear();
  nvtx_phases.clear();
  const auto training = checkpointed_training();
  NvtxMarker marker(kNotingNvtx);
  OpCallRecorder recorder({&marker});
  run_steps(*training, recorder, 1);
  CHECK(nvtx_open.empty());
  CHECK(nvtx_phase == "");
  CHECK(nvtx_phases == std::vector<std::string>{"forward", "backward", "optimizer"});
  const auto regions = std::stable_partition(nvtx_ranges.begin(), nvtx_ranges.end(), is_region);
  CHECK(regions - nvtx_ranges.begin() >=
        4);  // two regions in forward, and the same two in backward
  nvtx_ranges.erase(nvtx_ranges.begin(), regions);
  REQUIRE(nvtx_ranges.size() == recorder.calls().size() + 1);
  CHECK(nvtx_ranges[0].name == "batch");
  CHECK(nvtx_ranges[0].phase == "");
  for (std::size_t index = 1; index < nvtx_ranges.size(); ++index) {
    const OpCall& call = recorder.calls()[index - 1];
    const std::string phase(to_string(call.phase));
    const std::string place = call.place.empty() ? "" : call.place + " ";
    const NvtxRange& range = nvtx_ranges[index];
    CAPTURE(range.name, range.inside);
    CHECK(range.name == phase + " " + place + call.op);
    CHECK(range.phase == (call.phase == Phase::kRecompute ? "backward" : phase));
    const bool in_region = call.phase == Phase::kRecompute ||
                           (call.phase == Phase::kForward && call.place.starts_with("blocks."));
    CHECK(range.inside == (in_region ? phase + " region " + call.place : ""));
  }
}

TEST_CASE("the op calls that launched kernels match the executed ops") {
  const auto training = checkpointed_training();
  OpCallRecorder warm_up({});  // records the first step, which also allocates the optimizer's state
  run_steps(*training, warm_up, 1);
  OpCallRecorder recorder({});
  run_steps(*training, recorder, 2);
  const CountsRecord counts = recorder.counts(2);
  const Activity activity = one_kernel_each(recorder.calls());
  const KernelRecord record = kernel_record(attribute(activity, recorder.calls()), counts);
  CAPTURE(record.invalid);
  CHECK(record.invalid.empty());
  CHECK(record.counted_steps == 2);
  constexpr auto kRecompute = static_cast<std::size_t>(Phase::kRecompute);
  REQUIRE(counts.by_class[kRecompute].at(OpClass::kAttentionForward) == 4);
  for (std::size_t phase = 0; phase < kNumPhases; ++phase) {
    const auto matmuls = counts.by_class[phase].find(OpClass::kMatmul);
    if (matmuls == counts.by_class[phase].end()) continue;
    CHECK(record.count[phase].at("matmul") == matmuls->second);
  }
  CHECK(record.count[kRecompute].at("attention_forward") == 4);

  // Removes the kernel of one recomputed attention in the second step.
  Activity lacking = activity;
  for (std::size_t index = recorder.calls().size(); index-- > 0;) {
    const OpCall& call = recorder.calls()[index];
    if (call.phase != Phase::kRecompute || call.op_class != OpClass::kAttentionForward) continue;
    lacking.kernels.erase(lacking.kernels.begin() + static_cast<std::ptrdiff_t>(index));
    lacking.launches.erase(lacking.launches.begin() + static_cast<std::ptrdiff_t>(index));
    break;
  }
  CHECK_THAT(kernel_record(attribute(lacking, recorder.calls()), counts).invalid,
             Catch::Contains("but 3 of them launched a kernel of class attention_forward"));
}

// Makes a profile from real steps. This is possible only if a step runs exactly the ops of the
// trace.
TEST_CASE("recorded steps without a policy run the trace's ops, and give a profile") {
  TrainingSettings settings;
  settings.model = std::get<ModelSpec>(make_spec(
      "llama_small",
      {{"layers", 2}, {"dim", 32}, {"heads", 2}, {"kv_heads", 1}, {"ffn", 64}, {"tokens", 16}}));
  Training training(settings);
  const Batch batch = training.batch(0);
  const Trace trace = record_trace([&] { return training.loss(batch); });
  training.clear_gradients();
  OpCallRecorder warm_up({});
  run_steps(training, warm_up, 1);
  OpCallRecorder recorder({});
  run_steps(training, recorder, 2);
  TimedSteps steps;
  steps.watched =
      times_of_steps(one_kernel_each(recorder.calls()), recorder.calls(), trace, /*num_steps=*/2);
  steps.forward = steps.backward = steps.optimizer = {std::chrono::milliseconds(1)};
  const Profile profile = measured_profile(trace, "cuda", steps);
  const std::chrono::nanoseconds one_kernel(10);
  CHECK(profile.forward == std::vector(trace.ops.size(), one_kernel));
  CHECK(profile.backward == std::vector(backward_names(trace).size(), one_kernel));
}

TEST_CASE("ops are marked on the thread that launches them") {
  Notes notes;
  OpCallRecorder recorder({&notes});
  const auto training = checkpointed_training();
  run_steps(*training, recorder, 1);
  std::thread([&] { run_steps(*training, recorder, 1); }).join();
  CHECK(notes.threads.size() == 2);
  CHECK(notes.open == 0);
}

}  // namespace
}  // namespace rematch
