// Tensors from outside a region that change between forward and backward: what is seen, what is
// refused, and what is not the recompute's business.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/CPUAllocator.h>
#include <torch/library.h>

#include <cstring>

#include "tests/support/catch.h"
#include "tests/support/networks.h"

namespace rematch::testing {
namespace {

using Catch::Contains;

constexpr Schedule kSchedules[] = {Schedule::kWholeRegion, Schedule::kOnDemand};

using Layer = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& w)>;
// Called between forward and backward, with the input of the second layer.
using Meddle = std::function<void(const Network& network, const at::Tensor& hidden)>;

at::Tensor no_grad_copy(const at::Tensor& tensor) { return tensor.detach().clone(); }

// x = data of the same sizes, as `x.data = y` does in Python.
void exchange(const at::Tensor& tensor, const at::Tensor& data) { tensor.set_data(data); }

struct Case {
  Layer layer;
  Meddle meddle = [](const Network&, const at::Tensor&) {};
  std::function<void()> prepare = [] {};  // before every run

  Network make() const {
    prepare();
    Network network;
    network.input = at::ones({4, 4}).requires_grad_();
    const at::Tensor w = at::ones({4, 4}).mul(0.25).requires_grad_();
    network.parameters = {w};
    network.layers = {[w](const at::Tensor& x) { return at::mm(x, w); },
                      [*this, w](const at::Tensor& x) {
                        *hidden = x;
                        return layer(x, w);
                      }};
    return network;
  }
  NamedNetwork named() const {
    return {"case", [*this] { return make(); }};
  }
  Outcome run_plain() const {
    seed_generator();
    const Network network = make();
    const at::Tensor loss = loss_of(forward_plain(network));
    meddle(network, *hidden);
    loss.backward();
    hidden->reset();
    return outcome_of(network, loss);
  }
  Outcome run_engine(const Checkpoint& checkpoint) const {
    seed_generator();
    const Network network = make();
    Recording recording(checkpoint);
    const at::Tensor loss = loss_of(forward_with_scopes(network));
    meddle(network, *hidden);
    loss.backward();
    hidden->reset();
    return outcome_of(network, loss);
  }
  Plan plan() const {
    const Plan made = plan_of_blocks(trace_of(named()), [](int, int) { return false; });
    hidden->reset();
    return made;
  }

