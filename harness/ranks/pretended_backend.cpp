#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "harness/ranks/backends.h"

namespace rematch {
namespace {

using Tensors = std::vector<at::Tensor>;
using StartedWork = c10::intrusive_ptr<c10d::Work>;

// Fills `output` with copies of `input`. In an exchange, output and input may have different
// numbers of rows, or no rows.
void fill_from(const at::Tensor& output, const at::Tensor& input) {
  const at::NoGradGuard no_grad;
  const at::Tensor to = output.view({-1});
  const at::Tensor from = input.view({-1});
  if (from.numel() == 0) to.zero_();
  for (std::int64_t filled = 0; from.numel() > 0 && filled < to.numel();) {
    const std::int64_t count = std::min(from.numel(), to.numel() - filled);
    to.narrow(0, filled, count).copy_(from.narrow(0, 0, count));
    filled += count;
  }
}

void fill_all(Tensors& outputs, Tensors& inputs) {
  for (std::size_t index = 0; index < outputs.size(); ++index)
    fill_from(outputs[index], inputs[index]);
}

class PretendedBackend final : public c10d::Backend {
 public:
  using Backend::Backend;
  const std::string getBackendName() const override { return "pretended"; }

  StartedWork allreduce(Tensors&, const c10d::AllreduceOptions&) override { return done(); }
  StartedWork allreduce_coalesced(Tensors&, const c10d::AllreduceCoalescedOptions&) override {
    return done();
  }
  StartedWork broadcast(Tensors&, const c10d::BroadcastOptions&) override { return done(); }
  StartedWork allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                              const c10d::AllgatherOptions&) override {
    fill_all(outputs, inputs);
    return done();
  }
  StartedWork reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                              const c10d::ReduceScatterOptions&) override {
    fill_all(outputs, inputs);
    return done();
  }
  StartedWork alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>&,
                            std::vector<std::int64_t>&, const c10d::AllToAllOptions&) override {
    fill_from(output, input);
    return done();
  }
  StartedWork barrier(const c10d::BarrierOptions&) override { return done(); }

 private:
  static StartedWork done() { return c10::make_intrusive<DoneWork>(); }
};

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_pretended_backend(int rank, int size) {
  return c10::make_intrusive<PretendedBackend>(rank, size);
}

}  // namespace rematch
