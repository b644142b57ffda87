#include "policies/trace/accumulation.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "policies/trace/spans.h"

namespace rematch {
namespace {

// A view of a gradient is stored as it is. Any other op makes a copy.
bool is_view_of_gradient(const std::string& op) {
  return op == "aten::detach" || op == "aten::alias";
}

}  // namespace

std::int64_t micro_batches(const Trace& trace) {
  const auto found = trace.dimensions.find(std::string(kAccumulate));
  return found == trace.dimensions.end() ? 1 : found->second;
}

bool has_float32_gradients(const Trace& trace) {
  return trace.dimensions.contains(std::string(kFloat32Gradients));
}

std::string accumulation_words(const std::map<std::string, std::int64_t>& dimensions) {
  std::string words;
  const auto num = dimensions.find(std::string(kAccumulate));
  if (num != dimensions.end()) words += ", " + std::to_string(num->second) + " micro-batches";
  if (dimensions.contains(std::string(kFloat32Gradients))) words += ", float32 gradients";
  return words;
}

Bytes gradients_before(const Trace& trace) {
  return micro_batches(trace) > 1 ? trace.gradient_bytes : Bytes{};
}

Trace accumulating(Trace trace, std::int64_t num) {
  if (micro_batches(trace) > 1) {
    throw std::invalid_argument("the trace of " + trace.model + " already has " +
                                std::to_string(micro_batches(trace)) + " micro-batches");
  }
  if (num < 1 || num > kMaxMicroBatches) {
    throw std::invalid_argument(std::to_string(num) +
                                " micro-batches are out of range; allowed: 1 to " +
                                std::to_string(kMaxMicroBatches));
  }
  if (num == 1) return trace;
  trace.micro_batch_sha256 = trace_sha256(trace);
  trace.dimensions[std::string(kAccumulate)] = num;
  if (trace.stage) {
    for (const BackwardEvent& event : trace.backward) {
      trace.stage->first_other_bytes.push_back(event.other_bytes);
      trace.stage->first_gradient_bytes.push_back(event.gradient_bytes);
    }
  }
  BackwardEvent* last_op = nullptr;
  Bytes stored;
  // A gradient counts from the event after the op that stored it.
  const auto add_instead = [&](Bytes gradients) {
    if (gradients > stored && last_op != nullptr) {
      ++trace.gradient_stores[last_op->op];
      if (!is_view_of_gradient(last_op->op)) last_op->other_bytes -= gradients - stored;
      last_op->op = kAddsGradient;
    }
    stored = gradients;
  };
  for (BackwardEvent& event : trace.backward) {
    if (!has_bytes(event)) continue;
    add_instead(event.gradient_bytes);
    event.other_bytes -= std::exchange(event.gradient_bytes, Bytes{});
    if (event.kind == BackwardEvent::Kind::kOp) last_op = &event;
  }
  add_instead(trace.gradient_bytes);
  return trace;
}

}  // namespace rematch
