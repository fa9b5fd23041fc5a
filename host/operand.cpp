// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// One buffer per operand: guard band, payload with its gaps, guard band, all 0xFF before values are
// written: NaN in every floating dtype and -1 in integers, so a read beyond the payload shows, too.
// Inputs are kept once: on the CPU the device's buffer is the host's, and a hash tells whether it
// was written to; on CUDA the host's copy tells.
#include "host/operand.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

#include "host/core/check.hpp"
#include "host/operand_values.hpp"

namespace wide::catalog {

namespace {

constexpr int64_t kGuardBytes = 4096;
constexpr std::byte kPoison{0xff};
/// Fewer values than this are not worth a thread.
constexpr int64_t kValuesPerThread = 1 << 18;

/// Where the payload lies in a buffer; the rest is guard band.
struct Extent {
  int64_t offset = kGuardBytes;
  int64_t bytes = 0;
  int64_t end() const { return offset + bytes; }
  int64_t total() const { return end() + kGuardBytes; }
};

bool is_poison(std::byte b) {
  return b == kPoison;
}

/// FNV-1a over words. Every step is a bijection, so no single change can go unseen.
uint64_t hash_bytes(const std::byte* data, int64_t bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
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

std::string guard_damage(const std::byte* bytes, const Extent& extent) {
  const std::byte* start = bytes + extent.offset;
  const auto before =
      std::find_if_not(std::reverse_iterator(start), std::reverse_iterator(bytes), is_poison);
  if (before.base() != bytes) {
    return "byte " + std::to_string(start - before.base() + 1) + " before its start was written";
  }
  const std::byte* end = bytes + extent.end();
  const std::byte* last = bytes + extent.total();
  const std::byte* behind = std::find_if_not(end, last, is_poison);
  if (behind == last) return "";
  return "byte " + std::to_string(behind - end + 1) + " behind its end was written";
}

/// Plain bytes, guard bands and all, as a tensor.
ConstTensorView as_bytes(const std::vector<std::byte>& bytes) {
  return ConstTensorView(bytes.data(), Dtype::fp8_e4m3, {static_cast<int64_t>(bytes.size())},
                         Device{});
}

/// A buffer on the context's device with what `write` puts into it. Returns the host's copy; none
/// on the CPU.
template <class Write>
std::vector<std::byte> make_buffer(const Context& context, int64_t bytes, Tensor& buffer,
                                   const Write& write) {
  buffer = Tensor(context, Dtype::fp8_e4m3, {bytes});
  if (context.device().type == DeviceType::cpu) {
    write(static_cast<std::byte*>(buffer.data()));
    return {};
  }
  std::vector<std::byte> host(static_cast<size_t>(bytes));
  write(host.data());
  const OwnedStream stream(context);
  copy(as_bytes(host), buffer, stream.get());
  context.synchronize(stream.get());
  return host;
}

/// The bytes of a buffer: its own on the CPU, else read back into `scratch`. Nobody else's stream
/// is known here; the callers have waited for theirs.
const std::byte* read_buffer(const Context& context, const Tensor& buffer,
                             std::vector<std::byte>& scratch) {
  if (context.device().type == DeviceType::cpu) return static_cast<std::byte*>(buffer.data());
  scratch.resize(static_cast<size_t>(buffer.bytes()));
  const OwnedStream stream(context);
  copy(buffer, TensorView(scratch.data(), buffer.dtype(), buffer.shape(), Device{}), stream.get());
  context.synchronize(stream.get());
  return scratch.data();
}

}  // namespace

struct Operand::State {
  State(const Context& context_, const Description& description_, const WorkloadOptions& options_)
      : context(context_), description(description_), options(options_) {}

  Context context;
  Description description;
  WorkloadOptions options;
  Shape packed_shape;
  Shape stored_shape;  ///< packed_shape with padding on its last axis
  int axis = 0;        ///< the member axis
  Extent extent;
  Tensor buffer;
  std::vector<std::byte> host;  ///< an input's buffer where the device is not the host
  uint64_t hash = 0;            ///< of an input's buffer where it is
  mutable std::vector<Tensor> separate;
  mutable std::vector<double> decoded;
  mutable int64_t decoded_member = -1;

