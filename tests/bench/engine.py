"""Named, negotiated and cached allreduces through the engine: 4 B, and 100 tensors of 1,000 float32 in one step."""

import measure

CASES = [("4 B", ["--bytes", "4"]), ("100 x 1,000 float32", ["--bytes", "4000", "--tensors", "100"])]
SECONDS = "0.5"


def run(options):
    rows = []
    for np in (2, 4):
        for transport in ("shm", "tcp"):
            for name, what in CASES:
                measure.say("engine, %s, %d processes, %s" % (name, np, transport))
                command = ["farandole", "bench", "allreduce", "--engine", "--json", "--seconds", SECONDS, "--np",
                           str(np), "--transport", transport] + what
                runs = [measure.json_lines(measure.run(command)[1])[0] for _ in range(options.repetitions)]
                rows.append({"name": name, "np": np, "transport": transport,
                             "median_us": [one["median_us"] for one in runs],
                             "p99_us": [one["p99_us"] for one in runs]})
    return {"rows": rows, "notes": []}


def text(result):
    rows = [[
        "%s, np %d, %s" % (row["name"], row["np"], row["transport"]),
        measure.number(measure.median(row["median_us"]), " us"),
        measure.number(measure.median(row["p99_us"]), " us")
    ] for row in result["rows"]]
    return measure.table(["engine", "median", "p99"], rows)
