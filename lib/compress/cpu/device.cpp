// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause

#include "dblp/compress/device.hpp"

#include <cerrno>
#include <cstring>
#include <new>

namespace dblp::compress {
namespace {

class CpuDevice final : public Device {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "cpu"; }
  [[nodiscard]] Result<std::unique_ptr<Codec>> make_codec(const CodecOptions& options,
                                                          const Shape& shape) override {
    return compress::make_codec(options, shape);
  }

  [[nodiscard]] Result<void*> allocate(std::size_t bytes) override {
    void* memory = ::operator new (bytes > 0 ? bytes : 1, std::align_val_t{64}, std::nothrow);
    if (memory == nullptr) return Error(ENOMEM, "memory of a codec");
    return memory;
  }
  void release(void* memory) noexcept override { ::operator delete (memory, std::align_val_t{64}); }
  Status register_host(std::span<std::byte> /*memory*/) noexcept override { return Status::kOk; }
  void unregister_host(std::span<std::byte> /*memory*/) noexcept override {}

  [[nodiscard]] Result<Stream> create_stream() override { return Stream{}; }
  void destroy_stream(Stream /*stream*/) noexcept override {}
  [[nodiscard]] Result<Event> create_event() override { return Event{}; }
  void destroy_event(Event /*event*/) noexcept override {}

  Status copy_to_device(void* device, const void* host, std::size_t bytes,
                        Stream /*stream*/) noexcept override {
    if (bytes > 0) std::memcpy(device, host, bytes);
    return Status::kOk;
  }
  Status copy_to_host(void* host, const void* device, std::size_t bytes,
                      Stream stream) noexcept override {
    return copy_to_device(host, device, bytes, stream);
  }
  Status record(Event /*event*/, Stream /*stream*/) noexcept override { return Status::kOk; }
  Status wait(Stream /*stream*/, Event /*event*/) noexcept override { return Status::kOk; }
  Status reached(Event /*event*/) noexcept override { return Status::kOk; }
  Status synchronize(Stream /*stream*/) noexcept override { return Status::kOk; }
};

}  // namespace

Result<std::unique_ptr<Device>> open_cpu_device() {
  return std::unique_ptr<Device>(std::make_unique<CpuDevice>());
}

}  // namespace dblp::compress
