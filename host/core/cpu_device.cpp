// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Reads the CPU's name, last cache level, memory and quotas from Linux' text files.
#include "host/core/cpu_device.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>

#include "host/core/text.hpp"
#include "wide/error.hpp"

namespace wide {

namespace {

/// The size of the highest level that cpu0 lists: "262144K".
int64_t last_level_cache_bytes() {
  const std::string root = "/sys/devices/system/cpu/cpu0/cache/index";
  int64_t bytes = 0;
  for (int index = 0; index < 8; ++index) {
    std::ifstream file(root + std::to_string(index) + "/size");
    int64_t size = 0;
    char unit = 0;
    if (!(file >> size >> unit)) continue;
    bytes = std::max(bytes, size * (unit == 'M' ? 1 << 20 : 1 << 10));
  }
  return bytes;
}

int processors_of_process() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(getpid(), sizeof(mask), &mask) == 0) return CPU_COUNT(&mask);
  return static_cast<int>(std::thread::hardware_concurrency());
}

/// -1 where a file does not begin with a number: "max".
int64_t number_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  int64_t number = 0;
  return file >> number ? number : -1;
}

/// The number after a word; -1 where a file has none.
int64_t number_behind(std::string_view word, const std::filesystem::path& path) {
  std::ifstream file(path);
  for (std::string found; file >> found;) {
    int64_t number = 0;
    if (found == word && file >> number) return number;
  }
  return -1;
}

/// What a control group's limit leaves; INT64_MAX where it has none.
int64_t bytes_left(const std::filesystem::path& group, const char* limit_name,
                   const char* used_name) {
  const int64_t limit = number_in(group / limit_name), used = number_in(group / used_name);
  if (limit < 0 || used < 0) return INT64_MAX;
  int64_t taken = used;
  for (const char* files : {"active_file", "inactive_file"})
    taken -= std::max<int64_t>(number_behind(files, group / "memory.stat"), 0);
  return std::max<int64_t>(limit - std::max<int64_t>(taken, 0), 0);
}

}  // namespace

std::string cpu_model_name(std::istream& cpuinfo) {
  std::string implementer, part;
  for (std::string line; std::getline(cpuinfo, line);) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string value = line.substr(colon + 2);
    if (line.starts_with("model name")) return value;
    if (line.starts_with("CPU implementer")) implementer = value;
    if (line.starts_with("CPU part")) part = value;
  }
  return part.empty() ? "CPU" : "CPU implementer " + implementer + " part " + part;
}

int cpu_quota(const std::string& cpu_max) {
  std::istringstream text(cpu_max);
  int64_t quota = 0, period = 0;  // microseconds
  if (!(text >> quota >> period) || quota <= 0 || period <= 0) return INT_MAX;
  return static_cast<int>(std::min<int64_t>((quota - 1) / period + 1, INT_MAX));
}

int usable_cpu_threads() {
  std::string cpu_max;  // version 2 alone has the file
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::getline(file, cpu_max);
  return std::max(1, std::min(processors_of_process(), cpu_quota(cpu_max)));
}

int64_t available_memory_bytes(const std::filesystem::path& root) {
  const int64_t kibibytes = number_behind("MemAvailable:", root / "proc/meminfo");
  const std::filesystem::path groups = root / "sys/fs/cgroup";
  return std::min(
      {kibibytes < 0 ? INT64_MAX : kibibytes * 1024,
       bytes_left(groups, "memory.max", "memory.current"),
       bytes_left(groups / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes")});
}

void require_available_memory(double bytes, const std::string& what) {
  const auto available = static_cast<double>(available_memory_bytes());
  if (bytes <= available) return;
  const auto gib = [](double count) { return text(count / 0x1p30, 2, std::chars_format::fixed); };
  throw Error(ErrorCode::out_of_memory, what + " " + gib(bytes) +
                                            " GiB of memory, expected at most the " +
                                            gib(available) + " that are available");
}

DeviceInfo cpu_device_info(int num_threads) {
  // Read once: calls such as Model::get make contexts, and the kernel takes long to write cpuinfo.
  static const std::string name = [] {
    std::ifstream file("/proc/cpuinfo");
    return cpu_model_name(file);
  }();
  static const int64_t cache_bytes = last_level_cache_bytes();
  DeviceInfo info;
  info.device = {DeviceType::cpu, 0};
  info.name = name;
  info.num_multiprocessors = num_threads;
  info.last_level_cache_bytes = cache_bytes;
  info.memory_bytes =
      static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<int64_t>(sysconf(_SC_PAGESIZE));
  return info;
}

}  // namespace wide
