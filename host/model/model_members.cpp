// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Changes of a model's members. All checks and allocations come before the first byte that is
// written, so that members are unchanged when a change fails.
#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "host/core/check.hpp"
#include "host/core/runtime.hpp"
#include "host/model/members.hpp"
#include "host/model/model_state.hpp"
#include "host/model/queued_work.hpp"
#include "host/model/run_checks.hpp"

namespace wide {

namespace {

/// A const view where the weights are const.
template <class Weights>
auto bytes_at(Weights& weights, int64_t offset, int64_t bytes) {
  return weights.view().narrow(0, offset, bytes);
}

TensorView bytes_of(std::vector<std::byte>& bytes) {
  return TensorView(bytes.data(), Dtype::uint8, Shape{std::ssize(bytes)}, Device{});
}

/// Bytes of member `member` in a slot.
template <class Weights>
auto slot_bytes(const ModelPlan::State& s, const ParameterSlot& slot, Weights& weights,
                int64_t member) {
  const int64_t own = slot.stored_members == 1 ? 0 : member;
  const int64_t start = s.storages[static_cast<size_t>(slot.storage)].offset;
  return bytes_at(weights, start + own * slot.member_bytes, slot.member_bytes);
}

/// The slot that holds a parameter as it was given, except for its axes' order; nullptr: none.
const ParameterSlot* raw_slot(const ModelPlan::State& s, const std::string& parameter) {
  for (const ParameterSlot& slot : s.slots) {
    const bool is_raw = s.graph.kind(slot.value) == ValueKind::parameter;
    if (is_raw && s.graph.name(slot.value) == parameter) return &slot;
  }
  return nullptr;
}

/// The new content of a slot for a member.
struct SlotContent {
  const ParameterSlot* slot;
  HostValue value;
  std::optional<ConstTensorView> given{};  ///< then it is this, and `value` is not set
};

/// Whether a parameter's bytes go into a slot as they are, from wherever they lie.
bool takes_as_given(const ModelPlan::State& s, const ParameterSlot& slot,
                    const ConstTensorView& view) {
  return s.graph.kind(slot.value) == ValueKind::parameter && slot.order.rank() == 0 &&
         !is_one_for_all(s, slot) && view.dtype == slot.place.dtype && view.is_contiguous();
}

/// Before a wait, and before anything is queued: a wait would invalidate the capture, which is the
/// caller's.
void require_no_capture(const Context& context, Stream stream, const std::string& why) {
  const Device device = context.device();
  const bool is_captured =
      device.type == DeviceType::cuda && runtime::is_capturing(device.ordinal, stream);
  WIDE_REQUIRE(!is_captured, "model: " + why + ": expected a stream that is not being captured");
}

/// Of a change that computes with the parameters `on_host`, and writes `given` contents.
void require_no_captured_wait(const ModelPlan::State& s, const Context& context, Stream stream,
                              const std::set<std::string>& on_host,
                              const std::vector<SlotContent>& given, const char* change) {
  const std::string* name = on_host.empty() ? nullptr : &*on_host.begin();
  for (const SlotContent& content : given) {
    const bool is_from_host = content.given && content.given->device.type == DeviceType::cpu;
    if (name == nullptr && is_from_host) name = &s.graph.name(content.slot->value);
  }
  if (name == nullptr) return;
  require_no_capture(context, stream,
                     *name + " passes through the host, so that " + change + " waits");
}

SlotContent content_of(const ModelPlan::State& s, const ParameterSlot& slot,
                       const HostValues& values, HostContext& host) {
  return {&slot, permuted(evaluate(s.graph, slot.value, values, host), slot.order)};
}

/// The current content of a slot for a member; waits.
std::vector<std::byte> read_slot(const ModelPlan::State& s, const Model::State& state,
                                 const ParameterSlot& slot, int64_t member, Stream stream) {
  std::vector<std::byte> bytes(static_cast<size_t>(slot.member_bytes));
  copy(slot_bytes(s, slot, state.weights, member), bytes_of(bytes), stream);
  state.context.synchronize(stream);
  return bytes;
}

/// A member must not change values that are one for all: those are removed from `contents`, as they
/// are stored already, unless this is the very first member.
void settle_shared(const ModelPlan::State& s, const Model::State& state,
                   std::vector<SlotContent>& contents, int64_t member, Stream stream,
                   const MemberLoads& loads) {
  std::erase_if(contents, [&](const SlotContent& content) {
    const ParameterSlot& slot = *content.slot;
    if (!is_one_for_all(s, slot)) return false;
    const auto first = loads.shared.find(&slot);
    const bool is_kept = first != loads.shared.end();
    if (loads.makes_model && !is_kept) return false;
    const auto& wanted = content.value.bytes;
    const bool is_same =
        is_kept ? first->second == wanted : read_slot(s, state, slot, member, stream) == wanted;
    WIDE_REQUIRE(is_same, "model: member " + std::to_string(member) + ": " +
                              s.graph.name(slot.value) +
                              " differs from that of the other members, expected the same: it is "
                              "one of shared_parameters");
    return true;
  });
}

/// Waits for copies from the host, whose memory may go.
void write_slots(const ModelPlan::State& s, Model::State& state, std::vector<SlotContent>& contents,
                 int64_t member, Stream stream) {
  std::optional<QueuedWork> from_host;
  for (SlotContent& content : contents) {
    const std::optional<ConstTensorView>& given = content.given;
    const TensorView slot = slot_bytes(s, *content.slot, state.weights, member);
    if (!from_host && (!given || given->device.type == DeviceType::cpu))
      from_host.emplace(state.context, stream);
    if (given) {
      copy(*given, TensorView(slot.data, given->dtype, given->shape, slot.device), stream);
    } else {
      copy(bytes_of(content.value.bytes), slot, stream);
    }
  }
  if (from_host) from_host->wait();
}

void copy_slots(const ModelPlan::State& s, Model::State& state, int64_t from, int64_t to,
                Stream stream) {
  for (const ParameterSlot& slot : s.slots) {
    if (slot.stored_members == 1) continue;
    copy(slot_bytes(s, slot, state.weights, from), slot_bytes(s, slot, state.weights, to), stream);
  }
}

/// A parameter of a member as it was given, in the graph's dtype; waits.
HostValue stored_value(const ModelPlan::State& s, const Model::State& state, int64_t member,
                       const std::string& parameter, Stream stream) {
  const ParameterSlot* slot = raw_slot(s, parameter);
  if (slot == nullptr) return state.kept[static_cast<size_t>(member)].at(parameter);
  const HostValue stored{{slot->place.dtype, slot->place.shape},
                         read_slot(s, state, *slot, member, stream)};
  return permuted(stored, inverse(slot->order));
}

}  // namespace

void Model::replace(int64_t member, const MemberParameters& parameters, Stream stream) {
  MemberLoads loads{.host = HostContext(state_->context)};
  load(member, parameters, stream, loads);
}

void Model::load(int64_t member, const MemberParameters& parameters, Stream stream,
                 MemberLoads& loads) {
  require_member(member);
  const ModelPlan::State& s = plan_.state();
  State& state = *state_;
  require_stream(state.context.device(), stream);
  require_parameters(state.context, s.source, member, parameters);
  std::vector<SlotContent> contents;
  std::set<std::string> on_host;  // those that are kept, or that others' contents are made from
  for (const Value p : s.source.parameters()) {
    if (raw_slot(s, s.source.name(p)) == nullptr) on_host.insert(s.source.name(p));
  }
  std::vector<const ParameterSlot*> computed;
  for (const ParameterSlot& slot : s.slots) {
    const bool is_raw = s.graph.kind(slot.value) == ValueKind::parameter;
    const ConstTensorView* view = is_raw ? &parameters.at(s.graph.name(slot.value)) : nullptr;
    if (is_raw && takes_as_given(s, slot, *view)) {
      contents.push_back({&slot, {}, *view});
    } else {
      computed.push_back(&slot);
      on_host.merge(parameters_in(s.graph, slot.value));
    }
  }
  require_no_captured_wait(s, state.context, stream, on_host, contents,
                           loads.makes_model ? "making a model" : "replace");
  HostValues values;
  for (const std::string& name : on_host) {
    values.emplace(name,
                   checked_parameter(state.context, s.source, member, s.source.find_parameter(name),
                                     parameters.at(name), stream));
  }
  for (const ParameterSlot* slot : computed) {
    const auto value = values.find(s.graph.name(slot->value));
    if (value != values.end() && takes_as_given(s, *slot, view_of(value->second))) {
      contents.push_back({slot, {}, view_of(value->second)});  // converted, but as it lies
    } else {
      contents.push_back(content_of(s, *slot, values, loads.host));
    }
  }
  const auto lock = state.lock.for_change();
  settle_shared(s, state, contents, member, stream, loads);
  write_slots(s, state, contents, member, stream);
  std::erase_if(values, [&](const auto& value) { return raw_slot(s, value.first) != nullptr; });
  state.kept[static_cast<size_t>(member)].swap(values);
  if (!loads.makes_model) return;
  for (SlotContent& content : contents) {
    if (is_one_for_all(s, *content.slot)) {
      loads.shared.emplace(content.slot, std::move(content.value.bytes));
    }
  }
}

void Model::set(int64_t member, std::string_view parameter, const ConstTensorView& view,
                Stream stream) {
  require_member(member);
  const ModelPlan::State& s = plan_.state();
  State& state = *state_;
  require_stream(state.context.device(), stream);
  const Value place = known_parameter(s.source, parameter);
  const std::string& name = s.source.name(place);
  require_parameter(state.context, s.source, member, place, view);
  std::vector<std::pair<const ParameterSlot*, std::set<std::string>>> slots;  // what is made of it
  bool is_as_given = raw_slot(s, name) != nullptr;
  for (const ParameterSlot& slot : s.slots) {
    std::set<std::string> names = parameters_in(s.graph, slot.value);
    if (!names.contains(name)) continue;
    is_as_given = is_as_given && takes_as_given(s, slot, view);
    slots.emplace_back(&slot, std::move(names));
  }
  if (!is_as_given || view.device.type == DeviceType::cpu) {
    require_no_capture(state.context, stream, name + " passes through the host, so that set waits");
  }
  HostValue value;
  if (!is_as_given) value = checked_parameter(state.context, s.source, member, place, view, stream);
  MemberLoads loads{.host = HostContext(state.context)};
  const auto lock = state.lock.for_change();
  std::vector<SlotContent> contents;
  for (const auto& [slot, names] : slots) {
    if (is_as_given) {
      contents.push_back({slot, {}, view});
      continue;
    }
    HostValues values;  // what the slot is made from: others' current values
    for (const std::string& n : names) {
      values.emplace(n, n == name ? value : stored_value(s, state, member, n, stream));
    }
    contents.push_back(content_of(s, *slot, values, loads.host));
  }
  settle_shared(s, state, contents, member, stream, loads);
  write_slots(s, state, contents, member, stream);
  HostValues& kept = state.kept[static_cast<size_t>(member)];
  if (const auto found = kept.find(name); found != kept.end()) std::swap(found->second, value);
}

void Model::clone(int64_t from, int64_t to, Stream stream) {
  require_member(from);
  require_member(to);
  require_stream(state_->context.device(), stream);
  if (from == to) return;
  const auto lock = state_->lock.for_change();
  HostValues kept = state_->kept[static_cast<size_t>(from)];
  copy_slots(plan_.state(), *state_, from, to, stream);
  state_->kept[static_cast<size_t>(to)].swap(kept);
}

OwnedParameters Model::get(int64_t member, Stream stream) const {
  require_member(member);
  require_stream(state_->context.device(), stream);
  require_no_capture(state_->context, stream, "get waits");
  const ModelPlan::State& s = plan_.state();
  const Context cpu = Context::cpu({.num_threads = 1, .allocator = nullptr});
  OwnedParameters parameters;
  const auto lock = state_->lock.for_read();
  for (const Value parameter : s.source.parameters()) {
    const std::string& name = s.source.name(parameter);
    const HostValue value = stored_value(s, *state_, member, name, stream);
    Tensor tensor(cpu, value.type.dtype, s.source.type(parameter).shape);
    if (tensor.bytes() > 0) std::memcpy(tensor.data(), value.bytes.data(), value.bytes.size());
    parameters.emplace(name, std::move(tensor));
  }
  return parameters;
}

void Model::get(int64_t member, std::string_view parameter, const TensorView& destination,
                Stream stream) const {
  require_member(member);
  const ModelPlan::State& s = plan_.state();
  const Context& context = state_->context;
  require_stream(context.device(), stream);
  const Value place = known_parameter(s.source, parameter);
  require_parameter(context, s.source, member, place, destination, "destination of ");
  const std::string& name = s.source.name(place);
  WIDE_REQUIRE(destination.is_contiguous(), "model: member " + std::to_string(member) +
                                                ": destination of " + name + " has strides " +
                                                to_string(destination.strides) +
                                                ", expected it densely packed");
  require_no_capture(context, stream, "get waits");
  const ParameterSlot* slot = raw_slot(s, name);
  if (slot != nullptr && slot->order.rank() == 0 && slot->place.dtype == destination.dtype) {
    const auto lock = state_->lock.for_read();
    const auto stored = slot_bytes(s, *slot, std::as_const(state_->weights), member);
    copy(stored, TensorView(destination.data, Dtype::uint8, stored.shape, destination.device),
         stream);
    return context.synchronize(stream);
  }
  HostValue value = [&] {
    const auto lock = state_->lock.for_read();
    return converted(context, stored_value(s, *state_, member, name, stream), destination.dtype);
  }();
  const TensorView from = bytes_of(value.bytes);
  copy(from, TensorView(destination.data, Dtype::uint8, from.shape, destination.device), stream);
  context.synchronize(stream);
}

std::vector<int64_t> Model::compact(Stream stream) {
  State& state = *state_;
  require_stream(state.context.device(), stream);
  const auto n = static_cast<size_t>(plan_.problem().num_members);
  const auto lock = state.lock.for_change();
  std::vector<int64_t> from;
  std::vector<HostValues> kept;  // of those that move
  for (size_t member = 0; member < n; ++member) {
    if (state.is_masked[member]) continue;
    const bool moves = member != from.size();
    kept.push_back(moves ? state.kept[member] : HostValues{});
    from.push_back(static_cast<int64_t>(member));
  }
  for (size_t to = 0; to < from.size(); ++to) {
    const auto place = static_cast<int64_t>(to);
    if (from[to] == place) continue;
    copy_slots(plan_.state(), state, from[to], place, stream);
    state.kept[to].swap(kept[to]);
  }
  for (size_t member = 0; member < n; ++member) {
    set_mask(static_cast<int64_t>(member), member >= from.size(), stream);
  }
  return from;
}

void Model::set_mask(int64_t member, bool is_masked, Stream stream) {
  const ModelPlan::State& s = plan_.state();
  if (s.mask_storage >= 0) {
    const int64_t offset = s.storages[static_cast<size_t>(s.mask_storage)].offset;
    fill_bytes(bytes_at(state_->weights, offset + member, 1), is_masked ? 0 : 1, stream);
  }
  state_->is_masked[static_cast<size_t>(member)] = is_masked;
}

void Model::mask(int64_t member, Stream stream) {
  require_member(member);
  require_stream(state_->context.device(), stream);
  const auto lock = state_->lock.for_change();
  const std::vector<bool>& is_masked = state_->is_masked;
  const int64_t n = plan_.problem().num_members;
  const auto masked = std::count(is_masked.begin(), is_masked.begin() + n, true);
  WIDE_REQUIRE(is_masked[static_cast<size_t>(member)] || masked + 1 < n,
               "model: mask of member " + std::to_string(member) +
                   " would leave none, expected one that is not masked");
  set_mask(member, true, stream);
}
void Model::unmask(int64_t member, Stream stream) {
  require_member(member);
  require_stream(state_->context.device(), stream);
  const auto lock = state_->lock.for_change();
  set_mask(member, false, stream);
}
bool Model::is_masked(int64_t member) const {
  require_member(member);
  const auto lock = state_->lock.for_read();
  return state_->is_masked[static_cast<size_t>(member)];
}

}  // namespace wide
