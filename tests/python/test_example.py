"""The example: what it does with dirty data, and that it learns the same on one worker and on four."""

import gzip
import math
import os
import re
import subprocess
import sys

import pytest
from launched import run

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "worker", "examples", "torch")
SCRIPT = os.path.join(FOLDER, "city_management_model.py")
METRO = "holiday,temp,rain_1h,snow_1h,clouds_all,weather_main,weather_description,date_time,traffic_volume"


@pytest.fixture
def hourly_traffic(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    import hourly_traffic

    return hourly_traffic


def write(path, *lines):
    with gzip.open(path, "wt") as file:
        file.write("\n".join(lines) + "\n")
    return str(path)


def test_dirty_rows_are_cleaned_and_counted(hourly_traffic, tmp_path):
    traffic = hourly_traffic.read(
        write(
            tmp_path / "metro.csv.gz",
            METRO,
            "New Years Day,280.0,0.0,0.0,40,Clouds,scattered clouds,2016-01-01 00:00:00,100",
            "None,0.0,9831.3,0.0,40,Clouds,scattered clouds,2016-01-01 01:00:00,200",
            "None,281.0,0.0,0.0,40,Mist,mist,2016-01-01 01:00:00,999",
            "None,282.0,0.0,0.0,75,Clouds,scattered clouds,2016-01-01 03:00:00,400",
            "None,282.0,0.0,0.0,75,Clouds,scattered clouds,2016-01-01 04:00:00,many",
            "None,282.0,0.0,0.0,75,Clouds,scattered clouds,2016-01-01 08:00:00,500",
        )
    )
    assert traffic.counts[:4] == [100, 200, 300, 400] and traffic.counts[8] == 500
    assert all(map(math.isnan, traffic.counts[4:8])) and len(traffic.counts) == 9
    assert traffic.observed == [True, True, False, True, False, False, False, False, True]
    assert traffic.weather[1] == [280.0, 0.0, 0.0, 40.0]  # the temperature and the rain of the hour before
    assert traffic.weather[4] == [282.0, 0.0, 0.0, 75.0]
    assert all(calendar[-1] == 1.0 for calendar in traffic.calendar)  # all of the holiday, though one row says so
    text = "\n".join(traffic.account)
    for part in (
        "6 rows, 9 hours",
        "cannot be read: 1,",
        "there already: 1,",
        "weather values: 2,",
        "without a row: 5; 1 in gaps",
    ):
        assert part in text


def test_the_data_of_the_package(hourly_traffic):
    traffic = hourly_traffic.read(hourly_traffic.default_file())
    assert (len(traffic.counts), sum(traffic.observed)) == (8760, 8645)
    assert "ISLP" not in sys.modules


def test_files_that_cannot_be_used(hourly_traffic, tmp_path):
    with pytest.raises(
        ValueError, match="neither those of Bikeshare nor those of Metro Interstate Traffic Volume: a, b"
    ):
        hourly_traffic.read(write(tmp_path / "other.csv.gz", "a,b", "1,2"))
    with pytest.raises(ValueError, match="no row that can be used"):
        hourly_traffic.read(write(tmp_path / "empty.csv.gz", METRO))
    done = subprocess.run(
        [sys.executable, "-B", SCRIPT, "--data", str(tmp_path / "missing.csv")],
        stderr=subprocess.PIPE,
        universal_newlines=True,
        timeout=120,
    )
    assert done.returncode == 1 and "No such file" in done.stderr


def trained(size, plot):
    arguments = (SCRIPT, "--epochs", "4", "--plot", str(plot))
    if size == 1:
        done = subprocess.run(
            [sys.executable, "-B", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=300,
            universal_newlines=True,
        )
        code, stdout, stderr = done.returncode, done.stdout, done.stderr
    else:
        code, stdout, stderr = run(size, *arguments)
    assert code == 0, stdout + stderr
    assert len(re.findall(r"identical on all %d workers" % size, stdout)) == 1
    assert len(re.findall(r"epoch +\d/4", stdout)) == 4  # rank 0 only
    with open(plot, "rb") as file:
        assert file.read(8) == b"\x89PNG\r\n\x1a\n"
    model, naive = re.search(r"error: ([\d.]+) .*: ([\d.]+)$", stdout, re.MULTILINE).groups()
    return float(model), float(naive)


def test_one_and_four_workers_learn_the_same(tmp_path):
    alone, naive = trained(1, tmp_path / "1.png")
    together, same_naive = trained(4, tmp_path / "4.png")
    assert naive == same_naive
    assert alone < 0.8 * naive and together < 0.8 * naive
    assert abs(alone - together) < 0.1 * alone
