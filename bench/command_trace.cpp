// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `wbench trace`: a model's graph, what the passes made of it, its steps, its memory, and on demand
// the time of each step.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "bench/cli.hpp"
#include "bench/commands.hpp"
#include "bench/report/table.hpp"
#include "bench/report/terminal.hpp"
#include "bench/running.hpp"
#include "bench/statistics/order.hpp"
#include "bench/timer/sampler.hpp"
#include "bench/value_spec.hpp"
#include "host/core/file.hpp"
#include "wide/error.hpp"
#include "wide/model.hpp"
#include "wide/models.hpp"

namespace wide::bench {

namespace {

using Json = nlohmann::ordered_json;

GraphStyle style_of(const std::string& name) {
  return name == "tree"    ? GraphStyle::tree
         : name == "table" ? GraphStyle::table
         : name == "dot"   ? GraphStyle::dot
         : name == "json"  ? GraphStyle::json
                           : GraphStyle::list;
}

/// The one case that is asked for: defaults but for the axes that are given.
catalog::Case case_of(const Selection& selection) {
  const auto specs = select_ops(with_models("", selection.models));
  if (specs.size() != 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("trace: --model names {} models, expected one", specs.size()));
  }
  std::vector<std::pair<std::string, catalog::AxisValue>> values;
  for (const auto& [name, text] : selection.axis_options) {
    if (text.empty()) continue;
    const auto& axes = specs.front()->axes;
    const auto axis = std::find_if(
        axes.begin(), axes.end(), [&](const catalog::AxisInfo& info) { return info.name == name; });
    if (axis == axes.end()) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("trace: --{}: {} has no such axis", name, specs.front()->name));
    }
    const std::vector<catalog::AxisValue> one = parse_values(*axis, text);
    if (one.size() != 1) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("trace: --{} is \"{}\", expected one value", name, text));
    }
    values.emplace_back(name, one.front());
  }
  return catalog::make_case(*specs.front(), values);
}

/// Medians of a few hundred calls of every step, in order, on real operands.
std::vector<double> step_times(const Context& context, const Graph& graph, const ModelPlan& plan) {
  std::vector<OwnedParameters> owned;
  std::vector<MemberParameters> members;
  for (int64_t i = 0; i < plan.problem().num_members; ++i) {
    owned.push_back(random_parameters(graph, 42, i));
    MemberParameters views;
    for (const auto& [name, tensor] : owned.back()) views.emplace(name, tensor);
    members.push_back(std::move(views));
  }
  const Model model(context, plan, members);
  const OwnedStream stream(context);
  const VendorHandles handles(context);
  std::vector<Tensor> tensors;
  std::vector<ConstTensorView> inputs;
  std::vector<TensorView> outputs;
  for (const ModelOperand& operand : plan.inputs()) {
    tensors.emplace_back(context, operand.dtype, operand.shape);
    fill_bytes(tensors.back(), 0, stream.get());  // ids and lengths of 0 are legal everywhere
    inputs.push_back(tensors.back());
  }
  for (const ModelOperand& operand : plan.outputs()) {
    tensors.emplace_back(context, operand.dtype, operand.shape);
    outputs.push_back(tensors.back());
  }
  const Tensor workspace(context, Dtype::uint8, {plan.workspace_bytes()});
  const Execution execution{stream.get(), {workspace.data(), workspace.bytes()}, &handles};
  const ModelArguments arguments{inputs, outputs};
  model.run(arguments, execution);
  context.synchronize(stream.get());
  const ActiveDevice active(context);
  std::vector<double> times;
  for (int64_t step = 0; step < static_cast<int64_t>(plan.steps().size()); ++step) {
    const Call call = [&, step] { model.run_step(step, arguments, execution); };
    const std::unique_ptr<Sampler> sampler =
        context.device().type == DeviceType::cpu
            ? make_host_sampler(call)
            : make_graph_sampler(context, stream.get(), call, 500);
    std::vector<double> samples;
    for (int i = 0; i < 50; ++i) samples.push_back(sampler->sample_ns());
    times.push_back(median(samples));
  }
  return times;
}

