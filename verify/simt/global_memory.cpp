// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Buffers by address, and what is asked about them. Buffers lie in the order in which they were
// made, freed ones included, so that finding one is a binary search; mostly it is the one that was
// found last.
#include "verify/simt/global_memory.hpp"

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "verify/simt/arena.hpp"
#include "verify/simt/global_check.hpp"
#include "verify/simt/locations.hpp"
#include "verify/simt/text.hpp"

namespace wide::simt {

namespace {

// Addresses are never given out again: room for this many times the capacity.
constexpr int64_t kAddressesPerByte = 64;
constexpr int64_t kMinAddresses = int64_t{1} << 36;

constexpr int64_t kManyCells = (int64_t{256} << 20) / int64_t{sizeof(GlobalCell)};

int64_t addresses_for(int64_t capacity) {
  return std::max(kMinAddresses, capacity * kAddressesPerByte);
}

struct Room {
  Room(int64_t capacity, bool is_host_accessible)
      : arena(addresses_for(capacity), 2 * capacity + Arena::kRedZone, is_host_accessible) {}
  Arena arena;
  std::vector<std::unique_ptr<Buffer>> buffers;  ///< by address
  int64_t live_bytes = 0;
};

}  // namespace

struct GlobalMemory::State {
  explicit State(int64_t capacity_bytes)
      : capacity(capacity_bytes), device(capacity_bytes, false), host(capacity_bytes, true) {}

  Room& room(BufferKind kind) {
    return kind == BufferKind::pinned || kind == BufferKind::managed ? host : device;
  }
  /// The buffer that holds the address, freed or not; null: none does.
  Buffer* buffer_at(uint64_t address) {
    if (last != nullptr && address - last->info.address < static_cast<uint64_t>(last->info.bytes)) {
      return last;
    }
    Buffer* found = before(address);
    if (found == nullptr || address >= found->end()) return nullptr;
    return last = found;
  }
  /// The last buffer that begins at or before the address, in the arena that has it.
  Buffer* before(uint64_t address) const {
    for (const Room* place : {&device, &host}) {
      if (!place->arena.contains(address)) continue;
      const auto next = std::upper_bound(
          place->buffers.begin(), place->buffers.end(), address,
          [](uint64_t wanted, const auto& buffer) { return wanted < buffer->info.address; });
      return next == place->buffers.begin() ? nullptr : std::prev(next)->get();
    }
    return nullptr;
  }
  std::string describe(uint64_t address, int64_t bytes) const;
  void use(Buffer& buffer) {
    if (buffer.is_used) return;
    buffer.is_used = true;
    used.push_back(&buffer);
  }
  void merge_cells();
  [[noreturn]] void refuse(const Thread& thread, uint64_t address, int64_t bytes, int64_t alignment,
                           const char* what, Location at);

