#include "harness/cli/flags/require.h"

#include "policies/base/file.h"
#include "policies/base/json.h"

namespace rematch {

Json require_json_file(const std::string& path) {
  try {
    return read_json_file(path);
  } catch (const FileError& error) {
    throw UsageError(error.what());
  }
}

}  // namespace rematch
