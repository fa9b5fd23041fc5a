// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `list` and `info`: what there is to run, and on what. Neither needs a device.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "bench/cli.hpp"
#include "bench/commands.hpp"
#include "bench/environment.hpp"
#include "bench/report/report.hpp"
#include "bench/report/table.hpp"
#include "host/core/verified.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Json = nlohmann::ordered_json;

/// "sm_90" of every compute capability that proved it; what needs no proof says so.
std::string verified_text(const catalog::PrimitiveSpec& spec, const catalog::StrategyInfo& info) {
  if (info.device == DeviceType::cpu) return "by the tests";
  if (info.kind != catalog::StrategyKind::hand_written) return "needs none";
  std::string text;
  for (const VerifiedStrategy& entry : verified_strategies()) {
    if (entry.op == spec.name && entry.strategy == info.name) {
      text += fmt::format("{}sm_{}", text.empty() ? "" : ", ", entry.compute_capability);
    }
  }
  return text.empty() ? "unverified" : text;
}

/// Rows of one listing; the first is the header.
using Rows = std::vector<std::vector<std::string>>;
using Specs = std::vector<const catalog::PrimitiveSpec*>;

Rows ops_rows(const Specs& specs) {
  Rows rows{{"op", "summary", "tolerance"}};
  for (const auto* spec : specs) {
    rows.push_back({std::string(spec->name), std::string(spec->summary),
                    std::string(spec->tolerance_formula)});
  }
  return rows;
}

Rows strategy_rows(const Specs& specs) {
  Rows rows{{"op", "strategy", "device", "kind", "verified", "summary"}};
  for (const auto* spec : specs) {
    for (const auto& info : spec->strategies) {
      rows.push_back({std::string(spec->name), std::string(info.name),
                      info.device == DeviceType::cpu ? "cpu" : "cuda",
                      std::string(catalog::to_string(info.kind)), verified_text(*spec, info),
                      std::string(info.summary)});
    }
  }
  return rows;
}

Rows axis_rows(const Specs& specs) {
  Rows rows{{"op", "axis", "default", "values", "summary"}};
  for (const auto* spec : specs) {
    for (const auto& axis : spec->axes) {
      std::string values = axis.words.empty() ? fmt::format(">= {}", axis.min) : "";
      for (const auto& word : axis.words) values += (values.empty() ? "" : " ") + std::string(word);
      rows.push_back({std::string(spec->name), std::string(axis.name),
                      catalog::to_string(axis.default_value), values, std::string(axis.summary)});
    }
  }
  return rows;
}

Rows preset_rows(const Specs& specs) {
  Rows rows{{"op", "preset", "cases", "axes"}};
  for (const auto* spec : specs) {
    for (const auto& sweep : spec->sweeps) {
      int64_t cases = 1;
      std::string axes;
      for (const auto& axis : sweep.axes) {
        cases *= static_cast<int64_t>(axis.values.size());
        axes += (axes.empty() ? "" : " ") + axis.name + "=";
        for (size_t i = 0; i < axis.values.size(); ++i)
          axes += (i == 0 ? "" : ",") + catalog::to_string(axis.values[i]);
      }
      rows.push_back(
          {std::string(spec->name), std::string(sweep.name), std::to_string(cases), axes});
    }
  }
  return rows;
}

Rows dtype_rows() {
  Rows rows{{"dtype", "bytes"}};
  for (const Dtype dtype : kAllDtypes)
    rows.push_back({std::string(dtype_name(dtype)), std::to_string(dtype_bytes(dtype))});
  return rows;
}

Rows metric_rows() {
  return {{"metric", "unit", "better", "meaning"},
          {"time", "ns", "lower", "of one wide call, the median of samples"},
          {"rate", "FLOP/s", "higher", "declared operations over time"},
          {"bandwidth", "B/s", "higher", "declared bytes, each operand once, over time"},
          {"of floor", "%", "higher", "floor over time"},
          {"speedup", "ratio", "higher", "baseline over strategy, paired by round"},
          {"err/tol", "ratio", "lower", "worst error over tolerance, and its member; passes at 1"}};
}

