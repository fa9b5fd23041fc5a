// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic in double, rounded once to the dtype; nodes that only move elements move bytes. What
// is loaded is gathered and converted by the context's threads, straight from the view.
#include "host/model/member_values.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "host/core/byte_rows.hpp"
#include "host/core/check.hpp"
#include "host/core/nearest.hpp"
#include "host/core/row_cpu.hpp"
#include "host/core/slices.hpp"
#include "host/model/shape_text.hpp"
#include "wide/convert.hpp"
#include "wide/mlp.hpp"

namespace wide {

namespace {

/// The elements of a tensor on the host, of any strides, one after another.
void gather(const ConstTensorView& from, void* dense) {
  if (from.num_elements() == 0) return;
  copy_rows(byte_rows(from, contiguous_strides(from.shape)), from.data, dense);
}

/// Between fp32, fp16 and bf16, rounded once.
void convert(Dtype from, const void* source, Dtype to, void* destination, int64_t count) {
  call_vectorised([=] {
    float values[cpu::kRowChunk];
    for (int64_t first = 0; first < count; first += cpu::kRowChunk) {
      const int64_t chunk = std::min(cpu::kRowChunk, count - first);
      decode_row(from, static_cast<const char*>(source) + first * dtype_bytes(from), values, chunk);
      encode_row(to, values, static_cast<char*>(destination) + first * dtype_bytes(to), chunk);
    }
  });
}

/// A tensor on the host as dense elements of `dtype`.
std::vector<std::byte> dense(const Context& context, ConstTensorView view, Dtype dtype) {
  const int64_t count = view.num_elements(), bytes = dtype_bytes(dtype);
  std::vector<std::byte> out(static_cast<size_t>(count * bytes));
  if (count == 0) return out;
  const bool is_dense = view.is_contiguous();
  if (is_dense) view = ConstTensorView(view.data, view.dtype, {count}, Device{});
  const int64_t row = count / view.shape[0];
  const int64_t step = std::max<int64_t>(1, kElementsPerTask / row);
  parallel_for(context, (view.shape[0] + step - 1) / step, [&](int64_t task) {
    const ConstTensorView part =
        view.narrow(0, task * step, std::min(step, view.shape[0] - task * step));
    const int64_t elements = part.num_elements();
    std::byte* to = out.data() + task * step * row * bytes;
    if (view.dtype == dtype) return gather(part, to);
    if (is_dense) return convert(view.dtype, part.data, dtype, to, elements);
    std::vector<std::byte> gathered(static_cast<size_t>(elements * dtype_bytes(view.dtype)));
    gather(part, gathered.data());
    convert(view.dtype, gathered.data(), dtype, to, elements);
  });
  return out;
}

/// A tensor of any strides and device as dense elements of `dtype` on the host.
HostValue on_host(const Context& context, const ConstTensorView& view, Dtype dtype, Stream stream) {
  if (view.device.type == DeviceType::cpu) {
    return {{dtype, view.shape}, dense(context, view, dtype)};
  }
  std::vector<std::byte> span(static_cast<size_t>(view.span_bytes()));
  if (!span.empty()) {
    const Shape flat{static_cast<int64_t>(span.size())};
    copy(ConstTensorView(view.data, Dtype::uint8, flat, view.device),
         TensorView(span.data(), Dtype::uint8, flat, Device{}), stream);
    context.synchronize(stream);
    if (view.dtype == dtype && view.is_contiguous()) return {{dtype, view.shape}, std::move(span)};
  }
  const ConstTensorView here(span.data(), view.dtype, view.shape, view.strides, Device{});
  return {{dtype, view.shape}, dense(context, here, dtype)};
}

bool is_wide_float(Dtype dtype) {
  return dtype == Dtype::fp32 || dtype == Dtype::fp16 || dtype == Dtype::bf16;
}

std::vector<double> as_doubles(const HostValue& value) {
  const auto count = static_cast<size_t>(num_elements(value.type.shape));
  std::vector<double> doubles(count);
  for (size_t i = 0; i < count; ++i) {
    doubles[i] = load_element(value.bytes.data(), value.type.dtype, static_cast<int64_t>(i));
  }
  return doubles;
}

HostValue as_dtype(const std::vector<double>& values, const ValueType& type) {
  HostValue out{
      type, std::vector<std::byte>(values.size() * static_cast<size_t>(dtype_bytes(type.dtype)))};
  for (size_t i = 0; i < values.size(); ++i) {
    store_element(out.bytes.data(), type.dtype, static_cast<int64_t>(i), values[i]);
  }
  return out;
}

/// Nodes whose operands are parameters, each computed once.
class Evaluator {
 public:
  Evaluator(const Graph& graph, const HostValues& parameters, HostContext& host)
      : graph_(graph), parameters_(parameters), host_(host) {}

