// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause

#include "dblp/compress/pipeline.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <deque>

namespace dblp::compress {
namespace {

constexpr std::size_t kPage = 4096;

std::size_t round_up_to(std::size_t x, std::size_t to) { return (x + to - 1) / to * to; }

enum class Stage {
  kFree,
  kEncoding,  // its length is not known on the host
  kCopying,
  kSending,  // the caller's until release()
};

struct Slot {
  Stage stage = Stage::kFree;
  std::uint64_t tag = 0;
  std::byte* device_message = nullptr;
  EncodeResult* device_result = nullptr;
  std::byte* message = nullptr;    // staging
  EncodeResult* result = nullptr;  // staging
  Event encoded{};
  Event copied{};
};

}  // namespace

struct Pipeline::State {
  explicit State(Device& d, const Codec& c) : device(d), codec(c) {}
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Device& device;
  const Codec& codec;
  std::vector<Slot> slots;
  std::deque<std::uint32_t> order;  // in flight, oldest first
  std::byte* workspace = nullptr;   // encodes follow one another on their stream
  Stream encode{};
  Stream copy{};
  bool has_encode = false;
  bool has_copy = false;
  std::span<std::byte> staging{};
  bool registered = false;
};

Pipeline::State::~State() {
  // The device must not write to what is about to go.
  if (has_encode) (void)device.synchronize(encode);
  if (has_copy) (void)device.synchronize(copy);
  for (Slot& slot : slots) {
    if (slot.encoded.handle != nullptr) device.destroy_event(slot.encoded);
    if (slot.copied.handle != nullptr) device.destroy_event(slot.copied);
    if (slot.device_message != nullptr) device.release(slot.device_message);
    if (slot.device_result != nullptr) device.release(slot.device_result);
  }
  if (workspace != nullptr) device.release(workspace);
  if (has_encode) device.destroy_stream(encode);
  if (has_copy) device.destroy_stream(copy);
  if (registered) device.unregister_host(staging);
  if (!staging.empty()) munmap(staging.data(), staging.size());
}

Result<Pipeline> Pipeline::create(Device& device, const Codec& codec, std::uint32_t count) {
  if (count == 0 || count > 64) return Error(EINVAL, "slots of a pipeline");
  auto state = std::make_unique<State>(device, codec);

  // One mapping: one registration, with the device and with io_uring.
  const std::size_t each = round_up_to(codec.max_message_bytes(), 64) + 64;
  const std::size_t bytes = round_up_to(each * count, kPage);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return Error(errno, "staging memory");
  state->staging = {static_cast<std::byte*>(memory), bytes};
  (void)madvise(memory, bytes, MADV_HUGEPAGE);
  // Unregistered memory is only slower.
  state->registered = device.register_host(state->staging) == Status::kOk;

  Result<Stream> encode = device.create_stream();
  if (!encode) return encode.error();
  state->encode = *encode;
  state->has_encode = true;
  Result<Stream> copy = device.create_stream();
  if (!copy) return copy.error();
  state->copy = *copy;
  state->has_copy = true;
  Result<void*> workspace = device.allocate(codec.encode_workspace());
  if (!workspace) return workspace.error();
  state->workspace = static_cast<std::byte*>(*workspace);

  state->slots.resize(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    Slot& slot = state->slots[i];
    slot.message = state->staging.data() + i * each;
    slot.result = new (slot.message + each - 64) EncodeResult;
    Result<void*> message = device.allocate(codec.max_message_bytes());
    if (!message) return message.error();
    slot.device_message = static_cast<std::byte*>(*message);
    Result<void*> result = device.allocate(sizeof(EncodeResult));
    if (!result) return result.error();
    slot.device_result = static_cast<EncodeResult*>(*result);
    Result<Event> encoded = device.create_event();
    if (!encoded) return encoded.error();
    slot.encoded = *encoded;
    Result<Event> copied = device.create_event();
    if (!copied) return copied.error();
    slot.copied = *copied;
  }
  return Pipeline(std::move(state));
}

Pipeline::Pipeline(std::unique_ptr<State> state) : state_(std::move(state)) {}
Pipeline::Pipeline(Pipeline&&) noexcept = default;
Pipeline::~Pipeline() = default;

Status Pipeline::submit(const EncodeArgs& args, std::uint64_t tag) noexcept {
  State& s = *state_;
  for (std::uint32_t i = 0; i < s.slots.size(); ++i) {
    Slot& slot = s.slots[i];
    if (slot.stage != Stage::kFree) continue;
    EncodeArgs mine = args;
    mine.message = {slot.device_message, s.codec.max_message_bytes()};
    mine.workspace = {s.workspace, s.codec.encode_workspace()};
    mine.result = slot.device_result;
    Status status = s.codec.encode(mine, s.encode);
    if (status == Status::kOk) status = s.device.record(slot.encoded, s.encode);
    if (status == Status::kOk) status = s.device.wait(s.copy, slot.encoded);
    if (status == Status::kOk)
      status = s.device.copy_to_host(slot.result, slot.device_result, sizeof(EncodeResult), s.copy);
    if (status == Status::kOk) status = s.device.record(slot.copied, s.copy);
    if (status != Status::kOk) return status;
    slot.stage = Stage::kEncoding;
    slot.tag = tag;
    s.order.push_back(i);
    return Status::kOk;
  }
  return Status::kTooMany;
}

Status Pipeline::poll(const std::function<void(const Ready&)>& ready) {
  State& s = *state_;
  for (const std::uint32_t i : s.order) {
    Slot& slot = s.slots[i];
    if (slot.stage != Stage::kEncoding) continue;
    const Status status = s.device.reached(slot.copied);
    if (status == Status::kMissing) break;  // those behind it are later on the same stream
    if (status != Status::kOk) return status;
    if (slot.result->message_bytes > s.codec.max_message_bytes()) return Status::kDeviceFailed;
    // Only now is it known how much there is to copy.
    Status next = s.device.copy_to_host(slot.message, slot.device_message,
                                        slot.result->message_bytes, s.copy);
    if (next == Status::kOk) next = s.device.record(slot.copied, s.copy);
    if (next != Status::kOk) return next;
    slot.stage = Stage::kCopying;
  }
  while (!s.order.empty()) {
    const std::uint32_t i = s.order.front();
    Slot& slot = s.slots[i];
    if (slot.stage != Stage::kCopying) break;
    const Status status = s.device.reached(slot.copied);
    if (status == Status::kMissing) break;
    if (status != Status::kOk) return status;
    slot.stage = Stage::kSending;
    s.order.pop_front();
    ready({i, slot.tag, {slot.message, slot.result->message_bytes}, *slot.result});
  }
  return Status::kOk;
}

void Pipeline::release(std::uint32_t slot) noexcept {
  if (slot < state_->slots.size() && state_->slots[slot].stage == Stage::kSending)
    state_->slots[slot].stage = Stage::kFree;
}

bool Pipeline::busy() const noexcept { return !state_->order.empty(); }
std::span<std::byte> Pipeline::staging() const noexcept { return state_->staging; }

}  // namespace dblp::compress
