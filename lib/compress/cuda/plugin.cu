// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// libdblp_cuda.so: the only object that knows the CUDA runtime, which is linked
// into it. Without a driver every call fails, and so does dblp_cuda_open().

#include "compress/cuda/plugin.hpp"

#include <cuda_runtime.h>

#include <cerrno>
#include <cstring>

#include "compress/cuda/codec.cuh"

namespace dblp::compress {
namespace {

Status of(cudaError_t error) { return error == cudaSuccess ? Status::kOk : Status::kDeviceFailed; }

Error failed(const char* what, cudaError_t error) {
  return Error(error == cudaErrorMemoryAllocation ? ENOMEM : EIO,
               std::string(what) + " (" + cudaGetErrorString(error) + ")");
}

cudaStream_t raw(Stream stream) { return static_cast<cudaStream_t>(stream.handle); }
cudaEvent_t raw(Event event) { return static_cast<cudaEvent_t>(event.handle); }

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(const cudaDeviceProp& properties) {
    std::strncpy(name_, properties.name, sizeof name_ - 1);
  }

  const char* name() const noexcept override { return name_; }

  Result<std::unique_ptr<Codec>> make_codec(const CodecOptions& options,
                                            const Shape& shape) override {
    std::unique_ptr<Codec> codec;
    if (gpu::make_gpu_codec(options, shape, &codec) != Status::kOk)
      return Error(EINVAL, "codec options or shape");
    return std::move(codec);
  }

  Result<void*> allocate(std::size_t bytes) override {
    void* memory = nullptr;
    const cudaError_t error = cudaMalloc(&memory, bytes > 0 ? bytes : 1);
    if (error != cudaSuccess) return failed("cudaMalloc", error);
    return memory;
  }
  void release(void* memory) noexcept override { (void)cudaFree(memory); }

  Status register_host(std::span<std::byte> memory) noexcept override {
    return of(cudaHostRegister(memory.data(), memory.size(), cudaHostRegisterPortable));
  }
  void unregister_host(std::span<std::byte> memory) noexcept override {
    (void)cudaHostUnregister(memory.data());
  }

  Result<Stream> create_stream() override {
    cudaStream_t stream = nullptr;
    const cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (error != cudaSuccess) return failed("cudaStreamCreateWithFlags", error);
    return Stream{stream};
  }
  void destroy_stream(Stream stream) noexcept override { (void)cudaStreamDestroy(raw(stream)); }

  Result<Event> create_event() override {
    cudaEvent_t event = nullptr;
    const cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    if (error != cudaSuccess) return failed("cudaEventCreateWithFlags", error);
    return Event{event};
  }
  void destroy_event(Event event) noexcept override { (void)cudaEventDestroy(raw(event)); }

  Status copy_to_device(void* device, const void* host, std::size_t bytes,
                        Stream stream) noexcept override {
    return of(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, raw(stream)));
  }
  Status copy_to_host(void* host, const void* device, std::size_t bytes,
                      Stream stream) noexcept override {
    return of(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, raw(stream)));
  }
  Status record(Event event, Stream stream) noexcept override {
    return of(cudaEventRecord(raw(event), raw(stream)));
  }
  Status wait(Stream stream, Event event) noexcept override {
    return of(cudaStreamWaitEvent(raw(stream), raw(event), 0));
  }
  Status reached(Event event) noexcept override {
    const cudaError_t error = cudaEventQuery(raw(event));
    return error == cudaErrorNotReady ? Status::kMissing : of(error);
  }
  Status synchronize(Stream stream) noexcept override {
    return of(cudaStreamSynchronize(raw(stream)));
  }

 private:
  char name_[256] = {};
};

}  // namespace

extern "C" __attribute__((visibility("default"))) Status dblp_cuda_open(
    std::uint32_t version, int ordinal, std::unique_ptr<Device>* device) {
  if (version != kCudaPluginVersion) return Status::kBadVersion;
  int count = 0;
  cudaDeviceProp properties{};
  if (cudaGetDeviceCount(&count) != cudaSuccess || ordinal < 0 || ordinal >= count ||
      cudaSetDevice(ordinal) != cudaSuccess ||
      cudaGetDeviceProperties(&properties, ordinal) != cudaSuccess)
    return Status::kNoDevice;
  *device = std::make_unique<CudaDevice>(properties);
  return Status::kOk;
}

}  // namespace dblp::compress
