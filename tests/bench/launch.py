"""How long starting and ending `true` takes, against mpirun and a bare loop of posix_spawn."""

import os
import shutil

import measure

COUNTS = (2, 8, 32)
HUNG = 10.0  # seconds; none of the launchers needs one second


def command(launcher, count, programs):
    return {
        "farandole": ["horovodrun", "-np", str(count), "-H",
                      "localhost:%d" % count, "true"],
        "mpirun": ["mpirun", "--oversubscribe", "--allow-run-as-root", "-np",
                   str(count), "true"],
        "spawn": [os.path.join(programs, "spawn_loop"), str(count), "true"],
    }[launcher]


def run(options):
    launchers = ["farandole", "spawn"]
    notes = []
    if shutil.which("mpirun"):
        launchers.insert(1, "mpirun")
    else:
        notes.append("mpirun is not installed, so there is nothing to compare with: tools/setup --bench installs it")
    rows = []

    def once(launcher, count):
        """Milliseconds, or None when mpirun hung: Open MPI 4.1.4 does with many programs that end at once."""
        try:
            return 1000 * measure.run(command(launcher, count, options.programs), limit=HUNG)[0]
        except measure.TimeLimitError:
            if launcher != "mpirun":
                raise
            return None

    for count in COUNTS:
        measure.say("launch, %d processes" % count)
        once("farandole", count)  # what is read from disk, is read
        samples = measure.rounds(options.repetitions, launchers, lambda launcher, n=count: once(launcher, n))
        ended = {launcher: [one for one in samples[launcher] if one is not None] for launcher in launchers}
        hung = options.repetitions - len(ended.get("mpirun", samples["farandole"]))
        if hung:
            notes.append("mpirun -np %d did not end within %d s in %d of %d runs; these are not in its median" %
                         (count, HUNG, hung, options.repetitions))
        rows.append({
            "processes": count,
            "milliseconds": ended,
            "hung_mpirun": hung,
            "to_mpirun": measure.ratio(ended["farandole"], ended.get("mpirun")),
            "to_spawn": measure.ratio(ended["farandole"], ended["spawn"])
        })
    return {"rows": rows, "notes": notes}


def text(result):
    header = ["true with np", "farandole", "mpirun", "bare spawn", "to mpirun", "to bare spawn"]
    rows = []
    for row in result["rows"]:
        medians = {
            name: measure.number(measure.median(samples), " ms")
            for name, samples in row["milliseconds"].items() if samples
        }
        rows.append([
            row["processes"], medians["farandole"],
            medians.get("mpirun"), medians["spawn"],
            measure.number(row["to_mpirun"], "x"),
            measure.number(row["to_spawn"], "x")
        ])
    return measure.table(header, rows)
