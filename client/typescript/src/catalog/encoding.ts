/** Base64 and JSON lines: the format of keys, bundles and notices in files. */
import { table, type Table } from "./json.js";
import type { Bytes } from "../mechanisms/packing.js";

const NEWLINE = 10;

/** The bytes of a base64 text, as in bundles. Throws an Error if the text is not base64. */
export function fromText(base64: string): Bytes {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  // Python refuses blanks and missing padding, and only one spelling matches a signature.
  if (toText(bytes) !== base64) throw new TypeError("not canonical base64");
  return bytes;
}

/** The base64 text of some bytes. */
export function toText(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

/** The lines of a file, without empty lines at its end. */
export function linesOf(file: Bytes): Bytes[] {
  const lines: Bytes[] = [];
  let end = file.length;
  while (end > 0 && file[end - 1] === NEWLINE) end -= 1;
  for (let start = 0; start <= end;) {
    const newline = file.indexOf(NEWLINE, start);
    const stop = newline < 0 || newline > end ? end : newline;
    lines.push(file.slice(start, stop));
    start = stop + 1;
  }
  return lines;
}

/** The table in a line of JSON. Throws an Error if the line is not such a table. */
export function tableFrom(line: Uint8Array): Table {
  return table(JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(line)));
}
