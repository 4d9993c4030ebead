// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause

#include "io/control.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

namespace dblp::detail {
namespace {

Result<dblp_send_params> params_of(const SendOptions& options) {
  const auto ppm = options.tolerance.ppm();
  if (!ppm) return Error(EINVAL, "tolerance not within 0 and 1");
  const auto deadline = options.deadline.count();
  if (deadline < 0 || deadline > std::numeric_limits<std::uint32_t>::max())
    return Error(EINVAL, "deadline out of range");

  dblp_send_params params{};
  params.tolerance_ppm = *ppm;
  params.mode = static_cast<std::uint8_t>(options.mode);
  params.phase = options.phase;
  params.priority = options.priority;
  params.flags = options.ordered ? DBLP_SEND_ORDERED : 0;
  params.deadline_us = static_cast<std::uint32_t>(deadline);
  params.max_rounds = options.max_rounds;
  params.group = options.group;
  params.tag = options.tag;
  return params;
}

// CMSG_NXTHDR of glibc reads the length of the next header, which is not there
// yet while a buffer is being filled: the position is kept here instead.
std::byte* put(std::byte* at, int type, const void* data, std::size_t length) {
  auto* header = reinterpret_cast<cmsghdr*>(at);
  header->cmsg_level = SOL_DBLP;
  header->cmsg_type = type;
  header->cmsg_len = CMSG_LEN(length);
  std::memcpy(CMSG_DATA(header), data, length);
  return at + CMSG_SPACE(length);
}

template <class T>
T read_as_much(const void* data, std::size_t length) {
  T value{};
  std::memcpy(&value, data, std::min(length, sizeof(T)));
  return value;
}

void read_map(const unsigned char* data, std::size_t length, ReceivedControl& control) {
  dblp_map head{};
  if (length < sizeof(head)) {
    control.map_truncated = true;
    return;
  }
  std::memcpy(&head, data, sizeof(head));
  if (head.nr_segs > DBLP_MAX_SEGMENTS) {
    control.map_truncated = true;
    return;
  }
  const std::size_t expected = (std::size_t{head.nr_segs} + 63) / 64;
  const std::size_t words = std::min((length - sizeof(head)) / sizeof(std::uint64_t), expected);
  control.map_segments = head.nr_segs;
  control.map_segment_size = head.seg_size;
  control.map_words.resize(words);
  if (words > 0)
    std::memcpy(control.map_words.data(), data + sizeof(head), words * sizeof(std::uint64_t));
  if (words < expected) control.map_truncated = true;
}

}  // namespace

Result<std::vector<std::byte>> build_send_control(const SendOptions& options) {
  auto params = params_of(options);
  if (!params) return params.error();

  static_assert(sizeof(Range) == sizeof(dblp_range));
  static_assert(offsetof(Range, offset) == offsetof(dblp_range, off));
  static_assert(offsetof(Range, length) == offsetof(dblp_range, len));
  const std::size_t protect = options.protect.size() * sizeof(dblp_range);

  std::vector<std::byte> buffer(CMSG_SPACE(sizeof(dblp_send_params)) +
                                (protect ? CMSG_SPACE(protect) : 0));
  auto* at = put(buffer.data(), DBLP_CMSG_SEND, &*params, sizeof(*params));
  if (protect) put(at, DBLP_CMSG_PROTECT, options.protect.data(), protect);
  return buffer;
}

ReceivedControl parse_receive_control(const msghdr& message) {
  ReceivedControl control;

  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(const_cast<msghdr*>(&message), header)) {
    if (header->cmsg_level != SOL_DBLP || header->cmsg_len < CMSG_LEN(0)) continue;
    const std::size_t length = header->cmsg_len - CMSG_LEN(0);
    if (header->cmsg_type == DBLP_CMSG_RECV)
      control.info = read_as_much<dblp_recv_info>(CMSG_DATA(header), length);
    else if (header->cmsg_type == DBLP_CMSG_MAP)
      read_map(CMSG_DATA(header), length, control);
  }
  if ((message.msg_flags & MSG_CTRUNC) != 0) control.map_truncated = true;
  return control;
}

Result<dblp_completion> parse_completion(std::span<const std::byte> payload) {
  if (payload.size() < offsetof(dblp_completion, reserved2))
    return Error(EBADMSG, "completion cut short");
  return read_as_much<dblp_completion>(payload.data(), payload.size());
}

}  // namespace dblp::detail
