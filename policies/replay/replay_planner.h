// Decides which recorded ops a backward pass over one region runs, in which order, and which values
// are released after each op. Works on integers only: the engine maps values to tensors, and the
// simulator maps them to bytes.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "policies/base/id.h"

namespace rematch {

// A use of a value, by a saved tensor or an argument. The version is the number of earlier in-place
// writes to the value's storage.
struct ReplayUse {
  std::int32_t value = 0;
  std::int32_t version = 0;
};

// A recorded region by index. Ops are in recorded order. A value without a producer comes from
// outside the region and always exists. Storages from outside the region have no writes. The
// functions are:
//   uses(op), outputs(op): Return ranges. A use has `value` and `version`. An output is a value, or
//     absent for an undefined tensor. Tensors that an in-place op returns may be listed.
//   is_repeatable(op): Returns whether the op has no side effect outside the region.
//   makes_its_own(op): Returns whether the op is neither a view nor in place. Such an op need not
//     run if its outputs exist.
//   each_write(storage, version, visit): Visits the ops that write the storage, up to the version.
//   each_written(op, visit): Visits the storages that the op writes, with their versions after it.
//   each_reader(op, storage, version, visit): Visits the ops before `op` that read the storage at a
//     version before `version`.
//   each_wait(op, visit): Visits the ops that complete the collective that the op starts.
template <typename Graph>
concept ReplayGraph = requires(const Graph& graph, std::int32_t id, void (*visit)(std::int32_t),
                               void (*visit_written)(std::int32_t, std::int32_t)) {
  { graph.num_ops() } -> std::convertible_to<std::size_t>;
  { graph.num_values() } -> std::convertible_to<std::size_t>;
  { graph.has_producer(id) } -> std::same_as<bool>;
  { graph.producer(id) } -> std::convertible_to<std::int32_t>;
  { graph.storage(id) } -> std::convertible_to<std::int32_t>;
  { graph.uses(id).begin()->version } -> std::convertible_to<std::int32_t>;
  { *graph.outputs(id).begin() } -> std::convertible_to<OptionalIndex>;
  { graph.is_repeatable(id) } -> std::same_as<bool>;
  { graph.makes_its_own(id) } -> std::same_as<bool>;
  graph.each_write(id, id, visit);
  graph.each_written(id, visit_written);
  graph.each_reader(id, id, id, visit);
  graph.each_wait(id, visit);
};

// The state of a planner. Several planners can use the same tables one after another, to save
// allocations.
struct ReplayTables {
  // indexed by value: number of planned reads, plus saved tensors that are not yet demanded
  std::vector<std::int32_t> num_uses;
  std::vector<std::uint8_t> is_there;  // indexed by value
  // indexed by op: whether it still has to run; cleared when the op starts
  std::vector<std::uint8_t> planned;
  std::vector<std::int32_t> listed;  // ops of the most recently returned list

  void clear() {  // keeps the allocated memory for reuse
    num_uses.clear();
    is_there.clear();
    planned.clear();
    listed.clear();
  }
};

// Note [A replay, step by step]
// 1. hold() the values that forward kept, and await() the live saved tensors.
// 2. Call plan_closure() or plan_prefix() once. Release values that exist but are not needed.
// 3. Call list_planned(), or list_missing() for one saved tensor. For each op of the list, start()
//    it, read() its arguments and make() its outputs. The results of read() and make() show which
//    values to release.
// 4. read() a saved tensor when backward uses the tensor, or drops it unused.
template <ReplayGraph Graph>
class ReplayPlanner {
 public:
  // Starts without any value. The tables must outlive the planner.
  ReplayPlanner(Graph graph, ReplayTables& tables) : graph_(std::move(graph)), tables_(tables) {
    tables_.num_uses.assign(graph_.num_values(), 0);
    tables_.is_there.assign(graph_.num_values(), kNo);
    tables_.planned.assign(graph_.num_ops(), kNo);
  }

  void hold(std::int32_t value) { tables_.is_there[value] = kYes; }
  void await(std::int32_t value) { ++tables_.num_uses[value]; }

  // Plans the ops that `saved`, a range of uses, depends on. Ops that produce existing values are
  // not planned. A read also needs the in-place writes that made its version, and a collective
  // needs its wait.
  template <typename Uses>
  void plan_closure(const Uses& saved);
  // Plans the first `num_ops` ops, as a re-run of forward would. Omits ops whose results exist.
  // Also omits skipped ops, except if `saved` or another planned op depends on them.
  template <typename Uses>
  void plan_prefix(std::int32_t num_ops, const Uses& saved);
  // Excludes an op from plan_prefix(), which must be called later. The op is planned anyway if
  // other ops or saved tensors need it.
  void skip(std::int32_t op) {
    tables_.planned[op] = kSkipped;
    has_skipped_ = true;
  }

