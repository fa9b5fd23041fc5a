// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What all copies of a Model share: its members' parameters and masks, and the lock on them.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "host/model/lowering.hpp"
#include "host/model/member_values.hpp"
#include "wide/model.hpp"

namespace wide {

/// Runs, and calls that read members back, hold the lock shared; changes hold it exclusively. Runs
/// on CUDA read nothing on the host, and the stream orders them: they do not lock. A change waits
/// for current holders, and later ones wait for it, as threads that run without a pause would
/// otherwise starve it. Never allocates.
class MembersLock {
 public:
  explicit MembersLock(Device device) : has_runs_(device.type == DeviceType::cpu) {}

  std::shared_lock<std::shared_mutex> for_run() const {
    if (!has_runs_) return {};
    return for_read();
  }
  std::shared_lock<std::shared_mutex> for_read() const {
    const std::lock_guard turn(next_);
    return std::shared_lock(members_);
  }
  std::unique_lock<std::shared_mutex> for_change() const {
    const std::lock_guard turn(next_);
    return std::unique_lock(members_);
  }

 private:
  bool has_runs_;
  mutable std::mutex next_;
  mutable std::shared_mutex members_;
};

/// Shared by members that are loaded one after another.
struct MemberLoads {
  HostContext host;
  bool makes_model = false;
  /// Values that are one for all members, by slot, while a model is made: the first member's, which
  /// would otherwise have to be read back for each of the others.
  std::map<const ParameterSlot*, std::vector<std::byte>> shared{};
};

struct Model::State {
  State(const Context& own, int64_t weights_bytes, size_t num_members)
      : context(own),
        weights(own, Dtype::uint8, {weights_bytes}),
        kept(num_members),
        is_masked(num_members, false),
        lock(own.device()) {}

  Context context;
  Tensor weights;
  /// Per member: parameters that are not in the weights as they were given.
  std::vector<HostValues> kept;
  std::vector<bool> is_masked;
  MembersLock lock;  ///< of all of the above
};

/// The probabilities of dropouts that have one for all members. Waits.
void load_probabilities(const ModelPlan::State& plan, Model::State& members, Stream stream);

}  // namespace wide
