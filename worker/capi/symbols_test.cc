// libfarandole.so as a program sees it that loads it: every function of farandole.h is there, and nothing else. Another
// symbol could take the place of a framework's, or be replaced by it.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/capi/farandole.h"

namespace {

constexpr char kLibrary[] = "worker/capi/libfarandole.so";

// Functions declared in the header, read from its text so that a new one is not forgotten here.
std::set<std::string> Declared() {
  std::ifstream file("worker/capi/farandole.h");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  std::set<std::string> names;
  for (size_t at = text.find("\nFDL_EXPORT "); at != std::string::npos; at = text.find("\nFDL_EXPORT ", at + 1)) {
    const size_t end = text.find('(', at);
    const size_t begin = text.rfind("fdl_", end);
    names.insert(text.substr(begin, end - begin));
  }
  return names;
}

// Names that the file defines for others, from its table of dynamic symbols.
std::set<std::string> Exported() {
  std::ifstream file(kLibrary, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  std::set<std::string> names;
  if (bytes.size() < sizeof(Elf64_Ehdr)) return names;
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(bytes.data());
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(bytes.data() + header->e_shoff);
  for (int i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_DYNSYM) continue;
    const auto* symbols = reinterpret_cast<const Elf64_Sym*>(bytes.data() + sections[i].sh_offset);
    const char* strings = bytes.data() + sections[sections[i].sh_link].sh_offset;
    for (size_t s = 0; s < sections[i].sh_size / sizeof(Elf64_Sym); ++s) {
      const bool local = ELF64_ST_BIND(symbols[s].st_info) == STB_LOCAL;
      if (!local && symbols[s].st_shndx != SHN_UNDEF) names.insert(strings + symbols[s].st_name);
    }
  }
  return names;
}

TEST(LibFarandole, ExportsTheCInterfaceAndNothingElse) {
  EXPECT_GE(Declared().size(), 20u);
  EXPECT_EQ(Exported(), Declared());
}

TEST(LibFarandole, LoadsAndStaysWhenClosed) {
  void* library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  const auto abi_version = reinterpret_cast<int32_t (*)()>(::dlsym(library, "fdl_abi_version"));
  ASSERT_NE(abi_version, nullptr) << ::dlerror();
  EXPECT_EQ(abi_version(), FDL_ABI_VERSION);
  ::dlclose(library);
  EXPECT_EQ(abi_version(), FDL_ABI_VERSION);
}

}  // namespace
