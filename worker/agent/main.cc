// farandole-agent: started by the launcher on each host of a job; not meant to be typed by people.
//
//   --guard    where nobody is above it who would look after what it leaves: worker/agent/guardian.h

#include <fcntl.h>
#include <openssl/crypto.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>

#include "absl/strings/str_cat.h"
#include "tools/base/clock.h"
#include "tools/base/log.h"
#include "tools/base/version.h"
#include "worker/agent/agent.h"
#include "worker/agent/bootstrap_reader.h"
#include "worker/agent/guardian.h"

namespace farandole {
namespace {

constexpr absl::Duration kBootstrapTimeout = absl::Seconds(30);

// Whatever is opened later is not mistaken for one of the three streams.
void OpenMissingStreams() {
  int fd;
  while ((fd = ::open("/dev/null", O_RDWR)) >= 0 && fd <= STDERR_FILENO) {
  }
  if (fd >= 0) ::close(fd);
}

void SetUpProcess() {
  // A terminal's Ctrl-C and hang-up are for the launcher, which tells us what to do about them.
  for (const int signal : {SIGINT, SIGQUIT, SIGHUP, SIGPIPE}) ::signal(signal, SIG_IGN);
  // Before any other thread exists, so that all have it.
  sigset_t term;
  ::sigemptyset(&term);
  ::sigaddset(&term, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &term, nullptr);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  // A file of this host's OpenSSL is not meant for the one in this program.
  ::OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
}

int Main(int argc, char** argv) {
  const bool guarded = argc == 2 && absl::string_view(argv[1]) == "--guard";
  if (argc == 2 && absl::string_view(argv[1]) == "--version") {
    std::printf("farandole-agent %s\n", kVersion);
    return 0;
  }
  if ((argc != 1 && !guarded) || ::isatty(STDIN_FILENO)) {
    std::fputs("farandole-agent is started by `farandole run` (or horovodrun), which tells it all on standard input\n",
               stderr);
    return 2;
  }
  OpenMissingStreams();
  if (guarded) StandGuard();
  SetUpProcess();
  SetLogPrefix("agent");
  absl::StatusOr<Bootstrap> bootstrap = ReadBootstrap(STDIN_FILENO, Now() + kBootstrapTimeout);
  if (!bootstrap.ok()) {
    LOG(ERROR) << "what its starter writes to standard input: " << bootstrap.status().message();
    return 1;
  }
  SetLogPrefix(absl::StrCat("agent ", bootstrap->host));
  const absl::StatusOr<std::unique_ptr<Agent>> agent = Agent::Create(*std::move(bootstrap));
  if (!agent.ok()) {
    LOG(ERROR) << agent.status().message();
    return 1;
  }
  return (*agent)->Run();
}

}  // namespace
}  // namespace farandole

int main(int argc, char** argv) { return farandole::Main(argc, argv); }
