// A call whose ops are not recorded. The whole call is one op of the record: see Note [Opaque
// calls].
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

namespace rematch {

// Note [Opaque calls] A library's kernels may write to their arguments, or keep state, without
// torch's knowledge. A call of such a library is not recorded op by op. When the call has returned,
// the recorder appends one op, rematch::opaque, whose results are those of the call. The results
// are kept and never recomputed. Inside the call, autograd saves tensors as usual, so backward of
// the call has everything it needs.
class OpaqueCall {
 public:
  // Times each opaque call as one op, as in a trace. Used on threads that do not record.
  class Timer {
   public:
    virtual ~Timer() = default;
    virtual void begin_opaque() = 0;
    // `op` is the name of the op that stands for the call.
    virtual void end_opaque(const std::string& op) = 0;
  };
  // Sets the thread's timer while this guard lives.
  class TimerGuard {
   public:
    explicit TimerGuard(Timer* timer);
    ~TimerGuard();
    TimerGuard(const TimerGuard&) = delete;
    TimerGuard& operator=(const TimerGuard&) = delete;

   private:
    Timer* previous_;
  };

  // Registers rematch::opaque, because a plan from another process may name the op before this
  // process makes an opaque call.
  static void define_op();

  // Call this before the opaque call runs. `overwritten` are the tensors that the call may write
  // to. Returns null if this thread neither records nor has a timer, or is running the kernel of a
  // recorded op.
  static std::unique_ptr<OpaqueCall> begin(const std::vector<at::Tensor>& overwritten);

  // Call end() after a successful call. Without end(), the call counts as failed and is not
  // recorded.
  ~OpaqueCall();
  OpaqueCall(const OpaqueCall&) = delete;
  OpaqueCall& operator=(const OpaqueCall&) = delete;

  // Ends the opaque call, which has returned `results`. `arguments` are its tensor arguments.
  // Throws Refused if a result is a view of a tensor that is neither an argument nor a result.
  void end(const std::string& name, const std::vector<at::Tensor>& arguments,
           const std::vector<at::Tensor>& results);

 private:
  struct State;
  explicit OpaqueCall(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rematch
