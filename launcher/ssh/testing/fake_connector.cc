#include "launcher/ssh/testing/fake_connector.h"

#include <utility>

#include "launcher/ssh/child_process.h"
#include "tools/base/status_macros.h"
#include "tools/base/unique_fd.h"

namespace farandole::testing {
namespace {

class FakeShell : public RemoteShell {
 public:
  FakeShell(const FakeHost& host, const Cancellation& cancellation, UniqueFd stream)
      : host_(host), cancellation_(cancellation), stream_(std::move(stream)) {}

  absl::StatusOr<std::unique_ptr<RemoteProcess>> Exec(const std::string& command, Instant deadline) override {
    if (cancellation_.cancelled()) return absl::CancelledError("cancelled");
    ChildOptions options;
    options.arguments = {host_.login_shell, "-c", command};
    options.environment = host_.environment;
    ASSIGN_OR_RETURN(std::unique_ptr<ChildProcess> child, ChildProcess::Start(options));
    return MakeChildRemoteProcess(std::move(child), cancellation_);
  }

 private:
  const FakeHost& host_;
  const Cancellation& cancellation_;
  const UniqueFd stream_;
};

class FakeConnector : public RemoteConnector {
 public:
  explicit FakeConnector(FakeHost host) : host_(std::move(host)) {}

  absl::StatusOr<std::unique_ptr<RemoteShell>> Connect(const RemoteTarget& target, Instant deadline,
                                                       const Cancellation& cancellation,
                                                       const std::function<void(HostStep)>& on_step) override {
    on_step(HostStep::kResolve);
    if (cancellation.cancelled()) return absl::CancelledError("cancelled");
    on_step(HostStep::kConnect);
    UniqueFd stream;
    if (target.connect) {
      ASSIGN_OR_RETURN(stream, target.connect("192.0.2.1", 22, deadline));
    }
    if (target.host == "away") return absl::UnavailableError("ssh to away port 22: connection refused");
    on_step(HostStep::kAuthenticate);
    if (target.host == "unknown")
      return absl::FailedPreconditionError("ssh to unknown port 22: its host key is not known");
    return std::make_unique<FakeShell>(host_, cancellation, std::move(stream));
  }

 private:
  const FakeHost host_;
};

}  // namespace

std::unique_ptr<RemoteConnector> MakeFakeConnector(FakeHost host) {
  return std::make_unique<FakeConnector>(std::move(host));
}

}  // namespace farandole::testing
