#pragma once

#include <string>

namespace farandole::testing {

// What one process of job_test's jobs does, by the name of its role; it uses the C interface only. Returns the exit
// code: 0 when all was as it should be, else 1, with a line on stderr that says what was not.
int RunJobWorker(const std::string& role);

}  // namespace farandole::testing
