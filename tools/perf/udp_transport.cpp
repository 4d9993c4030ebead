// SPDX-License-Identifier: GPL-2.0
//
// UDP: datagrams as large as the path takes, nothing repaired. What must not get lost
// is that a message is over: that is said until it is answered. Bursts are handed over
// and taken in one piece where the kernel can (UDP_SEGMENT, UDP_GRO).

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>

#include "assembly.hpp"
#include "failure.hpp"
#include "net.hpp"
#include "transport.hpp"

namespace perf {
namespace {

constexpr std::uint64_t kBuffer = std::uint64_t{64} << 20;
constexpr std::size_t kMaxDatagram = 65000;
constexpr std::size_t kMaxSegments = 64;  // of one UDP_SEGMENT call
constexpr std::size_t kHeaders4 = 28;
constexpr std::size_t kHeaders6 = 48;
constexpr std::int64_t kFirstWait = 50 * kMillisecond;
constexpr std::int64_t kLeastWait = kMillisecond;
constexpr std::int64_t kMostWait = kSecond;
constexpr std::int64_t kPatience = 30 * kSecond;
// A burst at a given rate takes no longer than this.
constexpr std::int64_t kBurst = kMillisecond / 4;

std::size_t path_mtu(const dblp::Address& to) {
  Fd fd(::socket(to.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) fail_errno("socket");
  if (::connect(fd.get(), to.data(), to.size()) != 0) fail_errno("udp: " + to.to_string());
  int mtu = 0;
  socklen_t length = sizeof(mtu);
  const bool v6 = to.family() == AF_INET6;
  if (getsockopt(fd.get(), v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_MTU : IP_MTU, &mtu, &length) !=
      0)
    fail_errno("udp: IP_MTU");
  return static_cast<std::size_t>(mtu) - (v6 ? kHeaders6 : kHeaders4);
}

class UdpTransport final : public Transport {
 public:
  explicit UdpTransport(const TransportSetup& setup)
      : setup_(setup),
        fd_(::socket(setup.local.family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
        out_(kMaxDatagram),
        in_(std::size_t{1} << 16) {
    if (!fd_) fail_errno("socket");
    const auto& options = setup.options;
    set_buffers(fd_.get(), options.send_buffer,
                options.receive_buffer != 0 ? options.receive_buffer : kBuffer);
    set_option(fd_.get(), IPPROTO_UDP, UDP_GRO, 1, "UDP_GRO");
    if (::bind(fd_.get(), setup.local.data(), setup.local.size()) != 0)
      fail_errno("bind to " + host_of(setup.local));
  }

  [[nodiscard]] std::uint16_t port() const override { return local_address(fd_.get()).port(); }

  void connect(std::span<const dblp::Address> ranks, std::span<const std::size_t> links,
               std::int64_t /*until_ns*/, const Waiter& /*wait*/) override {
    addresses_.assign(ranks.begin(), ranks.end());
    std::size_t datagram = setup_.options.fragment_bytes != 0
                               ? setup_.options.fragment_bytes + sizeof(Fragment)
                               : kMaxDatagram;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
      peers_.emplace_back(Assembly(rank, setup_.max_message, setup_.options.eager));
    for (const auto link : links) datagram = std::min(datagram, path_mtu(ranks[link]));
    unit_ = static_cast<std::uint16_t>(datagram - sizeof(Fragment));
  }

  void send(const Outgoing& message) override {
    traffic_.offered += message.data.size();
    queue_.push_back(message);
  }

  std::optional<Arrival> take() override {
    repeat_ends();
    flush();
    for (;;) {
      for (std::size_t i = 0; i < peers_.size(); ++i) {
        turn_ = (turn_ + 1) % peers_.size();
        if (auto arrival = peers_[turn_].assembly.take()) return arrival;
      }
      if (!receive()) return std::nullopt;
    }
  }

  [[nodiscard]] std::size_t unfinished() const override { return queue_.size() + ends_.size(); }

  void watch(std::vector<pollfd>& fds) const override {
    fds.push_back({fd_.get(), static_cast<short>(blocked_ ? POLLIN | POLLOUT : POLLIN), 0});
  }

  [[nodiscard]] std::int64_t wake_ns() const override {
    std::int64_t wake = queue_.empty() || blocked_ ? kNever : next_ns_;
    for (const auto& end : ends_) wake = std::min(wake, end.again_ns);
    return wake;
  }

  [[nodiscard]] Traffic traffic() override { return traffic_; }

 private:
  struct Peer {
    explicit Peer(Assembly made) : assembly(std::move(made)) {}
    Assembly assembly;
    std::int64_t wait_ns = kFirstWait;
  };

  // That a message is over, until it is answered.
  struct End {
    std::size_t peer;
    Fragment fragment;
    std::int64_t first_ns;
    std::int64_t again_ns;
    std::int64_t wait_ns;
    bool repeated;
  };

  // Returns false if the socket takes no more now.
  bool transmit(std::size_t peer, std::span<const std::byte> bytes, std::size_t segment) {
    iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(std::uint16_t))> control{};
    msghdr header{};
    header.msg_name = const_cast<sockaddr*>(addresses_[peer].data());
    header.msg_namelen = addresses_[peer].size();
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (bytes.size() > segment) {
      header.msg_control = control.data();
      header.msg_controllen = control.size();
      cmsghdr* first = CMSG_FIRSTHDR(&header);
      first->cmsg_level = IPPROTO_UDP;
      first->cmsg_type = UDP_SEGMENT;
      first->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
      const auto size = static_cast<std::uint16_t>(segment);
      std::memcpy(CMSG_DATA(first), &size, sizeof(size));
    }
    for (;;) {
      if (::sendmsg(fd_.get(), &header, MSG_NOSIGNAL) >= 0) return true;
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return false;
      // A full device queue loses packets as any other on the way may.
      if (errno == ENOBUFS) return true;
      // The answer to an earlier packet; the peer's end of the control connection
      // tells what there is to tell.
      if (errno == ECONNREFUSED) continue;
      fail_errno("udp: " + addresses_[peer].to_string());
    }
  }

  void flush() {
    blocked_ = false;
    while (!queue_.empty()) {
      if (setup_.options.rate != 0 && now_ns() < next_ns_) return;
      if (!send_burst(queue_.front())) {
        blocked_ = true;
        return;
      }
      const Outgoing& message = queue_.front();
      if (sent_ < message.data.size()) continue;
      const std::int64_t now = now_ns();
      auto& peer = peers_[message.peer];
      ends_.push_back({message.peer, make_fragment(setup_, message, unit_, Fragment::kEnd), now,
                       now, peer.wait_ns, false});
      send_end(ends_.back(), now);
      sent_ = 0;
      queue_.pop_front();
    }
  }

  [[nodiscard]] std::size_t burst_segments() const {
    const std::size_t datagram = unit_ + sizeof(Fragment);
    std::size_t most = std::min(kMaxSegments, std::max<std::size_t>(1, kMaxDatagram / datagram));
    if (setup_.options.rate != 0)
      most = std::clamp<std::size_t>(setup_.options.rate * kBurst / kSecond / datagram, 1, most);
    return most;
  }

  bool send_burst(const Outgoing& message) {
    std::size_t offset = sent_;
    std::size_t filled = 0;
    Fragment fragment = make_fragment(setup_, message, unit_, Fragment::kData);
    for (std::size_t left = burst_segments(); left > 0 && offset < message.data.size(); --left) {
      const std::size_t length = std::min<std::size_t>(unit_, message.data.size() - offset);
      fragment.offset = static_cast<std::uint32_t>(offset);
      std::memcpy(out_.data() + filled, &fragment, sizeof(fragment));
      std::memcpy(out_.data() + filled + sizeof(fragment), message.data.data() + offset, length);
      filled += sizeof(fragment) + length;
      offset += length;
    }
    if (!transmit(message.peer, std::span(out_).first(filled), unit_ + sizeof(Fragment)))
      return false;
    *traffic_.sent += offset - sent_;
    sent_ = offset;
    if (setup_.options.rate != 0)
      next_ns_ = std::max(next_ns_, now_ns() - kBurst) +
                 static_cast<std::int64_t>(filled * static_cast<std::uint64_t>(kSecond) /
                                           setup_.options.rate);
    return true;
  }

  void send_end(End& end, std::int64_t now) {
    (void)transmit(end.peer, std::as_bytes(std::span(&end.fragment, 1)), sizeof(Fragment));
    end.again_ns = now + end.wait_ns;
    end.wait_ns = std::min(2 * end.wait_ns, kMostWait);
  }

  void repeat_ends() {
    if (ends_.empty()) return;
    const std::int64_t now = now_ns();
    for (auto& end : ends_) {
      if (now < end.again_ns) continue;
      if (now - end.first_ns > kPatience)
        throw PeerGone("udp: no answer from " + addresses_[end.peer].to_string());
      end.repeated = true;
      send_end(end, now);
    }
  }

  // Takes in what one call of the kernel brings. False if there was nothing.
  bool receive() {
    iovec part{in_.data(), in_.size()};
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
    sockaddr_storage name{};
    msghdr header{};
    header.msg_name = &name;
    header.msg_namelen = sizeof(name);
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    const ssize_t got = ::recvmsg(fd_.get(), &header, 0);
    if (got < 0) {
      if (errno == EAGAIN) return false;
      if (errno == EINTR || errno == ECONNREFUSED) return true;
      fail_errno("udp: recvmsg");
    }
    const auto from = dblp::Address::from(reinterpret_cast<sockaddr*>(&name), header.msg_namelen);
    const auto found = from ? std::ranges::find(addresses_, *from) : addresses_.end();
    if (found == addresses_.end()) return true;
    int segment = static_cast<int>(got);
    for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c))
      if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO)
        std::memcpy(&segment, CMSG_DATA(c), sizeof(segment));
    if (segment <= 0) return true;
    auto rest = std::span<const std::byte>(in_).first(static_cast<std::size_t>(got));
    const auto peer = static_cast<std::size_t>(found - addresses_.begin());
    const std::int64_t now = now_ns();
    while (!rest.empty()) {
      const auto datagram = rest.first(std::min(rest.size(), static_cast<std::size_t>(segment)));
      rest = rest.subspan(datagram.size());
      take_datagram(peer, datagram, now);
    }
    return true;
  }

