// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/simcuda/report.hpp"

#include <cxxabi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "verify/simt/text.hpp"

namespace wide::simcuda {

namespace {

using Json = nlohmann::ordered_json;
constexpr int kExitWithFindings = 86;

bool is_asked_for(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && std::string(value) == "1";
}

Json values_of(const simt::Counters& c) {
  Json values = Json::object();
  for (int i = 0; i < simt::kInstructionClasses; ++i) {
    const auto kind = static_cast<simt::InstructionClass>(i);
    values[std::string("instructions_") + simt::name(kind)] =
        c.instructions[static_cast<size_t>(i)];
  }
  const std::pair<const char*, int64_t> named[] = {
      {"load_requests", c.load_requests},
      {"load_sectors", c.load_sectors},
      {"load_ideal_sectors", c.load_ideal_sectors},
      {"store_requests", c.store_requests},
      {"store_sectors", c.store_sectors},
      {"store_ideal_sectors", c.store_ideal_sectors},
      {"atomic_requests", c.atomic_requests},
      {"atomic_sectors", c.atomic_sectors},
      {"async_copy_sectors", c.async_copy_sectors},
      {"async_copy_ideal_sectors", c.async_copy_ideal_sectors},
      {"async_copy_bytes", c.async_copy_bytes},
      {"bulk_load_bytes", c.bulk_load_bytes},
      {"bulk_store_bytes", c.bulk_store_bytes},
      {"bulk_prefetch_bytes", c.bulk_prefetch_bytes},
      {"unique_read_bytes", c.unique_read_bytes},
      {"unique_write_bytes", c.unique_write_bytes},
      {"shared_load_passes", c.shared_load_passes},
      {"shared_load_extra", c.shared_load_extra},
      {"shared_store_passes", c.shared_store_passes},
      {"shared_store_extra", c.shared_store_extra},
      {"matrix_passes", c.matrix_passes},
      {"matrix_extra", c.matrix_extra},
      {"mma_flops", c.mma_flops},
      {"wgmma_flops", c.wgmma_flops},
      {"block_barriers", c.block_barriers},
      {"register_reallocations", c.register_reallocations}};
  for (const auto& [name, value] : named) values[name] = value;
  return values;
}

Json launch_json(const LaunchRecord& launch) {
  Json buffers = Json::array();
  for (const simt::BufferTraffic& b : launch.counters.buffers) {
    buffers.push_back({{"name", b.name},
                       {"counters",
                        {{"unique_read_bytes", b.unique_read_bytes},
                         {"unique_write_bytes", b.unique_write_bytes},
                         {"read_sectors", b.read_sectors},
                         {"write_sectors", b.write_sectors},
                         {"reread_bytes", b.reread_bytes}}}});
  }
  const auto extents = [](const simt::Dim3& d) { return Json::array({d.x, d.y, d.z}); };
  return {{"kernel", readable(launch.kernel)},
          {"grid", extents(launch.grid)},
          {"block", extents(launch.block)},
          {"counters", values_of(launch.counters)},
          {"buffers", buffers}};
}

/// A line of JSON for each synchronising instruction of each kernel that ran: what scripts/mutate
/// chooses from.
void list_synchronisers(const Device& d) {
  for (const auto& [stub, entry] : d.kernels) {
    if (!entry->has_run) continue;
    const ptx::Kernel& kernel = entry->module->module->kernel(entry->name);
    const std::string code = simt::hexadecimal(kernel.code_hash());
    int index = 0;
    for (const auto& one : kernel.synchronisers()) {
      const Json line = {{"kernel", entry->name},
                         {"code", code},
                         {"index", index++},
                         {"instruction", one.text},
                         {"at", to_string(one.at)}};
      std::fprintf(stderr, "synchroniser: %s\n", line.dump().c_str());
    }
  }
}

}  // namespace

std::string readable(const std::string& mangled) {
  int status = 0;
  char* name = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  if (name == nullptr) return mangled;
  std::string text = name;
  std::free(name);
  // "void wide::kernels::(anonymous namespace)::f<float>(Params)": the parameters' bracket is the
  // last one that opens outside of the others.
  int depth = 0;
  for (size_t i = text.size(); i-- > 0;) {
    depth += (text[i] == ')') - (text[i] == '(');
    if (text[i] == '(' && depth == 0) {
      text.resize(i);
      break;
    }
  }
  return text.starts_with("void ") ? text.substr(5) : text;
}

std::string counters_json(const Device& d) {
  Json launches = Json::array();
  for (const LaunchRecord& launch : d.launches) launches.push_back(launch_json(launch));
  return launches.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void report_at_exit() {
  Device& d = device();
  if (is_asked_for("WIDE_SIM_LIST_SYNCHRONISERS")) list_synchronisers(d);
  if (is_asked_for("WIDE_SIM_COUNTERS")) {
    for (const LaunchRecord& launch : d.launches)
      std::fprintf(stderr, "launch: %s\n", launch_json(launch).dump().c_str());
  }
  if (is_asked_for("WIDE_SIM_LEAKS")) {
    for (const std::string& leak : leaks()) d.findings.report(simt::FindingKind::leak, leak);
  }
  for (const simt::Finding& finding : d.findings.list())
    std::fprintf(stderr, "finding: %s\n", to_string(finding).c_str());
  if (d.findings.count() == 0) return;
  std::fprintf(stderr, "simulated CUDA: %lld findings\n",
               static_cast<long long>(d.findings.count()));
  std::fflush(nullptr);
  ::_exit(kExitWithFindings);
}

}  // namespace wide::simcuda
