#pragma once

#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "driver/service/agent_service.h"
#include "tools/base/instant.h"
#include "tools/base/mutex.h"

namespace farandole {

// Lets starters use the service from their own threads for as long as there is one. Shared: who was given it may
// outlive the service, and finds it closed: Unavailable. Thread-safe.
class ServiceGate {
 public:
  explicit ServiceGate(AgentService* service) : service_(service) {}

  // As AgentService's.
  absl::StatusOr<std::string> Listen(const std::string& address) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (service_ == nullptr) return absl::UnavailableError("the driver is ending");
    return service_->Listen(address);
  }
  void OpenRelay(const std::string& via, const std::string& address, int port, Instant deadline, RelayDone done)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (service_ == nullptr) return done(absl::UnavailableError("the driver is ending"));
    service_->OpenRelay(via, address, port, deadline, std::move(done));
  }

  void Close() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    service_ = nullptr;
  }

 private:
  Mutex mutex_;
  AgentService* service_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace farandole
