// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// One buffer per operand: guard band, payload with its gaps, guard band, all 0xFF before values are
// written: NaN in every floating dtype and -1 in integers, so a read past the payload shows, too.
// Inputs are kept once: on the CPU the device's buffer is the host's, and a hash shows whether it
// was written to; on CUDA the host's copy does.
#include "host/operand.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <mutex>
#include <thread>

#include "host/core/check.hpp"
#include "host/core/thread_pool.hpp"
#include "host/operand_values.hpp"

namespace wide::catalog {

namespace {

constexpr int64_t kGuardBytes = 4096;
constexpr std::byte kPoison{0xff};
/// Few enough that most sums of a small case have none, enough that some have two.
constexpr double kSpecialShare = 1.0 / 64;
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

/// FNV-1a over words. Every step is a bijection, so no single change goes unnoticed.
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
  return "byte " + std::to_string(behind - end + 1) + " past its end was written";
}

/// Plain bytes, guard bands and all, as a tensor.
ConstTensorView as_bytes(const std::vector<std::byte>& bytes) {
  return ConstTensorView(bytes.data(), Dtype::uint8, {static_cast<int64_t>(bytes.size())},
                         Device{});
}

/// Copies what `write` writes to a buffer on the context's device. Returns the host's copy; none on
/// the CPU.
template <class Write>
std::vector<std::byte> fill_buffer(const Context& context, Tensor& buffer, const Write& write) {
  if (context.device().type == DeviceType::cpu) {
    write(static_cast<std::byte*>(buffer.data()));
    return {};
  }
  std::vector<std::byte> host(static_cast<size_t>(buffer.bytes()));
  write(host.data());
  const OwnedStream stream(context);
  copy(as_bytes(host), buffer, stream.get());
  context.synchronize(stream.get());
  return host;
}

/// The bytes of a buffer: its own on the CPU, else read back, until this thread reads another. It
/// keeps the memory: to map and clear as much anew takes three times as long as the copy. Other
/// streams are not known here; callers have waited for theirs.
const std::byte* read_buffer(const Context& context, const Tensor& buffer) {
  if (context.device().type == DeviceType::cpu) return static_cast<const std::byte*>(buffer.data());
  thread_local std::vector<std::byte> scratch;
  const auto bytes = static_cast<size_t>(buffer.bytes());
  if (scratch.size() < bytes) scratch = {}, scratch.resize(bytes);
  std::fill_n(scratch.begin(), std::min<size_t>(bytes, 64), std::byte{0});  // no other's guard
  const OwnedStream stream(context);
  copy(buffer, TensorView(scratch.data(), buffer.dtype(), buffer.shape(), Device{}), stream.get());
  context.synchronize(stream.get());
  return scratch.data();
}

/// Runs are the contiguous stretches along the last axis.
int64_t run_length(const MemberPlace& place) {
  return place.shape.back();
}
int64_t num_runs(const MemberPlace& place) {
  return run_length(place) == 0 ? 0 : num_elements(place.shape) / run_length(place);
}

/// First element of a run in the stored tensor.
int64_t run_offset(const MemberPlace& place, int64_t run) {
  int64_t offset = place.offset;
  for (int a = place.shape.rank() - 2; a >= 0; --a) {
    int64_t index = run % place.shape[a];
    if (a == 0 && !place.rows.empty()) index = place.rows[static_cast<size_t>(index)];
    offset += index * place.strides[a];
    run /= place.shape[a];
  }
  return offset;
}

/// The end of the last element of any member.
int64_t end_of(std::span<const MemberPlace> places) {
  int64_t end = 0;
  for (const MemberPlace& place : places) {
    const int64_t runs = num_runs(place);
    if (runs > 0) end = std::max(end, run_offset(place, runs - 1) + run_length(place));
  }
  return end;
}

/// Members side by side on an axis, or on an axis of their own: either way the other axes keep
/// their order.
std::vector<MemberPlace> packed_places(const Operand::Description& description,
                                       const Shape& stored_shape) {
  const Shape& shape = description.member_shape;
  const Strides strides = contiguous_strides(stored_shape);
  if (description.is_shared) return {MemberPlace{shape, 0, strides}};
  const PackedOperand& packing = description.packing;
  const int axis = packing.axis + (packing.axis < 0 ? shape.rank() : 0);
  const bool is_stacked = packing.kind == PackedOperand::Kind::stacked;
  MemberPlace place{shape, 0, shape};
  for (int a = 0; a < shape.rank(); ++a)
    place.strides[a] = strides[is_stacked && a >= axis ? a + 1 : a];
  std::vector<MemberPlace> places;
  for (int64_t m = 0; m < description.num_members; ++m) {
    place.offset = m * strides[axis] * (is_stacked ? 1 : shape[axis]);
    places.push_back(place);
  }
  return places;
}

}  // namespace

