#!/usr/bin/env python3
"""Forecasts a city's traffic for the next hour from the last day's hours and the weather: an LSTM, trained by Horovod.

    horovodrun -np 4 -H localhost:4 python city_management_model.py
    python city_management_model.py                                   (one process, no launcher)

The data is the hourly number of rented bicycles in Washington DC in 2011, which the package ISLP brings along (pip
install --no-deps ISLP). --data reads another file; see hourly_traffic.py. The weather of the hour to come counts as
known: weather forecasts for an hour are good.

However many workers there are, they take the same steps with the same samples: each has its share of every batch.
"""

import argparse
import hashlib
import sys
import time

import horovod.torch as hvd
import hourly_traffic
import torch
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

DAY = 24
WEEK = 7 * DAY
TEST_SHARE = 0.2
PLOTTED_HOURS = 2 * WEEK
SHORTEST = 6 * WEEK


def parse_arguments():
    parser = argparse.ArgumentParser(description="Trains an LSTM that forecasts hourly traffic.")
    parser.add_argument(
        "--data", metavar="FILE", help="CSV file, plain or .gz (default: Bikeshare.csv of the package ISLP)"
    )
    parser.add_argument("--epochs", type=int, default=12, help="how often all samples are used (%(default)s)")
    parser.add_argument(
        "--batch-size", type=int, default=128, help="samples per step, over all workers (%(default)s)"
    )
    parser.add_argument("--lr", type=float, default=0.006, help="highest learning rate (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of all that is random (%(default)s)")
    parser.add_argument(
        "--plot",
        metavar="FILE",
        default="city_management_forecast.png",
        help="where the forecast is drawn, as PNG (%(default)s)",
    )
    arguments = parser.parse_args()
    for name in ("epochs", "batch_size", "lr"):
        if getattr(arguments, name) <= 0:
            parser.error("--%s must be more than 0" % name.replace("_", "-"))
    arguments.data = arguments.data or hourly_traffic.default_file()
    if arguments.data is None:
        parser.error(
            "the package ISLP, which has the data, is not installed: pip install --no-deps ISLP, or give --data FILE"
        )
    return arguments


def say(*words):
    """Prints on rank 0 only."""
    if hvd.rank() == 0:
        print(*words, flush=True)


class Samples:
    """What the model sees, and what it should say, for every hour whose last day is known.

    inputs [n, 24, features]: the traffic of the 24 hours before, each with calendar and weather of the hour after it,
    so that the last has those of the hour to forecast. targets [n]: its traffic. Both are scaled by the mean and
    deviation of the time before `split`, which is all that the model may know. naive [n]: the traffic a week before.
    """

    def __init__(self, traffic):
        if len(traffic.counts) < SHORTEST:
            sys.exit("the data is too short: %d hours, and %d are needed" % (len(traffic.counts), SHORTEST))
        counts = torch.tensor(traffic.counts)
        observed = torch.tensor(traffic.observed)
        hours = torch.arange(WEEK, len(counts))
        windows = counts.unfold(0, DAY, 1)[hours - DAY]  # the day before each hour
        usable = ~windows.isnan().any(1) & observed[hours] & observed[hours - WEEK]
        self.hours = hours[usable]
        split = int(len(counts) * (1.0 - TEST_SHARE))

        conditions = torch.tensor(traffic.weather)
        conditions = (conditions - conditions[:split].mean(0)) / conditions[:split].std(0).clamp(min=1e-6)
        conditions = torch.cat([conditions, torch.tensor(traffic.calendar)], 1)
        known = counts[:split][observed[:split]]
        self.mean, self.deviation = known.mean(), known.std().clamp(min=1e-6)
        scaled = (counts - self.mean) / self.deviation

        steps = self.hours[:, None] - DAY + torch.arange(DAY)
        self.inputs = torch.cat([scaled[steps][:, :, None], conditions[steps + 1]], 2)
        self.targets = scaled[self.hours]
        self.truth = counts[self.hours]
        self.naive = counts[self.hours - WEEK]
        self.train = self.hours < split
        self.test = self.hours >= split
        if not self.train.any() or not self.test.any():
            sys.exit("the data has too many gaps: no hour can be forecast before, or none after, the split")


class Forecaster(torch.nn.Module):
    """[batch, hours, features] -> [batch]: the scaled traffic of the next hour."""

    def __init__(self, features, hidden=32):
        super().__init__()
        self.lstm = torch.nn.LSTM(features, hidden, batch_first=True)
        self.head = torch.nn.Linear(hidden, 1)

    def forward(self, inputs):
        states, _ = self.lstm(inputs)
        return self.head(states[:, -1]).squeeze(1)


