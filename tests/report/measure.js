// Put into a page with a report, which stands in a frame as wide as a window would be: measures what a reader would trip over and leaves the faults in the page.
// Of texts: legible size, contrast, overlap, out of sight. Of the page: nothing wider than the window.
(() => {
  const faults = [];
  const window_width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > window_width)
    faults.push(`the page is ${document.documentElement.scrollWidth} wide in a window of ${window_width}`);
  const channels = (colour) => colour.match(/[\d.]+/g).slice(0, 3).map(Number);
  const luminance = (colour) => {
    const [r, g, b] = channels(colour).map((c) => {
      const s = c / 255;
      return s <= 0.03928 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  let texts = 0;
  const pictures = document.querySelectorAll("svg");
  for (const picture of pictures) {
    const frame = picture.getBoundingClientRect();
    const scale = frame.width / picture.viewBox.baseVal.width;
    const paper = getComputedStyle(picture.querySelector("rect.paper")).fill;
    const boxes = [];
    for (const text of picture.querySelectorAll("text")) {
      texts += 1;
      const style = getComputedStyle(text);
      const name = `"${text.textContent}" in "${picture.querySelector("title").textContent}"`;
      const size = parseFloat(style.fontSize) * scale;
      if (size < 9) faults.push(`${name} is ${size.toFixed(1)} pixels high`);
      if (contrast(style.fill, paper) < 4.5) faults.push(`${name} has contrast ${contrast(style.fill, paper).toFixed(1)}`);
      const box = text.getBoundingClientRect();
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
        faults.push(`${name} leaves its picture`);
      for (const other of boxes)
        if (box.left < other.box.right - 1 && other.box.left < box.right - 1 && box.top < other.box.bottom - 1 && other.box.top < box.bottom - 1)
          faults.push(`${name} overlaps ${other.name}`);
      boxes.push({ box, name });
    }
    for (const line of picture.querySelectorAll("polyline.line"))
      if (contrast(getComputedStyle(line).stroke, paper) < 3) faults.push(`a line in "${picture.querySelector("title").textContent}" is hard to see`);
  }
  const background = getComputedStyle(document.body).backgroundColor;
  const dark = luminance(background) < 0.2;
  if (contrast(getComputedStyle(document.body).color, background) < 4.5) faults.push("the text of the page has little contrast");
  const result = document.createElement("pre");
  result.id = "measured";
  result.textContent = JSON.stringify({ pictures: pictures.length, texts, dark, width: window_width, faults });
  window.parent.document.body.append(result);
})();
