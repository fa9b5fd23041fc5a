// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/inspect/launches.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "bench/inspect/occupancy.hpp"
#include "bench/report/details.hpp"
#include "bench/report/tables.hpp"
#include "host/core/text.hpp"

namespace wide::bench {

namespace {

using Json = nlohmann::ordered_json;

int capability_of(const RunResult& result) {
  return result.devices.empty() ? 0 : result.devices.front().compute_capability;
}

/// None for an architecture whose limits are unknown.
std::optional<Occupancy> occupancy_in(const RunResult& result, const KernelUse& kernel) {
  const std::optional<SmLimits> limits = sm_limits(capability_of(result));
  if (!limits || kernel.block.empty()) return std::nullopt;
  return occupancy_of(kernel, *limits);
}

template <class Visit>
void for_each_runner(const CaseResult& c, const Visit& visit) {
  for (const RunnerResult& r : c.baselines) visit(r, "(" + r.name + ")");
  for (const RunnerResult& r : c.strategies) visit(r, r.name);
}

template <class Take>
std::vector<std::string> kernels_where(const RunResult& result, const Take& takes) {
  std::vector<std::string> names;
  for (const CaseResult& c : result.cases) {
    for_each_runner(c, [&](const RunnerResult& r, const std::string&) {
      for (const KernelUse& k : r.kernels) {
        if (takes(k) && std::find(names.begin(), names.end(), k.name) == names.end())
          names.push_back(k.name);
      }
    });
  }
  return names;
}

/// Why a runner has no kernels to show.
std::string nothing_of(const RunnerResult& r) {
  if (r.status != Status::ok) return std::string(to_string(r.status)) + ": " + r.reason;
  if (!r.launches_per_call) return "a call that cannot be captured";
  return counted(*r.launches_per_call, "launch", "launches") +
         ", of kernels that are too many to list or a library's own";
}

std::vector<Column> columns_of(Inspected what) {
  constexpr int kAlways = Column::kNeverDropped, kNameCap = 40;
  std::vector<Column> columns{{"case", false, kAlways},
                              {"strategy", false, kAlways},
                              {"#", true, kAlways},
                              {"kernel", false, kAlways, kNameCap}};
  const auto add = [&](std::initializer_list<Column> more) {
    columns.insert(columns.end(), more.begin(), more.end());
  };
  switch (what) {
    case Inspected::launches:
      add({{"grid", true, 8}, {"block", true, 8}, {"shared", true, 7}});
      break;
    case Inspected::resources:
      add({{"registers", true, 8}, {"static", true, 7}, {"dynamic", true, 7}, {"local", true, 7}});
      break;
    case Inspected::occupancy:
      add({{"block", true, 6},
           {"blocks/SM", true, 8},
           {"occupancy", true, 8},
           {"limited by", false, 8},
           {"registers", true, 5},
           {"shared", true, 5},
           {"threads", true, 5}});
      break;
  }
  return columns;
}

std::vector<Cell> cells_of(const RunResult& result, const KernelUse& k, Inspected what) {
  const auto bytes = [](int64_t value) { return Cell{value > 0 ? bytes_text(value) : "-"}; };
  switch (what) {
    case Inspected::launches:
      return {{extents_text(k.grid)},
              {extents_text(k.block)},
              bytes(k.static_shared_bytes + k.dynamic_shared_bytes)};
    case Inspected::resources:
      return {{k.registers ? std::to_string(*k.registers) : "?"},
              bytes(k.static_shared_bytes),
              bytes(k.dynamic_shared_bytes),
              bytes(k.local_bytes)};
    case Inspected::occupancy:
      break;
  }
  std::vector<Cell> cells{{extents_text(k.block)},
                          {std::to_string(k.blocks_per_sm)},
                          {fmt::format("{:.0f}%", k.occupancy_pct)}};
  const std::optional<Occupancy> o = occupancy_in(result, k);
  if (!o) return cells;
  cells.push_back({fmt::format("{}", fmt::join(o->limited_by, ", "))});
  cells.push_back({o->by_registers ? std::to_string(*o->by_registers) : "?"});
  cells.push_back({std::to_string(o->by_shared)});
  cells.push_back({std::to_string(o->by_threads)});
  return cells;
}

Json kernel_json(const RunResult& result, const KernelUse& k) {
  Json json{{"kernel", kernel_name(k.name)},
            {"mangled", k.name},
            {"grid", k.grid},
            {"block", k.block},
            {"registers", k.registers ? Json(*k.registers) : Json(nullptr)},
            {"static_shared_bytes", k.static_shared_bytes},
            {"dynamic_shared_bytes", k.dynamic_shared_bytes},
            {"local_bytes", k.local_bytes},
            {"blocks_per_sm", k.blocks_per_sm},
            {"occupancy_pct", k.occupancy_pct}};
  const std::optional<Occupancy> o = occupancy_in(result, k);
  json["limited_by"] = o ? Json(o->limited_by) : Json(nullptr);
  if (o) {
    json["blocks_by"] = {{"registers", o->by_registers ? Json(*o->by_registers) : Json(nullptr)},
                         {"shared_memory", o->by_shared},
                         {"threads", o->by_threads},
                         {"blocks", o->by_blocks}};
  }
  return json;
}

Json case_json(const RunResult& result, const CaseResult& c) {
  Json axes = Json::object();
  for (const catalog::Case::Entry& entry : c.point.entries())
    std::visit([&](const auto& value) { axes[entry.name] = value; }, entry.value);
  Json runners = Json::array();
  for_each_runner(c, [&](const RunnerResult& r, const std::string& shown) {
    Json kernels = Json::array();
    for (const KernelUse& k : r.kernels) kernels.push_back(kernel_json(result, k));
    runners.push_back(
        {{"name", shown},
         {"strategy", r.strategy},
         {"policy", r.policy},
         {"status", to_string(r.status)},
         {"reason", r.reason},
         {"launches_per_call", r.launches_per_call ? Json(*r.launches_per_call) : Json(nullptr)},
         {"workspace_bytes", r.workspace_bytes},
         {"kernels", std::move(kernels)}});
  });
  return {{"op", c.point.op()},
          {"axes", std::move(axes)},
          {"status", to_string(c.status)},
          {"reason", c.reason},
          {"flops", c.cost.flops},
          {"bytes_read", c.cost.bytes_read},
          {"bytes_written", c.cost.bytes_written},
          {"strategies", std::move(runners)}};
}

}  // namespace

void add_resources(RunResult& result, const ResourcesByKernel& known) {
  for (CaseResult& c : result.cases) {
    for (std::vector<RunnerResult>* group : {&c.baselines, &c.strategies}) {
      for (RunnerResult& r : *group) {
        for (KernelUse& k : r.kernels) {
          const auto found = known.find(k.name);
          if (k.registers || found == known.end()) continue;
          k.registers = found->second.registers;
          k.local_bytes = found->second.local_bytes;
          const std::optional<Occupancy> o = occupancy_in(result, k);
          if (!o) continue;
          k.blocks_per_sm = o->blocks;
          k.occupancy_pct = o->pct;
        }
      }
    }
  }
}

std::vector<std::string> kernels_without_registers(const RunResult& result) {
  return kernels_where(result, [](const KernelUse& k) { return !k.registers; });
}

std::vector<std::string> launched_kernels(const RunResult& result) {
  return kernels_where(result, [](const KernelUse&) { return true; });
}

std::string inspection_text(const RunResult& result, Inspected what, int width, bool has_color) {
  std::vector<std::string> ops;
  for (const CaseResult& c : result.cases) {
    if (std::find(ops.begin(), ops.end(), c.point.op()) == ops.end()) ops.push_back(c.point.op());
  }
  std::string text;
  for (const std::string& op : ops) {
    const CommonAxes axes(result, op);
    const std::vector<Column> columns = columns_of(what);
    Table table(columns);
    std::vector<std::pair<std::string, std::string>> idle;  // runners that launch nothing, and why
    for (const CaseResult& c : result.cases) {
      if (c.point.op() != op) continue;
      std::string point = axes.rest_of(c.point);
      const auto add = [&](const std::string& strategy, std::vector<Cell> cells) {
        cells.insert(cells.begin(), {{point}, {strategy}});
        cells.resize(columns.size());  // unknown values are empty
        table.add(std::move(cells));
        point.clear();
      };
      if (c.strategies.empty() && c.baselines.empty())
        add("", {{""}, {std::string(to_string(c.status)) + ": " + c.reason}});
      for_each_runner(c, [&](const RunnerResult& r, const std::string& name) {
        if (r.kernels.empty()) {
          add(name, {{""}, {nothing_of(r)}});
          idle.emplace_back(name, nothing_of(r));
        }
        for (size_t i = 0; i < r.kernels.size(); ++i) {
          std::vector<Cell> cells = cells_of(result, r.kernels[i], what);
          cells.insert(cells.begin(), {{std::to_string(i + 1)}, {kernel_name(r.kernels[i].name)}});
          add(i == 0 ? name : "", std::move(cells));
        }
      });
    }
    const std::string rendered = table.render(width, has_color);
    text += (text.empty() ? "" : "\n") + op + axes.heading() + "\n" + rendered + "\n" +
            cut_texts(rendered, idle, width);
  }
  return text;
}

Json inspection_json(const RunResult& result, const std::string& what) {
  Json cases = Json::array();
  for (const CaseResult& c : result.cases) cases.push_back(case_json(result, c));
  Json device = nullptr;
  if (!result.devices.empty()) {
    const RunDevice& d = result.devices.front();
    device = {{"device", to_string(d.device)},
              {"name", d.name},
              {"compute_capability", d.compute_capability}};
  }
  return {{"schema", {{"name", "wbench.inspect"}, {"version", "1.0.0"}}},
          {"what", what},
          {"device", std::move(device)},
          {"cases", std::move(cases)}};
}

}  // namespace wide::bench
