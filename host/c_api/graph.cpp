// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Graphs: builders, and everything in them but layers.
#include "wide/graph.hpp"

#include "host/c_api/builder.hpp"
#include "wide/models.hpp"

using namespace wide;
using namespace wide::c_api;

wide_status wide_graph_create_named(const char* name, const wide_model_sizes* sizes,
                                    wide_graph** out) {
  return created(__func__, out, [&] {
    const wide_model_sizes given = options_or_default(sizes, "sizes");
    return wide_graph{
        make_named_model(text(name, "name"), {.dtype = dtype_of(given.dtype, "sizes.dtype"),
                                              .layers = given.layers,
                                              .width = given.width,
                                              .heads = given.heads,
                                              .seq = given.seq,
                                              .image = given.image,
                                              .classes = given.classes,
                                              .vocab = given.vocab})};
  });
}

wide_status wide_graph_create(const wide_builder* builder, wide_graph** out) {
  return created(__func__, out, [&] {
    const wide_builder& own = required(builder, "builder");
    require_no_error(own);
    return wide_graph{GraphBuilder(own.builder).build()};
  });
}
wide_status wide_graph_query(const wide_graph* graph, wide_graph_info* out) {
  return guarded(__func__, [&] {
    const Graph& own = required(graph, "graph").graph;
    wide_graph_info value{};
    value.name = own.name().c_str();
    value.num_parameters = std::ssize(own.parameters());
    value.num_inputs = std::ssize(own.inputs());
    value.num_outputs = std::ssize(own.outputs());
    write(out, value);
  });
}
wide_status wide_graph_parameter(const wide_graph* graph, int64_t index, wide_parameter_info* out) {
  return guarded(__func__, [&] {
    const Graph& own = required(graph, "graph").graph;
    const Value value = element(own.parameters(), index, "parameter");
    const ValueType& type = own.type(value);
    write_value(out, own.name(value), type.dtype, type.shape, false);
  });
}
wide_status wide_graph_input(const wide_graph* graph, int64_t index, wide_graph_value* out) {
  return guarded(__func__, [&] {
    const Graph& own = required(graph, "graph").graph;
    const Value value = element(own.inputs(), index, "input");
    const ValueType& type = own.type(value);
    write_value(out, own.name(value), type.dtype, type.shape,
                own.kind(value) == ValueKind::shared_input);
  });
}
wide_status wide_graph_output(const wide_graph* graph, int64_t index, wide_graph_value* out) {
  return guarded(__func__, [&] {
    const Graph& own = required(graph, "graph").graph;
    const Operand& output = element(own.outputs(), index, "output");
    const ValueType& type = own.type(output.value);
    write_value(out, output.name, type.dtype, type.shape, false);
  });
}
wide_status wide_graph_quantize(const wide_graph* graph, const wide_weight_quantization* how,
                                wide_graph** out) {
  return created(__func__, out, [&] {
    const Graph& own = required(graph, "graph").graph;
    const wide_weight_quantization given = sized(how, "how");
    const std::optional<WeightFormat> format =
        parse_weight_format(text(given.format, "how.format"));
    WIDE_REQUIRE(format && *format != WeightFormat::packed,
                 "how.format is \"" + std::string(given.format) +
                     "\", expected fp8_e4m3, int8, fp6_e3m2, int4 or fp4_e2m1");
    require_array(given.layers, given.num_layers, "how.layers");
    WeightQuantization all{.format = *format,
                           .group_size = given.group_size == 0 ? 128 : given.group_size};
    for (int64_t i = 0; i < given.num_layers; ++i)
      all.layers.push_back(text(given.layers[i], element_name("how.layers", i)));
    return wide_graph{with_quantized_weights(own, all)};
  });
}
wide_status wide_graph_ensemble(const wide_graph* graph, const wide_output_ensembles* what,
                                wide_graph** out) {
  return created(__func__, out, [&] {
    const Graph& own = required(graph, "graph").graph;
    const wide_output_ensembles given = options_or_default(what, "what");
    require_array(given.ensembles, given.num_ensembles, "what.ensembles");
    require_array(given.outputs, given.num_outputs, "what.outputs");
    OutputEnsembles all{.keeps_members = given.keeps_members != 0};
    if (given.num_ensembles > 0) all.ensembles.clear();
    for (int64_t i = 0; i < given.num_ensembles; ++i) {
      const std::string name = text(given.ensembles[i], element_name("what.ensembles", i));
      const std::optional<EnsembleFunction> kind = parse_ensemble_function(name);
      WIDE_REQUIRE(kind, element_name("what.ensembles", i) + " is \"" + name +
                             "\", expected mean, variance, vote, log_mean_exp or sum");
      all.ensembles.push_back(*kind);
    }
    for (int64_t i = 0; i < given.num_outputs; ++i)
      all.outputs.push_back(text(given.outputs[i], element_name("what.outputs", i)));
    return wide_graph{with_ensembles(own, all)};
  });
}
void wide_graph_destroy(wide_graph* graph) {
  delete graph;
}

wide_status wide_builder_create(const char* name, wide_dtype dtype, wide_builder** out) {
  return created(__func__, out,
                 [&] { return wide_builder{GraphBuilder(text(name, "name"), dtype_of(dtype))}; });
}
void wide_builder_destroy(wide_builder* builder) {
  delete builder;
}

wide_status wide_builder_input(wide_builder* builder, const char* name, wide_dtype dtype,
                               const int64_t* shape, int32_t rank, wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, const std::string& own) {
    return g.input(own, dims_of(shape, rank), dtype_of(dtype));
  });
}
wide_status wide_builder_shared_input(wide_builder* builder, const char* name, wide_dtype dtype,
                                      const int64_t* shape, int32_t rank, wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, const std::string& own) {
    return g.shared_input(own, dims_of(shape, rank), dtype_of(dtype));
  });
}
wide_status wide_builder_parameter(wide_builder* builder, const char* name, wide_dtype dtype,
                                   const int64_t* shape, int32_t rank, wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, const std::string& own) {
    return g.parameter(own, dims_of(shape, rank), dtype_of(dtype));
  });
}
wide_status wide_builder_output(wide_builder* builder, const char* name, wide_value value) {
  return extended(__func__, builder, name,
                  [&](GraphBuilder& g) { g.output(text(name, "name"), value_of(g, value)); });
}
