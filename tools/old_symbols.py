#!/usr/bin/env python3
"""How is something built here that runs with an older C library?  old_symbols.py FOLDER [--cxx COMPILER]

Fills FOLDER with libraries to link with (-L FOLDER): of each symbol that this machine's libc, libm, libgcc_s and libstdc++ have
they show the newest version that manylinux_2_28 allows, in the file that had it in glibc 2.28. What only newer ones have comes
from tools/old_runtime, which calls what was there, and from libstdc++.a. The code of these libraries is never run: programs load
the machine's own. Prints nothing; 1, and a sentence, where it cannot be done.
"""

import argparse
import platform
import re
import subprocess
import sys
from pathlib import Path

NEWEST = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11), "GCC": (7, 0, 0)}
# What glibc moved into libc.so.6 after 2.28, and from where.
MOVED = {"libpthread.so.0": re.compile(r"_*(pthread|sem|cnd|mtx|thrd|tss)_|call_once"),
         "libdl.so.2": re.compile(r"dl(open|mopen|close|v?sym|error|addr1?|info)$"),
         "librt.so.1": re.compile(r"_*(shm|aio|lio|timer|mq)_"),
         "libresolv.so.2": re.compile(r"_*(dn|res|ns_name)_"),
         "libutil.so.1": re.compile(r"(openpty|forkpty|login|login_tty|logout|logwtmp)$"),
         "libanl.so.1": re.compile(r"(getaddrinfo_a|gai_)")}
# Not shown: threads of libstdc++.a need no libpthread that somebody else has loaded, as an old libstdc++.so's do.
THREADS = re.compile(r"_ZNSt6thread(15_M_start_thread|4join|6detach)")
OWN = ("__libc_start_main",)  # tools/old_runtime/start.c has a default of its own, which calls the old one
LINE = re.compile(r"\s*\d+:\s+[0-9a-f]+\s+(?P<size>\S+)\s+(?P<kind>\w+)\s+(?P<bind>\w+)\s+DEFAULT\s+(?P<section>\S+)\s+"
                  r"(?P<name>[^@\s]+)@(?P<default>@?)(?P<version>\S+)")


class Refused(Exception):
    pass


def run(*command):
    ended = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise Refused(f"{' '.join(map(str, command[:3]))} …: {(ended.stderr or ended.stdout).strip()}")
    return ended.stdout


def number(version):
    """("GLIBC", (2, 28)) of GLIBC_2.28; None of what is nobody's interface."""
    family, _, digits = version.partition("_")
    if family not in NEWEST or not re.fullmatch(r"[\d.]+", digits):
        return None
    return family, tuple(int(digit) for digit in digits.split("."))


def symbols(library):
    """name: (version, kind, size, binding, does the library itself choose a newer one, or none), of those that are old enough."""
    found, newer = {}, set()
    for line in run("readelf", "--dyn-syms", "--wide", library).splitlines():
        match = LINE.match(line)
        if not match or match["section"] in ("UND", "ABS") or THREADS.match(match["name"]):
            continue
        parsed = number(match["version"])
        if parsed is None:
            continue
        family, version = parsed
        if version > NEWEST[family] or not match["default"]:
            newer.add(match["name"])
        if version > NEWEST[family]:
            continue
        before = found.get(match["name"])
        if before is None or before[0] < version:
            found[match["name"]] = (version, match["version"], match["kind"], int(match["size"], 0), match["bind"])
    return {name: (*rest, name in newer) for name, (_, *rest) in found.items()}