class Progress:
    """A bar on a terminal, a line per epoch elsewhere; on rank 0 only."""

    WIDTH = 30

    def __init__(self, epochs, steps):
        self.epochs = epochs
        self.steps = steps
        self.shown = hvd.rank() == 0
        self.bar = self.shown and sys.stdout.isatty()

    def step(self, epoch, step):
        if self.bar:
            done = self.WIDTH * step // self.steps
            bar = "#" * done + "." * (self.WIDTH - done)
            print("\repoch %2d/%d [%s]" % (epoch, self.epochs, bar), end="", flush=True)

    def epoch(self, epoch, loss, seconds):
        if self.shown:
            start = "\r\x1b[K" if self.bar else ""
            print("%sepoch %2d/%d  loss %.4f  %.1f s" % (start, epoch, self.epochs, loss, seconds), flush=True)


def train(model, samples, arguments):
    """Returns samples per second, of all workers together."""
    dataset = TensorDataset(samples.inputs[samples.train], samples.targets[samples.train])
    sampler = DistributedSampler(dataset, num_replicas=hvd.size(), rank=hvd.rank(), seed=arguments.seed)
    batch = max(1, arguments.batch_size // hvd.size())
    loader = DataLoader(dataset, batch_size=batch, sampler=sampler)
    say("training: %d workers, %d samples each per step, %d steps per epoch" % (hvd.size(), batch, len(loader)))

    optimizer = torch.optim.Adam(model.parameters(), lr=arguments.lr)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, arguments.lr, total_steps=arguments.epochs * len(loader)
    )

    progress = Progress(arguments.epochs, len(loader))
    start = time.perf_counter()
    for epoch in range(1, arguments.epochs + 1):
        epoch_start = time.perf_counter()
        sampler.set_epoch(epoch)
        total = 0.0
        for step, (inputs, targets) in enumerate(loader, 1):
            optimizer.zero_grad()
            loss = torch.nn.functional.l1_loss(model(inputs), targets)
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
            progress.step(epoch, step)
        average = hvd.allreduce(torch.tensor(total / len(loader)), name="loss").item()
        progress.epoch(epoch, average, time.perf_counter() - epoch_start)
    return arguments.epochs * len(dataset) / (time.perf_counter() - start)


def forecast(model, samples):
    """The traffic that the model expects in the test hours [m]; every worker computes its part."""
    inputs = samples.inputs[samples.test]
    part = torch.tensor_split(inputs, hvd.size())[hvd.rank()]
    with torch.no_grad():
        scaled = model(part)
    return (hvd.allgather(scaled, name="forecast") * samples.deviation + samples.mean).clamp(min=0.0)


def check_identical(model):
    """All workers must have the same parameters, to the last bit."""
    digest = hashlib.sha256()
    for name, value in model.state_dict().items():
        digest.update(name.encode())
        digest.update(value.numpy().tobytes())
    digests = hvd.allgather_object(digest.hexdigest(), name="digest")
    if len(set(digests)) != 1:
        sys.exit("the workers ended with different parameters: %s" % ", ".join(digest[:12] for digest in digests))
    say("parameters: identical on all %d workers (sha256 %s...)" % (len(digests), digests[0][:12]))


def draw(path, samples, expected, traffic):
    """The forecast against the truth, the last two weeks."""
    try:
        import matplotlib
    except ImportError:
        print("plot: none, since matplotlib is not installed")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    hours = [traffic.start + hourly_traffic.HOUR * int(hour) for hour in samples.hours[samples.test]]
    figure, axes = pyplot.subplots(figsize=(14, 5))
    axes.plot(
        hours[-PLOTTED_HOURS:], samples.truth[samples.test][-PLOTTED_HOURS:].tolist(), label="truth", color="0.6"
    )
    axes.plot(hours[-PLOTTED_HOURS:], expected[-PLOTTED_HOURS:].tolist(), label="forecast", color="C3", linewidth=1.0)
    axes.set_ylabel("%s per hour" % traffic.unit)
    axes.set_title("Hourly traffic, the last two weeks")
    axes.legend()
    figure.autofmt_xdate()
    figure.savefig(path, format="png", dpi=100, bbox_inches="tight")
    pyplot.close(figure)
    print("plot: %s" % path, flush=True)


def main():
    arguments = parse_arguments()
    try:
        traffic = hourly_traffic.read(arguments.data)
    except (OSError, ValueError) as error:
        sys.exit("the data cannot be used: %s" % error)

    hvd.init()
    torch.manual_seed(arguments.seed)
    if hvd.size() > 1:
        torch.set_num_threads(1)  # the workers share this machine's processors
    for line in traffic.account:
        say("data:", line)
    samples = Samples(traffic)
    say("samples: %d to train with, then in time %d to test with" % (samples.train.sum(), samples.test.sum()))

    model = Forecaster(samples.inputs.shape[2])
    speed = train(model, samples, arguments)
    expected = forecast(model, samples)
    check_identical(model)

    if hvd.rank() == 0:
        truth = samples.truth[samples.test]
        print(
            "mean absolute error: %.1f %s per hour; naive forecast (same hour one week before): %.1f"
            % ((expected - truth).abs().mean(), traffic.unit, (samples.naive[samples.test] - truth).abs().mean())
        )
        print("speed: %.0f samples per second" % speed, flush=True)
        draw(arguments.plot, samples, expected, traffic)
    hvd.shutdown()


if __name__ == "__main__":
    main()
