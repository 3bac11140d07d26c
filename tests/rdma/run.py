#!/usr/bin/env python3
"""`make test-rdma` and `make bench-rdma`: builds with the feature `verbs`, and runs it on Linux Soft-RoCE in a virtual machine (vm.py).

    run.py test|bench

What is missing is installed through apt when this user may. Exit codes: 0 well, 1 something failed, 77 skipped (with the reason): there is no
QEMU for this machine, the kernel cannot be downloaded, or a package cannot be installed. CARGO_TARGET_DIR and CARGO are heeded.
"""

import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
SKIP = 77
# What the build needs, then what the machine is made of. `rdma-core` is not among them: it starts services.
PACKAGES = {
    "libibverbs-dev": "/usr/include/infiniband/verbs.h",
    "librdmacm-dev": "/usr/include/rdma/rdma_cma.h",
    "pkg-config": "pkg-config",
    "qemu-system-x86": "qemu-system-x86_64",
    "busybox-static": "busybox",
    "kmod": "modprobe",
    "iproute2": "tc",
    "ibverbs-utils": "ibv_devinfo",
    "ibverbs-providers": "/etc/libibverbs.d",
    "perftest": "ib_write_lat",
    "binutils": "strip",
}
# Seconds that the machine may run.
TEST_LIMIT = 600
BENCH_LIMIT = 300
BENCH_ROUNDS = 500


def skip(why):
    print(f"rdma: SKIPPED, not passed: {why}")
    sys.exit(SKIP)


def present(what):
    return os.path.exists(what) if what.startswith("/") else shutil.which(what, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") is not None


def install():
    if platform.machine() != "x86_64":
        skip(f"the virtual machine is made for x86_64, this is {platform.machine()}")
    missing = [package for package, what in PACKAGES.items() if not present(what)]
    if not missing:
        return
    sudo = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if shutil.which("apt-get") is None or (sudo and subprocess.run([*sudo, "true"], capture_output=True).returncode != 0):
        skip(f"these packages are missing and cannot be installed by this user: {' '.join(missing)}")
    print(f"rdma: installing {' '.join(missing)}", flush=True)
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run([*sudo, "apt-get", "update", "-qq"], env=env, stdout=subprocess.DEVNULL)
    done = subprocess.run([*sudo, "apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing], env=env, stdout=subprocess.DEVNULL)
    if done.returncode != 0 or not all(present(PACKAGES[package]) for package in missing):
        skip(f"apt could not install {' '.join(missing)}")


def build(package, targets):
    """Builds with the feature; the programs by target name."""
    env = dict(os.environ)
    libclang = subprocess.run(["bash", HERE / "libclang.sh"], capture_output=True, text=True)
    if libclang.returncode != 0:
        skip(libclang.stderr.strip())
    if libclang.stdout.strip():
        env["LIBCLANG_PATH"] = libclang.stdout.strip()
    command = [os.environ.get("CARGO", "cargo"), "build", "--locked", "--message-format=json-render-diagnostics", "--features", "verbs", "-p", package, *targets]
    done = subprocess.run(command, cwd=TOP, env=env, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(1)
    programs = {}
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("reason") == "compiler-artifact" and message.get("executable"):
            programs[message["target"]["name"]] = message["executable"]
    return programs


def machine(script, arguments, files, limit, capture=False):
    command = [sys.executable, HERE / "vm.py", "--seconds", str(limit), "--memory", "1024"]
    command += [word for file in files for word in ("--file", file)] + [HERE / script, *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE if capture else None, text=True)


def test():
    programs = build("npushmem-roce", ["--test", "verbs"])
    done = machine("suite.sh", [programs["verbs"]], [programs["verbs"]], TEST_LIMIT)
    if done.returncode == SKIP:
        skip("see above")
    sys.exit(0 if done.returncode == 0 else 1)


def bench():
    # The dev profile optimises the software NIC as release does, and shares its build with the tests.
    programs = build("npushmem-roce", ["--example", "verbs_perf"])
    perf = programs["verbs_perf"]
    done = machine("bench.sh", [perf, str(BENCH_ROUNDS)], [perf], BENCH_LIMIT, capture=True)
    if done.returncode == SKIP:
        skip("see above")
    ours, theirs = {}, {}
    # Column of perftest's last line: typical latency, average bandwidth (MiB/s), messages (millions a second).
    columns = {"write_lat": 4, "atomic_lat": 4, "write_rate_8": 4}
    for line in done.stdout.splitlines():
        words = line.split()
        if words[:1] == ["ours"]:
            name, value = words[1].split("=")
            ours.setdefault(name, []).append(float(value))
        elif words[:1] == ["perftest"] and len(words) > 2:
            name, cells = words[1], words[2:]
            value = float(cells[columns.get(name, 3)])
            theirs.setdefault(name, []).append(value)
    print("rdma: Soft-RoCE in an emulated machine with 2 cores; medians of 3 rounds in one run, ours and perftest's in turn")
    print(f"{'':28}{'npushmem':>12}{'perftest':>12}{'ratio':>8}  aim")
    rows = [
        ("8-byte WRITE, half RTT", "write_lat_us", "write_lat", 1, "us", "<= 1.3"),
        ("fetch-add", "atomic_lat_us", "atomic_lat", 1, "us", "<= 1.3"),
        ("WRITE 4 KiB", "write_bw_4096_mbs", "write_bw_4096", 1.048576, "MB/s", ""),
        ("WRITE 64 KiB", "write_bw_65536_mbs", "write_bw_65536", 1.048576, "MB/s", ">= 0.9"),
        ("WRITE 1 MiB", "write_bw_1048576_mbs", "write_bw_1048576", 1.048576, "MB/s", ">= 0.9"),
        ("8-byte WRITEs", "write_rate_8_per_s", "write_rate_8", 1e6, "1/s", ""),
    ]
    complete = True
    for text, mine, other, scale, unit, aim in rows:
        if not ours.get(mine) or not theirs.get(other):
            print(f"{text:28}{'missing':>12}")
            complete = False
            continue
        a, b = statistics.median(ours[mine]), statistics.median(theirs[other]) * scale
        ratio = f"{a / b:8.2f}" if b else "       -"
        print(f"{text:28}{a:12.1f}{b:12.1f}{ratio}  {unit} {aim}")
    if not complete:
        print(done.stdout)
    sys.exit(0 if complete and done.returncode == 0 else 1)


if __name__ == "__main__":
    if sys.argv[1:] not in (["test"], ["bench"]):
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    install()
    test() if sys.argv[1] == "test" else bench()
