#include "tests/support/hazards/training.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>

#include "harness/trace/tracer.h"
#include "models/scope/scope.h"
#include "tests/support/networks.h"

namespace rematch::testing::hazards {
namespace {

at::Tensor forward(const Model& model) {
  std::vector<std::size_t> layers(model.layers.size());
  std::iota(layers.begin(), layers.end(), std::size_t{0});
  if (model.order) layers = model.order(*model.step);
  at::Tensor x = model.input;
  for (const std::size_t i : layers) {
    const Scope block("blocks", static_cast<int>(i));
    x = model.layers[i](x);
  }
  if (at::isComplexType(x.scalar_type())) x = at::view_as_real(x);
  const at::Tensor loss = model.loss ? model.loss(x) : loss_of(x);
  ++*model.step;
  return loss;
}

at::Tensor state_of(at::Generator generator) {
  std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

at::Tensor default_generator_state() {
  return state_of(at::globalContext().defaultGenerator(at::kCPU));
}

void descend(const Model& model) {
  at::NoGradGuard no_grad;
  for (const at::Tensor& parameter : model.parameters) {
    if (!parameter.grad().defined()) continue;
    at::Tensor(parameter).sub_(parameter.grad(), 0.05);
    parameter.mutable_grad().reset();
  }
  if (model.input.grad().defined()) model.input.mutable_grad().reset();
}

void backward_of_gradients(const Model& model, const at::Tensor& loss) {
  const auto first = torch::autograd::grad({loss}, {model.input}, {}, /*retain_graph=*/true,
                                           /*create_graph=*/true);
  at::sum(at::abs(first[0] * first[0])).backward();
}

void backward_in_parts(const Model& model, const at::Tensor& loss) {
  for (const at::Tensor& parameter : model.parameters) {
    if (!parameter.requires_grad()) continue;
    torch::autograd::grad({loss}, {parameter}, {}, /*retain_graph=*/true, false,
                          /*allow_unused=*/true);
    break;
  }
  loss.backward();
}

void run_backward(const Model& model, const at::Tensor& loss, Backward kind) {
  switch (kind) {
    case Backward::kOnce:
    case Backward::kElsewhere:
      return model.backward ? model.backward(loss) : loss.backward();
    case Backward::kTwice:
      loss.backward({}, /*retain_graph=*/true);
      return loss.backward();
    case Backward::kOfGradients:
      return backward_of_gradients(model, loss);
    case Backward::kInParts:
      return backward_in_parts(model, loss);
    case Backward::kNever:
      return;
  }
}

void on_another_thread(const std::function<void()>& work) {
  std::exception_ptr error;
  std::thread([&] {
    at::set_num_threads(1);
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
  }).join();
  if (error) std::rethrow_exception(error);
}

// Records the facts of one step.
class Notes {
 public:
  Notes(const Model& model, const std::string& step, Facts& facts)
      : model_(model), step_(step), facts_(facts) {}

  void note(const std::string& name, const at::Tensor& tensor) {
    const std::int64_t version = tensor.defined() && !tensor.is_inference() ? tensor._version() : 0;
    at::NoGradGuard no_grad;
    facts_.all.push_back(
        {step_ + name, tensor.defined() ? tensor.detach().clone() : tensor, version});
    if (tensor.defined() && !tensor.is_sparse() && tensor.is_floating_point()) {
      facts_.is_finite &= tensor.isfinite().all().item<bool>();
    }
  }

  void note_list(const std::string& name, const std::vector<at::Tensor>& tensors) {
    for (std::size_t i = 0; i < tensors.size(); ++i) note(name + std::to_string(i), tensors[i]);
  }

  void note_state(const std::string& when) {
    note_list(when + "buffer ", model_.buffers);
    note(when + "generator", default_generator_state());
    for (const at::Generator& generator : model_.generators) {
      note(when + "own generator", state_of(generator));
    }
    note_list(when + "kept value ", *model_.watched);
  }

  void note_gradients() {
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& parameter : model_.parameters) gradients.push_back(parameter.grad());
    gradients.push_back(model_.input.grad());
    note_list("gradient ", gradients);
    for (const at::Tensor& gradient : gradients) {
      facts_.has_gradient |= gradient.defined() && is_not_zero(gradient);
    }
    std::vector<at::Tensor> retained;
    for (const at::Tensor& value : *model_.watched) {
      if (value.requires_grad() && value.retains_grad()) retained.push_back(value.grad());
    }
    note_list("retained gradient ", retained);
  }

 private:
  static bool is_not_zero(const at::Tensor& gradient) {
    return (gradient.is_sparse() ? gradient._values() : gradient).ne(0).any().item<bool>();
  }

  const Model& model_;
  const std::string step_;
  Facts& facts_;
};

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.defined() != b.defined()) return false;
  if (!a.defined()) return true;
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type() || a.layout() != b.layout()) {
    return false;
  }
  if (a.is_sparse()) {
    return same_bits(a._indices(), b._indices()) && same_bits(a._values(), b._values());
  }
  if (a.strides() != b.strides()) return false;
  const at::Tensor x = a.contiguous();
  const at::Tensor y = b.contiguous();
  return std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

}  // namespace

