// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A store of text files, for those who keep results in version control or read them with other
// tools: runs/<id>.json are the documents, never changed; index.jsonl has a line for every
// operation, in order: {"add": ..}, {"tag": ..} or {"remove": ..}, each with the digest of what it
// was without it. A writer locks the index and writes a document before the line that names it.
// Leftovers of a crash, a document without a line or an unfinished line, are no runs; the next
// writer cuts the line off, the document stays until somebody adds or deletes it. leftovers() names
// both.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>
#include <tuple>

#include "bench/document/json_number.hpp"
#include "bench/document/sha256.hpp"
#include "bench/history/run_json.hpp"
#include "host/core/file.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& what, const std::string& path) {
  throw Error(ErrorCode::io, what + " " + path + ": " + std::strerror(errno));
}

/// The index, locked against other writers during this object's lifetime; or, as a `reader`,
/// against all writers.
class LockedFile {
 public:
  explicit LockedFile(const std::string& path, bool reader = false)
      : path_(path),
        fd_(::open(path.c_str(), (reader ? O_RDONLY : O_RDWR | O_CREAT) | O_CLOEXEC, 0644)) {
    if (fd_ < 0) fail(reader ? "cannot read" : "cannot write", path_);
    while (::flock(fd_, reader ? LOCK_SH : LOCK_EX) != 0) {
      if (errno == EINTR) continue;
      ::close(fd_);
      fail("cannot lock", path_);
    }
  }
  ~LockedFile() { ::close(fd_); }
  LockedFile(const LockedFile&) = delete;

  /// Appends after the first `end` bytes; anything after them was never finished.
  void append(int64_t end, const std::string& line) {
    if (::ftruncate(fd_, end) != 0) fail("cannot write", path_);
    size_t done = 0;
    while (done < line.size()) {
      const ssize_t written =
          ::pwrite(fd_, line.data() + done, line.size() - done, end + static_cast<int64_t>(done));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        const int error = errno;
        (void)::ftruncate(fd_, end);  // a full disk must not leave a partial line
        errno = error;
        fail("cannot write", path_);
      }
      done += static_cast<size_t>(written);
    }
    if (::fsync(fd_) != 0) fail("cannot write", path_);
  }

 private:
  std::string path_;
  int fd_;
};

Json added(const HistoryRecord& record) {
  Json run = to_json(record.run);
  run["points"] = to_json(record.points);
  return {{"add", std::move(run)}};
}

constexpr std::string_view kDigest = ",\"sha256\":\"";
constexpr size_t kDigestLength = kDigest.size() + 64 + 2;  // the digest, and what ends it: "}

std::string with_digest(const Json& line) {
  std::string text = dumped(line, -1);
  const std::string digest = sha256(std::string_view(text).substr(0, text.size() - 1));
  return text.insert(text.size() - 2, std::string(kDigest) + digest + "\"");
}

/// Throws unless the line is as with_digest() made it; lines of before have none.
void check_digest(const std::string& line) {
  const size_t begin = line.size() - std::min(line.size(), kDigestLength);
  if (line.compare(begin, kDigest.size(), kDigest) != 0) return;
  require_stored("it", line.substr(begin + kDigest.size(), 64), line.substr(0, begin) + "}");
}

struct Stored {
  int64_t arrival = 0;  ///< the order in which runs were added
  HistoryRun run;
  std::vector<HistoryPoint> points;
};

Stored from_json(const Json& add) {
  Stored s;
  s.run = run_from_json(add);
  const HistoryRun& r = s.run;
  for (const Json& p : add.at("points")) {
    s.points.push_back(
        {r.id, r.started, r.device, p.at(0).get<std::string>(), p.at(1).get<std::string>(),
         p.at(2).get<std::string>(), p.at(3).get<std::string>(), p.at(4).get<std::string>(),
         p.at(5).get<double>(), p.at(6).get<double>(), p.at(7).get<double>(), code_of(r)});
  }
  return s;
}

/// The index, replayed from its first line to its last complete one.
struct Index {
  std::map<std::string, Stored> stored;  ///< by id
  int64_t num_added = 0;
  int64_t end = 0;        ///< the end of the last complete line
  int64_t num_lines = 0;  ///< up to there
  bool is_torn = false;   ///< an unfinished line follows it

  void play(const Json& line) {
    if (line.contains("add")) {
      Stored s = from_json(line.at("add"));
      s.arrival = num_added++;
      stored[s.run.id] = std::move(s);
    } else if (line.contains("tag")) {
      const auto tag = line.at("tag").get<std::string>();
      for (auto& [id, s] : stored) std::erase(s.run.tags, tag);
      const auto found = stored.find(line.at("id").get<std::string>());
      if (found == stored.end()) return;
      auto& tags = found->second.run.tags;
      tags.insert(std::lower_bound(tags.begin(), tags.end(), tag), tag);
    } else {
      for (const Json& id : line.at("remove")) stored.erase(id.get<std::string>());
    }
  }

  const Stored& at(const std::string& id) const {
    const auto found = stored.find(id);
    if (found == stored.end()) throw Error(ErrorCode::invalid_argument, "no run has the id " + id);
    return found->second;
  }

