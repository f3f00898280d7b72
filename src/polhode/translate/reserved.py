"""Names that no variable or function may have in one of the languages."""

from __future__ import annotations

RESERVED = frozenset((
    "abs", "abstract", "acos", "active", "all", "and", "any", "arguments", "array", "as", "asin", "async", "atan",
    "atan2", "atomic", "attribute", "auto", "await", "become", "body", "bool", "box", "break", "case", "catch",
    "ceil", "char", "class", "coherent", "common", "compute", "conj", "const", "continue", "cos", "cosh", "crate",
    "cross", "default", "delete", "demote", "diff", "discard", "div", "do", "dot", "double", "dyn", "else", "enum",
    "eval", "exp", "exp2", "explicit", "export", "extern", "external", "false", "far", "filter", "final", "fixed",
    "float", "floor", "fma", "fmax", "fmin", "fn", "for", "fract", "fragment", "free", "frexp", "friend", "from",
    "function", "gamma", "get", "goto", "half", "handle", "highp", "hook", "if", "impl", "import", "in", "index",
    "inline", "inout", "input", "instanceof", "int", "interface", "invariant", "is", "j0", "j1", "layout", "ldexp",
    "length", "let", "log", "log2", "long", "loop", "lowp", "macro", "main", "mat3", "mat3x3", "match", "max",
    "mediump", "meta", "min", "mix", "mod", "modf", "module", "move", "mut", "mutable", "namespace", "near",
    "nearest", "new", "nil", "noinline", "none", "norm", "not", "null", "of", "operator", "or", "output",
    "override", "package", "pair", "partition", "pass", "pow", "power", "precise", "premerge", "priv", "private",
    "protected", "pub", "public", "quat", "quat_", "readonly", "ref", "regardless", "register", "require",
    "resource", "restrict", "return", "round", "rsqrt", "sampler", "select", "self", "set", "set_", "shared",
    "short", "sign", "signed", "sin", "sinh", "sizeof", "snorm", "sqrt", "state", "static", "std", "step", "struct",
    "super", "switch", "tail", "tan", "tanh", "target", "technique", "template", "texture", "this", "throw",
    "trait", "true", "trunc", "try", "type", "typedef", "typename", "typeof", "undefined", "uniform", "union",
    "unless", "unorm", "unsafe", "unsigned", "unsized", "up", "use", "using", "var", "varying", "vec3", "vec3_pair",
    "vertex", "virtual", "void", "volatile", "where", "while", "with", "writeonly", "y0", "y1", "yield",
))  # fmt: skip
"""Words that are reserved, names of library functions, and names of printed types."""


def free_name(name: str, taken: set[str], joint: str) -> str:
    """The name, with a number if it is taken or reserved; it is taken then."""
    candidate, i = name, 2
    while candidate in taken or candidate in RESERVED:
        candidate, i = f"{name}{joint}{i}", i + 1
    taken.add(candidate)
    return candidate
