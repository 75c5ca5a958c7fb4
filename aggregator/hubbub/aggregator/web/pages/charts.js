// Charts in SVG, drawn with d3: bars with whiskers, lines with bands, differences, sparks. Each
// chart has a name for screen readers; the table beside it contains the same numbers.
/* global d3 */
import { figure, printable } from "./shell.js";

const WIDE = 900;
const MANY = 40;
// Height of the bars of many rows, in pixels: thinner bars fit it, down to two pixels each.
const TALL = 960;
// The width in pixels of names beside their bars.
const BESIDE = 250;
const LETTER = 7.5;
const NAME_HEIGHT = 15;
/**
 * Whether the place is as narrow as a phone. There a picture is as wide as the place, so that
 * letters keep their size.
 */
export const narrow = (place) => place.clientWidth > 0 && place.clientWidth < 640;

function canvas(place, height, label) {
  const width = narrow(place) ? place.clientWidth : WIDE;
  d3.select(place).selectAll("*").remove();
  const svg = d3
    .select(place)
    .append("svg")
    .attr("viewBox", `0 0 ${width} ${height}`)
    .attr("role", "img")
    .attr("aria-label", label);
  return { svg, width };
}

/**
 * Where a bar or a dot of an estimate is drawn: in its interval, since chance may move an estimate
 * out of what is possible.
 */
const possible = (number, { low, high }) => Math.min(Math.max(number, low), high);

/** The range from the lowest to the highest bound; it includes zero. */
function spread(points) {
  const all = points.flatMap((d) => [d.low, d.high]);
  const least = Math.min(0, d3.min(all) ?? 0),
    max = Math.max(0, d3.max(all) ?? 0);
  return least < max ? [least, max] : [0, 1];
}

/** A scale of the points that ends at round numbers. */
const rounding = (points) => d3.scaleLinear().domain(spread(points)).nice();

/** The ticks of the scale's axis; for counts and shares, only possible numbers. */
const marksOf = (scale, many, max) =>
  scale.ticks(many).filter((tick) => !max || (tick >= 0 && tick <= max));

const DAY = 86_400_000;
// Up to this many moments, the ticks of an axis are moments of the points.
const FEW = 16;

/** The format of these moments, in UTC, on an axis. */
function dated(moments) {
  const length = moments.at(-1) - moments[0];
  if (length < DAY / 12) return d3.utcFormat("%H:%M:%S");
  if (length < 3 * DAY && moments.some((moment) => moment % DAY)) return d3.utcFormat("%b %-d %H:%M");
  return d3.utcFormat(length < 400 * DAY ? "%b %-d" : "%Y-%m");
}

/** The number of letters of a name that fit in a width in pixels. */
const letters = (width) => Math.max(8, Math.floor(width / LETTER));

/**
 * Distinct names of at most `longest` letters. If shortening would make two names equal, their
 * common beginning is left out instead.
 */
function apart(values, longest) {
  const names = values.map((value) => printable(value, longest));
  return names.map((name, at) => {
    const alike = values.filter((_, other) => names[other] === name).map((value) => [...value]);
    if (new Set(alike.map((value) => value.join(""))).size < 2) return name;
    let from = 0;
    while (alike.every((value) => value[from] === alike[0][from])) from += 1;
    return `…${printable([...values[at]].slice(Math.max(0, from - 3)).join(""), longest - 1)}`;
  });
}

/** Writes as much of each name as fits in `room` pixels. */
function writeNames(texts, values, room) {
  const every = texts.nodes();
  for (let longest = letters(room); longest >= 8; longest -= 2) {
    const names = apart(values, longest);
    texts.text((_, at) => names[at]);
    if (every.every((text) => text.getComputedTextLength() <= room)) return;
  }
}

/** A number on an axis: thousands and millions with a letter, numbers below 1 in full. */
export const rounded = (number) =>
  Math.abs(number) < 1 ? figure(number, 3) : d3.format("~s")(number);

/**
 * Horizontal bars from zero, with a whisker from low to high across each end.
 *
 * rows: {value, estimate, low, high, detected, beside}; beside is another row, whose interval is
 * drawn below. axis: the label of the axis. format: writes the numbers of the axis. exact: writes
 * the number of a bar, as the table does, given also which end of an interval it is. max: the largest possible count or share, if 0 is the
 * smallest. across: lines across the bars, {name, short, at, low, high}, in numbers of bars from the
 * top; `short` is the name where there is no room.
 */
