// The file that -o names. It is checked before a command starts to work, and locked until the
// command ends, so that no command overwrites the results of another.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rematch {

// The kinds of files, as messages name them. The kind of a JSON file comes from its schema key.
namespace file_kind {
inline constexpr std::string_view kReport = "report";
inline constexpr std::string_view kFront = "front";
inline constexpr std::string_view kLoads = "loads";
inline constexpr std::string_view kPlan = "plan";
inline constexpr std::string_view kTrace = "trace";
inline constexpr std::string_view kProfile = "profile";
inline constexpr std::string_view kLinks = "links";
inline constexpr std::string_view kCompare = "compare";
inline constexpr std::string_view kGate = "gate";
inline constexpr std::string_view kPage = "HTML page";
inline constexpr std::string_view kPicture = "SVG picture";
inline constexpr std::string_view kPython = "exported Python file";
inline constexpr std::string_view kSnapshot = "snapshot";
inline constexpr std::string_view kText = "text";  // any other file that is not JSON
}  // namespace file_kind

// The value of -o, and what the command does with it.
struct OutputRequest {
  std::string file;                      // if empty, the command writes to stdout
  bool overwrite = false;                // set by --overwrite, which allows replacing any file
  std::vector<std::string_view> kinds;   // kinds that the command may write
  std::vector<std::string> inputs = {};  // files and folders that the command reads
};

class OutputFile {
 public:
  // Throws UsageError if the file cannot be written, or if another rematch process is writing it.
  // Without --overwrite, also throws if an existing file is an input of the command, or is of a
  // kind that the command does not write. Devices and pipes are always allowed.
  explicit OutputFile(const OutputRequest& request);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Throws UsageError if writing would replace a file for another model. Allowed with --overwrite.
  void require_model(const std::string& model) const;

 private:
  std::string file_;
  bool overwrite_;
  int lock_ = -1;
};

// Returns the kind of an existing file.
std::string kind_of_file(const std::string& file);

// Returns the files in a list of policies. For example, "none,mine.json" gives {"mine.json"}.
std::vector<std::string> policy_files(const std::string& policies);

}  // namespace rematch
