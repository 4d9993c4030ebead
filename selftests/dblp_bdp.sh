#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# BtlBw, RTprop and BDP of dblp-flows against the path that netem makes: 3 s after each
# change of the path, and after the change back. The path has a queue of one BDP. What is
# seen 3 s after the start is printed, but not judged: nothing has changed yet.
#
# Best run with tools/vm/run --icount, where the path does not depend on the host's load.
#
# The truth, for what a flow calls its payload: the rate of the link times the payload of a
# full frame, and the delay plus the time of one full frame on the link.
#
# DBLP_BDP_FLOWS (dblp bbr cubic), DBLP_BDP_STEPS (Mb/s:ms) and DBLP_BDP_ARGS (of
# dblp-flows) change what is run.

. "$(dirname -- "$0")/lib.sh"

flows=${DBLP_FLOWS:-$here/../build/cmake/tools/flows/dblp-flows}
kinds=${DBLP_BDP_FLOWS:-dblp bbr cubic}
steps=${DBLP_BDP_STEPS:-10:20 50:20 10:20 10:100 10:20}
read -ra args <<<"${DBLP_BDP_ARGS:-}"
frame=1514
worst_btlbw=0 worst_rtprop=0 worst_bdp=0
collector='' now=0

clock()
{
	local text _

	read -r text _ </proc/uptime
	now=${text/./}
}

# Waits for TENTHS of a second of the guest's clock. What is waited for is that time
# passes: the claim is about it.
pass_time()
{
	local end

	clock
	end=$((now + $1 * 10))
	until clock && ((now >= end)); do pause; done
}

# set_path MBIT MS
set_path()
{
	local queue=$((($1 * $2 * 125 + frame - 1) / frame))

	netem to1 delay "$2ms"
	tc -n "$sw" qdisc replace dev to2 root netem rate "$1mbit" limit "$queue" || return 1
	echo "# to2: rate $1mbit limit $queue"
}

# Of the last whole line that dblp-flows printed.
value_of()
{
	local line

	line=$(tail -n 2 "$tmp/json" | head -n 1)
	[[ $line =~ \"$1\":([0-9]+) ]] && value=${BASH_REMATCH[1]}
}

# Error in hundredths of a percent.
error_of()
{
	local diff=$(($1 > $2 ? $1 - $2 : $2 - $1))

	echo $((diff * 10000 / $2))
}

percent()
{
	printf '%d.%02d%%' $(($1 / 100)) $(($1 % 100))
}

# measure KIND MBIT MS PAYLOAD JUDGED: compares; judges too if JUDGED is not empty.
measure()
{
	local btlbw rtprop bdp eb er ed
	local true_btlbw=$(($2 * 125000 * $4 / frame))
	local true_rtprop=$(($3 * 1000000 + frame * 8000 / $2))
	local true_bdp=$((true_btlbw * (true_rtprop / 1000) / 1000000))

	value_of btlbw_bytes_per_s && btlbw=$value
	value_of rtprop_ns && rtprop=$value
	value_of bdp_bytes && bdp=$value
	expect "values of $1" "${btlbw:-0}" -gt 0 || return
	eb=$(error_of "$btlbw" "$true_btlbw")
	er=$(error_of "$rtprop" "$true_rtprop")
	ed=$(error_of "$bdp" "$true_bdp")
	echo "# $1 $2 Mb/s $3 ms: btlbw $btlbw of $true_btlbw ($(percent "$eb"))," \
		"rtprop $rtprop of $true_rtprop ($(percent "$er"))," \
		"bdp $bdp of $true_bdp ($(percent "$ed"))${5:+ judged}"
	[[ -n $5 ]] || return 0
	((er <= worst_rtprop)) || worst_rtprop=$er
	expect "error of RTprop, 1/100 %" "$er" -le 500
	((eb <= worst_btlbw)) || worst_btlbw=$eb
	((ed <= worst_bdp)) || worst_bdp=$ed
	expect "error of BtlBw, 1/100 %" "$eb" -le 500
	expect "error of BDP, 1/100 %" "$ed" -le 1000
}

traffic()
{
	case $1 in
	dblp)
		# Whole segments only: a short one has a shorter round trip.
		receiver rx "$h2" -l 10.9.2.2 -n 1000000 -u || return 1
		start tx "$h1" "$xfer" send -d 10.9.2.2 -p "$port" -n 1000000 \
			-s $((1436 * 180)) -w 16
		;;
	*)
		start rx "$h2" python3 "$here/tcp_flow.py" recv 10.9.2.2
		wait_until has_lines rx ready || return 1
		port=${found[0]#*=}
		start tx "$h1" python3 "$here/tcp_flow.py" send 10.9.2.2 "$port" "$1"
		wait_until has_lines tx connected || return 1
		;;
	esac
}

flow_seen()
{
	value_of btlbw_bytes_per_s && ((value > 0))
}

follow()
{
	local kind=$1 step mbit ms payload=1448 settle=30 judged=''

	[[ $kind != dblp ]] || payload=1472
	# CUBIC is measured once it has drained the queue of the last step.
	[[ $kind != cubic ]] || settle=100
	IFS=: read -r mbit ms <<<"${steps%% *}"
	set_path "$mbit" "$ms" || return 1
	traffic "$kind" || return 1
	"$flows" --json --interval 0.2 --port "$port" "${args[@]}" >"$tmp/json" 2>"$tmp/json.err" &
	collector=$!
	pids+=("$collector")
	wait_until flow_seen || sed 's/^/# /' "$tmp/json.err"
	for step in $steps; do
		IFS=: read -r mbit ms <<<"$step"
		set_path "$mbit" "$ms"
		pass_time "$settle"
		measure "$kind" "$mbit" "$ms" "$payload" "$judged"
		judged=1
	done
	kill -TERM "$collector" && wait "$collector"
	expect "status of dblp-flows" $? = 0
	forget "$collector"
	sed 's/^/# /' "$tmp/json.err"
	crash tx
	crash rx
	[[ -z $failed ]]
}

lib_init
[[ -x $flows ]] || skip_all "dblp-flows is not built"
[[ -e /sys/kernel/btf/vmlinux ]] || skip_all "the kernel has no BTF"
path_create
modprobe tcp_bbr 2>/dev/null
# So that no file is read for the first time while a path is measured.
pass_time 1
"$flows" --once --interval 0.1 >/dev/null || exit 1
for kind in $kinds; do
	subtest "$kind: ${steps// /, }" follow "$kind"
done
echo "worst: btlbw $(percent $worst_btlbw) rtprop $(percent $worst_rtprop) bdp $(percent $worst_bdp)"
lib_exit
