#include "policies/joint/graph_peak.h"

#include <algorithm>
#include <utility>

namespace rematch {
namespace {

using Membership = IdTable<NodeId, bool>;

// Adds the roots of `ids` to `roots`, but for constants.
void add_roots(const JointGraph& graph, const NodeIds& ids, const Membership& constants,
               Membership& roots) {
  for (const NodeId id : ids) {
    const NodeId root = graph.nodes[id].root;
    if (!constants[root]) roots[root] = true;
  }
}

Membership roots_of(const JointGraph& graph, const NodeIds& ids, const Membership& constants) {
  Membership roots(graph.nodes.size(), false);
  add_roots(graph, ids, constants, roots);
  return roots;
}

NodeIds tensors_of(const JointGraph& graph, NodeIds ids) {
  std::erase_if(ids, [&](NodeId id) { return !graph.nodes[id].is_tensor; });
  return ids;
}

NodeIds difference(const JointGraph& graph, NodeIds ids, const NodeIds& removed) {
  const Membership is_removed = membership(graph, removed);
  std::erase_if(ids, [&](NodeId id) { return is_removed[id]; });
  return ids;
}

// Simulates one execution of a graph. Does not count the memory of `constants`. The memory of
// `kept` stays allocated at the end.
class Execution {
 public:
  Execution(const JointGraph& graph, const NodeIds& order, const Membership& constants,
            const Membership& kept, Fusion fusion)
      : graph_(graph),
        order_(order),
        kept_(kept),
        fusion_(fusion),
        is_unallocated_(constants),
        ends_(order.size()),
        is_donated_(graph.nodes.size(), true) {
    if (fusion == Fusion::kElementwise) find_values_inside_kernels();
    find_ends(constants);
    // Inductor may reuse the memory of saved tensors, but not the memory of forward's outputs or of
    // incoming gradients.
    for (const NodeId output : graph.forward_outputs) is_donated_[graph.nodes[output].root] = false;
    for (const NodeId tangent : graph.tangents) is_donated_[tangent] = false;
  }

  // Returns the peak. `alive` are the nodes whose memory is allocated at the beginning.
  Bytes peak(Membership alive) const {
    Bytes live;
    for (const NodeId id : graph_.nodes.ids()) {
      if (alive[id]) live += graph_.nodes[id].bytes;
    }
    Bytes peak = live;
    for (std::size_t position = 0; position < order_.size(); ++position) {
      const NodeId id = order_[position];
      const NodeIds fresh = is_inside_[id] ? NodeIds() : allocated_by(id, alive);
      if (!fresh.empty()) {
        Bytes size;
        for (const NodeId root : fresh) size += graph_.nodes[root].bytes;
        const JointNode& node = graph_.nodes[id];
        const Bytes while_it_runs = live + size + node.unread + node.temporary;
        if (while_it_runs > peak) {
          peak = std::max(peak, while_it_runs - overwritten(position, fresh, alive));
        }
        live += size;
        for (const NodeId root : fresh) alive[root] = true;
      }
      for (const NodeId root : ends_[position]) {
        if (alive[root]) live -= graph_.nodes[root].bytes;
      }
    }
    return peak;
  }

 private:
  NodeIds allocated_by(NodeId id, const Membership& alive) const {
    NodeIds fresh;
    for (const NodeId root : graph_.made_roots[id]) {
      if (!alive[root] && !is_unallocated_[root] && !graph_.nodes[root].is_placeholder) {
        fresh.push_back(root);
      }
    }
    return fresh;
  }

  // Returns the bytes of the op's result if Inductor writes it into the memory of an input, else 0.
  Bytes overwritten(std::size_t position, const NodeIds& fresh, const Membership& alive) const {
    if (fusion_ == Fusion::kNone || fresh.size() != 1) return {};
    if (!graph_.nodes[order_[position]].can_overwrite) return {};
    const Bytes size = graph_.nodes[fresh.front()].bytes;
    const bool has_room =
        std::any_of(ends_[position].begin(), ends_[position].end(), [&](NodeId root) {
          return alive[root] && is_donated_[root] && graph_.nodes[root].bytes == size;
        });
    return has_room ? size : Bytes();
  }

  // Finds the nodes whose values are computed inside the kernels that read them.
  void find_values_inside_kernels() {
    const Membership is_run = membership(graph_, order_);
    for (const NodeId id : order_) {
      if (kept_[id]) continue;
      bool is_read = false;
      bool can_be_inside = true;
      for (const ElementwiseUse& use : graph_.elementwise_uses[id]) {
        if (!is_run[use.user]) continue;
        is_read = is_read || use.is_read;
        can_be_inside = can_be_inside && use.can_be_inside;
      }
      is_inside_[id] = is_read && can_be_inside;
      if (is_inside_[id]) is_unallocated_[id] = true;
    }
  }

