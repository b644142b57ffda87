// A process group whose collectives are asynchronous and slow. Each collective returns at once, and
// a thread fills the result some milliseconds later. This process is one rank; the data of the
// other ranks is made up. The results are deterministic but are not real reductions.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <string>
#include <vector>

namespace rematch::testing {

class SlowGroup {
 public:
  static constexpr int kWorld = 2;

  // Registers the group for the lifetime of this object.
  explicit SlowGroup(std::string name);
  ~SlowGroup();
  SlowGroup(const SlowGroup&) = delete;
  SlowGroup& operator=(const SlowGroup&) = delete;

 private:
  std::string name_;
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
};

// These functions start a collective through the dispatcher, on the group with this name. The
// returned tensors are filled once wait_for() has returned.
at::Tensor start_all_reduce(const at::Tensor& x, const std::string& group);
at::Tensor start_all_reduce_in_place(at::Tensor x, const std::string& group);
at::Tensor start_all_gather(const at::Tensor& x, const std::string& group);
at::Tensor start_reduce_scatter(const at::Tensor& x, const std::string& group);
at::Tensor start_all_to_all(const at::Tensor& x, const std::string& group);
std::vector<at::Tensor> start_all_gather(const std::vector<at::Tensor>& tensors,
                                         const std::string& group);
std::vector<at::Tensor> start_reduce_scatter(const std::vector<at::Tensor>& tensors,
                                             const std::string& group);
at::Tensor wait_for(const at::Tensor& tensor);

}  // namespace rematch::testing
