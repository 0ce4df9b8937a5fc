// Times MPI's collectives, for comparison with `farandole bench`. Compiled by tools/bench with mpicxx where that is
// installed, not by Bazel. Which transport is used is mpirun's business.
#include <mpi.h>

#include "tests/bench/collective_peer.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const farandole::bench::PeerRequest request = farandole::bench::ReadPeerRequest(argc, argv);
  const std::string& op = request.op;
  const auto once = [&](farandole::bench::PeerTensors& t) {
    const int count = static_cast<int>(t.count);
    if (op == "allreduce") {
      return MPI_Allreduce(t.input.data(), t.output.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS;
    }
    if (op == "allgather") {
      return MPI_Allgatherv(t.input.data(), t.shares[rank], MPI_FLOAT, t.output.data(), t.shares.data(),
                            t.begins.data(), MPI_FLOAT, MPI_COMM_WORLD) == MPI_SUCCESS;
    }
    if (op == "broadcast") {
      return MPI_Bcast(t.output.data(), count, MPI_FLOAT, 0, MPI_COMM_WORLD) == MPI_SUCCESS &&
             MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS;
    }
    if (op == "alltoall") {
      return MPI_Alltoall(t.input.data(), count / size, MPI_FLOAT, t.output.data(), count / size, MPI_FLOAT,
                          MPI_COMM_WORLD) == MPI_SUCCESS;
    }
    if (op == "reducescatter") {
      return MPI_Reduce_scatter(t.input.data(), t.output.data(), t.shares.data(), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD) ==
             MPI_SUCCESS;
    }
    return op == "barrier" && MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS;
  };
  const auto agree = [](int64_t* number) {
    return MPI_Bcast(number, 1, MPI_INT64_T, 0, MPI_COMM_WORLD) == MPI_SUCCESS &&
           MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS;
  };
  const int code = farandole::bench::MeasurePeer(request, size, rank, "mpi", once, agree);
  MPI_Finalize();
  return code;
}
