// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// ldmatrix stmatrix mma wgmma: shapes and types are read here, values are computed by the engine.
#include <algorithm>
#include <array>
#include <cstdio>
#include <span>

#include "verify/ptx/access.hpp"
#include "verify/simt/async.hpp"

namespace wide::ptx {

namespace {

using simt::InstructionClass;
using simt::MatrixType;

/// All of these need the whole warp, and wait for lanes that are still on their way, as they do
/// where the compiler makes lanes meet. False: the path comes here again.
bool is_together(Step& step) {
  const simt::LaneMask live = step.warp.exists & ~step.warp.exited;
  if (step.mask == live && live == simt::kAllLanes) return true;
  const bool others_may_come =
      std::any_of(step.warp.paths.begin(), step.warp.paths.end(),
                  [&](const simt::Path& other) { return &other != &step.path && other.is_ready; });
  if (others_may_come) {
    --step.path.pc;
    step.is_over = true;
    return false;
  }
  step.launch().report(
      simt::FindingKind::warp, step.block(),
      "warp " + std::to_string(step.warp.index) +
          " is not together at an instruction that needs all its lanes: " + step.in.text,
      step.in.at);
  return true;
}

/// An argument's registers, without memory of their own: products are many.
template <class T>
class Registers {
 public:
  Registers() {}  // leaves the array as it is: what was not added is never read
  void add(T* lanes) { all_.at(count_++) = lanes; }
  operator std::span<T* const>() const { return {all_.data(), count_}; }

