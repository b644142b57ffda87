#include "policies/joint/fewest_saved.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "policies/joint/graph_schedule.h"
#include "policies/planners/min_cut.h"

namespace rematch {
namespace {

constexpr std::int64_t kParts = 16;  // CutAim::shift counts sixteenths

// Returns the ops of forward in their order.
NodeIds ops_of_forward(const JointGraph& graph) {
  NodeIds ops;
  for (const NodeId id : graph.nodes.ids()) {
    if (graph.nodes[id].is_op && graph.nodes[id].is_forward) ops.push_back(id);
  }
  return ops;
}

// Numbers the layers and the parts between layers, in forward's order. Absent: nodes that are no
// ops of forward.
IdTable<NodeId, OptionalIndex> part_numbers(const JointGraph& graph, const NodeIds& ops) {
  IdTable<NodeId, OptionalIndex> numbers(graph.nodes.size());
  std::int32_t number = 0;
  for (std::size_t index = 0; index < ops.size(); ++index) {
    const bool is_new =
        index > 0 && graph.nodes[ops[index]].layer != graph.nodes[ops[index - 1]].layer;
    if (is_new) ++number;
    numbers[ops[index]] = number;
  }
  return numbers;
}

// Returns the roots of the tensors that the op reads.
NodeIds roots_read_by(const JointGraph& graph, NodeId op) {
  NodeIds roots;
  for (const NodeId input : graph.nodes[op].inputs) {
    if (graph.nodes[input].is_tensor) add_once(roots, graph.nodes[input].root);
  }
  return roots;
}

IdTable<NodeId, bool> read_by_other_parts(const JointGraph& graph, const NodeIds& ops,
                                          const IdTable<NodeId, OptionalIndex>& numbers) {
  IdTable<NodeId, bool> is_read(graph.nodes.size(), false);
  for (const NodeId op : ops) {
    for (const NodeId root : roots_read_by(graph, op)) {
      const OptionalIndex made_in = numbers[graph.nodes[root].op];
      if (made_in.has_value() && made_in != numbers[op]) is_read[root] = true;
    }
  }
  return is_read;
}

// Returns the roots that backward reads or returns.
IdTable<NodeId, bool> read_by_backward(const JointGraph& graph) {
  NodeIds forward;
  for (const NodeId id : graph.nodes.ids()) {
    if (graph.nodes[id].is_forward) forward.push_back(id);
  }
  IdTable<NodeId, bool> is_read(graph.nodes.size(), false);
  for (const NodeId id : demand_order(graph, forward)) {
    if (!graph.nodes[id].is_op) continue;
    for (const NodeId root : roots_read_by(graph, id)) is_read[root] = true;
  }
  for (const NodeId id : graph.backward_outputs) is_read[graph.nodes[id].root] = true;
  return is_read;
}

// Returns whether Inductor computes the op inside the kernels of forward that read its result.
bool is_inside_kernels_of_forward(const JointGraph& graph, NodeId op) {
  bool is_read = false;
  for (const ElementwiseUse& use : graph.elementwise_uses[op]) {
    if (!graph.nodes[use.user].is_forward) continue;
    if (!use.can_be_inside) return false;
    is_read = is_read || use.is_read;
  }
  return is_read;
}

}  // namespace

std::vector<int> minimum_cut(const CutNetwork& network) {
  // Each value is represented by two nodes, and an edge with the value's weight between them.
  const auto num_values = static_cast<int>(network.size());
  const auto made = [](int index) { return 2 * index; };
  const auto read = [](int index) { return 2 * index + 1; };
  const int source = 2 * num_values;
  const int sink = source + 1;
  MinCut cut(sink + 1);
  for (int index = 0; index < num_values; ++index) {
    const CutValue& value = network[index];
    cut.add_edge(made(index), read(index), value.weight);
    if (value.is_wanted) cut.add_edge(read(index), sink, MinCut::kUnlimited);
    const std::int64_t recompute = value.recompute.value_or(MinCut::kUnlimited);
    if (recompute > 0) cut.add_edge(source, made(index), recompute);
    for (const int other : value.reads) cut.add_edge(read(other), made(index), MinCut::kUnlimited);
  }
  const std::vector<bool> is_after = cut.sink_side(source, sink);
  std::vector<int> saved;
  for (int index = 0; index < num_values; ++index) {
    if (!is_after[made(index)] && is_after[read(index)]) saved.push_back(index);
  }
  return saved;
}

FewestSaved::FewestSaved(const JointGraph& graph) : graph_(graph) { add_values(); }

void FewestSaved::add_values() {
  const NodeIds ops = ops_of_forward(graph_);
  const IdTable<NodeId, OptionalIndex> numbers = part_numbers(graph_, ops);
  const IdTable<NodeId, bool> is_at_boundary = read_by_other_parts(graph_, ops, numbers);
  const IdTable<NodeId, bool> is_wanted = read_by_backward(graph_);
  IdTable<NodeId, bool> is_held(graph_.nodes.size(), false);
  const IdTable<NodeId, bool> is_dropped = membership(graph_, graph_.dropped_outputs);
  for (const NodeId output : graph_.forward_outputs) {
    if (!is_dropped[output]) is_held[graph_.nodes[output].root] = true;
  }
  IdTable<NodeId, OptionalIndex> index_of(graph_.nodes.size());
  std::map<std::int32_t, std::vector<int>> own_of;  // the values of each part
  for (const NodeId op : ops) {
    std::vector<int> reads;
    for (const NodeId root : roots_read_by(graph_, op)) {
      if (index_of[root].has_value()) reads.push_back(*index_of[root]);
    }
    for (const NodeId root : graph_.made_roots[op]) {
      if (graph_.nodes[root].op != op) continue;
      index_of[root] = static_cast<std::int32_t>(values_.size());
      own_of[*numbers[op]].push_back(*index_of[root]);
      values_.push_back({.root = root,
                         .reads = reads,
                         .needs_memory = !is_held[root],
                         .is_in_kernel = is_inside_kernels_of_forward(graph_, op),
                         .is_wanted = is_wanted[root],
                         .can_run_again = !is_at_boundary[root] && !graph_.nodes[op].is_kept});
    }
  }
  for (const auto& [number, own] : own_of) parts_.push_back(part_of(own));
}

FewestSaved::Part FewestSaved::part_of(const std::vector<int>& own) const {
  Part part;
  for (const int index : own) {
    for (const int read : values_[index].reads) {
      // The values of a part are consecutive.
      if (read < own.front()) add_once(part.values, read);
    }
  }
  part.num_of_others = static_cast<int>(part.values.size());
  part.values.insert(part.values.end(), own.begin(), own.end());
  return part;
}

NodeIds FewestSaved::values(const NodeIds& recomputed, const CutAim& aim) {
  const IdTable<NodeId, bool> is_recomputed = membership(graph_, recomputed);
  IdTable<NodeId, bool> is_saved(graph_.nodes.size(), false);
  for (const Part& part : parts_) {
    CutNetwork network = network_of(part, is_recomputed, aim);
    auto solved = solved_.find(network);
    if (solved == solved_.end()) {
      std::vector<int> cut = minimum_cut(network);
      solved = solved_.emplace(std::move(network), std::move(cut)).first;
    }
    for (const int index : solved->second) is_saved[values_[part.values[index]].root] = true;
  }
  NodeIds saved;
  for (const NodeId id : graph_.nodes.ids()) {
    if (is_saved[id]) saved.push_back(id);
  }
  return saved;
}

CutNetwork FewestSaved::network_of(const Part& part, const IdTable<NodeId, bool>& is_recomputed,
                                   const CutAim& aim) const {
  const auto index_in_part = [&](int value) {
    const auto others_end = part.values.begin() + part.num_of_others;
    const auto place = std::find(part.values.begin(), others_end, value);
    if (place != others_end) return static_cast<int>(place - part.values.begin());
    return part.num_of_others + value - *others_end;
  };
  CutNetwork network;
  network.reserve(part.values.size());
  for (std::size_t index = 0; index < part.values.size(); ++index) {
    const Value& value = values_[part.values[index]];
    const bool is_own = static_cast<int>(index) >= part.num_of_others;
    const JointNode& op = graph_.nodes[graph_.nodes[value.root].op];
    const bool runs_again = is_own && value.can_run_again &&
                            (op.is_elementwise || is_recomputed[graph_.nodes[value.root].op]);
    CutValue& entry = network.emplace_back();
    entry.weight = weight(value, aim);
    entry.is_wanted = is_own && value.is_wanted;
    if (!runs_again) continue;
    entry.recompute = aim.traffic_per_byte ? op.time.count() : 0;
    for (const int read : value.reads) entry.reads.push_back(index_in_part(read));
  }
  return network;
}

// Returns the cost of saving the value. It is above 0, so that no value is saved without need.
std::int64_t FewestSaved::weight(const Value& value, const CutAim& aim) const {
  const JointNode& root = graph_.nodes[value.root];
  const std::int64_t num_bytes = value.needs_memory ? root.bytes.count : 0;
  if (!aim.traffic_per_byte) {
    return num_bytes * (kParts + aim.shift * (value.is_in_kernel ? 1 : 0)) + 1;
  }
  const auto traffic = static_cast<double>(*aim.traffic_per_byte * num_bytes);
  return root.saving.count() + std::llrint(traffic / graph_.bytes_per_second * 1e9) + 1;
}

}  // namespace rematch
