"""Every collective over shared memory and TCP with 2 and 4 processes, against Open MPI and Gloo over the same."""

import os
import shutil

import measure

KIB, MIB = 1 << 10, 1 << 20
BTL = {"shm": "self,vader", "tcp": "self,tcp"}
# (processes, transport, operation, sizes): what the tables in collectives/README.md show.
ALLREDUCE = [4, 1 * KIB, 64 * KIB, 1 * MIB, 16 * MIB, 64 * MIB, 256 * MIB]
OTHERS = [1 * MIB, 16 * MIB, 256 * MIB]
CASES = ([(np, transport, "allreduce", ALLREDUCE) for np in (2, 4) for transport in ("shm", "tcp")] +
         [(np, transport, op, OTHERS)
          for np in (2, 4) for transport in ("shm", "tcp") for op in ("allgather", "broadcast", "alltoall",
                                                                    "reducescatter")])
SECONDS = 0.3  # for each size in one run
NAMES = {"farandole": "farandole", "openmpi": "Open MPI", "gloo": "Gloo"}


def compile_peer(options, notes, name, compiler, libraries, package):
    """The program of a peer, or None with a note."""
    if not shutil.which(compiler):
        notes.append("%s is not installed, so there is no comparison with it: tools/setup --bench installs it" % package)
        return None
    here = os.path.dirname(os.path.abspath(__file__))
    root = os.path.join(here, "..", "..")
    sources = [
        os.path.join(here, "collective_%s.cc" % name),
        os.path.join(here, "collective_peer.h"),
        os.path.join(root, "launcher", "bench", "timed_loop.h")
    ]
    program = os.path.join(options.folder, "collective_" + name)
    if not os.path.exists(program) or os.path.getmtime(program) < max(map(os.path.getmtime, sources)):
        measure.say("compiling collective_" + name)
        os.makedirs(options.folder, exist_ok=True)
        try:
            measure.run([compiler, "-O2", "-std=c++20", "-I" + root, sources[0], "-o", program] + libraries)
        except measure.BenchError as error:
            notes.append("%s cannot be compared with: %s" % (package, error))
            return None
    return program


def commands(peers, np, transport, op, sizes):
    """What runs for each participant, by its name."""
    listed = ",".join(map(str, sizes))
    result = {
        "farandole": [
            "farandole", "bench", op, "--np",
            str(np), "--bytes", listed, "--transport", transport, "--seconds",
            str(SECONDS), "--json"
        ]
    }
    if peers["openmpi"]:
        result["openmpi"] = [
            "mpirun", "--oversubscribe", "--allow-run-as-root", "-np",
            str(np), "--mca", "pml", "ob1", "--mca", "btl", BTL[transport], peers["openmpi"], op, listed,
            str(SECONDS)
        ]
    if peers["gloo"] and transport == "tcp" and op != "reducescatter":  # it has no shared memory, and no such operation
        result["gloo"] = [peers["gloo"], str(np), op, listed, str(SECONDS)]
    return result


def run(options):
    notes = []
    peers = {
        "openmpi": compile_peer(options, notes, "mpi", "mpicxx", [], "Open MPI"),
        "gloo": compile_peer(options, notes, "gloo", "g++", ["-lgloo", "-pthread"], "Gloo"),
    }
    rows = []
    for np, transport, op, sizes in CASES:
        measure.say("%s, %d processes, %s" % (op, np, transport))
        all_commands = commands(peers, np, transport, op, sizes)
        samples = measure.rounds(options.repetitions, list(all_commands), lambda who, c=all_commands: timings(c[who]))
        for size in sizes:
            row = {"op": op, "np": np, "transport": transport, "bytes": size, "median_us": {}, "p99_us": {}}
            for who, runs in samples.items():
                row["median_us"][who] = [one[size]["median_us"] for one in runs]
                row["p99_us"][who] = [one[size]["p99_us"] for one in runs]
            for who in ("openmpi", "gloo"):
                row["to_" + who] = measure.ratio(row["median_us"]["farandole"], row["median_us"].get(who, []))
            rows.append(row)
    return {"rows": rows, "notes": notes, "memory_gb_per_s": memory_bandwidth()}


def timings(command):
    return {line["bytes"]: line for line in measure.json_lines(measure.run(command)[1])}


def memory_bandwidth():
    """GB/s of one core copying more than the caches hold (read and write counted), the best of a few."""
    import time  # here, for its only use
    source, target = bytearray(64 * MIB), bytearray(64 * MIB)
    best = 0.0
    for _ in range(5):
        start = time.perf_counter()
        target[:] = source
        best = max(best, 2 * len(source) / (time.perf_counter() - start) / 1e9)
    return best


def size_text(size):
    if size >= MIB:
        return "%d MiB" % (size // MIB)
    return "%d KiB" % (size // KIB) if size >= KIB else "%d B" % size


def text(result):
    rows = []
    for row in result["rows"]:
        medians = {
            who: measure.number(measure.median(row["median_us"][who]), " us") if row["median_us"].get(who) else None
            for who in NAMES
        }
        rows.append([
            "%s, np %d, %s" % (row["op"], row["np"], row["transport"]),
            size_text(row["bytes"]), medians["farandole"],
            measure.number(measure.median(row["p99_us"]["farandole"]), " us"), medians["openmpi"],
            measure.number(row["to_openmpi"], "x"), medians["gloo"],
            measure.number(row["to_gloo"], "x")
        ])
    header = ["collective", "size", "farandole", "its p99", "Open MPI", "to Open MPI", "Gloo", "to Gloo"]
    return measure.table(header, rows) + "\nOne core copies %.1f GB/s (read and write)." % result["memory_gb_per_s"]


def plot(result, path):
    """Draws allreduce's time against size: a picture for each transport, a line for each participant and np."""
    import matplotlib  # only where a plot is asked for
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4.5), sharey=True)
    colours = {"farandole": "tab:blue", "openmpi": "tab:orange", "gloo": "tab:green"}
    for axis, transport in zip(axes, ("shm", "tcp")):
        for np, style in ((2, "-"), (4, "--")):
            rows = [r for r in result["rows"] if (r["op"], r["np"], r["transport"]) == ("allreduce", np, transport)]
            for who, name in NAMES.items():
                points = [(r["bytes"], measure.median(r["median_us"][who])) for r in rows if r["median_us"].get(who)]
                if points:
                    axis.plot(*zip(*points), style, marker="o", markersize=3, color=colours[who],
                              label="%s, np %d" % (name, np))
        axis.set(xscale="log", yscale="log", xlabel="bytes",
                 title="allreduce of float32, " + {"shm": "shared memory", "tcp": "TCP on loopback"}[transport])
        axis.grid(True, which="major", alpha=0.3)
        axis.legend(fontsize=8)
    axes[0].set_ylabel("microseconds (median)")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None, "Creator": None} if path.endswith(".svg") else None)
