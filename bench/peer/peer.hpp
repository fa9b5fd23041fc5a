// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Another program beside us: its implementation of a case is checked and timed like our own
// strategies, in the same rounds. Protocol: scripts/peers/README.md.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/peer/line_process.hpp"
#include "bench/process/run_program.hpp"
#include "wide/catalog.hpp"
#include "wide/device.hpp"

namespace wide::bench {

/// One way in which a peer computes a case.
struct PeerOffer {
  std::string name;         ///< "bmm"
  std::string explain;      ///< may be empty
  std::string unsupported;  ///< why it cannot; empty if it can
};

/// CPU threads that a peer may use: as many as a CPU context would. A GPU's context
/// counts multiprocessors instead.
int64_t cpu_threads_beside(const DeviceInfo& device);

class Peer {
 public:
  using Json = nlohmann::ordered_json;

  /// Starts the command, again if it ended. Throws io, and invalid_argument if it is not a peer.
  Peer(std::string command, const Device& device, int64_t threads);

  const std::string& name() const { return name_; }  ///< "torch"
  /// "torch 2.6.0": its name in results.
  const std::string& title() const { return title_; }

  /// Passes a case's operands to it, and `flush_bytes`, which empty the L2; returns what it offers.
  /// Throws the peer's errors, and io.
  std::vector<PeerOffer> prepare(const catalog::Case& point, const Context& context, Stream stream,
                                 const catalog::Workload& workload, int64_t flush_bytes);
  /// Ends the case; never throws.
  void forget() noexcept;

  /// A request of the protocol. Throws unsupported, out_of_memory or internal with the peer's
  /// message, and io if it has ended or answers nonsense.
  Json ask(const Json& request);
  /// A file of this case.
  std::string file(const std::string& name) const { return folder_.path() + "/" + name; }

 private:
  void start();

  std::string command_, device_;
  int64_t threads_;
  std::string name_, title_;
  TemporaryFolder folder_;
  std::unique_ptr<LineProcess> process_;
};

}  // namespace wide::bench
