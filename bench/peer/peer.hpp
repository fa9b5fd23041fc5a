// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Another program beside us: what it makes of a case is checked and timed as our own strategies
// are, in the same rounds. Protocol: scripts/peers/README.md.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/peer/line_process.hpp"
#include "bench/run_program.hpp"
#include "wide/catalog.hpp"
#include "wide/device.hpp"

namespace wide::bench {

/// One way in which a peer computes a case.
struct PeerOffer {
  std::string name;         ///< "bmm"
  std::string explain;      ///< may be empty
  std::string unsupported;  ///< why it cannot; empty where it can
};

/// Threads of the CPU that a peer may have: as many as a context of it would use. A GPU's context
/// counts multiprocessors instead.
int64_t cpu_threads_beside(const DeviceInfo& device);

class Peer {
 public:
  using Json = nlohmann::ordered_json;

  /// Starts the command, as often as it ends. Throws io, and invalid_argument for what is no peer.
  Peer(std::string command, const Device& device, int64_t threads);

  const std::string& name() const { return name_; }  ///< "torch"
  /// "torch 2.6.0": what results call it.
  const std::string& title() const { return title_; }

  /// Puts a case's operands before it, `flush_bytes` what empties the L2; what it offers. Throws
  /// what it says, and io.
  std::vector<PeerOffer> prepare(const catalog::Case& point, const Context& context, Stream stream,
                                 const catalog::Workload& workload, int64_t flush_bytes);
  /// Ends the case; never throws.
  void forget() noexcept;

  /// A request of the protocol. Throws unsupported, out_of_memory or internal with what the peer
  /// says, and io where it has ended or makes no sense.
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
