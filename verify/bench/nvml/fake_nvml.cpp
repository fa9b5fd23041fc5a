// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A libnvidia-ml.so that says what the file WIDE_FAKE_NVML scripts: a line per reading of the
// clock, "sm_mhz power_mw temperature reasons energy_mj", the last one for ever. One device, at bus
// address 0000:3b:00.0, of at most 1980 MHz; WIDE_FAKE_NVML_LOCK=ERROR is its answer to who locks,
// WIDE_FAKE_NVML_STATE=ERROR to who asks how it is set up, WIDE_FAKE_NVML_PIDS="N N .." who is on
// it, WIDE_FAKE_NVML_INSTANT=MILLIWATTS the power of this moment, which else it does not know.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

namespace {

struct Line {
  unsigned sm_mhz = 0, power_mw = 0, temperature = 0;
  unsigned long long reasons = 0, energy_mj = 0;
};

constexpr int kNotSupported = 3, kNoPermission = 4, kNotFound = 6, kInsufficientSize = 7;

std::vector<Line> script;
size_t num_read = 0;
int num_open = 0;
unsigned locked_least = 0, locked_most = 0;

/// The answer of what asks for the device's state.
int state_error() {
  const char* error = std::getenv("WIDE_FAKE_NVML_STATE");
  return error == nullptr ? 0 : std::atoi(error);
}

/// nvmlProcessInfo_t.
struct Process {
  unsigned pid;
  unsigned long long memory_bytes;
  unsigned gpu_instance, compute_instance;
};

/// nvmlFieldValue_t.
struct FieldValue {
  unsigned field, scope;
  long long timestamp, latency;
  unsigned type;
  int error;
  unsigned long long value;
};

const Line& present() {
  return script[num_read == 0 ? 0 : num_read - 1];
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  const char* path = std::getenv("WIDE_FAKE_NVML");
  if (path == nullptr) return kNotFound;
  std::ifstream file(path);
  script.clear();
  num_read = 0;
  for (Line line;
       file >> line.sm_mhz >> line.power_mw >> line.temperature >> line.reasons >> line.energy_mj;)
    script.push_back(line);
  if (script.empty()) return kNotFound;
  ++num_open;
  return 0;
}
int nvmlShutdown() {
  --num_open;
  return 0;
}
/// For tests: how many have opened the library and not closed it.
int wide_fake_nvml_open() {
  return num_open;
}
const char* nvmlErrorString(int error) {
  return error == kNotSupported   ? "Not Supported"
         : error == kNoPermission ? "Insufficient Permissions"
                                  : "Not Found";
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** device) {
  *device = &script;
  return std::strcmp(bus, "0000:3b:00.0") == 0 ? 0 : kNotFound;
}
int nvmlDeviceGetClockInfo(void*, unsigned type, unsigned* mhz) {
  if (type == 2) {
    *mhz = 3201;
    return state_error();
  }
  if (type != 1) return kNotSupported;
  if (num_read < script.size()) ++num_read;
  *mhz = present().sm_mhz;
  return 0;
}
int nvmlSystemGetDriverVersion(char* text, unsigned length) {
  std::snprintf(text, length, "580.95.05");
  return 0;
}

int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = present().power_mw;
  return 0;
}
int nvmlDeviceGetFieldValues(void*, int count, FieldValue* values) {
  const char* milliwatts = std::getenv("WIDE_FAKE_NVML_INSTANT");
  for (int i = 0; i < count; ++i) {
    values[i].error = values[i].field == 186 && milliwatts != nullptr ? 0 : kNotSupported;
    values[i].type = 1;  // unsigned int: the value's other half is nobody's
    values[i].value = 0xffffffff00000000u;
    if (values[i].error == 0) values[i].value |= static_cast<unsigned>(std::atoi(milliwatts));
  }
  return 0;
}
int nvmlDeviceGetTemperature(void*, unsigned sensor, unsigned* celsius) {
  if (sensor != 0) return kNotSupported;
  *celsius = present().temperature;
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  *reasons = present().reasons;
  return 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void*, unsigned long long* millijoules) {
  if (present().energy_mj == 0) return kNotSupported;
  *millijoules = present().energy_mj;
  return 0;
}

int nvmlDeviceGetMaxClockInfo(void*, unsigned type, unsigned* mhz) {
  *mhz = 1980;
  return type == 1 ? 0 : kNotSupported;
}
int nvmlDeviceGetDefaultApplicationsClock(void*, unsigned type, unsigned* mhz) {
  *mhz = 1755;
  return type == 1 ? state_error() : kNotSupported;
}
int nvmlDeviceGetMigMode(void*, unsigned* present, unsigned* pending) {
  *present = 0;
  *pending = 1;
  return state_error();
}
int nvmlDeviceGetEccMode(void*, unsigned* present, unsigned* pending) {
  *present = 1;
  *pending = 0;
  return state_error();
}
int nvmlDeviceGetPersistenceMode(void*, unsigned* mode) {
  *mode = 1;
  return state_error();
}
int nvmlDeviceGetComputeMode(void*, unsigned* mode) {
  *mode = 3;
  return state_error();
}
int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* milliwatts) {
  *milliwatts = 700'000;
  return state_error();
}
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, Process* processes) {
  const char* pids = std::getenv("WIDE_FAKE_NVML_PIDS");
  std::istringstream stream(pids == nullptr ? "" : pids);
  unsigned found = 0;
  for (unsigned pid = 0; stream >> pid; ++found) {
    if (found < *count) processes[found] = {pid, 1 << 20, 0, 0};
  }
  const bool fits = found <= *count;
  *count = found;
  return fits ? state_error() : kInsufficientSize;
}
int nvmlDeviceSetGpuLockedClocks(void*, unsigned least, unsigned most) {
  if (const char* error = std::getenv("WIDE_FAKE_NVML_LOCK")) return std::atoi(error);
  locked_least = least;
  locked_most = most;
  return 0;
}
int nvmlDeviceResetGpuLockedClocks(void*) {
  locked_least = locked_most = 0;
  return 0;
}
/// For tests: what the clocks are locked to, 0 where they are not, 1 where the ends differ.
unsigned wide_fake_nvml_locked() {
  return locked_least == locked_most ? locked_most : 1;
}

}  // extern "C"
