"""How long starting and ending `true` over ssh takes, on 8 hosts with 4 processes each, against mpirun on the same."""

import os
import shutil
import signal
import sys

import measure

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cluster"))
import cluster as clusters  # noqa: E402 (hosts that are namespaces of this machine)

HOSTS = ["h%d" % number for number in range(1, 9)]
EACH = 4
LIMIT = 60.0  # seconds; none needs ten
CACHE = os.path.join(".cache", "farandole")  # in the home folder of a host


def command(variant):
    hosts = ["-np", str(EACH * len(HOSTS)), "-H", ",".join("%s:%d" % (name, EACH) for name in HOSTS), "true"]
    if variant == "mpirun":
        return ["mpirun", "--allow-run-as-root", "--mca", "plm_rsh_agent", "ssh", *hosts]
    return ["horovodrun", *hosts]


def once(cluster, variant):
    """Milliseconds, or None when mpirun hung: Open MPI 4.1.4 does with many programs that end at once."""
    if variant == "cold":
        for name in HOSTS:
            shutil.rmtree(os.path.join(cluster[name].home, CACHE), ignore_errors=True)
    home = cluster["home"]
    try:
        return 1000 * measure.run(home.inside(command(variant)), env=home.environment(), limit=LIMIT)[0]
    except measure.TimeLimitError:
        if variant != "mpirun":
            raise
        return None
    finally:
        for host in cluster.hosts.values():
            for pid in host.processes():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass


def run(options):
    reason = clusters.why_not()
    if reason:
        return {"rows": [], "notes": ["nothing was measured over ssh: " + reason]}
    variants, notes = ["cold", "warm"], []
    if shutil.which("mpirun"):
        variants.append("mpirun")
    else:
        notes.append("mpirun is not installed, so there is nothing to compare with: tools/setup --bench installs it")
    measure.say("launch over ssh, %d hosts with %d processes each" % (len(HOSTS), EACH))
    with clusters.Cluster(HOSTS) as cluster:
        once(cluster, "warm")  # what is read from disk, is read
        samples = measure.rounds(options.repetitions, variants, lambda variant: once(cluster, variant))
        for name in HOSTS:
            if not os.listdir(os.path.join(cluster[name].home, CACHE)):
                raise measure.BenchError("%s has no agent in ~/%s: what was measured as cold was not." % (name, CACHE))
    ended = {variant: [one for one in samples[variant] if one is not None] for variant in variants}
    hung = sum(one is None for one in samples.get("mpirun", []))
    if hung:
        notes.append(
            "mpirun did not end within %d s in %d of %d runs; these are not in its median"
            % (LIMIT, hung, options.repetitions)
        )
    rows = [
        {
            "what": variant,
            "milliseconds": ended[variant],
            "to_mpirun": measure.ratio(ended[variant], ended.get("mpirun")),
        }
        for variant in variants
    ]
    return {"rows": rows, "notes": notes}


def text(result):
    names = {
        "cold": "farandole, agent pushed",
        "warm": "farandole, agent there",
        "mpirun": "mpirun",
    }
    rows = []
    for row in result["rows"]:
        samples = row["milliseconds"]
        cells = [measure.number(middle(samples), " ms") for middle in (measure.median, max)] if samples else [None] * 2
        rows.append([names[row["what"]], *cells, measure.number(row["to_mpirun"], "x")])
    title = "true with np %d on %d hosts over ssh" % (EACH * len(HOSTS), len(HOSTS))
    return measure.table([title, "median", "slowest", "to mpirun"], rows)
