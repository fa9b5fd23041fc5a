// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A kernel's text and what decoding makes of it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "verify/ptx/decoder.hpp"
#include "verify/ptx/module.hpp"

namespace wide::ptx {

// Addresses in generic space carry their window in the top bits; global ones have none.
constexpr uint64_t kParameterWindow = uint64_t{5} << 60;
constexpr uint64_t kLocalWindow = uint64_t{6} << 60;
constexpr uint64_t kSharedWindow = uint64_t{7} << 60;
constexpr uint64_t kWindowMask = uint64_t{15} << 60;

struct KernelText {
  std::string name, header, body;
};

/// What a module knows, for its kernels' decoding.
struct Symbols {
  int target = 0;  ///< 90 of sm_90a
  std::map<std::string, Variable> variables;
  std::vector<std::string> shared;  ///< declarations at module scope
  std::map<int, std::string> files;
  std::map<std::string, KernelText> functions;  ///< .func with a body: called, not inlined
};

/// The special registers that keep their value, in the order of their pseudo registers.
enum class Special : uint8_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  warpid,
  nwarpid,
  smid,
  nsmid,
  lanemask_eq,
  lanemask_lt,
  lanemask_le,
  lanemask_gt,
  lanemask_ge,
  dynamic_smem_size,
  total_smem_size,
  cluster_ctaid_x,
  cluster_ctaid_y,
  cluster_ctaid_z,
  cluster_nctaid_x,
  cluster_nctaid_y,
  cluster_nctaid_z,
  cluster_ctarank,
  cluster_nctarank,
  clusterid_x,
  clusterid_y,
  clusterid_z,
  nclusterid_x,
  nclusterid_y,
  nclusterid_z,
  count
};
std::string_view name_of(Special special);

class DecodedKernel final : public Kernel {
 public:
  DecodedKernel(const KernelText& text, const Symbols& symbols);

  const std::string& name() const override { return name_; }
  int64_t static_shared_bytes() const override { return static_shared_bytes_; }
  int max_threads_per_block() const override { return max_threads_; }
  int registers_at_entry() const override { return registers_at_entry_; }
  void begin(simt::Warp& warp) const override;
  void run(simt::Warp& warp, size_t path, int max_steps) const override;

  std::optional<simt::Dim3> required_cluster() const override { return required_cluster_; }
  std::span<const Parameter> parameters() const override { return parameters_; }
  int64_t local_bytes() const override { return local_bytes_; }
  std::vector<Synchroniser> synchronisers() const override;
  std::unique_ptr<Kernel> without(int n) const override;
  uint64_t code_hash() const override;

 private:
  friend class KernelDecoder;
  void merge_paths(simt::Warp& warp, size_t& path) const;

  std::string name_;
  std::vector<Instruction> code_;
  std::vector<std::byte> constants_;
  std::vector<Parameter> parameters_;
  int64_t register_bytes_ = 0, static_shared_bytes_ = 0, local_bytes_ = 0;
  int max_threads_ = 0, registers_at_entry_ = 0;
  std::optional<simt::Dim3> required_cluster_;
  std::vector<std::pair<Special, size_t>> specials_;  ///< that it reads, with their places
  bool has_products_ = false;                         ///< wgmma
};

/// Whether deleting the instruction is a mutation: it only orders, signals or waits.
bool is_synchroniser(const Instruction& instruction);

}  // namespace wide::ptx
