// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What lowering of all operations shares.
#include "host/model/lowering.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "host/core/check.hpp"
#include "host/core/workspace.hpp"
#include "host/model/batch.hpp"
#include "host/model/layout.hpp"
#include "host/model/passes.hpp"
#include "host/model/ragged.hpp"
#include "host/model/routed.hpp"
#include "host/model/shape_text.hpp"
#include "host/model/sizes.hpp"
#include "host/pack/member_copy.hpp"

namespace wide {

namespace {

Shape permuted(const Shape& shape, const Dims& order) {
  if (order.rank() == 0) return shape;
  Shape out = shape;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    out[axis] = shape[static_cast<int>(order[axis])];
  }
  return out;
}

/// Where members stand in an image that a convolution reads in another layout; nothing: as in y.
std::optional<int> own_axis(const Node& node, std::string_view name, int rank) {
  const auto* conv = std::get_if<ConvOp>(&node.operation);
  if (conv == nullptr || !conv->x_layout || name != "x") return {};
  return *conv->x_layout == ChannelLayout::channels_last ? rank - 1 : 1;
}

}  // namespace

Lowering::Lowering(const Context& context, const Graph& graph, const ModelProblem& problem,
                   const ModelOptions& options, int64_t stored_members)
    : context_(context),
      graph_(graph),
      problem_(problem),
      options_(options),
      stored_members_(stored_members),
      is_shared_(shared_values(graph, options.shared_parameters, options.drops_out)),
      has_choices_(values_of_choices(problem, graph, is_shared_)),
      takes_gates_(is_shared_.size(), false),
      first_rows_(first_rows(problem)),
      places_(static_cast<size_t>(graph.num_values())) {}

PlanOptions Lowering::plan_options(std::string_view node, std::string_view primitive) const {
  PlanOptions plan;
  plan.strategy = strategy_of(options_, node, primitive);
  plan.tuning = options_.tuning;
  return plan;
}

int64_t Lowering::members_of(const Node& node) const {
  if (lies_as_one()) return 1;
  const bool is_ensemble = std::holds_alternative<EnsembleOp>(node.operation);
  return is_shared(node.outputs[0]) && !is_ensemble ? 1 : problem_.num_members;
}

Place Lowering::place(Value value) const {
  const Place& all = places_[static_cast<size_t>(value.index)];
  if (member_ < 0) return all;
  return sliced_place(all, 0, is_shared(value) ? 0 : first_row(member_), num_rows(member_));
}

Place Lowering::operand(const Node& node, std::string_view name) const {
  const Value value = node.operand(name);
  Place place = this->place(value);
  if (place.is_shared() && members_of(node) > 1) {
    place.num_members = members_of(node);
    place.member_axis = place.shape.rank() - 1;
  }
  return place;
}

Place Lowering::own_operand(const Node& node, std::string_view name) {
  const Place from = operand(node, name);
  if (!is_shared(node.operand(name)) || members_of(node) == 1) return from;
  if (!options_.moves_data) {
    throw_unsupported(node_text(graph_, node) + std::string(name) +
                      " is one for all members, expected one for each: this would copy data; "
                      "declare the input as each member's own");
  }
  const std::optional<int> axis = own_axis(node, name, from.shape.rank());
  Place to = packed_place(from.dtype, from.shape, from.num_members,
                          axis ? *axis : place(node.outputs[0]).member_axis);
  to.storage =
      add_storage({MemoryKind::activations, 0, 0,
                   checked_bytes({to.num_members, num_elements(to.shape)}, dtype_bytes(to.dtype))});
  notes.push_back(node.name + ": " + std::string(name) +
                  " is one for all members, and copied for each");
  add_copy(node.name + ".copy", stacked_view(from, device()), stacked_view(to, device()),
           to.num_members);
  return to;
}

