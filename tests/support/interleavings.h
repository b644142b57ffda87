// Runs a few sequential programs against each other in every order of their steps, and ends them at
// every step: stateless model checking, by depth-first search over the choices of a scheduler, each
// order run from its beginning. What the programs share must be made anew for every order.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace rematch::testing {

// Thrown out of step() in a program that the scheduler ends there, as a kill would. Not an
// exception of the standard library, so that no handler of the program takes it.
struct Ended {};

class Interleavings {
 public:
  struct Bounds {
    int most_switches = 1000;  // away from a program that could go on
    int most_kills = 0;
  };
  explicit Interleavings(Bounds bounds);
  ~Interleavings();
  Interleavings(const Interleavings&) = delete;
  Interleavings& operator=(const Interleavings&) = delete;

  // Calls `run` once for each order, which calls run_together() with what is to be interleaved.
  // Gives the number of orders.
  std::size_t explore(const std::function<void()>& run);
  void run_together(const std::vector<std::function<void()>>& programs);

  // By a program, before each of its steps that others can see.
  void step();
  // Which program is at its step.
  std::size_t current() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rematch::testing
