"""Screenshots as small PNG files: with a palette, as they are in git.

The same picture is always the same file.
"""

import base64
import struct
import zlib

from .chromium import Chromium

# Returns the pixels of a picture as places in a palette of its most frequent colours. Any other
# colour, which is that of an edge of a letter, becomes the one that is most like it.
_QUANTIZE = """
const [data, done] = arguments;
const picture = new Image();
picture.onload = () => {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [picture.width, picture.height];
  const context = canvas.getContext("2d");
  context.drawImage(picture, 0, 0);
  const bytes = context.getImageData(0, 0, canvas.width, canvas.height).data;
  const counts = new Map();
  const colors = new Uint32Array(bytes.length / 4);
  for (let place = 0; place < colors.length; place++) {
    const color = (bytes[4 * place] << 16) | (bytes[4 * place + 1] << 8) | bytes[4 * place + 2];
    colors[place] = color;
    counts.set(color, (counts.get(color) || 0) + 1);
  }
  const ordered = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a) || a - b);
  const palette = ordered.slice(0, 256);
  const parts = (color) => [color >> 16, (color >> 8) & 255, color & 255];
  const distance = (a, b) =>
    parts(a).reduce((sum, part, at) => sum + (part - parts(b)[at]) ** 2, 0);
  const nearest = (color) => palette.reduce(
    (best, other, at) => (distance(color, other) < distance(color, palette[best]) ? at : best), 0);
  const places = new Map(ordered.map((color, at) => [color, at < 256 ? at : nearest(color)]));
  let indices = "";
  for (const color of colors) indices += String.fromCharCode(places.get(color));
  done([canvas.width, canvas.height, palette.map(parts).flat(), btoa(indices)]);
};
picture.src = `data:image/png;base64,${data}`;
"""


def compress(browser: Chromium, screenshot: str) -> bytes:
    """Return a screenshot, which is a PNG in base64, as a PNG with a palette.

    The browser shows an empty page afterwards.
    """
    browser.driver.get("about:blank")
    width, height, palette, indices = browser.driver.execute_async_script(_QUANTIZE, screenshot)
    pixels = base64.b64decode(indices)
    # Each line has a filter, of which 0 is none: it suits a palette.
    lines = [b"\0" + pixels[start : start + width] for start in range(0, len(pixels), width)]
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            _build_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
            _build_chunk(b"PLTE", bytes(palette)),
            _build_chunk(b"IDAT", zlib.compress(b"".join(lines), 9)),
            _build_chunk(b"IEND", b""),
        )
    )


def _build_chunk(name: bytes, contents: bytes) -> bytes:
    checksum = struct.pack(">I", zlib.crc32(name + contents))
    return struct.pack(">I", len(contents)) + name + contents + checksum
