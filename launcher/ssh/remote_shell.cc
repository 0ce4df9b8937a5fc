#include "launcher/ssh/remote_shell.h"

namespace farandole {

bool IsRetryable(const absl::Status& status) { return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status); }

}  // namespace farandole