Rows device_rows() {
  const DeviceInfo cpu = Context::cpu().info();
  Rows rows{{"device", "name", "detail"}};
  rows.push_back({"cpu", cpu.name, fmt::format("{} threads", cpu.num_multiprocessors)});
  const CudaAvailability cuda = query_cuda();
  if (cuda.num_devices == 0) rows.push_back({"cuda", "not usable", cuda.reason});
  for (int i = 0; i < cuda.num_devices; ++i) {
    const DeviceInfo info = Context::cuda(i).info();
    rows.push_back(
        {to_string(info.device), info.name,
         fmt::format("sm_{}, {} SMs", info.compute_capability, info.num_multiprocessors)});
  }
  return rows;
}

void print_rows(const Rows& rows, bool as_json, std::ostream& out) {
  if (as_json) {
    Json array = Json::array();
    for (size_t r = 1; r < rows.size(); ++r) {
      Json object;
      for (size_t c = 0; c < rows[r].size(); ++c) object[rows[0][c]] = rows[r][c];
      array.push_back(std::move(object));
    }
    out << array.dump(1) << "\n";
    return;
  }
  std::vector<Column> columns;
  for (const std::string& title : rows[0]) columns.push_back({title, false, 9});
  Table table(columns);
  for (size_t r = 1; r < rows.size(); ++r) {
    std::vector<Cell> cells;
    for (const std::string& text : rows[r]) cells.push_back({text});
    table.add(std::move(cells));
  }
  out << table.render(output_width(), false) << "\n";
}

}  // namespace

int command_list(const std::string& what, const std::string& ops, bool as_json, std::ostream& out) {
  const Specs specs = select_ops(ops.empty() ? "all" : ops);
  static constexpr std::string_view kWhat[] = {"ops",    "strategies", "axes",   "presets",
                                               "dtypes", "devices",    "metrics"};
  Rows rows;
  if (what == "ops") rows = ops_rows(specs);
  if (what == "strategies") rows = strategy_rows(specs);
  if (what == "axes") rows = axis_rows(specs);
  if (what == "presets") rows = preset_rows(specs);
  if (what == "dtypes") rows = dtype_rows();
  if (what == "devices") rows = device_rows();
  if (what == "metrics") rows = metric_rows();
  if (rows.empty())
    throw Error(ErrorCode::invalid_argument,
                "list: " + catalog::unknown_name_message("listing", what, kWhat));
  print_rows(rows, as_json, out);
  return kSuccess;
}

int command_info(bool no_gpu, bool as_json, std::ostream& out) {
  RunResult facts;
  describe_environment(facts);
  const DeviceInfo cpu = Context::cpu().info();
  const CudaAvailability cuda = no_gpu ? CudaAvailability{0, "not asked (--no-gpu)"} : query_cuda();
  Rows rows{{"fact", "value"},
            {"wbench", facts.tool_version + " " + facts.git_sha.substr(0, 12) +
                           (facts.git_dirty ? " (changed)" : "")},
            {"build", facts.build_type + ", " + facts.compiler},
            {"CUDA toolkit", facts.cuda_toolkit.empty()
                                 ? "none: built without CUDA"
                                 : facts.cuda_toolkit + ", architectures " + facts.cuda_archs},
            {"host", facts.hostname + ", " + facts.os + ", Linux " + facts.kernel},
            {"cpu", fmt::format("{}, {} threads, last-level cache {} MiB", cpu.name,
                                cpu.num_multiprocessors, cpu.last_level_cache_bytes >> 20)}};
  if (cuda.num_devices == 0) rows.push_back({"cuda", "not usable: " + cuda.reason});
  for (int i = 0; i < cuda.num_devices; ++i) {
    const DeviceInfo d = Context::cuda(i).info();
    rows.push_back(
        {to_string(d.device), fmt::format("{}, sm_{}, {} SMs, {} GiB, L2 {} MiB, driver {}.{}",
                                          d.name, d.compute_capability, d.num_multiprocessors,
                                          d.memory_bytes >> 30, d.last_level_cache_bytes >> 20,
                                          d.driver_version / 1000, d.driver_version % 1000 / 10)});
  }
  rows.push_back({"default device", cuda.num_devices > 0 ? "cuda:0" : "cpu"});
  if (!as_json) {
    print_rows(rows, false, out);
    return kSuccess;
  }
  Json object;
  for (size_t r = 1; r < rows.size(); ++r) object[rows[r][0]] = rows[r][1];
  out << object.dump(1) << "\n";
  return kSuccess;
}

}  // namespace wide::bench
