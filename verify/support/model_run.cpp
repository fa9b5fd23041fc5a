// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Packing by hand, so that the library's own packing is no judge of itself.
#include "verify/support/model_run.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "verify/support/cases.hpp"
#include "verify/support/simulation.hpp"
#include "verify/support/tensors.hpp"
#include "wide/convert.hpp"
#include "wide/error.hpp"
#include "wide/model_replay.hpp"

namespace wide::test {

namespace {

using catalog::Doubles;

int64_t product(const std::vector<int64_t>& shape, size_t begin, size_t end) {
  int64_t n = 1;
  for (size_t a = begin; a < end; ++a) n *= shape[a];
  return n;
}

/// Where element `i` of member `m`, whose own shape this is, stands among all.
int64_t place_of(const ModelOperand& operand, const std::vector<int64_t>& shape, int64_t n,
                 int64_t m, int64_t i) {
  if (operand.member_axis < 0) return i;
  if (!operand.first_rows.empty()) {
    return operand.first_rows[static_cast<size_t>(m)] * product(shape, 1, shape.size()) + i;
  }
  const int64_t inner = product(shape, static_cast<size_t>(operand.member_axis), shape.size());
  return (i / inner * n + m) * inner + i % inner;
}

/// A member's shape out of that of all.
std::vector<int64_t> member_shape(const ModelOperand& operand, int64_t n, int64_t rows,
                                  bool is_ragged) {
  std::vector<int64_t> shape(operand.shape.begin(), operand.shape.end());
  if (is_ragged)
    shape[0] = rows;  // the first ones of what is one for all
  else if (operand.is_stacked)
    shape.erase(shape.begin());
  else if (operand.member_axis > 0)
    shape[static_cast<size_t>(operand.member_axis)] /= n;
  return shape;
}

std::vector<int64_t> ids_or_counted(std::vector<int64_t> ids, int64_t n) {
  if (!ids.empty()) return ids;
  ids.resize(static_cast<size_t>(n));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

/// On a simulated GPU there are no vendors' libraries: our kernels, by name.
ModelOptions with_kernels(const Context& context, const Graph& graph, ModelOptions options) {
  if (context.device().type == DeviceType::cpu || !Simulation::is_present()) return options;
  const Dtype dtype = graph.type(graph.outputs()[0].value).dtype;
  std::map<std::string, std::string> kernels{
      {"linear", dtype == Dtype::fp32 ? "simt" : "tensor_core"},
      {"ragged_linear", dtype == Dtype::fp32 ? "simt" : "tensor_core"},
      {"routed_linear", dtype == Dtype::fp32 ? "simt" : "tensor_core"},
      {"conv", "direct"},
      {"attention", "fused"},
      {"flash_attention", dtype == Dtype::fp32 ? "simt" : "tensor_core"},
      {"recurrent", "stepwise"},
      {"embedding", "indexed"}};
  for (const catalog::PrimitiveSpec* spec : catalog::primitives()) {
    const std::vector<std::string> names = strategies_of(*spec, DeviceType::cuda);
    if (std::ranges::count(names, "wide") != 0) kernels.emplace(plan_name(*spec), "wide");
  }
  // Who names linear alone means it, of a ragged model, too.
  if (options.strategies.contains("linear")) kernels.erase("ragged_linear");
  for (const auto& [primitive, strategy] : kernels) {
    options.strategies.emplace(primitive, strategy);
  }
  return options;
}

}  // namespace

Graph built(const std::function<void(GraphBuilder&)>& build) {
  GraphBuilder g("built");
  build(g);
  return std::move(g).build();
}

Graph small_model(std::string_view name, Dtype dtype) {
  ModelSizes sizes{.dtype = dtype};
  if (name == "mlp" || name == "mlp256") sizes.width = 48;
  if (name == "deep_mlp") sizes.width = 24, sizes.layers = 4;
  if (name == "agent") sizes.width = 12, sizes.classes = 5;
  if (name == "convnet") sizes.width = 4, sizes.image = 8;
  if (name == "resblock") sizes.width = 6, sizes.image = 7;
  if (name == "resnet18") sizes.width = 4, sizes.image = 32, sizes.classes = 10;
  if (name == "unet") sizes.width = 4, sizes.layers = 2, sizes.image = 8, sizes.classes = 3;
  if (name == "bert")
    sizes.width = 16, sizes.layers = 2, sizes.heads = 2, sizes.seq = 5, sizes.vocab = 11;
  if (name == "vit") {
    sizes.width = 16, sizes.layers = 2, sizes.heads = 2, sizes.image = 32, sizes.classes = 5;
  }
  return make_named_model(name, sizes);
}

std::string refusal(const Graph& graph, const ModelProblem& problem, const ModelOptions& options) {
  try {
    make_model_plan(Context::cpu(), graph, problem, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

ModelRun::ModelRun(const Context& context, const Graph& graph, const ModelProblem& problem,
                   const ModelOptions& options, uint64_t seed, std::vector<int64_t> member_ids)
    : context_(context),
      host_(Context::cpu({.num_threads = 1, .allocator = nullptr})),
      graph_(graph),
      seed_(seed),
      input_ids_(ids_or_counted(std::move(member_ids), problem.num_members)),
      ids_(input_ids_),
      plan_(make_model_plan(context, graph, problem, with_kernels(context, graph, options))),
      model_(context, plan_, all_parameters()),
      stream_(context),
      handles_(context),
      workspace_(context, Dtype::uint8, {plan_.workspace_bytes()}) {
  const int64_t n = problem.num_members;
  for (size_t k = 0; k < graph_.inputs().size(); ++k) {
    const ModelOperand& operand = plan_.inputs()[k];
    std::vector<double> all(static_cast<size_t>(num_elements(operand.shape)));
    const bool is_shared = operand.member_axis < 0;
    for (int64_t m = 0; m < (is_shared ? 1 : n); ++m) {
      const Doubles own = is_shared ? input_of(k, 0, plan_.problem().batch)
                                    : input_of(k, input_ids_[static_cast<size_t>(m)], rows_of(m));
      for (size_t i = 0; i < own.values.size(); ++i) {
        all[static_cast<size_t>(place_of(operand, own.shape, n, m, static_cast<int64_t>(i)))] =
            own.values[i];
      }
    }
    input_tensors_.push_back(upload(context, operand.dtype, operand.shape, all));
    inputs_.push_back(input_tensors_.back());
  }
  if (problem.is_routed) set_rows();
  for (const ModelOperand& operand : plan_.outputs()) {
    output_tensors_.emplace_back(context, operand.dtype, operand.shape);
    outputs_.push_back(output_tensors_.back());
  }
}

/// Inputs after the graph's.
void ModelRun::set_rows() {
  const ModelProblem& problem = plan_.problem();
  for (const ModelOperand& operand : plan_.inputs().subspan(graph_.inputs().size())) {
    input_tensors_.emplace_back(context_, operand.dtype, operand.shape);
    inputs_.push_back(input_tensors_.back());
  }
  const int64_t rows = problem.batch * problem.choices;
  if (problem.router == Router::scores) {
    return score(uniform(num_elements(plan_.inputs().back().shape), -2, 2, seed_));
  }
  for (int64_t row = 0; row < rows; ++row) routed_to_.push_back(row % problem.num_members);
  route(routed_to_);
  gates_.assign(static_cast<size_t>(rows), 1);
  if (problem.router == Router::gated_ids) weigh(uniform(rows, -1, 1, seed_));
}

void ModelRun::route(const std::vector<int64_t>& members) {
  routed_to_ = members;
  const size_t first = graph_.inputs().size();
  const ModelOperand& ids = plan_.inputs()[first];
  std::vector<int64_t> given(routed_to_.size());  // enough for ids of 32 bits, too
  for (size_t i = 0; i < given.size(); ++i) {
    store_element(given.data(), ids.dtype, static_cast<int64_t>(i),
                  static_cast<double>(routed_to_[i] + plan_.problem().first_id));
  }
  copy(ConstTensorView(given.data(), ids.dtype, ids.shape, Device{}), input_tensors_[first],
       stream_.get());
  context_.synchronize(stream_.get());
}

void ModelRun::weigh(const std::vector<double>& gates) {
  const Tensor given = upload(context_, Dtype::fp32, plan_.inputs().back().shape, gates);
  copy(given, input_tensors_.back(), stream_.get());
  context_.synchronize(stream_.get());
  gates_ = download(context_, given);
}

void ModelRun::score(const std::vector<double>& scores) {
  const ModelOperand& operand = plan_.inputs().back();
  const Tensor given = upload(context_, operand.dtype, operand.shape, scores);
  copy(given, input_tensors_.back(), stream_.get());
  context_.synchronize(stream_.get());
  const std::vector<double> own = download(context_, given);
  const ModelProblem& problem = plan_.problem();
  const int64_t all = operand.shape[1];
  routed_to_.clear(), gates_.clear();
  for (int64_t row = 0; row < problem.batch; ++row) {
    const auto score = [&](int64_t member) { return own[static_cast<size_t>(row * all + member)]; };
    std::vector<int64_t> order = ids_or_counted({}, all);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return score(a) > score(b); });
    const bool is_of_all = problem.gate == GateFunction::softmax_all;
    double powers = 0;
    for (int64_t k = 0; k < (is_of_all ? all : problem.choices); ++k) {
      powers += std::exp(score(order[static_cast<size_t>(k)]));
    }
    for (int64_t k = 0; k < problem.choices; ++k) {
      const int64_t member = order[static_cast<size_t>(k)];
      routed_to_.push_back(member - problem.first_id);
      gates_.push_back(problem.gate == GateFunction::sigmoid ? 1 / (1 + std::exp(-score(member)))
                       : problem.gate == GateFunction::none  ? score(member)
                                                             : std::exp(score(member)) / powers);
    }
  }
}

bool ModelRun::is_mixture() const {
  return plan_.problem().choices > 1 || plan_.problem().router != Router::ids;
}

/// Every member's value becomes the sum over each row's members.
void ModelRun::mix(std::vector<catalog::Doubles>& members) const {
  Doubles sum{members[0].shape, std::vector<double>(members[0].values.size(), 0.0)};
  const auto choices = static_cast<size_t>(plan_.problem().choices);
  const size_t length = sum.values.size() / (routed_to_.size() / choices);
  for (size_t r = 0; r < routed_to_.size(); ++r) {
    if (routed_to_[r] < 0 || routed_to_[r] >= std::ssize(members)) continue;
    const std::vector<double>& own = members[static_cast<size_t>(routed_to_[r])].values;
    for (size_t i = r / choices * length; i < (r / choices + 1) * length; ++i) {
      sum.values[i] += gates_[r] * own[i];
    }
  }
  for (Doubles& member : members) member = sum;
}

/// What the plan stores once is the first member's.
std::vector<MemberParameters> ModelRun::all_parameters() {
  for (const int64_t id : ids_) {
    (void)parameters_of(id);
    if (id == ids_[0]) continue;
    OwnedParameters first = random_parameters(graph_, seed_, ids_[0]);
    for (const ModelParameter& parameter : plan_.parameters()) {
      if (!parameter.is_shared) continue;
      parameters_.at(id).insert_or_assign(parameter.name, std::move(first.at(parameter.name)));
    }
  }
  std::vector<MemberParameters> members;
  for (const int64_t id : ids_) members.push_back(parameters_of(id));
  return members;
}

MemberParameters ModelRun::parameters_of(int64_t id) {
  if (!parameters_.contains(id)) parameters_.emplace(id, random_parameters(graph_, seed_, id));
  return views_of(parameters_.at(id));
}

int64_t ModelRun::rows_of(int64_t member) const {
  const ModelProblem& problem = plan_.problem();
  return problem.batches.empty() ? problem.batch : problem.batches[static_cast<size_t>(member)];
}

/// Of ids and lengths, what is in range; else uniform in [-1, 1], rounded to the dtype. Fewer rows
/// are the first of more.
catalog::Doubles ModelRun::input_of(size_t input, int64_t id, int64_t rows) const {
  const Value value = graph_.inputs()[input];
  const ValueType& type = graph_.type(value);
  std::vector<int64_t> shape(type.shape.begin(), type.shape.end());
  shape[0] = rows;
  const int64_t count = product(shape, 0, shape.size());
  const bool is_integer = type.dtype == Dtype::int32 || type.dtype == Dtype::int64;
  double high = 1;
  for (const Node& node : graph_.nodes()) {
    const Value table = node.operand("table");
    if (node.operand("ids") == value) high = static_cast<double>(graph_.type(table).shape[0]);
    if (node.operand("key_lengths") == value) {
      const Value k = node.operand("k");  // of flash_attention
      high = static_cast<double>(graph_.type(k.is_absent() ? node.operand("x") : k).shape[1]);
    }
  }
  std::vector<double> values =
      uniform(count, is_integer ? 0 : -1, high,
              seed_ * 1000003 + input * 101 + static_cast<uint64_t>(id) * 7919);
  const bool is_length = is_integer && shape.size() == 1;
  for (double& v : values) {
    if (is_integer) v = std::min(std::floor(v), high - 1) + (is_length ? 1 : 0);
  }
  return {shape, download(host_, upload(host_, type.dtype, Shape(std::span<const int64_t>(shape)),
                                        values))};
}

Execution ModelRun::execution() {
  return {stream_.get(), {workspace_.data(), workspace_.bytes()}, &handles_};
}

void ModelRun::poison() {
  for (const TensorView& y : outputs_) fill_bytes(y, 0xff, stream_.get());
  if (workspace_.bytes() > 0) fill_bytes(workspace_, 0xff, stream_.get());
}

ModelRun::Outputs ModelRun::run() {
  poison();
  model_.run(arguments(), execution());
  return read();
}

ModelRun::Outputs ModelRun::replay() {
  const ModelReplay replay(context_, model_, arguments(), execution());
  poison();
  replay.run(stream_.get());
  return read();
}

ModelRun::Outputs ModelRun::read() {
  context_.synchronize(stream_.get());
  Outputs outputs;
  const int64_t n = plan_.problem().num_members;
  const bool is_ragged = !plan_.problem().batches.empty();
  for (size_t k = 0; k < output_tensors_.size(); ++k) {
    const ModelOperand& operand = plan_.outputs()[k];
    const std::vector<double> all = download(context_, output_tensors_[k]);
    for (int64_t m = 0; m < n; ++m) {
      const std::vector<int64_t> shape = member_shape(operand, n, rows_of(m), is_ragged);
      Doubles own{shape, std::vector<double>(static_cast<size_t>(product(shape, 0, shape.size())))};
      for (size_t i = 0; i < own.values.size(); ++i) {
        own.values[i] =
            all[static_cast<size_t>(place_of(operand, shape, n, m, static_cast<int64_t>(i)))];
      }
      outputs[operand.name].push_back(std::move(own));
    }
  }
  return outputs;
}

ModelRun::Outputs ModelRun::reference(const catalog::RoundingNoise& noise) const {
  Outputs outputs;
  for (size_t m = 0; m < ids_.size(); ++m) {
    std::map<std::string, catalog::Doubles> inputs, parameters;
    for (size_t k = 0; k < graph_.inputs().size(); ++k) {
      const bool is_shared = plan_.inputs()[k].member_axis < 0;
      inputs[graph_.name(graph_.inputs()[k])] =
          input_of(k, is_shared ? 0 : input_ids_[m], rows_of(static_cast<int64_t>(m)));
    }
    for (const auto& [name, tensor] : parameters_.at(ids_[m]))
      parameters[name] = catalog::to_doubles(tensor);
    for (auto& [name, value] : catalog::evaluate_graph(graph_, inputs, parameters, noise)) {
      outputs[name].push_back(std::move(value));
    }
  }
  for (const Operand& output : graph_.outputs()) {
    const auto* op = std::get_if<EnsembleOp>(&graph_.producer(output.value)->operation);
    if (op != nullptr) join(op->ensemble, outputs[output.name]);
    if (is_mixture()) mix(outputs[output.name]);
  }
  return outputs;
}

/// Every member's value becomes that of all that are not masked.
void ModelRun::join(EnsembleFunction function, std::vector<catalog::Doubles>& members) const {
  std::vector<Doubles> counted;
  for (size_t m = 0; m < members.size(); ++m) {
    if (!model_.is_masked(static_cast<int64_t>(m))) counted.push_back(members[m]);
  }
  const Doubles joined = catalog::joined_members(function, counted);
  for (Doubles& member : members) member = joined;
}

double ModelRun::worst_error(const Outputs& outputs, double least_scale) const {
  const Outputs expected = reference();
  double worst = 0;
  for (const auto& [name, members] : expected) {
    const std::vector<Doubles>& got = outputs.at(name);
    for (size_t m = 0; m < members.size(); ++m) {
      double scale = least_scale;
      for (const double v : members[m].values) scale = std::max(scale, std::abs(v));
      if (got[m].shape != members[m].shape) return std::numeric_limits<double>::infinity();
      const size_t row_length =
          routed_to_.empty() || is_mixture() ? 0 : members[m].values.size() / routed_to_.size();
      for (size_t i = 0; i < members[m].values.size(); ++i) {
        if (row_length > 0 && routed_to_[i / row_length] != static_cast<int64_t>(m)) continue;
        const double error = std::abs(got[m].values[i] - members[m].values[i]) / scale;
        worst =
            std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(worst, error);
      }
    }
  }
  return worst;
}

void ModelRun::replace(int64_t member, int64_t id) {
  model_.replace(member, parameters_of(id), stream_.get());  // refuses members that are none
  ids_[static_cast<size_t>(member)] = id;
}

}  // namespace wide::test
