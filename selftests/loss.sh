#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Random loss in both directions: everything arrives, once, over both IP versions.

. "$(dirname -- "$0")/lib.sh"

# transfer ADDRESS LOSS ARGUMENT...: of answers, of which there are fewer, at least 20 % are
# lost, so that some are.
transfer()
{
	local address=$1 loss=$2
	shift 2

	netem to2 loss "$loss" delay 2ms
	netem to1 loss $((${loss%\%} < 20 ? 20 : ${loss%\%}))% delay 2ms
	receiver rx "$h2" -l "$address" -n 8 || return 1
	send_to "$address" -n 8 "$@" || return 1
	agree
	expect "messages" "$(count_lines rx 'rx .* missing=0 ')" = 8
	expect "packets lost" "$(netem_dropped to2)" -gt 0
	expect "answers lost" "$(netem_dropped to1)" -gt 0
}

lib_init
path_create
size=$((100000 + RANDOM * 4))
subtest "2 % over IPv4, $size bytes" transfer 10.9.2.2 2% -s "$size"
subtest "20 % over IPv6, $size bytes" transfer fd09:2::2 20% -s "$size"
subtest "30 %, small messages" transfer 10.9.2.2 30% -s 300
subtest "20 %, one at a time" transfer fd09:2::2 20% -s 5000 -w 1
lib_exit
