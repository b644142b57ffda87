#include "harness/engine/python_ops.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/Device.h>
#include <c10/core/Layout.h>
#include <c10/core/TensorImpl.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/PyInterpreter.h>
#include <c10/core/impl/PyInterpreterHooks.h>

#include <string>
#include <utility>

#include "kernels/libtorch/versions.h"

namespace rematch {
namespace {

using c10::TensorImpl;
using c10::impl::PyInterpreterVTable;

bool are_ops_seen() {
  const c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
  return keys.included_.has(c10::DispatchKey::Fake) && !keys.excluded_.has(c10::DispatchKey::Fake);
}

// For an op that Python is about to run, returns key Python and all lower keys of the arguments.
c10::DispatchKeySet keys_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  constexpr c10::DispatchKeySet kFromPythonOn =
      c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, c10::DispatchKey::Python) |
      c10::DispatchKeySet(c10::DispatchKey::Python);
  c10::DispatchKeySet keys(c10::DispatchKey::Python);
  for (const c10::IValue& argument : torch::jit::last(stack, op.schema().arguments().size())) {
    if (argument.isTensor()) {
      keys = keys | argument.toTensor().key_set();
    } else if (argument.isTensorList()) {
      for (const at::Tensor& tensor : argument.toTensorVector()) keys = keys | tensor.key_set();
    }
  }
  return keys & kFromPythonOn;
}

// A replacement for the interpreter's function table. Only dispatch() differs from the original.
class SeeingTable final : public PyInterpreterVTable {
 public:
  SeeingTable(const PyInterpreterVTable& behind, OpHandler handler)
      : behind_(behind), handler_(handler) {}

  void dispatch(const c10::OperatorHandle& op, torch::jit::Stack* stack) const override {
    if (are_ops_seen()) {
      handler_(op, keys_of(op, *stack), stack);
    } else {
      behind_.dispatch(op, stack);
    }
  }

  std::string name() const override { return behind_.name(); }
  void incref(PyObject* object) const override { behind_.incref(object); }
  void decref(PyObject* object) const override { behind_.decref(object); }
  bool try_incref(const c10::impl::PyObjectSlot& slot) const override {
    return behind_.try_incref(slot);
  }
  std::size_t refcnt(PyObject* object) const override { return behind_.refcnt(object); }
  c10::intrusive_ptr<TensorImpl> detach(const TensorImpl* self) const override {
    return behind_.detach(self);
  }
  void reportErrorCallback(PyObject* callback, c10::DispatchKey key) const override {
    behind_.reportErrorCallback(callback, key);
  }
  void python_op_registration_trampoline(const c10::OperatorHandle& op, c10::DispatchKey key,
                                         c10::DispatchKeySet keys, torch::jit::Stack* stack,
                                         bool with_keyset, bool with_op) const override {
    behind_.python_op_registration_trampoline(op, key, keys, stack, with_keyset, with_op);
  }
  void throw_abstract_impl_not_imported_error(std::string op, const char* module,
                                              const char* context) const override {
    behind_.throw_abstract_impl_not_imported_error(std::move(op), module, context);
  }
  void python_dispatcher(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                         torch::jit::Stack* stack) const override {
    behind_.python_dispatcher(op, keys, stack);
  }
  bool is_contiguous(const TensorImpl* self, at::MemoryFormat format) const override {
    return behind_.is_contiguous(self, format);
  }
  c10::SymBool sym_is_contiguous(const TensorImpl* self, at::MemoryFormat format) const override {
    return behind_.sym_is_contiguous(self, format);
  }
  bool is_strides_like(const TensorImpl* self, at::MemoryFormat format) const override {
    return behind_.is_strides_like(self, format);
  }
  bool is_non_overlapping_and_dense(const TensorImpl* self) const override {
    return behind_.is_non_overlapping_and_dense(self);
  }
  c10::Device device(const TensorImpl* self) const override { return behind_.device(self); }
  std::int64_t dim(const TensorImpl* self) const override { return behind_.dim(self); }
  c10::IntArrayRef strides(const TensorImpl* self) const override { return behind_.strides(self); }
  c10::IntArrayRef sizes(const TensorImpl* self) const override { return behind_.sizes(self); }
  c10::SymIntArrayRef sym_sizes(const TensorImpl* self) const override {
    return behind_.sym_sizes(self);
  }
  c10::Layout layout(const TensorImpl* self) const override { return behind_.layout(self); }
  std::int64_t numel(const TensorImpl* self) const override { return behind_.numel(self); }
  c10::SymInt sym_numel(const TensorImpl* self) const override { return behind_.sym_numel(self); }
  c10::SymIntArrayRef sym_strides(const TensorImpl* self) const override {
    return behind_.sym_strides(self);
  }
  c10::SymInt sym_storage_offset(const TensorImpl* self) const override {
    return behind_.sym_storage_offset(self);
  }
  void trace_gpu_event_creation(c10::DeviceType type, std::uintptr_t event) const override {
    behind_.trace_gpu_event_creation(type, event);
  }
  void trace_gpu_event_deletion(c10::DeviceType type, std::uintptr_t event) const override {
    behind_.trace_gpu_event_deletion(type, event);
  }
  void trace_gpu_event_record(c10::DeviceType type, std::uintptr_t event,
                              std::uintptr_t stream) const override {
    behind_.trace_gpu_event_record(type, event, stream);
  }
  void trace_gpu_event_wait(c10::DeviceType type, std::uintptr_t event,
                            std::uintptr_t stream) const override {
    behind_.trace_gpu_event_wait(type, event, stream);
  }
  void trace_gpu_memory_allocation(c10::DeviceType type, std::uintptr_t pointer) const override {
    behind_.trace_gpu_memory_allocation(type, pointer);
  }
  void trace_gpu_memory_deallocation(c10::DeviceType type, std::uintptr_t pointer) const override {
    behind_.trace_gpu_memory_deallocation(type, pointer);
  }
  void trace_gpu_stream_creation(c10::DeviceType type, std::uintptr_t stream) const override {
    behind_.trace_gpu_stream_creation(type, stream);
  }
  void trace_gpu_device_synchronization(c10::DeviceType type) const override {
    behind_.trace_gpu_device_synchronization(type);
  }
  void trace_gpu_stream_synchronization(c10::DeviceType type,
                                        std::uintptr_t stream) const override {
    behind_.trace_gpu_stream_synchronization(type, stream);
  }
  void trace_gpu_event_synchronization(c10::DeviceType type, std::uintptr_t event) const override {
    behind_.trace_gpu_event_synchronization(type, event);
  }
  void reset_backward_hooks(const TensorImpl* self) const override {
    behind_.reset_backward_hooks(self);
  }

 private:
  const PyInterpreterVTable& behind_;
  OpHandler handler_;
};

}  // namespace

void see_python_ops(OpHandler handler) {
  if constexpr (libtorch::kFakeIsBelowPython) {
    c10::impl::PyInterpreter& interpreter = *c10::impl::getGlobalPyInterpreter();
    // The table is leaked, because tensors use it until the process ends.
    interpreter.vtable_ = new SeeingTable(*interpreter.vtable_, handler);
  } else {
    (void)handler;
  }
}

}  // namespace rematch
