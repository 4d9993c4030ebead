// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// Speed of the codecs on one thread, beside the memory bandwidth of the same
// run. Writes JSON: per result the minimum, median and maximum of the
// repetitions. Run by `make bench-codecs`.

#include <sys/mman.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "compress/cpu/codec.hpp"
#include "compress/cpu/select.hpp"

namespace {

using namespace dblp::compress;
using nlohmann::json;

constexpr std::size_t kElements = 11'000'000;
constexpr std::uint32_t kSegmentBytes = 1024;

// As a gradient lies in memory: touched before, on large pages where there are.
template <class T>
class Array {
 public:
  explicit Array(std::size_t n) : size_(n) {
    void* p = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    (void)madvise(p, bytes(), MADV_HUGEPAGE);
    std::memset(p, 1, bytes());
    data_ = static_cast<T*>(p);
  }
  ~Array() { munmap(data_, bytes()); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  [[nodiscard]] std::span<T> span() const { return {data_, size_}; }
  [[nodiscard]] T* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return std::max<std::size_t>(size_ * sizeof(T), 1); }

 private:
  std::size_t size_;
  T* data_ = nullptr;
};

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Case {
  std::string name;
  std::function<void()> prepare;  // not timed
  std::function<void()> work;
  double bytes = 0;  // that must cross the memory bus; 0: no share is given
  std::vector<double> times{};
};

void fail(const char* what) {
  std::fprintf(stderr, "codecs_bench: %s\n", what);
  std::exit(1);
}

void must(Status status) {
  if (status != Status::kOk) fail(status_name(status));
}

// The selection, against a full sort of its keys.
void verify_selection(std::span<const float> x, std::size_t k, const std::vector<u32>& got) {
  std::vector<u32> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  const auto kth = order.begin() + static_cast<std::ptrdiff_t>(k);
  std::nth_element(order.begin(), kth, order.end(), [&](u32 a, u32 b) {
    const u32 p = magnitude_key(x[a]);
    const u32 q = magnitude_key(x[b]);
    return p != q ? p > q : a < b;
  });
  order.erase(kth, order.end());
  std::sort(order.begin(), order.end());
  if (order != got) fail("topk_1pct_11M: not the exact, index-sorted selection");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Speed of the codecs on one thread"};
  std::string out;
  int repetitions = 15;
  std::string isa;
  std::string only;
  app.add_option("--out", out, "JSON file (default: standard output)");
  app.add_option("--repetitions", repetitions, "of each measurement")->check(CLI::PositiveNumber);
  app.add_option("--isa", isa, "scalar, avx2 or avx512 (default: the best)");
  app.add_option("--only", only, "names that contain this, and memcpy");
  CLI11_PARSE(app, argc, argv);
  if (!isa.empty()) setenv("DBLP_ISA", isa.c_str(), 1);

  const auto chosen = choose_kernels();
  if (!chosen) fail(chosen.error().message().c_str());
  const Kernels& kernels = **chosen;

  Array<float> gradient(kElements);
  Array<float> residual(kElements);
  Array<float> clean(kElements);
  Array<float> other(kElements);
  std::mt19937_64 engine(1);
  std::normal_distribution<float> normal;
  for (float& x : gradient.span()) x = normal(engine);
  for (float& x : clean.span()) x = normal(engine) * 0.5F;
  const std::size_t k = kElements / 100;

  const double n = kElements;
  std::vector<Case> cases;
  cases.push_back({"memcpy_11M", [] {},
                   [&] { std::memcpy(other.data(), gradient.data(), gradient.bytes()); }, 8 * n});

  Array<u32> index(candidate_room(kElements, k));
  Array<u32> key(candidate_room(kElements, k));
  const SelectMemory memory{index.span(), key.span()};
  std::size_t selected = 0;
  cases.push_back({"topk_1pct_11M", [] {},
                   [&] { selected = select_top(kernels, gradient.data(), kElements, k, memory); },
                   4 * n});

  struct Target {
    std::unique_ptr<Codec> codec;
    std::unique_ptr<Array<std::byte>> workspace;
    std::unique_ptr<Array<std::byte>> decode_workspace;
    std::unique_ptr<Array<std::byte>> message;
    EncodeResult result;
  };
  std::map<std::string, Target> targets;
  const auto add = [&](const std::string& name, const CodecOptions& options, std::uint64_t max,
                       bool with_residual, double encode_bytes, double decode_bytes) {
    Target& t = targets[name];
    t.codec =
        std::move(make_cpu_codec(
                      kernels, options,
                      {.elements = kElements, .segment_bytes = kSegmentBytes, .max_selected = max}))
            .value();
    t.workspace = std::make_unique<Array<std::byte>>(t.codec->encode_workspace());
    t.decode_workspace = std::make_unique<Array<std::byte>>(t.codec->decode_workspace());
    t.message = std::make_unique<Array<std::byte>>(t.codec->max_message_bytes());
    cases.push_back({name,
                     [&, with_residual] {
                       if (with_residual) std::memcpy(residual.data(), clean.data(), clean.bytes());
                     },
                     [&, max, with_residual] {
                       must(t.codec->encode({.input = gradient.data(),
                                             .residual = with_residual ? residual.data() : nullptr,
                                             .selected = max,
                                             .key = {1, 2},
                                             .message = t.message->span(),
                                             .workspace = t.workspace->span(),
                                             .result = &t.result}));
                     },
                     encode_bytes});
    if (decode_bytes == 0) return;
    cases.push_back(
        {name + "_decode", [] {},
         [&] {
           must(t.codec->decode({.message = t.message->span().first(t.result.message_bytes),
                                 .missing = {},
                                 .key = {1, 2},
                                 .output = other.data(),
                                 .workspace = t.decode_workspace->span(),
                                 .segments = {}}));
         },
         decode_bytes});
  };
  const auto codec = [](Scheme scheme, Value value) {
    return CodecOptions{.scheme = scheme, .value = value};
  };
  add("topk_f16_1pct_11M", codec(Scheme::kTopK, Value::kF16), k, false, 0, 4 * n);
  add("topk_f16_1pct_residual_11M", codec(Scheme::kTopK, Value::kF16), k, true, 12 * n, 0);
  add("topk_f16_10pct_residual_11M", codec(Scheme::kTopK, Value::kF16), kElements / 10, true,
      12 * n, 4 * n);
  add("quantise_int8_11M", codec(Scheme::kDense, Value::kI8), 0, false, 5 * n, 5 * n);
  add("quantise_int8_residual_11M", codec(Scheme::kDense, Value::kI8), 0, true, 13 * n, 0);
  add("quantise_int4_11M", codec(Scheme::kDense, Value::kI4), 0, false, 4.5 * n, 4.5 * n);
  add("quantise_f16_11M", codec(Scheme::kDense, Value::kF16), 0, false, 6 * n, 6 * n);
  add("quantise_bf16_11M", codec(Scheme::kDense, Value::kBF16), 0, false, 6 * n, 6 * n);
  add("hadamard_int4_11M", codec(Scheme::kHadamard, Value::kI4), 0, false, 0, 12.5 * n);

  std::erase_if(cases, [&](const Case& c) {
    return c.name != "memcpy_11M" && c.name.find(only) == std::string::npos;
  });
  // Interleaved, so that a disturbance does not fall on one of them alone.
  for (int i = 0; i < repetitions; ++i) {
    for (Case& c : cases) {
      c.prepare();
      c.times.push_back(seconds(c.work));
    }
  }
  if (selected > 0) verify_selection(gradient.span(), k, {index.data(), index.data() + selected});

  json results = json::array();
  double bandwidth = 0;
  for (Case& c : cases) {
    std::sort(c.times.begin(), c.times.end());
    json result{{"name", c.name},
                {"seconds", c.times.front()},
                {"seconds_median", c.times[c.times.size() / 2]},
                {"seconds_max", c.times.back()}};
    if (c.name == "memcpy_11M") bandwidth = c.bytes / c.times.front();
    if (c.bytes > 0) result["bandwidth_share"] = c.bytes / c.times.front() / bandwidth;
    if (targets.contains(c.name)) {
      const Target& t = targets[c.name];
      result["message_bytes"] = t.result.message_bytes;
      result["bytes_per_element"] =
          static_cast<double>(t.result.message_bytes) / static_cast<double>(t.result.selected);
    }
    results.push_back(std::move(result));
  }
  const json report{{"schema", 1},
                    {"isa", kernels.name},
                    {"elements", kElements},
                    {"segment_bytes", kSegmentBytes},
                    {"repetitions", repetitions},
                    {"threads", 1},
                    {"bandwidth_bytes_per_second", bandwidth},
                    {"results", results}};
  if (out.empty()) {
    std::cout << report.dump(2) << '\n';
    return 0;
  }
  std::ofstream file(out);
  file << report.dump(2) << '\n';
  if (!file.flush()) fail("cannot write the result");
  return 0;
}
