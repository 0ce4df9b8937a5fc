#include "launcher/exec/helping_hosts.h"

namespace farandole {

bool HelpingHosts::IsUp(const std::string& host) const {
  MutexLock lock(&mutex_);
  return Get(host) == State::kUp;
}

bool HelpingHosts::Await(const std::string& host, const std::atomic<bool>& ended) {
  MutexLock lock(&mutex_);
  changed_.Await(&mutex_, [&] {
    mutex_.AssertHeld();
    return ended || Get(host) != State::kComing;
  });
  return !ended && Get(host) == State::kUp;
}

void HelpingHosts::Wake() {
  MutexLock lock(&mutex_);
  changed_.NotifyAll();
}

void HelpingHosts::Set(const std::string& host, State state) {
  MutexLock lock(&mutex_);
  states_[host] = state;
  changed_.NotifyAll();
}

HelpingHosts::State HelpingHosts::Get(const std::string& host) const {
  const auto it = states_.find(host);
  return it == states_.end() ? State::kComing : it->second;
}

}  // namespace farandole