export function bars(
  place,
  rows,
  label,
  { axis, format, exact = format, most = null, across = [] },
) {
  // Many rows are ranges of numbers in order: their bars are thin, and only some have a name. If
  // there is no room beside a bar, its name stands above it.
  const many = rows.length > MANY;
  const long = rows.some((d) => [...d.value].length > letters(BESIDE - 14));
  const above = !many && (narrow(place) || long) ? 18 : 0;
  const step = many ? Math.max(2, Math.min(8, TALL / rows.length)) : 30 + above;
  const thick = step - above;
  const every = Math.ceil(16 / step);
  const capHeight = Math.min(5, thick / 2 - 1);
  const top = 8,
    bottom = 46;
  const { svg, width } = canvas(place, top + bottom + step * rows.length, label);
  // The names of lines across the bars stand beside the bars and whiskers.
  const longest = narrow(place) ? 0 : Math.max(0, ...across.map((d) => [...d.name].length));
  const left = above ? 20 : narrow(place) ? 130 : BESIDE,
    right = 30 + Math.ceil(LETTER * longest);
  const middle = above + thick / 2;
  const allRows = rows.flatMap((d) => (d.beside ? [d, d.beside] : [d]));
  const x = rounding(allRows).range([left, width - right]);
  const scale = d3
    .axisBottom(x)
    .tickValues(marksOf(x, narrow(place) ? 4 : 7, most))
    .tickFormat((tick) => format(tick))
    .tickSizeOuter(0);
  const foot = top + step * rows.length;
  svg.append("g").attr("transform", `translate(0,${foot})`).call(scale);
  svg
    .append("text")
    .attr("class", "soft")
    .attr("x", width - right)
    .attr("y", foot + bottom - 8)
    .attr("text-anchor", "end")
    .text(axis);
  svg
    .append("line")
    .attr("class", "zero")
    .attr("x1", x(0))
    .attr("x2", x(0))
    .attr("y1", top)
    .attr("y2", foot);
  const line = svg
    .selectAll("g.row")
    .data(rows)
    .join("g")
    .attr("class", "row")
    .attr("transform", (_, i) => `translate(0,${top + step * i})`);
  line
    .append("text")
    .attr("class", "over")
    .attr("x", above ? left : left - 10)
    .attr("y", above ? above / 2 + 2 : step / 2)
    .attr("dy", ".32em")
    .attr("text-anchor", above ? "start" : "end");
  const labels = line.filter((_, i) => i % every === 0);
  writeNames(labels.select("text"), labels.data().map((d) => d.value), above ? width - left - 4 : left - 14);
  line
    .append("rect")
    .attr("class", (d) => (d.detected ? "bar" : "bar faint"))
    .attr("x", (d) => Math.min(x(0), x(possible(d.estimate, d))))
    .attr("y", above + thick / 5)
    .attr("width", (d) => Math.abs(x(possible(d.estimate, d)) - x(0)))
    .attr("height", thick * 0.6)
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
        `M${x(d.low)},${middle - capHeight}v${2 * capHeight}m0,${-capHeight}H${x(d.high)}m0,${-capHeight}v${2 * capHeight}`,
    );
  line
    .filter((d) => d.beside)
    .append("path")
    .attr("class", "beside")
    .attr("d", (d) => `M${x(d.beside.low)},${Math.max(step - 5, 0)}v4m0,-2H${x(d.beside.high)}m0,-2v4`);
  drawAcross(svg, across, (bars) => top + step * bars, [left, width - right], (d) => (narrow(place) ? d.short : d.name));
  line
    .append("title")
    .text((d) => `${printable(d.value, 1000)}: ${exact(d.estimate)}, ${exact(d.low, "low")} to ${exact(d.high, "high")}`);
}

/** Draws lines across the bars, from top to bottom, each with its band and, beside it, its name. */
function drawAcross(svg, across, y, [left, right], nameOf) {
  const group = svg.selectAll("g.across").data(across).join("g").attr("class", "across");
  group
    .append("rect")
    .attr("class", "band")
    .attr("x", left)
    .attr("width", right - left)
    .attr("y", (d) => y(d.low))
    .attr("height", (d) => y(d.high) - y(d.low));
  group.append("path").attr("d", (d) => `M${left},${y(d.at)}H${right}`);
  let lowest = -Infinity;
  group
    .append("text")
    .attr("class", "over")
    .attr("x", right + 6)
    .attr("y", (d) => (lowest = Math.max(y(d.at) + 4, lowest + NAME_HEIGHT)))
    .text(nameOf);
}

/**
 * Lines over time, each with its band.
 *
 * series: {value, points: {time, share, low, high, line, line_low, line_high}}; with a line,
 * estimates are dots beside it. axis, format, exact, max: as for bars. marks: moments with a name,
 * {time, name, text}.
 */
