// Makes Python raise the right class when the engine throws an error inside an op. LibTorch's
// Python binding asks an exception of type PyTorchError which Python class to raise.
#pragma once

#include <exception>
#include <string>

#include "harness/python/c_call.h"

struct _object;  // Python's PyObject, whose own header is not available here

namespace torch {

// Copied from torch/csrc/Exceptions.h. LibTorch's binding recognizes the type by its name. If a
// release changes the type, Python raises a plain RuntimeError instead.
struct PyTorchError : public std::exception {
  PyTorchError() = default;
  explicit PyTorchError(std::string message) : msg(std::move(message)) {}
  virtual _object* python_type() = 0;
  const char* what() const noexcept override { return msg.c_str(); }
  std::string msg;
};

}  // namespace torch

namespace rematch::c_call {

struct HostError final : public torch::PyTorchError {
  HostError(ErrorClass of, _object* type, const char* message)
      : torch::PyTorchError(message), error_class(of), type_(type) {}
  _object* python_type() override { return type_; }

  ErrorClass error_class;

 private:
  _object* type_;
};

}  // namespace rematch::c_call
