"""Write the files that are generated from `setup.yml`."""

from .files import build_files

for path, text in build_files().items():
    path.write_text(text, encoding="utf-8")