  int64_t capacity;
  Room device, host;  ///< host: pinned and managed
  Buffer* last = nullptr;
  GlobalChecks checks;
  std::vector<Buffer*> used;  ///< by the running launch
  std::unordered_map<uint64_t, Knowledge> published;
  int64_t merge_at = kManyCells;  ///< cells of all shadows
};

/// Takes back cells once there are many; what cannot be taken back raises the limit.
void GlobalMemory::State::merge_cells() {
  if (GlobalShadow::num_cells() < merge_at) return;
  for (const Room* room : {&device, &host}) {
    for (const auto& buffer : room->buffers) {
      if (buffer->shadow != nullptr) buffer->shadow->merge_alike();
    }
  }
  merge_at = std::max(kManyCells, 2 * GlobalShadow::num_cells());
}

/// Where a range that is not inside one live buffer lies.
std::string GlobalMemory::State::describe(uint64_t address, int64_t bytes) const {
  const std::string place = " at " + hexadecimal(address);
  if (!device.arena.contains(address) && !host.arena.contains(address)) {
    return place + ", which is not device memory";
  }
  const auto& buffers = (device.arena.contains(address) ? device : host).buffers;
  const auto next = std::upper_bound(
      buffers.begin(), buffers.end(), address,
      [](uint64_t wanted, const auto& buffer) { return wanted < buffer->info.address; });
  const Buffer* left = next == buffers.begin() ? nullptr : std::prev(next)->get();
  const Buffer* right = next == buffers.end() ? nullptr : next->get();
  if (left == nullptr && right == nullptr) return place + ", where no buffer ever was";
  const auto name = [](const Buffer& buffer) {
    return "buffer " + buffer.info.name + " of " + std::to_string(buffer.info.bytes) + " bytes" +
           (buffer.info.is_freed ? ", which was freed" : "");
  };
  if (left != nullptr && left->info.is_freed && address < left->end()) {
    return " at " + left->info.name + "+" + hexadecimal(address - left->info.address) + ", in " +
           name(*left);
  }
  const int64_t past =
      left == nullptr ? INT64_MAX : static_cast<int64_t>(address - left->end()) + bytes;
  const int64_t ahead =
      right == nullptr ? INT64_MAX : static_cast<int64_t>(right->info.address - address);
  return past <= ahead ? ", " + std::to_string(past) + " bytes past the end of " + name(*left)
                       : ", " + std::to_string(ahead) + " bytes before " + name(*right);
}

GlobalMemory::GlobalMemory(int64_t capacity_bytes)
    : state_(std::make_unique<State>(capacity_bytes)) {}
GlobalMemory::~GlobalMemory() = default;

uint64_t GlobalMemory::allocate(int64_t bytes, std::string name, BufferKind kind,
                                bool is_initialised, bool is_read_only, bool is_module) {
  Room& room = state_->room(kind);
  if (bytes < 0 || bytes > state_->capacity - room.live_bytes) return 0;
  const uint64_t address = room.arena.allocate(bytes, !is_initialised);
  if (address == 0) return 0;
  auto buffer = std::make_unique<Buffer>();
  buffer->info = {.address = address,
                  .bytes = bytes,
                  .name = std::move(name),
                  .kind = kind,
                  .is_module = is_module};
  buffer->is_read_only = is_read_only;
  buffer->shadow = std::make_unique<GlobalShadow>(bytes, is_initialised);
  room.live_bytes += bytes;
  room.buffers.push_back(std::move(buffer));
  return address;
}

void GlobalMemory::free(uint64_t address) {
  Buffer* buffer = state_->before(address);
  if (buffer == nullptr || buffer->info.address != address || buffer->info.is_freed) return;
  Room& room = state_->room(buffer->info.kind);
  buffer->info.is_freed = true;
  buffer->shadow.reset();
  room.arena.release(address, buffer->info.bytes);
  room.live_bytes -= buffer->info.bytes;
}

int64_t GlobalMemory::capacity_bytes() const {
  return state_->capacity;
}

int64_t GlobalMemory::used_bytes() const {
  return state_->device.live_bytes;
}

std::byte* GlobalMemory::data(uint64_t address) const {
  const Arena& device = state_->device.arena;
  return device.contains(address) ? device.data(address) : reinterpret_cast<std::byte*>(address);
}

std::optional<BufferInfo> GlobalMemory::find(uint64_t address) const {
  const Buffer* buffer = state_->before(address);
  if (buffer == nullptr || address > buffer->end()) return std::nullopt;
  return buffer->info;
}

std::vector<BufferInfo> GlobalMemory::live() const {
  std::vector<BufferInfo> infos;
  for (const Room* room : {&state_->device, &state_->host}) {
    for (const auto& buffer : room->buffers) {
      if (!buffer->info.is_freed) infos.push_back(buffer->info);
    }
  }
  return infos;
}

void GlobalMemory::require(const Thread& thread, uint64_t address, int64_t bytes, int64_t alignment,
                           const char* what, Location at) {
  const Buffer* buffer = state_->buffer_at(address);
  if (buffer == nullptr || buffer->info.is_freed ||
      address + static_cast<uint64_t>(bytes) > buffer->end() ||
      (address & (static_cast<uint64_t>(alignment) - 1)) != 0) {
    state_->refuse(thread, address, bytes, alignment, what, at);
  }
}

void GlobalMemory::State::refuse(const Thread& thread, uint64_t address, int64_t bytes,
                                 int64_t alignment, const char* what, Location at) {
  const Buffer* buffer = buffer_at(address);
  const bool is_freed = buffer != nullptr && buffer->info.is_freed;
  const bool is_inside =
      buffer != nullptr && !is_freed && address + static_cast<uint64_t>(bytes) <= buffer->end();
  std::string text = std::string(what) + " of " + std::to_string(bytes) + " bytes";
  text += is_inside
              ? " at " + buffer->info.name + "+" + hexadecimal(address - buffer->info.address) +
                    ", address " + hexadecimal(address) + ", expected a multiple of " +
                    std::to_string(alignment)
              : describe(address, bytes);
  text += ", by " + to_string(thread);
  const FindingKind kind = is_inside  ? FindingKind::misaligned
                           : is_freed ? FindingKind::use_after_free
                                      : FindingKind::out_of_bounds;
  thread.block->launch.report(kind, *thread.block, text, at);
  throw Fault(is_inside ? Fault::Kind::misaligned : Fault::Kind::illegal_address, text);
}

void GlobalMemory::read(Thread& thread, uint64_t address, int64_t bytes, GlobalAccess access,
                        Location at) {
  if (bytes <= 0) return;
  Buffer& buffer = *state_->buffer_at(address);
  state_->use(buffer);
  state_->checks.read(buffer, thread, static_cast<int64_t>(address - buffer.info.address), bytes,
                      access, at);
}

void GlobalMemory::write(Thread& thread, uint64_t address, int64_t bytes, GlobalAccess access,
                         Location at) {
  if (bytes <= 0) return;
  Buffer& buffer = *state_->buffer_at(address);
  state_->use(buffer);
  state_->checks.write(buffer, thread, static_cast<int64_t>(address - buffer.info.address), bytes,
                       access, at);
}

void GlobalMemory::publish(const Thread& thread, uint64_t address, const Knowledge& released) {
  // Joined, not replaced: atomics of several threads continue each other's release.
  state_->published[address].import(released.exported(thread.block->linear_index), -1);
}

const Knowledge* GlobalMemory::published(uint64_t address) const {
  const auto found = state_->published.find(address);
  return found == state_->published.end() ? nullptr : &found->second;
}

bool GlobalMemory::host_access(uint64_t address, int64_t bytes, HostAccess access, const char* what,
                               uint32_t id, const std::function<bool(uint32_t)>& is_ordered_after,
                               Findings& findings) {
  Buffer* buffer = state_->buffer_at(address);
  if (bytes == 0 && buffer == nullptr) buffer = state_->before(address);  // at its end
  if (buffer == nullptr || buffer->info.is_freed ||
      address + static_cast<uint64_t>(bytes) > buffer->end()) {
    const bool is_freed = buffer != nullptr && buffer->info.is_freed;
    findings.report(is_freed ? FindingKind::use_after_free : FindingKind::out_of_bounds,
                    std::string(what) + " of " + std::to_string(bytes) + " bytes" +
                        state_->describe(address, bytes));
    return false;
  }
  state_->checks.operations.begin(id, &is_ordered_after);
  const auto offset = static_cast<int64_t>(address - buffer->info.address);
  state_->checks.host_access(*buffer, offset, bytes, access != HostAccess::read, what, findings);
  if (access == HostAccess::leave) buffer->shadow->set_initialised(offset, bytes, false);
  return true;
}

void GlobalMemory::copy_initialised(uint64_t destination, uint64_t source, int64_t bytes) {
  Buffer* to = state_->buffer_at(destination);
  Buffer* from = state_->buffer_at(source);
  if (to == nullptr || from == nullptr || to->info.is_freed || from->info.is_freed) return;
  auto to_offset = static_cast<int64_t>(destination - to->info.address);
  auto from_offset = static_cast<int64_t>(source - from->info.address);
  while (bytes > 0) {
    bool is_initialised = false;
    const int64_t run = from->shadow->initialised_run(from_offset, bytes, is_initialised);
    to->shadow->set_initialised(to_offset, run, is_initialised);
    to_offset += run;
    from_offset += run;
    bytes -= run;
  }
}

void GlobalMemory::begin_launch(Launch& launch) {
  locations().forget_addresses();
  state_->checks.operations.begin(launch.config.id, &launch.config.is_ordered_after);
  state_->checks.begin(launch);
}

void GlobalMemory::end_launch() {
  Counters traffic;
  for (Buffer* buffer : state_->used) {
    buffer->traffic.name = buffer->info.name;
    traffic.buffers.push_back(std::move(buffer->traffic));
    buffer->traffic = {};
    buffer->is_used = false;
  }
  state_->checks.launch()->counters.add(traffic);
  state_->used.clear();
  state_->published.clear();
  state_->merge_cells();
}

void GlobalMemory::count_request(uint64_t address, int64_t sectors, bool is_write) {
  Buffer& buffer = *state_->buffer_at(address);
  state_->use(buffer);
  (is_write ? buffer.traffic.write_sectors : buffer.traffic.read_sectors) += sectors;
}

}  // namespace wide::simt
