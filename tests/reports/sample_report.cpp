#include "tests/reports/sample_report.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdio>

namespace rematch::testing {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr int kSteps = 10;

std::size_t at(Phase phase) { return static_cast<std::size_t>(phase); }

PointIdentity sample_identity(const std::string& policy, Schedule schedule) {
  PointIdentity identity;
  identity.model = "wan_small";
  identity.dimensions = {{"layers", 8}, {"dim", 128}, {"heads", 4}, {"ffn", 256}, {"tokens", 64}};
  identity.data = "builtin";
  identity.seed = 1;
  // Not a real hash, but different for each policy.
  identity.plan_sha256 = std::string(64 - policy.size() % 64, 'a');
  for (const char letter : policy) {
    identity.plan_sha256 += "0123456789abcdef"[static_cast<unsigned char>(letter) % 16];
  }
  identity.plan_sha256.resize(64, 'b');
  identity.schedule = schedule;
  identity.attention_backend = "flash";
  identity.dtype = "float32";
  identity.optimizer = "adamw";
  identity.allocator = "cpu_counting";
  identity.threads = 2;
  return identity;
}

MemoryRecord sample_memory() {
  MemoryRecord memory;
  memory.peak_allocated = Bytes{100 * kMiB};
  memory.peak_transient = Bytes{kMiB / 2};
  memory.peak_phase = Phase::kBackward;
  memory.peak_scope = "blocks.7";
  memory.after_forward = Bytes{95 * kMiB};
  memory.parameter = Bytes{15 * kMiB};
  memory.baseline = Bytes{46 * kMiB};
  memory.holders_at_peak = {
      {Holder::kParameters, Bytes{15 * kMiB}}, {Holder::kGradients, Bytes{3 * kMiB}},
      {Holder::kOptimizer, Bytes{30 * kMiB}},  {Holder::kSavedActivations, Bytes{40 * kMiB}},
      {Holder::kRecomputeTransient, Bytes{0}}, {Holder::kOther, Bytes{12 * kMiB}}};
  memory.peak_by_phase = {{"forward", Bytes{96 * kMiB}},
                          {"backward", Bytes{100 * kMiB}},
                          {"backward.blocks.7", Bytes{100 * kMiB}},
                          {"optimizer", Bytes{60 * kMiB}}};
  memory.holders_by_phase = {{"forward",
                              {{Holder::kParameters, Bytes{15 * kMiB}},
                               {Holder::kOptimizer, Bytes{30 * kMiB}},
                               {Holder::kSavedActivations, Bytes{41 * kMiB}},
                               {Holder::kOther, Bytes{10 * kMiB}}}},
                             {"backward", memory.holders_at_peak},
                             {"optimizer",
                              {{Holder::kParameters, Bytes{15 * kMiB}},
                               {Holder::kOptimizer, Bytes{30 * kMiB}},
                               {Holder::kGradients, Bytes{15 * kMiB}}}}};
  memory.dead_save = Bytes{0};
  memory.predicted_peak_allocated = memory.peak_allocated;
  memory.predicted_after_forward = memory.after_forward;
  MemoryTimeline timeline;
  timeline.op_index = {0, 100, 200, 300};
  timeline.phase = {Phase::kForward, Phase::kBackward, Phase::kBackward, Phase::kOptimizer};
  timeline.bytes = {{Holder::kParameters, {15, 15, 15, 15}},
                    {Holder::kSavedActivations, {0, 40, 20, 0}}};
  memory.timeline = timeline;
  return memory;
}

TimeRecord sample_time() {
  using std::chrono::microseconds;
  TimeRecord time;
  time.samples = {{microseconds(10000), microseconds(10100)},
                  {microseconds(9900), microseconds(10000)}};
  time.step_median = microseconds(10000);
  time.step_interval = {{microseconds(9900), microseconds(10100)}};
  time.step_mad = microseconds(50);
  time.phases = {{"forward", microseconds(3000)}, {"backward", microseconds(6000)}};
  time.classes[at(Phase::kForward)][OpClass::kMatmul] = microseconds(1500);
  time.ratio = StepRatioRecord{"none", 1.0, {{0.99, 1.01}}, "same"};
  time.quality = TimeQuality{"good", 0.01, 0.002, {}, 0};
  time.attention_backend = "flash";
  time.device_state = DeviceStateRecord{1755, 1740, 2619, 64, {"sw_power_cap"}, 0, 0, 1};
  return time;
}

KernelRecord sample_kernels() {
  KernelRecord kernels;
  kernels.counted_steps = 2;
  kernels.count[at(Phase::kForward)] = {{"matmul", 128}, {"attention_forward", 16}, {"unknown", 2}};
  kernels.time[at(Phase::kForward)] = {{"matmul", std::chrono::microseconds(3000)},
                                       {"attention_forward", std::chrono::microseconds(900)},
                                       {"unknown", std::chrono::microseconds(100)}};
  kernels.launches[at(Phase::kForward)] = {{"pytorch_flash::flash_fwd_kernel", 16},
                                           {"somebodys_kernel", 2}};
  kernels.unknown_time_ratio = 0.025;
  kernels.unknown_names = {"somebodys_kernel"};
  kernels.unknown_times = {{"somebodys_kernel", std::chrono::microseconds(100)}};
  kernels.offload_copies = TransferRecord{8, Bytes{4 << 20}, std::chrono::microseconds(170)};
  kernels.unattributed_transfers = TransferRecord{1, Bytes{512}, std::chrono::microseconds(2)};
  kernels.slowdown_ratio = 1.08;
  kernels.note = "step 0 ran 73 kernels, step 1 ran 75: the launches of a step depend on its data";
  return kernels;
}

}  // namespace

