"""Imports the package as a program would: it must load neither NumPy nor a framework nor the library. Prints the seconds, and
compares them with those of the standard library's modules that it imports."""

import subprocess
import sys

STANDARD = "import atexit, ctypes, dataclasses, logging, operator, os, pathlib, shutil, threading, typing, weakref"


def seconds(program):
    """The least of ten runs, without the interpreter's own start."""
    timed = f"import time; start = time.perf_counter(); {program}; print(time.perf_counter() - start)"
    runs = [subprocess.run([sys.executable, "-c", timed], capture_output=True, text=True, check=True) for _ in range(10)]
    return min(float(run.stdout) for run in runs)


def main():
    check = "import adasum, sys; print(' '.join(sys.modules)); assert adasum._library._library is None"
    loaded = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"numpy", "torch", "mindspore"}.intersection(loaded)
    assert not heavy, f"import adasum loads {heavy}"
    print(f"import adasum: {seconds('import adasum'):.3f} s, of that {seconds(STANDARD):.3f} s the standard library")


main()
