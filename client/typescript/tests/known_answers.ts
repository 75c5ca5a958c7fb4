/** The known answers that every SDK agrees with. */
import { readdirSync, readFileSync } from "node:fs";

const FOLDER = new URL("../../../../tests/proofs/vectors/", import.meta.url);

/** A file of known answers. */
export function knownAnswer(name: string): unknown {
  return JSON.parse(readFileSync(new URL(`${name}.json`, FOLDER), "utf8"));
}

/** The mechanisms of which there are any. */
export function knownMechanisms(): string[] {
  const files = readdirSync(FOLDER).filter((name) => name.endsWith(".json"));
  return files.map((name) => name.slice(0, -".json".length));
}

export function bytesOf(hex: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.from(hex, "hex"));
}

export function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}
