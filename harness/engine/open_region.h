// Tells whether the ops of this thread are being recorded. Callers must then run no op unseen.
#pragma once

namespace rematch {

// True between the first and the last scope of a region of the innermost Recording.
bool is_region_open();

}  // namespace rematch