  std::shared_ptr<at::Tensor> hidden = std::make_shared<at::Tensor>();
};

void check_refused(const Case& given, const std::string& word,
                   OutsideCheck check = OutsideCheck::kVersions) {
  const Plan plan = given.plan();
  for (const Schedule schedule : kSchedules) {
    CAPTURE(to_string(schedule));
    const Checkpoint checkpoint(plan, schedule, check);
    CHECK_THROWS_WITH(given.run_engine(checkpoint), Contains("region blocks.1") && Contains(word));
    CHECK_THROWS_AS(given.run_engine(checkpoint), Refused);
  }
}

void check_equal(const Case& given, OutsideCheck check = OutsideCheck::kVersions) {
  const Plan plan = given.plan();
  const Outcome plain = given.run_plain();
  for (const Schedule schedule : kSchedules) {
    CAPTURE(to_string(schedule));
    const Checkpoint checkpoint(plan, schedule, check);
    CHECK(first_difference(plain, given.run_engine(checkpoint)) == "");
  }
}

at::Tensor two_products(const at::Tensor& x, const at::Tensor& w) {
  return at::mm(at::sin(at::mm(x, w)), w);
}

// --- Exchanged data -----------------------------------------------------------------------

TEST_CASE("a parameter whose data was exchanged after forward") {
  check_refused({two_products,
                 [](const Network& network, const at::Tensor&) {
                   exchange(network.parameters[0], at::ones({4, 4}));
                 }},
                "given other data");
}

// malloc hands the second tensor the memory of the first: addresses alone do not tell.
TEST_CASE("a parameter whose data was exchanged twice") {
  check_refused({two_products,
                 [](const Network& network, const at::Tensor&) {
                   for (int i = 0; i < 2; ++i) {
                     exchange(network.parameters[0], no_grad_copy(network.parameters[0]).mul(2));
                   }
                 }},
                "given other data");
}

TEST_CASE("a parameter that moved within its storage") {
  const at::Tensor flat = at::ones({2, 4, 4});
  check_refused({[flat](const at::Tensor& x, const at::Tensor& w) {
                   exchange(w, flat[0]);
                   return two_products(x, w);
                 },
                 [flat](const Network& network, const at::Tensor&) {
                   exchange(network.parameters[0], flat[1]);
                 }},
                "given other data");
}

TEST_CASE("an exchanged parameter that only a view of it is read from") {
  check_refused({[](const at::Tensor& x, const at::Tensor& w) { return at::mm(x, w.t()).sin(); },
                 [](const Network& network, const at::Tensor&) {
                   exchange(network.parameters[0], at::ones({4, 4}));
                 }},
                "given other data");
}

TEST_CASE("the input of a region whose data was exchanged after forward") {
  check_refused({two_products,
                 [](const Network&, const at::Tensor& hidden) {
                   exchange(hidden, no_grad_copy(hidden).mul(2));
                 }},
                "given other data");
}

TEST_CASE("data exchanged and put back is the same data") {
  check_equal({two_products, [](const Network& network, const at::Tensor&) {
                 const at::Tensor before = network.parameters[0].detach();
                 exchange(network.parameters[0], at::ones({4, 4}));
                 exchange(network.parameters[0], before);
               }});
}

// Sharded training lets the memory of parameters go after forward and fills it again before
// backward.
const Meddle kNewMemory = [](const Network& network, const at::Tensor&) {
  const at::Tensor& parameter = network.parameters[0];
  const at::Tensor content = no_grad_copy(parameter);
  c10::StorageImpl* storage = parameter.storage().unsafeGetStorageImpl();
  const c10::DataPtr before =
      storage->set_data_ptr(c10::GetDefaultCPUAllocator()->allocate(storage->nbytes()));
  std::memcpy(storage->mutable_data(), content.const_data_ptr(), storage->nbytes());
};

TEST_CASE("a parameter whose storage got other memory of the same content") {
  check_equal({two_products, kNewMemory});
  check_equal({two_products, kNewMemory}, OutsideCheck::kHashes);
}

TEST_CASE("other content in other memory of the same storage is seen by its hash") {
  check_refused({two_products,
                 [](const Network& network, const at::Tensor& hidden) {
                   kNewMemory(network, hidden);
                   network.parameters[0].mutable_data_ptr<float>()[0] += 1.0F;
                 }},
                "where no version tells", OutsideCheck::kHashes);
}

TEST_CASE("a parameter whose data is exchanged within the region") {
  const Case given{
      [](const at::Tensor& x, const at::Tensor& w) {
        const at::Tensor y = at::sin(x + w);
        exchange(w, no_grad_copy(w).mul(2));
        return at::sin(y + w);
      },
  };
  const Plan plan = given.plan();
  for (const Schedule schedule : kSchedules) {
    CHECK_THROWS_WITH(given.run_engine(Checkpoint(plan, schedule)), Contains("given other data"));
  }
}

TEST_CASE("a result of the region whose data is exchanged within the region") {
  const Case given{
      [](const at::Tensor& x, const at::Tensor& w) {
        at::Tensor y = at::mm(x, w);
        exchange(y, no_grad_copy(y).mul(2));
        return at::mm(y, w);
      },
  };
  Plan plan;
  plan.types = {RegionType{.ops = {{.name = "aten::mm"},
                                   {.name = "aten::detach"},
                                   {.name = "aten::clone"},
                                   {.name = "aten::mul.Scalar"},
                                   {.name = "aten::mm"}}}};
  plan.regions = {{.first_scope = "blocks.1", .last_scope = "blocks.1", .type = 0, .layers = {1}}};
  CHECK_THROWS_WITH(given.run_engine(Checkpoint(plan, Schedule::kOnDemand)),
                    Contains("a result of aten::mm, was given other data"));
}

TEST_CASE("a write through .data into a result of the region") {
  const Case given{
      [](const at::Tensor& x, const at::Tensor& w) {
        const at::Tensor y = at::mm(x, w);
        y.variable_data().add_(1.0);
        return at::sin(y);
      },
  };
  CHECK_THROWS_WITH(given.plan(), Contains("shares the data of a result of the region"));
}

// --- Writes that no version tells -----------------------------------------------------------

const Meddle kWriteThroughData = [](const Network& network, const at::Tensor&) {
  network.parameters[0].variable_data().mul_(2);
};

TEST_CASE("a write through .data is seen by its content") {
  const Case given{two_products, kWriteThroughData};
  check_refused(given, "through .data or a raw pointer", OutsideCheck::kHashes);
  const Plan plan = given.plan();
  for (const Schedule schedule : kSchedules) {
    CHECK_NOTHROW(given.run_engine(Checkpoint(plan, schedule)));  // documented: not seen
  }
}

TEST_CASE("a write through a raw pointer is seen by its content") {
  const Case given{two_products, [](const Network& network, const at::Tensor&) {
                     network.parameters[0].mutable_data_ptr<float>()[5] += 1.0F;
                   }};
  check_refused(given, "through .data or a raw pointer", OutsideCheck::kHashes);
}

TEST_CASE("hashes refuse nothing that did not change") {
  for (const NamedNetwork& network : hazard_networks()) {
    const Outcome plain = run_plain(network);
    const Plan plan = plan_of_blocks(trace_of(network), [](int, int) { return false; });
    for (const Schedule schedule : kSchedules) {
      CAPTURE(network.name, to_string(schedule));
      CHECK(first_difference(plain, run_engine(network, plan, schedule, OutsideCheck::kHashes)) ==
            "");
    }
  }
}

// What LibTorch's own ops do with a list of their own (side_writes.h), an op of another library may
// do unknown to the engine.
at::Tensor counts_its_calls(const at::Tensor& x, const at::Tensor& calls) {
  const_cast<at::Tensor&>(calls).mutable_data_ptr<float>()[0] += 1.0F;
  return at::sin(x);
}

TORCH_LIBRARY(rematch_outside_test, library) {
  library.def("counts_its_calls(Tensor x, Tensor calls) -> Tensor");
}
TORCH_LIBRARY_IMPL(rematch_outside_test, CPU, library) {
  library.impl("counts_its_calls", &counts_its_calls);
}

TEST_CASE("an op that writes to what its schema does not mark is seen by its content") {
  const at::Tensor calls = at::zeros({1});
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("rematch_outside_test::counts_its_calls", "")
                             .typed<at::Tensor(const at::Tensor&, const at::Tensor&)>();
  const Case given{
      [calls](const at::Tensor& x, const at::Tensor& w) {
        return x + op.call(at::mm(x, w).detach(), calls);
      },
  };
  const Plan plan = given.plan();
  const Checkpoint checkpoint(plan, Schedule::kOnDemand, OutsideCheck::kHashes);
  CHECK_THROWS_WITH(given.run_engine(checkpoint),
                    Contains("rematch_outside_test::counts_its_calls wrote to its argument calls"));
}

// --- Changes that no recomputed op reads ----------------------------------------------------

// A table that every run finds as it was, and a tensor that outlives the region.
struct Table {
  at::Tensor ones = at::ones({4, 4});
  std::shared_ptr<at::Tensor> stash = std::make_shared<at::Tensor>();

