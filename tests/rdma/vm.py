#!/usr/bin/env python3
"""Boots a throw-away machine with Linux Soft-RoCE, runs a script in it, prints what it says, and exits with its exit code.

    vm.py [--file PATH[=PLACE]]... [--env NAME=VALUE]... [--seconds N] [--cpus N] [--memory MIB] [--console] SCRIPT [ARG...]

The machine is QEMU with software emulation (a stock kernel needs no /dev/kvm that way), Debian's own kernel with the module rdma_rxe, and an
initramfs that is made here: busybox, the modules, the rdma tools, the verbs library with its rxe provider, and the files asked for with the
shared libraries that the dynamic loader would open for them. It boots in about 3 seconds and has no disk and no network beyond itself.

Inside, two Soft-RoCE devices play two hosts: rxa (10.0.0.1) and rxb (10.0.0.2) sit on the ends of a veth pair in one network namespace (rxe of
Linux 6.1 looks routes up in the first namespace only), and policy routing makes every packet between the two addresses cross the pair, where
`tc qdisc add dev va root netem loss 2%` can drop it. SCRIPT is run by busybox sh in /work.

Exit codes: the script's; 124 when the time is over; 125 when the machine ended without one; 77 when something that it needs is missing.
The kernel is unpacked once, into $NPUSHMEM_VM_CACHE (default ~/.cache/npushmem/rdma-vm).
"""

import argparse
import ctypes
import lzma
import os
import pathlib
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time
import zlib

PROGRAMS = ["ip", "tc", "rdma", "ibv_devinfo", "ibv_rc_pingpong", "ib_write_lat", "ib_write_bw", "ib_read_lat", "ib_atomic_lat"]
MODULES = ["crc32_generic", "crc32_pclmul", "crc32c_generic", "crc32c_intel", "veth", "sch_netem", "ib_core", "ib_uverbs", "rdma_ucm", "rdma_rxe"]
SKIP = 77

INIT = r"""#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/usr/bin:/bin HOME=/ LD_LIBRARY_PATH=@LIBRARIES@
mount -t proc none /proc; mount -t sysfs none /sys; mount -t devtmpfs none /dev
mkdir -p /dev/shm; mount -t tmpfs none /dev/shm; ln -sf /proc/self/fd /dev/fd
stty -F /dev/ttyS1 raw -echo; stty -F /dev/ttyS2 raw -echo
for module in $(cat /modules/order); do insmod /modules/$module || echo "insmod $module failed"; done
ip() { /usr/bin/ip "$@"; }   # not busybox's, which knows no veth
hostname rdma-vm
ip link set lo up
ip link add va mtu 4200 type veth peer name vb mtu 4200
echo 0 > /proc/sys/net/ipv4/conf/all/rp_filter
for end in "va 10.0.0.1 10.0.0.2 100" "vb 10.0.0.2 10.0.0.1 101"; do
  set -- $end
  echo 1 > /proc/sys/net/ipv4/conf/$1/accept_local
  echo 0 > /proc/sys/net/ipv4/conf/$1/rp_filter
  ip addr add $2/24 dev $1; ip link set $1 up
  ip route add $3 dev $1 src $2 table $4
  ip rule add pref $4 from $2 to $3 lookup $4
done
ip neigh replace 10.0.0.2 lladdr $(cat /sys/class/net/vb/address) dev va nud permanent
ip neigh replace 10.0.0.1 lladdr $(cat /sys/class/net/va/address) dev vb nud permanent
# A packet that arrives on an end is for this machine; one that leaves for the other address is not, though that is local too.
ip rule add pref 10 iif va lookup local; ip rule add pref 11 iif vb lookup local
ip rule add pref 200 lookup local; ip rule del pref 0
rdma link add rxa type rxe netdev va; rdma link add rxb type rxe netdev vb
ulimit -l unlimited
echo "ready after $(cut -d' ' -f1 /proc/uptime) s"
cd /work
. /environment
sh /script @ARGUMENTS@ > /dev/ttyS1 2>&1 < /dev/null
echo $? > /dev/ttyS2
sync; poweroff -f
"""


class Missing(Exception):
    """Something that the machine is made of cannot be had here."""


def find(program):
    path = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if path is None:
        raise Missing(f"{program} is not installed")
    return path


