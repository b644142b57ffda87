#include "harness/engine/interception.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/library.h>

#include <atomic>

#include "harness/engine/error_view.h"
#include "harness/engine/python_ops.h"
#include "kernels/libtorch/versions.h"

namespace rematch {
namespace {

constexpr c10::DispatchKeySet kBelowFake(c10::DispatchKeySet::FULL_AFTER, c10::DispatchKey::Fake);

// Thread-local, because autograd's worker threads inherit the dispatch key but must not call the
// modes of the thread that started backward. On worker threads, only the observer and the mode of
// BackwardThreadsGuard see ops.
thread_local std::vector<OpMode*> modes;
thread_local SavedTensorProvider* saved_tensor_provider = nullptr;
std::atomic<OpMode*> mode_of_backward_threads{nullptr};
std::atomic<OpObserver*> observer{nullptr};
std::atomic<bool> recompute_failed{false};

Phase phase_of_thread() { return in_backward() ? Phase::kBackward : Phase::kForward; }

// An op on a tensor subclass runs in Python. The Python fallback needs thread state that only the
// topmost dispatch key sets, so such an op is called from the top of the dispatcher. Dispatch modes
// that were active in forward are not called again.
void redispatch_recorded(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                         torch::jit::Stack* stack) {
  if (!keys.has(c10::DispatchKey::Python)) {
    op.redispatchBoxed(keys, stack);
    return;
  }
  op.callBoxed(stack);
}

template <class PhaseOfOp, class Run>
void run_observed(const c10::OperatorHandle& op, const torch::jit::Stack& stack,
                  PhaseOfOp phase_of_op, Run run) {
  OpObserver* const current = observer.load(std::memory_order_relaxed);
  if (current == nullptr) {
    run();
    return;
  }
  const Phase phase = phase_of_op();
  current->about_to_run(op, phase, stack);
  run();
  current->executed(op, phase, stack);
}

void fallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  c10::impl::ExcludeDispatchKeyGuard kernels_are_not_seen(c10::DispatchKey::Fake);
  with_host_errors([&] {
    OpMode* const of_backward = mode_of_backward_threads.load(std::memory_order_relaxed);
    if (of_backward != nullptr && modes.empty() && in_backward()) {
      of_backward->run(op, keys, stack, 0);
      return;
    }
    call_next(op, keys, stack, modes.size());
  });
}

using libtorch::NodePointer;

// Overriding get_default_saved_variable_hooks() is the only way to supply default saved-tensor
// hooks without Python. All other calls go to the previous default engine. The previous engine may
// already own the device threads, which LibTorch starts only once. In a Python process, the
// previous engine also handles the interpreter's lock.
class HookEngine final : public torch::autograd::Engine {
 public:
  explicit HookEngine(Engine& behind) : behind_(behind) {}
  ~HookEngine() override { stop(); }

  torch::autograd::variable_list execute(const torch::autograd::edge_list& roots,
                                         const torch::autograd::variable_list& inputs,
                                         bool keep_graph, bool create_graph, bool accumulate_grad,
                                         const torch::autograd::edge_list& outputs) override {
    return behind_.execute(roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
  }
  c10::intrusive_ptr<at::ivalue::Future> execute_with_graph_task(
      const std::shared_ptr<torch::autograd::GraphTask>& graph_task, NodePointer graph_root,
      torch::autograd::InputBuffer&& input_buffer) override {
    return behind_.execute_with_graph_task(graph_task, std::move(graph_root),
                                           std::move(input_buffer));
  }
  std::unique_ptr<torch::autograd::AnomalyMetadata> make_anomaly_metadata() override {
    return behind_.make_anomaly_metadata();
  }
  void thread_on_exception(const std::shared_ptr<torch::autograd::GraphTask>& graph_task,
                           const NodePointer& node, std::exception& error) override {
    behind_.thread_on_exception(graph_task, node, error);
  }
  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    if (saved_tensor_provider == nullptr) return behind_.get_default_saved_variable_hooks();
    return with_host_errors([] { return saved_tensor_provider->make(); });
  }
  std::unique_ptr<torch::autograd::SavedVariableHooks> hooks_of_behind() {
    return behind_.get_default_saved_variable_hooks();
  }

