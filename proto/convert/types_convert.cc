#include "proto/convert/types_convert.h"

#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

// Longer than any job, and far from where nanoseconds in 64 bits end.
constexpr absl::Duration kLongest = absl::Hours(24 * 365);

constexpr uint32_t kMaxInt = std::numeric_limits<int32_t>::max();

absl::Status Wrong(absl::string_view field, absl::string_view how) {
  return absl::InvalidArgumentError(absl::StrCat(field, " ", how));
}

// `place` of `size` in one of the three dimensions of a placement.
absl::Status CheckPlace(absl::string_view name, uint32_t place, uint32_t size) {
  if (size == 0 || size > kMaxInt) return Wrong(name, absl::StrCat("has ", size, " places"));
  if (place >= size) return Wrong(name, absl::StrCat(place, " is not below ", size));
  return absl::OkStatus();
}

// The bytes of the UTF-8 character that `bytes` begins with, or 0 if there is none.
size_t Utf8Length(absl::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char first = at(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || bytes.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
  }
  // Too long a form, a surrogate, or beyond the last character.
  const bool bad = (first == 0xe0 && at(1) < 0xa0) || (first == 0xed && at(1) > 0x9f) ||
                   (first == 0xf0 && at(1) < 0x90) || (first == 0xf4 && at(1) > 0x8f);
  return bad ? 0 : length;
}

}  // namespace

absl::StatusOr<WorkerId> FromProto(const v1::WorkerId& proto) {
  if (proto.host().empty()) return Wrong("host", "is empty");
  if (proto.slot() > kMaxInt) return Wrong("slot", absl::StrCat(proto.slot(), " is too large"));
  if (proto.incarnation() == 0) return Wrong("incarnation", "is zero");
  return WorkerId{SlotId{proto.host(), static_cast<int>(proto.slot())}, Incarnation(proto.incarnation())};
}

absl::StatusOr<Placement> FromProto(const v1::Placement& proto) {
  RETURN_IF_ERROR(CheckPlace("rank", proto.rank(), proto.size()));
  RETURN_IF_ERROR(CheckPlace("local_rank", proto.local_rank(), proto.local_size()));
  RETURN_IF_ERROR(CheckPlace("cross_rank", proto.cross_rank(), proto.cross_size()));
  Placement place;
  place.rank = static_cast<int>(proto.rank());
  place.size = static_cast<int>(proto.size());
  place.local_rank = static_cast<int>(proto.local_rank());
  place.local_size = static_cast<int>(proto.local_size());
  place.cross_rank = static_cast<int>(proto.cross_rank());
  place.cross_size = static_cast<int>(proto.cross_size());
  return place;
}

absl::StatusOr<ExitStatus> FromProto(const v1::ExitStatus& proto) {
  ExitStatus status;
  switch (proto.how_case()) {
    case v1::ExitStatus::kCode:
      if (proto.code() > 255) return Wrong("code", absl::StrCat(proto.code(), " is above 255"));
      status.code = static_cast<int>(proto.code());
      return status;
    case v1::ExitStatus::kSignal:
      if (proto.signal() == 0 || proto.signal() > 127) {
        return Wrong("signal", absl::StrCat(proto.signal(), " is no signal"));
      }
      status.signal = static_cast<int>(proto.signal());
      return status;
    case v1::ExitStatus::HOW_NOT_SET:
      break;
  }
  return Wrong("how", "is not set");
}

absl::StatusOr<AssignedMember> FromProto(const v1::Member& proto) {
  AssignedMember member;
  ASSIGN_OR_RETURN(member.worker, FromProto(proto.worker()), std::move(_) << "worker");
  ASSIGN_OR_RETURN(member.placement, FromProto(proto.placement()), std::move(_) << "placement");
  if (proto.endpoint().empty()) return Wrong("endpoint", "is empty");
  member.endpoint = proto.endpoint();
  return member;
}

absl::StatusOr<std::vector<AssignedMember>> FromProto(const v1::Assignment& proto) {
  if (proto.generation() == 0) return Wrong("generation", "is zero");
  if (proto.members().empty()) return Wrong("members", "is empty");
  std::vector<AssignedMember> members;
  for (int i = 0; i < proto.members_size(); ++i) {
    ASSIGN_OR_RETURN(members.emplace_back(), FromProto(proto.members(i)), std::move(_) << "members[" << i << "]");
    const Placement& place = members.back().placement;
    if (place.rank != i || place.size != proto.members_size()) {
      return Wrong(absl::StrCat("members[", i, "]"), absl::StrCat("has rank ", place.rank, " of ", place.size,
                                                                  " among ", proto.members_size(), " members"));
    }
  }
  return members;
}

absl::StatusOr<absl::Duration> FromProto(const google::protobuf::Duration& proto) {
  const absl::Duration duration = absl::Seconds(proto.seconds()) + absl::Nanoseconds(proto.nanos());
  if (duration <= absl::ZeroDuration() || duration > kLongest) {
    return absl::InvalidArgumentError(
        absl::StrCat(absl::FormatDuration(duration), " is not between 0 and ", absl::FormatDuration(kLongest)));
  }
  return duration;
}

v1::WorkerId ToProto(const WorkerId& id) {
  v1::WorkerId proto;
  proto.set_host(id.slot.host);
  proto.set_slot(static_cast<uint32_t>(id.slot.slot));
  proto.set_incarnation(id.incarnation.value());
  return proto;
}

v1::Placement ToProto(const Placement& place) {
  v1::Placement proto;
  proto.set_rank(static_cast<uint32_t>(place.rank));
  proto.set_size(static_cast<uint32_t>(place.size));
  proto.set_local_rank(static_cast<uint32_t>(place.local_rank));
  proto.set_local_size(static_cast<uint32_t>(place.local_size));
  proto.set_cross_rank(static_cast<uint32_t>(place.cross_rank));
  proto.set_cross_size(static_cast<uint32_t>(place.cross_size));
  return proto;
}

v1::ExitStatus ToProto(const ExitStatus& status) {
  v1::ExitStatus proto;
  if (status.signal != 0) {
    proto.set_signal(static_cast<uint32_t>(status.signal));
  } else {
    proto.set_code(static_cast<uint32_t>(status.code));
  }
  return proto;
}

v1::Member ToProto(const AssignedMember& member) {
  v1::Member proto;
  *proto.mutable_worker() = ToProto(member.worker);
  *proto.mutable_placement() = ToProto(member.placement);
  proto.set_endpoint(member.endpoint);
  return proto;
}

v1::Assignment ToProto(Generation generation, const std::vector<AssignedMember>& members) {
  v1::Assignment proto;
  proto.set_generation(generation.value());
  for (const AssignedMember& member : members) *proto.add_members() = ToProto(member);
  return proto;
}

google::protobuf::Duration ToProto(absl::Duration duration) {
  google::protobuf::Duration proto;
  absl::Duration rest;
  proto.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &rest));
  proto.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
  return proto;
}

std::string ToUtf8(absl::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const size_t length = Utf8Length(bytes);
    if (length == 0) {
      text += "\xef\xbf\xbd";
      bytes.remove_prefix(1);
    } else {
      absl::StrAppend(&text, bytes.substr(0, length));
      bytes.remove_prefix(length);
    }
  }
  return text;
}

}  // namespace farandole