struct Operand::State {
  State(const Context& context_, const Description& description_, const WorkloadOptions& options_)
      : context(context_), description(description_), options(options_) {}

  Context context;
  Description description;
  WorkloadOptions options;
  Shape packed_shape;
  Shape stored_shape;               ///< packed_shape with padding on its last axis
  std::vector<MemberPlace> places;  ///< one, where all members share the tensor
  Extent extent;
  mutable Tensor buffer;
  mutable std::once_flag filling;
  mutable std::vector<std::byte> host;  ///< an input's buffer where the device is not the host
  mutable uint64_t hash = 0;            ///< of an input's buffer where it is
  mutable std::vector<Tensor> separate;
  mutable std::mutex decoding;  ///< held by the thread that writes the next two
  mutable std::vector<double> decoded;
  mutable std::atomic<int64_t> decoded_member{-1};

  int64_t element_bytes() const { return dtype_bytes(description.dtype); }
  bool is_output() const { return description.distribution.kind == Distribution::Kind::none; }
  bool may_change() const { return is_output() || description.is_state; }
  bool is_poisoned(int64_t member) const {
    return !description.is_shared && member == options.poisoned_member;
  }
  int64_t id_of(int64_t member) const {
    if (description.is_shared) return 0;
    return options.member_ids.empty() ? member : options.member_ids[static_cast<size_t>(member)];
  }
  const std::byte* payload() const {
    ensure_filled();
    return (host.empty() ? static_cast<const std::byte*>(buffer.data()) : host.data()) +
           extent.offset;
  }
  const MemberPlace& place_of(int64_t member) const {
    return places[description.is_shared ? 0 : static_cast<size_t>(member)];
  }
  Extent extent_of(const MemberPlace& place) const {
    return {kGuardBytes, checked_bytes(place.shape, element_bytes())};
  }
  std::string name() const {
    return std::string(description.packing.name) + (is_output() ? " (output)" : "");
  }

  void fill(std::byte* bytes) const;
  void ensure_filled() const;
  void gather(const std::byte* packed, const MemberPlace& place, std::byte* dense) const;
  void make_separate() const;
  std::string index_of(int64_t element) const;
  std::string packed_damage() const;
  std::string gap_damage(const std::byte* payload) const;
  std::string member_damage(size_t tensor) const;
};

void Operand::State::fill(std::byte* bytes) const {
  std::memset(bytes, 0xff, static_cast<size_t>(extent.total()));
  if (is_output()) return;
  std::byte* payload = bytes + extent.offset;
  std::vector<int64_t> first_run{0};  // of each place, then the total
  int64_t num_values = 0;
  for (const MemberPlace& place : places) {
    first_run.push_back(first_run.back() + num_runs(place));
    num_values += num_elements(place.shape);
  }
  const auto fill_member_run = [&](size_t member, int64_t run) {
    const MemberPlace& place = places[member];
    const auto index = static_cast<int64_t>(member);
    const bool shifts = is_poisoned(index);
    const int64_t length = run_length(place);
    std::byte* to = payload + run_offset(place, run) * element_bytes();
    if (description.contents) {
      const auto size = static_cast<size_t>(length * element_bytes());
      return description.contents(id_of(index), shifts, std::span(to, size));
    }
    if (shifts && is_floating(description.dtype)) return;  // NaN as it is
    Distribution from = description.distribution;
    if (options.fill == Fill::specials && !from.stays_finite) from.specials = kSpecialShare;
    const uint64_t key =
        stream_key(options.seed, description.packing.name, description.occurrence, id_of(index));
    fill_run(from, key, run * length, length, shifts ? from.high + 1 : 0, description.dtype, to);
  };
  const auto fill_range = [&](int64_t first, int64_t last) {
    auto behind = std::upper_bound(first_run.begin(), first_run.end(), first);
    for (int64_t i = first; i < last; ++i) {
      while (*behind <= i) ++behind;
      fill_member_run(static_cast<size_t>(behind - first_run.begin() - 1), i - behind[-1]);
    }
  };
  const int64_t runs = first_run.back();
  const int64_t num_threads = std::clamp<int64_t>(
      num_values / kValuesPerThread, 1, std::max<int64_t>(1, std::thread::hardware_concurrency()));
  const auto fill_part = [&](int64_t t) {
    fill_range(runs * t / num_threads, runs * (t + 1) / num_threads);
  };
  ThreadPool(static_cast<int>(num_threads)).run(num_threads, task_body(fill_part));
}

/// When it is first looked at, so that all operands are allocated before one of them takes memory.
void Operand::State::ensure_filled() const {
  std::call_once(filling, [&] {
    host = fill_buffer(context, buffer, [&](std::byte* bytes) { fill(bytes); });
    if (is_output()) {
      host = {};  // an output's initial contents are not needed
    } else if (host.empty()) {
      hash = hash_bytes(static_cast<const std::byte*>(buffer.data()), extent.total());
    }
  });
}

