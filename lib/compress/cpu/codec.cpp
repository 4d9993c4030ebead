// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause

#include "compress/cpu/codec.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "compress/arena.hpp"
#include "compress/cpu/select.hpp"
#include "compress/cpu/values.hpp"

namespace dblp::compress {
namespace {

u8* bytes_of(std::span<std::byte> span) { return reinterpret_cast<u8*>(span.data()); }
const u8* bytes_of(std::span<const std::byte> span) {
  return reinterpret_cast<const u8*>(span.data());
}

// Collects what decode() reports.
class Report {
 public:
  explicit Report(const DecodeArgs& args) : args_(args) {}

  void add(u32 segment, Status status) {
    if (!args_.segments.empty()) args_.segments[segment] = status;
    if (status == Status::kOk) {
      ++result_.decoded;
    } else if (status == Status::kMissing) {
      ++result_.missing;
    } else {
      ++result_.refused;
      if (segment <= first_) {
        first_ = segment;
        result_.first_refusal = status;
      }
    }
  }
  void finish() const {
    if (args_.result != nullptr) *args_.result = result_;
  }

 private:
  const DecodeArgs& args_;
  DecodeResult result_;
  u32 first_ = ~u32{0};  // refused; segments come in any order
};

class CpuCodec final : public Codec {
 public:
  CpuCodec(const Kernels& kernels, const CodecOptions& options, const Shape& shape,
           const Limits& limits)
      : Codec(options, shape, limits.message_bytes, limits.segments), kernels_(kernels) {
    Arena encode = Arena::measure();
    take_encode(encode);
    encode_workspace_ = encode.needed();
    Arena decode = Arena::measure();
    take_decode(decode);
    decode_workspace_ = decode.needed();
  }

  [[nodiscard]] std::size_t encode_workspace() const noexcept override { return encode_workspace_; }
  [[nodiscard]] std::size_t decode_workspace() const noexcept override { return decode_workspace_; }

  Status encode(const EncodeArgs& args, Stream stream) const noexcept override;
  Status decode(const DecodeArgs& args, Stream stream) const noexcept override;

 private:
  // Arrays that both directions need; those a scheme does not use are empty.
  struct Common {
    std::span<u32> offsets;  // dense: of each row
    std::span<u32> bases;
    std::span<u32> groups[2];  // dense: of this segment and the next; TopK: [0] indices
    std::span<float> values;   // of one segment, or of kLanes
    std::span<float> sent;
    std::span<i8> q;
    std::span<float> rotated;  // Hadamard: the whole tensor
  };
  struct EncodeMemory : Common {
    std::span<float> pruned;
    SelectMemory select;
  };

  [[nodiscard]] u32 elements() const { return static_cast<u32>(shape().elements); }
  [[nodiscard]] bool is_topk() const { return options().scheme == Scheme::kTopK; }
  [[nodiscard]] Dense dense(const Random& random) const {
    return make_dense(options().scheme, options().value, shape().segment_bytes, elements(), random);
  }

  Common take_common(Arena& arena) const;
  EncodeMemory take_encode(Arena& arena) const;
  Common take_decode(Arena& arena) const { return take_common(arena); }

  EncodeResult encode_topk(const EncodeArgs& args, const Random& random,
                           const EncodeMemory& memory) const;
  EncodeResult encode_dense(const Dense& dense, const Random& random, const Common& memory,
                            const float* input, const float* owed, float* rest, u8* message) const;
  void rotate(const Random& random, float* block, u32 index, bool forward) const;
  void decode_topk(const DecodeArgs& args, const Common& memory, Report& report) const;
  void decode_dense(const DecodeArgs& args, const Dense& dense, const Random& random,
                    const Common& memory, float* output, bool accumulate, Report& report) const;