Place Lowering::repeated(const Node& node, Value value) {
  const Place& all = places_[static_cast<size_t>(value.index)];
  const int64_t choices = problem_.choices;
  if (choices == 1 || has_choices(value)) return all;
  const auto found = repeated_.find(value.index);
  if (found != repeated_.end()) return found->second;
  if (!options_.moves_data) {
    throw_unsupported(node_text(graph_, node) + graph_.name(value) +
                      " is one for all members of a row, expected one for each: this would copy "
                      "data");
  }
  Place from = all, to = packed_place(all.dtype, all.shape, 1, -1);
  from.num_members = choices;  // K times the same
  to.shape[0] *= choices;
  to.storage = add_activation(to.dtype, to.shape).storage;
  notes.push_back(node.name + ": " + graph_.name(value) +
                  " is one for all members of a row, and copied for each");
  add_copy(node.name + ".copy", stacked_view(from, device()),
           stacked_view(choices_apart(to, choices), device()), num_members());
  return repeated_.emplace(value.index, to).first->second;
}

void Lowering::with_repeated_operands(const Node& node, const std::function<void()>& lower) {
  if (problem_.choices == 1 || !has_choices(node.outputs[0])) return lower();
  const std::vector<Place> own = places_;
  for (const Operand& operand : node.operands) {
    if (!is_batched(graph_, operand.value)) continue;
    places_[static_cast<size_t>(operand.value.index)] = repeated(node, operand.value);
  }
  lower();
  places_ = own;
}

PlacedView Lowering::norm_ids(const Node& node) const {
  const bool is_one = !problem_.is_routed || is_shared(node.outputs[0]);
  return is_one || treats_rows_alike(*this, node) ? PlacedView{} : ids_of_routing;
}

PlacedView Lowering::rows(const Node& node, std::string_view name) const {
  if (node.operand(name).is_absent()) return {};
  const Place place = operand(node, name);
  return folded_view(node.name, place, place.shape.rank() - 1, device());
}
PlacedView Lowering::rows(const Node& node, Value value) const {
  return folded_view(node.name, place(value), place(value).shape.rank() - 1, device());
}

PlacedView Lowering::positions(const Node& node, std::string_view name) const {
  if (node.operand(name).is_absent()) return {};
  const Place place = operand(node, name);
  require_one_row_stride(node.name, node.operand(name), place);
  return rows_view(place, device());
}
PlacedView Lowering::positions(Value value) const {
  return rows_view(place(value), device());
}

PlacedView Lowering::joined(const Node& node, std::string_view name) {
  if (node.operand(name).is_absent()) return {};
  const Place place = own_operand(node, name);
  require_side_by_side(node.name, node.operand(name), place);
  return joined_view(node.name, place, device());
}
PlacedView Lowering::joined(const Node& node, Value value) const {
  return joined_view(node.name, place(value), device());
}

int32_t Lowering::add_storage(const Storage& storage) {
  storages.push_back(storage);
  return static_cast<int32_t>(storages.size()) - 1;
}

int32_t Lowering::add_weights(int64_t bytes) {
  check_size(graph_.name() + ": what its members keep of one node", bytes);
  const int64_t offset = std::exchange(weights_bytes, weights_bytes + aligned_bytes(bytes));
  return add_storage({MemoryKind::weights, 0, offset, bytes});
}

Place Lowering::stored(const Node& node, Value value, const Dims& order) {
  const bool is_one = is_shared(node.outputs[0]);
  const int64_t stored = is_one ? 1 : stored_members_;
  for (const ParameterSlot& slot : slots) {
    if (slot.value == value && slot.order == order && slot.stored_members == stored) {
      return selected(slot.place);
    }
  }
  const ValueType& type = graph_.type(value);
  ParameterSlot slot{.value = value, .order = order, .place = {}, .stored_members = stored};
  slot.place = packed_place(type.dtype, permuted(type.shape, order), is_one ? 1 : num_members(), 0);
  slot.member_bytes = checked_bytes(slot.place.shape, dtype_bytes(type.dtype));
  slot.storage = add_weights(slot.member_bytes * stored);
  slot.place.storage = slot.storage;
  slots.push_back(slot);
  return selected(slot.place);
}

Place Lowering::selected(Place parameter) const {
  if (member_ < 0 || parameter.num_members == 1) return parameter;
  parameter.offset += member_ * parameter.member_stride;
  parameter.num_members = 1;
  return parameter;
}

