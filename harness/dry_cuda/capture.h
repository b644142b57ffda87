// Stream capture: while a stream is captured, its operations are stored in a graph instead of
// running. A launch of the graph runs them. Calls that CUDA prohibits during a capture fail with
// CUDA's error, and the capture with them.
#pragma once

#include <functional>

#include "harness/dry_cuda/runtime.h"

namespace dry_cuda {

// Runs an operation: calls `effect`, if any, and adds the record. If the record's stream is
// captured, both happen when the graph is launched.
cudaError_t submit(const DryCudaRecord& record, std::function<void()> effect = {});

// Fails if CUDA prohibits a potentially unsafe call, such as cudaMalloc, in this thread because of
// a capture.
cudaError_t check_unsafe_call(const char* call);
// Fails if the host would wait for captured work. A null stream stands for the whole device.
cudaError_t check_host_wait(const char* call, cudaStream_t stream);
cudaError_t check_host_wait(const char* call, cudaEvent_t event);

// Tracks which work an event or a stream includes. A capture spreads with events to other streams.
cudaError_t record_event(cudaEvent_t event, cudaStream_t stream);
void forget_event(cudaEvent_t event);
cudaError_t wait_for_event(cudaStream_t stream, cudaEvent_t event);

}  // namespace dry_cuda
