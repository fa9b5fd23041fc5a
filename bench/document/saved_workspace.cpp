// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/document/saved_workspace.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <limits>
#include <list>
#include <system_error>
#include <vector>

#include "host/import/safetensors_header.hpp"
#include "wide/error.hpp"
#include "wide/safetensors.hpp"
#include "wide/version.hpp"

namespace wide::bench {

namespace {

/// Named tensors, and the memory of those that are made for the file.
class Contents {
 public:
  std::vector<SafetensorsEntry> entries;

  /// Room for `bytes`, to be filled; valid as long as this object. `type`: the file's.
  std::byte* add_room(const std::string& name, std::string_view type, const Shape& shape,
                      int64_t bytes) {
    std::vector<std::byte>& room = kept_.emplace_back(static_cast<size_t>(bytes));
    entries.push_back({name, type, {}, shape, room.data(), bytes});
    return room.data();
  }
  template <class T>
  void add(const std::string& name, std::string_view type, const Shape& shape,
           const std::vector<T>& values) {
    const size_t bytes = values.size() * sizeof(T);
    std::byte* room = add_room(name, type, shape, static_cast<int64_t>(bytes));
    if (bytes > 0) std::memcpy(room, values.data(), bytes);
  }

 private:
  std::list<std::vector<std::byte>> kept_;
};

void add_inputs(const Context& context, Stream stream, const catalog::Workload& workload,
                Contents& contents) {
  for (const catalog::WorkloadInput& input : workload.input_views()) {
    const ConstTensorView& tensor = input.tensor;
    const int64_t bytes = checked_bytes(tensor.shape, dtype_bytes(tensor.dtype));
    std::byte* room =
        contents.add_room(input.name, safetensors_type(tensor.dtype).name, tensor.shape, bytes);
    copy(tensor, TensorView(room, tensor.dtype, tensor.shape, Device()), stream);
  }
  context.synchronize(stream);
}

void add_outputs(const catalog::MemberOutputs& outputs, Contents& contents) {
  const std::string_view type = safetensors_type(outputs.dtype).name;
  const auto& members = outputs.members;
  const bool are_alike = std::all_of(members.begin(), members.end(), [&](const auto& m) {
    return m.rows == members[0].rows && m.row_length == members[0].row_length;
  });
  if (!are_alike) {
    for (size_t m = 0; m < members.size(); ++m)
      contents.add("got." + std::to_string(m), type, {members[m].rows, members[m].row_length},
                   members[m].bytes);
    return;
  }
  std::vector<std::byte> all;
  for (const auto& m : members) all.insert(all.end(), m.bytes.begin(), m.bytes.end());
  const auto count = static_cast<int64_t>(members.size());
  const int64_t rows = count == 0 ? 0 : members[0].rows;
  contents.add("got", type, {count, rows, count == 0 ? 0 : members[0].row_length}, all);
}

void add_expected(const catalog::ReferenceSample& reference, Contents& contents) {
  size_t width = 0;
  for (const auto& row : reference.rows()) width = std::max(width, row.values.size());
  std::vector<int64_t> members, rows;
  std::vector<double> expected, tolerances;
  for (const auto& row : reference.rows()) {
    members.push_back(row.member);
    rows.push_back(row.row);
    expected.insert(expected.end(), row.values.begin(), row.values.end());
    tolerances.insert(tolerances.end(), row.tolerances.begin(), row.tolerances.end());
    for (auto* values : {&expected, &tolerances})
      values->resize(rows.size() * width, std::numeric_limits<double>::quiet_NaN());
  }
  const auto count = static_cast<int64_t>(rows.size());
  const Shape shape{count, static_cast<int64_t>(width)};
  contents.add("member", "I64", {count}, members);
  contents.add("row", "I64", {count}, rows);
  contents.add("expected", "F64", shape, expected);
  contents.add("tolerance", "F64", shape, tolerances);
}

/// Characters that are invalid in a file name, such as a policy's colon, become dashes.
std::string file_name(const CallName& name) {
  std::string file = name.op + "-" + name.case_id + "-" + name.name + "-" + name.phase;
  const auto is_bad = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_' && c != '.';
  };
  std::replace_if(file.begin(), file.end(), is_bad, '-');
  return file + ".safetensors";
}

}  // namespace

SavingRule parse_saving_rule(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string when = text.substr(0, colon);
  const bool has_folder = colon != std::string::npos;
  SavingRule rule;
  rule.folder = has_folder ? text.substr(colon + 1) : "workspace";
  if (when == "incorrect") rule.when = SavingRule::When::incorrect;
  if (when == "always") rule.when = SavingRule::When::always;
  const bool is_known = when == "never" ? !has_folder : rule.when != SavingRule::When::never;
  if (!is_known || rule.folder.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "--save-workspace: \"" + text +
                    "\", expected never, incorrect, always, incorrect:FOLDER or always:FOLDER");
  }
  return rule;
}

std::string numbered_saving(const std::string& text, int64_t number) {
  const SavingRule rule = parse_saving_rule(text);
  if (rule.when == SavingRule::When::never) return text;
  return text.substr(0, text.find(':')) + ":" + rule.folder + "-" + std::to_string(number);
}

void save_inputs(const std::string& path, const Context& context, Stream stream,
                 const catalog::Workload& workload) {
  Contents contents;
  add_inputs(context, stream, workload, contents);
  save_safetensors(path, contents.entries);
}

std::string save_call(const std::string& folder, const CallName& name, const Context& context,
                      Stream stream, const catalog::Workload& workload,
                      const catalog::ReferenceSample& reference,
                      const catalog::MemberOutputs& outputs, const std::string& finding) {
  Contents contents;
  add_inputs(context, stream, workload, contents);
  add_outputs(outputs, contents);
  add_expected(reference, contents);
  std::error_code ignored;  // writing reports the error
  std::filesystem::create_directories(folder, ignored);
  const std::string path = (std::filesystem::path(folder) / file_name(name)).string();
  save_safetensors(path, contents.entries,
                   {{"wbench", std::string(version())},
                    {"op", name.op},
                    {"case_id", name.case_id},
                    {"strategy", name.name},
                    {"phase", name.phase},
                    {"reproduce", name.reproduce},
                    {"finding", finding.empty() ? "passed" : finding}});
  return path;
}

}  // namespace wide::bench