  const HostValue& operator()(Value value) {
    const Node* node = graph_.producer(value);
    if (node == nullptr) return parameters_.at(graph_.name(value));
    const auto found = computed_.find(value);
    if (found != computed_.end()) return found->second;
    HostValue y = std::visit([&](const auto& op) { return compute(*node, op); }, node->operation);
    return computed_.emplace(value, std::move(y)).first->second;
  }

 private:
  HostValue compute(const Node& node, const TransposeOp& op) {
    return permuted((*this)(node.operand("x")), op.order);
  }
  HostValue compute(const Node& node, const ReshapeOp& op) {
    HostValue value = (*this)(node.operand("x"));
    value.type.shape = op.shape;
    return value;
  }
  HostValue compute(const Node& node, const SliceOp& op) {
    const HostValue& x = (*this)(node.operand("x"));
    HostValue y{graph_.type(node.outputs[0]), {}};
    int64_t outer = 1, inner = dtype_bytes(x.type.dtype);
    for (int axis = 0; axis < op.axis; ++axis) outer *= x.type.shape[axis];
    for (int axis = op.axis + 1; axis < x.type.shape.rank(); ++axis) inner *= x.type.shape[axis];
    for (int64_t o = 0; o < outer; ++o) {
      const auto from = x.bytes.begin() + (o * x.type.shape[op.axis] + op.first) * inner;
      y.bytes.insert(y.bytes.end(), from, from + op.count * inner);
    }
    return y;
  }
  HostValue compute(const Node& node, const BinaryOp& op) {
    if (op.activation != Activation::none) return refuse(node);
    std::vector<double> x = as_doubles((*this)(node.operand("x")));
    const std::vector<double> other = as_doubles((*this)(node.operand("other")));
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = op.function == BinaryFunction::add        ? x[i] + other[i]
             : op.function == BinaryFunction::subtract ? x[i] - other[i]
             : op.function == BinaryFunction::multiply ? x[i] * other[i]
                                                       : x[i] / other[i];
    }
    return as_dtype(x, graph_.type(node.outputs[0]));
  }
  HostValue compute(const Node& node, const FoldBatchnormOp& op) {
    const std::vector<double> variance = as_doubles((*this)(node.operand("running_variance")));
    const size_t channels = variance.size();
    std::vector<double> factor = optional(node, "gamma", channels, 1);
    for (size_t c = 0; c < channels; ++c) {
      factor[c] /= std::sqrt(variance[c] + static_cast<double>(op.epsilon));
    }
    const ValueType& type = graph_.type(node.outputs[0]);
    if (!node.operand("weight").is_absent()) {
      std::vector<double> weight = as_doubles((*this)(node.operand("weight")));
      if (weight.empty()) return as_dtype(weight, type);
      const bool is_transposed = op.transposed_groups > 0;
      const size_t groups = is_transposed ? static_cast<size_t>(op.transposed_groups) : 1;
      const size_t inputs = is_transposed ? static_cast<size_t>(type.shape[0]) / groups : 1;
      const size_t own = channels / groups, row = weight.size() / (groups * inputs * own);
      for (size_t i = 0; i < weight.size(); ++i) {  // [groups, inputs, channels, ..]
        weight[i] *= factor[i / (inputs * own * row) * own + i / row % own];
      }
      return as_dtype(weight, type);
    }
    const std::vector<double> mean = as_doubles((*this)(node.operand("running_mean")));
    const std::vector<double> beta = optional(node, "beta", channels, 0);
    std::vector<double> bias = optional(node, "bias", channels, 0);
    for (size_t c = 0; c < channels; ++c) bias[c] = (bias[c] - mean[c]) * factor[c] + beta[c];
    return as_dtype(bias, type);
  }
  HostValue compute(const Node& node, const ConvPhasesOp& op) {
    const bool is_weight = !node.operand("weight").is_absent();
    const HostValue& from = (*this)(node.operand(is_weight ? "weight" : "bias"));
    return conv_phases(op, from, graph_.type(node.outputs[0]));
  }
  HostValue compute(const Node& node, const PackMlpOp& op) {
    const ValueType& type = graph_.type(node.outputs[0]);
    const int64_t element = dtype_bytes(type.dtype);
    MlpProblem problem;
    problem.widths = op.widths;
    problem.has_bias = op.has_bias;
    problem.dtype = type.dtype;
    HostValue packed{type, std::vector<std::byte>(static_cast<size_t>(type.shape[0] * element))};
    const std::vector<MlpLayerPlace> places = mlp_layer_places(problem);
    for (size_t i = 0; i < places.size(); ++i) {
      const std::string number = std::to_string(i);
      const HostValue& weight = (*this)(node.operand("weight" + number));
      const int64_t row = op.widths[i] * element;
      for (int64_t o = 0; o < op.widths[i + 1]; ++o) {
        std::memcpy(packed.bytes.data() + (places[i].weight + o * places[i].row) * element,
                    weight.bytes.data() + o * row, static_cast<size_t>(row));
      }
      if (!op.has_bias) continue;
      const HostValue& bias = (*this)(node.operand("bias" + number));
      std::memcpy(packed.bytes.data() + places[i].bias * element, bias.bytes.data(),
                  bias.bytes.size());
    }
    return packed;
  }
  HostValue compute(const Node& node, const QuantizeOp& op) {
    const HostValue& weight = (*this)(node.operand("weight"));
    const ValueType& type = graph_.type(node.outputs[0]);
    HostValue blob{type, std::vector<std::byte>(static_cast<size_t>(type.shape[0]))};
    const Shape& shape = weight.type.shape;
    const ConstTensorView member(weight.bytes.data(), weight.type.dtype, shape, Device{});
    quantize_weights(
        host_.get(), {op.format, op.group_size, shape[0], shape[1]}, std::span(&member, 1),
        TensorView(blob.bytes.data(), Dtype::uint8, {1, type.shape[0]}, Device{}), Stream::cpu());
    return blob;
  }
  template <class Op>
  HostValue compute(const Node& node, const Op&) {
    return refuse(node);
  }

