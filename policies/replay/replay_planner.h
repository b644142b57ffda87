// Decides which recorded ops a backward pass over one region runs, in which order, and what is let
// go of after each. Integers alone: the engine puts tensors in the place of values, the simulator
// bytes. Knows no treatment and no order of demands (demand.h).
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "policies/base/id.h"

namespace rematch {

// A saved tensor or an argument: a value, and the number of in-place writes that its storage had
// seen.
struct ReplayUse {
  std::int32_t value = 0;
  std::int32_t version = 0;
};

// A recorded region by index. Ops are in recorded order. A value without a producer comes from
// outside the region and is always there.
//   uses(op), outputs(op)       ranges; a use has `value` and `version`, an output is a value, or
//                               absent: an undefined tensor. What an in-place op returns may be
//                               listed
//   is_repeatable(op)           has no side effect outside the region
//   makes_its_own(op)           neither a view nor in place: with its outputs there, it need not
//   run each_write(storage, version, visit)     the ops that write to it, up to that version
//   each_written(op, visit)     the storages that the op writes to, and their versions after it
//   each_reader(op, storage, version, visit)  ops before `op` that read it at an earlier version
//   each_wait(op, visit)        the ops that complete the collective that the op starts
// Storages from outside the region have no writes.
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

// The state of a planner. Its memory serves one planner after the other.
struct ReplayTables {
  std::vector<std::int32_t> num_uses;  // by value: planned reads and saved tensors to come
  std::vector<std::uint8_t> is_there;  // by value
  std::vector<std::uint8_t> planned;   // by op: to be run; cleared when it is
  std::vector<std::int32_t> listed;    // ops of the latest list

  void clear() {  // keeps the memory
    num_uses.clear();
    is_there.clear();
    planned.clear();
    listed.clear();
  }
};

// Note [A replay, step by step]
// 1. hold() what forward kept, await() the saved tensors that are alive.
// 2. plan_closure() or plan_prefix(), once. Values that are there and not needed() are let go of.
// 3. list_planned(), or list_missing() of one saved tensor; for each op of the list: start() it,
//    read() its arguments, make() its outputs. Both tell who may be let go of.
// 4. read() a saved tensor when backward takes it, or drops it without having asked.
template <ReplayGraph Graph>
class ReplayPlanner {
 public:
  // Nothing is there. The tables must outlive it.
  ReplayPlanner(Graph graph, ReplayTables& tables) : graph_(std::move(graph)), tables_(tables) {
    tables_.num_uses.assign(graph_.num_values(), 0);
    tables_.is_there.assign(graph_.num_values(), kNo);
    tables_.planned.assign(graph_.num_ops(), kNo);
  }

  void hold(std::int32_t value) { tables_.is_there[value] = kYes; }
  void await(std::int32_t value) { ++tables_.num_uses[value]; }

  // Plans what `saved`, a range of uses, depend on. Values that are there end the closure, a read
  // at a version needs the in-place writes before it, and a collective needs its wait.
  template <typename Uses>
  void plan_closure(const Uses& saved);
  // Plans all of the first `num_ops` ops, as a re-run of forward would, but what is there.
  void plan_prefix(std::int32_t num_ops);

  bool is_planned(std::int32_t op) const { return tables_.planned[op] != kNo; }
  bool is_there(std::int32_t value) const { return tables_.is_there[value] != kNo; }
  bool is_needed(std::int32_t value) const { return tables_.num_uses[value] > 0; }
  std::int32_t num_uses(std::int32_t value) const { return tables_.num_uses[value]; }

  // Ops to run, in recorded order. Both lists hold until the next one.
  const std::vector<std::int32_t>& list_planned();
  // Planned ops that a saved tensor waits for.
  template <typename Use>
  const std::vector<std::int32_t>& list_missing(const Use& saved);
  // The same, in any order. A search that finds more than `at_most` is given up, with as many
  // found.
  template <typename Use>
  const std::vector<std::int32_t>& find_missing(const Use& saved, std::size_t at_most);

  void start(std::int32_t op) { tables_.planned[op] = kNo; }
  // Whether it was the last read of the value, which is let go of then.
  bool read(std::int32_t value) {
    if (--tables_.num_uses[value] != 0) return false;
    tables_.is_there[value] = kNo;
    return true;
  }
  // Whether somebody needs the value that was made.
  bool make(std::int32_t value) {
    const bool needed = is_needed(value);
    tables_.is_there[value] = needed ? kYes : kNo;
    return needed;
  }
  void let_go(std::int32_t value) { tables_.is_there[value] = kNo; }

  // From op `first` on, leaves out planned ops for which no saved tensor and no later op waits.
  // Calls `let_go` with each value that their reads were the last to need.
  template <typename Uses, typename LetGo>
  void leave_out_unneeded(std::int32_t first, const Uses& saved, LetGo&& let_go);

 private:
  static constexpr std::uint8_t kNo = 0;
  static constexpr std::uint8_t kYes = 1;
  static constexpr std::uint8_t kListed = 2;  // planned, and in the list

  template <typename Use>
  void need(const Use& use);
  void plan(std::int32_t op);
  bool is_answered(std::int32_t op) const;
  template <typename Use>
  void require(const Use& use);
  void require_op(std::int32_t op);

  Graph graph_;
  ReplayTables& tables_;
};

template <ReplayGraph Graph>
template <typename Uses>
void ReplayPlanner<Graph>::plan_closure(const Uses& saved) {
  tables_.listed.clear();
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
void ReplayPlanner<Graph>::plan_prefix(std::int32_t num_ops) {
  tables_.listed.clear();
  for (std::int32_t op = 0; op < num_ops; ++op) {
    if (!is_answered(op)) plan(op);
  }
  const std::size_t num_planned = tables_.listed.size();
  for (std::size_t i = 0; i < num_planned; ++i) {
    graph_.each_wait(tables_.listed[i], [&](std::int32_t wait) { plan(wait); });
  }
}

// All it would make is there, so a re-run need not run it.
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
    // A write ends what its storage held: planned ops that read that run first.
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
template <typename Uses, typename LetGo>
void ReplayPlanner<Graph>::leave_out_unneeded(std::int32_t first, const Uses& saved,
                                              LetGo&& let_go) {
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
        let_go(use.value);
      }
    }
  }
}

}  // namespace rematch
