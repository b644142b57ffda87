// Handles tensors of Python subclasses that wrap another tensor. For example, a DTensor wraps the
// rank's local tensor. The storage of a wrapper has no data, so the wrapper's bytes and memory are
// those of the inner tensor. The Python package registers a function that finds the inner tensor.
#pragma once

#include <ATen/core/Tensor.h>

namespace rematch {

// Returns the c10::TensorImpl inside a wrapper, borrowed, given the wrapper's Python object.
// Returns null if the object is not a wrapper. Called on any thread; acquires the interpreter's
// lock itself.
using LookInside = void* (*)(void* python_object);

// Registers the function for the whole process, before the first recorded step. Until then no
// tensor counts as a wrapper.
void set_look_inside(LookInside look_inside);

// The inner tensor of a Python subclass, borrowed; null if the subclass is not a wrapper.
c10::TensorImpl* look_inside(c10::TensorImpl& subclass);

// The tensor whose storage holds the data, borrowed: the inner tensor of a wrapper, otherwise
// `tensor` itself. Inline, because every recorded op calls it several times.
inline c10::TensorImpl& impl_with_data(const at::Tensor& tensor) {
  c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (!impl.key_set().has(c10::DispatchKey::Python)) return impl;
  c10::TensorImpl* const inner = look_inside(impl);
  return inner == nullptr ? impl : *inner;
}

// Like impl_with_data(), but returns a tensor that owns its TensorImpl.
at::Tensor tensor_with_data(const at::Tensor& tensor);

}  // namespace rematch
