#include "policies/search/front/front_json.h"

#include <algorithm>

#include "policies/base/json.h"
#include "policies/base/text.h"
#include "policies/predict/device/roofline.h"
#include "policies/search/front/front_fields.h"

namespace rematch {
namespace {

// Returns whether the trace has fused ops. All of the project's own ops except attention are fused
// ops; attention is in every trace.
bool has_fused_ops(const Trace& trace) {
  return std::any_of(trace.ops.begin(), trace.ops.end(), [](const TracedOp& op) {
    return op.name.starts_with("rematch::") && op.op_class != OpClass::kAttentionForward;
  });
}

// Adds the fields of a point that need the whole front, or that compare the point's prediction with
// its measurement.
void complete_point(Json& point, const FrontRecord& record) {
  if (point.is_null()) return;
  point["time_source"] = to_value(record.time_source);
  Json& measured = point["measured"];
  if (measured.is_null() || measured["peak_allocated_bytes"].is_null()) return;
  measured["peak_equals_prediction"] =
      measured["peak_allocated_bytes"] == point["predicted_peak_allocated_bytes"];
}

void require_its_hash(const JsonField& field, const FrontPoint& point) {
  const JsonField hash = field.at("plan_sha256");
  if (hash.string() != plan_sha256(point.plan)) hash.fail("does not match the hash of its plan");
}

void require_plans_of_hashes(const JsonField& root, const FrontRecord& record) {
  const Front& front = record.front;
  if (record.answer) require_its_hash(root.at("answer"), *record.answer);
  if (record.simple) require_its_hash(root.at("simple"), record.simple->point);
  require_its_hash(root.at("nothing_recomputed"), front.nothing_recomputed);
  if (front.none) require_its_hash(root.at("none"), *front.none);
  for (std::size_t index = 0; index < front.points.size(); ++index) {
    require_its_hash(root.at("points").at(index), front.points[index]);
  }
  for (std::size_t index = 0; index < front.baselines.size(); ++index) {
    require_its_hash(root.at("baselines").at(index), front.baselines[index].point);
  }
}

void require_points_named(const JsonField& root, const Front& front) {
  const auto num_points = static_cast<std::int64_t>(front.points.size());
  if (num_points == 0) root.at("points").fail("is empty; a front has at least one point");
  root.at("knee").integer(0, num_points - 1);
  if (!front.measurement) return;
  for (const JsonField& anchor : root.at("measurement").at("anchors").elements()) {
    anchor.integer(0, num_points - 1);
  }
}

void require_rates(const JsonField& link) {
  for (const char* key : {"to_host_bytes_per_second", "to_device_bytes_per_second"}) {
    if (!(link.at(key).number() > 0)) link.at(key).fail("must be above 0 bytes a second");
  }
}

}  // namespace

Json to_value(OptimizerKind optimizer) { return to_string(optimizer); }

void read_value(const JsonField& field, OptimizerKind& optimizer) {
  const auto known = optimizer_kind_from_string(field.string());
  if (!known) {
    field.fail("found '" + field.string() + "'; known are " + joined(optimizer_kind_names()));
  }
  optimizer = *known;
}

std::optional<double> step_time_error(const MeasuredFigures& figures) {
  if (!figures.calibrated_step_time || !figures.step_time || figures.step_time->count() == 0) {
    return std::nullopt;
  }
  const auto measured = static_cast<double>(figures.step_time->count());
  return static_cast<double>(figures.calibrated_step_time->count()) / measured - 1;
}

std::optional<Bytes> FrontRecord::memory_for_tensors() const {
  if (!device_memory || !reserve) return device_memory;
  return std::max(*device_memory - reserve->total(), Bytes{});
}

FrontRecord make_front_record(const Trace& trace, const Profile& profile, OptimizerKind optimizer) {
  FrontRecord record;
  record.model = trace.model;
  record.dimensions = trace.dimensions;
  record.dtype = trace.dtype;
  record.ops = has_fused_ops(trace) ? "fused" : "eager";
  record.trace_sha256 = profile.trace_sha256;
  record.device = profile.device;
  record.card = profile.card;
  record.attention_backend = profile.attention_backend;
  if (const DeviceSheet* sheet = sheet_of(profile)) {
    record.device_memory = sheet->memory;
    record.reserve = usual_reserve(sheet, sheet->memory, num_communicators(trace));
  }
  record.time_source = profile.source;
  record.links = profile.links;
  record.ceilings = profile.ceilings;
  record.optimizer = optimizer;
  return record;
}

Json front_to_json(const FrontRecord& record) {
  Json json = document_of(kFrontSchema, record);
  for (const char* key : {"answer", "simple", "nothing_recomputed", "none"}) {
    if (json.contains(key)) complete_point(json[key], record);
  }
  for (const char* key : {"points", "baselines"}) {
    for (Json& point : json[key]) complete_point(point, record);
  }
  return json;
}

FrontRecord front_from_json(const Json& json) {
  require_schema(json, kFrontSchema.kind);
  const JsonField root(json);
  FrontRecord record;
  read_fields(root, record);
  if (const auto world = root.find("world")) world->integer32(1);
  if (record.host_link) require_rates(root.at("host_link"));
  require_points_named(root, record.front);
  require_plans_of_hashes(root, record);
  return record;
}

}  // namespace rematch
