#pragma once

#include <string>

namespace farandole {

// What one end of a connection proves itself with, and checks the other end by. PEM.
struct TlsIdentity {
  std::string ca_pem;  // whoever it has signed is of this job
  std::string certificate_pem;
  std::string private_key_pem;  // secret
};

}  // namespace farandole
