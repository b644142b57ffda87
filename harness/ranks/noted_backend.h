// A c10d backend that records each collective in shared memory before the collective begins. If a
// job hangs, the launcher can then tell which rank is behind. Sends and receives between two ranks
// are not recorded.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "harness/ranks/notes.h"

namespace rematch {

// `Base` is the backend that does the work. Every variant of every collective must be overridden,
// because a variant that is not recorded would make the wrong rank appear to be behind.
template <class Base>
class NotedBackend : public Base {
 public:
  using Tensors = std::vector<at::Tensor>;
  using TensorLists = std::vector<Tensors>;
  using StartedWork = c10::intrusive_ptr<c10d::Work>;

  template <class... Arguments>
  explicit NotedBackend(std::shared_ptr<RankNotes> notes, Arguments&&... arguments)
      : Base(std::forward<Arguments>(arguments)...), notes_(std::move(notes)) {}

  StartedWork broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    return run("broadcast", [&] { return Base::broadcast(tensors, options); });
  }
  StartedWork allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    return run("all_reduce", [&] { return Base::allreduce(tensors, options); });
  }
  StartedWork allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    return run("all_reduce_sparse", [&] { return Base::allreduce_sparse(tensors, options); });
  }
  StartedWork allreduce_coalesced(Tensors& tensors,
                                  const c10d::AllreduceCoalescedOptions& options) override {
    return run("all_reduce_coalesced", [&] { return Base::allreduce_coalesced(tensors, options); });
  }
  StartedWork reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    return run("reduce", [&] { return Base::reduce(tensors, options); });
  }
  StartedWork allgather(TensorLists& outputs, Tensors& inputs,
                        const c10d::AllgatherOptions& options) override {
    return run("all_gather", [&] { return Base::allgather(outputs, inputs, options); });
  }
  StartedWork _allgather_base(at::Tensor& output, at::Tensor& input,
                              const c10d::AllgatherOptions& options) override {
    return run("all_gather", [&] { return Base::_allgather_base(output, input, options); });
  }
  StartedWork allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                                  const c10d::AllgatherOptions& options) override {
    return run("all_gather", [&] { return Base::allgather_coalesced(outputs, inputs, options); });
  }
  StartedWork allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                              const c10d::AllgatherOptions& options) override {
    return run("all_gather",
               [&] { return Base::allgather_into_tensor_coalesced(outputs, inputs, options); });
  }
  StartedWork gather(TensorLists& outputs, Tensors& inputs,
                     const c10d::GatherOptions& options) override {
    return run("gather", [&] { return Base::gather(outputs, inputs, options); });
  }
  StartedWork scatter(Tensors& outputs, TensorLists& inputs,
                      const c10d::ScatterOptions& options) override {
    return run("scatter", [&] { return Base::scatter(outputs, inputs, options); });
  }
  StartedWork reduce_scatter(Tensors& outputs, TensorLists& inputs,
                             const c10d::ReduceScatterOptions& options) override {
    return run("reduce_scatter", [&] { return Base::reduce_scatter(outputs, inputs, options); });
  }
  StartedWork _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                   const c10d::ReduceScatterOptions& options) override {
    return run("reduce_scatter",
               [&] { return Base::_reduce_scatter_base(output, input, options); });
  }
  StartedWork reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                              const c10d::ReduceScatterOptions& options) override {
    return run("reduce_scatter",
               [&] { return Base::reduce_scatter_tensor_coalesced(outputs, inputs, options); });
  }
  StartedWork alltoall_base(at::Tensor& output, at::Tensor& input,
                            std::vector<std::int64_t>& output_splits,
                            std::vector<std::int64_t>& input_splits,
                            const c10d::AllToAllOptions& options) override {
    return run("all_to_all", [&] {
      return Base::alltoall_base(output, input, output_splits, input_splits, options);
    });
  }
  StartedWork alltoall(Tensors& outputs, Tensors& inputs,
                       const c10d::AllToAllOptions& options) override {
    return run("all_to_all", [&] { return Base::alltoall(outputs, inputs, options); });
  }
  StartedWork barrier(const c10d::BarrierOptions& options) override {
    return run("barrier", [&] { return Base::barrier(options); });
  }

  // LibTorch 2.15 adds new names for some of the collectives above. The functions below override
  // these names. They are not marked `override`, because Base lacks the names before 2.15.
  // NOLINTBEGIN(modernize-use-override,clang-diagnostic-suggest-override)
  StartedWork all_gather_single(at::Tensor& output, at::Tensor& input,
                                const c10d::AllgatherOptions& options) {
    return run("all_gather", [&] { return Base::all_gather_single(output, input, options); });
  }
  StartedWork all_gather_single_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& options) {
    return run("all_gather",
               [&] { return Base::all_gather_single_coalesced(outputs, inputs, options); });
  }
  StartedWork reduce_scatter_single(at::Tensor& output, at::Tensor& input,
                                    const c10d::ReduceScatterOptions& options) {
    return run("reduce_scatter",
               [&] { return Base::reduce_scatter_single(output, input, options); });
  }
  StartedWork reduce_scatter_single_coalesced(Tensors& outputs, Tensors& inputs,
                                              const c10d::ReduceScatterOptions& options) {
    return run("reduce_scatter",
               [&] { return Base::reduce_scatter_single_coalesced(outputs, inputs, options); });
  }
  StartedWork all_to_all_single(at::Tensor& output, at::Tensor& input,
                                std::vector<std::int64_t>& output_splits,
                                std::vector<std::int64_t>& input_splits,
                                const c10d::AllToAllOptions& options) {
    return run("all_to_all", [&] {
      return Base::all_to_all_single(output, input, output_splits, input_splits, options);
    });
  }
  // NOLINTEND(modernize-use-override,clang-diagnostic-suggest-override)

 protected:
  // Called with the work object of every collective that has started, including collectives that
  // another collective of this backend started.
  virtual StartedWork started(const char* /*collective*/, StartedWork work) { return work; }

  RankNotes& notes() { return *notes_; }

 private:
  // A backend may implement one collective by calling another. Only the outer call is recorded.
  template <class Start>
  StartedWork run(const char* collective, Start start) {
    if (!is_inside_) notes_->call();
    StartedWork work;
    {
      const Inside inside;
      work = start();  // throws if the arguments are invalid
    }
    return started(collective, std::move(work));
  }

  class Inside {
   public:
    Inside() : was_inside_(std::exchange(is_inside_, true)) {}
    ~Inside() { is_inside_ = was_inside_; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    bool was_inside_;
  };

  static inline thread_local bool is_inside_ = false;
  std::shared_ptr<RankNotes> notes_;
};

}  // namespace rematch
