#!/usr/bin/env python3
"""Computes with NumPy what `npushmem gnn` computed, and compares.

    npushmem gnn --graph graph.npz --weights --norm gcn --layers 2 --features x.npy --pes 4 --out y.npy
    python3 gnn_check.py graph.npz x.npy y.npy --weights --norm gcn --layers 2

graph.npz is what scipy.sparse.save_npz writes for a CSR matrix M (SciPy itself is not needed): row a combines b for each stored entry (a, b).
Options mean what they mean to `npushmem gnn`. Exit code 0 when all values agree to 1e-5, relative to the magnitudes that were added up.

    python3 gnn_check.py --make graph.npz x.npy       writes a random graph of 300 nodes, and features, to try it on
"""

import argparse

import numpy as np


def entries(archive):
    """Row, column and value of each stored entry."""
    kind = archive["format"].item()
    if kind not in (b"csr", "csr"):
        raise SystemExit(f"format {kind!r}; this example reads csr")
    rows = np.repeat(np.arange(archive["shape"][0]), np.diff(archive["indptr"]))
    return rows, archive["indices"].astype(np.int64), archive["data"].astype(np.float64)


def normalised(rows, columns, weights, nodes, norm):
    """w / sqrt(d(a) d(b)) for gcn, w / sqrt(d(a) e(b)) for both: d sums rows, e columns."""
    if norm == "none":
        return weights
    left = np.bincount(rows, weights, nodes)
    right = left if norm == "gcn" else np.bincount(columns, weights, nodes)
    product = left[rows] * right[columns]
    return np.divide(weights, np.sqrt(product), out=np.zeros_like(weights), where=product > 0)


def layer(rows, columns, weights, x, reduce, backward):
    """One aggregation, or the gradient of one."""
    degree = np.maximum(np.bincount(rows, minlength=len(x)), 1)[:, None]
    y = np.zeros_like(x)
    if backward:
        x = x / degree if reduce == "mean" else x
        np.add.at(y, columns, weights[:, None] * x[rows])
        return y
    messages = weights[:, None] * x[columns]
    if reduce == "max":
        y[:] = -np.inf
        np.maximum.at(y, rows, messages)
        y[np.bincount(rows, minlength=len(x)) == 0] = 0
        return y
    np.add.at(y, rows, messages)
    return y / degree if reduce == "mean" else y


def make(graph, features, nodes=300, dim=24):
    """Writes what scipy.sparse.save_npz would, by it where it is installed, and features."""
    random = np.random.default_rng(7)
    dense = (random.random((nodes, nodes)) < 0.03) * random.random((nodes, nodes))
    dense[17] = 0  # a node without neighbours
    rows, columns = np.nonzero(dense)
    indptr = np.zeros(nodes + 1, dtype=np.int32)
    np.cumsum(np.bincount(rows, minlength=nodes), out=indptr[1:])
    data, columns = dense[rows, columns], columns.astype(np.int32)
    try:
        import scipy.sparse

        scipy.sparse.save_npz(graph, scipy.sparse.csr_matrix((data, columns, indptr), shape=(nodes, nodes)))
    except ImportError:
        np.savez(graph, indices=columns, indptr=indptr, format=b"csr", shape=np.array([nodes, nodes]), data=data)
    np.save(features, random.random((nodes, dim), dtype=np.float32) - 0.5)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graph")
    parser.add_argument("features")
    parser.add_argument("out", nargs="?")
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--weights", action="store_true")
    parser.add_argument("--norm", default="none", choices=["none", "gcn", "both"])
    parser.add_argument("--reduce", default="sum", choices=["sum", "mean", "max"])
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--backward", action="store_true")
    args = parser.parse_args()
    if args.make:
        make(args.graph, args.features)
        return
    if args.out is None:
        parser.error("name the result: graph, features, out")

    rows, columns, weights = entries(np.load(args.graph))
    x = np.load(args.features).astype(np.float64)
    y = np.load(args.out)
    if not args.weights:
        weights = np.ones_like(weights)
    weights = normalised(rows, columns, weights, len(x), args.norm)
    size = np.abs(x)
    for _ in range(args.layers):
        x = layer(rows, columns, weights, x, args.reduce, args.backward)
        if args.reduce == "max":
            size = np.abs(x)
        else:
            size = layer(rows, columns, np.abs(weights), size, args.reduce, args.backward)
    if y.shape != x.shape or y.dtype != np.float32:
        raise SystemExit(f"{args.out} has shape {y.shape} and type {y.dtype}; expected {x.shape} and float32")
    error = (np.abs(y - x) / np.maximum(size, np.finfo(np.float32).tiny)).max()
    print(f"largest difference, relative: {error:.2e}")
    if not error <= 1e-5:
        raise SystemExit("the results differ")


if __name__ == "__main__":
    main()
