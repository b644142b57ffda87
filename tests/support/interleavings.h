// Runs a few sequential programs concurrently, in every possible order of their steps. Also ends
// each program at each of its steps. This is stateless model checking: a depth-first search over
// the choices of a scheduler. Each order runs from its beginning, so the state that the programs
// share must be created anew for each order.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace rematch::testing {

// Thrown out of step() in a program that the scheduler ends at that step, as a kill would. This
// exception does not derive from std::exception, so that no handler of the program catches it.
struct Ended {};

class Interleavings {
 public:
  struct Bounds {
    int most_switches = 1000;  // number of switches away from a program that could continue
    int most_kills = 0;
  };
  explicit Interleavings(Bounds bounds);
  ~Interleavings();
  Interleavings(const Interleavings&) = delete;
  Interleavings& operator=(const Interleavings&) = delete;

  // Calls `run` once for each order. `run` must pass the programs to interleave to run_together().
  // Returns the number of orders.
  std::size_t explore(const std::function<void()>& run);
  void run_together(const std::vector<std::function<void()>>& programs);

  // A program calls this before each step whose effect the other programs can see.
  void step();
  // Index of the program that is running.
  std::size_t current() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rematch::testing