  std::vector<const Stored*> by_age() const {
    std::vector<const Stored*> all;
    for (const auto& [id, s] : stored) all.push_back(&s);
    std::sort(all.begin(), all.end(), [](const Stored* a, const Stored* b) {
      return std::tie(a->run.started, a->arrival) < std::tie(b->run.started, b->arrival);
    });
    return all;
  }
};

class JsonlStore final : public HistoryStore {
 public:
  explicit JsonlStore(const std::string& folder) : folder_(folder) {}

  bool add(const HistoryRecord& record) override {
    LockedFile file(index_path());
    const Index index = read();
    if (index.stored.contains(record.run.id)) {
      if (document(record.run.id) == record.document) return false;
      throw Error(ErrorCode::invalid_argument,
                  "another run has the id " + record.run.id + ", expected the same document");
    }
    write_file(document_path(record.run.id), record.document);
    append(file, index, added(record));
    return true;
  }

  std::vector<HistoryRun> runs() const override {
    std::vector<HistoryRun> all;
    const Index index = read();
    for (const Stored* s : index.by_age()) all.push_back(s->run);
    return all;
  }

  std::vector<HistoryPoint> points() const override {
    std::vector<HistoryPoint> all;
    const Index index = read();
    for (const Stored* s : index.by_age())
      all.insert(all.end(), s->points.begin(), s->points.end());
    return all;
  }

  std::string document(const std::string& id) const override {
    const Index index = read();
    const std::string& digest = index.at(id).run.sha256;
    std::string text = read_file(document_path(id));
    require_stored(document_path(id), digest, text);
    return text;
  }

  void tag(const std::string& id, const std::string& tag) override {
    LockedFile file(index_path());
    const Index index = read();
    (void)index.at(id);
    append(file, index, {{"tag", tag}, {"id", id}});
  }

  void remove(const std::vector<std::string>& ids) override {
    LockedFile file(index_path());
    const Index index = read();
    for (const std::string& id : ids) (void)index.at(id);
    append(file, index, {{"remove", ids}});
    std::error_code ignored;  // a document without a line is no longer a run
    for (const std::string& id : ids) fs::remove(document_path(id), ignored);
  }

  std::vector<std::string> leftovers() const override {
    const LockedFile file(index_path(), true);  // what is being added is none
    const Index index = read();
    std::vector<std::string> all;
    if (index.is_torn) {
      all.push_back(
          index_path() + ":" + std::to_string(index.num_lines + 1) +
          ": the line is unfinished, as after a crash, and what it said is lost: add the run "
          "of a document that has no line, or tag or remove it again");
    }
    std::error_code ignored;  // a folder that is missing has none
    for (const auto& entry : fs::directory_iterator(folder_ + "/runs", ignored)) {
      const fs::path& path = entry.path();
      if (path.extension() != ".json" || index.stored.contains(path.stem().string())) continue;
      all.push_back(path.string() +
                    " is no run of the history, which has no line of it: wbench "
                    "history add " +
                    path.string() + " --store jsonl:" + folder_ + " makes it one; or delete it");
    }
    std::sort(all.begin(), all.end());
    return all;
  }

 private:
  std::string index_path() const { return folder_ + "/index.jsonl"; }
  std::string document_path(const std::string& id) const {
    return folder_ + "/runs/" + id + ".json";
  }

  Index read() const {
    Index index;
    const std::string text = fs::exists(index_path()) ? read_file(index_path()) : "";
    size_t begin = 0;
    for (int64_t number = 1;; ++number) {
      const size_t end = text.find('\n', begin);
      if (end == std::string::npos) break;  // nothing, or an unfinished line from a crash
      try {
        const std::string line = text.substr(begin, end - begin);
        check_digest(line);
        index.play(Json::parse(line));
      } catch (const std::exception& error) {
        throw Error(ErrorCode::invalid_argument, index_path() + ":" + std::to_string(number) +
                                                     ": is no line of a history: " + error.what());
      }
      begin = end + 1;
    }
    index.end = static_cast<int64_t>(begin);
    index.num_lines = std::count(text.begin(), text.end(), '\n');
    index.is_torn = begin < text.size();
    return index;
  }

  static void append(LockedFile& file, const Index& index, const Json& line) {
    file.append(index.end, with_digest(line));
  }

  std::string folder_;
};

}  // namespace

std::unique_ptr<HistoryStore> open_jsonl_history(const std::string& folder, bool must_exist) {
  const bool exists = fs::exists(folder + "/index.jsonl");
  if (must_exist && !exists) {
    throw Error(ErrorCode::io,
                "there is no history in " + folder + ": run --save and history add begin one");
  }
  if (!exists) {
    std::error_code error;
    fs::create_directories(folder + "/runs", error);
    if (error) throw Error(ErrorCode::io, "cannot make " + folder + "/runs: " + error.message());
    const LockedFile empty(folder + "/index.jsonl");
  }
  return std::make_unique<JsonlStore>(folder);
}

}  // namespace wide::bench
