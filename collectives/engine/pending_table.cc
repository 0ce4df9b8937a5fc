#include "collectives/engine/pending_table.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace farandole {
namespace {

// The same on every rank for the same names, in any order (FNV-1a); never 0. Of all names, not of the first and their
// number: groups that share a name may be in use at once.
uint64_t GroupId(const std::set<absl::string_view>& names) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const absl::string_view name : names) {
    for (const char c : absl::StrCat(name, "\n")) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return hash == 0 ? 1 : hash;
}

Announcement AnnouncementOf(const Request& request, uint64_t group, uint32_t group_size) {
  Announcement announcement;
  announcement.kind = request.kind;
  announcement.name = request.name;
  announcement.dtype = request.dtype;
  announcement.shape = request.shape;
  announcement.op = request.op;
  announcement.root = request.root;
  announcement.prescale = request.prescale;
  announcement.postscale = request.postscale;
  announcement.priority = request.priority;
  announcement.group = group;
  announcement.group_size = group_size;
  return announcement;
}

absl::Status DuplicateName(const std::string& name) {
  // The first words are the original's.
  return absl::InvalidArgumentError(absl::StrCat(
      "Requested to allreduce, allgather, or broadcast a tensor with the same name as another tensor that is "
      "currently being processed: ",
      name, ". Give it another name, or wait for the first."));
}

}  // namespace

absl::Status PendingTable::Add(std::vector<Request> requests, std::vector<Engine::Done> done) {
  MutexLock lock(&mutex_);
  if (!closed_.ok()) return closed_;
  std::set<absl::string_view> names;
  for (const Request& request : requests) {
    if (requests_.count(request.name) > 0 || !names.insert(request.name).second) return DuplicateName(request.name);
  }
  const bool alone = requests.size() == 1;
  const uint64_t group = alone ? 0 : GroupId(names);
  const auto group_size = static_cast<uint32_t>(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    new_.push_back(AnnouncementOf(requests[i], group, group_size));
    std::string name = requests[i].name;
    requests_.emplace(std::move(name), Pending{std::move(requests[i]), std::move(done[i])});
  }
  return absl::OkStatus();
}

size_t PendingTable::size() const {
  MutexLock lock(&mutex_);
  return requests_.size();
}

std::vector<Announcement> PendingTable::TakeNew() {
  MutexLock lock(&mutex_);
  return std::exchange(new_, {});
}

absl::optional<Pending> PendingTable::Take(const std::string& name) {
  MutexLock lock(&mutex_);
  const auto it = requests_.find(name);
  if (it == requests_.end()) return absl::nullopt;
  return std::exchange(it->second, absl::nullopt);
}

void PendingTable::Finished(const std::string& name) {
  MutexLock lock(&mutex_);
  requests_.erase(name);
}

std::vector<Pending> PendingTable::Close(absl::Status status) {
  MutexLock lock(&mutex_);
  if (closed_.ok()) closed_ = std::move(status);
  new_.clear();
  std::vector<Pending> left;
  for (auto it = requests_.begin(); it != requests_.end();) {
    if (it->second.has_value()) {
      left.push_back(*std::move(it->second));
      it = requests_.erase(it);
    } else {
      ++it;
    }
  }
  return left;
}

}  // namespace farandole
