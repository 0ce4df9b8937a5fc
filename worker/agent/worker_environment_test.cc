#include "worker/agent/worker_environment.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace farandole {
namespace {

using ::testing::ElementsAre;

TEST(WorkerEnvironment, TellsTheWorkerWhoItIs) {
  EXPECT_THAT(WorkerVariables(Incarnation(0xabc), "unix-abstract:x", "127.0.0.1"),
              ElementsAre("FARANDOLE_AGENT=unix-abstract:x", "FARANDOLE_WORKER=0000000000000abc",
                          "FARANDOLE_DATA_ADDRESS=127.0.0.1"));
}

TEST(WorkerEnvironment, ReplacesItsOwnNamesAndNothingElse) {
  EXPECT_THAT(WithVariables({"A=1", "B=old", "\xff= \n", "B=older", "BB=2", "A=1"}, {"B=new", "C="}),
              ElementsAre("A=1", "\xff= \n", "BB=2", "A=1", "B=new", "C="));
}

}  // namespace
}  // namespace farandole
