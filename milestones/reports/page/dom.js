// Elements and small texts. Data enters the page as text and attributes only, never as markup.

const SVG = "http://www.w3.org/2000/svg";

function fillElement(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

function el(tag, attributes, ...children) {
  return fillElement(document.createElement(tag), attributes, children);
}

function svg(tag, attributes, ...children) {
  return fillElement(document.createElementNS(SVG, tag), attributes, children);
}

function byId(id) {
  return document.getElementById(id);
}

function readEmbedded(id) {
  const script = byId(id);
  return script ? JSON.parse(script.textContent) : null;
}

function button(attributes, ...children) {
  return el("button", { type: "button", ...attributes }, ...children);
}

// Text from outside the page, whose writing direction does not affect what stands beside it.
function bdi(text, attributes, ...children) {
  return el("bdi", attributes, text, ...children);
}

// A name, which may break after its joints.
function wrappable(name, attributes) {
  return bdi("", attributes, String(name).split(/(?<=[_.:/-])(?=\S)/).flatMap((part, at) => (at ? [el("wbr"), part] : [part])));
}

function formatNumber(value) {
  return value.toLocaleString("en");
}

// Rounded, but 0% and 100% mean exactly none and all.
function formatPercent(share) {
  if (share === null || share === undefined) return "–";
  const rounded = Math.round(100 * share);
  if (rounded === 100 && share < 1) return "99%";
  if (rounded === 0 && share > 0) return "1%";
  return `${rounded}%`;
}

function formatRange(range) {
  if (!range) return "–";
  const [low, high] = range.map(formatPercent);
  return range[0] === range[1] ? low : `${low.replace("%", "")}–${high}`;
}

function formatCount(count, one, many) {
  return `${formatNumber(count)} ${count === 1 ? one : many}`;
}

// A bar from 0 to 1: how far, and the interval or range around it.
function meter(value, low, high) {
  const track = el("span", { class: "meter", "aria-hidden": "true" });
  const part = (name, from, to) => {
    const piece = el("span", { class: name });
    piece.style.left = `${100 * from}%`;
    piece.style.width = `${100 * Math.max(0, to - from)}%`;
    track.append(piece);
  };
  if (value !== null && value !== undefined) part("filled", 0, value);
  if (low !== null && low !== undefined && high > low) part("between", low, high);
  return track;
}
