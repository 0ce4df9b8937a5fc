#include "driver/service/relay_call.h"

#include <utility>

namespace farandole {

void RelayCall::Write(std::string bytes, bool end) {
  if (result_) return;
  out_.set_data(std::move(bytes));
  out_.set_end(end);
  writing_ = true;
  StartWrite(&out_);
}

void RelayCall::End(const grpc::Status& status) {
  if (result_) return;
  result_ = status;
  if (writing_) return context_->TryCancel();  // a write that the other side does not take would never be done
  finished_ = true;
  Finish(status);
}

void RelayCall::OnReadDone(bool ok) {
  loop_->Post([this, ok] {
    if (!ok) return events_.broken();
    v1::RelayBytes bytes;
    bytes.Swap(&in_);
    events_.read(std::move(bytes));
  });
}

void RelayCall::OnWriteDone(bool ok) {
  loop_->Post([this, ok] {
    writing_ = false;
    if (result_ && !std::exchange(finished_, true)) return Finish(*result_);
    if (!ok) return events_.broken();
    events_.written();
  });
}

void RelayCall::OnCancel() {
  loop_->Post([this] { events_.broken(); });
}

void RelayCall::OnDone() {
  loop_->Post([this] {
    const std::function<void()> done = std::move(events_.done);  // it ends this object
    done();
  });
}

}  // namespace farandole
