#!/usr/bin/env python3
"""Runs one OpenSHMEM benchmark over our library and every other one found, in turn, and prints medians and ratios beside the bare limits.

Behind `make compare`. Others: Open MPI's OSHMEM (its oshcc on PATH, or OSHMEM_HOME) and Sandia OpenSHMEM (SOS_HOME). Figures that depend on which
two cores a virtual machine has at the moment (ping-pongs, barriers, collectives) are printed with the bare ping-pong taken in the same moments, as
"figure (control)"; all others are issue costs and bandwidths, and compare directly. Absolute values move with the machine: judge by ratios.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
HEAP = "256M"
JOB_SECONDS = 300  # no job takes longer
LOWER_IS_BETTER = {"ns", "us", "ms"}


class Library:
    """An OpenSHMEM library: how to build for it and how to start a job."""

    def __init__(self, name, oshcc, oshrun, flags=(), env=()):
        self.name, self.oshcc, self.oshrun = name, str(oshcc), [str(word) for word in oshrun]
        self.flags, self.env = list(flags), {**os.environ, **dict(env)}

    def build(self, source, folder):
        program = folder / self.name.replace(" ", "-")
        command = [self.oshcc, "-O2", *self.flags, str(source), "-o", str(program)]
        subprocess.run(command, check=True, env=self.env)
        return program

    def run(self, program, pes, arguments=()):
        """Output of a job, or None when it fails."""
        command = [*self.oshrun, "-np", str(pes), str(program), *arguments]
        try:
            done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=JOB_SECONDS)
        except subprocess.TimeoutExpired:
            print(f"compare: {self.name} on {pes} PEs: no end after {JOB_SECONDS} s", file=sys.stderr)
            return None
        if done.returncode != 0:
            print(f"compare: {self.name} on {pes} PEs: exit code {done.returncode}: {done.stderr.strip()[-300:]}", file=sys.stderr)
            return done.stdout or None
        return done.stdout


def is_open_mpi(oshcc):
    """Whether this oshcc is Open MPI's and not, say, ours, installed."""
    try:
        shown = subprocess.run([oshcc, "--showme:version"], capture_output=True, text=True, timeout=30)
    except OSError:
        return False
    return "Open SHMEM" in shown.stdout + shown.stderr


