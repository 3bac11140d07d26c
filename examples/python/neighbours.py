#!/usr/bin/env python3
"""Sums each node's neighbours' features over several PEs, in Python over OpenSHMEM (shmem4py).

Nodes are dealt to PEs in blocks. Each PE fetches every distinct remote row that it needs once, by a get from its owner, and adds up locally;
rows that it does not need never move. Every PE checks its part against numpy.

    oshrun -n 4 python3 examples/python/neighbours.py examples/data/karate.txt

Needs shmem4py built with our oshcc (`OSHCC=target/debug/oshcc pip install --no-binary :all: shmem4py`), and numpy before 2.
"""

import sys

import numpy as np
from shmem4py import shmem

DIM = 16


def read_edges(path):
    """Undirected edges without duplicates and self loops, nodes numbered from 0 in the order of their ids."""
    pairs = np.loadtxt(path, dtype=np.int64, comments=["#", "%"], usecols=(0, 1), ndmin=2)
    ids, flat = np.unique(pairs, return_inverse=True)
    pairs = np.sort(flat.reshape(-1, 2), axis=1)
    return len(ids), np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: oshrun -n PES python3 neighbours.py EDGE_LIST")
    nodes, edges = read_edges(sys.argv[1])
    me, pes = shmem.my_pe(), shmem.n_pes()
    block = -(-nodes // pes)  # rows a PE, the last one may own fewer
    features = np.random.default_rng(1).random((nodes, DIM), dtype=np.float32)

    # Symmetric: the same shape on every PE; own rows only.
    mine = range(min(me * block, nodes), min((me + 1) * block, nodes))
    rows = shmem.zeros((block, DIM), dtype=np.float32)
    rows[: len(mine)] = features[mine.start : mine.stop]
    shmem.barrier_all()

    both = np.concatenate([edges, edges[:, ::-1]])
    wanted = both[(both[:, 0] >= mine.start) & (both[:, 0] < mine.stop)]
    fetched = {}
    for node in np.unique(wanted[:, 1]):
        owner, row = divmod(int(node), block)
        if owner == me:
            fetched[node] = rows[row]
        else:
            fetched[node] = np.empty(DIM, dtype=np.float32)
            shmem.get(fetched[node], rows[row], owner)
    remote = sum(1 for node in fetched if int(node) // block != me)

    sums = np.zeros((len(mine), DIM), dtype=np.float32)
    for node, neighbour in wanted:
        sums[node - mine.start] += fetched[neighbour]

    expected = np.zeros((nodes, DIM))
    np.add.at(expected, both[:, 0], features[both[:, 1]])
    right = np.allclose(sums, expected[mine.start : mine.stop], rtol=1e-5, atol=1e-6)
    print(f"PE {me}: {len(mine)} nodes, {len(wanted)} neighbours, {remote} rows fetched: {'right' if right else 'WRONG'}")
    shmem.barrier_all()
    shmem.free(rows)
    if not right:
        shmem.global_exit(1)


main()
