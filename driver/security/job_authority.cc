#include "driver/security/job_authority.h"

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/rpc/tls_names.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

constexpr long kDay = 24 * 60 * 60;
constexpr long kBackdated = kDay;
constexpr long kValid = 30 * kDay;

// Of a common name (RFC 5280, ub-common-name); whole names are in the alternative name, which is what is checked.
constexpr size_t kLongestCommonName = 64;

template <auto free>
struct Free {
  template <typename T>
  void operator()(T* object) const {
    free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Bio = std::unique_ptr<BIO, Free<BIO_free_all>>;
using Number = std::unique_ptr<BIGNUM, Free<BN_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Free<X509_EXTENSION_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, Free<GENERAL_NAMES_free>>;

absl::Status SslError(absl::string_view what) {
  char words[256] = "no reason given";
  if (const unsigned long error = ::ERR_get_error(); error != 0) ::ERR_error_string_n(error, words, sizeof words);
  ::ERR_clear_error();
  return absl::InternalError(absl::StrCat(what, ": ", words));
}

absl::StatusOr<Key> DrawKey() {
  Key key(EVP_EC_gen("P-256"));
  if (key == nullptr) return SslError("drawing a key");
  return key;
}

template <typename Write>
absl::StatusOr<std::string> ToPem(Write write) {
  const Bio bio(::BIO_new(::BIO_s_secmem()));  // wiped when it goes
  if (bio == nullptr || write(bio.get()) != 1) return SslError("writing PEM");
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

absl::StatusOr<std::string> ToPem(X509* certificate) {
  return ToPem([certificate](BIO* bio) { return ::PEM_write_bio_X509(bio, certificate); });
}

absl::StatusOr<std::string> ToPem(EVP_PKEY* key) {
  return ToPem(
      [key](BIO* bio) { return ::PEM_write_bio_PKCS8PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr); });
}

// What kind of certificate it is.
struct Kind {
  std::string common_name;
  std::string basic_constraints;
  std::string key_usage;
  std::string extended_key_usage;  // empty: none
  int name_type = 0;               // GEN_DNS or GEN_URI, of `name`
  std::string name;                // empty: none
};

bool AddExtension(X509* certificate, const X509V3_CTX& context, int which, const std::string& value) {
  if (value.empty()) return true;
  X509V3_CTX copy = context;
  const Extension extension(::X509V3_EXT_conf_nid(nullptr, &copy, which, value.c_str()));
  return extension != nullptr && ::X509_add_ext(certificate, extension.get(), -1) == 1;
}

// Not by the text of a configuration, in which a name could say more than its own.
bool AddName(X509* certificate, const Kind& kind) {
  if (kind.name.empty()) return true;
  const Names names(::GENERAL_NAMES_new());
  GENERAL_NAME* const name = ::GENERAL_NAME_new();
  ASN1_IA5STRING* const text = ::ASN1_IA5STRING_new();
  if (names == nullptr || name == nullptr || text == nullptr ||
      ::ASN1_STRING_set(text, kind.name.data(), static_cast<int>(kind.name.size())) != 1) {
    return false;
  }
  ::GENERAL_NAME_set0_value(name, kind.name_type, text);
  return sk_GENERAL_NAME_push(names.get(), name) > 0 &&
         ::X509_add1_ext_i2d(certificate, NID_subject_alt_name, names.get(), 0, 0) == 1;
}

bool SetSerial(X509* certificate) {
  const Number serial(::BN_new());
  return serial != nullptr && ::BN_rand(serial.get(), 127, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
         ::BN_to_ASN1_INTEGER(serial.get(), ::X509_get_serialNumber(certificate)) != nullptr;
}

bool SetSubject(X509* certificate, const std::string& common_name) {
  const std::string name = common_name.substr(0, kLongestCommonName);
  X509_NAME* const subject = ::X509_get_subject_name(certificate);
  return ::X509_NAME_add_entry_by_NID(subject, NID_organizationName, MBSTRING_ASC,
                                      reinterpret_cast<const unsigned char*>("farandole"), -1, -1, 0) == 1 &&
         ::X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_ASC,
                                      reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0) == 1;
}

// `issuer` null: signed by itself.
absl::StatusOr<Certificate> Sign(const Kind& kind, EVP_PKEY* key, X509* issuer, EVP_PKEY* issuer_key) {
  Certificate made(::X509_new());
  X509* const certificate = made.get();
  if (issuer == nullptr) issuer = certificate;
  X509V3_CTX context;
  if (certificate == nullptr || ::X509_set_version(certificate, 2) != 1 || !SetSerial(certificate) ||
      ::X509_gmtime_adj(::X509_getm_notBefore(certificate), -kBackdated) == nullptr ||
      ::X509_gmtime_adj(::X509_getm_notAfter(certificate), kValid) == nullptr ||
      ::X509_set_pubkey(certificate, key) != 1 || !SetSubject(certificate, kind.common_name) ||
      ::X509_set_issuer_name(certificate, ::X509_get_subject_name(issuer)) != 1) {
    return SslError("making a certificate");
  }
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  if (!AddExtension(certificate, context, NID_basic_constraints, kind.basic_constraints) ||
      !AddExtension(certificate, context, NID_key_usage, kind.key_usage) ||
      !AddExtension(certificate, context, NID_ext_key_usage, kind.extended_key_usage) ||
      !AddExtension(certificate, context, NID_subject_key_identifier, "hash") ||
      !AddExtension(certificate, context, NID_authority_key_identifier, "keyid:always") ||
      !AddName(certificate, kind)) {
    return SslError("making a certificate's extensions");
  }
  if (::X509_sign(certificate, issuer_key, ::EVP_sha256()) == 0) return SslError("signing a certificate");
  return made;
}

class JobAuthorityImpl final : public JobAuthority {
 public:
  JobAuthorityImpl(std::string job, Key key, Certificate certificate, std::string pem)
      : job_(std::move(job)), key_(std::move(key)), certificate_(std::move(certificate)), pem_(std::move(pem)) {}

  const std::string& job() const override { return job_; }

  absl::StatusOr<TlsIdentity> IssueServer() const override {
    return Issue({absl::StrCat("driver of job ", job_), "critical,CA:FALSE", "critical,digitalSignature", "serverAuth",
                  GEN_DNS, DriverTlsName(job_)});
  }

  absl::StatusOr<TlsIdentity> IssueAgent(const std::string& host, Incarnation incarnation) const override {
    return Issue({absl::StrCat("agent ", absl::Hex(incarnation.value(), absl::kZeroPad16), " of job ", job_),
                  "critical,CA:FALSE", "critical,digitalSignature", "clientAuth", GEN_URI,
                  AgentTlsName(job_, host, incarnation)});
  }

 private:
  absl::StatusOr<TlsIdentity> Issue(const Kind& kind) const {
    TlsIdentity identity;
    ASSIGN_OR_RETURN(const Key key, DrawKey());
    // Signing only reads the authority's key and certificate.
    ASSIGN_OR_RETURN(const Certificate certificate, Sign(kind, key.get(), certificate_.get(), key_.get()));
    ASSIGN_OR_RETURN(identity.certificate_pem, ToPem(certificate.get()));
    ASSIGN_OR_RETURN(identity.private_key_pem, ToPem(key.get()));
    identity.ca_pem = pem_;
    return identity;
  }

  const std::string job_;
  const Key key_;
  const Certificate certificate_;
  const std::string pem_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<JobAuthority>> JobAuthority::Create(std::string job) {
  ASSIGN_OR_RETURN(Key key, DrawKey());
  const Kind kind{
      absl::StrCat("authority of job ", job), "critical,CA:TRUE,pathlen:0", "critical,keyCertSign", "", 0, ""};
  ASSIGN_OR_RETURN(Certificate certificate, Sign(kind, key.get(), nullptr, key.get()));
  ASSIGN_OR_RETURN(std::string pem, ToPem(certificate.get()));
  return std::make_unique<JobAuthorityImpl>(std::move(job), std::move(key), std::move(certificate), std::move(pem));
}

}  // namespace farandole