  bool is_planned(std::int32_t op) const { return tables_.planned[op] != kNo; }
  bool is_there(std::int32_t value) const { return tables_.is_there[value] != kNo; }
  bool is_needed(std::int32_t value) const { return tables_.num_uses[value] > 0; }
  std::int32_t num_uses(std::int32_t value) const { return tables_.num_uses[value]; }

  // Returns the planned ops in recorded order. Invalidates the list that the previous call
  // returned.
  const std::vector<std::int32_t>& list_planned();
  // Returns only the planned ops that the saved tensor needs.
  template <typename Use>
  const std::vector<std::int32_t>& list_missing(const Use& saved);
  // Returns the same ops as list_missing(), in any order. If there are more than `at_most` ops,
  // returns an incomplete list that is longer than `at_most`.
  template <typename Use>
  const std::vector<std::int32_t>& find_missing(const Use& saved, std::size_t at_most);

  void start(std::int32_t op) { tables_.planned[op] = kNo; }
  // Records a read. Returns true if it was the last read, so that the value can be released.
  bool read(std::int32_t value) {
    if (--tables_.num_uses[value] != 0) return false;
    tables_.is_there[value] = kNo;
    return true;
  }
  // Records a new value. Returns whether it is needed.
  bool make(std::int32_t value) {
    const bool needed = is_needed(value);
    tables_.is_there[value] = needed ? kYes : kNo;
    return needed;
  }
  void release(std::int32_t value) { tables_.is_there[value] = kNo; }

  // Drops each planned op with an index of at least `first` if no saved tensor and no later op
  // needs it. Calls `release` with each value that only dropped ops would have read.
  template <typename Uses, typename Release>
  void leave_out_unneeded(std::int32_t first, const Uses& saved, Release&& release);

 private:
  static constexpr std::uint8_t kNo = 0;
  static constexpr std::uint8_t kYes = 1;
  // the op is planned, and is in the current list
  static constexpr std::uint8_t kListed = 2;
  // the op was passed to skip(), and plan_prefix() has not been called yet
  static constexpr std::uint8_t kSkipped = 3;

  template <typename Use>
  void need(const Use& use);
  void plan(std::int32_t op);
  template <typename Uses>
  void plan_dependencies(const Uses& saved);
  bool is_answered(std::int32_t op) const;
  template <typename Use>
  void require(const Use& use);
  void require_op(std::int32_t op);

