# SPDX-License-Identifier: GPL-2.0
"""One exception for all that a user can cause or must know."""


class LabError(Exception):
    """Its text is one clear line; the lab prints it and exits with status 1."""
