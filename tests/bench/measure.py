"""What the benchmarks share: running a program, the state of the machine, a table, a saved result."""

import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import time

LIMIT = 300.0  # seconds for one run of one program


class BenchError(Exception):
    """What went wrong, in one sentence for a person."""


class TimeLimitError(BenchError):
    """A program was stopped because it did not end."""


def say(text):
    print("tools/bench: " + text, file=sys.stderr, flush=True)


def run(command, env=None, limit=LIMIT):
    """Runs `command` to its end: (seconds, standard output). BenchError with its last words when it fails."""
    environment = dict(os.environ, **(env or {}))
    start = time.perf_counter()
    try:
        done = subprocess.run(command,
                              env=environment,
                              stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE,
                              timeout=limit,
                              check=False)
    except OSError as error:
        raise BenchError("%s cannot be started: %s." % (command[0], error.strerror)) from error
    except subprocess.TimeoutExpired as error:
        raise TimeLimitError("`%s` was stopped: it has run for %d s." % (" ".join(command), limit)) from error
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        words = done.stderr.decode(errors="replace").strip().splitlines() or ["(it said nothing)"]
        raise BenchError("`%s` ended with exit code %d: %s" %
                         (" ".join(command), done.returncode, " | ".join(words[-3:])))
    return seconds, done.stdout.decode(errors="replace")


def json_lines(output):
    """The JSON objects of a job's output, one a line, whatever prefix a launcher puts before them."""
    return [json.loads(line[line.index("{"):]) for line in output.splitlines() if "{" in line]


def median(samples):
    return statistics.median(samples)


def ratio(ours, theirs):
    """How many times as long ours takes; None without theirs."""
    return median(ours) / median(theirs) if theirs else None


def rounds(repetitions, variants, measure):
    """Calls measure(variant) `repetitions` times for each, in turn, so that what else the machine does meets all alike.
    The samples by variant."""
    samples = {variant: [] for variant in variants}
    for repetition in range(repetitions):
        turn = repetition % len(variants) if variants else 0
        for variant in variants[turn:] + variants[:turn]:
            samples[variant].append(measure(variant))
    return samples


def machine():
    """The state that a figure should be read with."""
    model = platform.machine()
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return {
        "cores": len(os.sched_getaffinity(0)),
        "processor": model,
        "kernel": platform.release(),
        "load": [round(value, 2) for value in os.getloadavg()]
    }


def machine_text(before, after):
    return "%d cores of %s, Linux %s; load over a minute %.2f before, %.2f after" % (
        before["cores"], before["processor"], before["kernel"], before["load"][0], after["load"][0])


def table(header, rows):
    """Text with aligned columns: the first one to the left, the others to the right. None is shown as a dash."""
    cells = [header] + [["-" if cell is None else str(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = []
    for row in cells:
        aligned = [row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        lines.append("  ".join(aligned).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def number(value, unit=""):
    """Three significant digits, or None."""
    if value is None:
        return None
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return "%.*f%s" % (digits, value, unit)


def save(folder, name, result):
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "%s-%s.json" % (name, datetime.datetime.now().strftime("%Y%m%d-%H%M%S")))
    with open(path, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
        file.write("\n")
    return path
