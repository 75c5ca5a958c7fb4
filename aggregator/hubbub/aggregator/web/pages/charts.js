// Charts in SVG, by d3: bars with whiskers, lines with bands, differences, sparks. Each is named for
// screen readers; the table beside it holds the same numbers.
/* global d3 */
import { shown } from "./shell.js";

const WIDE = 900;
const MANY = 40;
const NARROW = 420;

function canvas(place, height, label) {
  const width = place.clientWidth && place.clientWidth < 640 ? NARROW : WIDE;
  d3.select(place).selectAll("*").remove();
  const svg = d3
    .select(place)
    .append("svg")
    .attr("viewBox", `0 0 ${width} ${height}`)
    .attr("role", "img")
    .attr("aria-label", label);
  return { svg, width };
}

/** From the lowest low to the highest high, with zero in it. */
function spread(points) {
  const least = Math.min(
      0,
      d3.min(points, (d) => d.low),
    ),
    most = Math.max(
      0,
      d3.max(points, (d) => d.high),
    );
  return least < most ? [least, most] : [0, 1];
}

/** A name in so many pixels, cut if it must be. */
function fits(text, width) {
  const longest = Math.max(8, Math.floor(width / 8.5)),
    whole = shown(text, longest);
  return whole.length > longest ? `${whole.slice(0, longest - 1)}…` : whole;
}

/** Horizontal bars from zero, a whisker from low to high across each end.
 *  rows: {value, estimate, low, high, detected}; format: of numbers on the axis. */
export function bars(place, rows, label, format) {
  // Many rows are ranges of numbers, in order: thin, with a name at every so many.
  const step = rows.length > MANY ? 8 : 30;
  const every = Math.ceil(16 / step);
  const cap = Math.min(5, step / 2 - 1);
  const top = 8,
    bottom = 30;
  const { svg, width } = canvas(place, top + bottom + step * rows.length, label);
  const left = width === NARROW ? 130 : 250,
    right = 20;
  const x = d3
    .scaleLinear()
    .domain(spread(rows))
    .nice()
    .range([left, width - right]);
  const axis = d3
    .axisBottom(x)
    .ticks(width === NARROW ? 4 : 7)
    .tickFormat(format)
    .tickSizeOuter(0);
  svg
    .append("g")
    .attr("transform", `translate(0,${top + step * rows.length})`)
    .call(axis);
  const line = svg
    .selectAll("g.row")
    .data(rows)
    .join("g")
    .attr("class", "row")
    .attr("transform", (_, i) => `translate(0,${top + step * i})`);
  line
    .append("text")
    .attr("x", left - 10)
    .attr("y", step / 2)
    .attr("dy", ".32em")
    .attr("text-anchor", "end")
    .text((d, i) => (i % every ? "" : fits(d.value, left - 14)));
  line
    .append("rect")
    .attr("class", (d) => (d.detected ? "bar" : "bar faint"))
    .attr("x", (d) => Math.min(x(0), x(d.estimate)))
    .attr("y", step / 5)
    .attr("width", (d) => Math.abs(x(d.estimate) - x(0)))
    .attr("height", step * 0.6)
    .attr("rx", 2);
  line
    .filter((d) => d.low < d.high)
    .append("path")
    .attr("class", "whisker")
    .attr("data-low", (d) => d.low)
    .attr("data-high", (d) => d.high)
    .attr(
      "d",
      (d) =>
        `M${x(d.low)},${step / 2 - cap}v${2 * cap}m0,${-cap}H${x(d.high)}m0,${-cap}v${2 * cap}`,
    );
  line
    .append("title")
    .text((d) => `${shown(d.value)}: ${format(d.estimate)}, ${format(d.low)} to ${format(d.high)}`);
  svg
    .append("line")
    .attr("class", "zero")
    .attr("x1", x(0))
    .attr("x2", x(0))
    .attr("y1", top)
    .attr("y2", top + step * rows.length);
}

/** Lines over time, each with the band of its interval. series: {value, points: {time, share, low, high}}. */
export function lines(place, series, label, format) {
  const height = 280,
    top = 10,
    bottom = 28,
    left = 58,
    right = 16;
  const { svg, width } = canvas(place, height, label);
  const points = series.flatMap((one) => one.points);
  const times = d3.extent(points, (d) => d.time);
  if (+times[0] === +times[1])
    times.splice(0, 2, d3.utcDay.offset(times[0], -1), d3.utcDay.offset(times[1], 1));
  const few = [...new Set(points.map((d) => +d.time))].map((one) => new Date(one));
  const x = d3
    .scaleUtc()
    .domain(times)
    .range([left, width - right]);
  const y = d3
    .scaleLinear()
    .domain(spread(points))
    .nice()
    .range([height - bottom, top]);
  const time = d3
    .axisBottom(x)
    .ticks(width === NARROW ? 4 : 8)
    .tickSizeOuter(0);
  svg
    .append("g")
    .attr("transform", `translate(0,${height - bottom})`)
    .call(few.length < 4 ? time.tickValues(few) : time);
  svg
    .append("g")
    .attr("transform", `translate(${left},0)`)
    .call(d3.axisLeft(y).ticks(5).tickFormat(format).tickSizeOuter(0));
  const band = d3
    .area()
    .x((d) => x(d.time))
    .y0((d) => y(d.low))
    .y1((d) => y(d.high));
  const line = d3
    .line()
    .x((d) => x(d.time))
    .y((d) => y(d.share));
  series.forEach((one, number) => {
    const group = svg.append("g").attr("class", `s${Math.min(number, 5)}`);
    group.append("path").attr("class", "band").attr("d", band(one.points));
    group.append("path").attr("class", "line").attr("d", line(one.points));
    // A single epoch has no line: its interval is a bar, as everywhere.
    if (one.points.length <= 40) {
      group
        .selectAll("circle")
        .data(one.points)
        .join("circle")
        .attr("class", "point")
        .attr("r", 3)
        .attr("cx", (d) => x(d.time))
        .attr("cy", (d) => y(d.share))
        .append("title")
        .text(
          (d) => `${shown(one.value)}: ${format(d.share)}, ${format(d.low)} to ${format(d.high)}`,
        );
    }
    if (one.points.length === 1) {
      const [d] = one.points;
      group
        .append("path")
        .attr("class", "line")
        .attr("d", `M${x(d.time)},${y(d.low)}V${y(d.high)}`);
    }
  });
}

/** A row of small columns. */
export function spark(place, numbers, label) {
  const width = 240,
    height = 36,
    step = width / Math.max(numbers.length, 12);
  const most = d3.max(numbers) || 1;
  const svg = d3
    .select(place)
    .append("svg")
    .attr("viewBox", `0 0 ${width} ${height}`)
    .attr("role", "img")
    .attr("aria-label", label);
  svg
    .selectAll("rect")
    .data(numbers)
    .join("rect")
    .attr("class", "spark")
    .attr("x", (_, i) => step * i)
    .attr("width", Math.max(step - 1.5, 0.8))
    .attr("y", (d) => height - Math.max(1.5, (height * d) / most))
    .attr("height", (d) => Math.max(1.5, (height * d) / most));
}