PlacedView Lowering::parameter(const Node& node, std::string_view name, const Dims& order) {
  const Value value = node.operand(name);
  if (value.is_absent()) return {};
  return stacked_view(stored(node, value, order), device());
}

PlacedView Lowering::joined_parameter(const Node& node, std::string_view name, const Dims& order) {
  const Value value = node.operand(name);
  if (value.is_absent()) return {};
  return joined_view(node.name, stored(node, value, order), device());
}

PlacedView Lowering::own_parameter(Dtype dtype, int64_t elements, int32_t& storage) {
  Place place = packed_place(dtype, {elements}, num_members(), 0);
  if (storage < 0) {
    storage = add_weights(checked_bytes({stored_members_, elements}, dtype_bytes(dtype)));
  }
  place.storage = storage;
  return stacked_view(selected(place), device());
}

Lowering::DropoutViews Lowering::dropout_parameters(const Node& node, const DropoutOp& op) {
  auto own = std::find_if(dropouts.begin(), dropouts.end(),
                          [&](const DropoutSlots& known) { return known.of == node.outputs[0]; });
  if (own == dropouts.end()) {  // else another member of a ragged model was here
    own = dropouts.insert(own, {.of = node.outputs[0], .probability = op.probability});
  }
  if (seed_storage < 0) {
    const auto count = std::ranges::count_if(graph_.nodes(), [](const Node& other) {
      return std::holds_alternative<DropoutOp>(other.operation);
    });
    seed_storage =
        add_weights(checked_bytes({count, stored_members_, 2}, dtype_bytes(Dtype::int64)));
  }
  Place seeds = packed_place(Dtype::int64, {2}, num_members(), 0);
  seeds.storage = seed_storage;
  seeds.offset = (own - dropouts.begin()) * stored_members_ * 2;
  return {stacked_view(selected(seeds), device()),
          node.operand("probability").is_absent()
              ? own_parameter(Dtype::fp32, 1, own->probabilities)
              : parameter(node, "probability")};
}

PlacedView Lowering::add_input(const std::string& name, Dtype dtype, const Shape& shape) {
  Place place = packed_place(dtype, shape, 1, -1);
  place.storage = add_storage(
      {MemoryKind::input, std::ssize(inputs), 0, checked_bytes(shape, dtype_bytes(dtype))});
  inputs.push_back({.name = name, .dtype = dtype, .shape = shape, .num_members = num_members()});
  return shared_view(place, device());
}

PlacedView Lowering::add_activation(Dtype dtype, const Shape& shape) {
  Place place = packed_place(dtype, shape, 1, -1);
  place.storage =
      add_storage({MemoryKind::activations, 0, 0, checked_bytes(shape, dtype_bytes(dtype))});
  return shared_view(place, device());
}

Bases Lowering::example() const {
  // Plans that check for overlaps must find none: kStorageSpacing exceeds every storage.
  static std::byte* const anywhere = reinterpret_cast<std::byte*>(kStorageSpacing);
  return {.inputs = {},
          .outputs = {},
          .weights = anywhere,
          .activations = anywhere,
          .storages = storages,
          .is_example = true};
}

void Lowering::add_copy(const std::string& node, const PlacedView& from, const PlacedView& to,
                        int64_t num_members) {
  // Field by field: where a later one of a nested braced list throws, GCC 12 destroys earlier ones
  // twice (its bug 66139).
  LoweredStep step;
  step.info = {node, "copy", "", "copies " + to_string(to.view.shape), num_members, 0};
  step.storages = {from.storage, to.storage};
  step.run = [from, to, is_cpu = device().type == DeviceType::cpu](const Bases& at,
                                                                   const Execution& execution) {
    const MemberCopy copy{at.at(from), at.at(to)};
    if (is_cpu) return copy_members_cpu(std::span(&copy, 1));
    copy_members_cuda(std::span(&copy, 1), execution.stream);
  };
  steps.push_back(std::move(step));
}

}  // namespace wide
