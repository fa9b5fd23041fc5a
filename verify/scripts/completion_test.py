# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""completion_test.py WBENCH: what shells offer after a TAB, asked of the shells themselves, and the manual page
as man(1) reads it. A shell that is not here is skipped, and named."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

WBENCH = ""


def output_of(*command, stdin=None):
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=True).stdout


def needs(tool):
    return unittest.skipUnless(shutil.which(tool), f"no {tool} here")


class Completion(unittest.TestCase):
    def bash(self, *words):
        """What bash's own completion machinery is left with behind these words."""
        quoted = " ".join(f"'{word}'" for word in ("wbench",) + words)
        script = output_of(WBENCH, "completion", "bash") + (
            f"\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _wbench; printf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
            "complete -p wbench >&2\n")
        return output_of("bash", "--norc", "-u", "-c", script).split()

    def fish(self, line):
        script = output_of(WBENCH, "completion", "fish") + f"\ncomplete -C '{line}'\n"
        return [found.split("\t")[0] for found in output_of("fish", "--no-config", "-c", script).splitlines()]

    @needs("bash")
    def test_bash_offers_commands_options_and_words(self):
        self.assertEqual(self.bash("sui"), ["suite"])
        self.assertIn("history", self.bash(""))
        self.assertEqual(self.bash("suite", "v"), ["validate"])
        self.assertEqual(self.bash("run", "--bas"), ["--baseline"])
        self.assertEqual(self.bash("--no-gpu", "run", "--op", "flash"), ["flash_attention"])
        self.assertEqual(self.bash("run", "--op", "linear,soft"), ["linear,softmax"])
        self.assertEqual(self.bash("run", "-p", "q"), ["quick"])
        self.assertEqual(self.bash("run", "--dtype", "bf"), ["bf16"])
        for option in ("--dtype", "--strategy", "--skip", "--baseline", "--regime"):
            self.assertEqual(self.bash("run", option, "al"), ["all"])
        self.assertEqual(self.bash("quantize", "--dtype", "al"), [])
        self.assertEqual(self.bash("compare", "--format", "j"), ["json", "junit"])
        self.assertIn("--threshold", self.bash("compare", "a", "b", "--"))
        self.assertEqual(self.bash("run", "--json", "x"), [])  # a file: bash's own turn

    @needs("zsh")
    def test_zsh_reads_its_script(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder, "_wbench")
            script.write_text(output_of(WBENCH, "completion", "zsh"))
            output_of("zsh", "-f", "-n", str(script))
            found = output_of("zsh", "-f", "-c", f"fpath=({folder} $fpath); autoload -U compinit; "
                                                 f"compinit -u -d {folder}/dump; print $_comps[wbench]")
            self.assertEqual(found.strip(), "_wbench")

    @needs("fish")
    def test_fish_offers_commands_options_and_words(self):
        self.assertEqual(self.fish("wbench sui"), ["suite"])
        self.assertEqual(self.fish("wbench run --bas"), ["--baseline"])
        self.assertEqual(self.fish("wbench run --preset q"), ["quick"])
        self.assertEqual(self.fish("wbench compare --format j"), ["json", "junit"])

    def test_an_unknown_shell_is_a_usage_error(self):
        result = subprocess.run([WBENCH, "completion", "bsh"], capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 2)
        self.assertIn("did you mean bash", result.stderr)


class Explain(unittest.TestCase):
    def test_the_command_of_a_row_runs_that_row_alone(self):
        short = "--warmup-time 0 --rounds 3 --min-samples 3 --max-samples 6".split()
        shown = subprocess.run([WBENCH, "run", "--op", "linear", "--n", "2", "--d", "8", "-d", "cpu", "--explain", *short],
                               capture_output=True, text=True, timeout=60, check=True).stdout
        commands = " ".join(shown.split()).split("wbench run")[1:]  # long lines are broken
        wide = next(c for c in commands if "--strategy wide" in c).partition("--strategy wide --regime cpu")
        self.assertTrue(any("--baseline loop --regime cpu" in c for c in commands))
        again = output_of(WBENCH, "run", *(wide[0] + wide[1]).split(), "--export", "csv=-")
        rows = [line.split(",") for line in again.splitlines()[1:]]
        self.assertEqual(sorted(row[3] for row in rows), ["loop", "wide"])


class Manual(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.page = output_of(WBENCH, "man")

    def test_every_command_has_its_section(self):
        for line in output_of(WBENCH, "completion", "fish").splitlines():
            if "__fish_use_subcommand" in line:
                command = line.split(" -a ")[1].split()[0]
                self.assertIn(f".SS wbench {command}\n", self.page)

    @needs("groff")
    def test_groff_has_nothing_to_complain_about(self):
        result = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=self.page, capture_output=True, text=True, timeout=60)
        self.assertEqual(result.stderr, "")

    @needs("groff")
    def test_what_is_shown_is_what_help_says(self):
        shown = " ".join(output_of("groff", "-man", "-Tascii", "-P-cbou", stdin=self.page).split())
        for words in ("--threshold", "0 success", "wbench suite", "(default: quick)"):
            self.assertIn(words, shown)


if __name__ == "__main__":
    WBENCH = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
