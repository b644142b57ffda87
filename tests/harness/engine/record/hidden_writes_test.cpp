// Tests writes through raw pointers into results of a region. The engine detects such a write in
// two ways: a version counter changed although no op ran, or the program declared that it took a
// pointer.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/library.h>

#include <numeric>
#include <string>
#include <vector>

#include "harness/engine/record/opaque_call.h"
#include "harness/engine/record/pointer_taken.h"
#include "tests/support/catch.h"
#include "tests/support/outside_case.h"

namespace rematch::testing {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// Scales the tensor in place through a pointer. The dispatcher does not see this write.
void scale_by_pointer(const at::Tensor& y, float factor) {
  const at::Tensor flat = y.detach();
  float* const data = static_cast<float*>(flat.storage().mutable_data()) + flat.storage_offset();
  for (std::int64_t i = 0; i < flat.numel(); ++i) data[i] *= factor;
}

// Scales through a pointer and then bumps the version counter, as PyTorch's documentation demands
// from every kernel that writes in place.
at::Tensor scaled(const at::Tensor& y, float factor = 0.5F) {
  scale_by_pointer(y, factor);
  torch::autograd::impl::bump_version(y);
  return y;
}

struct ScalesByPointer : Function<ScalesByPointer> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x) {
    scale_by_pointer(x, 0.5F);
    context->mark_dirty({x});
    return x;
  }
  static variable_list backward(AutogradContext*, variable_list gradients) {
    return {gradients[0] * 0.5};
  }
};

// Scales its input and saves it. When autograd packs the saved tensor, the tensor has a new
// version, although no other op has run.
struct SavesWhatItScaled : Function<SavesWhatItScaled> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x) {
    scale_by_pointer(x, 0.5F);
    context->mark_dirty({x});
    context->save_for_backward({x});
    return x;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {gradients[0] * 0.5 * context->get_saved_variables()[0].cos()};
  }
};

struct NamedLayer {
  const char* name;
  Layer layer;
};

at::Tensor no_grad_product(const at::Tensor& x, const at::Tensor& w) {
  const at::NoGradGuard no_grad;
  return at::mm(x, w);
}

using T = const at::Tensor&;

