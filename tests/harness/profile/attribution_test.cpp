#include "harness/profile/attribution.h"

#include "tests/support/catch.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;

constexpr const char* kFlashForward = "flash_fwd_kernel";
constexpr const char* kGemm = "nvjet_tst_64x64";

// Made-up device activity of consecutive steps. Each launch gets a correlation id, as from a real
// driver.
class Device {
 public:
  void run(const char* symbol, std::uint64_t op_call, std::int64_t duration = 10) {
    launch(op_call);
    activity.kernels.push_back(
        {symbol, nanoseconds(clock_), nanoseconds(clock_ + duration), correlation_});
    clock_ += duration + 1;
  }

  // Adds a launch call without the kernel that it launches.
  std::uint32_t launch(std::uint64_t op_call) {
    ++correlation_;
    if (op_call != 0) activity.links.push_back({correlation_, op_call});
    activity.launches.push_back({nanoseconds(clock_), nanoseconds(clock_ + 5), 1, correlation_});
    clock_ += 6;
    return correlation_;
  }

  void copy(std::int64_t bytes, std::uint64_t op_call, std::int64_t duration = 10) {
    ++correlation_;
    if (op_call != 0) activity.links.push_back({correlation_, op_call});
    activity.transfers.push_back(
        {nanoseconds(clock_), nanoseconds(clock_ + duration), correlation_, Bytes{bytes}});
    clock_ += duration + 1;
  }

  Activity activity;

 private:
  std::uint32_t correlation_ = 100;
  std::int64_t clock_ = 1000;
};

// Returns the op calls of one step: mm and attention in forward, attention in recompute, mm in
// backward.
std::vector<OpCall> calls_of_a_step(int step = 0) {
  return {{"aten::mm", OpClass::kMatmul, Phase::kForward, "blocks.0", step},
          {"rematch::attention", OpClass::kAttentionForward, Phase::kForward, "blocks.0", step},
          {"rematch::attention", OpClass::kAttentionForward, Phase::kRecompute, "blocks.0", step},
          {"aten::mm", OpClass::kMatmul, Phase::kBackward, "blocks.0", step}};
}

Device device_of_a_step() {
  Device device;
  device.run(kGemm, 1, 10);
  device.run(kFlashForward, 2, 20);
  device.run(kFlashForward, 3, 21);
  device.run(kGemm, 4, 30);
  device.run("splitKreduce_kernel", 4, 2);
  return device;
}

const KernelTotals& totals(const KernelUse& use, Phase phase, KernelClass kernel_class) {
  return use.by_class[static_cast<std::size_t>(phase)].at(kernel_class);
}

TEST_CASE("kernels are counted and timed under the op that launched them") {
  const KernelUse use = attribute(device_of_a_step().activity, calls_of_a_step());
  CHECK_FALSE(use.invalid);
  CHECK(totals(use, Phase::kForward, KernelClass::kMatmul) == KernelTotals{1, nanoseconds(10)});
  CHECK(totals(use, Phase::kForward, KernelClass::kAttentionForward) ==
        KernelTotals{1, nanoseconds(20)});
  CHECK(totals(use, Phase::kRecompute, KernelClass::kAttentionForward) ==
        KernelTotals{1, nanoseconds(21)});
  CHECK(totals(use, Phase::kBackward, KernelClass::kMatmul) == KernelTotals{2, nanoseconds(32)});
  CHECK(use.by_op_class[2].at(OpClass::kMatmul) == KernelTotals{2, nanoseconds(32)});
  CHECK(use.total_time() == nanoseconds(83));
}

TEST_CASE("executed ops are compared with the kernels that ran") {
  const std::vector<OpCall> calls = calls_of_a_step();
  std::array<std::map<OpClass, std::int64_t>, kNumPhases> executed;
  executed[0] = {{OpClass::kMatmul, 1}, {OpClass::kAttentionForward, 1}};
  executed[1] = {{OpClass::kAttentionForward, 1}};
  executed[2] = {{OpClass::kMatmul, 1}};
  CHECK_FALSE(disagreement(attribute(device_of_a_step().activity, calls), executed));

  // Here the recomputed attention launches no kernel.
  Device device;
  device.run(kGemm, 1);
  device.run(kFlashForward, 2);
  device.run(kGemm, 4);
  const auto line = disagreement(attribute(device.activity, calls), executed);
  REQUIRE(line);
  CHECK(*line ==
        "recompute executed 1 attention_forward ops, but 0 of them launched a kernel of class "
        "attention_forward");
}

