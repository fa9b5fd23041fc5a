#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""package_test.py BUILD_DIR EXPORTS_SO ONNX_EXPORTS_SO ONNX_FILES: installs a built tree into a folder of its own and
builds engines on it as others do: by CMake, by pkg-config with gcc and g++, by add_subdirectory; and runs them, on
ONNX_FILES, too, a folder that verify/import/onnx_files.cpp filled; and the README's programs. The two libraries are all of
libwide and of libwide_onnx as shared ones: what they let others see is what is documented.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENGINE = ROOT / "verify/engine"
BUILD, EXPORTS, ONNX_EXPORTS, ONNX_FILES = sys.argv[1:5]
del sys.argv[1:5]


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

    def check_refusals(self, engine):
        self.assertIn("usage: engine", self.succeeds(engine, "-h"))
        for arguments, status, words in [(["--model", "resnet81"], 1, "did you mean"), (["--batch", "0"], 2, "expected a number"),
                                         (["--device", "tpu"], 2, "cuda"), (["--fast", "1"], 2, "no such option: --fast"),
                                         (["no-such-file"], 1, "no-such-file"), (["--extent", "s"], 2, "NAME=NUMBER"),
                                         (["no-such-file.onnx"], 1, "no-such-file.onnx"), ([self.onnx("garbage")], 1, "garbage.onnx"),
                                         ([self.onnx("member0"), self.onnx("tanh")], 1, "node \"node_a\" is pointwise"),
                                         ([self.onnx("symbolic")], 1, "has extent \"s\"")]:
            code, _, err = run(engine, *arguments)
            self.assertEqual(code, status, err)
            self.assertIn(words, err)

    def check_engine(self, engine, *others):
        """Both kinds of engine by their command lines: same members, same first output."""
        served = r"(\d+) members, batch 1, .*\np50 [\d.]+ us, p99 [\d.]+ us, \d+ requests/s\n(first output: \S+)\n$"
        self.assertRegex(self.succeeds(engine, "--requests", "50", *others), served)
        self.assertRegex(self.succeeds(engine, "--extent", "s=7", self.onnx("symbolic")), served)  # three inputs, two outputs
        onnx = re.match(served, self.succeeds(engine, *(self.onnx(f"member{i}") for i in range(3))))
        self.assertEqual(onnx[1], "3")
        mean = re.match(served, self.succeeds(engine, "--ensemble", "mean", *(self.onnx(f"member{i}") for i in range(3))))
        self.assertNotEqual(mean[2], onnx[2])
        return onnx[2], mean[2]

    def onnx(self, name):
        return f"{ONNX_FILES}/{name}.onnx"

    def members(self, engine, model):
        return self.succeeds(engine, "--model", model, "--members", "3", "--write", self.path / model).split()

    def test_by_cmake(self):
        code, out = self.configure("cmake", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        self.assertEqual(code, 0, out)
        self.succeeds("cmake", "--build", self.path / "cmake")
        engines = [self.path / "cmake" / name for name in ("engine_c", "engine_cpp")]
        for engine in engines:
            self.check_refusals(engine)
        for model in ("mlp", "own"):
            files = self.members(engines[0], model)
            self.assertEqual(len(files), 3)
            self.assertEqual(len({self.check_engine(engine, "--model", model) for engine in engines}), 1)
            outputs = set()
            for engine in engines:
                outputs.add(self.succeeds(engine, "--model", model, "--requests", "20", *files).splitlines()[-1])
            self.assertEqual(len(outputs), 1, outputs)
        code, _, err = run(engines[0], "--model", "own", *self.members(engines[0], "mlp"))
        self.assertEqual(code, 1)
        self.assertIn("member 0", err)

        self.check_experts(self.path / "cmake/experts")

    def check_experts(self, program):
        """A layer of experts: right, and other scores give other results."""
        out = self.succeeds(program)
        self.assertRegex(out, r"(?s)^8 experts, 2 for each token.*: top_k by .*: routing by .*: routed_linear by .*: ensemble by ")
        self.assertLess(float(re.search(r"one by one by (\S+) at most", out)[1]), 1e-5)
        self.assertEqual(len(set(re.findall(r"^step \d: y\[0\] is (\S+)$", out, re.MULTILINE))), 3, out)

    def test_by_cmake_without_cpp(self):
        folder = self.path / "c"
        folder.mkdir()
        (folder / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(c LANGUAGES C)\n"
            f"find_package(wide CONFIG REQUIRED COMPONENTS onnx)\nadd_executable(engine {ENGINE}/engine.c)\n"
            "target_link_libraries(engine PRIVATE wide::onnx)\n")
        self.succeeds("cmake", "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        self.succeeds("cmake", "--build", folder / "build")
        self.assertIn("usage: engine", self.succeeds(folder / "build/engine", "-h"))

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

    def compile_by_pkg_config(self, package, compiler, source, out):
        flags = self.succeeds("pkg-config", "--static", "--cflags", "--libs", package, PKG_CONFIG_PATH=str(self.pkg_config)).split()
        self.succeeds(*compiler, source, "-o", out, *flags, f"-Wl,-rpath,{self.pkg_config.parent}")

    @unittest.skipUnless(shutil.which("pkg-config") and shutil.which("gcc") and shutil.which("g++"), "needs pkg-config, gcc and g++")
    def test_by_pkg_config(self):
        for package in ("wide", "wide_onnx"):
            self.assertEqual(self.succeeds("pkg-config", "--modversion", package, PKG_CONFIG_PATH=str(self.pkg_config)).strip(),
                             self.version())
        warnings = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
        self.compile_by_pkg_config("wide_onnx", ["gcc", "-std=c11", *warnings], ENGINE / "engine.c", self.path / "by_gcc")
        self.compile_by_pkg_config("wide_onnx", ["g++", "-std=c++20", *warnings], ENGINE / "engine.cpp", self.path / "by_gxx")
        for engine in ("by_gcc", "by_gxx"):
            self.check_refusals(self.path / engine)
        self.assertEqual(len({self.check_engine(self.path / engine) for engine in ("by_gcc", "by_gxx")}), 1)

    @unittest.skipUnless(shutil.which("pkg-config") and shutil.which("gcc") and shutil.which("g++"), "needs pkg-config, gcc and g++")
    def test_the_programs_of_the_readme(self):
        readme = (ROOT / "README.md").read_text()
        in_c, in_cpp = (re.findall(rf"^```{language}\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE) for language in ("c", "cpp"))
        self.assertEqual((len(in_c), len(in_cpp)), (1, 1))
        outputs = []
        for name, compiler, text in [("readme.c", ["gcc", "-std=c11"], in_c[0]), ("readme.cpp", ["g++", "-std=c++20"], in_cpp[0])]:
            (self.path / name).write_text(text)
            program = self.path / name.replace(".", "_")
            self.compile_by_pkg_config("wide", [*compiler, "-Wall", "-Wextra", "-Werror"], self.path / name, program)
            outputs.append(self.succeeds(program))
        self.assertEqual(outputs[0], outputs[1])
        self.assertRegex(outputs[0], r"^member 0: -?\d\.\d+, member 1: -?\d\.\d+\n$")

    def test_by_add_subdirectory(self):
        """Configured without CUDA, without what only tests and benchmarks need and with the engine's own targets of what
        libwide needs, and one object built: all of libwide would take minutes."""
        own = self.path / "own.cmake"
        own.write_text("".join(f"add_library({name} INTERFACE IMPORTED GLOBAL)\n" for name in ("nlohmann_json::nlohmann_json", "ZLIB::ZLIB")))
        without = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON"
                   for name in ("Catch2", "CLI11", "fmt", "valijson", "dlpack", "nlohmann_json", "ZLIB")]
        without.append(f"-DCMAKE_PROJECT_TOP_LEVEL_INCLUDES={own}")
        code, out = self.configure("sub", f"-DWIDE_SOURCE_DIR={ROOT}", "-DWIDE_CUDA=OFF", "-DCMAKE_BUILD_TYPE=",
                                   "-DCMAKE_CXX_FLAGS=-ffast-math", *without)
        self.assertEqual(code, 0, out)
        self.assertIn("wide: no CMAKE_BUILD_TYPE: wide alone is compiled by -O3", out)
        if shutil.which("ninja"):
            planned = self.succeeds("ninja", "-C", self.path / "sub", "-t", "commands", "all")
            sources = re.findall(r" -c (\S+)", planned)
            self.assertIn(str(ENGINE / "engine.c"), sources)
            self.assertRegex(planned, r"-o engine_c .*libwide_onnx\.a .*libwide\.a")
            optimised = re.findall(r" -O3 .* -c (\S+)", planned)
            self.assertIn(f"{ROOT}/host/linear/linear_cpu.cpp", optimised)
            self.assertNotIn(str(ENGINE / "engine.c"), optimised)
            exact = re.findall(r" -ffast-math .* -fno-fast-math .* -c (\S+)", planned)  # whatever the engine is compiled by
            self.assertEqual([name for name in sources if name.startswith(f"{ROOT}/host/") and name not in exact], [])
            self.assertIn(f"{ROOT}/host/linear/linear_cpu.cpp", exact)
            self.assertEqual([name for name in sources if re.search(r"/bench/|_(test|spec|reference)\.cpp$", name)], [])
            self.succeeds("ninja", "-C", self.path / "sub", "CMakeFiles/engine_c.dir/engine.c.o")
        code, out, err = run("cmake", "--install", self.path / "sub", "--prefix", self.path / "sub_prefix", "--component", "wide")
        self.assertFalse((self.path / "sub_prefix/include").exists(), "a subproject installs nothing of itself: " + out + err)

    @unittest.skipUnless(shutil.which("nm"), "needs nm")
    def test_conversions_have_names_of_their_own(self):
        """An engine's are compiled by its flags: a linker may not take them for the library's."""
        for library in self.prefix.rglob("libwide.a"):
            names = re.findall(r" W (wide::\S*(?:decode_row|encode_row|store_element|load_element))\(", self.succeeds("nm", "-C", library))
            self.assertTrue(names)
            self.assertEqual([name for name in names if not name.startswith("wide::library::")], [])

    def test_what_is_installed(self):
        files = {path.relative_to(self.prefix).as_posix() for path in self.prefix.rglob("*") if path.is_file()}
        for header in ("wide.h", "wide_runtime.h", "wide_builder.h", "wide_onnx.h", "wide.hpp", "onnx.hpp"):
            self.assertIn(f"include/wide/{header}", files)
        self.assertIn("include/wide/README.md", files)  # the layouts, which headers refer to
        self.assertNotIn("include/wide/catalog.hpp", files)
        headers = {name for name in files if name.endswith(".hpp")} - {f"include/wide/{name}.hpp" for name in ("wide", "onnx", "dlpack")}
        gathered = re.findall(r'^#include "(wide/\w+\.hpp)"$', (self.prefix / "include/wide/wide.hpp").read_text(), re.MULTILINE)
        self.assertEqual({f"include/{name}" for name in gathered}, headers)
        self.assertTrue([name for name in files if name.endswith("licenses/wide/LICENSE")])
        for name in files:
            self.assertRegex(name, r"^include/wide/(\w+\.hp?p?|README\.md)$|^lib[^/]*/(.*/)?(libwide(_onnx)?\.(a|so[.\d]*)|pkgconfig/wide(_onnx)?\.pc|cmake/wide/[\w-]+\.cmake)$"
                                   r"|^share/licenses/wide/LICENSE$")
        for path in self.prefix.rglob("*.cmake"):
            self.assertNotIn(str(ROOT), path.read_text(), path)

    def configure_wide(self, name, *arguments):
        """The folder of generated package files of a library that is configured, and never built."""
        without = [f"-DWIDE_{part}=OFF" for part in ("CUDA", "BENCH", "TESTS", "ONNX")]
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        self.succeeds("cmake", "-S", ROOT, "-B", self.path / name, *generator, *without, *arguments)
        return self.path / name

    def test_folders_of_the_installers_own(self):
        plain = (self.pkg_config / "wide.pc").read_text()
        self.assertIn("prefix=${pcfiledir}/..", plain)
        built = self.configure_wide("folders", "-DCMAKE_INSTALL_PREFIX=/opt/wide", "-DCMAKE_INSTALL_INCLUDEDIR=inc",
                                    "-DCMAKE_INSTALL_LIBDIR=/opt/libraries")
        package = (built / "package/wide.pc").read_text()
        for line in ("prefix=/opt/wide", "libdir=/opt/libraries", "includedir=${prefix}/inc"):
            self.assertIn(line + "\n", package)
        (targets,) = (built / "CMakeFiles/Export").rglob("wide-targets.cmake")
        self.assertRegex(targets.read_text(), r'INTERFACE_INCLUDE_DIRECTORIES "(/opt/wide|\$\{_IMPORT_PREFIX\})/inc"')

    @unittest.skipUnless(shutil.which("ninja"), "needs ninja")
    def test_a_shared_library_exports_what_its_map_says_under_any_preset(self):
        built = self.configure_wide("hidden", "-DBUILD_SHARED_LIBS=ON", "-DCMAKE_CXX_VISIBILITY_PRESET=hidden",
                                    "-DCMAKE_VISIBILITY_INLINES_HIDDEN=ON")
        self.assertNotIn("-fvisibility", self.succeeds("ninja", "-C", built, "-t", "commands", "wide").replace("-fvisibility=default", ""))

    def check_exports(self, library, of_c, of_cpp):
        """What begins otherwise than these and all that nm tells, demangled."""
        listing = self.succeeds("nm", "-D", "--defined-only", library)
        names = {line.split()[-1] for line in listing.splitlines() if line.split()[-2] != "A"}
        self.assertEqual({name for name in names if not name.startswith("_Z")}, of_c)
        self.assertEqual({name for name in names if name.startswith("_Z") and not re.match(of_cpp, name)}, set())
        return self.succeeds("nm", "-DC", "--defined-only", library)

    @unittest.skipUnless(pathlib.Path(EXPORTS).is_file(), "this build has no shared library of everything")
    def test_what_shared_libraries_export(self):
        headers = "\n".join(path.read_text() for path in sorted((ROOT / "include/wide").glob("*.h")))
        declared = set(re.findall(r"^WIDE_API [^;]*?(wide_\w+)\(", headers, re.MULTILINE))
        self.assertGreater(len(declared), 90)
        of_onnx = {name for name in declared if name.startswith("wide_onnx_")}
        # _ZN4wide.., _ZNK4wide.., _ZTI of the exceptions and the allocator; no kernel, nothing of another library's.
        demangled = self.check_exports(EXPORTS, declared - of_onnx, r"_Z(T[ISV]|Z)?N?[KO]?4wide")
        self.assertNotIn("wide::kernels::", re.sub(r"\(.*", "", demangled))
        self.assertEqual(re.findall(r"wide::c_api::.*", demangled), ["wide::c_api::failed(char const*)"])
        for expected in ("wide::make_model_plan(", "wide::Model::run(", "wide::Context::cpu(", "typeinfo for wide::Error"):
            self.assertIn(expected, demangled)
        demangled = self.check_exports(ONNX_EXPORTS, of_onnx, r"_ZNK?4wide9OnnxModel(?!5State)")
        for expected in ("wide::OnnxModel::open(", "wide::OnnxModel::parse(", "wide::OnnxModel::graph("):
            self.assertIn(expected, demangled)


if __name__ == "__main__":
    unittest.main()
