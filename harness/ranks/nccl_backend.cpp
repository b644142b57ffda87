#include <c10/cuda/CUDAFunctions.h>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include <utility>

#include "harness/ranks/backends.h"
#include "harness/ranks/noted_backend.h"
#include "harness/ranks/place.h"

namespace rematch {
namespace {

// Waiting for a collective blocks the stream, not the thread.
using NotedNccl = NotedBackend<c10d::ProcessGroupNCCL>;

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const GroupPlace& place) {
  const int num_devices = c10::cuda::device_count();
  if (place.device >= num_devices) {
    throw RanksError("local rank " + std::to_string(place.device) + " needs its own GPU, but " +
                     std::to_string(num_devices) + " are visible here: start fewer ranks per node");
  }
  c10::cuda::set_device(static_cast<c10::DeviceIndex>(place.device));
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = place.timeout;
  return c10::make_intrusive<NotedNccl>(place.notes, place.store, place.rank, place.size,
                                        std::move(options));
}

}  // namespace rematch
