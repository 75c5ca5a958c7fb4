/** Loads the parts of the SDK that only some bundles need. */
import { NotLoaded } from "./errors.js";
import { after, within } from "./time_limits.js";

const LOAD_SECONDS = 20;

/**
 * Functions that load each part. The entry for workers, which may not call import(), replaces them
 * by functions that return parts it already contains.
 */
export const MODULES = {
  more: () => import("./more.js"),
  checks: () => import("./checks.js"),
  vectors: () => import("./vectors.js"),
  curve: () => import("./transport/curve.js"),
  fallback: () => import("./transport/fallback.js"),
  ed25519: () => import("@noble/ed25519"),
};

/** The parts by name. */
export type Modules = {
  [Name in keyof typeof MODULES]: Awaited<ReturnType<(typeof MODULES)[Name]>>;
};

/**
 * A part, which a page may have to fetch. @throws NotLoaded loading failed; the cause contains the
 * reason.
 */
export async function load<Name extends keyof Modules>(name: Name): Promise<Modules[Name]> {
  try {
    const part: Promise<unknown> = MODULES[name]();
    return (await within(after(LOAD_SECONDS), part)) as Modules[Name];
  } catch (cause) {
    throw new NotLoaded(
      `a part of hubbub cannot be loaded: ${String(cause)}; serve it beside the first, or import ` +
        "hubbub-client/worker",
      { cause },
    );
  }
}
