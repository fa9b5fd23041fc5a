// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/machine/host_state.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <system_error>

namespace wide::bench {

namespace {

namespace fs = std::filesystem;

/// A file's text without its newline; empty if there is no such file.
std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 10 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

std::optional<bool> is_in_container(const fs::path& root) {
  std::error_code error;
  for (const char* mark : {".dockerenv", "run/.containerenv", "run/systemd/container"}) {
    if (fs::exists(root / mark, error)) return true;
  }
  std::ifstream groups(root / "proc/1/cgroup");
  bool is_systemd = false;
  for (std::string line; std::getline(groups, line);) {
    for (const char* name : {"docker", "libpod", "containerd", "lxc", "kubepods"}) {
      if (line.find(name) != std::string::npos) return true;
    }
    is_systemd = is_systemd || line.ends_with("/init.scope");
  }
  return is_systemd ? std::optional(false) : std::nullopt;
}

std::optional<int64_t> count_nodes(const fs::path& root) {
  std::error_code error;
  int64_t count = 0;
  for (const auto& entry : fs::directory_iterator(root / "sys/devices/system/node", error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("node") && is_number(name.substr(4))) ++count;
  }
  return count > 0 ? std::optional(count) : std::nullopt;
}

std::optional<int64_t> node_of(std::string pci_bus_id, const fs::path& root) {
  if (pci_bus_id.empty()) return std::nullopt;
  for (char& c : pci_bus_id) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const std::string node = first_line(root / "sys/bus/pci/devices" / pci_bus_id / "numa_node");
  return is_number(node) ? std::optional<int64_t>(std::stoll(node)) : std::nullopt;  // -1: unknown
}

}  // namespace

HostState host_state(const std::string& pci_bus_id, const fs::path& root) {
  HostState state;
  state.governor = first_line(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  state.in_container = is_in_container(root);
  state.numa_nodes = count_nodes(root);
  state.numa_node = node_of(pci_bus_id, root);
  if (!state.numa_node && state.numa_nodes == 1) state.numa_node = 0;
  return state;
}

}  // namespace wide::bench
