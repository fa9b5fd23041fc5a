// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/cli/help.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "bench/report/table.hpp"
#include "bench/report/terminal.hpp"
#include "bench/run/select.hpp"
#include "bench/run/summary.hpp"

namespace wide::bench {

namespace {

/// An axis, its meaning, and the primitives that it has this meaning for.
struct AxisMeanings {
  std::string name;
  std::vector<std::pair<std::string, std::vector<std::string>>> meanings;

  void add(const std::string& meaning, const std::string& op) {
    const auto same = std::find_if(meanings.begin(), meanings.end(),
                                   [&](const auto& m) { return m.first == meaning; });
    (same == meanings.end() ? meanings.emplace_back(meaning, std::vector<std::string>()) : *same)
        .second.push_back(op);
  }

  std::string text() const {
    constexpr size_t kMeanings = 4;
    constexpr std::ptrdiff_t kOps = 2;  // `list axes` shows all
    if (meanings.size() == 1) return meanings.front().first;
    std::string joined;
    for (size_t i = 0; i < std::min(meanings.size(), kMeanings); ++i) {
      const auto& [meaning, ops] = meanings[i];
      joined +=
          fmt::format("{}{} ({}{})", i == 0 ? "" : "; ", meaning,
                      fmt::join(ops.begin(), ops.begin() + std::min(std::ssize(ops), kOps), ", "),
                      std::ssize(ops) > kOps ? ", .." : "");
    }
    return joined + (meanings.size() > kMeanings ? "; ..: wbench list axes" : "");
  }
};

/// CLI11 leaves lines as long as they are, and terminals break them within words.
class WrappingFormatter : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override {
    return beside_names(CLI::Formatter::make_option_desc(option));
  }

  std::string make_subcommand(const CLI::App* command) const override {
    std::ostringstream out;
    CLI::detail::format_help(out, command->get_display_name(true),
                             beside_names(command->get_description()), get_column_width());
    return out.str();
  }

  std::string make_footer(const CLI::App* app) const override {
    return wrap(CLI::Formatter::make_footer(app), output_width());
  }

