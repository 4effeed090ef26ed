// Success against what is written for it: each arm a point with its interval and number, and the names below.

const PLOT = { left: 44, top: 14, row: 19, bottom: 44, beside: 50 };

// About so many round values from one end to the other.
function ticks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((times) => times * power >= rough);
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, place) => (first + place) * step);
}

// Numbers in the order of their points, each as near to its point as the others leave room.
function spread(arms, top, bottom) {
  arms.sort((a, b) => a.y - b.y || b.x - a.x);
  let free = top;
  for (const arm of arms) free = (arm.numberY = Math.max(arm.y, free)) + PLOT.row;
  free = bottom;
  for (const arm of [...arms].reverse()) free = (arm.numberY = Math.min(arm.numberY, free)) - PLOT.row;
}

function drawPlot() {
  const arms = Object.entries(data.summary.arms)
    .map(([name, summary]) => ({ name, ...goalFigure(summary), tokens: summary.output_tokens.mean }))
    .filter(({ rate, tokens }) => rate !== null && tokens !== null);
  if (arms.length < 2) return;
  const panel = byId("plot");
  panel.hidden = false;
  const height = Math.max(260, arms.length * PLOT.row);
  const width = Math.max(160, panel.clientWidth - PLOT.left - PLOT.beside - 34);
  const [right, bottom] = [PLOT.left + width, PLOT.top + height];
  const wide = right + PLOT.beside;
  const low = Math.floor(10 * Math.min(...arms.map((arm) => arm.low ?? arm.rate))) / 10;
  const high = Math.max(low + 0.1, Math.ceil(10 * Math.max(...arms.map((arm) => arm.high ?? arm.rate))) / 10);
  const all = arms.map((arm) => arm.tokens);
  const margin = Math.max(1, 0.08 * (Math.max(...all) - Math.min(...all)));
  const [least, most] = [Math.max(0, Math.min(...all) - margin), Math.max(...all) + margin];
  const x = (tokens) => PLOT.left + width * (tokens - least) / (most - least);
  const y = (share) => bottom - height * (share - low) / (high - low);
  for (const arm of arms) [arm.x, arm.y] = [x(arm.tokens), y(arm.rate)];
  spread(arms, PLOT.top, bottom);
  const drawn = svg("svg", { class: "plot", role: "img", "aria-label": "Success against output tokens, by arm",
    width: wide, height: bottom + PLOT.bottom, viewBox: `0 0 ${wide} ${bottom + PLOT.bottom}` },
  ticks(low, high, 5).map((share) => [
    svg("path", { class: "grid", d: `M${PLOT.left} ${y(share)}H${right}` }),
    svg("text", { class: "tick", x: PLOT.left - 8, y: y(share) + 4, "text-anchor": "end" }, formatPercent(share))]),
  ticks(least, most, width / 60).map((tokens) => [
    svg("path", { class: "grid", d: `M${x(tokens)} ${PLOT.top}V${bottom}` }),
    svg("text", { class: "tick", x: x(tokens), y: bottom + 18, "text-anchor": "middle" }, formatNumber(tokens))]),
  svg("text", { class: "tick", x: right, y: bottom + 36, "text-anchor": "end" }, "output tokens, a conversation"),
  arms.map((arm, at) => svg("g", { class: arm.name.includes(" -") ? "arm lacking" : "arm" },
    svg("path", { class: "lead", d: `M${arm.x} ${arm.y}L${right + 8} ${arm.numberY}H${right + 20}` }),
    arm.high > arm.low ? svg("path", { class: "bar95", d: `M${arm.x} ${y(arm.low)}V${y(arm.high)}M${arm.x - 4} ${y(arm.low)}h8M${arm.x - 4} ${y(arm.high)}h8` }) : null,
    svg("circle", { cx: arm.x, cy: arm.y, r: 5 }),
    svg("text", { class: "name", x: right + 24, y: arm.numberY + 4 }, at + 1))));
  panel.querySelector(".wide").append(drawn, el("ol", {}, arms.map(({ name }) => el("li", {}, name))));
}
