"""What an allreduce of 4 B, 1 MiB and 16 MiB costs over shared memory and over TCP, against Open MPI over the same."""

import os
import shutil

import measure

COUNTS = (2, 4)
# What is measured: (whose, transport).
OURS = [("farandole", "shm"), ("farandole", "tcp")]
THEIRS = [("openmpi", "shm"), ("openmpi", "tcp")]
BTL = {"shm": "self,vader", "tcp": "self,tcp"}


def compile_mpi(options, notes):
    """The program for Open MPI, or None with a note."""
    missing = [name for name in ("mpirun", "mpicxx") if not shutil.which(name)]
    if missing:
        notes.append("%s is not installed, so there is nothing to compare with: tools/setup --bench installs it" %
                     " and ".join(missing))
        return None
    here = os.path.dirname(os.path.abspath(__file__))
    sources = [os.path.join(here, name) for name in ("allreduce_mpi.cc", "allreduce_loop.h")]
    program = os.path.join(options.folder, "allreduce_mpi")
    if not os.path.exists(program) or os.path.getmtime(program) < max(map(os.path.getmtime, sources)):
        measure.say("compiling allreduce_mpi")
        os.makedirs(options.folder, exist_ok=True)
        measure.run(["mpicxx", "-O2", "-std=c++20", "-I" + os.path.join(here, "..", ".."), sources[0], "-o", program])
    return program


def run(options):
    notes = []
    mpi = compile_mpi(options, notes)
    rows = []

    def once(variant, count):
        whose, transport = variant
        if whose == "farandole":
            command = [
                "horovodrun", "-np",
                str(count), "-H",
                "localhost:%d" % count,
                os.path.join(options.programs, "allreduce_farandole")
            ]
            output = measure.run(command, {"FARANDOLE_TRANSPORT": transport})[1]
        else:
            output = measure.run([
                "mpirun", "--oversubscribe", "--allow-run-as-root", "-np",
                str(count), "--mca", "pml", "ob1", "--mca", "btl", BTL[transport], mpi
            ])[1]
        return {line["bytes"]: measure.median(line["microseconds"]) for line in measure.json_lines(output)}

    for count in COUNTS:
        measure.say("allreduce, %d processes" % count)
        runs = measure.rounds(options.repetitions,
                              OURS + (THEIRS if mpi else []),
                              lambda variant, n=count: once(variant, n))
        for _, transport in OURS:
            ours = runs["farandole", transport]
            theirs = runs.get(("openmpi", transport), [])
            for size in sorted(ours[0]):
                microseconds = {"farandole": [one[size] for one in ours], "openmpi": [one[size] for one in theirs]}
                rows.append({
                    "processes": count,
                    "transport": transport,
                    "bytes": size,
                    "microseconds": microseconds,
                    "to_openmpi": measure.ratio(microseconds["farandole"], microseconds["openmpi"])
                })
    return {"rows": rows, "notes": notes}


def size_text(size):
    return "%d MiB" % (size >> 20) if size >= 1 << 20 else "%d B" % size


def text(result):
    rows = []
    for row in result["rows"]:
        medians = {
            whose: measure.number(measure.median(samples), " us") if samples else None
            for whose, samples in row["microseconds"].items()
        }
        rows.append([
            "np %d, %s" % (row["processes"], row["transport"]),
            size_text(row["bytes"]), medians["farandole"], medians["openmpi"],
            measure.number(row["to_openmpi"], "x")
        ])
    return measure.table(["allreduce", "size", "farandole", "Open MPI", "to Open MPI"], rows)
