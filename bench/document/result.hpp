// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a run produced: plain data that mirrors the JSON document (bench/result.schema.json) name by
// name. Times are nanoseconds in double; unknown values are std::nullopt and become null.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/statistics/statistics.hpp"
#include "wide/catalog.hpp"
#include "wide/device.hpp"

namespace wide::bench {

inline constexpr const char* kSchemaName = "wbench.result";
inline constexpr const char* kSchemaVersion = "1.19.0";

/// How a call is timed. `stream`: launched by the host, launch cost included. `graph`: replay of a
/// captured graph, device-limited. `cpu`: wall clock around the call; on a GPU that is what its
/// host spends to enqueue it. `cold`: on the device alone, with operands that are not in its L2.
enum class Regime : uint8_t { stream, graph, cpu, cold };
inline constexpr auto kRegimes = {Regime::stream, Regime::graph, Regime::cpu, Regime::cold};
/// How the operands of a call in regime cold are kept out of the L2; `warm`: they are not. Results
/// of schema 1.17 may be configured as `automatic`: flush or rotate, case by case.
enum class Cache : uint8_t { warm, flush, rotate, automatic };
inline constexpr auto kCaches = {Cache::flush, Cache::rotate, Cache::warm};
/// What strategies are compared with. N separate single-member calls: `loop`, one after another on
/// one stream (the CPU's only one), paired with regimes stream, cpu and cold; `streams`, spread
/// over several streams, paired with stream, and with graph as branches of one; `graph`, the loop
/// captured in one graph, paired with regime graph. `peer`, since 1.9: the fastest implementation
/// of the case by other programs (peer/), each regime paired with itself.
enum class Baseline : uint8_t { loop, streams, graph, peer };
inline constexpr auto kBaselines = {Baseline::loop, Baseline::streams, Baseline::graph,
                                    Baseline::peer};
/// Those of this program, from which --baseline chooses.
inline constexpr auto kOwnBaselines = {Baseline::loop, Baseline::streams, Baseline::graph};
/// No case is `timeout`, a word of the first schema: one that has no time left ends with a doubt.
enum class Status : uint8_t { ok, failed, skipped, verify_failed, implausible, timeout, oom };

/// What the device reported of itself while samples were taken, and since 1.4.
struct Clocks {
  double sm_mhz_median = 0, sm_mhz_min = 0;
  std::vector<std::string> throttle_reasons;  ///< all that were seen
  std::optional<double> temp_c, power_w;      ///< the largest seen
  /// The clock that samples were judged by; none: not seen stable before them. Since 1.13.
  std::optional<double> sm_mhz_stable = std::nullopt;
  friend bool operator==(const Clocks&, const Clocks&) = default;
};

/// From calls repeated for at least a second.
struct Energy {
  std::string method;  ///< "nvml_total_energy" or "nvml_power_integral"
  double window_s = 0;
  std::optional<double> joules, joules_per_call, avg_w, idle_w;
  std::string invalid_reason;  ///< empty if it is valid
  friend bool operator==(const Energy&, const Energy&) = default;
};

/// What is known of a sample, as bits of its flag.
enum SampleFlag : int64_t {
  kThrottledSample = 1 << 0,  ///< the device was throttled, and the sample kept
  kMildOutlier = 1 << 1,      ///< beyond Tukey's inner fences, but not the outer ones
  kSevereOutlier = 1 << 2,    ///< beyond the outer ones
};

/// Samples of one strategy or baseline in one regime. One sample is `iters_per_sample` calls,
/// divided by their number.
struct Measurement {
  Regime regime = Regime::stream;
  std::string timer;  ///< "event", "graph" or "host"
  int64_t iters_per_sample = 1;
  /// "ci", "stdrel", "entropy", "count", "max_samples", "timeout" or "interrupted"; since 1.12, a
  /// criterion that was satisfied when time ran out is reported as the criterion
  std::string stop_reason;
  bool below_resolution = false;
  bool few_samples = false;  ///< fewer than 30
  double walltime_s = 0;
  std::optional<double> warmup_s = std::nullopt;  ///< of the case, before its samples; since 1.19
  std::vector<double> samples_ns;                 ///< empty if a result was read without them
  std::vector<int64_t> samples_round;             ///< the round each sample was taken in
  std::vector<double> samples_sm_mhz;             ///< since 1.4; empty if the clock is unknown
  // Since 1.7; empty in older results.
  /// How many samples of the case, of any strategy, baseline and regime, were begun before this
  /// one: sorted by it, a case's samples are in the order in which they were taken. Discarded
  /// samples and those of --aa's twins leave gaps.
  std::vector<int64_t> samples_order;
  std::vector<double> samples_t_rel_s;  ///< when it began, from the start of the case's sampling
  std::vector<int64_t> samples_flags;   ///< of SampleFlag
  Statistics stats;
  // Rates at the median; the floor is defined in the catalogue entry "floor" of --help.
  std::optional<double> flops_per_s, mem_bw_bytes_per_s, pct_of_floor;
  // Since 1.7: relative to the measured ceilings, and the largest part of the floor.
  std::optional<double> pct_of_mem_peak, pct_of_flop_peak;
  std::string roofline_bound;         ///< "memory", "compute" or "launch"; empty if unknown
  std::optional<double> items_per_s;  ///< examples of all members; since 1.8
  std::vector<std::string> warnings;
  // Since 1.4.
  Cache cache = Cache::warm;
  int64_t buffers_rotated = 1;  ///< copies of the operands that a sample's calls take in turn
  std::optional<bool> rotation_covers_l2;
  int64_t discarded_throttle = 0;
  int64_t kept_throttle = 0;  ///< throttled samples that were kept; since 1.6
  std::optional<Clocks> clocks;
  std::optional<Energy> energy;
  std::optional<double> enqueue_ns_per_call;  ///< of the host, in regime stream
  /// Stream minus graph, in regime stream; for `loop`, minus the baseline `graph`. None for
  /// `streams`, which has no graph to subtract.
  std::optional<double> launch_overhead_ns_per_launch;
  friend bool operator==(const Measurement&, const Measurement&) = default;
};

/// Frameworks round between operations, which our tolerances do not allow for: results this close
/// compute the same, less accurately, as their `worst_error_ratio` shows.
inline constexpr double kPeerSlack = 16;

struct VerifyOutcome {
  std::string before = "not_run", after = "not_run";  ///< "pass", "fail" or "not_run"
  std::optional<double> worst_error_ratio;            ///< error / tolerance; null if not finite
  int64_t worst_member = -1;
  int64_t mismatches = 0, nan_count = 0;
  int64_t elements_compared = 0, elements = 0;
  std::string message;  ///< where it is wrong
  /// Files of the calls that --save-workspace kept. Since 1.8.
  std::vector<std::string> saved{};
  /// How many of the elements compared were expected to be 0. Since 1.11; none: unknown.
  std::optional<int64_t> zeros{};
  /// Whether all calls that were checked gave the same bits. Since 1.15; none: fewer than two were.
  std::optional<bool> bitwise_stable{};
  friend bool operator==(const VerifyOutcome&, const VerifyOutcome&) = default;
};

/// One launch on the simulated GPU: counters by their names in verify/simt/counters.hpp.
struct LaunchCounters {
  using Values = std::vector<std::pair<std::string, int64_t>>;
  struct Buffer {
    std::string name;
    Values values;
    friend bool operator==(const Buffer&, const Buffer&) = default;
  };
  std::string kernel;
  std::vector<int64_t> grid, block;  ///< x, y, z
  Values values;
  std::vector<Buffer> buffers;
  friend bool operator==(const LaunchCounters&, const LaunchCounters&) = default;
};
/// 0 for a counter that does not exist.
int64_t value_of(const LaunchCounters::Values& values, std::string_view name);

/// The resources that a launch of a call needs of a multiprocessor, as the runtime reports them.
struct KernelUse {
  std::string name;
  std::vector<int64_t> grid, block;  ///< x, y, z
  std::optional<int64_t> registers;  ///< unknown in the simulated runtime
  int64_t static_shared_bytes = 0, dynamic_shared_bytes = 0, local_bytes = 0;
  int64_t blocks_per_sm = 0;
  double occupancy_pct = 0;
  friend bool operator==(const KernelUse&, const KernelUse&) = default;
};

/// A strategy, or a baseline under its name, in one case.
struct RunnerResult {
  std::string name;
  std::string strategy, policy;  ///< the resolved choice; empty if it was not prepared
  std::string peer;  ///< the program that computes it, "torch 2.6.0"; else empty. Since 1.9
  Status status = Status::ok;
  std::string reason;  ///< why it was skipped or failed
  bool verified =
      true;  ///< false: no device of this kind has verified it yet (`unverified` in tables)
  std::string explain;
  VerifyOutcome verify;
  int64_t workspace_bytes = 0;
  std::vector<Measurement> measurements;
  std::vector<LaunchCounters> launches;  ///< of one call; on the simulated GPU only
  // Since 1.4.
  std::optional<int64_t> launches_per_call;  ///< kernels; none if a call cannot be captured
  std::optional<int64_t> peak_device_bytes;  ///< of operands, packed weights and workspace
  std::vector<KernelUse> kernels;            ///< of a call; empty if the runtime does not know
  /// Since 1.14: one-time host costs. The plan, including what a vendor's library builds or
  /// searches for it; the first call, until it has completed, which includes loading kernels.
  std::optional<double> plan_ns = std::nullopt, first_call_ns = std::nullopt;
  friend bool operator==(const RunnerResult&, const RunnerResult&) = default;
};

/// Speedup of one strategy against one baseline, from the ratios of the rounds that both ran in.
struct Speedup {
  std::string strategy;
  Baseline baseline = Baseline::loop;
  Regime regime = Regime::stream;  ///< the strategy's; the baseline's is its partner
  int64_t pairs = 0;
  std::optional<double> speedup_ratio, ci_lo, ci_hi;
  std::string verdict;  ///< "faster", "slower", "same", "ambiguous" or "not_comparable"
  std::optional<double> aa_floor_pct = std::nullopt;  ///< since 1.4: what the verdict had to exceed
  /// Since 1.6: for the pairs' log ratios (Wilcoxon's signed ranks); informative only.
  std::optional<double> p_wilcoxon = std::nullopt;
  std::string peer = {};  ///< for baseline peer: which was the fastest. Since 1.9
  friend bool operator==(const Speedup&, const Speedup&) = default;
};

/// A baseline against itself, run twice under two names: the difference is noise. Since 1.4.
struct NoiseFloor {
  Baseline baseline = Baseline::loop;
  Regime regime = Regime::stream;
  int64_t pairs = 0;
  double ratio = 1, ci_lo = 1, ci_hi = 1;
  double floor_pct = 0;  ///< the interval's largest distance from 1
  friend bool operator==(const NoiseFloor&, const NoiseFloor&) = default;
};

struct CaseResult {
  std::string case_id;  ///< of case_id.hpp
  catalog::Case point;
  int64_t op_version = 1;
  std::string reproduce;  ///< the command that runs this case alone
  Status status = Status::ok;
  std::string reason;
  catalog::Cost cost;
  int64_t footprint_bytes = 0;
  double floor_ns = 0;
  /// Upper limits of the device: a result above them is implausible. By data sheet and clocks; for
  /// a CPU what was measured, plus a fifth. Since 1.10.
  std::optional<double> peak_flops_per_s, peak_mem_bw_bytes_per_s;
  std::vector<RunnerResult> strategies;
  std::vector<RunnerResult> baselines;
  std::vector<Speedup> speedups;
  std::vector<NoiseFloor> noise_floors;  ///< with --aa
};

/// How a strategy's median grows with n while all other axes are equal. Since 1.7.
struct ScalingFit {
  std::string strategy;
  std::string axes;    ///< the others that the sweep or the user named: "batch=16 dtype=fp16"
  std::string model;   ///< "a", "a+b*log2(n)", "a+b*n", "a+b*n*log2(n)", "a+b*n^2" or "a+b*n^3"
  int64_t points = 0;  ///< values of n
  double a_ns = 0, b_ns = 0, rms_pct = 0;
  friend bool operator==(const ScalingFit&, const ScalingFit&) = default;
};

/// Per primitive and pair (regime, baseline), after the sweep. Definitions: `wbench run --help`.
struct OpSummary {
  std::string op;
  Regime regime = Regime::stream;
  Baseline baseline = Baseline::loop;
  std::optional<int64_t> crossover_n;
  std::optional<int64_t> recommended_threshold;
  std::vector<std::pair<std::string, int64_t>> strategy_wins;
  std::optional<double> best_speedup_ratio;
  std::string best_strategy, best_case;
  std::optional<double> geomean_speedup;
  // Since 1.7.
  std::optional<int64_t> crossover_lo, crossover_hi;  ///< the smallest and largest N it could be
  std::vector<ScalingFit> scaling_fits;
  friend bool operator==(const OpSummary&, const OpSummary&) = default;
};

/// Measured at start; what floors are computed from.
struct Calibration {
  double mem_bw_bytes_per_s = 0;
  std::vector<std::pair<std::string, double>> flops_per_s;  ///< by dtype name, as measured
  double empty_launch_ns = 0;
  double timer_quantum_ns = 0;
  double timer_floor_ns = 0;
  // Since 1.4; 0 if unknown. The host's cost of a launch, the cost of a graph of one kernel on host
  // and device together, and the device's cost of flushing the L2.
  double host_launch_ns = 0, graph_launch_ns = 0, flush_ns = 0;
  friend bool operator==(const Calibration&, const Calibration&) = default;
};

/// How operands are filled, besides the seed. Before 1.7 always uniform.
struct Init {
  std::string dist = "uniform";             ///< or "normal", "int", "trig", "zeros"
  std::optional<double> min = -1, max = 1;  ///< none: the distribution is unbounded
  friend bool operator==(const Init&, const Init&) = default;
};

struct RunConfig {
  std::string preset;
  std::vector<Regime> regimes;
  int64_t rounds = 12;
  int64_t min_samples = 30, max_samples = 5000;
  double target_ci_pct = 0.5;
  double warmup_s = 0.2, timeout_s = 15;
  std::optional<double> budget_s;
  uint64_t seed = 42, order_seed = 1;
  std::string verify = "both";
  // Since 1.4.
  Cache cache = Cache::flush;        ///< for regime cold
  double l2_factor = 2;              ///< bytes that are flushed or rotated over, in sizes of the L2
  std::string interleave = "abba";   ///< or "random", "none"
  std::string stop = "ci";           ///< or "stdrel", "entropy", "count"
  double max_noise_pct = 0.5;        ///< for stdrel
  double clock_tol_pct = 1;          ///< the most by which stable clocks differ
  std::string throttle = "discard";  ///< or "warn", "fail", "off"
  double throttle_pct = 75;          ///< of the stable clock; below it a sample was throttled
  bool aa = false, energy = false, isolate = false;
  // Since 1.7.
  Init init;
  double min_time_s = 0;                       ///< sampling of a case lasts at least this long
  double cooldown_s = 0;                       ///< pause before a case
  int64_t repeat_index = 0, repeat_count = 1;  ///< index and number of the runs of one command
  bool is_adversarial = false;  ///< checks' worst errors include hostile operands; since 1.8
  friend bool operator==(const RunConfig&, const RunConfig&) = default;
};

/// A property of this machine that results depend on. Since 1.4.
struct EnvironmentCheck {
  std::string code;      ///< "E_NO_NVML"
  std::string severity;  ///< "info", "warn" or "error"
  std::string text;
  friend bool operator==(const EnvironmentCheck&, const EnvironmentCheck&) = default;
};

/// How a host is configured (host_state.hpp). Since 1.7; unknown values are empty or none.
struct HostState {
  std::string governor;  ///< of the CPU's clock: "performance", "powersave", ..
  std::optional<bool> in_container;
  std::optional<int64_t> numa_node;   ///< of the first device
  std::optional<int64_t> numa_nodes;  ///< of the host
  friend bool operator==(const HostState&, const HostState&) = default;
};

/// How a GPU is configured, by its driver (nvml/device_state.hpp). Since 1.7; unknown values are
/// none.
struct DeviceState {
  std::optional<bool> mig, ecc, persistence;
  std::string compute_mode;  ///< "default", "exclusive_process", "exclusive_thread", "prohibited"
  std::optional<double> power_limit_w;
  std::optional<int64_t> other_processes;  ///< processes that compute on it
  std::optional<double> sm_default_mhz, sm_max_mhz, mem_mhz;
  std::string driver = {};  ///< "580.95.05"; since 1.19, empty if unknown
  friend bool operator==(const DeviceState&, const DeviceState&) = default;
};

/// A device of a run, and which unit of its model it is. Since 1.6.
struct RunDevice : DeviceInfo {
  std::string uuid;        ///< "GPU-" and 32 digits: identifies this unit; empty on the CPU
  std::string pci_bus_id;  ///< "0000:3b:00.0"; empty on the CPU
  DeviceState state = {};  ///< unknown on the CPU
};

/// What --lock-clocks did to the device's clocks. Since 1.5.
struct LockedClocks {
  std::string asked;             ///< "base", "max" or a number
  std::optional<double> sm_mhz;  ///< none: what the device sustains within its power limit
  friend bool operator==(const LockedClocks&, const LockedClocks&) = default;
};

struct RunResult {
  std::string id, started;  ///< RFC 3339, UTC
  double duration_s = 0;
  bool complete = false;
  int exit_code = 0;
  /// A unique name of the process that measured. Since 1.11; empty in older
  /// results and with --isolate, where each case has its own process.
  std::string process;
  std::vector<std::string> argv;
  std::string note;                                          ///< of --note; since 1.6, like context
  std::vector<std::pair<std::string, std::string>> context;  ///< from --context: names and values
  std::vector<std::string> tags;  ///< of --tag; since 1.19, like parent_suite
  std::string parent_suite;       ///< of the suite that ran this; or empty
  std::string tool_version, git_sha, build_type, compiler, cuda_toolkit, cuda_archs;
  std::string flags, cuda_flags;  ///< compiler flags, as given to the build; since 1.15
  bool git_dirty = false;
  std::string hostname, os, kernel, cpu;
  int cores = 0;
  HostState host_state;
  std::vector<RunDevice> devices;
  std::optional<LockedClocks> locked_clocks;  ///< of the first device
  RunConfig config;
  Calibration calibration;
  std::vector<CaseResult> cases;
  int64_t impossible_cases = 0;
  std::vector<std::pair<std::string, int64_t>> impossible_reasons;
  std::vector<OpSummary> op_summaries;
  std::vector<std::pair<std::string, std::string>> tolerances;  ///< by op; since 1.15
  int64_t peak_host_bytes = 0;
  std::vector<EnvironmentCheck> environment_checks;
  std::string samples_missing;  ///< the side-car that was expected (samples_file.hpp), or empty
  std::string newer_schema;     ///< the version of a document that is newer than kSchemaVersion
};

/// How a cold measurement's operands were kept out of the L2: "flush of 2 x L2", "rotation over 2 x
/// L2, 8 buffers"; empty for other regimes. Times by different methods are not comparable.
std::string cold_method(const RunConfig& config, const Measurement& m, bool names_buffers = true);

std::string_view to_string(Regime regime);
std::string_view to_string(Cache cache);
std::string_view to_string(Baseline baseline);
std::string_view to_string(Status status);

}  // namespace wide::bench
