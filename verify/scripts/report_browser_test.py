#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""report_browser_test.py WBENCH: pages of `wbench report` in headless Chromium: charts are drawn without an error or a
request, answer to keys, are told to screen readers, keep to dark and to paper, and stay quick with many samples.

Skipped where there is no Chromium (scripts/setup.sh --browser installs one); what needs the page's script, where the
build has none.
"""
import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import browser  # noqa: E402

WBENCH = sys.argv.pop() if len(sys.argv) > 1 else str(ROOT / "build/release/bench/wbench")
CHROMIUM = browser.find_browser()
HOSTILE = "</script ><script>window.hurt = 1</script><img src=x onerror='window.hurt = 1'>\" onload=\"window.hurt = 1\u2028"
RUN = ("run --op linear --n 2,4,8 --batch 2 --d 8,16 --device cpu -q --warmup-time 0 --rounds 3 --min-samples 3 "
       "--max-samples 6 --json").split()


def wbench(*arguments):
    subprocess.run([WBENCH, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def has_script():
    info = subprocess.run([WBENCH, "info", "--no-gpu", "--json", "-"], check=True, capture_output=True, text=True)
    return json.loads(info.stdout)["reports"]["interactive"]


@unittest.skipIf(CHROMIUM is None, "no chromium here: scripts/setup.sh --browser installs it")
class ReportBrowserTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.result = pathlib.Path(cls.folder.name) / "result.json"
        wbench(*RUN, cls.result)
        cls.document = json.loads(cls.result.read_text())
        cls.page = cls.enterClassContext(browser.Page(CHROMIUM, timeout_s=30))
        cls.is_interactive = has_script()

    def show(self, document, *arguments):
        """Opens the report of a document; seconds until its charts in sight are drawn."""
        file = self.result.with_name("shown.json")
        file.write_text(json.dumps(document))
        html = file.with_suffix(".html")
        wbench("report", file, "--html", html, *arguments)
        self.page.errors.clear()
        self.page.requests.clear()
        seconds = self.page.open(html)
        if self.is_interactive:
            self.page.wait_for("document.querySelectorAll('figure[data-drawn]').length > 0")
        return seconds

    def is_untroubled(self):
        self.assertEqual(self.page.errors, [])
        others = [url for url in self.page.requests if not url.startswith("file:") or not url.endswith(".html")]
        self.assertEqual(others, [])

    def draw_all(self):
        self.page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true })")
        self.page.evaluate("(async () => { for (const f of document.querySelectorAll('figure')) { f.scrollIntoView();"
                           " await new Promise((done) => setTimeout(done, 40)); } })()")
        if self.is_interactive:
            self.page.wait_for("[...document.querySelectorAll('figure')].every((f) => f.dataset.drawn)")

    def test_all_charts_are_drawn(self):
        self.show(self.document, "--compare", self.result)
        self.draw_all()
        self.is_untroubled()
        # Speedup and time of two sizes, samples of six cases, roofline, comparison.
        self.assertEqual(self.page.evaluate("document.querySelectorAll('figure').length"), 12)
        empty = "[...document.querySelectorAll('figure .plot')].filter((p) => !p.querySelector('svg path, svg use')).length"
        self.assertEqual(self.page.evaluate(empty), 0)
        self.assertEqual(self.page.evaluate("document.querySelectorAll('.heatmap .heat').length"), 12)
        self.assertNotIn("NaN", self.page.evaluate("document.body.innerHTML.replace(/<script.*/s, '')"))

    def test_trends_have_bands_of_noise(self):
        files = []
        for run, factor in enumerate((1.0, 1.02, 0.99, 1.01, 3.0)):
            document = copy.deepcopy(self.document)
            document["run"]["id"] = f"run-{run}"
            document["run"]["started"] = f"2026-01-01T00:00:0{run}Z"
            for case in document["cases"]:
                for runner in case["strategies"] + case["baselines"]:
                    runner["measurements"][0]["stats"]["median_ns"] *= factor
            files.append(self.result.with_name(f"run-{run}.json"))
            files[-1].write_text(json.dumps(document))
        store = self.result.with_name("store")
        wbench("history", "add", *files, "--store", store)
        self.show(self.document, "--history", "--store", store)
        self.draw_all()
        self.is_untroubled()
        trends = "[...document.querySelectorAll('figure')].filter((f) => f.textContent.includes('medians over runs'))"
        self.assertEqual(self.page.evaluate(trends + ".length"), 6)
        band = "[aria-label=area] path" if self.is_interactive else "path.band"
        self.assertEqual(self.page.evaluate(trends + f".filter((f) => !f.querySelector('{band}')).length"), 0)
        self.assertIn("beyond the noise floor of", self.page.evaluate("document.documentElement.outerHTML"))
        self.assertIn("History trends", self.page.evaluate("[...document.querySelectorAll('h2')].at(-1).textContent"))

    def test_hostile_strings_are_only_text(self):
        document = copy.deepcopy(self.document)
        document["host"]["hostname"] = document["run"]["id"] = document["devices"][0]["name"] = HOSTILE
        for case in document["cases"]:
            case["reproduce"] = HOSTILE
            for runner in case["strategies"] + case["baselines"]:
                runner["name"] += HOSTILE
        for summary in document["op_summaries"]:
            summary["best_case"] = HOSTILE
        self.show(document)
        self.draw_all()
        self.is_untroubled()
        self.assertIsNone(self.page.evaluate("window.hurt ?? null"))
        self.assertEqual(self.page.evaluate("document.querySelectorAll('img').length"), 0)
        self.assertIn("window.hurt = 1", self.page.evaluate("document.querySelector('h2').textContent"))

    def test_a_script_that_gets_in_does_not_run(self):
        page = self.result.with_name("shown.html")
        self.show(self.document)
        page.write_text(page.read_text().replace("<main", "<script>window.hurt = 1</script><main", 1))
        self.page.open(page)
        self.assertIsNone(self.page.evaluate("window.hurt ?? null"))
        self.assertTrue(any("Content Security Policy" in error for error in self.page.errors), self.page.errors)

    def test_keys_read_the_points(self):
        if not self.is_interactive:
            self.skipTest("this build has no script for reports")
        self.show(self.document)
        self.page.evaluate("document.querySelector('figure .plot').focus()")
        said = "document.querySelector('figure .readout').textContent"
        self.page.press("ArrowRight")
        first = self.page.evaluate(said)
        self.assertRegex(first, r"^sequential, N, members 2: \d\S*x, 95 % interval \S+x to \S+x$")
        self.page.press("ArrowRight")
        self.assertIn("members 4:", self.page.evaluate(said))
        self.page.press("ArrowDown")
        self.assertTrue(self.page.evaluate(said).startswith("wide, "))
        self.assertEqual(self.page.evaluate("document.querySelectorAll('.ring').length"), 1)
        self.is_untroubled()

    def names_by_role(self):
        """Of all that screen readers are told of."""
        roles = {}
        for node in self.page.call("Accessibility.getFullAXTree")["nodes"]:
            if not node.get("ignored"):
                roles.setdefault(node["role"]["value"], []).append(node.get("name", {}).get("value", ""))
        return roles

    def test_every_control_has_a_name(self):
        self.show(self.document)
        roles = self.names_by_role()
        deadline = time.monotonic() + 20
        while len(roles.get("rowheader", [])) <= 10 and time.monotonic() < deadline:  # the tree grows behind the page
            time.sleep(0.1)
            roles = self.names_by_role()
        charts = roles.get("application", []) if self.is_interactive else roles.get("image", []) + roles.get("img", [])
        self.assertGreaterEqual(len(charts), 2, sorted(roles))
        for role in ("application", "img", "image", "region", "link", "table", "navigation"):
            self.assertNotIn("", roles.get(role, []), role)
        self.assertGreater(len(roles.get("rowheader", [])), 10)
        self.assertGreater(len(roles.get("columnheader", [])), 10)

    def test_dark_pages_are_dark_and_paper_is_white(self):
        self.show(self.document)
        color = "getComputedStyle(document.body).backgroundColor"
        for media, theme, expected in (("", "light", "rgb(255, 255, 255)"), ("", "dark", "rgb(15, 19, 24)"),
                                       ("print", "dark", "rgb(255, 255, 255)")):
            features = [{"name": "prefers-color-scheme", "value": theme}]
            self.page.call("Emulation.setEmulatedMedia", media=media, features=features)
            self.assertEqual(self.page.evaluate(color), expected)
        self.page.call("Emulation.setEmulatedMedia", media="", features=[])
        self.assertGreater(len(self.page.call("Page.printToPDF")["data"]), 10000)
        self.is_untroubled()

    def test_a_hundred_thousand_samples(self):
        document = copy.deepcopy(self.document)
        document["cases"] = document["cases"][:1]
        runners = document["cases"][0]["strategies"] + document["cases"][0]["baselines"]
        for place, runner in enumerate(runners):
            times = [1000.0 + place * 50 + (i * 7919 % 1000) / 10 for i in range(100_000 // len(runners) + 1)]
            runner["measurements"][0]["samples"] = {"time_ns": times, "round": [i // 100 for i in range(len(times))]}
        self.assertLess(self.show(document), 5)
        self.page.evaluate("document.querySelector('details').open = true")
        drawn = ("(async () => { const f = document.querySelector('details figure'); const start = performance.now();"
                 " f.scrollIntoView(); while (!f.dataset.drawn) await new Promise((done) => setTimeout(done));"
                 " return performance.now() - start; })()")
        if self.is_interactive:
            self.assertLess(self.page.evaluate(drawn), 2000)
        self.assertLess(self.page.evaluate("document.querySelectorAll('*').length"), 3000)
        self.is_untroubled()


if __name__ == "__main__":
    unittest.main()