const std::vector<NamedLayer>& layers_with_hidden_writes() {
  static const std::vector<NamedLayer> all = {
      {"a tensor read after the hidden write",
       [](T x, T w) { return at::sin(scaled(at::mm(x, w).clone())); }},
      {"a tensor read before and after the hidden write",
       [](T x, T w) {
         const at::Tensor y = at::mm(x, w);
         const at::Tensor before = (y + w).sin();
         return before * at::sin(scaled(y)) * y;
       }},
      {"a view read after the hidden write",
       [](T x, T w) {
         const at::Tensor y = at::mm(x, w);
         scaled(y);
         return at::sin(y.t()) * y.narrow(0, 1, 1);
       }},
      {"a view made before the hidden write",
       [](T x, T w) {
         const at::Tensor y = at::mm(x, w);
         const at::Tensor turned = y.t();
         const at::Tensor row = y.narrow(0, 1, 1);
         const at::Tensor before = (row * 2.0).sin();
         scaled(y);
         return at::sin(turned) * row.cos() * before;
       }},
      {"a hidden write through a view",
       [](T x, T w) {
         const at::Tensor y = at::mm(x, w);
         const at::Tensor before = (y + w).sin();
         scaled(y.narrow(0, 1, 2));
         return at::sin(y) * before;
       }},
      {"a hidden write through a view that was made after a write",
       [](T x, T w) {
         const at::Tensor y = at::mm(x, w) * 2.0;
         y.add_(w);
         scaled(y.narrow(0, 1, 2), 0.25F);
         return at::sin(y) * at::cos(y.t());
       }},
      {"two hidden writes",
       [](T x, T w) {
         const at::Tensor y = at::mm(x, w);
         const at::Tensor before = (y + w).sin();
         const at::Tensor between = (scaled(y) + w).sin();
         return before * between * at::sin(scaled(y, 3.0F));
       }},
      {"a hidden write before an op writes in place",
       [](T x, T w) {
         const at::Tensor y = at::mm(x, w);
         const at::Tensor between = (scaled(y) + w).sin();
         y.mul_(w);
         return between * at::sin(y);
       }},
      {"a hidden write after an in-place op",
       [](T x, T w) {
         const at::Tensor y = at::mm(x, w);
         y.mul_(2.0);
         const at::Tensor between = (y + w).sin();
         scaled(y);
         return between * at::sin(y) * at::cos(y.t());
       }},
      {"a hidden write by mark_dirty right after an in-place op",
       [](T x, T w) {
         const at::Tensor y = at::mm(x, w) * 1.0;
         y.mul_(2.0);
         return at::sin(SavesWhatItScaled::apply(y) + w);
       }},
      {"a hidden write between two in-place ops",
       [](T x, T w) {
         const at::Tensor y = at::mm(x, w);
         y.mul_(2.0);
         scaled(y);
         y.add_(w);
         return at::sin(y);
       }},
      {"mark_dirty", [](T x, T w) { return at::sin(ScalesByPointer::apply(at::mm(x, w) * 1.0)); }},
      {"mark_dirty on a tensor that is saved at once",
       [](T x, T w) { return at::sin(SavesWhatItScaled::apply(at::mm(x, w) * 1.0) + w); }},
      {"mark_dirty of a view",
       [](T x, T w) {
         const at::Tensor y = at::mm(x, w) * 1.0;
         const at::Tensor before = (y + w).sin();
         ScalesByPointer::apply(y.narrow(1, 0, 4));
         return before * at::sin(y) * y.cos();
       }},
      {"a hidden write into a tensor without a gradient",
       [](T x, T w) {
         const at::Tensor y = no_grad_product(x, w);
         const at::Tensor before = (y + 1.0).sin();
         scaled(y);
         return at::mm(x, w) * y * before * at::cos(y);
       }},
      {"a hidden write into a detached tensor",
       [](T x, T w) {
         const at::Tensor y = at::mm(x, w).detach();
         scaled(y);
         return at::mm(x, w) * y * at::cos(y);
       }},
      {"a hidden write into a detached tensor that was read",
       [](T x, T w) {
         const at::Tensor y = at::mm(x, w).detach();
         const at::Tensor before = (y + w).sin();
         scaled(y);
         return at::mm(x, w) * y * at::cos(y) * before;
       }},
      {"a hidden write into a tensor after its detach()",
       [](T x, T w) {
         const at::Tensor y = at::mm(x, w);
         const at::Tensor detached = y.detach();
         const at::Tensor before = (detached + w).sin();
         scaled(y);
         return at::sin(y) * detached * before;
       }},
      {"a hidden write into a chunk of unsafe_split, which has its own version",
       [](T x, T w) {
         const std::vector<at::Tensor> halves = at::unsafe_split(at::mm(x, w), 2, 0);
         const at::Tensor before = (halves[0] + halves[1]).sin();
         scaled(halves[1]);
         return at::cat({at::sin(halves[0]), halves[1].cos()}) * at::cat({before, before});
       }},
      {"a hidden write after an in-place op on another chunk",
       [](T x, T w) {
         const std::vector<at::Tensor> halves = at::unsafe_split(at::mm(x, w), 2, 0);
         halves[0].mul_(0.5);
         scaled(halves[1]);
         return at::sin(at::cat({halves[0], halves[1]}));
       }},
      {"a hidden write into a constant",
       [](T x, T w) {
         const at::Tensor ones = at::empty({4, 4});
         ones.fill_(1.0);
         scaled(ones);
         return at::sin(at::mm(x, w) * ones);
       }},
      {"a hidden write into the result of empty() that bumps the version",
       [](T x, T w) {
         const at::Tensor ones = at::empty({4, 4});
         std::iota(ones.mutable_data_ptr<float>(), ones.mutable_data_ptr<float>() + 16, 1.0F);
         torch::autograd::impl::bump_version(ones);
         return at::sin(at::mm(x, w) * ones);
       }},
      {"a hidden write into a part of a larger result",
       [](T x, T w) {
         const at::Tensor wide = at::mm(x, w).repeat({1, 3});
         const std::vector<at::Tensor> parts = {wide.narrow(1, 0, 4), wide.narrow(1, 4, 4),
                                                wide.narrow(1, 8, 4)};
         const at::Tensor q = parts[0].narrow(0, 0, 1);
         const at::Tensor before = (parts[2] + w).sin();
         scaled(q);
         return at::sin(parts[0]) * parts[1].cos() * before * parts[2];
       }},
  };
  return all;
}

