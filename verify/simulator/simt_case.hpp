// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A launch without a program, for tests of the simulated GPU's memories: threads that do what the
// test says, in the order in which it says so.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "verify/simt/async.hpp"
#include "verify/simt/cluster.hpp"
#include "verify/simt/global_memory.hpp"
#include "verify/simt/shared_memory.hpp"

namespace wide::simt {

class NoProgram : public Program {
 public:
  explicit NoProgram(int64_t shared_bytes) : shared_bytes_(shared_bytes) {}
  const std::string& name() const override { return name_; }
  int64_t static_shared_bytes() const override { return shared_bytes_; }
  int max_threads_per_block() const override { return 0; }
  int registers_at_entry() const override { return 0; }
  void begin(Warp&) const override {}
  void run(Warp&, size_t, int) const override {}

 private:
  std::string name_ = "test";
  int64_t shared_bytes_;
};

inline Location line(int number) {
  return {"folder/kernel.cu", number};
}

/// One launch after the other on one memory; findings are of all of them.
struct SimtCase {
  static constexpr int64_t kSharedBytes = 1024;

  explicit SimtCase(int threads = 64) { config.block.x = static_cast<uint32_t>(threads); }
  ~SimtCase() { end(); }

  /// Begins a launch of four blocks, ordered after everything unless told otherwise.
  void begin(uint32_t id = 0, std::function<bool(uint32_t)> is_ordered_after = {}) {
    end();
    config.grid.x = 4;
    config.id = id;
    config.is_ordered_after = std::move(is_ordered_after);
    launch = std::make_unique<Launch>(memory, program, config, parameters, options, findings);
    memory.begin_launch(*launch);
    for (int i = 0; i < 4; ++i) {
      clusters.push_back(std::make_unique<Cluster>(*launch, i));
      blocks.push_back(clusters.back()->blocks.front().get());
    }
  }
  /// Returns what the launch counted.
  Counters end() {
    if (launch == nullptr) return {};
    memory.end_launch();
    blocks.clear();
    clusters.clear();
    const Counters counters = launch->counters;
    launch.reset();
    return counters;
  }

  Thread& thread(size_t index, size_t block = 0) { return blocks[block]->threads[index]; }
  /// What thread `from` has done is known to `to` from now on.
  void hand_over(Thread& from, Thread& to) { to.known.join(from.release()); }
  /// The same between blocks, through a synchronisation variable.
  void hand_over_at(uint64_t variable, Thread& from, Thread& to) {
    memory.publish(from, variable, from.release());
    to.known.import(*memory.published(variable), to.block->linear_index);
  }

  int64_t count(FindingKind kind) const {
    return std::count_if(findings.list().begin(), findings.list().end(),
                         [&](const Finding& finding) { return finding.kind == kind; });
  }
  /// Whether the only finding is of that kind, forgetting it.
  bool found_only(FindingKind kind) {
    const bool result = findings.list().size() == 1 && count(kind) == 1;
    said = findings.list().empty() ? "" : to_string(findings.list().front());
    findings.clear();
    return result;
  }
  bool found_nothing() {
    said = findings.list().empty() ? "" : to_string(findings.list().front());
    const bool result = findings.count() == 0;
    findings.clear();
    return result;
  }

  Findings findings;
  GlobalMemory memory{int64_t{64} << 20};
  NoProgram program{kSharedBytes};
  LaunchConfig config;
  Options options;
  std::vector<std::byte> parameters;
  std::unique_ptr<Launch> launch;
  std::vector<std::unique_ptr<Cluster>> clusters;  ///< of one block each
  std::vector<Block*> blocks;
  std::string said;  ///< the first finding, when asked last
};

using HostAccess = GlobalMemory::HostAccess;
constexpr GlobalAccess kWeak = GlobalAccess::weak, kStrong = GlobalAccess::strong;

/// With a launch begun, and global memory used at lines that say how.
struct GlobalCase : SimtCase {
  GlobalCase() { begin(); }
  void read(Thread& reader, uint64_t address, int64_t bytes = 4, GlobalAccess access = kWeak,
            int at = 20) {
    memory.read(reader, address, bytes, access, line(at));
  }
  void write(Thread& writer, uint64_t address, int64_t bytes = 4, GlobalAccess access = kWeak,
             int at = 10) {
    memory.write(writer, address, bytes, access, line(at));
  }
  void add(Thread& who, uint64_t address) {
    read(who, address, 4, kStrong, 30);
    write(who, address, 4, kStrong, 30);
  }
  bool host(uint64_t address, int64_t bytes, HostAccess access, uint32_t id,
            const std::function<bool(uint32_t)>& is_ordered_after = {}) {
    return memory.host_access(address, bytes, access, "cudaMemcpyAsync", id, is_ordered_after,
                              findings);
  }
  uint64_t buffer(int64_t bytes, const char* name, bool is_initialised = true) {
    return memory.allocate(bytes, name, BufferKind::device, is_initialised);
  }
};

}  // namespace wide::simt
