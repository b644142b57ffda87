#include "policies/predict/step/stored.h"

#include <algorithm>

namespace rematch {
namespace {

void add_once(std::vector<StoredStorage>& stored, const StoredStorage& added) {
  const bool is_new = std::none_of(stored.begin(), stored.end(), [&](const StoredStorage& known) {
    return known.storage == added.storage;
  });
  if (is_new) stored.push_back(added);
}

bool is_from_outside(const RegionGraph& graph, int value) {
  return !graph.values[value].producer.has_value() &&
         graph.storages[graph.values[value].storage].outside;
}

// The engine moves an input only if the region reads the input's storage through a single tensor.
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

std::vector<StoredStorage> stored_storages(const RegionGraph& graph, const RegionType& type) {
  std::vector<StoredStorage> stored;
  if (!moves_anything(type)) return stored;
  const std::vector<bool> kept = kept_values(graph, type.ops);
  for (std::size_t op = 0; op < graph.ops.size(); ++op) {
    const Treatment treatment = type.ops[op].treatment;
    if (!treatment.is_moved()) continue;
    for (const int output : graph.ops[op].outputs) {
      const RegionValue& value = graph.values[output];
      if (kept[output] && !value.constant) {
        add_once(stored, {value.storage, *treatment.kept_in, /*is_input=*/false,
                          static_cast<std::int32_t>(op)});
      }
    }
  }
  for (const StoreTraits& store : kStores) {
    for (const RegionInput& input : type.stored_inputs[store.store]) {
      const std::vector<RegionUse>& reads = graph.ops.at(input.op).reads;
      if (input.argument >= static_cast<int>(reads.size())) continue;
      const int value = reads[input.argument].value;
      if (!is_from_outside(graph, value) || !is_alone_on_storage(graph, value)) continue;
      add_once(stored, {graph.values[value].storage, store.store, /*is_input=*/true});
    }
  }
  return stored;
}

Bytes bytes_of(const std::vector<StoredStorage>& stored, const RegionGraph& graph) {
  Bytes bytes;
  for (const StoredStorage& each : stored) bytes += graph.storages[each.storage].bytes;
  return bytes;
}

Bytes host_bytes_of(const std::vector<StoredStorage>& stored, const RegionGraph& graph) {
  Bytes bytes;
  for (const StoredStorage& each : stored) {
    bytes += traits_of(each.store).host_bytes(graph.storages[each.storage].bytes);
  }
  return bytes;
}

std::vector<RegionInput> movable_inputs(const Trace& trace, const RegionGraph& graph) {
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
