// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// A value, or why there is none: an errno and what was being done.
//
//   dblp::Result<std::size_t> sent = socket.send(gradient);
//   if (!sent) std::cerr << sent.error().message();   // "sendmsg: Message too long"
//
// Data paths test the result; where an exception is wanted, value() throws
// std::system_error.
#pragma once

#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

namespace dblp {

class Error {
 public:
  // `code` is a positive errno; `context` names the step that failed.
  Error(int code, std::string context) : code_(code), context_(std::move(context)) {}

  [[nodiscard]] int code() const noexcept { return code_; }
  [[nodiscard]] const std::string& context() const noexcept { return context_; }
  [[nodiscard]] std::string message() const {
    return context_ + ": " + std::generic_category().message(code_);
  }
  [[noreturn]] void raise() const {
    throw std::system_error(code_, std::generic_category(), context_);
  }

 private:
  int code_;
  std::string context_;
};

template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  // Implicit, so that a function returns either as it is.
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  [[nodiscard]] bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  T& value() & {
    check();
    return std::get<0>(state_);
  }
  const T& value() const& {
    check();
    return std::get<0>(state_);
  }
  T&& value() && {
    check();
    return std::get<0>(std::move(state_));
  }

  // The caller has tested that there is a value.
  T& operator*() & noexcept { return *std::get_if<0>(&state_); }
  const T& operator*() const& noexcept { return *std::get_if<0>(&state_); }
  T&& operator*() && noexcept { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() noexcept { return std::get_if<0>(&state_); }
  const T* operator->() const noexcept { return std::get_if<0>(&state_); }

  // The caller has tested that there is none.
  [[nodiscard]] const Error& error() const noexcept { return *std::get_if<1>(&state_); }

 private:
  void check() const {
    if (!has_value()) error().raise();
  }

  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit as above

  [[nodiscard]] bool has_value() const noexcept { return !error_; }
  explicit operator bool() const noexcept { return has_value(); }
  void value() const {
    if (error_) error_->raise();
  }
  [[nodiscard]] const Error& error() const noexcept { return *error_; }

 private:
  std::optional<Error> error_;
};

}  // namespace dblp
