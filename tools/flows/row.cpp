// SPDX-License-Identifier: GPL-2.0

#include "row.hpp"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

namespace flows {
namespace {

#ifndef SO_NETNS_COOKIE
constexpr int SO_NETNS_COOKIE = 71;
#endif

std::int64_t now_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

std::string address_text(const unsigned char (&bytes)[16], std::uint16_t port) {
  static constexpr unsigned char kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  char text[INET6_ADDRSTRLEN] = "";
  if (std::memcmp(bytes, kMapped, sizeof(kMapped)) == 0) {
    ::inet_ntop(AF_INET, bytes + sizeof(kMapped), text, sizeof(text));
    return fmt::format("{}:{}", text, port);
  }
  ::inet_ntop(AF_INET6, bytes, text, sizeof(text));
  return fmt::format("[{}]:{}", text, port);
}

std::string process_name(std::uint32_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

}  // namespace

std::string id_text(const dblp::Flow& flow) { return fmt::format("{:016x}", flow.id); }

const char* proto_name(std::uint32_t proto) { return proto == DBLP_FLOW_DBLP ? "dblp" : "tcp"; }

void Processes::scan() {
  by_inode_.clear();
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string pid_text = entry.path().filename();
    std::uint32_t pid = 0;
    const auto [end, bad] =
        std::from_chars(pid_text.data(), pid_text.data() + pid_text.size(), pid);
    if (bad != std::errc{} || *end != '\0') continue;
    const std::string folder = "/proc/" + pid_text + "/fd";
    DIR* dir = ::opendir(folder.c_str());
    if (dir == nullptr) continue;
    std::string name;
    while (const dirent* fd = ::readdir(dir)) {
      char target[64];
      const ssize_t n = ::readlinkat(::dirfd(dir), fd->d_name, target, sizeof(target) - 1);
      if (n <= 8 || std::strncmp(target, "socket:[", 8) != 0) continue;
      target[n] = '\0';
      if (name.empty()) name = process_name(pid);
      by_inode_[std::strtoull(target + 8, nullptr, 10)] = {pid, name};
    }
    ::closedir(dir);
  }
}

Processes::Process Processes::find(const dblp::Flow& flow) {
  if (flow.pid != 0) {
    auto name = process_name(flow.pid);
    if (!name.empty()) return {flow.pid, name};
  }
  if (flow.inode == 0) return {flow.pid, ""};
  auto found = by_inode_.find(flow.inode);
  if (found == by_inode_.end()) {
    const std::int64_t now = now_ns() / 1'000'000;
    if (now - scanned_ms_ > 1000) {
      scan();
      scanned_ms_ = now;
      found = by_inode_.find(flow.inode);
    }
  }
  return found == by_inode_.end() ? Process{flow.pid, ""} : found->second;
}

bool Filter::takes(const Row& row) const {
  if (port != 0 && row.flow.local_port != port && row.flow.peer_port != port) return false;
  if (netns != 0 && row.flow.netns_cookie != netns) return false;
  if (!proto.empty() && proto != proto_name(row.flow.proto)) return false;
  return process.empty() || process == row.process || process == std::to_string(row.pid);
}

std::vector<Row> make_rows(std::span<const dblp::Flow> flows, Processes& processes,
                           const Filter& filter) {
  std::vector<Row> rows;
  const auto now = static_cast<std::uint64_t>(now_ns());
  rows.reserve(flows.size());
  for (const dblp::Flow& flow : flows) {
    Row row{.flow = flow};
    auto process = processes.find(flow);
    row.pid = process.pid;
    row.process = std::move(process.name);
    row.local = address_text(flow.local, flow.local_port);
    row.peer = address_text(flow.peer, flow.peer_port);
    row.idle = now > flow.last_ns ? static_cast<double>(now - flow.last_ns) / 1e9 : 0;
    if (filter.takes(row)) rows.push_back(std::move(row));
  }
  return rows;
}

dblp::Result<std::uint64_t> netns_cookie(const std::string& text) {
  std::uint64_t cookie = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), cookie);
  if (bad == std::errc{} && end == text.data() + text.size() && cookie != 0) return cookie;

  int error = 0;
  const std::string path = "/run/netns/" + text;
  // A thread of its own, which the namespace does not outlive.
  std::thread([&] {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 || ::setns(fd, CLONE_NEWNET) != 0) {
      error = errno;
      if (fd >= 0) ::close(fd);
      return;
    }
    ::close(fd);
    const int s = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t size = sizeof(cookie);
    if (s < 0 || ::getsockopt(s, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &size) != 0) error = errno;
    if (s >= 0) ::close(s);
  }).join();
  if (error != 0) return dblp::Error(error, "network namespace " + path);
  return cookie;
}

}  // namespace flows
