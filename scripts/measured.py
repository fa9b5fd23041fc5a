# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""Times of a result and what is reached by them, with intervals."""
import dataclasses
import math

SEEN_IN_INTERVAL = ("wide_interval", "timed_out")  # doubts that are ignored: a bound within the interval decides nothing anyway


def is_positive(value):
    """Whether it is a number that a time or a rate may be: results have null otherwise."""
    return value is not None and 0 < value < math.inf


@dataclasses.dataclass(frozen=True)
class Time:
    """A strategy's time in a regime."""
    strategy: str
    measured: dict

    @property
    def us(self):
        return self.measured["stats"]["median_ns"] * 1e-3

    @property
    def interval(self):
        ci = self.measured["stats"]["ci"]
        return ci["lo_ns"] * 1e-3, ci["hi_ns"] * 1e-3

    @property
    def refused(self):
        """Why it decides nothing; empty if it may."""
        ci = self.measured["stats"]["ci"]
        why = [doubt for doubt in self.measured["stats"].get("doubts", ()) if doubt not in SEEN_IN_INTERVAL]
        if self.measured["below_resolution"] and "below_resolution" not in why:  # results before 1.6 have no doubts
            why.append("below_resolution")
        if not (is_positive(ci["lo_ns"]) and is_positive(ci["hi_ns"])):
            why.append("no interval")
        return f"{self.strategy}, {self.measured['regime']}: {', '.join(why)}" if why else ""


@dataclasses.dataclass(frozen=True)
class Reached:
    """A value and its interval, which is NaN if one of its times is refused."""
    value: float
    lo: float
    hi: float
    refused: str

    @staticmethod
    def of(value, times, interval):
        """`interval` is called if all times may decide."""
        refused = next((time.refused for time in times if time.refused), "")
        return Reached(value, *((math.nan, math.nan) if refused else interval()), refused)

    def verdict(self, goal, bound):
        if goal == "most_us":
            return "met" if self.hi <= bound else "missed" if self.lo > bound else "undecided"
        return "met" if self.lo >= bound else "missed" if self.hi < bound else "undecided"


def time_of(strategy, regime):
    """None if it did not run right, or not in that regime."""
    measured = next((m for m in strategy["measurements"] if m["regime"] == regime), None)
    ran = strategy["status"] == "ok" and measured is not None and is_positive(measured["stats"]["median_ns"])
    return Time(strategy["name"], measured) if ran else None


def ratio(over, under):
    return Reached.of(over.us / under.us, (over, under),
                      lambda: (over.interval[0] / under.interval[1], over.interval[1] / under.interval[0]))
