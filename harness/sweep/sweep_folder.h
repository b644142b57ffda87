// The few operations by which workers of a sweep coordinate through a common folder. No file is
// locked, replaced or removed. A claim is created once, and lines are appended to it. A report is
// linked once. This code does not depend on the contents of the files.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rematch {

class SweepFolder {
 public:
  SweepFolder() = default;
  virtual ~SweepFolder() = default;
  SweepFolder(const SweepFolder&) = delete;
  SweepFolder& operator=(const SweepFolder&) = delete;

  // Returns file names in any order. All operations throw FileError if the file system fails.
  virtual std::vector<std::string> claims() = 0;
  virtual std::vector<std::string> reports() = 0;

  // Returns nothing if the claim does not exist or disappears during the read (ESTALE). The caller
  // retries later.
  virtual std::optional<std::string> read_claim(const std::string& name) = 0;
  // Creates a claim with its first line, atomically if the file system can. On other file systems a
  // reader may see an empty claim for a moment. Returns false if another worker created the claim
  // first.
  virtual bool create_claim(const std::string& name, std::string_view text) = 0;
  // Only the worker that created the claim may call this.
  virtual void append_to_claim(const std::string& name, std::string_view text) = 0;
  virtual bool has_claim(const std::string& name) = 0;

  virtual bool has_report(const std::string& name) = 0;
  // Publishes the finished file at `path` as the report called `name`. If a report of this name
  // exists, keeps it and returns false.
  virtual bool link_report(const std::string& path, const std::string& name) = 0;
};

// Implements the operations on DIR/claims and DIR/reports, which must exist.
class DiskSweepFolder : public SweepFolder {
 public:
  explicit DiskSweepFolder(std::string folder) : folder_(std::move(folder)) {}

  std::vector<std::string> claims() override;
  std::vector<std::string> reports() override;
  std::optional<std::string> read_claim(const std::string& name) override;
  bool create_claim(const std::string& name, std::string_view text) override;
  void append_to_claim(const std::string& name, std::string_view text) override;
  bool has_claim(const std::string& name) override;
  bool has_report(const std::string& name) override;
  bool link_report(const std::string& path, const std::string& name) override;

 private:
  std::string claim_path(const std::string& name) const { return folder_ + "/claims/" + name; }
  std::string report_path(const std::string& name) const { return folder_ + "/reports/" + name; }

  std::string folder_;
};

}  // namespace rematch
