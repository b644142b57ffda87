#include "tests/support/interleavings.h"

#include <ucontext.h>

#include <cstdint>
#include <exception>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace rematch::testing {
namespace {

constexpr std::size_t kStackBytes = std::size_t{256} << 10;

// makecontext can pass only ints, so the pointer is passed as two halves.
void enter(std::uint32_t high, std::uint32_t low) {
  auto* start =
      reinterpret_cast<std::function<void()>*>((std::uintptr_t{high} << 32U) | std::uintptr_t{low});
  (*start)();
}

}  // namespace

struct Interleavings::State {
  struct Program {
    ucontext_t context{};
    std::vector<char> stack = std::vector<char>(kStackBytes);
    std::function<void()> body;
    std::function<void()> start;
    bool has_ended = false;
    bool is_killed = false;
    std::exception_ptr error;
  };
  // A choice of the scheduler: run the next step of a program, or end the program before this step.
  struct Choice {
    std::size_t program = 0;
    bool kill = false;
  };
  struct Decision {
    std::size_t chosen = 0;
    std::size_t num_choices = 0;
  };

  Bounds bounds;
  std::vector<Decision> decisions;
  std::size_t depth = 0;
  std::vector<std::unique_ptr<Program>> programs;
  std::size_t num_programs = 0;
  std::size_t current = 0;
  int num_switches = 0;
  int num_kills = 0;
  ucontext_t scheduler{};
  void* scheduler_fake_stack = nullptr;
  const void* scheduler_stack = nullptr;
  std::size_t scheduler_stack_bytes = 0;

  std::vector<Choice> choices() const {
    std::vector<Choice> list;
    const bool current_can_go_on = current < num_programs && !programs[current]->has_ended;
    if (current_can_go_on) list.push_back({current, false});
    for (std::size_t program = 0; program < num_programs; ++program) {
      const bool is_switch = current_can_go_on;
      if (program == current || programs[program]->has_ended) continue;
      if (!is_switch || num_switches < bounds.most_switches) list.push_back({program, false});
    }
    if (num_kills < bounds.most_kills && current_can_go_on) list.push_back({current, true});
    return list;
  }

  Choice choose(const std::vector<Choice>& list) {
    if (depth == decisions.size()) decisions.push_back({0, list.size()});
    return list[decisions[depth++].chosen];
  }

  // Advances to the next order. Returns false after the last order.
  bool advance() {
    while (!decisions.empty() && decisions.back().chosen + 1 == decisions.back().num_choices) {
      decisions.pop_back();
    }
    if (decisions.empty()) return false;
    ++decisions.back().chosen;
    return true;
  }

  void prepare(Program& program) {
    program.has_ended = program.is_killed = false;
    program.error = nullptr;
    program.start = [this, &program] { run_body(program); };
    getcontext(&program.context);
    program.context.uc_stack.ss_sp = program.stack.data();
    program.context.uc_stack.ss_size = program.stack.size();
    program.context.uc_link = nullptr;
    const auto address = reinterpret_cast<std::uintptr_t>(&program.start);
    makecontext(&program.context, reinterpret_cast<void (*)()>(&enter), 2,
                static_cast<std::uint32_t>(address >> 32U), static_cast<std::uint32_t>(address));
  }

  void resume(Program& program) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&scheduler_fake_stack, program.stack.data(),
                                   program.stack.size());
#endif
    swapcontext(&scheduler, &program.context);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(scheduler_fake_stack, nullptr, nullptr);
#endif
  }

  void leave(Program& program, [[maybe_unused]] bool for_good) {
#if defined(__SANITIZE_ADDRESS__)
    void* fake_stack = nullptr;
    __sanitizer_start_switch_fiber(for_good ? nullptr : &fake_stack, scheduler_stack,
                                   scheduler_stack_bytes);
#endif
    swapcontext(&program.context, &scheduler);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake_stack, &scheduler_stack, &scheduler_stack_bytes);
#endif
  }

  void run_body(Program& program) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack, &scheduler_stack_bytes);
#endif
    try {
      program.body();
    } catch (const Ended&) {
      program.is_killed = true;
    } catch (...) {
      program.error = std::current_exception();
    }
    program.has_ended = true;
    leave(program, /*for_good=*/true);
  }
};

Interleavings::Interleavings(Bounds bounds) : state_(std::make_unique<State>()) {
  state_->bounds = bounds;
}
Interleavings::~Interleavings() = default;

std::size_t Interleavings::explore(const std::function<void()>& run) {
  std::size_t num_orders = 0;
  do {
    state_->depth = 0;
    run();
    ++num_orders;
  } while (state_->advance());
  return num_orders;
}

void Interleavings::run_together(const std::vector<std::function<void()>>& programs) {
  State& state = *state_;
  state.num_programs = programs.size();
  state.current = programs.size();
  state.num_switches = state.num_kills = 0;
  while (state.programs.size() < programs.size()) {
    state.programs.push_back(std::make_unique<State::Program>());
  }
  for (std::size_t index = 0; index < programs.size(); ++index) {
    state.programs[index]->body = programs[index];
    state.prepare(*state.programs[index]);
  }
  for (auto list = state.choices(); !list.empty(); list = state.choices()) {
    const State::Choice choice = state.choose(list);
    if (state.current < programs.size() && choice.program != state.current &&
        !state.programs[state.current]->has_ended) {
      ++state.num_switches;
    }
    state.current = choice.program;
    if (choice.kill) {
      ++state.num_kills;
      state.programs[choice.program]->is_killed = true;
    }
    state.resume(*state.programs[choice.program]);
  }
  for (std::size_t index = 0; index < programs.size(); ++index) {
    if (state.programs[index]->error) std::rethrow_exception(state.programs[index]->error);
  }
}

void Interleavings::step() {
  State& state = *state_;
  State::Program& program = *state.programs[state.current];
  if (program.is_killed) return;  // the program was ended, and its stack is unwinding
  state.leave(program, /*for_good=*/false);
  if (program.is_killed) throw Ended{};
}

std::size_t Interleavings::current() const { return state_->current; }

}  // namespace rematch::testing
