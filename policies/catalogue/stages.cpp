#include "policies/catalogue/stages.h"

#include <algorithm>
#include <utility>

#include "policies/plan/stage_plans.h"

namespace rematch {

namespace {

// The memory of values that several micro-batches in flight have moved is not predicted.
std::optional<Rejected> moves_values(const Plan& plan, const std::string& name) {
  for (const ShapePlan* shape : shapes_of(plan)) {
    if (std::none_of(shape->types.begin(), shape->types.end(), moves_anything)) continue;
    return Rejected{name + " moves values to the host, which the stages of a pipeline cannot do"};
  }
  return std::nullopt;
}

}  // namespace

StageResolver::StageResolver(const std::vector<const Trace*>& stages) {
  for (const Trace* trace : stages) stages_.push_back(std::make_unique<Resolver>(*trace));
}

std::variant<Plan, Rejected> StageResolver::resolve(const Policy& policy,
                                                    NoEffect no_effect) const {
  if (stages_.size() == 1) return first().resolve(policy, no_effect);
  std::vector<Plan> plans;
  std::optional<Rejected> without_effect;
  bool has_effect = false;
  for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
    std::variant<Plan, Rejected> plan = stages_[stage]->resolve(policy, no_effect);
    if (const auto* rejected = std::get_if<Rejected>(&plan)) {
      if (!without_effect) without_effect = *rejected;
      plan = stages_[stage]->resolve(policy, NoEffect::kAllow);
    } else {
      has_effect = true;
    }
    if (const auto* rejected = std::get_if<Rejected>(&plan)) {
      return Rejected{"stage " + std::to_string(stage) + ": " + rejected->message};
    }
    plans.push_back(std::get<Plan>(std::move(plan)));
  }
  if (!has_effect) return *without_effect;
  Plan all = plan_of_stages(plans);
  if (auto rejected = moves_values(all, policy.name)) return *std::move(rejected);
  return all;
}

std::string_view StageResolver::same_as(const Plan& plan) const {
  if (stages_.size() == 1) return first().same_as(plan);
  const std::vector<Plan> plans = plans_of_shapes(plan);
  const std::string_view first_name = first().same_as(plans.front());
  for (std::size_t stage = 1; stage < plans.size(); ++stage) {
    if (stages_.at(stage)->same_as(plans[stage]) != first_name) return "";
  }
  return first_name;
}

std::optional<Rejected> StageResolver::wrong_stages(const Plan& plan,
                                                    const std::string& name) const {
  const std::vector<const ShapePlan*> shapes = shapes_of(plan);
  if (shapes.size() != stages_.size()) {
    return Rejected{name + " has plans for " + std::to_string(shapes.size()) +
                    " stages, but the layout has " + std::to_string(stages_.size())};
  }
  for (std::size_t stage = 0; stage < shapes.size(); ++stage) {
    if (shapes[stage]->trace_sha256 == stages_[stage]->trace_sha256()) continue;
    return Rejected{name + " was made for another model or layout: its plan of stage " +
                    std::to_string(stage) + " does not fit"};
  }
  return moves_values(plan, name);
}

}  // namespace rematch
