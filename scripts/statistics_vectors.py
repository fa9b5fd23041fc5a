#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""statistics_vectors.py >verify/statistics/statistics_vectors.txt: reference values by others for the data that statistics are tested with.

The data themselves are not written: a data set is "kind n seed", made by the same generator here and
in verify/statistics/statistics_vectors_test.cpp. Expected values come from SciPy and, for Shapiro-Wilk, whose
port in SciPy 1.10 is in single precision, from R; p of Anderson-Darling from statsmodels; exact p of
tied ranks by enumerating all assignments. "-" stands for undefined values, or those without a reference.
Needs python3-scipy, python3-statsmodels and r-base-core.
"""
import itertools
import math
import subprocess

import numpy as np
import scipy
import scipy.stats as stats
import statsmodels
from statsmodels.stats.diagnostic import normal_ad

MASK = (1 << 64) - 1
EXACT = 50  # largest number of values for which p of ranks is exact


class Uniform:
    """splitmix64 (Steele, Lea, Flood 2014): the same numbers in [0, 1) everywhere."""

    def __init__(self, seed):
        self.state = seed

    def __call__(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return ((z ^ (z >> 31)) >> 11) * 2.0**-53


def normal(uniform):
    total = 0.0
    for _ in range(12):
        total += uniform()
    return total - 6.0


def skewed(uniform):
    u = uniform()
    return u * u * u


def heavy(uniform):
    u = uniform()
    return u / (1.001 - u)


KINDS = {
    "uniform": lambda uniform: uniform(),
    "normal": normal,
    "skewed": skewed,
    "heavy": heavy,
    "ties": lambda uniform: math.floor(uniform() * 6.0),
    "constant": lambda uniform: 7.25,
    "time": lambda uniform: 1000.0 + 30.0 * normal(uniform),
    "late": lambda uniform: 1020.0 + 45.0 * normal(uniform),
}
ONE_SIZES = [2, 3, 4, 5, 6, 7, 8, 11, 12, 25, 100, 1000, 5000]
TWO_KINDS = [("time", "late"), ("uniform", "skewed"), ("ties", "ties"), ("heavy", "uniform"), ("normal", "normal"),
             ("constant", "time"), ("constant", "constant"), ("normal", "ties")]
TWO_SIZES = [(1, 5), (2, 2), (3, 3), (3, 5), (5, 5), (6, 6), (8, 4), (10, 10), (12, 12), (20, 30), (25, 25), (26, 25),
             (60, 60), (200, 150), (1000, 1000)]


def make(kind, n, seed):
    uniform = Uniform(seed)
    return np.array([float(KINDS[kind](uniform)) for _ in range(n)])


def run_r(program, lines=""):
    return subprocess.run(["Rscript", "-e", program], input=lines, capture_output=True, text=True, check=True).stdout


def student_by_r():
    """The 97.5 % quantiles of t for ONE_SIZES; those of SciPy 1.10 are good to nine digits only."""
    dofs = ", ".join(str(n - 1) for n in ONE_SIZES)
    return dict(zip(ONE_SIZES, map(float, run_r(f'cat(sprintf("%.17g", qt(0.975, c({dofs}))))').split())))


def shapiro_by_r(samples):
    """[(W, p)] or None, by one call of R for all."""
    lines = "\n".join(" ".join(repr(float(v)) for v in x) for x in samples)
    program = ('for (line in readLines(file("stdin"))) { x <- as.numeric(strsplit(line, " ")[[1]]);'
               ' t <- try(shapiro.test(x), silent = TRUE);'
               ' cat(if (inherits(t, "try-error")) "-" else sprintf("%.17g %.17g", t$statistic, t$p.value), "\\n") }')
    out = run_r(program, lines).strip().split("\n")
    return [None if line.strip() == "-" else tuple(map(float, line.split())) for line in out]


def one_sample(x, quantile, shapiro):
    n = len(x)
    half = quantile * np.std(x, ddof=1) / math.sqrt(n)
    mean = math.fsum(x) / n
    anderson = None
    if n >= 8 and np.ptp(x) > 0:
        statistic, p = stats.anderson(x).statistic, normal_ad(x)[1]
        anderson = (statistic * (1 + 0.75 / n + 2.25 / n**2), p if math.isfinite(p) else None)
    return [mean, np.std(x, ddof=1), mean - half, mean + half, *(shapiro or [None] * 2), *(anderson or [None] * 2)]


def tails(sums, observed):
    """Twice the smaller share of sums at least, or at most, as large as the one observed."""
    sums = np.asarray(sums)
    return min(1, 2 * min(np.mean(sums <= observed + 1e-9), np.mean(sums >= observed - 1e-9)))


def mann_whitney(a, b):
    u = stats.mannwhitneyu(a, b, method="asymptotic").statistic
    both = np.concatenate([a, b])
    if len(both) > EXACT:
        return u, stats.mannwhitneyu(a, b, method="asymptotic").pvalue if np.ptp(both) > 0 else 1
    if len(np.unique(both)) == len(both):
        return u, stats.mannwhitneyu(a, b, method="exact").pvalue
    if math.comb(len(both), len(a)) > 200000:
        return u, None
    ranks = stats.rankdata(both)
    sums = [ranks[list(c)].sum() for c in itertools.combinations(range(len(both)), len(a))]
    return u, tails(sums, ranks[:len(a)].sum())


def wilcoxon(a, b):
    d = (a - b)[a != b] if len(a) == len(b) else np.array([])
    if len(d) == 0:
        return None, None
    ranks = stats.rankdata(abs(d))
    w = ranks[d > 0].sum()
    if len(d) > EXACT:
        return w, stats.wilcoxon(d, mode="approx", correction=True).pvalue
    if len(np.unique(abs(d))) == len(d):
        return w, stats.wilcoxon(d, mode="exact").pvalue
    if len(d) > 16:
        return w, None
    return w, tails(np.array(list(itertools.product([0, 1], repeat=len(d)))) @ ranks, w)


def two_samples(a, b):
    values = []
    has_two = min(len(a), len(b)) >= 2
    varies = np.ptp(a) > 0 or np.ptp(b) > 0
    if has_two and varies:
        va, vb = np.var(a, ddof=1) / len(a), np.var(b, ddof=1) / len(b)
        dof = (va + vb)**2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
        values += [*stats.ttest_ind(a, b), *stats.ttest_ind(a, b, equal_var=False), dof]
        v = len(a) + len(b) - 2
        pooled = ((len(a) - 1) * np.var(a, ddof=1) + (len(b) - 1) * np.var(b, ddof=1)) / v
        d = (np.mean(a) - np.mean(b)) / math.sqrt(pooled)
        values += [d, d * math.exp(math.lgamma(v / 2) - math.lgamma((v - 1) / 2)) / math.sqrt(v / 2)]
    else:
        values += [None] * 7
    for center in ("mean", "median"):
        with np.errstate(all="ignore"):
            w, p = stats.levene(a, b, center=center)
        values += [w, p] if len(a) + len(b) > 2 and math.isfinite(w) and w < 1e20 else [None, None]
    return [*values, *mann_whitney(a, b), *wilcoxon(a, b)]


def text(value):
    return "-" if value is None else repr(float(value)).removesuffix(".0")


def main():
    print(f"# Made by scripts/statistics_vectors.py with SciPy {scipy.__version__},"
          f" statsmodels {statsmodels.__version__}, R {run_r('cat(format(getRversion()))')}.")
    print("# one kind n seed: mean, stdev, t interval, Shapiro-Wilk, Anderson-Darling")
    print("# two kind n seed kind n seed: Student, Welch and dof, d, g, Levene, Brown-Forsythe, Mann-Whitney, Wilcoxon")
    ones = [(kind, n, seed) for seed, (kind, n) in enumerate(itertools.product(KINDS, ONE_SIZES), 1)]
    samples = [make(*one) for one in ones]
    quantiles = student_by_r()
    for one, x, shapiro in zip(ones, samples, shapiro_by_r(samples)):
        print("one", *one, *map(text, one_sample(x, quantiles[len(x)], shapiro)))
    for seed, ((kind_a, kind_b), (na, nb)) in enumerate(itertools.product(TWO_KINDS, TWO_SIZES), 1000):
        a, b = (kind_a, na, seed), (kind_b, nb, seed + 5000)
        print("two", *a, *b, *map(text, two_samples(make(*a), make(*b))))


main()
