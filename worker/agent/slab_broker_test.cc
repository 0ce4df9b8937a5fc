#include "worker/agent/slab_broker.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/clock.h"
#include "tools/base/testing/status_matchers.h"
#include "worker/agent/slab_client.h"

namespace farandole {
namespace {

using ::farandole::testing::IsOk;
using ::farandole::testing::StatusIs;
using ::testing::HasSubstr;

// A broker on a loop of its own, and clients in this process.
class SlabBrokerTest : public ::testing::Test {
 protected:
  void Start(SlabLimits limits) {
    ASSERT_OK_AND_ASSIGN(broker_, SlabBroker::Start(&loop_, limits));
    socket_ = broker_->socket();
    thread_ = std::thread([this] { loop_.Run(); });
    client_ = ConnectSlabs(socket_);
  }
  ~SlabBrokerTest() override {
    if (!thread_.joinable()) return;
    loop_.Stop();
    thread_.join();
  }

  absl::StatusOr<UniqueFd> Open(const std::string& name, int64_t bytes) {
    return client_->Open(name, bytes, Now() + absl::Seconds(20));
  }

  // On the loop's thread.
  void ForgetAll() {
    std::promise<void> done;
    loop_.Post([&] {
      broker_->ForgetAll();
      done.set_value();
    });
    done.get_future().wait();
  }

  EventLoop loop_;
  std::unique_ptr<SlabBroker> broker_;
  std::string socket_;
  std::thread thread_;
  std::unique_ptr<SlabSource> client_;
};

ino_t Inode(const UniqueFd& fd) {
  struct stat info {};
  EXPECT_EQ(::fstat(fd.get(), &info), 0);
  return info.st_ino;
}

TEST_F(SlabBrokerTest, OneNameIsOneMemoryOfZeros) {
  Start({});
  ASSERT_OK_AND_ASSIGN(const UniqueFd one, Open("7/a", 3 << 20));
  ASSERT_OK_AND_ASSIGN(const UniqueFd two, Open("7/a", 3 << 20));
  auto* const a = static_cast<char*>(::mmap(nullptr, 3 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, one.get(), 0));
  auto* const b = static_cast<char*>(::mmap(nullptr, 3 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, two.get(), 0));
  ASSERT_NE(a, MAP_FAILED);
  ASSERT_NE(b, MAP_FAILED);
  EXPECT_EQ(b[(3 << 20) - 1], 0);
  a[(3 << 20) - 1] = 'x';
  EXPECT_EQ(b[(3 << 20) - 1], 'x');
  ::munmap(a, 3 << 20);
  ::munmap(b, 3 << 20);
  ASSERT_OK_AND_ASSIGN(const UniqueFd other, Open("7/b", 1));
  EXPECT_NE(Inode(other), Inode(one));
}

TEST_F(SlabBrokerTest, NobodyCanChangeTheSize) {
  Start({});
  ASSERT_OK_AND_ASSIGN(const UniqueFd memory, Open("a", 4096));
  EXPECT_NE(::ftruncate(memory.get(), 0), 0);
  EXPECT_NE(::ftruncate(memory.get(), 8192), 0);
  EXPECT_NE(::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_WRITE), 0);
  EXPECT_TRUE(::fcntl(memory.get(), F_GETFD) & FD_CLOEXEC);
}

TEST_F(SlabBrokerTest, SaysWhatIsWrongWithARequest) {
  Start({.slabs = 2, .bytes = 10'000});
  ASSERT_OK(Open("a", 4096));
  EXPECT_THAT(Open("a", 4097), StatusIs(absl::StatusCode::kInvalidArgument,
                                        HasSubstr("\"a\" has 4096 bytes, and another worker asks for 4097")));
  EXPECT_THAT(Open("b", 0), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("cannot have 0 bytes")));
  EXPECT_THAT(Open("", 1), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Open(std::string(257, 'n'), 1), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1 to 256")));
  EXPECT_THAT(Open("b", 5905), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("4096 are taken")));
  ASSERT_OK(Open("b", 5904));
  EXPECT_THAT(Open("c", 1), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("2 pieces already")));
}

TEST_F(SlabBrokerTest, ANewGenerationHasNewMemoryAndRoomForIt) {
  Start({.slabs = 1, .bytes = 10'000});
  ASSERT_OK_AND_ASSIGN(const UniqueFd before, Open("a", 8192));
  ForgetAll();
  ASSERT_OK_AND_ASSIGN(const UniqueFd after, Open("a", 8193));
  EXPECT_NE(Inode(before), Inode(after));
}

TEST_F(SlabBrokerTest, ManyAskAtOnce) {
  Start({});
  std::vector<std::thread> threads;
  std::vector<ino_t> inodes(32);
  for (ino_t& inode : inodes) {
    threads.emplace_back([&] {
      const absl::StatusOr<UniqueFd> memory = Open("a", 4096);
      ASSERT_OK(memory);
      inode = Inode(*memory);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(inodes, ::testing::Each(inodes[0]));
}

TEST_F(SlabBrokerTest, NonsenseAndSilenceHarmNobody) {
  Start({});
  ASSERT_OK_AND_ASSIGN(const UniqueFd silent, ConnectAbstract(SOCK_SEQPACKET, socket_, Now() + absl::Seconds(20)));
  ASSERT_OK_AND_ASSIGN(const UniqueFd nonsense, ConnectAbstract(SOCK_SEQPACKET, socket_, Now() + absl::Seconds(20)));
  ASSERT_EQ(::write(nonsense.get(), "x", 1), 1);
  EXPECT_OK(Open("a", 1));
}

TEST(SlabClient, EndsAtItsDeadlineAndWithItsBroker) {
  // A broker that accepts in the kernel and never answers.
  ASSERT_OK_AND_ASSIGN(AbstractListener deaf, ListenAbstract(SOCK_SEQPACKET));
  const std::unique_ptr<SlabSource> client = ConnectSlabs(deaf.name);
  EXPECT_THAT(client->Open("a", 1, Now() + absl::Milliseconds(20)),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       "1 bytes of shared memory from this host's agent: the agent did not answer"));
  deaf.fd.reset();
  EXPECT_THAT(client->Open("a", 1, Instant::Infinite()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("Connection refused")));
}

}  // namespace
}  // namespace farandole
