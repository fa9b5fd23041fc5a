// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What `run` and `verify` select, as given on the command line, and how it is resolved.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/cases/model_file.hpp"
#include "bench/document/result.hpp"
#include "bench/run/runner.hpp"

namespace wide::bench {

struct Selection {
  std::vector<std::string> named_ops;  ///< given without --op
  std::string ops, models, preset = "quick", device, strategies, only, skip, filter, where;
  std::string baselines, regimes;                   ///< empty: all that the device has
  std::vector<std::string> axes;                    ///< from -a NAME=SPEC
  std::map<std::string, std::string> axis_options;  ///< from --NAME SPEC
  ModelFileOptions file;                            ///< for --model FILE
  bool no_gpu = false;
};

/// "cpu", "cuda", "cuda:K"; empty: CUDA if there is a usable device, else the CPU. Throws
/// Error{cuda} if the requested device is not usable, invalid_argument for other words.
Context select_context(const Selection& selection);

/// The primitives of --op; throws invalid_argument with the nearest names.
std::vector<const catalog::PrimitiveSpec*> select_ops(const std::string& ops);

/// `ops` and, as "model:NAME", the models of --model.
std::string with_models(const std::string& ops, const std::string& models);

/// Reads the model files among them. Throws invalid_argument for options for files without any
/// file.
void load_model_files(const std::string& ops, const ModelFileOptions& options);

/// What --strategy, --only and --skip leave of the ops' strategies on such a device; none: nothing
/// is named. Throws invalid_argument for names that no op has.
std::optional<std::vector<std::string>> select_strategies(
    const Selection& selection, const std::vector<const catalog::PrimitiveSpec*>& ops,
    DeviceType device);

/// Writes cases, strategies, regimes and baselines to `plan`, impossible points to `result`. Of
/// "all" primitives those without an axis or a word, such as a dtype, that others have are such a
/// point each.
/// Returns why there is nothing to run; empty if there is something.
std::string select_work(const Selection& selection, RunPlan& plan, RunResult& result);

/// Keeps `count` cases of the plan, drawn by the seed, in their order; all if there are fewer.
void sample_cases(RunPlan& plan, int64_t count, uint64_t seed);

/// The named regimes that `device` has. Throws invalid_argument if there are none.
std::vector<Regime> select_regimes(const std::string& names, DeviceType device);

/// The named baselines; "none" selects none. Throws invalid_argument if no regime has a partner
/// among them.
std::vector<Baseline> select_baselines(const std::string& names,
                                       const std::vector<Regime>& regimes);

}  // namespace wide::bench
