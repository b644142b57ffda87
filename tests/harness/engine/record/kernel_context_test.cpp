// Tests that recompute restores global settings that kernels read, such as autocast. Recompute runs
// an op with the settings of forward, and afterwards restores the program's settings.
#include "harness/engine/record/kernel_context.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/DefaultDtype.h>
#include <torch/library.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/outside_case.h"

namespace rematch::testing {
namespace {

at::Context& flags() { return at::globalContext(); }

// One setting: a function that returns its value as a kernel sees it, and functions that change and
// reset it.
struct State {
  std::string name;
  std::function<double()> read;
  std::function<void()> change;
  std::function<void()> reset;
};

State flag(const char* name, bool (at::Context::*get)() const, void (at::Context::*set)(bool)) {
  const bool usual = (flags().*get)();
  return {name, [get] { return static_cast<double>((flags().*get)()); },
          [set, usual] { (flags().*set)(!usual); }, [set, usual] { (flags().*set)(usual); }};
}

std::vector<State> context_flags() {
  using at::Context;
  return {
      flag("cuDNN", &Context::userEnabledCuDNN, &Context::setUserEnabledCuDNN),
      flag("oneDNN", &Context::userEnabledMkldnn, &Context::setUserEnabledMkldnn),
      flag("NNPACK", &Context::userEnabledNNPACK, &Context::setUserEnabledNNPACK),
      flag("cuDNN's benchmark", &Context::benchmarkCuDNN, &Context::setBenchmarkCuDNN),
      flag("deterministic cuDNN", &Context::deterministicCuDNN, &Context::setDeterministicCuDNN),
      flag("deterministic oneDNN", &Context::deterministicMkldnn, &Context::setDeterministicMkldnn),
      flag("filling of empty tensors", &Context::deterministicFillUninitializedMemory,
           &Context::setDeterministicFillUninitializedMemory),
      flag("flash attention", &Context::userEnabledFlashSDP, &Context::setSDPUseFlash),
      flag("composed attention", &Context::userEnabledMathSDP, &Context::setSDPUseMath),
      flag("half accumulation", &Context::allowFP16AccumulationCuBLAS,
           &Context::setAllowFP16AccumulationCuBLAS),
      {"deterministic algorithms",
       [] { return static_cast<double>(flags().deterministicAlgorithms()); },
       [] { flags().setDeterministicAlgorithms(true, false); },
       [] { flags().setDeterministicAlgorithms(false, false); }},
      {"deterministic algorithms that warn",
       [] { return static_cast<double>(flags().deterministicAlgorithmsWarnOnly()); },
       [] { flags().setDeterministicAlgorithms(true, true); },
       [] { flags().setDeterministicAlgorithms(false, false); }},
      {"precision of products",
       [] { return static_cast<double>(flags().float32MatmulPrecision()); },
       [] { flags().setFloat32MatmulPrecision("medium"); },
       [] { flags().setFloat32MatmulPrecision("highest"); }},
      {"precision of convolutions on oneDNN",
       [] {
         return static_cast<double>(
             flags().float32Precision(at::Float32Backend::MKLDNN, at::Float32Op::CONV));
       },
       [] {
         flags().setFloat32Precision(at::Float32Backend::MKLDNN, at::Float32Op::CONV,
                                     at::Float32Precision::BF16);
       },
       [] {
         flags().setFloat32Precision(at::Float32Backend::MKLDNN, at::Float32Op::CONV,
                                     at::Float32Precision::NONE);
       }},
      {"reductions of half precision",
       [] { return static_cast<double>(flags().allowFP16ReductionCuBLAS()); },
       [] { flags().setAllowFP16ReductionCuBLAS(false); },
       [] { flags().setAllowFP16ReductionCuBLAS(true); }},
      {"cuDNN's limit", [] { return static_cast<double>(flags().benchmarkLimitCuDNN()); },
       [] { flags().setBenchmarkLimitCuDNN(3); }, [] { flags().setBenchmarkLimitCuDNN(10); }},
  };
}

double smallest_product() {
  const volatile float denormal = 1e-39F;
  return static_cast<double>(denormal * 2.0F > 0.0F);
}

std::vector<State> other_state() {
  namespace autocast = at::autocast;
  const int num_threads = at::get_num_threads();
  return {
      {"default dtype", [] { return static_cast<double>(c10::get_default_dtype_as_scalartype()); },
       [] { c10::set_default_dtype(caffe2::TypeMeta::Make<double>()); },
       [] { c10::set_default_dtype(caffe2::TypeMeta::Make<float>()); }},
      {"threads", [] { return static_cast<double>(at::get_num_threads()); },
       [num_threads] { at::set_num_threads(num_threads + 1); },
       [num_threads] { at::set_num_threads(num_threads); }},
      {"denormal numbers", smallest_product, [] { at::Context::setFlushDenormal(true); },
       [] { at::Context::setFlushDenormal(false); }},
      {"grad mode", [] { return static_cast<double>(at::GradMode::is_enabled()); },
       [] { at::GradMode::set_enabled(false); }, [] { at::GradMode::set_enabled(true); }},
      {"autocast", [] { return static_cast<double>(autocast::is_autocast_enabled(at::kCPU)); },
       [] { autocast::set_autocast_enabled(at::kCPU, true); },
       [] { autocast::set_autocast_enabled(at::kCPU, false); }},
      {"autocast of another device",
       [] { return static_cast<double>(autocast::is_autocast_enabled(at::kCUDA)); },
       [] { autocast::set_autocast_enabled(at::kCUDA, true); },
       [] { autocast::set_autocast_enabled(at::kCUDA, false); }},
      {"dtype of autocast",
       [] { return static_cast<double>(autocast::get_autocast_dtype(at::kCPU)); },
       [] {
         autocast::set_autocast_enabled(at::kCPU, true);
         autocast::set_autocast_dtype(at::kCPU, at::kHalf);
       },
       [] {
         autocast::set_autocast_enabled(at::kCPU, false);
         autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
       }},
  };
}

const std::vector<State>& all_state() {
  static const std::vector<State> all = [] {
    std::vector<State> states = context_flags();
    for (State& state : other_state()) states.push_back(std::move(state));
    return states;
  }();
  return all;
}

// Changes the setting on construction, and resets it on destruction.
class Changed {
 public:
  explicit Changed(const State& state) : state_(state) { state_.change(); }
  ~Changed() { state_.reset(); }
  Changed(const Changed&) = delete;
  Changed& operator=(const Changed&) = delete;