  // Finds the last op that reads each root. A kernel may compute values for which it allocates no
  // memory. The inputs of such a value stay alive until the kernel runs.
  void find_ends(const Membership& constants) {
    IdTable<NodeId, std::size_t> last_use(graph_.nodes.size(), 0);
    IdTable<NodeId, NodeIds> read_inside(graph_.nodes.size());  // by value inside a kernel
    for (std::size_t position = 0; position < order_.size(); ++position) {
      const NodeId id = order_[position];
      for (const NodeId root : graph_.read_roots[id]) {
        if (!is_inside_[root]) last_use[root] = position;
        for (const NodeId each : read_inside[root]) last_use[each] = position;
      }
      for (const NodeId root : graph_.made_roots[id]) last_use[root] = position;
      if (!is_inside_[id]) continue;
      for (const NodeId root : graph_.read_roots[id]) {
        if (!is_inside_[root]) add_once(read_inside[id], root);
        for (const NodeId each : read_inside[root]) add_once(read_inside[id], each);
      }
    }
    if (order_.empty()) return;
    for (const NodeId root : graph_.nodes.ids()) {
      if (!kept_[root] && !constants[root]) ends_[last_use[root]].push_back(root);
    }
  }

  const JointGraph& graph_;
  const NodeIds& order_;
  const Membership& kept_;
  Fusion fusion_;
  Membership is_unallocated_;
  std::vector<NodeIds> ends_;  // by position in `order_`: the roots whose memory is freed there
  Membership is_donated_;
  Membership is_inside_ = Membership(graph_.nodes.size(), false);
};

Membership constants_of(const JointGraph& graph) {
  Membership constants(graph.nodes.size(), false);
  for (const NodeId id : graph.nodes.ids()) constants[id] = graph.nodes[id].is_placeholder;
  for (const NodeId id : graph.tangents) constants[id] = false;
  for (const NodeId id : graph.activation_inputs) constants[id] = false;
  return constants;
}

}  // namespace

PeakModel::PeakModel(const JointGraph& graph, const GraphSchedule& schedule, Fusion fusion)
    : graph_(graph), fusion_(fusion), constants_(constants_of(graph)) {
  const NodeIds saved = tensors_of(graph, schedule.saved);
  const NodeIds tangents = tensors_of(graph, graph.tangents);
  Membership returned =
      roots_of(graph, difference(graph, graph.forward_outputs, graph.dropped_outputs), constants_);
  for (const NodeId input : graph.activation_inputs) returned[input] = false;
  Membership staying = returned;
  for (const NodeId output : graph.freed_outputs) staying[graph.nodes[output].root] = false;

  at_end_of_forward_ = returned;
  add_roots(graph, saved, constants_, at_end_of_forward_);
  if (fusion == Fusion::kElementwise) {
    const Membership is_saved = membership(graph, schedule.saved);
    for (const NodeId input : graph.copied_inputs) {
      if (is_saved[input]) copied_ += graph.nodes[input].bytes;
    }
  }
  known_.held = total(at_end_of_forward_) + copied_;
  add_roots(graph, graph.activation_inputs, constants_, at_end_of_forward_);

  at_start_of_backward_ = staying;
  add_roots(graph, saved, constants_, at_start_of_backward_);
  add_roots(graph, tangents, constants_, at_start_of_backward_);
  at_end_of_backward_ = staying;
  add_roots(graph, graph.backward_outputs, constants_, at_end_of_backward_);
  if (!graph.frees_tangents) add_roots(graph, tangents, constants_, at_end_of_backward_);

  known_.returned = total(staying);
  known_.gradients = total(roots_of(graph, graph.parameter_gradients, constants_));
  for (const NodeId id : saved) staying[graph.nodes[id].root] = false;
  known_.outside = total(staying);
  known_.forward =
      copied_ + Execution(graph, schedule.forward, constants_, at_end_of_forward_, fusion)
                    .peak(roots_of(graph, graph.activation_inputs, constants_));
}

GraphPeaks PeakModel::peaks(const NodeIds& backward) const {
  GraphPeaks peaks = known_;
  peaks.backward = copied_ + Execution(graph_, backward, constants_, at_end_of_backward_, fusion_)
                                 .peak(at_start_of_backward_);
  return peaks;
}

Bytes PeakModel::total(const Membership& roots) const {
  Bytes bytes;
  for (const NodeId id : graph_.nodes.ids()) {
    if (roots[id]) bytes += graph_.nodes[id].bytes;
  }
  return bytes;
}

}  // namespace rematch
