// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Models for bench: a graph is measured, checked and compared like any primitive, under the name
// model:NAME.
#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>

#include "host/core/check.hpp"
#include "host/model/model_catalog.hpp"
#include "host/model/model_workload.hpp"
#include "host/spec.hpp"
#include "wide/model.hpp"
#include "wide/models.hpp"

namespace wide::catalog {

namespace {

using GraphOf = std::function<Graph(const Case&)>;

/// Whether channels could be last where they are first.
bool has_images(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node& node) {
    const auto* conv = std::get_if<ConvOp>(&node.operation);
    return conv != nullptr && conv->layout == ChannelLayout::channels_first &&
           graph.type(node.outputs[0]).shape.rank() == 4;
  });
}

std::vector<StrategyInfo> strategies(const Graph& graph) {
  std::vector<StrategyInfo> list;
  for (const DeviceType device : {DeviceType::cuda, DeviceType::cpu}) {
    list.push_back({"sequential", device, StrategyKind::sequential,
                    "node after node, and in each member after member"});
    list.push_back({"unfused", device, StrategyKind::hand_written,
                    "node after node, as the graph says, all members at once"});
    list.push_back(
        {"compiled", device, StrategyKind::hand_written, "after all passes, all members at once"});
    if (!has_images(graph)) continue;
    list.push_back({"channels_last", device, StrategyKind::hand_written,
                    "the same, with channels last wherever convolutions of images can have them"});
  }
  return list;
}

/// Why a row cannot have so many members, or be given to them so.
std::string idle_routing(const Case& point) {
  const int64_t choices = point.integer("choices");
  const bool is_mixture = choices != 1 || point.word("router") != "ids";
  if (is_mixture && point.word("routed") == "no") {
    return "choices is " + std::to_string(choices) + " and router is " + point.word("router") +
           ", expected 1 and ids, as rows are not routed (routed=yes)";
  }
  return choices <= point.integer("n")
             ? ""
             : "choices is " + std::to_string(choices) +
                   ", expected at most n = " + std::to_string(point.integer("n"));
}

/// `usual` is the graph of the default case.
PrimitiveSpec spec_of(std::string_view name, std::string_view summary, const Graph& usual,
                      const GraphOf& graph_of, int64_t usual_batch,
                      const ParametersOf& parameters_of = {}) {
  PrimitiveSpec spec;
  spec.name = name;
  spec.summary = summary;
  spec.axes = {
      {"n", "members", int64_t{4}, {}, 1},
      {"batch", "rows of each input per member", usual_batch, {}, 1},
      {"routed",
       "whether the device alone knows whose rows are whose: ids beside one batch of all",
       "no",
       {"no", "yes"}},
      {"choices",
       "members that run each of n*batch routed rows, and are added up",
       int64_t{1},
       {},
       1},
      {"router", "who chooses the members of a routed row: ids, with gates or without, or scores",
       "ids", words_of(kAllRouters, router_name)}};
  spec.impossible_reason = idle_routing;
  spec.strategies = strategies(usual);
  spec.sweeps = {{"quick", {{"n", ints({4, 8, 16, 32})}}},
                 {"full", {{"n", ints({2, 4, 8, 10, 16, 20, 32, 64, 100})}}},
                 {"ci", {{"n", ints({4})}}}};
  spec.tolerance_formula =
      "u_out |y| + 8 max over the row's outputs of |noisy - y|, noisy one of 3 evaluations in "
      "double whose operands of sums of K products are multiplied by 1 +- 2^-24 sqrt(K), and whose "
      "results by 1 +- u_out (Monte Carlo arithmetic); of a mixture of experts u_out |y| + the sum "
      "over a row's members of |gate| (that of the member + (2 u_out + 2^-20) max |y| of the "
      "member)";
  spec.make_workload = [graph_of, parameters_of](
                           const Context& context, const Case& point,
                           const WorkloadOptions& options) -> std::unique_ptr<Workload> {
    return make_model_workload(context, std::make_shared<const Graph>(graph_of(point)),
                               model_problem(point), options, parameters_of);
  };
  return spec;
}

/// Rows that the models are usually measured with.
int64_t usual_batch(std::string_view name) {
  const bool is_of_vectors =
      name == "mlp" || name == "mlp256" || name == "deep_mlp" || name == "agent";
  return is_of_vectors ? 32 : name == "vit" ? 4 : 8;
}

GraphOf graph_of(const NamedModel& named) {
  return [&named](const Case& point) {
    ModelSizes sizes{.dtype = point.dtype()};
    sizes.layers = point.integer("layers");
    sizes.width = point.integer("hidden");
    sizes.seq = point.integer("seq");
    sizes.image = point.integer("image");
    const Graph graph = named.make(sizes);
    const WeightFormat format = *parse_weight_format(point.word("weights"));
    return format == WeightFormat::packed ? graph
                                          : with_quantized_weights(graph, {.format = format});
  };
}

