// A network of two layers, the second of which is recomputed. Between forward and backward, tests
// change tensors that come from outside the second layer.
#pragma once

#include <ATen/Functions.h>
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/networks.h"
#include "tests/support/schedules.h"
#include "tests/support/strict.h"

namespace rematch::testing {

using Layer = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& w)>;
// Called between forward and backward, with the input of the second layer.
using Meddle = std::function<void(const Network& network, const at::Tensor& hidden)>;

inline at::Tensor no_grad_copy(const at::Tensor& tensor) { return tensor.detach().clone(); }

// Sets x.data = data for tensors of the same sizes, as `x.data = y` does in Python.
inline void exchange(const at::Tensor& tensor, const at::Tensor& data) { tensor.set_data(data); }

struct Case {
  Layer layer;
  Meddle meddle = [](const Network&, const at::Tensor&) {};
  std::function<void()> prepare = [] {};  // called before every run

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

inline void check_refused(const Case& given, const std::string& word,
                          OutsideCheck check = OutsideCheck::kVersions) {
  const Plan plan = given.plan();
  for (const Schedule schedule : kSchedules) {
    CAPTURE(to_string(schedule));
    const Checkpoint checkpoint = strict(plan, schedule, check);
    CHECK_THROWS_WITH(given.run_engine(checkpoint),
                      Catch::Contains("region blocks.1") && Catch::Contains(word));
    CHECK_THROWS_AS(given.run_engine(checkpoint), Refused);
  }
}

inline void check_equal(const Case& given, OutsideCheck check = OutsideCheck::kVersions) {
  const Plan plan = given.plan();
  const Outcome plain = given.run_plain();
  for (const Schedule schedule : kSchedules) {
    CAPTURE(to_string(schedule));
    const Checkpoint checkpoint = strict(plan, schedule, check);
    CHECK(first_difference(plain, given.run_engine(checkpoint)) == "");
  }
}

inline at::Tensor two_products(const at::Tensor& x, const at::Tensor& w) {
  return at::mm(at::sin(at::mm(x, w)), w);
}

}  // namespace rematch::testing
