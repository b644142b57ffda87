// Opens standard streams that were closed when the process started.
#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace rematch {

// Opens /dev/null in place of a closed stdin, stdout or stderr, so that no other file gets its
// descriptor. Reads from the stream return no data. Writes fail, as on a closed stream. Call this
// first in main().
inline void open_missing_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // open() returns the lowest free descriptor. All descriptors below `stream` are open by now, so
    // open() returns `stream`.
    if (fcntl(stream, F_GETFD) < 0) static_cast<void>(open("/dev/null", O_RDONLY));
  }
}

}  // namespace rematch
