#include "proto/rpc/grpc_log.h"

#include <grpc/support/log.h>

#include "tools/base/log.h"

namespace farandole {

void QuietGrpc() {
  ::gpr_set_log_function([](gpr_log_func_args* line) { LOG(DEBUG) << "gRPC: " << line->message; });
}

}  // namespace farandole
