// The values that forward must save if backward may recompute elementwise ops.
//
// Inductor computes an elementwise op inside the kernels that read its result, so recomputing it in
// backward launches no kernel and takes no memory. The values to save are a minimum cut between the
// values that forward makes and the values that backward reads. PyTorch's partitioner computes one
// cut of the whole graph (torch._functorch.partitioners.solve_min_cut). Here each layer has its own
// cut, because ops are recomputed only within their layer.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "policies/joint/joint_graph.h"

namespace rematch {

// The quantity that a cut minimizes.
struct CutAim {
  // Without `traffic_per_byte`: the saved bytes. The bytes of values inside kernels count this many
  // sixteenths more, because such values are in memory only if they are saved.
  std::int64_t shift = 0;
  // If present: the time of saving and of recomputing, plus the time of moving each saved byte this
  // many times.
  std::optional<std::int64_t> traffic_per_byte;
};

// A value in a network whose minimum cut is searched.
struct CutValue {
  std::int64_t weight = 0;  // the cost of saving the value
  bool is_wanted = false;   // backward reads the value
  // The cost of recomputing the value's op. Absent: the op must not be recomputed.
  std::optional<std::int64_t> recompute;
  std::vector<int> reads;  // the indices of the values that the op reads
  auto operator<=>(const CutValue&) const = default;
};
using CutNetwork = std::vector<CutValue>;

// Returns the indices of the values to save, in ascending order, so that all wanted values can be
// computed and the total cost is as low as possible. Of equally good choices, saves the values that
// are nearest to backward.
std::vector<int> minimum_cut(const CutNetwork& network);

// Finds the values to save in one joint graph, given the ops that may be recomputed. The graph must
// outlive this object.
class FewestSaved {
 public:
  explicit FewestSaved(const JointGraph& graph);

  // Returns the values to save, without inputs, in the graph's order. `recomputed` are the ops that
  // may be recomputed in addition to elementwise ops.
  NodeIds values(const NodeIds& recomputed, const CutAim& aim);

 private:
  // A value that an op of forward makes.
  struct Value {
    NodeId root;
    std::vector<int> reads;      // the values that its op reads, as indices into `values_`
    bool needs_memory = true;    // false if the program keeps the value in memory anyway
    bool is_in_kernel = false;   // its op runs inside the kernels that read the value
    bool is_wanted = false;      // an op of backward reads it
    bool can_run_again = false;  // false if another layer reads it, or if its op must be kept
  };
  // A layer, or the ops between two layers. The values of others that its ops read come first.
  struct Part {
    std::vector<int> values;  // indices into `values_`
    int num_of_others = 0;
  };

  void add_values();
  Part part_of(const std::vector<int>& own) const;
  CutNetwork network_of(const Part& part, const IdTable<NodeId, bool>& is_recomputed,
                        const CutAim& aim) const;
  std::int64_t weight(const Value& value, const CutAim& aim) const;

  const JointGraph& graph_;
  std::vector<Value> values_;
  std::vector<Part> parts_;
  std::map<CutNetwork, std::vector<int>> solved_;  // a cache, because many layers are equal
};

}  // namespace rematch
