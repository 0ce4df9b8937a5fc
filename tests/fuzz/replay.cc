// A fuzz target as an ordinary test: all inputs of its corpus, and the same few thousand changes of them each time.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tools/base/prng.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace farandole {
namespace {

// A second at most, also under a sanitizer.
constexpr int kChanged = 3000;
constexpr size_t kBytesMax = 4096;

std::vector<std::string> ReadCorpus() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(FUZZ_CORPUS)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> inputs;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

void Try(const std::string& input) {
  // Exactly as long as it is, so that a sanitizer sees who reads on.
  const std::vector<uint8_t> bytes(input.begin(), input.end());
  ASSERT_EQ(LLVMFuzzerTestOneInput(bytes.data(), bytes.size()), 0);
}

void ChangeOnce(Prng& prng, const std::vector<std::string>& corpus, std::string& input) {
  const size_t at = prng.Below(input.size() + 1);
  const size_t length = std::min<size_t>(prng.Below(16), input.size() - at);
  switch (prng.Below(6)) {
    case 0:  // a bit
      if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << prng.Below(8)));
      break;
    case 1:  // a byte
      if (at < input.size()) input[at] = static_cast<char>(prng.Next());
      break;
    case 2:
      input.erase(at, length);
      break;
    case 3:  // once more
      input.insert(at, input.substr(at, length));
      break;
    case 4:
      input.resize(at);
      break;
    case 5: {  // goes on as another one
      const std::string& other = corpus[prng.Below(corpus.size())];
      input.replace(at, std::string::npos, other, std::min(at, other.size()), std::string::npos);
      break;
    }
  }
  input.resize(std::min(input.size(), kBytesMax));
}

TEST(Fuzz, EveryInputOfTheCorpus) {
  const std::vector<std::string> corpus = ReadCorpus();
  ASSERT_FALSE(corpus.empty()) << FUZZ_CORPUS;
  for (const std::string& input : corpus) Try(input);
  Try("");
}

TEST(Fuzz, ChangesOfThem) {
  const std::vector<std::string> corpus = ReadCorpus();
  ASSERT_FALSE(corpus.empty()) << FUZZ_CORPUS;
  Prng prng(1789);
  for (int i = 0; i < kChanged; ++i) {
    std::string input = corpus[prng.Below(corpus.size())];
    for (uint64_t changes = 1 + prng.Below(4); changes > 0; --changes) ChangeOnce(prng, corpus, input);
    Try(input);
  }
}

}  // namespace
}  // namespace farandole