def stub(path, soname, shown, cxx):
    """A library of this name that shows these symbols."""
    assembly, versions, aliases = [], {}, []
    for index, (name, (version, kind, size, bind, _)) in enumerate(sorted(shown.items())):
        label = f"old_{index}" if name in OWN else name
        versions.setdefault(version, [])
        if name in OWN:
            aliases.append(f".symver {label}, {name}@{version}, remove\n")
        else:
            versions[version].append(name)
        section = {"OBJECT": '.data', "TLS": '.section .tdata,"awT",@progbits'}.get(kind, ".text")
        what = {"OBJECT": "object", "TLS": "tls_object"}.get(kind, "function")
        if bind == "UNIQUE":
            what = "gnu_unique_object"
        assembly.append(f"{section}\n.globl {label}\n.type {label},@{what}\n.size {label},{max(size, 1)}\n"
                        f".balign 32\n{label}: .zero {max(size, 1) if section != '.text' else 1}\n")
    source, script = path.with_suffix(".s"), path.with_suffix(".map")
    source.write_text("".join(assembly + aliases) + '.section .note.GNU-stack,"",@progbits\n')
    nodes = [f"{version} {{ {'global: ' + '; '.join(names) + ';' if names else ''} }};\n" for version, names in sorted(versions.items())]
    script.write_text("".join(nodes).replace(" }", " local: *; }", 1))
    run(cxx, "-shared", "-nostdlib", "-o", path, f"-Wl,-soname,{soname}", f"-Wl,--version-script={script}", source)
    source.unlink()
    script.unlink()


def beside(cxx, name):
    """The file of this name that the compiler links."""
    path = Path(run(cxx, f"-print-file-name={name}").strip())
    if not path.is_absolute():
        raise Refused(f"{cxx} has no {name}, which is needed to link for older systems")
    return path.resolve()


def make(folder, cxx):
    if platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc":
        raise Refused(f"this is known for x86_64 with glibc, not for {platform.machine()} with {platform.libc_ver()[0] or 'another library'}; "
                      "./dev wheel --native makes a wheel for systems like this one")
    folder.mkdir(parents=True, exist_ok=True)
    of_libc = symbols(beside(cxx, "libc.so.6"))
    files = {soname: {} for soname in ("libc.so.6", *MOVED)}
    for name, symbol in of_libc.items():
        soname = next((soname for soname, names in MOVED.items() if symbol[-1] and names.match(name)), "libc.so.6")
        files[soname][name] = symbol
    for soname in ("libm.so.6", "libgcc_s.so.1", "libstdc++.so.6"):
        files[soname] = symbols(beside(cxx, soname))
    for soname, shown in files.items():
        stub(folder / soname, soname, shown, cxx)
    ours, objects = folder / "libold_runtime.a", []
    for source in sorted(Path(__file__).with_name("old_runtime").glob("*.c")):
        objects.append(folder / f"{source.stem}.o")
        run(cxx, "-x", "c", "-std=gnu17", "-O2", "-fPIC", "-fvisibility=hidden", "-fstack-protector-strong", "-fcf-protection", "-Wall", "-Wextra", "-Werror",
            "-c", source, "-o", objects[-1])
    ours.unlink(missing_ok=True)
    run("ar", "rcs", ours, *objects)
    loader = re.search(r"\S+/ld-linux\S+", beside(cxx, "libc.so").read_text())
    if loader is None:
        raise Refused(f"{beside(cxx, 'libc.so')} names no loader")
    moved = " ".join(str(folder / soname) for soname in MOVED)
    (folder / "libc.so").write_text(f"GROUP ( {folder}/libc.so.6 AS_NEEDED ( {moved} {loader[0]} ) {ours} {beside(cxx, 'libc_nonshared.a')} )\n")
    (folder / "libm.so").write_text(f"GROUP ( {folder}/libm.so.6 )\n")
    (folder / "libgcc_s.so").write_text(f"GROUP ( {folder}/libgcc_s.so.1 {beside(cxx, 'libgcc.a')} )\n")
    (folder / "libstdc++.so").write_text(f"GROUP ( {folder}/libstdc++.so.6 {ours} {beside(cxx, 'libstdc++.a')} )\n")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--cxx", default="c++")
    chosen = arguments.parse_args()
    try:
        make(chosen.folder.resolve(), chosen.cxx)
    except (Refused, OSError) as error:
        print(f"old_symbols: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
