// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/support/fake_primitive.hpp"

#include <cstring>

#include "wide/error.hpp"

namespace wide::test {

namespace {

constexpr int64_t kRow = 4;

class FakeWorkload final : public catalog::Workload {
 public:
  FakeWorkload(FakePrimitive& fake, int64_t num_members) : fake_(fake), members_(num_members) {
    if (fake.on_make) fake.on_make();
    for (auto& outputs : outputs_) outputs.resize(static_cast<size_t>(members_ * kRow));
    for (int64_t i = 0; i < members_ * kRow; ++i) input_.push_back(static_cast<float>(input(i)));
  }

  std::string unsupported_reason(std::string_view strategy) const override {
    return find(strategy).unsupported;
  }
  catalog::Prepared prepare(const PlanOptions& options) override {
    const FakeStrategy& strategy = find(options.strategy);
    if (strategy.on_prepare) strategy.on_prepare();
    catalog::Prepared prepared;
    prepared.strategy = options.strategy;
    prepared.policy = options.policy;
    prepared.run = [this, &strategy](const Execution&) {
      call(strategy);
      if (strategy.writes) write(0, 0, members_, strategy.factor);
    };
    return prepared;
  }
  std::string baseline_unsupported_reason() const override { return fake_.no_baseline; }
  catalog::PreparedMembers prepare_members() override {
    return {[this](int64_t member, const Execution&) {
              call(fake_.member);
              write(1, member, member + 1, fake_.member.factor);
            },
            0};
  }

  int64_t num_members() const override { return members_; }
  catalog::Cost cost() const override { return fake_.cost; }
  int64_t footprint_bytes() const override { return fake_.footprint_bytes; }
  std::vector<catalog::WorkloadInput> input_views() const override {
    return {{"x", ConstTensorView(input_.data(), Dtype::fp32, {members_, kRow}, Device())}};
  }
  void poison_outputs(catalog::OutputOf which, Stream) override {
    fake_.log.emplace_back("poison");
    auto& outputs = outputs_[static_cast<size_t>(which)];
    std::memset(outputs.data(), 0xFF, outputs.size() * sizeof(float));
  }
  catalog::MemberOutputs read_outputs(catalog::OutputOf which, Stream) override {
    const auto& outputs = outputs_[static_cast<size_t>(which)];
    catalog::MemberOutputs read{Dtype::fp32, {}};
    for (int64_t m = 0; m < members_; ++m) {
      auto& member = read.members.emplace_back();
      member.rows = 1, member.row_length = kRow;
      member.bytes.resize(static_cast<size_t>(kRow) * sizeof(float));
      std::memcpy(member.bytes.data(), outputs.data() + m * kRow, member.bytes.size());
    }
    return read;
  }
  std::string damage(Stream) override { return fake_.damage ? fake_.damage() : ""; }

  int64_t rows(int64_t) const override { return 1; }
  int64_t row_length(int64_t) const override { return kRow; }
  void reference_row(int64_t member, int64_t, std::span<double> values,
                     std::span<double> tolerances) const override {
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = 2 * input(member * kRow + static_cast<int64_t>(i));
      tolerances[i] = 1e-6;
    }
  }
  double reference_row_flops() const override { return kRow; }

 private:
  static double input(int64_t i) { return 1 + static_cast<double>(i); }

  const FakeStrategy& find(std::string_view name) const {
    for (const FakeStrategy& strategy : fake_.strategies) {
      if (strategy.name == name) return strategy;
    }
    throw Error(ErrorCode::invalid_argument, "no such fake");
  }
  void call(const FakeStrategy& strategy) {
    fake_.log.push_back(strategy.name);
    if (strategy.on_run) strategy.on_run();
  }
  void write(size_t which, int64_t first, int64_t last, double factor) {
    for (int64_t i = first * kRow; i < last * kRow; ++i)
      outputs_[which][static_cast<size_t>(i)] = static_cast<float>(factor * input(i));
  }

  FakePrimitive& fake_;
  int64_t members_;
  std::vector<float> outputs_[2], input_;
};

}  // namespace

catalog::PrimitiveSpec FakePrimitive::spec() {
  catalog::PrimitiveSpec spec;
  spec.name = "fake";
  for (const FakeStrategy& strategy : strategies) {
    spec.strategies.push_back(
        {strategy.name, DeviceType::cpu, catalog::StrategyKind::hand_written, ""});
  }
  spec.impossible_reason = [this](const catalog::Case&) { return impossible; };
  spec.make_workload = [this](const Context&, const catalog::Case& point,
                              const catalog::WorkloadOptions&) {
    return std::make_unique<FakeWorkload>(*this, point.integer("n"));
  };
  return spec;
}

catalog::Case fake_case(int64_t num_members) {
  return catalog::Case("fake", {{"n", num_members}, {"dtype", std::string("fp32")}});
}

}  // namespace wide::test
