/** Opens a client in a page or a worker. */
import { openBundle } from "../catalog/bundle.js";
import { Client, type Options } from "../client/client.js";
import { checked } from "../client/options.js";
import type { Storage } from "../client/storage.js";
import { BadParameter, BundleRefused, StateUnusable } from "../errors.js";
import type { Bytes } from "../mechanisms/packing.js";
import type { Account } from "../transport/issuing.js";
import { BrowserStorage, isPrivate } from "./indexeddb.js";
import { fetchPost, fetchTransport } from "./fetching.js";

/** What an app says in a browser. */
export interface BrowserOptions extends Options {
  /** Where the bundle is, or its content. */
  readonly bundle: string | URL | Bytes;
  /** The operator's key to insist on, in base64; without it the first one is trusted here. */
  readonly operator?: string;
  /** https://HOST:PORT instead of the bundle's shuffler. */
  readonly shuffler?: string;
  /** Where the bundle's reports need tokens: the key of an account, or what asks for this person. */
  readonly account?: Account;
  /** https://HOST:PORT of a relay of Oblivious HTTP, so that the shuffler sees no address. */
  readonly relay?: string;
  /** A name, where several apps of one origin each have a device of their own. */
  readonly app?: string;
}

const APP = "app";
const NEEDED = { bundle: "string, or object: URL or Uint8Array" };

/**
 * A client for this origin. As a page goes away it sends what it can.
 *
 * @throws BundleRefused the bundle cannot be had, or is not to be taken.
 * @throws BadParameter an option is unknown, of another type or out of range.
 */
export async function open(options: BrowserOptions): Promise<Client> {
  const { operator = null, app = APP } = checked(options, NEEDED, { app: "string" });
  // Where it is kept is opened while the bundle comes.
  const [own, forgets] = [new BrowserStorage(app), isPrivate()];
  own.begin();
  const bundle = await openBundle(await contentOf(options.bundle), operator);
  const address = options.shuffler ?? bundle.shuffler;
  const transport =
    options.relay === undefined
      ? fetchTransport(address)
      : (await import("../more.js")).relayTransport(
          options.relay,
          bundle.gateway,
          address,
          fetchPost,
        );
  const storage: Storage = (await forgets) ? nowhere() : own;
  const told = {
    ...options,
    ...(bundle.tokens && {
      ask: (await import("../more.js")).askingIssuer(bundle.tokens, options.account, fetchPost),
    }),
    operatorNamed: operator !== null,
  };
  const client = await Client.over(bundle, storage, transport, told);
  // A worker has no pagehide; it ends with its page.
  globalThis.addEventListener("pagehide", () => {
    client.leave();
  });
  return client;
}

async function contentOf(bundle: string | URL | Bytes): Promise<Bytes> {
  if (bundle instanceof Uint8Array) return bundle;
  if (typeof bundle !== "string" && !(bundle instanceof URL)) {
    throw new BadParameter(`open(): bundle is object; give ${NEEDED.bundle}`);
  }
  try {
    const response = await fetch(bundle, { credentials: "omit" });
    if (!response.ok) throw new Error(`it answers ${response.status}`);
    return new Uint8Array(await response.arrayBuffer());
  } catch (error) {
    throw new BundleRefused(`the bundle cannot be had: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/** A private window forgets what was spent, so nothing may leave it. */
function nowhere(): Storage {
  const refused = () => {
    return Promise.reject(new StateUnusable("a private window keeps nothing of what is spent"));
  };
  return {
    ...{ transaction: refused, readWitness: refused, writeWitness: refused, alone: refused },
    close: () => undefined,
  };
}
