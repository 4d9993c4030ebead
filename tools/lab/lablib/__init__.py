# SPDX-License-Identifier: GPL-2.0
"""The lab: experiments on real kernel code in virtual time."""
