#include "policies/predict/step/offload.h"

#include <algorithm>

namespace rematch {
namespace {

void add_once(std::vector<int>& storages, int storage) {
  const bool is_new = std::find(storages.begin(), storages.end(), storage) == storages.end();
  if (is_new) storages.push_back(storage);
}

bool is_from_outside(const RegionGraph& graph, int value) {
  return !graph.values[value].producer.has_value() &&
         graph.storages[graph.values[value].storage].outside;
}

// The engine moves a storage to the host only if the region reads it through a single tensor.
bool is_alone_on_storage(const RegionGraph& graph, int value) {
  const int storage = graph.values[value].storage;
  int readers = 0;
  for (std::size_t other = 0; other < graph.values.size(); ++other) {
    readers +=
        is_from_outside(graph, static_cast<int>(other)) && graph.values[other].storage == storage;
  }
  return readers == 1;
}

bool is_written_from(const Trace& trace, OpId first, StorageId storage) {
  return std::any_of(trace.ops.begin() + first.index, trace.ops.end(), [&](const TracedOp& op) {
    return std::find(op.writes.begin(), op.writes.end(), storage) != op.writes.end();
  });
}

}  // namespace

bool RegionOffload::contains(int storage) const {
  return std::find(results.begin(), results.end(), storage) != results.end() ||
         std::find(inputs.begin(), inputs.end(), storage) != inputs.end();
}

Bytes RegionOffload::bytes(const RegionGraph& graph) const {
  Bytes bytes;
  for (const int storage : results) bytes += graph.storages[storage].bytes;
  for (const int storage : inputs) bytes += graph.storages[storage].bytes;
  return bytes;
}

RegionOffload offloaded_storages(const RegionGraph& graph, const RegionType& type) {
  RegionOffload offload;
  if (!offloads_anything(type)) return offload;
  const std::vector<bool> kept = kept_values(graph, type.ops);
  for (std::size_t op = 0; op < graph.ops.size(); ++op) {
    const PlannedOp& planned = type.ops[op];
    if (planned.treatment != Treatment::kOffload || !can_offload(planned.name)) continue;
    for (const int output : graph.ops[op].outputs) {
      const RegionValue& value = graph.values[output];
      if (kept[output] && !value.constant) add_once(offload.results, value.storage);
    }
  }
  for (const RegionInput& input : type.offload_inputs) {
    const std::vector<RegionUse>& reads = graph.ops.at(input.op).reads;
    if (input.argument >= static_cast<int>(reads.size())) continue;
    const int value = reads[input.argument].value;
    if (!is_from_outside(graph, value) || !is_alone_on_storage(graph, value)) continue;
    add_once(offload.inputs, graph.values[value].storage);
  }
  return offload;
}

std::vector<RegionInput> offloadable_inputs(const Trace& trace, const RegionGraph& graph) {
  std::vector<RegionInput> inputs;
  std::vector<int> seen;
  for (std::size_t op = 0; op < graph.ops.size(); ++op) {
    const TracedOp& traced = trace.ops[graph.range.first + static_cast<std::int32_t>(op)];
    for (std::size_t argument = 0; argument < graph.ops[op].reads.size(); ++argument) {
      const int value = graph.ops[op].reads[argument].value;
      if (!is_from_outside(graph, value) ||
          std::find(seen.begin(), seen.end(), value) != seen.end()) {
        continue;
      }
      seen.push_back(value);
      const std::optional<OpId> producer = trace.values[traced.inputs[argument].value].producer;
      if (!producer || trace.ops[*producer].is_view) continue;
      if (!is_alone_on_storage(graph, value)) continue;
      const StorageId storage = graph.storage_ids[graph.values[value].storage];
      if (is_written_from(trace, graph.range.first, storage)) continue;
      inputs.push_back({static_cast<int>(op), static_cast<int>(argument)});
    }
  }
  return inputs;
}

}  // namespace rematch
