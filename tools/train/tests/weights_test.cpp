// SPDX-License-Identifier: GPL-2.0

#include "weights.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>

namespace {

class Weights : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "weights.XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    file_ = folder_ / "w";
    ASSERT_TRUE(train::save_weights(file_, train::Model(1)));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  int error_of_loading() {
    train::Model model(2);
    const auto result = train::load_weights(file_, model);
    return result ? 0 : result.error().code();
  }

  std::filesystem::path folder_;
  std::filesystem::path file_;
};

TEST_F(Weights, ComeBackAsTheyWere) {
  train::Model model(2);
  ASSERT_TRUE(train::load_weights(file_, model));
  EXPECT_EQ(train::checksum(model.parameters()), train::checksum(train::Model(1).parameters()));
}

TEST_F(Weights, OfTheWrongLength) {
  std::filesystem::resize_file(file_, std::filesystem::file_size(file_) - 1);
  EXPECT_EQ(error_of_loading(), EBADMSG);
  ASSERT_TRUE(train::save_weights(file_, train::Model(1)));
  std::ofstream(file_, std::ios::app) << 'x';
  EXPECT_EQ(error_of_loading(), EBADMSG);
}

TEST_F(Weights, ThatAreDamaged) {
  std::fstream file(file_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(1000);
  file << 'x';
  file.close();
  EXPECT_EQ(error_of_loading(), EBADMSG);
}

TEST_F(Weights, ThatAreNotThere) {
  std::filesystem::remove(file_);
  EXPECT_EQ(error_of_loading(), ENOENT);
  EXPECT_EQ(train::save_weights(folder_ / "no" / "w", train::Model(1)).error().code(), ENOENT);
}

}  // namespace
