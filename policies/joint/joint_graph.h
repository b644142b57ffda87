// The joint graph of a compiled model, as AOTAutograd traces it: the ops of forward and backward in
// one graph. The graph's nodes are numbered in the order of the program. Contains no tensors.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/base/id.h"
#include "policies/base/json_fwd.h"

namespace rematch {

using NodeId = Id<struct NodeTag>;
using NodeIds = std::vector<NodeId>;

// A placeholder, an op, or a node that unpacks one of an op's results.
struct JointNode {
  NodeIds inputs;   // the nodes that this node reads, without duplicates
  NodeId root;      // the node that allocates the memory of this node's tensor
  NodeId op;        // the op that makes this node's tensor
  NodeIds results;  // of an op: the nodes of its results
  // The layer of an op of forward. Absent: the op is outside of layers, or belongs to backward.
  OptionalIndex layer;

  bool is_placeholder = false;
  bool is_call = false;  // an op, a node that unpacks a result, or arithmetic on sizes
  bool is_op = false;
  bool is_tensor = false;
  bool is_view = false;
  bool is_elementwise = false;
  bool is_reduction = false;
  bool is_forward = false;
  bool is_kept = false;        // an op that must not be recomputed
  bool can_overwrite = false;  // the op may write its result into the memory of an input

  Bytes bytes;                        // of the tensor
  Bytes unread;                       // of results that no node reads
  Bytes temporary;                    // what the op allocates and frees while it runs
  std::chrono::nanoseconds time{};    // of recomputing the op
  std::chrono::nanoseconds saving{};  // what saving the value adds to the step
};

// A node that reads an elementwise op.
struct ElementwiseUse {
  NodeId user;
  bool is_read = false;        // the user, or an op that reads the user's view, reads the value
  bool can_be_inside = false;  // these ops can compute the value inside of their kernels
};

struct JointGraph {
  IdTable<NodeId, JointNode> nodes;

  NodeIds forward_outputs;
  NodeIds dropped_outputs;    // outputs of forward that the program drops before backward
  NodeIds freed_outputs;      // outputs of forward that are freed before backward of this graph
  NodeIds activation_inputs;  // inputs that have a gradient and are no parameters
  NodeIds copied_inputs;      // inputs that a fusing backend copies; if they are saved, the copy is
  NodeIds tangents;           // the incoming gradients
  NodeIds backward_seeds;     // nodes that backward must run, in their order
  NodeIds backward_outputs;   // the gradients that backward returns
  NodeIds parameter_gradients;
  bool frees_tangents = false;  // whether incoming gradients are freed after their last use
  double bytes_per_second = 1;  // the rate of the device's memory

  // The properties below follow from the nodes.
  IdTable<NodeId, NodeIds> read_roots;  // the roots of the inputs, without duplicates
  IdTable<NodeId, NodeIds> made_roots;  // the roots of an op's results, without duplicates
  IdTable<NodeId, NodeIds> users;       // the nodes that read each node
  // of each elementwise op that is no view
  IdTable<NodeId, std::vector<ElementwiseUse>> elementwise_uses;
};

// Reads the lists of a joint graph, as rematch.compiled writes them, and computes the properties
// that follow from the nodes. Throws FormatError if a list has another length than the list of
// nodes, or if a node does not exist.
JointGraph joint_graph_from_json(const JsonField& field);

// Reads a list of nodes. Throws FormatError if a node does not exist.
NodeIds node_ids_from_json(const JsonField& field, std::size_t num_nodes);

// Computes the properties that follow from the nodes.
void complete(JointGraph& graph);

// Returns for each node whether it is in the list.
IdTable<NodeId, bool> membership(const JointGraph& graph, const NodeIds& nodes);

}  // namespace rematch
