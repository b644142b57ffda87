#include "policies/predict/step/optimizer_bytes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "policies/predict/device/sharding.h"

namespace rematch {
namespace {

constexpr std::int64_t kFloat32Bytes = 4;
constexpr std::int64_t kBfloat16Bytes = 2;
constexpr std::int64_t kMoments = 2;
constexpr std::int64_t kElementsOfScale = 256;  // adamw8bit
constexpr std::int64_t kLeast8BitElements = 4096;

constexpr std::array kOptimizerNames = {
    std::pair{OptimizerModel::kNothing, std::string_view("none")},
    std::pair{OptimizerModel::kAdamW, std::string_view("adamw")},
    std::pair{OptimizerModel::kAdamWBfloat16, std::string_view("adamw(state=bfloat16)")},
    std::pair{OptimizerModel::kAdamW8Bit, std::string_view("adamw8bit")},
    std::pair{OptimizerModel::kMuon, std::string_view("muon")},
    std::pair{OptimizerModel::kSgd, std::string_view("sgd")},
    std::pair{OptimizerModel::kSgdMomentum, std::string_view("sgd(momentum=0.9)")}};

// Returns the bytes of optimizer state for one parameter.
std::int64_t state_of(const TracedParameters& kind, OptimizerModel optimizer) {
  const std::int64_t elements = kind.elements;
  const bool needs_master = kind.dtype != "float32";
  switch (optimizer) {
    case OptimizerModel::kNothing:
    case OptimizerModel::kSgd:
      return 0;
    case OptimizerModel::kAdamW:
      return ((needs_master ? 1 : 0) + kMoments) * kFloat32Bytes * elements + kFloat32Bytes;
    case OptimizerModel::kAdamWBfloat16:
      return kMoments * kBfloat16Bytes * elements + kFloat32Bytes;
    case OptimizerModel::kAdamW8Bit: {
      if (elements < kLeast8BitElements) return kMoments * kFloat32Bytes * elements;
      const std::int64_t scales = (elements + kElementsOfScale - 1) / kElementsOfScale;
      return kMoments * (elements + kFloat32Bytes * scales);
    }
    case OptimizerModel::kMuon:
    case OptimizerModel::kSgdMomentum:
      return parameter_element_bytes(kind.dtype) * elements;
  }
  return 0;
}

// Returns the share of the parameters' bytes that belongs to parameters outside blocks: embedding,
// head and last norm.
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

std::string_view to_string(OptimizerModel optimizer) {
  return std::find_if(kOptimizerNames.begin(), kOptimizerNames.end(),
                      [optimizer](const auto& name) { return name.first == optimizer; })
      ->second;
}

std::optional<OptimizerModel> optimizer_model_from_string(std::string_view text) {
  for (const auto& [optimizer, name] : kOptimizerNames) {
    if (name == text) return optimizer;
  }
  return std::nullopt;
}

const std::vector<std::string_view>& optimizer_model_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const auto& [optimizer, name] : kOptimizerNames) all.push_back(name);
    return all;
  }();
  return names;
}

OptimizerBytes optimizer_bytes(const Trace& trace, OptimizerModel optimizer) {
  OptimizerBytes bytes;
  Bytes momentum;
  for (const TracedParameters& kind : trace.parameters) {
    bytes.state += Bytes{kind.count * state_of(kind, optimizer)};
    momentum += Bytes{kind.count * kind.elements * parameter_element_bytes(kind.dtype)};
    const bool casts_gradient = optimizer == OptimizerModel::kAdamW && kind.dtype != "float32";
    if (casts_gradient && kind.count > 0) {
      bytes.temporary = std::max(bytes.temporary, Bytes{kFloat32Bytes * kind.elements});
    }
  }
  if (optimizer == OptimizerModel::kMuon) {
    bytes.state +=
        Bytes{std::llround(share_outside_blocks(trace) * static_cast<double>(momentum.count))};
  }
  return bytes;
}

}  // namespace rematch
