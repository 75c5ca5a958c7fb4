/** Opens a client in a page or a worker. */
import { openBundle } from "../catalog/bundle.js";
import { Client, type Options } from "../client/client.js";
import { load } from "../loading.js";
import type { Bytes } from "../mechanisms/packing.js";
import type { Account } from "../transport/issuer.js";
import { BrowserStorage, isPrivate } from "./indexeddb.js";

/** The options of an app in a browser. */
export interface BrowserOptions extends Options {
  /** The bundle's address, or its content. */
  readonly bundle: string | URL | Bytes;
  /**
   * The only operator's key to accept, in base64; without it the device trusts the first operator
   * that it sees.
   */
  readonly operator?: string;
  /** https://HOST:PORT instead of the bundle's shuffler. */
  readonly shuffler?: string;
  /**
   * Needed if the bundle's reports need tokens: the key of an account, or a function that requests
   * tokens for this person.
   */
  readonly account?: Account;
  /** https://HOST:PORT of a relay of Oblivious HTTP, so that the shuffler sees no address. */
  readonly relay?: string;
  /** A name that separates the devices of several apps of one origin. */
  readonly app?: string;
}

const APP = "app";
const REQUIRED_OPTIONS = { bundle: "string, or object: URL or Uint8Array" };

/**
 * A client for this origin. When the page goes away the client sends what it can.
 *
 * If the bundle cannot be fetched, or a later part of the SDK cannot be loaded, a client that is not
 * strict reports nothing, and warns.
 *
 * @throws NotLoaded the first part cannot be loaded; or strict, a later one.
 * @throws BundleRefused the bundle is refused; or strict, it cannot be fetched.
 * @throws BadParameter an option is unknown, of another type or out of range.
 */
export async function open(options: BrowserOptions): Promise<Client> {
  const { checked, named, storagelessClient, started, ...network } = await load("checks");
  const { operator = null, app = APP } = checked(options, REQUIRED_OPTIONS, { app: "string" });
  // The bundle is not fetched either: while a page is rendered on a server, its address cannot be
  // resolved there.
  if (!canKeep()) return storagelessClient(options);
  // The storage opens while the bundle is being fetched.
  const [storage, forgets] = [new BrowserStorage(app), isPrivate()];
  storage.begin();
  return started(options, async () => {
    const bundle = await named(options.bundle, async () =>
      openBundle(await network.contentOf(options.bundle), operator),
    );
    if (await forgets) return storagelessClient(options, true);
    const isPlain = options.relay === undefined && !bundle.tokens;
    const connections = isPlain
      ? null
      : (await load("more")).relayAndIssuer(bundle, options, network.fetchPost);
    const client = await Client.over(
      bundle,
      storage,
      connections?.transport ?? network.fetchTransport(options.shuffler ?? bundle.shuffler),
      { ...options, ...connections, operatorNamed: operator !== null },
    );
    // A worker has no pagehide; it ends with its page.
    globalThis.addEventListener("pagehide", () => {
      client.leave();
    });
    return client;
  });
}

/**
 * Whether this environment can store anything and has what the SDK calls without a substitute, as far
 * as a synchronous check shows.
 */
function canKeep(): boolean {
  const hasStorage = "indexedDB" in globalThis && "caches" in globalThis && "locks" in navigator;
  const { isSecureContext, origin } = globalThis; // where a browser lacks these, it throws nothing
  return hasStorage && "hasOwn" in Object && hasCrypto() && isSecureContext && origin !== "null";
}

function hasCrypto(): boolean {
  try {
    return typeof crypto.subtle === "object";
  } catch {
    return false; // an extension or a WebView refuses access
  }
}
