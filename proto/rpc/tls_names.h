#pragma once

#include <string>

#include "tools/base/ids.h"

namespace farandole {

// The names in the certificates of a job (driver/security), as both ends of a connection compute them: they are
// compared, never taken apart. Only certificates of one job's authority are ever compared, so a name says who of this
// job, and the job's id is in it for people who look at one.

// The driver's, a DNS name: "driver.JOB.farandole".
std::string DriverTlsName(const std::string& job);

// An agent's, a URI: "farandole:JOB/agent/HOST/INCARNATION", the incarnation as 16 hex digits. What of a job's id or a
// host's name is not a letter, a digit or one of "-._" is percent-encoded.
std::string AgentTlsName(const std::string& job, const std::string& host, Incarnation incarnation);

// The method of a client's first call to a TlsServer: see there.
inline constexpr char kProofMethod[] = "/farandole.Proof/Prove";

}  // namespace farandole
