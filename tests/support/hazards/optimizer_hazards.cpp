// Changes between steps: optimizers over lists of tensors, fused optimizers, scaled and clipped
// gradients, gradients that are views, and weights that are exchanged.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/CPUAllocator.h>

#include <cstring>

#include "tests/support/hazards/hazard.h"
#include "tests/support/networks.h"

namespace rematch::testing::hazards {
namespace {

using Tensors = std::vector<at::Tensor>;

at::Tensor layer(const at::Tensor& x, const Parts& p) {
  return at::linear(at::gelu(at::linear(x, p[0], p[1])), p[2]);
}

Model mlp() { return layers_of({{16, kDim}, {16}, {kDim, 16}}, layer); }

Tensors gradients_of(const Tensors& parameters) {
  Tensors gradients;
  for (const at::Tensor& parameter : parameters) gradients.push_back(parameter.grad());
  return gradients;
}

void forget_gradients(const Tensors& parameters) {
  for (const at::Tensor& parameter : parameters) parameter.mutable_grad().reset();
}

Tensors zeros_like(const Tensors& parameters) {
  Tensors zeros;
  for (const at::Tensor& parameter : parameters) zeros.push_back(at::zeros_like(parameter));
  return zeros;
}

// Called after every backward with the model's parameters and gradients; `state` belongs to the
// step function.
using Step = std::function<void(Tensors parameters, Tensors gradients, Tensors& state)>;

Hazard updated(const std::string& name, const Step& step, int num_states) {
  return {name, [=] {
            Model model = mlp();
            const auto state = std::make_shared<Tensors>();
            for (int i = 0; i < num_states; ++i) {
              for (at::Tensor& zero : zeros_like(model.parameters)) state->push_back(zero);
            }
            for (const at::Tensor& parameter : model.parameters) {
              model.buffers.push_back(parameter);  // treated as a buffer, so that the optimizer's
                                                   // result is compared
            }
            model.update = [=, parameters = model.parameters, input = model.input] {
              at::NoGradGuard no_grad;
              step(parameters, gradients_of(parameters), *state);
              forget_gradients(parameters);
              input.mutable_grad().reset();
            };
            return model;
          }};
}

Tensors part(const Tensors& state, std::size_t index, std::size_t size) {
  return {state.begin() + static_cast<std::ptrdiff_t>(index * size),
          state.begin() + static_cast<std::ptrdiff_t>((index + 1) * size)};
}

std::vector<Hazard> optimizers() {
  return {
      updated(
          "gradient descent with momentum over lists of tensors",
          [](const Tensors& p, const Tensors& g, const Tensors& state) {
            at::_foreach_mul_(state, 0.9);
            at::_foreach_add_(state, g);
            at::_foreach_add_(p, state, -0.1);
          },
          1),
      updated(
          "AdamW, over lists",
          [](const Tensors& p, const Tensors& g, const Tensors& state) {
            const Tensors m = part(state, 0, p.size());
            const Tensors v = part(state, 1, p.size());
            at::_foreach_mul_(p, 0.99);
            at::_foreach_lerp_(m, g, 0.1);
            at::_foreach_mul_(v, 0.99);
            at::_foreach_addcmul_(v, g, g, 0.01);
            auto root = at::_foreach_sqrt(v);
            at::_foreach_add_(root, 1e-6);
            at::_foreach_addcdiv_(p, m, root, -0.01);
          },
          2),
      updated(
          "AdamW, fused",
          [](const Tensors& p, const Tensors& g, const Tensors& state) {
            Tensors steps;
            for (std::size_t i = 0; i < p.size(); ++i) steps.push_back(at::ones({}));
            at::_fused_adamw_(p, g, part(state, 0, p.size()), part(state, 1, p.size()), {}, steps,
                              0.01, 0.9, 0.99, 0.01, 1e-6, false, false);
          },
          2),
      updated(
          "fused gradient descent with clipped gradients",
          [](const Tensors& p, const Tensors& g, const Tensors& state) {
            const at::Tensor norm = at::stack(at::_foreach_norm(g, 2)).norm();
            at::_foreach_mul_(g, (0.1 / (norm + 1e-6)).clamp_max(1.0).item());
            at::_fused_sgd_(p, g, state, 0.0, 0.9, 0.1, 0.0, false, false, true);
          },
          1),
      updated(
          "weights exchanged with their moving average and back",
          [](const Tensors& p, const Tensors& g, const Tensors& state) {
            at::_foreach_add_(p, g, -0.1);
            at::_foreach_lerp_(state, p, 0.5);
            for (std::size_t i = 0; i < p.size(); ++i) {
              const at::Tensor kept = p[i].clone();
              at::Tensor(p[i]).copy_(state[i]);
              state[i].copy_(kept);
            }
          },
          1),
      updated(
          "weights whose storages are replaced after a step",
          [](const Tensors& p, const Tensors& g, const Tensors&) {
            for (std::size_t i = 0; i < p.size(); ++i) p[i].set_data(p[i] - g[i] * 0.1);
          },
          0),
  };
}

std::vector<Hazard> gradients() {
  return {
      {"gradients accumulated over two steps and zeroed in place",
       [] {
         Model model = mlp();
         const auto calls = std::make_shared<int>(0);
         model.update = [calls, parameters = model.parameters, input = model.input] {
           at::NoGradGuard no_grad;
           if (++*calls % 2 == 1) return;
           for (const at::Tensor& parameter : parameters) {
             at::Tensor(parameter).sub_(parameter.grad(), 0.1);
             parameter.mutable_grad().zero_();
           }
           input.mutable_grad().zero_();
         };
         return model;
       }},
      {"gradients that are views of one buffer",
       [] {
         Model model = mlp();
         std::int64_t size = 0;
         for (const at::Tensor& parameter : model.parameters) size += parameter.numel();
         const at::Tensor flat = at::zeros({size});
         std::int64_t first = 0;
         for (const at::Tensor& parameter : model.parameters) {
           parameter.mutable_grad() =
               flat.narrow(0, first, parameter.numel()).view(parameter.sizes());
           first += parameter.numel();
         }
         model.buffers.push_back(flat);
         model.update = [flat, parameters = model.parameters, input = model.input] {
           at::NoGradGuard no_grad;
           for (const at::Tensor& parameter : parameters) {
             at::Tensor(parameter).sub_(parameter.grad(), 0.1);
           }
           flat.zero_();
           input.mutable_grad().reset();
         };
         return model;
       }},
      {"a scaled loss with unscaled gradients",
       [] {
         Model model = mlp();
         const at::Tensor scale = at::full({}, 1024.0F);
         model.backward = [scale](const at::Tensor& loss) { (loss * scale).backward(); };
         model.update = [scale, parameters = model.parameters, input = model.input] {
           at::NoGradGuard no_grad;
           at::Tensor found = at::zeros({});
           at::_amp_foreach_non_finite_check_and_unscale_(gradients_of(parameters), found,
                                                          scale.reciprocal());
           for (const at::Tensor& parameter : parameters) {
             at::Tensor(parameter).sub_(parameter.grad(), 0.1);
           }
           forget_gradients(parameters);
           input.mutable_grad().reset();
         };
         return model;
       }},
      {"weights that are freed after forward and refilled before backward",
       [] {
         Model model = mlp();
         model.backward = [parameters = model.parameters](const at::Tensor& loss) {
           Tensors kept;
           for (const at::Tensor& parameter : parameters) {
             kept.push_back(parameter.detach().clone());
             parameter.storage().unsafeGetStorageImpl()->set_data_ptr_noswap(
                 c10::GetDefaultCPUAllocator()->allocate(0));
           }
           for (std::size_t i = 0; i < parameters.size(); ++i) {
             c10::StorageImpl* storage = parameters[i].storage().unsafeGetStorageImpl();
             storage->set_data_ptr_noswap(
                 c10::GetDefaultCPUAllocator()->allocate(storage->nbytes()));
             std::memcpy(storage->mutable_data(), kept[i].const_data_ptr(), storage->nbytes());
           }
           loss.backward();
         };
         return model;
       }},
      {"a layer that is frozen after the first step",
       [] {
         Model model = mlp();
         model.update = [parameters = model.parameters, input = model.input] {
           at::NoGradGuard no_grad;
           for (const at::Tensor& parameter : parameters) {
             if (parameter.grad().defined()) at::Tensor(parameter).sub_(parameter.grad(), 0.1);
           }
           forget_gradients(parameters);
           input.mutable_grad().reset();
           parameters[0].requires_grad_(false);
           parameters[4].requires_grad_(false);
         };
         return model;
       }},
  };
}

}  // namespace

std::vector<Hazard> optimizer_hazards() {
  std::vector<Hazard> all = optimizers();
  for (Hazard& hazard : gradients()) all.push_back(std::move(hazard));
  return all;
}

}  // namespace rematch::testing::hazards
