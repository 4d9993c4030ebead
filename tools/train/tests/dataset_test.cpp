// SPDX-License-Identifier: GPL-2.0

#include "dataset.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>

namespace {

namespace fs = std::filesystem;
using train::load_dataset;
using train::Split;

constexpr const char* kImages = "t10k-images-idx3-ubyte";
constexpr const char* kLabels = "t10k-labels-idx1-ubyte";

class DatasetFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "dataset.XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  static std::string idx(const std::vector<std::uint32_t>& lengths, std::size_t bytes) {
    std::string file{'\0', '\0', '\x08', static_cast<char>(lengths.size())};
    for (const auto length : lengths)
      for (int shift = 24; shift >= 0; shift -= 8) file += static_cast<char>(length >> shift);
    for (std::size_t i = 0; i < bytes; ++i) file += static_cast<char>(i % 10);
    return file;
  }
  void write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  void write_packed(const std::string& name, const std::string& bytes) {
    gzFile file = gzopen((folder_ / name).c_str(), "wb");
    ASSERT_EQ(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())),
              static_cast<int>(bytes.size()));
    gzclose(file);
  }
  void write_good() {
    write(kImages, idx({3, 28, 28}, 3 * 784));
    write(kLabels, idx({3}, 3));
  }
  // The error must name the file and say what is wrong with it.
  void expect_error(int code, const std::string& file, const std::string& what) {
    const auto data = load_dataset(folder_, Split::kTest);
    ASSERT_FALSE(data);
    EXPECT_EQ(data.error().code(), code) << data.error().message();
    EXPECT_NE(data.error().message().find(file), std::string::npos) << data.error().message();
    EXPECT_NE(data.error().message().find(what), std::string::npos) << data.error().message();
  }

  fs::path folder_;
};

TEST_F(DatasetFiles, AreRead) {
  write_good();
  const auto data = load_dataset(folder_, Split::kTest);
  ASSERT_TRUE(data) << data.error().message();
  EXPECT_EQ(data->size(), 3U);
  EXPECT_EQ(data->images.size(), 3U * 784);
  EXPECT_EQ(data->images[13], 3);
  EXPECT_EQ(data->labels, (std::vector<std::uint8_t>{0, 1, 2}));
}

TEST_F(DatasetFiles, AreReadPacked) {
  write_packed(std::string(kImages) + ".gz", idx({2, 28, 28}, 2 * 784));
  write_packed(std::string(kLabels) + ".gz", idx({2}, 2));
  const auto data = load_dataset(folder_, Split::kTest);
  ASSERT_TRUE(data) << data.error().message();
  EXPECT_EQ(data->size(), 2U);
}

TEST_F(DatasetFiles, AreReadInPart) {
  write_good();
  const auto data = load_dataset(folder_, Split::kTest, 2);
  ASSERT_TRUE(data) << data.error().message();
  EXPECT_EQ(data->size(), 2U);
  EXPECT_EQ(data->images.size(), 2U * 784);
  EXPECT_EQ(load_dataset(folder_, Split::kTest, 3).value().size(), 3U);
  const auto more = load_dataset(folder_, Split::kTest, 4);
  ASSERT_FALSE(more);
  EXPECT_NE(more.error().message().find("3 items and not 4"), std::string::npos);
}

TEST_F(DatasetFiles, ThatAreNotThere) {
  expect_error(ENOENT, kImages, "No such file");
  write(kImages, idx({3, 28, 28}, 3 * 784));
  expect_error(ENOENT, kLabels, "No such file");
}

TEST_F(DatasetFiles, OfAnotherKind) {
  write_good();
  write(kImages, "GIF89a and so on");
  expect_error(EBADMSG, kImages, "not an IDX file");
  write(kImages, idx({3}, 3));
  expect_error(EBADMSG, kImages, "1 dimensions and not 3");
  write(kImages, idx({3, 32, 32}, 3 * 32 * 32));
  expect_error(EBADMSG, kImages, "length 32 and not 28");
}

TEST_F(DatasetFiles, OfTheWrongLength) {
  write_good();
  write(kImages, "");
  expect_error(EBADMSG, kImages, "ends too early");
  write(kImages, idx({3, 28, 28}, 3 * 784 - 1));
  expect_error(EBADMSG, kImages, "ends too early");
  write(kImages, idx({3, 28, 28}, 3 * 784 + 1));
  expect_error(EBADMSG, kImages, "longer than it claims");
  write(kImages, idx({0xffffffff, 28, 28}, 784));
  expect_error(EBADMSG, kImages, "claims 4294967295 items");
  write(kImages, idx({0, 28, 28}, 0));
  expect_error(EBADMSG, kImages, "claims 0 items");
}

TEST_F(DatasetFiles, ThatAreDamaged) {
  write_good();
  fs::remove(folder_ / kImages);
  const std::string name = std::string(kImages) + ".gz";
  write_packed(name, idx({3, 28, 28}, 3 * 784));
  std::fstream file(folder_ / name, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(20);
  file << "xxxxxxxx";
  file.close();
  expect_error(EBADMSG, name, "");
}

TEST_F(DatasetFiles, ThatDisagree) {
  write_good();
  write(kLabels, idx({4}, 4));
  expect_error(EBADMSG, kImages, "3 images for 4 labels");
  std::string labels = idx({3}, 3);
  labels.back() = 10;
  write(kLabels, labels);
  expect_error(EBADMSG, kLabels, "not below 10");
}

TEST(Dataset, OfFashionMnist) {
  const fs::path folder = "/usr/share/datasets/fashion-mnist";
  if (!fs::exists(folder)) GTEST_SKIP() << "dataset-fashion-mnist is not installed";
  const auto test = load_dataset(folder, Split::kTest);
  ASSERT_TRUE(test) << test.error().message();
  EXPECT_EQ(test->size(), 10000U);
  std::array<int, train::kClasses> counts{};
  for (const auto label : test->labels) ++counts[label];
  for (const int count : counts) EXPECT_EQ(count, 1000);
  EXPECT_EQ(test->labels[0], 9);  // an ankle boot
  EXPECT_EQ(load_dataset(folder, Split::kTrain).value().size(), 60000U);
}

}  // namespace
