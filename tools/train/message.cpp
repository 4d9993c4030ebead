// SPDX-License-Identifier: GPL-2.0

#include "message.hpp"

#include <bit>
#include <cerrno>
#include <cstring>
#include <string>

namespace train {
namespace {

static_assert(std::endian::native == std::endian::little, "the floats travel as they are");

struct Wire {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t kind;
  std::uint32_t rank;
  std::uint32_t round;
  std::uint32_t floats;
  float loss;
  double norm;
  std::uint64_t checksum;
  std::uint64_t reserved[3];
};
static_assert(sizeof(Wire) == kHeaderBytes);

constexpr std::uint32_t kMagic = 0x4e525444;  // "DTRN"
constexpr std::uint16_t kVersion = 1;

}  // namespace

void encode(const Header& header, std::span<std::byte> out) {
  Wire wire{};
  wire.magic = kMagic;
  wire.version = kVersion;
  wire.kind = static_cast<std::uint16_t>(header.kind);
  wire.rank = header.rank;
  wire.round = header.round;
  wire.floats = header.floats;
  wire.loss = header.loss;
  wire.norm = header.norm;
  wire.checksum = header.checksum;
  std::memcpy(out.data(), &wire, sizeof(wire));
}

dblp::Result<Header> decode(std::span<const std::byte> message) {
  const auto bad = [](const std::string& what) { return dblp::Error(EBADMSG, "message " + what); };
  Wire wire{};
  if (message.size() < sizeof(wire))
    return bad("of " + std::to_string(message.size()) + " bytes has no header");
  std::memcpy(&wire, message.data(), sizeof(wire));
  if (wire.magic != kMagic) return bad("is not from this program");
  if (wire.version != kVersion) return bad("has version " + std::to_string(wire.version));
  if (wire.kind < static_cast<std::uint16_t>(Kind::kHello) ||
      wire.kind > static_cast<std::uint16_t>(Kind::kVerdict))
    return bad("has kind " + std::to_string(wire.kind));
  if (message.size() != sizeof(wire) + std::size_t{wire.floats} * sizeof(float))
    return bad("of " + std::to_string(message.size()) + " bytes claims " +
               std::to_string(wire.floats) + " floats");

  Header header;
  header.kind = static_cast<Kind>(wire.kind);
  header.rank = wire.rank;
  header.round = wire.round;
  header.floats = wire.floats;
  header.loss = wire.loss;
  header.norm = wire.norm;
  header.checksum = wire.checksum;
  return header;
}

}  // namespace train
