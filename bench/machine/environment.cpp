// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/machine/environment.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <random>

#include "bench/machine/host_state.hpp"
#include "wide/context.hpp"
#include "wide/version.hpp"
#include "wide_build_info.hpp"

namespace wide::bench {

namespace {

std::string format_time(const char* format) {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[64];
  std::strftime(text, sizeof(text), format, &utc);
  return text;
}

std::string random_digits() {
  return fmt::format("{:08x}", std::random_device()());
}

const std::string& process_name() {
  static const std::string name = random_digits() + random_digits();
  return name;
}

std::string os_name() {
  std::ifstream file("/etc/os-release");
  const std::string key = "PRETTY_NAME=\"";
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) return line.substr(key.size(), line.size() - key.size() - 1);
  }
  return "";
}

}  // namespace

void describe_environment(RunResult& result) {
  result.started = format_time("%Y-%m-%dT%H:%M:%SZ");
  result.id = result.started + "-" + random_digits();
  if (!result.config.isolate) result.process = process_name();
  result.tool_version = version();
  result.git_sha = WIDE_GIT_SHA;
  result.git_dirty = WIDE_GIT_DIRTY;
  result.build_type = WIDE_BUILD_TYPE;
  result.compiler = WIDE_COMPILER;
  result.cuda_toolkit = WIDE_CUDA_TOOLKIT;
  result.cuda_archs = WIDE_CUDA_ARCHS;
  result.flags = WIDE_CXX_FLAGS;
  result.cuda_flags = WIDE_CUDA_FLAGS;
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  result.hostname = host;
  result.os = os_name();
  utsname names{};
  if (uname(&names) == 0) result.kernel = names.release;
  const Context cpu = Context::cpu();
  result.cpu = cpu.info().name;
  result.cores = cpu.info().num_multiprocessors;
  result.host_state = host_state(result.devices.empty() ? "" : result.devices[0].pci_bus_id);
}

}  // namespace wide::bench
