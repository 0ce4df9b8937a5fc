#pragma once

#include "absl/base/thread_annotations.h"
#include "driver/runtime/driver_runtime.h"
#include "launcher/exec/output_mux.h"
#include "tools/base/mutex.h"

namespace farandole {

// Passes signals to the driver from when there is one. The third is from a person who has waited enough: output that
// nobody reads is no longer waited for; nor is any after the driver has gone. Thread-safe.
class Interrupts {
 public:
  void On(int signal) {
    MutexLock lock(&mutex_);
    ++count_;
    last_ = signal;
    if (runtime_ != nullptr) runtime_->Interrupt(signal);
    if (output_ != nullptr && (count_ > 2 || runtime_ == nullptr)) output_->Abandon();
  }

  void Attach(DriverRuntime* runtime, OutputMux* output) {
    MutexLock lock(&mutex_);
    runtime_ = runtime;
    output_ = output;
    if (count_ > 0) runtime_->Interrupt(last_);
  }

  void DetachRuntime() {
    MutexLock lock(&mutex_);
    runtime_ = nullptr;
  }

  void DetachOutput() {
    MutexLock lock(&mutex_);
    output_ = nullptr;
  }

 private:
  Mutex mutex_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
  int last_ ABSL_GUARDED_BY(mutex_) = 0;
  DriverRuntime* runtime_ ABSL_GUARDED_BY(mutex_) = nullptr;
  OutputMux* output_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace farandole
