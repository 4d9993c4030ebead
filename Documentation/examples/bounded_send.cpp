// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// Sends a megabyte of which a twentieth may be missing, but never the first 64
// bytes, and shows what both ends know about it. Needs the dblp module.
#include <dblp/socket.hpp>

#include <iostream>
#include <vector>

int main() try {
  auto receiver = dblp::Socket::open().value();
  receiver.bind(dblp::Address::parse("127.0.0.1:0").value()).value();
  auto sender = dblp::Socket::open().value();
  sender.connect(receiver.local_address().value()).value();
  sender.set_completions(true).value();

  const std::vector<std::byte> gradient(1'000'000, std::byte{1});
  dblp::SendOptions options{.tolerance = 0.05, .tag = 7};
  options.protect = {{0, 64}};
  (void)sender.send(gradient, options).value();

  std::vector<std::byte> buffer(gradient.size());
  const auto event = receiver.receive(buffer).value();
  const auto& received = std::get<dblp::Received>(event);
  std::cout << "received " << received.bytes << " bytes with tag " << received.info.tag << ", "
            << received.map.missing_bytes() << " of at most " << received.info.allowed_bytes
            << " missing\n";
  received.map.for_each_range([](dblp::Range hole) {
    std::cout << "  " << hole.length << " bytes from " << hole.offset << '\n';
  });

  const auto told = sender.receive(buffer).value();
  const auto& done = std::get<dblp::Completion>(told);
  const bool ok = done.outcome == dblp::Outcome::kOk && received.bytes == gradient.size();
  std::cout << "the sender knows: " << (ok ? "within the bound" : "not delivered") << '\n';
  return ok ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
