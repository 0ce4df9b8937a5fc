#include "launcher/cli/help.h"

#include "absl/strings/str_cat.h"
#include "tools/base/version.h"

namespace farandole {

std::string UsageLine(absl::string_view command) {
  return absl::StrCat("usage: ", command, " -np N [-H HOST:SLOTS,...] [OPTIONS] PROGRAM [ARGUMENTS]\n");
}

std::string FarandoleUsageLine() { return "usage: farandole run|--help|--version\n"; }

std::string FarandoleHelp() {
  return absl::StrCat(FarandoleUsageLine(),
                      "\n"
                      "Starts a training program on many processes and watches over them.\n"
                      "\n"
                      "  run           start a job; \"farandole run --help\" has its options\n"
                      "  -v,--version  show the version, and end\n"
                      "  -h,--help     show this, and end\n"
                      "\n"
                      "The same program under the name horovodrun takes the original's command line:\n"
                      "\n"
                      "  horovodrun -np 4 -H localhost:4 python train.py\n");
}

std::string VersionOf(absl::string_view command) {
  return command == "horovodrun" ? absl::StrCat(kHorovodVersion, "+farandole", kVersion) : std::string(kVersion);
}

}  // namespace farandole
