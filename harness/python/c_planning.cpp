// The C functions that plan: policies, predictions and searches.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "harness/progress/progress.h"
#include "harness/python/c_call.h"
#include "harness/python/c_surface.h"
#include "policies/base/file.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/catalogue/shapes.h"
#include "policies/plan/plan_json.h"
#include "policies/predict/device/device_sheet.h"
#include "policies/predict/device/roofline.h"
#include "policies/predict/step/step.h"
#include "policies/search/front/front.h"
#include "policies/search/front/front_json.h"
#include "policies/trace/profile_json.h"
#include "policies/trace/trace_json.h"
#include "reports/record/simulated_memory.h"
#include "reports/render/pages/page.h"

namespace rematch::c_call {
namespace {

Json prediction_json(const StepPrediction& step, const Trace& trace) {
  const MemoryRecord memory = memory_of(step, trace);
  Json json = {
      {"before_bytes", step.before.count},        {"after_forward_bytes", step.after_forward.count},
      {"peak_bytes", step.peak_bytes().count},    {"recomputed_ops", step.recomputed_ops},
      {"peak_phase", to_string(step.peak.phase)}, {"peak_scope", memory.peak_scope}};
  for (std::size_t phase = 0; phase < step.peak_by_phase.size(); ++phase) {
    json["peak_bytes_by_phase"][std::string(to_string(static_cast<Phase>(phase)))] =
        step.peak_by_phase[phase].count;
  }
  for (const auto& [holder, bytes] : memory.holders_at_peak) {
    json["holders_at_peak_bytes"][std::string(to_string(holder))] = bytes.count;
  }
  return json;
}

Profile profile_asked(const Trace& trace, const Json& request) {
  if (request.contains("profile")) return profile_from_json(request.at("profile"));
  const std::string name = request.at("device").get<std::string>();
  const DeviceSheet* const sheet = find_device_sheet(name);
  if (sheet == nullptr) throw std::invalid_argument(unknown_device(name).message);
  return roofline_profile(trace, *sheet);
}

std::vector<Plan> baselines_asked(const Trace& trace, const Json& request) {
  const Resolver resolver(trace);
  std::vector<Plan> plans;
  for (const Json& policy : request.at("baselines")) {
    auto plan =
        resolver.resolve(accepted(parse_policy(policy.get<std::string>())), NoEffect::kAllow);
    if (auto* const applies = std::get_if<Plan>(&plan)) plans.push_back(std::move(*applies));
  }
  return plans;
}

FrontRecord searched(const Trace& trace, const Json& request) {
  const Profile profile = profile_asked(trace, request);
  ElapsedProgress progress("searching", "fewer layers or points take less");
  SearchSpace space{
      .schedule = schedule_named(request.at("schedule").get<std::string>().c_str()),
      .optimizer = optimizer_named(request.at("optimizer").get<std::string>().c_str())};
  space.stop = [&progress] {
    progress.poll();
    return false;
  };
  FrontRecord record = make_front_record(trace, profile, space.optimizer);
  if (request.contains("budget_bytes")) {
    record.budget = Bytes{request.at("budget_bytes").get<std::int64_t>()};
  }
  FrontSearch search(trace, profile, space, resolve_none(trace));
  if (record.budget) record.answer = search.fastest_within(*record.budget);
  std::vector<FrontPoint> shown;
  if (record.answer) shown.push_back(*record.answer);
  record.front =
      search.front(request.at("points").get<std::size_t>(), baselines_asked(trace, request), shown);
  return record;
}

}  // namespace
}  // namespace rematch::c_call

using namespace rematch;  // C functions are in no namespace
using namespace rematch::c_call;

extern "C" {

const char* rematch_resolve(const char* trace_json, const char* policy) {
  return call_or<const char*>(nullptr, [&] {
    const Trace trace = trace_of_text(trace_json);
    const Policy parsed = accepted(parse_policy(policy));
    return as_text(plan_to_json(accepted(resolve(parsed, trace, NoEffect::kAllow))));
  });
}

const char* rematch_predict(const char* trace_json, const char* plan_json, const char* schedule,
                            const char* optimizer) {
  return call_or<const char*>(nullptr, [&] {
    const Trace trace = trace_of_text(trace_json);
    Plan plan = plan_of_text(plan_json);
    if (!plan.other_shapes.empty()) plan = plan_of_trace(plan, trace_sha256(trace));
    StepSimulator simulator(trace, optimizer_named(optimizer));
    return as_text(prediction_json(simulator.simulate(plan, schedule_named(schedule)), trace));
  });
}

const char* rematch_combine(const char* traces_json, const char* plans_json) {
  return call_or<const char*>(nullptr, [&] {
    std::vector<Trace> traces;
    for (const Json& json : parse_json(traces_json, "traces")) {
      traces.push_back(trace_from_json(json));
    }
    std::vector<Plan> plans;
    for (const Json& json : parse_json(plans_json, "plans")) plans.push_back(plan_from_json(json));
    return as_text(plan_to_json(accepted(combine_shapes(traces, plans))));
  });
}

const char* rematch_search(const char* trace_json, const char* request_json) {
  return call_or<const char*>(nullptr, [&] {
    const Trace trace = trace_of_text(trace_json);
    return as_text(front_to_json(searched(trace, parse_json(request_json, "request"))));
  });
}

const char* rematch_render_front(const char* name, const char* front_json) {
  return call_or<const char*>(nullptr, [&] {
    return kept_text(
        render_page({}, {}, {{name, front_from_json(parse_json(front_json, "front"))}}));
  });
}

}  // extern "C"