  const Kernels& kernels_;
  std::size_t encode_workspace_ = 0;
  std::size_t decode_workspace_ = 0;
};

CpuCodec::Common CpuCodec::take_common(Arena& arena) const {
  Common m;
  std::size_t count = 0;
  std::size_t lanes = 1;
  if (is_topk()) {
    count = slots_per_segment(options().value, shape().segment_bytes, 0);
    m.groups[0] = arena.take<u32>(count);
  } else {
    const u32 rows = groups_per_segment(options().value, shape().segment_bytes);
    m.offsets = arena.take<u32>(rows);
    m.bases = arena.take<u32>(rows);
    m.groups[0] = arena.take<u32>(std::size_t{rows} * kLanes);
    m.groups[1] = arena.take<u32>(std::size_t{rows} * kLanes);
    count = std::size_t{rows} * kGroup;
    lanes = kLanes;
  }
  m.values = arena.take<float>(count * lanes);
  m.sent = arena.take<float>(count);
  m.q = arena.take<i8>(count);
  if (options().scheme == Scheme::kHadamard)
    m.rotated = arena.take<float>(padded_elements(Scheme::kHadamard, elements()));
  return m;
}

CpuCodec::EncodeMemory CpuCodec::take_encode(Arena& arena) const {
  EncodeMemory m{take_common(arena), {}, {}};
  if (options().prune) m.pruned = arena.take<float>(elements());
  if (is_topk()) {
    const std::size_t room = candidate_room(elements(), shape().max_selected);
    m.select.index = arena.take<u32>(room);
    m.select.key = arena.take<u32>(room);
  }
  return m;
}

// ---- dense -----------------------------------------------------------------

// Lists the groups of kLanes places at a time, and knows whose they are.
class Groups {
 public:
  Groups(const Kernels& kernels, const Dense& dense, const Random& random, std::span<u32> offsets,
         std::span<u32> bases)
      : kernels_(kernels),
        dense_(dense),
        offsets_(offsets),
        bases_(bases),
        back_(inverse_stride(dense.stride, dense.segments)) {
    for (u32 row = 0; row < dense.rows; ++row) {
      offsets[row] = stripe_offset(random, row, dense.segments);
      bases[row] = row * dense.segments;
    }
  }

  // How many of them are segments.
  [[nodiscard]] u32 list(u32 place, std::span<u32> groups) const {
    if (place >= dense_.segments) return 0;
    kernels_.list_groups(bases_.data(), offsets_.data(), dense_.rows, place, dense_.segments,
                         groups.data());
    return std::min(kLanes, dense_.segments - place);
  }
  [[nodiscard]] u32 segment_at(u32 place) const {
    return static_cast<u32>(u64{place} * back_ % dense_.segments);
  }

