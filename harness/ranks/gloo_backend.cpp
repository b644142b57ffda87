#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <thread>
#include <utility>

#include "harness/ranks/backends.h"
#include "harness/ranks/place.h"

namespace rematch {
namespace {

using Tensors = std::vector<at::Tensor>;
using StartedWork = c10::intrusive_ptr<c10d::Work>;

class NotedGloo final : public c10d::ProcessGroupGloo {
 public:
  using Base = c10d::ProcessGroupGloo;

  NotedGloo(const GroupPlace& place, GlooKind kind, c10::intrusive_ptr<Options> options)
      : Base(place.store, place.rank, place.size, std::move(options)),
        group_(place.name),
        notes_(place.notes),
        kind_(kind) {}

  StartedWork allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    return run("all_reduce", [&] { return Base::allreduce(tensors, options); });
  }
  StartedWork allreduce_coalesced(Tensors& tensors,
                                  const c10d::AllreduceCoalescedOptions& options) override {
    return run("all_reduce_coalesced", [&] { return Base::allreduce_coalesced(tensors, options); });
  }
  StartedWork broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    return run("broadcast", [&] { return Base::broadcast(tensors, options); });
  }
  StartedWork allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                              const c10d::AllgatherOptions& options) override {
    return run("all_gather",
               [&] { return Base::allgather_into_tensor_coalesced(outputs, inputs, options); });
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

 private:
  template <class Start>
  StartedWork run(const char* collective, Start start) {
    notes_->call();
    StartedWork work = start();  // throws what is wrong with the call itself
    if (kind_ == GlooKind::kAsynchronous) return work;
    try {
      work->wait();
    } catch (const std::exception& error) {
      notes_->lost_others();
      throw RanksError(std::string(collective) + " of group '" + group_ + "' failed on its rank " +
                       std::to_string(getRank()) + " of " + std::to_string(getSize()) +
                       ": another rank ended, hangs, or is at another collective (" + error.what() +
                       ")");
    }
    // Gloo's thread lets go of the tensors a little after the work is done.
    while (work.use_count() > 1) std::this_thread::yield();
    return c10::make_intrusive<DoneWork>();
  }

  std::string group_;
  std::shared_ptr<RankNotes> notes_;
  GlooKind kind_;
};

bool is_loopback(const std::string& address) {
  return address == "localhost" || address.starts_with("127.");
}

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_gloo_backend(const GroupPlace& place, GlooKind kind) {
  using Gloo = c10d::ProcessGroupGloo;
  c10::intrusive_ptr<Gloo::Options> options;
  if (is_loopback(place.address)) {
    options = Gloo::Options::create(place.timeout);
    options->devices.push_back(Gloo::createDeviceForHostname(place.address));
  } else {
    options = Gloo::Options::create_default(place.timeout);  // obeys GLOO_SOCKET_IFNAME
  }
  return c10::make_intrusive<NotedGloo>(place, kind, std::move(options));
}

}  // namespace rematch
