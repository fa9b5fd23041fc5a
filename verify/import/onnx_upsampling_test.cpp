// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Operators that make more positions: by every attribute that ONNX has for them, against sums and
// places that were worked out by hand, or refused in words.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <limits>

#include "verify/import/onnx_run.hpp"
#include "verify/support/onnx_case.hpp"
#include "wide/onnx.hpp"

namespace {

using namespace wide::test::onnx;
using namespace wide;
using Catch::Matchers::ContainsSubstring;
using Values = std::vector<double>;
using Strings = std::vector<std::string>;

/// y from x [batch, extents] by one operator; the constants are its other inputs, "" for absent
/// ones. A batch of -1 has a name instead.
std::string file_of(const char* op, const Extents& extents, const std::string& attributes,
                    const Strings& constants, int64_t batch = -1) {
  Strings inputs{"x"}, tensors;
  for (size_t i = 0; i < constants.size(); ++i) {
    const bool is_present = !constants[i].empty();
    inputs.push_back(is_present ? "c" + std::to_string(i) : "");
    if (is_present) tensors.push_back(constants[i] + bytes(8, inputs.back()));
  }
  File file = network(extents, {node(op, inputs, {"y"}, attributes)}, tensors);
  Extents with_batch{batch};
  with_batch.insert(with_batch.end(), extents.begin(), extents.end());
  file.inputs = {value("x", with_batch)};
  return file.bytes_of();
}

/// 1 2 3, each times 1 10 100.
std::string transposed(const std::string& attributes) {
  return file_of("ConvTranspose", {1, 3}, attributes, {typed("", 1, {1, 1, 3}, {1, 10, 100})});
}
Values sums(const std::string& attributes) {
  return result_of(transposed(attributes), {{1, 2, 3}});
}

std::string scales(const Values& of) {
  return typed("", 1, {std::ssize(of)}, of);
}
std::string sizes(const Values& of) {
  return typed("", 7, {std::ssize(of)}, of);
}

void refused(const std::string& file, const char* why) {
  CHECK_THROWS_WITH(OnnxModel::parse(std::as_bytes(std::span(file)), "a file"),
                    ContainsSubstring(why));
}

}  // namespace

TEST_CASE("onnx: transposed convolutions have the positions that ONNX says") {
  const std::string two = ints_attribute("strides", {2});
  CHECK(sums("") == Values{1, 12, 123, 230, 300});
  CHECK(sums(two) == Values{1, 10, 102, 20, 203, 30, 300});
  CHECK(sums(two + ints_attribute("pads", {1, 1})) == Values{10, 102, 20, 203, 30});
  CHECK(sums(two + ints_attribute("pads", {1, 0})) == Values{10, 102, 20, 203, 30, 300});
  CHECK(sums(two + ints_attribute("pads", {0, 2})) == Values{1, 10, 102, 20, 203});
  CHECK(sums(two + ints_attribute("output_padding", {1})) ==
        Values{1, 10, 102, 20, 203, 30, 300, 0});
  CHECK(sums(two + text_attribute("auto_pad", "VALID")) == Values{1, 10, 102, 20, 203, 30, 300});
  // As many as 3 * 2: the odd one of 1 to be left out is the last one, or the first.
  CHECK(sums(two + text_attribute("auto_pad", "SAME_UPPER")) == Values{1, 10, 102, 20, 203, 30});
  CHECK(sums(two + text_attribute("auto_pad", "SAME_LOWER")) == Values{10, 102, 20, 203, 30, 300});
  CHECK(sums(two + ints_attribute("output_shape", {6})) == Values{10, 102, 20, 203, 30, 300});
  CHECK(sums(two + ints_attribute("output_shape", {9})) ==
        Values{1, 10, 102, 20, 203, 30, 300, 0, 0});
  CHECK(sums(two + ints_attribute("output_shape", {6}) +
             text_attribute("auto_pad", "SAME_UPPER")) == Values{1, 10, 102, 20, 203, 30});
  CHECK(sums(ints_attribute("dilations", {2})) == Values{1, 2, 13, 20, 130, 200, 300});
  refused(transposed(ints_attribute("output_shape", {6, 6})), "has an output_shape of 2 axes");
  refused(transposed(ints_attribute("output_shape", {0})),
          "has output_shape 0, expected at least 1");
  refused(transposed(ints_attribute("pads", {9, 9})), "leave -13 positions within the padding");
  refused(transposed(text_attribute("auto_pad", "SAME")), "has auto_pad SAME");
  refused(transposed(int_attribute("group", 2)), "groups is 2");
  refused(transposed(ints_attribute("kernel_shape", {4})), "is not its weight's");
}

