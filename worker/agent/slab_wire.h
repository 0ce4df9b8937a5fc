#pragma once

#include <cstdint>

namespace farandole {

// What is said on the agent's socket for shared memory: SOCK_SEQPACKET, one packet each way, both ends on one machine
// and of one release, so plain structs in the machine's byte order. A connection carries one request.

// Followed by the slab's name, 1 to kMaxSlabName bytes.
struct SlabRequest {
  uint32_t magic;  // kSlabMagic
  uint32_t reserved;
  int64_t bytes;
};

// Followed by the words of the error, at most kMaxSlabWords bytes, or accompanied by one descriptor (SCM_RIGHTS).
struct SlabReply {
  uint32_t magic;  // kSlabMagic
  uint32_t code;   // of absl::Status; 0 is OK
};

// "FSL" and the revision.
inline constexpr uint32_t kSlabMagic = 0x46534c01;
inline constexpr int kMaxSlabName = 256;
inline constexpr int kMaxSlabWords = 1024;

}  // namespace farandole
