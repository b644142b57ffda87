// A process group whose collectives are asynchronous and slow: each returns at once and fills its
// result some milliseconds later, on a thread of its own. This process is one rank of it, the
// others are made up from its own data, so results are not a reduction's, but always the same.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <string>
#include <vector>

namespace rematch::testing {

class SlowGroup {
 public:
  static constexpr int kWorld = 2;

  // Registers the group while it lives.
  explicit SlowGroup(std::string name);
  ~SlowGroup();
  SlowGroup(const SlowGroup&) = delete;
  SlowGroup& operator=(const SlowGroup&) = delete;

 private:
  std::string name_;
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
};

// The ops themselves, through the dispatcher, on the group of that name. What they return is filled
// once wait_for() has returned.
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
