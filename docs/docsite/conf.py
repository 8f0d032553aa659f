# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How Sphinx makes the site.

Nothing is fetched: no intersphinx, and a theme that brings along what it shows.
"""

from pygments.lexers.special import TextLexer
from sphinx.highlighting import lexers

# Pygments does not know crontabs.
lexers["cron"] = TextLexer()

project = "osops.placement"
copyright = "osops.placement contributors"
html_title = "osops.placement"

extensions = ["myst_parser", "sphinx_antsibull_ext"]
root_doc = "index"

myst_heading_anchors = 3
highlight_language = "YAML+Jinja"
pygments_style = "ansible"
pygments_dark_style = "monokai"
# What antsibull-docs refers to in this way lies in Ansible's own documentation.
suppress_warnings = ["ref.ref"]

html_theme = "furo"
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_use_index = False
