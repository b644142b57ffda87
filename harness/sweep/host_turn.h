// Who of the workers on one machine measures times on its CPU: one at a time, since two would
// disturb each other.
#pragma once

#include <memory>
#include <string>

namespace rematch {

// Held until it is dropped or its process ends, however that ends. Null: another process has it.
// The file lies in the memory of this host, so the lock is nobody else's. Throws FileError.
std::shared_ptr<void> take_host_turn(const std::string& file = "/dev/shm/rematch.timing.lock");

}  // namespace rematch
