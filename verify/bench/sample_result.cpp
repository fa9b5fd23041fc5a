// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/bench/sample_result.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "bench/document/case_id.hpp"
#include "bench/run/runner.hpp"
#include "bench/statistics/statistics.hpp"

namespace wide::bench {

Measurement sample_measurement(Regime regime, double median_ns) {
  Measurement m;
  m.regime = regime;
  m.timer = regime == Regime::graph ? "graph" : "event";
  m.iters_per_sample = 4;
  m.stop_reason = "ci";
  m.warmup_s = 0.2125;
  m.walltime_s = 0.1 + 0.2;  // has no short decimal form
  for (int i = 0; i < 40; ++i) {
    m.samples_ns.push_back(median_ns * (1 + 1e-3 / (i + 3)));
    m.samples_round.push_back(i / 4);
    m.samples_sm_mhz.push_back(1980 - i);
    m.samples_order.push_back(12 * i + 5);
    m.samples_t_rel_s.push_back(i / 7.);
    m.samples_flags.push_back(i == 0 ? kThrottledSample | kSevereOutlier : 0);
  }
  m.flops_per_s = 1.23456789e13;
  m.mem_bw_bytes_per_s = 4.8e12 / 7;
  m.pct_of_floor = 61.5;
  m.pct_of_mem_peak = 50. / 3;
  m.pct_of_flop_peak = 7.25;
  m.roofline_bound = "memory";
  m.stats = {40,
             median_ns,
             1. / 3,
             0.1,
             median_ns - 3,
             median_ns - 2,
             median_ns - 1,
             median_ns,
             median_ns + 1,
             median_ns + 2,
             median_ns + 1e-9,
             5e-324,
             median_ns - 0.5,
             median_ns + 0.5,
             median_ns + 1e-10,
             2,
             "bca",
             10'000,
             -1. / 7,
             median_ns + 1,
             {1, 2, 3, 4},
             -0.25,
             0.3,
             -1.5e-3,
             Normality{"shapiro_wilk", 0.97, 1. / 3},
             Dip{0.0625, 1. / 3},
             1. / 7,
             std::vector<std::string>{},
             42,
             true};
  m.warnings = {"throttled: 3 of 43 samples discarded"};
  m.discarded_throttle = 3;
  m.kept_throttle = 1;
  m.clocks = Clocks{1960.5, 1941, {"sw_power_cap", "hw_thermal"}, 61, 412.5, 1965};
  m.energy = Energy{"nvml_total_energy", 1.25, 500, 1. / 3, 400, 70, ""};
  m.enqueue_ns_per_call = 2400.5;
  m.launch_overhead_ns_per_launch = -12.25;
  m.items_per_s = 5e6 + 1. / 3;
  if (regime == Regime::stream) return m;
  m.stats.normality.reset();
  m.pct_of_flop_peak.reset();
  m.items_per_s.reset();
  m.roofline_bound.clear();
  m.stats.dip->p = 0.001;
  m.stats.doubts = {"wide_interval", "multimodal"};
  m.energy->joules.reset();
  m.energy->invalid_reason = "window<1s";
  m.cache = Cache::rotate;
  m.buffers_rotated = 8;
  m.rotation_covers_l2 = true;
  return m;
}

RunnerResult sample_runner(const std::string& name, double stream_ns, double graph_ns) {
  RunnerResult r;
  r.name = name;
  r.strategy = name;
  r.policy = "m16n64";
  r.verify = {"pass", "pass", 0.31, 3, 0, 0, 4096, 65536, "", {"w/1.safetensors"}, 7, true};
  r.explain = name + ": because \"it\" fits";
  r.workspace_bytes = 256;
  r.launches_per_call = 1;
  r.peak_device_bytes = 4'000'256;
  r.plan_ns = 12'000;
  r.first_call_ns = 3e6;
  r.kernels = {{name + "_kernel", {8, 1, 1}, {128, 1, 1}, 64, 1024, 49152, 0, 4, 25}};
  r.measurements.push_back(sample_measurement(Regime::stream, stream_ns));
  if (graph_ns > 0) r.measurements.push_back(sample_measurement(Regime::graph, graph_ns));
  return r;
}

LaunchCounters sample_launch() {
  return {"simt_kernel",
          {8, 1, 1},
          {128, 1, 1},
          {{"instructions_fp32", 2'000'000},
           {"instructions_integer", 1'000'000},
           {"load_sectors", 300},
           {"load_ideal_sectors", 200},
           {"shared_load_passes", 400},
           {"shared_load_extra", 100}},
          {{"x", {{"read_sectors", 125'000}, {"reread_bytes", 1'000'000}}},
           {"y", {{"write_sectors", 31'250}}}}};
}

Speedup sample_speedup(const std::string& strategy, Baseline baseline, double ratio) {
  return {strategy,
          baseline,
          baseline == Baseline::graph ? Regime::graph : Regime::stream,
          12,
          ratio,
          ratio - 0.0123,
          ratio + 0.0123,
          ratio > 1 ? "faster" : "slower",
          0.4,
          0.03125};
}

catalog::Case sample_point(const std::string& op, int64_t n, const std::string& dtype) {
  return catalog::Case(op, {{"n", n, false},
                            {"batch", int64_t{16}, false},
                            {"d", int64_t{256}, false},
                            {"in", int64_t{0}, true},
                            {"dtype", dtype, false}});
}

CaseResult sample_case(const std::string& op, int64_t n, const std::string& dtype) {
  CaseResult c;
  c.point = sample_point(op, n, dtype);
  c.case_id = case_id({}, c.point);
  c.reproduce = "wbench run --op " + op + " --n " + std::to_string(n) + " --device cuda";
  c.cost = {1e9 + 1. / 3, 3e6, 1e6, 64};
  c.footprint_bytes = 4'000'000;
  c.floor_ns = 2345.678;
  c.strategies = {sample_runner("sequential", 45678.9, 30123.4),
                  sample_runner("simt", 12345.6, 9876.5)};
  c.strategies[1].verified = false;
  c.strategies[1].kernels[0].registers.reset();
  c.peak_flops_per_s = 9.9e14 + 1. / 3;
  c.peak_mem_bw_bytes_per_s = 4.917e12;
  c.noise_floors = {{Baseline::loop, Regime::stream, 12, 1.001, 0.998, 1.004, 0.4}};
  c.strategies[1].launches.push_back(sample_launch());
  c.baselines = {sample_runner("loop", 61234.5, 0), sample_runner("streams", 41234.5, 0),
                 sample_runner("graph", 0.125, 33333.3)};
  c.baselines[2].measurements.erase(c.baselines[2].measurements.begin());
  for (const char* strategy : {"sequential", "simt"}) {
    const double ratio = strategy[1] == 'e' ? 0.9 : 4.96;
    for (const Baseline b : {Baseline::loop, Baseline::streams, Baseline::graph})
      c.speedups.push_back(sample_speedup(strategy, b, ratio));
  }
  return c;
}

CaseResult sample_bad_case() {
  CaseResult c = sample_case("layernorm", 100, "fp32");
  c.speedups.clear();
  c.strategies.clear();
  const auto add = [&](const char* name, Status status, const char* reason) {
    RunnerResult r;
    r.name = name;
    r.status = status;
    r.reason = reason;
    c.strategies.push_back(r);
  };
  add("wrong", Status::verify_failed,
      "member 3, row 17, column 200: got nan, expected 0.123456789, tolerance 1.2e-05, and more");
  c.strategies.back().verify = {"fail", "not_run", std::nullopt, 3, 17, 5, 4096, 65536, "got nan"};
  add("throws", Status::failed, "a | pipe, a \"quote\",\na line and \x1b[31m an escape");
  add("large", Status::oom, "no memory");
  add("absent", Status::skipped, "needs dtype fp16");
  c.strategies.push_back(sample_runner("too_good", 12.5, 9.5));
  c.strategies.back().status = Status::implausible;
  c.strategies.back().reason = "9.9 TB/s above the ceiling";
  c.baselines.push_back(sample_runner("torch:bmm", 51234.5, 43333.3));
  c.baselines.back().peer = "torch 2.6.0";
  c.speedups = {sample_speedup("too_good", Baseline::peer, 4.96)};
  c.speedups[0].peer = "torch:bmm";
  c.status = Status::verify_failed;
  c.reason = "wrong: member 3";
  return c;
}

RunResult sample_result() {
  RunResult r;
  r.id = "2026-01-31T12:00:00Z-4f2a";
  r.started = "2026-01-31T12:00:00Z";
  r.duration_s = 12.3;
  r.exit_code = 3;
  r.argv = {"wbench", "run", "--op", "linear,layernorm"};
  r.note = "a note with \"quotes\", | pipes and <tags>";
  r.context = {{"ci_job", "123"}, {"<b>", ""}};
  r.tags = {"main"};
  r.parent_suite = "nightly";
  r.tool_version = "0.1.0";
  r.git_sha = "0123456789012345678901234567890123456789";
  r.git_dirty = true;
  r.build_type = "Release";
  r.compiler = "GNU 12.2.0";
  r.cuda_toolkit = "13.0.88";
  r.cuda_archs = "80;90a";
  r.flags = "-O3 -DNAME=\"x\"";
  r.cuda_flags = "-O3 -lineinfo";
  r.tolerances = {{"linear", "4 u sum |x w|"}, {"layernorm", "16 u"}};
  r.hostname = "h\xc3\xb6st";
  r.os = "Debian GNU/Linux 12";
  r.kernel = "6.1";
  r.cpu = "a CPU";
  r.cores = 16;
  r.host_state = {"powersave", true, 1, 2};
  RunDevice device;
  device.device = {DeviceType::cuda, 1};
  device.name = "NVIDIA H200";
  device.compute_capability = 90;
  device.num_multiprocessors = 132;
  device.last_level_cache_bytes = 60 << 20;
  device.memory_bytes = int64_t{141} << 30;
  device.driver_version = 13000;
  device.runtime_version = 13000;
  device.uuid = "GPU-01234567-89ab-cdef-0123-456789abcdef";
  device.pci_bus_id = "0000:3b:00.0";
  device.state = {false, true, true, "exclusive_process", 700, 2, 1755, 1980, 3201.5, "580.95.05"};
  r.devices = {device};
  r.locked_clocks = LockedClocks{"max", 1980};
  r.config.preset = "quick";
  r.config.regimes = {Regime::stream, Regime::graph};
  r.config.budget_s = 60.5;
  r.config.cache = Cache::rotate;
  r.config.stop = "stdrel";
  r.config.aa = r.config.isolate = true;
  r.config.init = {"normal", std::nullopt, std::nullopt};
  r.config.min_time_s = 0.1;
  r.config.cooldown_s = 0.25;
  r.config.repeat_index = 1;
  r.config.repeat_count = 3;
  r.calibration = {4.1e12, {{"fp32", 5.2e13}, {"fp16", 7.7e14}}, 2345.6, 32, 1500, 2400, 5100.5,
                   41000};
  r.cases = {sample_case("linear", 4, "fp16"), sample_case("linear", 16, "fp16"),
             sample_case("linear", 16, "fp32"), sample_bad_case()};
  r.impossible_reasons = {{"linear: 12 heads do not divide 256", 3}};
  r.impossible_cases = 3;
  r.op_summaries = {{"linear",
                     Regime::stream,
                     Baseline::loop,
                     4,
                     std::nullopt,
                     {{"simt", 3}, {"sequential", 0}},
                     4.96,
                     "simt",
                     "n=4 batch=16 d=256 dtype=fp16",
                     4.9,
                     2,
                     4,
                     {{"simt", "batch=16 d=256 dtype=fp16", "a+b*n", 3, 1234.5, 1. / 3, 2.5},
                      {"sequential", "", "a", 4, 12.5, 0, 0.125}}},
                    {"linear",
                     Regime::graph,
                     Baseline::graph,
                     std::nullopt,
                     std::nullopt,
                     {},
                     std::nullopt,
                     "",
                     "",
                     std::nullopt,
                     std::nullopt,
                     std::nullopt,
                     {}}};
  r.peak_host_bytes = 123'456'789;
  r.environment_checks = {{"E_NO_NVML", "warn", "clocks are unknown: no \"library\""}};
  return r;
}

RunResult short_sample_result() {
  RunResult result = sample_result();
  for (CaseResult& c : result.cases) {
    for (auto* runners : {&c.strategies, &c.baselines}) {
      for (RunnerResult& r : *runners) {
        for (Measurement& m : r.measurements) {
          for (auto* column : {&m.samples_ns, &m.samples_sm_mhz, &m.samples_t_rel_s})
            column->resize(3);
          for (auto* column : {&m.samples_round, &m.samples_order, &m.samples_flags})
            column->resize(3);
        }
      }
    }
  }
  return result;
}

void fit_samples(Measurement& m) {
  const Statistics& s = m.stats;
  for (int i = 0; i < 40; ++i) {
    m.samples_ns.at(static_cast<size_t>(i)) = i == 0   ? s.min_ns
                                              : i < 12 ? s.q1_ns
                                              : i < 28 ? s.median_ns
                                              : i < 39 ? s.q3_ns
                                                       : s.max_ns;
  }
}

void make_consistent(CaseResult& c) {
  catalog::PrimitiveSpec spec;
  spec.version = static_cast<int>(c.op_version);
  c.case_id = case_id(spec, c.point);
  int64_t order = 0;
  const auto of = [](const auto& group, const std::string& name, Regime regime) {
    for (const RunnerResult& r : group) {
      for (const Measurement& m : r.measurements) {
        if (r.name == name && m.regime == regime)
          return round_medians(m.samples_ns, m.samples_round);
      }
    }
    return RoundMedians();
  };
  for (auto* group : {&c.strategies, &c.baselines}) {
    for (RunnerResult& r : *group) {
      for (Measurement& m : r.measurements) {
        for (int64_t& place : m.samples_order) place = order++;
        const double time_s = m.stats.median_ns * 1e-9;
        if (m.flops_per_s) m.flops_per_s = c.cost.flops / time_s;
        if (m.mem_bw_bytes_per_s) m.mem_bw_bytes_per_s = c.cost.bytes() / time_s;
        if (m.items_per_s) m.items_per_s = c.cost.items / time_s;
        if (m.pct_of_floor) m.pct_of_floor = 100 * c.floor_ns / m.stats.median_ns;
      }
    }
  }
  for (Speedup& s : c.speedups) {
    const std::vector<double> logs = paired_log_ratios(
        of(c.baselines, s.peer.empty() ? std::string(to_string(s.baseline)) : s.peer, s.regime),
        of(c.strategies, s.strategy, s.regime));
    if (logs.empty() || !s.speedup_ratio) continue;
    s.pairs = std::ssize(logs);
    s.speedup_ratio = std::exp(median(logs));
    s.ci_lo = *s.speedup_ratio - 0.0123;
    s.ci_hi = *s.speedup_ratio + 0.0123;
    s.verdict = *s.ci_lo > 1 ? "faster" : *s.ci_hi < 1 ? "slower" : "same";
  }
}

RunResult consistent(RunResult result) {
  for (CaseResult& c : result.cases) {
    for (auto* group : {&c.strategies, &c.baselines}) {
      for (RunnerResult& r : *group) {
        for (Measurement& m : r.measurements) {
          m.stats.max_ns = std::max(m.stats.max_ns, m.stats.q3_ns);
          m.stats.q1_ns = std::max(m.stats.q1_ns, m.stats.min_ns);
          if (m.samples_ns.size() == 40) fit_samples(m);
        }
      }
    }
    make_consistent(c);
  }
  return result;
}

}  // namespace wide::bench
