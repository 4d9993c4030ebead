// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause

#include "compress/tests/simt/simt.hpp"

#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace simt {

Index thread_index;
Index block_index;
Index block_size;
Index grid_size;

namespace {

constexpr std::size_t kStack = 64 * 1024;
constexpr unsigned kWarp = 32;

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "simt: block %u, thread %u: %s\n", block_index.x, thread_index.x, what);
  std::abort();
}

enum class State { kReady, kAtBlock, kAtWarp, kDone };

struct Fiber {
  ucontext_t context{};
  void* stack = nullptr;
  State state = State::kDone;
};

// Two generations, since a lane may be at its next exchange before another has
// read this one.
struct Warp {
  std::uint32_t values[2][kWarp] = {};
  unsigned generation[kWarp] = {};
};

class Machine {
 public:
  void seed(std::uint64_t seed) { random_.seed(seed); }
  [[nodiscard]] std::uint64_t switches() const { return switches_; }

  void launch(unsigned grid, unsigned block, const std::function<void()>& kernel) {
    if (block % kWarp != 0) die("not a whole number of warps");
    kernel_ = &kernel;
    grid_size.x = grid;
    block_size.x = block;
    std::vector<unsigned> order(grid);
    std::iota(order.begin(), order.end(), 0U);
    std::shuffle(order.begin(), order.end(), random_);
    for (const unsigned index : order) {
      block_index.x = index;
      run_block(block);
    }
  }

  void block_barrier() { wait(State::kAtBlock); }

  const std::uint32_t* warp_exchange(std::uint32_t value) {
    const unsigned thread = current_;
    Warp& warp = warps_[thread / kWarp];
    const unsigned slot = warp.generation[thread % kWarp]++ % 2;
    warp.values[slot][thread % kWarp] = value;
    wait(State::kAtWarp);
    return warp.values[slot];
  }

  void maybe_yield() {
    if (random_() % 8 == 0) wait(State::kReady);
  }

 private:
  static void enter() { machine().run_thread(); }
  static Machine& machine();
  friend Machine& the_machine();

  void run_thread() {
    finish_switch(nullptr);
    (*kernel_)();
    fibers_[current_].state = State::kDone;
#if defined(__SANITIZE_ADDRESS__)
    // Null: this stack is not come back to.
    __sanitizer_start_switch_fiber(nullptr, scheduler_stack_, scheduler_size_);
#endif
    setcontext(&scheduler_);
  }

  void run_block(unsigned block) {
    if (fibers_.size() < block) fibers_.resize(block);
    warps_.assign(block / kWarp, Warp{});
    for (unsigned i = 0; i < block; ++i) {
      Fiber& fiber = fibers_[i];
      if (fiber.stack == nullptr) {
        fiber.stack =
            mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (fiber.stack == MAP_FAILED) die("no memory for a stack");
      }
      getcontext(&fiber.context);
      fiber.context.uc_stack = {.ss_sp = fiber.stack, .ss_flags = 0, .ss_size = kStack};
      fiber.context.uc_link = nullptr;
      makecontext(&fiber.context, &Machine::enter, 0);
      fiber.state = State::kReady;
    }
    std::vector<unsigned> order(block);
    std::iota(order.begin(), order.end(), 0U);
    for (;;) {
      std::shuffle(order.begin(), order.end(), random_);
      bool ran = false;
      for (const unsigned i : order) {
        if (fibers_[i].state != State::kReady) continue;
        ran = true;
        resume(i);
      }
      release_warps(block);
      if (ran || any(block, State::kReady)) continue;
      if (all(block, State::kDone)) return;
      if (!all(block, State::kAtBlock)) die("a barrier that not all threads reach");
      for (unsigned i = 0; i < block; ++i) fibers_[i].state = State::kReady;
    }
  }

  void release_warps(unsigned block) {
    for (unsigned first = 0; first < block; first += kWarp) {
      unsigned waiting = 0;
      for (unsigned i = first; i < first + kWarp; ++i)
        waiting += fibers_[i].state == State::kAtWarp ? 1 : 0;
      if (waiting == kWarp)
        for (unsigned i = first; i < first + kWarp; ++i) fibers_[i].state = State::kReady;
    }
  }

  [[nodiscard]] bool all(unsigned block, State state) const {
    return std::all_of(fibers_.begin(), fibers_.begin() + block,
                       [&](const Fiber& f) { return f.state == state; });
  }
  [[nodiscard]] bool any(unsigned block, State state) const {
    return std::any_of(fibers_.begin(), fibers_.begin() + block,
                       [&](const Fiber& f) { return f.state == state; });
  }

  void resume(unsigned i) {
    current_ = i;
    thread_index.x = i;
    ++switches_;
#if defined(__SANITIZE_ADDRESS__)
    void* fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, fibers_[i].stack, kStack);
    swapcontext(&scheduler_, &fibers_[i].context);
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#else
    swapcontext(&scheduler_, &fibers_[i].context);
#endif
  }

  void wait(State state) {
    const unsigned self = current_;
    fibers_[self].state = state;
#if defined(__SANITIZE_ADDRESS__)
    void* fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, scheduler_stack_, scheduler_size_);
    swapcontext(&fibers_[self].context, &scheduler_);
    finish_switch(fake);
#else
    swapcontext(&fibers_[self].context, &scheduler_);
#endif
  }

  void finish_switch([[maybe_unused]] void* fake) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake, &scheduler_stack_, &scheduler_size_);
#endif
  }

  std::mt19937_64 random_;
  const std::function<void()>* kernel_ = nullptr;
  std::vector<Fiber> fibers_;
  std::vector<Warp> warps_;
  ucontext_t scheduler_{};
  const void* scheduler_stack_ = nullptr;
  std::size_t scheduler_size_ = 0;
  unsigned current_ = 0;
  std::uint64_t switches_ = 0;
};

Machine& the_machine() {
  static Machine machine;
  return machine;
}

Machine& Machine::machine() { return the_machine(); }

}  // namespace

void set_seed(std::uint64_t seed) { the_machine().seed(seed); }
std::uint64_t switches() { return the_machine().switches(); }
void launch(unsigned grid, unsigned block, const std::function<void()>& kernel) {
  the_machine().launch(grid, block, kernel);
}
void block_barrier() { the_machine().block_barrier(); }
const std::uint32_t* warp_exchange(std::uint32_t value) {
  return the_machine().warp_exchange(value);
}
void maybe_yield() { the_machine().maybe_yield(); }

}  // namespace simt
