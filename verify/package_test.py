#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""package_test.py BUILD_DIR EXPORTS_SO: installs a built tree into a folder of its own and builds engines on it as
others do: by CMake, by pkg-config with gcc and g++, by add_subdirectory; and runs them, the README's programs too.
EXPORTS_SO is all of libwide as a shared library: what it lets others see is what is documented.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENGINE = ROOT / "verify/engine"
BUILD, EXPORTS = sys.argv[1:3]
del sys.argv[1:3]
HEADER = "\n".join(path.read_text() for path in sorted((ROOT / "include/wide").glob("*.h")))


def run(*command, cwd=None, **environment):
    result = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True,
                            env={**os.environ, **environment})
    return result.returncode, result.stdout, result.stderr


class PackageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        cls.prefix = cls.path / "prefix"
        code, out, err = run("cmake", "--install", BUILD, "--prefix", cls.prefix, "--component", "wide")
        assert code == 0, out + err
        (cls.pkg_config,) = cls.prefix.rglob("pkgconfig") if cls.prefix.is_dir() else (None,)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def succeeds(self, *command, **options):
        code, out, err = run(*command, **options)
        self.assertEqual(code, 0, f"{command}\n{out[-3000:]}\n{err[-3000:]}")
        return out

    def configure(self, name, *arguments):
        """Exit code and all output; arguments are -D's."""
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        code, out, err = run("cmake", "-S", ENGINE, "-B", self.path / name, *generator, "-DCMAKE_BUILD_TYPE=Debug", *arguments)
        return code, out + err

    def check_engine(self, engine, *others):
        """Both kinds of engine by their command lines: same members, same first output."""
        self.assertIn("usage: engine", self.succeeds(engine, "-h"))
        for arguments, status, words in [(["--model", "resnet81"], 1, "did you mean"), (["--batch", "0"], 2, "expected a number"),
                                         (["--device", "tpu"], 2, "cuda"), (["--fast", "1"], 2, "no such option: --fast"),
                                         (["no-such-file"], 1, "no-such-file")]:
            code, _, err = run(engine, *arguments)
            self.assertEqual(code, status, err)
            self.assertIn(words, err)
        self.assertRegex(self.succeeds(engine, "--requests", "50", *others),
                         r"members, batch 1, .*\np50 [\d.]+ us, p99 [\d.]+ us, \d+ requests/s\nfirst output: ")

    def members(self, engine, model):
        return self.succeeds(engine, "--model", model, "--members", "3", "--write", self.path / model).split()

    def test_by_cmake(self):
        code, out = self.configure("cmake", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        self.assertEqual(code, 0, out)
        self.succeeds("cmake", "--build", self.path / "cmake")
        engines = [self.path / "cmake" / name for name in ("engine_c", "engine_cpp")]
        for model in ("mlp", "own"):
            files = self.members(engines[0], model)
            self.assertEqual(len(files), 3)
            outputs = set()
            for engine in engines:
                self.check_engine(engine, "--model", model)
                outputs.add(self.succeeds(engine, "--model", model, "--requests", "20", *files).splitlines()[-1])
            self.assertEqual(len(outputs), 1, outputs)
        code, _, err = run(engines[0], "--model", "own", *self.members(engines[0], "mlp"))
        self.assertEqual(code, 1)
        self.assertIn("member 0", err)

    def test_what_cmake_is_refused(self):
        prefix = f"-DCMAKE_PREFIX_PATH={self.prefix}"
        code, out = self.configure("refused", prefix, "-DWIDE_COMPONENTS=metal")
        self.assertNotEqual(code, 0)
        self.assertIn("this wide was built without metal", " ".join(out.split()))
        shutil.rmtree(self.path / "refused")
        (version,) = self.prefix.rglob("wide-config-version.cmake")
        (self.path / "ask.cmake").write_text(f"set(PACKAGE_FIND_VERSION 0.2)\nset(PACKAGE_FIND_VERSION_MAJOR 0)\n"
            f"set(PACKAGE_FIND_VERSION_MINOR 2)\ninclude({version})\nmessage(${{PACKAGE_VERSION}}:${{PACKAGE_VERSION_COMPATIBLE}})\n")
        self.assertEqual(run("cmake", "-P", self.path / "ask.cmake")[2].strip(), f"{self.version()}:FALSE")

    def version(self):
        return re.search(r"project\(wide VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]

    def compile_by_pkg_config(self, compiler, source, out):
        flags = self.succeeds("pkg-config", "--static", "--cflags", "--libs", "wide", PKG_CONFIG_PATH=str(self.pkg_config)).split()
        self.succeeds(*compiler, source, "-o", out, *flags, f"-Wl,-rpath,{self.pkg_config.parent}")

    @unittest.skipUnless(shutil.which("pkg-config") and shutil.which("gcc") and shutil.which("g++"), "needs pkg-config, gcc and g++")
    def test_by_pkg_config(self):
        self.assertEqual(self.succeeds("pkg-config", "--modversion", "wide", PKG_CONFIG_PATH=str(self.pkg_config)).strip(),
                         self.version())
        warnings = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
        self.compile_by_pkg_config(["gcc", "-std=c11", *warnings], ENGINE / "engine.c", self.path / "by_gcc")
        self.compile_by_pkg_config(["g++", "-std=c++20", *warnings], ENGINE / "engine.cpp", self.path / "by_gxx")
        for engine in ("by_gcc", "by_gxx"):
            self.check_engine(self.path / engine)

    @unittest.skipUnless(shutil.which("pkg-config") and shutil.which("gcc") and shutil.which("g++"), "needs pkg-config, gcc and g++")
    def test_the_programs_of_the_readme(self):
        readme = (ROOT / "README.md").read_text()
        in_c, in_cpp = (re.findall(rf"^```{language}\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE) for language in ("c", "cpp"))
        self.assertEqual((len(in_c), len(in_cpp)), (1, 1))
        outputs = []
        for name, compiler, text in [("readme.c", ["gcc", "-std=c11"], in_c[0]), ("readme.cpp", ["g++", "-std=c++20"], in_cpp[0])]:
            (self.path / name).write_text(text)
            program = self.path / name.replace(".", "_")
            self.compile_by_pkg_config([*compiler, "-Wall", "-Wextra", "-Werror"], self.path / name, program)
            outputs.append(self.succeeds(program))
        self.assertEqual(outputs[0], outputs[1])
        self.assertRegex(outputs[0], r"^member 0: -?\d\.\d+, member 1: -?\d\.\d+\n$")

    def test_by_add_subdirectory(self):
        """Configured without CUDA and without what only tests and benchmarks need, and one object built: all of
        libwide would take minutes."""
        without = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("Catch2", "CLI11", "fmt", "valijson", "dlpack")]
        code, out = self.configure("sub", f"-DWIDE_SOURCE_DIR={ROOT}", "-DWIDE_CUDA=OFF", *without)
        self.assertEqual(code, 0, out)
        if shutil.which("ninja"):
            planned = self.succeeds("ninja", "-C", self.path / "sub", "-t", "commands", "all")
            sources = re.findall(r" -c (\S+)", planned)
            self.assertIn(str(ENGINE / "engine.c"), sources)
            self.assertEqual([name for name in sources if re.search(r"/bench/|_(test|spec|reference)\.cpp$", name)], [])
            self.succeeds("ninja", "-C", self.path / "sub", "CMakeFiles/engine_c.dir/engine.c.o")
        code, out, err = run("cmake", "--install", self.path / "sub", "--prefix", self.path / "sub_prefix", "--component", "wide")
        self.assertFalse((self.path / "sub_prefix/include").exists(), "a subproject installs nothing of itself: " + out + err)

    def test_what_is_installed(self):
        files = {path.relative_to(self.prefix).as_posix() for path in self.prefix.rglob("*") if path.is_file()}
        self.assertIn("include/wide/wide.h", files)
        self.assertIn("include/wide/wide.hpp", files)
        self.assertNotIn("include/wide/catalog.hpp", files)
        self.assertTrue([name for name in files if name.endswith("licenses/wide/LICENSE")])
        for name in files:
            self.assertRegex(name, r"^include/wide/\w+\.hp?p?$|^lib[^/]*/(.*/)?(libwide\.(a|so[.\d]*)|pkgconfig/wide\.pc|cmake/wide/[\w-]+\.cmake)$"
                                   r"|^share/licenses/wide/LICENSE$")
        for path in self.prefix.rglob("*.cmake"):
            self.assertNotIn(str(ROOT), path.read_text(), path)

    @unittest.skipUnless(pathlib.Path(EXPORTS).is_file(), "this build has no shared library of everything")
    def test_what_a_shared_library_exports(self):
        listing = self.succeeds("nm", "-D", "--defined-only", EXPORTS)
        names = {line.split()[-1] for line in listing.splitlines() if line.split()[-2] != "A"}
        declared = set(re.findall(r"^WIDE_API [^;]*?(wide_\w+)\(", HEADER, re.MULTILINE))
        self.assertGreater(len(declared), 70)
        self.assertEqual({name for name in names if not name.startswith("_Z")}, declared)
        # _ZN4wide.., _ZNK4wide.., _ZTI of the exceptions and the allocator; no kernel, nothing of another library's.
        others = {name for name in names if name.startswith("_Z") and not re.match(r"_Z(T[ISV]|Z)?N?[KO]?4wide", name)}
        self.assertEqual(others, set())
        demangled = self.succeeds("nm", "-DC", "--defined-only", EXPORTS)
        self.assertNotIn("wide::kernels::", re.sub(r"\(.*", "", demangled))
        self.assertNotIn("wide::c_api::", demangled)
        for expected in ("wide::make_model_plan(", "wide::Model::run(", "wide::Context::cpu(", "typeinfo for wide::Error"):
            self.assertIn(expected, demangled)


if __name__ == "__main__":
    unittest.main()
