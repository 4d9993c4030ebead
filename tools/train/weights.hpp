// SPDX-License-Identifier: GPL-2.0
//
// A trained model as a file: a line that says what it is, then the parameters.
#pragma once

#include <filesystem>

#include "dblp/result.hpp"
#include "model.hpp"

namespace train {

dblp::Result<void> save_weights(const std::filesystem::path& path, const Model& model);
// EBADMSG, and why, if the file is not one of this model, or damaged.
dblp::Result<void> load_weights(const std::filesystem::path& path, Model& model);

}  // namespace train
