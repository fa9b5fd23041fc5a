// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What `run` and `verify` select, as given on the command line, and its resolution.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "bench/model_file.hpp"
#include "bench/result.hpp"
#include "bench/runner.hpp"

namespace wide::bench {

struct Selection {
  std::vector<std::string> named_ops;  ///< without --op
  std::string ops, models, preset = "quick", device, strategies, only, skip, filter, where;
  std::string baselines, regimes;                   ///< empty: all that the device has
  std::vector<std::string> axes;                    ///< of -a NAME=SPEC
  std::map<std::string, std::string> axis_options;  ///< of --NAME SPEC; empty: not given
  ModelFileOptions file;                            ///< of --model FILE
  bool no_gpu = false;
};

/// "cpu", "cuda", "cuda:K"; empty: CUDA where there is a usable device, else the CPU. Throws
/// Error{cuda} where the device asked for is not usable, invalid_argument for another word.
Context select_context(const Selection& selection);

/// Primitives of --op; throws invalid_argument with the nearest names.
std::vector<const catalog::PrimitiveSpec*> select_ops(const std::string& ops);

/// `ops` and, as "model:NAME", the models of --model.
std::string with_models(const std::string& ops, const std::string& models);

/// Reads the files among them. Throws invalid_argument where there are options for files, but no
/// file.
void load_model_files(const std::string& ops, const ModelFileOptions& options);

/// Cases, strategies, regimes and baselines into `plan`; impossible points into `result`. Returns
/// why there is nothing to run; empty where there is.
std::string select_work(const Selection& selection, RunPlan& plan, RunResult& result);

/// Leaves `count` cases of the plan, drawn by the seed, in their order; all where there are fewer.
void sample_cases(RunPlan& plan, int64_t count, uint64_t seed);

/// Of the regimes named, those of `device`. Throws invalid_argument where none is.
std::vector<Regime> select_regimes(const std::string& names, DeviceType device);

/// The baselines named, "none" for none. Throws invalid_argument where no regime has a partner
/// among them.
std::vector<Baseline> select_baselines(const std::string& names,
                                       const std::vector<Regime>& regimes);

}  // namespace wide::bench
