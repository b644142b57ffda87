#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include "kernels/masked_attention/masked_attention_kernels.h"

namespace rematch::kernels::masked {
namespace {

using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

template <typename Signature>
c10::TypedOperatorHandle<Signature> handle(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

// The graph node. Written as a Node rather than an autograd::Function, because that saves its
// inputs only after its kernel ran: a recompute with early stop would execute the kernel in vain.
struct MaskedAttentionNode final : torch::autograd::Node {
  SavedVariable q, k, v, mask, out, logsumexp;

  variable_list apply(variable_list&& gradients) override {
    if (!gradients[0].defined()) return variable_list(3);
    static const auto op = handle<decltype(backward_cpu)>("rematch::masked_attention_backward");
    const at::Tensor q_value = q.unpack();
    const at::Tensor k_value = k.unpack();
    const at::Tensor v_value = v.unpack();
    const at::Tensor mask_value = mask.unpack();
    const at::Tensor out_value = out.unpack(shared_from_this());
    const at::Tensor logsumexp_value = logsumexp.unpack(shared_from_this());
    auto [grad_q, grad_k, grad_v] =
        op.call(gradients[0], q_value, k_value, v_value, mask_value, out_value, logsumexp_value);
    return {grad_q, grad_k, grad_v};
  }

  void release_variables() override {
    q.reset_data();
    k.reset_data();
    v.reset_data();
    mask.reset_data();
    out.reset_data();
    logsumexp.reset_data();
  }

  std::string name() const override { return "RematchMaskedAttentionBackward"; }
};

}  // namespace

Forward forward_autograd(c10::DispatchKeySet keys, const at::Tensor& q, const at::Tensor& k,
                         const at::Tensor& v, const at::Tensor& mask) {
  static const auto op = handle<decltype(forward_cpu)>("rematch::masked_attention");
  std::shared_ptr<MaskedAttentionNode> node;
  if (torch::autograd::compute_requires_grad(q, k, v)) {
    node =
        std::shared_ptr<MaskedAttentionNode>(new MaskedAttentionNode, torch::autograd::deleteNode);
    node->set_next_edges(torch::autograd::collect_next_edges(q, k, v));
    node->q = SavedVariable(q, /*is_output=*/false);
    node->k = SavedVariable(k, /*is_output=*/false);
    node->v = SavedVariable(v, /*is_output=*/false);
    node->mask = SavedVariable(mask, /*is_output=*/false);
  }
  Forward result;
  {
    at::AutoDispatchBelowADInplaceOrView below;
    result = op.redispatch(keys & c10::after_autograd_keyset, q, k, v, mask);
  }
  if (node) {
    torch::autograd::set_history(std::get<0>(result), node);
    node->out = SavedVariable(std::get<0>(result), /*is_output=*/true);
    node->logsumexp = SavedVariable(std::get<1>(result), /*is_output=*/true);
  }
  return result;
}

Backward backward_autograd(c10::DispatchKeySet keys, const at::Tensor& grad_out,
                           const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const at::Tensor& mask, const at::Tensor& out,
                           const at::Tensor& logsumexp) {
  static const auto op = handle<decltype(backward_cpu)>("rematch::masked_attention_backward");
  Backward result;
  {
    at::AutoDispatchBelowADInplaceOrView below;
    result =
        op.redispatch(keys & c10::after_autograd_keyset, grad_out, q, k, v, mask, out, logsumexp);
  }
  if (torch::autograd::compute_requires_grad(grad_out, q, k, v)) {
    // As for the aten op: a second derivative is refused when it is asked for, not before.
    const auto refuse = std::shared_ptr<torch::autograd::Node>(
        new torch::autograd::NotImplemented("rematch::masked_attention_backward",
                                            torch::autograd::collect_next_edges(grad_out, q, k, v)),
        torch::autograd::deleteNode);
    torch::autograd::set_history(std::get<0>(result), refuse);
    torch::autograd::set_history(std::get<1>(result), refuse);
    torch::autograd::set_history(std::get<2>(result), refuse);
  }
  return result;
}

}  // namespace rematch::kernels::masked