def found(built):
    """Our library in both forms, then the others of this machine."""
    ours = dict(SHMEM_SYMMETRIC_SIZE=HEAP)
    libraries = [
        Library("npushmem", built / "oshcc", [built / "oshrun"], ["-DNPUSHMEM_NO_INLINE"], ours),
        Library("npushmem inline", built / "oshcc", [built / "oshrun"], [], ours),
    ]
    home = os.environ.get("OSHMEM_HOME")
    oshcc = f"{home}/bin/oshcc" if home else next(
        (path for path in ("/usr/bin/oshcc", shutil.which("oshcc")) if path and os.path.exists(path) and is_open_mpi(path)), None)
    if oshcc and os.path.exists(oshcc):
        # As root, with more PEs than cores; its memory hooks crash at exit.
        oshrun = [Path(oshcc).parent / "oshrun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "memory", "^patcher"]
        libraries.append(Library("OSHMEM", oshcc, oshrun, [], dict(SHMEM_SYMMETRIC_HEAP_SIZE=HEAP)))
    else:
        print("compare: no Open MPI OSHMEM here; on Debian: apt-get install --no-install-recommends openmpi-bin libopenmpi-dev", file=sys.stderr)
    home = os.environ.get("SOS_HOME")
    if home:
        # Its oshrun takes the first mpirun on PATH; a build with its own small PMI-1 client needs a launcher that speaks it, as Hydra does.
        launcher = os.environ.get("OSHRUN_LAUNCHER") or shutil.which("mpiexec.hydra")
        env = dict(SHMEM_SYMMETRIC_SIZE=HEAP, **(dict(OSHRUN_LAUNCHER=launcher) if launcher else {}))
        # Without position independence: its transports find static data only at equal addresses.
        libraries.append(Library("Sandia", f"{home}/bin/oshcc", [f"{home}/bin/oshrun"], ["-no-pie", "-fno-pie"], env))
    return libraries


def figures(output, suffix=""):
    """(name, value, unit, control) of each line that is a figure."""
    for line in (output or "").splitlines():
        words = line.split(",")
        if words[0] == "figure" and len(words) >= 5:
            # Names may have commas: value, unit and control are the last three.
            yield ",".join(words[1:-3]) + suffix, float(words[-3]), words[-2], float(words[-1])


class Table:
    """All samples, by figure and library, in the order in which they first came."""

    def __init__(self):
        self.units, self.samples = {}, {}

    def add(self, library, name, value, unit, control=0.0):
        self.units.setdefault(name, unit)
        self.samples.setdefault((name, library), []).append((value, control))

    def median(self, name, library):
        samples = self.samples.get((name, library))
        if not samples:
            return None
        return tuple(statistics.median(sample[part] for sample in samples) for part in (0, 1))

    def show(self, libraries):
        names = [library.name for library in libraries]
        others = [name for name in names if not name.startswith("npushmem")]
        heads = ["figure", "unit", "bare", *names, *(f"{name} / ours" for name in others)]
        rows = []
        for name, unit in self.units.items():
            bare = self.median(name, "bare")
            row = [name, unit, text(bare)]
            ours = self.median(name, "npushmem")
            row += [text(self.median(name, library)) for library in names]
            for other in others:
                theirs = self.median(name, other)
                row.append(ratio(ours, theirs, unit))
            rows.append(row)
        widths = [max(len(row[column]) for row in [heads, *rows]) for column in range(len(heads))]
        for row in [heads, ["-" * width for width in widths], *rows]:
            print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |")


def text(sample):
    if sample is None:
        return ""
    value, control = sample
    number = f"{value:.3g}" if value < 1000 else f"{value:.0f}"
    return f"{number} ({control:.0f})" if control else number


def ratio(ours, theirs, unit):
    """How many times better ours is: above 1 is good for us."""
    if ours is None or theirs is None or not ours[0] or not theirs[0]:
        return ""
    better = theirs[0] / ours[0] if unit in LOWER_IS_BETTER else ours[0] / theirs[0]
    return f"{better:.2f}"


def hello_source(folder):
    source = folder / "hello.c"
    source.write_text("#include <shmem.h>\nint main(void) { shmem_init(); shmem_barrier_all(); shmem_finalize(); return 0; }\n")
    return source


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("built", type=Path, help="folder of our oshcc, oshrun and libnpushmem.so (target/release)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds over all libraries; medians are taken over them")
    parser.add_argument("--quick", action="store_true", help="one short round, and no jobs with more PEs than cores")
    options = parser.parse_args()
    rounds = 1 if options.quick else max(1, options.rounds)
    budget = ["0.01"] if options.quick else ["0.05"]
    cores = os.cpu_count() or 1
    if cores < 2:
        sys.exit("compare: two cores are needed: a ping-pong on one core measures the scheduler")
    libraries = found(options.built.resolve())
    table = Table()
    with tempfile.TemporaryDirectory(prefix="npushmem-compare-") as name:
        folder = Path(name)
        control = folder / "control"
        control.write_bytes(bytes(16384))
        os.environ["COMPARE_CONTROL"] = str(control)
        bare = folder / "bare"
        subprocess.run([os.environ.get("CC", "cc"), "-O2", str(HERE / "bare.c"), "-o", str(bare)], check=True)
        hello = hello_source(folder)
        programs = []
        for library in libraries:
            library.env["COMPARE_CONTROL"] = str(control)
            program = library.build(HERE / "compare.c", folder)
            small = folder / "hello-programs"
            small.mkdir(exist_ok=True)
            programs.append((library, program, library.build(hello, small)))
        for number in range(rounds):
            print(f"compare: round {number + 1} of {rounds}", file=sys.stderr)
            done = subprocess.run([str(bare), *budget], capture_output=True, text=True, timeout=JOB_SECONDS)
            for figure in figures(done.stdout):
                table.add("bare", *figure)
            for library, program, small in programs:
                control.write_bytes(bytes(16384))
                for figure in figures(library.run(program, 2, budget)):
                    table.add(library.name, *figure)
                begin = time.monotonic()
                if library.run(small, 2) is not None:
                    table.add(library.name, "hello, 2 PEs, whole command", (time.monotonic() - begin) * 1e3, "ms")
            if not options.quick:
                for pes in (2 * cores, 4 * cores):
                    for library, program, _ in programs:
                        if library.name == "npushmem inline" or library.name == "Sandia":
                            continue  # the same calls; minutes of spinning
                        for figure in figures(library.run(program, pes, ["0.02"]), f", {pes} PEs"):
                            if not figure[0].startswith("shmem_init"):
                                table.add(library.name, *figure)
    print(f"Medians of {rounds} round(s), {cores} cores; (n): bare ping-pong in the same moments, ns; ratios above 1: ours is better.\n")
    table.show(libraries)


if __name__ == "__main__":
    main()