  [[noreturn]] HostValue refuse(const Node& node) const {
    throw_unsupported(node_text(graph_, node) +
                      "all its operands are parameters, and this is not computed before "
                      "anything runs");
  }
  std::vector<double> optional(const Node& node, std::string_view name, size_t count,
                               double absent) {
    const Value value = node.operand(name);
    return value.is_absent() ? std::vector<double>(count, absent) : as_doubles((*this)(value));
  }

  const Graph& graph_;
  const HostValues& parameters_;
  HostContext& host_;
  std::map<Value, HostValue> computed_;  ///< references into it stay valid
};

/// The counter of PyTorch's BatchNorm in training, "bn.num_batches_tracked", beside a
/// "bn.running_mean" of the graph: unused in inference.
bool is_batchnorm_counter(const Graph& source, std::string_view name) {
  constexpr std::string_view kCounter = "num_batches_tracked";
  if (!name.ends_with(kCounter)) return false;
  const std::string_view module = name.substr(0, name.size() - kCounter.size());
  return !source.find_parameter(std::string(module) + "running_mean").is_absent();
}

std::string member_name(int64_t member) {
  return "model: member " + std::to_string(member);
}

/// ", did you mean fc1.bias?" or ", it has fc1.weight, fc1.bias and 12 more".
std::string known_names(const Graph& source, std::string_view given) {
  constexpr size_t kMostNames = 8;
  std::vector<std::string_view> known;
  for (const Value p : source.parameters()) known.push_back(source.name(p));
  const std::string near = did_you_mean(given, known);
  if (!near.empty()) return near;
  std::string names = known.empty() ? ", it has none" : ", it has ";
  for (size_t i = 0; i < known.size() && i < kMostNames; ++i) {
    names += (i == 0 ? "" : ", ") + std::string(known[i]);
  }
  const bool has_more = known.size() > kMostNames;
  return names + (has_more ? " and " + std::to_string(known.size() - kMostNames) + " more" : "");
}

void require_known(const Graph& source, int64_t member, const MemberParameters& parameters) {
  for (const auto& [given, view] : parameters) {
    if (!source.find_parameter(given).is_absent() || is_batchnorm_counter(source, given)) continue;
    throw_invalid_argument(member_name(member) + " has a parameter " + given + ", which " +
                           source.name() + " has not" + known_names(source, given));
  }
}

}  // namespace

ConstTensorView view_of(const HostValue& value) {
  return {value.bytes.data(), value.type.dtype, value.type.shape, Device{}};
}