// Composed attention has no kernel of its own. It runs two matmuls with a softmax between them.
TEST_CASE("composed attention is compared with the matmuls that it launches") {
  const std::vector<OpCall> calls = {
      {"rematch::attention", OpClass::kAttentionForward, Phase::kForward, "blocks.0", 0},
      {"rematch::attention_backward", OpClass::kAttentionBackward, Phase::kBackward, "blocks.0",
       0}};
  std::array<std::map<OpClass, std::int64_t>, kNumPhases> executed;
  executed[0] = {{OpClass::kAttentionForward, 1}};
  executed[2] = {{OpClass::kAttentionBackward, 1}};
  Device device;
  device.run(kGemm, 1);
  device.run("softmax_warp_forward", 1);
  device.run(kGemm, 1);
  device.run(kGemm, 2);
  CHECK_FALSE(
      disagreement(attribute(device.activity, calls, AttentionKernels::kComposed), executed));
  CHECK(disagreement(attribute(device.activity, calls), executed).value() ==
        "forward executed 1 attention_forward ops, but 0 of them launched a kernel of class "
        "attention_forward");

  // The check must also find a missing matmul of composed attention.
  Device lacking;
  lacking.run(kGemm, 1);
  lacking.run("softmax_warp_backward", 2);
  CHECK(disagreement(attribute(lacking.activity, calls, AttentionKernels::kComposed), executed)
            .value() ==
        "backward executed 1 attention_backward ops, but 0 of them launched a kernel of class "
        "matmul");

  // Fused kernels are an error if composed attention is expected.
  Device fused;
  fused.run(kFlashForward, 1);
  fused.run("flash_bwd_dq_dk_dv_loop", 2);
  CHECK(disagreement(attribute(fused.activity, calls, AttentionKernels::kComposed), executed));
  CHECK_FALSE(disagreement(attribute(fused.activity, calls), executed));
}

TEST_CASE(
    "lost records, records with wrong timestamps and unattributed records make the pass invalid") {
  Activity activity = device_of_a_step().activity;
  activity.dropped = 3;
  CHECK_THAT(attribute(activity, calls_of_a_step()).invalid.value(),
             Catch::Contains("3 activity records were dropped"));

  activity = device_of_a_step().activity;
  activity.kernels[1].start = nanoseconds(0);
  activity.kernels[2].end = activity.kernels[2].start - nanoseconds(1);
  KernelUse use = attribute(activity, calls_of_a_step());
  CHECK(use.badly_stamped == 2);
  CHECK_THAT(use.invalid.value(), Catch::Contains("2 activity records"));

  Device device = device_of_a_step();
  device.run(kGemm, 0);
  device.run(kGemm, 99);  // 99 is not the number of an op call
  use = attribute(device.activity, calls_of_a_step());
  CHECK(use.unattributed == 2);
  CHECK_THAT(use.invalid.value(), Catch::Contains("2 kernels were not launched by an op"));
}

// The step runs mm and add in forward. Kernels of class elementwise are not compared with executed
// ops.
TEST_CASE("a lost kernel makes the pass invalid, whatever its class") {
  const std::vector<OpCall> calls = {
      {"aten::mm", OpClass::kMatmul, Phase::kForward, "blocks.0", 0},
      {"aten::add", OpClass::kElementwise, Phase::kForward, "blocks.0", 0}};
  for (const char* lost : {kGemm, "elementwise_kernel"}) {
    Device device;
    for (const char* symbol : {kGemm, "elementwise_kernel"}) {
      const std::uint64_t call = symbol == kGemm ? 1 : 2;
      symbol == lost ? static_cast<void>(device.launch(call)) : device.run(symbol, call);
    }
    const KernelUse use = attribute(device.activity, calls);
    CHECK(use.lost == 1);
    CHECK_THAT(use.invalid.value(), Catch::Contains("ops launched kernels without a record: 1"));
  }
  Device complete;
  complete.run(kGemm, 1);
  complete.run("elementwise_kernel", 2);
  complete.launch(0);  // a launch outside of all op calls
  complete.launch(kBatchOfStep);
  CHECK_FALSE(attribute(complete.activity, calls).invalid);
}

TEST_CASE("a runtime launch and the driver launch inside it count as one launch") {
  Device device = device_of_a_step();
  LaunchCall& outer = device.activity.launches.back();
  outer.end += nanoseconds(20);
  LaunchCall inner = outer;
  inner.start += nanoseconds(2);
  inner.end -= nanoseconds(2);
  inner.correlation = 999;
  device.activity.links.push_back({999, 4});
  device.activity.launches.push_back(inner);
  CHECK(attribute(device.activity, calls_of_a_step()).lost == 0);
  device.activity.kernels.back().correlation = 999;  // the kernel of the inner launch call
  CHECK(attribute(device.activity, calls_of_a_step()).lost == 0);
  device.activity.launches.back().thread = 2;
  CHECK(attribute(device.activity, calls_of_a_step()).lost == 1);
}