/// Why a size that this model does not have was chosen in vain; otherwise two cases would have one
/// graph.
std::string idle_size(const NamedModel& named, const Case& point) {
  for (const char* axis : {"layers", "seq", "image"}) {
    if (!named.has_size(axis) && point.integer(axis) != 0) {
      return std::string(axis) + " is " + std::to_string(point.integer(axis)) +
             ", expected 0, as it " + idle_size_text(axis, named);
    }
  }
  return "";
}

PrimitiveSpec named_spec(const NamedModel& named, const std::string& full_name) {
  const GraphOf make = graph_of(named);
  PrimitiveSpec spec =
      spec_of(full_name, named.summary, named.make({}), make, usual_batch(named.name));
  spec.axes.push_back(
      {"layers", "of deep_mlp, bert and vit; 0: the model's own", int64_t{0}, {}, 0});
  spec.axes.push_back(
      {"hidden", "features between layers, or channels; 0: the model's own", int64_t{0}, {}, 0});
  spec.axes.push_back({"seq", "positions of bert; 0: the model's own", int64_t{0}, {}, 0});
  spec.axes.push_back(
      {"image", "height and width of images; 0: the model's own", int64_t{0}, {}, 0});
  spec.axes.push_back(dtype_axis("of parameters and values"));
  spec.axes.push_back(weights_axis("how those of linear layers are stored"));
  spec.impossible_reason = [make, &named](const Case& point) {
    std::string idle = idle_size(named, point);
    if (idle.empty()) idle = idle_routing(point);
    return idle.empty() ? reason_against([&] { return make(point); }) : idle;
  };
  return spec;
}

struct Entry {
  std::string name;  ///< the spec's
  GraphOf graph_of;
  ParametersOf parameters_of;  ///< empty: drawn for the graph
  PrimitiveSpec spec{};
};

/// Lives as long as the program: the named models, then what was added.
struct Registry {
  std::mutex mutex;
  std::deque<Entry> entries;
  Registry() {
    for (const NamedModel& named : named_models()) {
      Entry& entry =
          entries.emplace_back(Entry{"model:" + std::string(named.name), graph_of(named), {}});
      entry.spec = named_spec(named, entry.name);
    }
  }
  const Entry& find(const Case& point) const {
    const auto entry = std::find_if(entries.begin(), entries.end(),
                                    [&](const Entry& each) { return each.name == point.op(); });
    if (entry == entries.end())
      throw_invalid_argument("model: " + std::string(point.op()) +
                             " is a primitive, expected a model");
    return *entry;
  }
};

Registry& registry() {
  static Registry instance;
  return instance;
}

}  // namespace

std::vector<const PrimitiveSpec*> models() {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  std::vector<const PrimitiveSpec*> list;
  for (const Entry& entry : r.entries) list.push_back(&entry.spec);
  return list;
}

const PrimitiveSpec& add_model(const std::string& name, Graph graph) {
  return add_model(name, std::move(graph), {});
}

const PrimitiveSpec& add_model(const std::string& name, Graph graph, ParametersOf parameters) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  const std::string full = "model:" + name;
  for (const Entry& entry : r.entries) {
    WIDE_REQUIRE(entry.name != full, "model: " + name + " is there already");
  }
  const auto shared = std::make_shared<const Graph>(std::move(graph));
  Entry& entry = r.entries.emplace_back(
      Entry{full, [shared](const Case&) { return *shared; }, std::move(parameters)});
  entry.spec =
      spec_of(entry.name, "a model of a file", *shared, entry.graph_of, 8, entry.parameters_of);
  const std::string_view dtype = dtype_name(shared->type(shared->outputs()[0].value).dtype);
  entry.spec.axes.push_back({"dtype", "as the file has it", std::string(dtype), {dtype}, 0});
  return entry.spec;
}

ModelProblem model_problem(const Case& point) {
  const int64_t n = point.integer("n"), batch = point.integer("batch");
  if (point.word("routed") == "no") return {.num_members = n, .batch = batch};
  const Shape rows{n, batch};
  return {.num_members = n,
          .batch = num_elements(rows),
          .is_routed = true,
          .choices = point.integer("choices"),
          .router = *parse_router(point.word("router"))};
}

Graph model_graph(const Case& point) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  return r.find(point).graph_of(point);
}

OwnedParameters model_parameters(const Case& point, uint64_t seed, int64_t member) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  const Entry& entry = r.find(point);
  return entry.parameters_of ? entry.parameters_of(seed, member)
                             : random_parameters(entry.graph_of(point), seed, member);
}

}  // namespace wide::catalog