export function lines(place, series, label, { axis, format, exact = format, most = null, marks = [] }) {
  const height = 296,
    top = 26,
    bottom = 28,
    left = 58,
    right = 24;
  const { svg, width } = canvas(place, height, label);
  const points = series.flatMap((line) => line.points);
  const dates = d3.sort(new Set(points.map((d) => +d.time)));
  const x = d3
    .scaleUtc()
    .domain(d3.extent(dates))
    .range([left, width - right]);
  const y = rounding(points).range([height - bottom, top]);
  const timeText = dated(dates);
  const room = LETTER * (timeText(dates[0] ?? 0).length + 6);
  const ticks = Math.max(2, Math.min(8, Math.floor((width - left - right) / room)));
  const time = d3
    .axisBottom(x)
    .ticks(ticks)
    .tickFormat(timeText)
    .tickSizeOuter(0);
  svg.append("text").attr("class", "soft").attr("x", 8).attr("y", 12).text(`${axis}, by time in UTC`);
  svg
    .append("g")
    .attr("transform", `translate(0,${height - bottom})`)
    .call(dates.length > FEW ? time : time.tickValues(dates.filter((_, i) => i % Math.ceil(dates.length / ticks) === 0)))
    .selectAll("text")
    .attr("text-anchor", (d) => (x(d) > width - 40 ? "end" : null));
  svg
    .append("g")
    .attr("transform", `translate(${left},0)`)
    .call(d3.axisLeft(y).tickValues(marksOf(y, 5, most)).tickFormat((tick) => format(tick)).tickSizeOuter(0));
  const band = d3
    .area()
    .x((d) => x(d.time))
    .y0((d) => y(d.line_low ?? d.low))
    .y1((d) => y(d.line_high ?? d.high));
  const line = d3
    .line()
    .x((d) => x(d.time))
    .y((d) => y(d.line ?? possible(d.share, d)));
  series.forEach((oneSeries, number) => {
    const group = svg.append("g").attr("class", `s${Math.min(number, 5)}`);
    group.append("path").attr("class", "band").attr("d", band(oneSeries.points));
    group.append("path").attr("class", "line").attr("d", line(oneSeries.points));
    const smoothed = oneSeries.points.some((d) => d.line != null);
    if (oneSeries.points.length <= 40 || smoothed) {
      group
        .selectAll("circle")
        .data(oneSeries.points)
        .join("circle")
        .attr("class", smoothed ? "point raw" : "point")
        .attr("r", smoothed ? 2 : 3)
        .attr("cx", (d) => x(d.time))
        .attr("cy", (d) => y(possible(d.share, d)))
        .append("title")
        .text(
          (d) =>
            `${printable(oneSeries.value, 1000)}, ${d3.utcFormat("%Y-%m-%d %H:%M UTC")(d.time)}: ${exact(d.share)}, ${exact(d.low, "low")} to ${exact(d.high, "high")}`,
        );
    }
  });
  drawMarks(svg, marks, x, top, height - bottom);
}

/** Draws dashed vertical lines, each with its name. */
function drawMarks(svg, marks, x, top, bottom) {
  const mark = svg
    .selectAll("g.mark")
    .data(marks)
    .join("g")
    .attr("class", "mark")
    .attr("transform", (d) => `translate(${x(d.time)},0)`);
  mark.append("path").attr("d", `M0,${top}V${bottom}`);
  mark
    .append("text")
    .attr("x", 4)
    .attr("y", (_, i) => top + 10 + 14 * (i % 3))
    .text((d) => printable(d.name, 24));
  mark.append("title").text((d) => `${d.date} UTC: ${printable(d.name)} ${printable(d.text, 400)}`);
}

/** A small line with the band of its interval. points: {share, low, high}. */
export function sparkLine(place, points, label) {
  const width = 240,
    height = 44;
  const svg = d3
    .select(place)
    .append("svg")
    .attr("viewBox", `0 0 ${width} ${height}`)
    .attr("role", "img")
    .attr("aria-label", label);
  const x = d3.scaleLinear([0, Math.max(points.length - 1, 1)], [3, width - 3]);
  const ends = d3.extent(points.flatMap((d) => [d.low, d.high]));
  const y = d3.scaleLinear(ends, [height - 4, 4]);
  const group = svg.append("g").attr("class", "s0");
  const band = d3
    .area()
    .x((_, i) => x(i))
    .y0((d) => y(d.low))
    .y1((d) => y(d.high));
  const line = d3
    .line()
    .x((_, i) => x(i))
    .y((d) => y(possible(d.share, d)));
  group.append("path").attr("class", "band").attr("d", band(points));
  group.append("path").attr("class", "line").attr("d", line(points));
  const last = points.length - 1;
  group
    .append("circle")
    .attr("class", "point")
    .attr("r", 3)
    .attr("cx", x(last))
    .attr("cy", y(possible(points[last].share, points[last])));
}

/** A row of small columns, one for each number. */
export function spark(place, numbers, label) {
  const width = 240,
    height = 36,
    step = width / Math.max(numbers.length, 12);
  const max = d3.max(numbers) || 1;
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
    .attr("y", (d) => height - Math.max(1.5, (height * d) / max))
    .attr("height", (d) => Math.max(1.5, (height * d) / max));
}
