"""Compares the ctypes declarations in python/adasum/_abi.py with include/adasum.h. Needs pycparser and a C compiler.

Every function, constant, status and structure that Python declares must be in the header just so. What the header has beyond
that is named, since a program may call it through adasum.library()."""

import ctypes
import os
import re
import subprocess
import sys
from pathlib import Path

from pycparser import c_ast, c_parser

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

from adasum import _abi as abi  # noqa: E402

#: How C spells each ctypes type; those of a size that differs between machines by their own names.
SPELLING = {
    ctypes.c_char_p: "char *",
    ctypes.c_void_p: "void *",
    ctypes.c_float: "float",
    ctypes.c_double: "double",
    ctypes.c_uint8: "uint8_t",
    ctypes.c_int32: "int32_t",
    ctypes.c_uint32: "uint32_t",
    ctypes.c_int64: "int64_t",
    ctypes.c_uint64: "uint64_t",
    None: "void",
}


def of_ctypes(kind):
    """The C type of a ctypes type. ctypes has size_t and uint64_t as one: both are `uint64_t` here."""
    if kind in SPELLING:
        return SPELLING[kind]
    if kind is abi.adasum_log_callback:
        return "adasum_log_callback"
    if issubclass(kind, ctypes._Pointer):
        return f"{of_ctypes(kind._type_)} *".replace("* *", "**")
    return kind.__name__


def of_header(node):
    """The same for a declaration of the header; const does not matter to a caller."""
    if isinstance(node, c_ast.PtrDecl):
        inner = of_header(node.type)
        return f"{inner} *".replace("* *", "**")
    if isinstance(node, c_ast.TypeDecl):
        kind = node.type
        name = kind.name if isinstance(kind, (c_ast.Struct, c_ast.Enum)) else " ".join(kind.names)
        return {"size_t": "uint64_t", "adasum_status": "int32_t"}.get(name, name)
    raise TypeError(f"no idea what {type(node).__name__} is")


def parameters(function):
    found = function.args.params if function.args else []
    types = [of_header(parameter.type) for parameter in found]
    return [] if types == ["void"] else types


class Header(c_ast.NodeVisitor):
    """Functions, structures with fields, and enumerators of the header."""

    def __init__(self, text):
        self.functions, self.structures, self.statuses, self.callbacks = {}, {}, {}, {}
        basics = "".join(f"typedef int {name};" for name in
                         ("uint8_t", "int32_t", "uint32_t", "int64_t", "uint64_t", "size_t"))
        self.visit(c_parser.CParser().parse(basics + text))

    def visit_Decl(self, node):
        if isinstance(node.type, c_ast.FuncDecl):
            self.functions[node.name] = (of_header(node.type.type), parameters(node.type))
        else:
            self.generic_visit(node)

    def visit_Typedef(self, node):
        inner = node.type
        if isinstance(inner, c_ast.PtrDecl) and isinstance(inner.type, c_ast.FuncDecl):
            self.callbacks[node.name] = (of_header(inner.type.type), parameters(inner.type))
        else:
            self.generic_visit(node)

    def visit_Struct(self, node):
        if node.decls:
            self.structures[node.name] = [(field.name, of_header(field.type)) for field in node.decls]

    def visit_Enumerator(self, node):
        self.statuses[node.name.removeprefix("ADASUM_")] = int(node.value.value, 0)


def preprocessed(text):
    # Includes would bring the whole of the compiler's own headers.
    text = re.sub(r"^#include.*$", "", text, flags=re.M)
    command = [*os.environ.get("CC", "cc").split(), "-E", "-P", "-x", "c", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def main():
    text = (ROOT / "include/adasum.h").read_text()
    header = Header(preprocessed(text))
    defines = dict(re.findall(r"^#define ADASUM_(\w+) (\d+)$", text, re.M))
    wrong = []

    def compare(what, ours, theirs):
        if ours != theirs:
            wrong.append(f"{what}: Python has {ours}, the header {theirs}")

    for name, (result, arguments) in abi.SIGNATURES.items():
        compare(name, (of_ctypes(result), [of_ctypes(kind) for kind in arguments]), header.functions.get(name))
    for name, value in abi.CONSTANTS.items():
        compare(name, str(value), defines.get(name))
    for name, value in abi.STATUSES.items():
        compare(name, value, header.statuses.get(name))
    declared = [kind for kind in vars(abi).values() if isinstance(kind, type) and issubclass(kind, ctypes.Structure)]
    for kind in declared:
        fields = [(name, of_ctypes(field)) for name, field in getattr(kind, "_fields_", [])]
        compare(f"struct {kind.__name__}", fields, header.structures.get(kind.__name__, []))
    callback = abi.adasum_log_callback
    ours = (of_ctypes(callback._restype_), [of_ctypes(kind) for kind in callback._argtypes_])
    compare("adasum_log_callback", ours, header.callbacks.get("adasum_log_callback"))

    if len(header.functions) < 25 or len(abi.SIGNATURES) < 25:
        wrong.append(f"{len(header.functions)} functions in the header, {len(abi.SIGNATURES)} in Python: too few to be all")
    for line in wrong:
        print(line, file=sys.stderr)
    left = sorted({*header.functions, *header.statuses} - {*abi.SIGNATURES, *abi.STATUSES})
    print(f"{len(abi.SIGNATURES)} functions, {len(declared)} structures as in the header; "
          f"not declared in Python: {', '.join(left) or 'none'}")
    sys.exit(1 if wrong else 0)


main()
