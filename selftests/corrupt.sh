#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A path that turns bits over: it is loss to the protocol, and no byte of a message is
# ever wrong.

. "$(dirname -- "$0")/lib.sh"

# Datagrams with a wrong checksum in NS, whoever found them.
bad_checksums()
{
	local proc=/proc/${holders[$1]}/net word name n=0

	while read -r word _ _ _ _ _ _ name _; do
		[[ $word != Udp: || $name == InCsumErrors ]] || n=$((n + name))
	done <"$proc/snmp"
	while read -r word name; do
		[[ $word != Udp6InCsumErrors ]] || n=$((n + name))
	done <"$proc/snmp6"
	counter "$1" reject_checksum >/dev/null
	echo $((n + value))
}

transfer()
{
	local address=$1 before
	shift

	before=$(bad_checksums "$h2")
	receiver rx "$h2" -l "$address" -n 5 || return 1
	send_to "$address" -n 5 -s 300000 "$@" || return 1
	agree
	expect "messages" "$(count_lines rx 'rx ')" = 5
	expect "wrong checksums" "$(bad_checksums "$h2")" -gt "$before"
}

lib_init
path_create
netem to2 corrupt 5%
netem to1 corrupt 5%
subtest "5 % corrupt, IPv4" transfer 10.9.2.2
subtest "5 % corrupt, IPv6" transfer fd09:2::2
subtest "5 % corrupt, tolerance 10 %" transfer 10.9.2.2 -T 100000
lib_exit
