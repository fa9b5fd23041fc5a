// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/cli/cli_options.hpp"

#include "bench/cli/cli_numbers.hpp"
#include "bench/cli/completion.hpp"
#include "bench/command/isolated.hpp"
#include "bench/command/options.hpp"
#include "bench/command/repeated.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

constexpr const char* kSampling = "Sampling";

void add_caches_and_stops(CLI::App& app, RunOptions& o) {
  app.add_option(
         "--cache", o.cache,
         "how regime cold gets a cold L2: flush it, which short calls follow in numbers, each "
         "on a copy of the operands; rotate over copies without; or warm: no regime cold")
      ->group(kSampling)
      ->check(one_of({"flush", "rotate", "warm"}))
      ->capture_default_str();
  app.add_option("--l2-factor", o.config.l2_factor,
                 "sizes of the L2 that are flushed or rotated over")
      ->group(kSampling)
      ->check(number_check(1, false, 64, "a number from 1 to 64"))
      ->capture_default_str();
  app.add_option("--stop", o.config.stop, "when samples are enough: ci, stdrel, entropy or count")
      ->group(kSampling)
      ->check(one_of({"ci", "stdrel", "entropy", "count"}))
      ->capture_default_str();
  app.add_option("--min-time", o.config.min_time_s,
                 "least seconds of samples for every strategy and case before --stop may end "
                 "sampling; --timeout and --max-samples end it regardless")
      ->group(kSampling)
      ->check(kNotNegative)
      ->capture_default_str();
  app.add_option("--max-noise", o.max_noise, "stop stdrel: the largest deviation")
      ->group(kSampling)
      ->capture_default_str();
  app.add_option("--interleave", o.config.interleave, "order of a round: abba, random or none")
      ->group(kSampling)
      ->check(one_of({"abba", "random", "none"}))
      ->capture_default_str();
  app.add_flag("--aa", o.config.aa, "run baselines twice: their difference is the noise floor")
      ->group(kSampling);
}

void add_clocks(CLI::App& app, RunOptions& o) {
  app.add_option("--warmup-clock-tol", o.clock_tol, "clocks are stable when they differ by less")
      ->group(kSampling)
      ->capture_default_str();
  app.add_option("--throttle", o.config.throttle,
                 "samples of a throttled device: discard, warn, fail or off")
      ->group(kSampling)
      ->check(one_of({"discard", "warn", "fail", "off"}))
      ->capture_default_str();
  app.add_option("--throttle-threshold", o.throttle_threshold,
                 "of the stable clock, below which a sample was throttled")
      ->group(kSampling)
      ->capture_default_str();
  app.add_option("--lock-clocks", o.lock_clocks,
                 "of the GPU, to base, max or MHZ, until the run ends; needs permission. "
                 "After a kill: nvidia-smi --reset-gpu-clocks")
      ->group(kSampling);
  app.add_flag("--energy", o.config.energy, "joules per call; takes a second more for each")
      ->group(kSampling);
}

void add_sweep(CLI::App& app, RunOptions& o) {
  app.add_flag("--isolate", o.config.isolate,
               "each case in a process of its own: one that crashes does not end the sweep")
      ->group(kSampling);
  app.add_option("--cooldown", o.config.cooldown_s,
                 "seconds of rest between cases: part of --budget, but of no case's share")
      ->group(kSampling)
      ->check(kNotNegative)
      ->capture_default_str();
  app.add_option(
         "--time-limit", o.time_limit_s,
         "seconds for the whole run, including --repeat and --isolate: it ends after the current "
         "samples, with partial results and exit code 124. --budget shortens it to fit")
      ->group(kSampling)
      ->check(kPositive);
  app.add_option("--repeat", o.repeat,
                 "run the whole sweep N times, each in a process of its own, so that compare takes "
                 "them for N runs: N results, whose files and --tag get the number, as r-1.json of "
                 "--json r.json; each has the whole --budget")
      ->group(kSampling)
      ->check(number_check(1, false, 1000, "an integer from 1 to 1000"))
      ->capture_default_str();
  CLI::Option* stops =
      app.add_flag("--exit-on-error", o.exits_on_error,
                   "stop after the first case that failed, was wrong or implausible")
          ->group(kSampling);
  const std::string keep_going = "run the other cases all the same, which is the default";
  app.add_flag("--keep-going", keep_going)->excludes(stops)->group(kSampling);
  app.add_flag("--strict", o.is_strict, "unreliable times make the exit code 5: see doubts below")
      ->group(kSampling);
  app.add_flag("--profile", o.is_profiled,
               "for a profiler: warm calls between cudaProfilerStart and Stop, no times")
      ->group(kSampling);
  app.add_option("--launches", o.profiled_calls,
                 "--profile: calls of each strategy, replays with --regime graph")
      ->group(kSampling)
      ->check(kCount)
      ->capture_default_str();
  app.add_flag("--endless", o.is_endless, "--profile: calls until interrupted")->group(kSampling);
}

