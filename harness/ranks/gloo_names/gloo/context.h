// Declares the names of Gloo that torch/csrc/distributed/c10d/ProcessGroupGloo.hpp uses. LibTorch's
// wheel exports c10d's Gloo backend and Gloo itself, but none of Gloo's headers. Declarations are
// enough, because layout and calls come from LibTorch's header and library.
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
