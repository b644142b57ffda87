// The engine's errors as Python's classes. They are thrown inside ops, and LibTorch's Python
// binding asks an exception of this one base class for the Python class to raise.
#pragma once

#include <exception>
#include <string>

#include "harness/python/c_call.h"

struct _object;  // PyObject, whose header needs Python's

namespace torch {

// As torch/csrc/Exceptions.h declares it; LibTorch's binding knows it by its name. A release that
// declares it otherwise would raise RuntimeError, which the classes derive from.
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
