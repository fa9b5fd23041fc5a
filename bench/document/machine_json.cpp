// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/document/machine_json.hpp"

#include <charconv>

#include "bench/document/json_number.hpp"

namespace wide::bench {

namespace {

using Json = nlohmann::ordered_json;

Json clocks(const DeviceState& s, const std::optional<LockedClocks>& locked) {
  Json lock;
  if (locked) lock = {{"asked", locked->asked}, {"sm_mhz", json_number(locked->sm_mhz)}};
  return {{"sm_default_mhz", json_number(s.sm_default_mhz)},
          {"sm_max_mhz", json_number(s.sm_max_mhz)},
          {"mem_mhz", json_number(s.mem_mhz)},
          {"locked", lock}};
}

Json device(const RunDevice& d, const std::optional<LockedClocks>& locked) {
  return {{"id", d.device.ordinal},
          {"device", to_string(d.device)},
          {"name", d.name},
          {"uuid", json_text(d.uuid)},
          {"pci_bus", json_text(d.pci_bus_id)},
          {"compute_capability", d.compute_capability},
          {"sm_count", d.num_multiprocessors},
          {"l2_bytes", json_known(d.last_level_cache_bytes)},
          {"mem_bytes", json_known(d.memory_bytes)},
          {"driver", json_text(d.state.driver)},
          {"cuda_driver", d.driver_version},
          {"cuda_runtime", d.runtime_version},
          {"mig", json_or_null(d.state.mig)},
          {"ecc", json_or_null(d.state.ecc)},
          {"persistence", json_or_null(d.state.persistence)},
          {"compute_mode", json_text(d.state.compute_mode)},
          {"power_limit_w", json_number(d.state.power_limit_w)},
          {"other_processes", json_or_null(d.state.other_processes)},
          {"clocks", clocks(d.state, locked)}};
}

DeviceState parse_device_state(const Field& f) {
  if (!f.has("mig")) return {};  // since 1.7
  const Field clocks = f["clocks"];
  return {f["mig"].optional_boolean(),
          f["ecc"].optional_boolean(),
          f["persistence"].optional_boolean(),
          f["compute_mode"].text_or_empty(),
          f["power_limit_w"].optional_amount(),
          f["other_processes"].optional_count(),
          clocks["sm_default_mhz"].optional_amount(),
          clocks["sm_max_mhz"].optional_amount(),
          clocks["mem_mhz"].optional_amount()};
}

RunDevice parse_device(const Field& f) {
  RunDevice d;
  const std::string where = f["device"].text();
  if (where.starts_with("cuda:")) {
    d.device.type = DeviceType::cuda;
    std::from_chars(where.data() + 5, where.data() + where.size(), d.device.ordinal);
  }
  d.name = f["name"].text();
  d.compute_capability = f["compute_capability"].small_count();
  d.num_multiprocessors = f["sm_count"].small_count();
  d.last_level_cache_bytes = f["l2_bytes"].count_or(0);
  d.memory_bytes = f["mem_bytes"].count_or(0);
  d.driver_version = f["cuda_driver"].small_count();
  d.runtime_version = f["cuda_runtime"].small_count();
  if (const auto uuid = f.later("uuid")) d.uuid = uuid->text_or_empty();  // since 1.6
  if (const auto bus = f.later("pci_bus")) d.pci_bus_id = bus->text_or_empty();
  d.state = parse_device_state(f);
  if (const auto driver = f.later("driver"))
    d.state.driver = driver->text_or_empty();  // since 1.19
  return d;
}

/// Of the first device, since 1.5.
std::optional<LockedClocks> parse_locked(const Field& device) {
  const auto clocks = device.later("clocks");
  if (!clocks || (*clocks)["locked"].is_null()) return std::nullopt;
  const Field locked = (*clocks)["locked"];
  return LockedClocks{locked["asked"].text(), locked["sm_mhz"].optional_amount()};
}

HostState parse_host_state(const Field& f) {
  if (!f.has("governor")) return {};  // since 1.7
  return {f["governor"].text_or_empty(), f["container"].optional_boolean(),
          f["numa_node"].optional_count(), f["numa_nodes"].optional_count()};
}

}  // namespace

Json host_json(const RunResult& r) {
  return {{"hostname", r.hostname},
          {"os", r.os},
          {"kernel", r.kernel},
          {"cpu", r.cpu},
          {"cores", r.cores},
          {"governor", json_text(r.host_state.governor)},
          {"container", json_or_null(r.host_state.in_container)},
          {"numa_node", json_or_null(r.host_state.numa_node)},
          {"numa_nodes", json_or_null(r.host_state.numa_nodes)}};
}

Json devices_json(const RunResult& r) {
  Json devices = Json::array();
  for (const RunDevice& d : r.devices)
    devices.push_back(device(d, devices.empty() ? r.locked_clocks : std::nullopt));
  return devices;
}

Json calibration_json(const Calibration& c) {
  Json rates = Json::object();
  for (const auto& [dtype, rate] : c.flops_per_s) rates[dtype] = json_number(rate);
  return {{"mem_bw_bytes_per_s", json_known(c.mem_bw_bytes_per_s)},
          {"flops_per_s", rates},
          {"empty_launch_ns", json_known(c.empty_launch_ns)},
          {"timer_quantum_ns", json_known(c.timer_quantum_ns)},
          {"timer_floor_ns", json_known(c.timer_floor_ns)},
          {"host_launch_ns", json_known(c.host_launch_ns)},
          {"graph_launch_ns", json_known(c.graph_launch_ns)},
          {"flush_ns", json_known(c.flush_ns)}};
}

Json checks_json(const RunResult& r) {
  Json checks = Json::array();
  for (const EnvironmentCheck& e : r.environment_checks)
    checks.push_back({{"code", e.code}, {"severity", e.severity}, {"text", e.text}});
  return checks;
}

void parse_machine(const Field& root, RunResult& r) {
  const Field host = root["host"];
  r.hostname = host["hostname"].text();
  r.os = host["os"].text();
  r.kernel = host["kernel"].text();
  r.cpu = host["cpu"].text();
  r.cores = host["cores"].small_count();
  r.host_state = parse_host_state(host);
  for (const Field& device : root["devices"].items()) {
    if (r.devices.empty()) r.locked_clocks = parse_locked(device);
    r.devices.push_back(parse_device(device));
  }
  const Field calibration = root["calibration"];
  r.calibration.mem_bw_bytes_per_s = calibration["mem_bw_bytes_per_s"].amount_or_zero();
  for (const auto& [dtype, rate] : calibration["flops_per_s"].members())
    r.calibration.flops_per_s.emplace_back(dtype, rate.amount_or_zero());
  r.calibration.empty_launch_ns = calibration["empty_launch_ns"].amount_or_zero();
  r.calibration.timer_quantum_ns = calibration["timer_quantum_ns"].amount_or_zero();
  r.calibration.timer_floor_ns = calibration["timer_floor_ns"].amount_or_zero();
  r.calibration.host_launch_ns = calibration.later_amount("host_launch_ns").value_or(0);
  r.calibration.graph_launch_ns = calibration.later_amount("graph_launch_ns").value_or(0);
  r.calibration.flush_ns = calibration.later_amount("flush_ns").value_or(0);
  if (const auto checks = root.later("environment_checks")) {
    for (const Field& check : checks->items()) {
      r.environment_checks.push_back(
          {check["code"].text(), check["severity"].text(), check["text"].text()});
    }
  }
}

}  // namespace wide::bench