class Archive:
    """A cpio archive in the `newc` form that the kernel unpacks as its first file system (Documentation/driver-api/early-userspace)."""

    def __init__(self):
        self.entries = {}

    def directory(self, path):
        parts = pathlib.PurePosixPath(path).relative_to("/").parts
        for count in range(1, len(parts) + 1):
            self.entries.setdefault("/".join(parts[:count]), (stat.S_IFDIR | 0o755, b""))

    def file(self, path, data, mode=0o644):
        self.directory(str(pathlib.PurePosixPath(path).parent))
        self.entries[path.lstrip("/")] = (stat.S_IFREG | mode, data)

    def link(self, path, target):
        self.entries[path.lstrip("/")] = (stat.S_IFLNK | 0o777, target.encode())

    def program(self, source, place=None):
        """A program or library, stripped, with the libraries it is linked against."""
        source = os.path.realpath(source)
        place = place or source
        if place.lstrip("/") in self.entries:
            return
        data = pathlib.Path(source).read_bytes()
        if data[:4] == b"\x7fELF":
            with tempfile.NamedTemporaryFile() as small:
                if subprocess.run(["strip", "-o", small.name, source], capture_output=True).returncode == 0:
                    data = pathlib.Path(small.name).read_bytes()
            listed = subprocess.run(["ldd", source], capture_output=True, text=True).stdout
            for word in listed.split():
                if word.startswith("/") and ".so" in word:
                    self.program(word, word)
        self.file(place, data, 0o755)

    def write(self, out):
        for number, (name, (mode, data)) in enumerate([*self.entries.items(), ("TRAILER!!!", (0, b""))], 1):
            text = name.encode() + b"\0"
            fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(text), 0)
            header = b"070701" + b"".join(b"%08X" % field for field in fields) + text
            out.write(header + b"\0" * (-len(header) % 4) + data + b"\0" * (-len(data) % 4))


def unpacked_kernel(image):
    """The ELF inside a bzImage: QEMU starts it at its PVH entry, which saves unpacking it under emulation."""
    setup = ((image[0x1F1] or 4) + 1) * 512
    offset, length = struct.unpack_from("<II", image, 0x248)
    payload = image[setup + offset : setup + offset + length]
    if payload.startswith(b"\xfd7zXZ\0"):
        return lzma.LZMADecompressor().decompress(payload)
    if payload.startswith(b"\x1f\x8b"):
        return zlib.decompressobj(31).decompress(payload)
    if payload.startswith(b"\x28\xb5\x2f\xfd"):
        return subprocess.run([find("zstd"), "-dcq"], input=payload[:-4], capture_output=True).stdout
    return b""


def kernel(cache):
    """Debian's kernel and the modules in the order they are loaded; downloaded and unpacked once, never installed."""
    if (cache / "order").exists():
        return
    cache.mkdir(parents=True, exist_ok=True)
    meta = subprocess.run(["apt-cache", "depends", "linux-image-amd64"], capture_output=True, text=True).stdout
    package = os.environ.get("NPUSHMEM_VM_KERNEL") or next((line.split()[1] for line in meta.splitlines() if "Depends:" in line), None)
    if package is None:
        raise Missing("apt knows no kernel package (linux-image-amd64): run apt-get update")
    with tempfile.TemporaryDirectory(dir=cache) as work:
        print(f"rdma-vm: downloading {package}", file=sys.stderr)
        if subprocess.run(["apt-get", "-qq", "download", package], cwd=work, capture_output=True, timeout=300).returncode != 0:
            raise Missing(f"the kernel package {package} cannot be downloaded")
        deb = next(pathlib.Path(work).glob("*.deb"))
        root = pathlib.Path(work, "root")
        subprocess.run(["dpkg-deb", "-x", deb, root], check=True)
        version = next((root / "lib/modules").iterdir()).name
        subprocess.run([find("depmod"), "-b", root, version], check=True, capture_output=True)
        order = []
        for module in MODULES:
            listed = subprocess.run([find("modprobe"), "-d", root, "-S", version, "--show-depends", module], capture_output=True, text=True).stdout
            for line in listed.splitlines():
                words = line.split()
                if not words or words[0] != "insmod":
                    continue
                path = pathlib.Path(words[1])
                name = path.name.removesuffix(".xz")
                if name not in order:
                    data = path.read_bytes()
                    (cache / name).write_bytes(lzma.decompress(data) if path.suffix == ".xz" else data)
                    subprocess.run(["strip", "--strip-debug", cache / name], capture_output=True)
                    order.append(name)
        if "rdma_rxe.ko" not in order:
            raise Missing(f"{package} has no module rdma_rxe")
        image = (root / f"boot/vmlinuz-{version}").read_bytes()
        plain = unpacked_kernel(image)
        (cache / "kernel").write_bytes(plain if plain.startswith(b"\x7fELF") else image)
        (cache / "order").write_text("\n".join(order) + "\n")


