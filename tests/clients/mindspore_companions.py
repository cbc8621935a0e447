"""Makes what MindSpore's Ascend plugin links with beside ACL and HCCL, so that it loads over the mock:

    mindspore_companions.py MOCK_LIBRARIES FOLDER

FOLDER/latest/lib64, the layout that MindSpore looks for, gets the mock's libraries and empty ones under the vendor's other
names. They lead to one library with a function for each name that the plugin would not load without; it returns 0.
Nothing of it computes: it is for tests of what MindSpore does through ACL and HCCL, which are the mock's own. FOLDER/python gets
a package `hccl` that says a version, as MindSpore asks for one. Beside FOLDER/latest/opp, which ASCEND_OPP_PATH must name, 2.7 looks
for a folder `opp_kernel`."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

#: Opened when MindSpore starts, beside those that the plugin is linked with.
OPENED = ["libacl_op_compiler.so", "libacl_tdt_channel.so", "libopapi.so", "driver/libascend_hal.so"]

#: Looked up by name when they are called; MindSpore warns that it gets nothing. Those of hcom are for operators that whole graphs
#: queue, and 2.7 does not start without them.
LOOKED_UP = {
    "acltdtCreateChannelWithCapacity", "HcomExecInitialize", "HcomExecFinalize", "HcomExecEnqueueOperation", "HcomExecEnqueueAllToAllV",
}

#: ge::StatusFactory is a singleton with a map, in the old layout of std::string.
FACTORY = """
#include <cstdint>
#include <map>
#include <string>
void *instance() __asm__("_ZN2ge13StatusFactory8InstanceEv");
void *instance() { static std::map<uint32_t, std::string> codes; return &codes; }
"""


def symbols(library, *flags):
    """Names in the dynamic table of a library, with their kinds."""
    text = subprocess.run(["nm", "-D", *flags, library], capture_output=True, text=True, check=False).stdout
    rows = (line.split() for line in text.splitlines())
    return {row[-1].partition("@")[0]: row[-2] for row in rows if len(row) >= 2}


def missing(plugin_libraries, all_libraries):
    """What the plugin needs, no library of MindSpore, of the system or of the mock has, and is not optional."""
    wanted = set()
    for library in plugin_libraries:
        wanted |= {name for name, kind in symbols(library, "--undefined-only").items() if kind == "U"}
    for library in all_libraries:
        wanted -= symbols(library, "--defined-only").keys()
    return wanted


def needed_of_system(libraries):
    """Files of the system's libraries that these load."""
    found = set()
    for library in libraries:
        text = subprocess.run(["ldd", library], capture_output=True, text=True, check=False).stdout
        found |= {word for word in text.split() if word.startswith(("/lib", "/usr/lib"))}
    return found


def not_found(libraries):
    """Names of libraries that these are linked with, and that the system has not."""
    found = set()
    for library in libraries:
        text = subprocess.run(["ldd", library], capture_output=True, text=True, check=False).stdout
        found |= {line.split()[0] for line in text.splitlines() if line.endswith("=> not found")}
    return found


def main():
    mock, folder = Path(sys.argv[1]), Path(sys.argv[2])
    package = Path(importlib.util.find_spec("mindspore").submodule_search_locations[0])
    target = folder / "latest/lib64"
    (target / "driver").mkdir(parents=True)
    for library in mock.glob("lib*.so"):
        shutil.copy(library, target)
    own = [str(path) for path in (package / "lib").glob("*.so*")] + [str(p) for p in package.glob("_c_*.so")]
    plugin = [str(path) for pattern in ("libmindspore_ascend.so.2", "libmindspore_ops_ascend.so",
                                        "ascend/libmindspore_ascend_res_manager.so", "ascend/libd_collective.so",
                                        "ascend/libmindspore_graph_ir.so", "ascend/libhccl_plugin.so",
                                        "ascend/ms_kernels_symmetric_memory/**/*.so")
              for path in (package / "lib/plugin").glob(pattern)]
    mocks = [str(target / "libascendcl.so"), str(target / "libhccl.so")]
    names = missing(plugin, [*own, *plugin, *mocks, *needed_of_system(plugin + own)]) | LOOKED_UP
    names.discard("_ZN2ge13StatusFactory8InstanceEv")
    lines = [FACTORY]
    for number, name in enumerate(sorted(names)):
        if name.startswith(("_ZTI", "_ZTV", "_ZTS")):
            lines.append(f'extern "C" {{ extern void *d{number}[64] __asm__("{name}"); void *d{number}[64] = {{}}; }}')
        else:
            lines.append(f'long f{number}() __asm__("{name}"); long f{number}() {{ return 0; }}')
    source = folder / "companions.cpp"
    source.write_text("\n".join(lines))
    compiler = [*os.environ.get("CXX", "c++").split(), "-shared", "-fPIC", "-w", f"-L{target}", "-Wl,--no-as-needed"]
    subprocess.run([*compiler, "-D_GLIBCXX_USE_CXX11_ABI=0", source, "-o", target / "libcompanions.so",
                    "-Wl,-soname,libcompanions.so", "-Wl,-rpath,$ORIGIN", "-lascendcl", "-lhccl"], check=True)
    there = {path.name for folder in (target, package / "lib") for path in folder.rglob("lib*.so*")}
    for name in sorted(not_found(plugin) - there) + OPENED:
        file = target / name
        subprocess.run([*compiler, "-x", "c++", "/dev/null", "-o", file, f"-Wl,-soname,{file.name}",
                        "-Wl,-rpath,$ORIGIN:$ORIGIN/..", "-lcompanions", "-lascendcl"], check=True)
    (folder / "latest/opp_kernel").mkdir()
    version = folder / "python/hccl"
    version.mkdir(parents=True)
    (version / "__init__.py").touch()
    (version / "sys_version.py").write_text("__sys_version__ = '8.3'\n")
    print(f"{len(names)} names beside ACL and HCCL")


main()
