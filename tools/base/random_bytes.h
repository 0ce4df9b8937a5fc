#pragma once

#include <cstdint>
#include <string>

namespace farandole {

// `count` bytes from the kernel's generator, for keys and ids. Ends the process if the kernel has none.
std::string RandomBytes(size_t count);

// A random id that is never zero (zero means "none" on every wire).
uint64_t RandomId();

}  // namespace farandole