/// Copies a member's values out of the packed payload, densely packed.
void Operand::State::gather(const std::byte* packed, const MemberPlace& place,
                            std::byte* dense) const {
  const int64_t run_bytes = run_length(place) * element_bytes();
  for (int64_t run = 0; run < num_runs(place); ++run) {
    std::memcpy(dense + run * run_bytes, packed + run_offset(place, run) * element_bytes(),
                static_cast<size_t>(run_bytes));
  }
}

void Operand::State::make_separate() const {
  for (const MemberPlace& place : places) {
    const Extent own = extent_of(place);
    separate.emplace_back(context, Dtype::uint8, Shape{own.total()});
    fill_buffer(context, separate.back(), [&](std::byte* bytes) {
      std::memset(bytes, 0xff, static_cast<size_t>(own.total()));
      if (!is_output()) gather(payload(), place, bytes + own.offset);
    });
  }
}

/// "[row, column]" of an element of the stored tensor.
std::string Operand::State::index_of(int64_t element) const {
  const Strides strides = contiguous_strides(stored_shape);
  Shape index = stored_shape;
  for (int a = 0; a < index.rank(); ++a) {
    index[a] = element / strides[a];
    element %= strides[a];
  }
  return to_string(index);
}

/// Checks every element that belongs to no member.
std::string Operand::State::gap_damage(const std::byte* bytes) const {
  const int64_t size = element_bytes(), num_stored = extent.bytes / size;
  int64_t num_values = 0;
  for (const MemberPlace& place : places) num_values += num_elements(place.shape);
  if (num_values == num_stored) return "";
  std::vector<char> is_value(static_cast<size_t>(num_stored));
  for (const MemberPlace& place : places) {
    for (int64_t run = 0; run < num_runs(place); ++run) {
      std::fill_n(is_value.begin() + run_offset(place, run), run_length(place), char{1});
    }
  }
  for (int64_t i = 0; i < num_stored; ++i) {
    const bool is_gap = is_value[static_cast<size_t>(i)] == 0;
    if (is_gap && !std::all_of(bytes + i * size, bytes + (i + 1) * size, is_poison)) {
      return "the gap at " + index_of(i) + " was written";
    }
  }
  return "";
}

std::string Operand::State::packed_damage() const {
  const std::byte* bytes = read_buffer(context, buffer);
  std::string damage = guard_damage(bytes, extent);
  if (damage.empty()) damage = gap_damage(bytes + extent.offset);
  if (!damage.empty() || may_change()) return damage;
  const std::byte* expected = host.data();
  std::vector<std::byte> filled_again;
  if (host.empty()) {
    if (hash_bytes(bytes, extent.total()) == hash) return "";
    filled_again.resize(static_cast<size_t>(extent.total()));
    fill(filled_again.data());
    expected = filled_again.data();
  }
  // Searched only if there is something to find: memcmp() is several times as fast.
  if (std::memcmp(bytes, expected, static_cast<size_t>(extent.total())) == 0) return "";
  const std::byte* at = std::mismatch(bytes, bytes + extent.total(), expected).first;
  const int64_t element = (at - bytes - extent.offset) / element_bytes();
  return "this input was written to, first at " + index_of(element);
}

std::string Operand::State::member_damage(size_t tensor) const {
  const MemberPlace& place = places[tensor];
  const Extent own = extent_of(place);
  const std::byte* bytes = read_buffer(context, separate[tensor]);
  const std::string damage = guard_damage(bytes, own);
  if (!damage.empty() || may_change()) return damage;
  const int64_t run_bytes = run_length(place) * element_bytes();
  for (int64_t run = 0; run < num_runs(place); ++run) {
    const std::byte* expected = payload() + run_offset(place, run) * element_bytes();
    const std::byte* found = bytes + own.offset + run * run_bytes;
    if (std::memcmp(found, expected, static_cast<size_t>(run_bytes)) != 0)
      return "this input was written to";
  }
  return "";
}

Operand::Operand(const Context& context, const Description& description,
                 const WorkloadOptions& options)
    : state_(std::make_unique<State>(context, description, options)) {
  State& s = *state_;
  const int64_t num_ids = static_cast<int64_t>(options.member_ids.size());
  WIDE_REQUIRE(num_ids == 0 || num_ids == description.num_members,
               "workload: " + std::to_string(num_ids) + " member ids, expected num_members = " +
                   std::to_string(description.num_members));
  if (description.ragged.empty()) {
    const Shape& member = description.member_shape;
    s.packed_shape = description.is_shared
                         ? member
                         : packed_shape(description.packing, member, description.num_members);
    s.stored_shape = s.packed_shape;
    s.stored_shape[s.stored_shape.rank() - 1] += options.row_padding * description.granule;
    s.places = packed_places(description, s.stored_shape);
  } else {
    s.places = description.ragged;
    s.packed_shape = s.stored_shape = {std::max(end_of(s.places), description.ragged_elements)};
  }
  s.extent = {kGuardBytes + options.misalign_elements * description.granule * s.element_bytes(),
              checked_bytes(s.stored_shape, s.element_bytes())};
  s.buffer = Tensor(context, Dtype::uint8, {s.extent.total()});
}