TEST_CASE("onnx: channels become blocks of positions, and blocks channels") {
  const std::string block = int_attribute("blocksize", 2);
  const Values x{0, 1, 2, 3, 4, 5, 6, 7};
  const auto depth_to_space = [&](const char* mode) {
    return result_of(file_of("DepthToSpace", {8, 1, 1}, block + text_attribute("mode", mode), {}),
                     {x});
  };
  CHECK(depth_to_space("DCR") == Values{0, 2, 4, 6, 1, 3, 5, 7});
  CHECK(depth_to_space("CRD") == Values{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(result_of(file_of("DepthToSpace", {4, 1, 2}, block, {}), {x}) ==
        Values{0, 2, 1, 3, 4, 6, 5, 7});
  CHECK(result_of(file_of("SpaceToDepth", {1, 2, 4}, block, {}), {{0, 2, 1, 3, 4, 6, 5, 7}}) == x);
  refused(file_of("DepthToSpace", {6, 1, 1}, block, {}), "has 6 channels, expected a multiple");
  refused(file_of("DepthToSpace", {8, 1, 1}, block + text_attribute("mode", "RCD"), {}),
          "mode RCD");
  refused(file_of("DepthToSpace", {8, 1, 1}, "", {}), "has blocksize 0, expected at least 1");
  refused(file_of("DepthToSpace", {8, 1}, block, {}), "has an input of 3 axes, expected 4");
  refused(file_of("SpaceToDepth", {1, 3, 4}, block, {}),
          "has an image of 3 x 4, expected multiples");
}

TEST_CASE("onnx: a resize that repeats positions is an upsample, by any words for that") {
  const auto resized = [](const std::string& attributes, const Strings& constants) {
    return result_of(file_of("Resize", {1, 1, 3}, attributes, constants, 1), {{1, 2, 3}});
  };
  const Values twice{1, 1, 2, 2, 3, 3};
  const std::string by_two = scales({1, 1, 1, 2});
  CHECK(resized("", {"", by_two}) == twice);
  CHECK(resized(text_attribute("nearest_mode", "round_prefer_ceil"), {"", by_two}) == twice);
  for (const char* where : {"asymmetric", "half_pixel", "pytorch_half_pixel"}) {
    CAPTURE(where);
    CHECK(resized(text_attribute("coordinate_transformation_mode", where), {"", by_two}) == twice);
  }
  CHECK(resized(text_attribute("coordinate_transformation_mode", "asymmetric") +
                    text_attribute("nearest_mode", "floor"),
                {"", scales({1, 1, 2, 1})}) == Values{1, 2, 3, 1, 2, 3});
  CHECK(resized("", {"", "", sizes({1, 1, 1, 6})}) == twice);
  CHECK(resized("", {"", scales({1, 1, 1, 1})}) == Values{1, 2, 3});
  CHECK(result_of(file_of("Upsample", {1, 1, 3}, "", {by_two}), {{1, 2, 3}}) == twice);
}

TEST_CASE("onnx: a resize of mode linear lies where ONNX says") {
  const std::string linear = text_attribute("mode", "linear");
  const auto resized = [&](const std::string& attributes, const Strings& constants) {
    return result_of(file_of("Resize", {1, 1, 3}, linear + attributes, constants, 1), {{1, 2, 4}});
  };
  const auto where = [](const char* mode) {
    return text_attribute("coordinate_transformation_mode", mode);
  };
  const std::string by_two = scales({1, 1, 1, 2}), to_six = sizes({1, 1, 1, 6});
  const Values between{1, 1.25, 1.75, 2.5, 3.5, 4};
  CHECK(resized("", {"", by_two}) == between);
  CHECK(resized("", {"", "", to_six}) == between);
  CHECK(resized(where("half_pixel"), {"", "", to_six}) == between);
  CHECK(resized(where("pytorch_half_pixel"), {"", by_two}) == between);
  CHECK(resized(where("asymmetric"), {"", by_two}) == Values{1, 1.5, 2, 3, 4, 4});
  CHECK(resized(where("align_corners"), {"", "", sizes({1, 1, 1, 5})}) == Values{1, 1.5, 2, 3, 4});
  CHECK(resized(where("align_corners"), {"", scales({1, 1, 1, 1})}) == Values{1, 2, 4});
  // Of one output: the middle, or the first one.
  CHECK(resized("", {"", "", sizes({1, 1, 1, 1})}) == Values{2});
  CHECK(resized(where("pytorch_half_pixel"), {"", "", sizes({1, 1, 1, 1})}) == Values{1});
  // By the scale at 1 / 6 and 3 / 2, by sizes at 1 / 4 and 7 / 4.
  const Values by_scale = resized("", {"", scales({1, 1, 1, 0.75})});
  CHECK((by_scale.size() == 2 && std::fabs(by_scale[0] - 7 / 6.) < 1e-6 && by_scale[1] == 3));
  CHECK(resized("", {"", "", sizes({1, 1, 1, 2})}) == Values{1.25, 3.5});
  CHECK(resized("", {"", scales({1, 1, 3, 1})}) == Values{1, 2, 4, 1, 2, 4, 1, 2, 4});
  CHECK(result_of(file_of("Upsample", {1, 1, 3}, linear, {by_two}), {{1, 2, 4}}) ==
        Values{1, 1.5, 2, 3, 4, 4});
  // Signals; and axes by name.
  CHECK(result_of(file_of("Resize", {1, 3}, linear, {"", scales({1, 1, 2})}, 1), {{1, 2, 4}}) ==
        between);
  CHECK(resized(ints_attribute("axes", {3}), {"", scales({2})}) == between);
}

TEST_CASE("onnx: other resizes of mode linear are refused in words") {
  const auto with = [](const std::string& attributes, const Strings& constants,
                       const Extents& extents = {1, 1, 3}) {
    return file_of("Resize", extents, text_attribute("mode", "linear") + attributes, constants, 1);
  };
  const std::string by_two = scales({1, 1, 1, 2});
  refused(
      with(text_attribute("coordinate_transformation_mode", "tf_crop_and_resize"), {"", by_two}),
      "has coordinate_transformation_mode tf_crop_and_resize, expected half_pixel");
  refused(with(int_attribute("antialias", 1), {"", by_two}), "has antialias 1, expected 0");
  refused(with(int_attribute("exclude_outside", 1), {"", by_two}),
          "has exclude_outside 1, expected 0");
  refused(with("", {"", scales({1, 2, 1, 2})}), "resizes the batch or channels");
  refused(with(text_attribute("coordinate_transformation_mode", "align_corners"),
               {"", scales({1, 1, 1, 0.75})}),
          "makes 2.25 positions of 3 with corners aligned, expected a whole number");
  refused(with("", {"", scales({1, 1, 1, 2, 2})}, {1, 1, 3, 3}),
          "has an input of 5 axes, expected a signal or image");
  for (const double bad : {0.0, -1.0, 0.2, std::numeric_limits<double>::quiet_NaN()})
    refused(with("", {"", scales({1, 1, 1, bad})}), "makes no positions of 3");
  refused(with("", {"", scales({1, 1, 1, 1e10})}), "makes more than 2^30 positions of 3");
  refused(with("", {"", scales({1, 1, 1, 1e-10})}), "makes no positions of 3");
}

TEST_CASE("onnx: other resizes are refused in words") {
  const auto with = [](const std::string& attributes, const Strings& constants) {
    return file_of("Resize", {1, 1, 3}, attributes, constants, 1);
  };
  const std::string by_two = scales({1, 1, 1, 2});
  refused(with(text_attribute("mode", "cubic"), {"", by_two}),
          "has mode cubic, expected nearest or linear");
  refused(with("", {"", scales({1, 1, 1, 1.5})}), "resizes 3 positions to 4, expected a multiple");
  refused(with("", {"", scales({1, 1, 1, 0.5})}), "resizes 3 positions to 1, expected a multiple");
  refused(with("", {"", scales({1, 2, 1, 1})}), "resizes the batch or channels");
  refused(with("", {"", scales({2, 1, 1, 1})}), "resizes the batch or channels");
  refused(with("", {"", scales({2, 1, 1})}), "has 3 numbers for its axes, expected 4");
  refused(with(text_attribute("nearest_mode", "ceil"), {"", by_two}), "takes position 1 for 1");
  refused(with(text_attribute("coordinate_transformation_mode", "align_corners"),
               {"", scales({1, 1, 1, 3})}),
          "expected each one as often, in their order");
  refused(
      with(text_attribute("coordinate_transformation_mode", "tf_crop_and_resize"), {"", by_two}),
      "has coordinate_transformation_mode tf_crop_and_resize");
  refused(with(text_attribute("nearest_mode", "round"), {"", by_two}), "has nearest_mode round");
  refused(with("", {}), "has neither scales nor sizes");
  for (const double bad : {0.0, -1.0, 0.2, std::numeric_limits<double>::quiet_NaN()})
    refused(with("", {"", scales({1, 1, 1, bad})}), "makes no positions of 3");
  for (const double bad : {1e6, 1e300})
    refused(with("", {"", scales({1, 1, 1, bad})}), "makes more than 2^20 positions of 3");
  for (const double bad : {0.0, -6.0})
    refused(with("", {"", "", sizes({1, 1, 1, bad})}), "makes no positions of 3");
  refused(with("", {"", "", sizes({1, 2, 1, 6})}), "resizes the batch or channels");
  refused(with("", {"", "", sizes({3, 1, 1, 6})}), "resizes the batch or channels");
  // Of a batch that has a name no number is right.
  refused(file_of("Resize", {1, 1, 3}, "", {"", "", sizes({1, 1, 1, 6})}),
          "resizes the batch or channels");
}
