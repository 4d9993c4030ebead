// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause

#include "dblp/compress/recovery.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

namespace dblp::compress {
namespace {

// The file of Memory::save(), little-endian:
//   8 magic, 4 version, 4 number of parameters; for each, ascending by id:
//   8 id, 8 length, 4 flags (which arrays follow), 4 zero, the arrays (f32);
//   8 FNV-1a of all before.
constexpr std::uint64_t kMagic = 0x314d454d504c4244;  // "DBLPMEM1"
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kHasResidual = 1;
constexpr std::uint32_t kHasLost = 2;
constexpr std::uint32_t kHasMomentum = 4;

std::uint64_t fnv1a(std::span<const std::byte> bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::byte b : bytes) {
    hash ^= static_cast<std::uint64_t>(b);
    hash *= 0x100000001b3;
  }
  return hash;
}

template <class T>
void append(std::vector<std::byte>& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    out.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i)));
}

void append(std::vector<std::byte>& out, const float* x, std::uint64_t n) {
  const std::size_t at = out.size();
  out.resize(at + n * sizeof(float));
  if (n > 0) std::memcpy(out.data() + at, x, n * sizeof(float));
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  bool take(T* value) {
    if (bytes_.size() < sizeof(T)) return false;
    std::uint64_t x = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i)
      x |= static_cast<std::uint64_t>(bytes_[i]) << (8 * i);
    *value = static_cast<T>(x);
    bytes_ = bytes_.subspan(sizeof(T));
    return true;
  }
  bool take(std::uint64_t n, std::vector<float>* x) {
    if (n > bytes_.size() / sizeof(float)) return false;
    x->resize(n);
    if (n > 0) std::memcpy(x->data(), bytes_.data(), n * sizeof(float));
    bytes_ = bytes_.subspan(n * sizeof(float));
    return true;
  }
  [[nodiscard]] std::size_t left() const { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
};

void copy_part(const std::vector<float>& from, std::uint64_t at, std::vector<float>& to,
               std::uint64_t to_at, std::uint64_t n) {
  if (from.empty() || to.empty()) return;
  std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(at), n,
              to.begin() + static_cast<std::ptrdiff_t>(to_at));
}

bool in_order(std::span<const Parameter> parameters, std::uint64_t elements) {
  std::uint64_t end = 0;
  std::set<ParameterId> seen;
  for (const Parameter& p : parameters) {
    if (p.length == 0 || p.offset < end || p.offset > elements || p.length > elements - p.offset)
      return false;
    if (!seen.insert(p.id).second) return false;
    end = p.offset + p.length;
  }
  return true;
}

}  // namespace

Status Memory::bind(std::span<const Parameter> parameters, std::uint64_t elements, bool lost,
                    bool momentum, std::shared_ptr<Arrays>* arrays) {
  if (!in_order(parameters, elements)) return Status::kBadOption;
  auto fresh = std::make_shared<Arrays>();
  fresh->residual.resize(elements);
  if (lost) fresh->lost.resize(elements);
  if (momentum) fresh->momentum.resize(elements);
  for (const Parameter& p : parameters) {
    Entry& entry = entries_[p.id];
    if (entry.arrays != nullptr && entry.length != p.length) ++dropped_;
    if (entry.arrays != nullptr && entry.length == p.length) {
      const Arrays& old = *entry.arrays;
      copy_part(old.residual, entry.offset, fresh->residual, p.offset, p.length);
      copy_part(old.lost, entry.offset, fresh->lost, p.offset, p.length);
      copy_part(old.momentum, entry.offset, fresh->momentum, p.offset, p.length);
    }
    entry = {fresh, p.offset, p.length};
  }
  *arrays = std::move(fresh);
  return Status::kOk;
}

