/**
 * A client for environments that cannot store anything, or do not deliver the bundle: every outcome
 * is "no_state", and nothing is sent.
 */
import type { Bundle } from "../catalog/bundle.js";
import { BadParameter, BundleRefused, StateUnusable, TryAgain, UNREACHABLE } from "../errors.js";
import { readable } from "./background.js";
import { Client, type Options } from "./client.js";
import { BundleUnavailable } from "./options.js";
import type { Storage } from "./storage.js";

const NO_BUNDLE: Bundle = {
  ...{ shuffler: "", roots: null, keys: [], metrics: new Map(), unknown: new Map(), cover: false },
  ...{
    caps: { bySpan: new Map(), crowds: null },
    history: {},
    promised: new Map(),
    serial: 0,
    line: [],
  },
  ...{ development: false, runs: null, log: null, proof: null, tokens: null, gateway: null },
};

/**
 * A client that stores nothing, and warns once with the reason. isPrivate: whether this is a
 * private window.
 */
export function storagelessClient(options: Options, isPrivate = false): Promise<Client> {
  return clientWithout(options, whyOf(isPrivate));
}

/**
 * The client that `start` opens; if the environment prevents the start, a client that reports
 * nothing, and warns once with the reason. @throws the error of `start`, for a mistake of the app, a
 * refused bundle, or if strict.
 */
export async function started(options: Options, start: () => Promise<Client>): Promise<Client> {
  try {
    return await start();
  } catch (error) {
    const isRefused = error instanceof BundleRefused && !(error instanceof BundleUnavailable);
    if (options.strict || isRefused || error instanceof BadParameter) throw error;
    return clientWithout(options, readable(error));
  }
}

function clientWithout(options: Options, reason: string): Promise<Client> {
  const reject = () => Promise.reject(new StateUnusable(reason));
  const storage: Storage = {
    ...{ transaction: reject, readWitness: reject, writeWitness: reject, alone: reject },
    close: () => undefined,
  };
  const transport = { post: () => Promise.reject(new TryAgain(UNREACHABLE)) };
  return Client.over(NO_BUNDLE, storage, transport, { ...options, holdSeconds: null });
}

function whyOf(isPrivate: boolean): string {
  if (isPrivate) return "a private window stores no spent budget";
  if (!("indexedDB" in globalThis)) {
    return (
      "this is neither a page nor a worker of a browser; on a server that renders pages that is as it " +
      "should be, and a program of Node imports hubbub-client/node"
    );
  }
  if ("isSecureContext" in globalThis && !globalThis.isSecureContext) {
    return "without HTTPS the spent budget cannot be stored";
  }
  if (globalThis.origin === "null") {
    return "a sandboxed frame cannot store the spent budget; allow it: allow-same-origin";
  }
  return "this browser is too old, or hides navigator.locks, caches, crypto.subtle or Object.hasOwn";
}
