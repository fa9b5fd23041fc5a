// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `info`: build, machine, devices. Works without a device and reports why there is none.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <sstream>
#include <system_error>

#include "bench/cli/cli.hpp"
#include "bench/cli/commands.hpp"
#include "bench/command/options.hpp"
#include "bench/command/output_files.hpp"
#include "bench/command/outputs.hpp"
#include "bench/command/running.hpp"
#include "bench/document/json_number.hpp"
#include "bench/document/machine_json.hpp"
#include "bench/document/result_json.hpp"
#include "bench/machine/calibrate.hpp"
#include "bench/machine/environment.hpp"
#include "bench/machine/machine_checks.hpp"
#include "bench/page/assets.hpp"
#include "bench/process/exit_code.hpp"
#include "bench/process/interrupt.hpp"
#include "bench/process/simulation.hpp"
#include "bench/report/report.hpp"
#include "bench/report/table.hpp"
#include "bench/report/terminal.hpp"
#include "bench/self_check/report.hpp"
#include "bench/self_check/run.hpp"
#include "bench/timer/sampler.hpp"
#include "host/core/file.hpp"
#include "host/core/text.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Json = nlohmann::ordered_json;

struct Facts {
  RunResult run;  ///< build, host, devices; the CPU comes first
  CudaAvailability cuda;
  std::vector<std::string> broken_devices;  ///< seen by the runtime, but unable to make a context
  std::vector<Calibration> calibrations;    ///< of the run's devices, if requested
  std::optional<std::vector<SelfCheck>> checks;
};

Context context_of(const DeviceInfo& info) {
  return info.device.type == DeviceType::cpu ? Context::cpu() : Context::cuda(info.device.ordinal);
}

constexpr const char* kNoTimes = "the simulated GPU has no times";

bool has_times(const DeviceInfo& info) {
  return info.device.type == DeviceType::cpu || !is_simulated();
}

/// "cuda" is the first GPU, as everywhere; empty means all.
bool is_asked_for(const DeviceInfo& info, const std::string& device) {
  return device.empty() || to_string(info.device) == (device == "cuda" ? "cuda:0" : device);
}

Facts collect(bool no_gpu, const InfoOptions& options) {
  Facts facts;
  facts.cuda = no_gpu ? CudaAvailability{0, "not asked (--no-gpu)"} : query_cuda();
  facts.run.devices.push_back(device_of(Context::cpu()));
  for (int i = 0; i < facts.cuda.num_devices; ++i) {
    try {
      facts.run.devices.push_back(device_of(Context::cuda(i)));
    } catch (const Error& error) {
      facts.broken_devices.push_back(fmt::format("cuda:{}: {}", i, error.what()));
    }
  }
  describe_environment(facts.run);
  for (const DeviceInfo& device : facts.run.devices) {
    if (!options.calibrates) break;
    const bool is_measured = is_asked_for(device, options.device) && has_times(device);
    facts.calibrations.push_back(is_measured ? calibrate(context_of(device)) : Calibration());
  }
  return facts;
}

/// The costs of launches and the timer; what is unknown on this device is left out.
std::string costs_text(const Calibration& c) {
  std::string text = fmt::format("timer quantum {}, floor {}", format_time(c.timer_quantum_ns),
                                 format_time(c.timer_floor_ns));
  const std::pair<const char*, double> costs[] = {{"empty launch", c.empty_launch_ns},
                                                  {"host launch", c.host_launch_ns},
                                                  {"graph launch", c.graph_launch_ns},
                                                  {"L2 flush", c.flush_ns}};
  for (const auto& [name, ns] : costs) {
    if (ns > 0) text += fmt::format(", {} {}", name, format_time(ns));
  }
  return text;
}

std::string device_text(const RunDevice& d) {
  if (d.device.type == DeviceType::cpu) {
    return fmt::format("{}, {}, last-level cache {} MiB", d.name,
                       counted(d.num_multiprocessors, "thread"), d.last_level_cache_bytes >> 20);
  }
  return fmt::format("{}, sm_{}, {} SMs, {} GiB, L2 {} MiB, driver {}.{}, {}, PCI {}", d.name,
                     d.compute_capability, d.num_multiprocessors, d.memory_bytes >> 30,
                     d.last_level_cache_bytes >> 20, d.driver_version / 1000,
                     d.driver_version % 1000 / 10, d.uuid, d.pci_bus_id);
}