  std::function<void()> reset() const {
    return [table = ones] { at::Tensor(table).fill_(1); };
  }
  Meddle doubled() const {
    return [table = ones](const Network&, const at::Tensor&) { at::Tensor(table).mul_(2); };
  }
};

// x.view and x.detach read x's sizes; whole_region runs them, and nobody reads what they give.
TEST_CASE("an outside tensor that is written to after forward, and of which only views are made") {
  const Table table;
  check_equal({[table](const at::Tensor& x, const at::Tensor& w) {
                 *table.stash = table.ones.view({2, 8});
                 return at::sin(at::mm(x, w));
               },
               table.doubled(), table.reset()});
}

TEST_CASE("a region input's detach() that is written to after forward") {
  const Table table;
  check_equal({[table](const at::Tensor& x, const at::Tensor& w) {
                 *table.stash = x.detach();
                 return at::sin(at::sin(w));
               },
               [table](const Network&, const at::Tensor&) { table.stash->mul_(2); }});
}

TEST_CASE("a likeness of an outside tensor that is written to after forward") {
  const Table table;
  check_equal({[table](const at::Tensor& x, const at::Tensor& w) {
                 const at::Tensor alike = at::rand_like(table.ones) + at::zeros_like(table.ones);
                 return at::sin(at::mm(x, w) + alike);
               },
               table.doubled(), table.reset()});
}

// whole_region runs it all the same.
TEST_CASE("an op that reads what was changed, and whose result backward does not need") {
  const Table table;
  check_equal({[table](const at::Tensor& x, const at::Tensor& w) {
                 *table.stash = at::cos(table.ones + x.detach()).view({2, 8}).relu_();
                 return at::sin(at::mm(x, w));
               },
               table.doubled(), table.reset()});
}

TEST_CASE("an outside tensor that is written to after forward, and read through a view") {
  const Table table;
  check_refused({[table](const at::Tensor& x, const at::Tensor& w) {
                   return at::sin(at::mm(x, w) + table.ones.t());
                 },
                 table.doubled(), table.reset()},
                "changed in place");
}

TEST_CASE("an outside tensor that is written to in the region after it was read through a view") {
  const Table table;
  check_refused({[table](const at::Tensor& x, const at::Tensor& w) {
                   const at::Tensor y = at::sin(at::mm(x, w) + table.ones.t());
                   at::Tensor(table.ones).mul_(2);
                   return at::cos(y);
                 },
                 [](const Network&, const at::Tensor&) {}, table.reset()},
                "changed in place");
}

TEST_CASE("a view of an outside tensor that is read after both were written to") {
  const Table table;
  check_equal({[table](const at::Tensor& x, const at::Tensor& w) {
                 at::Tensor view = table.ones.t();
                 view.mul_(2);
                 at::Tensor(table.ones).add_(1);
                 return at::cos(at::mm(x, w) + view);
               },
               [](const Network&, const at::Tensor&) {}, table.reset()});
}

TEST_CASE("a saved tensor that was changed is an error, read or not") {
  check_refused(
      {[](const at::Tensor& x, const at::Tensor& w) { return at::mm(x, w).sin(); },
       [](const Network& network, const at::Tensor&) { network.parameters[0].detach().mul_(2); }},
      "changed in place");
}

TEST_CASE("a buffer that takes part in autograd from its write on") {
  const auto buffer = std::make_shared<at::Tensor>();
  const Case given{[buffer](const at::Tensor& x, const at::Tensor& w) {
                     buffer->copy_(at::mm(x, w));
                     return at::sin(*buffer) + at::mm(*buffer, w);
                   },
                   [](const Network&, const at::Tensor&) {},
                   [buffer] {
                     *buffer = at::zeros({4, 4});
                   }};
  check_equal(given);
  // Without backward its graph leads to the region, which must not hold it in turn.
  const Checkpoint checkpoint(given.plan(), Schedule::kOnDemand);
  {
    Recording recording(checkpoint);
    forward_with_scopes(given.make());
  }
  given.hidden->reset();
  const c10::weak_intrusive_ptr<c10::TensorImpl> last(buffer->getIntrusivePtr());
  buffer->reset();
  CHECK(last.expired());
}

}  // namespace
}  // namespace rematch::testing