 private:
  const Kernels& kernels_;
  const Dense& dense_;
  std::span<const u32> offsets_;
  std::span<const u32> bases_;
  u32 back_;
};

// Elements of a group of the last row, which may be cut short or absent.
u32 elements_of_group(const Dense& dense, u32 group) {
  const u64 from = u64{group} * kGroup;
  return from >= dense.elements ? 0 : std::min(kGroup, dense.elements - static_cast<u32>(from));
}

EncodeResult CpuCodec::encode_dense(const Dense& dense, const Random& random, const Common& memory,
                                    const float* input, const float* owed, float* rest,
                                    u8* message) const {
  const Groups lists(kernels_, dense, random, memory.offsets, memory.bases);
  const ValueScratch scratch{memory.q.data(), memory.sent.data()};
  const u32 slots = groups_per_segment(dense.value, dense.segment_bytes) * kGroup;
  // All rows but the last are complete.
  const u32 rows = dense.rows - 1;
  u64 message_bytes = 0;
  u32 max_key = 0;
  u32 next = lists.list(0, memory.groups[0]);
  for (u32 place = 0; place < dense.segments; place += kLanes) {
    const u32* const groups = memory.groups[place / kLanes % 2].data();
    const std::span<u32> following = memory.groups[(place / kLanes + 1) % 2];
    const u32 lanes = next;
    next = lists.list(place + kLanes, following);
    u32 keys[kLanes];
    kernels_.gather(input, owed, groups, rows, slots, memory.values.data(), keys);

    for (u32 lane = 0; lane < lanes; ++lane) {
      float* const values = memory.values.data() + std::size_t{lane} * slots;
      float* const tail = values + std::size_t{rows} * kGroup;
      const u32 group = groups[rows * kLanes + lane];
      const u32 in_tail = elements_of_group(dense, group);
      const std::size_t from = std::size_t{group} * kGroup;
      if (in_tail > 0) {
        std::fill_n(tail, kGroup, 0.0F);
        std::copy_n(input + from, in_tail, tail);
        if (owed != nullptr) kernels_.add(tail, owed + from, in_tail);
        keys[lane] = std::max(keys[lane], kernels_.max_key(tail, in_tail));
      }

      max_key = std::max(max_key, keys[lane]);
      const u32 segment = lists.segment_at(place + lane);
      const u32 count = rows + (in_tail > 0 ? 1 : 0);
      u8* const out = message + std::size_t{segment} * dense.segment_bytes;
      // Each lane fetches its share of the following groups.
      const std::size_t share = next > 0 ? rows : 0;
      const Ahead ahead{input, owed, following.data() + lane * share, share};
      Header header{format_byte(dense.scheme, dense.value), 0, count, segment, 0};
      header.scale_bits =
          write_values(kernels_, dense.value, values, count * kGroup, keys[lane], random, segment,
                       slots, scratch, rest != nullptr, ahead, out + header_bytes(dense.value));
      put_header(out, header, dense.value);
      const u32 used = dense_used(dense.value, count);
      if (segment + 1 < dense.segments)
        std::memset(out + used, 0, dense.segment_bytes - used);
      else
        message_bytes = u64{segment} * dense.segment_bytes + used;

      if (rest == nullptr) continue;
      kernels_.subtract(values, scratch.sent, std::size_t{count} * kGroup);
      if (in_tail > 0) std::copy_n(tail, in_tail, rest + from);
    }
    if (rest != nullptr) kernels_.scatter(memory.values.data(), slots, groups, rows, lanes, rest);
  }
  return {message_bytes, elements(), dense.segments, max_key < kInfBits};
}

void CpuCodec::decode_dense(const DecodeArgs& args, const Dense& dense, const Random& random,
                            const Common& memory, float* output, bool accumulate,
                            Report& report) const {
  const Groups lists(kernels_, dense, random, memory.offsets, memory.bases);
  const u32 slots = groups_per_segment(dense.value, dense.segment_bytes) * kGroup;
  const u32 rows = dense.rows - 1;
  for (u32 place = 0; place < dense.segments; place += kLanes) {
    u32* const groups = memory.groups[0].data();
    const u32 lanes = lists.list(place, memory.groups[0]);
    for (u32 lane = 0; lane < lanes; ++lane) {
      float* const values = memory.values.data() + std::size_t{lane} * slots;
      const u32 segment = lists.segment_at(place + lane);
      const u32 group = groups[rows * kLanes + lane];
      const u32 in_tail = elements_of_group(dense, group);
      const u32 count = rows + (in_tail > 0 ? 1 : 0);
      const u8* const in = bytes_of(args.message) + std::size_t{segment} * dense.segment_bytes;
      const u32 bytes = bytes_of_segment(args.message.size(), dense.segment_bytes, segment);
      Status status = Status::kMissing;
      if (!is_missing(args.missing, segment)) {
        Header header;
        status = check_dense(in, bytes, dense, segment, count, &header);
        if (status == Status::kOk && !padding_is_zero(in, dense_used(dense.value, count), bytes))
          status = Status::kBadPadding;
        if (status == Status::kOk)
          read_values(kernels_, dense.value, in + header_bytes(dense.value), count * kGroup,
                      header.scale_bits, memory.q.data(), values);
      }
      report.add(segment, status);
      // Adding zero would turn -0 into 0, but nothing else: a hole is left alone
      // by adding -0.
      if (status != Status::kOk)
        std::fill_n(values, std::size_t{count} * kGroup, accumulate ? -0.0F : 0.0F);
      if (in_tail == 0) continue;
      const float* const tail = values + std::size_t{rows} * kGroup;
      float* const to = output + std::size_t{group} * kGroup;
      if (accumulate)
        kernels_.add(to, tail, in_tail);
      else
        std::copy_n(tail, in_tail, to);
    }
    (accumulate ? kernels_.scatter_add : kernels_.scatter)(memory.values.data(), slots, groups,
                                                           rows, lanes, output);
  }
}

// Signs, then the transform; or the other way round.
void CpuCodec::rotate(const Random& random, float* block, u32 index, bool forward) const {
  u32 signs[kTransform / 32];
  for (u32 i = 0; i < kTransform / 128; ++i) {
    const Block block_signs = random_block(random, kForSigns, index * (kTransform / 128) + i);
    std::copy_n(block_signs.w, 4, signs + std::size_t{4} * i);
  }
  if (!forward) kernels_.hadamard(block);
  kernels_.flip(block, kTransform, signs);
  if (forward) kernels_.hadamard(block);
}

// ---- TopK ------------------------------------------------------------------

EncodeResult CpuCodec::encode_topk(const EncodeArgs& args, const Random& random,
                                   const EncodeMemory& memory) const {
  const u32 n = elements();
  const Value value = options().value;
  const TopK t = make_topk(value, shape().segment_bytes, n, static_cast<u32>(args.selected));
  const float* source = args.residual != nullptr ? args.residual : args.input;
  std::size_t selected = 0;
  if (args.weights != nullptr) {
    if (args.residual != nullptr) kernels_.add(args.residual, args.input, n);
    for (u32 i = 0; i < n; ++i)
      memory.pruned[i] = __builtin_fabsf(args.weights[i]) < args.prune_below ? 0.0F : source[i];
    selected = select_top(kernels_, memory.pruned.data(), n, args.selected, memory.select);
  } else if (args.residual != nullptr) {
    selected =
        add_and_select_top(kernels_, args.residual, args.input, n, args.selected, memory.select);
  } else {
    selected = select_top(kernels_, args.input, n, args.selected, memory.select);
  }

  const u32* const index = memory.select.index.data();
  u32 slots = static_cast<u32>(selected);
  for (std::size_t i = 1; i < selected; ++i) slots += steps_between(t, index[i - 1], index[i]);
  const u32 segments = std::max(1U, (slots + t.slots - 1) / t.slots);
  const ValueScratch scratch{memory.q.data(), memory.sent.data()};
  float* const values = memory.values.data();
  u32* const places = memory.groups[0].data();

  std::size_t next = 0;  // of the selected
  u32 at = selected > 0 ? index[0] : 0;
  u32 used = 0;
  bool finite = true;
  for (u32 segment = 0; segment < segments; ++segment) {
    u8* const out = bytes_of(args.message) + std::size_t{segment} * t.segment_bytes;
    const u32 count = std::min(t.slots, slots - segment * t.slots);
    u8* const deltas = out + header_bytes(value) + value_bytes(value, count);
    for (u32 slot = 0; slot < count; ++slot) {
      places[slot] = at;
      const bool step = at != index[next];
      values[slot] = step ? 0.0F : source[at];
      next += step ? 0 : 1;
      if (next < selected) at = std::min(index[next], at + t.reach);
    }
    for (u32 slot = 0; slot < count; ++slot) {
      const u32 delta = slot == 0 ? 0 : places[slot] - places[slot - 1] - 1;
      if (t.wide != 0)
        put_u16(deltas + std::size_t{2} * slot, delta);
      else
        deltas[slot] = static_cast<u8>(delta);
    }
    const u32 max_key = kernels_.max_key(values, count);
    finite = finite && max_key < kInfBits;
    Header header{format_byte(Scheme::kTopK, value), t.wide, count, count > 0 ? places[0] : 0, 0};
    header.scale_bits =
        write_values(kernels_, value, values, count, max_key, random, segment, t.slots, scratch,
                     args.residual != nullptr, Ahead{}, out + header_bytes(value));
    put_header(out, header, value);
    used = topk_used(value, t.wide, count);
    if (segment + 1 < segments) std::memset(out + used, 0, t.segment_bytes - used);
    if (args.residual == nullptr) continue;
    for (u32 slot = 0; slot < count; ++slot) args.residual[places[slot]] -= scratch.sent[slot];
  }
  return {u64{segments - 1} * t.segment_bytes + used, selected, segments, finite};
}

u32 read_delta(const u8* deltas, u32 wide, u32 slot) {
  return wide != 0 ? get_u16(deltas + std::size_t{2} * slot) : deltas[slot];
}

// The distances of a segment whose header is good: *end is behind its last
// element.
Status check_deltas(const u8* p, u32 bytes, Value value, u32 elements, const Header& h, u64* end) {
  const u32 wide = h.flags & kWideFlag;
  const u8* const deltas = p + header_bytes(value) + value_bytes(value, h.count);
  if (h.count > 0 && read_delta(deltas, wide, 0) != 0) return Status::kBadDelta;
  u64 last = u64{h.base} + h.count;
  if (wide != 0) {
    for (u32 slot = 0; slot < h.count; ++slot) last += read_delta(deltas, 1, slot);
  } else {
    u32 sum = 0;  // at most 65535 * 255
    for (u32 slot = 0; slot < h.count; ++slot) sum += deltas[slot];
    last += sum;
  }
  if (last > elements) return Status::kBadIndex;
  if (!padding_is_zero(p, topk_used(value, wide, h.count), bytes)) return Status::kBadPadding;
  if (value == Value::kI4 && h.count % 2 != 0 && p[header_bytes(value) + h.count / 2] >> 4 != 0)
    return Status::kBadPadding;
  *end = last;
  return Status::kOk;
}

// All segments but the last are full; only a message of one may be empty.
Status check_fill(const TopK& t, const Header& h, u32 segment, u32 segments) {
  if (segment + 1 < segments) return h.count == t.slots ? Status::kOk : Status::kBadCount;
  if (h.count > 0) return Status::kOk;
  if (segments > 1) return Status::kBadCount;
  return h.base == 0 ? Status::kOk : Status::kBadIndex;
}

void CpuCodec::decode_topk(const DecodeArgs& args, const Common& memory, Report& report) const {
  const Value value = options().value;
  const u32 segment_bytes = shape().segment_bytes;
  const u32 segments = segments_of(args.message.size(), segment_bytes);
  if (!args.accumulate) std::fill_n(args.output, elements(), 0.0F);
  float* const values = memory.values.data();
  u64 behind = 0;  // all elements of earlier segments
  for (u32 segment = 0; segment < segments; ++segment) {
    if (is_missing(args.missing, segment)) {
      report.add(segment, Status::kMissing);
      continue;
    }
    const u8* const in = bytes_of(args.message) + std::size_t{segment} * segment_bytes;
    const u32 bytes = bytes_of_segment(args.message.size(), segment_bytes, segment);
    Header h;
    u64 end = 0;
    Status status = check_topk(in, bytes, value, segment_bytes, elements(), &h);
    if (status == Status::kOk) {
      const TopK t = make_topk_as(value, segment_bytes, elements(), h.flags & kWideFlag);
      status = check_fill(t, h, segment, segments);
    }
    if (status == Status::kOk) status = check_deltas(in, bytes, value, elements(), h, &end);
    if (status == Status::kOk && h.base < behind) status = Status::kOverlap;
    behind = std::max(behind, end);
    report.add(segment, status);
    if (status != Status::kOk) continue;

    read_values(kernels_, value, in + header_bytes(value), h.count, h.scale_bits, memory.q.data(),
                values);
    const u8* const deltas = in + header_bytes(value) + value_bytes(value, h.count);
    u32 at = h.base;
    for (u32 slot = 0; slot < h.count; ++slot, ++at) {
      at += read_delta(deltas, h.flags & kWideFlag, slot);
      if (args.accumulate)
        args.output[at] += values[slot];
      else
        args.output[at] = values[slot];
    }
  }
}

// ---- both ------------------------------------------------------------------

Status CpuCodec::encode(const EncodeArgs& args, Stream /*stream*/) const noexcept {
  const Status status = check_encode(*this, args);
  if (status != Status::kOk) return status;
  Arena arena(args.workspace);
  const EncodeMemory memory = take_encode(arena);
  const Random random = make_random(args.key.seed, args.key.round);
  if (is_topk()) {
    *args.result = encode_topk(args, random, memory);
    return Status::kOk;
  }

  const Dense d = dense(random);
  const u32 n = elements();
  const float* input = args.input;
  const float* owed = args.residual;
  if (args.weights != nullptr) {
    // What is pruned leaves through the residual: u = input + owed is split
    // into what goes on and what stays.
    for (u32 i = 0; i < n; ++i) {
      const float u = owed != nullptr ? input[i] + owed[i] : input[i];
      const bool pruned = __builtin_fabsf(args.weights[i]) < args.prune_below;
      memory.pruned[i] = pruned ? 0.0F : u;
      if (args.residual != nullptr) args.residual[i] = pruned ? u : 0.0F;
    }
    input = memory.pruned.data();
    owed = nullptr;
  }
  const bool keep = args.residual != nullptr;
  if (d.scheme == Scheme::kDense && args.weights == nullptr) {
    *args.result =
        encode_dense(d, random, memory, input, owed, args.residual, bytes_of(args.message));
    return Status::kOk;
  }
  if (d.scheme == Scheme::kDense) {
    // The rest of what went on, in place, then added to what stayed.
    *args.result = encode_dense(d, random, memory, input, nullptr,
                                keep ? memory.pruned.data() : nullptr, bytes_of(args.message));
    if (keep) kernels_.add(args.residual, memory.pruned.data(), n);
    return Status::kOk;
  }

  float* const rotated = memory.rotated.data();
  std::memcpy(rotated, input, std::size_t{n} * sizeof(float));
  if (owed != nullptr) kernels_.add(rotated, owed, n);
  std::fill(rotated + n, rotated + d.elements, 0.0F);
  for (u32 i = 0; i < d.elements / kTransform; ++i)
    rotate(random, rotated + std::size_t{i} * kTransform, i, true);
  *args.result = encode_dense(d, random, memory, rotated, nullptr, keep ? rotated : nullptr,
                              bytes_of(args.message));
  if (!keep) return Status::kOk;
  for (u32 i = 0; i < d.elements / kTransform; ++i)
    rotate(random, rotated + std::size_t{i} * kTransform, i, false);
  if (args.weights == nullptr)
    std::memcpy(args.residual, rotated, std::size_t{n} * sizeof(float));
  else
    kernels_.add(args.residual, rotated, n);
  return Status::kOk;
}

Status CpuCodec::decode(const DecodeArgs& args, Stream /*stream*/) const noexcept {
  const Status status = check_decode(*this, args);
  if (status != Status::kOk) return status;
  Arena arena(args.workspace);
  const Common memory = take_decode(arena);
  Report report(args);
  if (is_topk()) {
    decode_topk(args, memory, report);
    report.finish();
    return Status::kOk;
  }
  const Random random = make_random(args.key.seed, args.key.round);
  const Dense d = dense(random);
  if (d.scheme == Scheme::kDense) {
    decode_dense(args, d, random, memory, args.output, args.accumulate, report);
    report.finish();
    return Status::kOk;
  }
  float* const rotated = memory.rotated.data();
  decode_dense(args, d, random, memory, rotated, false, report);
  report.finish();
  const u32 n = elements();
  for (u32 i = 0; i < d.elements / kTransform; ++i)
    rotate(random, rotated + std::size_t{i} * kTransform, i, false);
  if (args.accumulate)
    kernels_.add(args.output, rotated, n);
  else
    std::memcpy(args.output, rotated, std::size_t{n} * sizeof(float));
  return Status::kOk;
}

}  // namespace

Result<std::unique_ptr<Codec>> make_cpu_codec(const Kernels& kernels, const CodecOptions& options,
                                              const Shape& shape) {
  Limits limits{};
  if (find_limits(options, shape, &limits) != Status::kOk)
    return Error(EINVAL, "codec options or shape");
  return std::unique_ptr<Codec>(std::make_unique<CpuCodec>(kernels, options, shape, limits));
}

Result<std::unique_ptr<Codec>> make_codec(const CodecOptions& options, const Shape& shape) {
  Result<const Kernels*> kernels = choose_kernels();
  if (!kernels) return kernels.error();
  return make_cpu_codec(**kernels, options, shape);
}

}  // namespace dblp::compress
