#include <libssh/callbacks.h>
#include <libssh/libssh.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launcher/ssh/libssh_session.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

// Owns a key of libssh's.
class Key {
 public:
  Key() = default;
  Key(const Key&) = delete;
  Key& operator=(const Key&) = delete;
  ~Key() { ssh_key_free(key_); }
  ssh_key get() const { return key_; }
  ssh_key* out() { return &key_; }

 private:
  ssh_key key_ = nullptr;
};

std::string MethodNames(int methods) {
  std::vector<std::string> names;
  const std::pair<int, const char*> known[] = {{SSH_AUTH_METHOD_PUBLICKEY, "publickey"},
                                               {SSH_AUTH_METHOD_PASSWORD, "password"},
                                               {SSH_AUTH_METHOD_INTERACTIVE, "keyboard-interactive"},
                                               {SSH_AUTH_METHOD_HOSTBASED, "hostbased"},
                                               {SSH_AUTH_METHOD_GSSAPI_MIC, "gssapi-with-mic"}};
  for (const auto& [bit, name] : known) {
    if (methods & bit) names.emplace_back(name);
  }
  return absl::StrJoin(names, ",");
}

bool Exists(const std::string& path) {
  struct stat ignored;
  return ::stat(path.c_str(), &ignored) == 0;
}

void AddOnce(std::vector<std::string>* list, const std::string& item) {
  if (std::find(list->begin(), list->end(), item) == list->end()) list->push_back(item);
}

// One attempt to get in, by all ways that need no person.
class Authentication {
 public:
  Authentication(LibsshSession& session, std::string identity_file, Instant deadline)
      : session_(session), identity_file_(std::move(identity_file)), deadline_(deadline) {
    callbacks_.userdata = this;
    callbacks_.auth_function = &Authentication::Asked;
    ssh_callbacks_init(&callbacks_);
    ssh_set_callbacks(session_.get(), &callbacks_);
  }
  ~Authentication() {
    // libssh keeps the pointer; these never do anything.
    static ssh_callbacks_struct none = [] {
      ssh_callbacks_struct made{};
      ssh_callbacks_init(&made);
      return made;
    }();
    ssh_set_callbacks(session_.get(), &none);
  }

  absl::Status Run() {
    ASSIGN_OR_RETURN(bool in, Try([this] { return ssh_userauth_none(session_.get(), nullptr); }));
    if (in) return absl::OkStatus();
    const int methods = ssh_userauth_list(session_.get(), nullptr);
    failure_.methods = MethodNames(methods);
    if (methods & SSH_AUTH_METHOD_PUBLICKEY) {
      ASSIGN_OR_RETURN(in, ByKeys());
      if (in) return absl::OkStatus();
    }
    if (methods & SSH_AUTH_METHOD_GSSAPI_MIC) {
      ASSIGN_OR_RETURN(in, Try([this] { return ssh_userauth_gssapi(session_.get()); }));
      if (in) return absl::OkStatus();
      AddOnce(&failure_.keys_tried, "Kerberos (GSSAPI)");
    }
    return Refused();
  }

 private:
  // A key needs a passphrase. It is the file at hand.
  static int Asked(const char* prompt, char* buffer, size_t size, int echo, int verify, void* self) {
    auto* const authentication = static_cast<Authentication*>(self);
    AddOnce(&authentication->failure_.keys_locked, authentication->Current());
    return -1;
  }

  std::string Current() const {
    if (!at_hand_.empty()) return at_hand_;
    char* identity = nullptr;
    if (ssh_userauth_publickey_auto_get_current_identity(session_.get(), &identity) != SSH_OK) return "";
    std::string result(identity);
    ssh_string_free_char(identity);
    return result;
  }