std::string difference(const Case& given, const Outcome& plain, const Plan& plan,
                       Schedule schedule) {
  try {
    return first_difference(plain, given.run_engine(Checkpoint(plan, schedule)));
  } catch (const std::exception& error) {
    return error.what();
  }
}

void check_every_plan(const Layer& layer) {
  const Case given{layer};
  const Outcome plain = given.run_plain();
  const Trace trace = trace_of(given.named());
  for (const int every : {0, 1, 2, 3}) {
    const Plan plan = plan_of_blocks(
        trace, [every](int, int op) { return every == 1 || (every > 1 && op % every == 0); });
    given.hidden->reset();
    for (const Schedule schedule : kSchedules) {
      CAPTURE(every, to_string(schedule));
      CHECK(difference(given, plain, plan, schedule) == "");
    }
  }
}

TEST_CASE("a version change without an op reveals a write") {
  for (const NamedLayer& each : layers_with_hidden_writes()) {
    CAPTURE(each.name);
    check_every_plan(each.layer);
  }
}

// Makes a tensor that recompute cannot make again, because it is filled through a pointer.
at::Tensor filled(float first) {
  const at::Tensor tensor = at::empty({4, 4});
  float* const data = tensor.mutable_data_ptr<float>();
  std::iota(data, data + 16, first);
  return tensor;
}

// Scales in place through a pointer without bumping the version, but declares beforehand that it
// takes the pointer.
at::Tensor scaled_as_told(const at::Tensor& y, float factor, PointerUse use = PointerUse::kOnce) {
  note_pointer_taken(y, use);
  scale_by_pointer(y, factor);
  return y;
}

const std::vector<NamedLayer>& layers_with_pointers() {
  static const std::vector<NamedLayer> all = {
      {"a pointer for one kernel",
       [](T x, T w) {
         const at::Tensor y = at::mm(x, w);
         const at::Tensor before = (y + w).sin();
         return before * at::sin(scaled_as_told(y, 0.5F)) * at::cos(y.t());
       }},
      {"a pointer of a view",
       [](T x, T w) {
         const at::Tensor y = at::mm(x, w);
         const at::Tensor row = y.narrow(0, 1, 1);
         const at::Tensor before = (row + w).sin();
         scaled_as_told(row, 0.5F);
         return before * y.cos() * row;
       }},
      {"a pointer that is taken twice, for two kernels",
       [](T x, T w) {
         const at::Tensor y = at::mm(x, w);
         const at::Tensor before = (scaled_as_told(y, 0.5F) + w).sin();
         return before * (scaled_as_told(y, 3.0F) * 1.5).cos();
       }},
      {"a pointer that the program keeps and writes to again",
       [](T x, T w) {
         const at::Tensor y = at::mm(x, w);
         const at::Tensor before = (scaled_as_told(y, 0.5F, PointerUse::kLasting) + w).sin();
         scale_by_pointer(y, 3.0F);
         const at::Tensor between = (y + w).cos();
         scale_by_pointer(y, 0.25F);
         return before * between * y.sin();
       }},
      {"a pointer that is kept across an in-place op",
       [](T x, T w) {
         const at::Tensor y = at::mm(x, w);
         scaled_as_told(y, 0.5F, PointerUse::kLasting);
         y.mul_(w);
         const at::Tensor between = (y + w).cos();
         scale_by_pointer(y, 0.25F);
         return between * y.sin();
       }},
      {"a pointer through which nothing is written",
       [](T x, T w) {
         const at::Tensor y = at::mm(x, w);
         note_pointer_taken(y, PointerUse::kLasting);
         return at::sin(y) * y.cos();
       }},
      {"a pointer to the result of empty()",
       [](T x, T w) {
         const at::Tensor y = at::mm(x, w);
         const at::Tensor numbers = at::empty({4, 4});
         note_pointer_taken(numbers, PointerUse::kOnce);
         float* const data = numbers.mutable_data_ptr<float>();
         std::iota(data, data + 16, 1.0F);
         const at::Tensor before = (y + numbers).sin();
         return before * at::cos(y * scaled_as_told(numbers, 0.5F));
       }},
  };
  return all;
}

TEST_CASE("a result whose pointer was taken keeps what is written through the pointer") {
  for (const NamedLayer& each : layers_with_pointers()) {
    CAPTURE(each.name);
    check_every_plan(each.layer);
  }
}

