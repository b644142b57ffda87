// The part of Recorder that handles the writes of ops.
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/engine/fault.h"
#include "harness/engine/record/record.h"
#include "harness/engine/record/wrapped_tensor.h"
#include "harness/engine/recording.h"
#include "harness/engine/replay/replay.h"
#include "harness/engine/replay/stand_in.h"

namespace rematch {
namespace {

at::Tensor argument_of(const RecordedOp& op, const RecordedUse& use,
                       const torch::jit::Stack& stack) {
  const c10::IValue& argument = stack[stack.size() - op.facts->arguments.size() + use.argument];
  if (!use.item.has_value()) return argument.toTensor();
  return argument.isTensorList() ? argument.toTensorList().get(*use.item)
                                 : *argument.toOptionalTensorList().get(*use.item);
}

// Returns whether the op overwrites this argument without reading it. An op that writes only some
// elements counts too, because programs fill a new tensor piece by piece.
bool overwrites(const OpFacts& facts, std::uint16_t argument) {
  if (facts.schema->arguments()[argument].is_out()) return true;
  static const std::array<std::string_view, 20> names = {"aten::bernoulli_",
                                                         "aten::cauchy_",
                                                         "aten::copy_",
                                                         "aten::exponential_",
                                                         "aten::fill_",
                                                         "aten::geometric_",
                                                         "aten::index_copy_",
                                                         "aten::index_fill_",
                                                         "aten::index_put_",
                                                         "aten::log_normal_",
                                                         "aten::masked_fill_",
                                                         "aten::masked_scatter_",
                                                         "aten::normal_",
                                                         "aten::random_",
                                                         "aten::scatter_",
                                                         "aten::set_",
                                                         "aten::uniform_",
                                                         "aten::zero_",
                                                         "aten::_index_put_impl_",
                                                         "aten::resize_"};
  return std::find(names.begin(), names.end(), facts.schema->name()) != names.end();
}

// Returns the outside tensor that an op read. If the op read a view of the outside tensor, makes
// the view again, because the program may have dropped the view. Returns nothing for a number, and
// for a value of the region.
at::Tensor outside_now(Record& record, const std::string& region, const RecordedUse& read) {
  const RecordedValue& value = record.values[read.value];
  if (!value.op.has_value()) return value.kept;
  if (!value.outside.has_value()) return {};
  ReplayBuffers buffers;
  const std::vector<WantedValue> wanted = {{read.value, read.version}};
  Replay replay(record, region, wanted, Replay::Extent::kClosure, 0, {},
                Replay::KeptValues::kBorrow, buffers);
  replay.run_unobserved();
  return replay.take(read.value);
}

}  // namespace

bool is_written(const RecordedOp& op, const RecordedUse& use) {
  if (is_side_argument(*op.facts, use)) return op.side_writes;
  return op.facts->mutates && contains(op.facts->written, use.argument);
}

bool is_side_argument(const OpFacts& facts, const RecordedUse& use) {
  return contains(facts.side_written, use.argument);
}

const at::Tensor* Record::copy_of(const RecordedUse& use) const {
  const auto found = std::find_if(copies.begin(), copies.end(), [&](const RecordedCopy& copy) {
    return copy.value == use.value && copy.version == use.version;
  });
  return found == copies.end() ? nullptr : &found->content;
}

// Decides how replay treats the op's writes. `stack` ends with the op's arguments.
void Recorder::classify_writes(RecordedOp& op, const torch::jit::Stack& stack) {
  const OpFacts& facts = *op.facts;
  bool is_held = facts.mutates_list;
  held_writes_.clear();
  for (std::size_t i = op.first_use; i < record_->uses.size(); ++i) {
    const RecordedUse& use = record_->uses[i];
    if (!is_written(op, use)) continue;
    if (!is_outside(use)) {
      const at::Tensor tensor = argument_of(op, use, stack);
      if (!linked_parts_.empty()) op.side_effect |= writes_part_of_outside(op, use);
      op.in_place = true;
      is_held |= record_->values[use.value].outside.has_value();
      const c10::VariableVersion& counter = tensor.unsafeGetTensorImpl()->version_counter();
      held_writes_.push_back(
          {use.value, tensor, counter, counter.enabled() ? counter.current_version() : 0});
    } else if (is_side_argument(facts, use)) {
      op.side_effect |= facts.side_feeds_results;
    } else {
      op.side_effect = true;
    }
  }
  is_held |= op.side_effect && op.in_place;
  if (!is_held) return held_writes_.clear();
  op.side_effect = true;
  op.in_place = false;
  op.held_writes = !held_writes_.empty();
}

// Call this after a held op: see Note [Held ops]. The op has written to the region's own storages.
// Appends ops that restore the written content in replay.
void Recorder::hold_writes() {
  std::vector<std::int32_t> copied;
  for (const HeldWrite& write : std::exchange(held_writes_, {})) {
    const std::int32_t written = record_->values[write.value].storage;
    const std::int32_t last_loud_version = record_->storages[written].last_loud_version;
    if (!contains(copied, written)) {
      const bool is_sparse = restore_own_parts(write.value, write.tensor);
      if (!is_sparse) append_hidden_write(value_made_on(written, write.value), write.tensor);
      copied.push_back(written);
    }
    unsettled_.push_back({written, record_->storages[written].version, last_loud_version,
                          write.counter, write.counter_before});
  }
}

// Among the values that replay computes, returns one on the storage, and prefers `otherwise`.
// Returns `otherwise` if there is none. Replay does not compute results of .data, but uses the
// tensors from forward.
std::int32_t Recorder::value_made_on(std::int32_t storage, std::int32_t otherwise) const {
  const auto is_made = [storage](const RecordedValue& value) {
    return value.storage == storage && value.op.has_value() && !value.outside.has_value();
  };
  if (is_made(record_->values[otherwise])) return otherwise;
  const auto found = std::find_if(record_->values.begin(), record_->values.end(), is_made);
  if (found == record_->values.end()) return otherwise;
  return static_cast<std::int32_t>(found - record_->values.begin());
}

// Copies arguments that this call only reads, but that other calls of the op write: see Note [Side
// writes]. For example, batch norm in evaluation mode reads statistics that another pass may
// overwrite unnoticed.
void Recorder::copy_side_arguments(const RecordedOp& op, const torch::jit::Stack& stack) {
  if (op.facts->side_feeds_results) return;
  const std::size_t base = stack.size() - op.facts->arguments.size();
  for (std::size_t i = op.first_use; i < record_->uses.size(); ++i) {
    const RecordedUse& use = record_->uses[i];
    if (!is_outside(use) || !is_side_argument(*op.facts, use)) continue;
    const at::Tensor& read = stack[base + use.argument].toTensor();
    record_->copies.push_back({use.value, use.version, is_replayed() ? content_of(read) : read});
  }
}

// Copies each outside tensor that the op is about to overwrite, if an op that may be recomputed has
// read the tensor. Tensors obtained through .data count as outside tensors.
void Recorder::copy_what_is_overwritten(const RecordedOp& op) {
  for (std::size_t i = op.first_use; i < record_->uses.size(); ++i) {
    const RecordedUse write = record_->uses[i];
    if (!is_written(op, write) || !(is_outside(write) || has_aliases_)) continue;
    copy_what_was_read(record_->values[write.value].storage);
  }
}

void Recorder::copy_what_was_read(std::int32_t storage) {
  if (!is_replayed()) return;
  for (const RecordedUse& read : reads_of(*record_, storage)) {
    copy_outside(*record_, *region_, read);
  }
}

std::vector<RecordedUse> reads_of(const Record& record, std::int32_t storage) {
  const std::int32_t version = record.storages[storage].version;
  std::vector<RecordedUse> reads;
  for (const RecordedOp& reader : record.ops) {
    if (reader.side_effect || reader.facts->returns_alias) continue;
    if (record.makes_sparse_of_outside(reader)) continue;
    for (std::size_t i = reader.first_use; i < reader.first_use + reader.num_uses; ++i) {
      const RecordedUse& read = record.uses[i];
      if (record.values[read.value].storage != storage || read.version != version ||
          is_side_argument(*reader.facts, read)) {
        continue;
      }
      reads.push_back(read);
    }
  }
  return reads;
}

void copy_outside(Record& record, const std::string& region, const RecordedUse& read) {
  if (record.copy_of(read) != nullptr) return;
  const at::Tensor now = outside_now(record, region, read);
  if (now.defined()) record.copies.push_back({read.value, read.version, content_of(now)});
}

bool Recorder::is_outside(const RecordedUse& use) const {
  return record_->storages[record_->values[use.value].storage].outside;
}

Recorder::VersionCounters Recorder::counters_of_written(const RecordedOp& op,
                                                        const torch::jit::Stack& stack) const {
  VersionCounters counters;
  for (std::size_t i = op.first_use; i < record_->uses.size(); ++i) {
    const RecordedUse& use = record_->uses[i];
    if (!is_written(op, use)) continue;
    counters.push_back(argument_of(op, use, stack).unsafeGetTensorImpl()->version_counter());
  }
  return counters;
}

// Copies the constants on a storage that the op is about to overwrite, because replay cannot
// compute them. Skips a tensor made by `empty` that neither this op nor any earlier op reads.
void Recorder::copy_constants_before_write(const RecordedOp& op, const RecordedUse& write) {
  const std::int32_t storage = record_->values[write.value].storage;
  for (const RecordedValue& value : record_->values) {
    if (value.storage != storage || !value.constant || !value.kept.defined()) continue;
    const bool is_needed =
        !value.from_empty || is_content_read(storage) ||
        !(is_side_argument(*op.facts, write) || overwrites(*op.facts, write.argument));
    if (is_needed) return copy_constants(storage);
  }
}

void Recorder::note_writes(const RecordedOp& op, const VersionCounters& counters) {
  auto counter = counters.begin();
  for (std::size_t i = op.first_use; i < op.first_use + op.num_uses; ++i) {
    const RecordedUse& use = record_->uses[i];
    if (!is_written(op, use)) continue;
    const std::int32_t written = record_->values[use.value].storage;
    RecordedStorage& storage = record_->storages[written];
    // hold_writes() counts the writes of held ops.
    if (op.held_writes && !storage.outside) {
      ++counter;
      continue;
    }
    ++storage.version;
    unsettled_.push_back({written, storage.version, storage.last_loud_version, *counter,
                          counter->enabled() ? counter->current_version() : 0});
    ++counter;
    storage.last_loud_version = storage.version;
    const OptionalIndex outside = record_->values[use.value].outside;
    if (outside.has_value() && is_side_argument(*op.facts, use)) {
      record_->outside_tensors[*outside].side_written = true;
    }
    if (!storage.outside) {
      record_->writes.push_back(
          {static_cast<std::int32_t>(record_->ops.size()), written, storage.version});
    }
    drop_kept_values(written);
  }
  if (!linked_parts_.empty()) note_part_writes(op);
}

// Checks at the next op whether writes raised version counters, because autograd raises them only
// after the op has returned from the engine.
void Recorder::settle_writes() {
  if (unsettled_.empty()) return;
  for (auto latest = unsettled_.rbegin(); latest != unsettled_.rend(); ++latest) {
    const UnsettledWrite& write = *latest;
    const bool is_loud = write.is_loud();
    RecordedStorage& storage = record_->storages[write.storage];
    storage.explained += is_loud ? 1 : 0;
    if (!is_loud && storage.last_loud_version == write.version) {
      storage.last_loud_version = write.last_loud_version;
    }
    for (OutsideTensor& outside : record_->outside_tensors) {
      const RecordedValue& value = record_->values[outside.value];
      if (value.storage == write.storage) note_written(outside, value);
    }
  }
  unsettled_.clear();
}

void Recorder::note_written(OutsideTensor& outside, const RecordedValue& value) const {
  outside.version = version_of(value.kept);
  if (checks_hashes()) outside.hash = hash_of(value.kept);
}

Recorder::HashedArguments Recorder::hash_unwritten(const RecordedOp& op,
                                                   const torch::jit::Stack& stack) const {
  HashedArguments hashed;
  for (std::size_t i = op.first_use; i < record_->uses.size(); ++i) {
    const RecordedUse& use = record_->uses[i];
    if (is_written(op, use)) continue;
    const at::Tensor tensor = argument_of(op, use, stack);
    hashed.push_back({use.argument, tensor, hash_of(tensor)});
  }
  return hashed;
}

// Throws Refused if the op wrote to an argument that its schema does not mark.
void Recorder::check_unwritten(const RecordedOp& op, const HashedArguments& hashed) const {
  for (const HashedArgument& argument : hashed) {
    if (hash_of(argument.tensor) == argument.hash) continue;
    throw Refused("region " + *region_ + ": " + op.facts->name + " wrote to its argument " +
                  op.facts->schema->arguments()[argument.position].name() +
                  ", which its schema does not mark; a recompute would write to it again. Mark it, "
                  "as in Tensor(a!)");
  }
}

}  // namespace rematch
