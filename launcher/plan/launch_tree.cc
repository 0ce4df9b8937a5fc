#include "launcher/plan/launch_tree.h"

#include <algorithm>
#include <cstdint>

namespace farandole {

LaunchTree::LaunchTree(int n, int direct_limit, int fanout)
    : n_(std::max(n, 0)), direct_limit_(std::max(direct_limit, 1)), fanout_(std::max(fanout, 2)) {}

int LaunchTree::ReachedBy(int host) const {
  return host < direct_limit_ ? kLauncher : (host - direct_limit_) / fanout_;
}

std::vector<int> LaunchTree::ReachedThrough(int host) const {
  const int64_t first = host == kLauncher ? 0 : direct_limit_ + int64_t{host} * fanout_;
  const int64_t end = std::min<int64_t>(n_, first + (host == kLauncher ? direct_limit_ : fanout_));
  std::vector<int> hosts;
  for (int64_t child = first; child < end; ++child) hosts.push_back(static_cast<int>(child));
  return hosts;
}

int LaunchTree::Depth() const {
  int depth = 0;
  // The last host is on the lowest level.
  for (int host = n_ - 1; host >= 0; host = ReachedBy(host)) ++depth;
  return depth;
}

}  // namespace farandole
