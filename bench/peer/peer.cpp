// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/peer/peer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "bench/document/json_field.hpp"
#include "bench/document/result_json.hpp"
#include "bench/document/saved_workspace.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

constexpr const char* kProtocol = "wbench.peer 1";
/// For any request: frameworks may compile for minutes.
constexpr double kPatience_s = 600;

/// Names that results and command lines can hold.
void require_name(const Field& field) {
  const std::string& name = field.text();
  const auto is_good = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-';
  };
  if (name.empty() || name.size() > 40 || !std::all_of(name.begin(), name.end(), is_good))
    field.refuse("up to 40 letters, digits, _ and -");
}

ErrorCode code_of(const std::string& kind) {
  if (kind == "unsupported") return ErrorCode::unsupported;
  if (kind == "oom") return ErrorCode::out_of_memory;
  return ErrorCode::io;
}

std::vector<PeerOffer> offers_of(const Field& reply) {
  std::vector<PeerOffer> offers;
  std::set<std::string> names;
  for (const Field& item : reply["strategies"].items()) {
    const Field name = item["name"];
    require_name(name);
    if (!names.insert(name.text()).second) name.refuse("another name than an earlier strategy's");
    PeerOffer& offer = offers.emplace_back();
    offer.name = name.text();
    if (const auto text = item.later("explain")) offer.explain = text->text();
    if (const auto why = item.later("unsupported")) offer.unsupported = why->text();
  }
  return offers;
}

}  // namespace

int64_t cpu_threads_beside(const DeviceInfo& device) {
  const bool is_cpu = device.device.type == DeviceType::cpu;
  return is_cpu ? device.num_multiprocessors : Context::cpu().info().num_multiprocessors;
}

Peer::Peer(std::string command, const Device& device, int64_t threads)
    : command_(std::move(command)), device_(to_string(device)), threads_(threads) {
  start();
}

void Peer::start() {
  process_ = std::make_unique<LineProcess>(command_);
  const Json reply =
      ask({{"do", "hello"}, {"protocol", kProtocol}, {"device", device_}, {"threads", threads_}});
  const Field field(reply, command_);
  if (field["protocol"].text() != kProtocol)
    field["protocol"].refuse(fmt::format("\"{}\"", kProtocol));
  require_name(field["name"]);
  name_ = field["name"].text();
  title_ = name_ + " " + field["version"].text();
}

Peer::Json Peer::ask(const Json& request) {
  if (!process_) {
    throw Error(ErrorCode::io,
                fmt::format("{}: it was ended, as its last answer was none, expected an answer "
                            "to \"{}\"",
                            command_, request.at("do").get<std::string>()));
  }
  const std::string text =
      process_->ask(request.dump(-1, ' ', false, Json::error_handler_t::replace), kPatience_s);
  require_shallow(command_, text);
  const Json reply = Json::parse(text, nullptr, false);
  if (!reply.is_object()) {
    process_.reset();  // the next answer could belong to an earlier request
    throw Error(ErrorCode::io,
                fmt::format("{}: \"{}\", expected an answer to \"{}\" as an object "
                            "of JSON in one line",
                            command_, text.substr(0, 200), request.at("do").get<std::string>()));
  }
  const Field field(reply, command_);
  const auto error = field.later("error");
  if (!error) return reply;
  const auto kind = field.later("kind");
  throw Error(code_of(kind ? kind->text() : ""), error->text());
}

std::vector<PeerOffer> Peer::prepare(const catalog::Case& point, const Context& context,
                                     Stream stream, const catalog::Workload& workload,
                                     int64_t flush_bytes) {
  if (!process_ || !process_->is_running()) start();
  const std::string operands = file("operands.safetensors");
  save_inputs(operands, context, stream, workload);
  Json outputs = Json::array();
  for (int64_t m = 0; m < workload.num_outputs(); ++m)
    outputs.push_back({workload.rows(m), workload.row_length(m)});
  const Json reply = ask({{"do", "prepare"},
                          {"op", point.op()},
                          {"axes", axes_json(point)},
                          {"n", workload.num_members()},
                          {"operands", operands},
                          {"outputs", outputs},
                          {"flush_bytes", flush_bytes}});
  return offers_of(Field(reply, command_));
}

void Peer::forget() noexcept {
  try {
    if (process_ && process_->is_running()) (void)ask({{"do", "forget"}});
  } catch (...) {  // the next case will detect the problem
    process_.reset();
  }
}

}  // namespace wide::bench