  int64_t element_bytes() const { return dtype_bytes(description.dtype); }
  bool is_output() const { return description.distribution.kind == Distribution::Kind::none; }
  bool is_poisoned(int64_t member) const {
    return !description.is_shared && member == options.poisoned_member;
  }
  int64_t num_tensors() const { return description.is_shared ? 1 : description.num_members; }
  int64_t id_of(int64_t member) const {
    if (description.is_shared) return 0;
    return options.member_ids.empty() ? member : options.member_ids[static_cast<size_t>(member)];
  }
  const std::byte* payload() const {
    return (host.empty() ? static_cast<const std::byte*>(buffer.data()) : host.data()) +
           extent.offset;
  }
  Extent member_extent() const {
    return {kGuardBytes, checked_bytes(description.member_shape, element_bytes())};
  }
  /// Runs are the contiguous stretches along the last axis.
  int64_t run_length() const { return description.member_shape.back(); }
  int64_t runs_per_member() const {
    return run_length() == 0 ? 0 : num_elements(description.member_shape) / run_length();
  }
  std::string name() const {
    return std::string(description.packing.name) + (is_output() ? " (output)" : "");
  }

  int64_t run_offset(int64_t member, int64_t run) const;
  void fill(std::byte* bytes) const;
  void gather(const std::byte* packed, int64_t member, std::byte* dense) const;
  void make_separate() const;
  std::string packed_damage() const;
  std::string gap_damage(const std::byte* payload) const;
  std::string member_damage(int64_t member) const;
};

/// First element of run `run` of a member in the packed tensor. Members side by side on an axis, or
/// on an axis of their own: either way the other axes keep their order.
int64_t Operand::State::run_offset(int64_t member, int64_t run) const {
  const Strides strides = contiguous_strides(stored_shape);
  const Shape& shape = description.member_shape;
  const bool is_stacked =
      !description.is_shared && description.packing.kind == PackedOperand::Kind::stacked;
  int64_t offset = 0;
  if (!description.is_shared) offset = member * strides[axis] * (is_stacked ? 1 : shape[axis]);
  for (int a = shape.rank() - 2; a >= 0; --a) {
    offset += run % shape[a] * strides[is_stacked && a >= axis ? a + 1 : a];
    run /= shape[a];
  }
  return offset;
}

void Operand::State::fill(std::byte* bytes) const {
  std::memset(bytes, 0xff, static_cast<size_t>(extent.total()));
  const int64_t runs = runs_per_member(), length = run_length(), num_runs = num_tensors() * runs;
  if (is_output() || num_runs == 0) return;
  std::byte* payload = bytes + extent.offset;
  const auto fill_member_run = [&](int64_t member, int64_t run) {
    const bool shifts = is_poisoned(member);
    if (shifts && is_floating(description.dtype)) return;  // NaN as it is
    const Distribution& from = description.distribution;
    const uint64_t key =
        stream_key(options.seed, description.packing.name, description.occurrence, id_of(member));
    fill_run(from, key, run * length, length, shifts ? from.high + 1 : 0, description.dtype,
             payload + run_offset(member, run) * element_bytes());
  };
  const auto fill_range = [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) fill_member_run(i / runs, i % runs);
  };
  const int64_t num_threads =
      std::clamp<int64_t>(num_runs * length / kValuesPerThread, 1,
                          std::max<int64_t>(1, std::thread::hardware_concurrency()));
  std::vector<std::jthread> threads;
  for (int64_t t = 1; t < num_threads; ++t) {
    threads.emplace_back(fill_range, num_runs * t / num_threads, num_runs * (t + 1) / num_threads);
  }
  fill_range(0, num_runs / num_threads);
}

/// A member's values out of the packed payload, densely packed.
void Operand::State::gather(const std::byte* packed, int64_t member, std::byte* dense) const {
  const int64_t run_bytes = run_length() * element_bytes();
  for (int64_t run = 0; run < runs_per_member(); ++run) {
    std::memcpy(dense + run * run_bytes, packed + run_offset(member, run) * element_bytes(),
                static_cast<size_t>(run_bytes));
  }
}

void Operand::State::make_separate() const {
  const Extent own = member_extent();
  for (int64_t m = 0; m < num_tensors(); ++m) {
    make_buffer(context, own.total(), separate.emplace_back(), [&](std::byte* bytes) {
      std::memset(bytes, 0xff, static_cast<size_t>(own.total()));
      if (!is_output()) gather(payload(), m, bytes + own.offset);
    });
  }
}

std::string Operand::State::gap_damage(const std::byte* bytes) const {
  if (options.row_padding == 0) return "";
  const int64_t row = stored_shape.back() * element_bytes();
  const int64_t used = packed_shape.back() * element_bytes();
  for (int64_t start = 0; start < extent.bytes; start += row) {
    if (!std::all_of(bytes + start + used, bytes + start + row, is_poison)) {
      return "the gap behind row " + std::to_string(start / row) + " was written";
    }
  }
  return "";
}

std::string Operand::State::packed_damage() const {
  std::vector<std::byte> scratch;
  const std::byte* bytes = read_buffer(context, buffer, scratch);
  std::string damage = guard_damage(bytes, extent);
  if (damage.empty()) damage = gap_damage(bytes + extent.offset);
  if (!damage.empty() || is_output()) return damage;
  const std::byte* expected = host.data();
  std::vector<std::byte> filled_again;
  if (host.empty()) {
    if (hash_bytes(bytes, extent.total()) == hash) return "";
    filled_again.resize(static_cast<size_t>(extent.total()));
    fill(filled_again.data());
    expected = filled_again.data();
  }
  const std::byte* at = std::mismatch(bytes, bytes + extent.total(), expected).first;
  if (at == bytes + extent.total()) return "";
  int64_t element = (at - bytes - extent.offset) / element_bytes();
  const Strides strides = contiguous_strides(stored_shape);
  Shape place = stored_shape;
  for (int a = 0; a < place.rank(); ++a) {
    place[a] = element / strides[a];
    element %= strides[a];
  }
  return "this input was written to, first at " + to_string(place);
}

std::string Operand::State::member_damage(int64_t member) const {
  std::vector<std::byte> scratch;
  const Extent own = member_extent();
  const std::byte* bytes = read_buffer(context, separate[static_cast<size_t>(member)], scratch);
  const std::string damage = guard_damage(bytes, own);
  if (!damage.empty() || is_output()) return damage;
  std::vector<std::byte> expected(static_cast<size_t>(own.bytes));
  gather(payload(), member, expected.data());
  const bool is_intact = std::equal(expected.begin(), expected.end(), bytes + own.offset);
  return is_intact ? "" : "this input was written to";
}

Operand::Operand(const Context& context, const Description& description,
                 const WorkloadOptions& options)
    : state_(std::make_unique<State>(context, description, options)) {
  State& s = *state_;
  const int64_t num_ids = static_cast<int64_t>(options.member_ids.size());
  WIDE_REQUIRE(num_ids == 0 || num_ids == description.num_members,
               "workload: " + std::to_string(num_ids) + " member ids, expected num_members = " +
                   std::to_string(description.num_members));
  const Shape& member = description.member_shape;
  s.packed_shape = description.is_shared
                       ? member
                       : packed_shape(description.packing, member, description.num_members);
  s.axis = description.packing.axis + (description.packing.axis < 0 ? member.rank() : 0);
  s.stored_shape = s.packed_shape;
  s.stored_shape[s.stored_shape.rank() - 1] += options.row_padding;
  s.extent = {kGuardBytes + options.misalign_elements * s.element_bytes(),
              checked_bytes(s.stored_shape, s.element_bytes())};
  s.host =
      make_buffer(context, s.extent.total(), s.buffer, [&](std::byte* bytes) { s.fill(bytes); });
  if (s.is_output()) {
    s.host = {};  // what an output held is of no use
  } else if (s.host.empty()) {
    s.hash = hash_bytes(static_cast<std::byte*>(s.buffer.data()), s.extent.total());
  }
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
  return TensorView(static_cast<std::byte*>(s.buffer.data()) + s.extent.offset, s.description.dtype,
                    s.packed_shape, contiguous_strides(s.stored_shape), s.context.device());
}

TensorView Operand::member(int64_t index) const {
  const State& s = *state_;
  if (s.separate.empty()) s.make_separate();
  const Tensor& buffer = s.separate[s.description.is_shared ? 0 : static_cast<size_t>(index)];
  return TensorView(static_cast<std::byte*>(buffer.data()) + s.member_extent().offset,
                    s.description.dtype, s.description.member_shape, s.context.device());
}

std::span<const double> Operand::values(int64_t member) const {
  const State& s = *state_;
  WIDE_REQUIRE(!s.is_output(), s.name() + ": an output has no values to look at");
  const int64_t wanted = s.description.is_shared ? 0 : member;
  if (s.decoded_member == wanted) return s.decoded;
  s.decoded.resize(static_cast<size_t>(num_elements(s.description.member_shape)));
  const int64_t length = s.run_length();
  for (int64_t run = 0; run < s.runs_per_member(); ++run) {
    const std::byte* source = s.payload() + s.run_offset(wanted, run) * s.element_bytes();
    double* out = s.decoded.data() + run * length;
    for (int64_t i = 0; i < length; ++i) out[i] = load_element(source, s.description.dtype, i);
  }
  s.decoded_member = wanted;
  return s.decoded;
}

void Operand::poison(OutputOf which, Stream stream) {
  const State& s = *state_;
  if (which == OutputOf::strategy) return fill_bytes(s.buffer, 0xff, stream);
  if (s.separate.empty()) s.make_separate();
  for (const Tensor& buffer : s.separate) fill_bytes(buffer, 0xff, stream);
}

MemberOutputs Operand::read(OutputOf which, Stream stream) const {
  const State& s = *state_;
  s.context.synchronize(stream);
  MemberOutputs outputs{s.description.dtype, s.runs_per_member(), s.run_length(), {}};
  std::vector<std::byte> scratch;
  const bool is_baseline = which == OutputOf::baseline;
  if (is_baseline && s.separate.empty()) s.make_separate();
  const std::byte* packed = is_baseline ? nullptr : read_buffer(s.context, s.buffer, scratch);
  const Extent own = s.member_extent();
  for (int64_t m = 0; m < s.description.num_members; ++m) {
    auto& dense = outputs.members.emplace_back(static_cast<size_t>(own.bytes));
    if (is_baseline) {
      const Tensor& buffer = s.separate[static_cast<size_t>(m)];
      std::copy_n(read_buffer(s.context, buffer, scratch) + own.offset, own.bytes, dense.begin());
    } else {
      s.gather(packed + s.extent.offset, m, dense.data());
    }
  }
  return outputs;
}

std::string Operand::damage(Stream stream) const {
  const State& s = *state_;
  s.context.synchronize(stream);
  if (const std::string found = s.packed_damage(); !found.empty()) return s.name() + ": " + found;
  for (size_t m = 0; m < s.separate.size(); ++m) {
    const std::string found = s.member_damage(static_cast<int64_t>(m));
    if (!found.empty()) return s.name() + " of member " + std::to_string(m) + ": " + found;
  }
  return "";
}

PackedWorkload::PackedWorkload(const Context& context, int64_t num_members,
                               const WorkloadOptions& options)
    : context_(context), num_members_(num_members), options_(options) {}

Operand& PackedWorkload::add_operand(const PackedOperand& packing, Dtype dtype,
                                     const Shape& member_shape, const Distribution& distribution,
                                     bool is_shared) {
  const auto occurrence = std::count_if(
      operands_.begin(), operands_.end(),
      [&](const Operand& operand) { return operand.description().packing.name == packing.name; });
  return operands_.emplace_back(context_,
                                Operand::Description{packing, dtype, member_shape, num_members_,
                                                     is_shared, distribution, occurrence},
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
