// Tests ops that throw. Whichever op throws, memory must return to the baseline, generators and
// buffers must stay as forward left them, and the next step must be correct.
#include <c10/util/Exception.h>

#include <algorithm>
#include <stdexcept>

#include "harness/engine/interception.h"
#include "tests/support/catch.h"
#include "tests/support/hazards/trial.h"
#include "tests/support/networks.h"
#include "tests/support/schedules.h"
#include "tests/support/seeds.h"
#include "tests/support/step_meter.h"
#include "tests/support/strict.h"

namespace rematch::testing::hazards {
namespace {

// Deep tests let every op of every hazard fail once. Other tests do this only for one of kOneIn
// hazards, and let about kFew ops fail in each remaining hazard.
constexpr std::size_t kOneIn = 20;
constexpr int kFew = 2;

struct OpFailed : std::runtime_error {
  OpFailed() : std::runtime_error("an op failed") {}
};

// Throws before op number `number`, counted over forward, recompute and backward.
class FailsAt final : public OpObserver {
 public:
  explicit FailsAt(int number) : number_(number), guard_(this) {}
  void about_to_run(const c10::OperatorHandle&, Phase phase, const torch::jit::Stack&) override {
    phase_ = phase;
    if (count_++ == number_) throw OpFailed();
  }
  void executed(const c10::OperatorHandle&, Phase, const torch::jit::Stack&) override {}
  int count() const { return count_; }
  Phase phase() const { return phase_; }

 private:
  int number_;
  int count_ = 0;
  Phase phase_ = Phase::kForward;
  OpObserverGuard guard_;
};

// A hazard, its checkpoint, and the expected results of a step.
struct Subject {
  const Hazard& hazard;
  const Checkpoint& checkpoint;
  const Facts& plain;  // the results of a step without checkpointing
  bool backward_changes_state;
};

// Runs a step in which op number `number` fails. Returns an empty string if the caller gets the
// error and the state is as forward left it.
std::string fail_at(const Subject& subject, int number) {
  Model model = model_of(subject.hazard);
  Facts facts;
  bool failed = false;
  Phase phase = Phase::kForward;
  {
    FailsAt fails(number);
    try {
      train_one_step(model, &subject.checkpoint, Backward::kOnce, "", facts);
    } catch (const OpFailed&) {
      failed = true;
    } catch (const std::exception& error) {
      failed = std::string(error.what()).find("an op failed") != std::string::npos;
    }
    phase = fails.phase();
  }
  if (!failed) return "the error did not reach the caller";
  if (phase == Phase::kForward || subject.backward_changes_state) return "";
  Facts state;
  note_state(model, "after forward, ", state);
  return difference_of_state(subject.plain, state);
}

int num_ops(const Subject& subject) {
  Model model = model_of(subject.hazard);
  Facts facts;
  FailsAt never(-1);
  train_one_step(model, &subject.checkpoint, Backward::kOnce, "", facts);
  return never.count();
}

void check_failures(const Subject& subject, int stride, int first) {
  const int ops = num_ops(subject);
  // A failed backward leaves objects in autograd's queue until the thread's next backward. So a
  // normal step runs before bytes are compared.
  const auto next_step = [&] {
    return train(subject.hazard, &subject.checkpoint, Backward::kOnce, 1);
  };
  next_step();
  const std::int64_t baseline = cpu_bytes();
  for (int number = first % stride; number < ops; number += stride) {
    CAPTURE(number);
    CHECK(fail_at(subject, number) == "");
    CHECK(first_difference(subject.plain, next_step()) == "");
    CHECK(cpu_bytes() == baseline);
  }
}

TEST_CASE("an op that throws leaves no state behind, and the next step is correct") {
  prepare_process();
  std::size_t index = 0;
  for (const Hazard& hazard : all_hazards()) {
    ++index;
    if (!hazard.refusal.empty()) continue;
    const Plan plan = plan_of_blocks(trace_of(hazard), [](int, int op) { return op % 2 == 0; });
    const Facts plain = train(hazard, nullptr, Backward::kOnce, 1);
    const bool every_op = is_deep() || index % kOneIn == 0;
    for (const Schedule schedule : kSchedules) {
      CAPTURE(hazard.name, to_string(schedule));
      const Checkpoint checkpoint = strict(plan, schedule);
      const Subject subject{hazard, checkpoint, plain, backward_changes_state(plain)};
      const int stride = every_op ? 1 : std::max(1, num_ops(subject) / kFew);
      check_failures(subject, stride, static_cast<int>(index));
    }
  }
}

}  // namespace
}  // namespace rematch::testing::hazards
