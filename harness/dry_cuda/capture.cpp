#include "harness/dry_cuda/capture.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace dry_cuda {
namespace {

struct Operation {
  DryCudaRecord record;
  std::function<void()> effect;
};
using Operations = std::vector<Operation>;

// Number of operations of each captured stream that a stream or an event includes.
using Progress = std::map<cudaStream_t, std::size_t>;

struct Capture {
  unsigned long long id;
  cudaStream_t origin;
  cudaStreamCaptureMode mode;
  std::thread::id thread;
  bool is_valid = true;
  Operations operations;
  std::map<cudaStream_t, Progress> streams;  // all captured streams
};

struct Captures {
  std::mutex mutex;
  std::vector<std::unique_ptr<Capture>> active;
  std::map<cudaEvent_t, std::pair<unsigned long long, Progress>> events;  // recorded in a capture
  unsigned long long num_started = 0;
  const char* refused_call = nullptr;
};

// This object is never destroyed, because some destructors of static objects destroy streams.
Captures& captures() {
  static Captures* const made = new Captures;
  return *made;
}

thread_local cudaStreamCaptureMode mode_of_thread = cudaStreamCaptureModeGlobal;

// The caller of each function below holds the lock.

Capture* capture_of(cudaStream_t stream) {
  for (const auto& capture : captures().active) {
    if (capture->streams.contains(stream)) return capture.get();
  }
  return nullptr;
}

Capture* capture_numbered(unsigned long long id) {
  for (const auto& capture : captures().active) {
    if (capture->id == id) return capture.get();
  }
  return nullptr;
}

cudaError_t invalidate(Capture& capture, const char* call, cudaError_t error) {
  capture.is_valid = false;
  if (captures().refused_call == nullptr) captures().refused_call = call;
  return report(error);
}

// Returns whether the capture prohibits unsafe calls in this thread: see
// cudaThreadExchangeStreamCaptureMode in CUDA's documentation.
bool prohibits_unsafe_calls(const Capture& capture) {
  if (mode_of_thread == cudaStreamCaptureModeRelaxed) return false;
  if (capture.thread == std::this_thread::get_id()) {
    return capture.mode != cudaStreamCaptureModeRelaxed;
  }
  return mode_of_thread == cudaStreamCaptureModeGlobal &&
         capture.mode == cudaStreamCaptureModeGlobal;
}

void include(Progress& progress, const Progress& other) {
  for (const auto& [stream, count] : other) {
    progress[stream] = std::max(progress[stream], count);
  }
}

// Returns whether the origin waits for all other captured streams.
bool is_joined(const Capture& capture) {
  const Progress& origin = capture.streams.at(capture.origin);
  return std::all_of(capture.streams.begin(), capture.streams.end(), [&](const auto& captured) {
    const auto& [stream, progress] = captured;
    const auto own = progress.find(stream);
    if (own == progress.end()) return true;
    const auto seen = origin.find(stream);
    return seen != origin.end() && seen->second == own->second;
  });
}

void run(const Operation& operation) {
  if (operation.effect) operation.effect();
  add_record(operation.record);
}

}  // namespace

cudaError_t submit(const DryCudaRecord& record, std::function<void()> effect) {
  Operation operation{record, std::move(effect)};
  {
    const std::lock_guard lock(captures().mutex);
    const auto stream = reinterpret_cast<cudaStream_t>(record.stream);
    if (Capture* capture = capture_of(stream)) {
      if (!capture->is_valid) return report(cudaErrorStreamCaptureInvalidated);
      ++capture->streams[stream][stream];
      capture->operations.push_back(std::move(operation));
      return cudaSuccess;
    }
  }
  run(operation);
  return cudaSuccess;
}

cudaError_t check_unsafe_call(const char* call) {
  const std::lock_guard lock(captures().mutex);
  for (const auto& capture : captures().active) {
    if (prohibits_unsafe_calls(*capture)) {
      return invalidate(*capture, call, cudaErrorStreamCaptureUnsupported);
    }
  }
  return cudaSuccess;
}

cudaError_t check_host_wait(const char* call, cudaStream_t stream) {
  const std::lock_guard lock(captures().mutex);
  for (const auto& capture : captures().active) {
    if (stream == nullptr || capture->streams.contains(stream)) {
      return invalidate(*capture, call, cudaErrorStreamCaptureUnsupported);
    }
  }
  return cudaSuccess;
}

cudaError_t check_host_wait(const char* call, cudaEvent_t event) {
  const std::lock_guard lock(captures().mutex);
  const auto found = captures().events.find(event);
  if (found == captures().events.end()) return cudaSuccess;
  if (Capture* capture = capture_numbered(found->second.first)) {
    return invalidate(*capture, call, cudaErrorCapturedEvent);
  }
  return report(cudaErrorCapturedEvent);
}

