// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `list`: what can be run, and on what. Needs no device.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>

#include "bench/cli/cli.hpp"
#include "bench/cli/commands.hpp"
#include "bench/command/options.hpp"
#include "bench/command/outputs.hpp"
#include "bench/document/metrics.hpp"
#include "bench/process/exit_code.hpp"
#include "bench/report/table.hpp"
#include "bench/report/terminal.hpp"
#include "host/core/text.hpp"
#include "host/core/verified.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Json = nlohmann::ordered_json;

/// "sm_90" for every compute capability that verified it; strategies that need none say so.
std::string verified_text(const catalog::PrimitiveSpec& spec, const catalog::StrategyInfo& info) {
  if (info.device == DeviceType::cpu) return "by the tests";
  if (info.kind == catalog::StrategyKind::vendor) return "needs none";
  if (info.kind == catalog::StrategyKind::sequential) return "same as the kernel it calls";
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

/// The folder of host/ that describes a primitive, by which kernels and tests are sorted, too.
std::string family_of(const catalog::PrimitiveSpec& spec) {
  static const std::map<std::string_view, const char*> families = {
#include "wide_families.inc"
  };
  const auto found = families.find(spec.name);
  return found == families.end() ? "model" : found->second;
}

Rows ops_rows(const Specs& specs) {
  Rows rows{{"op", "family", "summary"}};
  for (const auto* spec : specs)
    rows.push_back({std::string(spec->name), family_of(*spec), std::string(spec->summary)});
  return rows;
}

Rows tolerance_rows(const Specs& specs) {
  Rows rows{{"op", "largest error that passes"}};
  for (const auto* spec : specs)
    rows.push_back({std::string(spec->name), std::string(spec->tolerance_formula)});
  return rows;
}

/// Features that comparable libraries have and wide lacks.
Rows refused_rows() {
  return {
      {"what", "why not"},
      {"transposed convolution as an op",
       "no kernel computes it: in models and ONNX files it is a conv to the channels of "
       "all phases, which are interleaved by a copy; run --model unet measures that"},
      {"pooling of volumes",
       "two calls do: of planes as images, and of columns of planes; ONNX nodes of it are imported "
       "so"},
      {"cuDNN's RNN calls",
       "they take weights in a buffer of their own; recurrent's vendor strategies are cuBLAS, "
       "step by "
       "step, and torch's cuDNN layers are peers (scripts/peers)"},
      {"product of two activations",
       "within attention alone, as flash_attention; elsewhere refused by the node's name"},
      {"training", "nothing has gradients; batchnorm's mode train computes its statistics"},
      {"several GPUs in one run (NCCL, MPI, meshes)",
       "members exchange nothing, so there is no collective to time: a process for each GPU; "
       "run -d cuda:0,1 measures one after the other"},
      {"compile times by stage, the time of capturing a graph",
       "kernels are compiled when wide is built, none at run time, and a graph is captured once "
       "for all its replays; run -v has what a plan and a first call take"},
      {"fp8 in flash_attention",
       "wgmma takes v of 8 bits only with its keys contiguous: every tile would have to be "
       "transposed in shared memory by the warps that fetch it"},
      {"members larger than a block, shared by a cluster",
       "mlp's and recurrent's fused kernels keep a member in one block, larger ones run layer by "
       "layer or step by step; the simulated GPU, which checks kernels, has no loads from other "
       "blocks' shared memory"},
      {"members' own gammas in one cuDNN call of layernorm, rmsnorm",
       "it takes rows without gaps and one gamma for all of them: N separate calls, the baseline, "
       "are its, and a call without parameters"},
      {"chain, groupnorm, pointwise, binary, dropout by vendors' libraries",
       "the baseline is our own kernel of one member: what is compared is the launches, and the "
       "floor says how good the kernel is; torch's are peers (scripts/peers)"},
      {"ensemble functions in the last kernel",
       "members' outputs are in different blocks: a primitive of its own reads them once more"},
      {"a residual before and another one after the activation",
       "one epilogue takes one of the two; the other is a binary"},
      {"scales of conv per member", "a factor belongs in the weights"},
      {"embedding's max_norm", "it changes the table that it reads: a call writes outputs only"},
      {"utilisation and memory by NVML",
       "they are averages over far longer than a call; memory is counted by the allocator "
       "(peak_device_bytes)"}};
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

Rows policy_rows(const Specs& specs) {
  Rows rows{{"op", "strategy", "policies"}};
  for (const auto* spec : specs) {
    for (const auto& info : spec->strategies) {
      if (!info.policies.empty())
        rows.push_back({std::string(spec->name), std::string(info.name),
                        fmt::format("{}", fmt::join(info.policies, " "))});
    }
  }
  return rows;
}

Rows axis_rows(const Specs& specs) {
  Rows rows{{"op", "axis", "default", "values", "summary"}};
  for (const auto* spec : specs) {
    for (const auto& axis : spec->axes) {
      rows.push_back({std::string(spec->name), std::string(axis.name),
                      catalog::to_string(axis.default_value),
                      axis.words.empty() ? fmt::format(">= {}", axis.min)
                                         : fmt::format("{}", fmt::join(axis.words, " ")),
                      std::string(axis.summary)});
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
  Rows rows{{"dtype", "bytes", "sums in"}};
  for (const Dtype dtype : kAllDtypes)
    rows.push_back({std::string(dtype_name(dtype)), std::to_string(dtype_bytes(dtype)),
                    is_floating(dtype) ? "fp32" : "no sums"});
  return rows;
}

Rows metric_rows() {
  // Names as in results and, of those that are compared, in `compare --metric`; columns as in
  // `run --metrics`.
  Rows rows{{"metric", "column", "unit", "better", "compared", "meaning"}};
  const std::map<std::string_view, std::array<const char*, 3>> words{
      {"time_ns", {"time", "ns", "of one wide call, the median of samples"}},
      {"flops_per_s", {"rate", "FLOP/s", "declared operations over time"}},
      {"mem_bw_bytes_per_s", {"bandwidth", "B/s", "declared bytes, each operand once, over time"}},
      {"items_per_s", {"items", "1/s", "examples, n * batch, over time"}},
      {"pct_of_floor", {"of floor", "%", "floor over time"}},
      {"speedup_ratio", {"speedup", "ratio", "baseline over strategy, paired by round"}},
      {"worst_error_ratio",
       {"err/tol", "ratio", "worst error over tolerance, and its member; passes at 1"}}};
  for (const Metric& metric : metrics()) {
    const auto& [column, unit, meaning] = words.at(metric.name);
    rows.push_back({metric.name, column, unit, std::string(to_string(metric.better)),
                    metric.value != nullptr ? "yes" : "no", meaning});
  }
  return rows;
}

Rows device_rows(bool no_gpu) {
  const DeviceInfo cpu = Context::cpu().info();
  Rows rows{{"device", "name", "detail"}};
  rows.push_back({"cpu", cpu.name, counted(cpu.num_multiprocessors, "thread")});
  const CudaAvailability cuda = no_gpu ? CudaAvailability{0, "not asked (--no-gpu)"} : query_cuda();
  if (cuda.num_devices == 0) rows.push_back({"cuda", "not usable", cuda.reason});
  for (int i = 0; i < cuda.num_devices; ++i) {
    try {
      const DeviceInfo info = Context::cuda(i).info();
      rows.push_back(
          {to_string(info.device), info.name,
           fmt::format("sm_{}, {} SMs", info.compute_capability, info.num_multiprocessors)});
    } catch (const Error& error) {
      rows.push_back({fmt::format("cuda:{}", i), "not usable", error.what()});
    }
  }
  return rows;
}

/// Columns that are numbers in every row are numbers in JSON; an axis' default may be a word.
bool is_number(const std::string& title) {
  return title == "bytes" || title == "cases";
}

std::string rows_json(const Rows& rows) {
  Json array = Json::array();
  for (size_t r = 1; r < rows.size(); ++r) {
    Json object;
    for (size_t c = 0; c < rows[r].size(); ++c) {
      const std::string& text = rows[r][c];
      object[rows[0][c]] = is_number(rows[0][c]) ? Json(std::stoll(text)) : Json(text);
    }
    array.push_back(std::move(object));
  }
  return array.dump(1) + "\n";
}

/// The listing of `suite list`.
std::string suites_text(const GlobalOptions& global, bool as_json) {
  SuiteOptions options;
  if (as_json) options.json = "-";
  std::ostringstream out, err;
  (void)command_suite(global, options, out, err);
  return out.str();
}

}  // namespace

int command_list(const GlobalOptions& global, const std::string& what, const std::string& ops,
                 const std::string& json, std::ostream& out) {
  const Specs specs = select_ops(ops.empty() ? "all" : ops);
  static constexpr std::string_view kWhat[] = {"ops",     "models",  "strategies", "policies",
                                               "axes",    "presets", "tolerances", "dtypes",
                                               "devices", "metrics", "suites",     "refused"};
  Rows rows;
  if (what == "ops") rows = ops_rows(specs);
  if (what == "models") rows = ops_rows(select_ops("model:all"));
  if (what == "strategies") rows = strategy_rows(specs);
  if (what == "policies") rows = policy_rows(specs);
  if (what == "axes") rows = axis_rows(specs);
  if (what == "presets") rows = preset_rows(specs);
  if (what == "tolerances") rows = tolerance_rows(specs);
  if (what == "refused") rows = refused_rows();
  if (what == "dtypes") rows = dtype_rows();
  if (what == "devices") rows = device_rows(global.no_gpu);
  if (what == "metrics") rows = metric_rows();
  if (rows.empty() && what != "suites")
    throw Error(ErrorCode::invalid_argument,
                "list: " + catalog::unknown_name_message("listing", what, kWhat));
  const bool as_json = !json.empty();
  const std::string text = what == "suites" ? suites_text(global, as_json)
                           : as_json        ? rows_json(rows)
                                            : listing_text(rows, output_width());
  write_document(text, as_json ? json : "-", out);
  return kSuccess;
}

}  // namespace wide::bench
