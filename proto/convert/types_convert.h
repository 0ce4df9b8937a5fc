#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "driver/core/actions.h"
#include "driver/core/ids.h"
#include "google/protobuf/duration.pb.h"
#include "proto/v1/types.pb.h"
#include "tools/base/ids.h"

namespace farandole {

// Between the messages of proto/v1/types.proto and the plain structs that all other code uses. Everything that comes in
// is checked: the error is InvalidArgument, and its message begins with the field that is wrong ("members[3]: worker:
// host is empty"); callers put the name of the field or message in front that held it.

absl::StatusOr<WorkerId> FromProto(const v1::WorkerId& proto);
absl::StatusOr<Placement> FromProto(const v1::Placement& proto);
absl::StatusOr<ExitStatus> FromProto(const v1::ExitStatus& proto);
absl::StatusOr<AssignedMember> FromProto(const v1::Member& proto);

// The members of an assignment, in rank order; they are complete. Its generation is not zero.
absl::StatusOr<std::vector<AssignedMember>> FromProto(const v1::Assignment& proto);

// A span of time that is longer than zero and that an Instant can still be moved by.
absl::StatusOr<absl::Duration> FromProto(const google::protobuf::Duration& proto);

v1::WorkerId ToProto(const WorkerId& id);
v1::Placement ToProto(const Placement& place);
v1::ExitStatus ToProto(const ExitStatus& status);
v1::Member ToProto(const AssignedMember& member);
v1::Assignment ToProto(Generation generation, const std::vector<AssignedMember>& members);
google::protobuf::Duration ToProto(absl::Duration duration);

// `bytes` with everything that is not UTF-8 replaced by U+FFFD: a field of type string holds nothing else, and paths
// may.
std::string ToUtf8(absl::string_view bytes);

}  // namespace farandole
