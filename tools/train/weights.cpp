// SPDX-License-Identifier: GPL-2.0

#include "weights.hpp"

#include <cerrno>
#include <fstream>
#include <string>

namespace train {
namespace {

using dblp::Error;
using dblp::Result;

std::string title(const Model& model) {
  return "dblp-train weights 1 " + std::to_string(kParameters) + " " +
         std::to_string(checksum(model.parameters()));
}

}  // namespace

Result<void> save_weights(const std::filesystem::path& path, const Model& model) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << title(model) << '\n';
  const auto bytes = std::as_bytes(model.parameters());
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) return Error(errno != 0 ? errno : EIO, path.string());
  return {};
}

Result<void> load_weights(const std::filesystem::path& path, Model& model) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error(errno != 0 ? errno : EIO, path.string());
  std::string line;
  std::getline(file, line);
  auto bytes = std::as_writable_bytes(model.parameters());
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file || file.peek() != std::ifstream::traits_type::eof())
    return Error(EBADMSG, path.string() + ": not the weights of this model");
  if (line != title(model)) return Error(EBADMSG, path.string() + ": damaged");
  return {};
}

}  // namespace train
