// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/run/peer_calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "bench/document/json_field.hpp"
#include "host/core/text.hpp"
#include "host/import/safetensors_header.hpp"
#include "wide/error.hpp"
#include "wide/safetensors.hpp"

namespace wide::bench {

namespace {

/// As long as one of our samples in the same regime.
double sample_ns_at_least(Regime regime, const Sampling& sampling) {
  switch (regime) {
    case Regime::cpu:
      return kMinHostSampleNs;
    case Regime::stream:
      return kMinStreamSampleNs;
    case Regime::graph:
    case Regime::cold:
      break;
  }
  return graph_sample_ns(sampling.timer_quantum_ns);
}

double positive(const Field& field) {
  const double value = field.real();
  if (!(value > 0) || !std::isfinite(value)) field.refuse("a number above 0");
  return value;
}

class PeerSampler final : public Sampler {
 public:
  /// Calls take the copies in turn, behind a flush each once, and perhaps not all of them.
  PeerSampler(Peer& peer, Regime regime, const Peer::Json& made, int64_t copies, bool is_flushed)
      : peer_(&peer) {
    const Field field(made, peer.title());
    number_ = field["sampler"].integer();
    timer_ = field["timer"].text();
    if (timer_ != "host" && timer_ != "event" && timer_ != "graph")
      field["timer"].refuse("host, event or graph");
    iters_ = field["iters_per_sample"].integer();
    if (iters_ < 1) field["iters_per_sample"].refuse("1 or more");
    if (is_flushed && iters_ > copies)
      field["iters_per_sample"].refuse(fmt::format("at most {} copies", copies));
    if (is_flushed && iters_ == 1 && copies > 1)  // which would be timed otherwise than ours
      field["iters_per_sample"].refuse(fmt::format("2 of {} copies or more", copies));
    if (!is_flushed && iters_ % copies != 0)
      field["iters_per_sample"].refuse(fmt::format("a multiple of {} copies", copies));
    buffers_ = std::min(copies, iters_);
    calls_run_ = calls_run_in(field, regime);
    expected_s_ = positive(field["expected_sample_s"]);
  }
  double sample_ns() override {
    const Peer::Json reply = peer_->ask({{"do", "sample"}, {"sampler", number_}});
    const Field time = Field(reply, peer_->title())["time_ns"];
    (void)positive(time);
    return time.time_ns();  // no longer than what a result may hold
  }
  int64_t iters_per_sample() const override { return iters_; }
  int64_t calls_run_per_sample() const override { return calls_run_; }
  int64_t buffers_rotated() const override { return buffers_; }
  double expected_sample_s() const override { return expected_s_; }
  std::string_view timer() const override { return timer_; }
  int64_t number() const { return number_; }

 private:
  /// How many untimed calls a graph's or a cold sample runs is known only to the peer;
  /// if it does not report them, the energy of a call is unknown.
  int64_t calls_run_in(const Field& made, Regime regime) const {
    const auto said = made.later("calls_run_per_sample");
    if (!said) return regime == Regime::graph || regime == Regime::cold ? 0 : iters_;
    const int64_t calls = said->integer();
    if (calls != 0 && calls < iters_) said->refuse("0, or iters_per_sample or more");
    return calls;
  }

  Peer* peer_;
  int64_t number_ = 0, buffers_ = 1, iters_ = 1, calls_run_ = 0;
  std::string timer_;
  double expected_s_ = 0;
};

/// Reads one member's output from a file. Throws io if it is invalid.
catalog::MemberOutputs::Member member_of(const SafetensorsEntry& entry, int64_t offset,
                                         int64_t rows, int64_t row_length, int64_t bytes) {
  catalog::MemberOutputs::Member member{rows, row_length, {}};
  member.bytes.resize(static_cast<size_t>(bytes));
  if (bytes > 0)
    std::memcpy(member.bytes.data(), static_cast<const std::byte*>(entry.data) + offset,
                member.bytes.size());
  return member;
}

catalog::MemberOutputs outputs_in(const std::string& path, const std::string& who,
                                  const catalog::Workload& workload, Dtype dtype) {
  const Safetensors file = Safetensors::open(path);
  const SafetensorsEntry* all = file.find("got");
  catalog::MemberOutputs outputs{dtype, {}};
  int64_t offset = 0;
  for (int64_t m = 0; m < workload.num_outputs(); ++m) {
    const std::string name = all != nullptr ? "got" : fmt::format("got.{}", m);
    const SafetensorsEntry* entry = all != nullptr ? all : file.find(name);
    const int64_t rows = workload.rows(m), length = workload.row_length(m);
    const int64_t bytes = rows * length * dtype_bytes(dtype);
    const std::string_view type = safetensors_type(dtype).name;
    const bool has_size =
        entry != nullptr && (all != nullptr ? offset + bytes <= all->bytes : entry->bytes == bytes);
    if (!has_size || entry->type != type) {
      throw Error(ErrorCode::io,
                  entry == nullptr
                      ? fmt::format("{}: its output has no \"{}\"", who, name)
                      : fmt::format("{}: \"{}\" has {} of {}, expected [{}, {}] of {} for "
                                    "member {}",
                                    who, name, counted(entry->bytes, "byte"), entry->type, rows,
                                    length, type, m));
    }
    outputs.members.push_back(member_of(*entry, offset, rows, length, bytes));
    if (all != nullptr) offset += bytes;
  }
  if (all != nullptr && offset != all->bytes)
    throw Error(ErrorCode::io, fmt::format("{}: \"got\" has {}, expected {} of {}", who,
                                           counted(all->bytes, "byte"), offset,
                                           counted(workload.num_outputs(), "member")));
  return outputs;
}

}  // namespace

void PeerCalls::describe(RunnerResult& result) const {
  result.peer = peer_->title();
  result.explain = offer_.explain;
}

void PeerCalls::run() {
  (void)peer_->ask({{"do", "run"}, {"strategy", offer_.name}});
}

catalog::MemberOutputs PeerCalls::outputs(Sampler* through) {
  const std::string path = peer_->file("got.safetensors");
  std::filesystem::remove(path);  // so that a file found afterwards was written by this call
  Peer::Json request{{"do", "run"}, {"strategy", offer_.name}, {"to", path}};
  if (through != nullptr) request["sampler"] = dynamic_cast<PeerSampler&>(*through).number();
  (void)peer_->ask(request);
  return outputs_in(path, peer_->name() + ":" + offer_.name, *workload_, dtype_);
}

std::unique_ptr<Sampler> PeerCalls::sampler(Regime regime, const Sampling& sampling) {
  Peer::Json request{{"do", "sampler"},
                     {"strategy", offer_.name},
                     {"regime", to_string(regime)},
                     {"min_sample_ns", sample_ns_at_least(regime, sampling)},
                     {"cache", to_string(sampling.cold.cache)}};
  int64_t copies = 1;
  if (regime == Regime::cold) {
    copies = copies_of(sampling.cold);
    request["copies"] = copies;
  }
  const bool is_flushed = regime == Regime::cold && sampling.cold.cache == Cache::flush;
  return std::make_unique<PeerSampler>(*peer_, regime, peer_->ask(request), copies, is_flushed);
}

void PeerCalls::rest() {
  (void)peer_->ask({{"do", "rest"}});
}

}  // namespace wide::bench
