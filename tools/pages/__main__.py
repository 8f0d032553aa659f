"""Write the pages with sections from the code, the table of kinds, and what has options."""

from .badges import list_files
from .kind_table import write_kind_table
from .options import write_options
from .tables import PAGES, renewed

for page in PAGES:
    page.write_text(renewed(page), encoding="utf-8")

for path, content in {**list_files(), **write_kind_table(), **write_options()}.items():
    path.write_text(content, encoding="utf-8")
