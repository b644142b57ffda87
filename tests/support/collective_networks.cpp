// In shapes, T is tokens, C is channels, and S is the tokens of one rank.
#include "tests/support/collective_networks.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/custom_function.h>

#include <functional>

#include "tests/support/slow_group.h"

namespace rematch::testing {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kChannels = 12;
constexpr int kLayers = 3;

using Call = at::Tensor (*)(const at::Tensor&, const std::string&);

// A collective, its wait, and the collective that its gradient needs.
template <Call forward_call, Call backward_call>
struct Collective : torch::autograd::Function<Collective<forward_call, backward_call>> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const std::string& group) {
    context->saved_data["group"] = group;
    const at::AutoDispatchBelowADInplaceOrView below;
    return forward_call(x, group);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {backward_call(gradients[0], context->saved_data["group"].toStringRef()), at::Tensor()};
  }
};

at::Tensor reduced(const at::Tensor& x, const std::string& group) {
  return wait_for(start_all_reduce(x, group));
}
at::Tensor reduced_in_place(const at::Tensor& x, const std::string& group) {
  return wait_for(start_all_reduce_in_place(at::mul(x, 2.0), group));
}
at::Tensor gathered(const at::Tensor& x, const std::string& group) {
  return wait_for(start_all_gather(x, group));
}
at::Tensor scattered(const at::Tensor& x, const std::string& group) {
  return wait_for(start_reduce_scatter(x, group));
}
at::Tensor exchanged(const at::Tensor& x, const std::string& group) {
  return wait_for(start_all_to_all(x, group));
}
// Waits for a view of the result, as PyTorch's asynchronous tensors do. Then waits for the result
// itself, which is complete by then.
at::Tensor gathered_and_viewed(const at::Tensor& x_SC, const std::string& group) {
  const at::Tensor all_TC = start_all_gather(x_SC, group);
  const at::Tensor viewed = wait_for(at::alias(all_TC));
  wait_for(all_TC);
  return at::mul(all_TC, at::sigmoid(viewed));
}
at::Tensor as_it_is(const at::Tensor& x, const std::string&) { return x; }
at::Tensor first_part(const at::Tensor& x, const std::string&) {
  return at::slice(x, 0, 0, x.size(0) / SlowGroup::kWorld).contiguous();
}

// One collective gathers all shards of a block, and another scatters the gradients of all shards.
struct GatheredShards : torch::autograd::Function<GatheredShards> {
  static variable_list forward(AutogradContext* context, const at::Tensor& first,
                               const at::Tensor& second, const std::string& group) {
    context->saved_data["group"] = group;
    const at::AutoDispatchBelowADInplaceOrView below;
    variable_list whole = start_all_gather(std::vector<at::Tensor>{first, second}, group);
    for (at::Tensor& tensor : whole) tensor = wait_for(tensor);
    return whole;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    variable_list shards =
        start_reduce_scatter({gradients[0].contiguous(), gradients[1].contiguous()},
                             context->saved_data["group"].toStringRef());
    for (at::Tensor& tensor : shards) tensor = wait_for(tensor);
    return {shards[0], shards[1], at::Tensor()};
  }
};

using Layer = std::function<at::Tensor(const at::Tensor& x, const std::vector<at::Tensor>& w)>;

NamedNetwork network_of(const std::string& name,
                        const std::vector<std::vector<std::int64_t>>& shapes, const Layer& layer) {
  return {name, [=] {
            Network network;
            network.input = at::randn({8, kChannels}).requires_grad_();
            for (int i = 0; i < kLayers; ++i) {
              std::vector<at::Tensor> weights;
              for (const auto& shape : shapes) {
                weights.push_back(at::randn(shape).mul_(0.3).requires_grad_());
                network.parameters.push_back(weights.back());
              }
              network.layers.push_back([=](const at::Tensor& x) { return layer(x, weights); });
            }
            return network;
          }};
}

