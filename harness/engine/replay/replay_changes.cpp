// The part of Replay that checks that outside tensors and the stream are the same as in forward.
#include "harness/engine/record/op_stream.h"
#include "harness/engine/recording.h"
#include "harness/engine/replay/replay.h"

namespace rematch {

// Returns whether to run the op. If the op reads an outside tensor, and that tensor has changed
// since forward, the op must not run. In this case, returns false if no value needs the op, and
// throws Refused otherwise.
bool Replay::may_run(std::int32_t op_index) {
  const RecordedOp& op = record_.ops[op_index];
  for (std::size_t i = op.first_use; i < op.first_use + op.num_uses; ++i) {
    const RecordedUse& use = record_.uses[i];
    if (!record_.values[use.value].outside.has_value()) continue;
    const char* change = change_since_read(op, use);
    if (change == nullptr) continue;
    if (extent_ == Extent::kPrefix) {
      // kPrefix also plans ops whose results backward does not need. Drops these ops.
      planner_.leave_out_unneeded(op_index, wanted_,
                                  [this](std::int32_t value) { tensors_[value].reset(); });
    }
    if (!planner_.is_planned(op_index)) return false;
    throw Refused("region " + region_ + ": " + op.facts->name + " read " +
                  describe_tensor(record_.outside_of(use.value)) + " in forward, and it was " +
                  change +
                  " before backward recomputed the op; change parameters and inputs after "
                  "backward, or use gathered_by() for tensors whose content is restored");
  }
  return true;
}

// Throws Refused if the current stream is not the op's stream in forward, because the current
// stream does not wait for forward's work. Autograd runs each backward node on the stream of its
// forward. So this happens only if a program switches streams in backward, or reads a saved tensor
// outside backward.
void Replay::check_stream(const RecordedOp& op) const {
  const c10::Stream& recorded = record_.streams[static_cast<std::size_t>(*op.stream)];
  const c10::Stream current = current_stream(recorded.device());
  if (current == recorded) return;
  throw Refused("region " + region_ + ": " + op.facts->name + " ran on " +
                describe_stream(recorded) + " in forward, but would be recomputed on " +
                describe_stream(current) +
                "; read saved tensors on the stream that forward ran on");
}

const char* Replay::change_since_read(const RecordedOp& op, const RecordedUse& use) const {
  if (gets_scratch(op, use)) return nullptr;
  if (!record_.copies.empty() && record_.copy_of(use) != nullptr) return nullptr;
  const RecordedValue& value = record_.values[use.value];
  const char* change = record_.change_since_read(use.value);
  if (change == nullptr && use.version != record_.storages[value.storage].version) {
    change = kChangedInPlace;
  }
  // Writes to the parts of a sparse tensor do not raise its version. A write after the region would
  // therefore go unnoticed by ops that read the sparse tensor.
  const bool is_lost = change == kChangedInPlace && record_.makes_sparse_of_outside(op) &&
                       record_.change_since_read(use.value) != nullptr;
  if (is_lost) return change;
  const bool is_only_written = change == kChangedInPlace;
  return is_only_written && !reads_content(op, use) ? nullptr : change;
}

// Views and factories read only the sizes of an argument. Ops that later read the content of the
// view are checked separately.
bool Replay::reads_content(const RecordedOp& op, const RecordedUse& use) const {
  if (op.facts->makes_alike) return use.argument > 0;
  if (!op.facts->returns_alias) return !record_.makes_sparse_of_outside(op);
  const std::int32_t storage = record_.values[use.value].storage;
  for (std::size_t i = op.first_output; i < op.first_output + op.num_outputs; ++i) {
    const OptionalIndex output = record_.outputs[i];
    if (output.has_value() && record_.values[*output].storage != storage) return true;
  }
  return false;
}

}  // namespace rematch
