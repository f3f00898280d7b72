"""What the compiled loop of lanes is made of: reads its optimised LLVM code and tells scalar arithmetic in it."""

import re

from polhode.compile.simd.vector_types import LANES

ARITHMETIC = re.compile(r"= f(?:add|sub|mul|div|rem)\b[a-z ]*? (<\d+ x double>|double) ")
CALL = re.compile(r"= (?:tail |notail |musttail )?call\b[a-z ]*? double @(?:llvm\.)?(\w+)")
LABEL = re.compile(r'^("[^"]+"|[\w.$-]+):')
TARGET = re.compile(r'label %("[^"]+"|[\w.$-]+)')
EVERYWHERE = re.compile(rf"^  (%\S+) = icmp (eq|ne) i{LANES} ")
BRANCH = re.compile(r"^  br i1 (%\S+), ")

FEW = 8
"""Single numbers a loop may add and multiply beside its vectors: step sizes and times that are the same for all."""


def scalar_work(code):
    """What a compiled run does with single doubles that it should do with vectors; empty if nothing."""
    (text,) = code.inspect_llvm().values()
    (run,) = re.findall(r"^define [^\n]*@_ZN7polhode7compile[^\n]*4loop[^\n]*3run.*?^}", text, re.M | re.S)
    found = ARITHMETIC.findall(run)
    single, vector = found.count("double"), sum(kind != "double" for kind in found)
    faults = [f"{single} scalar and {vector} vector operations"] if single > FEW or not vector else []
    return faults + [f"calls {name} on single numbers" for name in sorted(set(_calls(run)))]


def _calls(run):
    """Functions of single numbers that are called although nothing rare happens in any lane."""
    blocks, edges = {}, {}
    name, conditions = "entry", {}
    for line in run.splitlines()[1:]:
        label = LABEL.match(line)
        if label:
            name = label[1]
        blocks.setdefault(name, []).append(line)
        condition = EVERYWHERE.match(line)
        if condition:
            conditions[condition[1]] = condition[2]
        targets, branch = TARGET.findall(line), BRANCH.match(line)
        if branch and branch[1] in conditions:  # all lanes alike: what was asked holds in every one
            targets = targets[:1] if conditions[branch[1]] == "eq" else targets[1:]
        edges.setdefault(name, []).extend(targets)
    seen, waiting = set(), [next(iter(blocks))]
    while waiting:
        here = waiting.pop()
        if here not in seen:
            seen.add(here)
            waiting += edges[here]
    return [name for block in seen for line in blocks[block] for name in CALL.findall(line)]
