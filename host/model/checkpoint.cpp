// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Members in files: all in one, or one by one.
#include <charconv>

#include "host/core/check.hpp"
#include "host/model/prefixed.hpp"
#include "wide/checkpoint.hpp"

namespace wide {

namespace {

constexpr const char* kMembersKey = "wide.num_members";
constexpr const char* kGraphKey = "wide.graph";
constexpr int64_t kMaxMembers = 1 << 20;  // of a file without tensors

/// "3/fc1.weight" -> 3; -1 where there is no number in front.
int64_t member_of(const std::string& name, size_t& slash) {
  slash = name.find('/');
  int64_t member = -1;
  if (slash == std::string::npos) return -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + slash, member);
  return error == std::errc() && end == name.data() + slash ? member : -1;
}

}  // namespace

MemberParameters parameters_of(const Safetensors& file, std::string_view prefix) {
  const auto view_of = [&](const SafetensorsEntry& entry) { return file.view(entry.name); };
  return prefixed(file.entries(), &SafetensorsEntry::name, view_of, prefix);
}

MemberParameters parameters_of(const Safetensors& file, const Graph& graph,
                               std::string_view prefix) {
  MemberParameters found;
  for (const Value parameter : graph.parameters()) {
    const std::string& name = graph.name(parameter);
    found.emplace(name, file.view(std::string(prefix) + name));
  }
  return found;
}

MemberParameters parameters_of(const Npy& file, std::string_view prefix) {
  const auto view_of = [&](const NpyEntry& entry) { return file.view(entry.name); };
  return prefixed(file.entries(), &NpyEntry::name, view_of, prefix);
}

void save_members(const std::string& path, const Model& model, Stream stream) {
  const ModelPlan& plan = model.plan();
  std::vector<OwnedParameters> owned;
  std::vector<NamedTensor> tensors;
  for (int64_t i = 0; i < plan.problem().num_members; ++i) {
    owned.push_back(model.get(i, stream));
  }
  for (size_t i = 0; i < owned.size(); ++i) {
    for (const auto& [name, tensor] : owned[i]) {
      tensors.push_back({std::to_string(i) + "/" + name, tensor});
    }
  }
  save_safetensors(path, tensors,
                   {{kMembersKey, std::to_string(owned.size())}, {kGraphKey, plan.graph().name()}});
}

void save_member(const std::string& path, const Model& model, int64_t member, Stream stream) {
  const OwnedParameters owned = model.get(member, stream);
  std::vector<NamedTensor> tensors;
  for (const auto& [name, tensor] : owned) tensors.push_back({name, tensor});
  save_safetensors(path, tensors, {{kGraphKey, model.plan().graph().name()}});
}

MembersFile::MembersFile(std::shared_ptr<const void> file, std::string graph_name,
                         std::vector<MemberParameters> members)
    : file_(std::move(file)), graph_name_(std::move(graph_name)), members_(std::move(members)) {}

MembersFile MembersFile::open(const std::string& path) {
  const auto file = std::make_shared<const Safetensors>(Safetensors::open(path));
  const auto& metadata = file->metadata();
  const auto count_text = metadata.find(kMembersKey);
  WIDE_REQUIRE(count_text != metadata.end(),
               "model: " + path + " has no " + kMembersKey +
                   " in its metadata, expected a file of several members");
  int64_t count = -1;
  const std::string& digits = count_text->second;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  // Members without parameters have no tensors: their number may be any valid count.
  const auto entries = static_cast<int64_t>(file->entries().size());
  const int64_t most = entries == 0 ? kMaxMembers : entries;
  WIDE_REQUIRE(
      error == std::errc() && end == digits.data() + digits.size() && count >= 1 && count <= most,
      "model: " + path + ": " + kMembersKey + " is \"" + digits +
          "\", expected a number from 1 to " + std::to_string(most) + ", its tensors");
  std::vector<MemberParameters> members(static_cast<size_t>(count));
  for (const SafetensorsEntry& entry : file->entries()) {
    size_t slash = 0;
    const int64_t member = member_of(entry.name, slash);
    WIDE_REQUIRE(member >= 0 && member < count,
                 "model: " + path + " has a tensor " + entry.name +
                     ", expected names MEMBER/PARAMETER of members 0 to " +
                     std::to_string(count - 1));
    MemberParameters& own = members[static_cast<size_t>(member)];
    const bool is_new = own.emplace(entry.name.substr(slash + 1), file->view(entry.name)).second;
    WIDE_REQUIRE(is_new, "model: " + path + " has parameter " + entry.name.substr(slash + 1) +
                             " of member " + std::to_string(member) + " twice, expected it once");
  }
  const auto graph = metadata.find(kGraphKey);
  return MembersFile(file, graph == metadata.end() ? "" : graph->second, std::move(members));
}

}  // namespace wide
