// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// Control messages of the sockets API, built and read without a socket.
#pragma once

#include <linux/dblp.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "dblp/map.hpp"
#include "dblp/result.hpp"
#include "dblp/send_options.hpp"

namespace dblp::detail {

// The control buffer of one sendmsg(): the parameters, and the protected
// ranges if there are any. EINVAL names the option that cannot be sent.
Result<std::vector<std::byte>> build_send_control(const SendOptions& options);

// Room for what a recvmsg() can carry: the information and the largest map.
inline constexpr std::size_t kReceiveControl =
    CMSG_SPACE(sizeof(dblp_recv_info)) + CMSG_SPACE(sizeof(dblp_map) + DBLP_MAX_SEGMENTS / 8);

struct ReceivedControl {
  std::optional<dblp_recv_info> info;
  // As it came; how many bytes of the message it covers only the caller knows.
  std::uint32_t map_segments = 0;
  std::uint32_t map_segment_size = 0;
  std::vector<std::uint64_t> map_words;
  bool map_truncated = false;
};

// Reads the control part of a message that recvmsg() filled in. A newer kernel's
// longer structures are cut, an older one's shorter ones are filled with zeros.
ReceivedControl parse_receive_control(const msghdr& message);

// The payload of a message flagged DBLP_MSG_NOTIFICATION; EBADMSG if it is too short
// to say what it is about.
Result<dblp_completion> parse_completion(std::span<const std::byte> payload);

}  // namespace dblp::detail
