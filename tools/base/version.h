#pragma once

namespace farandole {

// The project's version; CHANGELOG.md has what it brought.
inline constexpr char kVersion[] = "0.1.0";

// The Horovod whose command line and Python interface this version follows.
inline constexpr char kHorovodVersion[] = "0.28.1";

}  // namespace farandole