  void take_datagram(std::size_t peer, std::span<const std::byte> datagram, std::int64_t now) {
    Fragment fragment{};
    if (datagram.size() < sizeof(fragment)) return;
    std::memcpy(&fragment, datagram.data(), sizeof(fragment));
    if (fragment.token != setup_.token) return;
    if (fragment.kind == Fragment::kAnswer) {
      answered(peer, fragment.tag, now);
      return;
    }
    const bool valid = peers_[peer].assembly.add(fragment, datagram.subspan(sizeof(fragment)), now);
    if (!valid || fragment.kind != Fragment::kEnd) return;
    fragment.kind = Fragment::kAnswer;
    // If it gets lost, the question comes again.
    (void)transmit(peer, std::as_bytes(std::span(&fragment, 1)), sizeof(fragment));
  }

  void answered(std::size_t peer, std::uint64_t tag, std::int64_t now) {
    const auto end = std::ranges::find_if(
        ends_, [&](const End& e) { return e.peer == peer && e.fragment.tag == tag; });
    if (end == ends_.end()) return;
    if (!end->repeated)
      peers_[peer].wait_ns = std::clamp(2 * (now - end->first_ns), kLeastWait, kMostWait);
    ends_.erase(end);
  }

  TransportSetup setup_;
  Fd fd_;
  std::vector<dblp::Address> addresses_;
  std::deque<Peer> peers_;
  std::uint16_t unit_ = 0;
  std::deque<Outgoing> queue_;
  std::size_t sent_ = 0;  // of the first in the queue
  bool blocked_ = false;
  std::int64_t next_ns_ = 0;  // at a given rate
  std::deque<End> ends_;
  std::vector<std::byte> out_;
  std::vector<std::byte> in_;
  std::size_t turn_ = 0;
  Traffic traffic_{.sent = 0, .retransmitted = 0, .tolerated = {}};
};

}  // namespace

std::unique_ptr<Transport> open_udp(const TransportSetup& setup) {
  return std::make_unique<UdpTransport>(setup);
}

}  // namespace perf