NamedNetwork tensor_parallel(const std::string& group) {
  using Reduce = Collective<reduced, as_it_is>;
  return network_of("tensor parallel", {{kChannels, 16}, {16, kChannels}},
                    [group](const at::Tensor& x_TC, const std::vector<at::Tensor>& w) {
                      const at::Tensor copy_TC = x_TC.view_as(x_TC);
                      copy_TC.register_hook([group](const at::Tensor& gradient) {
                        return reduced(gradient.contiguous(), group);
                      });
                      const at::Tensor hidden = at::silu(at::mm(copy_TC, w[0]));
                      return at::add(x_TC, Reduce::apply(at::mm(hidden, w[1]), group));
                    });
}

NamedNetwork sequence_parallel(const std::string& group) {
  using Gather = Collective<gathered, scattered>;
  using Scatter = Collective<scattered, gathered>;
  return network_of("sequence parallel", {{kChannels}, {kChannels, 16}, {16, kChannels}},
                    [group](const at::Tensor& x_SC, const std::vector<at::Tensor>& w) {
                      const at::Tensor all_TC = Gather::apply(at::mul(x_SC, w[0]), group);
                      const at::Tensor hidden = at::silu(at::mm(all_TC, w[1]));
                      return at::add(x_SC, Scatter::apply(at::mm(hidden, w[2]), group));
                    });
}

NamedNetwork exchanging(const std::string& group) {
  using Exchange = Collective<exchanged, exchanged>;
  return network_of("exchanges", {{kChannels, kChannels}},
                    [group](const at::Tensor& x_TC, const std::vector<at::Tensor>& w) {
                      const at::Tensor sent = Exchange::apply(at::tanh(at::mm(x_TC, w[0])), group);
                      const at::Tensor back = Exchange::apply(at::mul(sent, sent), group);
                      return at::add(x_TC, at::exp(at::neg(at::mul(back, back))));
                    });
}

NamedNetwork sharded(const std::string& group) {
  return network_of("gathered shards",
                    {{kChannels / SlowGroup::kWorld, 16}, {16 / SlowGroup::kWorld, kChannels}},
                    [group](const at::Tensor& x_TC, const std::vector<at::Tensor>& w) {
                      const variable_list whole = GatheredShards::apply(w[0], w[1], group);
                      const at::Tensor hidden = at::gelu(at::mm(x_TC, whole[0]));
                      return at::add(x_TC, at::mm(hidden, whole[1]));
                    });
}

template <Call forward_call, Call backward_call>
NamedNetwork with_gate(const std::string& name, const std::string& group) {
  using Gate = Collective<forward_call, backward_call>;
  return network_of(name, {{kChannels, kChannels}},
                    [group](const at::Tensor& x_TC, const std::vector<at::Tensor>& w) {
                      const at::Tensor gate = Gate::apply(at::mm(x_TC, w[0]), group);
                      const at::Tensor rows = at::slice(gate, 0, 0, x_TC.size(0));
                      return at::mul(x_TC, at::sigmoid(at::mul(rows, rows)));
                    });
}

// A layer that starts a collective and waits for it after other ops. If `join` is a sum, backward
// needs neither of its inputs, so recompute can stop between the start and the wait. If `join` is a
// product, backward needs both.
NamedNetwork overlapping(const std::string& name, const std::string& group,
                         at::Tensor (*join)(const at::Tensor&, const at::Tensor&)) {
  return network_of(name, {{kChannels, kChannels}},
                    [=](const at::Tensor& x_TC, const std::vector<at::Tensor>& w) {
                      const at::Tensor other_TC = start_all_reduce(x_TC.detach(), group);
                      const at::Tensor gate = at::sigmoid(at::mm(x_TC, w[0]));
                      wait_for(other_TC);
                      return join(gate, other_TC);
                    });
}

}  // namespace

std::vector<NamedNetwork> collective_networks(const std::string& group) {
  return {tensor_parallel(group),
          sequence_parallel(group),
          exchanging(group),
          sharded(group),
          with_gate<reduced_in_place, as_it_is>("reduced in place", group),
          with_gate<gathered_and_viewed, first_part>("wait through a view", group),
          overlapping("overlapping, needed", group,
                      [](const at::Tensor& a, const at::Tensor& b) { return at::mul(a, b); }),
          overlapping("overlapping, not needed", group,
                      [](const at::Tensor& a, const at::Tensor& b) { return at::add(a, b); })};
}

}  // namespace rematch::testing
