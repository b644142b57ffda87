// Captures GPU work into a CUDA graph and replays it. Needs a program that is linked with CUDA.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>

namespace rematch {

class CudaGraph {
 public:
  virtual ~CudaGraph() = default;

  // Runs `work` on the graph's stream, without capturing it. Everything that uses the captured
  // tensors must run there.
  virtual void run(const std::function<void()>& work) = 0;

  // Captures `work` instead of running it. The host code of `work` runs once, now. Tensors that
  // `work` allocates stay in memory of the graph. Throws c10::Error, or what `work` throws, if a
  // call cannot be captured. A graph captures once.
  virtual void capture(const std::function<void()>& work) = 0;

  // Runs the captured work. The random generators advance as the work itself would advance them.
  virtual void replay() = 0;
};

// Returns null in a program that is not linked with CUDA.
std::unique_ptr<CudaGraph> make_cuda_graph(c10::Device device);

}  // namespace rematch
