#pragma once

#include <vector>

namespace farandole {

// Who reaches whom when many hosts start: the launcher itself connects to some, and agents that are up lend their
// network to reach the others. Hosts are numbered from 0 in the order of the job.
//
//   launcher ─┬─ 0 ─┬─ 4 ─── 12 ...        direct_limit = 4, fanout = 2
//             │     └─ 5
//             ├─ 1 ─┬─ 6
//             │     └─ 7
//             ├─ 2 ...
//             └─ 3 ...
//
// Level by level and from the left: every host is in the tree once, a host has at most `fanout` below it, only one has
// fewer and more than none, and the depth is logarithmic in n. The same arguments give the same tree.
class LaunchTree {
 public:
  static constexpr int kLauncher = -1;

  // n >= 0, direct_limit >= 1, fanout >= 2.
  LaunchTree(int n, int direct_limit, int fanout);

  int size() const { return n_; }
  // The host through which `host` is reached; kLauncher: the launcher connects itself.
  int ReachedBy(int host) const;
  // The hosts that are reached through `host`, or directly by the launcher.
  std::vector<int> ReachedThrough(int host) const;
  // Connections between the launcher and the farthest host; 0 without hosts.
  int Depth() const;

 private:
  const int n_, direct_limit_, fanout_;
};

}  // namespace farandole
