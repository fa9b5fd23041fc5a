// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/simcuda/control.hpp"

#include "verify/simcuda/device.hpp"
#include "verify/simcuda/report.hpp"

namespace wide::simcuda {

void set_order(Order order, uint32_t seed) {
  device().operations.set_order(order, seed);
}

void fail_at(int64_t k, cudaError_t error, bool is_sticky) {
  Faults& faults = device().faults;
  faults.fail_at = k > 0 ? faults.num_calls + k : 0;
  faults.error = error;
  faults.is_sticky = is_sticky;
  if (k > 0) faults.failed_call.clear();
}
int64_t num_calls() {
  return device().faults.num_calls;
}
const std::string& failed_call() {
  return device().faults.failed_call;
}
void reset_device() {
  device().reset();
}

const std::vector<LaunchRecord>& launches() {
  return device().launches;
}
void clear_launches() {
  device().launches.clear();
}

const std::vector<simt::Finding>& findings() {
  device().operations.wait_for_all();
  return device().findings.list();
}
void clear_findings() {
  device().findings.clear();
}

std::vector<std::string> leaks() {
  Device& d = device();
  std::vector<std::string> all;
  for (const simt::BufferInfo& buffer : d.memory.live()) {
    if (!buffer.is_module) all.push_back(buffer.name);
  }
  const auto count = [&](size_t number, const char* what) {
    if (number > 0) all.push_back(std::to_string(number) + " " + what);
  };
  count(d.streams.size(), "streams");
  count(d.events.size(), "events");
  count(d.graphs.size(), "graphs");
  count(d.graph_execs.size(), "executable graphs");
  return all;
}

namespace {

/// Text that lives until the next call, for callers that know C alone.
const char* keep(std::string text) {
  static std::string kept;
  kept = std::move(text);
  return kept.c_str();
}

template <class Lines>
std::string lines(const Lines& all) {
  std::string text;
  for (const std::string& line : all) text += line + "\n";
  return text;
}

}  // namespace

}  // namespace wide::simcuda

extern "C" {

int wide_simcuda_present() {
  return 1;
}
void wide_simcuda_clear_launches() {
  wide::simcuda::clear_launches();
}
const char* wide_simcuda_counters_json() {
  return wide::simcuda::keep(wide::simcuda::counters_json(wide::simcuda::device()));
}
void wide_simcuda_fail_at(int64_t k, int error, int is_sticky) {
  wide::simcuda::fail_at(k, static_cast<cudaError_t>(error), is_sticky != 0);
}
int64_t wide_simcuda_num_calls() {
  return wide::simcuda::num_calls();
}
const char* wide_simcuda_failed_call() {
  return wide::simcuda::failed_call().c_str();
}
void wide_simcuda_reset_device() {
  wide::simcuda::reset_device();
}
const char* wide_simcuda_findings_text() {
  std::vector<std::string> all;
  for (const auto& finding : wide::simcuda::findings()) all.push_back(to_string(finding));
  return wide::simcuda::keep(wide::simcuda::lines(all));
}
void wide_simcuda_clear_findings() {
  wide::simcuda::clear_findings();
}
const char* wide_simcuda_leaks_text() {
  return wide::simcuda::keep(wide::simcuda::lines(wide::simcuda::leaks()));
}

}  // extern "C"
