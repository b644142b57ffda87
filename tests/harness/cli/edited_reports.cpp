#include "tests/harness/cli/edited_reports.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "policies/base/hashing.h"
#include "reports/record/json/record_json.h"
#include "tests/reports/sample_report.h"

namespace rematch::testing {
namespace {

constexpr std::array kLosses = {1.5F, 1.25F, 1.0F, 0.75F};
constexpr std::array kNoise = {0.0F, 0.001F, -0.001F,
                               0.0005F};  // noise that is added to the loss; one value per run
constexpr std::int64_t kAttentions = 8;   // number of recomputed attentions per step
constexpr Bytes kLess{std::int64_t{1} << 20};

std::vector<StepRecord> steps_with(float noise) {
  std::vector<StepRecord> steps;
  for (const float loss : kLosses) {
    StepRecord& step = steps.emplace_back();
    set_loss(step, loss + noise);
    step.gradient_norm_bits = "0x4000000000000000";
    step.parameter_hash = "aa0" + std::to_string(steps.size());
    step.generator_hash = "bb00";
    noise = -noise;
  }
  return steps;
}

void train(PointRecord& point, Report& report, RunNoise noise) {
  point.steps = steps_with(0);
  for (StepRecord& step : point.steps) step.gradient_hashes = {{"embed", "cc00"}, {"head", "dd00"}};
  for (std::size_t run = 1; run < kNoise.size(); ++run) {
    const float own = noise == RunNoise::kSome ? kNoise.at(run) : 0;
    report.repeats.push_back(
        {point_key(point.identity), point.policy, PointStatus::kOk, "", steps_with(own)});
  }
  report.points.push_back(point);
}

}  // namespace

Json measured_report(RunNoise noise) {
  Report report;
  report.provenance = sample_provenance();
  PointRecord none = sample_point("none");
  PointRecord full = sample_recomputing("full", kAttentions, kLess, 1.0);
  const auto recompute = static_cast<std::size_t>(Phase::kRecompute);
  const int steps = full.counts->counted_steps;
  full.counts->by_op[recompute] = {{"rematch::attention", kAttentions * steps},
                                   {"aten::mm", 2 * kAttentions * steps}};
  for (const Phase phase : {Phase::kForward, Phase::kBackward, Phase::kOptimizer}) {
    const auto index = static_cast<std::size_t>(phase);
    full.counts->by_class.at(index) = none.counts->by_class.at(index);
  }
  full.predicted_counts = full.counts->by_class;
  train(none, report, noise);
  train(full, report, noise);
  Json json = report_to_json(report);
  for (Json& point : json["points"]) set_rounds(point, {10000, 10010, 9990, 10005});
  return json;
}

Json& point_of(Json& report, const std::string& policy) {
  Json& points = report.at("points");
  return *std::find_if(points.begin(), points.end(),
                       [&](const Json& point) { return point.at("policy") == policy; });
}

Json& full_of(Json& report) { return point_of(report, "full"); }

void make_key(Json& point) {
  for (const char* name : {"model", "plan_sha256", "schedule"}) {
    point[name] = point["identity"][name];
  }
  point["key"] = canonical_sha256(point["identity"]);
}

void set_loss(Json& step, float loss) {
  StepRecord record;
  set_loss(record, loss);
  step["loss"] = record.loss ? Json(*record.loss) : Json(nullptr);
  step["loss_bits"] = record.loss_bits;
}

void set_rounds(Json& point, const std::vector<std::int64_t>& microseconds) {
  Json& time = point["time"];
  time["samples_ns"] = Json::array();
  for (const std::int64_t round : microseconds) {
    time["samples_ns"].push_back(Json::array({round * 1000}));
  }
  std::vector<std::int64_t> sorted = microseconds;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  const std::int64_t below = sorted[sorted.size() % 2 == 0 ? middle - 1 : middle];
  time["step_median_ns"] = (below + sorted[middle]) * 500;
}

void change_last_digit(Json& text) {
  auto digits = text.get<std::string>();
  digits.back() = digits.back() == '1' ? '2' : '1';
  text = digits;
}

}  // namespace rematch::testing
