// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <cerrno>
#include <vector>

#include "dblp/flows.hpp"
#include "maps.hpp"

namespace dblp {
namespace {

// Often enough that a copy is whole although the flow is busy.
constexpr int kTries = 100;

bool whole(const Flow& flow) {
  return flow.seq_begin == flow.seq_end && flow.version == DBLP_FLOWS_VERSION;
}

struct RingFree {
  void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
};

}  // namespace

struct FlowReader::Impl {
  std::string folder;
  Fd flows, state, ring_map, subscriber;
  std::vector<dblp_flow_key> keys;
  std::vector<Flow> values;
  std::unique_ptr<ring_buffer, RingFree> ring;
  const std::function<void(const FlowChange&)>* handler = nullptr;

  static int on_change(void* self, void* data, std::size_t size) {
    const auto* impl = static_cast<const Impl*>(self);
    const auto* change = static_cast<const FlowChange*>(data);
    if (size >= sizeof(*change) && change->version == DBLP_FLOWS_VERSION) (*impl->handler)(*change);
    return 0;
  }
};

FlowReader::FlowReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FlowReader::FlowReader(FlowReader&&) noexcept = default;
FlowReader& FlowReader::operator=(FlowReader&&) noexcept = default;
FlowReader::~FlowReader() = default;

Result<FlowReader> FlowReader::open(const std::string& folder) {
  auto impl = std::make_unique<Impl>();
  impl->folder = folder;
  auto flows = open_map(folder, flows_kind);
  if (!flows) return flows.error();
  auto state = open_map(folder, state_kind);
  if (!state) return state.error();
  auto limit = map_limit(*flows);
  if (!limit) return limit.error();
  impl->flows = std::move(*flows);
  impl->state = std::move(*state);
  impl->keys.resize(*limit);
  impl->values.resize(*limit);
  return FlowReader(std::move(impl));
}

Result<std::span<const Flow>> FlowReader::read() {
  std::uint32_t count = static_cast<std::uint32_t>(impl_->values.size());
  std::uint32_t next = 0;
  if (bpf_map_lookup_batch(impl_->flows.get(), nullptr, &next, impl_->keys.data(),
                           impl_->values.data(), &count, nullptr) != 0 &&
      errno != ENOENT) {
    return Error(errno, "reading the flows");
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Flow flow = impl_->values[i];
    int tries = 0;
    while (!whole(flow) && ++tries < kTries) {
      if (bpf_map_lookup_elem(impl_->flows.get(), &impl_->keys[i], &flow) != 0) break;
    }
    if (whole(flow)) impl_->values[kept++] = flow;
  }
  return std::span<const Flow>(impl_->values.data(), kept);
}

Result<Flow> FlowReader::find(std::uint64_t id, std::uint32_t proto) const {
  const dblp_flow_key key = {id, proto, 0};
  Flow flow{};
  for (int tries = 0; tries < kTries; ++tries) {
    if (bpf_map_lookup_elem(impl_->flows.get(), &key, &flow) != 0) return Error(errno, "flow");
    if (whole(flow)) return flow;
  }
  return Error(EAGAIN, "flow");
}

Result<FlowsState> FlowReader::state() const {
  const std::uint32_t zero = 0;
  const std::uint32_t one = 1;
  FlowsState state{};
  FlowsState counters{};
  if (bpf_map_lookup_elem(impl_->state.get(), &zero, &state) != 0 ||
      bpf_map_lookup_elem(impl_->state.get(), &one, &counters) != 0) {
    return Error(errno, "state");
  }
  state.made = counters.made;
  state.removed += counters.removed;
  state.refused = counters.refused;
  state.untold = counters.untold;
  state.unread = counters.unread;
  return state;
}

bool FlowReader::live() const {
  const auto lock = lock_folder(impl_->folder, false);
  return !lock && lock.error().code() == EBUSY;
}

Result<void> FlowReader::subscribe() {
  if (impl_->ring) return {};
  auto lock = lock_folder(impl_->folder + "/subscriber", true);
  if (!lock) {
    if (lock.error().code() == EBUSY) return Error(EBUSY, "another process gets the changes");
    return lock.error();
  }
  auto map = open_map(impl_->folder, changes_kind);
  if (!map) return map.error();
  impl_->ring.reset(ring_buffer__new(map->get(), Impl::on_change, impl_.get(), nullptr));
  if (!impl_->ring) return Error(errno, "ring buffer");
  impl_->ring_map = std::move(*map);
  impl_->subscriber = std::move(*lock);
  return {};
}

Result<int> FlowReader::changes(const std::function<void(const FlowChange&)>& handler,
                                int timeout_ms) {
  if (!impl_->ring) return Error(ENOTCONN, "not subscribed");
  impl_->handler = &handler;
  const int n = ring_buffer__poll(impl_->ring.get(), timeout_ms);
  impl_->handler = nullptr;
  if (n == -EINTR) return 0;
  if (n < 0) return Error(-n, "ring buffer");
  return n;
}

}  // namespace dblp