const char* to_string(Backward backward) {
  switch (backward) {
    case Backward::kOnce:
      return "once";
    case Backward::kTwice:
      return "twice";
    case Backward::kOfGradients:
      return "of gradients";
    case Backward::kInParts:
      return "in parts";
    case Backward::kElsewhere:
      return "elsewhere";
    case Backward::kNever:
      return "never";
  }
  return "";
}

std::string first_difference(const Facts& a, const Facts& b) {
  for (std::size_t i = 0; i < std::min(a.all.size(), b.all.size()); ++i) {
    if (a.all[i].name != b.all[i].name) return a.all[i].name + " is not there";
    if (!same_bits(a.all[i].value, b.all[i].value)) return a.all[i].name;
    if (a.all[i].version != b.all[i].version) return a.all[i].name + ", its version";
  }
  return a.all.size() == b.all.size() ? "" : "number of facts";
}

void note_state(const Model& model, const std::string& when, Facts& facts) {
  Notes(model, "", facts).note_state(when);
}

std::string difference_of_state(const Facts& facts, const Facts& state) {
  for (const Facts::Fact& fact : state.all) {
    const auto same = std::find_if(facts.all.begin(), facts.all.end(),
                                   [&](const Facts::Fact& f) { return f.name == fact.name; });
    if (same == facts.all.end() || !same_bits(same->value, fact.value)) return fact.name;
  }
  return "";
}

bool backward_changes_state(const Facts& facts) {
  Facts after_forward;
  for (const Facts::Fact& fact : facts.all) {
    const std::string prefix = "after backward, ";
    const std::size_t at = fact.name.find(prefix);
    if (at == std::string::npos) continue;
    Facts::Fact moved = fact;
    moved.name.replace(at, prefix.size(), "after forward, ");
    after_forward.all.push_back(moved);
  }
  return !difference_of_state(facts, after_forward).empty();
}

void train_one_step(Model& model, const Checkpoint* checkpoint, Backward backward,
                    const std::string& step, Facts& facts) {
  Notes notes(model, step, facts);
  std::optional<Recording> recording;
  if (checkpoint != nullptr) recording.emplace(*checkpoint);
  const at::Tensor loss = forward(model);
  notes.note("loss", loss);
  notes.note_state("after forward, ");
  if (backward == Backward::kElsewhere) {
    if (recording.has_value()) recording->finish();
    recording.reset();
    on_another_thread([&] { run_backward(model, loss, backward); });
  } else {
    run_backward(model, loss, backward);
    if (recording.has_value()) recording->finish();
  }
  notes.note_gradients();
  notes.note_state("after backward, ");
  model.watched->clear();
  if (backward == Backward::kNever) return;
  if (model.update) {
    model.update();
  } else {
    descend(model);
  }
  notes.note_list("parameter ", model.parameters);
}

Model model_of(const Hazard& hazard) {
  constexpr std::uint64_t kSeed = 20261120;
  generator_of_models().set_current_seed(kSeed);
  seed_generator();
  return hazard.make();
}

Facts train(const Hazard& hazard, const Checkpoint* checkpoint, Backward backward, int steps) {
  Model model = model_of(hazard);
  Facts facts;
  const at::Tensor before = default_generator_state();
  for (int step = 0; step < steps; ++step) {
    const std::string name = steps == 1 ? "" : "step " + std::to_string(step) + ": ";
    train_one_step(model, checkpoint, backward, name, facts);
  }
  facts.draws = !at::equal(before, default_generator_state());
  return facts;
}

Trace trace_of(const Hazard& hazard, int step) {
  const Model model = model_of(hazard);
  *model.step = step;
  return record_trace([&] { return forward(model); });
}

}  // namespace rematch::testing::hazards
