#include <c10/cuda/CUDAFunctions.h>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include <utility>

#include "harness/ranks/backends.h"
#include "harness/ranks/place.h"

namespace rematch {
namespace {

using Tensors = std::vector<at::Tensor>;
using StartedWork = c10::intrusive_ptr<c10d::Work>;

// NCCL that notes how many collectives were begun. They stay asynchronous: a wait makes the stream
// wait, not the thread.
class NotedNccl final : public c10d::ProcessGroupNCCL {
 public:
  using Base = c10d::ProcessGroupNCCL;

  NotedNccl(const GroupPlace& place, c10::intrusive_ptr<Options> options)
      : Base(place.store, place.rank, place.size, std::move(options)), notes_(place.notes) {}

  StartedWork allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    notes_->call();
    return Base::allreduce(tensors, options);
  }
  StartedWork broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    notes_->call();
    return Base::broadcast(tensors, options);
  }
  StartedWork allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                              const c10d::AllgatherOptions& options) override {
    notes_->call();
    return Base::allgather_into_tensor_coalesced(outputs, inputs, options);
  }
  StartedWork reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                              const c10d::ReduceScatterOptions& options) override {
    notes_->call();
    return Base::reduce_scatter_tensor_coalesced(outputs, inputs, options);
  }
  StartedWork alltoall_base(at::Tensor& output, at::Tensor& input,
                            std::vector<std::int64_t>& output_splits,
                            std::vector<std::int64_t>& input_splits,
                            const c10d::AllToAllOptions& options) override {
    notes_->call();
    return Base::alltoall_base(output, input, output_splits, input_splits, options);
  }

 private:
  std::shared_ptr<RankNotes> notes_;
};

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const GroupPlace& place) {
  const int num_devices = c10::cuda::device_count();
  if (place.device >= num_devices) {
    throw RanksError("local rank " + std::to_string(place.device) +
                     " needs a GPU of its own, and " + std::to_string(num_devices) +
                     " are visible here: start fewer ranks a node");
  }
  c10::cuda::set_device(static_cast<c10::DeviceIndex>(place.device));
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = place.timeout;
  return c10::make_intrusive<NotedNccl>(place, std::move(options));
}

}  // namespace rematch
