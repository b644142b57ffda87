#include "harness/ranks/noted_backend.h"

#include <cstdlib>
#include <stdexcept>

#include "harness/ranks/backends.h"
#include "tests/harness/ranks/noted_calls.h"
#include "tests/support/catch.h"

namespace rematch::testing {
namespace {

using Tensors = std::vector<at::Tensor>;
using TensorLists = std::vector<Tensors>;
using StartedWork = c10::intrusive_ptr<c10d::Work>;

// A backend in which all variants of all collectives do nothing.
class IdleBackend : public c10d::Backend {
 public:
  IdleBackend() : c10d::Backend(/*rank=*/0, /*size=*/2) {}
  StartedWork broadcast(Tensors&, const c10d::BroadcastOptions&) override { return done(); }
  StartedWork allreduce(Tensors&, const c10d::AllreduceOptions&) override { return done(); }
  StartedWork allreduce_coalesced(Tensors&, const c10d::AllreduceCoalescedOptions&) override {
    return done();
  }
  StartedWork reduce(Tensors&, const c10d::ReduceOptions&) override { return done(); }
  StartedWork allgather(TensorLists&, Tensors&, const c10d::AllgatherOptions&) override {
    return done();
  }
  // Calls another variant of the same collective, as Gloo does.
  StartedWork _allgather_base(at::Tensor& output, at::Tensor& input,
                              const c10d::AllgatherOptions& options) override {
    TensorLists outputs = {{output}};
    Tensors inputs = {input};
    return allgather(outputs, inputs, options);
  }
  StartedWork allgather_into_tensor_coalesced(Tensors&, Tensors&,
                                              const c10d::AllgatherOptions&) override {
    return done();
  }
  StartedWork gather(TensorLists&, Tensors&, const c10d::GatherOptions&) override { return done(); }
  StartedWork scatter(Tensors&, TensorLists&, const c10d::ScatterOptions&) override {
    return done();
  }
  StartedWork reduce_scatter(Tensors&, TensorLists&, const c10d::ReduceScatterOptions&) override {
    return done();
  }
  StartedWork _reduce_scatter_base(at::Tensor&, at::Tensor&,
                                   const c10d::ReduceScatterOptions&) override {
    return done();
  }
  StartedWork reduce_scatter_tensor_coalesced(Tensors&, Tensors&,
                                              const c10d::ReduceScatterOptions&) override {
    return done();
  }
  StartedWork alltoall_base(at::Tensor&, at::Tensor&, std::vector<std::int64_t>&,
                            std::vector<std::int64_t>&, const c10d::AllToAllOptions&) override {
    return done();
  }
  StartedWork alltoall(Tensors&, Tensors&, const c10d::AllToAllOptions&) override { return done(); }
  StartedWork barrier(const c10d::BarrierOptions&) override { return done(); }

 private:
  static StartedWork done() { return c10::make_intrusive<DoneWork>(); }
};

TEST_CASE("every variant of every collective is recorded once") {
  const NotesOnBoard notes;
  NotedBackend<IdleBackend> backend(notes.of_rank);
  std::int64_t begun = 0;
  for (const auto& [name, call] : every_collective(at::TensorOptions())) {
    call(backend);
    CAPTURE(name);
    CHECK(notes.calls() == ++begun);
  }
}

class ListedWork final : public NotedBackend<IdleBackend> {
 public:
  using NotedBackend::NotedBackend;
  std::vector<std::string> collectives;

 private:
  StartedWork started(const char* collective, StartedWork work) override {
    collectives.emplace_back(collective);
    return work;
  }
};

// Both work objects hold tensors, so a Gloo backend of kind kQuiet must wait for both.
TEST_CASE("if one variant of a collective calls another variant, both work objects are forwarded") {
  const NotesOnBoard notes;
  ListedWork backend(notes.of_rank);
  at::Tensor x = at::ones({4});
  backend._allgather_base(x, x, c10d::AllgatherOptions());
  CHECK(backend.collectives == std::vector<std::string>{"all_gather", "all_gather"});
  CHECK(notes.calls() == 1);
}

// A backend without any collective. c10d's base class throws for every collective.
class LackingBackend : public c10d::Backend {
 public:
  LackingBackend() : c10d::Backend(/*rank=*/0, /*size=*/2) {}
};

TEST_CASE("a collective that throws is recorded, and so is the next collective") {
  const NotesOnBoard notes;
  NotedBackend<LackingBackend> backend(notes.of_rank);
  CHECK_THROWS(backend.barrier(c10d::BarrierOptions()));
  CHECK_THROWS(backend.barrier(c10d::BarrierOptions()));
  CHECK(notes.calls() == 2);
}

}  // namespace
}  // namespace rematch::testing
