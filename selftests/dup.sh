#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A path that delivers packets twice: the application gets each message once.

. "$(dirname -- "$0")/lib.sh"

transfer()
{
	local address=$1
	shift

	receiver rx "$h2" -l "$address" -n 10 || return 1
	snapshot "$h2"
	send_to "$address" -n 10 "$@" || return 1
	agree
	expect "messages" "$(count_lines rx 'rx .* missing=0 ')" = 10
	expect "messages received" "$(delta "$h2" msgs_received)" = 10
	expect "duplicates found" "$(delta "$h2" reject_dup_packet)" -gt 0
}

lib_init
path_create
netem to2 duplicate 30%
netem to1 duplicate 30%
subtest "30 % twice, IPv4" transfer 10.9.2.2 -s 100000
netem to2 duplicate 70%
subtest "70 % twice, IPv6, small messages" transfer fd09:2::2 -s 700
netem to2 duplicate 30% loss 10% delay 3ms 2ms
subtest "30 % twice, 10 % lost, reordered" transfer 10.9.2.2 -s 100000
lib_exit
