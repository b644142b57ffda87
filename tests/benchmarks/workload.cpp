#include "tests/benchmarks/workload.h"

#include <cstdio>
#include <cstdlib>
#include <utility>
#include <variant>

#include "harness/trace/tracer.h"
#include "policies/base/rejected.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"

namespace rematch::benchmarks {
namespace {

template <typename T>
T value_or_exit(std::variant<T, Rejected> result) {
  if (const auto* rejected = std::get_if<Rejected>(&result)) {
    std::fprintf(stderr, "%s\n", rejected->message.c_str());
    std::exit(2);
  }
  return std::get<T>(std::move(result));
}

}  // namespace

Workload::Workload(const std::string& preset, const Overrides& overrides) {
  const ModelSpec spec = value_or_exit(make_spec(preset, overrides));
  model_ = make_model(spec, at::kCPU);
  batch_ = make_data(spec, /*data_file=*/"", /*seed=*/1, at::kCPU)->batch(0);
}

Plan Workload::plan(const std::string& policy) {
  if (trace_.ops.empty()) {
    trace_ = record_trace([this] { return model_->loss(batch_); });
    clear_gradients();
  }
  return value_or_exit(resolve(value_or_exit(parse_policy(policy)), trace_));
}

std::unique_ptr<Checkpoint> Workload::checkpoint(const std::string& policy, Schedule schedule) {
  if (policy == "none") return nullptr;
  return std::make_unique<Checkpoint>(plan(policy), schedule);
}

void Workload::step(const Checkpoint* checkpoint) {
  forward_backward(checkpoint);
  clear_gradients();
}

void Workload::forward_backward(const Checkpoint* checkpoint) {
  if (checkpoint == nullptr) {
    model_->loss(batch_).backward();
    return;
  }
  Recording recording(*checkpoint);
  at::Tensor loss = model_->loss(batch_);
  recording.finish();
  loss.backward();
}

void Workload::clear_gradients() {
  for (const NamedTensor& parameter : model_->parameters()) parameter.tensor.mutable_grad().reset();
}

}  // namespace rematch::benchmarks
