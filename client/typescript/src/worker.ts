/**
 * hubbub/worker: the same as hubbub, with every part in one file. For service workers, which may
 * not call import().
 *
 * Pages should import hubbub, which loads less.
 */
import * as ed25519 from "@noble/ed25519";

import { open as opened, type BrowserOptions } from "./browser/open.js";
import type { Client } from "./client/client.js";
import * as checks from "./checks.js";
import { MODULES } from "./loading.js";
import * as more from "./more.js";
import * as curve from "./transport/curve.js";
import * as fallback from "./transport/fallback.js";
import * as vectors from "./vectors.js";

export * from "./client.js";
export type { BrowserOptions } from "./browser/open.js";

/** The same as open() of hubbub. */
export function open(options: BrowserOptions): Promise<Client> {
  MODULES.more = () => Promise.resolve(more);
  MODULES.checks = () => Promise.resolve(checks);
  MODULES.vectors = () => Promise.resolve(vectors);
  MODULES.curve = () => Promise.resolve(curve);
  MODULES.fallback = () => Promise.resolve(fallback);
  MODULES.ed25519 = () => Promise.resolve(ed25519);
  return opened(options);
}