  Graph graph_;
  ReplayTables& tables_;
  bool has_skipped_ = false;
};

template <ReplayGraph Graph>
template <typename Uses>
void ReplayPlanner<Graph>::plan_closure(const Uses& saved) {
  tables_.listed.clear();
  plan_dependencies(saved);
}

// Plans the ops that `saved` and the ops listed so far depend on.
template <ReplayGraph Graph>
template <typename Uses>
void ReplayPlanner<Graph>::plan_dependencies(const Uses& saved) {
  for (const auto& use : saved) need(use);
  for (std::size_t next = 0; next < tables_.listed.size(); ++next) {
    const std::int32_t op = tables_.listed[next];
    for (const auto& use : graph_.uses(op)) need(use);
    graph_.each_wait(op, [&](std::int32_t wait) { plan(wait); });
  }
}

template <ReplayGraph Graph>
template <typename Use>
void ReplayPlanner<Graph>::need(const Use& use) {
  if (!graph_.has_producer(use.value)) return;
  if (!is_there(use.value)) plan(graph_.producer(use.value));
  if (use.version == 0) return;
  graph_.each_write(graph_.storage(use.value), use.version, [&](std::int32_t op) { plan(op); });
}

template <ReplayGraph Graph>
void ReplayPlanner<Graph>::plan(std::int32_t op) {
  if (is_planned(op) || !graph_.is_repeatable(op)) return;
  tables_.planned[op] = kYes;
  tables_.listed.push_back(op);
  for (const auto& use : graph_.uses(op)) ++tables_.num_uses[use.value];
}

template <ReplayGraph Graph>
template <typename Uses>
void ReplayPlanner<Graph>::plan_prefix(std::int32_t num_ops, const Uses& saved) {
  tables_.listed.clear();
  for (std::int32_t op = 0; op < static_cast<std::int32_t>(tables_.planned.size()); ++op) {
    const bool is_skipped = tables_.planned[op] == kSkipped;
    if (is_skipped) tables_.planned[op] = kNo;
    if (op < num_ops && !is_skipped && !is_answered(op)) plan(op);
  }
  if (has_skipped_) {
    plan_dependencies(saved);
    return;
  }
  const std::size_t num_planned = tables_.listed.size();
  for (std::size_t i = 0; i < num_planned; ++i) {
    graph_.each_wait(tables_.listed[i], [&](std::int32_t wait) { plan(wait); });
  }
}

// Returns whether all results of the op exist, so that a re-run can skip it.
template <ReplayGraph Graph>
bool ReplayPlanner<Graph>::is_answered(std::int32_t op) const {
  if (!graph_.makes_its_own(op)) return false;
  bool any = false;
  for (const OptionalIndex output : graph_.outputs(op)) {
    if (!output.has_value()) continue;
    if (!is_there(*output)) return false;
    any = true;
  }
  return any;
}

template <ReplayGraph Graph>
const std::vector<std::int32_t>& ReplayPlanner<Graph>::list_planned() {
  tables_.listed.clear();
  for (std::size_t op = 0; op < tables_.planned.size(); ++op) {
    if (tables_.planned[op] != kNo) tables_.listed.push_back(static_cast<std::int32_t>(op));
  }
  return tables_.listed;
}

template <ReplayGraph Graph>
template <typename Use>
const std::vector<std::int32_t>& ReplayPlanner<Graph>::list_missing(const Use& saved) {
  find_missing(saved, SIZE_MAX);
  std::sort(tables_.listed.begin(), tables_.listed.end());
  return tables_.listed;
}

template <ReplayGraph Graph>
template <typename Use>
const std::vector<std::int32_t>& ReplayPlanner<Graph>::find_missing(const Use& saved,
                                                                    std::size_t at_most) {
  std::vector<std::int32_t>& listed = tables_.listed;
  listed.clear();
  require(saved);
  for (std::size_t next = 0; next < listed.size() && listed.size() <= at_most; ++next) {
    const std::int32_t op = listed[next];
    for (const auto& use : graph_.uses(op)) require(use);
    graph_.each_wait(op, [&](std::int32_t wait) { require_op(wait); });
    // A write destroys the previous contents of its storage. Planned ops that read these contents
    // must therefore run before the write.
    graph_.each_written(op, [&](std::int32_t storage, std::int32_t version) {
      graph_.each_reader(op, storage, version, [&](std::int32_t reader) { require_op(reader); });
    });
  }
  for (const std::int32_t op : listed) tables_.planned[op] = kYes;
  return listed;
}

template <ReplayGraph Graph>
template <typename Use>
void ReplayPlanner<Graph>::require(const Use& use) {
  if (!graph_.has_producer(use.value)) return;
  if (!is_there(use.value)) require_op(graph_.producer(use.value));
  if (use.version == 0) return;
  graph_.each_write(graph_.storage(use.value), use.version,
                    [&](std::int32_t op) { require_op(op); });
}

template <ReplayGraph Graph>
void ReplayPlanner<Graph>::require_op(std::int32_t op) {
  if (tables_.planned[op] != kYes) return;
  tables_.planned[op] = kListed;
  tables_.listed.push_back(op);
}

template <ReplayGraph Graph>
template <typename Uses, typename Release>
void ReplayPlanner<Graph>::leave_out_unneeded(std::int32_t first, const Uses& saved,
                                              Release&& release) {
  std::vector<bool> is_awaited(graph_.num_values(), false);
  std::vector<bool> is_awaited_op(graph_.num_ops(), false);
  const auto await_use = [&](const auto& use) {
    is_awaited[use.value] = true;
    if (use.version == 0) return;
    graph_.each_write(graph_.storage(use.value), use.version,
                      [&](std::int32_t op) { is_awaited_op[op] = true; });
  };
  for (const auto& use : saved) await_use(use);
  for (auto op = static_cast<std::int32_t>(graph_.num_ops()); op-- > first;) {
    if (!is_planned(op)) continue;
    bool needed = is_awaited_op[op];
    for (const OptionalIndex output : graph_.outputs(op)) {
      needed |= output.has_value() && graph_.has_producer(*output) &&
                graph_.producer(*output) == op && is_awaited[*output];
    }
    if (!needed) tables_.planned[op] = kNo;
    for (const auto& use : graph_.uses(op)) {
      if (needed) {
        await_use(use);
      } else if (read(use.value)) {
        release(use.value);
      }
    }
  }
}

}  // namespace rematch
