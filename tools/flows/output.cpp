// SPDX-License-Identifier: GPL-2.0

#include "output.hpp"

#include <fmt/core.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "collector.hpp"

namespace flows {
namespace {

constexpr int kJsonVersion = 1;

nlohmann::ordered_json json_of(const Row& row) {
  const dblp::Flow& f = row.flow;
  nlohmann::ordered_json j = {
      {"id", id_text(f)},
      {"proto", proto_name(f.proto)},
      {"source", source_name(f.source)},
      {"local", row.local},
      {"peer", row.peer},
      {"netns_cookie", f.netns_cookie},
      {"inode", f.inode},
      {"pid", row.pid},
      {"process", row.process},
      {"first_ns", f.first_ns},
      {"last_ns", f.last_ns},
      {"samples", f.samples},
      {"btlbw_bytes_per_s", f.btlbw},
      {"rtprop_ns", f.rtprop_ns},
      {"bdp_bytes", f.bdp},
      {"rate_bytes_per_s", f.rate},
      {"app_limited", f.app_limited != 0},
      {"rtt_ns", f.rtt_ns},
      {"srtt_ns", f.srtt_ns},
      {"inflight_bytes", f.inflight},
      {"inflight_cap_bytes", f.inflight_cap},
      {"pacing_bytes_per_s", f.pacing_rate},
      {"delivered_bytes", f.delivered},
      {"loss_ppm", f.loss_ppm},
      {"ecn_ppm", f.ecn_ppm},
  };
  if (f.proto == DBLP_FLOW_DBLP) {
    j["phase"] = f.phase;
    j["tolerance_ppm"] = f.tolerance_ppm;
  } else {
    j["congestion"] = std::string(f.cc, ::strnlen(f.cc, sizeof(f.cc)));
  }
  return j;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string short_number(double value) {
  static constexpr char kUnits[] = {' ', 'k', 'M', 'G', 'T'};
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < sizeof(kUnits)) {
    value /= 1000;
    ++unit;
  }
  std::string text = fmt::format("{:.{}f}", value, value < 99.95 && unit > 0 ? 1 : 0);
  if (unit > 0) text += kUnits[unit];
  return text;
}

std::string text_header() {
  return fmt::format("{:5} {:8.8} {:21} {:>6} {:>7} {:>6} {:>6} {:>6} {:>5}", "PROTO", "PROCESS",
                     "PEER", "BTLBW", "RTPROP", "BDP", "RATE", "RTT", "LOSS%");
}

std::string text_line(const Row& row) {
  const dblp::Flow& f = row.flow;
  return fmt::format(
      "{:5} {:8.8} {:21} {:>6} {:>7.1f} {:>6} {:>6} {:>6.1f} {:>5.1f}", proto_name(f.proto),
      row.process.empty() ? "-" : row.process, row.peer,
      short_number(8.0 * static_cast<double>(f.btlbw)), static_cast<double>(f.rtprop_ns) / 1e6,
      short_number(static_cast<double>(f.bdp)), short_number(8.0 * static_cast<double>(f.rate)),
      static_cast<double>(f.srtt_ns) / 1e6, f.loss_ppm / 1e4);
}

std::string json_text(const std::vector<Row>& rows, const dblp::FlowsState& state, bool live,
                      int indent) {
  auto flows = nlohmann::ordered_json::array();
  for (const Row& row : rows) flows.push_back(json_of(row));
  const nlohmann::ordered_json all = {
      {"version", kJsonVersion},
      {"live", live},
      {"pid", state.pid},
      {"rtprop_window_ns", state.rtprop_window_ns},
      {"max_flows", state.max_flows},
      {"dblp_source", source_name(state.dblp_source)},
      {"tcp_source", source_name(state.tcp_source)},
      {"made", state.made},
      {"removed", state.removed},
      {"refused", state.refused},
      {"untold", state.untold},
      {"unread", state.unread},
      {"flows", std::move(flows)},
  };
  return all.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string prometheus_text(const std::vector<Row>& rows, const dblp::FlowsState& state,
                            bool live) {
  struct Metric {
    const char* name;
    const char* help;
    double (*value)(const dblp::Flow&);
  };
  static constexpr Metric kMetrics[] = {
      {"btlbw_bytes_per_second", "Largest delivery rate of ten round trips.",
       [](const dblp::Flow& f) { return static_cast<double>(f.btlbw); }},
      {"rtprop_seconds", "Shortest round trip of the window.",
       [](const dblp::Flow& f) { return static_cast<double>(f.rtprop_ns) / 1e9; }},
      {"bdp_bytes", "Product of the two.",
       [](const dblp::Flow& f) { return static_cast<double>(f.bdp); }},
      {"rate_bytes_per_second", "Latest delivery rate.",
       [](const dblp::Flow& f) { return static_cast<double>(f.rate); }},
      {"srtt_seconds", "Smoothed round trip.",
       [](const dblp::Flow& f) { return static_cast<double>(f.srtt_ns) / 1e9; }},
      {"inflight_bytes", "Bytes in flight.",
       [](const dblp::Flow& f) { return static_cast<double>(f.inflight); }},
      {"loss_ratio", "Share lost in the last one to two seconds.",
       [](const dblp::Flow& f) { return f.loss_ppm / 1e6; }},
      {"ecn_ratio", "Share marked in the last one to two seconds.",
       [](const dblp::Flow& f) { return f.ecn_ppm / 1e6; }},
  };
  std::string out;
  auto to = std::back_inserter(out);
  for (const Metric& metric : kMetrics) {
    fmt::format_to(to, "# HELP dblp_flow_{0} {1}\n# TYPE dblp_flow_{0} gauge\n", metric.name,
                   metric.help);
    for (const Row& row : rows) {
      fmt::format_to(to,
                     "dblp_flow_{}{{proto=\"{}\",id=\"{}\",local=\"{}\",peer=\"{}\","
                     "process=\"{}\",netns=\"{}\"}} {}\n",
                     metric.name, proto_name(row.flow.proto), id_text(row.flow), row.local,
                     row.peer, escaped(row.process), row.flow.netns_cookie, metric.value(row.flow));
    }
  }
  const auto plain = [&](const char* name, const char* type, const char* help,
                         std::uint64_t value) {
    fmt::format_to(to, "# HELP dblp_flows_{0} {1}\n# TYPE dblp_flows_{0} {2}\ndblp_flows_{0} {3}\n",
                   name, help, type, value);
  };
  plain("live", "gauge", "Whether the table is being filled.", live ? 1 : 0);
  plain("made_total", "counter", "Flows that entered the table.", state.made);
  plain("removed_total", "counter", "Flows that ended.", state.removed);
  plain("refused_total", "counter", "Flows for which there was no memory.", state.refused);
  plain("untold_total", "counter", "Changes that no subscriber got.", state.untold);
  return out;
}

}  // namespace flows
