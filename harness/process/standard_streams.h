// Opens standard streams that were closed when the process started.
#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace rematch {

// Opens /dev/null in place of a closed stdin, stdout or stderr. Otherwise the next file or pipe
// that the process opens gets the number of that stream. A read from such a stream finds nothing. A
// write fails, as on a closed stream. Call this first in main().
inline void open_missing_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // open() returns the lowest free descriptor. Lower descriptors are open by now, so this one is
    // `stream`.
    if (fcntl(stream, F_GETFD) < 0) static_cast<void>(open("/dev/null", O_RDONLY));
  }
}

}  // namespace rematch
