// An agent for tests of LocalStarter: reads its bootstrap as a real one does, says on stderr what it got, and then does
// what the name of its host says. Not a process that a driver could talk to.

#include <arpa/inet.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "proto/v1/bootstrap.pb.h"

namespace farandole {
namespace {

bool ReadExactly(void* data, size_t size) {
  auto* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = ::read(STDIN_FILENO, at, size);
    if (got <= 0) return false;
    at += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

v1::AgentBootstrap ReadBootstrap() {
  uint32_t size = 0;
  std::string body;
  v1::AgentBootstrap bootstrap;
  if (ReadExactly(&size, sizeof size)) body.resize(ntohl(size));
  if (!ReadExactly(body.data(), body.size()) || !bootstrap.ParseFromString(body))
    std::fprintf(stderr, "no bootstrap\n");
  return bootstrap;
}

void WaitForEndOfInput() {
  char ignored;
  while (::read(STDIN_FILENO, &ignored, 1) > 0) {
  }
}

// A child in a session of its own, which has a child: both would outlive us.
void LeaveFamily() {
  if (::fork() != 0) return;
  ::setsid();
  const pid_t child = ::fork();
  if (child != 0) std::fprintf(stderr, "child %d\nchild %d\n", ::getpid(), child);
  while (true) ::pause();
}

int Run() {
  const v1::AgentBootstrap bootstrap = ReadBootstrap();
  std::fprintf(stderr, "job %s incarnation %llu driver %s key %zu data %s grace %lld.%09d leader %d\n",
               bootstrap.job().c_str(), static_cast<unsigned long long>(bootstrap.incarnation()),
               bootstrap.driver_address().c_str(), bootstrap.job_key().size(), bootstrap.data_address().c_str(),
               static_cast<long long>(bootstrap.grace().seconds()), bootstrap.grace().nanos(),
               ::getsid(0) == ::getpid());
  const std::string& host = bootstrap.host();
  if (host == "exits") {
    std::fprintf(stderr, "cannot reach\nthe driver");
    return 7;
  }
  if (host == "leaves") {
    LeaveFamily();
    while (true) ::pause();
  }
  if (host == "deaf") {
    while (true) ::pause();
  }
  WaitForEndOfInput();
  return 0;
}

}  // namespace
}  // namespace farandole

int main() { return farandole::Run(); }
