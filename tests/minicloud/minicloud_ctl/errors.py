# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The error with which the command line ends."""

from __future__ import annotations


class MinicloudError(Exception):
    """One clear sentence for the user.

    ``detail`` may contain the end of a log and is printed below it.
    """

    def __init__(self, sentence: str, detail: str = "") -> None:
        super().__init__(sentence)
        self.detail = detail