 private:
  std::string beside_names(const std::string& text) const {
    return wrap(text, output_width() - static_cast<int>(get_column_width()));
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() {
  return std::make_shared<WrappingFormatter>();
}

std::vector<std::pair<std::string, std::string>> axis_summaries() {
  std::vector<AxisMeanings> axes;
  for (const catalog::PrimitiveSpec* spec : select_ops("all,model:all")) {
    for (const catalog::AxisInfo& axis : spec->axes) {
      const auto same = std::find_if(axes.begin(), axes.end(),
                                     [&](const AxisMeanings& a) { return a.name == axis.name; });
      AxisMeanings& known =
          same == axes.end() ? axes.emplace_back(AxisMeanings{std::string(axis.name), {}}) : *same;
      known.add(std::string(axis.summary), std::string(spec->name));
    }
  }
  std::vector<std::pair<std::string, std::string>> summaries;
  for (const AxisMeanings& axis : axes) summaries.emplace_back(axis.name, axis.text());
  return summaries;
}

std::string exit_codes() {
  return R"(Exit codes: 0 success; 1 a case failed, or a file could not be found, read or written;
2 usage, and files that are truncated, no results or from a later version; 3 wrong or
implausible results; 4 compare or run --compare found what --fail-on names; 5 it could
not tell and --fail-on names inconclusive, or a time is unreliable and --fail-on or
run --strict asks for that; 6 nothing ran, matched or is on both sides; 7 the device
asked for is not usable, another one was compared, its clocks cannot be locked, a self-check
failed, or a tool is missing; 124 --time-limit is over, 130 interrupted: partial
results written.
Where several apply, the first of 2, 1, 7, 3, 4, 5, 6 wins.)";
}

std::string run_footer() {
  return R"(Axis values: 4,8,16 | 4:16:4 | 1:64:x2 | 2^5 | 8K; words, or all, for dtype and the like; see `wbench list axes`.

Meaning of the columns:
  time           median of one call of all N members; +- is the median absolute deviation
  of floor       floor / time; floor = max(bytes / measured bandwidth, flops / measured rate) + measured
                 empty launch; above 100 % where a cache, not memory, feeds the operands
  vs loop, ..    speedup = exp(median over rounds of log(baseline / strategy)), with its 95 % bootstrap
                 interval over rounds; baselines are N separate calls: loop (one stream), streams (up to
                 8), graph (the loop captured); loop pairs with the regimes stream and cold, streams with
                 stream and graph, where its lanes are branches of the graph, graph with graph;
                 vs peer: the fastest right one of the calls that --peer's programs offer
  err/tol        worst error / tolerance against the fp64 reference @ its member; 1 passes
  n              samples; few_samples below 30
  unreliable     something speaks against the median: -v names it, --explain says its numbers; ok? in
                 narrow tables
With -v, of each measurement and of each kernel:
  launches       of a call; enqueue: what a call costs the host, measured apart
  per launch     (stream - graph) / launches: what launching by the host adds; of loop, minus the baseline graph
  items          examples a second: n * batch / time
  energy         of a call, over a second of calls; power: on average, or the largest seen
  throttled      samples that were discarded, and every reason that was seen
  rounds, trend  deviation between rounds' medians, and their slope; autocorr: of samples
                 with their neighbours
  memory         operands, packed weights and workspace of a call, at most
  doubts         few_samples (30), few_rounds (10), below_resolution; wide_interval: half of it above 1 %
                 of the median; unsteady_rounds: deviation above 5 %; drift: above 1 % in all (Mann and
                 Kendall, p < 0.01); multimodal: two modes or more (Hartigan's dip, p < 0.01) that are
                 more than 1 % apart; heavy_tail: the 95th percentile above twice the median, or more
                 than a twentieth of the samples severe outliers and percentiles 5 % apart; throttled:
                 more than a fifth of the samples; timed_out: before --stop was satisfied;
                 unsettled_clock: not stable before the samples, nor from one third of them to the
                 next; short_warmup: less than half of --warmup-time, and no clock known that has
                 settled. --strict: exit code 5
After the sweep, per primitive, regime and baseline:
)" + summary_definitions() +
         "\n" + exit_codes();
}

std::string tune_footer() {
  return R"(Every strategy that can run a case is checked and timed by every policy that it has; what is wrong is
never kept. On CUDA graphs are timed, so that launches do not decide; --regime stream times them.

Meaning of the columns:
  fastest        strategy:policy with the smallest median of those that are faster than auto by `run`'s
                 verdict; of all, where none is
  vs auto        what auto takes without a cache, or by --apply: its time / the fastest's, paired by rounds,
                 with its 95 % interval
  kept           what the cache gets: the fastest where it is faster than auto; else what auto takes, and why
                 that stands: the verdict, or that the fastest is the same choice
  vs vendor      the vendor library's best: its time / the fastest's
  of             candidates that ran and were right
A search (--search random, halving) measures first with few samples, unchecked, and then its best two in
full: only those can be the fastest, runner-up and vendor's best here. Without a search, what is faster than
auto is measured again, beside auto alone, and that decides. What comes first takes 60 % of --budget.
Of a model (--model) every step is tuned, steps with the same problem once, as NODE PRIMITIVE; strategies are
those of its primitives. Steps that are not tuned are listed with the reason.
What --tuning FILE has from the same candidates, options and kernels is not measured again: a sweep that was
interrupted goes on. After a new driver or vendor library, --again measures all.
`wbench run --tuning FILE`, `wbench trace --tuning FILE`, `wbench tune --apply FILE`, ModelOptions::tuning and
PlanOptions::tuning read what --tuning FILE, or --write FILE, keeps.

)" + exit_codes();
}

std::string quantize_footer() {
  return R"(Meaning of the columns:
  bits         of a weight, scales and padding included; bytes: of the member
  relative     root of the squared errors' sum over that of the weights' squares
  SNR          -20 log10 of that; inf: nothing is lost
  rms, largest error of a weight
  worst group  the one with the largest sum of squared errors
nan: a weight is not finite.

)" + exit_codes();
}

std::string inspect_footer() {
  return R"(Meaning of the columns, of one call of all N members; counters:
  instructions   executed by threads; fp32: those of them on the fp32 units
  loads, stores  32-byte sectors requested of global memory / the least that the same bytes need
  minimum        bytes of the operands, each once
  bytes          requested / minimum, without rereads
  rereads        bytes that a block requests after another block has / minimum: a cache serves them
  conflicts      passes of shared memory lost to bank conflicts, of all
  tensor         operations issued to tensor cores / useful ones
launches, resources and occupancy, in the order of the stream:
  shared         static and dynamic; local: stack and spills of a thread
  registers      of a thread; without a GPU by cuobjdump, from PATH or CUDA_HOME
  blocks/SM      that a multiprocessor holds at once; occupancy: of its threads
  limited by     the tightest limit; after it, how many blocks each limit allows
ptx and sass are cuobjdump's of the kernels that are launched. Without it the exit code is 7, and the
message has its command. --json FILE has the same for programs; of graph, what `trace --json` has.
)" + exit_codes();
}

std::string history_footer() {
  return R"(Runs are called @last, @last~K (the K-th before it), @TAG, @ID (any unambiguous beginning of an id), or
git:REF, the newest run of a clean build of a commit; `show` and `compare` know them too.

Meaning of the columns:
  first, last  medians of the oldest and the newest run; change: last / first - 1
  noise        2 x 1.4826 x median absolute deviation, from the median of all runs of the same commit, of
               the logarithms of the last 20 runs' medians; empty below 3 runs. Where no commit has 3
               runs, nor several have 2, the commits are taken for one, and what they changed for noise
  trend        the last 16 medians, from their smallest to their largest
bisect-hint names the two runs between which a median has stepped, and the git bisect between their
commits: the split with 3 runs or more aside that leaves both sides closest to their medians, where it is
1 % or more and Mann and Whitney's p, times the splits, is at most 0.05 over all (Benjamini, Hochberg).

)" + exit_codes();
}

}  // namespace wide::bench
