// Hides the differences between the LibTorch versions that the sources build against. Only this
// header may depend on the version; scripts/check layers enforces this.
//
// Note [LibTorch versions]
// The sources work around most differences:
// - 2.12: In the schemas of functional collectives, group_name has type Any instead of str. Meta
//   kernels are boxed.
// - 2.13: get_current_node() returns an intrusive_ptr. Callers write `auto`.
// - 2.15: In the schemas of functional collectives, reduce_op also has type Any instead of str.
// - at::Context has different flags in each version. The engine copies them as bytes, up to the
//   member fp32_precision.
#pragma once

#include <c10/core/DispatchKey.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>
#include <torch/headeronly/version.h>

#include <memory>
#include <type_traits>
#include <utility>

namespace rematch::libtorch {

// The engine intercepts ops at dispatch key Fake, which is below autograd and ADInplaceOrView in
// every version. From LibTorch 2.13 on, Fake is also below Python, so Python modes and tensor
// subclasses see an op before the engine.
static_assert(TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 11 && TORCH_VERSION_MINOR <= 15,
              "only LibTorch 2.11 to 2.15 is supported: see scripts/libtorch");
static_assert(c10::DispatchKey::Fake < c10::DispatchKey::ADInplaceOrView,
              "dispatch key Fake is not below ADInplaceOrView: the engine would see ops too early");
constexpr bool kFakeIsBelowPython = c10::DispatchKey::Fake < c10::DispatchKey::Python;
static_assert(kFakeIsBelowPython == (TORCH_VERSION_MINOR >= 13),
              "dispatch key Fake is not where this version of LibTorch puts it");

// The type of owning pointers to a Node: c10::intrusive_ptr from 2.13 on, and std::shared_ptr
// before.
using NodePointer = decltype(torch::autograd::Edge::function);

template <class SomeNode>
constexpr bool is_shared_v = std::is_same_v<NodePointer, std::shared_ptr<torch::autograd::Node>>&&
    std::is_base_of_v<torch::autograd::Node, SomeNode>;

// Makes a node. A long graph of such nodes is freed in a loop, without recursion.
template <class SomeNode, class... Arguments>
auto make_node(Arguments&&... arguments) {
  if constexpr (is_shared_v<SomeNode>) {
    return std::shared_ptr<SomeNode>(new SomeNode(std::forward<Arguments>(arguments)...),
                                     [](SomeNode* node) { deleteNode(node); });
  } else {
    return c10::make_intrusive<SomeNode>(std::forward<Arguments>(arguments)...);
  }
}

// Returns another owning pointer to a node that already has an owner.
template <class SomeNode, class Pointer = NodePointer>
Pointer pointer_to(SomeNode& node) {
  if constexpr (is_shared_v<SomeNode>) {
    return node.shared_from_this();
  } else {
    return Pointer::unsafe_reclaim_from_nonowning(&node);
  }
}

}  // namespace rematch::libtorch
