#include "driver/security/job_authority.h"

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/rpc/tls_names.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr Incarnation kIncarnation(0xabc);

struct FreeX509 {
  void operator()(X509* certificate) const { ::X509_free(certificate); }
};
using Certificate = std::unique_ptr<X509, FreeX509>;

Certificate Parse(const std::string& pem) {
  BIO* const bio = ::BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  Certificate certificate(::PEM_read_bio_X509(bio, nullptr, nullptr, nullptr));
  ::BIO_free(bio);
  EXPECT_NE(certificate, nullptr) << pem;
  return certificate;
}

// Whether `certificate` is good for `purpose` (X509_PURPOSE_...), `at` seconds from now, for who trusts `ca`.
bool Verifies(const std::string& certificate_pem, const std::string& ca_pem, int purpose, std::time_t at = 0) {
  const Certificate certificate = Parse(certificate_pem), ca = Parse(ca_pem);
  X509_STORE* const store = ::X509_STORE_new();
  ::X509_STORE_add_cert(store, ca.get());
  X509_STORE_CTX* const context = ::X509_STORE_CTX_new();
  ::X509_STORE_CTX_init(context, store, certificate.get(), nullptr);
  ::X509_STORE_CTX_set_purpose(context, purpose);
  ::X509_STORE_CTX_set_time(context, 0, std::time(nullptr) + at);
  const bool good = ::X509_verify_cert(context) == 1;
  ::X509_STORE_CTX_free(context);
  ::X509_STORE_free(store);
  return good;
}

std::string NameIn(const std::string& pem, int type) {
  const Certificate certificate = Parse(pem);
  auto* const names =
      static_cast<GENERAL_NAMES*>(::X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr));
  if (names == nullptr || sk_GENERAL_NAME_num(names) != 1) return "(not one name)";
  int found = -1;
  const auto* text = static_cast<ASN1_STRING*>(::GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, 0), &found));
  std::string name(reinterpret_cast<const char*>(::ASN1_STRING_get0_data(text)),
                   static_cast<size_t>(::ASN1_STRING_length(text)));
  ::GENERAL_NAMES_free(names);
  return found == type ? name : "(of another type)";
}

std::string Subject(const std::string& pem) {
  const Certificate certificate = Parse(pem);
  char text[256];
  ::X509_NAME_oneline(::X509_get_subject_name(certificate.get()), text, sizeof text);
  return text;
}

class JobAuthorityTest : public ::testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<JobAuthority>> authority = JobAuthority::Create("0123456789abcdef");
    ASSERT_OK(authority);
    authority_ = *std::move(authority);
    ASSERT_OK_AND_ASSIGN(server_, authority_->IssueServer());
    ASSERT_OK_AND_ASSIGN(agent_, authority_->IssueAgent("a", kIncarnation));
  }

  std::unique_ptr<JobAuthority> authority_;
  TlsIdentity server_, agent_;
};

TEST_F(JobAuthorityTest, ItsCertificatesAreGoodForTheirPurposeAlone) {
  EXPECT_EQ(server_.ca_pem, agent_.ca_pem);
  EXPECT_TRUE(Verifies(server_.certificate_pem, server_.ca_pem, X509_PURPOSE_SSL_SERVER));
  EXPECT_FALSE(Verifies(server_.certificate_pem, server_.ca_pem, X509_PURPOSE_SSL_CLIENT));
  EXPECT_TRUE(Verifies(agent_.certificate_pem, agent_.ca_pem, X509_PURPOSE_SSL_CLIENT));
  EXPECT_FALSE(Verifies(agent_.certificate_pem, agent_.ca_pem, X509_PURPOSE_SSL_SERVER));
  EXPECT_EQ(::X509_check_ca(Parse(agent_.certificate_pem).get()), 0);
  EXPECT_EQ(::X509_check_ca(Parse(agent_.ca_pem).get()), 1);
}

TEST_F(JobAuthorityTest, ClocksMayDifferByHoursAndAJobMayLastForWeeks) {
  constexpr std::time_t kHour = 3600, kDay = 24 * kHour;
  for (const std::time_t at : {-23 * kHour, 29 * kDay}) {
    EXPECT_TRUE(Verifies(agent_.certificate_pem, agent_.ca_pem, X509_PURPOSE_SSL_CLIENT, at)) << at;
  }
  for (const std::time_t at : {-25 * kHour, 31 * kDay}) {
    EXPECT_FALSE(Verifies(agent_.certificate_pem, agent_.ca_pem, X509_PURPOSE_SSL_CLIENT, at)) << at;
  }
}

TEST_F(JobAuthorityTest, AnotherJobsCertificatesAreNotGood) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<JobAuthority> other, JobAuthority::Create("0123456789abcdef"));
  ASSERT_OK_AND_ASSIGN(const TlsIdentity theirs, other->IssueAgent("a", kIncarnation));
  EXPECT_TRUE(Verifies(theirs.certificate_pem, theirs.ca_pem, X509_PURPOSE_SSL_CLIENT));
  EXPECT_FALSE(Verifies(theirs.certificate_pem, agent_.ca_pem, X509_PURPOSE_SSL_CLIENT))
      << "the same names help nobody";
}

TEST_F(JobAuthorityTest, NamesSayWho) {
  EXPECT_EQ(NameIn(server_.certificate_pem, GEN_DNS), DriverTlsName("0123456789abcdef"));
  EXPECT_EQ(NameIn(server_.certificate_pem, GEN_DNS), "driver.0123456789abcdef.farandole");
  EXPECT_EQ(NameIn(agent_.certificate_pem, GEN_URI), AgentTlsName("0123456789abcdef", "a", kIncarnation));
  EXPECT_EQ(NameIn(agent_.certificate_pem, GEN_URI), "farandole:0123456789abcdef/agent/a/0000000000000abc");
  EXPECT_THAT(Subject(agent_.certificate_pem), HasSubstr("CN=agent 0000000000000abc of job 0123456789abcdef"));
  EXPECT_THAT(Subject(agent_.ca_pem), HasSubstr("CN=authority of job 0123456789abcdef"));
}

TEST_F(JobAuthorityTest, AHostCannotSayMoreThanItsName) {
  const std::string odd = "a,DNS:driver/b\n\xff/0000000000000001";
  ASSERT_OK_AND_ASSIGN(const TlsIdentity identity, authority_->IssueAgent(odd, kIncarnation));
  const std::string name = NameIn(identity.certificate_pem, GEN_URI);
  EXPECT_EQ(name, AgentTlsName("0123456789abcdef", odd, kIncarnation));
  EXPECT_EQ(name, "farandole:0123456789abcdef/agent/a%2cDNS%3adriver%2fb%0a%ff%2f0000000000000001/0000000000000abc");
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<JobAuthority> long_name, JobAuthority::Create(std::string(300, 'J')));
  EXPECT_OK(long_name->IssueServer());
}

TEST_F(JobAuthorityTest, KeysAreNotShared) {
  ASSERT_OK_AND_ASSIGN(const TlsIdentity again, authority_->IssueAgent("a", kIncarnation));
  EXPECT_NE(again.private_key_pem, agent_.private_key_pem);
  EXPECT_NE(agent_.private_key_pem, server_.private_key_pem);
  EXPECT_THAT(agent_.private_key_pem, HasSubstr("BEGIN PRIVATE KEY"));
  EXPECT_THAT(agent_.certificate_pem, Not(HasSubstr("PRIVATE")));
}

}  // namespace
}  // namespace farandole
