// SPDX-License-Identifier: GPL-2.0
//
// SCTP, fully and partly reliable: an association with each peer, messages cut into
// fragments that are not ordered among each other, so that no fragment waits for
// another one. Partly reliable, a fragment is one packet, because what SCTP gives up
// is a fragment.
//
// Linux' defaults are those of signalling traffic: a retransmission timeout of at
// least 1 s, bursts of four packets. Here they are what TCP has.

// Needed by linux/sctp.h, which does not say so.
#include <netinet/in.h>
#include <sys/socket.h>

#include <fmt/format.h>
#include <linux/sctp.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>

#include "assembly.hpp"
#include "failure.hpp"
#include "mesh.hpp"
#include "net.hpp"
#include "transport.hpp"

namespace perf {
namespace {

constexpr int kLevel = IPPROTO_SCTP;
// Not named by glibc.
constexpr int kNotification = 0x8000;
constexpr std::uint64_t kLeastBuffer = std::uint64_t{16} << 20;
constexpr std::uint64_t kMostBuffer = std::uint64_t{1} << 29;
constexpr std::uint16_t kLargeFragment = 60'000;
// What TCP has.
constexpr std::uint32_t kInitialTimeoutMs = 1000;
constexpr std::uint32_t kLeastTimeoutMs = 200;
constexpr std::uint32_t kSackDelayMs = 40;

template <class T>
void set(int fd, int option, const T& value, const char* what) {
  if (setsockopt(fd, kLevel, option, &value, sizeof(value)) != 0) fail_errno(what);
}

Fd make_socket(const TransportSetup& setup, int family) {
  const auto& options = setup.options;
  Fd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_SCTP));
  if (!fd && (errno == EPROTONOSUPPORT || errno == ESOCKTNOSUPPORT))
    throw Failure(options.name + ": the kernel has no SCTP: modprobe sctp");
  if (!fd) fail_errno("socket");
  set(fd.get(), SCTP_NODELAY, options.delay_small ? 0 : 1, "SCTP_NODELAY");
  set(fd.get(), SCTP_RTOINFO,
      sctp_rtoinfo{.srto_initial = kInitialTimeoutMs, .srto_max = 0, .srto_min = kLeastTimeoutMs},
      "SCTP_RTOINFO");
  set(fd.get(), SCTP_MAX_BURST, sctp_assoc_value{.assoc_id = 0, .assoc_value = 0},
      "SCTP_MAX_BURST");
  set(fd.get(), SCTP_DELAYED_SACK,
      sctp_sack_info{.sack_assoc_id = 0, .sack_delay = kSackDelayMs, .sack_freq = 2},
      "SCTP_DELAYED_SACK");
  if (options.partial() != Partial::kNone)
    set(fd.get(), SCTP_PR_SUPPORTED, sctp_assoc_value{.assoc_id = 0, .assoc_value = 1},
        "SCTP_PR_SUPPORTED");
  const std::uint64_t room = std::clamp(2 * setup.max_message, kLeastBuffer, kMostBuffer);
  set_buffers(fd.get(), options.send_buffer != 0 ? options.send_buffer : room,
              options.receive_buffer != 0 ? options.receive_buffer : room);
  return fd;
}

