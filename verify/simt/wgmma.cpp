// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The life of a product: issued by each warp, committed, carried out, waited for. D's registers
// hold NaN from the first product that owns them to the wait for the last one.
#include "verify/simt/wgmma.hpp"

#include <algorithm>
#include <string>

#include "verify/simt/fragments.hpp"
#include "verify/simt/shared_memory.hpp"
#include "verify/simt/tensor_core.hpp"
#include "verify/simt/text.hpp"

namespace wide::simt {

namespace {

constexpr int kM = 64, kMaxN = 256;
constexpr uint32_t kPoison = 0xffffffffu;

int k_of(const WgmmaShape& shape) {
  return kBytesOfK / element_bytes(shape.type_a);
}

std::string describe(const WgmmaShape& shape) {
  return "wgmma.m64n" + std::to_string(shape.n) + "k" + std::to_string(k_of(shape)) +
         (shape.d_is_half ? ".f16." : ".f32.") + name(shape.type_a) + "." + name(shape.type_b);
}

bool are_same(const WgmmaShape& a, const WgmmaShape& b) {
  return a.n == b.n && a.type_a == b.type_a && a.type_b == b.type_b && a.d_is_half == b.d_is_half &&
         a.a_in_registers == b.a_in_registers && a.a_is_mn_major == b.a_is_mn_major &&
         a.b_is_mn_major == b.b_is_mn_major && a.negate_a == b.negate_a && a.negate_b == b.negate_b;
}

}  // namespace

void require_wgmma(const WgmmaShape& shape) {
  if (shape.n < 8 || shape.n > kMaxN || shape.n % 8 != 0) {
    throw Unsupported(describe(shape) + ": this n, expected a multiple of 8 up to 256");
  }
  if (!are_compatible(shape.type_a, shape.type_b)) {
    throw Unsupported(describe(shape) + ": these two types");
  }
  const int bytes = element_bytes(shape.type_a);
  if (shape.d_is_half && shape.type_a != MatrixType::f16 && bytes != 1) {
    throw Unsupported(describe(shape) + ": this type of accumulators");
  }
  if ((shape.a_is_mn_major || shape.b_is_mn_major) && bytes != 2) {
    throw Unsupported(describe(shape) + ": only 16-bit operands may be transposed");
  }
  if (shape.a_is_mn_major && shape.a_in_registers) {
    throw Unsupported(describe(shape) + ": A in registers cannot be transposed");
  }
}

void Wgmma::report(const Warp& warp, const std::string& text, Location at, Location against) const {
  block_.launch.report(FindingKind::wgmma, block_,
                       "warp " + std::to_string(warp.index) + ": " + text, at, against);
}

Wgmma::Group& Wgmma::group_of(const Warp& warp) {
  if (groups_.empty()) {
    groups_ = std::vector<Group>((block_.warps.size() + kWarps - 1) / kWarps);
  }
  return groups_[static_cast<size_t>(warp.index / kWarps)];
}

void Wgmma::fence(Warp& warp) {
  group_of(warp).warps[static_cast<size_t>(warp.index % kWarps)].is_fenced = true;
}

// ---- issue

void Wgmma::issue(Warp& warp, const WgmmaShape& shape, const WgmmaOperands& operands, Location at) {
  Group& group = group_of(warp);
  const auto index = static_cast<size_t>(warp.index % kWarps);
  WarpState& state = group.warps[index];
  Product& product = join_product(group, warp, shape, operands, at);
  Share& share = product.shares[index];
  share.group = state.num_committed;
  share.accumulators = &own_registers(state, warp, shape, operands, at);
  for (size_t i = 0; i < operands.a.size(); ++i) {
    std::copy_n(operands.a[i], kLanes, share.a[i].begin());
    share.a_registers[i] = operands.a[i];
  }
  for (const SharedRange& range : product.ranges) {
    block_.shared->begin_async_read(warp.thread(0), range.address, range.bytes, at);
  }
  product.issued |= 1u << index;
  ++state.num_issued;
  ++num_under_way_;
  Launch& launch = block_.launch;
  launch.counters.wgmma_flops += int64_t{2} * kFragmentRows * shape.n * k_of(shape);
  const Delivery delivery = launch.options.delivery;
  const bool is_at_once =
      delivery == Delivery::eager || (delivery == Delivery::random && launch.random() % 2 == 0);
  while (is_at_once && state.num_done < state.num_issued) carry_out(group, index);
}

/// The warps' n-th products are one product: where it is not there yet, this warp is its first.
Wgmma::Product& Wgmma::join_product(Group& group, Warp& warp, const WgmmaShape& shape,
                                    const WgmmaOperands& operands, Location at) {
  const WarpState& state = group.warps[static_cast<size_t>(warp.index % kWarps)];
  const auto position = static_cast<size_t>(state.num_issued - group.num_gone);
  if (position < group.products.size()) {
    Product& product = group.products[position];
    const bool is_same = are_same(product.shape, shape) && product.at.line == at.line &&
                         (shape.a_in_registers || product.descriptor_a == operands.descriptor_a) &&
                         product.descriptor_b == operands.descriptor_b &&
                         product.scale_d == operands.scale_d;
    if (!is_same) {
      report(warp,
             "its wgmma differs from the one of the other warps of the warpgroup: " +
                 describe(shape) + " with descriptors " + hexadecimal(operands.descriptor_a) +
                 " and " + hexadecimal(operands.descriptor_b) + ", expected " +
                 describe(product.shape) + " with " + hexadecimal(product.descriptor_a) + " and " +
                 hexadecimal(product.descriptor_b),
             at, product.at);
      // Of another shape there is no telling what the hardware would do with D.
      if (!are_same(product.shape, shape)) {
        throw Fault(Fault::Kind::illegal_instruction, "wgmma: the warps of a group disagree");
      }
    }
    return product;
  }
  Product& product = group.products.emplace_back(
      Product{shape, operands.descriptor_a, operands.descriptor_b, operands.scale_d, at});
  require_operands(warp, product, at);
  return product;
}

void Wgmma::require_operands(const Warp& warp, Product& product, Location at) const {
  const WgmmaShape& shape = product.shape;
  if (!shape.a_in_registers) {
    require_descriptor(product.descriptor_a, at);
    product.ranges =
        ranges({MatrixDescriptor(product.descriptor_a), shape.type_a, kM, shape.a_is_mn_major});
  }
  require_descriptor(product.descriptor_b, at);
  const auto of_b =
      ranges({MatrixDescriptor(product.descriptor_b), shape.type_b, shape.n, shape.b_is_mn_major});
  product.ranges.insert(product.ranges.end(), of_b.begin(), of_b.end());
  for (const SharedRange& range : product.ranges) {
    block_.shared->require(warp.thread(0), range.address, range.bytes, 16, "wgmma operand", at);
  }
}

void Wgmma::require_descriptor(uint64_t bits, Location at) const {
  const MatrixDescriptor descriptor(bits);
  if (descriptor.base_offset != 0) {
    throw Unsupported("wgmma at " + to_string(at) + ": a descriptor with base offset " +
                      std::to_string(descriptor.base_offset));
  }
  // Within a row of the pattern any piece may be the first: that is how k advances.
  const uint32_t in_pattern = descriptor.start % descriptor.pattern_bytes();
  if (descriptor.swizzle == Swizzle::none || in_pattern < 128) return;
  block_.launch.report(FindingKind::wgmma, block_,
                       "a descriptor starts at shared address " + hexadecimal(descriptor.start) +
                           ", expected the first 128 bytes of a swizzle atom of " +
                           std::to_string(descriptor.pattern_bytes()) +
                           " bytes, since its base offset is 0",
                       at);
}

bool Wgmma::Accumulators::owns(const uint32_t* registers) const {
  return std::find(d.begin(), d.end(), registers) != d.end();
}

Wgmma::Accumulators& Wgmma::own_registers(WarpState& state, Warp& warp, const WgmmaShape& shape,
                                          const WgmmaOperands& operands, Location at) {
  for (const auto& owned : state.accumulators) {
    const bool is_same =
        std::equal(owned->d.begin(), owned->d.end(), operands.d.begin(), operands.d.end());
    if (is_same && owned->is_half == shape.d_is_half) {
      ++owned->num_products;
      return *owned;
    }
    if (std::any_of(operands.d.begin(), operands.d.end(),
                    [&](const uint32_t* d) { return owned->owns(d); })) {
      report(warp, "its accumulators are, in part, those of another product under way", at);
    }
  }
  if (!state.is_fenced) {
    report(warp, "uses accumulators without wgmma.fence since it last waited", at);
  }
  auto& owned = *state.accumulators.emplace_back(std::make_unique<Accumulators>());
  owned.d.assign(operands.d.begin(), operands.d.end());
  owned.is_half = shape.d_is_half;
  owned.n = shape.n;
  owned.num_products = 1;
  owned.rows.resize(static_cast<size_t>(kFragmentRows * shape.n));
  const std::vector<const uint32_t*> registers(owned.d.begin(), owned.d.end());
  load_accumulators(registers, owned.is_half, owned.n, owned.rows.data());
  for (uint32_t* d : owned.d) std::fill_n(d, kLanes, kPoison);
  return owned;
}

bool Wgmma::owns_register(const Warp& warp, const uint32_t* lanes) const {
  if (groups_.empty()) return false;
  const Group& group = groups_[static_cast<size_t>(warp.index / kWarps)];
  const auto index = static_cast<size_t>(warp.index % kWarps);
  const auto& owned = group.warps[index].accumulators;
  if (std::any_of(owned.begin(), owned.end(), [&](const auto& set) { return set->owns(lanes); })) {
    return true;
  }
  const unsigned bit = 1u << index;
  return std::any_of(group.products.begin(), group.products.end(), [&](const Product& product) {
    const auto& a = product.shares[index].a_registers;
    return product.shape.a_in_registers && (product.issued & bit) != 0 &&
           (product.released & bit) == 0 && std::find(a.begin(), a.end(), lanes) != a.end();
  });
}

// ---- results

void Wgmma::carry_out(Group& group, size_t warp) {
  WarpState& state = group.warps[warp];
  Product& product = group.products[static_cast<size_t>(state.num_done - group.num_gone)];
  const WgmmaShape& shape = product.shape;
  const std::byte* shared = block_.shared->at(kSharedBase);
  const auto k = static_cast<size_t>(k_of(shape)), n = static_cast<size_t>(shape.n);
  if (product.b.empty()) {
    product.b.resize(k * n);
    load_columns(
        {MatrixDescriptor(product.descriptor_b), shape.type_b, shape.n, shape.b_is_mn_major},
        shared, product.b.data());
  }
  const Share& share = product.shares[warp];
  std::array<float, kFragmentRows * kMaxK> a;
  if (shape.a_in_registers) {
    std::array<const uint32_t*, 4> registers;
    for (size_t i = 0; i < registers.size(); ++i) registers[i] = share.a[i].data();
    load_a_fragment(shape.type_a, registers, a.data());
  } else {
    const int first = static_cast<int>(warp) * kFragmentRows;
    load_rows({MatrixDescriptor(product.descriptor_a), shape.type_a, kM, shape.a_is_mn_major},
              first, first + kFragmentRows, shared, a.data());
  }
  if (shape.negate_a != shape.negate_b) {
    for (float& value : a) value = -value;
  }
  std::vector<float>& rows = share.accumulators->rows;
  if (!product.scale_d) std::fill(rows.begin(), rows.end(), 0.0f);
  multiply_add(TensorCore::of_wgmma(shape.type_a), shape.type_a, a.data(), shape.type_b,
               product.b.data(), static_cast<int>(k), shape.n, rows.data());
  if (shape.d_is_half) round_to_half(rows);
  product.done |= 1u << warp;
  if (product.done == (1u << kWarps) - 1) product.b = {};
  ++state.num_done;
  --num_under_way_;
}

void Wgmma::commit(Warp& warp) {
  ++group_of(warp).warps[static_cast<size_t>(warp.index % kWarps)].num_committed;
}

void Wgmma::wait(Warp& warp, int pending, Location at) {
  Group& group = group_of(warp);
  const auto index = static_cast<size_t>(warp.index % kWarps);
  WarpState& state = group.warps[index];
  state.is_fenced = false;
  const int64_t end = state.num_committed - pending;
  const Epoch epoch{block_.warp_slot(warp.index), state.time + 1};
  bool any = false;
  for (size_t i = 0; i < group.products.size(); ++i) {
    Product& product = group.products[i];
    const unsigned bit = 1u << index;
    if ((product.issued & bit) == 0 || product.shares[index].group >= end) break;
    if ((product.released & bit) != 0) continue;
    if ((product.done & bit) == 0) carry_out(group, index);
    release(warp, product, epoch);
    product.released |= bit;
    --product.shares[index].accumulators->num_products;
    any = true;
  }
  if (!any) return;
  ++state.time;
  Knowledge released;
  released.join(epoch, block_.num_slots());
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((warp.exists >> lane & 1) != 0) warp.thread(lane).known.join(released);
  }
  give_back(state, warp, at);
  while (!group.products.empty() && group.products.front().released == (1u << kWarps) - 1) {
    group.products.pop_front();
    ++group.num_gone;
  }
}