void add_gate(CLI::App& app, RunOptions& o) {
  CLI::Option* base =
      app.add_option(
             "--compare", o.compare.base,
             "compare with a result, a folder of results or a run of the history, as `wbench "
             "compare` does")
          ->group("Gate");
  app.add_option("--fail-on", o.compare.fail_on,
                 "--compare: of regression, missing, invalid, inconclusive, unreliable, "
                 "device-mismatch; or none")
      ->needs(base)
      ->group("Gate")
      ->capture_default_str();
  app.add_option("--noise-floor", o.compare.noise_floor, "--compare: as wbench compare has it")
      ->needs(base)
      ->group("Gate")
      ->capture_default_str();
  app.add_option("--threshold", o.compare.threshold, "--compare: as wbench compare has it")
      ->needs(base)
      ->group("Gate")
      ->capture_default_str();
}

/// Rejects options that are familiar from benchmarks of collectives.
void refuse_several_gpus(CLI::App& app) {
  const auto refuse = [](const std::string& how) {
    throw Error(ErrorCode::invalid_argument,
                "--mgpu " + how +
                    ": not supported: members exchange nothing, so there is no collective to "
                    "time. Split members over GPUs, with a process for each; -d cuda:0,1 measures "
                    "one after the other");
  };
  app.add_option_function<std::string>("--mgpu", refuse)->group("");
}

}  // namespace

void add_checking(CLI::App& app, RunOptions& o) {
  app.add_option("--peer", o.peers,
                 "a command of the shell: another program beside the baselines, on the same "
                 "operands, checked as strategies are and timed in the same rounds; may be "
                 "repeated. scripts/peers/torch_peer.py is PyTorch")
      ->group("Strategies");
  app.add_option(
         "--save-workspace", o.saving,
         "save checked calls' operands, results and expected results as files for numpy and "
         "torch (safetensors): never, incorrect or always, the last two with :FOLDER, else "
         "in workspace; with --repeat folders get the number")
      ->group("Output")
      ->capture_default_str();
}

void add_run(CLI::App& app, RunOptions& o) {
  app.add_option("--verify", o.config.verify, "both, before, off, or only: measure nothing")
      ->group(kSampling)
      ->check(one_of({"both", "before", "off", "only"}))
      ->capture_default_str();
  app.add_option("--init", o.init,
                 "values of operands: uniform, normal, int, trig or zeros. Operands that must keep "
                 "their sign, such as variances, stay uniform; models' weights are not changed")
      ->group("Cases")
      ->check(one_of({"uniform", "normal", "int", "trig", "zeros"}))
      ->capture_default_str();
  add_caches_and_stops(app, o);
  add_clocks(app, o);
  add_sweep(app, o);
  app.add_option("--html", o.output.html, "write a page for browsers, as report does")
      ->group("Output");
  add_gate(app, o);
  app.add_option(kTimeLeft, o.time_left_s)->group("");
  app.add_option(kRepeatTurn, o.repeat_turn)->group("");
  app.add_option(kRepeatResult, o.repeat_result)->group("");
  app.add_option(kIsolatedCase, o.isolated_case)->group("");
  app.add_option(kIsolatedResult, o.isolated_result)->group("");
  refuse_several_gpus(app);
  app.add_option("--tuning", o.tuning,
                 "a tuning cache: auto reads it, and is run besides the others")
      ->group("Strategies");
}

void add_verify(CLI::App& app, RunOptions& o) {
  app.add_option("--cases", o.sampled_cases,
                 "a sample of this many selected cases, drawn by --seed")
      ->group("Cases")
      ->check(number_check(1, false, 1e6, "an integer from 1 to 10^6"));
  app.add_flag(
         "--all", o.compares_all,
         "compare every output completely with the reference, however long that takes; default: "
         "as many rows of each member as take one thread about a quarter of a second, the "
         "first and the last among them. References take 16 bytes of memory per element; a "
         "case for which less is available is refused")
      ->group("Cases");
  app.add_flag("--adversarial", o.is_adversarial,
               "also with whole numbers, whose results are exact, NaN and infinities (where all of "
               "the output is compared; --json says where they were not tried), sums that "
               "cancel, subnormals, a wide range, sums of one sign, and NaN in one member, which "
               "may change no bit of "
               "another's output")
      ->group("Cases");
}

void add_profile(CLI::App& app, ProfileOptions& o) {
  app.add_option("--tool", o.tool, "nsys, ncu, or none: the calls alone")
      ->check(one_of({"nsys", "ncu", "none"}))
      ->capture_default_str();
  CLI::Option* launches =
      app.add_option("--launches", o.run.profiled_calls, "calls of each strategy")
          ->check(kCount)
          ->capture_default_str();
  app.add_flag("--endless", o.run.is_endless, "calls until interrupted, for tools that attach")
      ->excludes(launches);
  app.add_option("--regime", o.regime, "stream, or graph: replays of one captured call")
      ->check(one_of({"stream", "graph"}))
      ->capture_default_str();
  app.add_option("--set", o.set, "ncu's set of metrics: basic, full or roofline")
      ->check(one_of({"basic", "full", "roofline"}))
      ->capture_default_str();
  app.add_option("--folder", o.folder, "of the tool's report; --out is an axis")
      ->capture_default_str();
  app.add_option("arguments", o.tool_arguments, "after --: more for the tool");
}

}  // namespace wide::bench
