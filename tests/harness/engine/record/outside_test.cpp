// Tests tensors from outside a region that change between forward and backward. Some changes are
// refused; others do not affect recompute.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include "tests/support/catch.h"
#include "tests/support/outside_case.h"
#include "tests/support/strict.h"

namespace rematch::testing {
namespace {

using Catch::Contains;

TEST_CASE("a parameter that gets different data after forward is refused") {
  check_refused({two_products,
                 [](const Network& network, const at::Tensor&) {
                   exchange(network.parameters[0], at::ones({4, 4}));
                 }},
                "given different data");
}

// When the parameter's data is replaced a second time, malloc may reuse the address of the original
// data. So comparing addresses is not enough.
TEST_CASE("a parameter whose data is replaced twice after forward is refused") {
  check_refused({two_products,
                 [](const Network& network, const at::Tensor&) {
                   for (int i = 0; i < 2; ++i) {
                     exchange(network.parameters[0], no_grad_copy(network.parameters[0]).mul(2));
                   }
                 }},
                "given different data");
}

TEST_CASE("a parameter that moves within its storage after forward is refused") {
  const at::Tensor flat = at::ones({2, 4, 4});
  check_refused({[flat](const at::Tensor& x, const at::Tensor& w) {
                   exchange(w, flat[0]);
                   return two_products(x, w);
                 },
                 [flat](const Network& network, const at::Tensor&) {
                   exchange(network.parameters[0], flat[1]);
                 }},
                "given different data");
}

TEST_CASE("a parameter with different data is refused even if only a view of it is read") {
  check_refused({[](const at::Tensor& x, const at::Tensor& w) { return at::mm(x, w.t()).sin(); },
                 [](const Network& network, const at::Tensor&) {
                   exchange(network.parameters[0], at::ones({4, 4}));
                 }},
                "given different data");
}

TEST_CASE("a region input that gets different data after forward is refused") {
  check_refused({two_products,
                 [](const Network&, const at::Tensor& hidden) {
                   exchange(hidden, no_grad_copy(hidden).mul(2));
                 }},
                "given different data");
}

TEST_CASE("a parameter that gets its old data back is accepted") {
  check_equal({two_products, [](const Network& network, const at::Tensor&) {
                 const at::Tensor before = network.parameters[0].detach();
                 exchange(network.parameters[0], at::ones({4, 4}));
                 exchange(network.parameters[0], before);
               }});
}

TEST_CASE("a parameter that gets different data within the region is refused") {
  const Case given{
      [](const at::Tensor& x, const at::Tensor& w) {
        const at::Tensor y = at::sin(x + w);
        exchange(w, no_grad_copy(w).mul(2));
        return at::sin(y + w);
      },
  };
  const Plan plan = given.plan();
  for (const Schedule schedule : kSchedules) {
    CHECK_THROWS_WITH(given.run_engine(strict(plan, schedule)), Contains("given different data"));
  }
}

TEST_CASE("a result of the region may get different data within the region") {
  const Case given{
      [](const at::Tensor& x, const at::Tensor& w) {
        at::Tensor y = at::mm(x, w);
        exchange(y, no_grad_copy(y).mul(2));
        return at::mm(y, w);
      },
  };
  check_equal(given);
}

// Autograd saves the tensor object itself, so backward would read the new data.
TEST_CASE("a saved result of the region that gets different data is refused") {
  const Case given{
      [](const at::Tensor& x, const at::Tensor& w) {
        at::Tensor y = at::mm(x, w);
        const at::Tensor z = at::sin(y);
        exchange(y, no_grad_copy(y).mul(2));
        return at::mm(y, z);
      },
  };
  CHECK_THROWS_WITH(given.plan(), Contains("a result of aten::mm, was given different data"));
}

TEST_CASE("a write through .data into a result of the region is accepted") {
  const Case given{
      [](const at::Tensor& x, const at::Tensor& w) {
        const at::Tensor y = at::mm(x, w);
        y.variable_data().add_(1.0);
        return at::sin(y);
      },
  };
  check_equal(given);
}

// The view shares memory with the result that forward computed. Recompute computes a new result in
// other memory, which the write does not change.
TEST_CASE("a write through a view of .data into a result of the region is accepted") {
  const Case given{
      [](const at::Tensor& x, const at::Tensor& w) {
        const at::Tensor y = at::mm(x, w);
        const at::Tensor rows = y.variable_data().slice(0, 1, 3);
        const at::Tensor before = rows.sin() * y.cos().slice(0, 1, 3);
        rows.add_(1.0);
        return at::sin(y) * at::cat({before, before.cos()});
      },
  };
  check_equal(given);
}

// `ones` is a table that is reset before every run. `stash` keeps a tensor alive after the region
// has ended.
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

// Views read only the sizes of the table, not its content. whole_region repeats the views, but no
// op reads their results.
TEST_CASE("a write to an outside tensor is harmless if the region only made views of it") {
  const Table table;
  check_equal({[table](const at::Tensor& x, const at::Tensor& w) {
                 *table.stash = table.ones.view({2, 8});
                 return at::sin(at::mm(x, w));
               },
               table.doubled(), table.reset()});
}

TEST_CASE("a write to a detached region input is harmless if no op reads the input") {
  const Table table;
  check_equal({[table](const at::Tensor& x, const at::Tensor& w) {
                 *table.stash = x.detach();
                 return at::sin(at::sin(w));
               },
               [table](const Network&, const at::Tensor&) { table.stash->mul_(2); }});
}

TEST_CASE("a write to an outside tensor is harmless if only its shape was used") {
  const Table table;
  check_equal({[table](const at::Tensor& x, const at::Tensor& w) {
                 const at::Tensor alike = at::rand_like(table.ones) + at::zeros_like(table.ones);
                 return at::sin(at::mm(x, w) + alike);
               },
               table.doubled(), table.reset()});
}

// whole_region repeats the op, but no other op reads its result.
TEST_CASE("an op that reads changed data is harmless if backward does not need its result") {
  const Table table;
  check_equal({[table](const at::Tensor& x, const at::Tensor& w) {
                 *table.stash = at::cos(table.ones + x.detach()).view({2, 8}).relu_();
                 return at::sin(at::mm(x, w));
               },
               table.doubled(), table.reset()});
}

TEST_CASE("an outside tensor that is written after forward is refused if a view of it is read") {
  const Table table;
  check_refused({[table](const at::Tensor& x, const at::Tensor& w) {
                   return at::sin(at::mm(x, w) + table.ones.t());
                 },
                 table.doubled(), table.reset()},
                "changed in place");
}

TEST_CASE("a region may write to an outside tensor that it has read through a view") {
  const Table table;
  check_equal({[table](const at::Tensor& x, const at::Tensor& w) {
                 const at::Tensor y = at::sin(at::mm(x, w) + table.ones.t());
                 at::Tensor(table.ones).mul_(2);
                 return at::cos(y);
               },
               [](const Network&, const at::Tensor&) {}, table.reset()});
}

// Some views are used only before a write to the table, others also after it.
TEST_CASE("views of an outside tensor may be read before, between and after writes to the tensor") {
  const Table table;
  check_equal(
      {[table](const at::Tensor& x, const at::Tensor& w) {
         const at::Tensor rows = table.ones.slice(0, 1, 3);
         at::Tensor y = at::sin(at::mm(x, w) + table.ones.t().slice(1, 0, 1));
         y = at::cos(y * rows.repeat({2, 1}));
         rows.add_(1);
         y = at::sin(y + rows.select(1, 2).repeat({2}));
         at::Tensor(table.ones).mul_(2);
         return y * rows.repeat({2, 1}) + table.ones.view({2, 8}).slice(1, 0, 4).repeat({2, 1});
       },
       [](const Network&, const at::Tensor&) {}, table.reset()});
}

TEST_CASE("a view of an outside tensor may be read after writes to the view and the tensor") {
  const Table table;
  check_equal({[table](const at::Tensor& x, const at::Tensor& w) {
                 at::Tensor view = table.ones.t();
                 view.mul_(2);
                 at::Tensor(table.ones).add_(1);
                 return at::cos(at::mm(x, w) + view);
               },
               [](const Network&, const at::Tensor&) {}, table.reset()});
}

TEST_CASE("a changed saved tensor is an error, whether or not it is read") {
  check_refused(
      {[](const at::Tensor& x, const at::Tensor& w) { return at::mm(x, w).sin(); },
       [](const Network& network, const at::Tensor&) { network.parameters[0].detach().mul_(2); }},
      "changed in place");
}

TEST_CASE("a buffer may be used in autograd after a result is written into it") {
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
  // Backward never runs, so the buffer's graph keeps the region alive. If the region also kept the
  // buffer alive, neither would be freed.
  const Checkpoint checkpoint = strict(given.plan(), Schedule::kOnDemand);
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
