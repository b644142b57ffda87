// A traced region as the replay planner reads it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "policies/predict/region/region.h"

namespace rematch {

// The graph must outlive it.
class RegionIntegers {
 public:
  explicit RegionIntegers(const RegionGraph& graph) : graph_(&graph) {}

  std::size_t num_ops() const { return graph_->ops.size(); }
  std::size_t num_values() const { return graph_->values.size(); }
  bool has_producer(int value) const { return graph_->values[value].producer.has_value(); }
  int producer(int value) const { return *graph_->values[value].producer; }
  int storage(int value) const { return graph_->values[value].storage; }
  const std::vector<RegionUse>& uses(int op) const { return graph_->ops[op].reads; }
  const std::vector<int>& outputs(int op) const { return graph_->ops[op].outputs; }
  bool is_repeatable(int op) const { return !graph_->ops[op].side_effect; }
  bool makes_its_own(int op) const {
    return !graph_->ops[op].is_view && graph_->ops[op].writes.empty();
  }

  template <typename Visit>
  void each_write(int storage, std::int32_t version, Visit&& visit) const {
    const std::vector<int>& writes = graph_->storages[storage].writes;
    const auto num_writes = std::min<std::size_t>(version, writes.size());
    for (std::size_t i = 0; i < num_writes; ++i) visit(writes[i]);
  }

  template <typename Visit>
  void each_written(int op, Visit&& visit) const {
    for (const int storage : graph_->ops[op].writes) {
      const std::vector<int>& writes = graph_->storages[storage].writes;
      const auto place = std::lower_bound(writes.begin(), writes.end(), op);
      if (place == writes.end()) continue;  // from outside
      visit(storage, static_cast<std::int32_t>(place - writes.begin()) + 1);
    }
  }

  template <typename Visit>
  void each_reader(int op, int storage, std::int32_t version, Visit&& visit) const {
    for (const RegionStorage::Reader& reader : graph_->storages[storage].readers) {
      if (reader.op >= op) break;
      if (reader.version < version) visit(reader.op);
    }
  }

  template <typename Visit>
  void each_wait(int op, Visit&& visit) const {
    for (const int wait : graph_->ops[op].waits) visit(wait);
  }

 private:
  const RegionGraph* graph_;
};

}  // namespace rematch
