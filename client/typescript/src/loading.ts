/** The parts of the SDK that are loaded where something needs them. */
import { NotLoaded } from "./errors.js";
import { after, within } from "./within.js";

const LOAD_SECONDS = 20;

/** How each is loaded. The entry for workers, which may not use import(), has them all at hand. */
export const PARTS = {
  more: () => import("./more.js"),
  checks: () => import("./checks.js"),
  vectors: () => import("./vectors.js"),
  curve: () => import("./transport/curve.js"),
  fallback: () => import("./transport/fallback.js"),
  ed25519: () => import("@noble/ed25519"),
};

/** Each part by its name. */
export type Parts = { [Name in keyof typeof PARTS]: Awaited<ReturnType<(typeof PARTS)[Name]>> };

/** A part, which a page may have to fetch. @throws NotLoaded it cannot be had; its cause says why. */
export async function load<Name extends keyof Parts>(name: Name): Promise<Parts[Name]> {
  try {
    const part: Promise<unknown> = PARTS[name]();
    return (await within(after(LOAD_SECONDS), part)) as Parts[Name];
  } catch (cause) {
    throw new NotLoaded(
      `a part of hubbub cannot be loaded: ${String(cause)}; serve it beside the first, or import ` +
        "hubbub-client/worker",
      { cause },
    );
  }
}
