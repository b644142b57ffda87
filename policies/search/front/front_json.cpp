#include "policies/search/front/front_json.h"

#include <functional>
#include <utility>

#include "policies/base/joined.h"
#include "policies/base/json.h"
#include "policies/base/schema.h"
#include "policies/plan/plan_json.h"
#include "policies/predict/device/device_sheet.h"
#include "policies/search/front/measurement_json.h"

namespace rematch {
namespace {

Json holders_to_json(const StepHolders& holders) {
  return {{"parameters", holders.parameters.count},
          {"gradients", holders.gradients.count},
          {"optimizer", holders.optimizer.count},
          {"saved_activations", holders.saved_activations.count},
          {"recompute_transient", holders.recompute_transient.count},
          {"other", holders.other.count}};
}

StepHolders holders_from_json(const JsonField& field) {
  return {
      Bytes{field.at("parameters").count()},          Bytes{field.at("gradients").count()},
      Bytes{field.at("optimizer").count()},           Bytes{field.at("saved_activations").count()},
      Bytes{field.at("recompute_transient").count()}, Bytes{field.at("other").count()}};
}

Json layers_to_json(const std::vector<LayerRun>& runs) {
  Json layers = Json::array();
  for (const LayerRun& run : runs) {
    layers.push_back({{"layers", run.layers},
                      {"is_checkpointed", run.is_checkpointed},
                      {"regions", run.regions},
                      {"saves", run.saves}});
    if (!run.offloads.empty()) layers.back()["offloads"] = run.offloads;
  }
  return layers;
}

std::vector<LayerRun> layers_from_json(const JsonField& field) {
  std::vector<LayerRun> runs;
  for (const JsonField& run : field.elements()) {
    runs.push_back({run.at("layers").string(),
                    run.at("is_checkpointed").boolean(),
                    run.at("regions").strings(),
                    run.at("saves").strings(),
                    {}});
    if (const auto offloads = run.find("offloads")) runs.back().offloads = offloads->strings();
  }
  return runs;
}

Json kernels_to_json(const PlanFigures& figures) {
  if (!figures.num_recomputed_kernels) return nullptr;
  return *figures.num_recomputed_kernels;
}

void add_host(const FrontPoint& point, Json& json) {
  const StepHost& host = point.figures.host;
  if (host.copied_out.count == 0) return;
  json["predicted_host"] = {{"peak_bytes", host.peak.count},
                            {"copied_out_bytes", host.copied_out.count},
                            {"copied_back_bytes", host.copied_back.count},
                            {"copy_time_ns", nullptr}};
  if (point.copy_time) json["predicted_host"]["copy_time_ns"] = point.copy_time->count();
}

void read_host(const JsonField& field, FrontPoint& point) {
  StepHost& host = point.figures.host;
  host.peak = Bytes{field.at("peak_bytes").count()};
  host.copied_out = Bytes{field.at("copied_out_bytes").count()};
  host.copied_back = Bytes{field.at("copied_back_bytes").count()};
  const JsonField time = field.at("copy_time_ns");
  if (!time.is_null()) point.copy_time = std::chrono::nanoseconds(time.count());
}

Json host_link_to_json(const HostLink& link) {
  return {{"to_host_bytes_per_second", link.to_host_bytes_per_second},
          {"to_device_bytes_per_second", link.to_device_bytes_per_second},
          {"source", link.source}};
}

double rate_from_json(const JsonField& field) {
  const double rate = field.number();
  if (!(rate > 0)) field.fail("is no rate above 0 bytes a second");
  return rate;
}

HostLink host_link_from_json(const JsonField& field) {
  return {rate_from_json(field.at("to_host_bytes_per_second")),
          rate_from_json(field.at("to_device_bytes_per_second")), field.at("source").string()};
}

Json point_to_json(const FrontPoint& point, ProfileSource time_source) {
  const PlanFigures& figures = point.figures;
  const std::optional<StepRange> range = point.range();
  const auto part_of_range = [&](auto part) {
    return range ? Json(std::invoke(part, *range).count()) : Json(nullptr);
  };
  Json json = {{"policy", point.plan.policy},
               {"saves", point.saves},
               {"layers", layers_to_json(point.layers)},
               {"predicted_peak_allocated_bytes", figures.peak.count},
               {"predicted_peak_phase", to_string(figures.peak_phase)},
               {"predicted_peak_scope", figures.peak_place},
               {"predicted_holders_at_peak", holders_to_json(figures.holders)},
               {"predicted_after_forward_bytes", figures.after_forward.count},
               {"time_source", to_string(time_source)},
               {"predicted_step_time_ns", point.step_time.count()},
               {"predicted_step_time_bound_ns", point.step_time_bound.count()},
               {"predicted_step_time_gap_ns", point.step_time_gap().count()},
               {"predicted_recompute_ns", figures.recompute.count()},
               {"predicted_communication_ns", part_of_range(&StepRange::communication)},
               {"predicted_overlapped_step_time_ns", part_of_range(&StepRange::all_overlaps)},
               {"predicted_recomputed_ops", figures.num_recomputed},
               {"predicted_recomputed_kernels", kernels_to_json(figures)},
               {"measured", measured_to_json(point)},
               {"plan_sha256", plan_sha256(point.plan)},
               {"plan", plan_to_json(point.plan)}};
  add_host(point, json);
  return json;
}

Phase phase_from_json(const JsonField& field) {
  for (int phase = 0; phase < kNumPhases; ++phase) {
    if (to_string(static_cast<Phase>(phase)) == field.string()) return static_cast<Phase>(phase);
  }
  field.fail("unknown phase '" + field.string() +
             "'; known are forward, recompute, backward, optimizer");
}

FrontPoint point_from_json(const JsonField& field) {
  FrontPoint point;
  point.plan = plan_from_json(field.at("plan").json());
  point.saves = field.at("saves").string();
  point.layers = layers_from_json(field.at("layers"));
  point.step_time = std::chrono::nanoseconds(field.at("predicted_step_time_ns").count());
  point.step_time_bound =
      std::chrono::nanoseconds(field.at("predicted_step_time_bound_ns").count());
  PlanFigures& figures = point.figures;
  figures.peak = Bytes{field.at("predicted_peak_allocated_bytes").count()};
  figures.peak_phase = phase_from_json(field.at("predicted_peak_phase"));
  figures.peak_place = field.at("predicted_peak_scope").string();
  figures.holders = holders_from_json(field.at("predicted_holders_at_peak"));
  figures.after_forward = Bytes{field.at("predicted_after_forward_bytes").count()};
  figures.recompute = std::chrono::nanoseconds(field.at("predicted_recompute_ns").count());
  if (const auto communication = field.find("predicted_communication_ns");
      communication && !communication->is_null()) {
    figures.communication = std::chrono::nanoseconds(communication->count());
  }
  figures.num_recomputed = field.at("predicted_recomputed_ops").count();
  if (const auto kernels = field.find("predicted_recomputed_kernels");
      kernels && !kernels->is_null()) {
    figures.num_recomputed_kernels = kernels->count();
  }
  if (const auto measured = field.find("measured"); measured && !measured->is_null()) {
    point.measured = measured_from_json(*measured);
  }
  if (const auto host = field.find("predicted_host"); host && !host->is_null()) {
    read_host(*host, point);
  }
  const JsonField hash = field.at("plan_sha256");
  if (hash.string() != plan_sha256(point.plan)) hash.fail("is not the hash of the plan beside it");
  return point;
}

template <class Value, class FromJson>
Value known_name(const JsonField& field, const FromJson& from_string, const char* known) {
  if (const auto value = from_string(field.string())) return *value;
  field.fail("found '" + field.string() + "'; known are " + known);
}

void add_front(const Front& front, ProfileSource time_source, Json& json) {
  json["complete"] = front.is_complete;
  json["schedule"] = to_string(front.schedule);
  json["num_plans_found"] = front.num_plans_found;
  json["time_gap_ns"] = front.time_gap.count();
  json["transient_gap_bytes"] = front.transient_gap.count;
  json["verdict"] = front.verdict;
  json["knee"] = front.knee;
  json["hypervolume_ratio"] = front.hypervolume;
  json["baseline_hypervolume_ratio"] = front.baseline_hypervolume;
  json["measurement"] = nullptr;
  if (front.measurement) json["measurement"] = measurement_to_json(*front.measurement);
  json["nothing_recomputed"] = point_to_json(front.nothing_recomputed, time_source);
  json["points"] = Json::array();
  for (const FrontPoint& point : front.points) {
    json["points"].push_back(point_to_json(point, time_source));
  }
  json["baselines"] = Json::array();
  for (const Baseline& baseline : front.baselines) {
    Json entry = point_to_json(baseline.point, time_source);
    entry["is_matched"] = baseline.is_matched;
    json["baselines"].push_back(std::move(entry));
  }
}

Front read_front(const JsonField& root) {
  Front front;
  front.schedule =
      known_name<Schedule>(root.at("schedule"), schedule_from_string, "whole_region, on_demand");
  front.num_plans_found = static_cast<std::size_t>(root.at("num_plans_found").count());
  front.time_gap = std::chrono::nanoseconds(root.at("time_gap_ns").count());
  front.transient_gap = Bytes{root.at("transient_gap_bytes").count()};
  front.verdict = root.at("verdict").string();
  if (const auto complete = root.find("complete")) front.is_complete = complete->boolean();
  front.hypervolume = root.at("hypervolume_ratio").number();
  front.baseline_hypervolume = root.at("baseline_hypervolume_ratio").number();
  front.nothing_recomputed = point_from_json(root.at("nothing_recomputed"));
  for (const JsonField& point : root.at("points").elements()) {
    front.points.push_back(point_from_json(point));
  }
  const auto num_points = static_cast<std::int64_t>(front.points.size());
  if (num_points == 0) root.at("points").fail("is empty; a front has at least one point");
  front.knee = static_cast<std::size_t>(root.at("knee").integer(0, num_points - 1));
  if (const auto measurement = root.find("measurement"); measurement && !measurement->is_null()) {
    front.measurement = measurement_from_json(*measurement, num_points);
  }
  for (const JsonField& baseline : root.at("baselines").elements()) {
    front.baselines.push_back({point_from_json(baseline), baseline.at("is_matched").boolean()});
  }
  return front;
}

// Fused ops are the project's own, all but attention, which every trace has.
bool has_fused_ops(const Trace& trace) {
  return std::any_of(trace.ops.begin(), trace.ops.end(), [](const TracedOp& op) {
    return op.name.starts_with("rematch::") && op.op_class != OpClass::kAttentionForward;
  });
}

}  // namespace

FrontRecord make_front_record(const Trace& trace, const Profile& profile,
                              OptimizerModel optimizer) {
  FrontRecord record;
  record.model = trace.model;
  record.dimensions = trace.dimensions;
  record.dtype = trace.dtype;
  record.ops = has_fused_ops(trace) ? "fused" : "eager";
  record.trace_sha256 = profile.trace_sha256;
  record.device = profile.device;
  if (const DeviceSheet* sheet = find_device_sheet(profile.device)) {
    record.device_memory = sheet->memory;
  }
  record.time_source = profile.source;
  record.optimizer = optimizer;
  return record;
}

Json front_to_json(const FrontRecord& record) {
  Json json = {{"schema", schema_name(kFrontSchema)},
               {"model", record.model},
               {"dimensions", record.dimensions},
               {"dtype", record.dtype},
               {"ops", nullptr},
               {"git_commit", nullptr},
               {"git_dirty", nullptr},
               {"trace_sha256", record.trace_sha256},
               {"device", record.device},
               {"device_memory_bytes", nullptr},
               {"time_source", to_string(record.time_source)},
               {"optimizer", to_string(record.optimizer)},
               {"world", record.world},
               {"layout", nullptr},
               {"budget_bytes", nullptr},
               {"max_slowdown_ratio", nullptr},
               {"answer", nullptr}};
  if (!record.layout.empty()) json["layout"] = record.layout;
  if (record.ops) json["ops"] = *record.ops;
  if (record.git_commit) json["git_commit"] = *record.git_commit;
  if (record.git_dirty) json["git_dirty"] = *record.git_dirty;
  if (record.device_memory) json["device_memory_bytes"] = record.device_memory->count;
  if (record.host_link) json["host_link"] = host_link_to_json(*record.host_link);
  if (record.budget) json["budget_bytes"] = record.budget->count;
  if (record.max_slowdown_ratio) json["max_slowdown_ratio"] = *record.max_slowdown_ratio;
  if (record.answer) json["answer"] = point_to_json(*record.answer, record.time_source);
  json["simple"] = nullptr;
  if (record.simple) {
    Json simple = point_to_json(record.simple->point, record.time_source);
    simple["more_peak_bytes"] = record.simple->more_peak.count;
    simple["more_step_time_ns"] = record.simple->more_time.count();
    json["simple"] = std::move(simple);
  }
  add_front(record.front, record.time_source, json);
  return json;
}

FrontRecord front_from_json(const Json& json) {
  require_schema(json, kFrontSchema.kind);
  const JsonField root(json);
  FrontRecord record;
  record.model = root.at("model").string();
  const JsonField dimensions = root.at("dimensions");
  dimensions.require_object();
  for (const auto& [name, value] : dimensions.json().items()) {
    record.dimensions[name] = dimensions.at(name).integer();
  }
  record.dtype = root.at("dtype").string();
  if (const auto ops = root.find("ops"); ops && !ops->is_null()) record.ops = ops->string();
  if (const auto commit = root.find("git_commit"); commit && !commit->is_null()) {
    record.git_commit = commit->string();
  }
  if (const auto dirty = root.find("git_dirty"); dirty && !dirty->is_null()) {
    record.git_dirty = dirty->boolean();
  }
  record.trace_sha256 = root.at("trace_sha256").string();
  record.device = root.at("device").string();
  if (const auto memory = root.find("device_memory_bytes"); memory && !memory->is_null()) {
    record.device_memory = Bytes{memory->count()};
  }
  record.time_source = known_name<ProfileSource>(root.at("time_source"), profile_source_from_string,
                                                 "measured, roofline");
  record.optimizer = known_name<OptimizerModel>(root.at("optimizer"), optimizer_model_from_string,
                                                joined(optimizer_model_names()).c_str());
  if (const auto world = root.find("world")) record.world = world->integer32(1);
  if (const auto layout = root.find("layout"); layout && !layout->is_null()) {
    record.layout = layout->string();
  }
  if (const auto link = root.find("host_link"); link && !link->is_null()) {
    record.host_link = host_link_from_json(*link);
  }
  const JsonField budget = root.at("budget_bytes");
  if (!budget.is_null()) record.budget = Bytes{budget.count()};
  const JsonField slowdown = root.at("max_slowdown_ratio");
  if (!slowdown.is_null()) record.max_slowdown_ratio = slowdown.number();
  const JsonField answer = root.at("answer");
  if (!answer.is_null()) record.answer = point_from_json(answer);
  if (const auto simple = root.find("simple"); simple && !simple->is_null()) {
    record.simple =
        SimplePoint{point_from_json(*simple), Bytes{simple->at("more_peak_bytes").count()},
                    std::chrono::nanoseconds(simple->at("more_step_time_ns").count())};
  }
  record.front = read_front(root);
  return record;
}

}  // namespace rematch
