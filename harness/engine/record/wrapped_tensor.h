// Tensors of Python subclasses that hold another tensor, as a DTensor holds the rank's, have a
// storage of their own without data. What shares memory, and how many bytes there are, is the inner
// one's to say. The engine knows no Python: who does tells it how to look inside.
#pragma once

#include <ATen/core/Tensor.h>

namespace rematch {

// The c10::TensorImpl inside a wrapper, borrowed, from the wrapper's Python object; null: it is no
// wrapper. Called on any thread, and takes the interpreter's lock itself.
using LookInside = void* (*)(void* python_object);

// For the whole process, before the first recorded step. Until then no tensor is a wrapper.
void set_look_inside(LookInside look_inside);

// The one inside a tensor of a Python subclass, borrowed; null: it is no wrapper.
c10::TensorImpl* look_inside(c10::TensorImpl& subclass);

// The tensor whose storage holds the data, borrowed: the one inside a wrapper, else `tensor`
// itself. Inline, since every recorded op asks some times.
inline c10::TensorImpl& impl_with_data(const at::Tensor& tensor) {
  c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (!impl.key_set().has(c10::DispatchKey::Python)) return impl;
  c10::TensorImpl* const inner = look_inside(impl);
  return inner == nullptr ? impl : *inner;
}

// The same, held.
at::Tensor tensor_with_data(const at::Tensor& tensor);

}  // namespace rematch
