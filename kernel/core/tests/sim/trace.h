// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// A datagram in one readable line.
#ifndef DBLP_SIM_TRACE_H
#define DBLP_SIM_TRACE_H

#include <cstdint>
#include <string>

namespace dblp::sim {

// @linear: bytes at @p, if fewer than @len: a last payload may not be there.
std::string describe_datagram(const uint8_t* p, uint32_t len, uint32_t linear = UINT32_MAX);

}  // namespace dblp::sim

#endif  // DBLP_SIM_TRACE_H
