#include "harness/cli/require.h"

#include "policies/trace/file.h"
#include "policies/trace/json.h"

namespace rematch {

Json require_json_file(const std::string& path) {
  try {
    return read_json_file(path);
  } catch (const FileError& error) {
    throw UsageError(error.what());
  }
}

}  // namespace rematch
