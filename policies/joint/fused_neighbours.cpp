#include "policies/joint/fused_neighbours.h"

#include <algorithm>
#include <utility>

namespace rematch {
namespace {

// Inductor also fuses elementwise ops that are farther apart, but such kernels are split if they
// raise the peak.
constexpr int kMaxCallsBetween = 3;

constexpr int kBeforeAll = -1;  // the position of a value that exists before the first op

class Mover {
 public:
  Mover(const JointGraph& graph, const NodeIds& order)
      : graph_(graph),
        order_(order),
        position_of_(graph.nodes.size(), kBeforeAll),
        reads_(graph.nodes.size()),
        first_reader_(graph.nodes.size()),
        is_moved_(graph.nodes.size(), false),
        moved_to_(order.size()),
        is_in_chain_(graph.nodes.size(), false) {
    for (std::size_t position = 0; position < order.size(); ++position) {
      position_of_[order[position]] = static_cast<int>(position);
    }
  }

  NodeIds moved() {
    for (int position = 0; position < static_cast<int>(order_.size()); ++position) {
      num_calls_before_.push_back(num_calls_);
      const NodeId id = order_[position];
      const JointNode& node = graph_.nodes[id];
      if (!node.is_op) continue;
      if (node.is_view) {
        const NodeId source = node.inputs.empty() ? id : node.inputs.front();
        reads_[id] = reads_[source].is_known ? reads_[source] : itself(source);
      } else if (node.is_elementwise) {
        visit_elementwise(id, position);
      } else {
        ++num_calls_;
      }
    }
    return collected();
  }

 private:
  // The values from other kernels that an elementwise op reads, directly or through its own kernel.
  // Leaves out values whose first reader is too far away. Otherwise, their number would grow with
  // the number of layers.
  struct Reads {
    NodeIds roots;
    int ready_after = kBeforeAll;  // the position of the last of these values
    bool is_known = false;
  };

  Reads itself(NodeId id) const {
    const NodeId root = graph_.nodes[id].root;
    return {{root}, position_of_[root], true};
  }

  void visit_elementwise(NodeId id, int position) {
    Reads offered;
    for (const NodeId input : graph_.nodes[id].inputs) {
      if (!reads_[input].is_known && !graph_.nodes[input].is_tensor) continue;
      const Reads& through = reads_[input];
      if (through.is_known) {
        for (const NodeId root : through.roots) add_once(offered.roots, root);
        offered.ready_after = std::max(offered.ready_after, through.ready_after);
      } else {
        const NodeId root = graph_.nodes[input].root;
        add_once(offered.roots, root);
        offered.ready_after = std::max(offered.ready_after, position_of_[root]);
      }
    }
    Reads found{{}, offered.ready_after, true};
    int target = position;
    for (const NodeId root : offered.roots) {
      const OptionalIndex place = first_reader_[root];
      if (place.has_value() && num_calls_ - num_calls_before_[*place] > kMaxCallsBetween) continue;
      found.roots.push_back(root);
      if (place.has_value() && offered.ready_after < *place) target = std::min(target, *place);
    }
    if (target < position) move(id, target);
    for (const NodeId root : found.roots) {
      if (!first_reader_[root].has_value()) first_reader_[root] = target;
    }
    reads_[id] = std::move(found);
  }

  // Moves the node, and the nodes after `target` that it depends on.
  void move(NodeId id, int target) {
    NodeIds chain = {id};
    is_in_chain_[id] = true;
    for (std::size_t next = 0; next < chain.size(); ++next) {
      for (const NodeId input : graph_.nodes[chain[next]].inputs) {
        if (position_of_[input] <= target || is_in_chain_[input]) continue;
        is_in_chain_[input] = true;
        chain.push_back(input);
      }
    }
    std::sort(chain.begin(), chain.end(),
              [&](NodeId a, NodeId b) { return position_of_[a] < position_of_[b]; });
    for (const NodeId each : chain) {
      is_in_chain_[each] = false;
      if (is_moved_[each]) continue;
      is_moved_[each] = true;
      moved_to_[target].push_back(each);
    }
  }

  NodeIds collected() const {
    NodeIds result;
    result.reserve(order_.size());
    for (std::size_t position = 0; position < order_.size(); ++position) {
      if (!is_moved_[order_[position]]) result.push_back(order_[position]);
      result.insert(result.end(), moved_to_[position].begin(), moved_to_[position].end());
    }
    return result;
  }

  const JointGraph& graph_;
  const NodeIds& order_;
  IdTable<NodeId, int> position_of_;
  int num_calls_ = 0;  // ops so far that are not elementwise
  std::vector<int> num_calls_before_;
  IdTable<NodeId, Reads> reads_;
  IdTable<NodeId, OptionalIndex> first_reader_;  // where an elementwise op reads each value first
  IdTable<NodeId, bool> is_moved_;
  std::vector<NodeIds> moved_to_;  // by position
  IdTable<NodeId, bool> is_in_chain_;
};

}  // namespace

NodeIds with_fused_neighbours(const JointGraph& graph, const NodeIds& order) {
  return Mover(graph, order).moved();
}

}  // namespace rematch
