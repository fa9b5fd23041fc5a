// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `inspect`: what one call of each strategy launches, what its kernels need, and the code they
// consist of. A call is captured, not timed: the simulated GPU knows as much of it as a real one,
// except registers, which come from cuobjdump.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <sstream>

#include "bench/cases/value_spec.hpp"
#include "bench/cli/cli.hpp"
#include "bench/cli/commands.hpp"
#include "bench/command/options.hpp"
#include "bench/command/output_files.hpp"
#include "bench/command/outputs.hpp"
#include "bench/command/run_selection.hpp"
#include "bench/command/running.hpp"
#include "bench/inspect/cuobjdump.hpp"
#include "bench/inspect/launches.hpp"
#include "bench/process/exit_code.hpp"
#include "bench/process/simulation.hpp"
#include "bench/report/details.hpp"
#include "bench/report/terminal.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kProgram = "/proc/self/exe";

/// Refuses the other documents of a run, which need a run's contents.
void refuse_outputs(const OutputOptions& o, const std::string& what) {
  const std::pair<const char*, bool> given[] = {
      {"--csv", !o.csv.empty()},           {"--md", !o.md.empty()},
      {"--export", !o.exports.empty()},    {"--events", !o.events.empty()},
      {"--counters", !o.counters.empty()}, {"--save", o.save},
      {"--tag", !o.tag.empty()},           {"--note", !o.note.empty()},
      {"--context", !o.context.empty()}};
  for (const auto& [option, is_given] : given) {
    if (!is_given) continue;
    throw Error(ErrorCode::invalid_argument, fmt::format("inspect --what {}: {} is of --what "
                                                         "counters, expected --json FILE",
                                                         what, option));
  }
}

std::string program_file() {
  return std::filesystem::read_symlink(kProgram).string();
}

std::string architecture_in(const RunResult& result) {
  return architecture_of(result.devices.at(0).compute_capability, result.cuda_archs);
}

/// Adds registers that the runtime did not report, from this program's machine code. False if they
/// stay unknown, which is reported.
bool complete_resources(RunResult& result, std::ostream& err) {
  if (kernels_without_registers(result).empty()) return true;
  std::string trouble;
  try {
    const std::string listing = run_cuobjdump(
        cuobjdump_words(Listing::resources, architecture_in(result), {}, program_file()));
    add_resources(result, resources_of(listing));
    const size_t unknown = kernels_without_registers(result).size();
    if (unknown == 0) return true;
    trouble = fmt::format("its list lacks {} of the kernels", unknown);
  } catch (const Error& error) {
    trouble = error.what();
  }
  err << "wbench: registers are not known, so occupancy may be less than shown: expected a GPU "
         "or cuobjdump; "
      << trouble << "\n";
  return false;
}

/// The kernels' listings, one after another; `json` gets them by name.
std::string listings_text(const RunResult& result, Listing listing, Json& json) {
  const std::vector<std::string> kernels = launched_kernels(result);
  if (kernels.empty()) throw Error(ErrorCode::unsupported, "no kernel of this program is launched");
  const std::string all =
      run_cuobjdump(cuobjdump_words(listing, architecture_in(result), kernels, program_file()));
  std::string text;
  json = Json::array();
  for (const std::string& kernel : kernels) {
    const std::string one = listing == Listing::ptx ? ptx_of(all, kernel) : sass_of(all, kernel);
    text += "// " + kernel_name(kernel) + "\n" +
            (one.empty() ? "// not in this program: a library's own\n" : one) + "\n";
    json.push_back({{"kernel", kernel_name(kernel)},
                    {"mangled", kernel},
                    {"text", one.empty() ? Json(nullptr) : Json(one)}});
  }
  return text;
}

int inspect_graph(const GlobalOptions& global, const InspectOptions& options, std::ostream& out,
                  std::ostream& err) {
  TraceOptions trace;
  trace.selection = options.run.selection;
  for (const std::string& name : parse_list("op", trace.selection.ops)) {
    const auto ops = catalog::primitives();
    if (std::any_of(ops.begin(), ops.end(), [&](const auto* op) { return op->name == name; })) {
      throw Error(
          ErrorCode::invalid_argument,
          "inspect --what graph: " + name + " is a primitive, expected a model: --model NAME|FILE");
    }
  }
  trace.selection.models = trace.selection.ops;  // --model's are included
  trace.selection.ops.clear();
  trace.json = options.run.output.json;
  return command_trace(global, trace, out, err);
}

int inspect_listings(const RunResult& result, const std::string& what,
                     const std::vector<std::string>& files, std::ostream& out, std::ostream& err) {
  Json document{{"schema", {{"name", "wbench.inspect"}, {"version", "1.0.0"}}}, {"what", what}};
  std::string text;
  try {
    document["architecture"] = architecture_in(result);
    text = listings_text(result, what == "ptx" ? Listing::ptx : Listing::sass, document["kernels"]);
  } catch (const Error& error) {
    err << "wbench: inspect --what " << what << ": " << error.what() << "\n";
    return kEnvironment;
  }
  if (!write_documents(document.dump(2) + "\n", files, out)) out << text;
  return kSuccess;
}

}  // namespace

bool launches_need_simulation(const Selection& selection, const GlobalOptions& global) {
  return has_simulation() && selection.device != "cpu" && !global.no_gpu &&
         query_cuda().num_devices == 0;
}

int capture_selection(const GlobalOptions& global, RunOptions options, RunResult& result,
                      std::ostream& out, std::ostream& err) {
  options.content = ReportContent::checks;
  options.config.verify = "off";
  options.output = {};
  if (options.selection.baselines.empty()) options.selection.baselines = "none";
  std::ostringstream table;  // of checks: remains empty
  const int code = run_selection(global, options, result, options.dry_run ? out : table, err);
  if (options.dry_run || code != kSuccess) return code;
  if (result.devices.at(0).device.type == DeviceType::cuda) return code;
  err << "wbench: a CPU launches no kernels: expected a GPU"
      << (has_simulation() ? ", or the simulated one (--sim)\n" : "\n");
  return kEnvironment;
}

int command_inspect(const GlobalOptions& global, const InspectOptions& options, std::ostream& out,
                    std::ostream& err) {
  const std::string& what = options.what;
  if (what == "counters") return command_run(global, options.run, out, err);
  refuse_outputs(options.run.output, what);
  require_outputs(options.run);
  if (what == "graph") return inspect_graph(global, options, out, err);
  RunResult result;
  const int code = capture_selection(global, options.run, result, out, err);
  if (code != kSuccess || options.run.dry_run) return code;
  const std::vector<std::string>& files = options.run.output.json;
  if (what == "ptx" || what == "sass") return inspect_listings(result, what, files, out, err);
  const bool is_complete = what == "launches" || complete_resources(result, err);
  const Inspected inspected = what == "launches"    ? Inspected::launches
                              : what == "resources" ? Inspected::resources
                                                    : Inspected::occupancy;
  if (!write_documents(inspection_json(result, what).dump(2) + "\n", files, out))
    out << inspection_text(result, inspected, output_width(), wants_color(global.color));
  return is_complete ? kSuccess : kEnvironment;
}

}  // namespace wide::bench