void Wgmma::release(const Warp& warp, Product& product, Epoch epoch) {
  for (const SharedRange& range : product.ranges) {
    block_.shared->end_async_read(warp.thread(0), range.address, range.bytes, epoch);
  }
}

/// Registers that no product owns any more get their results.
void Wgmma::give_back(WarpState& state, Warp& warp, Location at) {
  for (const auto& owned : state.accumulators) {
    if (owned->num_products > 0) continue;
    for (size_t i = 0; i < owned->d.size(); ++i) {
      const uint32_t* lanes = owned->d[i];
      const auto* changed =
          std::find_if(lanes, lanes + kLanes, [](uint32_t bits) { return bits != kPoison; });
      if (changed == lanes + kLanes) continue;
      report(warp,
             "accumulator " + std::to_string(i) + " of lane " + std::to_string(changed - lanes) +
                 " was written while a wgmma owned it",
             at);
      break;
    }
    store_accumulators(owned->d, owned->is_half, owned->n, owned->rows.data());
  }
  std::erase_if(state.accumulators, [](const auto& owned) { return owned->num_products == 0; });
}

void Wgmma::progress() {
  auto skip = block_.launch.random() % static_cast<uint64_t>(num_under_way_);
  for (Group& group : groups_) {
    for (size_t warp = 0; warp < kWarps; ++warp) {
      const WarpState& state = group.warps[warp];
      const auto count = static_cast<uint64_t>(state.num_issued - state.num_done);
      if (skip < count) return carry_out(group, warp);
      skip -= count;
    }
  }
}

void Wgmma::end_of_block() {
  constexpr unsigned kAll = (1u << kWarps) - 1;
  for (size_t i = 0; i < groups_.size(); ++i) {
    for (const Product& product : groups_[i].products) {
      std::string missing;
      for (size_t warp = 0; warp < kWarps; ++warp) {
        const unsigned bit = 1u << warp;
        if ((product.released & bit) != 0) continue;
        const bool is_committed = product.shares[warp].group < groups_[i].warps[warp].num_committed;
        missing += (missing.empty() ? "warp " : ", warp ") + std::to_string(i * kWarps + warp) +
                   ((product.issued & bit) == 0 ? " never issued"
                    : is_committed              ? " never waited for"
                                                : " never committed");
      }
      block_.launch.report(product.issued == kAll ? FindingKind::unfinished : FindingKind::wgmma,
                           block_, "ends with a wgmma that " + missing, product.at);
    }
  }
}

}  // namespace wide::simt
