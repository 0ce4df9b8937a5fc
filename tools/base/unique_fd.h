#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <utility>

namespace farandole {

// Owns one file descriptor; -1 is none.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

// Gives the descriptor to a library that will close it. ThreadSanitizer does not see what is closed inside a library
// that is not instrumented, and would take the next descriptor of the same number for this one; what fcntl makes it
// does not follow.
inline int ReleaseToLibrary(UniqueFd fd) {
#ifdef __SANITIZE_THREAD__
  return ::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0);
#else
  return fd.release();
#endif
}

}  // namespace farandole
