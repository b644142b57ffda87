"""Inspects a page at one width and in one colour scheme, and lists what is wrong with it."""

import base64
import dataclasses

from page.browser import BrowserError


@dataclasses.dataclass(frozen=True)
class Look:
    name: str
    width: int
    height: int
    scheme: str
    scale: int = 1


LOOKS = [
    Look("1280-light", 1280, 900, "light"),
    Look("1280-dark", 1280, 900, "dark"),
    Look("768-light", 768, 1024, "light"),
    Look("390-light", 390, 844, "light", 2),
    Look("390-dark", 390, 844, "dark", 2),
]

# Opens all folded content, for a second inspection.
UNFOLD = "for (const folded of document.querySelectorAll('details')) folded.open = true"

# JavaScript that returns problems as sentences. Content may extend beyond an element that scrolls sideways. Boxes of
# text lines are shrunk by a pixel before they are compared, because neighbouring lines may touch. Ignores grid lines
# (class s4 in svg.cpp: Paint::kGrid) and filled areas, because text may cover them.
INSPECTION = r"""
(() => {
  const problems = [];
  const smallest = 9;
  const shorten = text => JSON.stringify(text.trim().slice(0, 50));
  const visible = element => {
    for (let e = element; e; e = e.parentElement) {
      if (getComputedStyle(e).display === 'none') return false;
      const parent = e.parentElement;
      if (parent && parent.tagName === 'DETAILS' && !parent.open && e.tagName !== 'SUMMARY') return false;
    }
    return true;
  };
  // A browser that is sent to a place behind a fold opens the fold.
  const folded = element => !!element.closest('details:not([open])');
  const scrolls = element => /auto|scroll/.test(getComputedStyle(element).overflowX);
  const isInScroller = element => {
    for (let e = element; e; e = e.parentElement) if (scrolls(e)) return true;
    return false;
  };
  for (const link of document.querySelectorAll('a[href^="#"]')) {
    const target = document.getElementById(link.getAttribute('href').slice(1));
    if (!target || !(visible(target) || folded(target))) problems.push(`the link ${shorten(link.textContent)} leads nowhere`);
  }
  for (const folded of document.querySelectorAll('details'))
    if (!folded.querySelector(':scope > summary')?.textContent.trim())
      problems.push('a folded part has no title to open it by');
  if (document.documentElement.scrollWidth > innerWidth)
    problems.push(`the page is ${document.documentElement.scrollWidth} wide in a window of ${innerWidth}`);
  if (!document.querySelector('svg, table')) problems.push('the page has neither a picture nor a table');
  const boxes = [];
  const strokes = [];  // by picture: [picture, boxes of small stretches of what is drawn]
  const drawn = svg => {
    const known = strokes.find(([picture]) => picture === svg);
    if (known) return known[1];
    const found = [];
    for (const shape of svg.querySelectorAll('line, rect, circle, path')) {
      if (shape.classList.contains('s4') || !visible(shape)) continue;
      const name = `<${shape.tagName} class="${shape.getAttribute('class') ?? ''}">`;
      if (shape.tagName !== 'path' && shape.tagName !== 'line') {
        found.push({box: shape.getBoundingClientRect(), name});
        continue;
      }
      if (!/\bs\d/.test(shape.getAttribute('class') ?? '')) continue;
      const toScreen = shape.getScreenCTM();
      const length = shape.getTotalLength();
      const pieces = Math.ceil(length / 2);
      for (let piece = 0; piece <= pieces; ++piece) {
        const at = shape.getPointAtLength(length * piece / Math.max(1, pieces)).matrixTransform(toScreen);
        found.push({box: {left: at.x, right: at.x, top: at.y, bottom: at.y}, name});
      }
    }
    strokes.push([svg, found]);
    return found;
  };
  const covered = (svg, text) => drawn(svg).find(({box}) =>
    box.left < text.right && text.left < box.right + 0.01 && box.top < text.bottom && text.top < box.bottom + 0.01);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const parent = node.parentElement;
    if (!node.data.trim() || /^(TITLE|STYLE|SCRIPT)$/i.test(parent.tagName) || !visible(parent)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const svg = parent.closest('svg');
    // The title of a folded part may be cut short below: opening it shows the rest.
    const title = parent.closest('details:not([open]) > summary');
    const end = title ? title.getBoundingClientRect().bottom : Infinity;
    const rects = svg ? [parent.getBoundingClientRect()] : [...range.getClientRects()];
    for (const r of rects) {
      if (r.width < 1 || r.height < 1 || r.top > end - 2) continue;
      const what = shorten(node.data);
      if (r.left < -0.5 || (r.right > innerWidth + 0.5 && !isInScroller(parent)))
        problems.push(`text ${what} reaches from ${r.left.toFixed(0)} to ${r.right.toFixed(0)}`);
      let size = parseFloat(getComputedStyle(parent).fontSize);
      if (svg) {
        const frame = svg.getBoundingClientRect();
        size *= frame.width / svg.viewBox.baseVal.width;
        if (r.left < frame.left - 1 || r.right > frame.right + 1 || r.top < frame.top - 1 ||
            r.bottom > frame.bottom + 1)
          problems.push(`text ${what} leaves its picture`);
      }
      if (size < smallest) problems.push(`text ${what} is ${size.toFixed(1)} pixels high`);
      // Glyphs fill the middle of their line.
      const inset = Math.min(r.height * 0.2, 5);
      boxes.push({left: r.left + 1, right: r.right - 1, top: r.top + inset, bottom: r.bottom - inset,
                  what, node});
      const line = svg && covered(svg, boxes[boxes.length - 1]);
      if (line) problems.push(`${line.name} runs through text ${what}`);
    }
  }
  // Names of models and files have none.
  for (const title of document.querySelectorAll('h1, h3, dt, th:first-child, .tile > span:first-child, figure > p'))
    if (/^[a-z]+\b(?![_.])/.test(title.textContent.trim()) && !title.matches('.legend'))
      problems.push(`no capital: ${shorten(title.textContent)}`);
  // A word that goes on in the next line although it is shorter than a line. Names may break after
  // punctuation, commands and hashes anywhere.
  const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (words.nextNode()) {
    const node = words.currentNode;
    const parent = node.parentElement;
    if (!parent.closest('p, td, th, li, h1, h2, h3, .tile') || parent.closest('svg') || !visible(parent)) continue;
    let box = parent;
    while (getComputedStyle(box).display.startsWith('inline')) box = box.parentElement;
    for (const {0: word, index} of node.data.matchAll(/[^\s,=()\[\]/:;-]+/g)) {
      const range = document.createRange();
      range.setStart(node, index);
      range.setEnd(node, index + word.length);
      const lines = [...range.getClientRects()].filter(r => r.width > 0);
      const width = lines.reduce((sum, r) => sum + r.width, 0);
      if (lines.length > 1 && lines[lines.length - 1].top > lines[0].top + 2 && width < box.clientWidth)
        problems.push(`the word ${shorten(word)} is broken`);
    }
  }
  for (const element of document.body.querySelectorAll('*')) {
    if (element.closest('svg') || !visible(element)) continue;
    const style = getComputedStyle(element);
    if (style.overflowX !== 'visible' && !scrolls(element) && element.scrollWidth > element.clientWidth + 1)
      problems.push(`<${element.tagName.toLowerCase()}> clips its content: ${shorten(element.textContent)}`);
  }
  boxes.sort((a, b) => a.top - b.top);
  for (let i = 0; i < boxes.length; ++i) {
    const a = boxes[i];
    for (let j = i + 1; j < boxes.length && boxes[j].top < a.bottom; ++j) {
      const b = boxes[j];
      if (a.node !== b.node && a.left < b.right && b.left < a.right)
        problems.push(`text ${a.what} covers ${b.what}`);
    }
  }
  return problems;
})()
"""