PointRecord sample_point(const std::string& policy, Schedule schedule) {
  PointRecord point;
  point.identity = sample_identity(policy, schedule);
  point.policy = policy;
  point.device = "cpu";
  CountsRecord counts;
  counts.counted_steps = kSteps;
  counts.by_class[at(Phase::kForward)] = {{OpClass::kMatmul, 64 * kSteps},
                                          {OpClass::kAttentionForward, 8 * kSteps}};
  counts.by_class[at(Phase::kBackward)] = {{OpClass::kMatmul, 128 * kSteps},
                                           {OpClass::kAttentionBackward, 8 * kSteps}};
  counts.by_op[at(Phase::kForward)] = {{"aten::addmm", 64 * kSteps},
                                       {"rematch::attention", 8 * kSteps}};
  counts.by_op[at(Phase::kBackward)] = {{"aten::mm", 128 * kSteps},
                                        {"rematch::attention_backward", 8 * kSteps}};
  point.counts = counts;
  point.predicted_counts = counts.by_class;
  point.memory = sample_memory();
  point.time = sample_time();
  if (policy == "none") point.time->control = ControlRecord{1.003, {{0.988, 1.021}}};
  point.kernels = sample_kernels();
  point.steps = {{1.5, "0x3fc00000", "0x40000000", "aa", "bb", {{"head.weight", "cc"}}},
                 {std::nullopt, "0x7fc00000", "", "", "", {}}};
  ParityRecord parity;
  parity.reference = "none";
  parity.compared_steps = kSteps;
  parity.loss_bits_equal = parity.gradient_bits_equal = true;
  parity.parameter_hash_equal = parity.generator_hash_equal = true;
  parity.every_parameter_has_gradient = true;
  point.parity = parity;
  point.effect = EffectRecord{"", false, true, ""};
  point.step_flops = 1'000'000'000;
  point.recomputed_step_flops = 0;
  point.implied_flops_per_second = 1e11;
  point.most_flops_per_second = 1e12;
  return point;
}