 private:
  std::array<T*, 128> all_;  ///< as wgmma's accumulators may be
  size_t count_ = 0;
};

Registers<uint32_t> results(Step& step, size_t argument) {
  Registers<uint32_t> all;
  for (const Lanes& part : step.in.arguments[argument].parts) all.add(step.lanes<uint32_t>(part));
  return all;
}
Registers<const uint32_t> sources(const Step& step, size_t argument) {
  Registers<const uint32_t> all;
  for (const Lanes& part : step.in.arguments[argument].parts) all.add(step.lanes<uint32_t>(part));
  return all;
}

std::array<uint32_t, simt::kLanes> row_addresses(const Step& step, size_t argument) {
  std::array<uint32_t, simt::kLanes> rows{};
  for_lanes(step.mask, [&](int lane) {
    rows[static_cast<size_t>(lane)] = static_cast<uint32_t>(address_of(step, argument, lane));
  });
  return rows;
}

void load(Step& step) {
  if (!is_together(step)) return;
  load_matrix(step.warp, results(step, 0), row_addresses(step, 1), step.in.numbers[0] != 0,
              step.in.at);
}
void store(Step& step) {
  if (!is_together(step)) return;
  store_matrix(step.warp, sources(step, 1), row_addresses(step, 0), step.in.numbers[0] != 0,
               step.in.at);
}

MatrixType matrix_type(Decoder& d, Type type) {
  if (type == Type{'f', 16}) return MatrixType::f16;
  if (type == Type{'B', 16}) return MatrixType::bf16;
  if (type.kind == 't') return MatrixType::tf32;
  if (type == Type{'4', 8}) return MatrixType::e4m3;
  if (type == Type{'5', 8}) return MatrixType::e5m2;
  d.refuse("matrices of this type");
}

/// "m16n8k16" into three numbers.
std::array<int, 3> take_shape(Decoder& d) {
  for (std::string word = d.next();; word = d.next()) {
    if (word.empty()) d.refuse("a shape is missing");
    std::array<int, 3> shape{};
    if (std::sscanf(word.c_str(), "m%dn%dk%d", &shape[0], &shape[1], &shape[2]) == 3) return shape;
    if (word != "sync" && word != "aligned") d.refuse("modifier ." + word + " before the shape");
  }
}

// ---- mma.sync: the shape travels as numbers

void multiply(Step& step) {
  if (!is_together(step)) return;
  const auto& n = step.in.numbers;
  simt::MmaShape shape;
  shape.m = static_cast<int>(n[0] & 255);
  shape.n = static_cast<int>(n[0] >> 8 & 255);
  shape.k = static_cast<int>(n[0] >> 16);
  shape.type_a = static_cast<MatrixType>(n[1]);
  shape.type_b = static_cast<MatrixType>(n[2]);
  shape.d_is_half = (n[3] & 1) != 0;
  shape.c_is_half = (n[3] & 2) != 0;
  const auto d = results(step, 0);
  simt::mma(step.warp, shape, d, sources(step, 1), sources(step, 2), sources(step, 3));
}

void decode_mma(Decoder& d) {
  const auto [m, n, k] = take_shape(d);
  simt::MmaShape shape{m, n, k, {}, {}, false, false};
  if (!d.take("row") || !d.take("col")) d.refuse("operands that are not row and column");
  const Type result = d.take_type();
  shape.type_a = matrix_type(d, d.take_type());
  shape.type_b = matrix_type(d, d.take_type());
  const Type addend = d.take_type();
  shape.d_is_half = result.bits == 16;
  shape.c_is_half = addend.bits == 16;
  simt::require_mma(shape);
  d.require_arguments(4, 4);
  d.in.numbers = {m | n << 8 | k << 16, static_cast<int64_t>(shape.type_a),
                  static_cast<int64_t>(shape.type_b),
                  (shape.d_is_half ? 1 : 0) | (shape.c_is_half ? 2 : 0)};
  d.in.execute = multiply;
}

// ---- wgmma

simt::WgmmaShape wgmma_shape(const Step& step) {
  const auto& note = step.in.numbers;
  simt::WgmmaShape shape;
  shape.n = static_cast<int>(note[0]);
  shape.type_a = static_cast<MatrixType>(note[1]);
  shape.type_b = static_cast<MatrixType>(note[2]);
  shape.d_is_half = (note[3] & 1) != 0;
  shape.a_in_registers = step.in.arguments[1].kind == Argument::Kind::list;
  return shape;
}

void own(simt::Warp& warp, const Argument& registers, uint8_t how) {
  for (const Lanes& part : registers.parts) {
    uint8_t& flag = warp.in_flight[static_cast<size_t>(part.number)];
    warp.num_in_flight += flag == 0;
    flag |= how;
  }
}

/// What a thread wrote to D or A since the last fence is not ordered before the product.
void require_fence(Step& step, size_t argument, const char* what) {
  for (const Lanes& part : step.in.arguments[argument].parts) {
    const uint32_t written = step.warp.written[static_cast<size_t>(part.number)];
    if (written != step.warp.num_fences) continue;
    step.launch().report(simt::FindingKind::wgmma, step.block(),
                         "warp " + std::to_string(step.warp.index) + " wrote " + what +
                             " after its last wgmma.fence: " + step.in.text,
                         step.in.at);
    return;
  }
}

/// Arguments: d, a, b, scale-d, imm-scale-a, imm-scale-b [, imm-trans-a] [, imm-trans-b].
void multiply_group(Step& step) {
  if (!is_together(step)) return;
  simt::WgmmaShape shape = wgmma_shape(step);
  require_fence(step, 0, "accumulators");
  if (shape.a_in_registers) require_fence(step, 1, "A's registers");
  const auto immediate = [&](size_t i) {
    return static_cast<int32_t>(static_cast<uint32_t>(step.value(i, 0)));
  };
  shape.negate_a = immediate(4) == -1;
  shape.negate_b = immediate(5) == -1;
  const size_t count = step.in.arguments.size();
  if (count > 6 && shape.a_in_registers) shape.b_is_mn_major = immediate(6) == 1;
  if (count > 7 && !shape.a_in_registers) {
    shape.a_is_mn_major = immediate(6) == 1;
    shape.b_is_mn_major = immediate(7) == 1;
  }
  const auto d = results(step, 0);
  const auto a = shape.a_in_registers ? sources(step, 1) : Registers<const uint32_t>{};
  simt::WgmmaOperands operands{d, a, 0, 0, true};
  if (!shape.a_in_registers) operands.descriptor_a = step.uniform(1, "a wgmma descriptor");
  operands.descriptor_b = step.uniform(2, "a wgmma descriptor");
  operands.scale_d = step.uniform(3, "wgmma's scale-d") != 0;
  step.block().async->wgmma(step.warp, shape, operands, step.in.at);
  own(step.warp, step.in.arguments[0], simt::Warp::kOwned);
  if (shape.a_in_registers) own(step.warp, step.in.arguments[1], simt::Warp::kReadOnly);
}

/// Registers that no product owns any more may be touched again.
void wait_for_group(Step& step) {
  if (!is_together(step)) return;
  step.block().async->wgmma_wait(
      step.warp, static_cast<int>(step.uniform(0, "wgmma.wait_group's number")), step.in.at);
  auto& flags = step.warp.in_flight;
  for (size_t i = 0; i < flags.size() && step.warp.num_in_flight > 0; ++i) {
    const auto* lanes = reinterpret_cast<const uint32_t*>(step.registers + i * kLanes4);
    if (flags[i] == 0 || step.block().async->owns_register(step.warp, lanes)) continue;
    flags[i] = 0;
    --step.warp.num_in_flight;
  }
}

void fence_group(Step& step) {
  if (!is_together(step)) return;
  ++step.warp.num_fences;
  step.block().async->wgmma_fence(step.warp, step.in.at);
}
void commit_group(Step& step) {
  if (!is_together(step)) return;
  step.block().async->wgmma_commit(step.warp, step.in.at);
}

}  // namespace

void decode_matrix(Decoder& d) {
  d.in.kind = InstructionClass::tensor;
  if (d.opcode() == "mma") {
    d.ignore({"sync", "aligned"});
    return decode_mma(d);
  }
  d.in.kind = InstructionClass::memory;
  d.ignore({"sync", "aligned", "shared", "shared::cta"});
  if (!d.take("m8n8")) d.refuse("another shape than m8n8");
  const std::string_view number = d.take_one({"x1", "x2", "x4"});
  d.in.numbers[0] = d.take("trans");
  if (d.take_type() != Type{'b', 16}) d.refuse("elements of another type than b16");
  const bool is_load = d.opcode() == "ldmatrix";
  if (number.empty() ||
      d.in.arguments[is_load ? 0 : 1].parts.size() != static_cast<size_t>(number[1] - '0'))
    d.refuse("registers of another number");
  d.in.execute = is_load ? load : store;
}

void decode_wgmma(Decoder& d) {
  d.in.kind = InstructionClass::synchronise;
  const std::string_view what = d.take_one({"fence", "commit_group", "wait_group", "mma_async"});
  d.ignore({"sync", "aligned"});
  if (what == "fence") d.in.execute = fence_group;
  if (what == "commit_group") d.in.execute = commit_group;
  if (what == "wait_group") d.in.execute = wait_for_group;
  if (what != "mma_async") return;
  d.in.kind = InstructionClass::tensor;
  if (d.take("sp")) d.refuse("sparse operands");
  const auto [m, n, k] = take_shape(d);
  const Type result = d.take_type();
  simt::WgmmaShape shape;
  shape.n = n;
  shape.type_a = matrix_type(d, d.take_type());
  shape.type_b = matrix_type(d, d.take_type());
  shape.d_is_half = result == Type{'f', 16};
  shape.a_in_registers = d.in.arguments[1].kind == Argument::Kind::list;
  if (m != 64) d.refuse("m is not 64");
  simt::require_wgmma(shape);
  d.require_arguments(6, 8);
  d.in.numbers = {n, static_cast<int64_t>(shape.type_a), static_cast<int64_t>(shape.type_b),
                  shape.d_is_half};
  d.in.continues_product = true;
  d.in.execute = multiply_group;
}

}  // namespace wide::ptx
