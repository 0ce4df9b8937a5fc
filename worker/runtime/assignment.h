#pragma once

#include <string>
#include <vector>

#include "collectives/core/group.h"
#include "tools/base/ids.h"

namespace farandole {

// A worker's place in a generation; everything counts from 0.
struct Place {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;
  int cross_rank = 0, cross_size = 1;
  // Every host has the same number of workers.
  bool homogeneous = true;
  friend bool operator==(const Place&, const Place&) = default;
};

// A generation as one worker sees it: who is in it, and its own place.
struct Assignment {
  GroupSpec group;
  Place place;
};

}  // namespace farandole
