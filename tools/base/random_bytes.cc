#include "tools/base/random_bytes.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "tools/base/check.h"

namespace farandole {

std::string RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  size_t filled = 0;
  while (filled < count) {
    const ssize_t got = ::getrandom(bytes.data() + filled, count - filled, 0);
    if (got < 0 && errno == EINTR) continue;
    CHECK(got > 0) << "getrandom: " << std::strerror(errno);
    filled += static_cast<size_t>(got);
  }
  return bytes;
}

uint64_t RandomId() {
  uint64_t id = 0;
  while (id == 0) std::memcpy(&id, RandomBytes(sizeof id).data(), sizeof id);
  return id;
}

}  // namespace farandole
