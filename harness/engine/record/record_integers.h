// Lets the replay planner, which works on integers, read a record.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "harness/engine/record/record.h"

namespace rematch {

// The record must outlive this object.
class RecordIntegers {
 public:
  explicit RecordIntegers(const Record& record) : record_(&record) {}

  std::size_t num_ops() const { return record_->ops.size(); }
  std::size_t num_values() const { return record_->values.size(); }
  bool has_producer(std::int32_t value) const { return record_->values[value].op.has_value(); }
  std::int32_t producer(std::int32_t value) const { return *record_->values[value].op; }
  std::int32_t storage(std::int32_t value) const { return record_->values[value].storage; }
  std::span<const RecordedUse> uses(std::int32_t op) const {
    const RecordedOp& recorded = record_->ops[op];
    return {record_->uses.data() + recorded.first_use, recorded.num_uses};
  }
  std::span<const OptionalIndex> outputs(std::int32_t op) const {
    const RecordedOp& recorded = record_->ops[op];
    return {record_->outputs.data() + recorded.first_output, recorded.num_outputs};
  }
  bool is_repeatable(std::int32_t op) const { return !record_->ops[op].side_effect; }
  bool makes_its_own(std::int32_t op) const {
    return !record_->ops[op].in_place && !record_->ops[op].facts->returns_alias;
  }

  template <typename Visit>
  void each_write(std::int32_t storage, std::int32_t version, Visit&& visit) const {
    for (const RecordedWrite& write : record_->writes) {
      if (write.storage == storage && write.version <= version) visit(write.op);
    }
  }

  template <typename Visit>
  void each_written(std::int32_t op, Visit&& visit) const {
    if (!record_->ops[op].in_place) return;
    for (const RecordedWrite& write : record_->writes) {
      if (write.op == op) visit(write.storage, write.version);
    }
  }

  template <typename Visit>
  void each_reader(std::int32_t op, std::int32_t storage, std::int32_t version,
                   Visit&& visit) const {
    for (std::int32_t reader = 0; reader < op; ++reader) {
      for (const RecordedUse& use : uses(reader)) {
        if (use.version < version && record_->values[use.value].storage == storage) {
          visit(reader);
          break;
        }
      }
    }
  }

  template <typename Visit>
  void each_wait(std::int32_t op, Visit&& visit) const {
    for (const RecordedWait& wait : record_->waits) {
      if (wait.start == op && wait.wait.has_value()) visit(*wait.wait);
    }
  }

 private:
  const Record* record_;
};

}  // namespace rematch