std::vector<std::byte> Memory::save() const {
  std::vector<std::byte> out;
  append(out, kMagic);
  append(out, kVersion);
  append(out, static_cast<std::uint32_t>(entries_.size()));
  for (const auto& [id, entry] : entries_) {
    const Arrays& arrays = *entry.arrays;
    append(out, id);
    append(out, entry.length);
    append(out, (arrays.residual.empty() ? 0 : kHasResidual) |
                    (arrays.lost.empty() ? 0 : kHasLost) |
                    (arrays.momentum.empty() ? 0 : kHasMomentum));
    append(out, std::uint32_t{0});
    for (const std::vector<float>* x : {&arrays.residual, &arrays.lost, &arrays.momentum})
      if (!x->empty()) append(out, x->data() + entry.offset, entry.length);
  }
  append(out, fnv1a(out));
  return out;
}

Status Memory::restore(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  std::uint64_t magic = 0;
  std::uint32_t version = 0;
  std::uint32_t count = 0;
  if (!reader.take(&magic)) return Status::kTruncated;
  if (magic != kMagic) return Status::kBadMagic;
  if (!reader.take(&version)) return Status::kTruncated;
  if (version != kVersion) return Status::kBadVersion;
  if (!reader.take(&count)) return Status::kTruncated;

  std::map<ParameterId, Entry> entries;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::uint64_t id = 0;
    Entry entry;
    std::uint32_t flags = 0;
    std::uint32_t zero = 0;
    if (!reader.take(&id) || !reader.take(&entry.length) || !reader.take(&flags) ||
        !reader.take(&zero))
      return Status::kTruncated;
    const bool ascending = entries.empty() || entries.rbegin()->first < id;
    if (!ascending || zero != 0 || (flags & ~(kHasResidual | kHasLost | kHasMomentum)) != 0 ||
        entry.length == 0 || entry.length > kMaxElements)
      return Status::kBadRecord;
    entry.arrays = std::make_shared<Arrays>();
    // The length is checked against what is there before memory is taken.
    if (((flags & kHasResidual) != 0 && !reader.take(entry.length, &entry.arrays->residual)) ||
        ((flags & kHasLost) != 0 && !reader.take(entry.length, &entry.arrays->lost)) ||
        ((flags & kHasMomentum) != 0 && !reader.take(entry.length, &entry.arrays->momentum)))
      return Status::kTruncated;
    entries[id] = std::move(entry);
  }
  std::uint64_t checksum = 0;
  if (!reader.take(&checksum)) return Status::kTruncated;
  if (reader.left() != 0) return Status::kBadRecord;
  if (checksum != fnv1a(bytes.first(bytes.size() - sizeof checksum))) return Status::kBadChecksum;
  entries_ = std::move(entries);
  return Status::kOk;
}

Status rescale_by_count(std::span<float> sum, std::span<const std::uint16_t> counts,
                        std::uint32_t workers) noexcept {
  if (counts.size() != sum.size()) return Status::kSmallBuffer;
  std::uint64_t carried = 0;
  for (const std::uint16_t count : counts) {
    if (count > workers) return Status::kBadOption;
    carried += count;
  }
  const double all = static_cast<double>(workers) * static_cast<double>(sum.size());
  if (static_cast<double>(carried) < all * (1 - kMaxReplacedShare)) return Status::kTooMuchLoss;
  for (std::size_t i = 0; i < sum.size(); ++i)
    if (counts[i] > 0 && counts[i] < workers)
      sum[i] *= static_cast<float>(workers) / static_cast<float>(counts[i]);
  return Status::kOk;
}

Status keep_stale(std::span<float> sum, std::span<const float> previous,
                  std::span<const std::uint16_t> counts) noexcept {
  if (counts.size() != sum.size() || previous.size() != sum.size()) return Status::kSmallBuffer;
  const auto lost = static_cast<double>(std::count(counts.begin(), counts.end(), 0));
  if (lost > kMaxReplacedShare * static_cast<double>(sum.size())) return Status::kTooMuchLoss;
  for (std::size_t i = 0; i < sum.size(); ++i)
    if (counts[i] == 0) sum[i] = previous[i];
  return Status::kOk;
}

}  // namespace dblp::compress