 private:
  const State& state_;
};

// A kernel whose result depends on one setting. It imitates kernels that choose an algorithm by the
// setting.
at::Tensor probe(const at::Tensor& x, std::int64_t state) {
  return x * (1.0 + 0.25 * all_state()[static_cast<std::size_t>(state)].read());
}

TORCH_LIBRARY(rematch_context_test, library) {
  library.def("probe(Tensor x, int state) -> Tensor");
}
TORCH_LIBRARY_IMPL(rematch_context_test, CPU, library) { library.impl("probe", &probe); }

at::Tensor call_probe(const at::Tensor& x, std::int64_t state) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("rematch_context_test::probe", "")
                             .typed<at::Tensor(const at::Tensor&, std::int64_t)>();
  return op.call(x, state);
}

// The layer runs `kernel` with the changed setting.
Case set_by_layer(const State& state, std::function<at::Tensor(const at::Tensor&)> kernel) {
  return {[&state, kernel = std::move(kernel)](const at::Tensor& x, const at::Tensor& w) {
    const at::Tensor y = at::mm(x, w);
    at::Tensor factor;
    {
      const Changed changed(state);
      factor = kernel(y.detach());
    }
    return at::sin(y) * factor.to(at::kFloat);
  }};
}

// The layer runs `kernel` with the usual setting, but backward runs with the changed setting.
Case set_around_backward(const State& state, std::function<at::Tensor(const at::Tensor&)> kernel) {
  return {[kernel = std::move(kernel)](const at::Tensor& x, const at::Tensor& w) {
            const at::Tensor y = at::mm(x, w);
            return at::sin(y) * kernel(y.detach()).to(at::kFloat);
          },
          [&state](const Network&, const at::Tensor&) { state.change(); },
          [&state] { state.reset(); }};
}

void check_kernel(const State& state, const std::function<at::Tensor(const at::Tensor&)>& kernel) {
  CAPTURE(state.name);
  const double usual = state.read();
  check_equal(set_by_layer(state, kernel));
  CHECK(state.read() == usual);
  const Case around = set_around_backward(state, kernel);
  check_equal(around);
  CHECK(state.read() != usual);  // the program's own change was not undone
  state.reset();
  REQUIRE(state.read() == usual);
}

const State& state_named(const std::string& name) {
  for (const State& state : all_state()) {
    if (state.name == name) return state;
  }
  throw std::logic_error("no state " + name);
}

TEST_CASE("kernels that read state are recomputed under the state of forward") {
  for (std::size_t i = 0; i < all_state().size(); ++i) {
    const State& state = all_state()[i];
    const double usual = state.read();
    {
      const Changed changed(state);
      CHECK(state.read() != usual);
    }
    check_kernel(state,
                 [i](const at::Tensor& y) { return call_probe(y, static_cast<std::int64_t>(i)); });
  }
}

// Tests only settings that affect LibTorch's kernels on every machine.
TEST_CASE("LibTorch's kernels are recomputed under the state of forward") {
  const at::Tensor many = at::sin(at::arange(200'000, at::kFloat));
  check_kernel(state_named("autocast"), [](const at::Tensor& y) {
    const at::Tensor rows =
        y.repeat({8, 1}).contiguous() * at::arange(32, at::kFloat).view({32, 1});
    return at::cdist(rows, rows * rows, 2.0).sum();
  });
  check_kernel(state_named("default dtype"),
               [](const at::Tensor& y) { return (at::arange(1, 5, at::kLong) / 3) * y; });
  check_kernel(state_named("threads"),
               [many](const at::Tensor& y) { return at::sum(many * y.mean()) * y; });
}

TEST_CASE("a captured context stays current until one piece of state changes") {
  const KernelContext before = KernelContext::current();
  CHECK(before.is_current());
  for (const State& state : all_state()) {
    CAPTURE(state.name);
    {
      const Changed changed(state);
      CHECK(!before.is_current());
      const double other = state.read();
      const KernelContext during = KernelContext::current();
      CHECK(!(during == before));
      before.apply();
      CHECK(before.is_current());
      CHECK(state.read() != other);
      during.apply();
      CHECK(state.read() == other);
    }
    CHECK(before.is_current());
  }
}

}  // namespace
}  // namespace rematch::testing
