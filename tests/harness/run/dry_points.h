// Makes points on a CUDA device for tests, and runs them through the passes in this process. The
// dry device consists of two H200 cards.
#pragma once

#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "harness/run/children/request.h"
#include "harness/run/passes/passes.h"
#include "harness/run/variants.h"
#include "policies/catalogue/catalogue.h"
#include "tests/support/cuda.h"

namespace rematch::testing {

using Dimensions = std::map<std::string, std::int64_t>;

inline const bool kSettingsMade = [] {
  setenv("DRY_CUDA_DEVICES", "2", 1);
  setenv("DRY_CUDA_CARD", "h200", 1);
  return true;
}();

struct Point {
  RunSettings settings;
  Variant variant;
};

inline Point point_of(
    const std::string& model, const Dimensions& dimensions, const std::string& policy,
    const std::string& device = "cuda",
    const std::function<void(RunSettings&)>& change = [](RunSettings&) {}) {
  Point point;
  point.settings.request.model = std::get<ModelSpec>(make_spec(model, dimensions));
  change(point.settings);
  point.settings.request.policies = std::get<std::vector<Policy>>(parse_policies(policy));
  point.settings.request.device = device;
  point.settings.attention =
      std::get<std::string>(usable_attention("", device, point.settings.request.model.dtype));
  auto variants = make_variants(point.settings);
  point.variant = std::move(std::get<std::vector<Variant>>(variants).front());
  return point;
}

inline PointRecord run(const Point& point, Pass pass = Pass::kExact, int num_steps = 2) {
  return run_passes(request_for(point.settings, point.variant, pass, num_steps));
}

inline const Dimensions kSmallLlama = {{"layers", 2}, {"dim", 64}, {"tokens", 64}};

}  // namespace rematch::testing
