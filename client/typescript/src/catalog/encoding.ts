/** Bytes as text, and JSON by lines: how keys, bundles and notices stand in files. */
import { table, type Table } from "./json.js";
import type { Bytes } from "../mechanisms/packing.js";

const NEWLINE = 10;

/** The bytes of a text, as bundles hold keys. Throws an Error if it is none. */
export function fromText(base64: string): Bytes {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  // Python takes no blanks and no missing padding, and one spelling alone is signed for.
  if (toText(bytes) !== base64) throw new TypeError("not base64 as it is written here");
  return bytes;
}

/** The text of some bytes. */
export function toText(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

/** The lines of a file, without those that are empty at its end. */
export function linesOf(file: Bytes): Bytes[] {
  const lines: Bytes[] = [];
  let end = file.length;
  while (end > 0 && file[end - 1] === NEWLINE) end -= 1;
  for (let start = 0; start <= end;) {
    const next = file.indexOf(NEWLINE, start);
    const stop = next < 0 || next > end ? end : next;
    lines.push(file.slice(start, stop));
    start = stop + 1;
  }
  return lines;
}

/** The table in a line of JSON. Throws an Error if it is none. */
export function parsed(line: Uint8Array): Table {
  return table(JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(line)));
}
