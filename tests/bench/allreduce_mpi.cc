// Times MPI_Allreduce, for comparison. Compiled by tools/bench with mpicxx where that is installed, not by Bazel.
#include <mpi.h>

#include "tests/bench/allreduce_loop.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const auto allreduce = [](const float* in, float* out, size_t count) {
    return MPI_Allreduce(in, out, static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS;
  };
  const auto barrier = [] { return MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS; };
  const int code = farandole::bench::RunAllreduceCases(rank, size, allreduce, barrier);
  MPI_Finalize();
  return code;
}
