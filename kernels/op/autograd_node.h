// Pointers to autograd's nodes. LibTorch 2.11 and 2.12 hold a Node by std::shared_ptr, later
// releases by c10::intrusive_ptr. NodePointer is the pointer of the LibTorch that this is built
// against.
#pragma once

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

#include <memory>
#include <type_traits>
#include <utility>

namespace rematch::kernels {

using NodePointer = decltype(torch::autograd::Edge::function);

template <class SomeNode>
constexpr bool is_shared_v = std::is_same_v<NodePointer, std::shared_ptr<torch::autograd::Node>>&&
    std::is_base_of_v<torch::autograd::Node, SomeNode>;

// Makes a node. A long graph is freed in a loop, not by recursion.
template <class SomeNode, class... Arguments>
auto make_node(Arguments&&... arguments) {
  if constexpr (is_shared_v<SomeNode>) {
    return std::shared_ptr<SomeNode>(new SomeNode(std::forward<Arguments>(arguments)...),
                                     [](SomeNode* node) { deleteNode(node); });
  } else {
    return c10::make_intrusive<SomeNode>(std::forward<Arguments>(arguments)...);
  }
}

// Adds an owner to a node that has owners.
template <class SomeNode, class Pointer = NodePointer>
Pointer pointer_to(SomeNode& node) {
  if constexpr (is_shared_v<SomeNode>) {
    return node.shared_from_this();
  } else {
    return Pointer::unsafe_reclaim_from_nonowning(&node);
  }
}

}  // namespace rematch::kernels