std::string plan_text(const ModelPlan& plan, const std::vector<double>& times) {
  const ModelMemory& memory = plan.memory();
  std::string text =
      fmt::format("\n{} members, batch {}\n", plan.problem().num_members, plan.problem().batch);
  for (const std::string& note : plan.notes()) text += "  " + note + "\n";
  std::vector<std::vector<std::string>> rows{{"step", "primitive", "strategy", "members"}};
  if (!times.empty()) rows.front().insert(rows.front().end(), {"time", "share"});
  double total = 0;
  for (const double time : times) total += time;
  for (size_t i = 0; i < plan.steps().size(); ++i) {
    const ModelStep& step = plan.steps()[i];
    rows.push_back({step.node, step.primitive, step.strategy.empty() ? "-" : step.strategy,
                    step.num_members == 1 ? "shared" : std::to_string(step.num_members)});
    if (plan.problem().num_members == 1) rows.back()[3] = "1";
    if (times.empty()) continue;
    rows.back().push_back(format_time(times[i]));
    rows.back().push_back(fmt::format("{:.0f}%", 100 * times[i] / total));
  }
  text += "\n" + listing_text(rows, output_width());
  for (const auto& [what, operands] :
       {std::pair{"input", plan.inputs()}, {"output", plan.outputs()}}) {
    for (const ModelOperand& operand : operands) {
      text += fmt::format("{} {}: {} {}{}\n", what, operand.name, dtype_name(operand.dtype),
                          to_string(operand.shape),
                          operand.member_axis < 0 ? ", one for all members" : "");
    }
  }
  text += fmt::format(
      "memory: {} bytes of weights, {} of workspace ({} activations, {} scratch), {} in, {} out\n",
      memory.weights_bytes, memory.workspace_bytes(), memory.activation_bytes, memory.scratch_bytes,
      memory.input_bytes, memory.output_bytes);
  return text;
}

Json operands_json(std::span<const ModelOperand> operands) {
  Json json = Json::array();
  for (const ModelOperand& operand : operands) {
    json.push_back({{"name", operand.name},
                    {"dtype", dtype_name(operand.dtype)},
                    {"shape", to_string(operand.shape)},
                    {"is_shared", operand.member_axis < 0}});
  }
  return json;
}

/// What plan_text() says, for programs.
void add_plan(Json& json, const ModelPlan& plan, const std::vector<double>& times) {
  const ModelMemory& memory = plan.memory();
  Json steps = Json::array();
  for (size_t i = 0; i < plan.steps().size(); ++i) {
    const ModelStep& step = plan.steps()[i];
    steps.push_back({{"node", step.node},
                     {"primitive", step.primitive},
                     {"strategy", step.strategy},
                     {"members", step.num_members},
                     {"time_ns", times.empty() ? Json(nullptr) : Json(times[i])}});
  }
  json["members"] = plan.problem().num_members;
  json["batch"] = plan.problem().batch;
  json["notes"] = plan.notes();
  json["steps"] = std::move(steps);
  json["inputs"] = operands_json(plan.inputs());
  json["outputs"] = operands_json(plan.outputs());
  json["memory_bytes"] = {
      {"weights", memory.weights_bytes},        {"workspace", memory.workspace_bytes()},
      {"activations", memory.activation_bytes}, {"scratch", memory.scratch_bytes},
      {"inputs", memory.input_bytes},           {"outputs", memory.output_bytes}};
}

}  // namespace

int command_trace(const GlobalOptions&, const TraceOptions& options, std::ostream& out,
                  std::ostream& err) {
  const catalog::Case point = case_of(options.selection);
  const Graph graph = catalog::model_graph(point);
  std::string text;
  Json json{{"schema", {{"name", "wbench.trace"}, {"version", "1.0.0"}}}, {"model", point.op()}};
  const auto show = [&](const Graph& shown) {
    text = to_string(shown, style_of(options.style));
    if (!options.json.empty()) json["graph"] = Json::parse(to_string(shown, GraphStyle::json));
  };
  if (options.preset == "none") {
    show(graph);
  } else {
    const std::optional<Context> context = make_context(options.selection, err);
    if (!context) return kEnvironment;
    const ModelPlan plan =
        make_model_plan(*context, graph, {point.integer("n"), point.integer("batch")},
                        model_options(options.preset));
    const std::vector<double> times =
        options.measures ? step_times(*context, graph, plan) : std::vector<double>();
    show(plan.graph());
    add_plan(json, plan, times);
    const bool is_document = options.style == "dot" || options.style == "json";
    if (!is_document) text += plan_text(plan, times);
  }
  if (write_documents(json.dump(2) + "\n", options.json, out)) text.clear();
  if (!options.file.empty()) {
    write_file(options.file, text);
  } else {
    out << text;
  }
  return kSuccess;
}

}  // namespace wide::bench
