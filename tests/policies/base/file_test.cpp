#include "policies/base/file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "policies/base/json.h"
#include "tests/support/scratch_folder.h"

namespace rematch {
namespace {

using Catch::Contains;
using testing::ScratchFolder;

void put(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

std::string get(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST_CASE("writing and reading JSON preserves the order of keys") {
  const ScratchFolder folder;
  const Json json = {{"z", 1}, {"a", {1.5, nullptr, "x"}}, {"m", Json::object()}};
  write_json_file(folder.file("a.json"), json);
  const Json read = read_json_file(folder.file("a.json"));
  CHECK(read == json);
  CHECK(read.dump() == json.dump());
}

TEST_CASE("the error for an unreadable file is one line with the reason") {
  const ScratchFolder folder;
  const std::string missing = folder.file("missing.json");
  CHECK_THROWS_WITH(read_json_file(missing),
                    "cannot read '" + missing + "': No such file or directory");
  CHECK_THROWS_WITH(read_json_file(folder.path().string()), Contains("Is a directory"));
  CHECK_THROWS_AS(read_json_file(missing), FileError);
}

TEST_CASE("the error for malformed JSON gives the line and the column") {
  const ScratchFolder folder;
  const std::string path = folder.file("bad.json");
  struct Row {
    std::string text;
    std::string message;
  };
  const Row rows[] = {
      {"", "is empty"},
      {" \n\t ", "is empty"},
      {"{\"a\": 1,\n  \"b\": }", "line 2, column 8"},
      {"{\"a\": 1", "line 1, column 7"},
      {"{} {}", "line 1, column 4"},
      {"[1e999]", "is out of range"},
      {"[NaN]", "malformed JSON"},
      {"{\"a\": 1, \"b\": 2, \"a\": 3}", "key \"a\" appears twice"},
      {std::string(101, '[') + std::string(101, ']'), "nested deeper than 100"},
      {std::string("{\"a\": \"\xFF\"}"), "malformed JSON"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    put(path, row.text);
    CHECK_THROWS_WITH(read_json_file(path), Contains(path) && Contains(row.message));
    CHECK_THROWS_AS(read_json_file(path), FormatError);
    try {
      read_json_file(path);
    } catch (const FormatError& error) {
      CHECK(std::string(error.what()).find('\n') == std::string::npos);
    }
  }
  put(path, std::string(100, '[') + std::string(100, ']'));
  CHECK_NOTHROW(read_json_file(path));
}

TEST_CASE("a file larger than the limit is rejected before it is parsed") {
  const ScratchFolder folder;
  put(folder.file("a.json"), "[1, 2, 3]");
  CHECK_NOTHROW(read_json_file(folder.file("a.json"), Bytes{9}));
  CHECK_THROWS_WITH(read_json_file(folder.file("a.json"), Bytes{8}),
                    Contains("larger than the limit of 8 bytes"));
}

TEST_CASE("an object with very many keys is read in linear time") {
  std::string text = "{";
  for (int key = 0; key < 100000; ++key) {
    text.append(key == 0 ? "\"" : ",\"").append(std::to_string(key)).append("\":0");
  }
  CHECK(parse_json(text + "}", "many").size() == 100000);
}

// Only the elements of the outer list "list" are passed on. Other lists, and lists inside these
// elements, stay whole.
TEST_CASE(
    "the elements of a list are passed to the consumer one by one, and the rest of the document is "
    "stored") {
  const std::string text =
      R"({"points": 0, "a": {"points": [7]}, "list": [1, {"b": [2]}, [[3]], 4], "z": [[5]]})";
  std::vector<std::string> offered;
  const auto take_all_but_the_third = [&](const Json& so_far, const Json& element,
                                          std::size_t index) {
    CHECK(so_far.contains("a"));
    CHECK_FALSE(so_far.contains("z"));
    offered.push_back(std::to_string(index) + " " + element.dump());
    return index != 2;
  };
  const Json rest = parse_json_taking(text, "test", "list", take_all_but_the_third);
  CHECK(offered == std::vector<std::string>{"0 1", R"(1 {"b":[2]})", "2 [[3]]", "3 4"});
  CHECK(rest.dump() == R"({"points":0,"a":{"points":[7]},"list":[[[3]]],"z":[[5]]})");
  offered.clear();
  CHECK(parse_json_taking(text, "test", "points", take_all_but_the_third) ==
        parse_json(text, "test"));
  CHECK(parse_json_taking(R"([{"list": [1]}])", "test", "list", take_all_but_the_third).size() ==
        1);
  CHECK(offered.empty());
}

TEST_CASE("a document whose elements are passed to a consumer is checked like any other document") {
  const auto take = [](const Json&, const Json&, std::size_t) { return true; };
  const auto error_of = [&](const std::string& text) -> std::string {
    try {
      parse_json_taking(text, "file.json", "list", take);
    } catch (const FormatError& error) {
      return error.what();
    }
    return "no error";
  };
  CHECK_THAT(error_of(R"({"list": [{"a": 1, "a": 2}]})"), Contains("\"a\" appears twice"));
  CHECK_THAT(error_of(R"({"list": [1], "list": [2]})"), Contains("\"list\" appears twice"));
  CHECK_THAT(error_of(R"({"list": [1, 2)"), Contains("file.json: malformed JSON at line 1"));
  CHECK_THAT(error_of("{\"list\": " + std::string(100, '[') + std::string(100, ']') + "}"),
             Contains("nested deeper than 100"));
  CHECK_THAT(error_of(" "), Contains("file.json: is empty"));
}

TEST_CASE("writing replaces the whole file and leaves no temporary file") {
  const ScratchFolder folder;
  const std::string path = folder.file("a.json");
  put(path, "a much longer text than the one that follows");
  write_file_atomically(path, "short");
  CHECK(get(path) == "short");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("a failed write keeps the old file and leaves no temporary file") {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder.file("target"));
  CHECK_THROWS_WITH(write_file_atomically(folder.file("target"), "text"),
                    Contains("Is a directory"));
  const std::string nowhere = folder.file("no/such/folder/a.json");
  CHECK_THROWS_WITH(write_file_atomically(nowhere, "text"),
                    "cannot write '" + nowhere + "': No such file or directory");
  CHECK_THROWS_AS(write_file_atomically("/proc/a.json", "text"), FileError);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

// Limits the size of files that this process can write, to simulate a full disk. The destructor
// removes the limit.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) : old_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old_limit_);
    const rlimit limit{bytes, old_limit_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SmallDisk() {
    ::setrlimit(RLIMIT_FSIZE, &old_limit_);
    std::signal(SIGXFSZ, old_handler_);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

 private:
  rlimit old_limit_{};
  void (*old_handler_)(int);
};

TEST_CASE("a full disk keeps the old file and leaves no temporary file") {
  const ScratchFolder folder;
  const std::string path = folder.file("a.json");
  put(path, "old");
  {
    const SmallDisk disk(1000);
    CHECK_THROWS_WITH(write_file_atomically(path, std::string(5000, 'x')),
                      "cannot write '" + path + "': File too large");
  }
  CHECK(get(path) == "old");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

bool has_nameless_files(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_WRONLY | O_TMPFILE, 0600);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

// The limit on file size kills the process in the middle of the text, always at the same byte.
TEST_CASE("a process that is killed while it writes leaves no temporary file") {
  const ScratchFolder folder;
  if (!has_nameless_files(folder.path())) {
    WARN("this file system does not support unnamed temporary files\nfile test: skipped");
    return;
  }
  for (const bool is_there : {false, true}) {
    CAPTURE(is_there);
    const std::string path = folder.file("a.json");
    if (is_there) put(path, "old");
    const pid_t writer = ::fork();
    if (writer == 0) {
      std::signal(SIGXFSZ, SIG_DFL);
      const rlimit limit{1000, 1000};
      ::setrlimit(RLIMIT_FSIZE, &limit);
      write_file_atomically(path, std::string(5000, 'x'));
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(writer, &status, 0) == writer);
    REQUIRE(WIFSIGNALED(status));
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) ==
          (is_there ? 1 : 0));
  }
  CHECK(get(folder.file("a.json")) == "old");
}

TEST_CASE(
    "writing to a link replaces the link's target, and writing to a device does not replace the "
    "device") {
  const ScratchFolder folder;
  put(folder.file("target.json"), "old");
  std::filesystem::create_symlink("target.json", folder.file("link.json"));
  write_file_atomically(folder.file("link.json"), "new");
  CHECK(get(folder.file("target.json")) == "new");
  CHECK(std::filesystem::is_symlink(folder.file("link.json")));
  write_file_atomically("/dev/null", "text");
  CHECK(std::filesystem::is_character_file("/dev/null"));
}

TEST_CASE("an error while writing to a device is reported") {
  CHECK_THROWS_WITH(write_file_atomically("/dev/full", "text"),
                    Contains("No space left on device"));
}

}  // namespace
}  // namespace rematch
