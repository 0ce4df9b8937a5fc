#include "launcher/ssh/ssh_errors.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const SshEndpoint kWhere{"train", "gpu7", 2222};

TEST(SshErrors, AnUnknownKeyIsToldWithWhatToDo) {
  EXPECT_THAT(
      UnknownHostKey(kWhere, "ssh-ed25519 SHA256:abc", "/h/train/.ssh/known_hosts"),
      StatusIs(
          absl::StatusCode::kFailedPrecondition,
          "ssh to train@gpu7 port 2222: its host key (ssh-ed25519 SHA256:abc) is not known: nobody has confirmed it "
          "in /h/train/.ssh/known_hosts. Check the fingerprint, then `ssh-keyscan -p 2222 gpu7 >> "
          "/h/train/.ssh/known_hosts`; or accept new keys with --ssh-accept-new-host-keys"));
}

TEST(SshErrors, ARefusalHasMethodsKeysAndTheHostsWords) {
  AuthenticationFailure failure;
  failure.methods = "publickey,password";
  failure.keys_tried = {"the ssh agent's keys", "/h/train/.ssh/id_rsa"};
  failure.reason = "Too many authentication failures";
  EXPECT_THAT(
      AuthenticationRefused(kWhere, failure),
      StatusIs(absl::StatusCode::kPermissionDenied,
               "ssh to train@gpu7 port 2222: not let in as this user; the host takes: publickey,password; tried: "
               "the ssh agent's keys, /h/train/.ssh/id_rsa; it said: Too many authentication failures. Give "
               "it a key with `ssh-copy-id -p 2222 train@gpu7`, or name another with -i, or another user as "
               "user@gpu7"));
  EXPECT_THAT(AuthenticationRefused(kWhere, {}),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("tried: no key")));
}

TEST(SshErrors, KeysThatNeedAPassphraseAreSeenInTheirFile) {
  EXPECT_TRUE(NeedsPassphrase("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAACmFlczI1Ni1jdHIAAAAGYmNy"));
  EXPECT_FALSE(
      NeedsPassphrase("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAA"));
  EXPECT_TRUE(NeedsPassphrase("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n"));
  EXPECT_FALSE(NeedsPassphrase("-----BEGIN RSA PRIVATE KEY-----\nMIIEow"));
  EXPECT_TRUE(NeedsPassphrase("-----BEGIN ENCRYPTED PRIVATE KEY-----\n"));
  EXPECT_FALSE(NeedsPassphrase(""));
}

struct LogCase {
  const char* log;
  absl::StatusCode code;
  const char* words;
};

TEST(SshErrors, WhatOpensshSaysHasTheSameCodesAndWords) {
  const LogCase cases[] = {
      {"ssh: Could not resolve hostname gpu7: Name or service not known\r\n", absl::StatusCode::kUnavailable,
       "Could not resolve hostname gpu7: Name or service not known"},
      {"ssh: connect to host gpu7 port 2222: Connection refused\r\n", absl::StatusCode::kUnavailable,
       "Connection refused"},
      {"ssh: connect to host gpu7 port 2222: No route to host\r\n", absl::StatusCode::kUnavailable, "No route to host"},
      {"kex_exchange_identification: read: Connection reset by peer\r\nConnection reset by 10.0.0.2 port 2222\r\n",
       absl::StatusCode::kUnavailable, "Connection reset by"},
      {"No ED25519 host key is known for gpu7 and you have requested strict checking.\r\nHost key verification "
       "failed.\r\n",
       absl::StatusCode::kFailedPrecondition, "is not known: nobody has confirmed it"},
      {"@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\nOffending ED25519 key in /x:1\r\nHost key "
       "verification failed.\r\n",
       absl::StatusCode::kFailedPrecondition, "is not the one in"},
      {"debug1: Authentications that can continue: publickey\r\ndebug1: Offering public key: /k ED25519 SHA256:x "
       "explicit\r\ntrain@gpu7: Permission denied (publickey).\r\n",
       absl::StatusCode::kPermissionDenied,
       "the host takes: publickey; tried: /k; it said: train@gpu7: Permission denied"},
      {"Unable to negotiate with 10.0.0.2 port 2222: no matching host key type found. Their offer: ssh-rsa\r\n",
       absl::StatusCode::kFailedPrecondition, "no matching host key type found"},
      {"/h/train/.ssh/config: line 1: Bad configuration option: prot\r\n/h/train/.ssh/config: terminating, 1 bad "
       "configuration options\r\n",
       absl::StatusCode::kFailedPrecondition, "terminating"},
      {"something new\r\n", absl::StatusCode::kUnknown, "something new"},
      {"", absl::StatusCode::kUnknown, "ssh ended without a word"},
  };
  for (const LogCase& one : cases) {
    EXPECT_THAT(FromOpensshLog(kWhere, one.log, {}),
                StatusIs(one.code, AllOf(HasSubstr("ssh to train@gpu7 port 2222: "), HasSubstr(one.words))))
        << one.log;
  }
}

TEST(SshErrors, WhereItReallyWentIsReadFromTheLog) {
  EXPECT_THAT(FromOpensshLog({"", "gpu7", 22},
                             "debug1: Connecting to 10.0.0.2 [10.0.0.2] port 2200.\r\ndebug1: Authenticating to "
                             "10.0.0.2:2200 as 'someone'\r\nsomeone@10.0.0.2: Permission denied (publickey).\r\n",
                             {"/k"}),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       AllOf(HasSubstr("ssh to someone@gpu7 port 2200"), HasSubstr("the key /k needs a passphrase"))));
}

TEST(SshErrors, KeysInTheLogAreNamedOnce) {
  EXPECT_THAT(KeysInOpensshLog("debug1: Will attempt key: /a ED25519 SHA256:x explicit\r\ndebug1: Will attempt key: "
                               "/b \r\ndebug1: Offering public key: /a ED25519 SHA256:x explicit\r\n"),
              ElementsAre("/a", "/b"));
}

TEST(SshErrors, ForeignTextIsOneBoundedLineWithoutControlCharacters) {
  EXPECT_EQ(Quoted(" a\x1b[31m\r\nb\n"), "a [31m  b");
  EXPECT_EQ(Quoted(std::string(5000, 'x')).size(), 403u);
}

}  // namespace
}  // namespace farandole
