"""tools/bench, once everything is built: measures, prints medians and ratios, and saves the samples as JSON."""

import argparse
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import collectives  # noqa: E402 (these stand beside this file)
import engine  # noqa: E402
import init  # noqa: E402
import launch  # noqa: E402
import launch_ssh  # noqa: E402
import measure  # noqa: E402

BENCHMARKS = {"launch": launch, "launch_ssh": launch_ssh, "collectives": collectives, "engine": engine, "init": init}


def positive(text):
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value


def main():
    parser = argparse.ArgumentParser(prog="tools/bench",
                                     description="Measures Farandole beside its peers.",
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="\n".join("%-10s %s" % (name, module.__doc__)
                                                      for name, module in BENCHMARKS.items()))
    parser.add_argument("benchmark",
                        nargs="*",
                        metavar="BENCHMARK",
                        help="launch, launch_ssh, collectives, engine, init; default: all of them")
    parser.add_argument("--repetitions",
                        type=positive,
                        default=7,
                        metavar="N",
                        help="runs of each program, in turn (default 7)")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--plot", metavar="FILE", help="draw the collectives into FILE (.svg or .png)")
    parser.add_argument("--programs", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--folder", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = [name for name in options.benchmark if name not in BENCHMARKS]
    if unknown:
        parser.error("there is no benchmark %s; there are %s" % (unknown[0], ", ".join(BENCHMARKS)))
    names = options.benchmark or BENCHMARKS
    if options.plot and not any(hasattr(BENCHMARKS[name], "plot") for name in names):
        parser.error("--plot draws the collectives, which are not measured here")
    results = {}
    for name in names:
        before = measure.machine()
        if before["load"][0] > before["cores"] / 2:
            measure.say("the machine is busy (load %.2f on %d cores): compare ratios, not times" %
                        (before["load"][0], before["cores"]))
        result = BENCHMARKS[name].run(options)
        after = measure.machine()
        result.update(benchmark=name, repetitions=options.repetitions, machine={"before": before, "after": after})
        results[name] = result
        path = measure.save(options.folder, name, result)
        if options.plot and hasattr(BENCHMARKS[name], "plot"):
            BENCHMARKS[name].plot(result, options.plot)
        if options.format == "table":
            print(BENCHMARKS[name].text(result))
            print("Medians of %d runs in turn. %s." % (options.repetitions, measure.machine_text(before, after)))
            for note in result["notes"]:
                print("Note: %s." % note)
            print("Samples: %s\n" % os.path.relpath(path), flush=True)
    if options.format == "json":
        print(json.dumps(results, indent=1))


if __name__ == "__main__":
    try:
        main()
    except measure.BenchError as error:
        sys.exit("tools/bench: error: %s" % error)
    except KeyboardInterrupt:
        sys.exit(130)
