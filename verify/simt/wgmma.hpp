// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// wgmma.mma_async. The four warps of a warpgroup issue a product one by one, each for its own 16
// rows of D: a warp's share needs its rows of A and all of B, nothing of the other warps, so that
// it is carried out when that warp waits for it (or earlier, by the launch's delivery). Operands
// are guarded for every warp until that warp has waited.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "verify/simt/async.hpp"
#include "verify/simt/wgmma_operands.hpp"

namespace wide::simt {

class Wgmma {
 public:
  explicit Wgmma(Block& block) : block_(block) {}

  void fence(Warp& warp);
  void issue(Warp& warp, const WgmmaShape& shape, const WgmmaOperands& operands, Location at);
  void commit(Warp& warp);
  void wait(Warp& warp, int pending, Location at);
  bool owns_register(const Warp& warp, const uint32_t* lanes) const;

  /// Whether a share has not been carried out.
  bool is_under_way() const { return num_under_way_ > 0; }
  /// Carries out the oldest share of some warp.
  void progress();
  void end_of_block();

 private:
  static constexpr int kWarps = 4;  ///< of a warpgroup

  /// D's registers of one warp, while products own them. Products with the same registers go on
  /// with the same sums.
  struct Accumulators {
    std::vector<uint32_t*> d;
    bool is_half;
    int n;
    int64_t num_products = 0;  ///< not waited for
    std::vector<float> rows;
    bool owns(const uint32_t* registers) const;
  };
  /// What one warp brings to a product.
  struct Share {
    int64_t group;  ///< of the warp; committed when the warp has committed that many
    Accumulators* accumulators;
    std::array<std::array<uint32_t, kLanes>, 4> a;  ///< A's registers, and where they are
    std::array<const uint32_t*, 4> a_registers;
  };
  struct Product {
    WgmmaShape shape;
    uint64_t descriptor_a, descriptor_b;
    bool scale_d;
    Location at;
    std::array<Share, kWarps> shares{};
    unsigned issued = 0, done = 0, released = 0;  ///< masks of warps
    std::vector<SharedRange> ranges{};            ///< of the operands
    std::vector<float> b{};                       ///< since the first share was carried out
  };
  struct WarpState {
    int64_t num_issued = 0, num_done = 0, num_committed = 0;
    bool is_fenced = false;
    uint32_t time = 0;  ///< of the warp's slot
    std::vector<std::unique_ptr<Accumulators>> accumulators;
  };
  struct Group {
    std::deque<Product> products;  ///< those that some warp has not waited for
    int64_t num_gone = 0;          ///< products before them
    std::array<WarpState, kWarps> warps;
  };

  Group& group_of(const Warp& warp);
  Product& join_product(Group& group, Warp& warp, const WgmmaShape& shape,
                        const WgmmaOperands& operands, Location at);
  void require_operands(const Warp& warp, Product& product, Location at) const;
  void require_descriptor(uint64_t bits, Location at) const;
  Accumulators& own_registers(WarpState& state, Warp& warp, const WgmmaShape& shape,
                              const WgmmaOperands& operands, Location at);
  /// Carries out the warp's next share.
  void carry_out(Group& group, size_t warp);
  void release(const Warp& warp, Product& product, Epoch epoch);
  void give_back(WarpState& state, Warp& warp, Location at);
  void report(const Warp& warp, const std::string& text, Location at, Location against = {}) const;

  Block& block_;
  std::vector<Group> groups_;  ///< empty before the first product
  int64_t num_under_way_ = 0;
};

}  // namespace wide::simt
