// Goal completion against what is written for it: each arm a point with its interval, and its name beside it.

const PLOT = { left: 44, top: 12, bottom: 44, height: 280, lead: 26, gap: 6 };

// About so many round values from 0 on.
function ticks(high, count) {
  const rough = high / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((times) => times * power >= rough);
  return Array.from({ length: Math.floor(high / step) + 1 }, (_, at) => at * step);
}

// Names in the order of their points, each as near to its point as the others leave room.
function spreadLabels(arms, top, bottom) {
  arms.sort((a, b) => a.y - b.y || b.x - a.x);
  let free = top;
  for (const arm of arms) free = (arm.labelY = Math.max(arm.y - arm.tall / 2, free)) + arm.tall + PLOT.gap;
  free = bottom;
  for (const arm of [...arms].reverse()) free = (arm.labelY = Math.min(arm.labelY, free - arm.tall)) - PLOT.gap;
}

function drawPlot() {
  const arms = Object.entries(data.summary.arms)
    .map(([name, summary]) => ({ name, ...goalFigure(summary), tokens: summary.output_tokens.mean }))
    .filter(({ rate, tokens }) => rate !== null && tokens !== null);
  byId("plot").hidden = arms.length < 2;
  const paper = byId("plot").querySelector(".scatter");
  if (arms.length < 2 || !paper.clientWidth) return;
  const room = paper.clientWidth;
  const names = Math.min(220, 0.34 * room);
  const right = room - names - PLOT.lead;
  for (const arm of arms) {
    arm.label = bdi(arm.name, { class: "label" });
    arm.label.style.width = `${names}px`;
  }
  paper.replaceChildren(...arms.map(({ label }) => label));
  for (const arm of arms) arm.tall = arm.label.offsetHeight;
  const height = Math.max(PLOT.height, arms.reduce((sum, arm) => sum + arm.tall + PLOT.gap, 0));
  const bottom = PLOT.top + height;
  const most = 1.06 * Math.max(...arms.map((arm) => arm.tokens));
  const x = (tokens) => PLOT.left + (right - PLOT.left) * tokens / most;
  const y = (share) => bottom - height * share;
  for (const arm of arms) [arm.x, arm.y] = [x(arm.tokens), y(arm.rate)];
  spreadLabels(arms, PLOT.top, bottom);
  for (const { label, labelY } of arms) [label.style.left, label.style.top] = [`${right + PLOT.lead}px`, `${labelY}px`];
  paper.prepend(svg("svg", { class: "plot", role: "img", "aria-label": "Goal completion against output tokens, by arm", width: room, height: bottom + PLOT.bottom },
    [0, 0.25, 0.5, 0.75, 1].map((share) => [
      svg("path", { class: "grid", d: `M${PLOT.left} ${y(share)}H${right}` }),
      svg("text", { class: "tick", x: PLOT.left - 8, y: y(share) + 4, "text-anchor": "end" }, formatPercent(share))]),
    ticks(most, right / 90).map((tokens) => [
      svg("path", { class: "grid", d: `M${x(tokens)} ${bottom}v4` }),
      svg("text", { class: "tick", x: x(tokens), y: bottom + 18, "text-anchor": "middle" }, formatNumber(tokens))]),
    svg("text", { class: "tick", x: right, y: bottom + 36, "text-anchor": "end" }, "output tokens of a conversation"),
    arms.map((arm) => svg("g", { class: arm.name.includes(" -") ? "arm lacking" : "arm" },
      svg("path", { class: "lead", d: `M${arm.x} ${arm.y}L${right + 4} ${arm.labelY + arm.tall / 2}H${right + PLOT.lead - 5}` }),
      arm.high > arm.low ? svg("path", { class: "bar95", d: `M${arm.x} ${y(arm.low)}V${y(arm.high)}M${arm.x - 4} ${y(arm.low)}h8M${arm.x - 4} ${y(arm.high)}h8` }) : null,
      svg("circle", { cx: arm.x, cy: arm.y, r: 5 })))));
}
