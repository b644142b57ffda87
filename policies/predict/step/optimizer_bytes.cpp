#include "policies/predict/step/optimizer_bytes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "policies/predict/device/sharding.h"
#include "policies/trace/accumulation.h"
#include "policies/trace/fused_ops.h"

namespace rematch {
namespace {

constexpr std::int64_t kFloat32Bytes = 4;
constexpr std::int64_t kBfloat16Bytes = 2;
constexpr std::int64_t kElementsOfScale = 256;  // adamw8bit
constexpr std::int64_t kLeast8BitElements = 4096;

constexpr std::array kOptimizerNames = {
    std::pair{OptimizerKind::kNothing, std::string_view("none")},
    std::pair{OptimizerKind::kAdamW, std::string_view("adamw")},
    std::pair{OptimizerKind::kAdamWBfloat16, std::string_view("adamw(state=bfloat16)")},
    std::pair{OptimizerKind::kAdamW8Bit, std::string_view("adamw8bit")},
    std::pair{OptimizerKind::kMuon, std::string_view("muon")},
    std::pair{OptimizerKind::kSgd, std::string_view("sgd")},
    std::pair{OptimizerKind::kSgdMomentum, std::string_view("sgd(momentum=0.9)")}};

// Returns the sizes of the tensors that the optimizer keeps for one parameter.
std::vector<std::int64_t> state_of(const TracedParameters& kind, OptimizerKind optimizer,
                                   std::int64_t gradient_element_bytes) {
  const std::int64_t elements = kind.elements;
  const std::int64_t as_float32 = kFloat32Bytes * elements;
  switch (optimizer) {
    case OptimizerKind::kNothing:
    case OptimizerKind::kSgd:
      return {};
    case OptimizerKind::kAdamW: {
      std::vector<std::int64_t> tensors = {as_float32, as_float32, kFloat32Bytes};
      if (kind.dtype != "float32") tensors.push_back(as_float32);
      return tensors;
    }
    case OptimizerKind::kAdamWBfloat16:
      return {kBfloat16Bytes * elements, kBfloat16Bytes * elements, kFloat32Bytes};
    case OptimizerKind::kAdamW8Bit: {
      if (elements < kLeast8BitElements) return {as_float32, as_float32};
      const std::int64_t scales =
          kFloat32Bytes * ((elements + kElementsOfScale - 1) / kElementsOfScale);
      return {elements, elements, scales, scales};
    }
    case OptimizerKind::kMuon:
    case OptimizerKind::kSgdMomentum:
      return {gradient_element_bytes * elements};
  }
  return {};
}

// Returns the share of parameter bytes outside blocks: in the embedding, the head and the last
// norm.
double share_outside_blocks(const Trace& trace) {
  const IdTable<ScopeId, Bytes> by_scope = parameters_by_top_scope(trace);
  IdTable<ScopeId, bool> is_block(trace.scopes.size(), false);
  for (const TracedBlock& block : trace.blocks) is_block[block.scope] = true;
  Bytes all;
  Bytes outside;
  for (const ScopeId scope : by_scope.ids()) {
    all += by_scope[scope];
    if (!is_block[scope]) outside += by_scope[scope];
  }
  if (all.count == 0) return 0;
  return static_cast<double>(outside.count) / static_cast<double>(all.count);
}

}  // namespace

std::string_view to_string(OptimizerKind optimizer) {
  return std::find_if(kOptimizerNames.begin(), kOptimizerNames.end(),
                      [optimizer](const auto& name) { return name.first == optimizer; })
      ->second;
}

std::optional<OptimizerKind> optimizer_kind_from_string(std::string_view text) {
  for (const auto& [optimizer, name] : kOptimizerNames) {
    if (name == text) return optimizer;
  }
  return std::nullopt;
}

const std::vector<std::string_view>& optimizer_kind_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const auto& [optimizer, name] : kOptimizerNames) all.push_back(name);
    return all;
  }();
  return names;
}

OptimizerBytes optimizer_bytes(const Trace& trace, OptimizerKind optimizer, std::int64_t round) {
  OptimizerBytes bytes;
  Bytes momentum;
  for (const TracedParameters& kind : trace.parameters) {
    const std::int64_t gradient_element_bytes =
        has_float32_gradients(trace) ? kFloat32Bytes : parameter_element_bytes(kind.dtype);
    for (const std::int64_t tensor : state_of(kind, optimizer, gradient_element_bytes)) {
      bytes.state += Bytes{kind.count * round_up({tensor}, round).count};
    }
    momentum += Bytes{kind.count * kind.elements * gradient_element_bytes};
    // With fused ops, one op reads the gradients as they are.
    const bool casts_gradient = optimizer == OptimizerKind::kAdamW &&
                                !is_built_with_fused_ops(trace) &&
                                gradient_element_bytes != kFloat32Bytes;
    if (casts_gradient && kind.count > 0) {
      bytes.temporary = std::max(bytes.temporary, round_up({kFloat32Bytes * kind.elements}, round));
    }
  }
  if (optimizer == OptimizerKind::kMuon) {
    bytes.state +=
        Bytes{std::llround(share_outside_blocks(trace) * static_cast<double>(momentum.count))};
  }
  return bytes;
}

}  // namespace rematch