PointRecord sample_recomputing(const std::string& policy, std::int64_t recomputed, Bytes less,
                               double ratio, Schedule schedule) {
  PointRecord point = sample_point(policy, schedule);
  point.counts->by_class[at(Phase::kRecompute)] = {
      {OpClass::kMatmul, 2 * recomputed * kSteps},
      {OpClass::kAttentionForward, recomputed * kSteps}};
  point.predicted_counts = point.counts->by_class;
  point.memory->peak_allocated = *point.memory->peak_allocated - less;
  point.memory->holders_at_peak[Holder::kSavedActivations] -= less;
  point.memory->holders_by_phase["backward"] = point.memory->holders_at_peak;
  point.memory->after_forward = *point.memory->after_forward - less;
  point.time->ratio = StepRatioRecord{
      "none", ratio, {{ratio - 0.02, ratio + 0.02}}, ratio > 1.03 ? "slower" : "unsure"};
  return point;
}

PointRecord sample_oom(const std::string& policy) {
  PointRecord point = sample_point(policy);
  point.status = PointStatus::kOom;
  point.reason = "asked for 20 MiB at aten::addmm with 90 MiB held";
  point.failure = FailureRecord{3, std::nullopt, Bytes{20 * kMiB}, Phase::kBackward};
  point.counts.reset();
  point.predicted_counts.reset();
  point.memory = MemoryRecord{};
  point.memory->peak_allocated = Bytes{90 * kMiB};
  point.time.reset();
  point.steps.clear();
  point.parity.reset();
  point.effect.reset();
  point.step_flops.reset();
  point.recomputed_step_flops.reset();
  point.implied_flops_per_second.reset();
  point.kernels.reset();
  point.kernels_reason = "it did not get that far";
  return point;
}

PointRecord sample_on_ranks(const std::string& policy, std::int64_t recomputed) {
  constexpr std::int64_t kMiB = 1 << 20;
  PointRecord point = policy == "none" ? sample_point(policy)
                                       : sample_recomputing(policy, 8, Bytes{30 * kMiB}, 1.31);
  point.identity.world = 2;
  point.identity.dimensions["tp"] = 2;
  RanksRecord& ranks = point.ranks.emplace();
  ranks.counted_steps = point.counts->counted_steps;
  const auto executed = [&](Phase phase, std::int64_t in_step) {
    const auto index = static_cast<std::size_t>(phase);
    if (in_step == 0) return;
    ranks.collectives[index]["all_reduce"] = in_step * ranks.counted_steps;
    ranks.collective_bytes[index]["all_reduce"] = in_step * ranks.counted_steps * kMiB;
  };
  executed(Phase::kForward, 16);
  executed(Phase::kRecompute, recomputed);
  executed(Phase::kBackward, 15);
  executed(Phase::kOptimizer, 1);
  ranks.predicted_collectives = ranks.collectives;
  const Bytes peak = *point.memory->peak_allocated;
  ranks.ranks = {{0, peak - Bytes{kMiB}, Bytes{60 * kMiB}}, {1, peak, Bytes{61 * kMiB}}};
  ranks.worst_rank = 1;
  return point;
}

void set_loss(StepRecord& step, float loss) {
  std::array<char, 16> bits{};
  std::snprintf(bits.data(), bits.size(), "0x%08x", std::bit_cast<std::uint32_t>(loss));
  step.loss = std::isfinite(loss) ? std::optional<double>(loss) : std::nullopt;
  step.loss_bits = bits.data();
}

Provenance sample_provenance() {
  Provenance provenance;
  provenance.environment.device = "cpu";
  provenance.environment.cpu_model = "Made-up CPU";
  provenance.environment.cpu_cores = 2;
  provenance.environment.threads = 2;
  provenance.environment.pci_bus_id = "0000:17:00.0";
  provenance.environment.persistence_mode = true;
  provenance.environment.default_power_limit_mw = 700000;
  provenance.environment.cupti = "13.0.1";
  provenance.environment.hostname = "host";
  provenance.environment.variables = {{"OMP_NUM_THREADS", "2"}};
  provenance.command = {"rematch", "run", "--model", "wan_small"};
  provenance.seed = 1;
  provenance.git_commit = "0123456";
  provenance.git_dirty = false;
  provenance.tool_version = "0.1.0";
  provenance.reproduce = "scripts/rematch run --model wan_small --policy none,full --steps 10";
  return provenance;
}

}  // namespace rematch::testing
