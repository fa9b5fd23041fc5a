// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Members, batch and options put together.
#include "wide/model_builder.hpp"

#include "host/core/check.hpp"
#include "host/core/text.hpp"
#include "wide/models.hpp"
#include "wide/validate_model.hpp"

namespace wide {

ModelBuilder::ModelBuilder(const Context& context, Graph graph)
    : context_(context), graph_(std::move(graph)) {}

ModelBuilder& ModelBuilder::members(std::span<const MemberParameters> parameters) {
  require_members_of(false);
  members_.assign(parameters.begin(), parameters.end());
  return *this;
}

ModelBuilder& ModelBuilder::random_members(int64_t num_members, uint64_t seed) {
  WIDE_REQUIRE(num_members >= 1,
               "model: num_members is " + std::to_string(num_members) + ", expected at least 1");
  require_members_of(true);
  owned_.clear();
  members_.clear();
  for (int64_t member = 0; member < num_members; ++member) {
    owned_.push_back(random_parameters(graph_, seed, member));
    members_.push_back(views_of(owned_.back()));
  }
  return *this;
}

void ModelBuilder::require_members_of(bool is_random) const {
  const bool are_random = !owned_.empty();
  WIDE_REQUIRE(
      members_.empty() || are_random == is_random,
      "model: " + graph_.name() + " is given members() and random_members(), expected one of them");
}

ModelBuilder& ModelBuilder::with_sample(const ConstTensorView& x) {
  WIDE_REQUIRE(!graph_.inputs().empty(), "model: " + graph_.name() + " has no input");
  const Value input = graph_.inputs()[0];
  const ValueType& type = graph_.type(input);
  Shape wanted = type.shape;
  wanted[0] = x.shape.rank() > 0 ? x.shape[0] : 0;
  WIDE_REQUIRE(x.dtype == type.dtype && x.shape == wanted && wanted[0] >= 1,
               "model: the sample of " + graph_.name(input) + " is " +
                   std::string(dtype_name(x.dtype)) + " " + to_string(x.shape) + ", expected " +
                   to_string(type) + " with at least one row");
  return batch(wanted[0]);
}

ModelBuilder& ModelBuilder::batch(int64_t rows) {
  WIDE_REQUIRE(rows >= 1, "model: batch is " + std::to_string(rows) + ", expected at least 1");
  batch_ = rows;
  return *this;
}

ModelBuilder& ModelBuilder::compile(std::string_view preset) {
  options_ = model_options(preset);
  preset_ = preset;
  require_one_source();
  return *this;
}

ModelBuilder& ModelBuilder::options(const ModelOptions& options) {
  options_ = options;
  has_options_ = true;
  require_one_source();
  return *this;
}

void ModelBuilder::require_one_source() const {
  WIDE_REQUIRE(preset_.empty() || !has_options_,
               "model: " + graph_.name() + " is given compile(\"" + preset_ +
                   "\") and options(), expected one of them: options may begin with "
                   "model_options(\"" +
                   preset_ + "\")");
}

ModelBuilder& ModelBuilder::validate(double tolerance) {
  WIDE_REQUIRE(tolerance >= 0, "model: tolerance is " + text(tolerance) + ", expected at least 0");
  tolerance_ = tolerance;
  return *this;
}

Model ModelBuilder::build() {
  WIDE_REQUIRE(!members_.empty(), "model: " + graph_.name() +
                                      " has no members, expected members() or random_members()");
  WIDE_REQUIRE(batch_ >= 1,
               "model: " + graph_.name() + " has no batch, expected batch() or with_sample()");
  const ModelProblem problem{.num_members = std::ssize(members_), .batch = batch_};
  if (tolerance_) {
    const std::vector<double> errors =
        validate_model(context_, graph_, problem, members_, options_);
    for (size_t member = 0; member < errors.size(); ++member) {
      WIDE_REQUIRE(errors[member] <= *tolerance_,
                   "model: member " + std::to_string(member) + " of " + graph_.name() + " is " +
                       text(errors[member]) +
                       " of its largest value away from itself run alone, expected at most " +
                       text(*tolerance_));
    }
  }
  return wide::compile(context_, graph_, members_, batch_, options_);
}

}  // namespace wide
