#include "launcher/exec/agent_program.h"

#include <elf.h>
#include <openssl/evp.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <mutex>
#include <sstream>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "tools/base/check.h"
#include "tools/base/errno_status.h"

namespace farandole {
namespace {

constexpr int kFastest = 1;  // a local network is quicker than better packing
constexpr int kGzip = 15 + 16;

std::string Sha256(const std::string& bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  CHECK(EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr) == 1) << "OpenSSL has no SHA-256";
  return absl::BytesToHexString({reinterpret_cast<const char*>(digest), size});
}

std::string Machine(const std::string& bytes) {
  Elf64_Ehdr header;
  if (bytes.size() < sizeof header) return "";
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return "";
  switch (header.e_machine) {
    case EM_X86_64:
      return "x86_64";
    case EM_AARCH64:
      return "aarch64";
    case EM_PPC64:
      return "ppc64le";
    default:
      return "";
  }
}

std::string Gzip(const std::string& bytes) {
  z_stream stream{};
  CHECK(deflateInit2(&stream, kFastest, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) == Z_OK) << "zlib";
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END) << "zlib";
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

class AgentProgramImpl : public AgentProgram {
 public:
  explicit AgentProgramImpl(std::string bytes)
      : bytes_(std::move(bytes)), hash_(Sha256(bytes_)), machine_(Machine(bytes_)) {}

  const std::string& hash() const override { return hash_; }
  const std::string& bytes() const override { return bytes_; }
  const std::string& machine() const override { return machine_; }
  const std::string& packed() override {
    std::call_once(packing_, [this] { packed_ = Gzip(bytes_); });
    return packed_;
  }

 private:
  const std::string bytes_, hash_, machine_;
  std::once_flag packing_;
  std::string packed_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<AgentProgram>> AgentProgram::Load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  if (!file || !(bytes << file.rdbuf())) return ErrnoStatus(errno, absl::StrCat("read the agent's program ", path));
  return std::make_unique<AgentProgramImpl>(std::move(bytes).str());
}

}  // namespace farandole