def base(archive, cache):
    for path in ["/proc", "/sys", "/dev", "/tmp", "/run", "/work", "/bin", "/usr/bin", "/usr/lib", "/modules"]:
        archive.directory(path)
    archive.link("/lib", "usr/lib")
    archive.link("/lib64", "usr/lib64")
    archive.file("/bin/busybox", pathlib.Path(find("busybox")).read_bytes(), 0o755)
    # The loader is reached by /lib64, a link here as on the host.
    loader = os.path.realpath("/lib64/ld-linux-x86-64.so.2")
    archive.file("/usr/lib64/ld-linux-x86-64.so.2", pathlib.Path(loader).read_bytes(), 0o755)
    for program in PROGRAMS:
        archive.program(find(program), f"/usr/bin/{program}")
    libraries = pathlib.Path("/usr/lib/x86_64-linux-gnu")
    for provider in libraries.glob("libibverbs/librxe-rdmav*.so"):
        archive.program(str(provider), str(provider))
    archive.file("/etc/libibverbs.d/rxe.driver", b"driver rxe\n")
    archive.file("/etc/passwd", b"root:x:0:0:root:/:/bin/sh\n")
    archive.file("/etc/hosts", b"127.0.0.1 localhost rdma-vm\n")
    names = (cache / "order").read_text().split()
    for name in names:
        archive.file(f"/modules/{name}", (cache / name).read_bytes())
    archive.file("/modules/order", " ".join(names).encode())


def quoted(words):
    return " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)


def die_with_parent():
    """In the child: the machine ends with this program, however that ends."""
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def boot(options, cache):
    archive = Archive()
    base(archive, cache)
    for wanted in options.file:
        source, _, place = wanted.partition("=")
        source = os.path.abspath(source)
        if os.path.isdir(source):
            archive.directory(place or source)
        else:
            archive.program(source, place or source)
    archive.file("/script", pathlib.Path(options.script).read_bytes(), 0o755)
    archive.file("/environment", "".join(f"export {quoted([pair])}\n" for pair in options.env).encode())
    init = INIT.replace("@LIBRARIES@", "/usr/lib/x86_64-linux-gnu").replace("@ARGUMENTS@", quoted(options.arguments))
    archive.file("/init", init.encode(), 0o755)
    with tempfile.TemporaryDirectory(prefix="npushmem-rdma-vm-") as work:
        work = pathlib.Path(work)
        with open(work / "initrd", "wb") as out:
            archive.write(out)
        serial = {name: work / name for name in ("console", "output", "code")}
        for path in serial.values():
            path.touch()
        command = [find("qemu-system-x86_64"), "-M", "q35", "-accel", "tcg,thread=multi,tb-size=512", "-smp", str(options.cpus), "-m", str(options.memory)]
        # Without ERMS the kernel copies whole 8-byte words. rxe moves payloads by that copy, and emulated byte-wise copies would tear them.
        command += ["-cpu", "max,la57=off,erms=off,fsrm=off", "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-net", "none"]
        for path in serial.values():
            command += ["-serial", f"file:{path}"]
        command += ["-kernel", str(cache / "kernel"), "-initrd", str(work / "initrd")]
        command += ["-append", "console=ttyS0 quiet panic=-1 no_timer_check mitigations=off nokaslr random.trust_cpu=on tsc=reliable rdinit=/init"]
        begin = time.monotonic()
        machine = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=die_with_parent)
        over = False
        shown = 0
        try:
            while True:
                try:
                    machine.wait(timeout=0.2)
                except subprocess.TimeoutExpired:
                    over = time.monotonic() - begin > options.seconds
                    if over:
                        machine.kill()
                        machine.wait()
                text = serial["output"].read_bytes()
                sys.stdout.write(text[shown:].decode(errors="replace"))
                sys.stdout.flush()
                shown = len(text)
                if machine.returncode is not None:
                    break
        finally:
            if machine.poll() is None:
                machine.kill()
                machine.wait()
        code = serial["code"].read_text(errors="replace").strip()
        failed = over or not code.isdigit()
        if options.console or failed:
            tail = serial["console"].read_text(errors="replace").splitlines()[-200 if options.console else -20 :]
            print("\n".join(tail), machine.stderr.read().decode(errors="replace"), file=sys.stderr)
        if over:
            print(f"rdma-vm: stopped after {options.seconds} s", file=sys.stderr)
            return 124
        if failed:
            print("rdma-vm: the machine ended without an exit code", file=sys.stderr)
            return 125
        return int(code)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", action="append", default=[], metavar="PATH[=PLACE]")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--cpus", type=int, default=2)
    parser.add_argument("--memory", type=int, default=768)
    parser.add_argument("--console", action="store_true")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs="*")
    options = parser.parse_args()
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    cache = pathlib.Path(os.environ.get("NPUSHMEM_VM_CACHE") or f"{home}/npushmem/rdma-vm")
    try:
        for program in ["qemu-system-x86_64", "busybox", "strip", "ldd", *PROGRAMS]:
            find(program)
        kernel(cache)
        return boot(options, cache)
    except Missing as why:
        print(f"rdma-vm: {why}", file=sys.stderr)
        return SKIP


if __name__ == "__main__":
    sys.exit(main())
