// The one place that hooks into LibTorch: a fallback at a dispatch key just below autograd, and
// an autograd engine that hands out saved-tensor hooks and leaves all else to the engine that was
// there. Both are installed once per process, on first use; while no guard below is alive on a
// thread, neither costs it anything.
//
// Note [Dispatch key Fake]
// On LibTorch 2.11 the key DispatchKey::Fake sits right below ADInplaceOrView, sees factories,
// and has no fallback of its own. Ops arrive as the leaves that autograd differentiates
// (CompositeImplicit ops are already decomposed), with the very TensorImpl that autograd goes on
// using. Later releases use the key themselves, so the engine is bound to 2.11.
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

// Installs fallback and engine. Throws c10::Error if someone else took the key, or replaced the
// autograd engine after us. Called by the guards; calling it again is cheap.
void install_interception();

// Whether the thread runs a node of a backward pass.
bool in_backward();

// While it lives, neither autograd nor any mode sees the ops that the thread runs.
class UnseenGuard {
 private:
  c10::impl::ExcludeDispatchKeyGuard below_{c10::autograd_dispatch_keyset_with_ADInplaceOrView |
                                            c10::DispatchKeySet(c10::DispatchKey::Fake)};
};

// Sees every op that the thread runs below autograd while its guard lives. Implementations pass
// the op on with call_next(); not calling it drops the op.
class OpMode {
 public:
  virtual ~OpMode() = default;
  virtual void run(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                   torch::jit::Stack* stack, std::size_t depth) = 0;
};

// Passes an op on: to the mode below, or to its kernel.
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

// While it lives, the mode also sees the ops of backward on threads that have no modes: autograd's
// own, on which the nodes of an accelerator run. A second one at the same time throws c10::Error.
class BackwardThreadsGuard {
 public:
  explicit BackwardThreadsGuard(OpMode* mode);
  ~BackwardThreadsGuard();
  BackwardThreadsGuard(const BackwardThreadsGuard&) = delete;
  BackwardThreadsGuard& operator=(const BackwardThreadsGuard&) = delete;
};

// Hands out hooks for tensors that autograd saves. make() may return null: saved as usual.
class SavedTensorProvider {
 public:
  virtual ~SavedTensorProvider() = default;
  virtual std::unique_ptr<torch::autograd::SavedVariableHooks> make() = 0;
};

// Hooks of the program, from the engine behind, for one tensor. Null: it has none on this thread.
std::unique_ptr<torch::autograd::SavedVariableHooks> hooks_of_engine_behind();

// The thread's provider while the guard lives. Null: hooks are those of the engine behind, as
// without a guard. Guards nest.
class SavedTensorGuard {
 public:
  explicit SavedTensorGuard(SavedTensorProvider* provider);
  ~SavedTensorGuard();
  SavedTensorGuard(const SavedTensorGuard&) = delete;
  SavedTensorGuard& operator=(const SavedTensorGuard&) = delete;

 private:
  SavedTensorProvider* previous_;
};

// Hears of every op that was really executed, on any thread, recomputed ones included. The
// process has one at a time: counting is a matter of the process. `phase` is kForward for
// everything outside backward: who runs the optimizer knows that it does.
class OpObserver {
 public:
  virtual ~OpObserver() = default;
  // On the thread that runs the op, before its kernel; `stack` ends with the op's arguments.
  // executed() follows unless the op throws.
  virtual void about_to_run(const c10::OperatorHandle& /*op*/, Phase /*phase*/,
                            const torch::jit::Stack& /*stack*/) {}
  // `stack` ends with the op's results.
  virtual void executed(const c10::OperatorHandle& op, Phase phase,
                        const torch::jit::Stack& stack) = 0;
  // Around the ops of a region's forward, or of a stretch of its recompute, on their thread.
  virtual void region_entered(const std::string& /*region*/, Phase /*phase*/) {}
  virtual void region_left() noexcept {}  // also where an op throws
  // A value that waited on the host is on the device again, in a storage of its own.
  virtual void brought_back(const at::Tensor& /*value*/) {}
};

// Several observers as one; each hears everything, in their order.
class OpObservers final : public OpObserver {
 public:
  // All of them outlive it.
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

// Observes while it lives. A second one at the same time throws c10::Error.
class OpObserverGuard {
 public:
  explicit OpObserverGuard(OpObserver* observer);
  ~OpObserverGuard();
  OpObserverGuard(const OpObserverGuard&) = delete;
  OpObserverGuard& operator=(const OpObserverGuard&) = delete;

 private:
  c10::impl::IncludeDispatchKeyGuard key_on_;
};

// While it lives, what the thread runs belongs to the region; tells the observer, if there is one.
class ObservedRegion {
 public:
  ObservedRegion(const std::string& region, Phase phase);
  ~ObservedRegion();
  ObservedRegion(const ObservedRegion&) = delete;
  ObservedRegion& operator=(const ObservedRegion&) = delete;

 private:
  OpObserver* told_;
};

// Tells the observer, if there is one.
void tell_brought_back(const at::Tensor& value);

// Runs a recorded op below autograd, out of sight of every mode, and tells the observer it was a
// recompute. `keys` are those call_next() saw at recording, masked by keys_below_interception().
void execute_recorded(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                      torch::jit::Stack* stack);

// Did a recorded op throw since this was last asked? Then what failed was recompute, though the
// program was in backward.
bool take_recompute_failure();

// The part of a key set that is below the interception point.
c10::DispatchKeySet keys_below_interception(c10::DispatchKeySet keys);

}  // namespace rematch