def look_at(browser, page, look, screenshot):
    """Opens the page and returns its problems as sentences. Saves two screenshots of the whole page: before and after
    all content is unfolded."""
    browser.events.clear()
    browser.call("Emulation.setDeviceMetricsOverride", width=look.width, height=look.height,
                 deviceScaleFactor=look.scale, mobile=False)
    browser.call("Emulation.setEmulatedMedia",
                 features=[{"name": "prefers-color-scheme", "value": look.scheme}])
    # Disables the scripts of the page, because the page must work without them. evaluate() still works.
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    browser.call("Page.navigate", url=page.resolve().as_uri())
    browser.wait_for("Page.loadEventFired")
    problems = list(complaints(browser.events, page))
    problems += browser.evaluate(INSPECTION)
    capture(browser, look, screenshot)
    browser.evaluate(UNFOLD)
    problems += [f"unfolded: {problem}" for problem in browser.evaluate(INSPECTION)
                 if problem not in problems]
    capture(browser, look, screenshot.with_stem(f"{screenshot.stem}-unfolded"))
    return problems


def capture(browser, look, screenshot):
    size = browser.call("Page.getLayoutMetrics")["cssContentSize"]
    picture = browser.call("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                           clip={"x": 0, "y": 0, "width": look.width, "height": size["height"],
                                 "scale": 1})
    screenshot.write_bytes(base64.b64decode(picture["data"]))


def complaints(events, page):
    """Yields console messages, exceptions, and requests for anything but the page itself."""
    own = page.resolve().as_uri()
    for event in events:
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Runtime.consoleAPICalled":
            yield f"console: {parameters['args']}"
        elif method == "Runtime.exceptionThrown":
            yield f"exception: {parameters['exceptionDetails'].get('text')}"
        elif method == "Log.entryAdded":
            yield f"console: {parameters['entry'].get('text')}"
        elif method == "Network.requestWillBeSent":
            url = parameters["request"]["url"]
            if url != own and not url.startswith("data:"):
                yield f"asks for {url}"
        elif method == "Inspector.targetCrashed":
            raise BrowserError("the page crashed")
