// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `wbench trace`: a model's graph, the result of the passes, its steps, its memory, and on demand
// the time of each step; or for a primitive, what one call launches.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "bench/cases/model_file.hpp"
#include "bench/cases/value_spec.hpp"
#include "bench/cli/cli.hpp"
#include "bench/cli/commands.hpp"
#include "bench/command/options.hpp"
#include "bench/command/output_files.hpp"
#include "bench/command/outputs.hpp"
#include "bench/command/run_selection.hpp"
#include "bench/command/running.hpp"
#include "bench/inspect/launches.hpp"
#include "bench/process/exit_code.hpp"
#include "bench/report/details.hpp"
#include "bench/report/table.hpp"
#include "bench/report/terminal.hpp"
#include "bench/statistics/order.hpp"
#include "bench/timer/sampler.hpp"
#include "host/core/text.hpp"
#include "host/model/model_catalog.hpp"
#include "host/model/step_workload.hpp"
#include "wide/error.hpp"
#include "wide/model.hpp"
#include "wide/tuning.hpp"

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

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorCode::invalid_argument, "trace: " + message);
}

/// The spec of a primitive or a model, whichever is named.
const catalog::PrimitiveSpec& spec_of(const TraceOptions& options) {
  const Selection& selection = options.selection;
  std::string models = selection.models;
  if (!options.onnx.empty()) {
    models = is_model_file(options.onnx) ? options.onnx : "./" + options.onnx;
  }
  const std::string ops = with_models(selection.ops, models);
  load_model_files(ops, selection.file);
  const auto specs = select_ops(ops);
  if (specs.size() != 1) {
    refuse(fmt::format("{} names {} {}, expected one", selection.ops.empty() ? "--model" : "--op",
                       specs.size(), selection.ops.empty() ? "models" : "primitives"));
  }
  return *specs.front();
}

/// The given axes, from any of the options, with one value each.
std::vector<std::pair<std::string, catalog::AxisValue>> values_of(
    const Selection& selection, const catalog::PrimitiveSpec& spec) {
  std::vector<AxisOverride> given;
  for (const auto& [name, text] : selection.axis_options) given.push_back({name, text, false});
  for (const std::string& text : selection.axes) given.push_back(parse_override(text));
  std::vector<std::pair<std::string, catalog::AxisValue>> values;
  for (const AxisOverride& change : given) {
    const auto& axes = spec.axes;
    const auto axis = std::find_if(axes.begin(), axes.end(), [&](const catalog::AxisInfo& info) {
      return info.name == change.name;
    });
    if (axis == axes.end())
      refuse(fmt::format("--{}: {} has no such axis", change.name, spec.name));
    const auto one = parse_values(*axis, change.spec, change.powers);
    if (one.size() != 1)
      refuse(fmt::format("--{} is \"{}\", expected one value", change.name, change.spec));
    const auto is_same = [&](const auto& earlier) { return earlier.first == change.name; };
    if (std::any_of(values.begin(), values.end(), is_same))
      refuse("axis " + change.name + " is given twice");
    values.emplace_back(change.name, one.front());
  }
  return values;
}

/// The requested case: defaults except for the given axes.
catalog::Case case_of(const TraceOptions& options) {
  const int given = int{!options.selection.ops.empty()} + int{!options.selection.models.empty()} +
                    int{!options.onnx.empty()};
  if (given != 1)
    refuse(fmt::format("{} of --op, --model and --onnx are given, expected one", given));
  const catalog::PrimitiveSpec& spec = spec_of(options);
  return catalog::make_case(spec, values_of(options.selection, spec));
}

/// In the plan's layout, which may differ from the workload's: its values suit either.
std::vector<ConstTensorView> inputs_of(const catalog::Workload& workload, const ModelPlan& plan) {
  const std::vector<catalog::WorkloadInput> filled = workload.input_views();
  std::vector<ConstTensorView> inputs;
  for (const ModelOperand& operand : plan.inputs()) {
    const ConstTensorView& values = filled.at(inputs.size()).tensor;
    inputs.emplace_back(values.data, operand.dtype, operand.shape, values.device);
  }
  return inputs;
}

