// SPDX-License-Identifier: GPL-2.0

#include "table.hpp"

#include <fmt/core.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>

#include "output.hpp"

namespace flows {
namespace {

constexpr std::size_t kHistory = 12;

struct Column {
  const char* name;
  char key;
  std::function<bool(const Row&, const Row&)> before;
};

template <class Get>
auto larger(Get get) {
  return [get](const Row& a, const Row& b) { return get(a) > get(b); };
}

const std::array<Column, 8>& columns() {
  static const std::array<Column, 8> all = {{
      {"btlbw", 'b', larger([](const Row& r) { return r.flow.btlbw; })},
      {"rtprop", 't', larger([](const Row& r) { return r.flow.rtprop_ns; })},
      {"bdp", 'd', larger([](const Row& r) { return r.flow.bdp; })},
      {"rate", 'r', larger([](const Row& r) { return r.flow.rate; })},
      {"rtt", 's', larger([](const Row& r) { return r.flow.srtt_ns; })},
      {"loss", 'l', larger([](const Row& r) { return r.flow.loss_ppm; })},
      {"process", 'p', [](const Row& a, const Row& b) { return a.process < b.process; }},
      {"peer", 'a', [](const Row& a, const Row& b) { return a.peer < b.peer; }},
  }};
  return all;
}

void put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(STDOUT_FILENO, text.data(), text.size());
    if (n <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

void keep(std::deque<double>& values, double value) {
  values.push_back(value);
  if (values.size() > kHistory) values.pop_front();
}

}  // namespace

std::string sparkline(const std::deque<double>& values) {
  static constexpr std::array<const char*, 8> kBars = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const double most = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  std::string text(kHistory - std::min(kHistory, values.size()), ' ');
  for (const double v : values) {
    const auto level = most > 0 ? static_cast<std::size_t>(v / most * 7.0 + 0.5) : 0;
    text += kBars[std::min<std::size_t>(level, 7)];
  }
  return text;
}

bool sort_rows(std::vector<Row>& rows, const std::string& column, bool reverse) {
  for (const Column& c : columns()) {
    if (column != c.name) continue;
    std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
      return reverse ? c.before(b, a) : c.before(a, b);
    });
    return true;
  }
  return false;
}

Table::Table(std::string column, bool reverse) : column_(std::move(column)), reverse_(reverse) {
  ::tcgetattr(STDIN_FILENO, &before_);
  termios raw = before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  // Another screen, no cursor.
  put("\033[?1049h\033[?25l");
}

Table::~Table() {
  put("\033[?25h\033[?1049l");
  ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

void Table::draw(std::vector<Row> rows, const std::string& headline) {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) {
    size.ws_row = 24;
    size.ws_col = 80;
  }
  for (auto& [key, history] : history_) history.seen = false;
  for (const Row& row : rows) {
    History& history = history_[{row.flow.proto, row.flow.id}];
    history.seen = true;
    keep(history.rate, row.idle > 2 ? 0 : static_cast<double>(row.flow.rate));
    keep(history.rtt, static_cast<double>(row.flow.srtt_ns));
  }
  std::erase_if(history_, [](const auto& entry) { return !entry.second.seen; });
  sort_rows(rows, column_, reverse_);

  // Where there is no room the sparklines go first.
  const bool wide = size.ws_col >= 78 + 2 * (static_cast<int>(kHistory) + 1);
  std::string out = "\033[H" + headline + "\033[K\r\n";
  out += fmt::format("sort: {}{}; keys: ", column_, reverse_ ? ", reversed" : "");
  for (const Column& c : columns()) out += fmt::format("{} {}  ", c.key, c.name);
  out += "i reverse  q leave\033[K\r\n\033[7m" + text_header();
  if (wide) out += fmt::format(" {:12} {:12}", "RATE", "RTT");
  out += "\033[K\033[0m\r\n";
  const std::size_t room = size.ws_row > 4 ? size.ws_row - 4U : 1U;
  for (std::size_t i = 0; i < std::min(room, rows.size()); ++i) {
    const History& history = history_[{rows[i].flow.proto, rows[i].flow.id}];
    out += text_line(rows[i]);
    if (wide) out += " " + sparkline(history.rate) + " " + sparkline(history.rtt);
    out += "\033[K\r\n";
  }
  if (rows.size() > room) out += fmt::format("... {} more", rows.size() - room);
  put(out + "\033[J");
}

bool Table::wait(int timeout_ms) {
  pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  if (::poll(&input, 1, timeout_ms) <= 0) return true;
  char key = 0;
  if (::read(STDIN_FILENO, &key, 1) != 1 || key == 'q') return false;
  if (key == 'i') reverse_ = !reverse_;
  for (const Column& c : columns()) {
    if (key == c.key) column_ = c.name;
  }
  return true;
}

}  // namespace flows
