// A heat map in SVG, drawn with d3. A cell is darker the larger its share of its row, and paler the
// wider its interval.
/* global d3 */
import { narrow } from "./charts.js";
import { percent, printable } from "./shell.js";

const WIDE = 900;
const HIGH = 44;
const DARKEST = 0.85;
// Names above columns narrower than this are turned.
const UPRIGHT = 60;
// "100%" fits into a column of this width; a map of more columns is scrolled.
const NARROWEST = 40;

const cut = (text, longest) => printable(text, Math.max(3, Math.floor(longest)));

/** The certainty of a cell: 1 if its interval is a point, 0 if its interval contains all shares. */
const certainty = (cell) => 1 - (cell.within_high - cell.within_low);

/** Draws the map. cells: {row, column, within, within_low, within_high, departs}, row by row. */
export function heatMap(place, cells, label) {
  const room = narrow(place) ? place.clientWidth : WIDE;
  const rows = [...new Set(cells.map((cell) => cell.row))];
  const columns = [...new Set(cells.map((cell) => cell.column))];
  const left = narrow(place) ? 100 : 190;
  const turned = (room - left) / columns.length < UPRIGHT;
  const right = turned ? 90 : 10;
  const wide = Math.max(NARROWEST, (room - left - right) / columns.length);
  const width = left + right + wide * columns.length;
  const top = turned ? 120 : 26;
  const svg = d3
    .select(place)
    .append("svg")
    .attr("viewBox", `0 0 ${width} ${top + HIGH * rows.length + 6}`)
    .attr("role", "img")
    .attr("aria-label", label);
  if (width > room) {
    svg.style("width", `${width}px`);
    const scrolled = { class: "wide", tabindex: "0", role: "region", "aria-label": "Map of cells" };
    for (const [name, value] of Object.entries(scrolled)) place.setAttribute(name, value);
  }
  const max = d3.max(cells, (cell) => certainty(cell) * cell.within) || 1;
  svg
    .selectAll("text.across")
    .data(columns)
    .join("text")
    .attr("class", "across")
    .attr("text-anchor", turned ? "start" : "middle")
    .attr("transform", (_, i) => {
      const x = left + wide * (i + 0.5);
      return `translate(${x},${top - 8})${turned ? " rotate(-45)" : ""}`;
    })
    .text((column) => cut(column, turned ? 18 : wide / 8.5));
  svg
    .selectAll("text.down")
    .data(rows)
    .join("text")
    .attr("class", "down")
    .attr("text-anchor", "end")
    .attr("x", left - 8)
    .attr("y", (_, i) => top + HIGH * (i + 0.5))
    .attr("dy", ".32em")
    .text((row) => cut(row, left / 8.5));
  const cell = svg
    .selectAll("g.cell")
    .data(cells)
    .join("g")
    .attr("class", (cell) => (cell.departs ? "cell departs" : "cell"))
    .attr("transform", (_, i) => {
      const row = Math.floor(i / columns.length);
      return `translate(${left + wide * (i % columns.length)},${top + HIGH * row})`;
    });
  cell
    .append("rect")
    .attr("width", wide - 1)
    .attr("height", HIGH - 1)
    .attr("fill-opacity", (cell) => (DARKEST * certainty(cell) * cell.within) / max);
  cell
    .append("text")
    .attr("x", wide / 2)
    .attr("y", 19)
    .attr("text-anchor", "middle")
    .text((cell) => percent(cell.within, 0));
  const x = d3.scaleLinear([0, 1], [3, wide - 4]);
  cell
    .append("path")
    .attr("class", "whisker")
    .attr("data-low", (cell) => cell.within_low)
    .attr("data-high", (cell) => cell.within_high)
    .attr("d", (cell) => `M${x(cell.within_low)},33H${x(cell.within_high)}`);
  cell
    .append("circle")
    .attr("class", "middle")
    .attr("r", 2.5)
    .attr("cx", (cell) => x(cell.within))
    .attr("cy", 33);
  cell.append("title").text((cell) => {
    const ends = `${percent(cell.within_low)} to ${percent(cell.within_high)}`;
    return `${printable(cell.column)} of ${printable(cell.row)}: ${percent(cell.within)}, ${ends}`;
  });
}
