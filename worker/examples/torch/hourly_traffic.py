"""Reads hourly traffic counts with weather from a CSV file and cleans them. No framework, no dependency.

Two formats are known by their column names:

    Bikeshare           rented bicycles in Washington DC, 2011: the file in the package ISLP
    Metro Interstate    cars on Interstate 94 near Minneapolis, from the UCI Machine Learning Repository; its columns
                        may have their old names or those with units

A file may be compressed with gzip; then its name ends in .gz.
"""

import collections
import csv
import datetime
import gzip
import importlib.util
import math
import os

HOUR = datetime.timedelta(hours=1)
GAP_FILLED_HOURS = 3  # longer gaps stay gaps: nobody knows what went on there
HEADER_ERROR = "%s has columns that are neither those of Bikeshare nor those of Metro Interstate Traffic Volume: %s"
NAN = float("nan")

# start: the first hour.
# counts: one per hour, NaN where nobody knows. observed: whether it was measured, not filled in.
# weather, calendar: a list of numbers per hour.
# account: what was read and cleaned, a line each. unit: what is counted.
Traffic = collections.namedtuple("Traffic", "start counts observed weather calendar account unit")

# One row that was understood. weather: the values of the format's columns, NaN where impossible.
_Row = collections.namedtuple("_Row", "time count weather holiday")


def default_file():
    """Bikeshare.csv of the package ISLP, or None. The package is not imported: it would want many others."""
    spec = importlib.util.find_spec("ISLP")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = os.path.join(folder, "data", "Bikeshare.csv")
        if os.path.exists(path):
            return path
    return None


def read(path):
    """The traffic in the file.

    OSError: it cannot be read. ValueError: it has other columns, or no row that can be used.
    """
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        columns = set(reader.fieldnames or ())
        formats = [known for known in (_Bikeshare, _Metro) if known.fits(columns)]
        if not formats:
            raise ValueError(HEADER_ERROR % (path, ", ".join(sorted(columns)) or "none"))
        return _clean(path, formats[0](columns), list(reader))


class _Bikeshare(object):
    unit = "bicycles"
    _SKY = {"clear": 0.0, "cloudy/misty": 1.0, "light rain/snow": 2.0, "heavy rain/snow": 3.0}

    @staticmethod
    def fits(columns):
        return {"day", "hr", "holiday", "weathersit", "temp", "hum", "windspeed", "bikers"} <= columns

    def __init__(self, columns):
        pass

    def parse(self, row):
        time = datetime.datetime(2011, 1, 1) + datetime.timedelta(days=int(row["day"]) - 1, hours=int(row["hr"]))
        weather = [_within(float(row[name]), 0.0, 1.0) for name in ("temp", "hum", "windspeed")]
        weather.append(self._SKY.get(row["weathersit"], NAN))
        return _Row(time, float(row["bikers"]), weather, row["holiday"] == "1")


class _Metro(object):
    unit = "cars"
    _NAMES = ("temp", "rain_1h", "snow_1h", "clouds_all")
    _NAMES_WITH_UNITS = ("temp_kelvin", "rain_1h_mm", "snow_1h_mm", "clouds_percent")

    @classmethod
    def fits(cls, columns):
        common = {"date_time", "traffic_volume", "holiday"}
        return any(common | set(names) <= columns for names in (cls._NAMES, cls._NAMES_WITH_UNITS))

    def __init__(self, columns):
        self._names = self._NAMES if set(self._NAMES) <= columns else self._NAMES_WITH_UNITS

    def parse(self, row):
        time = datetime.datetime.fromisoformat(row["date_time"])
        temperature, rain, snow, clouds = (float(row[name]) for name in self._names)
        weather = [
            _within(temperature, 200.0, 330.0),
            math.log1p(_within(rain, 0.0, 300.0)),  # the record is 305 mm
            math.log1p(_within(snow, 0.0, 300.0)),
            _within(clouds, 0.0, 100.0),
        ]
        return _Row(time, float(row["traffic_volume"]), weather, row["holiday"] not in ("", "None"))


def _within(value, low, high):
    return value if low <= value <= high else NAN


def _clean(path, known, records):
    rows = {}
    unreadable = repeated = impossible = 0
    for record in records:
        try:
            row = known.parse(record)
            if not row.count >= 0:
                raise ValueError("a count below zero")
        except (ValueError, TypeError, KeyError):
            unreadable += 1
            continue
        impossible += sum(math.isnan(value) for value in row.weather)
        repeated += row.time in rows
        rows.setdefault(row.time, row)
    if not rows:
        raise ValueError("%s has no row that can be used (of %d)" % (path, len(records)))

    start, end = min(rows), max(rows)
    hours = [start + HOUR * i for i in range(int((end - start) / HOUR) + 1)]
    found = [rows.get(hour) for hour in hours]
    counts = [row.count if row else NAN for row in found]
    observed = [row is not None for row in found]
    missing = observed.count(False)
    counts, filled = _fill_short_gaps(counts)
    free_days = {row.time.date() for row in rows.values() if row.holiday}
    account = [
        "%s: %s rows, %s hours from %s to %s"
        % (os.path.basename(path), _number(len(records)), _number(len(hours)), start, end),
        "rows that cannot be read: %s, left out" % _number(unreadable),
        "rows for an hour that is there already: %s, left out" % _number(repeated),
        "impossible weather values: %s, replaced by the hour before's" % _number(impossible),
        "hours without a row: %s; %s in gaps of up to %d hours are filled in as input, %s are left out; none is used "
        "to score" % (_number(missing), _number(filled), GAP_FILLED_HOURS, _number(missing - filled)),
    ]
    weather = _carry_forward([row.weather if row else None for row in found])
    calendar = [_calendar(hour, hour.date() in free_days) for hour in hours]
    return Traffic(start, counts, observed, weather, calendar, account, known.unit)


def _number(value):
    return "{:,}".format(value)


def _fill_short_gaps(counts):
    """`counts` with short gaps as a straight line, and how many were filled."""
    counts = list(counts)
    filled = 0
    last = None
    for i, count in enumerate(counts):
        if math.isnan(count):
            continue
        gap = i - last - 1 if last is not None else 0
        if 0 < gap <= GAP_FILLED_HOURS:
            for step in range(1, gap + 1):
                counts[last + step] = counts[last] + (count - counts[last]) * step / (gap + 1)
            filled += gap
        last = i
    return counts, filled


def _carry_forward(weather):
    """Each hour's values; where there is none, the last known."""
    width = len(next(values for values in weather if values))
    first = [next((v[i] for v in weather if v and not math.isnan(v[i])), 0.0) for i in range(width)]
    result = []
    for values in weather:
        last = result[-1] if result else first
        result.append([last[i] if values is None or math.isnan(values[i]) else values[i] for i in range(width)])
    return result


def _calendar(hour, holiday):
    """Where in the day, the week and the year an hour is, on circles so that midnight is close to midnight."""
    angles = (hour.hour / 24.0, hour.weekday() / 7.0, hour.timetuple().tm_yday / 365.25)
    places = [function(2.0 * math.pi * angle) for angle in angles for function in (math.sin, math.cos)]
    return places + [float(hour.weekday() < 5 and not holiday), float(holiday)]
