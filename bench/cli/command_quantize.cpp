// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `quantize`: the cost of storing one member's weight in fewer bits, format by format. Only
// the report is kept: blobs are made where the weights are, by prepare_weights.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <random>

#include "bench/cli/cli.hpp"
#include "bench/cli/commands.hpp"
#include "bench/command/options.hpp"
#include "bench/command/output_files.hpp"
#include "bench/command/outputs.hpp"
#include "bench/document/json_number.hpp"
#include "bench/process/exit_code.hpp"
#include "bench/report/table.hpp"
#include "bench/report/terminal.hpp"
#include "host/core/check.hpp"
#include "host/core/file.hpp"
#include "host/core/text.hpp"
#include "wide/catalog.hpp"
#include "wide/convert.hpp"
#include "wide/quantize.hpp"

namespace wide::bench {

namespace {

using Json = nlohmann::ordered_json;

struct Row {
  QuantizedWeight how;
  int64_t bytes = 0;
  double bits_per_weight = 0;
  QuantizationError error;
};

std::vector<WeightFormat> formats_of(const std::vector<std::string>& names) {
  std::vector<std::string_view> known;
  std::vector<WeightFormat> all, chosen;
  for (const WeightFormat format : kAllWeightFormats) {
    if (format == WeightFormat::packed) continue;
    known.push_back(weight_format_name(format));
    all.push_back(format);
  }
  for (const std::string& name : names) {
    if (name == "all") return all;
    const std::optional<WeightFormat> format = parse_weight_format(name);
    WIDE_REQUIRE(format && *format != WeightFormat::packed,
                 "quantize: " + catalog::unknown_name_message("format", name, known));
    chosen.push_back(*format);
  }
  return chosen;
}

/// The file's contents, or normal numbers by the seed in the dtype.
Tensor weight_of(const Context& context, const QuantizeOptions& options) {
  const std::optional<Dtype> dtype = parse_dtype(options.dtype);
  static constexpr std::string_view kDtypes[] = {"fp32", "fp16", "bf16"};
  WIDE_REQUIRE(dtype == Dtype::fp32 || dtype == Dtype::fp16 || dtype == Dtype::bf16,
               "quantize: " + catalog::unknown_name_message("dtype", options.dtype, kDtypes));
  const Shape shape{options.out_features, options.in_features};
  const int64_t bytes = checked_bytes(shape, dtype_bytes(*dtype));
  if (!options.file.empty()) {
    const std::string contents = read_file(options.file);
    WIDE_REQUIRE(static_cast<int64_t>(contents.size()) == bytes,
                 "quantize: " + options.file + " has " + counted(contents.size(), "byte") +
                     ", expected [out, in] = " + to_string(shape) + " of " + options.dtype + " = " +
                     std::to_string(bytes));
    Tensor weight(context, *dtype, shape);
    std::copy(contents.begin(), contents.end(), static_cast<char*>(weight.data()));
    return weight;
  }
  Tensor weight(context, *dtype, shape);
  std::mt19937_64 random(static_cast<uint64_t>(options.seed));
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> values(static_cast<size_t>(weight.num_elements()));
  for (float& value : values) value = normal(random);
  encode_row(*dtype, values.data(), static_cast<char*>(weight.data()), weight.num_elements());
  return weight;
}

Row measure(const Context& context, const QuantizedWeight& how, const Tensor& weight) {
  Row row{how, quantized_bytes(how), 0, {}};
  row.bits_per_weight =
      8.0 * static_cast<double>(row.bytes) / static_cast<double>(weight.num_elements());
  Tensor blobs(context, Dtype::uint8, {1, row.bytes});
  const ConstTensorView member = weight;
  quantize_weights(context, how, std::span(&member, 1), blobs, Stream::cpu());
  const ConstTensorView blob(blobs.data(), Dtype::uint8, {row.bytes}, Device{});
  row.error = quantization_error(context, how, member, blob, Stream::cpu());
  return row;
}

std::string table_text(const std::vector<Row>& rows, bool has_color) {
  Table table({{"format", false, Column::kNeverDropped, 0},
               {"group", true, Column::kNeverDropped, 0},
               {"bits", true, Column::kNeverDropped, 0},
               {"bytes", true, Column::kNeverDropped, 0},
               {"relative", true, Column::kNeverDropped, 0},
               {"SNR", true, Column::kNeverDropped, 0},
               {"rms", true, 2, 0},
               {"largest", true, 2, 0},
               {"worst group", false, 1, 0}});
  for (const Row& row : rows) {
    const int64_t first = row.error.worst_group * row.how.group_size;
    const int64_t last = std::min(first + row.how.group_size, row.how.in_features) - 1;
    table.add({{std::string(weight_format_name(row.how.format))},
               {std::to_string(row.how.group_size)},
               {fmt::format("{:.3f}", row.bits_per_weight)},
               {std::to_string(row.bytes)},
               {fmt::format("{:.3g}", row.error.relative_frobenius)},
               {fmt::format("{:.1f} dB", row.error.snr_db)},
               {fmt::format("{:.3g}", row.error.rms)},
               {fmt::format("{:.3g}", row.error.max_abs)},
               {fmt::format("output {}, inputs {}..{}", row.error.worst_output, first, last)}});
  }
  return table.render(output_width(), has_color) + "\n";
}

Json json_of(const QuantizeOptions& options, const std::vector<Row>& rows) {
  Json formats = Json::array();
  for (const Row& row : rows) {
    formats.push_back({{"format", weight_format_name(row.how.format)},
                       {"group_size", row.how.group_size},
                       {"bytes", row.bytes},
                       {"bits_per_weight", row.bits_per_weight},
                       {"relative_frobenius", json_number(row.error.relative_frobenius)},
                       {"snr_db", json_number(row.error.snr_db)},
                       {"rms", json_number(row.error.rms)},
                       {"max_abs", json_number(row.error.max_abs)},
                       {"worst_output", row.error.worst_output},
                       {"worst_group", row.error.worst_group}});
  }
  const bool is_random = options.file.empty();
  return {{"schema", {{"name", "wbench.quantize"}, {"version", "1.0.0"}}},
          {"weight",
           {{"file", json_text(options.file)},
            {"seed", is_random ? Json(options.seed) : Json(nullptr)},
            {"dtype", options.dtype},
            {"out_features", options.out_features},
            {"in_features", options.in_features}}},
          {"formats", formats}};
}

}  // namespace

int command_quantize(const GlobalOptions& global, const QuantizeOptions& options,
                     std::ostream& out) {
  const std::vector<WeightFormat> formats = formats_of(options.formats);
  require_outputs({{"--json", options.json}}, {{"the weight", options.file}});
  const Context context = Context::cpu();
  const Tensor weight = weight_of(context, options);
  std::vector<Row> rows;
  for (const WeightFormat format : formats) {
    for (const int64_t group_size : options.group_sizes) {
      rows.push_back(measure(
          context, {format, group_size, options.out_features, options.in_features}, weight));
    }
  }
  if (options.json != "-") out << table_text(rows, wants_color(global.color));
  if (!options.json.empty()) write_document(dumped(json_of(options, rows)), options.json, out);
  return kSuccess;
}

}  // namespace wide::bench
