// Tests recompute of ops on tensor subclasses that are defined in Python. Instead of Python, two
// C++ kernels handle these ops. The kernel of the topmost dispatch key sets a thread-local flag,
// and the kernel of the key below autograd requires that flag.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/library.h>

#include <atomic>
#include <utility>

#include "tests/support/catch.h"
#include "tests/support/networks.h"
#include "tests/support/schedules.h"

namespace rematch::testing {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;

constexpr DispatchKeySet kBelowSnapshot(DispatchKeySet::FULL_AFTER, DispatchKey::PythonTLSSnapshot);
constexpr DispatchKeySet kBelowPython(DispatchKeySet::FULL_AFTER, DispatchKey::Python);

thread_local bool noted = false;
std::atomic<int> num_scaled{0};

void note_thread(const c10::OperatorHandle& op, DispatchKeySet keys, torch::jit::Stack* stack) {
  const bool outer = std::exchange(noted, true);
  op.redispatchBoxed(keys & kBelowSnapshot, stack);
  noted = outer;
}

void run_in_subclass(const c10::OperatorHandle& op, DispatchKeySet keys, torch::jit::Stack* stack) {
  TORCH_CHECK(noted, "the kernel at the topmost dispatch key did not run");
  op.redispatchBoxed(keys & kBelowPython, stack);
}

at::Tensor scaled(const at::Tensor&, const at::Tensor& x) {
  ++num_scaled;
  return x * 2.0;
}

TORCH_LIBRARY(rematch_subclass_test, library) {
  library.def("scaled(Tensor of_subclass, Tensor x) -> Tensor");
  library.impl("scaled", DispatchKey::CPU, &scaled);
  library.impl("scaled", DispatchKey::Autograd, torch::CppFunction::makeFallthrough());
  library.impl("scaled", DispatchKey::PythonTLSSnapshot,
               torch::CppFunction::makeFromBoxedFunction<&note_thread>());
  library.impl("scaled", DispatchKey::Python,
               torch::CppFunction::makeFromBoxedFunction<&run_in_subclass>());
}

at::Tensor call_scaled(const at::Tensor& of_subclass, const at::Tensor& x) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("rematch_subclass_test::scaled", "")
                             .typed<at::Tensor(const at::Tensor&, const at::Tensor&)>();
  return op.call(of_subclass, x);
}

// In each layer, an op reads a parameter that is a subclass, and backward needs the op's result.
NamedNetwork network() {
  return {"subclass", [] {
            Network network;
            network.input = at::ones({4, 4}).requires_grad_();
            for (int layer = 0; layer < 2; ++layer) {
              const at::Tensor w = at::full({4, 4}, 0.5).requires_grad_();
              const at::Tensor of_subclass = at::ones({1}).requires_grad_();
              of_subclass.unsafeGetTensorImpl()->set_python_dispatch(true);
              network.parameters.push_back(w);
              network.layers.push_back([w, of_subclass](const at::Tensor& x) {
                const at::Tensor y = at::mm(x, w);
                return y * call_scaled(of_subclass, y.detach());
              });
            }
            return network;
          }};
}

TEST_CASE("a recorded op of a subclass is recomputed through the whole dispatcher") {
  const Outcome expected = run_plain(network());
  const Plan full = plan_of_blocks(trace_of(network()), [](int, int) { return false; });
  for (const Schedule schedule : kSchedules) {
    const int before = num_scaled;
    CHECK(first_difference(expected, run_engine(network(), full, schedule)) == "");
    // Once in forward and once in recompute, in each of two layers.
    CHECK(num_scaled - before == 4);
  }
}

}  // namespace
}  // namespace rematch::testing
