/** Opens a client in a page or a worker. */
import { MAX_BYTES, openBundle } from "../catalog/bundle.js";
import { Client, type Options } from "../client/client.js";
import { BundleRefused } from "../errors.js";
import { load } from "../loading.js";
import { after, within } from "../within.js";
import type { Bytes } from "../mechanisms/packing.js";
import type { Account } from "../transport/issuing.js";
import { BrowserStorage, isPrivate } from "./indexeddb.js";
import { bodyOf, fetchPost, fetchTransport } from "./fetching.js";

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
const BUNDLE_SECONDS = 20;
const NEEDED = { bundle: "string, or object: URL or Uint8Array" };

/**
 * A client for this origin. As a page goes away it sends what it can.
 *
 * @throws BundleRefused the bundle cannot be had, or is not to be taken.
 * @throws BadParameter an option is unknown, of another type or out of range.
 */
export async function open(options: BrowserOptions): Promise<Client> {
  const { checked } = await load("checks");
  const { operator = null, app = APP } = checked(options, NEEDED, { app: "string" });
  // Neither is a bundle fetched: as a page is rendered on a server its address is none there.
  if (!canKeep()) return (await load("more")).clientOfNobody(options);
  // Where it is kept is opened while the bundle comes.
  const [storage, forgets] = [new BrowserStorage(app), isPrivate()];
  storage.begin();
  const bundle = await openBundle(await contentOf(options.bundle), operator);
  if (await forgets) return (await load("more")).clientOfNobody(options, true);
  const isPlain = options.relay === undefined && !bundle.tokens;
  const connections = isPlain ? null : (await load("more")).waysOf(bundle, options, fetchPost);
  const client = await Client.over(
    bundle,
    storage,
    connections?.transport ?? fetchTransport(options.shuffler ?? bundle.shuffler),
    { ...options, ...connections, operatorNamed: operator !== null },
  );
  // A worker has no pagehide; it ends with its page.
  globalThis.addEventListener("pagehide", () => {
    client.leave();
  });
  return client;
}

async function contentOf(bundle: string | URL | Bytes): Promise<Bytes> {
  if (bundle instanceof Uint8Array) return bundle;
  const signal = after(BUNDLE_SECONDS);
  try {
    const response = await fetch(bundle, { credentials: "omit", signal });
    if (!response.ok) throw new Error(`status ${response.status}`);
    const content = await within(signal, bodyOf(response, MAX_BYTES));
    if (!content) throw new Error("it has no end");
    return content;
  } catch (error) {
    // A browser's message may have what was given, which may be a bundle's whole text.
    const reason = (error as Error).message.slice(0, 200);
    throw new BundleRefused(`the bundle cannot be fetched: ${reason}`);
  }
}

/** Whether this is a place where anything can be kept, as far as can be seen at once. */
function canKeep(): boolean {
  const hasStorage = "indexedDB" in globalThis && "caches" in globalThis && "locks" in navigator;
  return hasStorage && isSecureContext && origin !== "null";
}