HostValue converted(const Context& context, HostValue value, Dtype dtype) {
  if (value.type.dtype == dtype) return value;
  return {{dtype, value.type.shape}, dense(context, view_of(value), dtype)};
}

Value known_parameter(const Graph& source, std::string_view parameter) {
  const Value value = source.find_parameter(parameter);
  WIDE_REQUIRE(!value.is_absent(), "model: there is no parameter " + std::string(parameter) +
                                       " in " + source.name() + known_names(source, parameter));
  return value;
}

void require_parameter(const Context& context, const Graph& source, int64_t member, Value parameter,
                       const ConstTensorView& view, std::string_view role) {
  const ValueType& type = source.type(parameter);
  const auto name = [&] {
    return member_name(member) + ": " + std::string(role) + source.name(parameter);
  };
  const bool converts = is_wide_float(view.dtype) && is_wide_float(type.dtype);
  WIDE_REQUIRE(view.shape == type.shape && (view.dtype == type.dtype || converts),
               name() + " is " + std::string(dtype_name(view.dtype)) + " " + to_string(view.shape) +
                   ", expected " + to_string(type));
  WIDE_REQUIRE(view.data != nullptr || num_elements(view.shape) == 0,
               name() + " is a null pointer, expected " + to_string(type));
  const bool is_at_hand = view.device.type == DeviceType::cpu || view.device == context.device();
  WIDE_REQUIRE(
      is_at_hand,
      name() + " is on " + to_string(view.device) + ", expected cpu" +
          (context.device().type == DeviceType::cpu ? "" : " or " + to_string(context.device())));
}

HostValue checked_parameter(const Context& context, const Graph& source, int64_t member,
                            Value parameter, const ConstTensorView& view, Stream stream) {
  require_parameter(context, source, member, parameter, view);
  return on_host(context, view, source.type(parameter).dtype, stream);
}

void require_parameters(const Context& context, const Graph& source, int64_t member,
                        const MemberParameters& parameters) {
  require_known(source, member, parameters);
  for (const Value parameter : source.parameters()) {
    const auto found = parameters.find(source.name(parameter));
    WIDE_REQUIRE(found != parameters.end(), member_name(member) + " has no parameter " +
                                                source.name(parameter) + ", expected " +
                                                to_string(source.type(parameter)));
    require_parameter(context, source, member, parameter, found->second);
  }
}

HostValues checked_parameters(const Context& context, const Graph& source, int64_t member,
                              const MemberParameters& parameters, Stream stream) {
  require_parameters(context, source, member, parameters);
  HostValues values;
  for (const Value parameter : source.parameters()) {
    const std::string& name = source.name(parameter);
    values.emplace(
        name, checked_parameter(context, source, member, parameter, parameters.at(name), stream));
  }
  return values;
}

HostContext::HostContext(const Context& model) {
  if (model.device().type == DeviceType::cpu) context_ = model;
}

const Context& HostContext::get() {
  if (!context_) context_ = Context::cpu();
  return *context_;
}

HostValue evaluate(const Graph& graph, Value value, const HostValues& parameters,
                   HostContext& host) {
  return Evaluator(graph, parameters, host)(value);
}

std::set<std::string> parameters_in(const Graph& graph, Value value) {
  std::set<std::string> names;
  std::set<Value> seen{value};
  std::vector<Value> left{value};
  while (!left.empty()) {
    const Value next = left.back();
    left.pop_back();
    const Node* node = graph.producer(next);
    if (node == nullptr) names.insert(graph.name(next));
    if (node == nullptr) continue;
    for (const Operand& operand : node->operands) {
      if (seen.insert(operand.value).second) left.push_back(operand.value);
    }
  }
  return names;
}

HostValue permuted(HostValue value, const Dims& order) {
  if (order.rank() == 0) return value;
  HostValue out{value.type, {}};
  const Strides strides = contiguous_strides(value.type.shape);
  Strides from = strides;
  for (int axis = 0; axis < order.rank(); ++axis) {
    out.type.shape[axis] = value.type.shape[static_cast<int>(order[axis])];
    from[axis] = strides[static_cast<int>(order[axis])];
  }
  out.bytes.resize(value.bytes.size());
  gather(ConstTensorView(value.bytes.data(), value.type.dtype, out.type.shape, from, Device{}),
         out.bytes.data());
  return out;
}

Dims inverse(const Dims& order) {
  Dims back = order;
  for (int axis = 0; axis < order.rank(); ++axis) back[static_cast<int>(order[axis])] = axis;
  return back;
}

}  // namespace wide
