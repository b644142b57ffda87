#include "policies/trace/json.h"
#include "reports/record/by_phase.h"
#include "reports/record/field_value.h"
#include "reports/record/parts_json.h"

namespace rematch {
namespace {

Json timeline_to_json(const MemoryTimeline& timeline) {
  Json phases = Json::array();
  for (const Phase phase : kPhases) phases.push_back(to_string(phase));
  Json phase_of_sample = Json::array();
  for (const Phase phase : timeline.phase) phase_of_sample.push_back(static_cast<int>(phase));
  Json held = Json::object();
  for (const auto& [holder, bytes] : timeline.bytes) held[std::string(to_string(holder))] = bytes;
  return {{"op_index", timeline.op_index},
          {"phases", std::move(phases)},
          {"phase", std::move(phase_of_sample)},
          {"held_bytes", std::move(held)}};
}

Json holders_to_json(const HeldBytes& holders) {
  Json json = Json::object();
  for (const auto& [holder, bytes] : holders) json[std::string(to_string(holder))] = bytes.count;
  return json;
}

// Holders that this build does not know are left out; the point keeps them as unknown members.
HeldBytes holders_from_json(const JsonField& field) {
  std::map<std::string, Bytes> named;
  read_value(field, named);
  HeldBytes holders;
  for (const auto& [name, bytes] : named) {
    if (const auto holder = holder_from_string(name)) holders[*holder] = bytes;
  }
  return holders;
}

// null where the file of an older build has none.
Json holders_by_phase_to_json(const MemoryRecord& memory) {
  if (memory.holders_by_phase.empty()) return nullptr;
  Json json = Json::object();
  for (const auto& [phase, holders] : memory.holders_by_phase) {
    json[phase] = holders_to_json(holders);
  }
  return json;
}

void read_holders_by_phase(const JsonField& field, MemoryRecord& memory) {
  const auto phases = field.find("holders_by_phase");
  if (!phases || phases->is_null()) return;
  for (const auto& [phase, holders] : phases->members()) {
    memory.holders_by_phase[*phase] = holders_from_json(holders);
  }
}

void require_as_many(const JsonField& column, std::size_t wanted) {
  if (column.size() == wanted) return;
  column.fail("has " + std::to_string(column.size()) + " entries; op_index has " +
              std::to_string(wanted));
}

// Older reports have none.
void read_newer_member(const JsonField& field, const char* name, std::optional<Bytes>& value) {
  if (const auto member = field.find(name)) read_value(*member, value);
}

MemoryTimeline timeline_from_json(const JsonField& field) {
  MemoryTimeline timeline;
  read_member(field, "op_index", timeline.op_index);
  const std::size_t samples = timeline.op_index.size();
  std::vector<std::string> names;
  read_member(field, "phases", names);
  require_as_many(field.at("phase"), samples);
  for (const JsonField& sample : field.at("phase").elements()) {
    const std::int64_t index = sample.integer(0, static_cast<std::int64_t>(names.size()) - 1);
    const auto phase = phase_from_string(names[static_cast<std::size_t>(index)]);
    if (!phase) sample.fail("means '" + names[static_cast<std::size_t>(index)] + "', no phase");
    timeline.phase.push_back(*phase);
  }
  std::map<std::string, std::vector<std::int64_t>> held;
  read_member(field, "held_bytes", held);
  for (auto& [name, bytes] : held) {
    require_as_many(field.at("held_bytes").at(name), samples);
    if (const auto holder = holder_from_string(name)) timeline.bytes[*holder] = std::move(bytes);
  }
  return timeline;
}

}  // namespace

Json memory_to_json(const MemoryRecord& memory) {
  Json json = {
      {"peak_allocated_bytes", to_value(memory.peak_allocated)},
      {"peak_requested_bytes", to_value(memory.peak_requested)},
      {"peak_transient_bytes", to_value(memory.peak_transient)},
      {"peak_reserved_bytes", to_value(memory.peak_reserved)},
      {"peak_device_used_bytes", to_value(memory.peak_device_used)},
      {"peak_phase", memory.peak_phase ? Json(to_string(*memory.peak_phase)) : Json(nullptr)},
      {"peak_scope", text_or_null(memory.peak_scope)},
      {"after_forward_bytes", to_value(memory.after_forward)},
      {"parameter_bytes", to_value(memory.parameter)},
      {"baseline_bytes", to_value(memory.baseline)},
      {"baseline_requested_bytes", to_value(memory.baseline_requested)},
      {"workspace_bytes", to_value(memory.workspace)},
      {"holders_at_peak", holders_to_json(memory.holders_at_peak)},
      {"peak_by_phase_bytes", to_value(memory.peak_by_phase)},
      {"holders_by_phase", holders_by_phase_to_json(memory)},
      {"dead_save_bytes", to_value(memory.dead_save)},
      {"predicted_peak_allocated_bytes", to_value(memory.predicted_peak_allocated)},
      {"predicted_peak_requested_bytes", to_value(memory.predicted_peak_requested)},
      {"predicted_after_forward_bytes", to_value(memory.predicted_after_forward)},
      {"timeline", memory.timeline ? timeline_to_json(*memory.timeline) : Json(nullptr)}};
  if (!memory.predicted_peak_note.empty()) json["predicted_peak_note"] = memory.predicted_peak_note;
  return json;
}

MemoryRecord memory_from_json(const JsonField& field) {
  MemoryRecord memory;
  read_member(field, "peak_allocated_bytes", memory.peak_allocated);
  read_member(field, "peak_transient_bytes", memory.peak_transient);
  read_member(field, "peak_reserved_bytes", memory.peak_reserved);
  read_member(field, "peak_device_used_bytes", memory.peak_device_used);
  if (const auto phase = non_null_member(field, "peak_phase")) {
    memory.peak_phase = phase_from_string(phase->string());
    if (!memory.peak_phase) {
      phase->fail("'" + phase->string() +
                  "' is no phase; allowed are forward, recompute, backward, optimizer");
    }
  }
  read_text(field, "peak_scope", memory.peak_scope);
  read_member(field, "after_forward_bytes", memory.after_forward);
  read_member(field, "parameter_bytes", memory.parameter);
  read_member(field, "baseline_bytes", memory.baseline);
  memory.holders_at_peak = holders_from_json(field.at("holders_at_peak"));
  read_member(field, "peak_by_phase_bytes", memory.peak_by_phase);
  read_holders_by_phase(field, memory);
  read_member(field, "dead_save_bytes", memory.dead_save);
  read_member(field, "predicted_peak_allocated_bytes", memory.predicted_peak_allocated);
  read_member(field, "predicted_after_forward_bytes", memory.predicted_after_forward);
  read_newer_member(field, "peak_requested_bytes", memory.peak_requested);
  read_newer_member(field, "baseline_requested_bytes", memory.baseline_requested);
  read_newer_member(field, "workspace_bytes", memory.workspace);
  read_newer_member(field, "predicted_peak_requested_bytes", memory.predicted_peak_requested);
  if (field.find("predicted_peak_note")) {
    read_text(field, "predicted_peak_note", memory.predicted_peak_note);
  }
  if (const auto timeline = non_null_member(field, "timeline")) {
    memory.timeline = timeline_from_json(*timeline);
  }
  return memory;
}

}  // namespace rematch
