#include "harness/run/children/request.h"

#include <algorithm>
#include <array>

#include "harness/run/variants.h"
#include "policies/base/json.h"
#include "policies/plan/plan_json.h"
#include "reports/record/json/parts_json.h"

namespace rematch {
namespace {

// In the order of the enumerators.
constexpr std::array<std::string_view, 3> kPasses = {"exact", "parity", "time"};

Pass read_pass(const std::string& name) {
  const auto* found = std::find(kPasses.begin(), kPasses.end(), name);
  if (found == kPasses.end()) throw FormatError("unknown pass '" + name + "'");
  return static_cast<Pass>(found - kPasses.begin());
}

ModelFamily read_family(const std::string& name) {
  const std::optional<ModelFamily> family = family_from_string(name);
  if (!family) throw FormatError("unknown model family '" + name + "'");
  return *family;
}

}  // namespace

PointRequest request_for(const VariantSettings& settings, const Variant& variant, Pass pass,
                         int num_steps) {
  PointRequest request;
  request.pass = pass;
  request.identity = variant.identity;
  request.policy = variant.policy;
  request.device = settings.device;
  request.family = settings.model.family;
  request.data_file = settings.data_file;
  request.plan = variant.plan;
  request.num_steps = num_steps;
  request.timed_as = settings.timed_as;
  request.libtorch_chooses_attention = settings.libtorch_chooses_attention && pass == Pass::kTime;
  return request;
}

ModelSpec spec_of(const PointRequest& request) {
  ModelSpec spec;
  spec.preset = request.identity.model;
  spec.family = request.family;
  spec.dimensions = request.identity.dimensions;
  spec.dtype = request.identity.dtype;
  return spec;
}

Json request_to_json(const PointRequest& request) {
  return {{"pass", kPasses.at(static_cast<std::size_t>(request.pass))},
          {"identity", identity_to_json(request.identity)},
          {"policy", request.policy},
          {"device", request.device},
          {"family", to_string(request.family)},
          {"data_file", request.data_file},
          {"plan", plan_to_json(request.plan)},
          {"libtorch_chooses_attention", request.libtorch_chooses_attention},
          {"num_steps", request.num_steps},
          {"snapshot_file", request.snapshot_file},
          {"repeatable_bits", request.timed_as == Determinism::kRepeatableBits}};
}

PointRequest request_from_json(const Json& json) {
  const JsonField root(json);
  PointRequest request;
  request.pass = read_pass(root.at("pass").string());
  request.identity = identity_from_json(root.at("identity"));
  request.policy = root.at("policy").string();
  request.device = root.at("device").string();
  request.family = read_family(root.at("family").string());
  request.data_file = root.at("data_file").string();
  request.plan = plan_from_json(root.at("plan").json());
  request.num_steps = root.at("num_steps").integer32(1);
  request.snapshot_file = root.at("snapshot_file").string();
  request.timed_as =
      root.at("repeatable_bits").boolean() ? Determinism::kRepeatableBits : Determinism::kFastest;
  request.libtorch_chooses_attention = root.at("libtorch_chooses_attention").boolean();
  return request;
}

}  // namespace rematch
