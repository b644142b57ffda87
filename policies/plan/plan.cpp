#include "policies/plan/plan.h"

#include <algorithm>
#include <array>

#include "policies/base/hashing.h"
#include "policies/base/json.h"
#include "policies/plan/plan_json.h"
#include "policies/trace/collective.h"
#include "policies/trace/op_class.h"

namespace rematch {
namespace {

constexpr std::array<std::string_view, 3> kTreatments = {"save", "recompute", "offload"};
constexpr std::array<std::string_view, 2> kSchedules = {"whole_region", "on_demand"};

template <class Enum, std::size_t N>
std::optional<Enum> find_name(const std::array<std::string_view, N>& names, std::string_view text) {
  for (std::size_t index = 0; index < N; ++index) {
    if (names[index] == text) return static_cast<Enum>(index);
  }
  return std::nullopt;
}

}  // namespace

bool can_offload(std::string_view op_name) {
  return collective_part(op_name) == CollectivePart::kNothing && !is_empty_factory(op_name);
}

bool offloads_anything(const RegionType& type) {
  return !type.offload_inputs.empty() ||
         std::any_of(type.ops.begin(), type.ops.end(), [](const PlannedOp& op) {
           return op.treatment == Treatment::kOffload && can_offload(op.name);
         });
}

std::string plan_sha256(const Plan& plan) { return canonical_sha256(plan_effect_json(plan)); }

std::string_view to_string(Treatment treatment) {
  return kTreatments[static_cast<std::size_t>(treatment)];
}

std::string_view to_string(Schedule schedule) {
  return kSchedules[static_cast<std::size_t>(schedule)];
}

std::optional<Treatment> treatment_from_string(std::string_view text) {
  return find_name<Treatment>(kTreatments, text);
}

std::optional<Schedule> schedule_from_string(std::string_view text) {
  return find_name<Schedule>(kSchedules, text);
}

std::string layer_ranges(const std::vector<int>& layers) {
  std::string text;
  for (std::size_t first = 0; first < layers.size();) {
    std::size_t last = first;
    while (last + 1 < layers.size() && layers[last + 1] == layers[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += std::to_string(layers[first]);
    if (last > first)
      text.append(last == first + 1 ? ", " : "-").append(std::to_string(layers[last]));
    first = last + 1;
  }
  return text;
}

}  // namespace rematch
