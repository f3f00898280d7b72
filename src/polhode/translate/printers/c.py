"""C99, and what C++ and CUDA have in common with it."""

from __future__ import annotations

from typing import Any

from ..nodes import ARRAY, Function, Node, Var
from .base import Printer, is_array, is_long, read_variables, trial_call, wrapped, written_arrays


class C(Printer):
    """C99."""

    language = "C99"
    suffix = "c"
    functions = {
        name: name
        for name in ("sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "exp", "log")
    } | {"abs": "fabs", "power": "pow", "fma": "fma"}
    inner = "static inline "
    """Words before a function that only this file uses."""
    outer = ""
    """Words before a function for users."""

    def definition(self, name: str, shape: tuple[Any, ...]) -> str:
        """A struct."""
        return f"typedef struct {{ {self.members(shape)} }} {name};"

    def members(self, shape: tuple[Any, ...]) -> str:
        """The members of a struct; neighbours of one type share a declaration."""
        if is_long(shape):
            return f"{self.number} v[{len(shape)}];"
        groups: list[tuple[str, list[str]]] = []
        for name, part in zip(self.fields(shape), shape, strict=True):
            kind = self.shape_kind(part)
            if groups and groups[-1][0] == kind:
                groups[-1][1].append(name)
            else:
                groups.append((kind, [name]))
        return " ".join(f"{kind} {', '.join(names)};" for kind, names in groups)

    def made(self, shape: tuple[Any, ...], items: list[str]) -> str:
        """A compound literal."""
        text = ", ".join(items)
        return (
            f"({self.tuple_name(shape)}){{{{{text}}}}}" if is_long(shape) else f"({self.tuple_name(shape)}){{{text}}}"
        )

    def declared(self, var: Var, value: str) -> str:
        """The declaration of a variable; the type of a struct stands there once."""
        return f"{self.kind(var.type)} {var.name} = {value.removeprefix(f'({self.kind(var.type)})')}"

    def zero(self, var: Var) -> str:
        """A declaration with zeros; a workspace has no initial value."""
        if is_array(var):
            return f"{self.number} {var.name}[{var.size}]"
        return f"{self.kind(var.type)} {var.name} = {self.zero_of(var)}"

    def zero_of(self, var: Var) -> str:
        """The initial value of a variable that gets its value later."""
        return {"number": "0.0", "bool": self.false, "int": "0"}.get(var.type.name, "{0}")

    def head(self, function: Function, is_entry: bool) -> list[str]:
        """The head of a function."""
        written = written_arrays(function)
        parameters = ", ".join(self.parameter(var, var in written) for var in function.parameters)
        result = "void" if function.result.name == "known" else self.kind(function.result)
        words = self.outer if is_entry else self.inner
        return wrapped(f"{words}{result} {function.name}({parameters or 'void'}) {{", 0)

    def parameter(self, var: Var, is_written: bool) -> str:
        """The declaration of a parameter."""
        if var.type == ARRAY:
            size = str(var.size) if var.size else ""
            return f"{'' if is_written else 'const '}{self.number} {var.name}[{size}]"
        return f"{self.kind(var.type)} {var.name}"

    def unused(self, function: Function) -> list[str]:
        """Parameters that are there for all methods."""
        used = read_variables(function)
        names = [var.name for var in function.parameters if var not in used]
        return [f"    (void){name};  /* not needed here */" for name in names]

    def comment(self, text: str) -> list[str]:
        """A block comment."""
        lines = text.replace("*/", "* /").splitlines()
        if len(lines) == 1:
            return [f"/* {lines[0]} */"]
        return ["/*", *(f" * {line}".rstrip() for line in lines), " */"]

    def constant_array(self, name: str, values: tuple[float, ...]) -> list[str]:
        """The declaration of a constant array."""
        items = ", ".join(map(self.literal, values))
        return wrapped(f"{self.constant_words} {self.number} {name}[{len(values)}] = {{{items}}};", 0)

    constant_words = "static const"

    # --- the file -----------------------------------------------------------------------------------

    headers: tuple[str, ...] = ("math.h", "stdbool.h")
    standard, compiler = "-std=c99", "cc"

    def opening(self, made: Any) -> list[str]:
        """Headers, and the pragma that forbids fused multiply-adds."""
        lines = [f"#include <{header}>" for header in self.headers]
        return ["\n".join(lines), "#ifdef __clang__\n#pragma STDC FP_CONTRACT OFF\n#endif"]

    def rounding(self, made: Any) -> str:
        """What equality with the Python kernel depends on."""
        return (
            "The numbers equal those of the Python kernel to the bit where sin, cos and the like are the same "
            "functions and the compiler fuses no product with a sum: gcc and clang need -ffp-contract=off (gcc "
            "-std=c99 implies it). Otherwise the last bits differ. Never use -ffast-math, with which results may be "
            "wrong."
        )

    def how_to_test(self, made: Any) -> str:
        """How the self-test is run."""
        file = f"{made.name}.{self.suffix}"
        options = f"{self.standard} -O2 -ffp-contract=off -DPOLHODE_SELF_TEST"
        return f"Self-test: {self.compiler} {options} {file} -lm && ./a.out"

    def closing(self, made: Any, trial: Any) -> list[str]:
        """The self-test."""
        lines = [
            "#ifdef POLHODE_SELF_TEST",
            "#include <stdio.h>",
            "",
            "/* Make the steps of the self-test; returns the number of the step that failed, or 0. */",
            f"{self.inner}int trial({self.number} reached[7]) {{",
            *self._trial(made, trial),
            "}",
            "",
            "static int compared(const double reached[7]) {",
            *self._array("expected", trial.expected, exact=True),
            "    double largest = 0.0;",
            "    for (int i = 0; i < 7; i++) {",
            "        double gap = fabs(reached[i] - expected[i]);",
            '        printf("%.17g\\n", reached[i]);',
            "        if (!(gap <= largest)) largest = gap;",
            "    }",
            '    printf("largest difference from the Python kernel: %.3g\\n", largest);',
            f"    return largest <= {trial.tolerance!r} ? 0 : 1;",
            "}",
            "",
            *self.main(),
            "#endif",
        ]
        return ["\n".join(lines)]

    def main(self) -> list[str]:
        """The main function of the self-test."""
        return [
            f"int main({self.nothing}) {{",
            "    double reached[7];",
            "    int failed = trial(reached);",
            '    if (failed != 0) printf("step %d failed\\n", failed);',
            "    return failed != 0 ? 1 : compared(reached);",
            "}",
        ]

    nothing = "void"

    def _trial(self, made: Any, trial: Any) -> list[str]:
        """Lines that make the steps."""
        calls = {entry: trial_call(made, entry, trial) for entry in made.entries}
        out = ("q_out", "momentum_out") if "result" in made.entries else ("q", "momentum")
        return [
            *self._array("inertia", made.inertia),
            *self._array("inverse", made.inverse),
            *(self._array("params", made.parameters) if made.parameters else []),
            *self._array("q", made.q, words=""),
            *self._array("momentum", made.momentum, words=""),
            *([f"    double memory[{made.memory}];"] if made.memory else []),
            *(["    double q_out[4], momentum_out[3];"] if "result" in calls else []),
            f"    const double t0 = {trial.t0!r}, dt = {trial.dt!r};",
            *([f"    if ({calls['begin']} != 0) return 1;"] if "begin" in calls else []),
            f"    for (int n = 0; n < {trial.steps}; n++) {{",
            f"        if ({calls['step']} != 0) return n + 1;",
            "    }",
            *([f"    if ({calls['result']} != 0) return {trial.steps};"] if "result" in calls else []),
            f"    for (int i = 0; i < 7; i++) reached[i] = i < 4 ? {out[0]}[i] : {out[1]}[i - 4];",
            "    return 0;",
        ]

    @staticmethod
    def _array(name: str, values: tuple[float, ...], words: str = "const ", exact: bool = False) -> list[str]:
        items = ", ".join(float(x).hex() if exact else repr(float(x)) for x in values)
        return wrapped(f"{words}double {name}[{len(values)}] = {{{items}}};", 1)


class Cpp(C):
    """C++17."""

    def declared(self, var: Var, value: str) -> str:
        """The declaration of a variable; the type of a struct stands there once."""
        kind = self.kind(var.type)
        return f"{kind} {var.name} = {value.removeprefix(kind) if value.startswith(kind + '{') else value}"

    language = "C++17"
    suffix = "cpp"
    headers: tuple[str, ...] = ("math.h",)
    nothing = ""
    standard, compiler = "-std=c++17", "c++"
    inner = "static inline "

    def definition(self, name: str, shape: tuple[Any, ...]) -> str:
        """A struct."""
        return f"struct {name} {{ {self.members(shape)} }};"

    def made(self, shape: tuple[Any, ...], items: list[str]) -> str:
        """An initialised struct."""
        text = ", ".join(items)
        return f"{self.tuple_name(shape)}{{{{{text}}}}}" if is_long(shape) else f"{self.tuple_name(shape)}{{{text}}}"

    def zero_of(self, var: Var) -> str:
        """The initial value of a variable that gets its value later."""
        value = super().zero_of(var)
        return "{}" if value == "{0}" else value

    def _cast(self, node: Any) -> str:
        return f"{self.number}({self.text(node.args[0])})"


class Cuda(Cpp):
    """CUDA C++, for host and device."""

    language = "CUDA C++"
    suffix = "cu"
    inner = "__host__ __device__ static inline "
    outer = "__host__ __device__ "
    compiler = "nvcc"

    def _text(self, node: Node, own: int) -> str:
        if node.op == "table":  # device code cannot read constant arrays of the host
            return f"{self.table(node.data)}({self.text(node.args[0])})"
        return super()._text(node, own)

    def constant_array(self, name: str, values: tuple[float, ...]) -> list[str]:
        """A function of the place, with the array inside."""
        items = ", ".join(map(self.literal, values))
        inside = wrapped(f"const double values[{len(values)}] = {{{items}}};", 1)
        return [f"{self.inner}double {name}(int i) {{", *inside, "    return values[i];", "}"]

    def opening(self, made: Any) -> list[str]:
        """Headers."""
        return super().opening(made)[:1]

    def rounding(self, made: Any) -> str:
        """What equality with the Python kernel depends on."""
        return (
            "On the host the numbers equal those of the Python kernel to the bit, with -fmad=false on the device too, "
            "except for the last bit of sin, cos and the like. Without it the accuracy is the same."
        )

    def how_to_test(self, made: Any) -> str:
        """How the self-test is run."""
        return f"Self-test, on host and device: nvcc -fmad=false -DPOLHODE_SELF_TEST {made.name}.cu && ./a.out"

    def main(self) -> list[str]:
        """The main function of the self-test."""
        return [
            "__global__ void on_device(double *reached, int *failed) { *failed = trial(reached); }",
            "",
            "int main() {",
            "    double reached[7], *y;",
            "    int failed = trial(reached), status, devices = 0, *f;",
            '    if (failed != 0) printf("step %d failed\\n", failed);',
            "    status = failed != 0 ? 1 : compared(reached);",
            "    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return status;",
            "    if (cudaMalloc(&y, sizeof reached) != cudaSuccess) return 1;",
            "    if (cudaMalloc(&f, sizeof failed) != cudaSuccess) return 1;",
            "    on_device<<<1, 1>>>(y, f);",
            "    cudaMemcpy(reached, y, sizeof reached, cudaMemcpyDeviceToHost);",
            "    if (cudaMemcpy(&failed, f, sizeof failed, cudaMemcpyDeviceToHost) != cudaSuccess) return 1;",
            '    printf("on the device\\n");',
            "    return failed != 0 || compared(reached) != 0 ? 1 : status;",
            "}",
        ]
