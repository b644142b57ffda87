// The few operations on a common folder by which workers of a sweep agree. No file is locked,
// replaced or removed: claims are made once and grow, reports are linked once. Knows nothing of
// what the files say.
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

  // File names in any order. All of these throw FileError where the file system refuses.
  virtual std::vector<std::string> claims() = 0;
  virtual std::vector<std::string> reports() = 0;

  // Nothing: it is not there, or went from under the reader (ESTALE), who looks again.
  virtual std::optional<std::string> read_claim(const std::string& name) = 0;
  // With its first line, at once where the file system can; else a reader may see it empty for a
  // moment. False: another made it first.
  virtual bool create_claim(const std::string& name, std::string_view text) = 0;
  // Only by who made it.
  virtual void append_to_claim(const std::string& name, std::string_view text) = 0;
  virtual bool has_claim(const std::string& name) = 0;

  virtual bool has_report(const std::string& name) = 0;
  // Makes the finished file at `path` the report of this name. False: there is one, which stays.
  virtual bool link_report(const std::string& path, const std::string& name) = 0;
};

// DIR/claims and DIR/reports, which must be there.
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
