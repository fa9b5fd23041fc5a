// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The half of a workload that follows from a primitive's public verbs, describe_p() and
// make_p_plan(): what can run, the plan, the plan of one member that is the baseline. A primitive
// adds what is its own: operands, their order in a call, cost, reference.
#pragma once

#include <initializer_list>
#include <optional>

#include "host/core/strategy_choice.hpp"
#include "host/spec.hpp"

namespace wide::catalog {

/// Operands as a call takes them: those of all members, packed, or one member's own as a call of
/// one member takes them. Absent where the operand is.
class OperandViews {
 public:
  OperandViews() = default;
  explicit OperandViews(int64_t member) : member_(member) {}

  TensorView operator()(const Operand& operand) const {
    if (!member_) return operand.packed();
    const TensorView own = operand.member(*member_);
    const Operand::Description& described = operand.description();
    // A problem's like of one member says that it is shared, too.
    if (described.is_shared) return own;
    return TensorView(own.data, own.dtype, packed_shape(described.packing, own.shape, 1),
                      own.device);
  }
  TensorView operator()(const Operand* operand) const {
    return operand == nullptr ? TensorView() : (*this)(*operand);
  }

 private:
  std::optional<int64_t> member_;
};

/// A member's values; none where the operand is absent.
inline std::span<const double> values_of(const Operand* operand, int64_t member) {
  return operand == nullptr ? std::span<const double>() : operand->values(member);
}

/// One of a member's rows of `length` values; none where the operand is absent.
inline std::span<const double> row_of(const Operand* operand, int64_t member, int64_t row,
                                      int64_t length) {
  return operand == nullptr ? std::span<const double>()
                            : operand->values(member).subspan(static_cast<size_t>(row * length),
                                                              static_cast<size_t>(length));
}

/// Of those that are not absent.
inline double bytes_of(std::initializer_list<const Operand*> operands) {
  int64_t bytes = 0;
  for (const Operand* operand : operands) bytes += operand == nullptr ? 0 : operand->bytes();
  return static_cast<double>(bytes);
}

/// Of all members.
inline double elements_of(const Operand& operand) {
  return static_cast<double>(operand.bytes() / dtype_bytes(operand.description().dtype));
}

template <auto kDescribe, auto kMakePlan>
class PlanWorkload;  // PlanWorkload<describe_linear, make_linear_plan>

template <class ProblemOf, class ArgumentsOf, class PlanOf,
          ProblemOf (*kDescribe)(const ArgumentsOf&, const ProblemOf&),
          PlanOf (*kMakePlan)(const Context&, const ProblemOf&, const PlanOptions&)>
class PlanWorkload<kDescribe, kMakePlan> : public PackedWorkload {
 public:
  using Problem = ProblemOf;
  using Arguments = ArgumentsOf;
  using Plan = PlanOf;

  std::string unsupported_reason(std::string_view strategy) const override {
    const Problem whole = problem();
    VendorCalls calls;
    const std::string reason = reason_against([&] {
      const Plan plan = kMakePlan(context(), whole, {.strategy = std::string(strategy)});
      calls = plan.vendor_calls();
      return plan;
    });
    if (!reason.empty()) return reason;
    if (calls.cublas) return cublas_unavailable_reason();
    // The others have a kernel of ours where cuDNN does not take the operands.
    const bool has_other = strategy == "sequential" || is_automatic(strategy);
    return calls.cudnn && !has_other ? cudnn_unsupported_reason(arguments({})) : "";
  }

  Prepared prepare(const PlanOptions& options) override {
    return prepared(kMakePlan(context(), problem(), options), arguments({}));
  }

  /// A baseline member is one plan of one member, of member_strategy().
  PreparedMembers prepare_members() override {
    std::vector<Arguments> members;
    for (int64_t n = 0; n < num_members(); ++n) members.push_back(member_arguments(n));
    const Problem one = kDescribe(members.front(), member_like());
    return prepared_members(kMakePlan(context(), one, {.strategy = member_strategy(one)}),
                            std::move(members));
  }

 protected:
  PlanWorkload(const Context& context, const Problem& like, const WorkloadOptions& options)
      : PackedWorkload(context, like.num_members, options), like_(like) {}

  /// The case's problem; that of the operands has their strides, too.
  const Problem& like() const { return like_; }
  Problem problem() const { return kDescribe(arguments({}), like_); }

  /// The operands in the order of a call.
  virtual Arguments arguments(const OperandViews& view) const = 0;

  /// Where a call of one member differs in more than the number of members.
  virtual Arguments member_arguments(int64_t n) const { return arguments(OperandViews(n)); }
  virtual Problem member_like() const {
    Problem one = like_;
    one.num_members = 1;
    return one;
  }

  /// What computes a member by itself: `sequential` is the vendor's call where it has one. Another
  /// call of a vendor that does more of the work at once is what users' programs would make.
  virtual std::string member_strategy(const Problem&) const { return "sequential"; }

  /// Why cuDNN's call, which is planned without operands, cannot run on these; empty where it can.
  virtual std::string cudnn_unsupported_reason(const Arguments&) const { return ""; }

 private:
  Problem like_;
};

}  // namespace wide::catalog
