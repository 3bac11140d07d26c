# statics.py: an interpreter that loads the library keeps its own static data, so that it and its children by fork go on as ever.
import ctypes
import multiprocessing
import os
import subprocess
import sys


def square(x):
    return x * x


def main():
    shmem = ctypes.CDLL(sys.argv[1])
    shmem.shmem_malloc.restype = ctypes.c_void_p
    shmem.shmem_init()
    me, n = shmem.shmem_my_pe(), shmem.shmem_n_pes()
    block = shmem.shmem_malloc(ctypes.c_size_t(8))
    word = ctypes.c_long.from_address(block)
    word.value = -1
    shmem.shmem_barrier_all()
    shmem.shmem_long_p(ctypes.c_void_p(block), ctypes.c_long(me), (me + 1) % n)
    shmem.shmem_barrier_all()
    assert word.value == (me + n - 1) % n
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.map(square, range(50)) == [x * x for x in range(50)]
    child = os.fork()
    if child == 0:
        junk = [str(i) for i in range(10000)]
        os._exit(len(junk) % 256 != 16)
    assert os.waitpid(child, 0)[1] == 0
    assert subprocess.run(["true"]).returncode == 0
    shmem.shmem_barrier_all()
    assert word.value == (me + n - 1) % n
    shmem.shmem_finalize()
    print("done")


if __name__ == "__main__":
    main()
