// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What was measured to be fastest, for plans of any primitive that are made with strategy "auto".
// `wbench tune` writes such a file; an engine loads it once and hands it to its plans.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "wide/device.hpp"

namespace wide {

/// The fastest of several strategies and policies for one problem on one device, all of which were
/// compared with the reference in the same run; auto's own choice if no candidate was significantly
/// faster.
struct TuningEntry {
  std::string strategy;
  std::string policy;  ///< empty where the strategy has none
  double time_us = 0;  ///< median; set() and files have it above 0
  int64_t num_candidates = 0;
  /// Of the primitive's CUDA kernels as measured. Where they have changed since, strategies that
  /// need proof are no longer taken from this entry.
  std::string kernel_hash;
  bool is_autos_own = false;  ///< no candidate was significantly faster
  /// Of the candidates that were asked for, and of how they were to be measured: `wbench tune` does
  /// not measure the same again. Empty where that is unknown.
  std::string request_hash{};
  friend bool operator==(const TuningEntry&, const TuningEntry&) = default;
};

/// A problem's key in a cache: the primitive as plans call it, "conv" of conv1d, conv2d and
/// conv3d, and the complete problem in words, different for different problems.
struct TuningKey {
  std::string primitive, problem;
  friend bool operator==(const TuningKey&, const TuningKey&) = default;
};

/// Entries by device, primitive and problem. Plain data: a plan reads it while it is made and keeps
/// nothing of it, and several threads may read a cache that is not being changed.
class TuningCache {
 public:
  /// Throws Error{io} where the file cannot be read, invalid_argument where it is no tuning cache
  /// or is of a later version. The file is left as it is.
  static TuningCache load(const std::string& path);
  /// The same for a text; messages call it `name`.
  static TuningCache parse(std::string_view text, const std::string& name);

  /// Replaces the file as a whole: a reader finds the old one or the new one. Throws Error{io}.
  void save(const std::string& path) const;
  std::string to_text() const;

  /// Null where nothing was measured. Devices are the same where name, compute capability and
  /// number of multiprocessors (CPU: threads) are.
  const TuningEntry* find(const DeviceInfo& device, std::string_view primitive,
                          std::string_view problem) const;
  /// Replaces one of that device, primitive and problem. Throws invalid_argument for what a file
  /// could not give back: a time_us that is not finite and above 0, a negative count, text that is
  /// not UTF-8.
  void set(const DeviceInfo& device, std::string_view primitive, std::string_view problem,
           TuningEntry entry);
  /// Adds another cache's entries, which replace those of the same device, primitive and problem.
  void merge(const TuningCache& newer);
  int64_t size() const { return static_cast<int64_t>(entries_.size()); }
  friend bool operator==(const TuningCache&, const TuningCache&) = default;

 private:
  struct Key {
    std::string device;
    int compute_capability = 0, num_multiprocessors = 0;
    std::string primitive, problem;
    auto parts() const {
      return std::tie(device, compute_capability, num_multiprocessors, primitive, problem);
    }
    friend bool operator==(const Key&, const Key&) = default;
    // Not by <=>, which strings of libc++ 14 lack.
    friend bool operator<(const Key& a, const Key& b) { return a.parts() < b.parts(); }
  };
  std::map<Key, TuningEntry> entries_;
};

}  // namespace wide
