// spawn_loop N PROGRAM [ARGUMENT...]: starts N copies of PROGRAM and waits for all of them. The least that a launcher
// can do, as the yardstick for tools/bench launch. Exit code: 0 when all of them ended with 0.
#include <spawn.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

int main(int argc, char** argv) {
  const int count = argc > 2 ? std::atoi(argv[1]) : 0;
  if (count < 1) {
    std::fprintf(stderr, "usage: spawn_loop N PROGRAM [ARGUMENT...]\n");
    return 2;
  }
  for (int i = 0; i < count; ++i) {
    pid_t pid = 0;
    if (const int error = posix_spawnp(&pid, argv[2], nullptr, nullptr, argv + 2, environ); error != 0) {
      std::fprintf(stderr, "spawn_loop: %s cannot be started: %s\n", argv[2], std::strerror(error));
      return 1;
    }
  }
  bool all_ended_well = true;
  for (int i = 0; i < count; ++i) {
    int status = 0;
    all_ended_well = wait(&status) > 0 && status == 0 && all_ended_well;
  }
  return all_ended_well ? 0 : 1;
}
