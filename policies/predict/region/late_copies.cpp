#include "policies/predict/region/late_copies.h"

#include <algorithm>
#include <set>
#include <utility>

#include "policies/predict/device/roofline.h"
#include "policies/trace/op_class.h"

namespace rematch {
namespace {

template <class Id>
bool has(const std::vector<Id>& ids, Id id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

LateCopies::LateCopies(const Trace& trace)
    : trace_(&trace), writers_(trace.storages.size()), maker_(trace.storages.size()) {
  IdTable<StorageId, bool> is_seen(trace.storages.size(), false);
  for (const TracedValue& value : trace.values) {
    if (!is_seen[value.storage]) maker_[value.storage] = value.producer;
    is_seen[value.storage] = true;
  }
  for (const OpId op : trace.ops.ids()) {
    if (is_replay_only(trace.ops[op].name)) continue;
    for (const StorageId written : trace.ops[op].writes) writers_[written].push_back(op);
  }
}

std::vector<LateCopy> LateCopies::of(OpRange region) const {
  std::vector<LateCopy> copies;
  std::set<std::pair<ValueId, std::int32_t>> copied;
  for (const OpId reader : region.ids()) {
    const TracedOp& op = trace_->ops[reader];
    const bool has_side_effect =
        std::any_of(op.writes.begin(), op.writes.end(),
                    [&](StorageId written) { return is_outside(written, region); });
    if (op.is_view || has_side_effect) continue;
    for (const TracedUse& use : op.inputs) {
      const StorageId storage = trace_->values[use.value].storage;
      const std::vector<OpId>& writers = writers_[storage];
      const auto next = std::upper_bound(writers.begin(), writers.end(), reader);
      if (next == writers.end() || *next < region.end || !is_outside(storage, region)) continue;
      if (has(op.copies, use.value) || has(op.overwrites, storage)) continue;
      if (!copied.insert({use.value, use.version}).second) continue;
      copies.push_back({*next, value_bytes(*trace_, use.value)});
    }
  }
  std::stable_sort(copies.begin(), copies.end(),
                   [](const LateCopy& a, const LateCopy& b) { return a.op < b.op; });
  return copies;
}

bool LateCopies::is_outside(StorageId storage, OpRange region) const {
  const std::optional<OpId> maker = maker_[storage];
  return !maker || *maker < region.first || *maker >= region.end;
}

bool has_late_copies(const Trace& trace, const std::vector<OpRange>& regions) {
  const bool writes_anything = std::any_of(trace.ops.begin(), trace.ops.end(),
                                           [](const TracedOp& op) { return !op.writes.empty(); });
  if (!writes_anything) return false;
  const LateCopies late(trace);
  return std::any_of(regions.begin(), regions.end(),
                     [&](OpRange range) { return !late.of(range).empty(); });
}

}  // namespace rematch