class Association {
 public:
  Association(Fd fd, std::size_t peer, const TransportSetup& setup)
      : fd_(std::move(fd)),
        setup_(setup),
        assembly_(peer, setup.max_message, setup.options.eager),
        partial_(setup.options.partial()) {
    sctp_status status{};
    socklen_t length = sizeof(status);
    if (getsockopt(this->fd(), kLevel, SCTP_STATUS, &status, &length) != 0)
      fail_errno("SCTP_STATUS");
    packet_ = status.sstat_fragmentation_point;
    std::size_t size = partial_ == Partial::kNone ? kLargeFragment : packet_;
    if (setup.options.fragment_bytes != 0) size = setup.options.fragment_bytes + sizeof(Fragment);
    if (partial_ != Partial::kNone) {
      size = std::min<std::size_t>(size, packet_);
      // Tells that all has been acknowledged or given up.
      set(this->fd(), SCTP_EVENT,
          sctp_event{.se_assoc_id = 0, .se_type = SCTP_SENDER_DRY_EVENT, .se_on = 1}, "SCTP_EVENT");
    }
    unit_ = static_cast<std::uint16_t>(std::min<std::size_t>(size, 65'000) - sizeof(Fragment));
    in_.resize(std::size_t{1} << 16);
  }

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] std::size_t queued() const { return queue_.size(); }
  [[nodiscard]] std::size_t packet() const { return packet_; }

  void push(const Outgoing& message) {
    queue_.push_back({message, 0});
    flush();
  }

  // Hands over what the socket takes now.
  void flush() {
    while (!queue_.empty()) {
      auto& item = queue_.front();
      const auto& data = item.message.data;
      Fragment fragment = make_fragment(setup_, item.message, unit_, Fragment::kData);
      while (item.sent < data.size()) {
        const auto part =
            data.subspan(item.sent, std::min<std::size_t>(unit_, data.size() - item.sent));
        fragment.offset = static_cast<std::uint32_t>(item.sent);
        if (!transmit(fragment, part)) return;
        item.sent += part.size();
      }
      if (partial_ != Partial::kNone) {
        fragment.kind = Fragment::kSent;
        if (!transmit(fragment, {})) return;
        fragment.kind = Fragment::kEnd;
        ends_.push_back(fragment);
      }
      queue_.pop_front();
    }
  }

  // Reads on, up to the end of a message.
  std::optional<Arrival> take() {
    for (;;) {
      if (auto arrival = assembly_.take()) return arrival;
      if (!read()) return std::nullopt;
    }
  }

  // Fragments sent again.
  [[nodiscard]] std::uint64_t repeated() const {
    sctp_assoc_stats stats{};
    socklen_t length = sizeof(stats);
    if (getsockopt(fd(), kLevel, SCTP_GET_ASSOC_STATS, &stats, &length) != 0) return 0;
    return stats.sas_rtxchunks;
  }

 private:
  struct Item {
    Outgoing message;
    std::size_t sent;
  };

  // Returns false if the socket takes no more now.
  bool transmit(const Fragment& fragment, std::span<const std::byte> payload) {
    std::array<iovec, 2> parts{{{const_cast<Fragment*>(&fragment), sizeof(fragment)},
                                {const_cast<std::byte*>(payload.data()), payload.size()}}};
    constexpr std::size_t kRoom =
        CMSG_SPACE(sizeof(sctp_sndinfo)) + CMSG_SPACE(sizeof(sctp_prinfo));
    alignas(cmsghdr) std::array<std::byte, kRoom> control{};
    msghdr header{};
    header.msg_iov = parts.data();
    header.msg_iovlen = payload.empty() ? 1 : 2;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    put(c, SCTP_SNDINFO, sctp_sndinfo{.snd_sid = 0, .snd_flags = SCTP_UNORDERED});
    const bool may_be_lost = partial_ != Partial::kNone && fragment.kind == Fragment::kData;
    sctp_prinfo policy{.pr_policy = SCTP_PR_SCTP_NONE, .pr_value = 0};
    if (may_be_lost && partial_ == Partial::kRtx)
      policy = {.pr_policy = SCTP_PR_SCTP_RTX, .pr_value = setup_.options.max_rtx};
    else if (may_be_lost && setup_.options.deadline_us != 0)
      policy = {.pr_policy = SCTP_PR_SCTP_TTL,
                .pr_value = (setup_.options.deadline_us + 999) / 1000};
    put(CMSG_NXTHDR(&header, c), SCTP_PRINFO, policy);
    for (;;) {
      if (::sendmsg(fd(), &header, MSG_NOSIGNAL) >= 0) return true;
      if (errno == EAGAIN) return false;
      if (errno != EINTR) failed();
    }
  }

  template <class T>
  static void put(cmsghdr* c, int type, const T& value) {
    c->cmsg_level = kLevel;
    c->cmsg_type = type;
    c->cmsg_len = CMSG_LEN(sizeof(value));
    std::memcpy(CMSG_DATA(c), &value, sizeof(value));
  }

  // Takes in what one call brings. False if there was nothing.
  bool read() {
    iovec part{in_.data() + filled_, in_.size() - filled_};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    const ssize_t got = ::recvmsg(fd(), &header, 0);
    if (got < 0) {
      if (errno == EAGAIN) return false;
      if (errno == EINTR) return true;
      failed();
    }
    if (got == 0) throw PeerGone("sctp: the peer closed the association");
    if ((header.msg_flags & kNotification) != 0) {
      std::uint16_t type = 0;
      std::memcpy(&type, in_.data() + filled_, sizeof(type));
      if (type == SCTP_SENDER_DRY_EVENT) end_messages();
      return true;
    }
    filled_ += static_cast<std::size_t>(got);
    // Under pressure the kernel hands a large fragment over in pieces.
    if ((header.msg_flags & MSG_EOR) == 0) {
      if (filled_ == in_.size()) throw Failure("sctp: the peer sends too large a fragment");
      return true;
    }
    const auto whole = std::span<const std::byte>(in_).first(std::exchange(filled_, 0));
    Fragment fragment{};
    if (whole.size() < sizeof(fragment)) throw Failure("sctp: the peer sends no fragment");
    std::memcpy(&fragment, whole.data(), sizeof(fragment));
    if (!assembly_.add(fragment, whole.subspan(sizeof(fragment)), now_ns()))
      throw Failure("sctp: the peer sends an impossible fragment");
    return true;
  }

  void end_messages() {
    while (!ends_.empty() && transmit(ends_.front(), {})) ends_.pop_front();
  }

  [[noreturn]] static void failed() {
    if (errno == ECONNRESET || errno == EPIPE || errno == ENOTCONN)
      throw PeerGone("sctp: the peer closed the association");
    fail_errno("sctp");
  }

  Fd fd_;
  const TransportSetup& setup_;
  Assembly assembly_;
  Partial partial_;
  std::size_t packet_ = 0;
  std::uint16_t unit_ = 0;
  std::deque<Item> queue_;
  std::deque<Fragment> ends_;
  std::vector<std::byte> in_;
  std::size_t filled_ = 0;
};

class SctpTransport final : public Transport {
 public:
  explicit SctpTransport(const TransportSetup& setup)
      : setup_(setup), listener_(make_socket(setup, setup.local.family())) {
    if (::bind(listener_.get(), setup.local.data(), setup.local.size()) != 0)
      fail_errno("bind to " + host_of(setup.local));
    if (::listen(listener_.get(), SOMAXCONN) != 0) fail_errno("listen");
    port_ = local_address(listener_.get()).port();
  }

