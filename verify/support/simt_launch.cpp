// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/support/simt_launch.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace wide::test {

std::string kernel_ptx(const std::string& name) {
  const std::string path = std::string(WIDE_PTX_DIR) + "/" + name + ".ptx";
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool SimtOutcome::reports(simt::FindingKind kind, const std::string& text) const {
  return std::any_of(findings.begin(), findings.end(), [&](const simt::Finding& finding) {
    return finding.kind == kind && finding.text.find(text) != std::string::npos;
  });
}

std::string SimtOutcome::text() const {
  std::string all;
  for (const simt::Finding& finding : findings) all += to_string(finding) + "\n";
  if (fault) all += "ended by a fault\n";
  if (!refused.empty()) all += "refused: " + refused + "\n";
  return all.empty() ? "nothing was found" : all;
}

SimtDevice::SimtDevice(const std::string& ptx)
    : module_(std::make_unique<ptx::Module>(ptx, memory_)) {}

const ptx::Kernel& SimtDevice::kernel(const std::string& name) const {
  const std::vector<std::string> names = module_->kernel_names();
  if (std::find(names.begin(), names.end(), name) != names.end()) return module_->kernel(name);
  std::vector<std::string> found;
  std::copy_if(names.begin(), names.end(), std::back_inserter(found),
               [&](const std::string& each) { return each.find(name) != std::string::npos; });
  if (found.size() != 1) {
    throw std::out_of_range(std::to_string(found.size()) + " kernels are called " + name +
                            ", expected one");
  }
  return module_->kernel(found.front());
}

SimtOutcome SimtDevice::launch(const std::string& name, const simt::LaunchConfig& config,
                               const simt::Options& options, std::vector<std::byte> parameters) {
  SimtOutcome outcome;
  simt::Findings findings;
  try {
    simt::Launch launch(memory_, kernel(name), config, std::move(parameters), options, findings);
    try {
      launch.run();
    } catch (const simt::Fault& fault) {
      outcome.fault = fault.kind;
    }
    outcome.counters = launch.counters;
  } catch (const simt::Unsupported& unknown) {
    outcome.refused = unknown.what();
  }
  outcome.findings = findings.list();
  return outcome;
}

uint64_t SimtDevice::allocate_bytes(const std::string& name, int64_t bytes, bool is_initialised,
                                    bool is_read_only) {
  const uint64_t address =
      memory_.allocate(bytes, name, simt::BufferKind::device, is_initialised, is_read_only);
  if (address == 0) throw std::runtime_error("no simulated memory for " + name);
  return address;
}

std::string instance(const std::string& name, int value) {
  return std::to_string(name.size()) + name + "ILi" + std::to_string(value) + "E";
}

std::vector<simt::Options> all_options() {
  std::vector<simt::Options> all;
  for (const simt::Delivery delivery :
       {simt::Delivery::lazy, simt::Delivery::eager, simt::Delivery::random}) {
    for (const uint32_t seed : {0u, 1u, 2u}) all.push_back({seed, delivery});
  }
  return all;
}

std::string to_string(const simt::Options& options) {
  const char* delivery = options.delivery == simt::Delivery::lazy    ? "lazy"
                         : options.delivery == simt::Delivery::eager ? "eager"
                                                                     : "random";
  return "seed " + std::to_string(options.seed) + ", " + delivery;
}

}  // namespace wide::test
