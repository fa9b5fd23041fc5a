// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/tune/tune_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/command/options.hpp"
#include "bench/command/running.hpp"
#include "bench/process/interrupt.hpp"
#include "bench/run/select.hpp"
#include "bench/tune/tune.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

using catalog::FixedSteps;
using catalog::ModelSteps;
using catalog::StepProblem;

/// "n=4 batch=32 fc1 linear, 3 steps"
std::string name_of(const catalog::Case& point, const StepProblem& problem) {
  const std::string axes = point.to_string();
  const size_t count = problem.nodes.size();
  return fmt::format("{}{}{} {}{}", axes, axes.empty() ? "" : " ", problem.nodes.front(),
                     problem.primitive, count == 1 ? "" : fmt::format(", {} steps", count));
}

/// The model's axes and the step, in the place of the primitive's axes.
catalog::Case case_of(const catalog::Case& point, const StepProblem& problem) {
  std::vector<catalog::Case::Entry> entries(point.entries().begin(), point.entries().end());
  std::erase_if(entries, [](const auto& entry) { return entry.name == "dtype"; });
  entries.push_back({"dtype", std::string(dtype_name(problem.dtype)), true});
  entries.push_back({"step", problem.nodes.front(), false});
  return {problem.primitive, std::move(entries)};
}

/// Tunes one model; cases share what they have found.
class ModelTuner {
 public:
  ModelTuner(const TuneRequest& request, const catalog::PrimitiveSpec& model)
      : request_(request), options_(request.options), plan_(tuning_plan(request)) {
    Selection selection = options_.selection;
    selection.ops = model.name;
    selection.strategies = selection.only = selection.skip = "";  // of steps, not of the model
    selection.baselines = "none";
    if (selection.regimes.empty() && device() == DeviceType::cuda) selection.regimes = "graph";
    named_ = select_strategies(options_.selection, request.ops, device());
    tuned_.nothing = select_work(selection, plan_, tuned_.result);
    if (named_ && named_->empty()) tuned_.nothing = "--skip leaves no strategy";
    set_progress(request.global, request.err, plan_);
  }

  TunedOp run(double budget_s) {
    if (!tuned_.nothing.empty()) return std::move(tuned_);
    const std::vector<catalog::Case> points = plan_.work.front().second;
    const Budget budget(budget_s);
    for (size_t i = 0; i < points.size() && !is_interrupted(); ++i)
      run_case(points[i], budget.share_s(points.size() - i));
    return std::move(tuned_);
  }

 private:
  DeviceType device() const { return request_.context.device().type; }

  /// A model that cannot be planned is reported, and others are tuned.
  void run_case(const catalog::Case& point, double budget_s) {
    std::optional<ModelSteps> steps;
    try {
      steps.emplace(request_.context, point);
    } catch (const Error& error) {
      request_.err << "wbench: " << point.to_string() << ": " << error.what() << "\n";
      tuned_.has_run = false;
      return;
    }
    for (const FixedSteps& fixed : steps->fixed()) add_fixed(fixed.reason, fixed.nodes);
    std::vector<const StepProblem*> left;
    for (const StepProblem& problem : steps->problems()) {
      if (is_tuned(problem.key)) {
        add_fixed("another case or model had their problem", problem.nodes);
      } else {
        left.push_back(&problem);
      }
    }
    const Budget budget(budget_s);
    for (size_t i = 0; i < left.size() && !is_interrupted(); ++i)
      tune(*steps, *left[i], budget.share_s(left.size() - i));
  }

  void tune(ModelSteps& steps, const StepProblem& problem, double budget_s) {
    const catalog::Case point = case_of(steps.point(), problem);
    catalog::PrimitiveSpec spec = catalog::find_primitive(problem.primitive);
    spec.make_workload = [&](const Context&, const catalog::Case&,
                             const catalog::WorkloadOptions& options) {
      return steps.make_workload(problem, options);
    };
    spec.impossible_reason = [](const catalog::Case&) { return std::string(); };
    spec.tuning_key = [&](const catalog::Case&) { return problem.key; };
    plan_.work = {{&spec, {point}}};
    plan_.strategies = candidates(spec);
    if (plan_.strategies.empty()) return add_fixed("no strategy is left", problem.nodes);
    const std::string request = request_hash(plan_, options_);
    if (is_known(request_, problem.key, request)) {
      tuned_keys_.push_back(problem.key);
      ++tuned_.num_known;
      return add_fixed(options_.tuning + " has them by the same options (--again measures anew)",
                       problem.nodes);
    }
    if (options_.dry_run) {
      request_.out << spec.name << " " << point.to_string() << "\n";
      for (const std::string& name : plan_.strategies) request_.out << "  " << name << "\n";
      tuned_keys_.push_back(problem.key);
      return;
    }
    Tuned measured;
    measured.calibration = plan_.calibration;
    tune_cases(plan_, spec, options_, budget_s, measured, request_.err);
    plan_.calibration = measured.calibration;  // of the device: measured once
    tuned_keys_.push_back(problem.key);
    for (const auto& [measured_point, found] : measured.cases)
      tuned_.rows.push_back({name_of(steps.point(), problem), problem.key, found, request});
    if (measured.cases.empty() && !is_interrupted())
      add_fixed("no candidate ran and was right", problem.nodes);
    std::move(measured.result.cases.begin(), measured.result.cases.end(),
              std::back_inserter(tuned_.result.cases));
    tuned_.has_run = tuned_.has_run && measured.has_run;
  }

  std::vector<std::string> candidates(const catalog::PrimitiveSpec& spec) const {
    if (options_.space.empty())
      return tune_candidates(spec, device(), named_.value_or(std::vector<std::string>()));
    const std::vector<std::string> names = space_of(options_.space, spec, request_.ops);
    return names.empty() ? names : tune_candidates(spec, device(), names);
  }

  bool is_tuned(const TuningKey& key) const {
    return std::find(tuned_keys_.begin(), tuned_keys_.end(), key) != tuned_keys_.end() ||
           request_.tuned.find(request_.context.info(), key.primitive, key.problem) != nullptr;
  }

  void add_fixed(const std::string& reason, const std::vector<std::string>& nodes) {
    auto same = std::find_if(tuned_.fixed.begin(), tuned_.fixed.end(),
                             [&](const FixedSteps& fixed) { return fixed.reason == reason; });
    if (same == tuned_.fixed.end()) same = tuned_.fixed.insert(same, {reason, {}});
    for (const std::string& node : nodes) {
      const auto& known = same->nodes;  // another case's step may have the same name
      if (std::find(known.begin(), known.end(), node) == known.end()) same->nodes.push_back(node);
    }
  }

  const TuneRequest& request_;
  const TuneOptions& options_;
  RunPlan plan_;
  std::optional<std::vector<std::string>> named_;  ///< strategies, as --strategy has them
  std::vector<TuningKey> tuned_keys_;              ///< by this model
  TunedOp tuned_;
};

}  // namespace

TunedOp tune_model(const TuneRequest& request, const catalog::PrimitiveSpec& model,
                   double budget_s) {
  return ModelTuner(request, model).run(budget_s);
}

}  // namespace wide::bench
