// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "config/config.hpp"

namespace cutwater::config {
namespace {

class OpenFile {
 public:
  explicit OpenFile(int number) : number_(number) {}
  ~OpenFile() {
    if (number_ >= 0) close(number_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

std::string system_text(int error) { return std::strerror(error); }

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool read_only_mount(const std::string& path) {
  struct statvfs mount {};
  return statvfs(path.c_str(), &mount) == 0 && (mount.f_flag & ST_RDONLY) != 0;
}

/// What is wrong with a folder that holds the file, or nothing.
std::string folder_fault(const std::string& folder, const struct stat& file) {
  struct stat found {};
  if (stat(folder.c_str(), &found) != 0) {
    return "cannot look at the folder " + folder + ": " + system_text(errno);
  }
  if ((found.st_mode & S_IWOTH) == 0 || read_only_mount(folder)) return {};
  const bool ours = file.st_uid == 0 || file.st_uid == geteuid();
  if ((found.st_mode & S_ISVTX) != 0 && ours) return {};   // others cannot replace the file there
  return "the folder " + folder + " is writable by others; run chmod o-w on it";
}

std::string file_fault(const std::string& path, int number) {
  struct stat found {};
  if (fstat(number, &found) != 0) return "cannot look at it: " + system_text(errno);
  if (!S_ISREG(found.st_mode)) return "not a regular file; name a YAML file";
  if ((found.st_mode & S_IWOTH) != 0 && !read_only_mount(path)) {
    return "writable by others; run chmod o-w on it";
  }
  std::string fault = folder_fault(folder_of(path), found);
  if (!fault.empty()) return fault;
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr),
                                                         &std::free);
  if (real == nullptr) return "cannot follow it: " + system_text(errno);
  return folder_fault(folder_of(real.get()), found);
}

LoadOutcome refused(const std::string& path, std::string text) {
  LoadOutcome outcome;
  outcome.errors.push_back({path, {}, std::move(text)});
  return outcome;
}

}  // namespace

LoadOutcome load_file(const std::string& path, const LoadOptions& options) {
  // O_NONBLOCK: a pipe in the place of the file must not hold the daemon up.
  const OpenFile file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.number() < 0) return refused(path, "cannot open it: " + system_text(errno));
  if (std::string fault = file_fault(path, file.number()); !fault.empty()) {
    return refused(path, std::move(fault));
  }
  std::string text(kMaxTextBytes + 1, '\0');
  std::size_t length = 0;
  while (length < text.size()) {
    const ssize_t got = read(file.number(), text.data() + length, text.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refused(path, "cannot read it: " + system_text(errno));
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
  }
  if (length > kMaxTextBytes) {
    return refused(path, "larger than the maximum of " + std::to_string(kMaxTextBytes) + " bytes");
  }
  text.resize(length);
  return load_text(text, path, options);
}

}  // namespace cutwater::config
