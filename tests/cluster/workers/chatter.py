"""Writes numbered lines of 10 to 5000 bytes in pieces of any size, to both streams; how a line looks is in `line`.

Rank 1 ends each third line on stdout by a carriage return, rank 2 ends without an end of line, and rank 3 writes a line
and then waits until the file that is the first argument is there.
"""

import os
import random
import sys
import time

LINES = 1000


def line(rank, stream, number):
    """Line `number` of a rank: 10 to 5000 characters that begin with its number."""
    size = random.Random("%d %s %d" % (rank, stream, number)).randint(10, 5000)
    return "%06d " % number + chr(ord("a") + rank) * (size - 7)


def write_in_pieces(fd, text, generator):
    while text:
        size = generator.randint(1, 4096)
        os.write(fd, text[:size])
        text = text[size:]


def main():
    rank = int(os.environ["HOROVOD_RANK"])
    generator = random.Random(rank)
    if rank == 3:
        os.write(1, b"I wait\n")
        while not os.path.exists(sys.argv[1]):
            time.sleep(0.05)
    for number in range(LINES):
        for fd, stream in ((1, "stdout"), (2, "stderr")):
            end = "\r" if (rank, fd, number % 3) == (1, 1, 2) else "\n"
            if rank == 2 and number == LINES - 1:
                end = ""
            write_in_pieces(fd, (line(rank, stream, number) + end).encode(), generator)


if __name__ == "__main__":
    sys.exit(main())
