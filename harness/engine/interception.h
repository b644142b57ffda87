// Connects the engine to LibTorch by a fallback at a dispatch key just below autograd, and by an
// autograd engine. The autograd engine supplies saved-tensor hooks and forwards all other calls to
// the previous engine. Both are installed once per process, on first use. A thread without one of
// the guards below does not use them.
//
// Note [Dispatch key Fake]
// DispatchKey::Fake is below ADInplaceOrView, intercepts factories, and has no fallback of its own.
// Composite ops are already decomposed at this key, so the engine sees the ops that autograd
// differentiates. Autograd continues to use the TensorImpls that these ops return.
// kernels/libtorch/versions.h checks the key's position. install_interception() checks that no
// other library uses the key.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "policies/trace/phase.h"

namespace rematch {

// Installs the fallback and the engine. Throws c10::Error if another library uses the key, or has
// replaced the autograd engine since the first call. The guards call this function; repeated calls
// are cheap.
void install_interception();

// Also intercepts ops that Python runs, in a process with Python: see harness/engine/python_ops.h.
void install_python_interception();

// Returns whether the thread is running a node of a backward pass.
bool in_backward();

// While this guard lives, neither autograd nor any mode sees the ops that the thread runs.
class UnseenGuard {
 private:
  c10::impl::ExcludeDispatchKeyGuard below_{c10::autograd_dispatch_keyset_with_ADInplaceOrView |
                                            c10::DispatchKeySet(c10::DispatchKey::Fake)};
};

// Sees every op that the thread runs below autograd while its guard lives. An implementation must
// pass the op on with call_next(), or the op does not run.
class OpMode {
 public:
  virtual ~OpMode() = default;
  virtual void run(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                   torch::jit::Stack* stack, std::size_t depth) = 0;
};

// Passes an op on to the next outer mode, or to its kernel if there is none.
void call_next(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack,
               std::size_t depth);

class OpModeGuard {
 public:
  explicit OpModeGuard(OpMode* mode);
  ~OpModeGuard();
  OpModeGuard(const OpModeGuard&) = delete;
  OpModeGuard& operator=(const OpModeGuard&) = delete;

 private:
  c10::impl::IncludeDispatchKeyGuard key_on_;
};

// While this guard lives, its mode also sees the ops of backward on autograd's device threads,
// which have no modes of their own. A second guard at the same time throws c10::Error.
class BackwardThreadsGuard {
 public:
  explicit BackwardThreadsGuard(OpMode* mode);
  ~BackwardThreadsGuard();
  BackwardThreadsGuard(const BackwardThreadsGuard&) = delete;
  BackwardThreadsGuard& operator=(const BackwardThreadsGuard&) = delete;
};

// Supplies hooks for tensors that autograd saves. If make() returns null, autograd saves the tensor
// as usual.
class SavedTensorProvider {
 public:
  virtual ~SavedTensorProvider() = default;
  virtual std::unique_ptr<torch::autograd::SavedVariableHooks> make() = 0;
};

// Returns the saved-tensor hooks that the program itself has set on this thread, for one tensor.
// Returns null if there are none.
std::unique_ptr<torch::autograd::SavedVariableHooks> hooks_of_engine_behind();

// Sets the thread's provider while this guard lives. If the provider is null, the previous engine
// supplies the hooks, as if there were no guard. Guards nest.
class SavedTensorGuard {
 public:
  explicit SavedTensorGuard(SavedTensorProvider* provider);
  ~SavedTensorGuard();
  SavedTensorGuard(const SavedTensorGuard&) = delete;
  SavedTensorGuard& operator=(const SavedTensorGuard&) = delete;

 private:
  SavedTensorProvider* previous_;
};

// Observes every op that is executed on any thread, including recomputed ops. A process has at most
// one observer. `phase` is kForward for everything outside backward, including the optimizer.
class OpObserver {
 public:
  virtual ~OpObserver() = default;
  // Called on the thread that runs the op, before its kernel. `stack` ends with the op's arguments.
  // executed() follows unless the op throws.
  virtual void about_to_run(const c10::OperatorHandle& /*op*/, Phase /*phase*/,
                            const torch::jit::Stack& /*stack*/) {}
  // `stack` ends with the op's results.
  virtual void executed(const c10::OperatorHandle& op, Phase phase,
                        const torch::jit::Stack& stack) = 0;
  // region_entered() and region_left() are called before and after the ops of a region's forward.
  // They are also called around each part of a recompute. Both are called on the thread that runs
  // these ops.
  virtual void region_entered(const std::string& /*region*/, Phase /*phase*/) {}
  virtual void region_left() noexcept {}  // called also after an op threw
  // Called when an offloaded value has been copied back to the device, into a new storage.
  virtual void brought_back(const at::Tensor& /*value*/) {}
};

// Forwards each call to several observers, in the order given.
class OpObservers final : public OpObserver {
 public:
  // The observers must outlive this object.
  explicit OpObservers(std::vector<OpObserver*> observers) : observers_(std::move(observers)) {}

  void about_to_run(const c10::OperatorHandle& op, Phase phase,
                    const torch::jit::Stack& stack) override {
    for (OpObserver* each : observers_) each->about_to_run(op, phase, stack);
  }
  void executed(const c10::OperatorHandle& op, Phase phase,
                const torch::jit::Stack& stack) override {
    for (OpObserver* each : observers_) each->executed(op, phase, stack);
  }
  void region_entered(const std::string& region, Phase phase) override {
    for (OpObserver* each : observers_) each->region_entered(region, phase);
  }
  void region_left() noexcept override {
    for (OpObserver* each : observers_) each->region_left();
  }
  void brought_back(const at::Tensor& value) override {
    for (OpObserver* each : observers_) each->brought_back(value);
  }

 private:
  std::vector<OpObserver*> observers_;
};

// Installs an observer while this guard lives. A second guard at the same time throws c10::Error.
class OpObserverGuard {
 public:
  explicit OpObserverGuard(OpObserver* observer);
  ~OpObserverGuard();
  OpObserverGuard(const OpObserverGuard&) = delete;
  OpObserverGuard& operator=(const OpObserverGuard&) = delete;

 private:
  c10::impl::IncludeDispatchKeyGuard key_on_;
};

// Tells the installed observer, if any, that the thread's ops belong to the region while this guard
// lives.
class ObservedRegion {
 public:
  ObservedRegion(const std::string& region, Phase phase);
  ~ObservedRegion();
  ObservedRegion(const ObservedRegion&) = delete;
  ObservedRegion& operator=(const ObservedRegion&) = delete;

 private:
  OpObserver* told_;
};

// Tells the installed observer, if any, that `value` is on the device again.
void tell_brought_back(const at::Tensor& value);

// Runs a recorded op below autograd, where no mode sees it, and reports it to the observer as a
// recompute. `keys` are the dispatch keys of the recorded call, masked by
// keys_below_interception().
void execute_recorded(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                      torch::jit::Stack* stack);

// Like execute_recorded(), but does not report the op.
void execute_unobserved(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                        torch::jit::Stack* stack);

// Returns whether recompute of an op has thrown since the last call of this function. Distinguishes
// a failure of recompute from other failures in backward.
bool take_recompute_failure();

// The part of a key set that is below the interception point.
c10::DispatchKeySet keys_below_interception(c10::DispatchKeySet keys);

}  // namespace rematch
