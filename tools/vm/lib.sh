# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# Sourced by tools/setup, tools/vm/* and tools/check: where the unpacked
# kernels are and how they are named. Needs bash.
#
# Each kernel that is tested has a folder CACHE/kernel/NAME/RELEASE with the
# contents of Debian's image, headers and kbuild packages of one and the same
# version, and a link CACHE/kernel/NAME/current to the one in use. tools/setup
# fills it; a folder without the file "complete" does not count.

# Known kernels; tools/setup finds the newest release of each in the archive.
# shellcheck disable=SC2034 # read by those who source this file
dblp_kernels=(6.1 6.12)

dblp_cache()
{
	local home=${XDG_CACHE_HOME:-${HOME:-}/.cache}

	echo "${DBLP_CACHE:-$home/dblp}"
}

dblp_kernel_known()
{
	local name

	for name in "${dblp_kernels[@]}"; do
		[[ $name == "$1" ]] && return 0
	done
	return 1
}

# Prints the folder of the unpacked kernel NAME, without links in it, because
# a running guest must not notice that "current" moved on.
dblp_kernel_dir()
{
	local link
	link=$(dblp_cache)/kernel/$1/current

	[[ -e $link/complete ]] || return 1
	realpath -- "$link"
}

# Prints the release (as uname -r has it) of an unpacked kernel.
dblp_kernel_release()
{
	basename -- "$1"
}

# Prints the folder to give to make -C for an out-of-tree module.
dblp_kernel_headers()
{
	echo "$1/usr/src/linux-headers-$(dblp_kernel_release "$1")"
}
