#include "driver/core/host_step.h"

#include "tools/base/check.h"

namespace farandole {

std::string ToString(HostStep step) {
  switch (step) {
    case HostStep::kResolve:
      return "resolve";
    case HostStep::kConnect:
      return "connect";
    case HostStep::kAuthenticate:
      return "authenticate";
    case HostStep::kAgent:
      return "agent";
    case HostStep::kCallBack:
      return "call back";
    case HostStep::kWorkers:
      return "workers";
  }
  CHECK(false) << "no such step";
  return "";
}

}  // namespace farandole
