#include "launcher/ssh/libssh_connector.h"

#include <libssh/callbacks.h>
#include <libssh/libssh.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "launcher/ssh/libssh_session.h"
#include "tools/base/clock.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

constexpr size_t kPiece = 32 << 10;  // a packet's payload
constexpr absl::Duration kClosing = absl::Milliseconds(200);

class LibsshProcess : public RemoteProcess {
 public:
  explicit LibsshProcess(LibsshSession& session) : session_(session), channel_(ssh_channel_new(session.get())) {
    callbacks_.userdata = this;
    callbacks_.channel_exit_status_function = [](ssh_session, ssh_channel, int code, void* self) {
      static_cast<LibsshProcess*>(self)->end_.exit_code = code;
      static_cast<LibsshProcess*>(self)->told_ = true;
    };
    callbacks_.channel_exit_signal_function = [](ssh_session, ssh_channel, const char* name, int, const char*,
                                                 const char*, void* self) {
      static_cast<LibsshProcess*>(self)->end_.signal = Quoted(name);
      static_cast<LibsshProcess*>(self)->told_ = true;
    };
    // Takes nothing: libssh keeps the bytes, within its window, until they are read.
    callbacks_.channel_data_function = [](ssh_session, ssh_channel, void*, uint32_t, int, void* self) {
      static_cast<LibsshProcess*>(self)->arrived_ = true;
      return 0;
    };
    callbacks_.channel_close_function = [](ssh_session, ssh_channel, void* self) {
      static_cast<LibsshProcess*>(self)->closed_ = true;
    };
    ssh_callbacks_init(&callbacks_);
    if (channel_ != nullptr) ssh_set_channel_callbacks(channel_, &callbacks_);
  }

  ~LibsshProcess() override {
    if (channel_ == nullptr) return;
    if (opened_ && ssh_is_connected(session_.get())) {
      ssh_channel_close(channel_);
      ssh_blocking_flush(session_.get(), static_cast<int>(absl::ToInt64Milliseconds(kClosing)));
    }
    ssh_remove_channel_callbacks(channel_, &callbacks_);
    ssh_channel_free(channel_);
  }

  absl::Status Start(const std::string& command, Instant deadline) {
    if (channel_ == nullptr) return absl::FailedPreconditionError("libssh has no memory for a channel");
    RETURN_IF_ERROR(Ask("open a session", deadline, [&] { return ssh_channel_open_session(channel_); }));
    opened_ = true;
    return Ask("execute a command", deadline, [&] { return ssh_channel_request_exec(channel_, command.c_str()); });
  }

  absl::Status Write(absl::string_view bytes, Instant deadline) override {
    if (input_closed_) return absl::FailedPreconditionError("the input of the process was closed");
    return session_.Drive(deadline, [&]() -> absl::StatusOr<bool> {
      while (!bytes.empty()) {
        const int written =
            ssh_channel_write(channel_, bytes.data(), static_cast<uint32_t>(std::min(bytes.size(), kPiece)));
        if (written < 0 && !ssh_is_connected(session_.get())) return session_.Lost("writing");
        if (written < 0) return absl::FailedPreconditionError("the process reads no more");
        if (written == 0) return false;
        bytes.remove_prefix(static_cast<size_t>(written));
      }
      // What libssh has kept back must be out before the caller stops driving the session.
      return (ssh_get_poll_flags(session_.get()) & SSH_WRITE_PENDING) == 0 || Flushed();
    });
  }

  void CloseInput() override {
    if (std::exchange(input_closed_, true)) return;
    ssh_channel_send_eof(channel_);
  }

  absl::StatusOr<RemoteOutput> Read(Instant deadline) override {
    RemoteOutput output;
    RETURN_IF_ERROR(session_.Drive(deadline, [&]() -> absl::StatusOr<bool> {
      if (Take(&output)) return true;
      if (closed_) {
        output = end_;
        if (!told_) output.signal = "unknown";
        return true;
      }
      if (!ssh_is_connected(session_.get())) return session_.Lost("a process ran there");
      return false;
    }));
    return output;
  }

 private:
  // Bytes of either stream, if there are any. Looking at one stream may bring some of the other in, after which nothing
  // would wake us: so it looks until nothing has come.
  bool Take(RemoteOutput* output) {
    do {
      arrived_ = false;
      session_.Pump();
      for (const bool is_error : {false, true}) {
        output->bytes.resize(kPiece);
        const int size = ssh_channel_read_nonblocking(channel_, output->bytes.data(), kPiece, is_error);
        output->bytes.resize(size > 0 ? static_cast<size_t>(size) : 0);
        if (size <= 0) continue;
        output->kind = is_error ? RemoteOutput::Kind::kStderr : RemoteOutput::Kind::kStdout;
        return true;
      }
    } while (arrived_);
    return false;
  }

  bool Flushed() { return ssh_blocking_flush(session_.get(), 0) == SSH_OK; }

  absl::Status Ask(const char* what, Instant deadline, const std::function<int()>& request) {
    return session_.Drive(deadline, [&]() -> absl::StatusOr<bool> {
      const int result = request();
      if (result == SSH_OK) return true;
      if (result == SSH_AGAIN) return false;
      if (!ssh_is_connected(session_.get())) return session_.Lost(what);
      return absl::FailedPreconditionError(absl::StrCat("ssh to ", session_.where().text(),
                                                        ": the host does not let us ", what, ": ", session_.error()));
    });
  }

  LibsshSession& session_;
  const ssh_channel channel_;
  ssh_channel_callbacks_struct callbacks_{};
  bool opened_ = false, input_closed_ = false;
  bool closed_ = false, told_ = false;  // by the other side
  bool arrived_ = false;                // bytes, since it was set to false
  RemoteOutput end_;
};

class LibsshShell : public RemoteShell {
 public:
  explicit LibsshShell(std::unique_ptr<LibsshSession> session) : session_(std::move(session)) {}

  absl::StatusOr<std::unique_ptr<RemoteProcess>> Exec(const std::string& command, Instant deadline) override {
    auto process = std::make_unique<LibsshProcess>(*session_);
    RETURN_IF_ERROR(process->Start(command, deadline));
    return process;
  }

 private:
  const std::unique_ptr<LibsshSession> session_;
};

class LibsshConnector : public RemoteConnector {
 public:
  explicit LibsshConnector(SshFiles files) : files_(std::move(files)) {}

  absl::StatusOr<std::unique_ptr<RemoteShell>> Connect(const RemoteTarget& target, Instant deadline,
                                                       const Cancellation& cancellation,
                                                       const std::function<void(HostStep)>& on_step) override {
    ASSIGN_OR_RETURN(std::unique_ptr<LibsshSession> session, LibsshSession::Create(target, files_, cancellation));
    RETURN_IF_ERROR(session->OpenStream(deadline, on_step));
    on_step(HostStep::kAuthenticate);
    RETURN_IF_ERROR(session->ExchangeKeys(deadline));
    RETURN_IF_ERROR(session->CheckHostKey());
    RETURN_IF_ERROR(session->Authenticate(deadline));
    return std::make_unique<LibsshShell>(std::move(session));
  }

 private:
  const SshFiles files_;
};

}  // namespace

std::unique_ptr<RemoteConnector> MakeLibsshConnector(SshFiles files) {
  return std::make_unique<LibsshConnector>(std::move(files));
}

}  // namespace farandole
