// SPDX-License-Identifier: GPL-2.0

#include "dataset.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <span>

namespace train {
namespace {

using dblp::Error;
using dblp::Result;

// More than any file of this format has; a length from a bad file must not
// decide how much memory is taken.
constexpr std::uint32_t kMaxItems = 1'000'000;

struct Closer {
  void operator()(gzFile_s* file) const { gzclose(file); }
};
using File = std::unique_ptr<gzFile_s, Closer>;

Result<void> read_all(gzFile_s* file, std::span<std::uint8_t> out, const std::string& name) {
  while (!out.empty()) {
    const int got = gzread(file, out.data(),
                           static_cast<unsigned>(std::min<std::size_t>(out.size(), 1U << 20)));
    if (got < 0) {
      int code = 0;
      const std::string reason = gzerror(file, &code);
      return Error(code == Z_ERRNO ? errno : EBADMSG, name + ": " + reason);
    }
    if (got == 0) return Error(EBADMSG, name + ": ends too early");
    out = out.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

std::uint32_t big_endian(const std::uint8_t* at) {
  return std::uint32_t{at[0]} << 24 | std::uint32_t{at[1]} << 16 | std::uint32_t{at[2]} << 8 |
         at[3];
}

// An IDX file of bytes: two zeros, type 8, the number of dimensions, each of them
// as a 32-bit number, the data.
Result<std::vector<std::uint8_t>> read_idx(const std::filesystem::path& path,
                                           std::span<const std::uint32_t> item,
                                           std::size_t wanted) {
  const std::string name = path.string();
  errno = 0;
  File file(gzopen(path.c_str(), "rb"));
  if (!file) return Error(errno != 0 ? errno : ENOMEM, name);
  gzbuffer(file.get(), 1U << 17);

  std::array<std::uint8_t, 16> head;
  const std::size_t dimensions = 1 + item.size();
  auto result = read_all(file.get(), std::span(head).first(4), name);
  if (!result) return result.error();
  if (head[0] != 0 || head[1] != 0 || head[2] != 8)
    return Error(EBADMSG, name + ": not an IDX file of bytes");
  if (head[3] != dimensions)
    return Error(EBADMSG, name + ": has " + std::to_string(head[3]) + " dimensions and not " +
                              std::to_string(dimensions));
  result = read_all(file.get(), std::span(head).first(4 * dimensions), name);
  if (!result) return result.error();

  const std::uint32_t count = big_endian(head.data());
  if (count == 0 || count > kMaxItems)
    return Error(EBADMSG, name + ": claims " + std::to_string(count) + " items");
  if (wanted > count)
    return Error(EBADMSG, name + ": has " + std::to_string(count) + " items and not " +
                              std::to_string(wanted));
  std::size_t bytes = wanted == kAllImages ? count : wanted;
  for (std::size_t i = 0; i < item.size(); ++i) {
    const std::uint32_t length = big_endian(head.data() + 4 * (i + 1));
    if (length != item[i])
      return Error(EBADMSG, name + ": items of length " + std::to_string(length) + " and not " +
                                std::to_string(item[i]));
    bytes *= length;
  }
  std::vector<std::uint8_t> data(bytes);
  result = read_all(file.get(), data, name);
  if (!result) return result.error();
  std::uint8_t more = 0;
  if (wanted == kAllImages && gzread(file.get(), &more, 1) > 0)
    return Error(EBADMSG, name + ": longer than it claims");
  return data;
}

std::filesystem::path find(const std::filesystem::path& folder, const std::string& name) {
  auto plain = folder / name;
  std::error_code ignored;
  return std::filesystem::exists(plain, ignored) ? plain : folder / (name + ".gz");
}

}  // namespace

Result<Dataset> load_dataset(const std::filesystem::path& folder, Split split,
                             std::size_t images_wanted) {
  const std::string prefix = split == Split::kTrain ? "train" : "t10k";
  const auto images_path = find(folder, prefix + "-images-idx3-ubyte");
  const auto labels_path = find(folder, prefix + "-labels-idx1-ubyte");

  auto images = read_idx(images_path, std::array<std::uint32_t, 2>{28, 28}, images_wanted);
  if (!images) return images.error();
  auto labels = read_idx(labels_path, {}, images_wanted);
  if (!labels) return labels.error();
  if (images->size() != labels->size() * kPixels)
    return Error(EBADMSG, images_path.string() + ": has " +
                              std::to_string(images->size() / kPixels) + " images for " +
                              std::to_string(labels->size()) + " labels");
  if (std::ranges::any_of(*labels, [](std::uint8_t label) { return label >= kClasses; }))
    return Error(EBADMSG, labels_path.string() + ": a label is not below 10");
  return Dataset{std::move(*images), std::move(*labels)};
}

}  // namespace train
