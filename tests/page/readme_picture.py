"""README's picture of the page: taken anew by a test, compared with the committed one, rewritten on request.

Every run leaves the fresh picture in test-results/. With WRITE_README_PICTURE=1 it also becomes README's.
"""

import base64
import os

from playwright.sync_api import Page

from tests.page.harness import ROOT
from tests.tolerances import README_PICTURE

COMMITTED = ROOT / "tests" / "page" / "screenshot.png"
FRESH = ROOT / "test-results" / "screenshot.png"

# Both pictures shrunk to 160 x 100, so that what counts is what stands where, not how a machine draws its letters.
DIFFERENCE = """async (pictures) => {
  const small = [];
  for (const picture of pictures) {
    const bytes = Uint8Array.from(atob(picture), (c) => c.charCodeAt(0));
    const size = {resizeWidth: 160, resizeHeight: 100, resizeQuality: 'high'};
    const bitmap = await createImageBitmap(new Blob([bytes]), size);
    const context = new OffscreenCanvas(160, 100).getContext('2d');
    context.drawImage(bitmap, 0, 0);
    small.push(context.getImageData(0, 0, 160, 100).data);
  }
  return small[0].reduce((sum, value, i) => sum + Math.abs(value - small[1][i]), 0) / small[0].length;
}"""


def check_readme_picture(page: Page) -> None:
    """Take the picture of what the page shows now and hold README's against it."""
    page.evaluate("document.activeElement.blur()")
    FRESH.parent.mkdir(exist_ok=True)
    fresh = page.screenshot(path=FRESH, full_page=True)
    if os.environ.get("WRITE_README_PICTURE"):
        COMMITTED.write_bytes(fresh)
    pictures = [base64.b64encode(picture).decode() for picture in (fresh, COMMITTED.read_bytes())]
    difference = page.evaluate(DIFFERENCE, pictures)
    assert difference < README_PICTURE, (
        f"README's picture differs by {difference:.1f} of 255 from the page; look at {FRESH.relative_to(ROOT)} and run "
        "this test with WRITE_README_PICTURE=1 if it is right."
    )
