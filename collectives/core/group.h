#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/base/ids.h"

namespace farandole {

// Place of a member in a group: 0 ... size-1.
using Rank = int;

// One member as the others need to know it.
struct GroupMember {
  std::string host;  // the host's name as the user wrote it: messages name it
  Incarnation incarnation;
  // Where its data listener accepts: "ADDRESS:PORT", or several of them between commas; IPv6 in brackets. Not all need
  // be within reach of everybody.
  std::string endpoint;
};

// Who takes part in a group's collectives, the same on every member. `members[r]` has rank r.
struct GroupSpec {
  Generation generation;
  uint32_t group = 0;  // 0: all workers of the job; process sets get others
  Rank rank = 0;       // this process
  std::vector<GroupMember> members;

  int size() const { return static_cast<int>(members.size()); }
};

// "rank 2 on host gpu7": how every message names a member.
std::string Describe(const GroupSpec& spec, Rank rank);

}  // namespace farandole