TEST_CASE("taking a pointer outside of regions has no effect") {
  CHECK_NOTHROW(note_pointer_taken(at::ones({2}), PointerUse::kLasting));
  check_every_plan([](T x, T w) {
    note_pointer_taken(x, PointerUse::kLasting);
    note_pointer_taken(w, PointerUse::kOnce);
    return at::sin(at::mm(x, w));
  });
}

// Runs `call` so that the engine records all its kernels as one op. These kernels may write to
// `overwritten`.
template <class Call>
std::vector<at::Tensor> run_opaquely(const std::vector<at::Tensor>& arguments,
                                     const std::vector<at::Tensor>& overwritten, Call call) {
  const auto open = OpaqueCall::begin(overwritten);
  std::vector<at::Tensor> results = call();
  if (open != nullptr) open->end("call", arguments, results);
  return results;
}

const std::vector<NamedLayer>& layers_with_opaque_calls() {
  static const std::vector<NamedLayer> all = {
      {"an opaque call that returns a new tensor",
       [](T x, T w) {
         const at::Tensor y = at::mm(x, w);
         const auto made =
             run_opaquely({y}, {}, [&] { return std::vector<at::Tensor>{y.sin() * y.exp()}; });
         return made[0].cos() * y;
       }},
      {"an opaque call that scales its argument",
       [](T x, T w) {
         const at::Tensor y = at::mm(x, w);
         const at::Tensor before = (y + w).sin();
         const auto made = run_opaquely({y}, {y}, [&] {
           scale_by_pointer(y, 0.5F);
           return std::vector<at::Tensor>{y.sin()};
         });
         return before * made[0].cos() * at::cos(y.t());
       }},
      {"an opaque call that scales its argument twice",
       [](T x, T w) {
         const at::Tensor y =
             run_opaquely({x}, {}, [&] { return std::vector<at::Tensor>{at::mm(x, w)}; })[0];
         const at::Tensor before = (y + w).sin();
         for (const float factor : {0.5F, 3.0F}) {
           run_opaquely({y}, {y}, [&] {
             scale_by_pointer(y, factor);
             return std::vector<at::Tensor>{};
           });
         }
         return before * y.cos();
       }},
      {"an opaque call that returns views of its argument and of its result",
       [](T x, T w) {
         const at::Tensor y = at::mm(x, w);
         const auto made = run_opaquely({y}, {}, [&] {
           const at::Tensor z = y.sin();
           return std::vector<at::Tensor>{z, z.narrow(0, 0, 2), y.t(), y};
         });
         return made[0].cos() * made[1].repeat({2, 1}).exp() * made[2].sin() * made[3];
       }},
      {"an opaque call whose result is written to in place",
       [](T x, T w) {
         const at::Tensor y = at::mm(x, w);
         const at::Tensor z =
             run_opaquely({y}, {}, [&] { return std::vector<at::Tensor>{y.sin() + 1}; })[0];
         const at::Tensor before = (z * 1.5).cos();
         z.mul_(w);
         return before * z;
       }},
  };
  return all;
}

TEST_CASE("an opaque call counts as one op, and its results are kept") {
  for (const NamedLayer& each : layers_with_opaque_calls()) {
    CAPTURE(each.name);
    check_every_plan(each.layer);
  }
}

TEST_CASE("an opaque call that returns a view of an unknown tensor is refused") {
  const Case given{[](T x, T w) {
    const at::Tensor y = at::mm(x, w);
    run_opaquely({}, {}, [&] { return std::vector<at::Tensor>{y.t()}; });
    return at::sin(y);
  }};
  const Plan plan = plan_of_blocks(trace_of(given.named()), [](int, int) { return false; });
  CHECK_THROWS_AS(given.run_engine(Checkpoint(plan, Schedule::kOnDemand)), Refused);
  CHECK(OpaqueCall::begin({}) == nullptr);
}

// This op writes to `calls`, a tensor from outside the region. So the engine keeps the op's result
// and never repeats the op.
at::Tensor sine_and_count(const at::Tensor& x, at::Tensor& calls) {
  calls.add_(1.0);
  return at::sin(x);
}

TORCH_LIBRARY(rematch_hidden_writes_test, library) {
  library.def("sine_and_count(Tensor x, Tensor(a!) calls) -> Tensor");
}
TORCH_LIBRARY_IMPL(rematch_hidden_writes_test, CPU, library) {
  library.impl("sine_and_count", &sine_and_count);
}