TEST_CASE("unfinished kernels and copies make the pass invalid") {
  Activity activity = device_of_a_step().activity;
  activity.unfinished = 2;
  const KernelUse use = attribute(activity, calls_of_a_step());
  CHECK(use.unfinished == 2);
  CHECK_THAT(use.invalid.value(), Catch::Contains("2 kernels or copies had not ended"));
}

// In step 1, one op has no kernel, no correlation and no launch. Only a comparison with step 0
// shows that records are missing.
TEST_CASE(
    "a step without the records of one launch makes the pass invalid, because the steps differ") {
  std::vector<OpCall> calls = calls_of_a_step(0);
  for (const OpCall& call : calls_of_a_step(1)) calls.push_back(call);
  Device device = device_of_a_step();
  for (const std::uint64_t call : {5, 6, 7, 8}) device.run(call == 6 ? kFlashForward : kGemm, call);
  device.activity.launches.clear();
  const KernelUse use = attribute(device.activity, calls);
  CHECK_FALSE(use.note);
  CHECK_THAT(use.invalid.value(),
             Catch::Contains("step 0 ran 5 kernels, step 1 ran 4") &&
                 Catch::Contains("the numbers of launches do not explain the difference"));
}

TEST_CASE("copies of an offload are counted separately and unattributed copies are noted") {
  Device device = device_of_a_step();
  device.copy(4096, kOffloadOfPlan, 30);
  device.copy(1024, kOffloadOfPlan, 12);
  device.copy(512, 1, 7);
  device.copy(64, kBatchOfStep);
  KernelUse use = attribute(device.activity, calls_of_a_step());
  CHECK((use.offload == TransferTotals{2, Bytes{5120}, nanoseconds(42)}));
  CHECK((use.unattributed_transfers == TransferTotals{}));
  CHECK(totals(use, Phase::kForward, KernelClass::kMemory) == KernelTotals{1, nanoseconds(7)});
  CHECK_FALSE(use.note);
  device.copy(100, 0, 5);
  device.copy(28, 0, 6);
  use = attribute(device.activity, calls_of_a_step());
  CHECK((use.unattributed_transfers == TransferTotals{2, Bytes{128}, nanoseconds(11)}));
  CHECK_FALSE(use.invalid);
  CHECK(use.note.value() == "2 copies or memsets of 128 bytes were not started by an op");
}

// Imitates a mixture of experts. It launches a matmul for each expert that gets tokens, so the
// number of launches varies between steps.
TEST_CASE("if the kernels vary with the data, a note is added and the counts remain valid") {
  std::vector<OpCall> calls = calls_of_a_step(0);
  for (const OpCall& call : calls_of_a_step(1)) calls.push_back(call);
  Device device = device_of_a_step();
  for (const std::uint64_t call : {5, 6, 7, 8}) device.run(call == 6 ? kFlashForward : kGemm, call);
  const KernelUse use = attribute(device.activity, calls);
  CHECK_FALSE(use.invalid);
  CHECK_THAT(use.note.value(), Catch::Contains("step 0 ran 5 kernels, step 1 ran 4"));
  device.run(kGemm, 8);
  CHECK_FALSE(attribute(device.activity, calls).note);
}

TEST_CASE("kernels that prepare a step's batch belong to no op, and do not count as unattributed") {
  Device device = device_of_a_step();
  device.run("direct_copy", kBatchOfStep);
  device.run("direct_copy", kBatchOfStep);
  const KernelUse use = attribute(device.activity, calls_of_a_step());
  CHECK_FALSE(use.invalid);
  CHECK(use.unattributed == 0);
  CHECK(use.total_time() == attribute(device_of_a_step().activity, calls_of_a_step()).total_time());
}

TEST_CASE("unknown kernels are named, with their time") {
  Device device = device_of_a_step();
  device.run("mystery", 1, 7);
  device.run("mystery", 1, 8);
  const KernelUse use = attribute(device.activity, calls_of_a_step());
  CHECK((use.unknown == std::map<std::string, nanoseconds>{{"mystery", nanoseconds(15)}}));
  CHECK(use.unknown_time() == nanoseconds(15));
}

TEST_CASE("transfers are recognized by their record, not by a name") {
  Activity activity = device_of_a_step().activity;
  activity.transfers.push_back(
      {nanoseconds(5000), nanoseconds(5040), activity.links[0].correlation});
  const KernelUse use = attribute(activity, calls_of_a_step());
  CHECK(totals(use, Phase::kForward, KernelClass::kMemory) == KernelTotals{1, nanoseconds(40)});
}

}  // namespace
}  // namespace rematch
