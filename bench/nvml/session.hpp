// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The driver's library, opened for one device. The few functions called are declared here,
// following the driver's documentation: the header comes with a toolkit, and builds without one
// measure clocks, too.
#pragma once

#include <memory>
#include <string>

namespace wide::bench::nvml {

using Device = void*;
using Number = unsigned int;
using LongNumber = unsigned long long;

inline constexpr int kSuccess = 0, kNotSupported = 3, kNoPermission = 4,
                     kInsufficientSize = 7;                // nvmlReturn_t
inline constexpr unsigned kClockSm = 1, kClockMemory = 2;  // nvmlClockType_t
inline constexpr unsigned kTemperatureGpu = 0;             // nvmlTemperatureSensors_t
inline constexpr unsigned kPowerInstant = 186;             // NVML_FI_DEV_POWER_INSTANT
inline constexpr unsigned kUnsignedInt = 1;                // nvmlValueType_t
/// nvmlClockLimitId_t: not a clock but the one that the device sustains within its power limit.
inline constexpr Number kLimitTdp = 0xffffff01u;

/// nvmlProcessInfo_t, of the functions' third version.
struct Process {
  unsigned pid = 0;
  LongNumber memory_bytes = 0;
  unsigned gpu_instance = 0, compute_instance = 0;
};

/// nvmlFieldValue_t: a value requested by number, each with its own return code.
struct FieldValue {
  unsigned field = 0, scope = 0;
  long long timestamp_us = 0, latency_us = 0;
  unsigned type = 0;
  int error = 0;
  union {
    Number number = 0;
    LongNumber bits;  ///< as wide as any other type
  };
};
static_assert(sizeof(FieldValue) == 40);

/// Null if the library lacks it; only the first five are required.
struct Functions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*device)(const char*, Device*) = nullptr;
  int (*clock)(Device, unsigned, Number*) = nullptr;
  // Milliwatts: on Ampere and later, except GA100, averaged over the last second.
  int (*power)(Device, Number*) = nullptr;
  int (*fields)(Device, int, FieldValue*) = nullptr;
  int (*temperature)(Device, unsigned, Number*) = nullptr;  // degrees Celsius
  int (*reasons)(Device, LongNumber*) = nullptr;
  int (*energy)(Device, LongNumber*) = nullptr;  // millijoules since the driver was loaded
  int (*max_clock)(Device, unsigned, Number*) = nullptr;
  int (*lock_clocks)(Device, Number, Number) = nullptr;
  int (*reset_clocks)(Device) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  // The device's configuration. Modes that change at a reset have a current and a pending value.
  int (*mig)(Device, Number*, Number*) = nullptr;
  int (*ecc)(Device, Number*, Number*) = nullptr;
  int (*persistence)(Device, Number*) = nullptr;
  int (*compute_mode)(Device, Number*) = nullptr;
  int (*power_limit)(Device, Number*) = nullptr;  // milliwatts
  int (*default_clock)(Device, unsigned, Number*) = nullptr;
  int (*processes)(Device, Number*, Process*) = nullptr;
};

class Session {
 public:
  Session(void* library, const Functions& functions, Device handle)
      : f(functions), device(handle), library_(library) {}
  ~Session();
  Session(const Session&) = delete;

  const Functions f;
  const Device device;

 private:
  void* library_;
};

struct Opened {
  std::unique_ptr<Session> session;  ///< null if not available
  std::string reason;                ///< why it is not available
};

/// For the device at this address on the bus ("0000:3b:00.0"). The library is WIDE_NVML if the
/// environment has it, else libnvidia-ml.so.1.
Opened open(const std::string& pci_bus_id);

}  // namespace wide::bench::nvml