/// What the driver reports; empty if nothing.
std::string device_state_text(const DeviceState& s) {
  std::vector<std::string> words;
  const auto add_mode = [&](const char* name, const std::optional<bool>& is_on) {
    if (is_on) words.push_back(fmt::format("{} {}", name, *is_on ? "on" : "off"));
  };
  const auto add_number = [&](const char* name, const std::optional<double>& value,
                              const char* unit) {
    if (value) words.push_back(fmt::format("{} {:g} {}", name, *value, unit));
  };
  add_mode("MIG", s.mig);
  add_mode("ECC", s.ecc);
  add_mode("persistence", s.persistence);
  if (!s.compute_mode.empty()) words.push_back("compute mode " + s.compute_mode);
  add_number("power limit", s.power_limit_w, "W");
  add_number("SM clock", s.sm_default_mhz, "MHz");
  add_number("at most", s.sm_max_mhz, "MHz");
  add_number("memory clock", s.mem_mhz, "MHz");
  if (s.other_processes) {
    words.push_back(counted(*s.other_processes, "other process", "other processes"));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

/// What is known of the host, appended to what is always known.
std::string host_state_text(const HostState& s) {
  std::string text;
  if (!s.governor.empty()) text += ", governor " + s.governor;
  if (s.in_container) text += *s.in_container ? ", in a container" : ", in no container";
  if (s.numa_nodes) text += ", " + counted(*s.numa_nodes, "NUMA node");
  return text;
}

std::string default_device(const Facts& facts) {
  return facts.run.devices.size() > 1 ? to_string(facts.run.devices[1].device) : "cpu";
}

std::vector<std::vector<std::string>> rows_of(const Facts& facts) {
  const RunResult& r = facts.run;
  std::vector<std::vector<std::string>> rows{
      {"fact", "value"},
      {"wbench",
       r.tool_version + " " + r.git_sha.substr(0, 12) + (r.git_dirty ? " (changed)" : "")},
      {"build", r.build_type + ", " + r.compiler},
      {"reports", *kReportScript != '\0'
                      ? "with interactive charts"
                      : fmt::format("with static charts only: {}", kWhyNoReportScript)},
      {"CUDA toolkit", r.cuda_toolkit.empty() ? "none: built without CUDA"
                                              : r.cuda_toolkit + ", architectures " + r.cuda_archs},
      {"host", r.hostname + ", " + r.os + ", Linux " + r.kernel + host_state_text(r.host_state)}};
  for (size_t i = 0; i < r.devices.size(); ++i) {
    rows.push_back({to_string(r.devices[i].device), device_text(r.devices[i])});
    const std::string state = device_state_text(r.devices[i].state);
    if (!state.empty()) rows.push_back({"  state", state});
    if (i < facts.calibrations.size() && !has_times(r.devices[i]))
      rows.push_back({"  ceilings", std::string("none: ") + kNoTimes});
    if (i >= facts.calibrations.size() || facts.calibrations[i] == Calibration()) continue;
    rows.push_back({"  ceilings", ceilings_text(facts.calibrations[i])});
    rows.push_back({"  costs", costs_text(facts.calibrations[i])});
  }
  for (const EnvironmentCheck& check : machine_checks(r))
    rows.push_back({check.severity, check.text});
  if (facts.cuda.num_devices == 0) rows.push_back({"cuda", "not usable: " + facts.cuda.reason});
  for (const std::string& reason : facts.broken_devices) rows.push_back({"cuda", reason});
  rows.push_back({"default device", default_device(facts)});
  return rows;
}

/// The same objects as in a result, so that one reader handles both.
Json json_of(const Facts& facts) {
  const Json result = to_json(facts.run);
  const bool is_interactive = *kReportScript != '\0';
  Json cuda = {{"devices", facts.cuda.num_devices},
               {"reason", json_text(facts.cuda.reason)},
               {"broken", facts.broken_devices}};
  Json calibrations = Json::array();
  for (const Calibration& calibration : facts.calibrations)
    calibrations.push_back(calibration_json(calibration));
  Json document = {{"tool", result["run"]["tool"]},
                   {"started", facts.run.started},
                   {"host", result["host"]},
                   {"reports",
                    {{"interactive", is_interactive},
                     {"reason", is_interactive ? Json(nullptr) : Json(kWhyNoReportScript)}}},
                   {"cuda", cuda},
                   {"devices", result["devices"]},
                   {"calibrations", calibrations},
                   {"default_device", default_device(facts)}};
  if (facts.checks) document["self_check"] = to_json(*facts.checks);
  return document;
}

/// Whether a document can be replaced by a later one.
bool is_file(const std::string& path) {
  std::error_code error;
  return path != "-" &&
         (!std::filesystem::exists(path, error) || std::filesystem::is_regular_file(path, error));
}

/// Runs the self-checks of the requested devices; of a missing GPU, reports why. Writes documents
/// after every check, because a device that hangs prevents later ones.
void check_all(Facts& facts, const InfoOptions& options) {
  std::vector<SelfCheck> ended;
  const auto append = [&](const std::vector<SelfCheck>& more) {
    facts.checks = ended;
    facts.checks->insert(facts.checks->end(), more.begin(), more.end());
  };
  const auto write = [&](const std::vector<SelfCheck>& so_far) {
    append(so_far);
    for (const std::string& path : options.json) {
      if (is_file(path)) write_file(path, dumped(json_of(facts)));
    }
  };
  append({});
  for (const DeviceInfo& info : facts.run.devices) {
    if (is_asked_for(info, options.device)) append(check_device(context_of(info), write));
    ended = *facts.checks;
  }
  const bool has_cuda = facts.run.devices.size() > 1;
  if (!has_cuda && options.device.empty()) {
    append(
        skip_cuda(facts.broken_devices.empty() ? facts.cuda.reason : facts.broken_devices.front()));
  }
}

int info_of_ops(const GlobalOptions& global, const InfoOptions& options, std::ostream& out) {
  Json document = Json::object();
  std::string listings;
  for (const char* what : {"ops", "tolerances", "strategies", "policies", "axes", "presets"}) {
    std::ostringstream json, listing;
    (void)command_list(global, what, options.ops, "-", json);
    (void)command_list(global, what, options.ops, "", listing);
    document[what] = Json::parse(json.str());
    if (document[what].empty()) continue;
    listings += (listings.empty() ? "" : "\n") + listing.str();
  }
  if (!write_documents(document.dump(1) + "\n", options.json, out)) out << listings;
  return kSuccess;
}

}  // namespace

int command_info(const GlobalOptions& global, const InfoOptions& options, std::ostream& out,
                 std::ostream& err) {
  NamedFiles outputs;
  for (const std::string& path : options.json) outputs.push_back({"--json", path});
  require_outputs(outputs);
  if (!options.ops.empty()) return info_of_ops(global, options, out);
  Selection asked;
  asked.device = options.device;
  asked.no_gpu = global.no_gpu;
  if (!asked.device.empty() && !make_context(asked, err)) return kEnvironment;
  if (options.calibrates && is_simulated() && asked.device.starts_with("cuda"))
    throw Error(ErrorCode::invalid_argument, std::string("info --calibrate: ") + kNoTimes);
  if (options.checks_measuring) install_interrupt_handler();
  Facts facts = collect(global.no_gpu, options);
  if (options.checks_measuring) check_all(facts, options);
  if (!write_documents(dumped(json_of(facts)), options.json, out)) {
    out << listing_text(rows_of(facts), output_width());
    if (facts.checks) out << "\n" << to_text(*facts.checks, output_width());
  }
  if (facts.checks && has_failed(*facts.checks)) return kEnvironment;
  return facts.checks && is_interrupted() ? kInterrupted : kSuccess;
}

}  // namespace wide::bench