 private:
  Engine& behind_;
};

// The engine is leaked, because threads may outlive static destruction. The pointer is written
// once, before the stub that reads it is installed.
HookEngine* hook_engine = nullptr;
torch::autograd::Engine& get_hook_engine() { return *hook_engine; }

void install_fallback() {
  TORCH_CHECK(
      !c10::Dispatcher::singleton().hasBackendFallbackForDispatchKey(c10::DispatchKey::Fake),
      "rematch: dispatch key Fake already has a fallback; the engine needs this key to see ops "
      "below autograd. Is another library that intercepts ops, or an unsupported LibTorch, "
      "loaded?");
  static auto* library =
      new torch::Library(torch::Library::IMPL, "_", c10::DispatchKey::Fake, __FILE__, __LINE__);
  library->fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

}  // namespace

bool in_backward() { return torch::autograd::get_current_graph_task_id() >= 0; }

void install_interception() {
  static const bool installed = [] {
    install_fallback();
    hook_engine = new HookEngine(torch::autograd::Engine::get_default_engine());
    torch::autograd::set_default_engine_stub(&get_hook_engine);
    return true;
  }();
  (void)installed;
  TORCH_CHECK(&torch::autograd::Engine::get_default_engine() == hook_engine,
              "rematch: another library replaced the autograd engine, so saved tensors can no "
              "longer be intercepted. Load that library before the first Recording, or not at all");
}

void install_python_interception() {
  static const bool installed = [] {
    see_python_ops(&fallback);
    return true;
  }();
  (void)installed;
}

void call_next(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack,
               std::size_t depth) {
  if (depth > 0) {
    modes[depth - 1]->run(op, keys, stack, depth - 1);
    return;
  }
  const c10::DispatchKeySet below = keys_below_interception(keys);
  run_observed(op, *stack, &phase_of_thread, [&] { op.redispatchBoxed(below, stack); });
}

OpModeGuard::OpModeGuard(OpMode* mode) : key_on_((install_interception(), c10::DispatchKey::Fake)) {
  modes.push_back(mode);
}
OpModeGuard::~OpModeGuard() { modes.pop_back(); }

BackwardThreadsGuard::BackwardThreadsGuard(OpMode* mode) {
  OpMode* none = nullptr;
  TORCH_CHECK(mode_of_backward_threads.compare_exchange_strong(none, mode),
              "rematch: another step is being traced in this process; end that trace first");
}
BackwardThreadsGuard::~BackwardThreadsGuard() { mode_of_backward_threads.store(nullptr); }

std::unique_ptr<torch::autograd::SavedVariableHooks> hooks_of_engine_behind() {
  return hook_engine->hooks_of_behind();
}

SavedTensorGuard::SavedTensorGuard(SavedTensorProvider* provider)
    : previous_(saved_tensor_provider) {
  install_interception();
  saved_tensor_provider = provider;
}
SavedTensorGuard::~SavedTensorGuard() { saved_tensor_provider = previous_; }

OpObserverGuard::OpObserverGuard(OpObserver* new_observer)
    : key_on_((install_interception(), c10::DispatchKey::Fake)) {
  OpObserver* none = nullptr;
  TORCH_CHECK(observer.compare_exchange_strong(none, new_observer),
              "rematch: an OpObserver is already active in this process; end it first");
}
OpObserverGuard::~OpObserverGuard() { observer.store(nullptr); }

ObservedRegion::ObservedRegion(const std::string& region, Phase phase)
    : told_(observer.load(std::memory_order_relaxed)) {
  if (told_ != nullptr) told_->region_entered(region, phase);
}
ObservedRegion::~ObservedRegion() {
  const bool still_observes = told_ != nullptr && observer.load() == told_;
  if (still_observes) told_->region_left();
}

void tell_brought_back(const at::Tensor& value) {
  OpObserver* const current = observer.load(std::memory_order_relaxed);
  if (current != nullptr) current->brought_back(value);
}

void execute_recorded(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                      torch::jit::Stack* stack) {
  try {
    run_observed(
        op, *stack, [] { return Phase::kRecompute; },
        [&] { redispatch_recorded(op, keys, stack); });
  } catch (...) {
    recompute_failed.store(true);
    throw;
  }
}

void execute_unobserved(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                        torch::jit::Stack* stack) {
  redispatch_recorded(op, keys, stack);
}

bool take_recompute_failure() { return recompute_failed.exchange(false); }

// For an op that Python runs, returns all its dispatch keys: see Note [Ops that Python runs].
c10::DispatchKeySet keys_below_interception(c10::DispatchKeySet keys) {
  const bool is_pythons = libtorch::kFakeIsBelowPython && keys.has(c10::DispatchKey::Python);
  return is_pythons ? keys : keys & kBelowFake;
}

}  // namespace rematch
