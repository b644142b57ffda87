// Measures the time that the engine adds per recorded op, per saved tensor and per recomputed op.
// Runs only chains of tiny ops, in regions as long as a transformer block.
//
// Note [Cost per op and per saved tensor] A chain of `add` saves nothing for backward, so the time
// that a plan adds is the cost of recording ops. A chain of `sigmoid` saves one tensor per op. If
// the plan keeps every output, the additional time is the cost of saved tensors: pack, keep, unpack
// and release. If the plan keeps no output, the additional time is the cost of recompute.
#include <ATen/core/Tensor.h>
#include <ATen/ops/add.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sum.h>
#include <benchmark/benchmark.h>
#include <c10/core/GradMode.h>

#include <memory>
#include <variant>

#include "harness/engine/recording.h"
#include "harness/trace/tracer.h"
#include "models/scope/scope.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "tests/benchmarks/rows.h"
#include "tests/benchmarks/turns.h"

namespace rematch::benchmarks {
namespace {

constexpr int kNumRegions = 8;
constexpr int kOpsInRegion = 48;  // about as many ops as a Llama block has
constexpr int kNumOps = kNumRegions * kOpsInRegion;
constexpr int kNumSweeps = 804;
constexpr int kNumElements = 4;
constexpr double kLimitNanoseconds = 1000;

using Op = at::Tensor (*)(const at::Tensor&, const at::Tensor&);

at::Tensor add(const at::Tensor& x, const at::Tensor& y) { return at::add(x, y); }
at::Tensor sigmoid(const at::Tensor& x, const at::Tensor&) { return at::sigmoid(x); }

class Chain {
 public:
  explicit Chain(Op op) : op_(op) {
    const Trace trace = record_trace([this] { return forward().sum(); });
    input_.mutable_grad().reset();
    full_ = std::get<Plan>(resolve(std::get<Policy>(parse_policy("full")), trace));
    save_all_ = full_;
    for (RegionType& type : save_all_.types) {
      type.demand_steps.clear();
      for (PlannedOp& planned : type.ops) planned.treatment = Treatment::kSave;
    }
  }

  const Plan& full() const { return full_; }
  const Plan& save_all() const { return save_all_; }

  at::Tensor forward() const {
    at::Tensor x = input_;
    for (int region = 0; region < kNumRegions; ++region) {
      const Scope scope("blocks", region);
      for (int i = 0; i < kOpsInRegion; ++i) x = op_(x, other_);
    }
    return x;
  }

  void step(const Checkpoint* checkpoint) const {
    std::unique_ptr<Recording> recording;
    if (checkpoint != nullptr) recording = std::make_unique<Recording>(*checkpoint);
    at::Tensor out = forward();
    recording.reset();
    out.backward(gradient_);
    input_.mutable_grad().reset();
  }

  void without_grad() const {
    const at::NoGradGuard no_grad;
    forward();
  }

 private:
  Op op_;
  at::Tensor input_ = at::ones({kNumElements}).requires_grad_(true);
  at::Tensor other_ = at::ones({kNumElements});
  at::Tensor gradient_ = at::ones({kNumElements});
  Plan full_;
  Plan save_all_;
};

void op_cost(benchmark::State& state, Schedule schedule) {
  const Chain adds(add);
  const Chain sigmoids(sigmoid);
  const Checkpoint record(adds.full(), schedule);
  const Checkpoint keep(sigmoids.save_all(), schedule);
  const Checkpoint recompute(sigmoids.full(), schedule);
  Turns turns;
  const std::size_t add_plain = turns.add([&] { adds.step(nullptr); });
  const std::size_t add_recorded = turns.add([&] { adds.step(&record); });
  const std::size_t sigmoid_plain = turns.add([&] { sigmoids.step(nullptr); });
  const std::size_t sigmoid_kept = turns.add([&] { sigmoids.step(&keep); });
  const std::size_t sigmoid_again = turns.add([&] { sigmoids.step(&recompute); });
  const std::size_t sigmoid_alone = turns.add([&] { sigmoids.without_grad(); });
  for (auto _ : state) turns.sweep();
  const auto report = [&](const std::string& what, const std::vector<Turns::Term>& terms,
                          std::optional<double> limit) {
    const Estimate cost = turns.nanoseconds(terms, kNumOps);
    state.counters[what] = cost.value;
    add_row({"engine", what + ", " + std::string(to_string(schedule)), "ns", cost, limit, {}});
  };
  report("per recorded op", {{1, add_recorded}, {-1, add_plain}}, kLimitNanoseconds);
  report("per saved tensor",
         {{1, sigmoid_kept}, {-1, sigmoid_plain}, {-1, add_recorded}, {1, add_plain}},
         kLimitNanoseconds);
  report("per recomputed op, minus the time of the op without grad",
         {{1, sigmoid_again},
          {-1, sigmoid_plain},
          {-1, add_recorded},
          {1, add_plain},
          {-1, sigmoid_alone}},
         std::nullopt);
}

}  // namespace
}  // namespace rematch::benchmarks

int main(int argc, char** argv) {
  using namespace rematch;
  using namespace rematch::benchmarks;
  for (const Schedule schedule : {Schedule::kWholeRegion, Schedule::kOnDemand}) {
    const std::string name = "op_cost/" + std::string(to_string(schedule));
    benchmark::RegisterBenchmark(name.c_str(), op_cost, schedule)
        ->Iterations(kNumSweeps)
        ->Unit(benchmark::kMillisecond);
  }
  return run_benchmarks(argc, argv);
}
