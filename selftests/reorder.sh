#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Packets that overtake each other: nothing is lost by it, nor taken for lost twice.

. "$(dirname -- "$0")/lib.sh"

transfer()
{
	local address=$1
	shift

	receiver rx "$h2" -l "$address" -n 5 || return 1
	snapshot "$h1"
	snapshot "$h2"
	send_to "$address" -n 5 -s 300000 "$@" || return 1
	agree
	expect "messages" "$(count_lines rx 'rx ')" = 5
	# Reordering alone must not look like a path that loses half.
	expect "segments sent again" "$(delta "$h1" segs_retransmitted)" -lt \
		"$(delta "$h1" segs_sent)"
}

whole()
{
	transfer "$@" || return 1
	expect "whole messages" "$(count_lines rx 'rx .* missing=0 ')" = 5
}

lib_init
path_create
netem to2 delay 5ms reorder 25% 50%
subtest "a quarter overtakes by 5 ms, IPv4" whole 10.9.2.2
subtest "a quarter overtakes by 5 ms, tolerance 20 %" transfer 10.9.2.2 -T 200000
netem to2 delay 5ms 4ms
subtest "5 ms and 4 ms of jitter, IPv6" whole fd09:2::2
netem to1 delay 5ms 4ms
subtest "jitter in both directions" whole fd09:2::2
lib_exit