cudaError_t record_event(cudaEvent_t event, cudaStream_t stream) {
  const std::lock_guard lock(captures().mutex);
  captures().events.erase(event);
  if (Capture* capture = capture_of(stream)) {
    if (!capture->is_valid) return report(cudaErrorStreamCaptureInvalidated);
    captures().events[event] = {capture->id, capture->streams[stream]};
  }
  return cudaSuccess;
}

void forget_event(cudaEvent_t event) {
  const std::lock_guard lock(captures().mutex);
  captures().events.erase(event);
}

cudaError_t wait_for_event(cudaStream_t stream, cudaEvent_t event) {
  constexpr const char* kCall = "cudaStreamWaitEvent";
  const std::lock_guard lock(captures().mutex);
  Capture* const capturing = capture_of(stream);
  const auto found = captures().events.find(event);
  if (found == captures().events.end()) {
    // An event that was never recorded is no dependency.
    if (capturing == nullptr || event->recorded_at_ns == 0) return cudaSuccess;
    return invalidate(*capturing, kCall, cudaErrorStreamCaptureIsolation);
  }
  const auto& [id, progress] = found->second;
  Capture* const of_event = capture_numbered(id);
  if (of_event == nullptr) return report(cudaErrorStreamCaptureIsolation);
  if (capturing != nullptr && capturing != of_event) {
    return invalidate(*capturing, kCall, cudaErrorStreamCaptureMerge);
  }
  if (stream == nullptr) return invalidate(*of_event, kCall, cudaErrorStreamCaptureImplicit);
  include(of_event->streams[stream], progress);
  return cudaSuccess;
}

}  // namespace dry_cuda

using namespace dry_cuda;

// CUDA's opaque types, under CUDA's names.
struct CUgraph_st {
  Operations operations;
};
struct CUgraphExec_st {
  Operations operations;
};

extern "C" {

const char* dry_cuda_refused_call(void) {
  const std::lock_guard lock(captures().mutex);
  return captures().refused_call;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  const std::lock_guard lock(captures().mutex);
  if (stream == nullptr) return report(cudaErrorStreamCaptureUnsupported);
  if (capture_of(stream) != nullptr) return report(cudaErrorIllegalState);
  captures().refused_call = nullptr;
  captures().active.push_back(std::make_unique<Capture>(
      Capture{++captures().num_started, stream, mode, std::this_thread::get_id()}));
  captures().active.back()->streams[stream];
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::lock_guard lock(captures().mutex);
  *graph = nullptr;
  Capture* const capture = capture_of(stream);
  if (capture == nullptr) return report(cudaErrorIllegalState);
  if (capture->origin != stream) return report(cudaErrorStreamCaptureUnmatched);
  if (capture->mode != cudaStreamCaptureModeRelaxed &&
      capture->thread != std::this_thread::get_id()) {
    return report(cudaErrorStreamCaptureWrongThread);
  }
  auto& active = captures().active;
  const auto place = std::find_if(active.begin(), active.end(),
                                  [&](const auto& one) { return one.get() == capture; });
  const std::unique_ptr<Capture> ended = std::move(*place);
  active.erase(place);
  if (!ended->is_valid) return report(cudaErrorStreamCaptureInvalidated);
  if (!is_joined(*ended)) return report(cudaErrorStreamCaptureUnjoined);
  *graph = new CUgraph_st{std::move(ended->operations)};
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* num_dependencies) {
  const std::lock_guard lock(captures().mutex);
  const Capture* const capture = capture_of(stream);
  *status = capture == nullptr  ? cudaStreamCaptureStatusNone
            : capture->is_valid ? cudaStreamCaptureStatusActive
                                : cudaStreamCaptureStatusInvalidated;
  if (id != nullptr) *id = capture == nullptr ? 0 : capture->id;
  if (graph != nullptr) *graph = nullptr;
  if (dependencies != nullptr) *dependencies = nullptr;
  if (edges != nullptr) *edges = nullptr;
  if (num_dependencies != nullptr) *num_dependencies = 0;
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return cudaStreamGetCaptureInfo(stream, status, nullptr, nullptr, nullptr, nullptr, nullptr);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, mode_of_thread);
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  *executable = new CUgraphExec_st{graph->operations};
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long flags) {
  return cudaGraphInstantiate(executable, graph, flags);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  if (const int code = dry_cuda_planted("cudaGraphLaunch")) return report(code);
  {
    const std::lock_guard lock(captures().mutex);
    if (capture_of(stream) != nullptr) return report(cudaErrorNotSupported);
  }
  for (Operation operation : executable->operations) {
    operation.record.call = "cudaGraphLaunch";
    operation.record.stream = reinterpret_cast<std::uint64_t>(stream);
    run(operation);
  }
  return cudaSuccess;
}

// Only the number of nodes is known.
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* num_nodes) {
  if (nodes != nullptr) return report(cudaErrorNotSupported);
  *num_nodes = graph->operations.size();
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}

}  // extern "C"
