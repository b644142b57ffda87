// Replay's part that deals with outside tensors that changed since forward read them.
#include <algorithm>
#include <vector>

#include "harness/engine/recording.h"
#include "harness/engine/replay.h"

namespace rematch {

// What an op is about to read of outside tensors is what it read in forward; else it is refused, or
// left out with all else that nobody needs.
bool Replay::may_run(std::int32_t op_index) {
  const RecordedOp& op = record_.ops[op_index];
  for (std::size_t i = op.first_use; i < op.first_use + op.num_uses; ++i) {
    const RecordedUse& use = record_.uses[i];
    if (record_.values[use.value].outside < 0) continue;
    const char* change = change_since_read(op, use);
    if (change == nullptr) continue;
    if (extent_ == Extent::kPrefix) drop_unneeded_ops(op_index);
    if (planned_[op_index] == 0) return false;
    throw Refused("region " + region_ + ": " + op.facts->name + " read " +
                  describe_tensor(record_.outside_of(use.value)) + " in forward, and it was " +
                  change +
                  " before backward recomputed the op; change parameters and inputs after "
                  "backward");
  }
  return true;
}

const char* Replay::change_since_read(const RecordedOp& op, const RecordedUse& use) const {
  if (gets_scratch(op, use)) return nullptr;
  if (!record_.copies.empty() && record_.copy_of(use) != nullptr) return nullptr;
  const RecordedValue& value = record_.values[use.value];
  const char* change = record_.change_since_read(use.value);
  if (change == nullptr && use.version != record_.storages[value.storage].version) {
    change = kChangedInPlace;
  }
  const bool is_only_written = change == kChangedInPlace;
  return is_only_written && !reads_content(op, use) ? nullptr : change;
}

// Views and factories read an argument's sizes; who reads the view is asked for its own sake.
bool Replay::reads_content(const RecordedOp& op, const RecordedUse& use) const {
  if (op.facts->makes_alike) return use.argument > 0;
  if (!op.facts->returns_alias) return true;
  const std::int32_t storage = record_.values[use.value].storage;
  for (std::size_t i = op.first_output; i < op.first_output + op.num_outputs; ++i) {
    const std::int32_t output = record_.outputs[i];
    if (output >= 0 && record_.values[output].storage != storage) return true;
  }
  return false;
}

// A re-run of forward executes ops whose results backward does not ask for. From `first` on, the
// planned ones are left out: backwards, what no slot and no later op waits for.
void Replay::drop_unneeded_ops(std::int32_t first) {
  std::vector<bool> is_awaited(record_.values.size(), false);
  std::vector<std::int32_t> awaited_versions(record_.storages.size(), 0);
  const auto await = [&](std::int32_t value, std::int32_t version) {
    is_awaited[value] = true;
    std::int32_t& awaited = awaited_versions[record_.values[value].storage];
    awaited = std::max(awaited, version);
  };
  for (const WantedValue& wanted : wanted_) await(wanted.value, wanted.version);
  for (auto i = static_cast<std::int32_t>(record_.ops.size()); i-- > first;) {
    if (planned_[i] == 0) continue;
    const RecordedOp& op = record_.ops[i];
    bool is_needed = false;
    for (std::size_t j = op.first_output; j < op.first_output + op.num_outputs; ++j) {
      const std::int32_t output = record_.outputs[j];
      is_needed |= output >= 0 && record_.values[output].op == i && is_awaited[output];
    }
    for (const RecordedWrite& write : record_.writes) {
      is_needed |= write.op == i && awaited_versions[write.storage] >= write.version;
    }
    if (!is_needed) planned_[i] = 0;
    for (std::size_t j = op.first_use; j < op.first_use + op.num_uses; ++j) {
      const RecordedUse& use = record_.uses[j];
      if (is_needed) {
        await(use.value, use.version);
      } else {
        drop_use(use.value);
      }
    }
  }
}

}  // namespace rematch