  [[nodiscard]] std::uint16_t port() const override { return port_; }

  void connect(std::span<const dblp::Address> ranks, std::span<const std::size_t> links,
               std::int64_t until_ns, const Waiter& wait) override {
    const Mesh mesh{setup_.rank, setup_.token, [this](int family) {
                      Fd fd = make_socket(setup_, family);
                      if (::bind(fd.get(), setup_.local.data(), setup_.local.size()) != 0)
                        fail_errno("bind to " + host_of(setup_.local));
                      return fd;
                    }};
    auto fds = connect_mesh(mesh, listener_.get(), ranks, links, until_ns, wait);
    by_peer_.assign(setup_.ranks, nullptr);
    for (std::size_t i = 0; i < links.size(); ++i) {
      associations_.push_back(std::make_unique<Association>(std::move(fds[i]), links[i], setup_));
      by_peer_[links[i]] = associations_.back().get();
    }
    listener_.reset();
  }

  void send(const Outgoing& message) override {
    offered_ += message.data.size();
    by_peer_[message.peer]->push(message);
  }

  std::optional<Arrival> take() override {
    for (auto& association : associations_) association->flush();
    for (std::size_t i = 0; i < associations_.size(); ++i) {
      auto& association = *associations_[turn_];
      turn_ = (turn_ + 1) % associations_.size();
      if (auto arrival = association.take()) return arrival;
    }
    return std::nullopt;
  }

  [[nodiscard]] std::size_t unfinished() const override {
    std::size_t count = 0;
    for (const auto& association : associations_) count += association->queued();
    return count;
  }

  void watch(std::vector<pollfd>& fds) const override {
    for (const auto& association : associations_)
      fds.push_back({association->fd(),
                     static_cast<short>(association->queued() == 0 ? POLLIN : POLLIN | POLLOUT),
                     0});
  }

  [[nodiscard]] Traffic traffic() override {
    Traffic traffic{.offered = offered_, .sent = {}, .retransmitted = 0, .tolerated = {}};
    for (const auto& association : associations_)
      *traffic.retransmitted += association->repeated() * association->packet();
    return traffic;
  }

 private:
  TransportSetup setup_;
  Fd listener_;
  std::uint16_t port_ = 0;
  std::vector<std::unique_ptr<Association>> associations_;
  std::vector<Association*> by_peer_;
  std::size_t turn_ = 0;
  std::uint64_t offered_ = 0;
};

}  // namespace

std::unique_ptr<Transport> open_sctp(const TransportSetup& setup) {
  return std::make_unique<SctpTransport>(setup);
}

}  // namespace perf
