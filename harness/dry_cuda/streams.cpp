// Streams, events, errors, and the addresses of the driver's functions. Work completes as soon as
// it is launched, so every stream and event is always ready.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include "harness/dry_cuda/capture.h"
#include "harness/dry_cuda/runtime.h"

namespace dry_cuda {
namespace {

thread_local cudaError_t last_error = cudaSuccess;
thread_local int device_of_thread = 0;

// CUDA reserves smaller handles for default streams.
constexpr std::uintptr_t kFirstHandle = 16;

}  // namespace

cudaError_t report(int code) { return last_error = static_cast<cudaError_t>(code); }

int current_device() { return device_of_thread; }
void set_current_device(int device) { device_of_thread = device; }

int device_of(cudaStream_t stream) {
  const bool is_default = reinterpret_cast<std::uintptr_t>(stream) < kFirstHandle;
  return is_default ? current_device() : stream->device;
}

namespace {

int missing_driver_function() {
  return dry_cuda_missing("a function of the driver", cudaErrorNotSupported);
}

// Looks up a driver function in the stand-in for libcuda. Returns a placeholder for a missing
// function, because LibTorch looks up all functions at once but may never call the missing one.
void* driver_function(const char* name) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  void* const made_up = driver == nullptr ? nullptr : dlsym(driver, name);
  return made_up != nullptr ? made_up : reinterpret_cast<void*>(&missing_driver_function);
}

}  // namespace
}  // namespace dry_cuda

extern "C" {

using namespace dry_cuda;

cudaError_t cudaDeviceSynchronize() {
  if (const int code = dry_cuda_planted("cudaDeviceSynchronize")) return report(code);
  if (const cudaError_t error = check_host_wait("cudaDeviceSynchronize", cudaStream_t{})) {
    return error;
  }
  count_synchronization();
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  *stream = new CUstream_st{current_device()};
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return stream == nullptr ? cudaSuccess : check_host_wait("cudaStreamQuery", stream);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const cudaError_t error =
      stream == nullptr ? cudaSuccess : check_host_wait("cudaStreamSynchronize", stream);
  if (error != cudaSuccess) return error;
  count_synchronization();
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return wait_for_event(stream, event);
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned) {
  callback(stream, cudaSuccess, data);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = new CUevent_st{(flags & cudaEventDisableTiming) == 0, 0};
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  forget_event(event);
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (device_of(stream) != current_device()) return report(cudaErrorInvalidResourceHandle);
  event->recorded_at_ns = dry_cuda_clock_ns();
  return record_event(event, stream);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}

cudaError_t cudaEventQuery(cudaEvent_t event) { return check_host_wait("cudaEventQuery", event); }
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const cudaError_t error = check_host_wait("cudaEventSynchronize", event)) return error;
  count_synchronization();
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const bool is_known = start->is_timed && end->is_timed && start->recorded_at_ns != 0 &&
                        end->recorded_at_ns >= start->recorded_at_ns;
  if (!is_known) return report(cudaErrorInvalidResourceHandle);
  constexpr double kNsOfMillisecond = 1e6;
  *milliseconds = static_cast<float>(
      static_cast<double>(end->recorded_at_ns - start->recorded_at_ns) / kNsOfMillisecond);
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() { return last_error; }

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorInvalidDeviceFunction:
      return "cudaErrorInvalidDeviceFunction";
    case cudaErrorInvalidSymbol:
      return "cudaErrorInvalidSymbol";
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureUnjoined:
      return "cudaErrorStreamCaptureUnjoined";
    case cudaErrorStreamCaptureIsolation:
      return "cudaErrorStreamCaptureIsolation";
    case cudaErrorCapturedEvent:
      return "cudaErrorCapturedEvent";
    case cudaErrorNotSupported:
      return "cudaErrorNotSupported";
    default:
      return "cudaErrorUnknown";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : cudaGetErrorName(error);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* status) {
  *function = driver_function(name);
  if (status != nullptr) *status = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

}  // extern "C"
