#include "policies/base/field_value.h"
#include "policies/base/json.h"
#include "policies/trace/by_phase.h"
#include "reports/record/json/parts_json.h"
#include "reports/record/point.h"

namespace rematch {
namespace {

void require_as_many(const JsonField& column, std::size_t wanted) {
  if (column.size() == wanted) return;
  column.fail("has " + std::to_string(column.size()) + " entries; op_index has " +
              std::to_string(wanted));
}

}  // namespace

Json to_value(const HeldBytes& holders) {
  Json json = Json::object();
  for (const auto& [holder, bytes] : holders) json[std::string(to_string(holder))] = bytes.count;
  return json;
}

// Holders that this build does not know are left out; the point keeps them as unknown members.
void read_value(const JsonField& field, HeldBytes& holders) {
  std::map<std::string, Bytes> named;
  read_value(field, named);
  for (const auto& [name, bytes] : named) {
    if (const auto holder = holder_from_string(name)) holders[*holder] = bytes;
  }
}

Json to_value(const MemoryTimeline& timeline) {
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

void read_value(const JsonField& field, MemoryTimeline& timeline) {
  read_value(field.at("op_index"), timeline.op_index);
  const std::size_t samples = timeline.op_index.size();
  std::vector<std::string> names;
  read_value(field.at("phases"), names);
  require_as_many(field.at("phase"), samples);
  for (const JsonField& sample : field.at("phase").elements()) {
    const std::int64_t index = sample.integer(0, static_cast<std::int64_t>(names.size()) - 1);
    const auto phase = phase_from_string(names[static_cast<std::size_t>(index)]);
    if (!phase) sample.fail("means '" + names[static_cast<std::size_t>(index)] + "', no phase");
    timeline.phase.push_back(*phase);
  }
  std::map<std::string, std::vector<std::int64_t>> held;
  read_value(field.at("held_bytes"), held);
  for (auto& [name, bytes] : held) {
    require_as_many(field.at("held_bytes").at(name), samples);
    if (const auto holder = holder_from_string(name)) timeline.bytes[*holder] = std::move(bytes);
  }
}

Json memory_to_json(const MemoryRecord& memory) { return to_value(memory); }

}  // namespace rematch
