// Runs a few sequential programs concurrently, in every possible order of their steps. Also kills
// each program at each of its steps. This is stateless model checking: a depth-first search over
// the choices of a scheduler. Every order runs from the beginning, so `run` must recreate the state
// that the programs share.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace rematch::testing {

// Thrown by step() in a program that the scheduler kills. Not derived from std::exception, so that
// no handler of the program catches it.
struct Ended {};

class Interleavings {
 public:
  struct Bounds {
    int most_switches = 1000;  // maximum number of switches away from a program that could continue
    int most_kills = 0;
  };
  explicit Interleavings(Bounds bounds);
  ~Interleavings();
  Interleavings(const Interleavings&) = delete;
  Interleavings& operator=(const Interleavings&) = delete;

  // Calls `run` once for each order, and returns the number of orders. `run` must call
  // run_together() with the programs.
  std::size_t explore(const std::function<void()>& run);
  void run_together(const std::vector<std::function<void()>>& programs);

  // Called by a program before each step whose effect other programs can see.
  void step();
  // Index of the program that is running.
  std::size_t current() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rematch::testing
