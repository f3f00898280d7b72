"""Rooted trees, over which the order conditions of Runge-Kutta methods go (Butcher)."""

import functools
import math


@functools.cache
def trees(nodes):
    """Rooted trees of so many nodes, each the sorted tuple of its branches: 1, 1, 2, 4, 9, 20, 48, ... of them."""
    if nodes == 1:
        return ((),)
    found = {
        tuple(sorted((*tree, branch))) for k in range(1, nodes) for tree in trees(k) for branch in trees(nodes - k)
    }
    return tuple(sorted(found))


@functools.cache
def nodes_of(tree):
    return 1 + sum(map(nodes_of, tree))


@functools.cache
def density(tree):
    return nodes_of(tree) * math.prod(map(density, tree))
