// Declares the names of Gloo that torch/csrc/distributed/c10d/ProcessGroupGloo.hpp uses. LibTorch's
// wheel contains the Gloo library but not its headers.
#pragma once

#include <chrono>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

namespace transport {
class UnboundBuffer;
}  // namespace transport

}  // namespace gloo
