// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The simulated GPU's warpgroup products: the rules of issuing, committing and waiting, and what a
// product owns in between. Each check must report what is wrong and stay silent about what is
// right.
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <random>

#include "verify/simulator/simt_wgmma_case.hpp"

namespace wide::simt {
namespace {

/// K-major without a swizzle, at 1 KiB and 4 KiB.
struct RulesCase : GroupCase {
  explicit RulesCase(Delivery delivery = Delivery::lazy, int threads = 128)
      : GroupCase(delivery, threads), product({.n = 8}, random), other({.n = 8}, random) {
    write(kSharedBase, 8 << 10);
    for (int i = 0; i < 4096; ++i) {
      const uint16_t one = 0x3f80;
      std::memcpy(block().shared->at(kSharedBase + static_cast<uint32_t>(i) * 2), &one, 2);
    }
  }
  static uint64_t descriptor(uint32_t address, uint64_t mode = 0) {
    return address >> 4 | uint64_t{128 >> 4} << 32 | uint64_t{1024 >> 4} << 16 | mode << 62;
  }
  void fence(int warp) { async().wgmma_fence(this->warp(warp), line(20)); }
  void issue(int warp, Product& what, int at = 21, uint64_t of_b = descriptor(0x1400)) {
    what.issue(*this, warp, descriptor(0x400), of_b, false, at);
  }
  void commit(int warp) { async().wgmma_commit(this->warp(warp), line(22)); }
  void wait(int warp, int pending) { async().wgmma_wait(this->warp(warp), pending, line(23)); }
  void run_all() {
    for (int i = 0; i < kWarps; ++i) fence(i), issue(i, product), commit(i);
    for (int i = 0; i < kWarps; ++i) wait(i, 0);
  }
  void overwrite(int writer, uint32_t address = 0x1400) {
    block().shared->write(thread(static_cast<size_t>(writer)), address, 16, SharedAccess::generic,
                          line(30));
  }
  std::mt19937 random{6};
  Product product, other;
};

TEST_CASE("operands are needed from the asynchronous proxy's point of view") {
  RulesCase test;
  test.barrier();
  SECTION("written without a proxy fence") {
    test.run_all();
    CHECK(test.found_only(FindingKind::proxy));
  }
  SECTION("fenced by the readers") {
    for (int i = 0; i < kWarps; ++i) test.async().fence_proxy(test.warp(i).thread(0));
    test.run_all();
    CHECK(test.found_nothing());
  }
  SECTION("written after the writer's fence") {
    test.async().fence_proxy(test.thread(0));
    test.overwrite(0);
    test.barrier();
    test.run_all();
    CHECK(test.found_only(FindingKind::proxy));
  }
}

TEST_CASE("operands are guarded until every warp has waited") {
  for (const Delivery delivery : {Delivery::lazy, Delivery::eager, Delivery::random}) {
    RulesCase test(delivery);
    test.publish();
    for (int i = 0; i < kWarps; ++i) test.fence(i), test.issue(i, test.product), test.commit(i);
    test.overwrite(0);
    CHECK(test.found_only(FindingKind::in_flight));
    for (int i = 0; i < 3; ++i) test.wait(i, 0);
    test.barrier();
    test.overwrite(0);
    CHECK(test.found_only(FindingKind::in_flight));  // warp 3 has not
    test.wait(3, 0);
    test.overwrite(0, 0x1410);
    CHECK(test.found_only(FindingKind::race));  // it has, but warp 0 does not know
    test.barrier();
    test.overwrite(0, 0x1420);
    CHECK(test.found_nothing());
    test.async().end_of_block();
    CHECK(test.found_nothing());
  }
}

TEST_CASE("a second wait for a product changes nothing") {
  RulesCase test;
  test.publish();
  for (int i = 0; i < kWarps; ++i) test.fence(i), test.issue(i, test.product), test.commit(i);
  test.wait(0, 0);
  for (int i = 0; i < kWarps; ++i) test.wait(i, 0);
  test.barrier();
  test.fence(0), test.issue(0, test.product);
  test.overwrite(0);
  CHECK(test.found_only(FindingKind::in_flight));
}

TEST_CASE("having waited once does not do for the next product") {
  RulesCase test;
  test.publish();
  test.run_all();
  test.barrier();
  test.run_all();
  test.overwrite(0);
  CHECK(test.found_only(FindingKind::race));
}

TEST_CASE("a warp's wait is its own, and only for the groups that it names") {
  RulesCase test;
  test.publish();
  Warp& first = test.warp(0);
  for (int i = 0; i < kWarps; ++i) {
    test.fence(i), test.issue(i, test.product), test.commit(i);
    test.issue(i, test.other, 24), test.commit(i);
  }
  const uint32_t* done = test.product.d.of(0)[0];
  const uint32_t* pending = test.other.d.of(0)[0];
  CHECK((test.async().owns_register(first, done) && test.async().owns_register(first, pending)));
  test.wait(0, 1);
  CHECK(test.product.d_value(0, 0) == 16);
  CHECK_FALSE(test.async().owns_register(first, done));
  CHECK(test.async().owns_register(first, pending));
  CHECK(std::isnan(test.other.d_value(0, 0)));
  CHECK(std::isnan(test.product.d_value(32, 0)));  // of warp 1
  for (int i = 0; i < kWarps; ++i) test.wait(i, 0);
  CHECK(test.other.d_value(127, 3) == 16);
  CHECK_FALSE(test.async().owns_register(first, pending));
  test.async().end_of_block();
  CHECK(test.found_nothing());
}

TEST_CASE("products with the same registers go on with their sums") {
  RulesCase test;
  test.publish();
  for (int i = 0; i < kWarps; ++i) {
    test.fence(i), test.issue(i, test.product);
    test.product.issue(test, i, RulesCase::descriptor(0x400), RulesCase::descriptor(0x1400), true,
                       25);
    test.commit(i);
  }
  for (int i = 0; i < kWarps; ++i) test.wait(i, 0);
  CHECK(test.product.d_value(77, 1) == 32);
  CHECK(test.found_nothing());
}

TEST_CASE("fp16 sums are rounded by every product") {
  RulesCase test;
  test.publish();
  // 2048 and 16 x 1/16: the next fp16 is 2050, and ties go to the even one.
  Product half({.n = 8, .type_a = MatrixType::f16, .type_b = MatrixType::f16, .d_is_half = true},
               test.random);
  for (uint32_t address = 0x400; address < 0x2400; address += 2) {
    const uint16_t value = address < 0x1400 ? 0x3c00 : 0x2c00;
    std::memcpy(test.block().shared->at(address), &value, 2);
  }
  for (auto& warp : half.d.registers) {
    for (Lanes& lanes : warp) lanes.fill(0x68006800);
  }
  for (int i = 0; i < kWarps; ++i) {
    test.fence(i);
    for (int j = 0; j < 4; ++j) {
      half.issue(test, i, RulesCase::descriptor(0x400), RulesCase::descriptor(0x1400), true);
    }
    test.commit(i);
  }
  for (int i = 0; i < kWarps; ++i) test.wait(i, 0);
  CHECK(half.d_value(9, 0) == 2048);
  CHECK(test.found_nothing());
}

TEST_CASE("accumulators need a fence, and are nobody else's while in flight") {
  RulesCase test;
  test.publish();
  SECTION("no fence") {
    for (int i = 0; i < kWarps; ++i) test.issue(i, test.product);
    CHECK(test.found_only(FindingKind::wgmma));
  }
  SECTION("no fence after a wait") {
    test.run_all();
    CHECK(test.found_nothing());
    test.issue(0, test.product);
    CHECK(test.found_only(FindingKind::wgmma));
  }
  SECTION("written in flight") {
    for (int i = 0; i < kWarps; ++i) test.fence(i), test.issue(i, test.product), test.commit(i);
    test.product.d.word(40, 2) = 0;
    for (int i = 0; i < kWarps; ++i) test.wait(i, 0);
    CHECK(test.found_only(FindingKind::wgmma));
    CHECK(test.said.find("warp 1: accumulator 2 of lane 8") != std::string::npos);
  }
  SECTION("shared in part with another product") {
    test.fence(0), test.issue(0, test.product);
    auto registers = test.product.d.of(0);
    registers[1] = test.other.d.of(0)[1];
    test.async().wgmma(test.warp(0), {.n = 8},
                       {registers, {}, test.descriptor(0x400), test.descriptor(0x1400), false},
                       line(26));
    CHECK(test.found_only(FindingKind::wgmma));
  }
}

TEST_CASE("the warps of a warpgroup issue the same products") {
  RulesCase test;
  test.publish();
  test.fence(0), test.issue(0, test.product), test.commit(0);
  SECTION("another descriptor") {
    test.fence(1), test.issue(1, test.product, 21, RulesCase::descriptor(0x1500));
    CHECK(test.found_only(FindingKind::wgmma));
  }
  SECTION("another scale") {
    test.fence(1);
    test.product.issue(test, 1, RulesCase::descriptor(0x400), RulesCase::descriptor(0x1400), true,
                       21);
    CHECK(test.found_only(FindingKind::wgmma));
  }
  SECTION("another line") {
    test.fence(1), test.issue(1, test.product, 27);
    CHECK(test.found_only(FindingKind::wgmma));
  }
  SECTION("another shape") {
    test.product.shape.negate_a = true;
    test.fence(1);
    CHECK_THROWS_AS(test.issue(1, test.product), Fault);
    CHECK(test.count(FindingKind::wgmma) == 1);
  }
  SECTION("not all of them") {
    test.wait(0, 0);
    CHECK(test.product.d_value(0, 0) == 16);  // its own rows need nobody else
    test.async().end_of_block();
    CHECK(test.found_only(FindingKind::wgmma));
    CHECK(test.said.find("warp 3 never issued") != std::string::npos);
  }
}

TEST_CASE("products that nobody waits for are unfinished") {
  RulesCase test;
  test.publish();
  for (int i = 0; i < kWarps; ++i) test.fence(i), test.issue(i, test.product);
  for (int i = 0; i < 3; ++i) test.commit(i), test.wait(i, 0);
  test.wait(3, 0);
  CHECK(std::isnan(test.product.d_value(127, 0)));  // never committed: the wait is for nothing
  test.async().end_of_block();
  CHECK(test.found_only(FindingKind::unfinished));
  CHECK(test.said.find("warp 3 never committed") != std::string::npos);
}

TEST_CASE("descriptors are in range and on an atom") {
  RulesCase test;
  test.publish();
  test.fence(0);
  SECTION("past the end") {
    CHECK_THROWS_AS(test.issue(0, test.product, 21, RulesCase::descriptor(0x3fff0)), Fault);
    CHECK(test.found_only(FindingKind::out_of_bounds));
  }
  SECTION("off the swizzle atom") {
    test.issue(0, test.product, 21, RulesCase::descriptor(0x1480, 1));
    CHECK(test.found_only(FindingKind::wgmma));
  }
  SECTION("an advance along k is none") {
    test.issue(0, test.product, 21, RulesCase::descriptor(0x1460, 1));
    CHECK(test.found_nothing());
  }
  SECTION("a base offset") {
    const uint64_t offset = RulesCase::descriptor(0x1480, 1) | uint64_t{1} << 49;
    CHECK_THROWS_AS(test.issue(0, test.product, 21, offset), Unsupported);
  }
}

}  // namespace
}  // namespace wide::simt
