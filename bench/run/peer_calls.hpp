// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Calls that a peer makes on request.
#pragma once

#include "bench/peer/peer.hpp"
#include "bench/run/calls.hpp"

namespace wide::bench {

class PeerCalls final : public Calls {
 public:
  /// For an offer of the peer's last prepare(); `dtype` is that of the outputs.
  PeerCalls(Peer& peer, PeerOffer offer, const catalog::Workload& workload, Dtype dtype)
      : peer_(&peer), offer_(std::move(offer)), workload_(&workload), dtype_(dtype) {}

  void describe(RunnerResult& result) const override;
  void run() override;
  catalog::MemberOutputs outputs(Sampler* through = nullptr) override;
  double slack() const override { return kPeerSlack; }
  std::string damage() override { return {}; }  // another process' memory
  std::unique_ptr<Sampler> sampler(Regime regime, const Sampling& sampling) override;
  void recover() override {}  // a peer that cannot go on says so at the next request
  void rest() override;

 private:
  Peer* peer_;
  PeerOffer offer_;
  const catalog::Workload* workload_;
  Dtype dtype_;
};

}  // namespace wide::bench
