/** How numbers are written in names. */

const DIGITS = 6;

/** A number in Python's format "g", which names of tiers and ranges use. */
export function general(number: number, places = DIGITS): string {
  const [digits = "", power = ""] = number.toExponential(places - 1).split("e");
  const trimmed = digits.replace(/\.?0+$/, "");
  const exponent = Number(power);
  if (exponent >= -4 && exponent < places) return String(Number(`${trimmed}e${power}`));
  const sign = exponent < 0 ? "-" : "+";
  return `${trimmed}e${sign}${String(Math.abs(exponent)).padStart(2, "0")}`;
}