  absl::StatusOr<bool> ByKeys() {
    std::vector<std::string> with_certificates;
    if (!identity_file_.empty()) {
      if (!Exists(identity_file_)) {
        failure_.keys_unusable.push_back(absl::StrCat(identity_file_, " does not exist"));
      }
      with_certificates.push_back(identity_file_);
    }
    char* first = nullptr;
    if (ssh_options_get(session_.get(), SSH_OPTIONS_IDENTITY, &first) == SSH_OK && first != nullptr) {
      AddOnce(&with_certificates, first);
      ssh_string_free_char(first);
    }
    if (const char* home = std::getenv("HOME")) {
      for (const char* name : {"id_ed25519", "id_ecdsa", "id_rsa"}) {
        AddOnce(&with_certificates, absl::StrCat(home, "/.ssh/", name));
      }
    }
    for (const std::string& file : with_certificates) {
      if (!Exists(absl::StrCat(file, "-cert.pub"))) continue;
      ASSIGN_OR_RETURN(const bool in, ByFile(file, true));
      if (in) return true;
    }
    if (!identity_file_.empty()) {
      ASSIGN_OR_RETURN(const bool in, ByFile(identity_file_, false));
      if (in) return true;
    }
    return Try([this] {
      const int result = ssh_userauth_publickey_auto(session_.get(), nullptr, nullptr);
      if (result == SSH_AUTH_AGAIN) {
        const std::string identity = Current();
        AddOnce(&failure_.keys_tried, identity.empty() ? "the ssh agent's keys" : identity);
      }
      return result;
    });
  }

  absl::StatusOr<bool> ByFile(const std::string& file, bool with_certificate) {
    Key key;
    at_hand_ = file;
    const int result = ssh_pki_import_privkey_file(file.c_str(), nullptr, &Authentication::Asked, this, key.out());
    at_hand_.clear();
    if (result != SSH_OK) {
      const auto& locked = failure_.keys_locked;
      if (result == SSH_ERROR && std::find(locked.begin(), locked.end(), file) == locked.end()) {
        AddOnce(&failure_.keys_unusable, absl::StrCat(file, " is no private key that libssh can read"));
      }
      return false;
    }
    if (with_certificate) {
      Key certificate;
      if (ssh_pki_import_cert_file(absl::StrCat(file, "-cert.pub").c_str(), certificate.out()) != SSH_OK ||
          ssh_pki_copy_cert_to_privkey(certificate.get(), key.get()) != SSH_OK) {
        AddOnce(&failure_.keys_unusable, absl::StrCat(file, "-cert.pub is no certificate that libssh can read"));
        return false;
      }
    }
    AddOnce(&failure_.keys_tried, with_certificate ? absl::StrCat(file, "-cert.pub") : file);
    return Try([&] { return ssh_userauth_publickey(session_.get(), nullptr, key.get()); });
  }

  // Whether `way` lets us in. Errors: of the connection; PermissionDenied when the host has had enough.
  absl::StatusOr<bool> Try(const std::function<int()>& way) {
    int result = SSH_AUTH_ERROR;
    RETURN_IF_ERROR(session_.Drive(deadline_, [&]() -> absl::StatusOr<bool> {
      result = way();
      return result != SSH_AUTH_AGAIN;
    }));
    if (result == SSH_AUTH_ERROR && !ssh_is_connected(session_.get())) {
      failure_.reason = session_.error();
      if (absl::StrContains(failure_.reason, "DISCONNECT")) return Refused();
      return session_.Lost("authenticating");
    }
    if (result == SSH_AUTH_PARTIAL) {
      failure_.reason =
          absl::StrCat("that is not enough, it wants more: ", MethodNames(ssh_userauth_list(session_.get(), nullptr)));
    }
    return result == SSH_AUTH_SUCCESS;
  }

  absl::Status Refused() const { return AuthenticationRefused(session_.where(), failure_); }

  LibsshSession& session_;
  const std::string identity_file_;
  const Instant deadline_;
  ssh_callbacks_struct callbacks_{};
  std::string at_hand_;  // the file that is being read
  AuthenticationFailure failure_;
};

}  // namespace

absl::Status AuthenticateLibssh(LibsshSession& session, const std::string& identity_file, Instant deadline) {
  return Authentication(session, identity_file, deadline).Run();
}

}  // namespace farandole
