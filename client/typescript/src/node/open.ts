/** Opens a client in Node. */
import { readFile, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { rootCertificates } from "node:tls";

import { openBundle } from "../catalog/bundle.js";
import type { Account } from "../transport/issuer.js";
import { relayAndIssuer } from "../transport/relay_and_issuer.js";
import { Client, type Options } from "../client/client.js";
import { BundleUnavailable, checked, named } from "../client/options.js";
import { started } from "../client/storageless_client.js";
import { BadParameter, BundleRefused } from "../errors.js";
import { after, within } from "../time_limits.js";
import { FolderStorage, READ_ONLY } from "./files.js";
import { httpsPost, httpsTransport } from "./https.js";

const BUNDLE_SECONDS = 20;
/** Node's codes of a path that names no file: a mistake of the app, not of the environment. */
const MISSING_CODES = ["ENOENT", "ENOTDIR", "EISDIR", "ENAMETOOLONG", "ERR_INVALID_ARG_VALUE"];
const REQUIRED_OPTIONS = { bundle: "string, or object: URL or Uint8Array", folder: "string" };

/** The options of an app in Node. */
export interface NodeOptions extends Options {
  /** The bundle's file, or its content. */
  readonly bundle: string | URL | Uint8Array;
  /** The device's folder; its witness is beside it. */
  readonly folder: string;
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
}

/**
 * A client for a bundle. Close it before the program ends, so that the waiting reports are sent.
 *
 * If the bundle's file exists but cannot be read, a client that is not strict reports nothing, and
 * warns.
 *
 * @throws BundleRefused the bundle is missing or refused; or strict, it cannot be read.
 * @throws BadParameter an option is unknown, of another type or out of range.
 */
export async function open(options: NodeOptions): Promise<Client> {
  const { operator = null } = checked(options, REQUIRED_OPTIONS);
  // An empty path would mean the folder in which the program runs.
  if (!options.folder) throw new BadParameter("open(): folder has no name; give string");
  if (/^~(\/|$)/.test(options.folder)) {
    throw new BadParameter(
      "open(): folder begins with ~, which only a shell replaces; write it out",
    );
  }
  const place = await within(after(BUNDLE_SECONDS), stat(options.folder)).catch(() => null);
  if (place && !place.isDirectory())
    throw new BadParameter("open(): folder is a file; give a folder");
  return started(options, async () => {
    const bundle = await named(options.bundle, async () =>
      openBundle(await contentOf(options.bundle), operator),
    );
    const connections = relayAndIssuer(bundle, options, httpsPost(withSystems(bundle.roots)));
    return Client.over(
      bundle,
      new FolderStorage(absolute(options.folder)),
      connections.transport ?? httpsTransport(options.shuffler ?? bundle.shuffler, bundle.roots),
      { ...options, ...connections, operatorNamed: operator !== null },
    );
  });
}

/** The absolute folder; the folder as it is if the working directory is gone. */
function absolute(folder: string): string {
  try {
    return resolve(folder);
  } catch {
    return folder;
  }
}

/**
 * Another party runs a relay or an issuer, so any authority that the system trusts may certify it.
 */
function withSystems(roots: string | null): string[] | null {
  return roots === null ? null : [roots, ...rootCertificates];
}

async function contentOf(bundle: string | URL | Uint8Array) {
  try {
    return new Uint8Array(
      bundle instanceof Uint8Array
        ? bundle
        : await readFile(bundle, { flag: READ_ONLY, signal: after(BUNDLE_SECONDS) }),
    );
  } catch (error) {
    // Node's message and cause may quote the argument, which may be the whole text of a bundle.
    const { code, name } = error as NodeJS.ErrnoException;
    const isMissing = MISSING_CODES.includes(code ?? name);
    throw new (isMissing ? BundleRefused : BundleUnavailable)(
      `the bundle cannot be read: ${code ?? name}; give the path of its file, or its bytes`,
    );
  }
}
