# Times scipy's product of a graph's adjacency and a dense matrix on one thread: the best of some repetitions, in seconds.
# Arguments: a file of int32 (row starts), a file of int32 (columns), features a row, repetitions. Exit code 3: no scipy.
import sys, time
try:
    import numpy, scipy.sparse
except ImportError:
    sys.exit(3)
starts, columns = (numpy.fromfile(name, dtype=numpy.int32) for name in sys.argv[1:3])
dim, repeat = int(sys.argv[3]), int(sys.argv[4])
nodes = len(starts) - 1
matrix = scipy.sparse.csr_matrix((numpy.ones(len(columns), numpy.float32), columns, starts), shape=(nodes, nodes))
features = numpy.random.default_rng(1).random((nodes, dim), dtype=numpy.float32)
best = float("inf")
for _ in range(repeat + 1):
    begin = time.perf_counter()
    product = matrix @ features
    best = min(best, time.perf_counter() - begin)
print(best)