// Layers that write to a constant. A constant is a value that recompute cannot make again, so the
// record keeps it.
const std::vector<NamedLayer>& layers_with_constants() {
  static const std::vector<NamedLayer> all = {
      {"a constant that is read and then written in place",
       [](T x, T w) {
         const at::Tensor y = at::mm(x, w);
         const at::Tensor numbers = filled(1.0F);
         const at::Tensor before = (y + numbers).sin();
         numbers.mul_(0.25);
         return before * at::cos(y * numbers);
       }},
      {"a constant that is written in place before it is read",
       [](T x, T w) { return at::cos(at::mm(x, w) * filled(1.0F).mul_(0.25)); }},
      {"a constant that is read, then filled",
       [](T x, T w) {
         const at::Tensor y = at::mm(x, w);
         const at::Tensor numbers = filled(1.0F);
         const at::Tensor before = (y + numbers).sin();
         numbers.fill_(0.25);
         return before * at::cos(y * numbers);
       }},
      {"a constant that is read and then partly written",
       [](T x, T w) {
         const at::Tensor y = at::mm(x, w);
         const at::Tensor numbers = filled(1.0F);
         const at::Tensor before = (y + numbers).sin();
         numbers.narrow(0, 1, 1).mul_(0.25);
         return before * at::cos(y * numbers) * numbers.t();
       }},
      {"a constant that ops fill in parts",
       [](T x, T w) {
         const at::Tensor numbers = at::empty({4, 4});
         numbers.narrow(0, 0, 2).fill_(0.5);
         numbers.narrow(0, 2, 2).copy_(x.detach().narrow(0, 0, 2));
         return at::cos(at::mm(x, w) * numbers);
       }},
      {"a constant of an op with a side effect",
       [](T x, T w) {
         static const auto op =
             c10::Dispatcher::singleton()
                 .findSchemaOrThrow("rematch_hidden_writes_test::sine_and_count", "")
                 .typed<at::Tensor(const at::Tensor&, at::Tensor&)>();
         static at::Tensor calls = at::zeros({1});
         const at::Tensor y = at::mm(x, w);
         const at::Tensor sine = op.call(y.detach(), calls);
         const at::Tensor before = (y + sine).sin();
         sine.mul_(0.25);
         return before * at::cos(y * sine);
       }},
  };
  return all;
}

TEST_CASE("a constant of a region may be written in place") {
  for (const NamedLayer& each : layers_with_constants()) {
    CAPTURE(each.name);
    check_every_plan(each.layer);
  }
}

TEST_CASE("a write to a constant after its region is refused") {
  static at::Tensor kept;
  check_refused({[](T x, T w) {
                   kept = filled(1.0F);
                   return at::cos((at::mm(x, w) + kept).sin());
                 },
                 [](const Network&, const at::Tensor&) { kept.mul_(2.0); }},
                "that the region keeps because it cannot be recomputed");
}

TEST_CASE("a second write through a pointer to a constant is refused") {
  const Case given{[](T x, T w) {
    const at::Tensor y = at::mm(x, w);
    const at::Tensor numbers = filled(1.0F);
    const at::Tensor before = (y + numbers).sin();
    return before * at::cos(y * scaled(numbers));
  }};
  const Plan plan = given.plan();
  for (const Schedule schedule : kSchedules) {
    CHECK_THROWS_WITH(given.run_engine(Checkpoint(plan, schedule)),
                      Catch::Contains("region blocks.1") && Catch::Contains("fill a new tensor"));
  }
}

TEST_CASE("an exception that the layer catches leaves the results bitwise equal") {
  const auto fails = [](T y) {
    try {
      return at::mm(y, at::ones({3, 3}));
    } catch (const c10::Error&) {
      return y * 0.5;
    }
  };
  check_every_plan([=](T x, T w) {
    const at::Tensor y = at::mm(x, w).sin();
    return fails(y).cos() * y;
  });
  check_every_plan([=](T x, T w) {
    at::Tensor y = at::mm(x, w).sin();
    try {
      y.mul_(0.5);
      y.mul_(at::ones({3, 3}));
    } catch (const c10::Error&) {
      y.add_(w);
    }
    return y.cos();
  });
}

}  // namespace
}  // namespace rematch::testing