Operand::~Operand() = default;

const Operand::Description& Operand::description() const {
  return state_->description;
}
bool Operand::is_output() const {
  return state_->is_output();
}

int64_t Operand::bytes() const {
  int64_t bytes = 0;
  for (const MemberPlace& place : state_->places) bytes += state_->extent_of(place).bytes;
  return bytes;
}

int64_t Operand::num_tensors() const {
  return static_cast<int64_t>(state_->places.size());
}

const Shape& Operand::member_shape(int64_t index) const {
  return state_->place_of(index).shape;
}

TensorView Operand::packed() const {
  State& s = *state_;
  s.ensure_filled();
  return TensorView(static_cast<std::byte*>(s.buffer.data()) + s.extent.offset, s.description.dtype,
                    s.packed_shape, contiguous_strides(s.stored_shape), s.context.device());
}

TensorView Operand::member(int64_t index) const {
  const State& s = *state_;
  if (s.separate.empty()) s.make_separate();
  Tensor& buffer = s.separate[s.description.is_shared ? 0 : static_cast<size_t>(index)];
  const MemberPlace& place = s.place_of(index);
  return TensorView(static_cast<std::byte*>(buffer.data()) + s.extent_of(place).offset,
                    s.description.dtype, place.shape, s.context.device());
}

std::span<const double> Operand::values(int64_t member) const {
  const State& s = *state_;
  WIDE_REQUIRE(!s.is_output(), s.name() + ": an output has no values to look at");
  const int64_t wanted = s.description.is_shared ? 0 : member;
  if (s.decoded_member.load(std::memory_order_acquire) == wanted) return s.decoded;
  const std::lock_guard lock(s.decoding);
  if (s.decoded_member.load(std::memory_order_relaxed) == wanted) return s.decoded;
  const MemberPlace& place = s.place_of(wanted);
  s.decoded.resize(static_cast<size_t>(num_elements(place.shape)));
  const int64_t length = run_length(place);
  for (int64_t run = 0; run < num_runs(place); ++run) {
    const std::byte* source = s.payload() + run_offset(place, run) * s.element_bytes();
    double* out = s.decoded.data() + run * length;
    for (int64_t i = 0; i < length; ++i) out[i] = load_element(source, s.description.dtype, i);
  }
  s.decoded_member.store(wanted, std::memory_order_release);
  return s.decoded;
}

void Operand::poison(OutputOf which, Stream stream) {
  State& s = *state_;
  s.ensure_filled();
  if (which == OutputOf::strategy) return fill_bytes(s.buffer, 0xff, stream);
  if (s.separate.empty()) s.make_separate();
  for (Tensor& buffer : s.separate) fill_bytes(buffer, 0xff, stream);
}

MemberOutputs Operand::read(OutputOf which, Stream stream) const {
  const State& s = *state_;
  s.ensure_filled();
  s.context.synchronize(stream);
  MemberOutputs outputs{s.description.dtype, {}};
  const bool is_baseline = which == OutputOf::baseline;
  if (is_baseline && s.separate.empty()) s.make_separate();
  const std::byte* packed = is_baseline ? nullptr : read_buffer(s.context, s.buffer);
  for (int64_t m = 0; m < num_tensors(); ++m) {
    const MemberPlace& place = s.place_of(m);
    const Extent own = s.extent_of(place);
    auto& member = outputs.members.emplace_back();
    member.rows = num_runs(place);
    member.row_length = run_length(place);
    member.bytes.resize(static_cast<size_t>(own.bytes));
    if (is_baseline) {
      const Tensor& buffer = s.separate[static_cast<size_t>(m)];
      std::copy_n(read_buffer(s.context, buffer) + own.offset, own.bytes, member.bytes.begin());
    } else {
      s.gather(packed + s.extent.offset, place, member.bytes.data());
    }
  }
  return outputs;
}

std::string Operand::damage(Stream stream) const {
  const State& s = *state_;
  s.ensure_filled();
  s.context.synchronize(stream);
  if (const std::string found = s.packed_damage(); !found.empty()) return s.name() + ": " + found;
  for (size_t m = 0; m < s.separate.size(); ++m) {
    const std::string found = s.member_damage(m);
    if (!found.empty()) return s.name() + " of member " + std::to_string(m) + ": " + found;
  }
  return "";
}

}  // namespace wide::catalog
