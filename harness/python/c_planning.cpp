// C functions that plan: policies, predictions and searches.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
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
#include "policies/predict/device/links.h"
#include "policies/predict/device/reserve.h"
#include "policies/predict/device/roofline.h"
#include "policies/predict/step/optimizer_bytes.h"
#include "policies/predict/step/step.h"
#include "policies/search/driver/driver.h"
#include "policies/search/front/front_json.h"
#include "policies/search/front/front_search.h"
#include "policies/trace/accumulation.h"
#include "policies/trace/measured_profile.h"
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

std::optional<NamedLinks> links_asked(const Json& request) {
  if (!request.contains("links")) return std::nullopt;
  LinkProfile links = links_from_json(request.at("links"));
  std::string name = links_in_words(links);
  return NamedLinks{std::move(links), std::move(name)};
}

Profile profile_asked(const Trace& trace, const Json& request) {
  if (request.contains("profile")) {
    return profile_for_trace(profile_from_json(request.at("profile")), trace);
  }
  const std::string name = request.at("device").get<std::string>();
  const DeviceSheet* const sheet = find_device_sheet(name);
  if (sheet == nullptr) throw std::invalid_argument(unknown_device(name).message);
  const std::optional<NamedLinks> links = links_asked(request);
  if (!links || !has_collectives(trace)) return roofline_profile(trace, *sheet);
  if (const auto problem = links_problem(links->links, trace)) {
    throw PlanRejected("these links cannot be used: " + *problem);
  }
  return roofline_profile(trace, *sheet, {.links = *links});
}

// Returns the link between device and host, if plans may offload.
std::optional<HostLink> host_link_asked(const Json& request, const Profile& profile) {
  if (!request.at("offload").get<bool>()) return std::nullopt;
  if (request.contains("link_rate_bytes_per_second")) {
    const double rate = request.at("link_rate_bytes_per_second").get<double>();
    return HostLink{rate, rate, "link_rate"};
  }
  if (const std::optional<NamedLinks> links = links_asked(request)) {
    return host_link_of(links->links, "links of " + links->name);
  }
  const DeviceSheet* const sheet = sheet_of(profile);
  if (sheet == nullptr) {
    throw std::invalid_argument("no data sheet has the rate of copies between " + profile.device +
                                " and the host; give link_rate='25GB/s'");
  }
  const double rate = sheet->pcie_bytes_per_second;
  return HostLink{rate, rate, "data sheet of " + std::string(sheet->name)};
}

// Returns the requested budget. For a request with `free_bytes`, adds the bytes of parameters,
// constants and the optimizer's state.
std::optional<Bytes> budget_asked(const Trace& trace, const Json& request,
                                  OptimizerKind optimizer) {
  if (request.contains("budget_bytes")) {
    return Bytes{request.at("budget_bytes").get<std::int64_t>()};
  }
  if (!request.contains("free_bytes")) return std::nullopt;
  return trace.parameter_bytes + trace.constant_bytes + optimizer_bytes(trace, optimizer).state +
         Bytes{request.at("free_bytes").get<std::int64_t>()};
}

std::vector<Plan> baselines_asked(const Trace& trace, const Profile& profile, const Json& request) {
  if (request.at("baselines").is_null()) return usual_baselines(trace, profile, {});
  const Resolver resolver(trace);
  std::vector<Plan> plans;
  for (const Json& policy : request.at("baselines")) {
    auto plan =
        resolver.resolve(accepted(parse_policy(policy.get<std::string>())), NoEffect::kAllow);
    if (auto* const applies = std::get_if<Plan>(&plan)) plans.push_back(std::move(*applies));
  }
  return plans;
}

// Sets the device memory in `record` to the size in the profile's data sheet.
void take_card_of(const Profile& profile, const Trace& trace, FrontRecord& record) {
  const DeviceSheet* const sheet = sheet_of(profile);
  record.device_memory = sheet->memory;
  record.reserve = usual_reserve(sheet, sheet->memory, num_communicators(trace));
}

FrontRecord searched(const Trace& trace, const Json& request) {
  const Profile profile = profile_asked(trace, request);
  ElapsedProgress progress("searching", "fewer layers or points take less time");
  SearchSpace space =
      usual_space(schedule_named(request.at("schedule").get<std::string>().c_str()),
                  optimizer_named(request.at("optimizer").get<std::string>().c_str()));
  if (request.at("hull").get<bool>()) space.reach = Reach::kHull;
  space.offload = host_link_asked(request, profile);
  if (space.offload) hide_behind_blocks(trace, profile, *space.offload);
  space.stop = [&progress] {
    progress.poll();
    return false;
  };
  space.on_layer = [&progress](int done, int total) { progress.advance(done, total); };
  FrontRecord record = make_front_record(trace, profile, space.optimizer);
  record.host_link = space.offload;
  if (request.contains("device")) take_card_of(profile, trace, record);
  record.budget = budget_asked(trace, request, space.optimizer);
  FrontSearch search(trace, profile, space, resolve_none(trace));
  const Shown shown{request.at("points").get<std::size_t>(),
                    baselines_asked(trace, profile, request), request.at("simple").get<bool>()};
  answer_question(trace, profile, space, shown, search, record);
  return record;
}

}  // namespace
}  // namespace rematch::c_call

using namespace rematch;
using namespace rematch::c_call;

extern "C" {

const char* rematch_resolve(const char* trace_json, const char* policy) {
  return call_or<const char*>(nullptr, [&] {
    const Trace& trace = trace_of_text(trace_json);
    const Policy parsed = accepted(parse_policy(policy));
    return as_text(plan_to_json(accepted(resolve(parsed, trace, NoEffect::kAllow))));
  });
}

int rematch_require_policy(const char* policy) {
  return call_or(-1, [&] {
    static_cast<void>(accepted(parse_policy(policy)));
    return 0;
  });
}

const char* rematch_accumulate(const char* trace_json, std::int64_t num_micro_batches) {
  return call_or<const char*>(nullptr, [&] {
    return as_text(trace_to_json(accumulating(trace_of_text(trace_json), num_micro_batches)));
  });
}

const char* rematch_predict(const char* trace_json, const char* plan_json, const char* schedule,
                            const char* optimizer) {
  return call_or<const char*>(nullptr, [&] {
    const Trace& trace = trace_of_text(trace_json);
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
    const Trace& trace = trace_of_text(trace_json);
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