/// Medians of a few hundred calls of every step, in order, on the inputs and parameters of `run`:
/// with lengths and ids of 0 attention and tables would have nothing to do.
std::vector<double> step_times(const Context& context, const ModelPlan& plan,
                               const catalog::Case& point) {
  const auto workload = catalog::find_primitive(point.op()).make_workload(context, point, {});
  std::vector<OwnedParameters> owned;
  for (int64_t i = 0; i < plan.problem().num_members; ++i) {
    owned.push_back(catalog::model_parameters(point, catalog::WorkloadOptions().seed, i));
  }
  const Model model(context, plan, views_of(owned));
  const OwnedStream stream(context);
  const VendorHandles handles(context);
  const std::vector<ConstTensorView> inputs = inputs_of(*workload, plan);
  std::vector<Tensor> tensors;
  std::vector<TensorView> outputs;
  for (const ModelOperand& operand : plan.outputs()) {
    tensors.emplace_back(context, operand.dtype, operand.shape);
    outputs.push_back(tensors.back());
  }
  Tensor workspace(context, Dtype::uint8, {plan.workspace_bytes()});
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

/// The strategy, and whether a tuning cache named it.
std::string strategy_text(const ModelStep& step) {
  if (step.strategy.empty()) return "-";
  return step.strategy + (step.is_tuned ? ", tuned" : "");
}

std::string plan_text(const ModelPlan& plan, const std::vector<double>& times) {
  const ModelMemory& memory = plan.memory();
  std::string text = fmt::format("\n{}, batch {}\n", counted(plan.problem().num_members, "member"),
                                 plan.problem().batch);
  for (const std::string& note : plan.notes()) text += "  " + note + "\n";
  std::vector<std::vector<std::string>> rows{{"step", "primitive", "strategy", "members"}};
  if (!times.empty()) rows.front().insert(rows.front().end(), {"time", "share"});
  double total = 0;
  for (const double time : times) total += time;
  for (size_t i = 0; i < plan.steps().size(); ++i) {
    const ModelStep& step = plan.steps()[i];
    rows.push_back({step.node, step.primitive, strategy_text(step),
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

/// Writes to the requested files; the text is not printed after a document.
void write_trace(const TraceOptions& options, const Json& json, std::string text,
                 std::ostream& out) {
  if (write_documents(json.dump(2) + "\n", options.json, out)) text.clear();
  write_document(text, options.file, out);
}

/// The contents of plan_text(), for programs.
void add_plan(Json& json, const ModelPlan& plan, const std::vector<double>& times) {
  const ModelMemory& memory = plan.memory();
  Json steps = Json::array();
  for (size_t i = 0; i < plan.steps().size(); ++i) {
    const ModelStep& step = plan.steps()[i];
    steps.push_back({{"node", step.node},
                     {"primitive", step.primitive},
                     {"strategy", step.strategy},
                     {"tuned", step.is_tuned},
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

/// What one call of the primitive launches, by each strategy: `inspect` for one case.
int trace_launches(const GlobalOptions& global, const TraceOptions& options,
                   const catalog::Case& point, std::ostream& out, std::ostream& err) {
  if (options.is_dot || options.style != "list" || options.measures || options.preset != "default")
    refuse("--style, --dot, --compile and --times are of a model's graph, expected none with --op");
  RunOptions run;
  run.selection = options.selection;
  run.selection.axes.clear();
  run.selection.axis_options.clear();
  for (const catalog::Case::Entry& entry : point.entries())
    run.selection.axis_options[entry.name] = catalog::to_string(entry.value);
  RunResult result;
  const int code = capture_selection(global, run, result, out, err);
  if (code != kSuccess) return code;
  std::string text = inspection_text(result, Inspected::launches, output_width(),
                                     options.file.empty() && wants_color(global.color));
  for (const CaseResult& c : result.cases) {
    text += fmt::format("least work: {:.4g} FLOP, {} read, {} written\n", c.cost.flops,
                        bytes_text(static_cast<int64_t>(c.cost.bytes_read)),
                        bytes_text(static_cast<int64_t>(c.cost.bytes_written)));
  }
  write_trace(options, inspection_json(result, "launches"), std::move(text), out);
  return kSuccess;
}

/// Refuses to write one document over another, or over the model.
void require_trace_outputs(const TraceOptions& options) {
  NamedFiles outputs{{"--output", options.file}};
  for (const std::string& path : options.json) outputs.push_back({"--json", path});
  NamedFiles inputs{{"--onnx", options.onnx}, {"--tuning", options.tuning}};
  if (is_model_file(options.selection.models))
    inputs.push_back({"--model", options.selection.models});
  require_outputs(outputs, inputs);
}

}  // namespace

int command_trace(const GlobalOptions& global, const TraceOptions& options, std::ostream& out,
                  std::ostream& err) {
  require_trace_outputs(options);
  const catalog::Case point = case_of(options);
  if (!options.selection.ops.empty()) return trace_launches(global, options, point, out, err);
  const std::string style = options.is_dot ? "dot" : options.style;
  if (options.is_dot && options.style != "list" && options.style != "dot")
    refuse("--dot contradicts --style " + options.style);
  std::optional<TuningCache> tuning;
  if (!options.tuning.empty()) tuning = TuningCache::load(options.tuning);
  const Graph graph = catalog::model_graph(point);
  std::string text;
  Json json{{"schema", {{"name", "wbench.trace"}, {"version", "1.0.0"}}}, {"model", point.op()}};
  const auto show = [&](const Graph& shown) {
    text = to_string(shown, style_of(style));
    if (!options.json.empty()) json["graph"] = Json::parse(to_string(shown, GraphStyle::json));
  };
  if (options.preset == "none") {
    show(graph);
  } else {
    const std::optional<Context> context = make_context(options.selection, err);
    if (!context) return kEnvironment;
    ModelOptions how = model_options(options.preset);
    if (tuning) how.tuning = &*tuning;
    const ModelPlan plan = make_model_plan(*context, graph, catalog::model_problem(point), how);
    const std::vector<double> times =
        options.measures ? step_times(*context, plan, point) : std::vector<double>();
    show(plan.graph());
    add_plan(json, plan, times);
    const bool is_document = style == "dot" || style == "json";
    if (!is_document) text += plan_text(plan, times);
  }
  write_trace(options, json, std::move(text), out);
  return kSuccess;
}

}  // namespace wide::bench
