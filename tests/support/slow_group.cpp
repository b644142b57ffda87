#include "tests/support/slow_group.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <chrono>
#include <functional>
#include <thread>
#include <utility>

namespace rematch::testing {
namespace {

// Longer than the ops of a small network take. Code that does not wait therefore reads unfilled
// memory.
constexpr std::chrono::milliseconds kDelay{2};

class SlowWork final : public c10d::Work {
 public:
  explicit SlowWork(std::function<void()> fill)
      : thread_([this, fill = std::move(fill)]() mutable {
          std::this_thread::sleep_for(kDelay);
          const at::NoGradGuard no_grad;
          fill();
          fill = nullptr;  // releases the tensors before a waiting thread continues
          finish();
        }) {}
  ~SlowWork() override { thread_.join(); }

 private:
  std::thread thread_;
};

class SlowBackend final : public c10d::Backend {
 public:
  using Tensors = std::vector<at::Tensor>;
  using Started = c10::intrusive_ptr<c10d::Work>;

  explicit SlowBackend(int world) : Backend(/*rank=*/0, world) {}
  const std::string getBackendName() const override { return "slow"; }

  Started allreduce(Tensors& tensors, const c10d::AllreduceOptions&) override {
    return start([tensors]() mutable {
      for (at::Tensor& tensor : tensors) tensor.mul_(1.5);
    });
  }
  Started allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions&) override {
    return start([outputs, inputs, world = getSize()]() mutable {
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        const std::vector<at::Tensor> parts = at::chunk(outputs[i], world);
        for (std::size_t rank = 0; rank < parts.size(); ++rank) {
          parts[rank].copy_(inputs[i] * (1.0 + 0.25 * static_cast<double>(rank)));
        }
      }
    });
  }
  Started reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions&) override {
    return start([outputs, inputs, world = getSize()]() mutable {
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        const std::vector<at::Tensor> parts = at::chunk(inputs[i], world);
        outputs[i].copy_(parts[0]);
        for (std::size_t rank = 1; rank < parts.size(); ++rank) outputs[i].add_(parts[rank], 0.5);
      }
    });
  }
  Started alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>&,
                        std::vector<std::int64_t>&, const c10d::AllToAllOptions&) override {
    return start([output, input]() mutable { output.copy_(at::roll(input, 1, 0)); });
  }

 private:
  static Started start(std::function<void()> fill) {
    return c10::make_intrusive<SlowWork>(std::move(fill));
  }
};

// Makes a boxed call, because a typed operator handle ignores the dispatch keys of tensors in a
// list.
template <typename... Arguments>
c10::IValue call(const char* name, Arguments... arguments) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
  torch::jit::Stack stack;
  (stack.emplace_back(std::move(arguments)), ...);
  op.callBoxed(&stack);
  return stack.front();
}

}  // namespace

SlowGroup::SlowGroup(std::string name) : name_(std::move(name)) {
  group_ = c10::make_intrusive<c10d::ProcessGroup>(c10::make_intrusive<c10d::HashStore>(),
                                                   /*rank=*/0, kWorld);
  group_->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::CUSTOM,
                     c10::make_intrusive<SlowBackend>(kWorld));
  group_->setDefaultBackend(c10d::ProcessGroup::BackendType::CUSTOM);
  group_->setGroupName(name_);
  c10d::register_process_group(name_, group_);
}
SlowGroup::~SlowGroup() { c10d::unregister_process_group(name_); }

at::Tensor start_all_reduce(const at::Tensor& x, const std::string& group) {
  return call("_c10d_functional::all_reduce", x, std::string("sum"), group).toTensor();
}
at::Tensor start_all_reduce_in_place(at::Tensor x, const std::string& group) {
  return call("_c10d_functional::all_reduce_", std::move(x), std::string("sum"), group).toTensor();
}
at::Tensor start_all_gather(const at::Tensor& x, const std::string& group) {
  return call("_c10d_functional::all_gather_into_tensor", x.contiguous(),
              std::int64_t{SlowGroup::kWorld}, group)
      .toTensor();
}
at::Tensor start_reduce_scatter(const at::Tensor& x, const std::string& group) {
  return call("_c10d_functional::reduce_scatter_tensor", x.contiguous(), std::string("sum"),
              std::int64_t{SlowGroup::kWorld}, group)
      .toTensor();
}
at::Tensor start_all_to_all(const at::Tensor& x, const std::string& group) {
  const std::int64_t rows = x.size(0) / SlowGroup::kWorld;
  const std::vector<std::int64_t> splits(SlowGroup::kWorld, rows);
  return call("_c10d_functional::all_to_all_single", x.contiguous(), splits, splits, group)
      .toTensor();
}
std::vector<at::Tensor> start_all_gather(const std::vector<at::Tensor>& tensors,
                                         const std::string& group) {
  return call("_c10d_functional::all_gather_into_tensor_coalesced", tensors,
              std::int64_t{SlowGroup::kWorld}, group)
      .toTensorVector();
}
std::vector<at::Tensor> start_reduce_scatter(const std::vector<at::Tensor>& tensors,
                                             const std::string& group) {
  return call("_c10d_functional::reduce_scatter_tensor_coalesced", tensors, std::string("sum"),
              std::int64_t{SlowGroup::kWorld}, group)
      .toTensorVector();
}
at::Tensor wait_for(const at::Tensor& tensor) {
  return call("_c10d_functional::wait_tensor", tensor).toTensor();
}

}  // namespace rematch::testing
