#include "launcher/plan/launch_tree.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace farandole {
namespace {

using ::testing::ElementsAre;

TEST(LaunchTree, AsInThePicture) {
  const LaunchTree tree(13, 4, 2);
  EXPECT_THAT(tree.ReachedThrough(LaunchTree::kLauncher), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(tree.ReachedThrough(0), ElementsAre(4, 5));
  EXPECT_THAT(tree.ReachedThrough(1), ElementsAre(6, 7));
  EXPECT_THAT(tree.ReachedThrough(4), ElementsAre(12));
  EXPECT_THAT(tree.ReachedThrough(5), ElementsAre());
  EXPECT_EQ(tree.ReachedBy(12), 4);
  EXPECT_EQ(tree.Depth(), 3);
  EXPECT_EQ(LaunchTree(0, 4, 2).Depth(), 0);
  EXPECT_EQ(LaunchTree(4, 4, 2).Depth(), 1);
}

TEST(LaunchTree, EveryHostOnceBalancedAndShallow) {
  for (int n = 0; n <= 300; ++n) {
    for (const int direct : {1, 2, 7, 32}) {
      for (const int fanout : {2, 3, 8}) {
        SCOPED_TRACE(::testing::Message() << n << " hosts, " << direct << " direct, fanout " << fanout);
        const LaunchTree tree(n, direct, fanout);
        std::vector<int> seen(n), depth(n);
        int deepest = 0, partly = 0;
        for (int host = LaunchTree::kLauncher; host < n; ++host) {
          const std::vector<int> below = tree.ReachedThrough(host);
          ASSERT_LE(static_cast<int>(below.size()), host == LaunchTree::kLauncher ? direct : fanout);
          partly += host != LaunchTree::kLauncher && !below.empty() && static_cast<int>(below.size()) < fanout;
          for (const int child : below) {
            ASSERT_GT(child, host);  // so that it ends, and who helps is up before
            ASSERT_EQ(tree.ReachedBy(child), host);
            ++seen[child];
            depth[child] = host == LaunchTree::kLauncher ? 1 : depth[host] + 1;
            deepest = std::max(deepest, depth[child]);
          }
        }
        ASSERT_EQ(std::count(seen.begin(), seen.end(), 1), n);
        ASSERT_LE(partly, 1);
        ASSERT_EQ(tree.Depth(), deepest);
        ASSERT_LE(deepest, n == 0 ? 0 : 2 + std::log(n) / std::log(fanout));
      }
    }
  }
}

}  // namespace
}  // namespace farandole
