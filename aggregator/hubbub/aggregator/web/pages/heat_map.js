// A heat map in SVG, by d3: cells as dark as their share of their row, paler the less sure it is, each
// with its interval.
/* global d3 */
import { narrow } from "./charts.js";
import { percent, shown } from "./shell.js";

const WIDE = 900;
const HIGH = 44;
const DARKEST = 0.85;
// Names above narrower columns are turned.
const UPRIGHT = 60;

const cut = (text, longest) => shown(text, Math.max(3, Math.floor(longest)));

/** How much an interval leaves open: 1 of a point, 0 of everything. */
const sure = (one) => 1 - (one.within_high - one.within_low);

/** cells: {row, column, within, within_low, within_high, departs}, row by row. */
export function heatMap(place, cells, label) {
  const width = narrow(place) ? place.clientWidth : WIDE;
  const rows = [...new Set(cells.map((one) => one.row))];
  const columns = [...new Set(cells.map((one) => one.column))];
  const left = narrow(place) ? 100 : 190;
  const turned = (width - left) / columns.length < UPRIGHT;
  const right = turned ? 90 : 10;
  const wide = (width - left - right) / columns.length;
  const top = turned ? 120 : 26;
  const svg = d3
    .select(place)
    .append("svg")
    .attr("viewBox", `0 0 ${width} ${top + HIGH * rows.length + 6}`)
    .attr("role", "img")
    .attr("aria-label", label);
  const most = d3.max(cells, (one) => sure(one) * one.within) || 1;
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
    .text((one) => cut(one, turned ? 18 : wide / 8.5));
  svg
    .selectAll("text.down")
    .data(rows)
    .join("text")
    .attr("class", "down")
    .attr("text-anchor", "end")
    .attr("x", left - 8)
    .attr("y", (_, i) => top + HIGH * (i + 0.5))
    .attr("dy", ".32em")
    .text((one) => cut(one, left / 8.5));
  const cell = svg
    .selectAll("g.cell")
    .data(cells)
    .join("g")
    .attr("class", (one) => (one.departs ? "cell departs" : "cell"))
    .attr("transform", (_, i) => {
      const row = Math.floor(i / columns.length);
      return `translate(${left + wide * (i % columns.length)},${top + HIGH * row})`;
    });
  cell
    .append("rect")
    .attr("width", wide - 1)
    .attr("height", HIGH - 1)
    .attr("fill-opacity", (one) => (DARKEST * sure(one) * one.within) / most);
  cell
    .append("text")
    .attr("x", wide / 2)
    .attr("y", 19)
    .attr("text-anchor", "middle")
    .text((one) => percent(one.within, 0));
  const x = d3.scaleLinear([0, 1], [3, wide - 4]);
  cell
    .append("path")
    .attr("class", "whisker")
    .attr("data-low", (one) => one.within_low)
    .attr("data-high", (one) => one.within_high)
    .attr("d", (one) => `M${x(one.within_low)},33H${x(one.within_high)}`);
  cell
    .append("circle")
    .attr("class", "middle")
    .attr("r", 2.5)
    .attr("cx", (one) => x(one.within))
    .attr("cy", 33);
  cell.append("title").text((one) => {
    const ends = `${percent(one.within_low)} to ${percent(one.within_high)}`;
    return `${shown(one.column)} of ${shown(one.row)}: ${percent(one.within)}, ${ends}`;
  });
}
