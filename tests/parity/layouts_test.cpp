// Compares layouts on two real ranks with torch's own parallelism. golden/llama_on_ranks.json holds
// the results of Python PyTorch 2.15.0 with tensor parallel and FSDP2 under torch.utils.checkpoint
// (layouts.py), on the same weights and data.
#include <ATen/ops/div.h>

#include <cmath>
#include <fstream>
#include <map>

#include "harness/engine/recording.h"
#include "harness/ranks/collective_log.h"
#include "harness/trace/tracer.h"
#include "kernels/collectives/collectives.h"
#include "models/model.h"
#include "models/preset/parallel.h"
#include "policies/base/json.h"
#include "tests/support/catch.h"
#include "tests/support/in_tree.h"
#include "tests/support/model_step.h"
#include "tests/support/rank_processes.h"
#include "tests/support/strict.h"

namespace rematch {
namespace {

constexpr double kLossTolerance = 1e-6;
constexpr double kGradientTolerance = 1e-5;

using Counts = std::map<std::string, std::int64_t>;

Json read_golden() {
  std::ifstream file(testing::in_tree("tests/parity/golden/llama_on_ranks.json"));
  REQUIRE(file);
  return Json::parse(file);
}

ModelSpec spec_of(const Json& golden, const std::string& layout, int rank) {
  auto dimensions = golden.at("dimensions").get<std::map<std::string, std::int64_t>>();
  if (!layout.empty()) {
    dimensions.merge(std::get<std::map<std::string, std::int64_t>>(parse_layout(layout)));
  }
  ModelSpec spec =
      std::get<ModelSpec>(make_spec(golden.at("model").get<std::string>(), dimensions));
  spec.rank = rank;
  return spec;
}

Trace trace_of(const ModelSpec& spec, Model& model, const Batch& batch) {
  Trace trace = record_trace([&] { return model.loss(batch); });
  trace.model = spec.preset;
  trace.dimensions = spec.dimensions;
  trace.dtype = spec.dtype;
  return trace;
}

double sum_over_ranks(const at::Tensor& value, const ModelSpec& spec) {
  return collectives::all_reduce(value, rank_groups(spec).at(0).name).item<double>();
}

// Returns the norm of a whole parameter's gradient. This rank may hold only a piece of the
// gradient.
double whole_norm(const NamedTensor& parameter, std::int64_t whole_count, const ModelSpec& spec) {
  const at::Tensor gradient = parameter.tensor.grad().to(at::kDouble);
  const at::Tensor squares = gradient.mul(gradient).sum();
  const bool is_whole = gradient.numel() == whole_count;
  return std::sqrt(is_whole ? squares.item<double>() : sum_over_ranks(squares, spec));
}

class Subject {
 public:
  Subject(const Json& golden, const std::string& layout, const Ranks& ranks)
      : spec_(spec_of(golden, layout, ranks.rank())),
        model_(make_model(spec_, at::kCPU)),
        whole_(make_model(spec_of(golden, "", 0), at::kMeta)),
        batch_(make_data(spec_, "", golden.at("seed").get<std::uint64_t>(), at::kCPU)
                   ->batch(data_index(spec_, golden.at("step").get<std::int64_t>()))),
        trace_(trace_of(spec_, *model_, batch_)) {}

  void check(const std::string& policy, const Json& expected, Ranks& ranks) {
    for (const NamedTensor& parameter : model_->parameters()) {
      parameter.tensor.mutable_grad().reset();
    }
    CollectiveLog log;
    const double loss = run(testing::plan_for(policy, trace_), log, ranks);
    CHECK(loss == Approx(expected.at("loss").get<double>()).epsilon(kLossTolerance));
    const CollectiveLog::Counts& executed = log.totals().executed;
    const auto in = [&](Phase phase) { return executed[static_cast<std::size_t>(phase)]; };
    Counts behind = in(Phase::kBackward);
    for (const auto& [kind, count] : in(Phase::kRecompute)) behind[kind] += count;
    CHECK(in(Phase::kForward) == expected.at("forward").get<Counts>());
    CHECK(behind == expected.at("recompute_and_backward").get<Counts>());
    check_gradients(expected.at("gradient_norms"));
  }

 private:
  double run(const Plan& plan, CollectiveLog& log, Ranks& ranks) {
    at::Tensor loss;
    {
      const OpObserverGuard observe(&log);
      log.begin_step();
      Recording recording(testing::strict(plan, Schedule::kWholeRegion));
      loss = model_->loss(batch_);
      recording.finish();
      loss.backward();
    }
    log.compare(ranks);
    model_->finish_gradients();
    return sum_over_ranks(loss.detach().to(at::kDouble), spec_) / ranks.world();
  }

  void check_gradients(const Json& expected) {
    REQUIRE(model_->parameters().size() == expected.size());
    for (std::size_t index = 0; index < model_->parameters().size(); ++index) {
      const NamedTensor& parameter = model_->parameters()[index];
      CAPTURE(parameter.name);
      const std::int64_t count = whole_->parameters()[index].tensor.numel();
      CHECK(whole_norm(parameter, count, spec_) ==
            Approx(expected.at(parameter.name).get<double>()).epsilon(kGradientTolerance));
    }
  }

  ModelSpec spec_;
  std::unique_ptr<Model> model_, whole_;
  Batch batch_;
  Trace trace_;
};

}  // namespace

TEST_CASE("rank: llama on two ranks matches torch", "[.rank]") {
  Ranks ranks = testing::this_rank({testing::group_of_all("tp"), testing::group_of_all("fsdp")});
  const Json golden = read_golden();
  for (const auto& [layout, policies] : golden.at("layouts").items()) {
    Subject subject(golden, layout, ranks);
    for (const auto& [policy, expected] : policies.items()) {
      CAPTURE(layout, policy);
      subject.check(policy, expected, ranks);
    }
  }
}

TEST_CASE("layouts match losses, gradients and collectives of torch's tensor parallel and FSDP2",
          "[parity]") {
  CHECK(testing::failure_of_ranks(2, "rank: llama on two ranks matches torch") == "");
}

}  // namespace rematch
