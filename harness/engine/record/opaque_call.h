// A call whose ops nobody records. It is one op of the record: see Note [Opaque calls].
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

namespace rematch {

// Note [Opaque calls]
// Kernels of a library may write to their arguments, or keep a state, without telling torch. What
// such a call does is not recorded op by op. When it has returned, the record gets the op
// rematch::opaque, whose results are those of the call. They are kept and never made again.
// Autograd saves inside as it does without a record, so it keeps what backward of the call reads.
class OpaqueCall {
 public:
  // The call is about to run, and may write to `overwritten`. Null where this thread records
  // nothing, or runs the kernel of a recorded op.
  static std::unique_ptr<OpaqueCall> begin(const std::vector<at::Tensor>& overwritten);

  // It failed, unless end() was called: the record is as if it had not run.
  ~OpaqueCall();
  OpaqueCall(const OpaqueCall&) = delete;
  OpaqueCall& operator=(const OpaqueCall&) = delete;

  // It has returned `results`. `arguments` are its tensors. Throws Refused if a result is a view of
  // a tensor that is neither an argument nor a result.
  void end(const std::string& name, const std::vector<at::Tensor>& arguments,
           const std::vector<at::Tensor>& results);

 private:
  struct State;
  explicit OpaqueCall(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rematch
