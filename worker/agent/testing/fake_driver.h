#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "driver/security/job_authority.h"
#include "proto/v1/agent_service.pb.h"
#include "tools/base/instant.h"

namespace farandole::testing {

// A driver as an agent sees it: speaks AgentService over a unix socket or TLS, with one agent, and does what the test
// tells it. It decides nothing, checks nothing, and sends Welcome only when told to.
//
// Thread-safe.
class FakeDriver {
 public:
  static std::unique_ptr<FakeDriver> Start();
  // On 127.0.0.1, for agents of this authority.
  static std::unique_ptr<FakeDriver> StartTls(const JobAuthority& authority);
  virtual ~FakeDriver() = default;  // ends as a killed driver does

  virtual std::string address() const = 0;

  virtual void Send(v1::DriverMessage message) = 0;
  // Ends the stream with `code` (0: in order).
  virtual void EndStream(int code, const std::string& text) = 0;

  // Gives back credit for output as it comes, from now on.
  virtual void GiveBackCredit() = 0;

  // All messages so far but heartbeats, in order.
  virtual std::vector<v1::AgentMessage> Messages() = 0;
  virtual int Heartbeats() = 0;
  // The output of the worker in `slot`, both streams apart.
  virtual std::string Output(uint32_t slot, v1::Output::Stream stream) = 0;

  // Waits until `condition` holds for the messages so far; looked at after each. False when 30 s have passed.
  virtual bool Await(const std::function<bool(const std::vector<v1::AgentMessage>&)>& condition) = 0;
  virtual bool AwaitHeartbeats(int count) = 0;
  // Waits until the agent has ended the stream in order, or it is broken.
  virtual bool AwaitStreamEnd() = 0;
};

}  // namespace farandole::testing
