// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// One buffer per operand: guard band, payload with its gaps, guard band, all 0xFF before values are
// written: NaN in every floating dtype and -1 in integers, so a read beyond the payload shows, too.
#include "host/operand.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <thread>

#include "host/core/check.hpp"
#include "wide/convert.hpp"

namespace wide::catalog {

namespace {

constexpr int64_t kGuardBytes = 4096;
constexpr std::byte kPoison{0xff};

/// Counter-based (SplitMix64's finaliser): value `index` of a stream costs two multiplications and
/// needs no state, so members can be filled in any order and by any thread.
uint64_t random_bits(uint64_t key, uint64_t index) {
  uint64_t z = key + (index + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

uint64_t stream_key(uint64_t seed, std::string_view name, int64_t id) {
  uint64_t key = seed;
  for (const char c : name) key = random_bits(key, static_cast<unsigned char>(c));
  return random_bits(key, static_cast<uint64_t>(id));
}

/// In [0, 1), 53 bits.
double unit(uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

double draw(const Distribution& from, uint64_t key, int64_t index) {
  const uint64_t bits = random_bits(key, static_cast<uint64_t>(index));
  switch (from.kind) {
    case Distribution::Kind::uniform:
      return from.low + (from.high - from.low) * unit(bits);
    case Distribution::Kind::ids:
    case Distribution::Kind::integers: {
      const bool keep = from.density >= 1 || index == 0 ||
                        unit(random_bits(~key, static_cast<uint64_t>(index))) < from.density;
      return keep ? from.low + std::floor((from.high - from.low + 1) * unit(bits)) : 0.0;
    }
    case Distribution::Kind::none:
      break;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

/// Strides of a member's tensor inside the packed one, and where member `index` begins.
struct MemberPlace {
  std::array<int64_t, kMaxRank> strides{};
  int64_t offset = 0;
};

}  // namespace

struct Operand::State {
  State(const Context& context_, const Description& description_, const WorkloadOptions& options_)
      : context(context_), description(description_), options(options_) {}

  Context context;
  Description description;
  WorkloadOptions options;
  Shape stored_shape;  ///< with padding on the last axis
  Shape packed_shape;
  int axis = 0;  ///< the member axis
  int64_t payload_offset = 0, payload_bytes = 0, buffer_bytes = 0;
  Tensor buffer;
  std::vector<std::byte> host;  ///< the buffer's contents; empty on the CPU, where it is the buffer
  uint64_t hash = 0;            ///< of an input's contents
  mutable std::vector<Tensor> separate;
  mutable std::vector<double> decoded;
  mutable int64_t decoded_member = -1;

  int64_t element_bytes() const { return dtype_bytes(description.dtype); }
  bool is_output() const { return description.distribution.kind == Distribution::Kind::none; }
  int64_t id_of(int64_t member) const {
    const bool mapped = !description.is_shared && !options.member_ids.empty();
    return mapped                  ? options.member_ids[static_cast<size_t>(member)]
           : description.is_shared ? 0
                                   : member;
  }
  const std::byte* contents() const {
    return host.empty() ? static_cast<const std::byte*>(buffer.data()) : host.data();
  }

  MemberPlace place(int64_t member) const {
    const Strides strides = contiguous_strides(stored_shape);
    const Shape& shape = description.member_shape;
    const bool is_stacked =
        !description.is_shared && description.packing.kind == PackedOperand::Kind::stacked;
    MemberPlace result;
    for (int a = 0; a < shape.rank(); ++a) {
      result.strides[static_cast<size_t>(a)] = strides[is_stacked && a >= axis ? a + 1 : a];
    }
    if (!description.is_shared) {
      result.offset = member * strides[axis] * (is_stacked ? 1 : shape[axis]);
    }
    return result;
  }

  /// Calls f(first element's number in the member's tensor, its offset in the packed one) for every
  /// run along the last axis.
  template <class F>
  void for_each_run(int64_t member, const F& f) const {
    const Shape& shape = description.member_shape;
    const MemberPlace at = place(member);
    const int inner = shape.rank() - 1;
    if (num_elements(shape) == 0) return;
    std::array<int64_t, kMaxRank> index{};
    for (int64_t number = 0;; number += shape[inner]) {
      int64_t offset = at.offset;
      for (int a = 0; a < inner; ++a) {
        offset += index[static_cast<size_t>(a)] * at.strides[static_cast<size_t>(a)];
      }
      f(number, offset);
      int a = inner - 1;
      while (a >= 0 && ++index[static_cast<size_t>(a)] == shape[a])
        index[static_cast<size_t>(a--)] = 0;
      if (a < 0) return;
    }
  }
  int64_t inner_stride(int64_t member) const {
    return place(member).strides[static_cast<size_t>(description.member_shape.rank() - 1)];
  }

  void plan_layout();
  void fill_member(std::byte* payload, int64_t member) const;
  void fill(std::byte* bytes) const;
  std::vector<std::byte> download() const;
};

void Operand::State::plan_layout() {
  const Shape& member = description.member_shape;
  packed_shape = description.is_shared
                     ? member
                     : wide::packed_shape(description.packing, member, description.num_members);
  axis = description.packing.axis < 0 ? description.packing.axis + member.rank()
                                      : description.packing.axis;
  stored_shape = packed_shape;
  stored_shape[stored_shape.rank() - 1] += options.row_padding;
  payload_offset = kGuardBytes + options.misalign_elements * element_bytes();
  payload_bytes = checked_bytes(stored_shape, element_bytes());
  buffer_bytes = payload_offset + payload_bytes + kGuardBytes;
}

void Operand::State::fill_member(std::byte* payload, int64_t member) const {
  const bool is_poisoned = member == options.poisoned_member && !description.is_shared;
  if (is_poisoned && is_floating(description.dtype)) return;
  const int64_t length = description.member_shape.back(), stride = inner_stride(member);
  const uint64_t key = stream_key(options.seed, description.packing.name, id_of(member));
  const Distribution& from = description.distribution;
  const double shift = is_poisoned ? from.high + 1 : 0;
  for_each_run(member, [&](int64_t number, int64_t offset) {
    for (int64_t i = 0; i < length; ++i) {
      const double value = draw(from, key, number + i) + shift;
      store_element(payload, description.dtype, offset + i * stride, value);
    }
  });
}

void Operand::State::fill(std::byte* bytes) const {
  std::memset(bytes, 0xff, static_cast<size_t>(buffer_bytes));
  if (is_output()) return;
  std::byte* payload = bytes + payload_offset;
  const int64_t num_fills = description.is_shared ? 1 : description.num_members;
  const int64_t num_values = num_fills * num_elements(description.member_shape);
  const int64_t num_threads =
      num_values < 1 << 20 ? 1 : std::min<int64_t>(num_fills, std::thread::hardware_concurrency());
  const auto fill_from = [&](int64_t first) {
    for (int64_t m = first; m < num_fills; m += num_threads) fill_member(payload, m);
  };
  std::vector<std::jthread> threads;
  for (int64_t t = 1; t < num_threads; ++t) threads.emplace_back(fill_from, t);
  fill_from(0);
}

std::vector<std::byte> Operand::State::download() const {
  std::vector<std::byte> bytes(static_cast<size_t>(buffer_bytes));
  const TensorView on_host(bytes.data(), buffer.dtype(), buffer.shape(), Device{});
  // Nobody else's stream is known here; the callers have waited for theirs.
  const OwnedStream stream(context);
  copy(buffer, on_host, stream.get());
  context.synchronize(stream.get());
  return bytes;
}

namespace {

uint64_t hash_bytes(const std::byte* data, int64_t bytes) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a over words, mixed at the end
  int64_t i = 0;
  for (; i + 8 <= bytes; i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, data + i, 8);
    hash = (hash ^ word) * 0x100000001b3u;
    hash ^= hash >> 29;
  }
  for (; i < bytes; ++i) hash = (hash ^ static_cast<uint64_t>(data[i])) * 0x100000001b3u;
  return hash;
}

}  // namespace

Operand::Operand(const Context& context, const Description& description,
                 const WorkloadOptions& options)
    : state_(std::make_unique<State>(context, description, options)) {
  State& s = *state_;
  WIDE_REQUIRE(
      options.member_ids.empty() ||
          static_cast<int64_t>(options.member_ids.size()) == description.num_members,
      "workload: " + std::to_string(options.member_ids.size()) +
          " member ids, expected num_members = " + std::to_string(description.num_members));
  s.plan_layout();
  s.buffer = Tensor(context, Dtype::fp8_e4m3, {s.buffer_bytes});  // plain bytes
  if (context.device().type == DeviceType::cpu) {
    s.fill(static_cast<std::byte*>(s.buffer.data()));
    if (!s.is_output()) s.hash = hash_bytes(s.contents(), s.buffer_bytes);
    return;
  }
  s.host.resize(static_cast<size_t>(s.buffer_bytes));
  s.fill(s.host.data());
  const OwnedStream stream(context);
  copy(ConstTensorView(s.host.data(), s.buffer.dtype(), s.buffer.shape(), Device{}), s.buffer,
       stream.get());
  context.synchronize(stream.get());
}

Operand::~Operand() = default;

const Operand::Description& Operand::description() const {
  return state_->description;
}
bool Operand::is_output() const {
  return state_->is_output();
}

int64_t Operand::bytes() const {
  return checked_bytes(state_->packed_shape, state_->element_bytes());
}

TensorView Operand::packed() const {
  const State& s = *state_;
  auto* data = static_cast<std::byte*>(s.buffer.data()) + s.payload_offset;
  return TensorView(data, s.description.dtype, s.packed_shape, contiguous_strides(s.stored_shape),
                    s.context.device());
}

TensorView Operand::member(int64_t index) const {
  const State& s = *state_;
  if (s.separate.empty()) {
    const int64_t count = s.description.is_shared ? 1 : s.description.num_members;
    const int64_t elements = num_elements(s.description.member_shape);
    const OwnedStream stream(s.context);
    std::vector<std::byte> dense(static_cast<size_t>(elements * s.element_bytes()));
    for (int64_t m = 0; m < count; ++m) {
      Tensor& tensor =
          s.separate.emplace_back(s.context, s.description.dtype, s.description.member_shape);
      if (s.is_output()) continue;
      const int64_t length = s.description.member_shape.back(), stride = s.inner_stride(m);
      const int64_t size = s.element_bytes();
      const std::byte* payload = s.contents() + s.payload_offset;
      s.for_each_run(m, [&](int64_t number, int64_t offset) {
        for (int64_t i = 0; i < length; ++i) {
          std::memcpy(dense.data() + (number + i) * size, payload + (offset + i * stride) * size,
                      static_cast<size_t>(size));
        }
      });
      copy(ConstTensorView(dense.data(), s.description.dtype, s.description.member_shape, Device{}),
           tensor, stream.get());
      s.context.synchronize(stream.get());
    }
  }
  return s.separate[s.description.is_shared ? 0 : static_cast<size_t>(index)];
}

std::span<const double> Operand::values(int64_t member) const {
  const State& s = *state_;
  const int64_t wanted = s.description.is_shared ? 0 : member;
  if (s.decoded_member != wanted) {
    s.decoded.resize(static_cast<size_t>(num_elements(s.description.member_shape)));
    const int64_t length = s.description.member_shape.back(), stride = s.inner_stride(wanted);
    const std::byte* payload = s.contents() + s.payload_offset;
    s.for_each_run(wanted, [&](int64_t number, int64_t offset) {
      for (int64_t i = 0; i < length; ++i) {
        s.decoded[static_cast<size_t>(number + i)] =
            load_element(payload, s.description.dtype, offset + i * stride);
      }
    });
    s.decoded_member = wanted;
  }
  return s.decoded;
}

void Operand::poison(OutputOf which, Stream stream) {
  if (which == OutputOf::strategy) return fill_bytes(state_->buffer, 0xff, stream);
  for (int64_t m = 0; m < state_->description.num_members; ++m) fill_bytes(member(m), 0xff, stream);
}

MemberOutputs Operand::read(OutputOf which, Stream stream) const {
  const State& s = *state_;
  const Shape& shape = s.description.member_shape;
  const int64_t size = s.element_bytes(), elements = num_elements(shape);
  MemberOutputs outputs{
      s.description.dtype, shape.back() == 0 ? 0 : elements / shape.back(), shape.back(), {}};
  s.context.synchronize(stream);
  std::vector<std::byte> copied;
  const std::byte* payload = nullptr;
  if (which == OutputOf::strategy) {
    if (s.host.empty()) {
      payload = s.contents() + s.payload_offset;
    } else {
      copied = s.download();
      payload = copied.data() + s.payload_offset;
    }
  }
  for (int64_t m = 0; m < s.description.num_members; ++m) {
    auto& dense = outputs.members.emplace_back(static_cast<size_t>(elements * size));
    if (which == OutputOf::baseline) {
      copy(member(m), TensorView(dense.data(), s.description.dtype, shape, Device{}), stream);
      s.context.synchronize(stream);
      continue;
    }
    const int64_t length = shape.back(), stride = s.inner_stride(m);
    s.for_each_run(m, [&](int64_t number, int64_t offset) {
      for (int64_t i = 0; i < length; ++i) {
        std::memcpy(dense.data() + (number + i) * size, payload + (offset + i * stride) * size,
                    static_cast<size_t>(size));
      }
    });
  }
  return outputs;
}

std::string Operand::damage(Stream stream) const {
  const State& s = *state_;
  s.context.synchronize(stream);
  const std::string name(s.description.packing.name);
  std::vector<std::byte> copied;
  const std::byte* bytes = s.contents();
  if (!s.host.empty()) {
    copied = s.download();
    bytes = copied.data();
  }
  const auto written = [&](int64_t first, int64_t count) -> int64_t {
    const std::byte* found = std::find_if(bytes + first, bytes + first + count,
                                          [](std::byte b) { return b != kPoison; });
    return found == bytes + first + count ? -1 : found - bytes;
  };
  if (const int64_t at = written(0, s.payload_offset); at >= 0) {
    return name + ": written " + std::to_string(s.payload_offset - at) + " bytes before its start";
  }
  const int64_t end = s.payload_offset + s.payload_bytes;
  if (const int64_t at = written(end, kGuardBytes); at >= 0) {
    return name + ": written " + std::to_string(at - end) + " bytes behind its end";
  }
  if (s.options.row_padding > 0) {
    const int64_t row = s.stored_shape.back() * s.element_bytes();
    const int64_t used = s.packed_shape.back() * s.element_bytes();
    for (int64_t start = s.payload_offset; start < end; start += row) {
      if (written(start + used, row - used) >= 0) {
        return name + ": written between row " + std::to_string((start - s.payload_offset) / row) +
               " and the next";
      }
    }
  }
  if (s.is_output()) return "";
  const bool is_intact =
      s.host.empty() ? hash_bytes(bytes, s.buffer_bytes) == s.hash
                     : std::memcmp(bytes, s.host.data(), static_cast<size_t>(s.buffer_bytes)) == 0;
  return is_intact ? "" : name + ": this input was written to";
}

PackedWorkload::PackedWorkload(const Context& context, int64_t num_members,
                               const WorkloadOptions& options)
    : context_(context), num_members_(num_members), options_(options) {}

Operand& PackedWorkload::add_operand(const PackedOperand& packing, Dtype dtype,
                                     const Shape& member_shape, const Distribution& distribution,
                                     bool is_shared) {
  return operands_.emplace_back(
      context_,
      Operand::Description{packing, dtype, member_shape, num_members_, is_shared, distribution},
      options_);
}

int64_t PackedWorkload::footprint_bytes() const {
  int64_t bytes = 0;
  for (const Operand& operand : operands_) bytes += operand.bytes();
  return bytes;
}

void PackedWorkload::poison_outputs(OutputOf which, Stream stream) {
  operands_.back().poison(which, stream);
}

MemberOutputs PackedWorkload::read_outputs(OutputOf which, Stream stream) {
  return operands_.back().read(which, stream);
}

std::string PackedWorkload::damage(Stream stream) {
  for (const Operand& operand : operands_) {
    if (std::string message = operand.damage(stream); !message.empty()) return message;
  }
  return "";
}

int64_t PackedWorkload::rows_per_member() const {
  const Shape& shape = operands_.back().description().member_shape;
  return shape.back() == 0 ? 0 : num_elements(shape) / shape.back();
}

int64_t PackedWorkload::row_length() const {
  return operands_.back().description().member_shape.back();
}

}  // namespace wide::catalog
