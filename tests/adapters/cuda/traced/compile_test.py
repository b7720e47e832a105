#!/usr/bin/env python3
"""Does the wrapper's header compile by itself, without CUDA's toolkit and after each of its headers, by GCC and clang?

usage: compile_test.py. The environment has the folder of ringmain's headers (RINGMAIN_HEADERS) and those of NVIDIA's
(RINGMAIN_CUDA_HEADERS, by version).
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")
COMPILERS = [found[0] for names in (("g++",), ("clang++", "clang++-14")) if (found := [name for name in names if shutil.which(name)])]
PER_THREAD = "#define CUDA_API_PER_THREAD_DEFAULT_STREAM\n"
TRACED = "#include <ringmain/adapters/sources/cuda/traced.hpp>\n"
USE = """
namespace traced = ringmain::cuda::traced;
int main() {
  float* memory = nullptr;
  traced::cudaStream_t stream = nullptr;
  if (traced::cudaMalloc(&memory, sizeof *memory) != traced::cudaSuccess) return 1;
  if (traced::cudaMallocAsync(&memory, sizeof *memory, stream) == traced::cudaErrorMemoryAllocation) return 1;
  void* plain = nullptr;
  traced::cudaMemPool_t pool = nullptr;
  traced::cudaEvent_t event = nullptr;
  if (traced::cudaMallocAsync(&memory, sizeof *memory, pool, stream) != traced::cudaSuccess) return 1;
  if (traced::cudaMallocAsync(&plain, 8, pool, stream) != traced::cudaSuccess) return 1;
  if (traced::cudaMallocFromPoolAsync(&memory, sizeof *memory, pool, stream) != traced::cudaSuccess) return 1;
  if (traced::cudaMallocHost(&memory, sizeof *memory, 1) != traced::cudaSuccess) return 1;
  if (traced::cudaEventCreate(&event, 2) != traced::cudaSuccess) return 1;
  return traced::cudaStreamSynchronize(stream);
}
"""


class CompileTest(unittest.TestCase):
    def compile(self, text, *options, compiler):
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "user.cpp"
            source.write_text(text)
            return subprocess.run((compiler, "-std=c++20", *WARNINGS, "-fsyntax-only", "-I", os.environ["RINGMAIN_HEADERS"], *options,
                                   source), capture_output=True, text=True, check=False)

    def compiles(self, text, *options):
        self.assertTrue(COMPILERS)
        for compiler in COMPILERS:
            with self.subTest(compiler=compiler, options=options):
                done = self.compile(text, *options, compiler=compiler)
                self.assertEqual(done.returncode, 0, done.stderr)

    def toolkits(self):
        root = Path(os.environ.get("RINGMAIN_CUDA_HEADERS", "/nowhere"))
        found = sorted(root.glob("*/include/cuda_runtime_api.h"))
        if not found:
            self.skipTest("no headers of NVIDIA's; ./dev test fetches them")
        return [file.parent for file in found]

    def test_without_a_toolkit(self):
        for flavour in ("", PER_THREAD):
            self.compiles(flavour + TRACED + USE)

    def test_after_each_toolkits_headers(self):
        """A signature that is not CUDA's does not compile: each function's address is taken."""
        for include in self.toolkits():
            for header, flavour in (("cuda_runtime_api.h", ""), ("cuda_runtime.h", PER_THREAD)):
                self.compiles(f"{flavour}#include <{header}>\n{TRACED}{USE}", "-isystem", include)

    def test_a_wrong_signature_is_found(self):
        header = (Path(os.environ["RINGMAIN_HEADERS"]) / "ringmain/adapters/sources/cuda/traced.hpp").read_text()
        right = "cudaError_t cudaStreamDestroy(cudaStream_t stream)"
        self.assertEqual(header.count(right), 1)
        folder = "ringmain/adapters/sources/cuda/"
        wrong = header.replace(right, "cudaError_t cudaStreamDestroy(cudaEvent_t stream)").replace("Wrapped<201, cudaStream_t>", "Wrapped<201, cudaEvent_t>")
        wrong = wrong.replace('"../../../', '"ringmain/').replace('"traced_', f'"{folder}traced_')
        for include in self.toolkits():
            done = self.compile(f"#include <cuda_runtime_api.h>\n{wrong}", "-isystem", include, compiler=COMPILERS[0])
            self.assertIn("cudaStreamDestroy", done.stderr)


if __name__ == "__main__":
    unittest.main()
